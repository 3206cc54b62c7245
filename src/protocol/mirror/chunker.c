#include "protocol/mirror/chunker.h"

#include "base/prng.h"

enum {
    WINDOW_SIZE = 64, /* what a hash of 64 bits remembers */
    EASY_SIZE = 52 << 10,
};
static const uint64_t HARD_MASK = UINT64_C(0x3ffff) << 46; /* 18 bits; the upper ones know the whole window */
static const uint64_t EASY_MASK = UINT64_C(0x3fff) << 50;
static const uint64_t GEAR_SEED = UINT64_C(0x6d6e656d6f6e2031); /* "mnemon 1" */

void chunker_init(struct chunker *chunker) {
    for (uint64_t i = 0; i < 256; i++) {
        chunker->gear[i] = prng_mix(GEAR_SEED + (i << 8));
    }
    chunker_start(chunker);
}

void chunker_start(struct chunker *chunker) {
    chunker->hash = 0;
    chunker->size = 0;
}

/* How many of the bytes are left to be taken before the chunk has that size. */
static size_t up_to(const struct chunker *chunker, size_t size, size_t left) {
    size_t wanted = chunker->size < size ? size - chunker->size : 0;
    return wanted < left ? wanted : left;
}

static void roll(struct chunker *chunker, const uint8_t *data, size_t count) {
    for (size_t i = 0; i < count; i++) {
        chunker->hash = (chunker->hash << 1) + chunker->gear[data[i]];
    }
    chunker->size += count;
}

/* Up to count bytes, or fewer where the chunk ends behind one. */
static size_t chunker_scan(struct chunker *chunker, const uint8_t *data, size_t count, uint64_t mask,
                           bool *ret_is_end) {
    uint64_t hash = chunker->hash;
    size_t taken = 0;
    while (taken < count) {
        hash = (hash << 1) + chunker->gear[data[taken++]];
        if ((hash & mask) == 0) {
            *ret_is_end = true;
            break;
        }
    }
    chunker->hash = hash;
    chunker->size += taken;
    return taken;
}

size_t chunker_take(struct chunker *chunker, struct bytes bytes, bool *ret_is_end) {
    ASSERT(bytes.size > 0);
    bool is_end = false;
    size_t taken = up_to(chunker, CHUNKER_SIZE_MIN - WINDOW_SIZE, bytes.size);
    chunker->size += taken;
    size_t count = up_to(chunker, CHUNKER_SIZE_MIN - 1, bytes.size - taken);
    roll(chunker, bytes.data + taken, count);
    taken += count;
    count = up_to(chunker, EASY_SIZE, bytes.size - taken);
    taken += chunker_scan(chunker, bytes.data + taken, count, HARD_MASK, &is_end);
    if (!is_end) {
        count = up_to(chunker, CHUNKER_SIZE_MAX, bytes.size - taken);
        taken += chunker_scan(chunker, bytes.data + taken, count, EASY_MASK, &is_end);
    }
    is_end = is_end || chunker->size == CHUNKER_SIZE_MAX;
    if (is_end) {
        chunker_start(chunker);
    }
    *ret_is_end = is_end;
    return taken;
}
