/*
 * ring - which node is responsible for which key, whatever dies: Chord as P. Zave corrected it. Pure.
 *
 * A node has one to 32 places (virtual nodes). Each place p is responsible for the keys in (predecessor, p];
 * the next r places after it are its successor list. Rules, messages and the small ring below r + 1 nodes:
 * chord.c, small.c, message.h; lookups: lookup.c; nodes that we have heard of: table.h.
 *
 *      driver                                     ring
 *        EVENT_START ------------------------------>
 *        EVENT_COMMAND RING_JOIN, peers ----------->
 *        EVENT_COMMAND RING_FIND, number, key ----->
 *            <---- ACTION_NOTICE RING_FOUND, RING_ARC, RING_REFUSED …
 *
 * A place may ask another of the same node: messages to the node's own address come back as events, too.
 *
 * Nothing is believed because it came from the ring: what is out of range, unasked for, of another charter
 * or version is counted, answered at most with a reason, and dropped. An address is asked because a member
 * that was asked itself named it, never because of an unasked message; no answer is larger than three times
 * its question unless the asker has proved its address.
 */
#ifndef MNEMON_PROTOCOL_RING_RING_H
#define MNEMON_PROTOCOL_RING_RING_H

#include "base/err.h"
#include "base/step.h"
#include "protocol/ring/message.h"

struct ring;

enum {
    RING_LIST_DEFAULT = 8,
    RING_BLAMES_MAX = 16,
    RING_BLAME_TEXT_SIZE_MAX = 48,
};

/* For experiments only: what is left out, to see the checkers find it. */
enum ring_breakage { RING_WHOLE, RING_BREAK_PADDING };

/* 0 stands for the default in parentheses. */
struct ring_config {
    struct peer self;     /* as others reach it */
    uint8_t vnodes_count; /* (1) virtual nodes */
    uint8_t first_index;  /* of them; if another node behind our address has one of them: taken.c */
    bool is_first_fixed;  /* then no others are taken instead */
    uint8_t list_size;    /* (8) r, by the charter: the same on all nodes; with 1 no death is survived */
    uint8_t copies;       /* (3) nodes that hold a key, by the charter: for RING_HELD */
    uint8_t charter[RING_CHARTER_SIZE]; /* digest of what all nodes must share */
    uint32_t table_capacity;            /* (20,000) places that we may have heard of */
    uint32_t lookups_max;               /* (1,024) at once */
    uint64_t stabilize_us;              /* (10 s) between two rounds at rest; faster after changes */
    uint64_t heal_us;                   /* (120 s) between two questions to remembered places */
    uint64_t seed;                      /* secret: tokens come from it, too */
    bool is_light;                      /* it asks, and is no part of the ring: light.c */
    enum ring_breakage breakage;
};

/* EVENT_COMMAND: event.code. Bytes as said, in terms of base/wire.h. */
enum ring_command {
    RING_JOIN, /* bytes: ring_write_contacts(); none: a new ring. While a member: to find lost parts of the
                  ring */
    RING_FIND, /* number: the caller's; bytes: key (16), how many places are wanted (1) */
};

/* ACTION_NOTICE: action.code. A place is written as ring_read_vnode() reads it. */
enum ring_notice {
    RING_MEMBER, /* bytes: 1 or 0: we are part of a ring now, or no longer; a light node: it reaches one */
    RING_ARC,    /* bytes: our index (1), from (16), to (16): keys in (from, to] are ours from now on */
    RING_FOUND,  /* bytes: number as in RING_FIND (u64), hops (1), count (1), places: the owner, successors */
    RING_LOST,   /* bytes: number (u64), 0, 0: no answer could be had */
    RING_REFUSED, /* bytes: enum ring_reason (1), by us (0) or by it (1), place */
    RING_BLAMED,  /* bytes: place, text: what it sent makes no sense */
    RING_HELD,    /* as RING_ARC: copies of the keys in (from, to] are ours to hold from now on */
    RING_GONE,    /* bytes: our index (1): this place has no arc any more, neither its own nor a held one */
    RING_TAKEN, /* bytes: our index (1), the first that we take instead (1; RING_VIRTUAL_MAX: none, and we do
                   nothing until RING_JOIN), place of the node that has it */
};

enum err ring_new(const struct ring_config *config, struct ring **ret_ring) MUST_CHECK;
void ring_free(struct ring *ring);
void ring_step(struct ring *ring, const struct event *event, struct outbox *out);

/* What one step can append. */
size_t ring_actions_max(const struct ring_config *config);
size_t ring_memory_size(const struct ring_config *config);

/* The bytes of RING_JOIN: one peer after the other, into memory of STEP_MESSAGE_SIZE_MAX; at most 16. */
struct bytes ring_write_contacts(const struct peer *peers, size_t peers_count, void *memory);

/* One place of a notice. Bytes of our own making: a failure is in the reader. */
void ring_read_vnode(const struct ring *ring, struct wire_reader *reader, struct vnode *ret_vnode);

/* ---- for `mnemon ring status`, read-only ---- */

enum ring_mode { RING_IDLE, RING_JOINING, RING_SMALL, RING_CHORD, RING_LIGHT };

struct ring_counters {
    uint64_t received_count;
    uint64_t malformed_count; /* no message at all */
    uint64_t foreign_count;   /* other version or charter */
    uint64_t unasked_count;   /* answers nobody waits for: late, replayed or forged */
    uint64_t challenged_count;
    uint64_t silent_count; /* questions given up */
    uint64_t lookups_count;
    uint64_t from_table_count; /* of them, answered at once */
    uint64_t lost_count;
    uint64_t hops_count; /* of all lookups */
    uint64_t blamed_count;
    uint64_t flood_count; /* notifies above what one peer may send */
};

struct ring_blame {
    struct vnode who;
    uint64_t at_us;
    uint32_t count;
    char text[RING_BLAME_TEXT_SIZE_MAX];
};

/* What is known of another place. */
struct ring_known {
    struct vnode vnode;
    uint64_t heard_at_us;   /* its own last answer; 0: only heard of */
    uint32_t round_trip_us; /* 0: not measured */
    uint8_t misses_count;   /* unanswered since */
};

enum ring_mode ring_mode(const struct ring *ring);
const struct ring_counters *ring_counters(const struct ring *ring);
const struct ring_blame *ring_blames(const struct ring *ring, uint32_t *ret_count);

uint8_t ring_vnodes_count(const struct ring *ring);
uint8_t ring_list_size(const struct ring *ring);
const struct vnode *ring_vnode_at(const struct ring *ring, uint8_t vnode);
bool ring_is_member(const struct ring *ring, uint8_t vnode);
const struct vnode *ring_predecessor(const struct ring *ring, uint8_t vnode);

/* An entry of the successor list; port 0: padding for one that died. */
const struct vnode *ring_successor(const struct ring *ring, uint8_t vnode, uint8_t position);

/* Fingers from the farthest; false at the end. *cursor starts at 0. */
bool ring_next_finger(const struct ring *ring, uint8_t vnode, uint32_t *cursor, struct ring_known *ret_known);

/* All we have heard of, by ID. */
uint32_t ring_known_count(const struct ring *ring);
struct ring_known ring_known_at(const struct ring *ring, uint32_t position);
bool ring_know(const struct ring *ring, struct ring_id id, struct ring_known *ret_known);

/* All places of a small ring, in order, ours among them: all of its nodes have the same. 0: this is none. */
enum { RING_CIRCLE_MAX = (RING_LIST_MAX + 1) * RING_VIRTUAL_MAX };
size_t ring_circle(const struct ring *ring, struct vnode out[RING_CIRCLE_MAX]);

/* Another number whenever they may have changed: each costs a SHA-256. */
uint64_t ring_circle_generation(const struct ring *ring);

/* Places in the whole ring: exact if our lists go round, else from their density. */
uint64_t ring_estimated_size(const struct ring *ring);

/*
 * The keys in (from, to] are those for which this place is the one of ours among the `copies` holders; from
 * equal to to: all keys. What our place before it holds is not counted twice. False if it is not known
 * yet: the place is no member, or has not learnt which node is so far before it.
 */
bool ring_held_arc(const struct ring *ring, uint8_t vnode, unsigned copies, struct ring_id *ret_from,
                   struct ring_id *ret_to);

/* ---- for experiments and tests only ---- */

/* Start as a settled member: r successors, the predecessor, and what else is known (fingers among it). */
void ring_install_for_experiment(struct ring *ring, const struct vnode *list, const struct vnode *predecessor,
                                 const struct vnode *known, size_t known_count, uint64_t now_us);

/* Is somebody's state asked for, so that an answer may be on its way? */
bool ring_is_asking_for_experiment(const struct ring *ring, struct address *ret_whom);

#endif
