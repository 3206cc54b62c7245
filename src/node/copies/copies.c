#include "node/copies/copies.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/whole_file.h"
#include "node/copies/copies_state.h"

enum {
    FEED_RECORDS_MAX = 64, /* the set is locked meanwhile */
    FEED_RUNS_MAX = 256,   /* before anything else is looked at */
    REST_US = 200000,      /* at most, between two looks at the volumes */
    SENTENCE_SIZE_MAX = 512,
    PATH_SIZE_MAX = 4096,
    HOPS_MAX = 64, /* places that are looked at for spare holders */
};

uint64_t copies_now_us(const struct copies *copies) {
    return clock_monotonic_us(copies->config.clock);
}

struct ring_id copies_place_of(const struct ringkey *key) {
    return ring_id_read(key->bytes);
}

bool copies_is_stopping(struct copies *copies) {
    return task_is_stopping(&copies->task);
}

void copies_blame(struct copies *copies, const struct peer *peer, const char *sentence) {
    if (copies->config.blame != NULL) {
        copies->config.blame(copies->config.context, peer, sentence);
    }
}

void copies_note(struct copies *copies, const char *format, ...) {
    char sentence[SENTENCE_SIZE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (copies->config.note != NULL) {
        copies->config.note(copies->config.context, sentence);
    }
}

/* ---- the ring as the keeper sees it ---- */

static bool is_listed(const struct copy_plan_arc *arc, const struct peer *peer) {
    for (size_t i = 0; i < arc->count; i++) {
        if (address_equal(&arc->peers[i].address, &peer->address)) {
            return true;
        }
    }
    return false;
}

static void add_peers(struct copy_plan_arc *out, const struct holders_arc *arc, const struct peer *self,
                      size_t count_max) {
    for (size_t i = 0; i < arc->count && out->count < count_max; i++) {
        bool is_self = address_equal(&arc->peers[i].address, &self->address);
        if (!is_self && !is_listed(out, &arc->peers[i])) {
            out->peers[out->count++] = arc->peers[i];
        }
    }
}

/* Our arc with its holders, and some that follow them in case one is full. */
static void describe_arc(struct copies *copies, const struct holders_arc *arc, struct copies_watch *watch,
                         struct copy_plan_arc *out) {
    const struct copies_ring *ring = &copies->config.ring;
    const struct peer *self = &arc->peers[0];
    size_t count_max = ring->copies(ring->context) + COPY_PLAN_SPARES_MAX - 1;
    struct holders_arc next = *arc;
    *out = (struct copy_plan_arc){.from = arc->from, .to = arc->to};
    count_max = count_max < COPY_PLAN_CANDIDATES_MAX ? count_max : COPY_PLAN_CANDIDATES_MAX;
    add_peers(out, arc, self, count_max);
    for (unsigned i = 0; i < HOPS_MAX && out->count < count_max; i++) {
        struct ring_id behind = ring_id_add_power(next.to, 0);
        bool is_found = ring->know(ring->context, behind, &next);
        if (!is_found || ring_id_equal(next.to, arc->to)) {
            break; /* once around */
        }
        add_peers(out, &next, self, count_max);
    }
    copies_primary_watch_reach(copies, self, out, watch);
}

static void look_at_ring(struct copies *copies) {
    const struct copies_ring *ring = &copies->config.ring;
    uint64_t generation = ring->generation(ring->context);
    if (copies->has_ring && generation == copies->generation &&
        copies->failing == copies_primary_watch_failing(copies)) {
        return;
    }
    struct copies_watch watch = {.count = 0};
    struct holders_arc *own = malloc(HOLDERS_ARCS_MAX * sizeof *own);
    struct copy_plan_arc *arcs = malloc(HOLDERS_ARCS_MAX * sizeof *arcs);
    size_t wanted = ring->copies(ring->context);
    if (own != NULL && arcs != NULL) {
        size_t count = ring->own(ring->context, own);
        size_t used = 0;
        for (size_t i = 0; i < count; i++) {
            if (own[i].count > 0) {
                describe_arc(copies, &own[i], &watch, &arcs[used++]);
            }
        }
        pthread_mutex_lock(&copies->lock);
        if (wanted > 0) {
            copy_plan_set_copies(copies->copy_plan, (uint32_t)wanted, copies_now_us(copies));
        }
        copy_plan_set_arcs(copies->copy_plan, arcs, used, copies_now_us(copies));
        primary_watch_set(&copies->primary_watch, watch.arcs, watch.count, copies_now_us(copies));
        copies->failing = primary_watch_failing(&copies->primary_watch, copies_now_us(copies));
        pthread_mutex_unlock(&copies->lock);
        copies->has_ring = true;
        copies->generation = generation;
    }
    free(own);
    free(arcs);
}

/* ---- the thread ---- */

void copies_feed(struct copies *copies) {
    bool has_more = true;
    enum err err = ERR_OK;
    struct err_detail detail = {0};
    for (unsigned i = 0; i < FEED_RUNS_MAX && has_more && err == ERR_OK; i++) {
        pthread_mutex_lock(&copies->keys_lock);
        err = keyset_feed_run(copies->feed, FEED_RECORDS_MAX, &has_more, &detail);
        pthread_mutex_unlock(&copies->keys_lock);
        if (copies_is_stopping(copies)) {
            return;
        }
    }
    if (err != ERR_OK && !copies->is_feed_told) {
        copies_note(copies, "the keys of the ring: %s", err_detail_text(&detail, err));
    }
    copies->is_feed_told = err != ERR_OK;
    pthread_mutex_lock(&copies->lock);
    copies->stat.is_fed = err == ERR_OK && !has_more;
    pthread_mutex_unlock(&copies->lock);
    if (has_more) {
        task_poke(&copies->task);
    }
}

/* Until a task is due, or it is time to look at the volumes again. */
static uint64_t rest_us(struct copies *copies) {
    uint64_t now_us = copies_now_us(copies);
    pthread_mutex_lock(&copies->lock);
    uint64_t wake_us = copy_plan_wake_at(copies->copy_plan, now_us);
    uint64_t full_sync_us = copies_full_sync_at(copies);
    wake_us = full_sync_us < wake_us ? full_sync_us : wake_us;
    uint64_t wait_us = wake_us > now_us ? wake_us - now_us : 0;
    bool is_long = wait_us > REST_US || !copies->stat.is_fed;
    wait_us = is_long ? REST_US : wait_us;
    bool is_held = copies->busy_until_us > now_us;
    if (is_held && wait_us > copies->busy_until_us - now_us) {
        wait_us = copies->busy_until_us - now_us;
    }
    wait_us = copies->wanted_count > 0 && !is_held ? 0 : wait_us;
    pthread_mutex_unlock(&copies->lock);
    return wait_us;
}

static uint64_t copies_run(void *context) {
    struct copies *copies = context;
    struct copy_plan_task task;
    copies_feed(copies);
    look_at_ring(copies);
    copies_offer_fresh(copies);
    copies_fetch(copies);
    copies_scrub(copies);
    copies_repair(copies);
    copies_primary_watch_run(copies);
    pthread_mutex_lock(&copies->lock);
    bool has_task = copies->wanted_count < COPIES_WANTED_BUSY && copies->stat.is_fed &&
                    copy_plan_next(copies->copy_plan, copies_now_us(copies), &task);
    pthread_mutex_unlock(&copies->lock);
    if (has_task) {
        copies_run_task(copies, &task);
        return 0;
    }
    return copies_full_sync(copies) ? 0 : rest_us(copies);
}

/* ---- begin and end ---- */

static enum err open_keys(struct copies *copies, struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/ring", copies->config.directory);
    enum err err = whole_file_make_directory(path, detail);
    snprintf(path, sizeof path, "%s/ring/keys", copies->config.directory);
    err = err == ERR_OK
              ? keyset_open(path, (enum position_mapping)copies->config.mapping, &copies->keyset, detail)
              : err;
    if (err != ERR_OK) {
        return err;
    }
    copies->feed = keyset_feed_new(copies->keyset, copies->config.instance);
    if (copies->feed == NULL) {
        return ERR_MEMORY;
    }
    keyset_feed_listen(copies->feed, copies_take_fresh, copies);
    return ERR_OK;
}

static void init_locks(struct copies *copies) {
    pthread_mutex_init(&copies->keys_lock, NULL);
    pthread_mutex_init(&copies->lock, NULL);
}

static enum err make_parts(struct copies *copies) {
    const struct copies_config *config = &copies->config;
    size_t wanted = config->ring.copies(config->ring.context);
    struct copy_plan_config copy_plan = {
        .copies = (uint32_t)wanted,
        .compare_interval_us = config->compare_interval_us,
        .challenge_interval_us = config->challenge_interval_us,
        .grace_us = config->grace_us,
        .bar_us = config->grace_us / 2,
        .keeps_everything = config->keeps_everything,
        .seed = config->seed,
    };
    standing_init(&copies->standing, copies->shunned, COPIES_SHUNNED_MAX, config->seed);
    copies_full_sync_init(copies);
    copies_primary_watch_init(copies);
    void *memory = malloc(copy_plan_size(&copy_plan));
    copies->copy_plan = memory != NULL ? copy_plan_init(memory, &copy_plan, copies_now_us(copies)) : NULL;
    copies->fresh = malloc(COPIES_KEYS_MAX * sizeof *copies->fresh);
    copies->again = malloc(COPIES_KEYS_MAX * sizeof *copies->again);
    copies->message = malloc(RECONCILE_MESSAGE_SIZE_MAX);
    buf_init(&copies->question, PEER_RPC_QUESTION_SIZE_MAX);
    buf_init(&copies->answer, PEER_RPC_ANSWER_SIZE_MAX);
    bool is_made = copies->copy_plan != NULL && copies->fresh != NULL && copies->again != NULL &&
                   copies->message != NULL;
    enum err err = copies_want_init(copies);
    err = is_made ? err : ERR_MEMORY;
    err = err == ERR_OK ? copies_reader_init(&copies->answering, config->instance) : err;
    return err == ERR_OK ? copies_reader_init(&copies->reading, config->instance) : err;
}

enum err copies_new(const struct copies_config *config, struct copies **ret_copies,
                    struct err_detail *detail) {
    struct copies *copies = calloc(1, sizeof *copies);
    if (copies == NULL) {
        return ERR_MEMORY;
    }
    copies->config = *config;
    copies->config.clock = config->clock != NULL ? config->clock : &clock_system;
    init_locks(copies);
    enum err err = make_parts(copies);
    err = err == ERR_OK ? open_keys(copies, detail) : err;
    if (err != ERR_OK) {
        copies_free(copies);
        return err;
    }
    peer_rpc_serve(config->peer_rpc, PEER_RPC_COMPARE, copies_answer_compare, copies);
    peer_rpc_serve(config->peer_rpc, PEER_RPC_OFFER, copies_answer_offer, copies);
    peer_rpc_serve(config->peer_rpc, PEER_RPC_CONFIRM, copies_answer_confirm, copies);
    peer_rpc_serve(config->peer_rpc, PEER_RPC_PROVE, copies_answer_prove, copies);
    peer_rpc_serve(config->peer_rpc, PEER_RPC_FOLLOW, copies_answer_follow, copies);
    *ret_copies = copies;
    return ERR_OK;
}

enum err copies_start(struct copies *copies, struct captures *captures, struct err_detail *detail) {
    copies->captures = captures;
    enum err err = copies_crew_init(copies);
    if (err != ERR_OK) {
        return err_set(detail, err, "%s", err_text(err));
    }
    err = copies_scrub_init(copies, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = task_start(&copies->task, "copies", PRIORITY_BEHIND, copies_run, copies);
    return err == ERR_OK
               ? ERR_OK
               : err_set(detail, err, "the thread that keeps the archive of the ring did not start");
}

void copies_stop(struct copies *copies) {
    task_stop(&copies->task);
}

void copies_free(struct copies *copies) {
    copies_crew_done(copies);
    if (copies->scrub != NULL) {
        scrub_close(copies->scrub);
    }
    copies_reader_done(&copies->answering);
    copies_reader_done(&copies->reading);
    if (copies->feed != NULL) {
        keyset_feed_free(copies->feed);
    }
    if (copies->keyset != NULL) {
        keyset_close(copies->keyset);
    }
    free(copies->copy_plan);
    copies_want_done(copies);
    free(copies->fresh);
    free(copies->again);
    free(copies->message);
    buf_done(&copies->question);
    buf_done(&copies->answer);
    pthread_mutex_destroy(&copies->lock);
    pthread_mutex_destroy(&copies->keys_lock);
    free(copies);
}

/* ---- any thread ---- */

void copies_wake(struct copies *copies) {
    task_poke(&copies->task);
}

void copies_report_damage(struct copies *copies, const struct ringkey *key) {
    pthread_mutex_lock(&copies->lock);
    if (copies->damaged_count < COPIES_DAMAGED_MAX) { /* else it is found again */
        copies->damaged[copies->damaged_count++] = *key;
    }
    pthread_mutex_unlock(&copies->lock);
    task_poke(&copies->task);
}

bool copies_is_compared(struct copies *copies, struct ring_id place) {
    const struct copies_ring *ring = &copies->config.ring;
    struct holders_arc arc;
    /* Who was a holder until the ring changed was compared too, but does not get what is new. */
    if (!ring->know(ring->context, place, &arc) || arc.self_rank < 0) {
        return false;
    }
    pthread_mutex_lock(&copies->lock);
    bool is_compared =
        copy_plan_is_compared(copies->copy_plan, place, &arc.peers[0], arc.from, copies_now_us(copies));
    pthread_mutex_unlock(&copies->lock);
    return is_compared;
}

void copies_stat(struct copies *copies, struct copies_stat *ret_stat) {
    pthread_mutex_lock(&copies->keys_lock);
    uint64_t keys_count = keyset_count(copies->keyset);
    pthread_mutex_unlock(&copies->keys_lock);
    pthread_mutex_lock(&copies->lock);
    *ret_stat = copies->stat;
    ret_stat->keys_count = keys_count;
    ret_stat->wanted_count = copies->wanted_count;
    pthread_mutex_unlock(&copies->lock);
}

/* ---- the ring by node/ring/holders.h ---- */

static size_t ask_own(void *context, struct holders_arc out[HOLDERS_ARCS_MAX]) {
    return holders_own(context, out);
}

static bool ask_known(void *context, struct ring_id place, struct holders_arc *ret_arc) {
    return holders_know(context, place, ret_arc);
}

static enum err ask_find(void *context, struct ring_id place, struct holders_arc *ret_arc) {
    return holders_find(context, place, ret_arc);
}

static size_t ask_copies(void *context) {
    return holders_copies(context);
}

static uint64_t ask_generation(void *context) {
    return holders_generation(context);
}

static bool locate(void *context, const uint8_t key[PEER_KEY_SIZE], struct peer *ret_peer) {
    return holders_locate(context, key, ret_peer);
}

struct copies_ring copies_ring_of_holders(struct holders *holders) {
    return (struct copies_ring){ask_own, ask_known, ask_find, ask_copies, ask_generation, locate, holders};
}
