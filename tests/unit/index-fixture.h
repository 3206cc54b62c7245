/* index-fixture - an index in a directory of its own, for the tests that need one. */
#ifndef MNEMON_TESTS_INDEX_FIXTURE_H
#define MNEMON_TESTS_INDEX_FIXTURE_H

#include <stdlib.h>

#include "scratch.h"
#include "store/index/index.h"
#include "store/index/index_batch.h"
#include "store/index/index_cursor.h"
#include "store/kv/kv.h"
#include "unit.h"

enum { BATCHES_COUNT = 20, BATCH_COUNT = 10 };

struct fixture {
    char *parent;
    char directory[SCRATCH_PATH_SIZE];
    struct index *index;
    struct index_batch *batch;
};

static inline void open_index(struct fixture *fixture) {
    struct err_detail detail = {0};
    enum err err = index_open(fixture->directory, &fixture->index, &detail);
    if (err != ERR_OK) {
        fail_msg("index_open: %s", detail.text);
    }
    fixture->batch = index_batch_new();
    assert_non_null(fixture->batch);
}

static inline void close_index(struct fixture *fixture) {
    index_batch_free(fixture->batch);
    index_close(fixture->index);
    fixture->index = NULL;
}

static inline void reopen(struct fixture *fixture) {
    close_index(fixture);
    open_index(fixture);
}

static inline void commit(struct fixture *fixture) {
    struct err_detail detail = {0};
    if (index_commit(fixture->index, fixture->batch, &detail) != ERR_OK) {
        fail_msg("index_commit: %s", detail.text);
    }
}

static inline void compact(struct fixture *fixture) {
    assert_int_equal(kv_compact(index_kv(fixture->index), NULL), ERR_OK);
}

static inline int make(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    void *parent = NULL;
    if (fixture == NULL || scratch_make(&parent) != 0) {
        return -1;
    }
    fixture->parent = parent;
    scratch_path(fixture->parent, "index", fixture->directory);
    open_index(fixture);
    *state = fixture;
    return 0;
}

static inline int destroy(void **state) {
    struct fixture *fixture = *state;
    void *parent = fixture->parent;
    if (fixture->index != NULL) {
        close_index(fixture);
    }
    free(fixture);
    return scratch_remove(&parent);
}

/* ---- captures ---- */

static inline struct capture capture_of(const char *surt, int64_t time_us, uint64_t offset) {
    struct capture capture = {
        .surt = bytes_of_string(surt),
        .time_us = time_us,
        .location = {.segment = 1, .offset = offset, .length = 1000},
        .url = BYTES("http://example.org/"),
        .mime = BYTES("text/html"),
        .status = 200,
    };
    memset(capture.digest, 0xab, sizeof capture.digest);
    return capture;
}

static inline void put(struct fixture *fixture, const char *surt, int64_t time_us, uint64_t offset) {
    struct capture capture = capture_of(surt, time_us, offset);
    index_batch_put_capture(fixture->batch, &capture);
}

static inline struct index_cursor *walk(struct fixture *fixture, struct bytes from, struct bytes to,
                                        bool in_reverse) {
    struct index_cursor *cursor = NULL;
    assert_int_equal(index_cursor_open(fixture->index, from, to, in_reverse, &cursor), ERR_OK);
    return cursor;
}

static inline size_t count_all(struct fixture *fixture) {
    struct index_cursor *cursor = walk(fixture, BYTES(""), BYTES(""), false);
    struct capture capture;
    size_t count = 0;
    while (index_cursor_next(cursor, &capture) == ERR_OK) {
        count++;
    }
    index_cursor_close(cursor);
    return count;
}

static const uint8_t low[KEY_DIGEST_SIZE] = {1};

static inline struct block block_of(uint64_t size) {
    return (struct block){.location = {3, 4, 5}, .size = size, .references = 1, .records_count = 1};
}

/* Each batch has ten captures and says in the position how many batches there are. */
static inline void put_batch(struct fixture *fixture, uint32_t number) {
    for (int64_t i = 0; i < BATCH_COUNT; i++) {
        put(fixture, "a", i, number);
    }
    index_batch_set_position(fixture->batch, &(struct index_position){number, 0});
    commit(fixture);
}

static inline uint32_t assert_whole_batches(struct fixture *fixture) {
    struct index_position position;
    assert_int_equal(index_position(fixture->index, &position), ERR_OK);
    assert_int_equal(count_all(fixture), position.segment * BATCH_COUNT);
    return position.segment;
}

#endif
