/*
 * window - the part of a source that is in memory: a buffer that slides over a file.
 *
 *      file     ....................[ consumed | ready | free ]....................
 *                                   ^offset    ^from   ^to    ^capacity
 *
 * One allocation at window_init(), none later. Callers look at what is ready, consume what they used and fill
 * when they need more.
 */
#ifndef MNEMON_WARC_WINDOW_H
#define MNEMON_WARC_WINDOW_H

#include "base/source.h"

struct window {
    struct source *source; /* borrowed; NULL until window_open() */
    uint8_t *data;
    size_t capacity;
    size_t from;
    size_t to;
    uint64_t offset; /* of data[0] in the file */
    bool is_at_end;  /* nothing follows what is ready */
};

enum err window_init(struct window *window, size_t capacity) MUST_CHECK;
void window_done(struct window *window);

/* Start over with another source. */
void window_open(struct window *window, struct source *source);

/*
 * Make at least `wanted` bytes ready, or all there are if the file ends before. May move what is ready.
 * wanted is at most the capacity.
 */
enum err window_fill(struct window *window, size_t wanted, struct err_detail *detail) MUST_CHECK;

static inline struct bytes window_ready(const struct window *window) {
    return bytes_of(window->data + window->from, window->to - window->from);
}

static inline void window_consume(struct window *window, size_t count) {
    ASSERT(count <= window->to - window->from);
    window->from += count;
}

/* The offset, in the file, of the first byte that is ready. */
static inline uint64_t window_offset(const struct window *window) {
    return window->offset + window->from;
}

/*
 * Consume `count` bytes, ready or not; by seeking if that is possible. *ret_is_whole is false if the
 * file ends before.
 */
enum err window_skip(struct window *window, uint64_t count, bool *ret_is_whole,
                     struct err_detail *detail) MUST_CHECK;

/* Go to an offset of the file. ERR_UNSUPPORTED if it is no longer ready and the source only goes forward.
 */
enum err window_seek(struct window *window, uint64_t offset, struct err_detail *detail) MUST_CHECK;

#endif
