/* A set of ring keys in memory: sorted, with the sum of all keys before each. For tests and benchmarks. */
#ifndef MNEMON_TESTS_RINGKEY_FIXTURE_H
#define MNEMON_TESTS_RINGKEY_FIXTURE_H

#include <stdlib.h>

#include "base/prng.h"
#include "base/ringkey.h"

struct memory_set {
    struct ringkey *keys;
    struct ringkey_sum *before; /* count + 1 of them */
    size_t count;
    size_t listed_count; /* keys given out: what a comparison reads */
};

static inline int compare_keys(const void *a, const void *b) {
    return ringkey_compare(a, b);
}

static inline size_t memory_set_index(const struct memory_set *set, const struct ringkey *bound) {
    size_t lower = 0;
    size_t upper = set->count;
    while (lower < upper) {
        size_t middle = lower + (upper - lower) / 2;
        if (ringkey_compare(&set->keys[middle], bound) < 0) {
            lower = middle + 1;
        } else {
            upper = middle;
        }
    }
    return lower;
}

static inline size_t memory_set_end(const struct memory_set *set, const struct ringkey_range *range) {
    return range->has_upper ? memory_set_index(set, &range->upper) : set->count;
}

static inline enum err memory_set_sum(void *context, const struct ringkey_range *range,
                                      struct ringkey_sum *ret_sum) {
    const struct memory_set *set = context;
    *ret_sum = set->before[memory_set_end(set, range)];
    ringkey_sum_subtract(ret_sum, &set->before[memory_set_index(set, &range->lower)]);
    return ERR_OK;
}

/* Uses up its slack. */
static inline enum err memory_set_cut(void *context, const struct ringkey_range *range, uint64_t rank,
                                      uint64_t slack, struct ringkey *ret_bound) {
    const struct memory_set *set = context;
    size_t at = memory_set_index(set, &range->lower) + rank;
    ASSERT(rank > 0 && at < memory_set_end(set, range));
    at += rank > slack ? (size_t)0 - slack : 0;
    *ret_bound = ringkey_bound(&set->keys[at - 1], &set->keys[at]);
    return ERR_OK;
}

static inline enum err memory_set_list(void *context, const struct ringkey_range *range, struct ringkey *out,
                                       size_t count_max, size_t *ret_count) {
    struct memory_set *set = context;
    size_t from = memory_set_index(set, &range->lower);
    size_t count = memory_set_end(set, range) - from;
    count = count < count_max ? count : count_max;
    if (count > 0) {
        memcpy(out, set->keys + from, count * sizeof *out);
    }
    set->listed_count += count;
    *ret_count = count;
    return ERR_OK;
}

static const struct ringkey_set_table memory_set_table = {memory_set_sum, memory_set_cut, memory_set_list};

/* Sorts the keys and drops those that are equal to another. */
static inline void memory_set_init(struct memory_set *set, struct sha256 *sha256, const struct ringkey *keys,
                                   size_t count) {
    *set = (struct memory_set){.keys = calloc(count + 1, sizeof *keys),
                               .before = calloc(count + 1, sizeof *set->before)};
    ASSERT(set->keys != NULL && set->before != NULL);
    if (count > 0) {
        memcpy(set->keys, keys, count * sizeof *keys);
    }
    qsort(set->keys, count, sizeof *keys, compare_keys);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || ringkey_compare(&set->keys[i], &set->keys[set->count - 1]) != 0) {
            set->keys[set->count++] = set->keys[i];
        }
    }
    for (size_t i = 0; i < set->count; i++) {
        struct ringkey_sum one = ringkey_sum_of(sha256, &set->keys[i]);
        set->before[i + 1] = set->before[i];
        ringkey_sum_add(&set->before[i + 1], &one);
    }
}

static inline void memory_set_done(struct memory_set *set) {
    free(set->keys);
    free(set->before);
}

static inline struct ringkey_set memory_set(struct memory_set *set) {
    return (struct ringkey_set){.table = &memory_set_table, .context = set};
}

#endif
