/*
 * tape - bytes that come by pieces, seen as one run from where the reader is.
 *
 *      piece 1          piece 2
 *      ...........abc   de.............
 *                 `------------------'   the view: "abc" was copied, "de…" follows it
 *
 * The view lies in the caller's piece itself, without a copy, until something reaches over the end of a
 * piece: then that something is held in a buffer, as much of the next piece is put behind it as it takes, and
 * the view returns to the piece as soon as what was held is consumed. Positions are relative to the view, so
 * they stay true when it moves; a pointer into it holds until the next call.
 */
#ifndef MNEMON_WEB_HTML_TAPE_H
#define MNEMON_WEB_HTML_TAPE_H

#include "base/buf.h"

struct tape {
    struct bytes view; /* what is not consumed, as far as it is in one run */
    uint64_t offset;   /* of the view in the stream */
    struct bytes piece;
    struct buf held;
    size_t held_from; /* start of the view in held */
    size_t before;    /* how much of the view is from earlier pieces */
    size_t copied;    /* how much of the piece is in held */
    bool is_held;
    bool has_ended; /* tape_end() was called */
    bool is_last;   /* the view is all that is left */
};

/* size_max: the largest view that the reader will ever ask to hold. */
void tape_init(struct tape *tape, size_t size_max);
void tape_done(struct tape *tape);

/* An empty stream again; memory is kept. */
void tape_start(struct tape *tape);

/* The next piece, borrowed until tape_more() returns false. The one before must be used up. */
void tape_feed(struct tape *tape, struct bytes piece);

/* There are no more pieces. */
static inline void tape_end(struct tape *tape) {
    tape->has_ended = true;
}

/*
 * Make the view longer, or set is_last. False if that takes another piece; what is not consumed is then held
 * and the piece is the caller's again. If memory ran out, tape->held.err is set as well and the stream is
 * lost.
 */
bool tape_more(struct tape *tape);

/* tape_consume() for a view that is held. */
void tape_consume_held(struct tape *tape, size_t count);

static inline void tape_consume(struct tape *tape, size_t count) {
    if (tape->is_held) {
        tape_consume_held(tape, count);
        return;
    }
    tape->offset += count;
    tape->view = bytes_skip(tape->view, count);
}

#endif
