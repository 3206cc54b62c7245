/*
 * sink - where written bytes go: a buffer, a file, or the store's own file system below this interface.
 *
 * A sink appends. It takes all of the bytes or fails; after a failure part of them may be there, and the
 * owner cuts the file back to what it knows to be whole. Some can also write again what they have, for
 * formats whose headers say what follows them.
 */
#ifndef MNEMON_BASE_SINK_H
#define MNEMON_BASE_SINK_H

#include "base/buf.h"

struct sink {
    enum err (*append)(struct sink *sink, struct bytes bytes, struct err_detail *detail);
    /* Over bytes that were appended, counted from the first of them. NULL if that is not possible. */
    enum err (*rewrite)(struct sink *sink, uint64_t offset, struct bytes bytes, struct err_detail *detail);
};

static inline enum err sink_append(struct sink *sink, struct bytes bytes, struct err_detail *detail) {
    return sink->append(sink, bytes, detail);
}

static inline bool sink_can_rewrite(const struct sink *sink) {
    return sink->rewrite != NULL;
}

static inline enum err sink_rewrite(struct sink *sink, uint64_t offset, struct bytes bytes,
                                    struct err_detail *detail) {
    return sink->rewrite(sink, offset, bytes, detail);
}

/* Into a buffer of the caller's. */
struct sink_buf {
    struct sink sink; /* first: the function finds the rest from here */
    struct buf *buf;
    size_t start; /* of what this sink has appended */
};

void sink_buf_init(struct sink_buf *into, struct buf *buf);

/* Into an open file at its current position; the descriptor stays the caller's. A pipe cannot rewrite. */
struct sink_file {
    struct sink sink; /* first */
    int descriptor;
    uint64_t start;
};

void sink_file_init(struct sink_file *file, int descriptor);

#endif
