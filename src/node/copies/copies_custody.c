/*
 * New captures are offered to the other holders at once, and to followers: nodes that keep everything and
 * have asked the primaries to be told what is new. Until the holders say that they have them, they are in
 * custody (protocol/copies/custody.h), and are offered again.
 *
 * What was new before this node was started, or did not fit into the list, is found by a sweep over the keys
 * in arcs of others: those that their primary has compared with us since, and found equal, are there; the
 * rest is put into custody again, a batch at a time.
 */
#include <stdlib.h>

#include "node/copies/copies_state.h"

enum { PARCELS_MAX = 64, SWEEP_KEYS = 1024, SWEEP_ARCS = 256, ANEW = UINT32_MAX };
static const uint64_t SECOND_US = 1000000;
static const uint64_t SWEEP_PATIENCE_US = 120 * 1000000; /* for the primary of an arc to compare it */
static const uint64_t SWEEP_WAIT_US = 300000;

/* ---- keys for one node ---- */

struct parcel_key {
    struct ringkey key;
    uint32_t item; /* in custody; ANEW: it is not there yet */
    bool is_awaited;
    bool is_own; /* of an arc of our own */
};

struct parcel {
    struct peer peer;
    bool is_primary; /* of some of the keys, and we are not */
    size_t count;
    struct parcel_key *keys; /* COPIES_KEYS_MAX */
};

struct parcels {
    struct parcel parcels[PARCELS_MAX];
    size_t count;
    struct ringkey offered[COPIES_KEYS_MAX]; /* the keys of the one that is delivered */
};

static struct parcel *parcel_for(struct parcels *parcels, const struct peer *peer) {
    for (size_t i = 0; i < parcels->count; i++) {
        if (peer_equal(&parcels->parcels[i].peer, peer)) {
            return &parcels->parcels[i];
        }
    }
    struct parcel_key *keys = parcels->count < PARCELS_MAX ? malloc(COPIES_KEYS_MAX * sizeof *keys) : NULL;
    if (keys == NULL) {
        return NULL;
    }
    struct parcel *parcel = &parcels->parcels[parcels->count++];
    *parcel = (struct parcel){.peer = *peer, .keys = keys};
    return parcel;
}

static bool parcel_put(struct parcels *parcels, const struct peer *peer, const struct parcel_key *key) {
    struct parcel *parcel = parcel_for(parcels, peer);
    if (parcel == NULL || parcel->count == COPIES_KEYS_MAX) {
        return false;
    }
    parcel->is_primary = parcel->is_primary || (key->is_awaited && !key->is_own);
    parcel->keys[parcel->count++] = *key;
    return true;
}

/* ---- what is not known to be there ---- */

static void sweep_begin(struct copies *copies) {
    pthread_mutex_lock(&copies->lock);
    copies->sweep = (struct copies_sweep){.is_on = true, .since_us = copies_now_us(copies)};
    pthread_mutex_unlock(&copies->lock);
}

void copies_custody_lose(struct copies *copies, const struct ringkey *key, const struct peer *peer,
                         bool is_own) {
    if (!is_own) {
        sweep_begin(copies);
        return;
    }
    pthread_mutex_lock(&copies->lock);
    copy_plan_unproven(copies->copy_plan, copies_place_of(key), peer, copies_now_us(copies));
    pthread_mutex_unlock(&copies->lock);
}

static void custody_await(struct copies *copies, const struct parcel_key *key, const struct peer *peer) {
    pthread_mutex_lock(&copies->lock);
    bool has_room = custody_add(copies->custody, &key->key, peer, key->is_own, copies_now_us(copies));
    pthread_mutex_unlock(&copies->lock);
    if (!has_room) {
        copies_custody_lose(copies, &key->key, peer, key->is_own);
    }
}

static void custody_drop(struct copies *copies, uint32_t item, bool is_there) {
    pthread_mutex_lock(&copies->lock);
    custody_settle(copies->custody, item, is_there);
    pthread_mutex_unlock(&copies->lock);
}

/* ---- delivery ---- */

/* In our own arcs, a comparison finds what the node lacks. */
static void touch(struct copies *copies, const struct parcel *parcel) {
    pthread_mutex_lock(&copies->lock);
    for (size_t i = 0; i < parcel->count; i++) {
        copy_plan_touch(copies->copy_plan, copies_place_of(&parcel->keys[i].key), &parcel->peer,
                        copies_now_us(copies));
    }
    pthread_mutex_unlock(&copies->lock);
}

static void parcel_deliver(struct copies *copies, struct parcels *parcels, const struct parcel *parcel) {
    bool is_refused = false;
    for (size_t i = 0; i < parcel->count; i++) {
        parcels->offered[i] = parcel->keys[i].key;
    }
    bool is_answered = !copies_is_shunned(copies, &parcel->peer) &&
                       copies_offer(copies, &parcel->peer, parcels->offered, parcel->count) == ERR_OK;
    for (size_t i = 0; i < parcel->count; i++) {
        const struct parcel_key *key = &parcel->keys[i];
        bool is_there = is_answered && copies->wishes[i] == COPIES_HAS;
        is_refused = is_refused || !is_answered || copies->wishes[i] == COPIES_NOT_NOW;
        if (key->item != ANEW) {
            custody_drop(copies, key->item, is_there);
        } else if (key->is_awaited && !is_there) {
            custody_await(copies, key, &parcel->peer);
        }
    }
    if (is_refused) {
        touch(copies, parcel);
    }
}

static void parcels_deliver(struct copies *copies, struct parcels *parcels) {
    for (size_t i = 0; i < parcels->count; i++) {
        parcel_deliver(copies, parcels, &parcels->parcels[i]);
    }
}

static void parcels_clear(struct parcels *parcels) {
    for (size_t i = 0; i < parcels->count; i++) {
        free(parcels->parcels[i].keys);
    }
    parcels->count = 0;
}

/* ---- what is new here ---- */

/* keys_lock is held: by the thread that runs the feed, this one. */
void copies_take_fresh(void *context, const struct ringkey *key) {
    struct copies *copies = context;
    if (copies->fresh_count < COPIES_KEYS_MAX) {
        copies->fresh[copies->fresh_count++] = *key;
    } else {
        copies->has_lost_fresh = true;
    }
}

static bool is_holder(const struct holders_arc *arc, const struct peer *peer) {
    for (size_t i = 0; i < arc->count; i++) {
        if (memcmp(arc->peers[i].key, peer->key, PEER_KEY_SIZE) == 0) {
            return true;
        }
    }
    return false;
}

/* All holders are told; of our own arcs all must say that they have it, of another's arc its primary. */
static void pack_fresh_key(struct copies *copies, struct parcels *parcels, const struct holders_arc *arc,
                           const struct ringkey *key) {
    struct parcel_key entry = {.key = *key, .item = ANEW, .is_own = arc->self_rank == 0};
    for (size_t i = 0; i < arc->count; i++) {
        entry.is_awaited = entry.is_own || i == 0;
        if ((int)i != arc->self_rank && !parcel_put(parcels, &arc->peers[i], &entry) && entry.is_awaited) {
            copies_custody_lose(copies, key, &arc->peers[i], entry.is_own);
        }
    }
}

static void pack_fresh(struct copies *copies, struct parcels *parcels) {
    struct peer followers[COPIES_FOLLOWERS_MAX];
    size_t followers_count = copies_followers(copies, followers);
    const struct holders_source *ring = &copies->config.ring;
    struct holders_arc arc = {.count = 0};
    for (size_t i = 0; i < copies->fresh_count; i++) {
        const struct ringkey *key = &copies->fresh[i];
        struct ring_id place = copies_place_of(key);
        bool is_known = arc.count > 0 && ring_id_is_owned(arc.from, place, arc.to);
        if (!is_known && !ring->know(ring->context, place, &arc)) {
            arc.count = 0;
            sweep_begin(copies);
            continue;
        }
        if (arc.self_rank != 0 && copies_came(copies, key)) {
            continue; /* what came from others, in an arc of others, is theirs to spread */
        }
        pack_fresh_key(copies, parcels, &arc, key);
        struct parcel_key told = {.key = *key, .item = ANEW};
        for (size_t j = 0; j < followers_count && arc.self_rank == 0; j++) {
            if (!is_holder(&arc, &followers[j])) {
                (void)parcel_put(parcels, &followers[j], &told); /* it goes round, too */
            }
        }
    }
}

/* There were more than fit: the arcs are compared instead. */
static void offer_lost(struct copies *copies, const struct parcels *parcels) {
    copies->has_lost_fresh = false;
    for (size_t i = 0; i < parcels->count; i++) {
        if (parcels->parcels[i].is_primary &&
            copies_offer(copies, &parcels->parcels[i].peer, NULL, 0) != ERR_OK) {
            continue; /* the node compares at its next interval */
        }
    }
    sweep_begin(copies);
    pthread_mutex_lock(&copies->lock);
    for (size_t i = 0; i < copy_plan_pieces_count(copies->copy_plan); i++) {
        struct copy_plan_piece_status piece;
        copy_plan_piece(copies->copy_plan, i, &piece);
        copy_plan_unproven(copies->copy_plan, piece.to, NULL, copies_now_us(copies));
    }
    pthread_mutex_unlock(&copies->lock);
}

/* ---- what is in custody ---- */

static bool is_here(struct copies *copies, const struct ringkey *key) {
    bool is_here = true;
    pthread_mutex_lock(&copies->keys_lock);
    enum err err = keyset_contains(copies->keyset, key, &is_here);
    pthread_mutex_unlock(&copies->keys_lock);
    return err != ERR_OK || is_here;
}

/* Of an arc that has changed hands since, another node is to be asked, or none: members that are new in an
 * arc of ours are compared. */
static void pack_due_item(struct copies *copies, struct parcels *parcels, const struct holders_arc *arc,
                          const struct custody_item *item) {
    struct parcel_key entry = {
        .key = item->key, .item = item->index, .is_own = item->is_own, .is_awaited = true};
    bool is_own = arc->self_rank == 0;
    if (!is_here(copies, &item->key) || (item->is_own && is_own && !is_holder(arc, &item->peer))) {
        custody_drop(copies, item->index, true);
    } else if (item->is_own != is_own) {
        custody_drop(copies, item->index, true);
        copies_custody_lose(copies, &item->key, NULL, is_own);
    } else if (is_own || peer_equal(&item->peer, &arc->peers[0])) {
        (void)parcel_put(parcels, &item->peer, &entry); /* without room: next time */
    } else {
        pthread_mutex_lock(&copies->lock);
        bool is_moved = custody_move(copies->custody, item->index, &arc->peers[0]);
        pthread_mutex_unlock(&copies->lock);
        if (is_moved) {
            (void)parcel_put(parcels, &arc->peers[0], &entry);
        }
    }
}

static void pack_due(struct copies *copies, struct parcels *parcels, struct custody_item *items) {
    const struct holders_source *ring = &copies->config.ring;
    struct holders_arc arc = {.count = 0};
    pthread_mutex_lock(&copies->lock);
    size_t count = custody_due(copies->custody, copies_now_us(copies), items, COPIES_KEYS_MAX);
    pthread_mutex_unlock(&copies->lock);
    for (size_t i = 0; i < count; i++) {
        struct ring_id place = copies_place_of(&items[i].key);
        bool is_known = arc.count > 0 && ring_id_is_owned(arc.from, place, arc.to);
        if (!is_known && !ring->know(ring->context, place, &arc)) {
            arc.count = 0;
        }
        if (arc.count > 0) {
            pack_due_item(copies, parcels, &arc, &items[i]);
        }
    }
}

/* ---- the sweep ---- */

/* Is there nothing in the arc, at or behind the sweep, that only we may have? *ret_is_wait: not known yet. */
static bool sweep_may_skip(struct copies *copies, const struct copies_sweep *sweep,
                           const struct holders_arc *arc, bool *ret_is_wait) {
    if (arc->self_rank == 0) {
        return true;
    }
    pthread_mutex_lock(&copies->lock);
    bool was_equal = copy_plan_was_equal(copies->copy_plan, sweep->at, sweep->since_us);
    pthread_mutex_unlock(&copies->lock);
    *ret_is_wait = !was_equal && arc->self_rank > 0 && !sweep->has_behind &&
                   copies_now_us(copies) < sweep->since_us + SWEEP_PATIENCE_US;
    return was_equal;
}

/* A batch of the arc into custody. False: that was the last of it. */
static bool sweep_arc(struct copies *copies, struct copies_sweep *sweep, const struct holders_arc *arc) {
    struct ringkey keys[SWEEP_KEYS];
    size_t count = 0;
    struct ring_id before = ring_id_distance((struct ring_id){0, 1}, sweep->at);
    enum err err = copies_list(copies, before, arc->to, sweep->has_behind ? &sweep->behind : NULL, keys,
                               SWEEP_KEYS, &count);
    if (err != ERR_OK) {
        sweep->due_us = copies_now_us(copies) + SECOND_US;
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        struct parcel_key key = {.key = keys[i]};
        pthread_mutex_lock(&copies->lock);
        bool is_known = custody_has(copies->custody, &keys[i]);
        pthread_mutex_unlock(&copies->lock);
        if (!is_known) {
            custody_await(copies, &key, &arc->peers[0]);
        }
    }
    sweep->has_behind = count == SWEEP_KEYS;
    sweep->behind = count > 0 ? keys[count - 1] : sweep->behind;
    return sweep->has_behind;
}

/* One arc further, or less. False: it is over, or must wait. */
static bool sweep_step(struct copies *copies, struct copies_sweep *sweep) {
    const struct holders_source *ring = &copies->config.ring;
    struct holders_arc arc;
    bool is_wait = false;
    if (!ring->know(ring->context, sweep->at, &arc) || arc.count == 0) {
        sweep->due_us = copies_now_us(copies) + SECOND_US;
        return false;
    }
    bool may_skip = sweep_may_skip(copies, sweep, &arc, &is_wait);
    if (is_wait) {
        if (!sweep->has_asked) { /* an offer of nothing: compare with me */
            sweep->has_asked = copies_is_shunned(copies, &arc.peers[0]) ||
                               copies_offer(copies, &arc.peers[0], NULL, 0) == ERR_OK;
        }
        sweep->due_us = copies_now_us(copies) + SWEEP_WAIT_US;
        return false;
    }
    if (!may_skip && sweep_arc(copies, sweep, &arc)) {
        return false;
    }
    sweep->has_behind = sweep->has_asked = false;
    bool is_last = ring_id_compare(arc.to, sweep->at) < 0 || ring_id_equal(arc.from, arc.to);
    sweep->at = ring_id_add_power(arc.to, 0);
    is_last = is_last || (sweep->at.high == 0 && sweep->at.low == 0);
    sweep->is_on = !is_last;
    return sweep->is_on;
}

/* As long as few are in custody, so that the list has room for what is new. */
static void sweep_run(struct copies *copies) {
    pthread_mutex_lock(&copies->lock);
    struct copies_sweep sweep = copies->sweep;
    bool is_due = sweep.is_on && copies->stat.is_fed && copies_now_us(copies) >= sweep.due_us &&
                  custody_count(copies->custody, false) < SWEEP_KEYS;
    pthread_mutex_unlock(&copies->lock);
    for (size_t i = 0; is_due && i < SWEEP_ARCS; i++) {
        is_due = sweep_step(copies, &sweep);
    }
    pthread_mutex_lock(&copies->lock);
    if (sweep.since_us == copies->sweep.since_us) { /* else it has begun anew meanwhile */
        copies->sweep = sweep;
    }
    pthread_mutex_unlock(&copies->lock);
}

/* ---- the task ---- */

void copies_offer_fresh(struct copies *copies) {
    struct parcels *parcels = NULL;
    struct custody_item *items = NULL;
    sweep_run(copies);
    pthread_mutex_lock(&copies->lock);
    bool is_due = copies_now_us(copies) >= custody_wake_at(copies->custody);
    pthread_mutex_unlock(&copies->lock);
    if (copies->fresh_count == 0 && !copies->has_lost_fresh && !is_due) {
        return;
    }
    parcels = calloc(1, sizeof *parcels);
    items = malloc(COPIES_KEYS_MAX * sizeof *items);
    if (parcels != NULL && items != NULL) {
        pack_fresh(copies, parcels);
        copies->fresh_count = 0;
        parcels_deliver(copies, parcels);
        if (copies->has_lost_fresh) {
            offer_lost(copies, parcels);
        }
        parcels_clear(parcels);
        pack_due(copies, parcels, items);
        parcels_deliver(copies, parcels);
        parcels_clear(parcels);
    }
    free(parcels);
    free(items);
}

uint64_t copies_custody_at(struct copies *copies) {
    uint64_t at_us = custody_wake_at(copies->custody);
    uint64_t sweep_us = copies->sweep.is_on ? copies->sweep.due_us : UINT64_MAX;
    return at_us < sweep_us ? at_us : sweep_us;
}

enum err copies_custody_init(struct copies *copies) {
    struct custody_config config = {0};
    void *memory = malloc(custody_size(&config));
    copies->custody = memory != NULL ? custody_init(memory, &config) : NULL;
    copies->sweep = (struct copies_sweep){.is_on = true, .since_us = copies_now_us(copies)};
    return memory != NULL ? ERR_OK : ERR_MEMORY;
}
