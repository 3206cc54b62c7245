/*
 * changes - whether a block has changed since somebody looked, without asking the index again.
 *
 * Time is counted in commits. A slot holds the last commit that changed any block whose digest falls into
 * it; so the answer "unchanged" is certain, and "changed" may be about a neighbour: then the index is asked.
 *
 * A writer reads changes_now() before it looks into the index. All else belongs to whoever holds the volume's
 * ledger_lock.
 */
#ifndef MNEMON_STORE_INDEX_CHANGES_H
#define MNEMON_STORE_INDEX_CHANGES_H

#include <stdatomic.h>

#include "store/document/key.h"

/* 128 KiB: with the few hundred blocks that change between a look and its commit, one in a hundred is asked
 * for nothing. */
enum { CHANGES_SLOTS_COUNT = 1 << 14 };

struct changes {
    atomic_uint_fast64_t now; /* commits so far */
    uint64_t all_since;       /* the last commit that changed more than it could name */
    uint64_t slots[CHANGES_SLOTS_COUNT];
};

static inline uint64_t changes_now(const struct changes *changes) {
    return atomic_load_explicit(&changes->now, memory_order_acquire);
}

static inline uint64_t *changes_slot(struct changes *changes, const uint8_t digest[KEY_DIGEST_SIZE]) {
    unsigned index = ((unsigned)digest[0] << 8 | digest[1]) % CHANGES_SLOTS_COUNT;
    return &changes->slots[index];
}

static inline bool changes_has_none(struct changes *changes, const uint8_t digest[KEY_DIGEST_SIZE],
                                    uint64_t since) {
    return changes->all_since <= since && *changes_slot(changes, digest) <= since;
}

/* The commit that has just been made changed this block. */
static inline void changes_note(struct changes *changes, const uint8_t digest[KEY_DIGEST_SIZE]) {
    *changes_slot(changes, digest) = changes_now(changes) + 1;
}

static inline void changes_note_all(struct changes *changes) {
    changes->all_since = changes_now(changes) + 1;
}

/* After all of its changes were noted, and after the index has them. */
static inline void changes_advance(struct changes *changes) {
    atomic_fetch_add_explicit(&changes->now, 1, memory_order_release);
}

#endif
