#include "node/copies/copies.h"

#include <sodium.h>
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
    FRESH_MAX = 4096, /* keys of one run of the feed */
};

uint64_t copies_now_us(const struct copies *copies) {
    return clock_monotonic_us(copies->config.clock);
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

void copies_step(struct copies *copies, struct replicator_event event) {
    event.now_us = event.now_us > 0 ? event.now_us : copies_now_us(copies);
    pthread_mutex_lock(&copies->lock);
    replicator_step(copies->replicator, &event);
    pthread_mutex_unlock(&copies->lock);
}

/* ---- what the machine asks at once ---- */

static enum err set_sum(void *context, const struct ringkey_range *range, struct ringkey_sum *ret_sum) {
    struct copies *copies = context;
    pthread_mutex_lock(&copies->keys_lock);
    enum err err = keyset_sum(copies->keyset, range, ret_sum);
    pthread_mutex_unlock(&copies->keys_lock);
    return err;
}

static enum err set_cut(void *context, const struct ringkey_range *range, uint64_t rank, uint64_t slack,
                        struct ringkey *ret_bound) {
    struct copies *copies = context;
    pthread_mutex_lock(&copies->keys_lock);
    enum err err = keyset_cut(copies->keyset, range, rank, slack, ret_bound);
    pthread_mutex_unlock(&copies->keys_lock);
    return err;
}

static enum err set_list(void *context, const struct ringkey_range *range, struct ringkey *out,
                         size_t count_max, size_t *ret_count) {
    struct copies *copies = context;
    pthread_mutex_lock(&copies->keys_lock);
    enum err err = keyset_list(copies->keyset, range, out, count_max, ret_count);
    pthread_mutex_unlock(&copies->keys_lock);
    return err;
}

static const struct ringkey_set_table set_table = {set_sum, set_cut, set_list};

static enum err disk_find_key(void *context, const struct ringkey *key) {
    struct copies *copies = context;
    bool is_here = false;
    pthread_mutex_lock(&copies->keys_lock);
    enum err err = keyset_contains(copies->keyset, key, &is_here);
    pthread_mutex_unlock(&copies->keys_lock);
    return err == ERR_OK && !is_here ? ERR_NOT_FOUND : err;
}

static enum err disk_find_payload(void *context, const struct ringkey *key) {
    struct copies *copies = context;
    struct ringkey same;
    pthread_mutex_lock(&copies->keys_lock);
    enum err err = keyset_find_digest(copies->keyset, ringkey_digest(key), NULL, &same);
    pthread_mutex_unlock(&copies->keys_lock);
    return err;
}

static enum err disk_find_same(void *context, const struct ringkey *key, const struct ringkey *behind,
                               struct ringkey *ret_key) {
    struct copies *copies = context;
    pthread_mutex_lock(&copies->keys_lock);
    enum err err = keyset_find_digest(copies->keyset, ringkey_digest(key), behind, ret_key);
    pthread_mutex_unlock(&copies->keys_lock);
    return err;
}

static uint64_t disk_count(void *context) {
    struct copies *copies = context;
    pthread_mutex_lock(&copies->keys_lock);
    uint64_t count = keyset_count(copies->keyset);
    pthread_mutex_unlock(&copies->keys_lock);
    return count;
}

static bool disk_is_full(void *context) {
    return copies_is_full(context);
}

static uint64_t disk_deletions(void *context) {
    const struct copies *copies = context;
    const struct copies_config *config = &copies->config;
    uint64_t verdicts = config->verdicts != NULL ? config->verdicts(config->context) : 0;
    return instance_deletions_generation(config->instance) + verdicts;
}

static bool disk_may_take(void *context) {
    const struct copies *copies = context;
    const struct copies_config *config = &copies->config;
    return config->may_take == NULL || config->may_take(config->context);
}

static bool line_is_busy(void *context, const struct peer *peer) {
    return peer_rpc_is_busy(context, peer);
}

static struct replicator_world world_of(struct copies *copies) {
    const struct holders_source *ring = &copies->config.ring;
    return (struct replicator_world){
        .own = ring->own,
        .know = ring->know,
        .copies = ring->copies,
        .generation = ring->generation,
        .locate = ring->locate,
        .ring = ring->context,
        .keys = {&set_table, copies},
        .find_key = disk_find_key,
        .find_payload = disk_find_payload,
        .find_same = disk_find_same,
        .count = disk_count,
        .is_full = disk_is_full,
        .may_take = disk_may_take,
        .deletions = disk_deletions,
        .disk = copies,
        .is_busy = line_is_busy,
        .line = copies->config.peer_rpc,
    };
}

/* ---- the thread ---- */

/* keys_lock is held: by the thread that runs the feed, this one. */
static void take_fresh(void *context, const struct ringkey *key) {
    struct copies *copies = context;
    if (copies->fresh_count < FRESH_MAX) {
        copies->fresh[copies->fresh_count++] = *key;
    } else {
        copies->has_lost_fresh = true;
    }
}

static void tell_fresh(struct copies *copies) {
    if (copies->fresh_count > 0) {
        copies_step(copies, (struct replicator_event){.kind = REPLICATOR_FRESH,
                                                      .keys = copies->fresh,
                                                      .keys_count = copies->fresh_count,
                                                      .is_cut = copies->has_lost_fresh});
        copies->fresh_count = 0;
        copies->has_lost_fresh = false;
    }
}

void copies_feed(struct copies *copies) {
    bool has_more = true;
    enum err err = ERR_OK;
    struct err_detail detail = {0};
    copies_take_arrivals(copies);
    size_t durable_count = copies->durable_count;
    for (unsigned i = 0; i < FEED_RUNS_MAX && has_more && err == ERR_OK; i++) {
        pthread_mutex_lock(&copies->keys_lock);
        err = keyset_feed_run(copies->feed, FEED_RECORDS_MAX, &has_more, &detail);
        pthread_mutex_unlock(&copies->keys_lock);
        tell_fresh(copies);
        if (copies_is_stopping(copies)) {
            return;
        }
    }
    if (err != ERR_OK && !copies->is_feed_told) {
        copies_note(copies, "the keys of the ring: %s", err_detail_text(&detail, err));
    }
    copies->is_feed_told = err != ERR_OK;
    copies_step(copies,
                (struct replicator_event){.kind = REPLICATOR_FED, .is_good = err == ERR_OK && !has_more});
    if (has_more) {
        task_poke(&copies->task);
    } else if (err == ERR_OK) {
        copies_settle_durable(copies, durable_count);
    }
}

void copies_act(struct copies *copies) {
    struct replicator_action action;
    while (!copies_is_stopping(copies)) {
        pthread_mutex_lock(&copies->lock);
        bool has_one = replicator_next(copies->replicator, copies_now_us(copies), &action);
        pthread_mutex_unlock(&copies->lock);
        if (!has_one) {
            break;
        }
        /* The question lasts until the machine is asked again, which only this thread does. */
        if (action.kind == REPLICATOR_BLAME) {
            copies_blame(copies, &action.peer, action.sentence);
        } else if (action.kind == REPLICATOR_FETCH) {
            copies_fetch_begin(copies, &action);
        } else {
            copies_work_begin(copies, &action);
        }
    }
    copies_tell_disk(copies);
}

/* Until the machine wants something, or it is time to look at the volumes again. */
static uint64_t rest_us(struct copies *copies) {
    uint64_t now_us = copies_now_us(copies);
    pthread_mutex_lock(&copies->lock);
    uint64_t wake_us = replicator_wake_at(copies->replicator, now_us);
    pthread_mutex_unlock(&copies->lock);
    uint64_t wait_us = wake_us > now_us ? wake_us - now_us : 0;
    return wait_us < REST_US ? wait_us : REST_US;
}

static uint64_t copies_run(void *context) {
    struct copies *copies = context;
    bool may_offer = copies->config.may_offer == NULL || copies->config.may_offer(copies->config.context);
    copies_step(copies, (struct replicator_event){.kind = REPLICATOR_PERMIT, .is_good = may_offer});
    copies_feed(copies);
    copies_take_works(copies);
    copies_act(copies);
    copies_take_damaged(copies);
    copies_tally_pace(copies);
    return rest_us(copies);
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
    keyset_feed_listen(copies->feed, take_fresh, copies);
    return ERR_OK;
}

static enum err make_machine(struct copies *copies) {
    const struct copies_config *config = &copies->config;
    struct replicator_config machine = {
        .grace_us = config->grace_us,
        .compare_interval_us = config->compare_interval_us,
        .challenge_interval_us = config->challenge_interval_us,
        .keeps_everything = config->keeps_everything,
        .keeps_surplus = config->keeps_surplus,
        .has_slow_lines = config->has_slow_lines,
        .wanted_max = COPIES_WANTED_MAX,
        .seed = config->seed,
    };
    randombytes_buf(machine.secret, sizeof machine.secret);
    copies->world = world_of(copies);
    void *memory = malloc(replicator_size(&machine));
    copies->replicator =
        memory != NULL ? replicator_init(memory, &machine, &copies->world, copies_now_us(copies)) : NULL;
    return memory != NULL ? ERR_OK : ERR_MEMORY;
}

static enum err make_parts(struct copies *copies) {
    copies->news.works_last = &copies->news.works;
    copies->news.arrivals_last = &copies->news.arrivals;
    copies->fresh = malloc(FRESH_MAX * sizeof *copies->fresh);
    copies->arrivals = calloc(COPIES_WANTED_MAX, sizeof *copies->arrivals);
    copies->durable = calloc(COPIES_WANTED_MAX, sizeof *copies->durable);
    bool is_made = copies->fresh != NULL && copies->arrivals != NULL && copies->durable != NULL;
    enum err err = is_made ? make_machine(copies) : ERR_MEMORY;
    return err == ERR_OK ? copies_reader_init(&copies->answering, copies->config.instance) : err;
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
    pthread_mutex_init(&copies->news.lock, NULL);
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
    if (copies->feed != NULL) {
        keyset_feed_free(copies->feed);
    }
    if (copies->keyset != NULL) {
        keyset_close(copies->keyset);
    }
    free(copies->replicator);
    free(copies->fresh);
    free(copies->arrivals);
    free(copies->durable);
    pthread_mutex_destroy(&copies->news.lock);
    pthread_mutex_destroy(&copies->lock);
    pthread_mutex_destroy(&copies->keys_lock);
    free(copies);
}

/* ---- any thread ---- */

void copies_wake(struct copies *copies) {
    task_poke(&copies->task);
}

void copies_report_damage(struct copies *copies, const struct ringkey *key) {
    copies_step(copies, (struct replicator_event){.kind = REPLICATOR_DAMAGED, .keys = key, .keys_count = 1});
    task_poke(&copies->task);
}

void copies_distrust(struct copies *copies, const struct peer *peer) {
    pthread_mutex_lock(&copies->lock);
    replicator_distrust(copies->replicator, peer, copies_now_us(copies));
    pthread_mutex_unlock(&copies->lock);
}

bool copies_may_copy(struct copies *copies, const struct peer *peer) {
    if (!copies->config.has_slow_lines) {
        return true;
    }
    pthread_mutex_lock(&copies->lock);
    bool may_copy = replicator_may_copy(copies->replicator, peer, copies_now_us(copies));
    pthread_mutex_unlock(&copies->lock);
    return may_copy;
}

bool copies_has_everything(struct copies *copies) {
    pthread_mutex_lock(&copies->lock);
    bool has_everything =
        copies->config.keeps_everything &&
        full_sync_is_current(replicator_full_sync(copies->replicator), copies_now_us(copies));
    pthread_mutex_unlock(&copies->lock);
    return has_everything;
}

bool copies_is_compared(struct copies *copies, struct ring_id place) {
    const struct holders_source *ring = &copies->config.ring;
    struct holders_arc arc;
    /* A node that was a holder until the ring changed was compared too, but is not told what is new. */
    if (!ring->know(ring->context, place, &arc) || arc.self_rank < 0) {
        return false;
    }
    pthread_mutex_lock(&copies->lock);
    bool is_compared = copy_plan_is_compared(replicator_plan(copies->replicator), place, &arc.peers[0],
                                             arc.from, copies_now_us(copies));
    pthread_mutex_unlock(&copies->lock);
    return is_compared;
}

bool copies_expects(struct copies *copies, struct ring_id place) {
    uint8_t bytes[RING_ID_SIZE];
    ring_id_write(place, bytes);
    pthread_mutex_lock(&copies->lock);
    bool is_expected = transfer_may_want(replicator_transfer(copies->replicator), bytes);
    pthread_mutex_unlock(&copies->lock);
    return is_expected;
}

void copies_stat(struct copies *copies, struct ring_view_stored *ret_stat) {
    struct replicator_status status;
    uint64_t keys_count = disk_count(copies);
    pthread_mutex_lock(&copies->lock);
    replicator_status(copies->replicator, &status);
    pthread_mutex_unlock(&copies->lock);
    const struct replicator_counts *counts = &status.counts;
    *ret_stat = (struct ring_view_stored){
        .keys_count = keys_count,
        .compared_count = counts->compared_count,
        .compared_by_count = counts->compared_by_count,
        .toured_count = counts->synced_count,
        .offered_count = counts->offered_count,
        .handed_on_count = counts->handed_on_count,
        .fetches_count = counts->fetches_count,
        .fetched_count = counts->fetched_count,
        .fetched_about_count = counts->fetched_about_count,
        .fetched_size = counts->fetched_size,
        .refused_count = counts->refused_count,
        .challenged_count = counts->challenged_count,
        .caught_count = counts->caught_count,
        .released_count = counts->released_count,
        .repaired_count = counts->repaired_count,
        .wanted_count = status.wanted_count,
        .unconfirmed_count = status.unconfirmed_count,
        .unconfirmed_own_count = status.unconfirmed_own_count,
        .damaged_count = status.damaged_count,
        .is_checking = status.is_checking,
        .is_full = status.is_full,
        .is_fed = status.is_fed,
    };
}

size_t copies_proofs(struct copies *copies, struct proof *out, size_t proofs_max) {
    pthread_mutex_lock(&copies->lock);
    const struct proofs *proofs = replicator_proofs(copies->replicator);
    size_t count = proofs->count < proofs_max ? proofs->count : proofs_max;
    memcpy(out, proofs->items, count * sizeof *out);
    pthread_mutex_unlock(&copies->lock);
    return count;
}

enum { ESTIMATE_ARCS_MAX = 64 };

/* Has the piece been compared with all that keep it and are here, and was nothing missing on this node? */
static bool copies_piece_is_whole(const struct copies *copies, size_t index, size_t members_count) {
    bool is_whole = true;
    for (size_t i = 0; i < members_count && is_whole; i++) {
        struct copy_plan_member_status member;
        copy_plan_member(replicator_plan(copies->replicator), index, i, &member);
        bool counts = !member.is_away && !member.is_spare;
        is_whole =
            !counts || (member.compared_at_us > 0 && member.missing_here_count == 0 && !member.is_doubted);
    }
    return is_whole;
}

/* The arcs of which this node has everything, and which part of the ring they are together. */
static size_t list_arcs(struct copies *copies, struct reconcile_arc out[ESTIMATE_ARCS_MAX],
                        double *ret_share) {
    size_t count = 0;
    *ret_share = 0;
    pthread_mutex_lock(&copies->lock);
    const struct copy_plan *plan = replicator_plan(copies->replicator);
    for (size_t i = 0; i < copy_plan_pieces_count(plan) && count < ESTIMATE_ARCS_MAX; i++) {
        struct copy_plan_piece_status piece;
        copy_plan_piece(plan, i, &piece);
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
