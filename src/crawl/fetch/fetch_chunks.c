#include "crawl/fetch/fetch_chunks.h"

#include "base/hex.h"

enum { DIGITS_MAX = 15 }; /* sums stay far from overflow; libcurl refuses 17 */

void fetch_chunks_start(struct fetch_chunks *chunks) {
    *chunks = (struct fetch_chunks){.state = FETCH_CHUNKS_SIZE};
}

static enum fetch_chunks_state take_digit(struct fetch_chunks *chunks, uint8_t byte) {
    int digit = hex_digit(byte);
    if (digit >= 0) {
        chunks->left = chunks->left << 4 | (uint64_t)digit;
        return ++chunks->digits_count > DIGITS_MAX ? FETCH_CHUNKS_WRONG : FETCH_CHUNKS_SIZE;
    }
    return chunks->digits_count == 0 ? FETCH_CHUNKS_WRONG : FETCH_CHUNKS_SIZE_END;
}

/* Next state after one byte outside of the data. */
static enum fetch_chunks_state step(struct fetch_chunks *chunks, uint8_t byte) {
    switch (chunks->state) {
    case FETCH_CHUNKS_SIZE:
        chunks->state = take_digit(chunks, byte);
        if (chunks->state != FETCH_CHUNKS_SIZE_END) {
            return chunks->state;
        }
        __attribute__((fallthrough)); /* the byte may end the line */
    case FETCH_CHUNKS_SIZE_END:
        if (byte != '\n') {
            return FETCH_CHUNKS_SIZE_END;
        }
        return chunks->left > 0 ? FETCH_CHUNKS_DATA : FETCH_CHUNKS_TRAILER;
    case FETCH_CHUNKS_DATA_END:
        chunks->digits_count = 0;
        return byte == '\n' ? FETCH_CHUNKS_SIZE : byte == '\r' ? FETCH_CHUNKS_DATA_END : FETCH_CHUNKS_WRONG;
    case FETCH_CHUNKS_TRAILER:
        if (byte == '\n') {
            return FETCH_CHUNKS_ENDED;
        }
        return byte == '\r' ? FETCH_CHUNKS_TRAILER_END : FETCH_CHUNKS_TRAILER_LINE;
    case FETCH_CHUNKS_TRAILER_LINE:
        return byte == '\n' ? FETCH_CHUNKS_TRAILER : FETCH_CHUNKS_TRAILER_LINE;
    case FETCH_CHUNKS_TRAILER_END:
        return byte == '\n' ? FETCH_CHUNKS_ENDED : FETCH_CHUNKS_WRONG;
    case FETCH_CHUNKS_DATA:
    case FETCH_CHUNKS_ENDED:
    case FETCH_CHUNKS_WRONG:
        break;
    }
    return chunks->state;
}

size_t fetch_chunks_take(struct fetch_chunks *chunks, struct bytes bytes) {
    size_t taken = 0;
    while (taken < bytes.size && chunks->state != FETCH_CHUNKS_ENDED) {
        if (chunks->state == FETCH_CHUNKS_WRONG) {
            return bytes.size;
        }
        if (chunks->state != FETCH_CHUNKS_DATA) {
            chunks->state = step(chunks, bytes.data[taken++]);
            continue;
        }
        size_t rest = bytes.size - taken;
        size_t size = rest < chunks->left ? rest : (size_t)chunks->left;
        chunks->left -= size;
        taken += size;
        chunks->state = chunks->left > 0 ? FETCH_CHUNKS_DATA : FETCH_CHUNKS_DATA_END;
    }
    return taken;
}
