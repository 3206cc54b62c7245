/*
 * links_coder - an arithmetic coder: bits whose probability both sides know take no more than that says.
 *
 * 32 bits, probabilities of 12 bits, the lower part of the interval is a one's;
 * docs/protocol/links.md. The encoder leaves out zeros at its end, the decoder reads them there.
 */
#include "protocol/links/links_state.h"

void links_coder_encode(struct links_coder *coder, uint8_t *out, size_t size) {
    *coder = (struct links_coder){.high = UINT32_MAX, .out = out, .size = size};
}

static uint32_t next_byte(struct links_coder *coder) {
    uint32_t byte = coder->position < coder->size ? coder->in[coder->position] : 0;
    coder->position++;
    return byte;
}

void links_coder_decode(struct links_coder *coder, struct bytes in) {
    static const uint8_t nothing[1];
    *coder = (struct links_coder){.high = UINT32_MAX, .in = in.size > 0 ? in.data : nothing, .size = in.size};
    for (unsigned i = 0; i < 4; i++) {
        coder->value = coder->value << 8 | next_byte(coder);
    }
}

static void put_byte(struct links_coder *coder, uint32_t byte) {
    if (coder->position < coder->size) {
        coder->out[coder->position] = (uint8_t)byte;
    }
    coder->position++;
}

void links_coder_shift(struct links_coder *coder) {
    while ((coder->low ^ coder->high) >> 24 == 0) {
        if (coder->in != NULL) {
            coder->value = coder->value << 8 | next_byte(coder);
        } else {
            put_byte(coder, coder->high >> 24);
        }
        coder->low <<= 8;
        coder->high = coder->high << 8 | 255;
    }
}

bool links_coder_flush(struct links_coder *coder) {
    uint32_t top =
        (coder->low >> 24) + 1; /* as one byte with zeros behind it, if that is below the upper end */
    if (coder->low == 0) {
        return coder->position <= coder->size; /* zeros all the way */
    }
    if (top << 24 <= coder->high && top < 256) {
        put_byte(coder, top);
    } else {
        top = (coder->low >> 16) + 1; /* high and low differ in the first byte: this is between them */
        put_byte(coder, top >> 8);
        put_byte(coder, top);
    }
    return coder->position <= coder->size;
}
