#include "store/index/index_cursor.h"

#include <stdlib.h>

#include "store/index/index_url.h"
#include "store/kv/kv.h"

enum { SEEN_COUNT = 4 };

struct index_cursor {
    struct kv *kv;
    struct kv_iterator iterator;
    struct kv_iterator blocks; /* to complete the digests of revisits */
    bool has_iterator;
    bool has_blocks;
    uint8_t seen[SEEN_COUNT][KEY_DIGEST_SIZE]; /* digests of the last captures: mostly the same */
    size_t seen_count;
    struct buf kept_key; /* of the capture that was returned last, if the iterator is ahead of it */
    struct buf kept_value;
    struct buf ahead_url; /* of the one that it is at */
    enum err ahead_err;   /* what it met there */
    bool is_ahead;
    struct buf from; /* the iterator borrows both */
    struct buf to;
    struct buf url; /* of the capture that was returned last */
    bool is_of_blocks;
    bool in_reverse;
    bool is_of_one_surt;
    enum err err;
};

static struct index_cursor *index_cursor_new(const struct index *index) {
    struct index_cursor *cursor = calloc(1, sizeof *cursor);
    if (cursor == NULL) {
        return NULL;
    }
    cursor->kv = index_kv(index);
    buf_init(&cursor->from, INDEX_CODE_CAPTURE_KEY_SIZE_MAX);
    buf_init(&cursor->to, INDEX_CODE_CAPTURE_KEY_SIZE_MAX);
    buf_init(&cursor->url, INDEX_URL_WORK_SIZE_MAX);
    buf_init(&cursor->kept_key, INDEX_CODE_CAPTURE_KEY_SIZE_MAX);
    buf_init(&cursor->kept_value, INDEX_CODE_CAPTURE_SIZE_MAX);
    buf_init(&cursor->ahead_url, INDEX_URL_WORK_SIZE_MAX);
    return cursor;
}

void index_cursor_close(struct index_cursor *cursor) {
    if (cursor->has_blocks) {
        kv_iterator_done(&cursor->blocks);
    }
    if (cursor->has_iterator) {
        kv_iterator_done(&cursor->iterator);
    }
    buf_done(&cursor->from);
    buf_done(&cursor->to);
    buf_done(&cursor->url);
    buf_done(&cursor->kept_key);
    buf_done(&cursor->kept_value);
    buf_done(&cursor->ahead_url);
    free(cursor);
}

static bool index_cursor_is_one_surt(struct bytes from, struct bytes to) {
    size_t size = index_code_surt_size(from);
    return size > 0 && bytes_starts_with(to, bytes_slice(from, 0, size));
}

/* From here on the database stays open. Takes the cursor; it is freed after a failure. */
static enum err index_cursor_start(struct index_cursor *take_cursor, enum index_family family,
                                   enum kv_walk walk, struct bytes from, struct bytes to,
                                   struct index_cursor **ret_cursor) {
    struct index_cursor *cursor = take_cursor;
    buf_put(&cursor->from, from);
    buf_put(&cursor->to, to);
    enum err err = cursor->from.err != ERR_OK ? cursor->from.err : cursor->to.err;
    if (err == ERR_OK) {
        err = kv_iterator_init(&cursor->iterator, cursor->kv, family, walk, buf_bytes(&cursor->from),
                               buf_bytes(&cursor->to), cursor->in_reverse);
    }
    cursor->has_iterator = err == ERR_OK;
    if (err != ERR_OK) {
        index_cursor_close(cursor);
        return err;
    }
    *ret_cursor = cursor;
    return ERR_OK;
}

enum err index_cursor_open(const struct index *index, struct bytes from, struct bytes to, bool in_reverse,
                           struct index_cursor **ret_cursor) {
    struct index_cursor *cursor = index_cursor_new(index);
    if (cursor == NULL) {
        return ERR_MEMORY;
    }
    cursor->in_reverse = in_reverse;
    /* A walk over more than one SURT reads many pages once; it must not drive out of the cache what lookups
     * read again and again. */
    cursor->is_of_one_surt = index_cursor_is_one_surt(from, to);
    return index_cursor_start(cursor, INDEX_FAMILY_CAPTURES,
                              cursor->is_of_one_surt ? KV_WALK_PREFIX : KV_WALK_ONCE, from, to, ret_cursor);
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
    struct index_cursor *cursor = index_cursor_new(index);
    if (cursor == NULL) {
        return ERR_MEMORY;
    }
    cursor->is_of_blocks = true;
    return index_cursor_start(cursor, INDEX_FAMILY_BLOCKS, KV_WALK_ONCE, from, bytes_of(NULL, 0), ret_cursor);
}

enum err index_blocks_open(const struct index *index, struct index_cursor **ret_cursor) {
    return index_blocks_open_at(index, bytes_of(NULL, 0), ret_cursor);
}

/* To the first entry, or from one to the next. */
static enum err index_cursor_advance(struct index_cursor *cursor) {
    if (cursor->err == ERR_OK) {
        cursor->err = cursor->is_ahead ? cursor->ahead_err : kv_iterator_next(&cursor->iterator, NULL);
        cursor->is_ahead = false;
    }
    return cursor->err;
}

/* ---- the digests of revisits ---- */

static void index_cursor_remember(struct index_cursor *cursor, const uint8_t digest[KEY_DIGEST_SIZE]) {
    memcpy(cursor->seen[cursor->seen_count++ % SEEN_COUNT], digest, KEY_DIGEST_SIZE);
}

static bool index_cursor_recall(const struct index_cursor *cursor, uint8_t digest[KEY_DIGEST_SIZE]) {
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
static enum err index_cursor_find_digest(struct index_cursor *cursor, uint8_t digest[KEY_DIGEST_SIZE]) {
    if (!cursor->has_blocks) {
        enum err err = kv_iterator_init(&cursor->blocks, cursor->kv, INDEX_FAMILY_BLOCKS,
                                        cursor->is_of_one_surt ? KV_WALK : KV_WALK_ONCE, bytes_of(NULL, 0),
                                        bytes_of(NULL, 0), false);
        if (err != ERR_OK) {
            return err;
        }
        cursor->has_blocks = true;
    }
    enum err err = kv_iterator_seek(&cursor->blocks, bytes_of(digest, INDEX_CODE_SHORT_DIGEST_SIZE), NULL);
    if (err != ERR_OK) {
        return err;
    }
    struct bytes key = cursor->blocks.key;
    if (key.size < KEY_DIGEST_SIZE || memcmp(key.data, digest, INDEX_CODE_SHORT_DIGEST_SIZE) != 0) {
        return ERR_NOT_FOUND;
    }
    memcpy(digest, key.data, KEY_DIGEST_SIZE);
    return ERR_OK;
}

/*
 * In reverse the original of the same URL comes behind its revisits, mostly right behind, and is in the same
 * page. So the iterator goes on already; the capture's own bytes are copied before.
 */
static enum err index_cursor_look_ahead(struct index_cursor *cursor, struct capture *capture,
                                        bool *ret_found) {
    buf_clear(&cursor->kept_key);
    buf_clear(&cursor->kept_value);
    buf_put(&cursor->kept_key, cursor->iterator.key);
    buf_put(&cursor->kept_value, cursor->iterator.value);
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
    cursor->ahead_err = kv_iterator_next(&cursor->iterator, NULL);
    cursor->is_ahead = true;
    if (cursor->ahead_err == ERR_OK &&
        index_code_read_capture(cursor->iterator.key, cursor->iterator.value, &cursor->ahead_url, &older) ==
            ERR_OK &&
        !(older.flags & CAPTURE_REVISIT) &&
        memcmp(older.digest, capture->digest, INDEX_CODE_SHORT_DIGEST_SIZE) == 0) {
        memcpy(capture->digest, older.digest, KEY_DIGEST_SIZE);
        *ret_found = true;
    }
    return ERR_OK;
}

static enum err index_cursor_complete_digest(struct index_cursor *cursor, struct capture *capture) {
    bool is_complete = !(capture->flags & CAPTURE_REVISIT) || index_cursor_recall(cursor, capture->digest);
    enum err err = ERR_OK;
    if (!is_complete && cursor->in_reverse) {
        err = index_cursor_look_ahead(cursor, capture, &is_complete);
    }
    if (err == ERR_OK && !is_complete) {
        err = index_cursor_find_digest(cursor, capture->digest);
    }
    if (err == ERR_OK) {
        index_cursor_remember(cursor, capture->digest);
    }
    return err;
}

enum err index_cursor_next(struct index_cursor *cursor, struct capture *ret_capture) {
    ASSERT(!cursor->is_of_blocks);
    for (;;) {
        struct capture capture;
        enum err err = index_cursor_advance(cursor);
        if (err != ERR_OK) {
            return err;
        }
        err = index_code_read_capture(cursor->iterator.key, cursor->iterator.value, &cursor->url, &capture);
        if (err == ERR_OK) {
            err = index_cursor_complete_digest(cursor, &capture);
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
    enum err err = index_cursor_advance(cursor);
    if (err != ERR_OK) {
        return err;
    }
    struct block block;
    err = index_code_read_block(cursor->iterator.value, &block);
    if (err == ERR_OK) {
        err = index_code_read_block_key(cursor->iterator.key, ret_digest, ret_number);
    }
    if (err == ERR_OK) {
        *ret_block = block;
    }
    return cursor->err = err;
}
