/*
 * frame - the bytes of a stream after its handshake: libsodium's secretstream, cut into frames. No I/O.
 *
 * In each direction, under a key of its own:
 *
 *      | header of secretstream (24) | size (2) | sealed, `size` bytes | size (2) | sealed … |
 *
 * A sealed frame holds FRAME_OVERHEAD bytes more than its contents. Its tag says whether it is data (0) or
 * the end (3, FINAL): a stream that ends without one was cut off, and what follows one is an error. Frames
 * cannot be lost, swapped or repeated unseen.
 */
#ifndef MNEMON_NET_FRAME_H
#define MNEMON_NET_FRAME_H

#include <sodium.h>

#include "base/bytes.h"

enum {
    FRAME_HEADER_SIZE = 24,
    FRAME_OVERHEAD = 17,
    FRAME_SIZE_SIZE = 2,
    FRAME_SEALED_SIZE_MAX = UINT16_MAX,
    FRAME_CONTENTS_SIZE_MAX = FRAME_SEALED_SIZE_MAX - FRAME_OVERHEAD, /* just below 64 KiB */
    FRAME_WHOLE_SIZE_MAX = FRAME_SEALED_SIZE_MAX + FRAME_SIZE_SIZE,
};

struct frame_writer {
    crypto_secretstream_xchacha20poly1305_state state;
};

/* header is what the other side must get first. */
void frame_writer_init(struct frame_writer *writer, const uint8_t key[32], uint8_t header[FRAME_HEADER_SIZE]);

/* Writes contents.size + FRAME_SIZE_SIZE + FRAME_OVERHEAD bytes to out and returns how many. */
size_t frame_write(struct frame_writer *writer, struct bytes contents, bool is_last, uint8_t *out);

struct frame_reader {
    crypto_secretstream_xchacha20poly1305_state state;
    uint8_t key[32];
    bool has_header;
    bool is_finished; /* the last one has come */
};

enum frame_verdict {
    FRAME_PART,  /* more must come first */
    FRAME_WHOLE, /* *ret_contents, perhaps none, and used > 0 */
    FRAME_BAD,   /* forged, or bytes after the end */
};

void frame_reader_init(struct frame_reader *reader, const uint8_t key[32]);

/*
 * The next frame at the beginning of input, decrypted into out (FRAME_CONTENTS_SIZE_MAX). *ret_used bytes of
 * the input are done with, also if the verdict is FRAME_PART (the header).
 */
enum frame_verdict frame_read(struct frame_reader *reader, struct bytes input, uint8_t *out, size_t *ret_used,
                              struct bytes *ret_contents);

#endif
