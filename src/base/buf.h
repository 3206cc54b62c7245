/*
 * buf - a byte buffer that grows, up to a maximum that its owner states.
 *
 * Every buffer that outside input can make grow has a size_max. The first failure (ERR_LIMIT, ERR_MEMORY)
 * sticks: later puts do nothing and return it again, what was put before stays readable. So a writer may
 * put many times and check once, with buf->err.
 *
 * The buffer owns its memory; buf_bytes() borrows it until the next put or buf_done().
 */
#ifndef MNEMON_BASE_BUF_H
#define MNEMON_BASE_BUF_H

#include "base/bytes.h"
#include "base/err.h"

struct buf {
    uint8_t *data; /* NULL until the first put */
    size_t size;
    size_t capacity;
    size_t size_max;
    enum err err;
};

void buf_init(struct buf *buf, size_t size_max);
void buf_done(struct buf *buf);

/* Empty again, error forgotten, memory kept for reuse. */
void buf_clear(struct buf *buf);

/* Make room for `count` more bytes, so that the caller may write them at data + size and raise size. */
enum err buf_reserve(struct buf *buf, size_t count);

enum err buf_put(struct buf *buf, struct bytes bytes);
enum err buf_put_byte(struct buf *buf, uint8_t byte);
enum err buf_put_string(struct buf *buf, const char *string);
enum err buf_put_format(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
enum err buf_put_u64(struct buf *buf, uint64_t value); /* decimal */

static inline struct bytes buf_bytes(const struct buf *buf) {
    return (struct bytes){buf->data, buf->size};
}

/* The contents as a C string; the zero byte is not part of the size. NULL after a failure. */
const char *buf_string(struct buf *buf);

/* Drop all but the first `size` bytes. */
void buf_truncate(struct buf *buf, size_t size);

/* Drop the first `count` bytes and move the rest to the front. */
void buf_consume(struct buf *buf, size_t count);

#endif
