#include "store/document/key.h"

#include <stdio.h>

#include "unit.h"

static const char digest_text[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

static struct key example(uint16_t volume, uint16_t number) {
    struct key key = {.volume = volume, .number = number};
    static const uint8_t digest[KEY_DIGEST_SIZE] = {
        0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
        0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad,
    };
    memcpy(key.digest, digest, sizeof digest);
    return key;
}

static void is_written_with_volume_and_digest(void **state) {
    (void)state;
    char text[KEY_TEXT_SIZE_MAX];
    char expected[KEY_TEXT_SIZE_MAX];
    struct key key = example(7, 0);
    snprintf(expected, sizeof expected, "7:%s", digest_text);
    assert_string_equal(key_format(&key, text), expected);
}

static void is_written_with_its_number_after_a_collision(void **state) {
    (void)state;
    char text[KEY_TEXT_SIZE_MAX];
    char expected[KEY_TEXT_SIZE_MAX];
    struct key key = example(0, 2);
    snprintf(expected, sizeof expected, "0:%s.2", digest_text);
    assert_string_equal(key_format(&key, text), expected);
}

static void longest_key_fits_its_text(void **state) {
    (void)state;
    char text[KEY_TEXT_SIZE_MAX];
    struct key key = example(UINT16_MAX, UINT16_MAX);
    assert_true(strlen(key_format(&key, text)) + 1 <= KEY_TEXT_SIZE_MAX);
    assert_true(bytes_ends_with(bytes_of_string(text), BYTES(".65535")));
}

static void what_is_written_is_read(void **state) {
    (void)state;
    static const uint16_t volumes[] = {0, 1, KEY_VOLUMES_MAX - 1};
    static const uint16_t numbers[] = {0, 1, 65535};
    for (size_t i = 0; i < 9; i++) {
        char text[KEY_TEXT_SIZE_MAX];
        struct key key = example(volumes[i / 3], numbers[i % 3]);
        struct key again;
        assert_true(key_parse(bytes_of_string(key_format(&key, text)), &again));
        assert_int_equal(again.volume, key.volume);
        assert_int_equal(again.number, key.number);
        assert_memory_equal(again.digest, key.digest, KEY_DIGEST_SIZE);
    }
}

static void capitals_are_read_too(void **state) {
    (void)state;
    struct key key;
    struct key expected = example(0, 0);
    assert_true(key_parse(BYTES("0:BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"), &key));
    assert_memory_equal(key.digest, expected.digest, KEY_DIGEST_SIZE);
}

static void other_texts_are_refused_and_nothing_is_written(void **state) {
    (void)state;
#define DIGEST "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    static const char *const texts[] = {
        "",
        ":",
        "0:",
        DIGEST,
        ":" DIGEST,
        "1024:" DIGEST, /* KEY_VOLUMES_MAX */
        "-1:" DIGEST,
        " 0:" DIGEST,
        "0x0:" DIGEST,
        "0::" DIGEST,
        "0:" DIGEST "0",
        "0:" DIGEST " ",
        "0:" DIGEST ".",
        "0:" DIGEST ".0", /* has a shorter name */
        "0:" DIGEST ".65536",
        "0:" DIGEST ".1.1",
        "0:" DIGEST ".-1",
        "0:g" DIGEST,
        "0:ba7816bf",
        "0:.1",
        "0:zz7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    };
#undef DIGEST
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct key key;
        struct key before;
        memset(&key, 0x5a, sizeof key);
        memset(&before, 0x5a, sizeof before);
        if (key_parse(bytes_of_string(texts[i]), &key)) {
            fail_msg("\"%s\" was read as a key", texts[i]);
        }
        assert_memory_equal(&key, &before, sizeof key);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_written_with_volume_and_digest),
        cmocka_unit_test(is_written_with_its_number_after_a_collision),
        cmocka_unit_test(longest_key_fits_its_text),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(capitals_are_read_too),
        cmocka_unit_test(other_texts_are_refused_and_nothing_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
