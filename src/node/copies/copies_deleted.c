/*
 * A key does not say which URL it is of, so a node learns only from the capture itself that it is deleted. It
 * remembers the key then: as long as another node, which has not heard of the deletion, offers it or shows it
 * in comparisons, it is not fetched again. What falls out of the table is fetched once more, and refused
 * again.
 */
#include "node/copies/copies_state.h"

static uint64_t deleted_shorten(const struct ringkey *key) {
    uint64_t digest;
    uint64_t place;
    uint64_t time;
    memcpy(&digest, ringkey_digest(key), sizeof digest);
    memcpy(&place, key->bytes, sizeof place);
    memcpy(&time, key->bytes + RINGKEY_POSITION_SIZE, sizeof time);
    return (digest ^ place * UINT64_C(0x9e3779b97f4a7c15) ^ time * UINT64_C(0xc2b2ae3d27d4eb4f)) | 1;
}

/* If something else is deleted now, or is no longer, what was seen before says nothing. */
static void deleted_renew(struct copies *copies) {
    uint64_t generation = instance_deletions_generation(copies->config.instance);
    if (generation != copies->deleted_generation) {
        copies->deleted_generation = generation;
        memset(copies->deleted, 0, sizeof copies->deleted);
    }
}

bool copies_is_deleted(struct copies *copies, const struct ringkey *key) {
    uint64_t value = deleted_shorten(key);
    deleted_renew(copies);
    return copies->deleted[value / 2 % COPIES_DELETED_COUNT] == value;
}

void copies_note_deleted(struct copies *copies, const struct ringkey *key) {
    uint64_t value = deleted_shorten(key);
    deleted_renew(copies);
    copies->deleted[value / 2 % COPIES_DELETED_COUNT] = value;
}
