#include "sim/world/digest.h"

#include <stdio.h>

#include "base/prng.h"

void digest_init(struct digest *digest) {
    *digest = (struct digest){.lanes = {1, 2}};
}

/* Little-endian on every machine; compilers turn it into one load. */
static uint64_t load_u64(const uint8_t *data) {
    uint64_t word = 0;
    for (unsigned i = 0; i < 8; i++) {
        word |= (uint64_t)data[i] << (8 * i);
    }
    return word;
}

void digest_bytes(struct digest *digest, struct bytes bytes) {
    digest_u64(digest, bytes.size);
    size_t offset = 0;
    for (; offset + 8 <= bytes.size; offset += 8) {
        digest_u64(digest, load_u64(bytes.data + offset));
    }
    if (offset < bytes.size) {
        uint8_t tail[8] = {0};
        memcpy(tail, bytes.data + offset, bytes.size - offset);
        digest_u64(digest, load_u64(tail));
    }
}

const char *digest_format(const struct digest *digest, char out[DIGEST_TEXT_SIZE_MAX]) {
    uint64_t a = prng_mix(digest->lanes[0]);
    uint64_t b = prng_mix(digest->lanes[1] ^ a);
    snprintf(out, DIGEST_TEXT_SIZE_MAX, "%016llx%016llx", (unsigned long long)a, (unsigned long long)b);
    return out;
}
