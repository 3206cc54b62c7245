#include "store/keyset/keyset.h"

#include <stdlib.h>

#include "base/wire.h"
#include "store/index/index_code.h"
#include "store/keyset/keyset_digests.h"
#include "store/keyset/keyset_sums.h"
#include "store/kv/kv.h"

enum {
    FORMAT_WITHOUT_SUMS = 1, /* of 0.2.0 */
    FORMAT_BY_KEY = 2,       /* digests by key, as keyset_digests.h has them */
    FORMAT_BY_PLACE = 3,
    FORMAT_SIZE = 2,
    BUCKET_COUNT_MAX = 96, /* keys; more and it is divided */
    BUCKET_COUNT_NEW = 64, /* in one that is made when opening or dividing, at most */
    PENDING_COUNT_MAX = 4096,
    PENDING_SIZE_MAX = 16 << 20, /* of their values */
    ENTRY_SIZE_MAX = INDEX_SURT_SIZE_MAX + 16,
    SUMS_BATCH_COUNT = 4096,
};

static const struct kv_family keyset_family = {
    .name = "default",
    .write_buffer_size = 4 << 20,
    .page_size = 8 << 10, /* a bucket is read at once */
    .compression = KV_LZ4,
    .is_in_runs = true,
    .has_filter = true,
    .has_memory_filter = true, /* most keys that are put are new */
};

static const struct kv_options keyset_options = {
    .families = &keyset_family,
    .families_count = 1,
    .cache_size = 4 << 20,
    .open_files_max = 128,
    .asks_for_room = true,
};

/* The keys of one bucket, as they were read last: neighbouring ranges meet in the same bucket. */
struct keyset_page {
    bool is_loaded;
    struct ringkey lower; /* of the bucket */
    struct ringkey *keys;
    struct ringkey_sum *before; /* of all keys before each of them in the bucket, and at the end of all */
    size_t count;
    size_t capacity;
};

/* A change that was not committed yet. */
struct keyset_change {
    struct ringkey key;
    uint32_t number; /* in the order of their coming: the last change of a key counts */
    bool is_removal;
    bool is_effective; /* while committing: the set really changes */
    size_t value_offset;
    size_t value_size;
};

struct keyset {
    struct kv *kv;
    enum position_mapping mapping;
    struct sha256 sha256;
    struct keyset_digests digests;
    struct keyset_sums sums;
    struct keyset_page page;
    struct keyset_change *changes; /* PENDING_COUNT_MAX */
    size_t changes_count;
    struct buf values;      /* of the changes */
    struct kv_batch writes; /* positions; when committing the changes too */
    struct buf entry;       /* that was read last */
    bool is_doubted;        /* sums and keys differ */
};

/* ---- rows ---- */

static enum err keyset_get(struct keyset *keyset, const struct keyset_row *row, struct buf *value) {
    return kv_copy(keyset->kv, 0, keyset_row_bytes(row), value, NULL);
}

/* A walk over rows from one on, which must outlive it. */
static enum err keyset_walk(struct keyset *keyset, const struct keyset_row *from, enum kv_walk walk,
                            struct kv_iterator *iterator) {
    return kv_iterator_init(iterator, keyset->kv, 0, walk, keyset_row_bytes(from), bytes_of(NULL, 0), false);
}

/* ---- opening ---- */

static void keyset_forget_changes(struct keyset *keyset) {
    keyset->changes_count = 0;
    buf_clear(&keyset->values);
    kv_batch_clear(&keyset->writes);
}

static enum err keyset_put_format(struct keyset *keyset, struct err_detail *detail) {
    struct keyset_row row = keyset_row_of_format();
    uint8_t version = keyset->digests.is_by_place ? FORMAT_BY_PLACE : FORMAT_BY_KEY;
    const uint8_t format[FORMAT_SIZE] = {version, (uint8_t)keyset->mapping};
    return kv_put(keyset->kv, 0, keyset_row_bytes(&row), bytes_of(format, sizeof format), detail);
}

/* *ret_version: what it is written in; 0: it is new. */
static enum err keyset_check_format(struct keyset *keyset, uint8_t *ret_version, struct err_detail *detail) {
    struct keyset_row row = keyset_row_of_format();
    enum err err = keyset_get(keyset, &row, &keyset->entry);
    if (err == ERR_NOT_FOUND) {
        *ret_version = 0;
        return keyset_put_format(keyset, detail);
    }
    if (err != ERR_OK) {
        return err_set(detail, err, "the set of keys: %s", err_text(err));
    }
    const uint8_t *format = keyset->entry.data;
    uint8_t newest = keyset->digests.is_by_place ? FORMAT_BY_PLACE : FORMAT_BY_KEY;
    bool is_known = keyset->entry.size == FORMAT_SIZE && format[1] == (uint8_t)keyset->mapping &&
                    format[0] >= FORMAT_WITHOUT_SUMS && format[0] <= newest;
    if (!is_known) {
        return err_set(detail, ERR_MISMATCH, "the set of keys has another format or mapping");
    }
    *ret_version = format[0];
    return ERR_OK;
}

/* The format says last that it was converted. */
static enum err keyset_convert(struct keyset *keyset, uint8_t version, struct err_detail *detail) {
    bool is_old = version == FORMAT_WITHOUT_SUMS || version == FORMAT_BY_KEY;
    if (!is_old || !keyset->digests.is_by_place) {
        return ERR_OK;
    }
    enum err err = keyset_digests_convert(&keyset->digests, &keyset->writes);
    if (err != ERR_OK) {
        return err_set(detail, err, "the set of keys: %s", err_text(err));
    }
    return version == FORMAT_BY_KEY ? keyset_put_format(keyset, detail) : ERR_OK; /* else with the sums */
}

/* ---- sums: of each bucket a row ---- */

static void keyset_put_sum(struct keyset *keyset, const struct keyset_bucket *bucket) {
    struct keyset_row row = keyset_row_of_sum(&bucket->lower);
    uint8_t value[KEYSET_ROW_SUM_SIZE_MAX];
    kv_batch_put(&keyset->writes, 0, keyset_row_bytes(&row), keyset_row_sum(&bucket->sum, value));
}

static enum err keyset_write_some(struct keyset *keyset, size_t count_min, struct err_detail *detail) {
    if (keyset->writes.count < count_min && keyset->writes.err == ERR_OK) {
        return ERR_OK;
    }
    enum err err = kv_write(keyset->kv, &keyset->writes, detail);
    kv_batch_clear(&keyset->writes);
    return err;
}

/* Behind all so far. */
static enum err keyset_append_bucket(struct keyset_sums *sums, const struct keyset_bucket *bucket) {
    static const struct ringkey zero;
    struct keyset_position last = {.slot = sums->slots_count - 1};
    last.bucket = sums->slots[last.slot].chunk->count - 1;
    keyset_sums_add(sums, last, &bucket->sum);
    return ringkey_compare(&bucket->lower, &zero) == 0
               ? ERR_OK
               : keyset_sums_divide(sums, last, &bucket->lower, &bucket->sum);
}

static enum err keyset_read_sums(struct keyset *keyset) {
    static const struct ringkey zero;
    struct keyset_row first = keyset_row_of_sum(&zero);
    struct keyset_bucket bucket;
    struct kv_iterator iterator;
    enum err err = keyset_walk(keyset, &first, KV_WALK_ALL, &iterator);
    if (err != ERR_OK) {
        return err;
    }
    while ((err = keyset_row_next_sum(&iterator, &bucket)) == ERR_OK) {
        err = keyset_append_bucket(&keyset->sums, &bucket);
        if (err != ERR_OK) {
            break;
        }
    }
    kv_iterator_done(&iterator);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/* Behind all keys so far: into the last bucket, or into a new one behind it. */
static enum err keyset_append_sum(struct keyset *keyset, const struct ringkey *before,
                                  const struct ringkey *key) {
    struct keyset_sums *sums = &keyset->sums;
    struct keyset_position last = {.slot = sums->slots_count - 1};
    last.bucket = sums->slots[last.slot].chunk->count - 1;
    struct ringkey_sum sum = ringkey_sum_of(&keyset->sha256, key);
    bool is_full = keyset_sums_bucket(sums, last)->sum.count >= BUCKET_COUNT_NEW;
    keyset_sums_add(sums, last, &sum);
    if (!is_full) {
        return ERR_OK;
    }
    struct ringkey lower = ringkey_bound(before, key);
    return keyset_sums_divide(sums, last, &lower, &sum);
}

/* By one pass over the keys. */
static enum err keyset_sum_up(struct keyset *keyset) {
    static const struct ringkey zero;
    struct keyset_row first = keyset_row_of_key(&zero);
    struct kv_iterator iterator;
    struct ringkey key;
    struct ringkey before = zero;
    enum err err = keyset_walk(keyset, &first, KV_WALK_ALL, &iterator);
    if (err != ERR_OK) {
        return err;
    }
    while ((err = keyset_row_next_key(&iterator, &key)) == ERR_OK) {
        err = keyset_append_sum(keyset, &before, &key);
        if (err != ERR_OK) {
            break;
        }
        before = key;
    }
    kv_iterator_done(&iterator);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/* The format says last that they are there: if this is cut off, the next one writes the same again. */
static enum err keyset_store_sums(struct keyset *keyset, struct err_detail *detail) {
    struct keyset_position position = {0};
    enum err err = ERR_OK;
    do {
        keyset_put_sum(keyset, keyset_sums_bucket(&keyset->sums, position));
        err = keyset_write_some(keyset, SUMS_BATCH_COUNT, detail);
    } while (err == ERR_OK && keyset_sums_next(&keyset->sums, &position));
    err = err == ERR_OK ? keyset_write_some(keyset, 1, detail) : err;
    return err == ERR_OK ? keyset_put_format(keyset, detail) : err;
}

static enum err keyset_load_sums(struct keyset *keyset, bool has_sums, struct err_detail *detail) {
    enum err err = keyset_sums_init(&keyset->sums);
    if (err == ERR_OK) {
        err = has_sums ? keyset_read_sums(keyset) : keyset_sum_up(keyset);
    }
    if (err != ERR_OK) {
        return err_set(detail, err, "the set of keys: %s", err_text(err));
    }
    return has_sums ? ERR_OK : keyset_store_sums(keyset, detail);
}

static void keyset_unload(struct keyset *keyset) {
    keyset_forget_changes(keyset);
    keyset->page.is_loaded = false;
    keyset_sums_done(&keyset->sums);
    kv_close(keyset->kv);
}

static enum err keyset_load(struct keyset *keyset, struct err_detail *detail) {
    uint8_t version = 0;
    enum err err = kv_open(keyset->kv, detail);
    err = err == ERR_OK ? keyset_check_format(keyset, &version, detail) : err;
    err = err == ERR_OK ? keyset_convert(keyset, version, detail) : err;
    err = err == ERR_OK ? keyset_load_sums(keyset, version != FORMAT_WITHOUT_SUMS, detail) : err;
    if (err != ERR_OK) {
        keyset_unload(keyset);
    }
    return err;
}

enum err keyset_clear(struct keyset *keyset, struct err_detail *detail) {
    keyset_unload(keyset);
    keyset->is_doubted = false;
    enum err err = kv_destroy(kv_directory(keyset->kv), detail);
    return err == ERR_OK ? keyset_load(keyset, detail) : err;
}

enum err keyset_mend(struct keyset *keyset, struct err_detail *detail) {
    struct err_detail first = {0};
    keyset_unload(keyset);
    enum err err = keyset_load(keyset, &first);
    if (err == ERR_CORRUPT || err == ERR_MISMATCH || (err == ERR_OK && keyset->is_doubted)) {
        return keyset_clear(keyset, detail);
    }
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "%s", err_detail_text(&first, err));
}

enum err keyset_open(const char *directory, enum position_mapping mapping, struct keyset **ret_keyset,
                     struct err_detail *detail) {
    struct keyset *keyset = calloc(1, sizeof *keyset);
    if (keyset == NULL) {
        return err_set(detail, ERR_MEMORY, "%s", err_text(ERR_MEMORY));
    }
    keyset->mapping = mapping;
    buf_init(&keyset->values, PENDING_SIZE_MAX);
    buf_init(&keyset->entry, ENTRY_SIZE_MAX);
    kv_batch_init(&keyset->writes);
    keyset->changes = calloc(PENDING_COUNT_MAX, sizeof *keyset->changes);
    keyset->kv = kv_new(directory, &keyset_options);
    keyset->digests = (struct keyset_digests){.kv = keyset->kv, .is_by_place = mapping == POSITION_BY_URL};
    enum err err = sha256_init(&keyset->sha256);
    if (err != ERR_OK || keyset->changes == NULL || keyset->kv == NULL) {
        keyset_close(keyset);
        return err_set(detail, ERR_MEMORY, "%s", err_text(ERR_MEMORY));
    }
    err = keyset_mend(keyset, detail);
    if (err != ERR_OK) {
        keyset_close(keyset);
        return err;
    }
    *ret_keyset = keyset;
    return ERR_OK;
}

void keyset_close(struct keyset *keyset) {
    if (keyset->kv != NULL) {
        keyset_unload(keyset);
        kv_free(keyset->kv);
    }
    sha256_done(&keyset->sha256);
    kv_batch_done(&keyset->writes);
    buf_done(&keyset->values);
    buf_done(&keyset->entry);
    free(keyset->page.keys);
    free(keyset->page.before);
    free(keyset->changes);
    free(keyset);
}

/* ---- looking up ---- */

uint64_t keyset_count(const struct keyset *keyset) {
    return keyset_sums_all(&keyset->sums).count;
}

struct ringkey keyset_key(struct keyset *keyset, const struct capture *capture) {
    return position_capture_key(&keyset->sha256, capture, keyset->mapping);
}

enum err keyset_find(struct keyset *keyset, const struct ringkey *key, struct keyset_entry *ret_entry) {
    struct keyset_row row = keyset_row_of_key(key);
    enum err err = keyset_get(keyset, &row, &keyset->entry);
    if (err != ERR_OK) {
        return err;
    }
    struct wire_reader reader;
    wire_reader_init(&reader, buf_bytes(&keyset->entry));
    struct keyset_entry entry = {.volume = (uint16_t)wire_read_varint(&reader, UINT16_MAX)};
    entry.surt = wire_read_bytes(&reader, wire_reader_left(&reader));
    if (wire_reader_finish(&reader, NULL) != ERR_OK) {
        return ERR_CORRUPT;
    }
    *ret_entry = entry;
    return ERR_OK;
}

enum err keyset_contains(struct keyset *keyset, const struct ringkey *key, bool *ret_contains) {
    struct keyset_row row = keyset_row_of_key(key);
    enum err err = keyset_get(keyset, &row, NULL);
    if (err != ERR_OK && err != ERR_NOT_FOUND) {
        return err;
    }
    *ret_contains = err == ERR_OK;
    return ERR_OK;
}

enum err keyset_find_digest(struct keyset *keyset, const uint8_t digest[RINGKEY_DIGEST_SIZE],
                            const struct ringkey *behind, struct ringkey *ret_key) {
    return keyset_digests_find(&keyset->digests, digest, behind, ret_key);
}

enum err keyset_position(struct keyset *keyset, uint16_t volume, struct index_position *ret_position) {
    struct keyset_row row = keyset_row_of_volume(volume);
    enum err err = keyset_get(keyset, &row, &keyset->entry);
    if (err == ERR_NOT_FOUND) {
        *ret_position = (struct index_position){0};
        return ERR_OK;
    }
    return err == ERR_OK ? index_code_read_position(buf_bytes(&keyset->entry), ret_position) : err;
}

enum err keyset_find_volume(struct keyset *keyset, uint16_t from, uint16_t *ret_volume) {
    struct keyset_row first = keyset_row_of_volume(from);
    struct kv_iterator iterator;
    enum err err = keyset_walk(keyset, &first, KV_WALK, &iterator);
    if (err != ERR_OK) {
        return err;
    }
    err = kv_iterator_next(&iterator, NULL);
    bool is_position =
        err == ERR_OK && iterator.key.size == first.size && iterator.key.data[0] == first.bytes[0];
    if (is_position) {
        *ret_volume = (uint16_t)(iterator.key.data[1] << 8 | iterator.key.data[2]);
    }
    kv_iterator_done(&iterator);
    return err == ERR_OK && !is_position ? ERR_NOT_FOUND : err;
}

size_t keyset_memory_size(const struct keyset *keyset) {
    return keyset_sums_size(&keyset->sums);
}

/* ---- a bucket ---- */

static enum err keyset_reserve_page(struct keyset_page *page, size_t count) {
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

static enum err keyset_read_page(struct keyset *keyset, const struct keyset_bucket *bucket) {
    struct keyset_page *page = &keyset->page;
    struct ringkey_range range = {.lower = bucket->lower};
    page->is_loaded = false;
    page->lower = bucket->lower;
    enum err err = keyset_reserve_page(page, bucket->sum.count);
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
    if (ringkey_sum_equal(&sum, &bucket->sum)) {
        return ERR_OK;
    }
    keyset->is_doubted = true;
    kv_close(keyset->kv); /* until keyset_mend() */
    return ERR_CORRUPT;
}

static enum err keyset_load_page(struct keyset *keyset, struct keyset_position position) {
    const struct keyset_bucket *bucket = keyset_sums_bucket(&keyset->sums, position);
    if (keyset->page.is_loaded && ringkey_compare(&keyset->page.lower, &bucket->lower) == 0) {
        return ERR_OK;
    }
    if (bucket->sum.count == 0) {
        enum err err = keyset_reserve_page(&keyset->page, 1); /* keys and before are never NULL */
        keyset->page.count = 0;
        keyset->page.is_loaded = false;
        if (err == ERR_OK) {
            keyset->page.before[0] = (struct ringkey_sum){0};
        }
        return err;
    }
    enum err err = keyset_read_page(keyset, bucket);
    keyset->page.is_loaded = err == ERR_OK;
    return err;
}

/* How many keys of the page are below the bound. */
static size_t keyset_page_index(const struct keyset_page *page, const struct ringkey *bound) {
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

/* The sum of all keys below the bound. */
static enum err keyset_sum_before(struct keyset *keyset, const struct ringkey *bound,
                                  struct ringkey_sum *ret_sum) {
    struct keyset_position position = keyset_sums_find(&keyset->sums, bound);
    struct ringkey_sum sum = keyset_sums_before(&keyset->sums, position);
    if (ringkey_compare(&keyset_sums_bucket(&keyset->sums, position)->lower, bound) != 0) {
        enum err err = keyset_load_page(keyset, position);
        if (err != ERR_OK) {
            return err;
        }
        ringkey_sum_add(&sum, &keyset->page.before[keyset_page_index(&keyset->page, bound)]);
    }
    *ret_sum = sum;
    return ERR_OK;
}

enum err keyset_sum(struct keyset *keyset, const struct ringkey_range *range, struct ringkey_sum *ret_sum) {
    struct ringkey_sum before;
    struct ringkey_sum sum;
    if (!kv_is_open(keyset->kv)) {
        return ERR_IO;
    }
    enum err err = keyset_sum_before(keyset, &range->lower, &before);
    if (err == ERR_OK && range->has_upper) {
        err = keyset_sum_before(keyset, &range->upper, &sum);
    } else if (err == ERR_OK) {
        sum = keyset_sums_all(&keyset->sums);
    }
    if (err == ERR_OK) {
        ringkey_sum_subtract(&sum, &before);
        *ret_sum = sum;
    }
    return err;
}

static bool keyset_is_inside(const struct ringkey_range *range, const struct ringkey *bound) {
    return ringkey_compare(bound, &range->lower) > 0 &&
           (!range->has_upper || ringkey_compare(bound, &range->upper) < 0);
}

/* The begin of this bucket or of the next one, if it is near enough to the rank: nothing is read then. */
static bool keyset_cut_at_bucket(const struct keyset *keyset, const struct ringkey_range *range,
                                 struct keyset_position position, uint64_t index, uint64_t slack,
                                 struct ringkey *ret_bound) {
    const struct keyset_bucket *bucket = keyset_sums_bucket(&keyset->sums, position);
    uint64_t left = bucket->sum.count - index;
    if (index <= slack && keyset_is_inside(range, &bucket->lower)) {
        *ret_bound = bucket->lower;
        return true;
    }
    if (left > slack || !keyset_sums_next(&keyset->sums, &position)) {
        return false;
    }
    *ret_bound = keyset_sums_bucket(&keyset->sums, position)->lower;
    return keyset_is_inside(range, ret_bound);
}

enum err keyset_cut(struct keyset *keyset, const struct ringkey_range *range, uint64_t rank, uint64_t slack,
                    struct ringkey *ret_bound) {
    struct ringkey_sum before;
    if (!kv_is_open(keyset->kv)) {
        return ERR_IO;
    }
    enum err err = keyset_sum_before(keyset, &range->lower, &before);
    if (err != ERR_OK) {
        return err;
    }
    rank += before.count;
    struct keyset_position position = keyset_sums_find_rank(&keyset->sums, rank);
    uint64_t index = rank - keyset_sums_before(&keyset->sums, position).count;
    if (keyset_cut_at_bucket(keyset, range, position, index, slack, ret_bound)) {
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
    struct kv_iterator iterator;
    struct ringkey key;
    size_t count = 0;
    enum err err = keyset_walk(keyset, &first, KV_WALK, &iterator);
    if (err != ERR_OK) {
        return err;
    }
    while (count < count_max && (err = keyset_row_next_key(&iterator, &key)) == ERR_OK &&
           (!range->has_upper || ringkey_compare(&key, &range->upper) < 0)) {
        out[count++] = key;
    }
    kv_iterator_done(&iterator);
    if (err != ERR_OK && err != ERR_NOT_FOUND) {
        return err;
    }
    *ret_count = count;
    return ERR_OK;
}

/* ---- writing: collected, written in one batch, then counted in the sums ---- */

static enum err keyset_add_change(struct keyset *keyset, const struct keyset_change *change,
                                  struct err_detail *detail) {
    keyset->changes[keyset->changes_count] = *change;
    keyset->changes[keyset->changes_count].number = (uint32_t)keyset->changes_count;
    keyset->changes_count++;
    return keyset->changes_count == PENDING_COUNT_MAX ? keyset_commit(keyset, detail) : ERR_OK;
}

enum err keyset_put(struct keyset *keyset, const struct capture *capture, struct err_detail *detail) {
    uint8_t volume[WIRE_VARINT_SIZE_MAX];
    struct wire_writer writer;
    if (keyset->values.size + ENTRY_SIZE_MAX > PENDING_SIZE_MAX) {
        enum err err = keyset_commit(keyset, detail);
        if (err != ERR_OK) {
            return err;
        }
    }
    ASSERT(capture->surt.size <= INDEX_SURT_SIZE_MAX);
    struct keyset_change change = {.key = keyset_key(keyset, capture), .value_offset = keyset->values.size};
    wire_writer_init(&writer, volume, sizeof volume);
    wire_write_varint(&writer, capture->volume);
    buf_put(&keyset->values, bytes_of(volume, writer.size));
    buf_put(&keyset->values, capture->surt);
    change.value_size = keyset->values.size - change.value_offset;
    if (keyset->values.err != ERR_OK) {
        return err_set(detail, keyset->values.err, "%s", err_text(keyset->values.err));
    }
    return keyset_add_change(keyset, &change, detail);
}

enum err keyset_remove(struct keyset *keyset, const struct ringkey *key, struct err_detail *detail) {
    struct keyset_change change = {.key = *key, .is_removal = true};
    return keyset_add_change(keyset, &change, detail);
}

void keyset_set_position(struct keyset *keyset, uint16_t volume, const struct index_position *position) {
    uint8_t memory[INDEX_CODE_SMALL_SIZE_MAX];
    struct keyset_row row = keyset_row_of_volume(volume);
    struct bytes value = index_code_position(memory, position);
    kv_batch_put(&keyset->writes, 0, keyset_row_bytes(&row), value);
}

/* ---- a commit ---- */

static int keyset_compare_changes(const void *a, const void *b) {
    const struct keyset_change *left = a;
    const struct keyset_change *right = b;
    int order = ringkey_compare(&left->key, &right->key);
    return order != 0 ? order : (left->number > right->number) - (left->number < right->number);
}

/* If a key changes several times only the last change counts, and only if it changes something. */
static enum err keyset_find_effective(struct keyset *keyset) {
    qsort(keyset->changes, keyset->changes_count, sizeof *keyset->changes, keyset_compare_changes);
    for (size_t i = 0; i < keyset->changes_count; i++) {
        struct keyset_change *change = &keyset->changes[i];
        bool is_last = i + 1 == keyset->changes_count || ringkey_compare(&change->key, &change[1].key) != 0;
        if (!is_last) {
            continue;
        }
        bool is_there;
        enum err err = keyset_contains(keyset, &change->key, &is_there);
        if (err != ERR_OK) {
            return err;
        }
        change->is_effective = is_there == change->is_removal;
    }
    return ERR_OK;
}

/* The last first, as keyset_digests_put() wants it. */
static enum err keyset_put_writes(struct keyset *keyset) {
    struct kv_batch *writes = &keyset->writes;
    enum err err = ERR_OK;
    for (size_t i = keyset->changes_count; i-- > 0 && err == ERR_OK;) {
        const struct keyset_change *change = &keyset->changes[i];
        struct keyset_row row = keyset_row_of_key(&change->key);
        if (!change->is_effective) {
            continue;
        }
        if (change->is_removal) {
            kv_batch_remove(writes, 0, keyset_row_bytes(&row));
            keyset_digests_remove(&keyset->digests, &change->key, writes);
        } else {
            kv_batch_put(writes, 0, keyset_row_bytes(&row),
                         bytes_of(keyset->values.data + change->value_offset, change->value_size));
            err = keyset_digests_put(&keyset->digests, &change->key, writes);
        }
    }
    return err;
}

/* ---- the sums follow ---- */

/* The changes are in the order of the keys: those of one bucket come together. */
static void keyset_count_changes(struct keyset *keyset) {
    const struct keyset_bucket *last = NULL;
    for (size_t i = 0; i < keyset->changes_count; i++) {
        const struct keyset_change *change = &keyset->changes[i];
        if (!change->is_effective) {
            continue;
        }
        struct ringkey_sum sum = ringkey_sum_of(&keyset->sha256, &change->key);
        struct keyset_position position = keyset_sums_find(&keyset->sums, &change->key);
        const struct keyset_bucket *bucket = keyset_sums_bucket(&keyset->sums, position);
        if (last != NULL && bucket != last) {
            keyset_put_sum(keyset, last);
        }
        last = bucket;
        if (change->is_removal) {
            keyset_sums_subtract(&keyset->sums, position, &sum);
        } else {
            keyset_sums_add(&keyset->sums, position, &sum);
        }
    }
    if (last != NULL) {
        keyset_put_sum(keyset, last);
    }
}

/* Into parts of equal size; from its end, so that the page stays true of what is left. */
static enum err keyset_divide(struct keyset *keyset, struct keyset_position position) {
    enum err err = keyset_load_page(keyset, position);
    const struct keyset_page *page = &keyset->page;
    size_t parts_count = (page->count + BUCKET_COUNT_NEW - 1) / BUCKET_COUNT_NEW;
    size_t end = page->count;
    for (size_t i = parts_count; err == ERR_OK && i-- > 1;) {
        size_t at = page->count * i / parts_count;
        struct ringkey lower = ringkey_bound(&page->keys[at - 1], &page->keys[at]);
        struct ringkey_sum sum = page->before[end];
        ringkey_sum_subtract(&sum, &page->before[at]);
        err = keyset_sums_divide(&keyset->sums, keyset_sums_find(&keyset->sums, &page->lower), &lower, &sum);
        end = at;
        keyset_put_sum(keyset, &(struct keyset_bucket){.sum = sum, .lower = lower});
    }
    if (err == ERR_OK) {
        position = keyset_sums_find(&keyset->sums, &page->lower);
        keyset_put_sum(keyset, keyset_sums_bucket(&keyset->sums, position));
    }
    keyset->page.is_loaded = false;
    return err;
}

static void keyset_drop_empty(struct keyset *keyset, struct keyset_position position) {
    struct ringkey lower = keyset_sums_bucket(&keyset->sums, position)->lower;
    if (keyset_sums_drop_empty(&keyset->sums, position)) {
        struct keyset_row row = keyset_row_of_sum(&lower);
        kv_batch_remove(&keyset->writes, 0, keyset_row_bytes(&row));
    }
}

static enum err keyset_mind_buckets(struct keyset *keyset) {
    enum err err = ERR_OK;
    for (size_t i = 0; i < keyset->changes_count && err == ERR_OK; i++) {
        const struct keyset_change *change = &keyset->changes[i];
        struct keyset_position position = keyset_sums_find(&keyset->sums, &change->key);
        if (change->is_effective && change->is_removal) {
            keyset_drop_empty(keyset, position);
            err = keyset_digests_settle(&keyset->digests, &change->key, &keyset->writes);
        } else if (keyset_sums_bucket(&keyset->sums, position)->sum.count > BUCKET_COUNT_MAX) {
            err = keyset_divide(keyset, position);
        }
    }
    return err;
}

static enum err keyset_apply(struct keyset *keyset, struct err_detail *detail) {
    enum err err = keyset_find_effective(keyset);
    err = err == ERR_OK ? keyset_put_writes(keyset) : err;
    if (err != ERR_OK) {
        return err_set(detail, err, "the set of keys: %s", err_text(err));
    }
    keyset_count_changes(keyset);
    keyset->page.is_loaded = false;
    err = keyset_write_some(keyset, 1, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = keyset_mind_buckets(keyset);
    return err == ERR_OK ? keyset_write_some(keyset, 1, detail)
                         : err_set(detail, err, "the set of keys: %s", err_text(err));
}

enum err keyset_commit(struct keyset *keyset, struct err_detail *detail) {
    if (!kv_is_open(keyset->kv)) {
        keyset_forget_changes(keyset);
        return err_set(detail, ERR_IO, "the set of keys is closed after an error");
    }
    enum err err = keyset_apply(keyset, detail);
    keyset_forget_changes(keyset);
    if (err != ERR_OK) {
        /* Sums and keys may differ now: closed until keyset_mend(). */
        kv_close(keyset->kv);
    }
    return err;
}

/* ---- as a table ---- */

static enum err keyset_table_sum(void *context, const struct ringkey_range *range,
                                 struct ringkey_sum *ret_sum) {
    return keyset_sum(context, range, ret_sum);
}

static enum err keyset_table_cut(void *context, const struct ringkey_range *range, uint64_t rank,
                                 uint64_t slack, struct ringkey *ret_bound) {
    return keyset_cut(context, range, rank, slack, ret_bound);
}

static enum err keyset_table_list(void *context, const struct ringkey_range *range, struct ringkey *out,
                                  size_t count_max, size_t *ret_count) {
    return keyset_list(context, range, out, count_max, ret_count);
}

struct ringkey_set keyset_set(struct keyset *keyset) {
    static const struct ringkey_set_table table = {keyset_table_sum, keyset_table_cut, keyset_table_list};
    return (struct ringkey_set){.table = &table, .context = keyset};
}
