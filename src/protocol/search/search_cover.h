/*
 * search_cover - which nodes are asked in a search over the ring, so that their answers cover all of it, and
 * which parts nobody has answered for. Pure.
 *
 *      arcs of the ring, each with its holders ──> search_cover_choose(): ask this node
 *                                                        │
 *            search_cover_take()  <── it answers ────────┤   the arcs that it names are whole, or behind
 *            search_cover_fail()  <── it does not ───────┤   its arcs are open again: other holders
 *            search_cover_wait()  <── it takes long ─────┘   the same, but its answer still counts
 *
 * The node that holds most of what is open is asked next, among equals one at random, so that no node is
 * asked each time, and one that lies hides its arcs from some searches only. So R holders of an arc cost one
 * question, unless one is silent or is not sure that it has everything.
 *
 * A node is believed only of arcs that it holds by the ring as it is known here.
 *
 * An arc is whole if a node that answered was compared as its holder and has read all that it has; behind if
 * nodes answered for it but none of them can say that; missing if nobody answered.
 */
#ifndef MNEMON_PROTOCOL_SEARCH_SEARCH_COVER_H
#define MNEMON_PROTOCOL_SEARCH_SEARCH_COVER_H

#include "base/prng.h"
#include "protocol/copies/holders_arc.h"
#include "protocol/search/search_code.h"

enum { SEARCH_COVER_HOLDERS_MAX = HOLDERS_MAX };

enum search_cover_node_state {
    SEARCH_COVER_IDLE,
    SEARCH_COVER_ASKED,
    SEARCH_COVER_WAITED, /* asked, and others are asked in its place */
    SEARCH_COVER_ANSWERED,
    SEARCH_COVER_FAILED, /* with a reason */
};

enum search_cover_reason {
    SEARCH_COVER_NO_REASON,
    SEARCH_COVER_UNABLE,  /* has no search over the ring */
    SEARCH_COVER_UNKNOWN, /* has not said yet whether it has */
    SEARCH_COVER_SILENT,  /* cannot be reached, or did not answer in time */
    SEARCH_COVER_BUSY,    /* said so */
    SEARCH_COVER_FALSE,   /* answered what is no answer */
    SEARCH_COVER_NOT_NOW, /* could not search, or has no index */
    SEARCH_COVER_UNASKED, /* more nodes would be needed than are asked */
    SEARCH_COVER_REASONS_COUNT,
};

struct search_cover_node {
    struct peer peer;
    enum search_cover_node_state state;
    enum search_cover_reason reason;
    uint64_t left_count;
    bool lacks_volumes;
};

enum search_cover_arc_state { SEARCH_COVER_MISSING, SEARCH_COVER_BEHIND, SEARCH_COVER_WHOLE };

struct search_cover_arc {
    struct ring_id from;
    struct ring_id to;
    enum search_cover_arc_state state;
    uint8_t holders_count;
    uint16_t holders[SEARCH_COVER_HOLDERS_MAX]; /* indexes of nodes */
};

/* All memory is the caller's. */
struct search_cover {
    struct search_cover_node *nodes;
    size_t nodes_count;
    size_t nodes_max; /* at most UINT16_MAX */
    struct search_cover_arc *arcs;
    size_t arcs_count;
    size_t arcs_max;
    double *weights; /* nodes_max: work space */
    struct prng prng;
};

struct search_cover_config {
    struct search_cover_node *nodes;
    double *weights;
    size_t nodes_max;
    struct search_cover_arc *arcs;
    size_t arcs_max;
    uint64_t seed; /* of the choice among equals */
};

void search_cover_init(struct search_cover *cover, const struct search_cover_config *config);

/* Of the ring as it is known; an arc or a node for which there is no room is left out. */
void search_cover_add(struct search_cover *cover, const struct holders_arc *arc);

/* The index of the node; nodes_count if there is none. */
size_t search_cover_find(const struct search_cover *cover, const struct peer *peer);

/* The node to be asked now, which then counts as asked. False: nothing is open that anybody could answer. */
bool search_cover_choose(struct search_cover *cover, size_t *ret_node);

/* A checked answer came. */
void search_cover_take(struct search_cover *cover, size_t node, struct bytes answer);

/* The same of what was found here: a node that has everything need ask no other. */
void search_cover_take_own(struct search_cover *cover, size_t node, const struct search_code_head *head,
                           const struct search_code_arc *arcs);

void search_cover_fail(struct search_cover *cover, size_t node, enum search_cover_reason reason);
void search_cover_wait(struct search_cover *cover, size_t node);

/* Shares of the ring, 0 to 1, and numbers of arcs. */
struct search_cover_sum {
    double whole;
    double behind;
    double missing;
    size_t arcs_count;
    size_t whole_count;
    size_t behind_count;
    size_t missing_count;
    size_t asked_count; /* nodes, this one among them */
    size_t answered_count;
};

void search_cover_sum(const struct search_cover *cover, struct search_cover_sum *ret_sum);

/* Into cover->weights, until the next choice: which share of the ring is in this state and held by each node.
 */
void search_cover_weigh(struct search_cover *cover, enum search_cover_arc_state state);

/* Likewise of all that is not whole: a node without a share need not be waited for. */
void search_cover_weigh_open(struct search_cover *cover);

/* "does not answer", as the end of a sentence that begins with the node. */
const char *search_cover_reason_text(enum search_cover_reason reason);

#endif
