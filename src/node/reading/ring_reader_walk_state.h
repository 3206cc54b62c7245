/* ring_reader_walk_state - what ring_reader_walk.c and ring_reader_lane.c share. Private to them. */
#ifndef MNEMON_NODE_READING_RING_READER_WALK_STATE_H
#define MNEMON_NODE_READING_RING_READER_WALK_STATE_H

#include "node/reading/ring_reader_state.h"

enum { RING_READER_KEY_SIZE_MAX = INDEX_SURT_SIZE_MAX + 16 };

/* The walk over one node. */
struct ring_reader_lane {
    struct ring_reader_question ask; /* its answer is the page */
    struct wire_reader reader;
    bool has_page;
    bool is_last;           /* there is no page behind this one */
    struct buf bound;       /* from, or to in reverse, of the next page */
    struct buf key;         /* of `capture`, without its location: they must come in order */
    struct capture capture; /* the next that it has */
};

struct ring_reader_cursor {
    struct backend_cursor cursor; /* first */
    struct ring_reader *backend;
    struct buf from;
    struct buf to;
    bool in_reverse;
    bool asks_busy;                      /* those too that said lately that they are busy */
    bool is_counted;                     /* who walks has entered: its pages need not do so again */
    struct ring_reader_listing *listing; /* of one URL; NULL: page by page, by what follows */
    size_t listing_next;
    bool is_partial;
    bool is_denied; /* one who was compared has nothing: unless somebody else has, that is all there is */
    uint32_t page_count;
    struct ring_reader_lane **lanes; /* a heap: the first has the next capture */
    size_t lanes_count;
    struct peer spares[RING_READER_HOLDERS_MAX]; /* holders that could go on instead of the only lane's */
    size_t spares_count;
    struct ring_reader_member *group; /* of one SURT and time, given from group_next on; slices in the text */
    size_t group_count;
    size_t group_next;
    struct buf text; /* of the group: the SURT, then URLs and types */
    struct buf key;  /* work */
    enum err err;    /* stays */
};

/* ring_reader_walk.c: page by page, whatever is known already. */
enum err ring_reader_walk_open(struct backend_session *session, struct bytes from, struct bytes to,
                               bool in_reverse, bool asks_busy,
                               struct ring_reader_cursor **ret_cursor) MUST_CHECK;

/* The next one, until the next call. ERR_NOT_FOUND: there is none; ERR_UNREACHABLE: some were not heard. */
enum err ring_reader_walk_next(struct ring_reader_cursor *cursor,
                               const struct ring_reader_member **ret_member) MUST_CHECK;

/* ring_reader_url.c: likewise, of cursor->listing. */
enum err ring_reader_url_next(struct ring_reader_cursor *cursor,
                              const struct ring_reader_member **ret_member) MUST_CHECK;

/* ring_reader_lane.c. From the start of the walk; NULL: out of memory. */
struct ring_reader_lane *ring_reader_lane_new(const struct ring_reader_cursor *cursor,
                                              const struct peer *peer);
void ring_reader_lane_free(struct ring_reader_lane *lane);

/* Write the question for its next page. */
enum err ring_reader_lane_question(const struct ring_reader_cursor *cursor,
                                   struct ring_reader_lane *lane) MUST_CHECK;

/* Its answer has come. */
void ring_reader_lane_begin(struct ring_reader_lane *lane);

/* Until it has its next capture, which may take another page. ERR_NOT_FOUND: it has none. */
enum err ring_reader_lane_advance(struct ring_reader_cursor *cursor,
                                  struct ring_reader_lane *lane) MUST_CHECK;

#endif
