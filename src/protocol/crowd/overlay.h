/*
 * overlay - ConstructOverlay: nodes that join are brought in, neighbours are exchanged, the silent are
 * dropped.
 *
 *      shuffle   wait ─────────────── pick ─ SHUFFLE ──> it: has one open itself: BUSY
 *                                                       else picks, SHUFFLED, merges
 *                ─ SHUFFLED: merge ─ BUSY: nothing ─ silence for answer_us: it is dropped
 *
 * The partner of a shuffle is the first to be overwritten: the edge turns round. If there is room it stays,
 * so that the nodes of a small crowd know each other.
 *
 *      proofs    A random neighbour is shuffled with. JOIN is answered with JOINED: half of the view, half of
 *                the nodes that joined last (a cache of view_size, the paper's bootstrap list).
 *      cyclon    All grow older by one, the oldest is shuffled with; the other side has us with age 0. JOIN:
 *                JOINED with a part of the view comes at once, so that a node is not alone; and to each
 *                neighbour a WALK of walk_hops random steps begins. Where it ends, the newcomer takes a
 * random neighbour's place, which is told of in WELCOME and overwrites what JOINED brought. The edges that
 * pointed away stay as many: nobody is lost by a join.
 *
 * A JOIN from an address that has not proved itself gets a CHALLENGE: a token, the keyed hash of its address.
 * The contacts are tried one after the other, again and again with longer waits, until one has answered.
 *
 * Floods: shuffles and walks of one node are bounded, and the joins of all. A node that shuffles too often is
 * told BUSY; that is small, and a node unlucky enough to share its bucket is not silent to us. Hearsay never
 * changes the key of an address that we know: that would make a node unreachable by a lie about it. A node
 * itself does.
 */
#ifndef MNEMON_PROTOCOL_CROWD_OVERLAY_H
#define MNEMON_PROTOCOL_CROWD_OVERLAY_H

#include "protocol/crowd/crowd_message.h"

enum { OVERLAY_BUCKETS_COUNT = 64, OVERLAY_ALONE_US = 10000000 };

/* A join of ours, from CROWD_JOIN until a contact has answered; then it waits for WELCOME. */
struct overlay_join {
    struct peer contacts[CROWD_CONTACTS_MAX];
    uint8_t contacts_count; /* 0: nobody is tried */
    uint8_t next;           /* contact */
    uint8_t rounds_count;
    uint64_t number;
    uint64_t try_at_us;
    uint64_t welcome_until_us;
    uint8_t welcomes_left;
    /* What JOINED brought, until WELCOME brings better. */
    struct address lent[CROWD_SHUFFLE_MAX + 1];
    uint8_t lent_count;
};

/* The times at which they are full again. Which is a node's: by a keyed hash of its address. */
struct overlay_buckets {
    uint64_t joins_full_at_us;
    uint64_t shuffles_full_at_us[OVERLAY_BUCKETS_COUNT];
    uint64_t walks_full_at_us[OVERLAY_BUCKETS_COUNT];
};

struct overlay {
    uint64_t shuffle_at_us; /* the next of ours */
    bool is_open;           /* one of ours waits for its answer */
    uint64_t number;        /* of it */
    uint64_t silent_at_us;  /* when it is given up */
    struct peer partner;
    struct address sent[CROWD_SHUFFLE_MAX]; /* with the partner */
    uint8_t sent_count;
    uint64_t alone_at_us; /* CROWD_ALONE is not said before */
    struct overlay_join join;
    struct peer *newcomers; /* view_size: the nodes that joined here last; NULL under CROWD_CYCLON */
    uint8_t newcomers_count;
    uint8_t newcomers_next;
    struct overlay_buckets *buckets; /* NULL: is_unlimited */
};

void overlay_init(struct crowd *crowd);
void overlay_start(struct crowd *crowd);
void overlay_join(struct crowd *crowd, struct bytes contacts);
void overlay_receive(struct crowd *crowd, const struct event *event, const struct crowd_message *message);
void overlay_drop(struct crowd *crowd, const struct address *address);

/* What one step appends at most. */
size_t overlay_actions_max(const struct crowd_config *config);

/* What is due; wakes for the next. */
void overlay_tick(struct crowd *crowd);

#endif
