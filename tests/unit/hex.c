#include "base/hex.h"

#include <stdio.h>

#include "unit.h"

static void encodes_the_vectors_of_rfc_4648_in_lower_case(void **state) {
    (void)state;
    static const char *const rows[][2] = {{"", ""},
                                          {"f", "66"},
                                          {"fo", "666f"},
                                          {"foo", "666f6f"},
                                          {"foob", "666f6f62"},
                                          {"fooba", "666f6f6261"},
                                          {"foobar", "666f6f626172"},
                                          {"\xff\x0a", "ff0a"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char encoded[16];
        uint8_t decoded[8];
        memset(encoded, 'x', sizeof encoded);
        memset(decoded, 'x', sizeof decoded);
        struct bytes plain = bytes_of_string(rows[i][0]);
        assert_ptr_equal(hex_encode(plain, encoded), encoded);
        assert_string_equal(encoded, rows[i][1]);
        assert_int_equal(encoded[2 * plain.size + 1], 'x');
        assert_true(hex_decode(bytes_of_string(encoded), decoded, plain.size));
        assert_bytes_equal(bytes_of(decoded, plain.size), plain);
        assert_int_equal(decoded[plain.size], 'x');
    }
}

static void every_byte_is_read_in_either_case(void **state) {
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        char lower[3];
        char upper[3];
        snprintf(lower, sizeof lower, "%02x", byte);
        snprintf(upper, sizeof upper, "%02X", byte);
        uint8_t decoded = (uint8_t)~byte;
        assert_true(hex_decode(bytes_of(lower, 2), &decoded, 1));
        assert_int_equal(decoded, byte);
        decoded = (uint8_t)~byte;
        assert_true(hex_decode(bytes_of(upper, 2), &decoded, 1));
        assert_int_equal(decoded, byte);
    }
}

static void refuses_other_lengths_and_other_digits(void **state) {
    (void)state;
    static const char *const wrong[] = {"", "0", "000", "0000", "0g", "g0", " 0", "0x", "-1", "0\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        uint8_t decoded;
        assert_false(hex_decode(bytes_of_string(wrong[i]), &decoded, 1));
    }
    assert_false(hex_decode(BYTES("00"), NULL, 0));
    assert_true(hex_decode(bytes_of(NULL, 0), NULL, 0));
}

static void knows_the_value_of_each_digit_and_of_nothing_else(void **state) {
    (void)state;
    static const char digits[] = "0123456789abcdef";
    for (unsigned byte = 0; byte < 256; byte++) {
        const char *found = byte == 0 ? NULL : strchr(digits, byte_lower((uint8_t)byte));
        assert_int_equal(hex_digit((uint8_t)byte), found == NULL ? -1 : found - digits);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encodes_the_vectors_of_rfc_4648_in_lower_case),
        cmocka_unit_test(every_byte_is_read_in_either_case),
        cmocka_unit_test(refuses_other_lengths_and_other_digits),
        cmocka_unit_test(knows_the_value_of_each_digit_and_of_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
