/*
 * ring_state - what is inside struct ring, for the files of this folder only. One machine in several files:
 * ring.c has its life and its questions to the outside; each of the headers below owns one part of the state.
 */
#ifndef MNEMON_PROTOCOL_RING_RING_STATE_H
#define MNEMON_PROTOCOL_RING_RING_STATE_H

#include "base/arena.h"
#include "base/standing.h"
#include "protocol/ring/before.h"
#include "protocol/ring/chord.h"
#include "protocol/ring/holders.h"
#include "protocol/ring/local.h"
#include "protocol/ring/lookup.h"
#include "protocol/ring/mode.h"
#include "protocol/ring/query.h"
#include "protocol/ring/small.h"
#include "protocol/ring/table.h"
#include "protocol/ring/taken.h"

/*
 * How often one peer may tell us things unasked: the bound on notify.
 *
 * Buckets by a keyed hash of the address, so that nobody can aim at another's. Peers that fall into one share
 * it; the bound has room for that. A bucket is the time at which it is full again: zeros are full. Peers that
 * have not proved their address share one small bucket, and cannot use up that of another.
 */
enum { THROTTLE_BUCKETS_COUNT = 64 };

struct throttle {
    uint64_t full_at_us[THROTTLE_BUCKETS_COUNT];
    uint64_t strangers_full_at_us;
};

struct ring {
    struct arena arena; /* of everything below and of this */
    struct ring_config config;
    struct sha256 sha256;
    struct prng prng;
    uint64_t secret; /* of tokens */
    uint8_t mode;    /* enum message_mode */
    struct chord *vnodes;
    struct small small;
    struct table table;
    struct lookup *lookups;
    uint32_t lookups_count;
    struct query *queries; /* open ones, in no order */
    uint32_t queries_count;
    uint32_t queries_max;
    struct standing standing; /* places that were silent (query.h) */
    struct standing_entry silences[QUERY_SILENCES_MAX];
    struct throttle throttle; /* of notify */
    struct taken taken;
    uint64_t heal_at_us;
    uint64_t stepped_at_us;
    struct ring_counters counters;
    struct ring_blame blames[RING_BLAMES_MAX];
    uint32_t blames_count;
    bool was_member; /* as announced */

    /* During a step. */
    uint64_t now_us;
    struct outbox *out;
};

/* ---- ring.c ---- */

/* Fill in the header and send; a question is padded if its receiver has given no token. */
void ring_send(struct ring *ring, const struct vnode *to, struct message *message);

/* Everything that is known of it came to us unasked or makes no sense. */
void ring_blame(struct ring *ring, const struct vnode *who, const char *text);

/* Enter by hearsay. */
void ring_heard_of(struct ring *ring, const struct vnode *vnode);

bool ring_is_own(const struct ring *ring, const struct vnode *vnode);

/* 0.5 to 1.5 times. */
uint64_t ring_jitter(struct ring *ring, uint64_t us);

/* Is a place of the same node among them? */
bool vnodes_have_node(const struct vnode *vnodes, unsigned count, const struct vnode *vnode);

static inline bool vnode_equal(const struct vnode *a, const struct vnode *b) {
    return ring_id_equal(a->id, b->id) && address_equal(&a->peer.address, &b->peer.address);
}

#endif
