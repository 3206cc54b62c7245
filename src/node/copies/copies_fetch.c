/*
 * What is wanted of other nodes waits in two lanes (protocol/copies/transfer_order.h). A small crew fetches
 * it batch by batch; node/captures/captures.h checks it, and it is stored. Most of the time of a fetch is
 * waiting for the other node or for the disk, so a few threads do several at once.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "base/assert.h"
#include "node/copies/copies_state.h"
#include "run/bell.h"

/* ---- what is wanted ---- */

enum { FULL_S = 60, CREW_FROM_COUNT = 4 /* fewer are not worth threads */, SILENCES_MAX = 3 };
static const uint64_t SPACE_MIN = UINT64_C(256) << 20;
static const uint64_t SECOND_US = 1000000;
static const uint64_t BUSY_US = 500000;

/* A key of one giver: another one may have to give it after all. */
struct waiting {
    struct ringkey key;
    uint8_t giver[PEER_KEY_SIZE];
};
_Static_assert(sizeof(struct waiting) == COPIES_WAITING_SIZE, "compared as bytes");

enum err copies_want_init(struct copies *copies) {
    size_t count_max = (size_t)TRANSFER_ORDER_LANES_COUNT * COPIES_WANTED_MAX;
    map_init(&copies->waiting, COPIES_WAITING_SIZE, 1, count_max, copies->config.seed);
    for (size_t i = 0; i < TRANSFER_ORDER_LANES_COUNT; i++) {
        struct copies_lane *lane = &copies->lanes[i];
        lane->wanted = malloc(COPIES_WANTED_MAX * sizeof *lane->wanted);
        if (lane->wanted == NULL) {
            return ERR_MEMORY;
        }
    }
    return map_reserve(&copies->waiting, count_max);
}

void copies_want_done(struct copies *copies) {
    for (size_t i = 0; i < TRANSFER_ORDER_LANES_COUNT; i++) {
        free(copies->lanes[i].wanted);
    }
    map_done(&copies->waiting);
}

static struct waiting waiting_of(const struct ringkey *key, const struct peer *peer) {
    struct waiting waiting = {.key = *key};
    memcpy(waiting.giver, peer->key, sizeof waiting.giver);
    return waiting;
}

static void fetch_append(struct copies_lane *lane, const struct copies_wanted *wanted) {
    lane->wanted[(lane->first + lane->count++) % COPIES_WANTED_MAX] = *wanted;
}

/* Once from each giver, however often it offers it. */
static bool copies_want_again(struct copies *copies, const struct copies_wanted *wanted) {
    struct waiting waiting = waiting_of(&wanted->key, &wanted->peer);
    if (map_get(&copies->waiting, bytes_of(&waiting, sizeof waiting)) != NULL) {
        return true;
    }
    if (copies->lanes[wanted->lane].count == COPIES_WANTED_MAX) {
        return false;
    }
    fetch_append(&copies->lanes[wanted->lane], wanted);
    copies->wanted_count++;
    void *place = map_put(&copies->waiting, bytes_of(&waiting, sizeof waiting));
    ASSERT(place != NULL); /* there is room for as many */
    return true;
}

bool copies_want(struct copies *copies, enum transfer_order_lane lane, const struct ringkey *key,
                 const struct peer *peer) {
    return copies_want_again(copies, &(struct copies_wanted){.key = *key, .peer = *peer, .lane = lane});
}

static struct copies_wanted take_first(struct copies_lane *lane) {
    struct copies_wanted wanted = lane->wanted[lane->first];
    lane->first = (lane->first + 1) % COPIES_WANTED_MAX;
    lane->count--;
    return wanted;
}

/* Those of other givers go to the end, in their order: their turn is next. */
static size_t take_of_lane(struct copies *copies, enum transfer_order_lane index, struct copies_wanted *out,
                           size_t count_max) {
    struct copies_lane *lane = &copies->lanes[index];
    struct peer giver = lane->wanted[lane->first].peer;
    size_t count = 0;
    for (size_t left = lane->count; left > 0 && count < count_max; left--) {
        struct copies_wanted wanted = take_first(lane);
        if (copies->config.has_slow_lines && !peer_equal(&wanted.peer, &giver)) {
            fetch_append(lane, &wanted);
            continue;
        }
        struct waiting waiting = waiting_of(&wanted.key, &wanted.peer);
        map_remove(&copies->waiting, bytes_of(&waiting, sizeof waiting));
        copies->wanted_count--;
        out[count++] = wanted;
    }
    return count;
}

/* The next ones, at most count_max; on slow lines, from one lane and one giver. The lock is held. */
static size_t copies_take_wanted(struct copies *copies, struct copies_wanted *out, size_t count_max) {
    bool has_own = copies->lanes[TRANSFER_ORDER_OWN].count > 0;
    bool has_offered = copies->lanes[TRANSFER_ORDER_OFFERED].count > 0;
    if (!has_own && !has_offered) {
        return 0;
    }
    enum transfer_order_lane lane = transfer_order_next(&copies->queue, has_own, has_offered);
    enum transfer_order_lane other = lane == TRANSFER_ORDER_OWN ? TRANSFER_ORDER_OFFERED : TRANSFER_ORDER_OWN;
    transfer_order_took(&copies->queue, lane);
    size_t count = take_of_lane(copies, lane, out, count_max);
    if (!copies->config.has_slow_lines && copies->lanes[other].count > 0) {
        count += take_of_lane(copies, other, out + count, count_max - count);
    }
    return count;
}

bool copies_may_copy(struct copies *copies, const struct peer *peer) {
    if (!copies->config.has_slow_lines) {
        return true;
    }
    pthread_mutex_lock(&copies->lock);
    bool may_copy = transfer_order_may_take(&copies->giving, peer, copies_now_us(copies));
    pthread_mutex_unlock(&copies->lock);
    return may_copy;
}

struct item {
    struct copies_wanted wanted;
    struct peer giver; /* the node that was asked: another holder if wanted.peer is busy */
    bool has_payload;  /* we have it, of another capture */
    bool is_later;     /* another one of this batch brings the payload */
    enum err err;
    bool is_lacking; /* the giver answered that it does not have it any more, or not yet: no silence */
    bool is_about;
    uint64_t size;
};

struct copies_work {
    struct copies_wanted taken[COPIES_BATCH_COUNT];
    struct item items[COPIES_BATCH_COUNT];
    size_t count;
    atomic_size_t next;
    bool is_second;                         /* the second time over the batch */
    struct peer silent[COPIES_BATCH_COUNT]; /* lock: did not answer in this batch, and are not asked again */
    size_t silent_count;
    size_t open_count; /* lock: handed to the disk, not durable yet */
    struct bell durable;
    enum err disk_err; /* lock: the last one that failed there */
};

/* ---- what came ---- */

static uint64_t shortened(const struct ringkey *key) {
    uint64_t value;
    uint64_t other;
    memcpy(&value, ringkey_digest(key), sizeof value);
    memcpy(&other, key->bytes + RINGKEY_POSITION_SIZE - sizeof other, sizeof other);
    return (value ^ other) | 1;
}

bool copies_came(const struct copies *copies, const struct ringkey *key) {
    uint64_t value = shortened(key);
    return copies->came[value / 2 % COPIES_CAME_COUNT] == value;
}

static void note_came(struct copies *copies, const struct ringkey *key) {
    uint64_t value = shortened(key);
    copies->came[value / 2 % COPIES_CAME_COUNT] = value;
}

bool copies_is_full(struct copies *copies) {
    struct statvfs space;
    uint64_t least = copies->config.space_min > 0 ? copies->config.space_min : SPACE_MIN;
    bool is_tight =
        statvfs(copies->config.directory, &space) == 0 && (uint64_t)space.f_bavail * space.f_frsize < least;
    uint64_t now_us = copies_now_us(copies);
    pthread_mutex_lock(&copies->lock);
    copies->stat.is_full = is_tight || now_us < copies->full_until_us;
    bool is_full = copies->stat.is_full;
    pthread_mutex_unlock(&copies->lock);
    return is_full;
}

/* ---- one capture ---- */

static bool is_silence(enum err err) {
    return err == ERR_TIMEOUT || err == ERR_UNREACHABLE || err == ERR_CLOSED || err == ERR_REFUSED ||
           err == ERR_CANCELLED;
}

static bool is_silent(struct copies *copies, const struct peer *peer) {
    const struct copies_work *work = copies->work;
    bool is_silent = copies_is_stopping(copies);
    for (size_t i = 0; i < work->silent_count && !is_silent; i++) {
        is_silent = peer_equal(&work->silent[i], peer);
    }
    return is_silent;
}

static void note_result(struct copies *copies, const struct item *item) {
    struct copies_work *work = copies->work;
    pthread_mutex_lock(&copies->lock);
    if (item->err == ERR_NO_SPACE) {
        copies->full_until_us = copies_now_us(copies) + FULL_S * SECOND_US;
    }
    if (is_silence(item->err) && !item->is_lacking && work->silent_count < COPIES_BATCH_COUNT) {
        work->silent[work->silent_count++] = item->giver;
    }
    copies->stat.refused_count += item->err == ERR_MISMATCH;
    copies->stat.fetched_count += item->err == ERR_OK;
    copies->stat.fetched_about_count += item->err == ERR_OK && item->is_about;
    copies->stat.fetched_size += item->err == ERR_OK && !item->is_about ? item->size : 0;
    pthread_mutex_unlock(&copies->lock);
    if (item->err == ERR_MISMATCH) {
        copies_distrust(copies, &item->giver);
    }
}

static void on_stored(void *context, enum err err, const struct stored *stored) {
    struct copies *copies = context;
    (void)stored;
    pthread_mutex_lock(&copies->lock);
    struct copies_work *work = copies->work;
    if (err != ERR_OK) {
        work->disk_err = err;
    }
    if (err == ERR_NO_SPACE) {
        copies->full_until_us = copies_now_us(copies) + FULL_S * SECOND_US;
    }
    if (--work->open_count == 0) {
        bell_ring(&work->durable);
    }
    pthread_mutex_unlock(&copies->lock);
}

/* Durable when work->open_count is 0 again; what comes without its body at once, since it may be refused. */
static enum err fetch_store(struct copies_hand *hand, const struct captured *captured,
                            struct err_detail *detail) {
    struct copies *copies = hand->copies;
    struct stored stored;
    if (captured->document.is_body_left_out) {
        return instance_put(hand->session, &captured->document, STORE_REGULAR, INSTANCE_VOLUME_ANY, &stored,
                            detail);
    }
    pthread_mutex_lock(&copies->lock);
    copies->work->open_count++;
    pthread_mutex_unlock(&copies->lock);
    enum err err = instance_submit(hand->session, &captured->document, STORE_REGULAR, INSTANCE_VOLUME_ANY,
                                   on_stored, copies, detail);
    if (err != ERR_OK) {
        pthread_mutex_lock(&copies->lock);
        copies->work->open_count--; /* done() is not called */
        pthread_mutex_unlock(&copies->lock);
    }
    return err;
}

/* Was another node asked than the one that said it has it? */
static bool is_of_another(const struct item *item) {
    return !peer_equal(&item->giver, &item->wanted.peer);
}

static enum err fetch_and_store(struct copies_hand *hand, struct item *item, bool with_payload,
                                struct err_detail *detail) {
    struct captured captured;
    enum err err =
        captures_fetch(hand->fetches, &item->giver, 1, &item->wanted.key, with_payload, &captured, detail);
    item->is_lacking = err == ERR_NOT_FOUND && !is_of_another(item);
    if (err != ERR_OK) {
        return item->is_lacking ? ERR_CLOSED : err;
    }
    item->is_about = captured.document.is_body_left_out;
    item->size = captured.sum.size;
    return fetch_store(hand, &captured, detail);
}

static bool is_vain(struct copies *copies, const struct peer *peer) {
    pthread_mutex_lock(&copies->lock);
    bool is_vain = is_silent(copies, peer);
    pthread_mutex_unlock(&copies->lock);
    return is_vain;
}

/* Another holder of the position, which may have it by now. */
static bool find_other(struct copies *copies, const struct item *item, struct peer *ret_peer) {
    const struct holders_source *ring = &copies->config.ring;
    struct holders_arc arc;
    if (!ring->know(ring->context, copies_place_of(&item->wanted.key), &arc)) {
        return false;
    }
    for (size_t i = 0; i < arc.count; i++) {
        bool is_other = (int)i != arc.self_rank && !peer_equal(&arc.peers[i], &item->wanted.peer);
        if (is_other && !is_vain(copies, &arc.peers[i]) &&
            !peer_rpc_is_busy(copies->config.peer_rpc, &arc.peers[i])) {
            *ret_peer = arc.peers[i];
            return true;
        }
    }
    return false;
}

/* If the node that has it is busy giving to another one, which takes long on slow lines, other holders are
 * asked; what they lack waits for the first. */
static enum err choose_giver(struct copies *copies, struct item *item) {
    item->giver = item->wanted.peer;
    if (is_vain(copies, &item->giver)) {
        return ERR_CANCELLED;
    }
    if (!peer_rpc_is_busy(copies->config.peer_rpc,
                          &item->giver)) { /* asked once: it may become busy at any time */
        return ERR_OK;
    }
    bool is_worth_it = copies->config.has_slow_lines && find_other(copies, item, &item->giver);
    return is_worth_it ? ERR_OK : ERR_BUSY;
}

static void fetch_item(struct copies_hand *hand, struct item *item) {
    struct copies *copies = hand->copies;
    struct err_detail detail = {0};
    item->err = choose_giver(copies, item);
    if (item->err != ERR_OK) {
        return;
    }
    item->err = fetch_and_store(hand, item, !item->has_payload, &detail);
    if (item->err == ERR_NOT_FOUND && item->has_payload) { /* it has gone since */
        item->err = fetch_and_store(hand, item, true, &detail);
    }
    if (item->err == ERR_IO || item->err == ERR_CORRUPT || item->err == ERR_NO_SPACE) {
        copies_note(copies, "a capture of the ring cannot be stored: %s",
                    err_detail_text(&detail, item->err));
    }
    note_result(copies, item);
    if (is_of_another(item) && (is_silence(item->err) || item->err == ERR_NOT_FOUND)) {
        item->err = ERR_BUSY;
    }
}

/* ---- the crew ---- */

static void copies_run_hand(void *context, size_t seat) {
    struct copies_hand *hand = context;
    (void)seat;
    struct copies_work *work = hand->copies->work;
    size_t index;
    while ((index = atomic_fetch_add(&work->next, 1)) < work->count) {
        struct item *item = &work->items[index];
        if (work->is_second ? item->err == ERR_NOT_FOUND : !item->is_later) {
            fetch_item(hand, item);
        }
    }
}

/* The first time all, but of equal payloads only one. The second time the others, and those that the server
 * called unchanged whose originals came beside them. */
static void run_crew(struct copies *copies, bool is_second) {
    copies->work->is_second = is_second;
    atomic_store(&copies->work->next, 0);
    size_t count = copies->work->count < CREW_FROM_COUNT ? 1 : COPIES_CREW_COUNT;
    for (size_t i = 1; i < count; i++) {
        struct copies_hand *hand = &copies->hands[i];
        hand->job = (struct pool_job){.run = copies_run_hand, .context = hand};
        bool is_taken = pool_try(&copies->crew, &hand->job);
        (void)is_taken; /* else the others do it */
    }
    copies_run_hand(&copies->hands[0], 0); /* the task is one of them */
    pool_drain(&copies->crew);
}

static void wait_for_disk(struct copies *copies) {
    pthread_mutex_lock(&copies->lock);
    while (copies->work->open_count > 0) {
        (void)bell_await(&copies->work->durable, &copies->lock, BELL_NEVER_US);
    }
    enum err err = copies->work->disk_err;
    copies->work->disk_err = ERR_OK;
    pthread_mutex_unlock(&copies->lock);
    if (err != ERR_OK) {
        copies_note(copies, "captures of the ring were not stored: %s", err_text(err));
    }
}

static int compare_items(const void *a, const void *b) {
    const struct item *left = a;
    const struct item *right = b;
    return ringkey_compare(&left->wanted.key, &right->wanted.key);
}

static void mark_equal_payloads(struct copies_work *work) {
    for (size_t i = 1; i < work->count; i++) {
        struct item *item = &work->items[i];
        const uint8_t *digest = ringkey_digest(&item->wanted.key);
        for (size_t j = 0; j < i && !item->has_payload; j++) {
            item->is_later =
                memcmp(ringkey_digest(&work->items[j].wanted.key), digest, RINGKEY_DIGEST_SIZE) == 0;
            item->has_payload = item->is_later;
        }
        item->err = item->is_later ? ERR_NOT_FOUND : ERR_OK;
    }
}

/* In the order of the keys, and so of time; none twice, none that we have. */
static void take_batch(struct copies *copies) {
    struct copies_work *work = copies->work;
    pthread_mutex_lock(&copies->lock);
    size_t count = copies_take_wanted(copies, work->taken, COPIES_BATCH_COUNT);
    for (size_t i = 0; i < count; i++) {
        work->items[i] = (struct item){.wanted = work->taken[i]};
    }
    work->silent_count = 0;
    pthread_mutex_unlock(&copies->lock);
    qsort(work->items, count, sizeof work->items[0], compare_items);
    work->count = 0;
    for (size_t i = 0; i < count; i++) {
        struct item *item = &work->items[i];
        const struct ringkey *key = &item->wanted.key;
        struct ringkey same;
        bool has_it = work->count > 0 && ringkey_compare(&work->items[work->count - 1].wanted.key, key) == 0;
        pthread_mutex_lock(&copies->keys_lock);
        if (!has_it && keyset_contains(copies->keyset, key, &has_it) == ERR_OK && !has_it) {
            item->has_payload =
                keyset_find_digest(copies->keyset, ringkey_digest(key), NULL, &same) == ERR_OK;
        }
        pthread_mutex_unlock(&copies->keys_lock);
        if (!has_it) {
            note_came(copies, key);
            work->items[work->count++] = *item;
        }
    }
    mark_equal_payloads(work);
}

/*
 * If the giver is too busy: always, and at once if others give something meanwhile. If it is silent, or has
 * not yet got what it offered: a few times, and a moment later. Otherwise only the next comparison would ask
 * again, and that takes long.
 */
static bool is_wanted_still(struct item *item, bool came, bool *ret_is_later) {
    bool is_silent = is_silence(item->err);
    *ret_is_later = is_silent || !came;
    return is_silent ? item->wanted.silences_count++ < SILENCES_MAX : item->err == ERR_BUSY;
}

/* If there is no room, a comparison finds it. */
static void want_again(struct copies *copies, bool came) {
    pthread_mutex_lock(&copies->lock);
    for (size_t i = 0; i < copies->work->count; i++) {
        struct item *item = &copies->work->items[i];
        bool is_later;
        if (is_wanted_still(item, came, &is_later) && copies_want_again(copies, &item->wanted) && is_later) {
            copies->busy_until_us = copies_now_us(copies) + BUSY_US;
        }
    }
    pthread_mutex_unlock(&copies->lock);
}

/* What did not come must be read from other nodes until a comparison finds it. */
static void doubt_missing(struct copies *copies, bool is_all) {
    pthread_mutex_lock(&copies->lock);
    for (size_t i = 0; i < copies->work->count; i++) {
        const struct item *item = &copies->work->items[i];
        if (is_all || item->err != ERR_OK) {
            copy_plan_doubt(copies->copy_plan, copies_place_of(&item->wanted.key), &item->wanted.peer);
            full_sync_doubt(&copies->full_sync);
        }
    }
    pthread_mutex_unlock(&copies->lock);
}

static bool is_held(struct copies *copies) {
    pthread_mutex_lock(&copies->lock);
    bool is_held = copies_now_us(copies) < copies->busy_until_us;
    pthread_mutex_unlock(&copies->lock);
    return is_held;
}

void copies_fetch(struct copies *copies) {
    if (is_held(copies)) {
        return;
    }
    take_batch(copies);
    if (copies->work->count == 0) {
        return;
    }
    if (copies_is_full(copies)) {
        doubt_missing(copies, true);
        return;
    }
    run_crew(copies, false);
    wait_for_disk(copies);
    run_crew(copies, true);
    wait_for_disk(copies);
    uint64_t stored_count = 0;
    for (size_t i = 0; i < copies->work->count; i++) {
        stored_count += copies->work->items[i].err == ERR_OK;
    }
    want_again(copies, stored_count > 0);
    doubt_missing(copies, false);
    pthread_mutex_lock(&copies->lock);
    copy_plan_moved(copies->copy_plan, stored_count, copies_now_us(copies));
    pthread_mutex_unlock(&copies->lock);
    copies_feed(copies); /* before anybody asks for them again */
}

enum err copies_crew_init(struct copies *copies) {
    copies->work = calloc(1, sizeof *copies->work);
    if (copies->work == NULL) {
        return ERR_MEMORY;
    }
    for (size_t i = 0; i < COPIES_CREW_COUNT; i++) {
        struct copies_hand *hand = &copies->hands[i];
        hand->copies = copies;
        hand->fetches = captures_session_new(copies->captures);
        hand->session = instance_session_new(copies->config.instance);
        if (hand->fetches == NULL || hand->session == NULL) {
            return ERR_MEMORY;
        }
    }
    struct pool_config crew = {
        .name = "copies-fetch", .threads_max = COPIES_CREW_COUNT - 1, .priority = PRIORITY_BEHIND};
    return pool_start(&copies->crew, &crew);
}

void copies_crew_done(struct copies *copies) {
    pool_stop(&copies->crew);
    for (size_t i = 0; i < COPIES_CREW_COUNT; i++) {
        captures_session_free(copies->hands[i].fetches);
        instance_session_free(copies->hands[i].session);
    }
    free(copies->work);
}
