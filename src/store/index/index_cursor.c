#include <stdlib.h>

#include "store/index/index_code.h"
#include "store/index/index_database.h"
#include "store/index/index_url.h"

enum { SEEN_COUNT = 4 };

struct index_cursor {
    const struct index *index;
    rocksdb_iterator_t *iterator;
    rocksdb_iterator_t *blocks;                /* to complete the digests of revisits; NULL until the first */
    uint8_t seen[SEEN_COUNT][KEY_DIGEST_SIZE]; /* digests of the last captures: mostly the same */
    size_t seen_count;
    struct buf kept_key; /* of the capture that was returned last, where the iterator is ahead of it */
    struct buf kept_value;
    struct buf ahead_url; /* of the one that it is at */
    bool is_ahead;
    rocksdb_readoptions_t *options; /* of a walk over several SURTs; NULL: the index's */
    uint64_t sequence;              /* without options: of the database when the iterator was made */
    struct buf from;                /* the options borrow both */
    struct buf to;
    struct buf url; /* of the capture that was returned last */
    bool is_of_blocks;
    bool in_reverse;
    bool has_started;
    enum err err;
};

/* One that failed is not used again. */
static void release_iterator(struct index_cursor *cursor) {
    if (cursor->options == NULL && (cursor->err == ERR_OK || cursor->err == ERR_NOT_FOUND)) {
        index_spares_put(&cursor->index->gate->spares, cursor->iterator, cursor->sequence);
    } else {
        rocksdb_iter_destroy(cursor->iterator);
    }
}

static void cursor_free(struct index_cursor *cursor) {
    if (cursor->blocks != NULL) {
        rocksdb_iter_destroy(cursor->blocks);
    }
    if (cursor->iterator != NULL) {
        release_iterator(cursor);
        atomic_fetch_sub(&cursor->index->gate->cursors_count, 1);
    }
    if (cursor->options != NULL) {
        rocksdb_readoptions_destroy(cursor->options);
    }
    buf_done(&cursor->from);
    buf_done(&cursor->to);
    buf_done(&cursor->url);
    buf_done(&cursor->kept_key);
    buf_done(&cursor->kept_value);
    buf_done(&cursor->ahead_url);
    free(cursor);
}

static struct index_cursor *cursor_new(const struct index *index) {
    struct index_cursor *cursor = calloc(1, sizeof *cursor);
    if (cursor == NULL) {
        return NULL;
    }
    cursor->index = index;
    buf_init(&cursor->from, INDEX_CODE_CAPTURE_KEY_SIZE_MAX);
    buf_init(&cursor->to, INDEX_CODE_CAPTURE_KEY_SIZE_MAX);
    buf_init(&cursor->url, INDEX_URL_WORK_SIZE_MAX);
    buf_init(&cursor->kept_key, INDEX_CODE_CAPTURE_KEY_SIZE_MAX);
    buf_init(&cursor->kept_value, INDEX_CODE_CAPTURE_SIZE_MAX);
    buf_init(&cursor->ahead_url, INDEX_URL_WORK_SIZE_MAX);
    return cursor;
}

static bool are_of_one_surt(struct bytes from, struct bytes to) {
    size_t size = index_code_surt_size(from);
    return size > 0 && bytes_starts_with(to, bytes_slice(from, 0, size));
}

/*
 * An iterator may use the filters only where all that it shall find has the SURT of its start. A walk over
 * more than that reads many pages once; it must not drive out of the cache what lookups read again and again.
 */
static void set_options(struct index_cursor *cursor) {
    cursor->options = rocksdb_readoptions_create();
    rocksdb_readoptions_set_fill_cache(cursor->options, 0);
    rocksdb_readoptions_set_total_order_seek(cursor->options, 1);
    if (cursor->from.size > 0) {
        rocksdb_readoptions_set_iterate_lower_bound(cursor->options, (const char *)cursor->from.data,
                                                    cursor->from.size);
    }
    if (cursor->to.size > 0) {
        rocksdb_readoptions_set_iterate_upper_bound(cursor->options, (const char *)cursor->to.data,
                                                    cursor->to.size);
    }
}

/* From here on the database stays open. */
static enum err start(struct index_cursor *cursor, enum index_family family) {
    const struct index *index = cursor->index;
    enum err err = index_database_enter(index);
    if (err != ERR_OK) {
        return err;
    }
    rocksdb_set_perf_level(rocksdb_disable); /* of this thread, whosever it is: counting costs 5 % */
    if (cursor->options == NULL) { /* asked before the iterator is made, which may show later commits too */
        cursor->sequence = rocksdb_get_latest_sequence_number(index->database);
        cursor->iterator = index_spares_take(&index->gate->spares, cursor->sequence);
    }
    if (cursor->iterator == NULL) {
        cursor->iterator = rocksdb_create_iterator_cf(
            index->database, cursor->options != NULL ? cursor->options : index->surt_options,
            index->families[family]);
    }
    atomic_fetch_add(&index->gate->cursors_count, 1);
    index_database_leave(index);
    return ERR_OK;
}

enum err index_cursor_open(const struct index *index, struct bytes from, struct bytes to, bool in_reverse,
                           struct index_cursor **ret_cursor) {
    struct index_cursor *cursor = cursor_new(index);
    if (cursor == NULL) {
        return ERR_MEMORY;
    }
    enum err err = buf_put(&cursor->from, from);
    if (err == ERR_OK) {
        err = buf_put(&cursor->to, to);
    }
    if (err == ERR_OK) {
        if (!are_of_one_surt(from, to)) {
            set_options(cursor);
        }
        cursor->in_reverse = in_reverse;
        err = start(cursor, INDEX_FAMILY_CAPTURES);
    }
    if (err != ERR_OK) {
        cursor_free(cursor);
        return err;
    }
    *ret_cursor = cursor;
    return ERR_OK;
}

enum err index_cursor_open_time(const struct index *index, struct bytes surt, int64_t time_us,
                                struct index_cursor **ret_cursor) {
    struct buf from;
    struct buf to;
    buf_init(&from, INDEX_CODE_CAPTURE_KEY_SIZE_MAX);
    buf_init(&to, INDEX_CODE_CAPTURE_KEY_SIZE_MAX);
    index_put_capture_prefix(&from, surt, time_us);
    index_put_capture_prefix(&to, surt, time_us + 1);
    enum err err = from.err != ERR_OK ? from.err : to.err;
    if (err == ERR_OK) {
        err = index_cursor_open(index, buf_bytes(&from), buf_bytes(&to), false, ret_cursor);
    }
    buf_done(&from);
    buf_done(&to);
    return err;
}

enum err index_blocks_open_at(const struct index *index, struct bytes from,
                              struct index_cursor **ret_cursor) {
    struct index_cursor *cursor = cursor_new(index);
    if (cursor == NULL) {
        return ERR_MEMORY;
    }
    cursor->is_of_blocks = true;
    cursor->options = rocksdb_readoptions_create();
    rocksdb_readoptions_set_fill_cache(cursor->options, 0); /* a walk over all of it would empty the cache */
    enum err err = buf_put(&cursor->from, from);
    if (err == ERR_OK) {
        err = start(cursor, INDEX_FAMILY_BLOCKS);
    }
    if (err != ERR_OK) {
        cursor_free(cursor);
        return err;
    }
    *ret_cursor = cursor;
    return ERR_OK;
}

enum err index_blocks_open(const struct index *index, struct index_cursor **ret_cursor) {
    return index_blocks_open_at(index, bytes_of(NULL, 0), ret_cursor);
}

void index_cursor_close(struct index_cursor *cursor) {
    cursor_free(cursor);
}

static struct bytes cursor_key(const struct index_cursor *cursor) {
    size_t size = 0;
    const char *data = rocksdb_iter_key(cursor->iterator, &size);
    return bytes_of(data, size);
}

static struct bytes cursor_value(const struct index_cursor *cursor) {
    size_t size = 0;
    const char *data = rocksdb_iter_value(cursor->iterator, &size);
    return bytes_of(data, size);
}

static void seek(struct index_cursor *cursor) {
    if (cursor->in_reverse && cursor->to.size > 0) {
        rocksdb_iter_seek_for_prev(cursor->iterator, (const char *)cursor->to.data, cursor->to.size);
        if (rocksdb_iter_valid(cursor->iterator) && bytes_equal(cursor_key(cursor), buf_bytes(&cursor->to))) {
            rocksdb_iter_prev(cursor->iterator); /* the end itself is left out */
        }
    } else if (cursor->in_reverse) {
        rocksdb_iter_seek_to_last(cursor->iterator);
    } else if (cursor->from.size > 0) {
        rocksdb_iter_seek(cursor->iterator, (const char *)cursor->from.data, cursor->from.size);
    } else {
        rocksdb_iter_seek_to_first(cursor->iterator);
    }
}

/* An iterator without options of its own does not know the bounds; it ends with the SURT. */
static bool is_within(const struct index_cursor *cursor) {
    if (cursor->options != NULL) {
        return true;
    }
    struct bytes key = cursor_key(cursor);
    return cursor->in_reverse ? bytes_compare(key, buf_bytes(&cursor->from)) >= 0
                              : bytes_compare(key, buf_bytes(&cursor->to)) < 0;
}

/* To the first entry, or from one to the next. */
static enum err advance(struct index_cursor *cursor) {
    if (cursor->err != ERR_OK) {
        return cursor->err;
    }
    if (cursor->is_ahead) {
        cursor->is_ahead = false;
    } else if (!cursor->has_started) {
        seek(cursor);
        cursor->has_started = true;
    } else if (cursor->in_reverse) {
        rocksdb_iter_prev(cursor->iterator);
    } else {
        rocksdb_iter_next(cursor->iterator);
    }
    if (rocksdb_iter_valid(cursor->iterator)) {
        return cursor->err = is_within(cursor) ? ERR_OK : ERR_NOT_FOUND;
    }
    char *message = NULL;
    rocksdb_iter_get_error(cursor->iterator, &message);
    return cursor->err = message == NULL ? ERR_NOT_FOUND : index_database_failed(message, NULL);
}

/* ---- the digests of revisits ---- */

static void remember(struct index_cursor *cursor, const uint8_t digest[KEY_DIGEST_SIZE]) {
    memcpy(cursor->seen[cursor->seen_count++ % SEEN_COUNT], digest, KEY_DIGEST_SIZE);
}

static bool recall(const struct index_cursor *cursor, uint8_t digest[KEY_DIGEST_SIZE]) {
    size_t count = cursor->seen_count < SEEN_COUNT ? cursor->seen_count : SEEN_COUNT;
    for (size_t i = 0; i < count; i++) {
        if (memcmp(cursor->seen[i], digest, INDEX_CODE_SHORT_DIGEST_SIZE) == 0) {
            memcpy(digest, cursor->seen[i], KEY_DIGEST_SIZE);
            return true;
        }
    }
    return false;
}

/* The block whose digest begins so. ERR_NOT_FOUND: a compaction has removed it since, and the capture. */
static enum err find_digest(struct index_cursor *cursor, uint8_t digest[KEY_DIGEST_SIZE]) {
    if (cursor->blocks == NULL) {
        const struct index *index = cursor->index;
        cursor->blocks = rocksdb_create_iterator_cf(
            index->database, cursor->options != NULL ? index->walk_options : index->read_options,
            index->families[INDEX_FAMILY_BLOCKS]);
    }
    rocksdb_iter_seek(cursor->blocks, (const char *)digest, INDEX_CODE_SHORT_DIGEST_SIZE);
    if (!rocksdb_iter_valid(cursor->blocks)) {
        char *message = NULL;
        rocksdb_iter_get_error(cursor->blocks, &message);
        return message == NULL ? ERR_NOT_FOUND : index_database_failed(message, NULL);
    }
    size_t size = 0;
    const char *key = rocksdb_iter_key(cursor->blocks, &size);
    if (size < KEY_DIGEST_SIZE || memcmp(key, digest, INDEX_CODE_SHORT_DIGEST_SIZE) != 0) {
        return ERR_NOT_FOUND;
    }
    memcpy(digest, key, KEY_DIGEST_SIZE);
    return ERR_OK;
}

/*
 * In reverse the original of the same URL comes behind its revisits, mostly right behind, and is in the same
 * page. So the iterator goes on already; the capture's own bytes are copied before.
 */
static enum err look_ahead(struct index_cursor *cursor, struct capture *capture, bool *ret_found) {
    buf_clear(&cursor->kept_key);
    buf_clear(&cursor->kept_value);
    buf_put(&cursor->kept_key, cursor_key(cursor));
    buf_put(&cursor->kept_value, cursor_value(cursor));
    *ret_found = false;
    enum err err = cursor->kept_key.err != ERR_OK ? cursor->kept_key.err : cursor->kept_value.err;
    if (err == ERR_OK) {
        err = index_code_read_capture(buf_bytes(&cursor->kept_key), buf_bytes(&cursor->kept_value),
                                      &cursor->url, capture);
    }
    if (err != ERR_OK) {
        return err;
    }
    struct capture older;
    rocksdb_iter_prev(cursor->iterator);
    cursor->is_ahead = true;
    if (rocksdb_iter_valid(cursor->iterator) &&
        index_code_read_capture(cursor_key(cursor), cursor_value(cursor), &cursor->ahead_url, &older) ==
            ERR_OK &&
        !(older.flags & CAPTURE_REVISIT) &&
        memcmp(older.digest, capture->digest, INDEX_CODE_SHORT_DIGEST_SIZE) == 0) {
        memcpy(capture->digest, older.digest, KEY_DIGEST_SIZE);
        *ret_found = true;
    }
    return ERR_OK;
}

static enum err complete_digest(struct index_cursor *cursor, struct capture *capture) {
    bool is_complete = !(capture->flags & CAPTURE_REVISIT) || recall(cursor, capture->digest);
    enum err err = ERR_OK;
    if (!is_complete && cursor->in_reverse) {
        err = look_ahead(cursor, capture, &is_complete);
    }
    if (err == ERR_OK && !is_complete) {
        err = find_digest(cursor, capture->digest);
    }
    if (err == ERR_OK) {
        remember(cursor, capture->digest);
    }
    return err;
}

enum err index_cursor_next(struct index_cursor *cursor, struct capture *ret_capture) {
    ASSERT(!cursor->is_of_blocks);
    for (;;) {
        struct capture capture;
        enum err err = advance(cursor);
        if (err != ERR_OK) {
            return err;
        }
        err = index_code_read_capture(cursor_key(cursor), cursor_value(cursor), &cursor->url, &capture);
        if (err == ERR_OK) {
            err = complete_digest(cursor, &capture);
            if (err == ERR_NOT_FOUND) {
                continue;
            }
        }
        if (err == ERR_OK) {
            *ret_capture = capture;
        }
        return cursor->err = err;
    }
}

enum err index_blocks_next(struct index_cursor *cursor, uint8_t ret_digest[KEY_DIGEST_SIZE],
                           uint16_t *ret_number, struct block *ret_block) {
    ASSERT(cursor->is_of_blocks);
    enum err err = advance(cursor);
    if (err != ERR_OK) {
        return err;
    }
    struct block block;
    err = index_code_read_block(cursor_value(cursor), &block);
    if (err == ERR_OK) {
        err = index_code_read_block_key(cursor_key(cursor), ret_digest, ret_number);
    }
    if (err == ERR_OK) {
        *ret_block = block;
    }
    return cursor->err = err;
}
