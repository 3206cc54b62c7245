/*
 * frame - one direction of a stream as it arrives: in pieces, changed, cut off, or made up.
 *
 *      byte 0      how the bytes come: pieces of 1 to 256
 *      byte 1      how many frames of "hello" were really sent, at most 15; the last one ends the stream
 *      2, 3, 4     which byte of them is changed, and how
 *      the rest    follows behind them
 *
 * What is read is a prefix of what was sent, whole frames only.
 */
#include "net/frame.h"

#include <stdlib.h>

#include "fuzz.h"

enum { FRAMES_MAX = 15, HEAD_SIZE = 5, CONTENTS_SIZE = 5, SENT_SIZE_MAX = 24 + FRAMES_MAX * 24 };

static size_t make(uint8_t *out, size_t frames_count) {
    static const uint8_t key[32] = {7};
    struct frame_writer writer;
    frame_writer_init(&writer, key, out);
    size_t size = FRAME_HEADER_SIZE;
    for (size_t i = 0; i < frames_count; i++) {
        size += frame_write(&writer, BYTES("hello"), i + 1 == frames_count, out + size);
    }
    return size;
}

/* Feed in pieces; returns how many frames came out. */
static size_t read_all(struct bytes input, size_t piece_size) {
    static const uint8_t key[32] = {7};
    uint8_t *out = malloc(FRAME_CONTENTS_SIZE_MAX);
    struct frame_reader reader;
    size_t frames_count = 0;
    size_t start = 0;
    enum frame_verdict verdict = FRAME_PART;
    ASSERT(out != NULL);
    frame_reader_init(&reader, key);
    for (size_t end = 0; end < input.size && verdict != FRAME_BAD;) {
        end = input.size - end < piece_size ? input.size : end + piece_size;
        do {
            struct bytes contents;
            size_t used;
            verdict = frame_read(&reader, bytes_slice(input, start, end), out, &used, &contents);
            start += used;
            ASSERT(start <= end && (verdict != FRAME_WHOLE || used > 0));
            ASSERT(verdict != FRAME_WHOLE || bytes_equal(contents, BYTES("hello")));
            frames_count += verdict == FRAME_WHOLE;
        } while (verdict == FRAME_WHOLE);
    }
    free(out);
    return frames_count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < HEAD_SIZE) {
        return 0;
    }
    size_t frames_count = data[1] % (FRAMES_MAX + 1);
    uint8_t *input = malloc(SENT_SIZE_MAX + size);
    ASSERT(input != NULL && sodium_init() >= 0);
    size_t input_size = make(input, frames_count);
    size_t place = (size_t)(data[2] | data[3] << 8);
    bool is_changed = place < input_size && data[4] != 0;
    if (is_changed) {
        input[place] ^= data[4];
    }
    memcpy(input + input_size, data + HEAD_SIZE, size - HEAD_SIZE);
    size_t whole =
        is_changed ? (place < FRAME_HEADER_SIZE ? 0 : (place - FRAME_HEADER_SIZE) / 24) : frames_count;
    size_t found = read_all(bytes_of(input, input_size + size - HEAD_SIZE), (size_t)data[0] + 1);
    ASSERT(found == whole);
    free(input);
    return 0;
}
