#include "base/value.h"

#include "unit.h"

#define EXBI (UINT64_C(1) << 60)

typedef enum err (*reader)(struct bytes text, uint64_t min, uint64_t max, uint64_t *ret_value,
                           struct err_detail *detail);

struct accepted {
    const char *text;
    uint64_t value;
};

static void assert_reads(reader read, const struct accepted *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 1;
        struct err_detail detail = {0};
        if (read(bytes_of_string(rows[i].text), 0, UINT64_MAX, &value, &detail) != ERR_OK) {
            fail_msg("\"%s\": %s", rows[i].text, detail.text);
        }
        assert_int_equal(value, rows[i].value);
    }
}

static void assert_refuses(reader read, const char *const *texts, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 42;
        struct err_detail detail = {0};
        if (read(bytes_of_string(texts[i]), 0, UINT64_MAX, &value, &detail) != ERR_INVALID) {
            fail_msg("\"%s\" was read as %ju", texts[i], (uintmax_t)value);
        }
        assert_int_equal(value, 42);
        assert_int_equal(detail.err, ERR_INVALID);
        assert_true(strlen(detail.text) > 10);
        assert_int_equal(read(bytes_of_string(texts[i]), 0, UINT64_MAX, &value, NULL), ERR_INVALID);
    }
}

static void assert_keeps_bounds(reader read, const char *below, const char *least, const char *most,
                                const char *above, uint64_t min, uint64_t max) {
    uint64_t value = 42;
    struct err_detail detail = {0};
    assert_int_equal(read(bytes_of_string(below), min, max, &value, &detail), ERR_INVALID);
    assert_non_null(strstr(detail.text, "is not between"));
    assert_int_equal(read(bytes_of_string(above), min, max, &value, &detail), ERR_INVALID);
    assert_int_equal(value, 42);
    assert_int_equal(read(bytes_of_string(least), min, max, &value, &detail), ERR_OK);
    assert_int_equal(value, min);
    assert_int_equal(read(bytes_of_string(most), min, max, &value, &detail), ERR_OK);
    assert_int_equal(value, max);
}

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static void reads_whole_numbers(void **state) {
    (void)state;
    static const struct accepted rows[] = {
        {"0", 0}, {"8080", 8080}, {"007", 7}, {"18446744073709551615", UINT64_MAX}};
    static const char *const wrong[] = {
        "", "-1", "+1", "1.0", "1 ", "0x10", "1e3", "many", "18446744073709551616"};
    assert_reads(value_read_number, rows, COUNT_OF(rows));
    assert_refuses(value_read_number, wrong, COUNT_OF(wrong));
    assert_keeps_bounds(value_read_number, "9", "10", "20", "21", 10, 20);
}

static void reads_sizes(void **state) {
    (void)state;
    static const struct accepted rows[] = {
        {"0", 0},
        {"0 KB", 0},
        {"1 byte", 1},
        {"100 bytes", 100},
        {"100B", 100},
        {"64 KiB", 65536},
        {"64K", 65536},
        {"64 kb", 64000},
        {"1.5GB", 1500000000},
        {"1.5 GiB", 1610612736},
        {"0.5 K", 512},
        {"2 MB", 2000000},
        {"2 M", 2097152},
        {"2mib", 2097152},
        {"3 TB", 3000000000000},
        {"3 T", 3298534883328},
        {"1.000001 MB", 1000001},
        {"0.000001 MB", 1},
        {"0.999999 TiB", 1099510528264}, /* rounded down */
        {"1.9 bytes", 1},
        {"1\t KiB", 1024},
        {"18446744073709551615 bytes", UINT64_MAX},
        {"16777215.999999 TiB", 16777215 * (EXBI >> 20) + 1099510528264},
    };
    static const char *const wrong[] = {
        "",
        "5",
        "00",
        "0.0",
        "KB",
        ".5 KB",
        "5. KB",
        "1.2.3 KB",
        "1.0000001 KB",
        "-1 KB",
        "+1 KB",
        " 1 KB",
        "1 KB x",
        "1 K B",
        "1 PB",
        "1 s",
        "1,5 GB",
        "1 000 KB",
        "0x1 KB",
        "1 bytess",
        ".",
        "1 .5 KB",
        "1\xc2\xa0KB",
        "16777216 TiB",
        "18446744073709551616 bytes",
        "18446744073709551615.999999 KB",
        "16777215.999999999 TiB",
    };
    assert_reads(value_read_size, rows, COUNT_OF(rows));
    assert_refuses(value_read_size, wrong, COUNT_OF(wrong));
    assert_keeps_bounds(value_read_size, "1023 bytes", "1 KiB", "1 MiB", "1.000001 MiB", 1024, 1 << 20);
}

static void reads_durations(void **state) {
    (void)state;
    static const struct accepted rows[] = {
        {"0", 0},
        {"7 us", 7},
        {"250 ms", 250000},
        {"5 s", 5000000},
        {"5 sec", 5000000},
        {"2 min", 120000000},
        {"2m", 120000000},
        {"1.5 h", 5400000000},
        {"7 d", 604800000000},
        {"7 days", 604800000000},
        {"1 day", 86400000000},
        {"0.5 ms", 500},
        {"1.5 US", 1},
        {"213503982 d", UINT64_C(213503982) * 86400000000},
    };
    static const char *const wrong[] = {"",     "5",    "s",        "5 weeks",    "5 KB",
                                        "-5 s", "1:30", "5 s 3 ms", "213503983 d"};
    assert_reads(value_read_duration, rows, COUNT_OF(rows));
    assert_refuses(value_read_duration, wrong, COUNT_OF(wrong));
    assert_keeps_bounds(value_read_duration, "999 us", "1 ms", "1 h", "1.000001 h", 1000, 3600000000);
}

static void explains_what_would_have_been_right(void **state) {
    (void)state;
    static const struct {
        reader read;
        const char *text;
        const char *explanation;
    } rows[] = {
        {value_read_number, "x", "\"x\" is not a whole number"},
        {value_read_number, "5", "5 is not between 10 and 20"},
        {value_read_size, "5", "\"5\" is not a number with a unit (100 bytes, 64 KiB, 10 GB)"},
        {value_read_size, "5 bits", "\"bits\" is not a known unit (100 bytes, 64 KiB, 10 GB)"},
        {value_read_size, "5 x", "\"x\" is not a known unit (100 bytes, 64 KiB, 10 GB)"},
        {value_read_size, "5 B", "\"5 B\" is not between 10 and 20 bytes"},
        {value_read_duration, "x", "\"x\" is not a number with a unit (250 ms, 5 s, 2 min, 1 h, 7 d)"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        uint64_t value;
        struct err_detail detail;
        assert_int_equal(rows[i].read(bytes_of_string(rows[i].text), 10, 20, &value, &detail), ERR_INVALID);
        assert_string_equal(detail.text, rows[i].explanation);
    }
}

static void reads_switches_in_any_case(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool is_on;
    } rows[] = {{"yes", true}, {"YES", true}, {"true", true}, {"no", false}, {"No", false}, {"false", false}};
    struct err_detail detail;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bool is_on = !rows[i].is_on;
        assert_int_equal(value_read_switch(bytes_of_string(rows[i].text), &is_on, &detail), ERR_OK);
        assert_int_equal(is_on, rows[i].is_on);
    }
    static const char *const wrong[] = {"", "1", "0", "on", "y", "yess", "yes "};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        bool is_on = true;
        assert_int_equal(value_read_switch(bytes_of_string(wrong[i]), &is_on, &detail), ERR_INVALID);
        assert_true(is_on);
    }
    assert_string_equal(detail.text, "\"yes \" is neither yes nor no");
}

static void reads_one_of_the_choices_and_suggests_the_nearest(void **state) {
    (void)state;
    const char *const choices[] = {"memory", "disk", "network", NULL};
    uint32_t index = 42;
    struct err_detail detail;
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(value_read_choice(bytes_of_string(choices[i]), choices, &index, &detail), ERR_OK);
        assert_int_equal(index, i);
    }
    assert_int_equal(value_read_choice(BYTES("dsik"), choices, &index, &detail), ERR_INVALID);
    assert_int_equal(index, 2);
    assert_string_equal(detail.text, "\"dsik\" is none of memory, disk, network; did you mean disk?");
    assert_int_equal(value_read_choice(BYTES("tape"), choices, &index, &detail), ERR_INVALID);
    assert_string_equal(detail.text, "\"tape\" is none of memory, disk, network");
    assert_int_equal(value_read_choice(BYTES("disk\0"), choices, &index, NULL), ERR_INVALID);
    assert_int_equal(value_read_choice(bytes_of(NULL, 0), choices, &index, NULL), ERR_INVALID);
}

typedef void (*writer)(struct buf *buf, uint64_t value);

static void writes_for_people(void **state) {
    (void)state;
    static const struct {
        writer write;
        uint64_t value;
        const char *text;
    } rows[] = {
        {value_put_size, 0, "0 bytes"},
        {value_put_size, 640, "640 bytes"},
        {value_put_size, 999, "999 bytes"},
        {value_put_size, 1000, "1.0 KB"},
        {value_put_size, 99949, "99.9 KB"},
        {value_put_size, 100000, "100 KB"},
        {value_put_size, 999999, "999 KB"},
        {value_put_size, 1000000, "1.0 MB"},
        {value_put_size, 1500000000, "1.5 GB"},
        {value_put_size, 2000000000000, "2.0 TB"},
        {value_put_size, 2000000000000000, "2.0 PB"},
        {value_put_size, UINT64_MAX, "18.4 EB"},
        {value_put_duration, 0, "0 us"},
        {value_put_duration, 999, "999 us"},
        {value_put_duration, 250000, "250 ms"},
        {value_put_duration, 999999, "999 ms"},
        {value_put_duration, 1000000, "1.0 s"},
        {value_put_duration, 59999999, "59.9 s"},
        {value_put_duration, 60000000, "1:00"},
        {value_put_duration, UINT64_C(3599999999), "59:59"},
        {value_put_duration, UINT64_C(3600000000), "1:00:00"},
        {value_put_duration, UINT64_C(3723000000), "1:02:03"},
        {value_put_duration, UINT64_C(359999000000), "99:59:59"},
        {value_put_duration, UINT64_C(360000000000), "4 days"},
        {value_put_duration, UINT64_MAX, "213503982 days"},
        {value_put_count, 0, "0"},
        {value_put_count, 999, "999"},
        {value_put_count, 1000, "1,000"},
        {value_put_count, 1234567, "1,234,567"},
        {value_put_count, UINT64_MAX, "18,446,744,073,709,551,615"},
    };
    struct buf buf;
    buf_init(&buf, 64);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        buf_clear(&buf);
        rows[i].write(&buf, rows[i].value);
        assert_bytes_equal(buf_bytes(&buf), bytes_of_string(rows[i].text));
    }
    buf_done(&buf);
}

static void writes_sentences_with_values(void **state) {
    (void)state;
    struct buf buf;
    buf_init(&buf, 128);
    VALUE_PUT(&buf, "{count} file{s} of {size}, {count} link{s}; {time} left", 1234, 1500, 1, 250000);
    assert_bytes_equal(buf_bytes(&buf), BYTES("1,234 files of 1.5 KB, 1 link; 250 ms left"));
    buf_clear(&buf);
    VALUE_PUT(&buf, "{count}", 0);
    assert_bytes_equal(buf_bytes(&buf), BYTES("0"));
    buf_done(&buf);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_whole_numbers),
        cmocka_unit_test(reads_sizes),
        cmocka_unit_test(reads_durations),
        cmocka_unit_test(explains_what_would_have_been_right),
        cmocka_unit_test(reads_switches_in_any_case),
        cmocka_unit_test(reads_one_of_the_choices_and_suggests_the_nearest),
        cmocka_unit_test(writes_for_people),
        cmocka_unit_test(writes_sentences_with_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
