/*
 * small - rings of few nodes: everybody knows everybody, and the sorted table is the ring.
 *
 * Chord's guarantee needs r + 1 members, a new ring has one. So up to r *nodes* (a machine's places die
 * together, therefore machines are counted) each keeps a table of all, asks each of them in turn for theirs,
 * and sorts all places: the lists of chord.h follow from that. A node enters the table only by its own
 * answer, whoever named it; it leaves by silence. Tables so become the union of what is alive and connected.
 *
 * When a node begins and ceases to do so: mode.h.
 *
 * Guaranteed while nodes can reach each other: tables converge to those alive (a node that dies stays in for
 * QUERY_TRIES_DEAD time-outs after it is asked next); the change to Chord starts ideal. Not guaranteed: that
 * two nodes never disagree about a key meanwhile. Tables hold at most RING_LIST_MAX others, those with the
 * smallest IDs; a node that finds no room waits for Chord.
 */
#ifndef MNEMON_PROTOCOL_RING_SMALL_H
#define MNEMON_PROTOCOL_RING_SMALL_H

#include "protocol/ring/message.h"

enum { SMALL_NODES_MAX = RING_LIST_MAX, SMALL_CANDIDATES_MAX = 16 };

struct query;
struct chord;

struct small_node {
    struct vnode first; /* its place of the smallest index */
    uint8_t vnodes_count;
    bool agrees; /* its last answer had our table, which has not changed since */
    bool is_asked;
    uint8_t answers_count; /* while we join, up to JOINING_ANSWERS of small.c */
    uint64_t ask_at_us;
};

struct small {
    struct small_node nodes[SMALL_NODES_MAX]; /* without us */
    uint32_t nodes_count;
    struct small_node candidates[SMALL_CANDIDATES_MAX]; /* named, not yet heard */
    uint32_t candidates_count;
    struct vnode contacts[SMALL_CANDIDATES_MAX]; /* of RING_JOIN */
    uint32_t contacts_count;
    bool is_contact_open[SMALL_CANDIDATES_MAX]; /* has neither answered nor been silent */
    uint64_t contacts_at_us;
    bool is_ring_met; /* while joining: a Chord ring has answered */
    bool is_moving;   /* to the Chord ring of moving_through, while we stay members of this one */
    struct vnode moving_through;
};

/* RING_JOIN. Without peers a ring is founded. */
void small_join(struct ring *ring, const struct vnode *contacts, uint32_t contacts_count);

void small_tick(struct ring *ring);

struct small_node *small_find(struct ring *ring, const struct address *address);

/* False if there is no room: the smallest IDs stay, on all nodes the same ones. */
bool small_add(struct ring *ring, const struct small_node *node);

/* The lists of our places follow from the table. */
void small_changed(struct ring *ring);

/* What we say of ourselves: status, is_whole and nodes, we first. */
void small_describe(const struct ring *ring, struct message *message);

/* Somebody asked us with its table. */
void small_on_ask_nodes(struct ring *ring, const struct event *event, const struct message *message);

/* NULL for silence. */
void small_answered(struct ring *ring, const struct query *query, const struct message *answer);

/* A node at this address that is not in our table takes part in the ring: ask it. */
void small_meet(struct ring *ring, const struct vnode *stranger);

#endif
