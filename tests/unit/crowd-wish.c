#include "protocol/crowd/wish.h"
#include "unit.h"

static struct wish url_wish(enum wish_time time, int64_t from_us, int64_t to_us) {
    struct wish wish = {.kind = WISH_URL, .time = time, .from_us = from_us, .to_us = to_us};
    memset(wish.hash, 7, sizeof wish.hash);
    return wish;
}

static struct wish words_wish(struct bytes words) {
    return (struct wish){.kind = WISH_WORDS, .words = words};
}

/* ---- wishes ---- */

static void assert_reads_back(const struct wish *wish) {
    uint8_t memory[CROWD_WISH_SIZE_MAX];
    uint8_t longer[CROWD_WISH_SIZE_MAX + 1];
    struct wish read;
    struct bytes bytes = wish_write(wish, memory);
    assert_true(wish_read(bytes, &read));
    assert_int_equal(read.kind, wish->kind);
    assert_int_equal(read.time, wish->time);
    assert_memory_equal(read.hash, wish->hash, sizeof read.hash);
    assert_memory_equal(read.digest, wish->digest, sizeof read.digest);
    assert_bytes_equal(read.words, wish->words);
    assert_true(read.from_us == wish->from_us && read.to_us == wish->to_us);
    for (size_t size = 0; size < bytes.size; size++) {
        assert_false(wish_read(bytes_slice(bytes, 0, size), &read));
    }
    memcpy(longer, bytes.data, bytes.size);
    longer[bytes.size] = 0;
    assert_false(wish_read(bytes_of(longer, bytes.size + 1), &read));
}

static void wishes_read_back_and_nothing_less_or_more(void **state) {
    (void)state;
    uint8_t words[WISH_WORDS_SIZE_MAX];
    memset(words, 'w', sizeof words);
    struct wish wishes[] = {
        url_wish(WISH_NEWEST, 0, 0),
        url_wish(WISH_NEAREST, -5, 0),
        url_wish(WISH_BETWEEN, INT64_MIN, INT64_MAX),
        {.kind = WISH_DIGEST, .digest = {1, 2, 3}},
        words_wish(BYTES("two words")),
        words_wish(BYTES("gr\xc3\xbc\xc3\x9f"
                         "e 2026")),
        words_wish(bytes_of(words, sizeof words)),
    };
    wishes[6].time = WISH_BETWEEN;
    wishes[6].to_us = 1;
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
        assert_reads_back(&wishes[i]);
    }
}

static void bytes_are_as_drawn(void **state) {
    (void)state;
    uint8_t memory[CROWD_WISH_SIZE_MAX];
    struct wish words = words_wish(BYTES("ab c"));
    words.time = WISH_NEAREST;
    words.from_us = 0x0102;
    assert_bytes_equal(wish_write(&words, memory), BYTES("\x03\x04"
                                                         "ab c\x01\x02\x01\0\0\0\0\0\0"));
    struct wish digest = {.kind = WISH_DIGEST};
    assert_int_equal(wish_write(&digest, memory).size, 33);
    struct wish url = url_wish(WISH_BETWEEN, 1, 2);
    assert_int_equal(wish_write(&url, memory).size, 1 + 16 + 1 + 8 + 8);
}

static void senseless_wishes_are_refused(void **state) {
    (void)state;
    static const char *const words[] = {"", " ", " a", "a ", "a  b", "Ab", "a\tb", "a\x7f", "\xff", "a\xc3"};
    uint8_t memory[CROWD_WISH_SIZE_MAX];
    struct wish read = {.from_us = 42};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct wish wish = words_wish(bytes_of_string(words[i]));
        assert_false(wish_read(wish_write(&wish, memory), &read));
    }
    struct wish turned = url_wish(WISH_BETWEEN, 2, 1);
    assert_false(wish_read(wish_write(&turned, memory), &read));
    assert_false(wish_read(bytes_of(NULL, 0), &read));
    struct wish good = url_wish(WISH_NEWEST, 0, 0);
    struct bytes bytes = wish_write(&good, memory);
    memory[0] = 0;
    assert_false(wish_read(bytes, &read));
    memory[0] = 4;
    assert_false(wish_read(bytes, &read));
    memory[0] = 1;
    memory[17] = 3; /* the kind of time */
    assert_false(wish_read(bytes, &read));
    assert_int_equal(read.from_us, 42); /* untouched */
}

/* ---- findings ---- */

static struct wish_finding finding_of(int64_t time_us, struct bytes url, struct bytes title) {
    static const uint8_t bytes[32] = {9};
    return (struct wish_finding){
        .key = ringkey_make(bytes, time_us, bytes), .size = UINT64_MAX, .url = url, .title = title};
}

static void findings_read_back(void **state) {
    (void)state;
    uint8_t memory[CROWD_FINDING_SIZE_MAX];
    struct wish_finding out[WISH_FINDINGS_MAX];
    size_t count = 0;
    struct wish_finding in[5];
    for (int i = 0; i < 5; i++) {
        in[i] = finding_of(i, BYTES("http://example.org/"), BYTES("T\xc3\xaftle"));
    }
    struct bytes bytes = wish_write_findings(in, 5, memory);
    assert_true(wish_read_findings(bytes, out, &count));
    assert_int_equal(count, WISH_FINDINGS_MAX);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(ringkey_time_us(&out[i].key), i);
        assert_true(out[i].size == UINT64_MAX);
        assert_bytes_equal(out[i].url, in[i].url);
        assert_bytes_equal(out[i].title, in[i].title);
    }
    for (size_t size = 0; size < bytes.size; size++) {
        assert_false(wish_read_findings(bytes_slice(bytes, 0, size), out, &count));
    }
    memory[0] = 3;
    assert_false(wish_read_findings(bytes, out, &count));
    memory[0] = 0;
    assert_false(wish_read_findings(bytes_of(memory, 1), out, &count));
}

static void what_does_not_fit_is_left_out(void **state) {
    (void)state;
    uint8_t memory[CROWD_FINDING_SIZE_MAX];
    uint8_t text[WISH_URL_SIZE_MAX + 1];
    memset(text, 'u', sizeof text);
    struct wish_finding out[WISH_FINDINGS_MAX];
    size_t count = 0;
    struct bytes longest = bytes_of(text, WISH_URL_SIZE_MAX);
    struct wish_finding in[2] = {finding_of(1, longest, longest), finding_of(2, longest, BYTES(""))};
    assert_true(wish_read_findings(wish_write_findings(in, 2, memory), out, &count));
    assert_int_equal(count, 1);
    assert_bytes_equal(out[0].url, longest);
    assert_bytes_equal(out[0].title, bytes_of(text, WISH_TITLE_SIZE_MAX));

    struct wish_finding odd = finding_of(1, bytes_of(text, sizeof text), BYTES("a\nb"));
    assert_true(wish_read_findings(wish_write_findings(&odd, 1, memory), out, &count));
    assert_int_equal(out[0].url.size, 0);
    assert_int_equal(out[0].title.size, 0);
}

static void title_is_not_cut_within_a_character(void **state) {
    (void)state;
    uint8_t memory[CROWD_FINDING_SIZE_MAX];
    uint8_t title[1 + 3 * 80];
    title[0] = 'x';
    for (size_t i = 1; i < sizeof title; i += 3) {
        memcpy(title + i, "\xe2\x82\xac", 3);
    }
    struct wish_finding out[WISH_FINDINGS_MAX];
    size_t count = 0;
    struct wish_finding in = finding_of(1, BYTES(""), bytes_of(title, sizeof title));
    assert_true(wish_read_findings(wish_write_findings(&in, 1, memory), out, &count));
    assert_int_equal(out[0].title.size, 118);
}

static void findings_that_harm_a_terminal_are_refused(void **state) {
    (void)state;
    uint8_t memory[CROWD_FINDING_SIZE_MAX];
    struct wish_finding out[WISH_FINDINGS_MAX];
    size_t count = 0;
    struct wish_finding in = finding_of(1, BYTES("url"), BYTES("title"));
    struct bytes bytes = wish_write_findings(&in, 1, memory);
    memory[bytes.size - 1] = 0x1b;
    assert_false(wish_read_findings(bytes, out, &count));
    memory[bytes.size - 1] = 0xc3;
    assert_false(wish_read_findings(bytes, out, &count));
}

/* ---- times ---- */

static void better_times_are_preferred(void **state) {
    (void)state;
    struct wish newest = url_wish(WISH_NEWEST, 0, 0);
    assert_true(wish_prefers(&newest, 2, 1));
    assert_false(wish_prefers(&newest, 1, 2));
    assert_false(wish_prefers(&newest, 1, 1));

    struct wish nearest = url_wish(WISH_NEAREST, 100, 0);
    assert_true(wish_prefers(&nearest, 99, 103));
    assert_false(wish_prefers(&nearest, 90, 103));
    assert_true(wish_prefers(&nearest, 103, 97)); /* equally near: the newer */
    assert_false(wish_prefers(&nearest, 97, 103));
    assert_true(wish_prefers(&nearest, 0, INT64_MIN));
    nearest.from_us = INT64_MIN;
    assert_true(wish_prefers(&nearest, INT64_MIN, INT64_MAX));

    struct wish between = url_wish(WISH_BETWEEN, 10, 20);
    assert_true(wish_takes_time(&between, 10) && wish_takes_time(&between, 20));
    assert_false(wish_takes_time(&between, 9) || wish_takes_time(&between, 21));
    assert_true(wish_prefers(&between, 20, 19));
    assert_true(wish_prefers(&between, 10, 21));
    assert_false(wish_prefers(&between, 21, 10));
    assert_false(wish_prefers(&between, 22, 21));
    assert_true(wish_takes_time(&newest, INT64_MIN));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wishes_read_back_and_nothing_less_or_more),
        cmocka_unit_test(bytes_are_as_drawn),
        cmocka_unit_test(senseless_wishes_are_refused),
        cmocka_unit_test(findings_read_back),
        cmocka_unit_test(what_does_not_fit_is_left_out),
        cmocka_unit_test(title_is_not_cut_within_a_character),
        cmocka_unit_test(findings_that_harm_a_terminal_are_refused),
        cmocka_unit_test(better_times_are_preferred),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
