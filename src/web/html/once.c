#include "web/html/once.h"

enum { PROBES_MAX = 8 };

static uint64_t once_mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9fb21c651e98df25u;
    return hash ^ hash >> 32;
}

/* Not a keyed hash: all that a page can do by collisions is to hide its own links. */
static uint64_t once_hash_of(struct bytes bytes, unsigned kind) {
    uint64_t hash = once_mix(0x9e3779b97f4a7c15u + kind, bytes.size);
    uint64_t word;
    size_t at = 0;
    for (; at + sizeof word <= bytes.size; at += sizeof word) {
        memcpy(&word, bytes.data + at, sizeof word);
        hash = once_mix(hash, word);
    }
    word = 0;
    if (at < bytes.size) {
        memcpy(&word, bytes.data + at, bytes.size - at);
    }
    return once_mix(once_mix(hash, word), 0);
}

void once_init(struct once *once) {
    memset(once, 0, sizeof *once);
    once->generation = 1;
}

void once_clear(struct once *once) {
    once->generation++;
    if (once->generation == 0) {
        once_init(once);
    }
}

bool once_add(struct once *once, struct bytes bytes, unsigned kind) {
    uint64_t hash = once_hash_of(bytes, kind);
    uint64_t entry = (hash & ~(uint64_t)UINT16_MAX) | once->generation;
    for (size_t i = 0; i < PROBES_MAX; i++) {
        uint64_t *slot = &once->slots[((hash >> 16) + i) % ONCE_SLOTS_COUNT];
        if (*slot == entry) {
            return true;
        }
        if ((*slot & UINT16_MAX) != once->generation) {
            *slot = entry;
            return false;
        }
    }
    return false;
}
