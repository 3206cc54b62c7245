/*
 * sink - where written bytes go: a buffer, a file, or the store's own file system below this interface.
 *
 * A sink only ever appends. It takes all of the bytes or fails; after a failure part of them may be there,
 * and the owner cuts the file back to what it knows to be whole.
 */
#ifndef MNEMON_WARC_SINK_H
#define MNEMON_WARC_SINK_H

#include "base/buf.h"

struct sink {
    enum err (*append)(struct sink *sink, struct bytes bytes, struct err_detail *detail);
};

static inline enum err sink_append(struct sink *sink, struct bytes bytes, struct err_detail *detail) {
    return sink->append(sink, bytes, detail);
}

/* Into a buffer of the caller's. */
struct sink_buf {
    struct sink sink; /* first: the function finds the rest from here */
    struct buf *buf;
};

void sink_buf_init(struct sink_buf *into, struct buf *buf);

/* Into an open file at its current position; the descriptor stays the caller's. */
struct sink_file {
    struct sink sink; /* first */
    int descriptor;
};

void sink_file_init(struct sink_file *file, int descriptor);

#endif
