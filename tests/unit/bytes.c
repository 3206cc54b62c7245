#include "base/bytes.h"

#include "aborts.h"
#include "base/prng.h"
#include "unit.h"

static const struct bytes nothing = {NULL, 0};

static int sign(int number) {
    return (number > 0) - (number < 0);
}

static void takes_an_empty_slice_with_null_start_everywhere(void **state) {
    (void)state;
    assert_true(bytes_equal(nothing, BYTES("")));
    assert_true(bytes_equal_ignore_case(nothing, BYTES("")));
    assert_int_equal(bytes_compare(nothing, nothing), 0);
    assert_true(bytes_compare(nothing, BYTES("a")) < 0);
    assert_true(bytes_starts_with(nothing, nothing));
    assert_true(bytes_starts_with(BYTES("a"), nothing));
    assert_false(bytes_starts_with(nothing, BYTES("a")));
    assert_true(bytes_ends_with(nothing, nothing));
    assert_int_equal(bytes_find_byte(nothing, 'a'), 0);
    assert_int_equal(bytes_find(nothing, BYTES("a")), 0);
    assert_int_equal(bytes_trim(nothing).size, 0);
    assert_int_equal(bytes_skip(nothing, 0).size, 0);
    uint64_t value = 7;
    assert_false(bytes_to_u64(nothing, UINT64_MAX, &value));
    assert_int_equal(value, 7);
}

static void orders_by_unsigned_bytes_and_prefixes_first(void **state) {
    (void)state;
    const struct bytes ascending[] = {BYTES(""),   BYTES("\0"), BYTES("a"),    BYTES("a\0"),
                                      BYTES("ab"), BYTES("b"),  BYTES("\x80"), BYTES("\xff")};
    const size_t count = sizeof ascending / sizeof ascending[0];
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            assert_int_equal(sign(bytes_compare(ascending[i], ascending[j])), (i > j) - (i < j));
            assert_int_equal(bytes_equal(ascending[i], ascending[j]), i == j);
        }
    }
}

static void ignores_the_case_of_ascii_letters_only(void **state) {
    (void)state;
    for (unsigned a = 0; a < 256; a++) {
        for (unsigned b = 0; b < 256; b++) {
            bool is_letter = (a >= 'a' && a <= 'z') || (a >= 'A' && a <= 'Z');
            bool is_same = a == b || (is_letter && (a ^ b) == 0x20);
            const uint8_t left[] = {'x', (uint8_t)a};
            const uint8_t right[] = {'X', (uint8_t)b};
            assert_int_equal(bytes_equal_ignore_case(bytes_of(left, 2), bytes_of(right, 2)), is_same);
        }
    }
    assert_false(bytes_equal_ignore_case(BYTES("ab"), BYTES("abc")));
}

static void classifies_each_byte_as_ascii_does(void **state) {
    (void)state;
    for (unsigned i = 0; i < 256; i++) {
        bool is_upper = i >= 'A' && i <= 'Z';
        assert_int_equal(byte_lower((uint8_t)i), is_upper ? i + 32 : i);
        assert_int_equal(byte_is_digit((uint8_t)i), i >= '0' && i <= '9');
        assert_int_equal(byte_is_alpha((uint8_t)i), is_upper || (i >= 'a' && i <= 'z'));
    }
}

static void slices_share_the_memory(void **state) {
    (void)state;
    struct bytes text = BYTES("abcdef");
    struct bytes middle = bytes_slice(text, 2, 4);
    assert_bytes_equal(middle, BYTES("cd"));
    assert_ptr_equal(middle.data, text.data + 2);
    assert_bytes_equal(bytes_skip(text, 6), BYTES(""));
    assert_bytes_equal(bytes_slice(text, 3, 3), BYTES(""));
}

static void slice_past_the_end(void *argument) {
    (void)argument;
    (void)bytes_slice(BYTES("abc"), 0, 4);
}

static void slice_backwards(void *argument) {
    (void)argument;
    (void)bytes_slice(BYTES("abc"), 2, 1);
}

static void aborts_on_a_slice_outside_its_slice(void **state) {
    (void)state;
    assert_true(aborts(slice_past_the_end, NULL, "to <= slice.size"));
    assert_true(aborts(slice_backwards, NULL, "from <= to"));
}

static void knows_prefixes_and_suffixes(void **state) {
    (void)state;
    assert_true(bytes_starts_with(BYTES("http://a"), BYTES("http://")));
    assert_true(bytes_starts_with(BYTES("http://"), BYTES("http://")));
    assert_false(bytes_starts_with(BYTES("http:/"), BYTES("http://")));
    assert_false(bytes_starts_with(BYTES("Http://"), BYTES("http://")));
    assert_true(bytes_ends_with(BYTES("a.warc"), BYTES(".warc")));
    assert_true(bytes_ends_with(BYTES(".warc"), BYTES(".warc")));
    assert_false(bytes_ends_with(BYTES("warc"), BYTES(".warc")));
    assert_false(bytes_ends_with(BYTES("a.warc.gz"), BYTES(".warc")));
}

/* Few letters, so that partial matches are frequent. */
static struct bytes random_text(struct prng *prng, uint8_t *memory, size_t size_max) {
    size_t size = prng_below(prng, size_max + 1);
    for (size_t i = 0; i < size; i++) {
        memory[i] = (uint8_t)('a' + prng_below(prng, 2));
    }
    return bytes_of(memory, size);
}

static size_t find_slowly(struct bytes slice, struct bytes needle) {
    for (size_t i = 0; i + needle.size <= slice.size; i++) {
        if (bytes_equal(bytes_slice(slice, i, i + needle.size), needle)) {
            return i;
        }
    }
    return slice.size;
}

static void finds_the_first_occurrence_like_a_naive_search(void **state) {
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    for (unsigned round = 0; round < 20000; round++) {
        uint8_t text_memory[24];
        uint8_t needle_memory[6];
        struct bytes text = random_text(&prng, text_memory, sizeof text_memory);
        struct bytes needle = random_text(&prng, needle_memory, sizeof needle_memory);
        assert_int_equal(bytes_find(text, needle), find_slowly(text, needle));
        assert_int_equal(bytes_find_byte(text, 'b'), find_slowly(text, BYTES("b")));
    }
}

static void trims_blanks_and_line_ends_but_nothing_inside(void **state) {
    (void)state;
    assert_bytes_equal(bytes_trim(BYTES(" \t\r\na b\t \r\n")), BYTES("a b"));
    assert_bytes_equal(bytes_trim(BYTES("ab")), BYTES("ab"));
    assert_bytes_equal(bytes_trim(BYTES(" \t\r\n")), BYTES(""));
    assert_bytes_equal(bytes_trim(BYTES("\fa\0")), BYTES("\fa\0"));
}

static void splits_into_every_part_also_empty_ones(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *parts; /* joined by '|' */
    } rows[] = {{"", ""},   {"a", "a"},   {"a,b", "a|b"}, {"a,,b", "a||b"},
                {",", "|"}, {"a,", "a|"}, {",a", "|a"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char joined[16] = "";
        size_t size = 0;
        struct bytes rest = bytes_of_string(rows[i].text);
        struct bytes part;
        for (bool first = true; bytes_split(&rest, ',', &part); first = false) {
            size += (size_t)snprintf(joined + size, sizeof joined - size, "%s%.*s", first ? "" : "|",
                                     BYTES_ARG(part));
        }
        assert_string_equal(joined, rows[i].parts);
        assert_null(rest.data);
        assert_int_equal(rest.size, 0);
    }
}

static void splits_nothing_into_no_part(void **state) {
    (void)state;
    struct bytes rest = nothing;
    struct bytes part = BYTES("kept");
    assert_false(bytes_split(&rest, ',', &part));
    assert_bytes_equal(part, BYTES("kept"));
}

static void reads_numbers_up_to_the_largest(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t value;
    } rows[] = {{"0", 0},
                {"007", 7},
                {"1234567890", 1234567890},
                {"18446744073709551615", UINT64_MAX},
                {"0000000000000000000000018446744073709551615", UINT64_MAX}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t value = 1;
        assert_true(bytes_to_u64(bytes_of_string(rows[i].text), UINT64_MAX, &value));
        assert_int_equal(value, rows[i].value);
    }
}

static void refuses_what_is_no_number_and_leaves_the_value(void **state) {
    (void)state;
    static const char *const texts[] = {"",
                                        "+1",
                                        "-1",
                                        " 1",
                                        "1 ",
                                        "1a",
                                        "0x1",
                                        "1.",
                                        "/",
                                        ":",
                                        "1_0",
                                        "\xd9\xa1" /* an Arabic digit */,
                                        "18446744073709551616", /* 2^64 */
                                        "18446744073709551625",
                                        "28446744073709551615",
                                        "99999999999999999999",
                                        "184467440737095516150"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        uint64_t value = 42;
        assert_false(bytes_to_u64(bytes_of_string(texts[i]), UINT64_MAX, &value));
        assert_int_equal(value, 42);
    }
    uint64_t value = 42;
    assert_false(bytes_to_u64(BYTES("1\0"), UINT64_MAX, &value));
}

static void reads_numbers_exactly_up_to_the_maximum(void **state) {
    (void)state;
    for (uint64_t max = 0; max < 130; max++) {
        for (uint64_t number = 0; number < 150; number++) {
            char text[8];
            snprintf(text, sizeof text, "%ju", (uintmax_t)number);
            uint64_t value = UINT64_MAX;
            assert_int_equal(bytes_to_u64(bytes_of_string(text), max, &value), number <= max);
            assert_int_equal(value, number <= max ? number : UINT64_MAX);
        }
    }
}

static void finds_words_without_regard_to_case(void **state) {
    (void)state;
    static const char *const words[] = {"Host", "TE", NULL};
    assert_true(bytes_starts_with_ignore_case(BYTES("HTTP://a"), BYTES("http:")));
    assert_false(bytes_starts_with_ignore_case(BYTES("htt"), BYTES("http")));
    assert_true(bytes_ends_with_ignore_case(BYTES("gzip, Chunked"), BYTES("chunked")));
    assert_false(bytes_ends_with_ignore_case(BYTES("unked"), BYTES("chunked")));
    assert_true(bytes_contain_ignore_case(BYTES("a/KALENDer"), BYTES("kalend")));
    assert_false(bytes_contain_ignore_case(BYTES("kalen"), BYTES("kalend")));
    assert_true(bytes_is_one_of(BYTES("te"), words) && bytes_is_one_of(BYTES("HOST"), words));
    assert_false(bytes_is_one_of(BYTES("hos"), words) || bytes_is_one_of(nothing, words));
    assert_true(bytes_starts_with_ignore_case(nothing, nothing) &&
                bytes_contain_ignore_case(nothing, nothing));
}

static void compares_fronts_and_skips_spaces(void **state) {
    (void)state;
    struct bytes text = BYTES(" \t\n\f\ra b");
    bytes_skip_spaces(&text);
    assert_bytes_equal(text, BYTES("a b"));
    text = BYTES("\va");
    bytes_skip_spaces(&text);
    assert_bytes_equal(text, BYTES("\va"));
    assert_int_equal(bytes_common_size(BYTES("abc"), BYTES("abd")), 2);
    assert_int_equal(bytes_common_size(BYTES("ab"), BYTES("abd")), 2);
    assert_int_equal(bytes_common_size(BYTES("ab"), bytes_of(NULL, 0)), 0);
    assert_true(bytes_are_ascii(BYTES("a\x7f")));
    assert_false(bytes_are_ascii(BYTES("a\x80")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_an_empty_slice_with_null_start_everywhere),
        cmocka_unit_test(orders_by_unsigned_bytes_and_prefixes_first),
        cmocka_unit_test(ignores_the_case_of_ascii_letters_only),
        cmocka_unit_test(classifies_each_byte_as_ascii_does),
        cmocka_unit_test(slices_share_the_memory),
        cmocka_unit_test(aborts_on_a_slice_outside_its_slice),
        cmocka_unit_test(knows_prefixes_and_suffixes),
        cmocka_unit_test(finds_the_first_occurrence_like_a_naive_search),
        cmocka_unit_test(trims_blanks_and_line_ends_but_nothing_inside),
        cmocka_unit_test(splits_into_every_part_also_empty_ones),
        cmocka_unit_test(splits_nothing_into_no_part),
        cmocka_unit_test(reads_numbers_up_to_the_largest),
        cmocka_unit_test(refuses_what_is_no_number_and_leaves_the_value),
        cmocka_unit_test(reads_numbers_exactly_up_to_the_maximum),
        cmocka_unit_test(finds_words_without_regard_to_case),
        cmocka_unit_test(compares_fronts_and_skips_spaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
