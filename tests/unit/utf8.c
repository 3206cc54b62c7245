#include "base/utf8.h"

#include "aborts.h"
#include "unit.h"

enum { CODE_POINT_MAX = 0x10ffff };

static bool is_surrogate(uint32_t code_point) {
    return code_point >= 0xd800 && code_point <= 0xdfff;
}

static size_t expected_length(uint32_t code_point) {
    return 1 + (size_t)(code_point >= 0x80) + (size_t)(code_point >= 0x800) + (size_t)(code_point >= 0x10000);
}

static void every_code_point_survives_encoding_and_decoding(void **state) {
    (void)state;
    for (uint32_t code_point = 0; code_point <= CODE_POINT_MAX; code_point++) {
        if (is_surrogate(code_point)) {
            continue;
        }
        uint8_t encoded[UTF8_LENGTH_MAX];
        size_t length = utf8_encode(code_point, encoded);
        assert_int_equal(length, expected_length(code_point));
        size_t decoded_length;
        assert_int_equal(utf8_decode(bytes_of(encoded, length), &decoded_length), code_point);
        assert_int_equal(decoded_length, length);
        assert_int_equal(utf8_length(bytes_of(encoded, length)), length);
        assert_int_equal(utf8_length(bytes_of(encoded, length - 1)), 0);
    }
}

/* Table 3-7 of the Unicode standard, as it is printed there. */
static const struct {
    uint8_t length;
    uint8_t first[2];
    uint8_t second[2];
} well_formed[] = {
    {1, {0x00, 0x7f}, {0, 0}},       {2, {0xc2, 0xdf}, {0x80, 0xbf}}, {3, {0xe0, 0xe0}, {0xa0, 0xbf}},
    {3, {0xe1, 0xec}, {0x80, 0xbf}}, {3, {0xed, 0xed}, {0x80, 0x9f}}, {3, {0xee, 0xef}, {0x80, 0xbf}},
    {4, {0xf0, 0xf0}, {0x90, 0xbf}}, {4, {0xf1, 0xf3}, {0x80, 0xbf}}, {4, {0xf4, 0xf4}, {0x80, 0x8f}},
};

static bool is_in(uint8_t byte, const uint8_t range[2]) {
    return byte >= range[0] && byte <= range[1];
}

static size_t length_by_table(uint8_t first, uint8_t second) {
    for (size_t i = 0; i < sizeof well_formed / sizeof well_formed[0]; i++) {
        if (is_in(first, well_formed[i].first)) {
            bool fits = well_formed[i].length == 1 || is_in(second, well_formed[i].second);
            return fits ? well_formed[i].length : 0;
        }
    }
    return 0;
}

static void every_pair_of_first_bytes_is_judged_by_table_3_7(void **state) {
    (void)state;
    for (unsigned first = 0; first < 256; first++) {
        for (unsigned second = 0; second < 256; second++) {
            const uint8_t text[] = {(uint8_t)first, (uint8_t)second, 0x80, 0xbf};
            assert_int_equal(utf8_length(bytes_of(text, sizeof text)),
                             length_by_table((uint8_t)first, (uint8_t)second));
        }
    }
}

static void third_and_fourth_bytes_must_continue(void **state) {
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        bool continues = byte >= 0x80 && byte <= 0xbf;
        const uint8_t three[] = {0xe2, 0x82, (uint8_t)byte};
        const uint8_t four_third[] = {0xf0, 0x9f, (uint8_t)byte, 0x80};
        const uint8_t four_fourth[] = {0xf0, 0x9f, 0x98, (uint8_t)byte};
        assert_int_equal(utf8_length(bytes_of(three, 3)), continues ? 3 : 0);
        assert_int_equal(utf8_length(bytes_of(four_third, 4)), continues ? 4 : 0);
        assert_int_equal(utf8_length(bytes_of(four_fourth, 4)), continues ? 4 : 0);
    }
}

/* Lengths of the successive pieces that the WHATWG decoder replaces or reads, as digits. */
static void ill_formed_starts_are_taken_as_the_whatwg_decoder_takes_them(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *lengths;
    } rows[] = {
        {"\x80", "1"},
        {"\xc0\xaf", "11"},                                /* overlong */
        {"\xe0\x80\xaf", "111"},                           /* overlong */
        {"\xf0\x80\x80\xaf", "1111"},                      /* overlong */
        {"\xed\xa0\x80", "111"},                           /* a surrogate */
        {"\xf4\x90\x80\x80", "1111"},                      /* above U+10FFFF */
        {"\xf5\x80\x80\x80", "1111"},                      /* no such lead */
        {"\xff", "1"},                                     /* no such lead */
        {"\xe1\x80", "2"},                                 /* cut off */
        {"\xf1\x80\x80", "3"},                             /* cut off */
        {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", "21321"}, /* table 3-11 */
        {"\xe1\xa0\x41", "21"},
        {"\xc2\x41", "11"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bytes rest = bytes_of_string(rows[i].text);
        assert_false(utf8_is_valid(rest));
        char lengths[16] = "";
        for (size_t count = 0; rest.size > 0; count++) {
            size_t length = 0;
            uint32_t code_point = utf8_decode(rest, &length);
            assert_int_equal(code_point, rest.data[0] == 'A' ? 'A' : UTF8_REPLACEMENT);
            lengths[count] = (char)('0' + length);
            rest = bytes_skip(rest, length);
        }
        assert_string_equal(lengths, rows[i].lengths);
    }
}

static void text_is_valid_only_as_a_whole(void **state) {
    (void)state;
    assert_true(utf8_is_valid(bytes_of(NULL, 0)));
    assert_true(utf8_is_valid(BYTES("a\0\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80")));
    assert_false(utf8_is_valid(BYTES("valid until here \xc3")));
    assert_false(utf8_is_valid(BYTES("\xffrest is valid")));
    assert_int_equal(utf8_length(bytes_of(NULL, 0)), 0);
}

static void encode(void *code_point) {
    uint8_t out[UTF8_LENGTH_MAX];
    utf8_encode(*(const uint32_t *)code_point, out);
}

static void decode_nothing(void *argument) {
    (void)argument;
    size_t length;
    utf8_decode(bytes_of(NULL, 0), &length);
}

static void aborts_on_what_is_no_code_point(void **state) {
    (void)state;
    uint32_t wrong[] = {0xd800, 0xdfff, 0x110000, UINT32_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_true(aborts(encode, &wrong[i], "code_point <= 0x10ffff"));
    }
    assert_true(aborts(decode_nothing, NULL, "text.size > 0"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point_survives_encoding_and_decoding),
        cmocka_unit_test(every_pair_of_first_bytes_is_judged_by_table_3_7),
        cmocka_unit_test(third_and_fourth_bytes_must_continue),
        cmocka_unit_test(ill_formed_starts_are_taken_as_the_whatwg_decoder_takes_them),
        cmocka_unit_test(text_is_valid_only_as_a_whole),
        cmocka_unit_test(aborts_on_what_is_no_code_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
