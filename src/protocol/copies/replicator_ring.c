/* The ring, for the plan of copies: our arcs, the nodes that follow us, and the primaries before us. */
#include "protocol/copies/replicator_state.h"

enum { HOPS_MAX = 64 /* places that are looked at for spare holders */ };

/* The nodes that are watched, while the arcs are described. */
struct ring_watch {
    struct primary_watch_arc arcs[PRIMARY_WATCH_WATCHED_MAX];
    size_t count;
};

static bool ring_is_listed(const struct copy_plan_arc *arc, const struct peer *peer) {
    for (size_t i = 0; i < arc->count; i++) {
        if (address_equal(&arc->peers[i].address, &peer->address)) {
            return true;
        }
    }
    return false;
}

static void ring_add_peers(struct copy_plan_arc *out, const struct holders_arc *arc, const struct peer *self,
                           size_t count_max) {
    for (size_t i = 0; i < arc->count && out->count < count_max; i++) {
        bool is_self = address_equal(&arc->peers[i].address, &self->address);
        if (!is_self && !ring_is_listed(out, &arc->peers[i])) {
            out->peers[out->count++] = arc->peers[i];
        }
    }
}

/* The arc that ends where ours begins, and its primary. False: that is this node, or it is not known. */
static bool ring_find_before(const struct replicator_world *world, struct ring_id from,
                             const struct peer *self, struct primary_watch_arc *ret_arc) {
    struct holders_arc arc;
    if (!world->know(world->ring, from, &arc) || arc.count == 0 || !ring_id_equal(arc.to, from) ||
        address_equal(&arc.peers[0].address, &self->address)) {
        return false;
    }
    *ret_arc = (struct primary_watch_arc){.primary = arc.peers[0], .from = arc.from, .to = arc.to};
    return true;
}

/* An own arc and the primary before it, which is watched: if it fails, its arc is ours too, and so on. Once
 * around the ring, nobody is left who could take it. */
static void ring_reach(struct replicator *replicator, const struct peer *self, struct copy_plan_arc *arc,
                       struct ring_watch *watch, uint64_t now_us) {
    const struct replicator_world *world = &replicator->world;
    struct primary_watch_arc before;
    size_t wanted = world->copies(world->ring);
    arc->has_predecessor = ring_find_before(world, arc->from, self, &before);
    for (size_t depth = 1; depth < wanted && arc->has_predecessor; depth++) {
        if (watch->count < PRIMARY_WATCH_WATCHED_MAX) {
            watch->arcs[watch->count++] = before;
        }
        if (!primary_watch_fails(&replicator->primary_watch, &before.primary, now_us) ||
            ring_id_is_owned(before.from, arc->to, before.to) || ring_id_equal(before.from, arc->to)) {
            break;
        }
        arc->is_guarding = true;
        arc->from = before.from;
        arc->has_predecessor = ring_find_before(world, arc->from, self, &before);
    }
    arc->predecessor = arc->has_predecessor ? before.primary : (struct peer){0};
}

/* Our arc with its holders, and some that follow them in case one is full. */
static void ring_describe(struct replicator *replicator, const struct holders_arc *arc,
                          struct ring_watch *watch, struct copy_plan_arc *out, uint64_t now_us) {
    const struct replicator_world *world = &replicator->world;
    const struct peer *self = &arc->peers[0];
    size_t count_max = world->copies(world->ring) + COPY_PLAN_SPARES_MAX - 1;
    struct holders_arc next = *arc;
    *out = (struct copy_plan_arc){.from = arc->from, .to = arc->to};
    count_max = count_max < COPY_PLAN_CANDIDATES_MAX ? count_max : COPY_PLAN_CANDIDATES_MAX;
    ring_add_peers(out, arc, self, count_max);
    for (unsigned i = 0; i < HOPS_MAX && out->count < count_max; i++) {
        struct ring_id behind = ring_id_add_power(next.to, 0);
        bool is_found = world->know(world->ring, behind, &next);
        if (!is_found || ring_id_equal(next.to, arc->to)) {
            break; /* once around */
        }
        ring_add_peers(out, &next, self, count_max);
    }
    ring_reach(replicator, self, out, watch, now_us);
}

void replicator_look_at_ring(struct replicator *replicator, uint64_t now_us) {
    const struct replicator_world *world = &replicator->world;
    uint64_t generation = world->generation(world->ring);
    if (replicator->has_ring && generation == replicator->generation &&
        replicator->failing == primary_watch_failing(&replicator->primary_watch, now_us)) {
        return;
    }
    struct ring_watch watch = {.count = 0};
    size_t wanted = world->copies(world->ring);
    size_t count = world->own(world->ring, replicator->own);
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (replicator->own[i].count > 0) {
            ring_describe(replicator, &replicator->own[i], &watch, &replicator->arcs[used++], now_us);
        }
    }
    if (wanted > 0) {
        copy_plan_set_copies(replicator->copy_plan, (uint32_t)wanted, now_us);
    }
    copy_plan_set_arcs(replicator->copy_plan, replicator->arcs, used, now_us);
    primary_watch_set(&replicator->primary_watch, watch.arcs, watch.count, now_us);
    replicator->failing = primary_watch_failing(&replicator->primary_watch, now_us);
    replicator->has_ring = true;
    replicator->generation = generation;
}
