#include "node/copies/keeping.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/whole_file.h"
#include "node/copies/keeping_state.h"
#include "run/priority.h"
#include "run/thread.h"

enum {
    FEED_RECORDS_MAX = 64, /* the set is locked meanwhile */
    FEED_RUNS_MAX = 256,   /* before anything else is looked at */
    REST_MS = 200,         /* at most, between two looks at the volumes */
    SENTENCE_SIZE_MAX = 512,
    PATH_SIZE_MAX = 4096,
    HOPS_MAX = 64, /* places that are looked at for spare holders */
};

uint64_t keeping_now_us(const struct keeping *keeping) {
    return clock_monotonic_us(keeping->config.clock);
}

struct ring_id keeping_place_of(const struct ringkey *key) {
    return ring_id_read(key->bytes);
}

bool keeping_is_stopping(struct keeping *keeping) {
    pthread_mutex_lock(&keeping->lock);
    bool is_stopping = keeping->is_stopping;
    pthread_mutex_unlock(&keeping->lock);
    return is_stopping;
}

void keeping_blame(struct keeping *keeping, const struct peer *peer, const char *sentence) {
    if (keeping->config.blame != NULL) {
        keeping->config.blame(keeping->config.context, peer, sentence);
    }
}

void keeping_note(struct keeping *keeping, const char *format, ...) {
    char sentence[SENTENCE_SIZE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (keeping->config.note != NULL) {
        keeping->config.note(keeping->config.context, sentence);
    }
}

/* ---- the ring as the keeper sees it ---- */

static bool is_listed(const struct keeper_arc *arc, const struct peer *peer) {
    for (size_t i = 0; i < arc->count; i++) {
        if (address_equal(&arc->peers[i].address, &peer->address)) {
            return true;
        }
    }
    return false;
}

static void add_peers(struct keeper_arc *out, const struct holders_arc *arc, const struct peer *self,
                      size_t count_max) {
    for (size_t i = 0; i < arc->count && out->count < count_max; i++) {
        bool is_self = address_equal(&arc->peers[i].address, &self->address);
        if (!is_self && !is_listed(out, &arc->peers[i])) {
            out->peers[out->count++] = arc->peers[i];
        }
    }
}

/* Our arc with its holders, and some that follow them in case one is full. */
static void describe_arc(struct keeping *keeping, const struct holders_arc *arc, struct keeping_watch *watch,
                         struct keeper_arc *out) {
    const struct keeping_ring *ring = &keeping->config.ring;
    const struct peer *self = &arc->peers[0];
    size_t count_max = ring->copies(ring->context) + KEEPER_SPARES_MAX - 1;
    struct holders_arc next = *arc;
    *out = (struct keeper_arc){.from = arc->from, .to = arc->to};
    count_max = count_max < KEEPER_CANDIDATES_MAX ? count_max : KEEPER_CANDIDATES_MAX;
    add_peers(out, arc, self, count_max);
    for (unsigned i = 0; i < HOPS_MAX && out->count < count_max; i++) {
        struct ring_id behind = ring_id_add_power(next.to, 0);
        bool is_found = ring->know(ring->context, behind, &next);
        if (!is_found || ring_id_equal(next.to, arc->to)) {
            break; /* once around */
        }
        add_peers(out, &next, self, count_max);
    }
    keeping_guard_reach(keeping, self, out, watch);
}

static void look_at_ring(struct keeping *keeping) {
    const struct keeping_ring *ring = &keeping->config.ring;
    uint64_t generation = ring->generation(ring->context);
    if (keeping->has_ring && generation == keeping->generation &&
        keeping->failing == keeping_guard_failing(keeping)) {
        return;
    }
    struct keeping_watch watch = {.count = 0};
    struct holders_arc *own = malloc(HOLDERS_ARCS_MAX * sizeof *own);
    struct keeper_arc *arcs = malloc(HOLDERS_ARCS_MAX * sizeof *arcs);
    size_t copies = ring->copies(ring->context);
    if (own != NULL && arcs != NULL) {
        size_t count = ring->own(ring->context, own);
        size_t used = 0;
        for (size_t i = 0; i < count; i++) {
            if (own[i].count > 0) {
                describe_arc(keeping, &own[i], &watch, &arcs[used++]);
            }
        }
        pthread_mutex_lock(&keeping->lock);
        if (copies > 0) {
            keeper_set_copies(keeping->keeper, (uint32_t)copies, keeping_now_us(keeping));
        }
        keeper_set_arcs(keeping->keeper, arcs, used, keeping_now_us(keeping));
        guard_set(&keeping->guard, watch.arcs, watch.count, keeping_now_us(keeping));
        keeping->failing = guard_failing(&keeping->guard, keeping_now_us(keeping));
        pthread_mutex_unlock(&keeping->lock);
        keeping->has_ring = true;
        keeping->generation = generation;
    }
    free(own);
    free(arcs);
}

/* ---- the thread ---- */

void keeping_feed(struct keeping *keeping) {
    bool has_more = true;
    enum err err = ERR_OK;
    struct err_detail detail = {0};
    for (unsigned i = 0; i < FEED_RUNS_MAX && has_more && err == ERR_OK; i++) {
        pthread_mutex_lock(&keeping->keys_lock);
        err = keyset_feed_run(keeping->feed, FEED_RECORDS_MAX, &has_more, &detail);
        pthread_mutex_unlock(&keeping->keys_lock);
        if (keeping_is_stopping(keeping)) {
            return;
        }
    }
    if (err != ERR_OK && !keeping->is_feed_told) {
        keeping_note(keeping, "the keys of the ring: %s", err_detail_text(&detail, err));
    }
    keeping->is_feed_told = err != ERR_OK;
    pthread_mutex_lock(&keeping->lock);
    keeping->stat.is_fed = err == ERR_OK && !has_more;
    if (has_more) {
        keeping->is_woken = true;
    }
    pthread_mutex_unlock(&keeping->lock);
}

/* Until somebody wakes it, a task is due, or it is time to look at the volumes again. */
static void rest(struct keeping *keeping) {
    struct timespec until;
    uint64_t now_us = keeping_now_us(keeping);
    pthread_mutex_lock(&keeping->lock);
    uint64_t wake_us = keeper_wake_at(keeping->keeper, now_us);
    uint64_t tour_us = keeping_tour_at(keeping);
    wake_us = tour_us < wake_us ? tour_us : wake_us;
    uint64_t wait_us = wake_us > now_us ? wake_us - now_us : 0;
    bool is_long = wait_us > REST_MS * UINT64_C(1000) || !keeping->stat.is_fed;
    wait_us = is_long ? REST_MS * UINT64_C(1000) : wait_us;
    bool is_held = keeping->busy_until_us > now_us;
    if (is_held && wait_us > keeping->busy_until_us - now_us) {
        wait_us = keeping->busy_until_us - now_us;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t nanoseconds = (uint64_t)until.tv_nsec + wait_us * 1000;
    until.tv_sec += (time_t)(nanoseconds / 1000000000);
    until.tv_nsec = (long)(nanoseconds % 1000000000);
    int result = 0;
    while (!keeping->is_woken && !keeping->is_stopping && (keeping->wanted_count == 0 || is_held) &&
           result == 0) {
        result = pthread_cond_timedwait(&keeping->wake, &keeping->lock, &until);
    }
    keeping->is_woken = false;
    pthread_mutex_unlock(&keeping->lock);
}

static void *run(void *context) {
    struct keeping *keeping = context;
    struct keeper_task task;
    priority_lower(PRIORITY_BEHIND);
    while (!keeping_is_stopping(keeping)) {
        keeping_feed(keeping);
        look_at_ring(keeping);
        keeping_offer_fresh(keeping);
        keeping_fetch(keeping);
        keeping_scrub(keeping);
        keeping_repair(keeping);
        keeping_guard_run(keeping);
        pthread_mutex_lock(&keeping->lock);
        bool has_task = keeping->wanted_count < KEEPING_WANTED_BUSY && keeping->stat.is_fed &&
                        keeper_next(keeping->keeper, keeping_now_us(keeping), &task);
        pthread_mutex_unlock(&keeping->lock);
        if (has_task) {
            keeping_run_task(keeping, &task);
        } else if (!keeping_tour(keeping)) {
            rest(keeping);
        }
    }
    return NULL;
}

/* ---- begin and end ---- */

static enum err open_keys(struct keeping *keeping, struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/ring", keeping->config.directory);
    enum err err = whole_file_make_directory(path, detail);
    snprintf(path, sizeof path, "%s/ring/keys", keeping->config.directory);
    err = err == ERR_OK
              ? keyset_open(path, (enum place_mapping)keeping->config.mapping, &keeping->keyset, detail)
              : err;
    if (err != ERR_OK) {
        return err;
    }
    keeping->feed = keyset_feed_new(keeping->keyset, keeping->config.instance);
    if (keeping->feed == NULL) {
        return ERR_MEMORY;
    }
    keyset_feed_listen(keeping->feed, keeping_take_fresh, keeping);
    return ERR_OK;
}

static void init_locks(struct keeping *keeping) {
    pthread_condattr_t attributes;
    pthread_mutex_init(&keeping->keys_lock, NULL);
    pthread_mutex_init(&keeping->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&keeping->wake, &attributes);
    pthread_condattr_destroy(&attributes);
}

static enum err make_parts(struct keeping *keeping) {
    const struct keeping_config *config = &keeping->config;
    size_t copies = config->ring.copies(config->ring.context);
    struct keeper_config keeper = {
        .copies = (uint32_t)copies,
        .compare_interval_us = config->compare_interval_us,
        .challenge_interval_us = config->challenge_interval_us,
        .grace_us = config->grace_us,
        .bar_us = config->grace_us / 2,
        .keeps_everything = config->keeps_everything,
        .seed = config->seed,
    };
    keeping_tour_init(keeping);
    keeping_guard_init(keeping);
    void *memory = malloc(keeper_size(&keeper));
    keeping->keeper = memory != NULL ? keeper_init(memory, &keeper, keeping_now_us(keeping)) : NULL;
    keeping->fresh = malloc(KEEPING_KEYS_MAX * sizeof *keeping->fresh);
    keeping->again = malloc(KEEPING_KEYS_MAX * sizeof *keeping->again);
    keeping->message = malloc(RECONCILE_MESSAGE_SIZE_MAX);
    buf_init(&keeping->question, BULK_QUESTION_SIZE_MAX);
    buf_init(&keeping->answer, BULK_ANSWER_SIZE_MAX);
    bool is_made = keeping->keeper != NULL && keeping->fresh != NULL && keeping->again != NULL &&
                   keeping->message != NULL;
    enum err err = keeping_want_init(keeping);
    err = is_made ? err : ERR_MEMORY;
    err = err == ERR_OK ? keeping_reader_init(&keeping->answering, config->instance) : err;
    return err == ERR_OK ? keeping_reader_init(&keeping->reading, config->instance) : err;
}

enum err keeping_new(const struct keeping_config *config, struct keeping **ret_keeping,
                     struct err_detail *detail) {
    struct keeping *keeping = calloc(1, sizeof *keeping);
    if (keeping == NULL) {
        return ERR_MEMORY;
    }
    keeping->config = *config;
    keeping->config.clock = config->clock != NULL ? config->clock : &clock_system;
    init_locks(keeping);
    enum err err = make_parts(keeping);
    err = err == ERR_OK ? open_keys(keeping, detail) : err;
    if (err != ERR_OK) {
        keeping_free(keeping);
        return err;
    }
    bulk_serve(config->bulk, BULK_COMPARE, keeping_answer_compare, keeping);
    bulk_serve(config->bulk, BULK_OFFER, keeping_answer_offer, keeping);
    bulk_serve(config->bulk, BULK_CONFIRM, keeping_answer_confirm, keeping);
    bulk_serve(config->bulk, BULK_PROVE, keeping_answer_prove, keeping);
    bulk_serve(config->bulk, BULK_FOLLOW, keeping_answer_follow, keeping);
    *ret_keeping = keeping;
    return ERR_OK;
}

enum err keeping_start(struct keeping *keeping, struct captures *captures, struct err_detail *detail) {
    keeping->captures = captures;
    enum err err = keeping_crew_init(keeping);
    if (err != ERR_OK) {
        return err_set(detail, err, "%s", err_text(err));
    }
    err = keeping_scrub_init(keeping, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (thread_start(&keeping->thread, "keeping", run, keeping) != 0) {
        return err_set(detail, ERR_SYSTEM, "the thread that keeps the archive of the ring did not start");
    }
    keeping->is_started = true;
    return ERR_OK;
}

void keeping_stop(struct keeping *keeping) {
    pthread_mutex_lock(&keeping->lock);
    keeping->is_stopping = true;
    pthread_cond_signal(&keeping->wake);
    pthread_mutex_unlock(&keeping->lock);
    if (keeping->is_started) {
        pthread_join(keeping->thread, NULL);
        keeping->is_started = false;
    }
}

void keeping_free(struct keeping *keeping) {
    keeping_crew_done(keeping);
    if (keeping->scrub != NULL) {
        scrub_close(keeping->scrub);
    }
    keeping_reader_done(&keeping->answering);
    keeping_reader_done(&keeping->reading);
    if (keeping->feed != NULL) {
        keyset_feed_free(keeping->feed);
    }
    if (keeping->keyset != NULL) {
        keyset_close(keeping->keyset);
    }
    free(keeping->keeper);
    keeping_want_done(keeping);
    free(keeping->fresh);
    free(keeping->again);
    free(keeping->message);
    buf_done(&keeping->question);
    buf_done(&keeping->answer);
    pthread_cond_destroy(&keeping->wake);
    pthread_mutex_destroy(&keeping->lock);
    pthread_mutex_destroy(&keeping->keys_lock);
    free(keeping);
}

/* ---- any thread ---- */

void keeping_wake(struct keeping *keeping) {
    pthread_mutex_lock(&keeping->lock);
    keeping->is_woken = true;
    pthread_cond_signal(&keeping->wake);
    pthread_mutex_unlock(&keeping->lock);
}

void keeping_report_damage(struct keeping *keeping, const struct ringkey *key) {
    pthread_mutex_lock(&keeping->lock);
    if (keeping->damaged_count < KEEPING_DAMAGED_MAX) { /* else it is found again */
        keeping->damaged[keeping->damaged_count++] = *key;
    }
    keeping->is_woken = true;
    pthread_cond_signal(&keeping->wake);
    pthread_mutex_unlock(&keeping->lock);
}

bool keeping_is_compared(struct keeping *keeping, struct ring_id place) {
    const struct keeping_ring *ring = &keeping->config.ring;
    struct holders_arc arc;
    /* Who was a holder until the ring changed was compared too, but does not get what is new. */
    if (!ring->know(ring->context, place, &arc) || arc.self_rank < 0) {
        return false;
    }
    pthread_mutex_lock(&keeping->lock);
    bool is_compared =
        keeper_is_compared(keeping->keeper, place, &arc.peers[0], arc.from, keeping_now_us(keeping));
    pthread_mutex_unlock(&keeping->lock);
    return is_compared;
}

void keeping_stat(struct keeping *keeping, struct keeping_stat *ret_stat) {
    pthread_mutex_lock(&keeping->keys_lock);
    uint64_t keys_count = keyset_count(keeping->keyset);
    pthread_mutex_unlock(&keeping->keys_lock);
    pthread_mutex_lock(&keeping->lock);
    *ret_stat = keeping->stat;
    ret_stat->keys_count = keys_count;
    ret_stat->wanted_count = keeping->wanted_count;
    pthread_mutex_unlock(&keeping->lock);
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

struct keeping_ring keeping_ring_of_holders(struct holders *holders) {
    return (struct keeping_ring){ask_own, ask_known, ask_find, ask_copies, ask_generation, locate, holders};
}
