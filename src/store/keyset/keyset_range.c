/* Sums, cuts and lists of ranges of a keyset: from the sums in memory, and the buckets at the ends. */
#include <stdlib.h>

#include "store/keyset/keyset_state.h"

/* ---- a bucket ---- */

static enum err reserve_page(struct keyset_page *page, size_t count) {
    if (count <= page->capacity) {
        return ERR_OK;
    }
    struct ringkey *keys = reallocarray(page->keys, count, sizeof *keys);
    page->keys = keys != NULL ? keys : page->keys;
    struct ringkey_sum *before = reallocarray(page->before, count + 1, sizeof *before);
    page->before = before != NULL ? before : page->before;
    if (keys == NULL || before == NULL) {
        return ERR_MEMORY;
    }
    page->capacity = count;
    return ERR_OK;
}

static enum err read_page(struct keyset *keyset, const struct keyset_bucket *bucket) {
    struct keyset_page *page = &keyset->page;
    struct ringkey_range range = {.lower = bucket->lower};
    page->is_loaded = false;
    page->lower = bucket->lower;
    enum err err = reserve_page(page, bucket->sum.count);
    err = err == ERR_OK ? keyset_list(keyset, &range, page->keys, bucket->sum.count, &page->count) : err;
    if (err != ERR_OK) {
        return err;
    }
    struct ringkey_sum sum = {0};
    for (size_t i = 0; i < page->count; i++) {
        struct ringkey_sum one = ringkey_sum_of(&keyset->sha256, &page->keys[i]);
        page->before[i] = sum;
        ringkey_sum_add(&sum, &one);
    }
    page->before[page->count] = sum;
    page->is_loaded = true;
    return ringkey_sum_equal(&sum, &bucket->sum) ? ERR_OK : ERR_CORRUPT;
}

enum err keyset_load_page(struct keyset *keyset, struct keyset_position position) {
    const struct keyset_bucket *bucket = keyset_sums_bucket(&keyset->sums, position);
    if (keyset->page.is_loaded && ringkey_compare(&keyset->page.lower, &bucket->lower) == 0) {
        return ERR_OK;
    }
    if (bucket->sum.count == 0) {
        enum err err = reserve_page(&keyset->page, 1); /* keys and before are never NULL */
        keyset->page.count = 0;
        keyset->page.is_loaded = false;
        if (err == ERR_OK) {
            keyset->page.before[0] = (struct ringkey_sum){0};
        }
        return err;
    }
    enum err err = read_page(keyset, bucket);
    keyset->page.is_loaded = err == ERR_OK;
    return err;
}

/* How many keys of the page are below the bound. */
static size_t page_index(const struct keyset_page *page, const struct ringkey *bound) {
    size_t lower = 0;
    size_t upper = page->count;
    while (lower < upper) {
        size_t middle = lower + (upper - lower) / 2;
        bool is_below = ringkey_compare(&page->keys[middle], bound) < 0;
        lower = is_below ? middle + 1 : lower;
        upper = is_below ? upper : middle;
    }
    return lower;
}

/* ---- ranges ---- */

/* Of all keys below the bound. */
static enum err sum_before(struct keyset *keyset, const struct ringkey *bound, struct ringkey_sum *ret_sum) {
    struct keyset_position position = keyset_sums_find(&keyset->sums, bound);
    struct ringkey_sum sum = keyset_sums_before(&keyset->sums, position);
    if (ringkey_compare(&keyset_sums_bucket(&keyset->sums, position)->lower, bound) != 0) {
        enum err err = keyset_load_page(keyset, position);
        if (err != ERR_OK) {
            return err;
        }
        ringkey_sum_add(&sum, &keyset->page.before[page_index(&keyset->page, bound)]);
    }
    *ret_sum = sum;
    return ERR_OK;
}

enum err keyset_sum(struct keyset *keyset, const struct ringkey_range *range, struct ringkey_sum *ret_sum) {
    struct ringkey_sum before;
    struct ringkey_sum sum;
    if (keyset->database.rocksdb == NULL) {
        return ERR_IO;
    }
    enum err err = sum_before(keyset, &range->lower, &before);
    if (err == ERR_OK && range->has_upper) {
        err = sum_before(keyset, &range->upper, &sum);
    } else if (err == ERR_OK) {
        sum = keyset_sums_all(&keyset->sums);
    }
    if (err == ERR_OK) {
        ringkey_sum_subtract(&sum, &before);
        *ret_sum = sum;
    }
    return err;
}

static bool is_inside(const struct ringkey_range *range, const struct ringkey *bound) {
    return ringkey_compare(bound, &range->lower) > 0 &&
           (!range->has_upper || ringkey_compare(bound, &range->upper) < 0);
}

/* The begin of this bucket or of the next one, if it is near enough to the rank: nothing is read then. */
static bool cut_at_bucket(const struct keyset *keyset, const struct ringkey_range *range,
                          struct keyset_position position, uint64_t index, uint64_t slack,
                          struct ringkey *ret_bound) {
    const struct keyset_bucket *bucket = keyset_sums_bucket(&keyset->sums, position);
    uint64_t left = bucket->sum.count - index;
    if (index <= slack && is_inside(range, &bucket->lower)) {
        *ret_bound = bucket->lower;
        return true;
    }
    if (left > slack || !keyset_sums_next(&keyset->sums, &position)) {
        return false;
    }
    *ret_bound = keyset_sums_bucket(&keyset->sums, position)->lower;
    return is_inside(range, ret_bound);
}

enum err keyset_cut(struct keyset *keyset, const struct ringkey_range *range, uint64_t rank, uint64_t slack,
                    struct ringkey *ret_bound) {
    struct ringkey_sum before;
    if (keyset->database.rocksdb == NULL) {
        return ERR_IO;
    }
    enum err err = sum_before(keyset, &range->lower, &before);
    if (err != ERR_OK) {
        return err;
    }
    rank += before.count;
    struct keyset_position position = keyset_sums_find_rank(&keyset->sums, rank);
    uint64_t index = rank - keyset_sums_before(&keyset->sums, position).count;
    if (cut_at_bucket(keyset, range, position, index, slack, ret_bound)) {
        return ERR_OK;
    }
    err = keyset_load_page(keyset, position);
    if (err != ERR_OK) {
        return err;
    }
    ASSERT(index > 0 && index < keyset->page.count); /* 0 < rank < count of the range */
    *ret_bound = ringkey_bound(&keyset->page.keys[index - 1], &keyset->page.keys[index]);
    return ERR_OK;
}

enum err keyset_list(struct keyset *keyset, const struct ringkey_range *range, struct ringkey *out,
                     size_t count_max, size_t *ret_count) {
    struct keyset_row first = keyset_row_of_key(&range->lower);
    struct keyset_cursor cursor;
    struct ringkey key;
    size_t count = 0;
    enum err err = keyset_cursor_init(&cursor, &keyset->database, &first, false);
    if (err != ERR_OK) {
        return err;
    }
    while (count < count_max && (err = keyset_cursor_next_key(&cursor, &key)) == ERR_OK &&
           (!range->has_upper || ringkey_compare(&key, &range->upper) < 0)) {
        out[count++] = key;
    }
    keyset_cursor_done(&cursor);
    if (err != ERR_OK && err != ERR_NOT_FOUND) {
        return err;
    }
    *ret_count = count;
    return ERR_OK;
}

/* ---- as a table ---- */

static enum err table_sum(void *context, const struct ringkey_range *range, struct ringkey_sum *ret_sum) {
    return keyset_sum(context, range, ret_sum);
}

static enum err table_cut(void *context, const struct ringkey_range *range, uint64_t rank, uint64_t slack,
                          struct ringkey *ret_bound) {
    return keyset_cut(context, range, rank, slack, ret_bound);
}

static enum err table_list(void *context, const struct ringkey_range *range, struct ringkey *out,
                           size_t count_max, size_t *ret_count) {
    return keyset_list(context, range, out, count_max, ret_count);
}

struct ringkey_set keyset_set(struct keyset *keyset) {
    static const struct ringkey_set_table table = {table_sum, table_cut, table_list};
    return (struct ringkey_set){.table = &table, .context = keyset};
}
