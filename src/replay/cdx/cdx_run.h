/*
 * cdx_run - the captures that a CDX query asks for, one after the other.
 *
 *      walk over the index ──> page ──> filters ──> collapses ──> caller
 *      (closest: two walks, from the date outwards; captures of exactly the URL first, then those that differ
 *      in scheme or "www.", then the others: a round for each)
 *
 * In reverse the result is exactly that of the forward run turned round: a collapse then keeps the last of
 * its neighbours that comes, which is the first in time. The work of a call is bounded; nothing is collected.
 */
#ifndef MNEMON_REPLAY_CDX_CDX_RUN_H
#define MNEMON_REPLAY_CDX_CDX_RUN_H

#include "replay/cdx/cdx_query.h"
#include "web/url/likeness.h"

/* A capture that outlives the walk. */
struct cdx_kept {
    struct capture capture;
    struct buf bytes;
};

void cdx_kept_init(struct cdx_kept *kept);
void cdx_kept_done(struct cdx_kept *kept);
enum err cdx_kept_set(struct cdx_kept *kept, const struct capture *capture) MUST_CHECK;

struct cdx_stage {
    uint64_t hash; /* of the field in the capture before; 0: there is none */
    size_t flip;
    struct cdx_kept kept[2]; /* in reverse: [flip] may be the last of its neighbours */
};

struct cdx_side {
    struct archive_walk *walk; /* NULL: not yet */
    struct capture capture;    /* the next that it has, if has_capture */
    bool has_capture;
    bool is_over;
};

struct cdx_run {
    struct archive_reader *reader;
    const struct cdx_query *query;
    struct cdx_line line; /* of the capture that was given last: the fields that it was filled with */
    bool in_reverse;
    bool is_over;
    size_t steps_left;        /* of captures to look at */
    struct cdx_side sides[2]; /* the second only for closest: forward in time */
    size_t sides_count;
    struct likeness likeness;                /* for closest: to the URL that was asked for */
    enum likeness_degree degree;             /* of this round */
    bool has_degree[LIKENESS_DEGREES_COUNT]; /* there are captures for such a round */
    uint64_t skip_count;                     /* captures of the pages before */
    uint64_t take_count;                     /* and of this one */
    struct cdx_stage stages[CDX_COLLAPSES_MAX];
    size_t drained_count; /* stages that are empty for good */
};

enum { CDX_STEPS = 256 };

/*
 * All three outlive the run. Goes on behind query->resume_key, if it has one. Does not read yet.
 * ERR_INVALID for a URL or a key that is none.
 */
enum err cdx_run_open(struct cdx_run *run, struct archive *archive, struct archive_reader *reader,
                      const struct cdx_query *query, bool in_reverse, struct err_detail *detail) MUST_CHECK;

/* The same behind a capture, as if it had been given. It is not needed afterwards. */
enum err cdx_run_open_behind(struct cdx_run *run, struct archive *archive, struct archive_reader *reader,
                             const struct cdx_query *query, bool in_reverse, const struct capture *capture,
                             struct err_detail *detail) MUST_CHECK;
void cdx_run_close(struct cdx_run *run);

/*
 * ERR_NOT_FOUND at the end. ERR_BUSY when steps_left, which the caller sets, is used up: call again.
 * ERR_LIMIT if a regular expression is too much work. The capture lasts until the next call.
 */
enum err cdx_run_next(struct cdx_run *run, struct capture *ret_capture, struct err_detail *detail) MUST_CHECK;

/*
 * Append a key that goes on behind the capture that was given last, or, with NULL, behind all that was looked
 * at. ERR_NOT_FOUND if that cannot be told.
 */
enum err cdx_run_key(const struct cdx_run *run, const struct capture *given, struct buf *out) MUST_CHECK;

#endif
