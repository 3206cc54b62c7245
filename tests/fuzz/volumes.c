/*
 * volumes - any bytes as what volume servers and their clients send each other. The first byte says what they
 * claim to be; whatever is read must be written as the same bytes again.
 */
#include "fuzz.h"

#include "store/remote/backend_code.h"
#include "store/remote/pack_payload.h"

enum { KINDS_COUNT = 10, UNPACKED_SIZE_MAX = 1 << 20, WRITTEN_SIZE_MAX = 4 << 20 };

static void check_claims(struct bytes input, struct buf *out) {
    static struct document_sum claims[BACKEND_CODE_CLAIMS_MAX];
    struct wire_reader reader;
    wire_reader_init(&reader, input);
    size_t count = backend_code_begin_claims(&reader);
    for (size_t i = 0; i < count; i++) {
        backend_code_next_claim(&reader, &claims[i]);
    }
    if (wire_reader_finish(&reader, NULL) == ERR_OK) {
        backend_code_put_claims(out, claims, count);
        ASSERT(bytes_equal(buf_bytes(out), input));
    }
}

static void check_answers(struct bytes input, struct buf *out) {
    bool holds[11];
    if (backend_code_read_answers(input, holds, 11, NULL) == ERR_OK) {
        backend_code_put_answers(out, holds, 11);
        ASSERT(bytes_equal(buf_bytes(out), input));
    }
}

static void check_document(struct bytes input, struct buf *out) {
    struct backend_code_document read;
    if (backend_code_read_document(input, &read, NULL) != ERR_OK) {
        return;
    }
    struct document document = read.document;
    document.body = bytes_of(NULL, (size_t)read.sum.size); /* only its size is looked at */
    document.sum = &read.sum;
    enum err err = backend_code_put_meta(out, &document, read.mode, read.form);
    ASSERT(err == ERR_OK);
    buf_put(out, read.body);
    ASSERT(bytes_equal(buf_bytes(out), input));
}

static void check_stored(struct bytes input, struct buf *out) {
    struct stored stored;
    if (backend_code_read_stored(input, &stored, NULL) == ERR_OK) {
        backend_code_put_stored(out, &stored);
        ASSERT(bytes_equal(buf_bytes(out), input));
    }
}

static void check_block(struct bytes input, struct buf *out) {
    struct block block;
    if (backend_code_read_block(input, &block, NULL) == ERR_OK) {
        backend_code_put_block(out, &block);
        ASSERT(bytes_equal(buf_bytes(out), input));
    }
}

static void check_walk(struct bytes input, struct buf *out) {
    struct backend_code_walk walk;
    if (backend_code_read_walk(input, &walk, NULL) == ERR_OK) {
        enum err err = backend_code_put_walk(out, &walk);
        ASSERT(err == ERR_OK && bytes_equal(buf_bytes(out), input));
    }
}

static void check_captures(struct bytes input, struct buf *out) {
    struct wire_reader reader;
    struct capture capture;
    struct backend_code_page_end end;
    enum err err;
    wire_reader_init(&reader, input);
    while ((err = backend_code_next_capture(&reader, &capture, &end, NULL)) == ERR_OK) {
        backend_code_put_capture(out, &capture, BACKEND_CODE_FLAGS_ALL);
    }
    if (err == ERR_NOT_FOUND) {
        backend_code_put_page_end(out, &end);
        ASSERT(bytes_equal(buf_bytes(out), input));
    }
}

static void check_blocks(struct bytes input, struct buf *out) {
    struct wire_reader reader;
    struct key key;
    struct block block;
    struct backend_code_page_end end;
    enum err err;
    wire_reader_init(&reader, input);
    while ((err = backend_code_next_block(&reader, &key, &block, &end, NULL)) == ERR_OK) {
        backend_code_put_key_block(out, &key, &block);
    }
    if (err == ERR_NOT_FOUND) {
        backend_code_put_page_end(out, &end);
        ASSERT(bytes_equal(buf_bytes(out), input));
    }
}

static void check_stat(struct bytes input, struct buf *out) {
    struct volume_stat stat;
    if (backend_code_read_stat(input, &stat, NULL) == ERR_OK) {
        backend_code_put_stat(out, &stat);
        ASSERT(bytes_equal(buf_bytes(out), input));
    }
}

/* Whatever was packed comes out again, packed or not. */
static void check_packing(struct pack_payload *pack_payload, struct bytes input) {
    struct scratch packed;
    struct scratch plain;
    struct bytes frame;
    struct bytes again;
    bool is_packed;
    scratch_init(&packed, "/tmp", WRITTEN_SIZE_MAX, UINT64_MAX);
    scratch_init(&plain, "/tmp", WRITTEN_SIZE_MAX, UINT64_MAX);
    enum err err = pack_payload_put(pack_payload, input, &packed, &is_packed);
    ASSERT(err == ERR_OK && scratch_bytes(&packed, &frame) == ERR_OK);
    if (is_packed) {
        err = pack_payload_unpack(pack_payload, frame, WRITTEN_SIZE_MAX, &plain, NULL);
        ASSERT(err == ERR_OK && scratch_bytes(&plain, &again) == ERR_OK && bytes_equal(again, input));
    } else {
        ASSERT(bytes_equal(frame, input));
    }
    scratch_done(&packed);
    scratch_done(&plain);
}

/* As often as it takes to be large. */
static void check_large_packing(struct pack_payload *pack_payload, struct bytes input) {
    struct buf large;
    buf_init(&large, WRITTEN_SIZE_MAX);
    while (input.size > 0 && large.size + input.size < UNPACKED_SIZE_MAX * 3) {
        buf_put(&large, input);
    }
    check_packing(pack_payload, buf_bytes(&large));
    buf_done(&large);
}

/* Frames have no one form; but never more comes out than allowed. */
static void check_frame(struct bytes input, struct buf *out) {
    (void)out;
    struct pack_payload pack_payload;
    struct scratch plain;
    if (pack_payload_init(&pack_payload) != ERR_OK) {
        return;
    }
    scratch_init(&plain, "/tmp", UNPACKED_SIZE_MAX, UINT64_MAX);
    enum err err = pack_payload_unpack(&pack_payload, input, UNPACKED_SIZE_MAX, &plain, NULL);
    ASSERT(plain.size <= UNPACKED_SIZE_MAX && (err != ERR_OK || plain.err == ERR_OK));
    scratch_done(&plain);
    check_packing(&pack_payload, input);
    if (input.size > 0 && input.data[0] == 'L') {
        check_large_packing(&pack_payload, input);
    }
    pack_payload_done(&pack_payload);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static void (*const checks[KINDS_COUNT])(struct bytes input, struct buf * out) = {
        check_claims, check_answers,  check_document, check_stored, check_block,
        check_walk,   check_captures, check_blocks,   check_frame,  check_stat,
    };
    if (size == 0) {
        return 0;
    }
    struct buf out;
    buf_init(&out, WRITTEN_SIZE_MAX);
    checks[data[0] % KINDS_COUNT](bytes_of(data + 1, size - 1), &out);
    buf_done(&out);
    return 0;
}
