#include <stdlib.h>

#include "store/index_code.h"
#include "store/index_database.h"
#include "store/index_url.h"

struct index_cursor {
    rocksdb_iterator_t *iterator;
    rocksdb_readoptions_t *options;
    struct buf from; /* the options borrow both */
    struct buf to;
    struct buf url; /* of the capture that was returned last */
    bool is_of_blocks;
    bool in_reverse;
    bool has_started;
    enum err err;
};

static void cursor_free(struct index_cursor *cursor) {
    if (cursor->iterator != NULL) {
        rocksdb_iter_destroy(cursor->iterator);
    }
    rocksdb_readoptions_destroy(cursor->options);
    buf_done(&cursor->from);
    buf_done(&cursor->to);
    buf_done(&cursor->url);
    free(cursor);
}

static struct index_cursor *cursor_new(void) {
    struct index_cursor *cursor = calloc(1, sizeof *cursor);
    if (cursor == NULL) {
        return NULL;
    }
    cursor->options = rocksdb_readoptions_create();
    buf_init(&cursor->from, INDEX_CODE_CAPTURE_KEY_SIZE_MAX);
    buf_init(&cursor->to, INDEX_CODE_CAPTURE_KEY_SIZE_MAX);
    buf_init(&cursor->url, INDEX_URL_WORK_SIZE_MAX);
    return cursor;
}

static bool are_of_one_surt(struct bytes from, struct bytes to) {
    size_t size = index_code_surt_size(from);
    return size > 0 && bytes_starts_with(to, bytes_slice(from, 0, size));
}

/* An iterator may use the filters only where all that it shall find has the SURT of its start. */
static void set_bounds(struct index_cursor *cursor) {
    bool is_of_one_surt = are_of_one_surt(buf_bytes(&cursor->from), buf_bytes(&cursor->to));
    rocksdb_readoptions_set_total_order_seek(cursor->options, !is_of_one_surt);
    rocksdb_readoptions_set_prefix_same_as_start(cursor->options, is_of_one_surt);
    if (cursor->from.size > 0) {
        rocksdb_readoptions_set_iterate_lower_bound(cursor->options, (const char *)cursor->from.data,
                                                    cursor->from.size);
    }
    if (cursor->to.size > 0) {
        rocksdb_readoptions_set_iterate_upper_bound(cursor->options, (const char *)cursor->to.data,
                                                    cursor->to.size);
    }
}

enum err index_cursor_open(const struct index *index, struct bytes from, struct bytes to, bool in_reverse,
                           struct index_cursor **ret_cursor) {
    struct index_cursor *cursor = cursor_new();
    if (cursor == NULL) {
        return ERR_MEMORY;
    }
    enum err err = buf_put(&cursor->from, from);
    if (err == ERR_OK) {
        err = buf_put(&cursor->to, to);
    }
    if (err != ERR_OK) {
        cursor_free(cursor);
        return err;
    }
    set_bounds(cursor);
    cursor->in_reverse = in_reverse;
    cursor->iterator =
        rocksdb_create_iterator_cf(index->database, cursor->options, index->families[INDEX_FAMILY_CAPTURES]);
    *ret_cursor = cursor;
    return ERR_OK;
}

enum err index_blocks_open(const struct index *index, struct index_cursor **ret_cursor) {
    struct index_cursor *cursor = cursor_new();
    if (cursor == NULL) {
        return ERR_MEMORY;
    }
    cursor->is_of_blocks = true;
    rocksdb_readoptions_set_fill_cache(cursor->options, 0); /* a walk over all of it would empty the cache */
    cursor->iterator =
        rocksdb_create_iterator_cf(index->database, cursor->options, index->families[INDEX_FAMILY_BLOCKS]);
    *ret_cursor = cursor;
    return ERR_OK;
}

void index_cursor_close(struct index_cursor *cursor) {
    cursor_free(cursor);
}

static void seek(struct index_cursor *cursor) {
    if (cursor->in_reverse && cursor->to.size > 0) {
        rocksdb_iter_seek_for_prev(cursor->iterator, (const char *)cursor->to.data, cursor->to.size);
    } else if (cursor->in_reverse) {
        rocksdb_iter_seek_to_last(cursor->iterator);
    } else if (cursor->from.size > 0) {
        rocksdb_iter_seek(cursor->iterator, (const char *)cursor->from.data, cursor->from.size);
    } else {
        rocksdb_iter_seek_to_first(cursor->iterator);
    }
}

/* To the first entry, or from one to the next. */
static enum err advance(struct index_cursor *cursor) {
    if (cursor->err != ERR_OK) {
        return cursor->err;
    }
    if (!cursor->has_started) {
        seek(cursor);
        cursor->has_started = true;
    } else if (cursor->in_reverse) {
        rocksdb_iter_prev(cursor->iterator);
    } else {
        rocksdb_iter_next(cursor->iterator);
    }
    if (rocksdb_iter_valid(cursor->iterator)) {
        return ERR_OK;
    }
    char *message = NULL;
    rocksdb_iter_get_error(cursor->iterator, &message);
    return cursor->err = message == NULL ? ERR_NOT_FOUND : index_database_failed(message, NULL);
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

enum err index_cursor_next(struct index_cursor *cursor, struct capture *ret_capture) {
    ASSERT(!cursor->is_of_blocks);
    enum err err = advance(cursor);
    if (err != ERR_OK) {
        return err;
    }
    return cursor->err =
               index_code_read_capture(cursor_key(cursor), cursor_value(cursor), &cursor->url, ret_capture);
}

enum err index_blocks_next(struct index_cursor *cursor, uint8_t ret_signature[KEY_SIGNATURE_SIZE],
                           uint16_t *ret_number, struct block *ret_block) {
    ASSERT(cursor->is_of_blocks);
    enum err err = advance(cursor);
    if (err != ERR_OK) {
        return err;
    }
    struct block block;
    err = index_code_read_block(cursor_value(cursor), &block);
    if (err == ERR_OK) {
        err = index_code_read_block_key(cursor_key(cursor), ret_signature, ret_number);
    }
    if (err == ERR_OK) {
        *ret_block = block;
    }
    return cursor->err = err;
}
