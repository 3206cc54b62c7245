/*
 * net-vectors - the golden vectors of docs/protocol/transport.md: lines "word name value name value … = hex".
 */
#ifndef MNEMON_TESTS_NET_VECTORS_H
#define MNEMON_TESTS_NET_VECTORS_H

#include <stdio.h>
#include <stdlib.h>

#include "base/hex.h"
#include "unit.h"

enum { VECTOR_SIZE_MAX = 1024, VECTORS_DOCUMENT_SIZE_MAX = 1 << 17 };

struct vector {
    struct bytes word;
    struct bytes fields; /* "name value name value" */
    uint8_t expected[VECTOR_SIZE_MAX];
    size_t expected_size;
};

static inline size_t vector_hex(struct bytes text, uint8_t out[VECTOR_SIZE_MAX]) {
    if (bytes_equal(text, BYTES("-"))) {
        return 0;
    }
    assert_true(text.size / 2 <= VECTOR_SIZE_MAX);
    assert_true(hex_decode(text, out, text.size / 2));
    return text.size / 2;
}

/* The text of a field; a vector without it is a mistake in the document. */
static inline struct bytes vector_text(const struct vector *vector, const char *name) {
    struct bytes rest = vector->fields;
    struct bytes key;
    struct bytes value;
    while (bytes_split(&rest, ' ', &key) && bytes_split(&rest, ' ', &value)) {
        if (bytes_equal(key, bytes_of_string(name))) {
            return value;
        }
    }
    fail_msg("a vector \"%.*s\" has no field \"%s\"", BYTES_ARG(vector->word), name);
    return rest;
}

static inline uint64_t vector_number(const struct vector *vector, const char *name) {
    uint64_t number = 0;
    assert_true(bytes_to_u64(vector_text(vector, name), UINT64_MAX, &number));
    return number;
}

static inline struct bytes vector_bytes(const struct vector *vector, const char *name,
                                        uint8_t out[VECTOR_SIZE_MAX]) {
    return bytes_of(out, vector_hex(vector_text(vector, name), out));
}

static inline struct bytes vector_expected(const struct vector *vector) {
    return bytes_of(vector->expected, vector->expected_size);
}

static inline void vector_check_line(struct bytes line, const char *word,
                                     void (*check)(const struct vector *vector), size_t *count) {
    struct vector vector;
    size_t space = bytes_find_byte(line, ' ');
    size_t equals = bytes_find(line, BYTES(" = "));
    vector.word = bytes_slice(line, 0, space);
    if (equals == line.size || !bytes_equal(vector.word, bytes_of_string(word))) {
        return;
    }
    vector.fields = bytes_slice(line, space + 1, equals);
    vector.expected_size = vector_hex(bytes_skip(line, equals + 3), vector.expected);
    check(&vector);
    ++*count;
}

/* Calls check() with each vector of that word; there must be at_least so many. */
static inline void vectors_check(const char *word, size_t at_least,
                                 void (*check)(const struct vector *vector)) {
    char *text = malloc(VECTORS_DOCUMENT_SIZE_MAX);
    FILE *file = fopen(MNEMON_SOURCE_ROOT "/docs/protocol/transport.md", "r");
    assert_non_null(text);
    assert_non_null(file);
    struct bytes rest = bytes_of(text, fread(text, 1, VECTORS_DOCUMENT_SIZE_MAX, file));
    fclose(file);
    struct bytes line;
    bool is_inside = false;
    size_t count = 0;
    while (bytes_split(&rest, '\n', &line)) {
        if (bytes_starts_with(line, BYTES("```"))) {
            is_inside = bytes_equal(line, BYTES("```vectors"));
        } else if (is_inside) {
            vector_check_line(line, word, check, &count);
        }
    }
    free(text);
    assert_true(count >= at_least);
}

#endif
