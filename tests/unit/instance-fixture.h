/* instance-fixture - an instance with three volumes in directories of their own, for tests. */
#ifndef MNEMON_TESTS_INSTANCE_FIXTURE_H
#define MNEMON_TESTS_INSTANCE_FIXTURE_H

#include <string.h>
#include <sys/stat.h>

#include "base/sha256.h"
#include "scratch.h"
#include "store/instance/instance.h"
#include "store/instance/merge.h"
#include "unit.h"

/* Numbers with gaps: they are names, not places in a list. */
static const uint16_t fixture_numbers[] = {0, 3, 7};

enum { FIXTURE_VOLUMES_COUNT = 3, FIXTURE_SECOND_US = 1000000 };

struct fixture {
    void *root; /* of scratch.h */
    char connector[SCRATCH_PATH_SIZE];
    char disks[FIXTURE_VOLUMES_COUNT][SCRATCH_PATH_SIZE];
    struct instance_config config;
    struct instance *instance;
    struct instance_session *session;
};

static inline void fixture_write(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static inline void fixture_open(struct fixture *fixture) {
    struct err_detail detail = {0};
    enum err err = instance_open(&fixture->config, &fixture->instance, &detail);
    if (err != ERR_OK) {
        fail_msg("%s", err_detail_text(&detail, err));
    }
    fixture->session = instance_session_new(fixture->instance);
    assert_non_null(fixture->session);
}

static inline void fixture_close(struct fixture *fixture) {
    instance_session_free(fixture->session);
    instance_close(fixture->instance);
}

static inline void fixture_reopen(struct fixture *fixture) {
    fixture_close(fixture);
    fixture_open(fixture);
}

/* Text for the connector: three disks, and what else is given. */
static inline void fixture_connect(struct fixture *fixture, const char *more) {
    char text[4 * SCRATCH_PATH_SIZE] = "";
    for (size_t i = 0; i < FIXTURE_VOLUMES_COUNT; i++) {
        size_t size = strlen(text);
        snprintf(text + size, sizeof text - size, "[volume-%u]\npath = \"%s\"\n", fixture_numbers[i],
                 fixture->disks[i]);
    }
    strncat(text, more, sizeof text - strlen(text) - 1);
    fixture_write(fixture->connector, text);
}

static inline int fixture_set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    if (fixture == NULL || scratch_make(&fixture->root) != 0) {
        return -1;
    }
    for (size_t i = 0; i < FIXTURE_VOLUMES_COUNT; i++) {
        char name[16];
        snprintf(name, sizeof name, "disk%zu", i);
        mkdir(scratch_path(fixture->root, name, fixture->disks[i]), 0777);
    }
    scratch_path(fixture->root, "connector", fixture->connector);
    fixture->config = (struct instance_config){.connector = fixture->connector};
    fixture_connect(fixture, "");
    fixture_open(fixture);
    *state = fixture;
    return 0;
}

static inline int fixture_tear_down(void **state) {
    struct fixture *fixture = *state;
    fixture_close(fixture);
    int result = scratch_remove(&fixture->root);
    free(fixture);
    return result;
}

static inline struct stored fixture_put_document(struct fixture *fixture, const struct document *document,
                                                 enum store_mode mode, uint16_t volume) {
    struct stored stored = {0};
    struct err_detail detail = {0};
    enum err err = instance_put(fixture->session, document, mode, volume, &stored, &detail);
    if (err != ERR_OK) {
        fail_msg("%s", err_detail_text(&detail, err));
    }
    return stored;
}

static inline struct stored fixture_put(struct fixture *fixture, const char *body, uint16_t volume) {
    struct document document = {.body = bytes_of_string(body), .time_us = FIXTURE_SECOND_US};
    return fixture_put_document(fixture, &document, STORE_REGULAR, volume);
}

/* A capture of an HTTP response, so many seconds into 1970. */
static inline struct stored fixture_capture(struct fixture *fixture, const char *url, int64_t seconds,
                                            const char *body, uint16_t volume) {
    struct document document = {
        .url = bytes_of_string(url),
        .time_us = seconds * FIXTURE_SECOND_US,
        .head = BYTES("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"),
        .body = bytes_of_string(body),
    };
    return fixture_put_document(fixture, &document, STORE_REGULAR, volume);
}

static inline void fixture_expect(struct fixture *fixture, const struct key *key, const char *body) {
    struct bytes found;
    struct err_detail detail = {0};
    enum err err = instance_get(fixture->session, key, &found, &detail);
    if (err != ERR_OK) {
        fail_msg("%s", err_detail_text(&detail, err));
    }
    assert_bytes_equal(found, bytes_of_string(body));
}

static inline struct document_sum fixture_sum(const char *body) {
    struct sha256 sha256;
    struct document_sum sum = {.size = strlen(body)};
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    sha256_digest(&sha256, bytes_of_string(body), sum.digest);
    sha256_done(&sha256);
    return sum;
}

/* The volume that the rule gives: the first eight bytes of the digest modulo how many take documents. */
static inline uint16_t fixture_place(const char *body, const uint16_t *numbers, size_t numbers_count) {
    struct document_sum sum = fixture_sum(body);
    uint64_t number = 0;
    for (size_t i = 0; i < 8; i++) {
        number = number << 8 | sum.digest[i];
    }
    return numbers[number % numbers_count];
}

/* A walk that begins behind each of them goes on with the next. */
static inline void fixture_expect_behind(struct fixture *fixture, const struct key *key,
                                         const struct key *next) {
    struct instance_blocks *blocks;
    struct key found;
    struct block block;
    assert_int_equal(instance_blocks_open(fixture->session, key, &blocks, NULL), ERR_OK);
    assert_int_equal(instance_blocks_next(blocks, &found, &block, NULL), ERR_OK);
    assert_int_equal(found.volume, next->volume);
    assert_memory_equal(found.digest, next->digest, KEY_DIGEST_SIZE);
    instance_blocks_close(blocks);
}

static inline uint64_t fixture_count_blocks(struct fixture *fixture) {
    struct instance_blocks *blocks;
    struct key key;
    struct key last;
    struct block block;
    uint64_t count = 0;
    assert_int_equal(instance_blocks_open(fixture->session, NULL, &blocks, NULL), ERR_OK);
    while (instance_blocks_next(blocks, &key, &block, NULL) == ERR_OK) {
        fixture_expect_behind(fixture, count == 0 ? NULL : &last, &key);
        last = key;
        count++;
    }
    instance_blocks_close(blocks);
    return count;
}

#endif
