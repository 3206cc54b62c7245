/* copies-put - messages of protocol/copies/copies_code.h, appended to a buffer that grows. */
#ifndef MNEMON_TESTS_COPIES_PUT_H
#define MNEMON_TESTS_COPIES_PUT_H

#include "base/buf.h"
#include "protocol/copies/copies_code.h"

/* Room for so many bytes behind what is there; copies_put_end() takes what was written. */
static inline struct wire_writer copies_put_begin(struct buf *out, size_t size) {
    struct wire_writer writer;
    bool has_room = size > 0 && buf_reserve(out, size) == ERR_OK;
    wire_writer_init(&writer, has_room ? out->data + out->size : NULL, has_room ? size : 0);
    return writer;
}

static inline void copies_put_end(struct buf *out, const struct wire_writer *writer) {
    out->size += writer->size;
}

static inline void buf_put_copies_arc(struct buf *out, struct ring_id from, struct ring_id to) {
    struct wire_writer writer = copies_put_begin(out, COPIES_COMPARE_HEAD_SIZE);
    copies_put_arc(&writer, from, to);
    copies_put_end(out, &writer);
}

static inline void buf_put_copies_keys(struct buf *out, const struct ringkey *keys, size_t count) {
    struct wire_writer writer = copies_put_begin(out, WIRE_VARINT_SIZE_MAX + count * RINGKEY_SIZE);
    copies_put_keys(&writer, keys, count);
    copies_put_end(out, &writer);
}

static inline void buf_put_copies_bits(struct buf *out, const uint8_t *values, size_t count, unsigned width) {
    struct wire_writer writer = copies_put_begin(out, count);
    copies_put_bits(&writer, values, count, width);
    copies_put_end(out, &writer);
}

static inline void buf_put_copies_challenge(struct buf *out, const struct copies_challenge *challenge) {
    struct wire_writer writer =
        copies_put_begin(out, COPIES_NONCE_SIZE + RINGKEY_SIZE + 2 * WIRE_VARINT_SIZE_MAX);
    copies_put_challenge(&writer, challenge);
    copies_put_end(out, &writer);
}

#endif
