/*
 * links_coder - an arithmetic coder: bits whose probability both sides know take no more than that says.
 *
 * 32 bits, probabilities of 12 bits, the lower part of the interval is a one's;
 * docs/protocol/links.md. The encoder leaves out zeros at its end, the decoder reads them there.
 */
#ifndef MNEMON_PROTOCOL_LINKS_LINKS_CODER_H
#define MNEMON_PROTOCOL_LINKS_LINKS_CODER_H

#include "base/bytes.h"

struct links_coder {
    uint32_t low;
    uint32_t high;
    uint32_t value;    /* decoder */
    const uint8_t *in; /* NULL: it encodes */
    uint8_t *out;
    size_t size;     /* of in, or the room at out */
    size_t position; /* bytes read or written; above size: it did not fit */
};

void links_coder_encode(struct links_coder *coder, uint8_t *out, size_t size);
void links_coder_decode(struct links_coder *coder, struct bytes in);

/* The bytes that are certain now. */
void links_coder_shift(struct links_coder *coder);

/* One bit, a one with the probability given of 4,096 (1 to 4,095). Returns it; a decoder does not read the
 * argument. */
static inline uint32_t links_coder_bit(struct links_coder *coder, uint32_t probability, uint32_t value) {
    uint32_t middle = coder->low + (uint32_t)(((uint64_t)(coder->high - coder->low) * probability) >> 12);
    if (coder->in != NULL) {
        value = coder->value <= middle;
    }
    if (value) {
        coder->high = middle;
    } else {
        coder->low = middle + 1;
    }
    if ((coder->low ^ coder->high) >> 24 == 0) {
        links_coder_shift(coder);
    }
    return value;
}

/* The rest of the number: as few bytes as it takes. False if it did not fit. */
bool links_coder_flush(struct links_coder *coder);

/* Were more bytes read than an encoder leaves out? */
static inline bool links_coder_is_overrun(const struct links_coder *coder) {
    return coder->position > coder->size + 4;
}

#endif
