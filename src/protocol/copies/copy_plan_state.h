/*
 * copy_plan_state - what is inside struct copy_plan. One machine in several files, 1,100 lines in all:
 * copy_plan.c chooses the next task and takes its outcome; copy_plan_pieces.c knows which node should have
 * which piece of the ring, and which pieces others claim.
 *
 * That a node is silent, full or false is a matter of one piece of the ring here and not of the node
 * (base/standing.h): it is forgotten with the piece, and decides who is chosen for it.
 */
#ifndef MNEMON_PROTOCOL_COPIES_COPY_PLAN_STATE_H
#define MNEMON_PROTOCOL_COPIES_COPY_PLAN_STATE_H

#include "base/prng.h"
#include "base/retry.h"
#include "protocol/copies/copy_plan.h"

enum { COPY_PLAN_LEFT_MAX = 32, COPY_PLAN_OPEN_MAX = 32 };

/* An arc is looked at with one node from its start to its end: in one comparison, or in several if there
 * is more missing than can be taken at once. */
struct copy_plan_pass {
    bool has_rest;
    bool is_turned;       /* it began inside of the arc: what is before that was not looked at */
    bool is_owed;         /* there was no whole one yet */
    struct ringkey rest;  /* everything before it was looked at, or left out */
    uint64_t here_count;  /* missing, as far as this pass has got */
    uint64_t there_count; /* likewise */
    uint64_t last_count;  /* missing on either side, in the whole pass before */
    uint32_t stuck_count; /* comparisons in a row that got no further */
    uint32_t idle_count;  /* whole passes in a row that found as much as the one before */
};

struct copy_plan_node {
    struct peer peer;
    bool is_listed; /* among the nodes that follow us now */
    bool is_chosen; /* to have a copy */
    bool is_complete;
    bool is_touched;        /* during a task: something changed since it began */
    bool is_full;           /* until barred_until_us */
    bool is_false;          /* likewise */
    uint64_t away_since_us; /* 0: it is listed */
    uint64_t barred_until_us;
    uint64_t compared_at_us;
    uint64_t began_us;     /* the pass that is under way */
    uint64_t unproven_us;  /* it may lack what came before that: only a whole pass that begins later tells */
    uint64_t compare_us;   /* when next */
    uint64_t challenge_us; /* when next */
    uint64_t missing_here_count;
    uint64_t missing_there_count;
    bool is_doubted; /* copy_plan_doubt(), since the last comparison */
    uint32_t silent_count;
    uint64_t silent_us; /* the last time */
    struct copy_plan_pass pass;
    uint32_t failed_count;
    uint32_t lost_count; /* challenges in a row to which it said that it has lost the key */
};

struct copy_plan_piece {
    struct ring_id anchor; /* our place: the end of the own arc that it is a part of */
    struct ring_id from;
    struct ring_id to;
    uint64_t repairing_since_us;
    size_t count;
    struct copy_plan_node
        nodes[COPY_PLAN_MEMBERS_MAX]; /* in the order of the ring, then those that are away */
};

/* The node that was before us when the arcs were last set. */
struct copy_plan_anchor {
    struct ring_id place;
    bool has_predecessor;
    struct peer predecessor;
};

struct copy_plan_left {
    struct ring_id from;
    struct ring_id to;
    uint64_t since_us;
    uint64_t due_us;
    uint32_t silent_count;
    struct copy_plan_pass pass;
};

struct copy_plan_claimed {
    struct peer primary;
    struct ring_id from;
    struct ring_id to;
    uint64_t at_us;
    uint64_t equal_us; /* 0: never */
};

struct copy_plan {
    struct copy_plan_config config;
    struct prng prng;
    struct copy_plan_piece *pieces; /* of one anchor together, the nearest to it first */
    size_t pieces_count;
    struct copy_plan_anchor anchors[RING_VIRTUAL_MAX];
    size_t anchors_count;
    struct copy_plan_claimed *claims;
    size_t claims_count;
    struct copy_plan_left left[COPY_PLAN_LEFT_MAX];
    size_t left_count;
    bool is_handing_on;                   /* a task is open */
    struct peer open[COPY_PLAN_OPEN_MAX]; /* members with which a task is open: each has one at a time */
    size_t open_count;

    uint64_t release_us;           /* when the next round over the ring begins, or goes on */
    struct ring_id release_cursor; /* zero: at its start */
    uint32_t turns_count;          /* tasks of members since a release was looked for */
    bool is_releasing;             /* a task is open */

    uint64_t rate_since_us; /* of the window that is counted */
    uint64_t rate_count;
    uint64_t keys_per_1000_s; /* smoothed; 0: not known */
};

bool copy_plan_is_open(const struct copy_plan *copy_plan, const struct peer *peer);

void copy_plan_pass_restart(struct copy_plan_pass *pass); /* from the start of the arc */

/* With a node that may have little yet: first from a place that is its own, then all of it. Else all that are
 * filled at the same time would have the start of the arc and lack its end. */
void copy_plan_pass_turn(struct copy_plan_pass *pass, const struct peer *peer, struct ring_id from,
                         struct ring_id to);

void copy_plan_leave(struct copy_plan *copy_plan, struct ring_id from, struct ring_id to, uint64_t now_us);

/* copy_plan_pieces.c: who shall have a copy, again, with what is known now. */
void copy_plan_choose(struct copy_plan *copy_plan, struct copy_plan_piece *piece, uint64_t now_us);
void copy_plan_refresh(struct copy_plan *copy_plan, uint64_t now_us); /* of all pieces: time has passed */
struct copy_plan_piece *copy_plan_find_piece(const struct copy_plan *copy_plan, struct ring_id place);

/* The first part of (from, to] that is not ours and that no primary has compared with us since then. */
bool copy_plan_find_unseen(const struct copy_plan *copy_plan, const struct copy_plan_left *left,
                           struct ring_id *ret_from, struct ring_id *ret_to);

#endif
