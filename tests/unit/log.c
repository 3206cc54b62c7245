#include "base/log.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/prng.h"
#include "unit.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const int64_t wall_us = INT64_C(1767362587123456); /* 2026-01-02 14:03:07.123456 */

static char filler[3 * LOG_LINE_SIZE_MAX + 1]; /* a long message; tests shorten it by a zero byte */

static int make(void **state) {
    struct buf *buf = malloc(sizeof *buf);
    if (buf == NULL) {
        return -1;
    }
    buf_init(buf, LOG_LINE_SIZE_MAX);
    memset(filler, 'm', sizeof filler - 1);
    filler[sizeof filler - 1] = '\0';
    *state = buf;
    return 0;
}

static int destroy(void **state) {
    buf_done(*state);
    free(*state);
    return 0;
}

static struct bytes put(struct buf *buf, enum log_format format, const char *message,
                        const struct log_field *fields, size_t fields_count) {
    buf_clear(buf);
    log_put_line(buf, format, wall_us, LOG_INFO, message, fields, fields_count);
    struct bytes line = buf_bytes(buf);
    assert_int_equal(buf->err, ERR_OK);
    assert_true(line.size > 0 && line.size <= LOG_LINE_SIZE_MAX);
    assert_int_equal(bytes_find_byte(line, '\n'), line.size - 1);
    return line;
}

/* The line as jansson reads it, which is strict; the caller gives it back. */
static json_t *put_json(struct buf *buf, const char *message, const struct log_field *fields,
                        size_t fields_count) {
    struct bytes line = put(buf, LOG_JSON, message, fields, fields_count);
    json_error_t error;
    json_t *object = json_loadb((const char *)line.data, line.size, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(object)) {
        fail_msg("%s: %.*s", error.text, BYTES_ARG(line));
    }
    return object;
}

static void writes_text_for_people(void **state) {
    const struct log_field fields[] = {log_string("peer", "127.0.0.3:7070"), log_number("rtt_us", 412)};
    assert_bytes_equal(put(*state, LOG_TEXT, "peer joined", fields, 2),
                       BYTES("14:03:07.123 info    peer joined peer=127.0.0.3:7070 rtt_us=412\n"));
    assert_bytes_equal(put(*state, LOG_TEXT, "started", NULL, 0), BYTES("14:03:07.123 info    started\n"));
}

static void writes_one_json_object_a_line(void **state) {
    const struct log_field fields[] = {log_string("peer", "127.0.0.3:7070"), log_number("rtt_us", 412)};
    assert_bytes_equal(
        put(*state, LOG_JSON, "peer joined", fields, 2),
        BYTES("{\"time\":\"2026-01-02T14:03:07.123456Z\",\"level\":\"info\",\"message\":\"peer "
              "joined\",\"peer\":\"127.0.0.3:7070\",\"rtt_us\":412}\n"));
}

static void text_quotes_only_fields_that_need_it(void **state) {
    static const char *const rows[][2] = {
        {"plain", "plain"},
        {"http://a/?b=c#d", "http://a/?b=c#d"},
        {"", "\"\""},
        {"two words", "\"two words\""},
        {"a\"b", "\"a\\\"b\""},
        {"\x1b[31m", "\"\\u001b[31m\""},
        {"a\nb", "\"a\\nb\""},
        {"back\\slash", "\"back\\\\slash\""},
        {"\x7f", "\"\\u007f\""},
        {"\xc3\xbc", "\"\xc3\xbc\""},
        {"\xff", "\"\xef\xbf\xbd\""},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct log_field field = log_string("f", rows[i][0]);
        char expected[64];
        snprintf(expected, sizeof expected, "14:03:07.123 info    m f=%s\n", rows[i][1]);
        assert_bytes_equal(put(*state, LOG_TEXT, "m", &field, 1), bytes_of_string(expected));
    }
}

static void json_gives_back_numbers_and_texts(void **state) {
    const struct log_field fields[] = {
        log_number("least", INT64_MIN),
        log_number("most", INT64_MAX),
        log_bytes("all", BYTES("\0\x01\x1f\"\\/\x7f\xc3\xbc\xf0\x9f\x98\x80")),
        log_bytes("none", bytes_of(NULL, 0)),
        log_bytes("broken", BYTES("a\xff")),
    };
    struct bytes line = put(*state, LOG_JSON, "new\nline", fields, COUNT_OF(fields));
    json_t *object = json_loadb((const char *)line.data, line.size, JSON_ALLOW_NUL, NULL);
    assert_non_null(object);
    assert_string_equal(json_string_value(json_object_get(object, "message")), "new\nline");
    assert_int_equal(json_integer_value(json_object_get(object, "least")), INT64_MIN);
    assert_int_equal(json_integer_value(json_object_get(object, "most")), INT64_MAX);
    const json_t *all = json_object_get(object, "all");
    assert_bytes_equal(bytes_of(json_string_value(all), json_string_length(all)), fields[2].text);
    assert_string_equal(json_string_value(json_object_get(object, "none")), "");
    assert_string_equal(json_string_value(json_object_get(object, "broken")), "a\xef\xbf\xbd");
    assert_null(json_object_get(object, "cut"));
    json_decref(object);
}

static void long_field_is_whole_or_its_line_says_cut(void **state) {
    size_t whole_count = 0;
    size_t cut_count = 0;
    for (size_t size = LOG_LINE_SIZE_MAX - 300; size < LOG_LINE_SIZE_MAX + 50; size++) {
        const struct log_field fields[] = {log_bytes("f", bytes_of(filler, size)), log_number("after", 1)};
        json_t *object = put_json(*state, "m", fields, 2);
        const json_t *field = json_object_get(object, "f");
        bool is_cut = json_object_get(object, "cut") != NULL;
        assert_int_equal(json_object_get(object, "after") == NULL, is_cut);
        assert_true(is_cut || json_string_length(field) == size);
        whole_count += field != NULL && json_string_length(field) == size;
        cut_count += is_cut;
        json_decref(object);
    }
    assert_true(whole_count > 0 && cut_count > 0);
}

static void long_message_is_cut_and_keeps_its_fields(void **state) {
    static const size_t sizes[] = {1023, 1024, 1025, LOG_LINE_SIZE_MAX, 3 * LOG_LINE_SIZE_MAX};
    static const uint8_t letters[] = {'m', 1}; /* the second takes six bytes in JSON */
    const struct log_field field = log_number("after", 1);
    for (size_t i = 0; i < COUNT_OF(sizes) * COUNT_OF(letters); i++) {
        size_t size = sizes[i / 2];
        memset(filler, letters[i % 2], sizeof filler - 1);
        filler[size] = '\0';
        json_t *object = put_json(*state, filler, &field, 1);
        const json_t *message = json_object_get(object, "message");
        assert_int_equal(json_string_length(message), size < 1024 ? size : 1024);
        assert_int_equal(json_integer_value(json_object_get(object, "after")), 1);
        json_decref(object);
    }
}

static void long_message_is_cut_between_characters(void **state) {
    for (size_t shift = 0; shift < 4; shift++) {
        memset(filler, 'm', shift);
        for (size_t i = shift; i + 4 < 2000; i += 4) {
            memcpy(filler + i, "\xf0\x9f\x98\x80", 4);
        }
        json_t *object = put_json(*state, filler, NULL, 0);
        assert_null(strstr(json_string_value(json_object_get(object, "message")), "\xef\xbf\xbd"));
        json_decref(object);
    }
}

static void long_text_line_keeps_its_beginning(void **state) {
    struct bytes line = put(*state, LOG_TEXT, filler, NULL, 0);
    assert_true(bytes_starts_with(line, BYTES("14:03:07.123 info    mmmmmmmm")));
    const struct log_field fields[] = {log_number("before", 1), log_string("f", filler),
                                       log_number("after", 1)};
    line = put(*state, LOG_TEXT, "m", fields, 3);
    assert_true(bytes_starts_with(line, BYTES("14:03:07.123 info    m before=1")));
    for (size_t size = LOG_LINE_SIZE_MAX - 100; size < LOG_LINE_SIZE_MAX + 10; size++) {
        const struct log_field field = log_bytes("f", bytes_of(filler, size));
        put(*state, LOG_TEXT, "m", &field, 1);
    }
}

static void lines_of_any_fields_stay_valid(void **state) {
    enum { FIELDS_MAX = 100 };
    struct prng prng;
    prng_init(&prng, 1);
    static uint8_t noise[4096];
    for (unsigned round = 0; round < 300; round++) {
        prng_fill(&prng, noise, sizeof noise);
        struct log_field fields[FIELDS_MAX];
        char names[FIELDS_MAX][24];
        size_t count = prng_below(&prng, FIELDS_MAX + 1);
        size_t size_max = round % 2 == 0 ? 40 : sizeof noise;
        for (size_t i = 0; i < count; i++) {
            snprintf(names[i], sizeof names[i], "f%zu", i);
            fields[i] = prng_below(&prng, 4) == 0
                            ? log_number(names[i], (int64_t)prng_u64(&prng))
                            : log_bytes(names[i], bytes_of(noise, prng_below(&prng, size_max)));
        }
        struct bytes line = put(*state, LOG_JSON, "m", fields, count);
        json_t *object =
            json_loadb((const char *)line.data, line.size, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(object);
        bool is_cut = json_object_get(object, "cut") != NULL;
        assert_true(is_cut ? json_object_size(object) <= 3 + count : json_object_size(object) == 3 + count);
        json_decref(object);
        put(*state, LOG_TEXT, "m", fields, count);
    }
}

static void levels_are_read_by_their_names(void **state) {
    (void)state;
    static const char *const names[] = {"debug", "info", "warning", "error"};
    for (unsigned i = 0; i < COUNT_OF(names); i++) {
        enum log_level level;
        assert_true(log_level_parse(bytes_of_string(names[i]), &level));
        assert_int_equal(level, i);
        assert_string_equal(log_level_name((enum log_level)i), names[i]);
    }
    enum log_level level = LOG_WARNING;
    assert_false(log_level_parse(BYTES("Info"), &level));
    assert_false(log_level_parse(BYTES(""), &level));
    assert_false(log_level_parse(BYTES("info "), &level));
    assert_int_equal(level, LOG_WARNING);
}

/* A pipe in packet mode returns what one write(2) wrote per read(2). */
static void each_line_is_one_write_and_low_levels_are_dropped(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_DIRECT | O_NONBLOCK), 0);
    struct clock_manual manual;
    clock_manual_init(&manual, wall_us);
    struct log log;
    log_init(&log, ends[1], LOG_INFO, &manual.clock);
    assert_int_equal(log.format, LOG_JSON);
    log_event(&log, LOG_DEBUG, "dropped", log_number("n", 0));
    log_event(&log, LOG_INFO, "first", log_number("n", 1), log_string("s", "x"));
    clock_manual_advance(&manual, 1);
    log_event(&log, LOG_ERROR, "second", log_number("n", 2));
    log.level = LOG_ERROR;
    log_event(&log, LOG_WARNING, "dropped", log_number("n", 3));
    static const char *const lines[] = {
        "{\"time\":\"2026-01-02T14:03:07.123456Z\",\"level\":\"info\",\"message\":\"first\",\"n\":1,\"s\":"
        "\"x\"}\n",
        "{\"time\":\"2026-01-02T14:03:07.123457Z\",\"level\":\"error\",\"message\":\"second\",\"n\":2}\n",
    };
    char packet[LOG_LINE_SIZE_MAX];
    for (size_t i = 0; i < 2; i++) {
        ssize_t size = read(ends[0], packet, sizeof packet);
        assert_true(size > 0);
        assert_bytes_equal(bytes_of(packet, (size_t)size), bytes_of_string(lines[i]));
    }
    assert_int_equal(read(ends[0], packet, sizeof packet), -1);
    close(ends[0]);
    close(ends[1]);
}

static void writes_text_to_a_terminal(void **state) {
    (void)state;
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0) {
        skip(); /* no terminals in this sandbox */
    }
    struct log log;
    log_init(&log, terminal, LOG_INFO, &clock_system);
    assert_int_equal(log.format, LOG_TEXT);
    close(terminal);
}

static void goes_on_where_nothing_can_be_written(void **state) {
    (void)state;
    struct log log;
    log_init(&log, -1, LOG_DEBUG, &clock_system);
    log_event(&log, LOG_ERROR, "into the void", log_number("n", 1));
    int full = open("/dev/full", O_WRONLY);
    assert_true(full >= 0);
    log_init(&log, full, LOG_DEBUG, &clock_system);
    log_event(&log, LOG_ERROR, "the disk is full", log_number("n", 1));
    close(full);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(writes_text_for_people, make, destroy),
        cmocka_unit_test_setup_teardown(writes_one_json_object_a_line, make, destroy),
        cmocka_unit_test_setup_teardown(text_quotes_only_fields_that_need_it, make, destroy),
        cmocka_unit_test_setup_teardown(json_gives_back_numbers_and_texts, make, destroy),
        cmocka_unit_test_setup_teardown(long_field_is_whole_or_its_line_says_cut, make, destroy),
        cmocka_unit_test_setup_teardown(long_message_is_cut_and_keeps_its_fields, make, destroy),
        cmocka_unit_test_setup_teardown(long_message_is_cut_between_characters, make, destroy),
        cmocka_unit_test_setup_teardown(long_text_line_keeps_its_beginning, make, destroy),
        cmocka_unit_test_setup_teardown(lines_of_any_fields_stay_valid, make, destroy),
        cmocka_unit_test(levels_are_read_by_their_names),
        cmocka_unit_test(each_line_is_one_write_and_low_levels_are_dropped),
        cmocka_unit_test(writes_text_to_a_terminal),
        cmocka_unit_test(goes_on_where_nothing_can_be_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
