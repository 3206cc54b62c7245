#include "replay/archive/archive.h"
#include "clock-manual.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/utc.h"
#include "instance-fixture.h"

struct world {
    struct fixture *fixture;
    struct archive *archive;
    struct archive_reader *reader;
    struct clock_manual clock;
    uint64_t member; /* the first bytes of the key of the only member */
};

static enum archive_membership judge(void *context, uint64_t voucher, int64_t time_us) {
    const struct world *world = context;
    (void)time_us;
    return voucher == world->member ? ARCHIVE_MEMBER : ARCHIVE_STRANGER;
}

static int set_up(void **state) {
    struct world *world = calloc(1, sizeof *world);
    void *fixture;
    if (world == NULL || fixture_set_up(&fixture) != 0) {
        return -1;
    }
    world->fixture = fixture;
    clock_manual_init(&world->clock, 0);
    struct archive_config config = {.instance = world->fixture->instance,
                                    .scratch_directory = "/tmp",
                                    .clock = &world->clock.clock,
                                    .judge = judge,
                                    .context = world};
    world->archive = archive_new(&config);
    world->reader = archive_reader_begin(world->archive);
    *state = world;
    return world->reader == NULL ? -1 : 0;
}

static int tear_down(void **state) {
    struct world *world = *state;
    void *fixture = world->fixture;
    archive_reader_end(world->reader);
    archive_free(world->archive);
    int result = fixture_tear_down(&fixture);
    free(world);
    return result;
}

static int64_t at(int64_t seconds) {
    return seconds * FIXTURE_SECOND_US;
}

static void capture(struct world *world, const char *url, int64_t seconds, const char *body) {
    fixture_capture(world->fixture, url, seconds, body, INSTANCE_VOLUME_ANY);
}

static void put(struct world *world, const struct document *document) {
    fixture_put_document(world->fixture, document, STORE_REGULAR, INSTANCE_VOLUME_ANY);
}

/* A visit sees a URL as it was at its first look. */
static void renew(struct world *world) {
    archive_reader_end(world->reader);
    world->reader = archive_reader_begin(world->archive);
    assert_non_null(world->reader);
}

static int64_t find(struct world *world, const char *url, int64_t seconds, enum archive_choice choice) {
    struct bytes surt;
    struct capture found;
    assert_int_equal(archive_key(world->reader, bytes_of_string(url), &surt, NULL), ERR_OK);
    enum err err = archive_find(world->reader, surt, bytes_of(NULL, 0), seconds * FIXTURE_SECOND_US, choice,
                                &found, NULL);
    if (err == ERR_NOT_FOUND) {
        return -1;
    }
    assert_int_equal(err, ERR_OK);
    assert_bytes_equal(found.url, bytes_of_string(url));
    assert_bytes_equal(found.mime, BYTES("text/html"));
    return found.time_us / FIXTURE_SECOND_US;
}

static void check_choices(struct world *world, const char *url) {
    assert_int_equal(find(world, url, 1000, ARCHIVE_CLOSEST), 1000);
    assert_int_equal(find(world, url, 1900, ARCHIVE_CLOSEST), 2000);
    assert_int_equal(find(world, url, 1500, ARCHIVE_CLOSEST), 1000); /* as close: the earlier */
    assert_int_equal(find(world, url, 1501, ARCHIVE_CLOSEST), 2000);
    assert_int_equal(find(world, url, 1, ARCHIVE_CLOSEST), 1000);
    assert_int_equal(find(world, url, 999999, ARCHIVE_CLOSEST), 3000);
    assert_int_equal(find(world, url, 1999, ARCHIVE_NOT_NEWER), 1000);
    assert_int_equal(find(world, url, 2000, ARCHIVE_NOT_NEWER), 2000);
    assert_int_equal(find(world, url, 1, ARCHIVE_NOT_NEWER), 1000);
    assert_int_equal(find(world, url, 2000, ARCHIVE_EXACT), 2000);
    assert_int_equal(find(world, url, 2001, ARCHIVE_EXACT), -1);
}

static void finds_the_capture_that_is_meant(void **state) {
    struct world *world = *state;
    capture(world, "http://a.example/x", 1000, "one");
    capture(world, "http://a.example/x", 2000, "two");
    capture(world, "http://a.example/x", 3000, "one");
    capture(world, "http://a.example/y", 1500, "other");
    check_choices(world, "http://a.example/x");
    assert_int_equal(find(world, "http://a.example/none", 1, ARCHIVE_CLOSEST), -1);
}

/* More captures than a timeline holds: they are sought one by one, with the same results. */
static void finds_among_many(void **state) {
    struct world *world = *state;
    const char *url = "http://a.example/many";
    for (int i = 0; i < 40; i++) {
        capture(world, url, 3000 + i * 1000, "same");
    }
    capture(world, url, 1000, "early");
    capture(world, url, 2000, "early");
    assert_int_equal(find(world, url, 1500, ARCHIVE_CLOSEST), 1000);
    assert_int_equal(find(world, url, 1999, ARCHIVE_NOT_NEWER), 1000);
    assert_int_equal(find(world, url, 1, ARCHIVE_NOT_NEWER), 1000);
    assert_int_equal(find(world, url, 5000, ARCHIVE_EXACT), 5000);
    assert_int_equal(find(world, url, 5001, ARCHIVE_EXACT), -1);
    assert_int_equal(find(world, url, 1 << 30, ARCHIVE_CLOSEST), 42000);
    struct bytes surt;
    struct archive_neighbours near;
    assert_int_equal(archive_key(world->reader, bytes_of_string(url), &surt, NULL), ERR_OK);
    assert_int_equal(archive_neighbours(world->reader, surt, at(5000), &near), ERR_OK);
    assert_int_equal(near.first.time_us / FIXTURE_SECOND_US, 1000);
    assert_int_equal(near.previous.time_us / FIXTURE_SECOND_US, 4000);
    assert_int_equal(near.next.time_us / FIXTURE_SECOND_US, 6000);
    assert_int_equal(near.last.time_us / FIXTURE_SECOND_US, 42000);
}

static void knows_the_neighbours(void **state) {
    struct world *world = *state;
    struct bytes surt;
    struct archive_neighbours near;
    capture(world, "http://a.example/x", 1000, "one");
    assert_int_equal(archive_key(world->reader, BYTES("http://a.example/x"), &surt, NULL), ERR_OK);
    assert_int_equal(archive_neighbours(world->reader, surt, at(1000), &near), ERR_OK);
    assert_true(near.previous.time_us == INT64_MIN && near.next.time_us == INT64_MIN);
    assert_true(near.first.time_us == INT64_MIN && near.last.time_us == INT64_MIN);
    capture(world, "http://a.example/x", 2000, "two");
    capture(world, "http://a.example/x", 3000, "three");
    renew(world);
    assert_int_equal(archive_key(world->reader, BYTES("http://a.example/x"), &surt, NULL), ERR_OK);
    assert_int_equal(archive_neighbours(world->reader, surt, at(2000), &near), ERR_OK);
    assert_int_equal(near.previous.time_us / FIXTURE_SECOND_US, 1000);
    assert_int_equal(near.next.time_us / FIXTURE_SECOND_US, 3000);
    assert_int_equal(near.first.time_us / FIXTURE_SECOND_US, 1000);
    assert_int_equal(near.last.time_us / FIXTURE_SECOND_US, 3000);
}

static void check_found(struct world *world, const char *asked, int64_t seconds, enum archive_choice choice,
                        const char *url) {
    struct bytes surt;
    struct capture found;
    assert_int_equal(archive_key(world->reader, bytes_of_string(asked), &surt, NULL), ERR_OK);
    assert_int_equal(
        archive_find(world->reader, surt, bytes_of_string(asked), at(seconds), choice, &found, NULL), ERR_OK);
    assert_bytes_equal(found.url, bytes_of_string(url));
    struct archive_neighbours near;
    assert_int_equal(archive_neighbours(world->reader, found.surt, found.time_us, &near), ERR_OK);
    assert_bytes_equal(found.url, bytes_of_string(url)); /* looking around did not take it away */
}

static void check_variants(struct world *world) {
    for (enum archive_choice choice = ARCHIVE_CLOSEST; choice <= ARCHIVE_SETTLED; choice++) {
        check_found(world, "http://a.example/Page", 2000, choice, "http://a.example/Page");
        check_found(world, "http://a.example/page", 2000, choice, "http://a.example/page");
        check_found(world, "https://a.example/Page", 2000, choice, "https://a.example/Page");
        check_found(world, "https://www.a.example/page", 2000, choice, "http://a.example/page");
        if (choice != ARCHIVE_EXACT) { /* none of that second */
            check_found(world, "http://www.a.example/PAGE", 1, choice, "https://a.example/PAGE");
            check_found(world, "https://a.example/Page", 1, choice, "https://a.example/Page");
        }
    }
    check_found(world, "a.example/PAGE", 2000, ARCHIVE_CLOSEST, "https://a.example/PAGE");
}

/* Nearer in its URL goes before closer in time, in a timeline and one by one. */
static void prefers_the_url_that_was_asked_for(void **state) {
    struct world *world = *state;
    capture(world, "http://a.example/Page", 2000, "one");
    capture(world, "http://a.example/page", 2000, "two");
    capture(world, "https://a.example/Page", 2000, "three");
    capture(world, "https://a.example/PAGE", 9000, "four");
    check_variants(world);
    for (int i = 0; i < 40; i++) {
        capture(world, "https://a.example/pagE", 100 + i * 100, "other");
    }
    renew(world);
    check_variants(world);
}

/* The last of the second, as timestamps cannot tell them apart. */
static void takes_the_last_of_a_second(void **state) {
    struct world *world = *state;
    struct bytes surt;
    struct capture found;
    struct document document = {.url = BYTES("http://a.example/"),
                                .head = BYTES("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"),
                                .body = BYTES("one")};
    for (int i = 1; i <= 3; i++) {
        document.time_us = at(1000) + i * 300000;
        put(world, &document);
    }
    assert_int_equal(archive_key(world->reader, BYTES("http://a.example/"), &surt, NULL), ERR_OK);
    for (enum archive_choice choice = ARCHIVE_CLOSEST; choice <= ARCHIVE_SETTLED; choice++) {
        assert_int_equal(archive_find(world->reader, surt, bytes_of(NULL, 0), at(1000), choice, &found, NULL),
                         ERR_OK);
        assert_int_equal(found.time_us % FIXTURE_SECOND_US, 900000);
    }
}

static void passes_over_redirects_where_told(void **state) {
    struct world *world = *state;
    struct bytes surt;
    struct capture found;
    struct document redirect = {.url = BYTES("http://a.example/"),
                                .time_us = at(1000),
                                .head = BYTES("HTTP/1.1 301 Moved\r\nLocation: https://a.example/\r\n\r\n")};
    put(world, &redirect);
    assert_int_equal(archive_key(world->reader, BYTES("http://a.example/"), &surt, NULL), ERR_OK);
    assert_int_equal(
        archive_find(world->reader, surt, bytes_of(NULL, 0), redirect.time_us, ARCHIVE_SETTLED, &found, NULL),
        ERR_NOT_FOUND);
    capture(world, "https://a.example/", 1002, "here");
    renew(world);
    assert_int_equal(archive_key(world->reader, BYTES("http://a.example/"), &surt, NULL), ERR_OK);
    assert_int_equal(
        archive_find(world->reader, surt, bytes_of(NULL, 0), redirect.time_us, ARCHIVE_CLOSEST, &found, NULL),
        ERR_OK);
    assert_int_equal(found.status, 301);
    assert_int_equal(
        archive_find(world->reader, surt, bytes_of(NULL, 0), redirect.time_us, ARCHIVE_SETTLED, &found, NULL),
        ERR_OK);
    assert_bytes_equal(found.url, BYTES("https://a.example/"));
}

/* ---- opening ---- */

static void open_at(struct world *world, const char *url, int64_t seconds,
                    struct archive_record *ret_record) {
    struct bytes surt;
    struct capture found;
    struct err_detail detail = {0};
    assert_int_equal(archive_key(world->reader, bytes_of_string(url), &surt, NULL), ERR_OK);
    assert_int_equal(archive_find(world->reader, surt, bytes_of(NULL, 0), seconds * FIXTURE_SECOND_US,
                                  ARCHIVE_EXACT, &found, NULL),
                     ERR_OK);
    enum err err = archive_open(world->reader, &found, ret_record, &detail);
    if (err != ERR_OK) {
        fail_msg("%s", err_detail_text(&detail, err));
    }
}

static void opens_revisits_with_their_own_head(void **state) {
    struct world *world = *state;
    struct archive_record record;
    capture(world, "http://a.example/x", 1000, "the body");
    struct document again = {.url = BYTES("http://b.example/x"),
                             .time_us = at(2000),
                             .head =
                                 BYTES("HTTP/1.1 404 Gone\r\nContent-Type: text/plain\r\nX-Own: yes\r\n\r\n"),
                             .body = BYTES("the body")};
    put(world, &again);
    open_at(world, "http://b.example/x", 2000, &record);
    assert_true(record.is_revisit && !record.is_not_modified && record.is_http);
    assert_int_equal(record.status, 404);
    assert_bytes_equal(record.body, BYTES("the body"));
    assert_bytes_equal(record.content_type, BYTES("text/plain"));
    assert_bytes_equal(fields_get(record.fields, BYTES("x-own")), BYTES("yes"));
}

static void opens_not_modified_with_the_head_of_the_original(void **state) {
    struct world *world = *state;
    struct archive_record record;
    capture(world, "http://a.example/x", 1000, "the body");
    struct document_sum sum = fixture_sum("the body");
    struct document again = {.url = BYTES("http://a.example/x"),
                             .time_us = at(2000),
                             .head = BYTES("HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n"),
                             .sum = &sum,
                             .is_not_modified = true,
                             .is_body_left_out = true};
    put(world, &again);
    open_at(world, "http://a.example/x", 2000, &record);
    assert_true(record.is_not_modified);
    assert_int_equal(record.status, 200);
    assert_bytes_equal(record.content_type, BYTES("text/html"));
    assert_bytes_equal(record.body, BYTES("the body"));
}

static void opens_chunks_and_what_is_not_http(void **state) {
    struct world *world = *state;
    struct archive_record record;
    struct document chunked = {
        .url = BYTES("http://a.example/c"),
        .time_us = at(1000),
        .head = BYTES("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/css\r\n\r\n"),
        .body = BYTES("3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\n\r\n")};
    put(world, &chunked);
    open_at(world, "http://a.example/c", 1000, &record);
    assert_bytes_equal(record.body, BYTES("abcdefg"));
    struct document resource = {.url = BYTES("dns:a.example"),
                                .time_us = at(1000),
                                .body = BYTES("20260102030405\na.example. 1 IN A 192.0.2.1\n"),
                                .content_type = BYTES("text/dns")};
    put(world, &resource);
    open_at(world, "dns:a.example", 1000, &record);
    assert_false(record.is_http);
    assert_int_equal(record.status, 200);
    assert_int_equal(record.fields->count, 0);
    assert_bytes_equal(record.content_type, BYTES("text/dns"));
    assert_int_equal(record.body.size, resource.body.size);
}

/* A large record is read once for many who ask one after the other, and a fresh one is never taken for it. */
static void keeps_large_records(void **state) {
    struct world *world = *state;
    enum { SIZE = 6 << 20, COUNT = 6 };
    struct archive_record record;
    char url[64];
    uint8_t *body = malloc(SIZE);
    assert_non_null(body);
    for (unsigned i = 0; i < COUNT; i++) {
        uint32_t number = i + 1;
        for (size_t at = 0; at < SIZE; at++) { /* does not compress */
            number = number * 1664525 + 1013904223;
            body[at] = (uint8_t)(number >> 24);
        }
        snprintf(url, sizeof url, "http://a.example/%u", i);
        struct document document = {.url = bytes_of_string(url),
                                    .time_us = at(1000),
                                    .head = BYTES("HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n"),
                                    .body = bytes_of(body, SIZE)};
        put(world, &document);
        open_at(world, url, 1000, &record);
        assert_bytes_equal(record.body, bytes_of(body, SIZE));
    }
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < COUNT; i++) {
            renew(world);
            snprintf(url, sizeof url, "http://a.example/%u", i);
            open_at(world, url, 1000, &record);
            assert_int_equal(record.body.size, SIZE);
            assert_int_equal(record.body.data[0], (uint8_t)(((i + 1) * 1664525 + 1013904223) >> 24));
            const uint8_t *first = record.body.data;
            renew(world);
            open_at(world, url, 1000, &record);
            assert_ptr_equal(record.body.data, first);
        }
    }
    free(body);
}

/* ---- walking ---- */

/* "1000 2000 ", the times of a walk in seconds; at most so many, going on behind `after`, whose new value is
 * left. */
static void walk(struct world *world, const char *url, bool in_reverse, size_t max, struct buf *after,
                 char *out) {
    struct archive_range range = {.url = bytes_of_string(url),
                                  .from_us = INT64_MIN,
                                  .to_us = INT64_MAX,
                                  .in_reverse = in_reverse,
                                  .after = buf_bytes(after)};
    struct archive_walk *walk;
    struct capture found;
    out[0] = '\0';
    assert_int_equal(archive_walk_open(world->reader, &range, &walk, NULL), ERR_OK);
    for (size_t i = 0; i < max && archive_walk_next(walk, &found, NULL) == ERR_OK; i++) {
        sprintf(out + strlen(out), "%jd ", (intmax_t)(found.time_us / FIXTURE_SECOND_US));
        buf_clear(after);
        assert_int_equal(archive_walk_key(walk, after), ERR_OK);
    }
    assert_false(archive_walk_is_partial(walk));
    archive_walk_close(walk);
}

static void walks_on_where_it_stopped(void **state) {
    struct world *world = *state;
    char out[256];
    struct buf after;
    capture(world, "http://a.example/x", 1000, "one");
    capture(world, "http://a.example/x", 2000, "two");
    capture(world, "http://a.example/y", 1500, "three");
    capture(world, "http://b.a.example/", 500, "four");
    capture(world, "http://z.example/", 100, "five");
    buf_init(&after, 1 << 18);
    for (int in_reverse = 0; in_reverse < 2; in_reverse++) {
        buf_clear(&after);
        walk(world, "*.a.example", in_reverse == 1, 100, &after, out);
        assert_string_equal(out, in_reverse ? "500 1500 2000 1000 " : "1000 2000 1500 500 ");
        buf_clear(&after);
        char all[512] = "";
        do {
            walk(world, "*.a.example", in_reverse == 1, 1, &after, out);
            strcat(all, out);
        } while (out[0] != '\0');
        assert_string_equal(all, in_reverse ? "500 1500 2000 1000 " : "1000 2000 1500 500 ");
    }
    buf_done(&after);
}

static void refuses_places_that_are_none(void **state) {
    struct world *world = *state;
    static const char *const wrong[] = {"x", "example,a)/ 1 2", "example,a)/ 1 2 3 x",
                                        "example,a)/ 1 99999 3 4", " 1 2 3 4"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct archive_range range = {
            .url = BYTES("*"), .from_us = INT64_MIN, .to_us = INT64_MAX, .after = bytes_of_string(wrong[i])};
        struct archive_walk *walk;
        assert_int_equal(archive_walk_open(world->reader, &range, &walk, NULL), ERR_INVALID);
    }
}

static void walks_between_two_times(void **state) {
    struct world *world = *state;
    capture(world, "http://a.example/x", 1000, "one");
    capture(world, "http://a.example/x", 2000, "two");
    capture(world, "http://a.example/x", 3000, "three");
    for (int i = 0; i < 2; i++) {
        struct archive_range range = {.url =
                                          i == 0 ? BYTES("http://a.example/x") : BYTES("http://a.example/*"),
                                      .from_us = at(2000),
                                      .to_us = at(2000)};
        struct archive_walk *walk;
        struct capture found;
        assert_int_equal(archive_walk_open(world->reader, &range, &walk, NULL), ERR_OK);
        assert_int_equal(archive_walk_next(walk, &found, NULL), ERR_OK);
        assert_int_equal(found.time_us, at(2000));
        assert_int_equal(archive_walk_next(walk, &found, NULL), ERR_NOT_FOUND);
        archive_walk_close(walk);
    }
}

/* ---- readers ---- */

static void hands_out_a_bounded_number_of_held_readers(void **state) {
    struct world *world = *state;
    enum { COUNT = 300 };
    struct archive_reader *readers[COUNT];
    size_t held = 0;
    for (size_t i = 0; i < COUNT; i++) {
        readers[i] = archive_reader_begin(world->archive);
        assert_non_null(readers[i]);
        held += archive_reader_hold(readers[i]) ? 1 : 0;
    }
    assert_in_range(held, 1, COUNT - 1);
    for (size_t i = 0; i < COUNT; i++) {
        archive_reader_end(readers[i]);
    }
    struct archive_reader *reader = archive_reader_begin(world->archive);
    assert_true(archive_reader_hold(reader));
    archive_reader_end(reader);
}

static void *look(void *context) {
    struct archive *archive = context;
    size_t wrong = 0;
    for (int i = 0; i < 200; i++) {
        struct archive_reader *reader = archive_reader_begin(archive);
        struct bytes surt;
        struct capture found;
        struct archive_record record;
        bool is_right =
            archive_key(reader, BYTES("http://a.example/x"), &surt, NULL) == ERR_OK &&
            archive_find(reader, surt, bytes_of(NULL, 0), 0, ARCHIVE_CLOSEST, &found, NULL) == ERR_OK &&
            archive_open(reader, &found, &record, NULL) == ERR_OK && bytes_equal(record.body, BYTES("one"));
        wrong += is_right ? 0 : 1;
        archive_reader_end(reader);
    }
    return wrong == 0 ? archive : NULL;
}

static void serves_many_threads(void **state) {
    struct world *world = *state;
    pthread_t threads[4];
    capture(world, "http://a.example/x", 1000, "one");
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, look, world->archive), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_non_null(result);
    }
}

/* ---- trying ---- */

/* A reader of what is found and cannot be had, as other nodes may list it. */
struct reader {
    struct world *world;
    struct capture captures[8]; /* that are found, one after the other */
    unsigned finds_count;
    unsigned uses_count;
    unsigned found_max; /* then nothing is found any more */
    enum err err;       /* of each that is read */
    uint64_t use_us;    /* how long that takes */
};

static enum err find_next(void *context, struct capture *ret_capture, struct err_detail *detail) {
    struct reader *reader = context;
    if (reader->finds_count == reader->found_max) {
        return err_set(detail, ERR_NOT_FOUND, "there are no more");
    }
    *ret_capture = reader->captures[reader->finds_count++];
    return ERR_OK;
}

static enum err use_next(void *context, const struct capture *capture, struct err_detail *detail) {
    struct reader *reader = context;
    reader->uses_count++;
    clock_manual_advance(&reader->world->clock, reader->use_us);
    enum err err = archive_note_read(reader->world->reader, capture, reader->err);
    return err == ERR_OK ? err : err_set(detail, err, "capture %u is lost", reader->uses_count);
}

static void reader_init(struct reader *reader, struct world *world) {
    *reader = (struct reader){.world = world, .found_max = 8, .err = ERR_NOT_FOUND};
    for (unsigned i = 0; i < 8; i++) {
        reader->captures[i].time_us = i;
    }
}

static enum err try(struct reader *reader, struct err_detail *detail) {
    struct archive_attempt attempt = {.find = find_next, .use = use_next, .context = reader};
    *detail = (struct err_detail){0};
    return archive_try(reader->world->reader, &attempt, detail);
}

static void what_is_lost_is_looked_past_four_times(void **state) {
    struct reader reader;
    struct err_detail detail;
    reader_init(&reader, *state);
    assert_int_equal(try(&reader, &detail), ERR_NOT_FOUND);
    assert_string_equal(detail.text, "capture 4 is lost");
    assert_int_equal(reader.finds_count, 4);
}

static void what_is_lost_is_looked_past_for_six_seconds(void **state) {
    struct reader reader;
    struct err_detail detail;
    reader_init(&reader, *state);
    reader.use_us = 3 * FIXTURE_SECOND_US;
    assert_int_equal(try(&reader, &detail), ERR_NOT_FOUND);
    assert_int_equal(reader.uses_count, 2);
}

/* What was wrong with the one that there was says more than that there is no other. */
static void where_there_is_no_other_the_one_that_was_is_told_of(void **state) {
    struct reader reader;
    struct err_detail detail;
    reader_init(&reader, *state);
    reader.found_max = 1;
    reader.err = ERR_CORRUPT;
    assert_int_equal(try(&reader, &detail), ERR_CORRUPT);
    assert_string_equal(detail.text, "capture 1 is lost");
    reader.found_max = 0;
    reader.finds_count = 0;
    assert_int_equal(try(&reader, &detail), ERR_NOT_FOUND);
    assert_string_equal(detail.text, "there are no more");
}

/* A damaged record of the own disk is found again; but the document of a revisit may come from elsewhere. */
static void the_same_is_tried_again_only_if_its_document_is_elsewhere(void **state) {
    struct reader reader;
    struct err_detail detail;
    reader_init(&reader, *state);
    reader.captures[1] = reader.captures[0];
    assert_int_equal(try(&reader, &detail), ERR_NOT_FOUND);
    assert_int_equal(reader.uses_count, 1);
    reader_init(&reader, *state);
    reader.captures[0].flags = CAPTURE_REVISIT;
    reader.captures[1] = reader.captures[0];
    assert_int_equal(try(&reader, &detail), ERR_NOT_FOUND);
    assert_int_equal(reader.uses_count, 4);
}

/* Who sends it has the visit by then, and what is in it is no business of ours. */
static enum err use_and_give_away(void *context, const struct capture *capture, struct err_detail *detail) {
    return use_next(context, capture, detail) == ERR_NOT_FOUND ? ERR_OK : ERR_IO;
}

static void what_was_used_is_not_looked_at_again(void **state) {
    struct reader reader;
    reader_init(&reader, *state);
    struct archive_attempt attempt = {.find = find_next, .use = use_and_give_away, .context = &reader};
    assert_int_equal(archive_try(reader.world->reader, &attempt, NULL), ERR_OK);
    assert_int_equal(reader.uses_count, 1);
}

static void what_may_be_had_later_is_not_looked_past(void **state) {
    static const enum err errors[] = {ERR_OK, ERR_UNREACHABLE, ERR_BUSY, ERR_TIMEOUT, ERR_PERMISSION, ERR_IO};
    struct reader reader;
    struct err_detail detail;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        reader_init(&reader, *state);
        reader.err = errors[i];
        assert_int_equal(try(&reader, &detail), errors[i]);
        assert_int_equal(reader.uses_count, 1);
    }
}

/* A word of the node whose key is all of one digit. */
static void vouch(char digit, char out[256]) {
    memset(out, digit, 52);
    out[52] = ' ';
    memset(out + 53, '0', 128);
    out[181] = '\0';
}

static void put_vouched(struct world *world, int64_t seconds, const char *body, const char *signature,
                        const char *imported) {
    struct document document = {.url = BYTES("http://v.example/"),
                                .time_us = at(seconds),
                                .head = BYTES("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"),
                                .body = bytes_of_string(body),
                                .signature = bytes_of_string(signature),
                                .imported = bytes_of_string(imported)};
    put(world, &document);
}

static void fetched_by_a_member_goes_before_imported_and_may_be_all(void **state) {
    struct world *world = *state;
    char member[256];
    char stranger[256];
    vouch('b', member); /* all its bits are 00001 */
    vouch('c', stranger);
    world->member = UINT64_C(0x0842108421084210);
    put_vouched(world, 1000, "imported before", "", member);
    put_vouched(world, 3000, "fetched", member, "");
    put_vouched(world, 5000, "of a stranger", stranger, member);
    put_vouched(world, 7000, "nobody's", "", "");
    renew(world);
    const char *url = "http://v.example/";
    assert_int_equal(find(world, url, 2000, ARCHIVE_CLOSEST), 3000); /* as close, and later */
    assert_int_equal(find(world, url, 1999, ARCHIVE_CLOSEST), 1000);
    assert_int_equal(find(world, url, 4000, ARCHIVE_CLOSEST), 3000);
    assert_int_equal(find(world, url, 6000, ARCHIVE_CLOSEST), 5000); /* neither is of a member: the earlier */
    static const enum provenance expected[] = {PROVENANCE_IMPORTED, PROVENANCE_FETCHED, PROVENANCE_IMPORTED,
                                               PROVENANCE_UNKNOWN};
    struct bytes surt;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct capture capture;
        struct archive_record record;
        struct archive_origin origin;
        assert_int_equal(archive_key(world->reader, bytes_of_string(url), &surt, NULL), ERR_OK);
        assert_int_equal(archive_find(world->reader, surt, bytes_of(NULL, 0), at(1000 + 2000 * (int64_t)i),
                                      ARCHIVE_EXACT, &capture, NULL),
                         ERR_OK);
        assert_int_equal(archive_provenance(world->reader, &capture), expected[i]);
        assert_int_equal(archive_open(world->reader, &capture, &record, NULL), ERR_OK);
        archive_origin_read(world->archive, &record.header->fields, capture.time_us, &origin);
        assert_int_equal(origin.provenance, expected[i]);
        assert_int_equal(origin.is_stranger, i == 2);
        /* As an index from before 0.3 has it: the record says. */
        capture.flags &= (uint8_t) ~(CAPTURE_SIGNED | CAPTURE_IMPORTED);
        assert_int_equal(archive_provenance(world->reader, &capture), expected[i]);
    }
    renew(world);
    archive_reader_set_trust(world->reader, ARCHIVE_TRUST_MEMBERS);
    assert_int_equal(find(world, url, 1000, ARCHIVE_CLOSEST), 3000);
    assert_int_equal(find(world, url, 9000, ARCHIVE_CLOSEST), 3000);
    assert_int_equal(find(world, url, 1000, ARCHIVE_EXACT), -1);
    renew(world);
    assert_int_equal(find(world, url, 9000, ARCHIVE_CLOSEST), 7000); /* the next reader sees all */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(finds_the_capture_that_is_meant),
        TEST(finds_among_many),
        TEST(knows_the_neighbours),
        TEST(prefers_the_url_that_was_asked_for),
        TEST(takes_the_last_of_a_second),
        TEST(passes_over_redirects_where_told),
        TEST(opens_revisits_with_their_own_head),
        TEST(opens_not_modified_with_the_head_of_the_original),
        TEST(opens_chunks_and_what_is_not_http),
        TEST(keeps_large_records),
        TEST(walks_on_where_it_stopped),
        TEST(refuses_places_that_are_none),
        TEST(walks_between_two_times),
        TEST(hands_out_a_bounded_number_of_held_readers),
        TEST(serves_many_threads),
        TEST(what_is_lost_is_looked_past_four_times),
        TEST(what_is_lost_is_looked_past_for_six_seconds),
        TEST(where_there_is_no_other_the_one_that_was_is_told_of),
        TEST(the_same_is_tried_again_only_if_its_document_is_elsewhere),
        TEST(what_was_used_is_not_looked_at_again),
        TEST(what_may_be_had_later_is_not_looked_past),
        TEST(fetched_by_a_member_goes_before_imported_and_may_be_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
