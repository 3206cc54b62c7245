/*
 * Arbitrary questions and answers of keeping together.
 *
 *      input   u8 which, u8 count of keys (of answers), message
 *
 * Held to: what is taken comes out again as the same bytes; counts are within their bounds.
 */
#include "fuzz.h"

#include "../copies-put.h"

enum { OUT_SIZE_MAX = 256 << 10 };

static void feed_arc(struct bytes message, struct buf *out) {
    struct ring_id from;
    struct ring_id to;
    struct bytes rest;
    if (copies_read_arc(message, &from, &to, &rest, NULL) == ERR_OK) {
        buf_put_copies_arc(out, from, to);
        buf_put(out, rest);
        ASSERT(bytes_equal(buf_bytes(out), message));
    }
}

static void feed_keys(struct bytes message, struct buf *out) {
    static struct ringkey keys[COPIES_KEYS_MAX];
    struct copies_keys read;
    if (copies_read_keys(message, &read, NULL) == ERR_OK) {
        ASSERT(read.count <= COPIES_KEYS_MAX);
        for (size_t i = 0; i < read.count; i++) {
            keys[i] = copies_keys_at(&read, i);
        }
        buf_put_copies_keys(out, keys, read.count);
        ASSERT(bytes_equal(buf_bytes(out), message));
    }
}

static void feed_bits(struct bytes message, size_t count, unsigned width, struct buf *out) {
    uint8_t values[UINT8_MAX];
    if (copies_read_bits(message, count, width, values, NULL) == ERR_OK) {
        buf_put_copies_bits(out, values, count, width);
        ASSERT(bytes_equal(buf_bytes(out), message));
    }
}

static void feed_challenge(struct bytes message, struct buf *out) {
    struct copies_challenge challenge;
    if (copies_read_challenge(message, &challenge, NULL) == ERR_OK) {
        ASSERT(challenge.size <= COPIES_PROVE_SIZE_MAX);
        buf_put_copies_challenge(out, &challenge);
        ASSERT(bytes_equal(buf_bytes(out), message));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2 || size > OUT_SIZE_MAX) {
        return 0;
    }
    struct buf out;
    struct bytes message = bytes_of(data + 2, size - 2);
    buf_init(&out, OUT_SIZE_MAX);
    switch (data[0] % 5) {
    case 0:
        feed_arc(message, &out);
        break;
    case 1:
        feed_keys(message, &out);
        break;
    case 2:
        feed_bits(message, data[1], 1, &out);
        break;
    case 3:
        feed_bits(message, data[1], 2, &out);
        break;
    default:
        feed_challenge(message, &out);
        break;
    }
    buf_done(&out);
    return 0;
}
