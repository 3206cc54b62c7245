/*
 * ring_liars - simulated ring nodes that do not say what they should. For ring-partition.
 *
 * A liar runs the same code as everybody; what it sends passes through here and is changed, dropped, or
 * followed by more. Liars know everybody and share what they overhear. They cannot send from another's
 * address: on a real network the encryption of messages sees to that (docs/protocol/transport.md).
 */
#ifndef MNEMON_SIM_EXPERIMENTS_RING_LIARS_H
#define MNEMON_SIM_EXPERIMENTS_RING_LIARS_H

#include "base/prng.h"
#include "protocol/ring/ring.h"

enum ring_lie {
    RING_LIE_NONE,
    RING_LIE_SUCCESSORS, /* random members instead of successors and of those nearer to a key */
    RING_LIE_ALLIES,     /* only other liars */
    RING_LIE_NOWHERE,    /* addresses that are nobody's */
    RING_LIE_PADDING,    /* padding behind the first entry of every list */
    RING_LIE_KEYS,       /* every key that is asked for is the liar's own */
    RING_LIE_VNODES,     /* others' places as owners and predecessors, own places that do not exist */
    RING_LIE_SILENCE,    /* no word to every second node */
    RING_LIE_REPLAY,     /* what anybody sent to a liar, sent again to anybody */
    RING_LIE_FORGE,      /* answers that nobody asked for, and noise */
    RING_LIE_NOTIFY,     /* "I am your predecessor", to everybody, 400 times a second */
};

enum { RING_LIARS_HEARD_MAX = 64, RING_LIARS_EXTRA_MAX = 8 };

struct ring_liars_heard {
    uint8_t data[STEP_MESSAGE_SIZE_MAX];
    size_t size;
};

struct ring_liars {
    enum ring_lie lie;
    uint32_t share; /* every n-th node lies */
    const struct vnode *vnodes;
    const uint32_t *order; /* nodes by ID */
    uint32_t nodes_count;
    const uint8_t *charter;
    uint64_t lies_count;  /* messages changed, added or kept back */
    uint64_t extra_at_us; /* when they may add something again */
    struct ring_liars_heard *heard;
    uint32_t heard_count;
    struct outbox said; /* what a liar would say if it were honest */
    struct sha256 sha256;
    struct prng prng;
};

/* Nobody lies yet. places, order and charter must outlive the liars. ERR_MEMORY. */
enum err ring_liars_init(struct ring_liars *liars, const struct ring_config *config,
                         const struct vnode *vnodes, const uint32_t *order, uint32_t nodes_count,
                         uint64_t seed) MUST_CHECK;
void ring_liars_done(struct ring_liars *liars);

static inline bool ring_liars_has(const struct ring_liars *liars, uint32_t node) {
    return liars->lie != RING_LIE_NONE && node % liars->share == 0;
}

/* A step of a liar. *out must have room for RING_LIARS_EXTRA_MAX messages more than ring_step() needs. */
void ring_liars_step(struct ring_liars *liars, struct ring *ring, uint32_t node, const struct event *event,
                     struct outbox *out);

#endif
