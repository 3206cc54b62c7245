/*
 * New captures are offered to the other holders at once, and to followers: nodes that keep everything and
 * have asked the primaries to be told what is new. Until the holders say that they have them, they are in
 * custody (protocol/copies/custody.h), and are offered again.
 *
 * What was new before this node was started, or did not fit into the list, is found by a sweep over the keys
 * in arcs of others: those that their primary has compared with us since, and found equal, are there; the
 * rest is put into custody again, a batch at a time.
 */
#include "protocol/copies/replicator_state.h"

enum { SWEEP_KEYS = 1024, SWEEP_ARCS = 256, SWEEP_BATCH = 64 };
static const uint64_t SWEEP_PATIENCE_US = 120 * 1000000; /* for the primary of an arc to compare it */
static const uint64_t SWEEP_WAIT_US = 300000;

/* ---- what is not known to be there ---- */

void replicator_sweep_begin(struct replicator *replicator, uint64_t now_us) {
    replicator->sweep = (struct replicator_sweep){.is_on = true, .since_us = now_us};
}

/* Something has changed here: the node is asked to compare. Without room it does so at its next interval. */
static void offers_nudge(struct replicator *replicator, const struct peer *peer) {
    for (size_t i = 0; i < replicator->nudges_count; i++) {
        if (peer_equal(&replicator->nudges[i], peer)) {
            return;
        }
    }
    if (replicator->nudges_count < REPLICATOR_NUDGES_MAX) {
        replicator->nudges[replicator->nudges_count++] = *peer;
    }
}

/* There is no room to remember that the peer (NULL: any) has yet to say that it has the key. */
static void offers_lose(struct replicator *replicator, const struct ringkey *key, const struct peer *peer,
                        bool is_own, uint64_t now_us) {
    if (is_own) {
        copy_plan_unproven(replicator->copy_plan, replicator_place(key), peer, now_us);
        return;
    }
    if (peer != NULL) {
        offers_nudge(replicator, peer);
    }
    replicator_sweep_begin(replicator, now_us);
}

static void offers_await(struct replicator *replicator, const struct ringkey *key, const struct peer *peer,
                         enum custody_kind kind, uint64_t now_us) {
    if (!custody_add(replicator->custody, key, peer, kind, now_us) && kind != CUSTODY_TOLD) {
        offers_lose(replicator, key, peer, kind == CUSTODY_OWN, now_us);
    }
}

/* ---- what is new here ---- */

/* They go round, too: without room they are not told. */
static void offers_tell_followers(struct replicator *replicator, const struct holders_arc *arc,
                                  const struct ringkey *key, uint64_t now_us) {
    for (size_t i = 0; i < REPLICATOR_FOLLOWERS_MAX; i++) {
        const struct replicator_follower *follower = &replicator->followers[i];
        if (now_us < follower->until_us && !holders_arc_has(arc, &follower->peer)) {
            offers_await(replicator, key, &follower->peer, CUSTODY_TOLD, now_us);
        }
    }
}

/* All holders are told; of our own arcs all must say that they have it, of another's arc its primary. */
static void offers_take_key(struct replicator *replicator, const struct holders_arc *arc,
                            const struct ringkey *key, uint64_t now_us) {
    bool is_own = arc->self_rank == 0;
    for (size_t i = 0; i < arc->count; i++) {
        enum custody_kind kind = is_own ? CUSTODY_OWN : i == 0 ? CUSTODY_OTHERS : CUSTODY_TOLD;
        if ((int)i != arc->self_rank) {
            offers_await(replicator, key, &arc->peers[i], kind, now_us);
        }
    }
    if (is_own) {
        offers_tell_followers(replicator, arc, key, now_us);
    }
}

void replicator_take_fresh(struct replicator *replicator, const struct ringkey *keys, size_t count,
                           uint64_t now_us) {
    const struct replicator_world *world = &replicator->world;
    struct holders_arc arc = {.count = 0};
    for (size_t i = 0; i < count; i++) {
        struct ring_id place = replicator_place(&keys[i]);
        bool is_known = arc.count > 0 && ring_id_is_owned(arc.from, place, arc.to);
        if (!is_known && !world->know(world->ring, place, &arc)) {
            arc.count = 0;
            replicator_sweep_begin(replicator, now_us);
            continue;
        }
        if (arc.self_rank != 0 && replicator_came(replicator, &keys[i])) {
            continue; /* what its primary gave, in an arc of others, is the primary's to spread */
        }
        offers_take_key(replicator, &arc, &keys[i], now_us);
    }
}

/* The arcs are compared instead. */
void replicator_lose_fresh(struct replicator *replicator, uint64_t now_us) {
    replicator_sweep_begin(replicator, now_us);
    for (size_t i = 0; i < copy_plan_pieces_count(replicator->copy_plan); i++) {
        struct copy_plan_piece_status piece;
        copy_plan_piece(replicator->copy_plan, i, &piece);
        copy_plan_unproven(replicator->copy_plan, piece.to, NULL, now_us);
    }
}

/* ---- what is in custody ---- */

/* Is it to be offered to this peer? Of an arc that has changed hands since, another node is to be asked, or
 * none: members that are new in an arc of ours are compared. */
static bool offers_keep(struct replicator *replicator, const struct holders_arc *arc,
                        const struct custody_item *item, uint64_t now_us) {
    const struct replicator_world *world = &replicator->world;
    bool is_own = arc->self_rank == 0;
    if (world->find_key(world->disk, &item->key) == ERR_NOT_FOUND) {
        custody_settle(replicator->custody, item->index, true, now_us);
        return false;
    }
    if (item->kind == CUSTODY_TOLD) {
        return true;
    }
    bool was_own = item->kind == CUSTODY_OWN;
    if (was_own && is_own && !holders_arc_has(arc, &item->peer)) {
        custody_settle(replicator->custody, item->index, true, now_us);
        return false;
    }
    if (was_own != is_own) {
        custody_settle(replicator->custody, item->index, true, now_us);
        offers_lose(replicator, &item->key, NULL, is_own, now_us);
        return false;
    }
    if (is_own || peer_equal(&item->peer, &arc->peers[0])) {
        return true;
    }
    if (!custody_move(replicator->custody, item->index, &arc->peers[0], now_us)) {
        custody_settle(replicator->custody, item->index, false, now_us);
    }
    return false;
}

/* In our own arcs, a comparison finds what the node lacks. */
static void offers_touch(struct replicator *replicator, const struct peer *peer, const uint32_t *items,
                         size_t count, uint64_t now_us) {
    for (size_t i = 0; i < count; i++) {
        struct ring_id place = replicator_place(custody_key(replicator->custody, items[i]));
        copy_plan_touch(replicator->copy_plan, place, peer, now_us);
    }
}

static void offers_fail(struct replicator *replicator, const struct errand_offer *errand, uint64_t now_us) {
    offers_touch(replicator, &errand->errand.peer, errand->items, errand->count, now_us);
    for (uint32_t i = 0; i < errand->count; i++) {
        custody_settle(replicator->custody, errand->items[i], false, now_us);
    }
}

/* Of what is due for one node, what it is to be offered. */
static void offers_pack(struct replicator *replicator, struct errand_offer *errand, size_t due_count,
                        uint64_t now_us) {
    const struct replicator_world *world = &replicator->world;
    struct holders_arc arc = {.count = 0};
    errand->count = 0;
    for (size_t i = 0; i < due_count; i++) {
        const struct custody_item *item = &replicator->due[i];
        struct ring_id place = replicator_place(&item->key);
        bool is_known = arc.count > 0 && ring_id_is_owned(arc.from, place, arc.to);
        if (!is_known && !world->know(world->ring, place, &arc)) {
            arc.count = 0;
        }
        if (arc.count == 0) {
            custody_settle(replicator->custody, item->index, false, now_us);
        } else if (offers_keep(replicator, &arc, item, now_us)) {
            errand->items[errand->count++] = item->index;
        }
    }
}

static struct errand_offer *offers_free(const struct replicator *replicator) {
    for (size_t i = 0; i < replicator->config.offers_max; i++) {
        if (replicator->offers[i].errand.state == ERRAND_FREE) {
            return &replicator->offers[i];
        }
    }
    return NULL;
}

static size_t offers_keys_max(const struct replicator *replicator) {
    uint32_t custody_max = replicator->config.custody_max;
    return custody_max > 0 && custody_max < COPIES_KEYS_MAX ? custody_max : COPIES_KEYS_MAX;
}

/* False: nothing is due. */
static bool offers_begin_one(struct replicator *replicator, struct errand_offer *errand, uint64_t now_us) {
    if (replicator->nudges_count > 0) {
        errand->errand.peer = replicator->nudges[--replicator->nudges_count];
        errand->count = 0;
        if (!replicator_is_shunned(replicator, &errand->errand.peer, now_us)) {
            errand_begin(&errand->errand, ERRAND_OFFER);
        }
        return true;
    }
    size_t count = custody_due(replicator->custody, now_us, replicator->due, offers_keys_max(replicator));
    if (count == 0) {
        return false;
    }
    errand->errand.peer = replicator->due[0].peer;
    offers_pack(replicator, errand, count, now_us);
    if (errand->count > 0 && replicator_is_shunned(replicator, &errand->errand.peer, now_us)) {
        offers_fail(replicator, errand, now_us);
    } else if (errand->count > 0) {
        errand_begin(&errand->errand, ERRAND_OFFER);
    }
    return true;
}

void replicator_offer_action(struct replicator *replicator, struct errand_offer *errand,
                             struct replicator_action *action) {
    for (uint32_t i = 0; i < errand->count; i++) {
        replicator->offered[i] = *custody_key(replicator->custody, errand->items[i]);
    }
    action->kind = REPLICATOR_ASK;
    action->service = REPLICATOR_OFFER;
    replicator_put_keys(replicator, replicator->offered, errand->count, action);
}

void replicator_offer_take(struct replicator *replicator, struct errand_offer *errand,
                           const struct replicator_event *event) {
    enum err err = replicator_take_wishes(replicator, &errand->errand.peer, errand->count, event);
    bool is_refused = false;
    errand_end(&errand->errand);
    if (err != ERR_OK) {
        replicator->sweep.has_asked = replicator->sweep.has_asked && errand->count > 0;
        offers_fail(replicator, errand, event->now_us);
        return;
    }
    for (uint32_t i = 0; i < errand->count; i++) {
        is_refused = is_refused || replicator->wishes[i] == COPIES_NOT_NOW;
    }
    if (is_refused) {
        offers_touch(replicator, &errand->errand.peer, errand->items, errand->count, event->now_us);
    }
    uint32_t there_count = 0;
    for (uint32_t i = 0; i < errand->count; i++) {
        bool is_there = replicator->wishes[i] == COPIES_HAS;
        there_count += is_there;
        bool is_told = custody_kind(replicator->custody, errand->items[i]) == CUSTODY_TOLD;
        replicator->counts.confirmed_count += is_there && !is_told;
        custody_settle(replicator->custody, errand->items[i], is_there, event->now_us);
    }
    if (2 * there_count > errand->count) {
        custody_hurry(replicator->custody, &errand->errand.peer, event->now_us);
    }
}

/* ---- the sweep ---- */

/* Is there nothing in the arc, at or behind the sweep, that only we may have? *ret_is_wait: not known yet. */
static bool sweep_may_skip(const struct replicator *replicator, const struct holders_arc *arc,
                           uint64_t now_us, bool *ret_is_wait) {
    const struct replicator_sweep *sweep = &replicator->sweep;
    if (arc->self_rank == 0) {
        return true;
    }
    bool was_equal = copy_plan_was_equal(replicator->copy_plan, sweep->at, sweep->since_us);
    *ret_is_wait = !was_equal && arc->self_rank > 0 && !sweep->has_behind &&
                   now_us < sweep->since_us + SWEEP_PATIENCE_US;
    return was_equal;
}

/* A batch of the arc into custody. False: that was the last of it. */
static bool sweep_arc(struct replicator *replicator, const struct holders_arc *arc, uint64_t now_us) {
    struct replicator_sweep *sweep = &replicator->sweep;
    struct ringkey keys[SWEEP_BATCH];
    size_t count = 0;
    struct ring_id before = ring_id_distance((struct ring_id){0, 1}, sweep->at);
    enum err err = replicator_list(replicator, before, arc->to, sweep->has_behind ? &sweep->behind : NULL,
                                   keys, SWEEP_BATCH, &count);
    for (size_t i = 0; i < count && err == ERR_OK; i++) {
        bool is_kept = custody_has(replicator->custody, &keys[i]) ||
                       custody_add(replicator->custody, &keys[i], &arc->peers[0], CUSTODY_OTHERS, now_us);
        err = is_kept ? ERR_OK : ERR_BUSY; /* no room for more of it now */
        sweep->has_behind = sweep->has_behind || is_kept;
        sweep->behind = is_kept ? keys[i] : sweep->behind;
    }
    if (err != ERR_OK) {
        sweep->due_us = now_us + REPLICATOR_SECOND_US;
        return true;
    }
    return count == SWEEP_BATCH;
}

/* One arc further, or less. False: it is over, or must wait. */
static bool sweep_step(struct replicator *replicator, uint64_t now_us) {
    const struct replicator_world *world = &replicator->world;
    struct replicator_sweep *sweep = &replicator->sweep;
    struct holders_arc arc;
    bool is_wait = false;
    if (!world->know(world->ring, sweep->at, &arc) || arc.count == 0) {
        sweep->due_us = now_us + REPLICATOR_SECOND_US;
        return false;
    }
    bool may_skip = sweep_may_skip(replicator, &arc, now_us, &is_wait);
    if (is_wait) {
        if (!sweep->has_asked) {
            offers_nudge(replicator, &arc.peers[0]);
            sweep->has_asked = true;
        }
        sweep->due_us = now_us + SWEEP_WAIT_US;
        return false;
    }
    if (!may_skip && sweep_arc(replicator, &arc, now_us)) {
        return custody_count(replicator->custody, CUSTODY_OTHERS) < SWEEP_KEYS && now_us >= sweep->due_us;
    }
    sweep->has_behind = sweep->has_asked = false;
    bool is_last = ring_id_compare(arc.to, sweep->at) < 0 || ring_id_equal(arc.from, arc.to);
    sweep->at = ring_id_add_power(arc.to, 0);
    is_last = is_last || (sweep->at.high == 0 && sweep->at.low == 0);
    sweep->is_on = !is_last;
    return sweep->is_on;
}

/* As long as few are in custody, so that the list has room for what is new. */
static bool sweep_may_run(const struct replicator *replicator) {
    return replicator->sweep.is_on && replicator->is_fed &&
           custody_count(replicator->custody, CUSTODY_OTHERS) < SWEEP_KEYS;
}

static void sweep_run(struct replicator *replicator, uint64_t now_us) {
    bool is_due = sweep_may_run(replicator) && now_us >= replicator->sweep.due_us;
    for (size_t i = 0; is_due && i < SWEEP_ARCS; i++) {
        is_due = sweep_step(replicator, now_us);
    }
}

/* ---- when ---- */

void replicator_begin_offers(struct replicator *replicator, uint64_t now_us) {
    struct errand_offer *errand;
    if (!replicator->may_offer) {
        return;
    }
    sweep_run(replicator, now_us);
    while ((errand = offers_free(replicator)) != NULL && offers_begin_one(replicator, errand, now_us)) {
    }
}

uint64_t replicator_offers_at(const struct replicator *replicator) {
    uint64_t at_us = UINT64_MAX;
    if (!replicator->may_offer) {
        return at_us;
    }
    if (offers_free(replicator) != NULL) {
        at_us = replicator->nudges_count > 0 ? 0 : custody_wake_at(replicator->custody);
    }
    bool is_sweep_next = sweep_may_run(replicator) && replicator->sweep.due_us < at_us;
    return is_sweep_next ? replicator->sweep.due_us : at_us;
}
