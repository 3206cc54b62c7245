#include "base/base32.h"

#include "base/prng.h"
#include "unit.h"

/* RFC 4648, section 10. */
static const char *const vectors[][2] = {{"", ""},
                                         {"f", "MY======"},
                                         {"fo", "MZXQ===="},
                                         {"foo", "MZXW6==="},
                                         {"foob", "MZXW6YQ="},
                                         {"fooba", "MZXW6YTB"},
                                         {"foobar", "MZXW6YTBOI======"}};
enum { VECTORS_COUNT = sizeof vectors / sizeof vectors[0] };

static struct bytes without_padding(const char *text) {
    return bytes_of(text, strcspn(text, "="));
}

static void encodes_the_vectors_of_rfc_4648_without_padding(void **state) {
    (void)state;
    for (size_t i = 0; i < VECTORS_COUNT; i++) {
        struct bytes plain = bytes_of_string(vectors[i][0]);
        char encoded[18];
        memset(encoded, 'x', sizeof encoded);
        assert_ptr_equal(base32_encode(plain, encoded), encoded);
        assert_int_equal(encoded[base32_length(plain.size) + 1], 'x');
        assert_bytes_equal(bytes_of_string(encoded), without_padding(vectors[i][1]));
        assert_int_equal(strlen(encoded), base32_length(plain.size));
    }
}

static void decodes_with_or_without_padding_in_either_case(void **state) {
    (void)state;
    for (size_t i = 0; i < VECTORS_COUNT; i++) {
        struct bytes plain = bytes_of_string(vectors[i][0]);
        char lower[17] = "";
        for (size_t j = 0; vectors[i][1][j] != '\0'; j++) {
            lower[j] = (char)byte_lower((uint8_t)vectors[i][1][j]);
        }
        const struct bytes spellings[] = {bytes_of_string(vectors[i][1]), without_padding(vectors[i][1]),
                                          bytes_of_string(lower), without_padding(lower)};
        for (size_t j = 0; j < 4; j++) {
            uint8_t decoded[8];
            assert_true(base32_decode(spellings[j], decoded, plain.size));
            assert_bytes_equal(bytes_of(decoded, plain.size), plain);
        }
    }
}

static void refuses_every_other_spelling(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t size;
    } rows[] = {
        {"MZ", 1},        {"M7", 1}, /* unused bits set */
        {"MZXR", 2},      {"MZXW7", 3},    {"MZXW6YR", 4},   {"MY=====", 1},
        {"MY=======", 1}, {"MY=", 1},      {"MZXW6YTB=", 5}, {"MZXW6YTB========", 5},
        {"========", 0},  {"=", 0},        {"M", 0},         {"M", 1},
        {"MYA", 1},       {"M=Y=====", 1}, {"M0", 1},        {"M1", 1},
        {"M8", 1},        {"M9", 1},       {"M ", 1},        {"MY ", 1},
        {"M\xc1", 1},     {"M@", 1},       {"M[", 1},        {"MZXW6YTB", 4},
        {"MZXW6YTB", 6},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t decoded[8];
        if (base32_decode(bytes_of_string(rows[i].text), decoded, rows[i].size)) {
            fail_msg("\"%s\" was read as %zu bytes", rows[i].text, rows[i].size);
        }
    }
}

static void random_bytes_survive_and_each_has_one_spelling(void **state) {
    (void)state;
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    struct prng prng;
    prng_init(&prng, 1);
    for (size_t size = 1; size <= 40; size++) {
        uint8_t plain[40];
        uint8_t decoded[40];
        char encoded[65];
        prng_fill(&prng, plain, size);
        struct bytes text = bytes_of_string(base32_encode(bytes_of(plain, size), encoded));
        assert_true(base32_decode(text, decoded, size));
        assert_memory_equal(decoded, plain, size);
        for (size_t i = 0; i < 32; i++) { /* any other last digit is another value or none */
            char changed = digits[i] == encoded[text.size - 1] ? 'a' : digits[i];
            encoded[text.size - 1] = changed;
            bool is_same = base32_decode(text, decoded, size) && memcmp(decoded, plain, size) == 0;
            base32_encode(bytes_of(plain, size), encoded);
            assert_int_equal(is_same,
                             byte_lower((uint8_t)encoded[text.size - 1]) == byte_lower((uint8_t)changed));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encodes_the_vectors_of_rfc_4648_without_padding),
        cmocka_unit_test(decodes_with_or_without_padding_in_either_case),
        cmocka_unit_test(refuses_every_other_spelling),
        cmocka_unit_test(random_bytes_survive_and_each_has_one_spelling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
