/*
 * volume: captures are removed one by one, and damaged records replaced; a rebuilt index and a compaction
 * know nothing else.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "await.h"
#include "base/prng.h"
#include "store/index/index_cursor.h"
#include "store/volume/compact.h"
#include "store/volume/segment.h"
#include "store/volume/verify.h"
#include "store/volume/volume_state.h"
#include "volume-fixture.h"

#define HEAD "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n"

enum { BODY_SIZE = 20000 };

static struct bytes body_of(size_t i) {
    static uint8_t body[BODY_SIZE];
    struct prng prng;
    prng_init(&prng, i + 1);
    prng_fill(&prng, body, sizeof body);
    return bytes_of(body, sizeof body);
}

static struct document document_of(const char *url, int64_t time_us, size_t body) {
    return (struct document){
        .url = bytes_of_string(url),
        .time_us = time_us,
        .head = BYTES(HEAD),
        .body = body_of(body),
        .request = BYTES("GET / HTTP/1.1\r\n\r\n"),
    };
}

static struct stored put_capture(struct fixture *fixture, const char *url, int64_t time_us, size_t body) {
    struct document document = document_of(url, time_us, body);
    struct stored stored = {0};
    assert_int_equal(volume_put(fixture->writer, &document, STORE_REGULAR, &stored, NULL), ERR_OK);
    return stored;
}

/* The captures of a URL, by a function for each; how many. */
static size_t each_capture(struct fixture *fixture, const char *url, int64_t time_us,
                           void (*visit)(struct fixture *fixture, const struct capture *capture)) {
    struct index_cursor *cursor;
    struct capture capture;
    struct bytes all = {NULL, 0};
    size_t count = 0;
    assert_int_equal(index_cursor_open(volume_index(fixture->volume), all, all, false, &cursor), ERR_OK);
    while (index_cursor_next(cursor, &capture) == ERR_OK) {
        if ((url == NULL || bytes_equal(capture.url, bytes_of_string(url))) &&
            (time_us < 0 || capture.time_us == time_us)) {
            count++;
            if (visit != NULL) {
                visit(fixture, &capture);
            }
        }
    }
    index_cursor_close(cursor);
    return count;
}

static size_t captures_of(struct fixture *fixture, const char *url, int64_t time_us) {
    return each_capture(fixture, url, time_us, NULL);
}

static void remove_it(struct fixture *fixture, const struct capture *capture) {
    assert_int_equal(volume_remove_capture(fixture->writer, capture, NULL), ERR_OK);
    assert_int_equal(volume_remove_capture(fixture->writer, capture, NULL), ERR_NOT_FOUND);
}

static void remove_capture(struct fixture *fixture, const char *url, int64_t time_us) {
    assert_int_equal(each_capture(fixture, url, time_us, remove_it), 1);
    assert_int_equal(captures_of(fixture, url, time_us), 0);
}

static void compact(struct fixture *fixture) {
    struct compact_report report;
    assert_int_equal(compact_volume(fixture->volume, 0, &report, NULL), ERR_OK);
}

static void expect_sound(struct fixture *fixture) {
    struct verify_report report;
    assert_int_equal(verify_volume(fixture->volume, &(struct verify_observer){0}, &report, NULL), ERR_OK);
    assert_int_equal(report.damaged_count, 0);
    assert_int_equal(report.lost_count, 0);
    assert_int_equal(report.captures_count, 0);
}

static uint64_t stored_size(struct fixture *fixture) {
    struct volume_stat stat;
    volume_stat(fixture->volume, &stat);
    return stat.size;
}

/* ---- removal ---- */

static void a_removed_capture_leaves_its_document_to_the_others(void **state) {
    struct fixture *fixture = *state;
    struct stored first = put_capture(fixture, "http://a.example/", 1, 0);
    struct stored second = put_capture(fixture, "http://b.example/", 2, 0);
    assert_true(second.is_duplicate);
    remove_capture(fixture, "http://a.example/", 1); /* whose record has the bytes */
    for (int round = 0; round < 4; round++) {
        assert_int_equal(captures_of(fixture, NULL, -1), 1);
        assert_int_equal(captures_of(fixture, "http://b.example/", 2), 1);
        expect(fixture, &first.key, body_of(0));
        expect_sound(fixture);
        if (round % 2 == 0) {
            rebuild(fixture);
        } else {
            put(fixture, BYTES("so that there is something dead"), STORE_FORCE_NEW);
            struct stored dead = put(fixture, BYTES("dead"), STORE_FORCE_NEW);
            assert_int_equal(volume_remove(fixture->writer, &dead.key, NULL), ERR_OK);
            compact(fixture);
        }
    }
    remove_capture(fixture, "http://b.example/", 2);
    expect_gone(fixture, &first.key);
    compact(fixture);
    assert_true(stored_size(fixture) < BODY_SIZE);
    rebuild(fixture);
    expect_gone(fixture, &first.key);
    assert_int_equal(captures_of(fixture, NULL, -1), 0);
}

static void the_bytes_of_a_removed_revisit_come_back(void **state) {
    struct fixture *fixture = *state;
    enum { COUNT = 50 };
    char url[64];
    put_capture(fixture, "http://a.example/", 1, 0);
    for (int i = 0; i < COUNT; i++) {
        snprintf(url, sizeof url, "http://b.example/%d", i);
        assert_true(put_capture(fixture, url, 2, 0).is_duplicate);
    }
    uint64_t before = stored_size(fixture);
    for (int i = 0; i < COUNT; i++) {
        snprintf(url, sizeof url, "http://b.example/%d", i);
        remove_capture(fixture, url, 2);
    }
    compact(fixture); /* the revisits, */
    struct stored dead = put_capture(fixture, "http://c.example/", 3, 1);
    assert_int_equal(volume_remove(fixture->writer, &dead.key, NULL), ERR_OK);
    compact(fixture); /* and then what removed them */
    compact(fixture);
    assert_true(stored_size(fixture) < before - (before - BODY_SIZE) / 2);
    rebuild(fixture);
    assert_int_equal(captures_of(fixture, NULL, -1), 1);
    expect_sound(fixture);
}

static void what_was_removed_may_be_stored_again(void **state) {
    struct fixture *fixture = *state;
    struct stored stored = put_capture(fixture, "http://a.example/", 1, 0);
    put_capture(fixture, "http://b.example/", 2, 0);
    for (int round = 0; round < 3; round++) {
        remove_capture(fixture, "http://a.example/", 1);
        assert_true(put_capture(fixture, "http://a.example/", 1, 0).is_duplicate);
        assert_int_equal(captures_of(fixture, "http://a.example/", 1), 1);
    }
    rebuild(fixture);
    assert_int_equal(captures_of(fixture, NULL, -1), 2);
    compact(fixture);
    rebuild(fixture);
    assert_int_equal(captures_of(fixture, NULL, -1), 2);
    expect(fixture, &stored.key, body_of(0));
}

static unsigned removed[2]; /* how many were removed, and how many not */

static void remove_twice(struct fixture *fixture, const struct capture *capture) {
    for (int i = 0; i < 2; i++) {
        enum err err = volume_remove_capture(fixture->writer, capture, NULL);
        assert_true(err == ERR_OK || err == ERR_NOT_FOUND);
        removed[err == ERR_OK ? 0 : 1]++;
    }
}

static void a_capture_is_removed_once_however_often_it_is_asked(void **state) {
    struct fixture *fixture = *state;
    enum { COUNT = 80 };
    for (int i = 0; i < COUNT; i++) {
        put_capture(fixture, "http://a.example/", i, 0); /* one original, revisits */
    }
    removed[0] = removed[1] = 0;
    each_capture(fixture, NULL, -1, remove_twice);
    assert_int_equal(removed[0], COUNT);
    assert_int_equal(removed[1], COUNT);
    assert_int_equal(captures_of(fixture, NULL, -1), 0);
    compact(fixture);
    compact(fixture); /* of what removed them too */
    assert_true(stored_size(fixture) < BODY_SIZE);
}

/* ---- by several at once ---- */

enum { REMOVERS_COUNT = 3 };
static const size_t ANY = SIZE_MAX; /* the committer may have taken some with the first */

struct remover {
    struct volume_writer *writer;
    const struct capture *capture; /* NULL: stores another one */
    struct document document;      /* that one */
    pthread_t thread;
    enum err err;
};

static void *remover_run(void *context) {
    struct remover *remover = context;
    remover->err = remover->capture != NULL ? volume_remove_capture(remover->writer, remover->capture, NULL)
                                            : volume_put(remover->writer, &remover->document, STORE_REGULAR,
                                                         &(struct stored){0}, NULL);
    return NULL;
}

static void remover_start(struct fixture *fixture, struct remover *remover, const struct capture *capture) {
    *remover = (struct remover){.writer = volume_writer_new(fixture->volume), .capture = capture};
    assert_non_null(remover->writer);
    if (capture == NULL) {
        remover->document = document_of("http://c.example/", 3, 0);
    }
    assert_int_equal(pthread_create(&remover->thread, NULL, remover_run, remover), 0);
}

static enum err remover_join(struct remover *remover) {
    pthread_join(remover->thread, NULL);
    volume_writer_free(remover->writer);
    return remover->err;
}

/* Items that writers wait for, and those of them that the committer has not taken yet. */
static bool has_items(struct volume *volume, size_t count, size_t queued_count) {
    pthread_mutex_lock(&volume->lock);
    size_t queued = 0;
    for (const struct volume_item *item = volume->queue_first; item != NULL; item = item->next) {
        queued++;
    }
    bool has = volume->items_taken_count == count && (queued == queued_count || queued_count == ANY);
    pthread_mutex_unlock(&volume->lock);
    return has;
}

/* The committer is held up by another capture until all removals of this one wait: they are one group. */
static void remove_in_one_group(struct fixture *fixture, const struct capture *capture) {
    struct remover first;
    struct remover removers[REMOVERS_COUNT];
    unsigned removed_count = 0;
    pthread_mutex_lock(&fixture->volume->ledger_lock);
    remover_start(fixture, &first, NULL);
    await_that(has_items(fixture->volume, 1, 0));
    for (size_t i = 0; i < REMOVERS_COUNT; i++) {
        remover_start(fixture, &removers[i], capture);
    }
    await_that(has_items(fixture->volume, 1 + REMOVERS_COUNT, ANY));
    pthread_mutex_unlock(&fixture->volume->ledger_lock);
    assert_int_equal(remover_join(&first), ERR_OK);
    for (size_t i = 0; i < REMOVERS_COUNT; i++) {
        enum err err = remover_join(&removers[i]);
        assert_true(err == ERR_OK || err == ERR_NOT_FOUND);
        removed_count += err == ERR_OK;
    }
    assert_true(removed_count > 0);
}

/* Each of them found the capture; the others of the document are not counted away with it. */
static void a_capture_that_several_remove_in_one_commit_is_removed_once(void **state) {
    struct fixture *fixture = *state;
    struct stored stored = put_capture(fixture, "http://a.example/", 1, 0);
    put_capture(fixture, "http://b.example/", 2, 0);
    assert_int_equal(each_capture(fixture, "http://a.example/", 1, remove_in_one_group), 1);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(captures_of(fixture, "http://a.example/", 1), 0);
        assert_int_equal(captures_of(fixture, NULL, -1), 2);
        expect(fixture, &stored.key, body_of(0));
        expect_sound(fixture);
        rebuild(fixture);
    }
    remove_capture(fixture, "http://b.example/", 2);
    expect(fixture, &stored.key, body_of(0));
    remove_capture(fixture, "http://c.example/", 3);
    expect_gone(fixture, &stored.key);
    compact(fixture);
    assert_true(stored_size(fixture) < BODY_SIZE);
}

/* ---- repair ---- */

/* One bit of the record. */
static void flip(struct fixture *fixture, const struct location *location, uint32_t at) {
    char name[SEGMENT_NAME_SIZE_MAX];
    char path[256];
    enum pack_framing framing = volume_framing(fixture->volume, location->segment);
    snprintf(path, sizeof path, "%s/volumes/0/%s", fixture->root,
             segment_name(location->segment, framing, name));
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    fseek(file, (long)(location->offset + at % location->length), SEEK_SET);
    int byte = fgetc(file);
    fseek(file, -1, SEEK_CUR);
    fputc(byte ^ 0x10, file);
    fclose(file);
}

static void flip_middle(struct fixture *fixture, const struct location *location) {
    flip(fixture, location, location->length / 2);
}

static struct capture seen; /* the last that verify named */
static char seen_url[128];
static unsigned seen_count;

static void see(void *context, const struct capture *capture) {
    (void)context;
    seen = *capture;
    seen_count++;
    snprintf(seen_url, sizeof seen_url, "%.*s", (int)capture->url.size, (const char *)capture->url.data);
}

static struct verify_report verify(struct fixture *fixture) {
    struct verify_report report;
    struct verify_observer observer = {.capture = see};
    seen_count = 0;
    assert_int_equal(verify_volume(fixture->volume, &observer, &report, NULL), ERR_OK);
    return report;
}

static bool repair(struct fixture *fixture, const struct key *key, const struct document *document) {
    bool is_repaired = false;
    struct err_detail detail = {0};
    enum err err = volume_repair(fixture->writer, key, document, false, &is_repaired, &detail);
    if (err != ERR_OK) {
        fail_msg("%s", err_detail_text(&detail, err));
    }
    return is_repaired;
}

/* In every way: as it is, from the segments alone, without the damaged bytes. */
static void expect_sound_for_good(struct fixture *fixture, const struct key *key, size_t body,
                                  size_t captures_count) {
    for (int round = 0; round < 4; round++) {
        expect_sound(fixture);
        expect(fixture, key, body_of(body));
        assert_int_equal(captures_of(fixture, NULL, -1), captures_count);
        if (round % 2 == 0) {
            rebuild(fixture);
        } else {
            compact(fixture);
        }
    }
}

static void a_damaged_document_is_replaced_for_good(void **state) {
    struct fixture *fixture = *state;
    put_capture(fixture, "http://before.example/", 1, 7);
    struct stored stored = put_capture(fixture, "http://a.example/", 1, 0);
    put_capture(fixture, "http://b.example/", 2, 0);
    put_capture(fixture, "http://behind.example/", 1, 8);
    struct document document = document_of("http://a.example/", 1, 0);
    assert_false(repair(fixture, &stored.key, &document)); /* nothing is damaged */
    flip_middle(fixture, &stored.location);
    struct bytes found;
    assert_int_equal(volume_get(fixture->reader, &stored.key, &found, NULL), ERR_CORRUPT);
    struct verify_report report = verify(fixture);
    assert_int_equal(report.damaged_count, 1);
    assert_int_equal(report.lost_count, 1);
    assert_int_equal(report.captures_count, 1);
    assert_int_equal(seen_count, 1);
    assert_string_equal(seen_url, "http://a.example/");
    uint64_t size = stored_size(fixture);
    assert_true(repair(fixture, &stored.key, &document));
    assert_false(repair(fixture, &stored.key, &document));
    expect_sound_for_good(fixture, &stored.key, 0, 4);
    assert_true(stored_size(fixture) < size + BODY_SIZE / 2); /* the damaged bytes went with a compaction */
    remove_capture(fixture, "http://a.example/", 1);
    expect(fixture, &stored.key, body_of(0));
    remove_capture(fixture, "http://b.example/", 2);
    expect_gone(fixture, &stored.key);
    rebuild(fixture);
    expect_gone(fixture, &stored.key);
}

static void a_damaged_revisit_is_replaced_by_a_revisit(void **state) {
    struct fixture *fixture = *state;
    struct stored stored = put_capture(fixture, "http://a.example/", 1, 0);
    struct stored revisit = put_capture(fixture, "http://b.example/", 2, 0);
    put_capture(fixture, "http://behind.example/", 1, 8);
    flip_middle(fixture, &revisit.location);
    struct verify_report report = verify(fixture);
    assert_int_equal(report.captures_count, 1);
    assert_int_equal(report.lost_count, 0);
    assert_string_equal(seen_url, "http://b.example/");
    uint64_t size = stored_size(fixture);
    struct document document = document_of("http://b.example/", 2, 0);
    assert_true(repair(fixture, &stored.key, &document));
    assert_true(stored_size(fixture) < size + BODY_SIZE);
    expect_sound_for_good(fixture, &stored.key, 0, 3);
}

static void a_document_whose_own_capture_is_gone_is_replaced_for_the_others(void **state) {
    struct fixture *fixture = *state;
    struct stored stored = put_capture(fixture, "http://a.example/", 1, 0);
    put_capture(fixture, "http://b.example/", 2, 0);
    put_capture(fixture, "http://behind.example/", 1, 8);
    remove_capture(fixture, "http://a.example/", 1);
    flip_middle(fixture, &stored.location);
    struct verify_report report = verify(fixture);
    assert_int_equal(report.captures_count, 0);
    assert_int_equal(report.lost_count, 1);
    assert_string_equal(seen_url, ""); /* only the document is known */
    struct document document = document_of("http://b.example/", 2, 0);
    assert_true(repair(fixture, &stored.key, &document));
    assert_false(repair(fixture, &stored.key, &document));
    expect_sound_for_good(fixture, &stored.key, 0, 2);
    remove_capture(fixture, "http://b.example/", 2);
    expect_gone(fixture, &stored.key);
    compact(fixture);
    rebuild(fixture);
    expect_gone(fixture, &stored.key);
}

static void a_plain_document_is_replaced_too(void **state) {
    struct fixture *fixture = *state;
    struct stored stored = put(fixture, body_of(0), STORE_REGULAR);
    put_capture(fixture, "http://b.example/", 2, 0);
    put_capture(fixture, "http://behind.example/", 1, 8);
    flip_middle(fixture, &stored.location);
    struct document document = document_of("http://b.example/", 2, 0); /* all that another node has of it */
    assert_true(repair(fixture, &stored.key, &document));
    expect_sound_for_good(fixture, &stored.key, 0, 2);
    remove_capture(fixture, "http://b.example/", 2);
    expect(fixture, &stored.key, body_of(0));
    assert_int_equal(volume_remove(fixture->writer, &stored.key, NULL), ERR_OK);
    expect_gone(fixture, &stored.key);
    rebuild(fixture);
    expect_gone(fixture, &stored.key);
}

static void a_document_that_an_index_was_rebuilt_without_comes_back(void **state) {
    struct fixture *fixture = *state;
    struct stored stored = put_capture(fixture, "http://a.example/", 1, 0);
    put_capture(fixture, "http://b.example/", 2, 0);
    put_capture(fixture, "http://behind.example/", 1, 8);
    flip_middle(fixture, &stored.location);
    rebuild(fixture);
    expect_gone(fixture, &stored.key);
    struct document document = document_of("http://b.example/", 2, 0);
    assert_true(repair(fixture, &stored.key, &document));
    expect(fixture, &stored.key, body_of(0));
    rebuild(fixture);
    expect(fixture, &stored.key, body_of(0));
    assert_int_equal(captures_of(fixture, NULL, -1), 2);
}

static void nothing_but_the_document_itself_is_taken_for_it(void **state) {
    struct fixture *fixture = *state;
    struct stored stored = put_capture(fixture, "http://a.example/", 1, 0);
    put_capture(fixture, "http://behind.example/", 1, 8);
    flip_middle(fixture, &stored.location);
    bool is_repaired;
    struct document other = document_of("http://a.example/", 1, 3);
    struct document_sum sum = {.size = BODY_SIZE};
    memcpy(sum.digest, stored.key.digest, sizeof sum.digest);
    other.sum = &sum; /* a lie */
    assert_int_equal(volume_repair(fixture->writer, &stored.key, &other, false, &is_repaired, NULL),
                     ERR_MISMATCH);
    struct key unknown = stored.key;
    unknown.number = 5;
    struct document document = document_of("http://a.example/", 1, 0);
    assert_int_equal(volume_repair(fixture->writer, &unknown, &document, false, &is_repaired, NULL),
                     ERR_NOT_FOUND);
    document.is_body_left_out = true;
    document.body = bytes_of(NULL, 0);
    document.sum = &sum;
    assert_int_equal(volume_repair(fixture->writer, &stored.key, &document, false, &is_repaired, NULL),
                     ERR_NOT_FOUND); /* that brings no body */
    struct bytes found;
    assert_int_equal(volume_get(fixture->reader, &stored.key, &found, NULL), ERR_CORRUPT);
}

/* Without compression only the digest knows, and an index that is rebuilt counts the record. */
static void a_record_that_reads_well_but_is_false_is_replaced_too(void **state) {
    struct fixture *fixture = *state;
    close_volume(fixture);
    fixture->config.framing = PACK_PLAIN;
    open_volume(fixture);
    struct stored stored = put_capture(fixture, "http://a.example/", 1, 0);
    put_capture(fixture, "http://b.example/", 2, 0);
    flip(fixture, &stored.location, stored.location.length - 100);
    assert_int_equal(verify(fixture).captures_count, 1);
    struct document document = document_of("http://a.example/", 1, 0);
    assert_true(repair(fixture, &stored.key, &document));
    expect_sound_for_good(fixture, &stored.key, 0, 2);
    remove_capture(fixture, "http://a.example/", 1);
    remove_capture(fixture, "http://b.example/", 2);
    expect_gone(fixture, &stored.key); /* so it was counted once */
    rebuild(fixture);
    expect_gone(fixture, &stored.key);
}

static void neighbours_that_are_damaged_are_replaced_one_by_one(void **state) {
    struct fixture *fixture = *state;
    enum { COUNT = 6 };
    struct stored stored[COUNT];
    char url[64];
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(url, sizeof url, "http://example.org/%zu", i);
        stored[i] = put_capture(fixture, url, 1, i);
    }
    put_capture(fixture, "http://behind.example/", 1, 8);
    for (size_t i = 1; i < COUNT; i++) {
        flip_middle(fixture, &stored[i].location);
    }
    assert_int_equal(verify(fixture).captures_count, COUNT - 1);
    for (size_t i = 1; i < COUNT; i++) {
        snprintf(url, sizeof url, "http://example.org/%zu", i);
        struct document document = document_of(url, 1, i);
        assert_true(repair(fixture, &stored[i].key, &document));
        assert_int_equal(verify(fixture).captures_count, COUNT - 1 - i);
    }
    expect_sound_for_good(fixture, &stored[3].key, 3, COUNT + 1);
}

/* ---- chance ---- */

enum { URLS_COUNT = 6, BODIES_COUNT = 4, TIMES_COUNT = 3 };

struct model {
    bool has[URLS_COUNT][TIMES_COUNT][BODIES_COUNT];
};

static const char *url_of(size_t i) {
    static char url[64];
    snprintf(url, sizeof url, "http://example.org/%zu", i);
    return url;
}

/* The capture of the model, in the index. */
static bool find_capture(struct fixture *fixture, size_t url, size_t time, size_t body,
                         struct capture *ret_capture, struct buf *text) {
    struct index_cursor *cursor;
    struct bytes all = {NULL, 0};
    bool is_found = false;
    assert_int_equal(index_cursor_open(volume_index(fixture->volume), all, all, false, &cursor), ERR_OK);
    while (!is_found && index_cursor_next(cursor, ret_capture) == ERR_OK) {
        struct key key = {.number = ret_capture->block_number};
        struct bytes found;
        memcpy(key.digest, ret_capture->digest, sizeof key.digest);
        is_found = ret_capture->time_us == (int64_t)time &&
                   bytes_equal(ret_capture->url, bytes_of_string(url_of(url))) &&
                   volume_get(fixture->reader, &key, &found, NULL) == ERR_OK &&
                   bytes_equal(found, body_of(body));
    }
    if (is_found) {
        buf_clear(text);
        buf_put(text, ret_capture->surt);
        buf_put(text, ret_capture->url);
        size_t surt_size = ret_capture->surt.size;
        ret_capture->surt = bytes_slice(buf_bytes(text), 0, surt_size);
        ret_capture->url = bytes_skip(buf_bytes(text), surt_size);
    }
    index_cursor_close(cursor);
    return is_found;
}

static void expect_model(struct fixture *fixture, const struct model *model) {
    struct capture capture;
    struct buf text;
    size_t count = 0;
    buf_init(&text, 1 << 20);
    for (size_t url = 0; url < URLS_COUNT; url++) {
        for (size_t time = 0; time < TIMES_COUNT; time++) {
            for (size_t body = 0; body < BODIES_COUNT; body++) {
                assert_int_equal(find_capture(fixture, url, time, body, &capture, &text),
                                 model->has[url][time][body]);
                count += model->has[url][time][body];
            }
        }
    }
    buf_done(&text);
    assert_int_equal(captures_of(fixture, NULL, -1), count);
    /* A place is named again where an index was rebuilt after the record that had mended it was damaged too.
     */
    struct verify_report report = verify(fixture);
    assert_int_equal(report.lost_count, 0);
    assert_int_equal(report.captures_count, 0);
}

/* The references of all blocks together: they must be those of the captures. */
static int64_t references(struct fixture *fixture) {
    struct index_cursor *cursor;
    uint8_t digest[KEY_DIGEST_SIZE];
    uint16_t number;
    struct block block;
    int64_t sum = 0;
    assert_int_equal(index_blocks_open(volume_index(fixture->volume), &cursor), ERR_OK);
    while (index_blocks_next(cursor, digest, &number, &block) == ERR_OK) {
        sum += block.references > 0 ? block.references : 0;
        assert_true(block.references <= (int32_t)block.records_count);
    }
    index_cursor_close(cursor);
    return sum;
}

static void change(struct fixture *fixture, struct model *model, struct prng *prng) {
    size_t url = prng_between(prng, 0, URLS_COUNT - 1);
    size_t time = prng_between(prng, 0, TIMES_COUNT - 1);
    size_t body = prng_between(prng, 0, BODIES_COUNT - 1);
    bool *has = &model->has[url][time][body];
    struct document document = document_of(url_of(url), (int64_t)time, body);
    struct capture capture;
    struct buf text;
    buf_init(&text, 1 << 20);
    if (!*has) {
        put_capture(fixture, url_of(url), (int64_t)time, body);
        *has = true;
    } else {
        assert_true(find_capture(fixture, url, time, body, &capture, &text));
        if (prng_between(prng, 0, 2) == 0) { /* its record is damaged, found and replaced */
            struct key key = {.number = capture.block_number};
            memcpy(key.digest, capture.digest, sizeof key.digest);
            put(fixture, BYTES("behind it"), STORE_REGULAR);
            flip_middle(fixture, &capture.location);
            if (verify(fixture).captures_count > 0) { /* else the bit meant nothing */
                assert_true(repair(fixture, &key, &document));
            }
        } else {
            remove_it(fixture, &capture);
            *has = false;
        }
    }
    buf_done(&text);
}

static void any_order_of_changes_is_the_same_when_read_again(void **state) {
    struct fixture *fixture = *state;
    enum { ROUNDS = IS_SANITIZED ? 4 : 8, CHANGES = 25 };
    struct model model = {0};
    struct prng prng;
    prng_init(&prng, 11);
    close_volume(fixture);
    fixture->config.segment_size_max = 150000;
    open_volume(fixture);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < CHANGES; i++) {
            change(fixture, &model, &prng);
        }
        expect_model(fixture, &model);
        int64_t grown = references(fixture);
        if (prng_between(&prng, 0, 1) == 0) {
            compact(fixture);
            expect_model(fixture, &model);
            assert_int_equal(references(fixture), grown);
        }
        if (prng_between(&prng, 0, 1) == 0) {
            rebuild(fixture);
            expect_model(fixture, &model);
            assert_int_equal(references(fixture), grown);
        }
    }
}

/* ---- several at once ---- */

enum { THREADS_COUNT = 3, THREAD_URLS_COUNT = 8, THREAD_CHANGES_COUNT = 60 };

/* Who stores and removes captures of URLs of its own, of documents that all share. */
struct worker {
    struct volume *volume;
    size_t number;
    bool has[THREAD_URLS_COUNT];
    unsigned failures_count;
};

static void name_url(size_t worker, size_t i, char url[64], char surt[64]) {
    snprintf(url, 64, "http://example.org/%zu/%zu", worker, i);
    snprintf(surt, 64, "org,example)/%zu/%zu", worker, i);
}

static enum err change_one(struct worker *worker, struct volume_writer *writer, const struct bytes *bodies,
                           size_t i) {
    char url[64];
    char surt[64];
    name_url(worker->number, i, url, surt);
    struct document document = {
        .url = bytes_of_string(url), .time_us = 1, .head = BYTES(HEAD), .body = bodies[i % 2]};
    if (!worker->has[i]) {
        struct stored stored;
        return volume_put(writer, &document, STORE_REGULAR, &stored, NULL);
    }
    struct index_cursor *cursor;
    struct capture capture;
    enum err err = index_cursor_open_time(volume_index(worker->volume), bytes_of_string(surt), 1, &cursor);
    if (err == ERR_OK) {
        err = index_cursor_next(cursor, &capture);
        err = err == ERR_OK ? volume_remove_capture(writer, &capture, NULL) : err;
        index_cursor_close(cursor);
    }
    return err;
}

static void *work(void *context) {
    struct worker *worker = context;
    struct volume_writer *writer = volume_writer_new(worker->volume);
    struct prng prng;
    prng_init(&prng, worker->number);
    struct bytes bodies[] = {BYTES("one document of all"), BYTES("another one")};
    for (size_t i = 0; i < THREAD_CHANGES_COUNT; i++) {
        size_t url = prng_between(&prng, 0, THREAD_URLS_COUNT - 1);
        enum err err = change_one(worker, writer, bodies, url);
        worker->failures_count += err != ERR_OK;
        worker->has[url] = !worker->has[url];
    }
    volume_writer_free(writer);
    return NULL;
}

static void expect_workers(struct fixture *fixture, const struct worker *workers) {
    size_t count = 0;
    for (size_t i = 0; i < THREADS_COUNT; i++) {
        assert_int_equal(workers[i].failures_count, 0);
        for (size_t j = 0; j < THREAD_URLS_COUNT; j++) {
            char url[64];
            char surt[64];
            name_url(i, j, url, surt);
            assert_int_equal(captures_of(fixture, url, 1), workers[i].has[j]);
            count += workers[i].has[j];
        }
    }
    assert_int_equal(references(fixture), count);
    expect_sound(fixture);
}

static void captures_come_and_go_while_segments_are_compacted(void **state) {
    struct fixture *fixture = *state;
    struct worker workers[THREADS_COUNT] = {0};
    pthread_t threads[THREADS_COUNT];
    close_volume(fixture);
    fixture->config.segment_size_max = 4000;
    open_volume(fixture);
    for (size_t i = 0; i < THREADS_COUNT; i++) {
        workers[i] = (struct worker){.volume = fixture->volume, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 15; i++) {
        compact(fixture);
    }
    for (size_t i = 0; i < THREADS_COUNT; i++) {
        pthread_join(threads[i], NULL);
    }
    expect_workers(fixture, workers);
    compact(fixture);
    expect_workers(fixture, workers);
    rebuild(fixture);
    expect_workers(fixture, workers);
}

/* ---- the end of the process ---- */

/* Store and remove in turn, and tell what was acknowledged. */
static void work_until_killed(struct fixture *fixture, int pipe_fd, uint32_t from) {
    char url[64];
    open_volume(fixture);
    for (uint32_t i = from;; i++) {
        snprintf(url, sizeof url, "http://example.org/%u", i / 2);
        if (i % 2 == 0) {
            put_capture(fixture, url, 1, i % 10); /* new ones and duplicates */
        } else if (i % 6 != 1) {                  /* one of three stays */
            remove_capture(fixture, url, 1);
        }
        if (write(pipe_fd, &i, sizeof i) != sizeof i) {
            _exit(1);
        }
    }
}

static void no_acknowledged_removal_is_lost_by_kill_9(void **state) {
    struct fixture *fixture = *state;
    enum { NUMBERS_MAX = 100000 };
    const char *wish = getenv("MNEMON_KILL_ROUNDS"); /* by hand: hundreds */
    int rounds_count = wish != NULL ? atoi(wish) : 6;
    bool *is_told = calloc(NUMBERS_MAX, sizeof *is_told);
    uint32_t from = 0;
    struct prng prng;
    prng_init(&prng, 7);
    for (int round = 0; round < rounds_count; round++) {
        int pipes[2];
        assert_int_equal(pipe(pipes), 0);
        close_volume(fixture);
        pid_t child = fork();
        if (child == 0) {
            close(pipes[0]);
            work_until_killed(fixture, pipes[1], from);
        }
        close(pipes[1]);
        uint32_t wanted = (uint32_t)prng_between(&prng, 1, 30);
        uint32_t number = from;
        for (uint32_t i = 0; read(pipes[0], &number, sizeof number) == sizeof number; i++) {
            assert_true(number < NUMBERS_MAX);
            is_told[number] = true;
            if (i == wanted) {
                kill(child, SIGKILL);
            }
        }
        close(pipes[0]);
        waitpid(child, NULL, 0);
        open_volume(fixture);
        for (uint32_t i = 1; i <= number; i += 2) {
            char url[64];
            snprintf(url, sizeof url, "http://example.org/%u", i / 2);
            if (is_told[i]) {
                assert_int_equal(captures_of(fixture, url, 1), i % 6 == 1);
            }
        }
        from = (number / 2 + 2) * 2; /* of the pair that was under way, nothing is known */
    }
    expect_sound(fixture);
    free(is_told);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_removed_capture_leaves_its_document_to_the_others),
        TEST(the_bytes_of_a_removed_revisit_come_back),
        TEST(what_was_removed_may_be_stored_again),
        TEST(a_capture_is_removed_once_however_often_it_is_asked),
        TEST(a_capture_that_several_remove_in_one_commit_is_removed_once),
        TEST(a_damaged_document_is_replaced_for_good),
        TEST(a_damaged_revisit_is_replaced_by_a_revisit),
        TEST(a_document_whose_own_capture_is_gone_is_replaced_for_the_others),
        TEST(a_plain_document_is_replaced_too),
        TEST(a_document_that_an_index_was_rebuilt_without_comes_back),
        TEST(nothing_but_the_document_itself_is_taken_for_it),
        TEST(a_record_that_reads_well_but_is_false_is_replaced_too),
        TEST(neighbours_that_are_damaged_are_replaced_one_by_one),
        TEST(any_order_of_changes_is_the_same_when_read_again),
        TEST(captures_come_and_go_while_segments_are_compacted),
        TEST(no_acknowledged_removal_is_lost_by_kill_9),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
