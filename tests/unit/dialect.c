/* dialect: the vectors of docs/protocol/versions.md, and which version two nodes speak. */
#include "protocol/ring/dialect.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/hex.h"
#include "unit.h"

enum { DOCUMENT_SIZE_MAX = 1 << 16 };

static const struct dialect documented = {.lowest = 1, .highest = 2, .features = 5, .program = "0.3.0"};

static struct bytes read_document(char *memory) {
    FILE *file = fopen(MNEMON_SOURCE_ROOT "/docs/protocol/versions.md", "rb");
    assert_non_null(file);
    size_t size = fread(memory, 1, DOCUMENT_SIZE_MAX, file);
    assert_true(size > 0 && size < DOCUMENT_SIZE_MAX);
    fclose(file);
    return bytes_of(memory, size);
}

static struct bytes parse_hex(struct bytes text, uint8_t out[DIALECT_HELLO_SIZE_MAX]) {
    size_t size = bytes_equal(text, BYTES("-")) ? 0 : text.size / 2;
    assert_true(size <= DIALECT_HELLO_SIZE_MAX && (size == 0 || hex_decode(text, out, size)));
    return bytes_of(out, size);
}

static void check_read(struct bytes encoding) {
    struct dialect dialect;
    bool wants_answer = false;
    assert_int_equal(dialect_read_hello(encoding, &dialect, &wants_answer, NULL), ERR_OK);
    assert_true(wants_answer);
    assert_int_equal(dialect.lowest, documented.lowest);
    assert_int_equal(dialect.highest, documented.highest);
    assert_int_equal(dialect.features, documented.features);
    assert_string_equal(dialect.program, documented.program);
}

static void check_hello(struct bytes encoding) {
    uint8_t memory[DIALECT_HELLO_SIZE_MAX];
    struct dialect dialect;
    bool wants_answer;
    struct bytes own = dialect_write_hello(&documented, true, memory);
    assert_true(bytes_equal(own, encoding));
    check_read(encoding);
    for (size_t size = 0; size < encoding.size; size++) {
        assert_int_equal(dialect_read_hello(bytes_slice(encoding, 0, size), &dialect, &wants_answer, NULL),
                         ERR_TRUNCATED);
    }
}

static void check_site(struct bytes encoding) {
    uint8_t memory[DIALECT_HELLO_SIZE_MAX];
    struct dialect dialect;
    bool wants_answer;
    check_read(encoding);
    assert_int_equal(dialect_read_hello(encoding, &dialect, &wants_answer, NULL), ERR_OK);
    assert_string_equal(dialect.site, "hall");
    assert_true(bytes_equal(dialect_write_hello(&dialect, true, memory), encoding));
}

static void check_two(struct bytes encoding) {
    uint8_t memory[DIALECT_HELLO_SIZE_MAX];
    struct dialect dialect;
    bool wants_answer;
    struct address main = address_ipv4(192, 0, 2, 1, 7070);
    struct address second = {.ip = {0x20, 0x01, 0x0d, 0xb8, [15] = 1}, .port = 7070};
    check_read(encoding);
    assert_int_equal(dialect_read_hello(encoding, &dialect, &wants_answer, NULL), ERR_OK);
    assert_true(dialect.has_two && address_equal(&dialect.main, &main));
    assert_true(address_equal(&dialect.second, &second));
    assert_true(bytes_equal(dialect_write_hello(&dialect, true, memory), encoding));
}

static void check_rejected(struct bytes line) {
    uint8_t memory[DIALECT_HELLO_SIZE_MAX];
    struct dialect dialect;
    bool wants_answer;
    size_t colon = bytes_find(line, BYTES(" : "));
    assert_true(colon < line.size);
    struct bytes input = parse_hex(bytes_slice(line, 0, colon), memory);
    const char *found = err_name(dialect_read_hello(input, &dialect, &wants_answer, NULL));
    if (!bytes_equal(bytes_of_string(found), bytes_skip(line, colon + 3))) {
        fail_msg("%.*s: %s", BYTES_ARG(line), found);
    }
}

static void is_as_documented(void **state) {
    (void)state;
    uint8_t memory[DIALECT_HELLO_SIZE_MAX];
    char *document = malloc(DOCUMENT_SIZE_MAX);
    assert_non_null(document);
    struct bytes rest = read_document(document);
    struct bytes line;
    unsigned read = 0;
    unsigned rejected = 0;
    while (bytes_split(&rest, '\n', &line)) {
        if (bytes_starts_with(line, BYTES("hello = "))) {
            check_hello(parse_hex(bytes_skip(line, 8), memory));
            read++;
        } else if (bytes_starts_with(line, BYTES("longer = "))) {
            check_read(parse_hex(bytes_skip(line, 9), memory));
            read++;
        } else if (bytes_starts_with(line, BYTES("site = "))) {
            check_site(parse_hex(bytes_skip(line, 7), memory));
            read++;
        } else if (bytes_starts_with(line, BYTES("two = "))) {
            check_two(parse_hex(bytes_skip(line, 6), memory));
            read++;
        } else if (bytes_starts_with(line, BYTES("reject "))) {
            check_rejected(bytes_skip(line, 7));
            rejected++;
        }
    }
    assert_int_equal(read, 4);
    assert_int_equal(rejected, 15);
    free(document);
}

static void the_features_are_those_of_the_document(void **state) {
    (void)state;
    char *document = malloc(DOCUMENT_SIZE_MAX);
    assert_non_null(document);
    struct bytes text = read_document(document);
    char row[64];
    for (unsigned i = 0; i < DIALECT_FEATURES_COUNT; i++) {
        const char *name = dialect_feature_name(i); /* NULL: the bit is another program's */
        snprintf(row, sizeof row, "| %u | `%s` |", i, name);
        assert_true(name == NULL || bytes_find(text, bytes_of_string(row)) < text.size);
    }
    assert_null(dialect_feature_name(DIALECT_FEATURES_COUNT));
    free(document);
}

static void a_hello_beyond_its_bound_is_refused(void **state) {
    (void)state;
    uint8_t memory[DIALECT_HELLO_SIZE_MAX + 1] = {0};
    struct dialect dialect;
    bool wants_answer;
    dialect_write_hello(&documented, false, memory);
    assert_int_equal(dialect_read_hello(bytes_of(memory, sizeof memory), &dialect, &wants_answer, NULL),
                     ERR_LIMIT);
}

static void the_highest_common_version_is_spoken(void **state) {
    (void)state;
    static const struct {
        uint16_t a[2];
        uint16_t b[2];
        uint16_t common;
    } rows[] = {
        {{1, 1}, {1, 1}, 1}, {{1, 2}, {1, 1}, 1}, {{1, 2}, {1, 2}, 2}, {{1, 2}, {2, 5}, 2},
        {{1, 9}, {3, 4}, 4}, {{2, 2}, {1, 1}, 0}, {{1, 2}, {3, 4}, 0}, {{65535, 65535}, {1, 65535}, 65535},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dialect a = {.lowest = rows[i].a[0], .highest = rows[i].a[1]};
        struct dialect b = {.lowest = rows[i].b[0], .highest = rows[i].b[1]};
        assert_int_equal(dialect_common(&a, &b), rows[i].common);
        assert_int_equal(dialect_common(&b, &a), rows[i].common);
    }
}

static void whoever_says_nothing_speaks_version_1_and_has_no_features(void **state) {
    (void)state;
    assert_int_equal(dialect_common(&dialect_of_program, &dialect_of_silence), 1);
    assert_int_equal(dialect_of_silence.features, 0);
    for (unsigned i = 0; i < DIALECT_FEATURES_COUNT; i++) {
        bool is_known = dialect_feature_name(i) != NULL;
        assert_int_equal(dialect_has(&dialect_of_program, (enum dialect_feature)i), is_known);
        assert_false(dialect_has(&dialect_of_silence, (enum dialect_feature)i));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_as_documented),
        cmocka_unit_test(the_features_are_those_of_the_document),
        cmocka_unit_test(a_hello_beyond_its_bound_is_refused),
        cmocka_unit_test(the_highest_common_version_is_spoken),
        cmocka_unit_test(whoever_says_nothing_speaks_version_1_and_has_no_features),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
