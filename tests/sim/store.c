/*
 * store: the real volume on the virtual disk, stopped after the 1st, 2nd, 3rd … change, with whatever a crash
 * makes of what was not synced. What was acknowledged must be there, what was removed must stay removed, and
 * nothing may be damaged.
 */
#include "../unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/prng.h"
#include "disk_vfs.h"
#include "store/index/index_cursor.h"
#include "store/volume/compact.h"
#include "store/volume/verify.h"

enum { DOCUMENTS = 40, BODY_SIZE = 700 };

/* What the writer was told of each document. */
enum promise {
    PROMISE_NONE, /* nothing: it may be there or not */
    PROMISE_KEPT,
    PROMISE_REMOVED,
};

struct world {
    char index[64];
    struct disk_dials dials;
    struct disk disk;
    struct disk_vfs vfs;
    struct prng ids;
    struct volume *volume;
    struct key keys[DOCUMENTS];
    enum promise promises[DOCUMENTS];
    enum promise captures[DOCUMENTS]; /* of the capture by which the document was stored first */
};

static void fill_ids(void *context, void *out, size_t size) {
    prng_fill(context, out, size); /* one writer and, before it starts, the opener: never two at once */
}

static struct world *world_new(const struct disk_dials *dials, uint64_t seed) {
    struct world *world = calloc(1, sizeof *world);
    strcpy(world->index,
           "/dev/shm/mnemon-sim-store-XXXXXX"); /* memory: only the virtual disk is the subject */
    assert_non_null(mkdtemp(world->index));
    world->dials = *dials;
    disk_init(&world->disk, &world->dials, seed);
    disk_vfs_init(&world->vfs, &world->disk);
    prng_init(&world->ids, seed);
    return world;
}

static void world_free(struct world *world) {
    disk_vfs_done(&world->vfs);
    disk_done(&world->disk);
    assert_int_equal(index_destroy(world->index, NULL), ERR_OK);
    rmdir(world->index);
    free(world);
}

static enum err open_world(struct world *world, struct volume_recovery *recovery) {
    struct volume_config config = {
        .vfs = &world->vfs.vfs,
        .directory = "volumes/0",
        .index_directory = world->index,
        .framing = PACK_ZSTD,
        .segment_size_max = 4000,
        .random = {fill_ids, &world->ids},
    };
    return volume_open(&config, &world->volume, recovery, NULL);
}

static struct bytes body_of(unsigned document, uint8_t body[BODY_SIZE]) {
    struct prng prng;
    prng_init(&prng, document);
    prng_fill(&prng, body, BODY_SIZE);
    return bytes_of(body, BODY_SIZE);
}

/* The capture number so many of a document: its own, or the one that came again. */
static void name_capture(unsigned document, bool is_again, char url[64], char surt[64]) {
    snprintf(url, 64, "http://example.org/%u%s", document, is_again ? "/again" : "");
    snprintf(surt, 64, "org,example)/%u%s", document, is_again ? "/again" : "");
}

static enum err put_one(struct world *world, struct volume_writer *writer, unsigned i, bool is_again) {
    uint8_t body[BODY_SIZE];
    char url[64];
    char surt[64];
    struct stored stored;
    name_capture(i, is_again, url, surt);
    struct document document = {.url = bytes_of_string(url),
                                .body = body_of(i, body),
                                .content_type = BYTES("image/png"),
                                .time_us = 1};
    enum err err = volume_put(writer, &document, STORE_REGULAR, &stored, NULL);
    if (err == ERR_OK) {
        world->keys[i] = stored.key;
        world->promises[i] = PROMISE_KEPT;
    }
    return err;
}

static enum err remove_capture(struct world *world, struct volume_writer *writer, unsigned i) {
    char url[64];
    char surt[64];
    name_capture(i, false, url, surt);
    struct capture capture = {.surt = bytes_of_string(surt),
                              .url = bytes_of_string(url),
                              .time_us = 1,
                              .block_number = world->keys[i].number};
    memcpy(capture.digest, world->keys[i].digest, sizeof capture.digest);
    world->captures[i] = PROMISE_NONE;
    enum err err = volume_remove_capture(writer, &capture, NULL);
    world->captures[i] = err == ERR_OK ? PROMISE_REMOVED : PROMISE_NONE;
    return err;
}

/* Every sixth comes again from elsewhere, and its first capture goes: the document must stay. */
static enum err store_again(struct world *world, struct volume_writer *writer, unsigned i) {
    enum err err = put_one(world, writer, i, true);
    return err == ERR_OK ? remove_capture(world, writer, i) : err;
}

/* Every third goes: one reference, or with its capture. */
static enum err remove_one(struct world *world, struct volume_writer *writer, unsigned i) {
    world->promises[i] = PROMISE_NONE; /* until the removal is acknowledged */
    enum err err =
        i % 2 == 0 ? volume_remove(writer, &world->keys[i], NULL) : remove_capture(world, writer, i);
    world->promises[i] = err == ERR_OK ? PROMISE_REMOVED : PROMISE_NONE;
    return err;
}

/* Store, remove and compact, until something fails. */
static void work(struct world *world) {
    struct volume_recovery recovery;
    if (open_world(world, &recovery) != ERR_OK) {
        world->volume = NULL;
        return;
    }
    struct volume_writer *writer = volume_writer_new(world->volume);
    enum err err = ERR_OK;
    for (unsigned i = 0; i < DOCUMENTS && err == ERR_OK; i++) {
        err = put_one(world, writer, i, false);
        world->captures[i] = err == ERR_OK ? PROMISE_KEPT : PROMISE_NONE;
        if (err == ERR_OK && i % 6 == 3) {
            err = store_again(world, writer, i);
        }
        if (err == ERR_OK && i % 3 == 2) {
            err = remove_one(world, writer, i - 1);
        }
        if (err == ERR_OK && i % 20 == 19) {
            struct compact_report report;
            err = compact_volume(world->volume, 10, &report, NULL);
        }
    }
    volume_writer_free(writer);
}

static size_t captures_of(struct world *world, unsigned document) {
    char url[64];
    char surt[64];
    struct index_cursor *cursor;
    struct capture capture;
    size_t count = 0;
    name_capture(document, false, url, surt);
    assert_int_equal(index_cursor_open_time(volume_index(world->volume), bytes_of_string(surt), 1, &cursor),
                     ERR_OK);
    while (index_cursor_next(cursor, &capture) == ERR_OK) {
        count++;
    }
    index_cursor_close(cursor);
    return count;
}

static void expect_captures(struct world *world, uint64_t stop) {
    for (unsigned i = 0; i < DOCUMENTS; i++) {
        bool is_right = world->captures[i] == PROMISE_NONE ||
                        world->promises[i] != PROMISE_KEPT || /* by references: compaction takes it out */
                        captures_of(world, i) == (world->captures[i] == PROMISE_KEPT);
        bool is_gone = world->captures[i] != PROMISE_REMOVED || captures_of(world, i) == 0;
        if (!is_right || !is_gone) {
            fail_msg("stopped after %ju changes: the capture of document %u", (uintmax_t)stop, i);
        }
    }
}

static void expect_promises(struct world *world, uint64_t stop) {
    struct volume_reader *reader = volume_reader_new(world->volume);
    uint8_t body[BODY_SIZE];
    for (unsigned i = 0; i < DOCUMENTS; i++) {
        struct bytes found;
        if (world->promises[i] == PROMISE_NONE) {
            continue;
        }
        enum err err = volume_get(reader, &world->keys[i], &found, NULL);
        bool is_right = world->promises[i] == PROMISE_REMOVED
                            ? err == ERR_NOT_FOUND
                            : err == ERR_OK && bytes_equal(found, body_of(i, body));
        if (!is_right) {
            fail_msg("stopped after %ju changes: document %u: %s", (uintmax_t)stop, i, err_name(err));
        }
    }
    volume_reader_free(reader);
    struct verify_report report;
    struct verify_observer observer = {0};
    assert_int_equal(verify_volume(world->volume, &observer, &report, NULL), ERR_OK);
    assert_int_equal(report.damaged_count + report.lost_count + report.captures_count, 0);
    expect_captures(world, stop);
}

/* One world that stops after so many changes. True where it came to its end before. */
static bool run_world(uint64_t stop, uint64_t seed, bool loses_index) {
    struct disk_dials dials = {.write_lost_ppm = 400000, .write_torn_ppm = 300000, .entry_lost_ppm = 500000};
    struct world *world = world_new(&dials, seed);
    disk_vfs_stop_after(&world->vfs, stop);
    work(world);
    bool came_to_its_end = world->vfs.changes_left > 0;
    if (world->volume != NULL) {
        volume_close(world->volume);
    }
    assert_int_equal(disk_vfs_restart(&world->vfs), ERR_OK);
    if (loses_index) {
        assert_int_equal(index_destroy(world->index, NULL), ERR_OK);
    }
    struct volume_recovery recovery;
    assert_int_equal(open_world(world, &recovery), ERR_OK);
    assert_int_equal(recovery.damaged_count, 0);
    expect_promises(world, stop);
    volume_close(world->volume);
    world_free(world);
    return came_to_its_end;
}

static void run_all(bool loses_index, uint64_t step) {
    uint64_t stop = 1;
    while (!run_world(stop, 1000 + stop, loses_index)) {
        stop += step;
        assert_true(stop < 2000);
    }
    assert_true(stop > 100); /* the story is long enough to mean something */
}

static void a_crash_after_any_change_loses_nothing_acknowledged(void **state) {
    (void)state;
    run_all(false, 5);
}

static void nor_does_one_that_takes_the_index_with_it(void **state) {
    (void)state;
    run_all(true, 7);
}

/* One call fails, then the disk works again: the writer is told, tries once more, and everything is there. */
static bool run_with_one_failure(uint64_t fail_after, enum err failure) {
    struct disk_dials dials = {0};
    struct world *world = world_new(&dials, 1);
    disk_fail_after(&world->disk, fail_after, failure);
    struct volume_recovery recovery;
    enum err err = open_world(world, &recovery);
    if (err != ERR_OK) {
        assert_int_equal(err, failure);
        assert_int_equal(open_world(world, &recovery), ERR_OK);
    } else if (recovery.refuses != ERR_OK) { /* it can be read, and the next opening finds room */
        assert_int_equal(recovery.refuses, ERR_NO_SPACE);
        volume_close(world->volume);
        assert_int_equal(open_world(world, &recovery), ERR_OK);
        assert_int_equal(recovery.refuses, ERR_OK);
    }
    struct volume_writer *writer = volume_writer_new(world->volume);
    uint8_t body[BODY_SIZE];
    for (unsigned i = 0; i < DOCUMENTS; i++) {
        struct document document = {
            .body = body_of(i, body), .content_type = BYTES("image/png"), .time_us = 1};
        struct stored stored;
        err = volume_put(writer, &document, STORE_REGULAR, &stored, NULL);
        if (err != ERR_OK) {
            assert_int_equal(err, failure);
            assert_int_equal(volume_put(writer, &document, STORE_REGULAR, &stored, NULL), ERR_OK);
        }
        world->keys[i] = stored.key;
        world->promises[i] = PROMISE_KEPT;
    }
    bool has_failed = world->disk.counters.failed_count > 0;
    volume_writer_free(writer);
    expect_promises(world, fail_after);
    volume_close(world->volume);
    assert_int_equal(disk_vfs_restart(&world->vfs), ERR_OK);
    assert_int_equal(open_world(world, &recovery), ERR_OK);
    expect_promises(world, fail_after);
    volume_close(world->volume);
    world_free(world);
    return has_failed;
}

static void any_single_failing_call_is_reported_and_survived(void **state) {
    (void)state;
    static const enum err failures[] = {ERR_IO, ERR_NO_SPACE};
    for (size_t i = 0; i < 2; i++) {
        uint64_t fail_after = 1;
        while (run_with_one_failure(fail_after, failures[i])) {
            fail_after += 3;
            assert_true(fail_after < 2000);
        }
        assert_true(fail_after > 60);
    }
}

static void a_full_disk_refuses_and_recovers_when_there_is_room(void **state) {
    (void)state;
    struct disk_dials dials = {.capacity_size = (64 << 20) + 20000}; /* the volume keeps 64 MiB free */
    struct world *world = world_new(&dials, 1);
    struct volume_recovery recovery;
    assert_int_equal(open_world(world, &recovery), ERR_OK);
    struct volume_writer *writer = volume_writer_new(world->volume);
    uint8_t body[BODY_SIZE];
    unsigned refused_count = 0;
    for (unsigned i = 0; i < DOCUMENTS; i++) {
        struct document document = {
            .body = body_of(i, body), .content_type = BYTES("image/png"), .time_us = 1};
        struct stored stored;
        enum err err = volume_put(writer, &document, STORE_REGULAR, &stored, NULL);
        if (err != ERR_OK) {
            assert_int_equal(err, ERR_NO_SPACE);
            refused_count++;
            expect_promises(world, 0); /* reads go on */
            world->dials.capacity_size += 20000;
            assert_int_equal(volume_put(writer, &document, STORE_REGULAR, &stored, NULL), ERR_OK);
        }
        world->keys[i] = stored.key;
        world->promises[i] = PROMISE_KEPT;
    }
    assert_true(refused_count > 0);
    volume_writer_free(writer);
    expect_promises(world, 0);
    volume_close(world->volume);
    world_free(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_crash_after_any_change_loses_nothing_acknowledged),
        cmocka_unit_test(nor_does_one_that_takes_the_index_with_it),
        cmocka_unit_test(any_single_failing_call_is_reported_and_survived),
        cmocka_unit_test(a_full_disk_refuses_and_recovers_when_there_is_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
