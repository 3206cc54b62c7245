#include "net/frame.h"

_Static_assert(crypto_secretstream_xchacha20poly1305_HEADERBYTES == FRAME_HEADER_SIZE, "libsodium's header");
_Static_assert(crypto_secretstream_xchacha20poly1305_ABYTES == FRAME_OVERHEAD, "libsodium's overhead");

void frame_writer_init(struct frame_writer *writer, const uint8_t key[32],
                       uint8_t header[FRAME_HEADER_SIZE]) {
    crypto_secretstream_xchacha20poly1305_init_push(&writer->state, header, key);
}

size_t frame_write(struct frame_writer *writer, struct bytes contents, bool is_last, uint8_t *out) {
    ASSERT(contents.size <= FRAME_CONTENTS_SIZE_MAX);
    size_t size = contents.size + FRAME_OVERHEAD;
    out[0] = (uint8_t)(size & 0xff);
    out[1] = (uint8_t)(size >> 8);
    crypto_secretstream_xchacha20poly1305_push(&writer->state, out + FRAME_SIZE_SIZE, NULL, contents.data,
                                               contents.size, NULL, 0,
                                               is_last ? crypto_secretstream_xchacha20poly1305_TAG_FINAL
                                                       : crypto_secretstream_xchacha20poly1305_TAG_MESSAGE);
    return FRAME_SIZE_SIZE + size;
}

void frame_reader_init(struct frame_reader *reader, const uint8_t key[32]) {
    memset(reader, 0, sizeof *reader);
    memcpy(reader->key, key, sizeof reader->key);
}

static enum frame_verdict open_frame(struct frame_reader *reader, struct bytes sealed, uint8_t *out) {
    uint8_t tag;
    if (crypto_secretstream_xchacha20poly1305_pull(&reader->state, out, NULL, &tag, sealed.data, sealed.size,
                                                   NULL, 0) != 0) {
        return FRAME_BAD;
    }
    reader->is_finished = tag == crypto_secretstream_xchacha20poly1305_TAG_FINAL;
    bool is_known = reader->is_finished || tag == crypto_secretstream_xchacha20poly1305_TAG_MESSAGE;
    return is_known ? FRAME_WHOLE : FRAME_BAD;
}

enum frame_verdict frame_read(struct frame_reader *reader, struct bytes input, uint8_t *out, size_t *ret_used,
                              struct bytes *ret_contents) {
    *ret_used = 0;
    if (reader->is_finished) {
        return input.size == 0 ? FRAME_PART : FRAME_BAD;
    }
    if (!reader->has_header) {
        if (input.size < FRAME_HEADER_SIZE) {
            return FRAME_PART;
        }
        if (crypto_secretstream_xchacha20poly1305_init_pull(&reader->state, input.data, reader->key) != 0) {
            return FRAME_BAD;
        }
        reader->has_header = true;
        sodium_memzero(reader->key, sizeof reader->key);
        *ret_used = FRAME_HEADER_SIZE;
        input = bytes_skip(input, FRAME_HEADER_SIZE);
    }
    if (input.size < FRAME_SIZE_SIZE) {
        return FRAME_PART;
    }
    size_t size = (size_t)input.data[0] | (size_t)input.data[1] << 8;
    if (size < FRAME_OVERHEAD) {
        return FRAME_BAD;
    }
    if (input.size < FRAME_SIZE_SIZE + size) {
        return FRAME_PART;
    }
    enum frame_verdict verdict =
        open_frame(reader, bytes_slice(input, FRAME_SIZE_SIZE, FRAME_SIZE_SIZE + size), out);
    *ret_used += FRAME_SIZE_SIZE + size;
    *ret_contents = bytes_of(out, size - FRAME_OVERHEAD);
    return verdict;
}
