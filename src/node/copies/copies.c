#include "node/copies/copies.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/whole_file.h"
#include "node/copies/copies_state.h"
#include "protocol/copies/reconcile_arc.h"
#include "web/url/url.h"

/* ---- captures of this node by their keys ---- */

enum { SURT_SIZE_MAX = URL_SIZE_MAX + 16, BOUNDS_SIZE_MAX = 2 * SURT_SIZE_MAX + 64 };

enum err copies_reader_init(struct copies_reader *reader, struct instance *instance) {
    buf_init(&reader->surt, SURT_SIZE_MAX);
    buf_init(&reader->url, URL_SIZE_MAX);
    buf_init(&reader->bounds, BOUNDS_SIZE_MAX);
    reader->session = instance_session_new(instance);
    enum err err = sha256_init(&reader->sha256);
    return reader->session == NULL ? ERR_MEMORY : err;
}

void copies_reader_done(struct copies_reader *reader) {
    instance_session_free(reader->session);
    sha256_done(&reader->sha256);
    buf_done(&reader->surt);
    buf_done(&reader->url);
    buf_done(&reader->bounds);
}

enum err copies_find_surt(struct copies *copies, const struct ringkey *key, struct buf *out) {
    struct keyset_entry entry;
    pthread_mutex_lock(&copies->keys_lock);
    enum err err = keyset_find(copies->keyset, key, &entry);
    if (err == ERR_OK) {
        err = buf_put(out, entry.surt);
    }
    pthread_mutex_unlock(&copies->keys_lock);
    return err;
}

enum err copies_find_capture(struct copies *copies, struct copies_reader *reader, const struct ringkey *key,
                             struct capture *ret_capture, struct err_detail *detail) {
    buf_clear(&reader->surt);
    enum err err = copies_find_surt(copies, key, &reader->surt);
    if (err != ERR_OK) {
        return err_set(detail, err, "no capture of that key");
    }
    return capture_by_key(reader->session, buf_bytes(&reader->surt), key, &reader->bounds, &reader->url,
                          ret_capture, detail);
}

enum err copies_read_payload(struct copies *copies, struct copies_reader *reader, const struct ringkey *key,
                             struct bytes *ret_payload, struct err_detail *detail) {
    struct capture capture;
    struct key located;
    struct block block;
    enum err err = copies_find_capture(copies, reader, key, &capture, detail);
    err = err == ERR_OK ? instance_locate(reader->session, &capture, &located, &block, detail) : err;
    return err == ERR_OK ? instance_get(reader->session, &located, ret_payload, detail) : err;
}

/* ---- lists ---- */

static enum err list_range(struct copies *copies, const struct ringkey_range *range, struct ringkey *out,
                           size_t count_max, size_t *count) {
    size_t found = 0;
    bool is_empty = range->has_upper && ringkey_compare(&range->lower, &range->upper) >= 0;
    enum err err =
        is_empty ? ERR_OK : keyset_list(copies->keyset, range, out + *count, count_max - *count, &found);
    *count += err == ERR_OK ? found : 0;
    return err;
}

static struct ringkey lowest_at(struct ring_id place) {
    struct ringkey key = {0};
    ring_id_write(place, key.bytes);
    return key;
}

static struct ringkey next_key(const struct ringkey *key) {
    struct ringkey next = *key;
    for (size_t i = RINGKEY_SIZE; i > 0 && ++next.bytes[i - 1] == 0; i--) {
    }
    return next;
}

enum err copies_list(struct copies *copies, struct ring_id from, struct ring_id to,
                     const struct ringkey *behind, struct ringkey *out, size_t count_max, size_t *ret_count) {
    static const struct ring_id last = {UINT64_MAX, UINT64_MAX};
    struct ring_id end = ring_id_add_power(to, 0);
    struct ringkey_range first = {.lower = behind != NULL ? next_key(behind)
                                                          : lowest_at(ring_id_add_power(from, 0))};
    struct ringkey_range second = {.upper = lowest_at(end), .has_upper = true};
    struct ring_id start = ring_id_read(first.lower.bytes);
    size_t count = 0;
    bool is_straight = ring_id_compare(start, to) <= 0 && !ring_id_equal(from, to);
    first.has_upper = is_straight && !ring_id_equal(to, last);
    first.upper = second.upper;
    pthread_mutex_lock(&copies->keys_lock);
    enum err err = list_range(copies, &first, out, count_max, &count);
    if (err == ERR_OK && !is_straight && !ring_id_equal(from, to) && count < count_max) {
        err = list_range(copies, &second, out, count_max, &count);
    }
    pthread_mutex_unlock(&copies->keys_lock);
    *ret_count = count;
    return err;
}

/* ---- the keys, for others: which captures of a position, or of a digest, does this node have? ---- */

enum { LAST_COUNT = 64, LAST_SLACK = 16 };

static struct ringkey_range range_of(const uint8_t place[RINGKEY_POSITION_SIZE], int64_t from_us,
                                     int64_t before_us) {
    static const uint8_t lowest[RINGKEY_DIGEST_SIZE];
    return (struct ringkey_range){
        .lower = ringkey_make(place, from_us, lowest),
        .upper = ringkey_make(place, before_us, lowest),
        .has_upper = true,
    };
}

enum err copies_find_first(struct copies *copies, const uint8_t place[RINGKEY_POSITION_SIZE], int64_t from_us,
                           struct ringkey *ret_key) {
    struct ringkey_range range = range_of(place, from_us, INT64_MAX);
    size_t count = 0;
    pthread_mutex_lock(&copies->keys_lock);
    enum err err = from_us < INT64_MAX ? keyset_list(copies->keyset, &range, ret_key, 1, &count) : ERR_OK;
    pthread_mutex_unlock(&copies->keys_lock);
    return err == ERR_OK && count == 0 ? ERR_NOT_FOUND : err;
}

/* Lists begin at their lower end, which is moved up first if there are many. */
static enum err find_last(struct keyset *keyset, struct ringkey_range *range, struct ringkey *ret_key) {
    struct ringkey keys[LAST_COUNT];
    struct ringkey_sum sum;
    size_t count = 0;
    enum err err = keyset_sum(keyset, range, &sum);
    if (err == ERR_OK && sum.count > LAST_COUNT - LAST_SLACK) {
        err = keyset_cut(keyset, range, sum.count - LAST_COUNT / 2, LAST_SLACK, &range->lower);
    }
    err = err == ERR_OK ? keyset_list(keyset, range, keys, LAST_COUNT, &count) : err;
    if (err != ERR_OK || count == 0) {
        return err == ERR_OK ? ERR_NOT_FOUND : err;
    }
    *ret_key = keys[count - 1];
    return ERR_OK;
}

enum err copies_find_last(struct copies *copies, const uint8_t place[RINGKEY_POSITION_SIZE],
                          int64_t before_us, struct ringkey *ret_key) {
    struct ringkey_range range = range_of(place, INT64_MIN, before_us);
    pthread_mutex_lock(&copies->keys_lock);
    enum err err = before_us > INT64_MIN ? find_last(copies->keyset, &range, ret_key) : ERR_NOT_FOUND;
    pthread_mutex_unlock(&copies->keys_lock);
    return err;
}

enum err copies_find_digest(struct copies *copies, const uint8_t digest[RINGKEY_DIGEST_SIZE],
                            struct ringkey *ret_key) {
    pthread_mutex_lock(&copies->keys_lock);
    enum err err = keyset_find_digest(copies->keyset, digest, NULL, ret_key);
    pthread_mutex_unlock(&copies->keys_lock);
    return err;
}

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

void copies_count(struct copies *copies, uint64_t *counter, uint64_t more) {
    pthread_mutex_lock(&copies->lock);
    *counter += more;
    pthread_mutex_unlock(&copies->lock);
}

/* ---- the ring, for the plan of copies ---- */

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
    const struct holders_source *ring = &copies->config.ring;
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
    const struct holders_source *ring = &copies->config.ring;
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
    size_t durable_count = copies_durable_count(copies);
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
    } else if (err == ERR_OK) {
        copies_settle_durable(copies, durable_count);
    }
}

/* Until a task is due, or it is time to look at the volumes again. */
static uint64_t rest_us(struct copies *copies) {
    uint64_t now_us = copies_now_us(copies);
    uint64_t fetch_us = copies_fetch_at(copies);
    pthread_mutex_lock(&copies->lock);
    uint64_t wake_us = copy_plan_wake_at(copies->copy_plan, now_us);
    uint64_t full_sync_us = copies_full_sync_at(copies);
    wake_us = full_sync_us < wake_us ? full_sync_us : wake_us;
    uint64_t custody_us = copies_custody_at(copies);
    wake_us = fetch_us < wake_us ? fetch_us : wake_us;
    wake_us = custody_us < wake_us ? custody_us : wake_us;
    uint64_t wait_us = wake_us > now_us ? wake_us - now_us : 0;
    bool is_long = wait_us > REST_US || !copies->stat.is_fed;
    wait_us = is_long ? REST_US : wait_us;
    pthread_mutex_unlock(&copies->lock);
    return wait_us;
}

static const uint64_t MAY_OFFER_US = 500000; /* until it is asked again whether it may offer */

static uint64_t copies_run(void *context) {
    struct copies *copies = context;
    struct copy_plan_task task;
    bool may_offer = copies->config.may_offer == NULL || copies->config.may_offer(copies->config.context);
    copies_feed(copies);
    look_at_ring(copies);
    if (may_offer) {
        copies_offer_fresh(copies);
    }
    copies_fetch(copies);
    copies_scrub(copies);
    copies_repair(copies);
    copies_primary_watch_run(copies);
    bool is_busy = copies_wanted_count(copies) >= COPIES_WANTED_BUSY;
    pthread_mutex_lock(&copies->lock);
    bool has_task = may_offer && !is_busy && copies->stat.is_fed &&
                    copy_plan_next(copies->copy_plan, copies_now_us(copies), &task);
    pthread_mutex_unlock(&copies->lock);
    if (has_task) {
        copies_run_task(copies, &task);
        return 0;
    }
    return copies_full_sync(copies) ? 0 : may_offer ? rest_us(copies) : MAY_OFFER_US;
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
    copies->message = malloc(RECONCILE_MESSAGE_SIZE_MAX);
    buf_init(&copies->question, PEER_RPC_QUESTION_SIZE_MAX);
    buf_init(&copies->answer, PEER_RPC_ANSWER_SIZE_MAX);
    bool is_made = copies->copy_plan != NULL && copies->fresh != NULL && copies->message != NULL;
    enum err err = copies_want_init(copies);
    err = err == ERR_OK ? copies_custody_init(copies) : err;
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
    pthread_mutex_init(&copies->keys_lock, NULL);
    pthread_mutex_init(&copies->lock, NULL);
    enum err err = make_parts(copies);
    err = err == ERR_OK ? open_keys(copies, detail) : err;
    if (err != ERR_OK) {
        copies_free(copies);
        return err;
    }
    copies_serve(copies);
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
    free(copies->custody);
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
    const struct holders_source *ring = &copies->config.ring;
    struct holders_arc arc;
    /* A node that was a holder until the ring changed was compared too, but is not told what is new. */
    if (!ring->know(ring->context, place, &arc) || arc.self_rank < 0) {
        return false;
    }
    pthread_mutex_lock(&copies->lock);
    bool is_compared =
        copy_plan_is_compared(copies->copy_plan, place, &arc.peers[0], arc.from, copies_now_us(copies));
    pthread_mutex_unlock(&copies->lock);
    return is_compared;
}

void copies_stat(struct copies *copies, struct ring_view_stored *ret_stat) {
    pthread_mutex_lock(&copies->keys_lock);
    uint64_t keys_count = keyset_count(copies->keyset);
    pthread_mutex_unlock(&copies->keys_lock);
    pthread_mutex_lock(&copies->lock);
    *ret_stat = copies->stat;
    ret_stat->keys_count = keys_count;
    ret_stat->unconfirmed_count = custody_count(copies->custody, false);
    ret_stat->is_checking = copies->sweep.is_on;
    pthread_mutex_unlock(&copies->lock);
    ret_stat->wanted_count = copies_wanted_count(copies);
}

enum { ESTIMATE_ARCS_MAX = 64 };

/* Has the piece been compared with all that keep it and are here, and was nothing missing on this node? */
static bool copies_piece_is_whole(const struct copies *copies, size_t index, size_t members_count) {
    bool is_whole = true;
    for (size_t i = 0; i < members_count && is_whole; i++) {
        struct copy_plan_member_status member;
        copy_plan_member(copies->copy_plan, index, i, &member);
        bool counts = !member.is_away && !member.is_spare;
        is_whole = !counts || (member.compared_at_us > 0 && member.missing_here_count == 0);
    }
    return is_whole;
}

/* The arcs of which this node has everything, and which part of the ring they are together. */
static size_t list_arcs(struct copies *copies, struct reconcile_arc out[ESTIMATE_ARCS_MAX],
                        double *ret_share) {
    size_t count = 0;
    *ret_share = 0;
    pthread_mutex_lock(&copies->lock);
    for (size_t i = 0; i < copy_plan_pieces_count(copies->copy_plan) && count < ESTIMATE_ARCS_MAX; i++) {
        struct copy_plan_piece_status piece;
        copy_plan_piece(copies->copy_plan, i, &piece);
        if (!copies_piece_is_whole(copies, i, piece.members_count)) {
            continue;
        }
        uint64_t way = piece.to.high - piece.from.high;
        *ret_share += way > 0 ? (double)way / 0x1p64 : 1;
        ring_id_write(piece.from, out[count].from);
        ring_id_write(piece.to, out[count].to);
        count++;
    }
    pthread_mutex_unlock(&copies->lock);
    return count;
}

bool copies_estimate(struct copies *copies, uint64_t *ret_count) {
    struct reconcile_arc arcs[ESTIMATE_ARCS_MAX];
    double share;
    uint64_t keys_count = 0;
    size_t count = list_arcs(copies, arcs, &share);
    enum err err = ERR_OK;
    pthread_mutex_lock(&copies->keys_lock);
    uint64_t all_count = keyset_count(copies->keyset);
    struct ringkey_set set = keyset_set(copies->keyset);
    for (size_t i = 0; i < count && err == ERR_OK; i++) {
        struct reconcile_position start = reconcile_arc_start(&arcs[i]);
        struct reconcile_position end = reconcile_arc_end(&arcs[i]);
        struct ringkey_sum sum = {0};
        err = reconcile_arc_sum(&set, &start, &end, &sum);
        keys_count += sum.count;
    }
    pthread_mutex_unlock(&copies->keys_lock);
    if (err != ERR_OK || share <= 0) {
        return false;
    }
    uint64_t estimate = (uint64_t)((double)keys_count / (share < 1 ? share : 1));
    *ret_count = estimate > all_count ? estimate : all_count;
    return true;
}
