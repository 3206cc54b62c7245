/* holders_arc - an arc of the ring, and the nodes that shall hold what lies in it. */
#ifndef MNEMON_PROTOCOL_COPIES_HOLDERS_ARC_H
#define MNEMON_PROTOCOL_COPIES_HOLDERS_ARC_H

#include "base/peer.h"
#include "protocol/ring/charter.h"
#include "protocol/ring/ring_id.h"

enum { HOLDERS_MAX = CHARTER_REPLICAS_MAX, HOLDERS_ARCS_MAX = RING_VIRTUAL_MAX };

/* Positions in (from, to] have these holders, the primary first. */
struct holders_arc {
    struct ring_id from;
    struct ring_id to;
    size_t count; /* fewer than R only if the ring has fewer nodes */
    struct peer peers[HOLDERS_MAX];
    int self_rank; /* our own position among them; -1: none */
};

/* Is the node, by its key, one of them? */
static inline bool holders_arc_has(const struct holders_arc *arc, const struct peer *peer) {
    for (size_t i = 0; i < arc->count; i++) {
        if (peer_same_key(&arc->peers[i], peer)) {
            return true;
        }
    }
    return false;
}

/*
 * Which place of the ring gives its node instead of the last holder (docs/decisions/0021-sites.md): the
 * holders follow each other from position on, and sites has where the node of each place stands. If all of
 * them are of one site, it is the first place behind them that is of another; if that node is a holder, or
 * there is no such place (count), all stay as they are.
 */
static inline size_t holders_arc_other_site(const uint64_t *sites, size_t count, size_t position) {
    for (size_t i = 1; i < count; i++) {
        size_t at = (position + i) % count;
        if (sites[at] != sites[position]) {
            return at;
        }
    }
    return count;
}

#endif
