/* volume: what is stored comes back, once, after everything that can happen to a process. */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/prng.h"
#include "store/compact.h"
#include "store/verify.h"
#include "store/volume.h"

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
static void fill_random(void *context, void *out, size_t size) {
    (void)context;
    if (getrandom(out, size, 0) != (ssize_t)size) {
        abort();
    }
}

static void open_volume(struct fixture *fixture) {
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

static void close_volume(struct fixture *fixture) {
    volume_writer_free(fixture->writer);
    volume_reader_free(fixture->reader);
    volume_close(fixture->volume);
}

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    strcpy(fixture->root, "/tmp/mnemon-volume-XXXXXX");
    if (mkdtemp(fixture->root) == NULL || vfs_posix_init(&fixture->vfs, fixture->root, NULL) != ERR_OK) {
        return -1;
    }
    snprintf(fixture->index, sizeof fixture->index, "%s/index", fixture->root);
    fixture->config = (struct volume_config){
        .vfs = &fixture->vfs.vfs,
        .directory = "volumes/0",
        .index_directory = fixture->index,
        .framing = PACK_ZSTD,
        .random = {fill_random, NULL},
    };
    open_volume(fixture);
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    close_volume(fixture);
    vfs_posix_done(&fixture->vfs);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", fixture->root);
    int failed = system(command);
    free(fixture);
    return failed;
}

static struct stored put(struct fixture *fixture, struct bytes body, enum store_mode mode) {
    struct document document = {.body = body, .time_us = 1000000};
    struct stored stored = {0};
    struct err_detail detail = {0};
    enum err err = volume_put(fixture->writer, &document, mode, &stored, &detail);
    if (err != ERR_OK) {
        fail_msg("%s", err_detail_text(&detail, err));
    }
    return stored;
}

static void expect(struct fixture *fixture, const struct key *key, struct bytes body) {
    struct bytes found;
    struct err_detail detail = {0};
    enum err err = volume_get(fixture->reader, key, &found, &detail);
    if (err != ERR_OK) {
        fail_msg("%s", err_detail_text(&detail, err));
    }
    assert_bytes_equal(found, body);
}

static void expect_gone(struct fixture *fixture, const struct key *key) {
    struct bytes found;
    assert_int_equal(volume_get(fixture->reader, key, &found, NULL), ERR_NOT_FOUND);
}

static void reopen(struct fixture *fixture) {
    close_volume(fixture);
    open_volume(fixture);
}

static void rebuild(struct fixture *fixture) {
    close_volume(fixture);
    assert_int_equal(volume_rebuild(&fixture->config, &fixture->volume, &fixture->recovery, NULL), ERR_OK);
    fixture->writer = volume_writer_new(fixture->volume);
    fixture->reader = volume_reader_new(fixture->volume);
}

static void gives_back_what_was_put(void **state) {
    struct fixture *fixture = *state;
    struct bytes bodies[] = {BYTES(""), BYTES("a"), BYTES("hello\r\n\r\nworld"), BYTES("\0\1\2")};
    for (size_t i = 0; i < 4; i++) {
        struct stored stored = put(fixture, bodies[i], STORE_REGULAR);
        assert_false(stored.is_duplicate);
        expect(fixture, &stored.key, bodies[i]);
    }
}

static void stores_a_document_once_and_counts_references(void **state) {
    struct fixture *fixture = *state;
    struct stored first = put(fixture, BYTES("same"), STORE_REGULAR);
    struct stored second = put(fixture, BYTES("same"), STORE_REGULAR);
    assert_false(first.is_duplicate);
    assert_true(second.is_duplicate);
    assert_memory_equal(&first.key, &second.key, sizeof first.key);
    assert_int_equal(volume_remove(fixture->writer, &first.key, NULL), ERR_OK);
    expect(fixture, &first.key, BYTES("same"));
    assert_int_equal(volume_remove(fixture->writer, &first.key, NULL), ERR_OK);
    expect_gone(fixture, &first.key);
    assert_int_equal(volume_remove(fixture->writer, &first.key, NULL), ERR_NOT_FOUND);
}

static void a_removed_document_can_be_stored_again_under_a_new_key(void **state) {
    struct fixture *fixture = *state;
    struct stored first = put(fixture, BYTES("phoenix"), STORE_REGULAR);
    assert_int_equal(volume_remove(fixture->writer, &first.key, NULL), ERR_OK);
    struct stored second = put(fixture, BYTES("phoenix"), STORE_REGULAR);
    assert_false(second.is_duplicate);
    assert_int_equal(second.key.number, 1);
    rebuild(fixture);
    expect_gone(fixture, &first.key);
    expect(fixture, &second.key, BYTES("phoenix"));
}

static void force_new_makes_a_block_each_time(void **state) {
    struct fixture *fixture = *state;
    struct stored first = put(fixture, BYTES("x"), STORE_FORCE_NEW);
    struct stored second = put(fixture, BYTES("x"), STORE_FORCE_NEW);
    assert_int_equal(first.key.number, 0);
    assert_int_equal(second.key.number, 1);
    assert_int_equal(volume_remove(fixture->writer, &first.key, NULL), ERR_OK);
    rebuild(fixture);
    expect_gone(fixture, &first.key);
    expect(fixture, &second.key, BYTES("x"));
}

static void use_signature_bits(struct fixture *fixture, unsigned bits) {
    close_volume(fixture);
    fixture->config.signature_bits = bits;
    open_volume(fixture);
}

static void compare_mode_tells_collisions_apart(void **state) {
    struct fixture *fixture = *state;
    use_signature_bits(fixture, 8);
    enum { COUNT = 600 };
    struct key keys[COUNT];
    bool has_overflow = false;
    for (size_t round = 0; round < 2; round++) {
        for (size_t i = 0; i < COUNT; i++) {
            char text[16];
            int size = snprintf(text, sizeof text, "document %05zu", i); /* all of one size */
            struct stored stored = put(fixture, bytes_of(text, (size_t)size), STORE_COMPARE);
            assert_int_equal(stored.is_duplicate, round == 1);
            has_overflow = has_overflow || stored.key.number > 0;
            if (round == 0) {
                keys[i] = stored.key;
            }
            assert_memory_equal(&stored.key, &keys[i], sizeof stored.key);
        }
    }
    assert_true(has_overflow);
    rebuild(fixture);
    for (size_t i = 0; i < COUNT; i++) {
        char text[16];
        int size = snprintf(text, sizeof text, "document %05zu", i);
        expect(fixture, &keys[i], bytes_of(text, (size_t)size));
    }
}

static void regular_mode_sees_a_collision_by_its_size(void **state) {
    struct fixture *fixture = *state;
    use_signature_bits(fixture, 1);
    struct stored short_one = put(fixture, BYTES("a"), STORE_REGULAR);
    struct stored stored;
    struct bytes longer[] = {BYTES("bb"), BYTES("ccc"), BYTES("dddd")};
    for (size_t i = 0; i < 3; i++) {
        stored = put(fixture, longer[i], STORE_REGULAR);
        assert_false(stored.is_duplicate);
        expect(fixture, &stored.key, longer[i]);
    }
    expect(fixture, &short_one.key, BYTES("a"));
}

static void captures_are_found_by_url_and_time(void **state) {
    struct fixture *fixture = *state;
    struct document document = {
        .url = BYTES("http://www.Example.org/A?b=1"),
        .time_us = 5000000,
        .head = BYTES("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=x\r\n"
                      "Transfer-Encoding: chunked\r\n\r\n"),
        .body = BYTES("5\r\nhello\r\n0\r\n\r\n"),
        .request = BYTES("GET /A?b=1 HTTP/1.1\r\nHost: www.example.org\r\n\r\n"),
        .ip_address = BYTES("127.0.0.1"),
    };
    struct stored first;
    struct stored second;
    assert_int_equal(volume_put(fixture->writer, &document, STORE_REGULAR, &first, NULL), ERR_OK);
    document.time_us = 6000000;
    assert_int_equal(volume_put(fixture->writer, &document, STORE_REGULAR, &second, NULL), ERR_OK);
    assert_true(second.is_duplicate);
    expect(fixture, &first.key, BYTES("hello"));
    for (int round = 0; round < 2; round++) {
        struct index_cursor *cursor;
        struct capture capture;
        struct bytes prefix = BYTES("org,example)/");
        assert_int_equal(
            index_cursor_open(volume_index(fixture->volume), prefix, bytes_of(NULL, 0), false, &cursor),
            ERR_OK);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(index_cursor_next(cursor, &capture), ERR_OK);
            assert_bytes_equal(capture.surt, BYTES("org,example)/a?b=1"));
            assert_bytes_equal(capture.url, document.url);
            assert_bytes_equal(capture.mime, BYTES("text/html"));
            assert_int_equal(capture.status, 200);
            assert_int_equal(capture.time_us, (5 + i) * 1000000);
            assert_int_equal(capture.flags, i == 0 ? 0 : CAPTURE_REVISIT);
            assert_memory_equal(capture.signature, first.key.signature, KEY_SIGNATURE_SIZE);
        }
        assert_int_equal(index_cursor_next(cursor, &capture), ERR_NOT_FOUND);
        index_cursor_close(cursor);
        rebuild(fixture); /* the same again from the files alone */
    }
}

static void survives_closing_and_opening(void **state) {
    struct fixture *fixture = *state;
    struct stored stored = put(fixture, BYTES("kept"), STORE_REGULAR);
    reopen(fixture);
    assert_int_equal(fixture->recovery.records_count, 0);
    expect(fixture, &stored.key, BYTES("kept"));
    assert_true(put(fixture, BYTES("kept"), STORE_REGULAR).is_duplicate);
}

static void begins_a_new_segment_when_one_is_large(void **state) {
    struct fixture *fixture = *state;
    close_volume(fixture);
    fixture->config.segment_size_max = 20000;
    open_volume(fixture);
    struct key keys[200];
    uint8_t body[1000];
    for (size_t i = 0; i < 200; i++) {
        struct prng prng;
        prng_init(&prng, i);
        prng_fill(&prng, body, sizeof body);
        keys[i] = put(fixture, bytes_of(body, sizeof body), STORE_REGULAR).key;
    }
    struct volume_stat stat;
    volume_stat(fixture->volume, &stat);
    assert_in_range(stat.segments_count, 8, 14);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 200; i++) {
            struct prng prng;
            prng_init(&prng, i);
            prng_fill(&prng, body, sizeof body);
            expect(fixture, &keys[i], bytes_of(body, sizeof body));
        }
        if (round == 0) {
            reopen(fixture);
        } else {
            rebuild(fixture);
        }
    }
}

static void all_framings_read_back(void **state) {
    struct fixture *fixture = *state;
    static const enum pack_framing framings[] = {PACK_GZIP, PACK_PLAIN, PACK_ZSTD};
    struct key keys[3];
    for (size_t i = 0; i < 3; i++) {
        close_volume(fixture);
        fixture->config.framing = framings[i];
        fixture->config.level = 0;
        open_volume(fixture);
        char text[32];
        int size = snprintf(text, sizeof text, "framing %zu", i);
        keys[i] = put(fixture, bytes_of(text, (size_t)size), STORE_REGULAR).key;
    }
    for (size_t i = 0; i < 3; i++) {
        char text[32];
        int size = snprintf(text, sizeof text, "framing %zu", i);
        expect(fixture, &keys[i], bytes_of(text, (size_t)size));
    }
}

/* The newest segment's path. */
static void newest_segment(const struct fixture *fixture, char out[128]) {
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

static void cuts_a_torn_tail_and_keeps_what_is_whole(void **state) {
    struct fixture *fixture = *state;
    struct stored first = put(fixture, BYTES("first"), STORE_REGULAR);
    struct stored second = put(fixture, BYTES("second"), STORE_REGULAR);
    char path[128];
    newest_segment(fixture, path);
    struct stat whole;
    assert_int_equal(stat(path, &whole), 0);
    for (off_t torn = 1; torn < (off_t)second.location.length; torn += 7) {
        close_volume(fixture);
        /* As if the machine had stopped while the second record was on its way, the index not having seen it.
         */
        assert_int_equal(index_destroy(fixture->index, NULL), ERR_OK);
        char keep[256];
        snprintf(keep, sizeof keep, "cp %s %s/keep", path, fixture->root);
        assert_int_equal(system(keep), 0);
        assert_int_equal(truncate(path, whole.st_size - torn), 0);
        open_volume(fixture);
        assert_int_equal(fixture->recovery.cut_size, second.location.length - torn);
        expect(fixture, &first.key, BYTES("first"));
        expect_gone(fixture, &second.key);
        close_volume(fixture);
        snprintf(keep, sizeof keep, "cp %s/keep %s", fixture->root, path);
        assert_int_equal(system(keep), 0);
        assert_int_equal(index_destroy(fixture->index, NULL), ERR_OK);
        open_volume(fixture);
        assert_int_equal(fixture->recovery.cut_size, 0);
        expect(fixture, &second.key, BYTES("second"));
    }
}

static void damage_between_records_costs_only_what_it_hit(void **state) {
    struct fixture *fixture = *state;
    struct stored first = put(fixture, BYTES("first"), STORE_REGULAR);
    struct stored second = put(fixture, BYTES("second"), STORE_REGULAR);
    struct stored third = put(fixture, BYTES("third"), STORE_REGULAR);
    char path[128];
    newest_segment(fixture, path);
    FILE *file = fopen(path, "r+");
    fseek(file, (long)(second.location.offset + second.location.length / 2), SEEK_SET);
    int byte = fgetc(file);
    fseek(file, -1, SEEK_CUR);
    fputc(byte ^ 0x10, file);
    fclose(file);
    struct bytes found;
    assert_int_equal(volume_get(fixture->reader, &second.key, &found, NULL), ERR_CORRUPT);
    rebuild(fixture);
    assert_int_equal(fixture->recovery.damaged_count, 1);
    assert_int_equal(fixture->recovery.cut_size, 0);
    expect(fixture, &first.key, BYTES("first"));
    expect_gone(fixture, &second.key);
    expect(fixture, &third.key, BYTES("third"));
}

static void a_second_process_is_told_that_the_volume_is_in_use(void **state) {
    struct fixture *fixture = *state;
    struct volume *other;
    struct volume_recovery recovery;
    struct err_detail detail = {0};
    assert_int_equal(volume_open(&fixture->config, &other, &recovery, &detail), ERR_BUSY);
    assert_string_equal(detail.text, "volumes/0 is in use by another process");
}

/* ---- compaction ---- */

enum { COMPACT_COUNT = 120 };

static struct bytes compact_body(size_t i, uint8_t body[1000]) {
    struct prng prng;
    prng_init(&prng, i);
    prng_fill(&prng, body, 1000);
    return bytes_of(body, 1000);
}

/* Several small segments with captures of which two of three are then removed. */
static void fill_for_compaction(struct fixture *fixture, struct key keys[COMPACT_COUNT]) {
    uint8_t body[1000];
    close_volume(fixture);
    fixture->config.segment_size_max = 20000;
    open_volume(fixture);
    for (size_t i = 0; i < COMPACT_COUNT; i++) {
        char url[64];
        int size = snprintf(url, sizeof url, "http://example.org/%03zu", i);
        struct document document = {
            .url = bytes_of(url, (size_t)size),
            .time_us = (int64_t)i,
            .head = BYTES("HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n"),
            .body = compact_body(i, body),
            .request = BYTES("GET / HTTP/1.1\r\n\r\n"),
        };
        struct stored stored;
        assert_int_equal(volume_put(fixture->writer, &document, STORE_REGULAR, &stored, NULL), ERR_OK);
        keys[i] = stored.key;
    }
    for (size_t i = 0; i < COMPACT_COUNT; i++) {
        if (i % 3 != 0) {
            assert_int_equal(volume_remove(fixture->writer, &keys[i], NULL), ERR_OK);
        }
    }
}

static void expect_every_third(struct fixture *fixture, const struct key keys[COMPACT_COUNT]) {
    uint8_t body[1000];
    for (size_t i = 0; i < COMPACT_COUNT; i++) {
        if (i % 3 == 0) {
            expect(fixture, &keys[i], compact_body(i, body));
        } else {
            expect_gone(fixture, &keys[i]);
        }
    }
}

static size_t captures_count(struct fixture *fixture) {
    struct index_cursor *cursor;
    struct capture capture;
    size_t count = 0;
    assert_int_equal(index_cursor_open(volume_index(fixture->volume), bytes_of(NULL, 0), bytes_of(NULL, 0),
                                       false, &cursor),
                     ERR_OK);
    while (index_cursor_next(cursor, &capture) == ERR_OK) {
        count++;
    }
    index_cursor_close(cursor);
    return count;
}

static void compaction_gives_back_the_bytes_of_what_was_removed(void **state) {
    struct fixture *fixture = *state;
    struct key keys[COMPACT_COUNT];
    struct volume_stat before;
    struct volume_stat after;
    struct compact_report report;
    fill_for_compaction(fixture, keys);
    volume_stat(fixture->volume, &before);
    assert_int_equal(compact_volume(fixture->volume, 20, &report, NULL), ERR_OK);
    volume_stat(fixture->volume, &after);
    assert_true(report.segments_count >= 4);
    assert_true(after.size < before.size * 2 / 3);
    expect_every_third(fixture, keys);
    reopen(fixture);
    assert_int_equal(fixture->recovery.records_count, 0);
    expect_every_third(fixture, keys);
    rebuild(fixture);
    expect_every_third(fixture, keys);
    assert_int_equal(fixture->recovery.damaged_count, 0);
}

static void compaction_forgets_deletions_when_nothing_is_left_of_them(void **state) {
    struct fixture *fixture = *state;
    struct key keys[COMPACT_COUNT];
    uint8_t body[1000];
    struct compact_report report;
    fill_for_compaction(fixture, keys);
    size_t captures_before = captures_count(fixture);
    /* Twice, with new segments in between: the second run meets deletions whose records the first dropped. */
    assert_int_equal(compact_volume(fixture->volume, 0, &report, NULL), ERR_OK);
    for (size_t i = 1000; i < 1080; i++) {
        put(fixture, compact_body(i, body), STORE_REGULAR);
    }
    assert_int_equal(compact_volume(fixture->volume, 0, &report, NULL), ERR_OK);
    assert_true(captures_count(fixture) < captures_before);
    expect_every_third(fixture, keys);
    /*
     * What was removed may come back and stays through a rebuild. Its number is free again where nothing was
     * left of the first life, and another one where its deletion is still there: both keep the promise.
     */
    struct stored again = put(fixture, compact_body(1, body), STORE_REGULAR);
    assert_false(again.is_duplicate);
    rebuild(fixture);
    expect(fixture, &again.key, compact_body(1, body));
    expect_gone(fixture, &keys[2]);
}

static void compaction_reaches_the_newest_segment_too(void **state) {
    struct fixture *fixture = *state;
    uint8_t body[1000];
    struct compact_report report;
    struct stored kept = put(fixture, compact_body(1, body), STORE_REGULAR);
    struct stored removed = put(fixture, compact_body(2, body), STORE_REGULAR);
    assert_int_equal(volume_remove(fixture->writer, &removed.key, NULL), ERR_OK);
    assert_int_equal(compact_volume(fixture->volume, 10, &report, NULL), ERR_OK);
    assert_int_equal(report.segments_count, 1);
    assert_true(report.freed_size > 900);
    expect(fixture, &kept.key, compact_body(1, body));
    reopen(fixture);
    assert_int_equal(fixture->recovery.records_count, 0); /* nothing is entered twice */
    expect(fixture, &kept.key, compact_body(1, body));
    put(fixture, compact_body(3, body), STORE_REGULAR);
    rebuild(fixture);
    expect(fixture, &kept.key, compact_body(1, body));
    expect_gone(fixture, &removed.key);
}

static void expect_stored(void *context, enum err err, const struct stored *stored) {
    (void)stored;
    *(size_t *)context += err == ERR_OK;
}

static void compaction_takes_segments_of_very_many_records(void **state) {
    struct fixture *fixture = *state;
    enum { RECORDS = 70000 }; /* more than the ledger collects between two commits of documents */
    size_t stored_count = 0;
    struct compact_report report;
    for (uint32_t i = 0; i < RECORDS; i++) {
        struct document document = {
            .body = bytes_of(&i, sizeof i), .content_type = BYTES("image/png"), .time_us = 1};
        assert_int_equal(
            volume_submit(fixture->writer, &document, STORE_REGULAR, expect_stored, &stored_count, NULL),
            ERR_OK);
    }
    volume_drain(fixture->volume);
    assert_int_equal(stored_count, RECORDS);
    struct stored removed = put(fixture, BYTES("removed"), STORE_REGULAR);
    assert_int_equal(volume_remove(fixture->writer, &removed.key, NULL), ERR_OK);
    assert_int_equal(compact_volume(fixture->volume, 0, &report, NULL), ERR_OK);
    assert_true(report.kept_count >= RECORDS);
}

struct reading {
    struct volume *volume;
    const struct key *keys;
    atomic_bool is_stopping;
    size_t count;
};

static void *read_on(void *context) {
    struct reading *reading = context;
    struct volume_reader *reader = volume_reader_new(reading->volume);
    uint8_t body[1000];
    for (size_t i = 0; !reading->is_stopping; i = (i + 3) % COMPACT_COUNT) {
        struct bytes found;
        enum err err = volume_get(reader, &reading->keys[i], &found, NULL);
        if (err != ERR_OK || !bytes_equal(found, compact_body(i, body))) {
            abort();
        }
        reading->count++;
    }
    volume_reader_free(reader);
    return NULL;
}

static void reads_go_on_during_compaction(void **state) {
    struct fixture *fixture = *state;
    struct key keys[COMPACT_COUNT];
    struct compact_report report;
    fill_for_compaction(fixture, keys);
    struct reading reading = {.volume = fixture->volume, .keys = keys};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_on, &reading), 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(compact_volume(fixture->volume, 0, &report, NULL), ERR_OK);
        put(fixture, BYTES("between"), STORE_FORCE_NEW);
    }
    reading.is_stopping = true;
    pthread_join(thread, NULL);
    assert_true(reading.count > 0);
    expect_every_third(fixture, keys);
}

/* ---- dictionary ---- */

/* Pages of one site: much in common, each a little different. */
static struct bytes page(uint32_t number, struct buf *buf) {
    struct prng prng;
    prng_init(&prng, number);
    buf_clear(buf);
    buf_put_string(buf, "<!DOCTYPE html><html><head><title>");
    for (unsigned i = 0; i < 80; i++) {
        buf_put_format(buf, "<li class=\"item item-%u\"><a href=\"/articles/%ju/\">word%ju</a></li>\n", i,
                       (uintmax_t)prng_below(&prng, 100000), (uintmax_t)prng_below(&prng, 500));
    }
    return buf_bytes(buf);
}

static void keep_stored(void *context, enum err err, const struct stored *stored) {
    assert_int_equal(err, ERR_OK);
    *(struct stored *)context = *stored;
}

static void a_dictionary_is_trained_once_and_used_from_then_on(void **state) {
    struct fixture *fixture = *state;
    enum { PAGES = 1600 };
    struct buf buf;
    struct stored *stored = calloc(PAGES, sizeof *stored);
    buf_init(&buf, 1 << 20);
    for (uint32_t i = 0; i < PAGES; i++) {
        struct document document = {.body = page(i, &buf), .content_type = BYTES("text/html"), .time_us = 1};
        assert_int_equal(
            volume_submit(fixture->writer, &document, STORE_REGULAR, keep_stored, &stored[i], NULL), ERR_OK);
    }
    volume_drain(fixture->volume);
    /* The committer may be training still; then the next document comes into the old segment. */
    struct stored last = stored[0];
    for (int i = 0; i < 10000 && last.location.segment == stored[0].location.segment; i++) {
        struct document document = {
            .body = page(PAGES, &buf), .content_type = BYTES("text/html"), .time_us = 1};
        assert_int_equal(volume_put(fixture->writer, &document, STORE_FORCE_NEW, &last, NULL), ERR_OK);
    }
    struct volume_stat stat;
    volume_stat(fixture->volume, &stat);
    assert_int_equal(stat.segments_count, 2);
    assert_true(last.location.length < stored[0].location.length * 9 / 10);
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < PAGES; i++) {
            expect(fixture, &stored[i].key, page(i, &buf));
        }
        expect(fixture, &last.key, page(PAGES, &buf));
        if (round == 0) {
            reopen(fixture);
            put(fixture, BYTES("after"), STORE_REGULAR);
        } else {
            rebuild(fixture);
        }
    }
    buf_done(&buf);
    free(stored);
}

/* ---- verify ---- */

struct found {
    unsigned count;
    uint64_t offset;
    char segment[64];
};

static void note_damage(void *context, const char *segment, uint64_t offset, const char *reason) {
    struct found *found = context;
    assert_true(strlen(reason) > 0);
    found->count++;
    found->offset = offset;
    snprintf(found->segment, sizeof found->segment, "%s", segment);
}

static void verify_names_every_flipped_bit(void **state) {
    struct fixture *fixture = *state;
    struct stored middle = {0};
    for (int i = 0; i < 20; i++) {
        char text[32];
        int size = snprintf(text, sizeof text, "document %d", i);
        struct stored stored = put(fixture, bytes_of(text, (size_t)size), STORE_REGULAR);
        middle = i == 10 ? stored : middle;
    }
    unsigned harmless_count = 0;
    struct found found = {0};
    struct verify_observer observer = {.context = &found, .damage = note_damage};
    struct verify_report report;
    assert_int_equal(verify_volume(fixture->volume, &observer, &report, NULL), ERR_OK);
    assert_int_equal(report.records_count, 21); /* with the warcinfo */
    assert_int_equal(found.count, 0);
    char path[128];
    newest_segment(fixture, path);
    for (uint32_t at = 0; at < middle.location.length; at++) {
        FILE *file = fopen(path, "r+");
        long place = (long)(middle.location.offset + at);
        fseek(file, place, SEEK_SET);
        int byte = fgetc(file);
        fseek(file, place, SEEK_SET);
        fputc(byte ^ (1 << at % 8), file);
        fflush(file);
        found = (struct found){0};
        assert_int_equal(verify_volume(fixture->volume, &observer, &report, NULL), ERR_OK);
        assert_true(report.records_count >= 20);
        struct bytes document;
        enum err err = volume_get(fixture->reader, &middle.key, &document, NULL);
        if (report.damaged_count + report.lost_count == 0) {
            /* One bit of a zstd header means nothing; then nothing is wrong. */
            assert_int_equal(err, ERR_OK);
            assert_bytes_equal(document, BYTES("document 10"));
            harmless_count++;
        } else {
            assert_int_equal(found.offset, middle.location.offset);
            assert_int_equal(err, ERR_CORRUPT);
        }
        fseek(file, place, SEEK_SET);
        fputc(byte, file);
        fclose(file);
    }
    assert_true(harmless_count < middle.location.length / 4);
}

/* ---- many at once ---- */

enum { THREADS_COUNT = 8, PER_THREAD = 300, DISTINCT = 400 };

struct work {
    struct volume *volume;
    uint64_t seed;
    struct key keys[PER_THREAD];
    uint32_t names[PER_THREAD];
};

static void *put_many(void *context) {
    struct work *work = context;
    struct volume_writer *writer = volume_writer_new(work->volume);
    struct prng prng;
    prng_init(&prng, work->seed);
    for (size_t i = 0; i < PER_THREAD; i++) {
        char text[64];
        work->names[i] = (uint32_t)prng_below(&prng, DISTINCT);
        int size = snprintf(text, sizeof text, "shared document %u", work->names[i]);
        struct document document = {.body = bytes_of(text, (size_t)size), .time_us = 1};
        struct stored stored;
        if (volume_put(writer, &document, STORE_REGULAR, &stored, NULL) != ERR_OK) {
            abort();
        }
        work->keys[i] = stored.key;
    }
    volume_writer_free(writer);
    return NULL;
}

static void threads_agree_on_one_block_per_document(void **state) {
    struct fixture *fixture = *state;
    struct work *works = calloc(THREADS_COUNT, sizeof *works);
    pthread_t threads[THREADS_COUNT];
    for (size_t i = 0; i < THREADS_COUNT; i++) {
        works[i].volume = fixture->volume;
        works[i].seed = i;
        assert_int_equal(pthread_create(&threads[i], NULL, put_many, &works[i]), 0);
    }
    uint32_t counts[DISTINCT] = {0};
    for (size_t i = 0; i < THREADS_COUNT; i++) {
        pthread_join(threads[i], NULL);
        for (size_t j = 0; j < PER_THREAD; j++) {
            assert_int_equal(works[i].keys[j].number, 0);
            counts[works[i].names[j]]++;
        }
    }
    /* As many removals as stores, and not one more. */
    for (size_t i = 0; i < THREADS_COUNT; i++) {
        for (size_t j = 0; j < PER_THREAD; j++) {
            assert_int_equal(volume_remove(fixture->writer, &works[i].keys[j], NULL), ERR_OK);
        }
    }
    for (size_t i = 0; i < THREADS_COUNT; i++) {
        expect_gone(fixture, &works[i].keys[0]);
    }
    free(works);
}

/* ---- the end of the process ---- */

/* Put documents until killed, telling each acknowledged number through the pipe. */
static void put_until_killed(struct fixture *fixture, int pipe_fd, uint32_t from) {
    open_volume(fixture);
    for (uint32_t i = from;; i++) {
        char text[32];
        int size = snprintf(text, sizeof text, "acknowledged %u", i);
        struct stored stored = put(fixture, bytes_of(text, (size_t)size), STORE_REGULAR);
        if (write(pipe_fd, &i, sizeof i) != sizeof i || write(pipe_fd, &stored.key, sizeof stored.key) < 0) {
            _exit(1);
        }
    }
}

static void nothing_acknowledged_is_lost_by_kill_9(void **state) {
    struct fixture *fixture = *state;
    enum { ROUNDS = 12, KEYS_MAX = 100000 };
    struct key *keys = calloc(KEYS_MAX, sizeof *keys);
    uint32_t count = 0;
    struct prng prng;
    prng_init(&prng, 7);
    for (int round = 0; round < ROUNDS; round++) {
        int pipes[2];
        assert_int_equal(pipe(pipes), 0);
        close_volume(fixture);
        pid_t child = fork();
        if (child == 0) {
            close(pipes[0]);
            put_until_killed(fixture, pipes[1], count);
        }
        close(pipes[1]);
        /* Killed after a random number of acknowledgements, in the middle of the next. */
        uint32_t wanted = (uint32_t)prng_between(&prng, 1, 60);
        uint32_t number;
        struct key key;
        for (uint32_t i = 0; read(pipes[0], &number, sizeof number) == sizeof number &&
                             read(pipes[0], &key, sizeof key) == sizeof key;
             i++) {
            assert_int_equal(number, count);
            keys[count++] = key;
            if (i == wanted) {
                kill(child, SIGKILL);
            }
        }
        close(pipes[0]);
        waitpid(child, NULL, 0);
        open_volume(fixture);
        for (uint32_t i = 0; i < count; i++) {
            char text[32];
            int size = snprintf(text, sizeof text, "acknowledged %u", i);
            expect(fixture, &keys[i], bytes_of(text, (size_t)size));
        }
    }
    free(keys);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(gives_back_what_was_put),
        TEST(stores_a_document_once_and_counts_references),
        TEST(a_removed_document_can_be_stored_again_under_a_new_key),
        TEST(force_new_makes_a_block_each_time),
        TEST(compare_mode_tells_collisions_apart),
        TEST(regular_mode_sees_a_collision_by_its_size),
        TEST(captures_are_found_by_url_and_time),
        TEST(survives_closing_and_opening),
        TEST(begins_a_new_segment_when_one_is_large),
        TEST(all_framings_read_back),
        TEST(cuts_a_torn_tail_and_keeps_what_is_whole),
        TEST(damage_between_records_costs_only_what_it_hit),
        TEST(a_second_process_is_told_that_the_volume_is_in_use),
        TEST(compaction_gives_back_the_bytes_of_what_was_removed),
        TEST(compaction_forgets_deletions_when_nothing_is_left_of_them),
        TEST(compaction_reaches_the_newest_segment_too),
        TEST(compaction_takes_segments_of_very_many_records),
        TEST(reads_go_on_during_compaction),
        TEST(a_dictionary_is_trained_once_and_used_from_then_on),
        TEST(verify_names_every_flipped_bit),
        TEST(threads_agree_on_one_block_per_document),
        TEST(nothing_acknowledged_is_lost_by_kill_9),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
