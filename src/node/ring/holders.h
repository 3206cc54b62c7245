/*
 * holders - which nodes shall hold a position of the ring: the first R distinct ones clockwise from it.
 *
 * Three sources, the surest first: our successor lists, for our own arcs; a lookup of the last seconds, for
 * others; else what we have heard of (the location table), which near us is nearly always right and further
 * away may name a node that has gone. Two virtual nodes of one node count once.
 *
 * If all R are of one site (sites.h), the last of them gives way to the next node clockwise that is of
 * another: so the loss of a site loses nothing. If sites are not used, or there is no such node, it stays.
 *
 * Any thread may ask. The ring's loop brings the news with holders_update().
 */
#ifndef MNEMON_NODE_RING_HOLDERS_H
#define MNEMON_NODE_RING_HOLDERS_H

#include "base/err.h"
#include "base/peer.h"
#include "protocol/copies/holders_arc.h"

struct holders;
struct ring;
struct sites;
struct vnode;
struct transport;

enum { HOLDERS_ALL_MAX = 1 << 15 };

/* The transport outlives it, and may be NULL: then nothing is ever looked up. NULL: out of memory. */
struct holders *holders_new(struct transport *transport);
void holders_free(struct holders *holders);

/* Before the first update: chosen by these sites, which outlive it. */
void holders_set_sites(struct holders *holders, struct sites *sites);

/* The ring's loop: the ring as it is now. copies: R of the charter. */
void holders_update(struct holders *holders, const struct ring *ring, size_t copies);

/* From what is known now, without waiting. False: not known. Any thread. */
bool holders_know(struct holders *holders, struct ring_id vnode, struct holders_arc *ret_arc);

/* The same, but surely: look it up if need be. Waits for the ring; not on its loop. ERR_NOT_FOUND: we are in
 * no ring; ERR_BUSY: not in it yet; ERR_UNREACHABLE: nobody could say. */
enum err holders_find(struct holders *holders, struct ring_id vnode, struct holders_arc *ret_arc) MUST_CHECK;

/*
 * For somebody who reads: likewise, but if the lookup takes longer than usual, because a node that it asks
 * has just died, what is known now. A node that is no holder says so when it is asked.
 */
enum err holders_find_soon(struct holders *holders, struct ring_id vnode,
                           struct holders_arc *ret_arc) MUST_CHECK;

/* The arcs that are ours as primary, with their holders; as many as we have virtual nodes. Any thread. */
size_t holders_own(struct holders *holders, struct holders_arc out[HOLDERS_ARCS_MAX]);

/* All nodes that are known, ourselves included. Any thread. Returns how many there are; writes at most
 * peers_max. */
size_t holders_all(struct holders *holders, struct peer *out, size_t peers_max);

/* All arcs of the ring as it is known, clockwise; visit() must not ask the holders anything, nor wait. Any
 * thread. Returns how many nodes are known. */
size_t holders_each(struct holders *holders, void (*visit)(void *context, const struct holders_arc *arc),
                    void *context);

/* Does one of them have this key, and where is it reached? Any thread. */
bool holders_have_key(struct holders *holders, const uint8_t key[PEER_KEY_SIZE]);
bool holders_locate(struct holders *holders, const uint8_t key[PEER_KEY_SIZE], struct peer *ret_peer);

/* The virtual nodes behind one of our own, clockwise, as we know them; none behind any other ID. Any thread.
 */
size_t holders_after(struct holders *holders, struct ring_id own_vnode, struct vnode *out, size_t vnodes_max);

/* How many virtual nodes of the ring are known. */
size_t holders_vnodes_count(struct holders *holders);

/* How many nodes hold a key; 0: we are in no ring. */
size_t holders_copies(struct holders *holders);

/* Counts up with every change of an arc or a holder near us. Any thread. */
uint64_t holders_generation(struct holders *holders);

/* These functions as a table, so that modules can be tested without a ring. */
struct holders_source {
    size_t (*own)(void *context, struct holders_arc out[HOLDERS_ARCS_MAX]);
    bool (*know)(void *context, struct ring_id position, struct holders_arc *ret_arc);
    enum err (*find)(void *context, struct ring_id position, struct holders_arc *ret_arc);
    size_t (*copies)(void *context);
    uint64_t (*generation)(void *context);
    bool (*locate)(void *context, const uint8_t key[PEER_KEY_SIZE], struct peer *ret_peer);
    void *context;
};

struct holders_source holders_source(struct holders *holders);

#endif
