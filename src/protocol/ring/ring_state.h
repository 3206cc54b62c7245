/*
 * ring_state - what is inside struct ring, for the files of this folder only. One machine in several files:
 * ring.c has its life and its questions to the outside; each of the files below owns one part of the state,
 * and begins with what it guarantees.
 */
#ifndef MNEMON_PROTOCOL_RING_RING_STATE_H
#define MNEMON_PROTOCOL_RING_RING_STATE_H

#include "base/arena.h"
#include "base/retry.h"
#include "base/standing.h"
#include "protocol/ring/ring.h"
#include "protocol/ring/table.h"

/* ---- query.c ---- */

enum {
    QUERY_TRIES_DEAD = 5,
    QUERY_TRIES_LOOKUP = 2,
    QUERY_TRIES_AGAIN =
        2, /* of a node that was silent just now: it may be back, and then must not be passed over */
    QUERY_TRIES_DOUBT = 3, /* with this one chord_doubt() looks after the others */
    QUERY_SILENCES_MAX = 32,
};

enum query_purpose {
    QUERY_SUCCESSOR,   /* stabilize from successor; owner: index of our place */
    QUERY_PREDECESSOR, /* stabilize from predecessor */
    QUERY_RECTIFY,
    QUERY_JOIN,
    QUERY_LOOKUP, /* owner: index of the lookup */
    QUERY_NODES,  /* small.c */
    QUERY_BEFORE, /* before.c; owner: index of our place */
    QUERY_PROBE,  /* likewise: is it there? */
    QUERY_LIGHT,  /* light.c */
};

struct query {
    uint64_t number;
    struct retry retry;
    struct vnode to;
    struct ring_id key;
    uint64_t digest;
    uint32_t owner;
    uint8_t kind; /* message_kind */
    uint8_t purpose;
    uint8_t from; /* index of our place */
    uint8_t wanted;
    uint8_t tries_max;
};

/* Ask. The caller fills in of *query: purpose, owner, kind, to, from, key, wanted, digest, tries_max. False
 * if too many are open. */
bool query_open(struct ring *ring, const struct query *query);

/* The answer is of no interest any more. */
void query_close(struct ring *ring, enum query_purpose purpose, uint32_t owner);

/* Is this asked of it already? */
bool query_is_open(const struct ring *ring, enum query_purpose purpose, const struct vnode *to);

/* Was it silent to the last of QUERY_TRIES_DEAD questions a short while ago, and has not been heard since? */
bool query_is_silent(const struct ring *ring, const struct vnode *vnode);

/* True if it belonged to a question: its owner has then heard of it. */
bool query_answer(struct ring *ring, const struct event *event, const struct message *message);

/* Repeat or give up what is overdue; wake for the next. */
void query_tick(struct ring *ring);

/* The token that proves this address, and whether a question may be answered with so many bytes. */
uint64_t query_token(const struct ring *ring, const struct address *address);
bool query_may_answer(const struct ring *ring, const struct event *event, uint64_t token, size_t size);

/* ---- chord.c ---- */

enum { CHORD_FINGERS_MAX = 40 }; /* of distance 2^127 to 2^88: enough for 2^39 places */

struct chord {
    struct vnode self;
    struct vnode list[RING_LIST_MAX]; /* r of them */
    struct vnode predecessor;
    struct vnode before[RING_LIST_MAX];        /* before.c: the predecessor's predecessor first */
    struct vnode candidate;                    /* for predecessor, while the old one is asked */
    struct vnode waiting;                      /* notified while another question was open */
    struct ring_id fingers[CHORD_FINGERS_MAX]; /* zero: none; the places are in the table */
    uint64_t finger_spans[CHORD_FINGERS_MAX];  /* from a finger to the last of those it named;
                                                  ring_estimated_size() */
    uint8_t finger_counts[CHORD_FINGERS_MAX];  /* how many; 0: none */
    uint64_t stabilize_at_us;
    uint64_t join_at_us;
    uint64_t finger_at_us;
    uint64_t rounded_at_us;      /* the last round of stabilizing began */
    uint64_t before_at_us;       /* the predecessor is asked for its chain */
    uint64_t before_asked_at_us; /* was asked */
    uint64_t changed_at_us;      /* the list or the predecessor */
    struct ring_id arc_from;     /* as announced */
    struct ring_id held_from;    /* likewise */
    uint8_t finger_next;
    uint8_t before_count;
    bool is_before_whole; /* the chain comes round to us */
    bool is_before_open;  /* it is asked for */
    bool is_held_stale;   /* what held_from follows from has changed */
    bool has_held;        /* announced */
    bool is_member;
    bool is_busy; /* a question is open */
    bool has_waiting;
    bool has_arc;    /* announced */
    bool is_joining; /* a lookup for our own ID, or the question after it, is on its way */
};

void chord_init(struct chord *chord, const struct vnode *self);

/* The list may have changed at our successor: a round soon. */
void chord_hurry(struct ring *ring, struct chord *chord);

/* The chain has changed: the successor hears of it with a notify. */
void chord_tell_successor(struct ring *ring, struct chord *chord);

/* The head of the list does not answer: are the others there? */
void chord_doubt(struct ring *ring, struct chord *chord);

/* What is due. */
void chord_tick(struct ring *ring, struct chord *chord);

/* NULL for silence. */
void chord_answered(struct ring *ring, struct chord *chord, const struct query *query,
                    const struct message *answer);

/* The lookup for our own ID has ended: the owner of the ID and its predecessor, or NULL. */
void chord_join(struct ring *ring, struct chord *chord, const struct vnode *predecessor);

/* A node that does not know us says that it follows us: another ring, or a gap in ours. */
void chord_meet(struct ring *ring, struct chord *chord, const struct vnode *stranger);

void chord_on_ask_state(struct ring *ring, struct chord *chord, struct message *answer);
void chord_on_notify(struct ring *ring, struct chord *chord, const struct vnode *from);

/* The place and those that it named behind itself, count in all. */
void chord_set_finger(struct chord *chord, unsigned finger, const struct vnode *vnodes, unsigned count);

/* Is this place in the list, the predecessor or a finger? */
bool chord_needs(const struct ring *ring, const struct chord *chord, struct ring_id id);

/* ---- before.c ---- */

/* How long chains are: the copies of the charter and some, because a node may have several places in one. */
unsigned before_size(const struct ring *ring);

/* For notify: of the part of our chain that a successor takes over. */
uint64_t before_digest(const struct ring *ring, const struct chord *chord);

/* The predecessor is another one now: what is known of those before it stays. */
void before_follow(struct ring *ring, struct chord *chord, const struct vnode *old);

/* Our list or predecessor has changed: the predecessor is asked, and so told, soon. */
void before_hurry(struct ring *ring, struct chord *chord);

void before_tick(struct ring *ring, struct chord *chord);

/* NULL for silence. */
void before_answered(struct ring *ring, struct chord *chord, const struct query *query,
                     const struct message *answer);

/* The digest of a notify from our predecessor. */
void before_on_notify(struct ring *ring, struct chord *chord, uint64_t digest);

/* The node `from` asks for our chain. */
void before_on_ask(struct ring *ring, struct chord *chord, const struct vnode *from,
                   const struct message *question, struct message *answer);

/* ---- lookup.c ---- */

enum { LOOKUP_CANDIDATES_MAX = 32, LOOKUP_FLIGHT_MAX = 3, LOOKUP_ASKED_MAX = 200 };

enum lookup_purpose { LOOKUP_FREE, LOOKUP_USER, LOOKUP_JOIN, LOOKUP_FINGER, LOOKUP_HEAL };
enum lookup_state { CANDIDATE_NEW, CANDIDATE_ASKED, CANDIDATE_DONE };

struct lookup_candidate {
    struct vnode vnode;
    uint8_t hops_count; /* until it has answered */
    uint8_t state;
    bool is_behind; /* the key: may be its owner */
    bool has_answered;
    bool is_blocked;  /* silent lately: asked when nobody else is left */
    bool is_repeated; /* was silent, and is asked once more before another takes its place */
};

struct lookup {
    uint8_t purpose;
    uint8_t wanted;
    uint8_t asked_count;
    uint8_t flight_count;
    uint8_t candidates_count;
    uint8_t hops_count;   /* of the owner */
    bool has_owner;       /* so far */
    bool is_known;        /* LOOKUP_HEAL: they have named us ourselves, so theirs is our ring */
    bool is_widened;      /* all that we know ourselves are candidates, not only the best */
    uint32_t owner_index; /* of our place, or of the finger */
    uint32_t detail;      /* LOOKUP_HEAL: 1 if the node that has our place is to keep it */
    uint64_t number;      /* the user's */
    struct ring_id key;
    struct vnode predecessor;          /* of the owner */
    struct vnode found[RING_LIST_MAX]; /* the owner and its successors */
    uint8_t found_count;
    struct lookup_candidate candidates[LOOKUP_CANDIDATES_MAX];
};

/* Ask; false if too many lookups run. With `only` nobody else is asked at first, for other parts of a
 * ring. */
bool lookup_start(struct ring *ring, enum lookup_purpose purpose, uint32_t vnode_index, uint32_t detail,
                  struct ring_id key, uint8_t wanted, const struct vnode *only);

/* RING_FIND. */
void lookup_command(struct ring *ring, uint64_t number, struct ring_id key, uint8_t wanted);

/* NULL for silence. */
void lookup_answered(struct ring *ring, struct lookup *lookup, const struct query *query,
                     const struct message *answer);

/* ---- local.c ---- */

enum { LOCAL_NEXT_MAX = 8 };

/* Our place that is responsible for the key, or NULL. */
const struct chord *local_owner(const struct ring *ring, struct ring_id key);

/* Our own place that comes first behind the key; NULL if we are no member. */
const struct chord *local_first(const struct ring *ring, struct ring_id key);

/* A place of ours and its successors, of each node the first; at most `wanted`. */
uint8_t local_copy(const struct ring *ring, const struct chord *chord, struct vnode *vnodes, unsigned wanted);

/* Has it answered within living memory, or do our lists name it, and is it not silent just now? */
bool local_is_useful(const struct ring *ring, const struct table_entry *entry);

/* The nearest before the key that we would ask ourselves, nearest first, nearer than we. */
unsigned local_preceding(const struct ring *ring, struct ring_id key, struct vnode *vnodes,
                         unsigned vnodes_max);

/* Real places at or behind the key from the list of our place before it: the first is its owner, if it lives.
 */
unsigned local_succeeding(const struct ring *ring, struct ring_id key, struct vnode *vnodes,
                          unsigned vnodes_max);

/* Nearer to the key than a few places usually are, by the density of our own list. */
bool local_is_near(const struct ring *ring, struct ring_id key, struct ring_id id);

/* The owner's own recent word, and those behind it in the table: how many places; 0 if fewer are known. */
unsigned local_fresh(const struct ring *ring, struct ring_id key, struct vnode *vnodes, unsigned wanted);

/* The answer to somebody's MESSAGE_FIND. */
void local_on_find(struct ring *ring, const struct message *question, struct message *answer);

/* ---- small.c ---- */

enum { SMALL_NODES_MAX = RING_LIST_MAX, SMALL_CANDIDATES_MAX = 16 };

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
    uint64_t generation;                      /* of the table */
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

/* ---- light.c ---- */

/* The mode of a light node, which is never said: it has no table to describe. */
enum { MODE_LIGHT = MODE_CHORD + 1 };

struct light {
    struct vnode contacts[SMALL_CANDIDATES_MAX]; /* of RING_JOIN */
    uint32_t contacts_count;
    uint64_t ask_at_us;
    uint8_t silent_count; /* in a row, while reached */
    uint8_t rounds_count; /* since it was reached */
    bool is_reached;      /* somebody in the ring answers */
};

/* RING_JOIN. */
void light_join(struct ring *ring, const struct vnode *contacts, uint32_t contacts_count);

void light_tick(struct ring *ring);

/* NULL for silence. */
void light_answered(struct ring *ring, const struct query *query, const struct message *answer);

/* ---- circle.c ---- */

enum { CIRCLE_VNODES_MAX = RING_CIRCLE_MAX };

struct circle {
    struct vnode vnodes[CIRCLE_VNODES_MAX];
    unsigned count;
};

void circle_of(const struct ring *ring, struct circle *circle);

/* The index of the first place at or behind an ID. */
unsigned circle_at_or_after(const struct circle *circle, struct ring_id id);

/* The place so many steps from an index. */
static inline const struct vnode *circle_after(const struct circle *circle, unsigned index, unsigned steps) {
    return &circle->vnodes[(index + steps) % circle->count];
}
static inline const struct vnode *circle_before(const struct circle *circle, unsigned index, unsigned steps) {
    return &circle->vnodes[(index + circle->count - steps % circle->count) % circle->count];
}

/* ---- mode.c ---- */

/* Small: all agree on the table, or one of them has changed. */
void mode_become_chord(struct ring *ring);

/* Small: there is a ring beside ours, and `through` is in it. */
void mode_move(struct ring *ring, const struct vnode *through);

/* A place of ours has got its list from a Chord ring. */
void mode_joined(struct ring *ring, const struct chord *chord);

/* Chord: somebody of a small ring named its nodes, which are all that we know, too. */
void mode_follow_down(struct ring *ring, const struct message *nodes);

/* Chord: change if the list has come round. */
void mode_shrink(struct ring *ring, const struct chord *chord);

/* Chord: all successors are dead. */
void mode_fall_back(struct ring *ring, struct chord *chord);

/* We were away for too long, or another has our place. The ring is joined anew through nodes that we know. */
void mode_rejoin(struct ring *ring);

/* ---- taken.c ---- */

struct taken {
    bool is_noted; /* in this step */
    uint8_t index; /* of ours */
    uint8_t moves_left;
    struct vnode holder;
};

void taken_init(struct taken *taken);

/* Is this somebody else at the ID of our place? */
bool taken_is_rival(const struct chord *chord, const struct vnode *vnode);

/* A node, perhaps one of the table, says of itself what it has. True if it cannot be so beside us: then
 * it is noted if it is we who give way. */
bool taken_on_node(struct ring *ring, const struct small_node *node, bool is_member);

/* Does a node of the table have one of its places? */
bool taken_is_known(const struct ring *ring, const struct small_node *node);

/* Is there a node in this table that has a place of ours? */
bool taken_is_named(const struct ring *ring, const struct message *nodes);

/* If both are members, the one with the larger address gives way. */
bool taken_gives_way(const struct ring *ring, const struct address *to);

/* This place of ours belongs to the holder. What follows is done by taken_settle(), at the end of the step.
 */
void taken_note(struct ring *ring, uint8_t index, const struct vnode *holder);
void taken_settle(struct ring *ring);

/* ---- holders.c ---- */

/* Notices of what has changed in this step: RING_ARC, RING_HELD, RING_GONE, RING_MEMBER. */
void holders_announce(struct ring *ring);

/* ---- ring.c ---- */

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
    struct light light;
    struct table table;
    struct lookup *lookups;
    uint32_t lookups_count;
    struct query *queries; /* open ones, in no order */
    uint32_t queries_count;
    uint32_t queries_max;
    struct standing standing; /* places that were silent (query.c) */
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
