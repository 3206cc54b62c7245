/* ring_shelf_walk_state - what ring_shelf_walk.c and ring_shelf_lane.c share. Private to them. */
#ifndef MNEMON_NODE_RING_SHELF_WALK_STATE_H
#define MNEMON_NODE_RING_SHELF_WALK_STATE_H

#include "node/ring_shelf_state.h"

enum { RING_SHELF_KEY_SIZE_MAX = INDEX_SURT_SIZE_MAX + 16 };

/* The walk over one node. */
struct ring_shelf_lane {
    struct ring_shelf_question ask; /* its answer is the page */
    struct wire_reader reader;
    bool has_page;
    bool is_last;           /* there is no page behind this one */
    struct buf bound;       /* from, or to in reverse, of the next page */
    struct buf key;         /* of `capture`, without its location: they must come in order */
    struct capture capture; /* the next that it has */
};

/* One of the captures of a SURT and a time. */
struct ring_shelf_member {
    uint64_t number;
    struct ringkey key;
    struct capture capture; /* its URL and type are in the text of the group */
    struct peer from;
};

struct ring_shelf_cursor {
    struct shelf_cursor cursor; /* first */
    struct ring_shelf *shelf;
    struct buf from;
    struct buf to;
    bool in_reverse;
    bool is_partial;
    uint32_t page_count;
    struct ring_shelf_lane **lanes; /* a heap: the first has the next capture */
    size_t lanes_count;
    struct peer spares[RING_SHELF_HOLDERS_MAX]; /* holders that could go on instead of the only lane's */
    size_t spares_count;
    struct ring_shelf_member *group; /* given from group_next on */
    size_t group_count;
    size_t group_next;
    struct buf text; /* of the group: the SURT, then URLs and types */
    struct buf key;  /* work */
    enum err err;    /* stays */
};

/* ring_shelf_lane.c. From the start of the walk; NULL: out of memory. */
struct ring_shelf_lane *ring_shelf_lane_new(const struct ring_shelf_cursor *cursor, const struct peer *peer);
void ring_shelf_lane_free(struct ring_shelf_lane *lane);

/* Write the question for its next page. */
enum err ring_shelf_lane_question(const struct ring_shelf_cursor *cursor,
                                  struct ring_shelf_lane *lane) MUST_CHECK;

/* Its answer has come. */
void ring_shelf_lane_begin(struct ring_shelf_lane *lane);

/* Until it has its next capture, which may take another page. ERR_NOT_FOUND: it has none. */
enum err ring_shelf_lane_advance(struct ring_shelf_cursor *cursor, struct ring_shelf_lane *lane) MUST_CHECK;

#endif
