/* volume-fixture - a volume on real files in a directory of its own, for the tests that need one. */
#ifndef MNEMON_TESTS_VOLUME_FIXTURE_H
#define MNEMON_TESTS_VOLUME_FIXTURE_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "store/volume/volume.h"
#include "unit.h"

/* A sanitizer makes everything slow and large. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { IS_SANITIZED = 1 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { IS_SANITIZED = 1 };
#else
enum { IS_SANITIZED = 0 };
#endif
#else
enum { IS_SANITIZED = 0 };
#endif

struct fixture {
    char root[64];
    char index[96];
    struct vfs_posix vfs;
    struct volume_config config;
    struct volume_recovery recovery;
    struct volume *volume;
    struct volume_writer *writer;
    struct volume_reader *reader;
};

/* Several threads ask at once, so no generator with a state. */
static inline void fill_random(void *context, void *out, size_t size) {
    (void)context;
    if (getrandom(out, size, 0) != (ssize_t)size) {
        abort();
    }
}

static inline void open_volume(struct fixture *fixture) {
    struct err_detail detail = {0};
    enum err err = volume_open(&fixture->config, &fixture->volume, &fixture->recovery, &detail);
    if (err != ERR_OK) {
        fail_msg("%s", err_detail_text(&detail, err));
    }
    fixture->writer = volume_writer_new(fixture->volume);
    fixture->reader = volume_reader_new(fixture->volume);
    assert_non_null(fixture->writer);
    assert_non_null(fixture->reader);
}

static inline void close_volume(struct fixture *fixture) {
    volume_writer_free(fixture->writer);
    volume_reader_free(fixture->reader);
    volume_close(fixture->volume);
}

/* For a root that is there. */
static inline void prepare_config(struct fixture *fixture) {
    assert_int_equal(vfs_posix_init(&fixture->vfs, fixture->root, NULL), ERR_OK);
    snprintf(fixture->index, sizeof fixture->index, "%s/index", fixture->root);
    fixture->config = (struct volume_config){
        .vfs = &fixture->vfs.vfs,
        .directory = "volumes/0",
        .index_directory = fixture->index,
        .framing = PACK_ZSTD,
        .random = {fill_random, NULL},
    };
}

static inline int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    strcpy(fixture->root, "/tmp/mnemon-volume-XXXXXX");
    if (mkdtemp(fixture->root) == NULL) {
        return -1;
    }
    prepare_config(fixture);
    open_volume(fixture);
    *state = fixture;
    return 0;
}

static inline int tear_down(void **state) {
    struct fixture *fixture = *state;
    close_volume(fixture);
    vfs_posix_done(&fixture->vfs);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", fixture->root);
    int failed = system(command);
    free(fixture);
    return failed;
}

static inline struct stored put(struct fixture *fixture, struct bytes body, enum store_mode mode) {
    struct document document = {.body = body, .time_us = 1000000};
    struct stored stored = {0};
    struct err_detail detail = {0};
    enum err err = volume_put(fixture->writer, &document, mode, &stored, &detail);
    if (err != ERR_OK) {
        fail_msg("%s", err_detail_text(&detail, err));
    }
    return stored;
}

static inline void expect(struct fixture *fixture, const struct key *key, struct bytes body) {
    struct bytes found;
    struct err_detail detail = {0};
    enum err err = volume_get(fixture->reader, key, &found, &detail);
    if (err != ERR_OK) {
        fail_msg("%s", err_detail_text(&detail, err));
    }
    assert_bytes_equal(found, body);
}

static inline void expect_gone(struct fixture *fixture, const struct key *key) {
    struct bytes found;
    assert_int_equal(volume_get(fixture->reader, key, &found, NULL), ERR_NOT_FOUND);
}

static inline void reopen(struct fixture *fixture) {
    close_volume(fixture);
    open_volume(fixture);
}

static inline void rebuild(struct fixture *fixture) {
    close_volume(fixture);
    fixture->config.is_rebuilding = true;
    assert_int_equal(volume_open(&fixture->config, &fixture->volume, &fixture->recovery, NULL), ERR_OK);
    fixture->config.is_rebuilding = false;
    fixture->writer = volume_writer_new(fixture->volume);
    fixture->reader = volume_reader_new(fixture->volume);
}

/* The newest segment's path. */
static inline void newest_segment(const struct fixture *fixture, char out[128]) {
    char directory[96];
    snprintf(directory, sizeof directory, "%s/volumes/0", fixture->root);
    DIR *list = opendir(directory);
    char best[64] = "";
    for (struct dirent *entry = readdir(list); entry != NULL; entry = readdir(list)) {
        if (strstr(entry->d_name, ".warc") != NULL && strcmp(entry->d_name, best) > 0) {
            snprintf(best, sizeof best, "%.60s", entry->d_name);
        }
    }
    closedir(list);
    snprintf(out, 128, "%s/%s", directory, best);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
