#include "replay/survey/survey_tally.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/utc.h"
#include "unit.h"

enum { EXTRA_HOSTS = 10 };

static struct survey_tally *tally_new(void) {
    struct survey_tally *tally = malloc(sizeof *tally);
    assert_non_null(tally);
    assert_int_equal(survey_tally_init(tally, 7), ERR_OK);
    return tally;
}

static void tally_free(struct survey_tally *tally) {
    survey_tally_done(tally);
    free(tally);
}

static void add_of(struct survey_tally *tally, const char *surt, const char *digits, const char *mime,
                   uint16_t status, uint8_t flags, const struct key *key) {
    struct capture capture = {
        .block_number = key->number,
        .surt = bytes_of_string(surt),
        .url = bytes_of_string(surt),
        .mime = bytes_of_string(mime),
        .status = status,
        .flags = flags,
        .location = {.segment = 256, .length = 10},
    };
    assert_true(utc_parse_digits(bytes_of_string(digits), false, &capture.time_us));
    memcpy(capture.digest, key->digest, sizeof capture.digest);
    survey_tally_add(tally, &capture);
}

/* All of them have one document. */
static void add(struct survey_tally *tally, const char *surt, const char *digits, const char *mime,
                uint16_t status, uint8_t flags) {
    add_of(tally, surt, digits, mime, status, flags, &(struct key){.number = 0});
}

static struct key key_of(uint16_t volume, uint8_t first, uint8_t last, uint16_t number) {
    return (struct key){.volume = volume, .number = number, .digest = {first, [7] = last}};
}

static void counts_by_host_type_status_and_month(void **state) {
    (void)state;
    struct survey_tally *tally = tally_new();
    add(tally, "com,a)/", "20200102", "text/html", 200, 0);
    add(tally, "com,a)/", "20210101", "Text/HTML", 200, CAPTURE_REVISIT);
    add(tally, "com,a)/x.png", "20200131", "image/png", 404, 0);
    add(tally, "com,b,www2:8080)/", "20190101", "text/html", 302, 0);
    add(tally, "1,0,0,127:80)/", "20190101", "", 0, 0);
    add(tally, "dns:a.com", "20190101", "text/dns", 0, 0);
    survey_tally_sort(tally);
    survey_tally_add_size(tally, &(struct key){.number = 0}, 100);
    survey_tally_settle(tally);
    struct survey_snapshot *snapshot = survey_tally_snapshot(tally, NULL, 0);
    tally_free(tally); /* a snapshot stands alone */
    assert_non_null(snapshot);
    assert_int_equal(snapshot->total.captures_count, 6);
    assert_int_equal(snapshot->total.revisits_count, 1);
    assert_int_equal(snapshot->total.size, 600);
    assert_int_equal(snapshot->total.saved_size, 100);
    assert_int_equal(snapshot->total.stored_size, 60);
    assert_int_equal(snapshot->hosts_count, 4);
    const struct survey_host *most = snapshot->hosts[SURVEY_BY_CAPTURES][0];
    assert_bytes_equal(most->name, BYTES("a.com"));
    assert_int_equal(most->total.captures_count, 3);
    static const char *const names[] = {"127.0.0.1:80", "a.com", "www2.b.com:8080", "dns:"};
    for (size_t i = 0; i < 4; i++) {
        assert_bytes_equal(snapshot->hosts[SURVEY_BY_NAME][i]->name, bytes_of_string(names[i]));
    }
    assert_bytes_equal(snapshot->hosts[SURVEY_BY_LAST][0]->name, BYTES("a.com"));
    assert_bytes_equal(snapshot->types[0].name, BYTES("text/html"));
    assert_int_equal(snapshot->types[0].total.captures_count, 3); /* however it is written */
    assert_int_equal(snapshot->types_count, 4);
    assert_int_equal(snapshot->months_count, 3);
    assert_int_equal(snapshot->months[0].month, 2019 * 12);
    assert_int_equal(snapshot->months[1].captures_count, 2);
    assert_int_equal(snapshot->statuses[200], 2);
    assert_int_equal(snapshot->statuses[0], 2);
    survey_release(snapshot);
}

/* The index has captures in the order of SURTs, blocks in that of signatures, on each volume from the start.
 */
static void sizes_are_those_of_the_blocks(void **state) {
    (void)state;
    struct survey_tally *tally = tally_new();
    struct key keys[] = {key_of(0, 9, 1, 0), key_of(0, 9, 2, 0), key_of(0, 9, 2, 1), key_of(0, 200, 0, 0),
                         key_of(0, 255, 0, 0)};
    add_of(tally, "com,a)/1", "2020", "text/html", 200, 0, &keys[3]);
    add_of(tally, "com,a)/2", "2020", "text/html", 200, 0, &keys[0]);
    add_of(tally, "com,a)/2", "2021", "text/html", 200, CAPTURE_REVISIT, &keys[0]);
    add_of(tally, "com,b)/", "2020", "image/png", 200, 0, &keys[2]);
    add_of(tally, "com,b)/gone", "2020", "image/png", 200, 0, &keys[4]);
    survey_tally_sort(tally);
    uint64_t size = 1;
    for (size_t i = 0; i < 3; i++, size *= 10) {
        survey_tally_add_size(tally, &keys[i], size);
    }
    struct key other = key_of(7, 9, 1, 0); /* a copy, which counts once */
    survey_tally_add_size(tally, &other, 5);
    other = key_of(7, 200, 0, 0);
    survey_tally_add_size(tally, &other, size);
    survey_tally_settle(tally);

    add_of(tally, "com,c)/", "2021", "image/png", 200, CAPTURE_REVISIT, &keys[1]);
    survey_tally_sort(tally);
    survey_tally_add_size(tally, &keys[0], 1);
    survey_tally_add_size(tally, &keys[1], 10);
    survey_tally_settle(tally);
    struct survey_snapshot *snapshot = survey_tally_snapshot(tally, NULL, 0);
    tally_free(tally);
    assert_int_equal(snapshot->total.captures_count, 6);
    assert_int_equal(snapshot->total.size, 1112);
    assert_int_equal(snapshot->total.saved_size, 11);
    assert_int_equal(snapshot->hosts[SURVEY_BY_NAME][0]->total.size, 1002);
    assert_int_equal(snapshot->hosts[SURVEY_BY_NAME][0]->total.saved_size, 1);
    assert_int_equal(snapshot->hosts[SURVEY_BY_NAME][1]->total.size, 100);
    assert_int_equal(snapshot->hosts[SURVEY_BY_SIZE][2]->total.size, 10);
    assert_bytes_equal(snapshot->types[1].name, BYTES("text/html"));
    assert_int_equal(snapshot->types[0].total.size, 110);
    assert_int_equal(snapshot->types[1].total.size, 1002);
    assert_int_equal(snapshot->months[0].size, 1101);
    assert_int_equal(snapshot->months[1].size, 11);
    survey_release(snapshot);
}

static void keeps_the_newest_version_of_the_newest_pages(void **state) {
    (void)state;
    struct survey_tally *tally = tally_new();
    for (int i = 0; i < 3 * SURVEY_NEWEST_MAX; i++) {
        char surt[32];
        char digits[UTC_DIGITS_SIZE];
        snprintf(surt, sizeof surt, "com,a)/%03d", i);
        /* page i was seen twice: in the year 1000 + (i * 7 mod 90), and a month later */
        snprintf(digits, sizeof digits, "%04d01", 1000 + i * 7 % (3 * SURVEY_NEWEST_MAX));
        add(tally, surt, digits, "text/html", 200, 0);
        digits[5] = '2';
        add(tally, surt, digits, "text/html", 200, 0);
        add(tally, surt, "9000", "text/html", 404, 0);
        add(tally, surt, "9000", "image/png", 200, 0);
    }
    struct survey_snapshot *snapshot = survey_tally_snapshot(tally, NULL, 0);
    tally_free(tally);
    assert_int_equal(snapshot->newest_count, SURVEY_NEWEST_MAX);
    for (size_t i = 0; i < SURVEY_NEWEST_MAX; i++) {
        struct utc utc;
        utc_split(snapshot->newest[i].time_us, &utc);
        assert_int_equal(utc.year, 1000 + 3 * SURVEY_NEWEST_MAX - 1 - i);
        assert_int_equal(utc.month, 2);
    }
    survey_release(snapshot);
}

static void hosts_above_the_maximum_are_counted_together(void **state) {
    (void)state;
    struct survey_tally *tally = tally_new();
    for (int i = 0; i < SURVEY_HOSTS_MAX + EXTRA_HOSTS; i++) {
        char surt[32];
        snprintf(surt, sizeof surt, "com,h%d)/", i);
        add(tally, surt, "2020", "text/html", 200, 0);
    }
    add(tally, "com,h0)/", "2021", "text/html", 200, 0);
    struct survey_snapshot *snapshot = survey_tally_snapshot(tally, NULL, 0);
    tally_free(tally);
    assert_non_null(snapshot);
    assert_int_equal(snapshot->hosts_count, SURVEY_HOSTS_MAX);
    assert_int_equal(snapshot->others.captures_count, EXTRA_HOSTS);
    assert_int_equal(snapshot->hosts[SURVEY_BY_CAPTURES][0]->total.captures_count, 2);
    survey_keep(snapshot);
    survey_release(snapshot);
    survey_release(snapshot);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_by_host_type_status_and_month),
        cmocka_unit_test(sizes_are_those_of_the_blocks),
        cmocka_unit_test(keeps_the_newest_version_of_the_newest_pages),
        cmocka_unit_test(hosts_above_the_maximum_are_counted_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
