#include "store/keyset/keyset_sums.h"

#include <stdlib.h>

enum { SLOTS_COUNT_FIRST = 16 };

/* ---- chunks ---- */

/* A new chunk, empty, at this index. */
static enum err sums_insert_slot(struct keyset_sums *sums, size_t index) {
    if (sums->slots_count == sums->slots_capacity) {
        size_t capacity = sums->slots_capacity == 0 ? SLOTS_COUNT_FIRST : 2 * sums->slots_capacity;
        struct keyset_slot *slots = reallocarray(sums->slots, capacity, sizeof *slots);
        if (slots == NULL) {
            return ERR_MEMORY;
        }
        sums->slots = slots;
        sums->slots_capacity = capacity;
    }
    struct keyset_chunk *chunk = calloc(1, sizeof *chunk);
    if (chunk == NULL) {
        return ERR_MEMORY;
    }
    memmove(sums->slots + index + 1, sums->slots + index, (sums->slots_count - index) * sizeof *sums->slots);
    sums->slots[index] = (struct keyset_slot){.chunk = chunk};
    sums->slots_count++;
    return ERR_OK;
}

static void sums_remove_slot(struct keyset_sums *sums, size_t index) {
    free(sums->slots[index].chunk);
    sums->slots_count--;
    memmove(sums->slots + index, sums->slots + index + 1, (sums->slots_count - index) * sizeof *sums->slots);
}

/*
 * Make room in a chunk that is full. If it is the last one nothing is moved: a caller that reads keys in
 * their order appends, and then leaves full chunks behind.
 */
static enum err sums_divide_chunk(struct keyset_sums *sums, size_t index) {
    enum err err = sums_insert_slot(sums, index + 1);
    if (err != ERR_OK) {
        return err;
    }
    struct keyset_slot *left = &sums->slots[index];
    struct keyset_slot *right = &sums->slots[index + 1];
    bool is_last = index + 2 == sums->slots_count;
    size_t kept = is_last ? KEYSET_SUMS_CHUNK_COUNT - 1 : KEYSET_SUMS_CHUNK_COUNT / 2;
    for (size_t i = kept; i < left->chunk->count; i++) {
        const struct keyset_bucket *bucket = &left->chunk->buckets[i];
        right->chunk->buckets[right->chunk->count++] = *bucket;
        ringkey_sum_add(&right->sum, &bucket->sum);
        ringkey_sum_subtract(&left->sum, &bucket->sum);
    }
    left->chunk->count = kept;
    return ERR_OK;
}

enum err keyset_sums_init(struct keyset_sums *sums) {
    *sums = (struct keyset_sums){0};
    enum err err = sums_insert_slot(sums, 0);
    if (err == ERR_OK) {
        sums->slots[0].chunk->count = 1;
    } else {
        keyset_sums_done(sums);
    }
    return err;
}

void keyset_sums_done(struct keyset_sums *sums) {
    for (size_t i = 0; i < sums->slots_count; i++) {
        free(sums->slots[i].chunk);
    }
    free(sums->slots);
    *sums = (struct keyset_sums){0};
}

/* ---- finding ---- */

/* The last of count things whose lower bound is not above the key; the first is not. */
static size_t sums_find_slot(const struct keyset_sums *sums, const struct ringkey *key) {
    size_t lower = 0;
    size_t upper = sums->slots_count;
    while (upper - lower > 1) {
        size_t middle = lower + (upper - lower) / 2;
        bool is_above = ringkey_compare(&sums->slots[middle].chunk->buckets[0].lower, key) > 0;
        lower = is_above ? lower : middle;
        upper = is_above ? middle : upper;
    }
    return lower;
}

static size_t sums_find_bucket(const struct keyset_chunk *chunk, const struct ringkey *key) {
    size_t lower = 0;
    size_t upper = chunk->count;
    while (upper - lower > 1) {
        size_t middle = lower + (upper - lower) / 2;
        bool is_above = ringkey_compare(&chunk->buckets[middle].lower, key) > 0;
        lower = is_above ? lower : middle;
        upper = is_above ? middle : upper;
    }
    return lower;
}

struct keyset_position keyset_sums_find(const struct keyset_sums *sums, const struct ringkey *key) {
    size_t slot = sums_find_slot(sums, key);
    return (struct keyset_position){slot, sums_find_bucket(sums->slots[slot].chunk, key)};
}

struct keyset_position keyset_sums_find_rank(const struct keyset_sums *sums, uint64_t rank) {
    struct keyset_position position = {0};
    while (position.slot + 1 < sums->slots_count && rank >= sums->slots[position.slot].sum.count) {
        rank -= sums->slots[position.slot].sum.count;
        position.slot++;
    }
    const struct keyset_chunk *chunk = sums->slots[position.slot].chunk;
    while (position.bucket + 1 < chunk->count && rank >= chunk->buckets[position.bucket].sum.count) {
        rank -= chunk->buckets[position.bucket].sum.count;
        position.bucket++;
    }
    return position;
}

struct ringkey_sum keyset_sums_before(const struct keyset_sums *sums, struct keyset_position position) {
    struct ringkey_sum sum = {0};
    for (size_t i = 0; i < position.slot; i++) {
        ringkey_sum_add(&sum, &sums->slots[i].sum);
    }
    for (size_t i = 0; i < position.bucket; i++) {
        ringkey_sum_add(&sum, &sums->slots[position.slot].chunk->buckets[i].sum);
    }
    return sum;
}

struct ringkey_sum keyset_sums_all(const struct keyset_sums *sums) {
    return keyset_sums_before(sums, (struct keyset_position){.slot = sums->slots_count});
}

struct keyset_bucket *keyset_sums_bucket(const struct keyset_sums *sums, struct keyset_position position) {
    ASSERT(position.slot < sums->slots_count && position.bucket < sums->slots[position.slot].chunk->count);
    return &sums->slots[position.slot].chunk->buckets[position.bucket];
}

bool keyset_sums_next(const struct keyset_sums *sums, struct keyset_position *position) {
    if (position->bucket + 1 < sums->slots[position->slot].chunk->count) {
        position->bucket++;
        return true;
    }
    if (position->slot + 1 == sums->slots_count) {
        return false;
    }
    *position = (struct keyset_position){.slot = position->slot + 1};
    return true;
}

/* ---- changing ---- */

void keyset_sums_add(struct keyset_sums *sums, struct keyset_position position,
                     const struct ringkey_sum *sum) {
    ringkey_sum_add(&keyset_sums_bucket(sums, position)->sum, sum);
    ringkey_sum_add(&sums->slots[position.slot].sum, sum);
}

void keyset_sums_subtract(struct keyset_sums *sums, struct keyset_position position,
                          const struct ringkey_sum *sum) {
    struct keyset_bucket *bucket = keyset_sums_bucket(sums, position);
    ASSERT(bucket->sum.count >= sum->count);
    ringkey_sum_subtract(&bucket->sum, sum);
    ringkey_sum_subtract(&sums->slots[position.slot].sum, sum);
}

enum err keyset_sums_divide(struct keyset_sums *sums, struct keyset_position position,
                            const struct ringkey *lower, const struct ringkey_sum *sum) {
    struct keyset_slot *slot = &sums->slots[position.slot];
    if (slot->chunk->count == KEYSET_SUMS_CHUNK_COUNT) {
        struct ringkey old_lower = keyset_sums_bucket(sums, position)->lower;
        enum err err = sums_divide_chunk(sums, position.slot);
        if (err != ERR_OK) {
            return err;
        }
        position = keyset_sums_find(sums, &old_lower);
        slot = &sums->slots[position.slot];
    }
    struct keyset_bucket *bucket = &slot->chunk->buckets[position.bucket];
    ASSERT(ringkey_compare(&bucket->lower, lower) < 0 && bucket->sum.count >= sum->count);
    memmove(bucket + 2, bucket + 1, (slot->chunk->count - position.bucket - 1) * sizeof *bucket);
    slot->chunk->count++;
    bucket[1] = (struct keyset_bucket){.sum = *sum, .lower = *lower};
    ringkey_sum_subtract(&bucket->sum, sum);
    return ERR_OK;
}

bool keyset_sums_drop_empty(struct keyset_sums *sums, struct keyset_position position) {
    struct keyset_bucket *bucket = keyset_sums_bucket(sums, position);
    if (bucket->sum.count > 0 || (position.slot == 0 && position.bucket == 0)) {
        return false;
    }
    struct keyset_chunk *chunk = sums->slots[position.slot].chunk;
    chunk->count--;
    memmove(bucket, bucket + 1, (chunk->count - position.bucket) * sizeof *bucket);
    if (chunk->count == 0) {
        sums_remove_slot(sums, position.slot);
    }
    return true;
}

size_t keyset_sums_size(const struct keyset_sums *sums) {
    return sums->slots_capacity * sizeof *sums->slots + sums->slots_count * sizeof(struct keyset_chunk);
}
