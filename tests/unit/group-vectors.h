/* group-vectors - the golden vectors of docs/protocol/group.md: lines "name = hex" in blocks of vectors. */
#ifndef MNEMON_TESTS_GROUP_VECTORS_H
#define MNEMON_TESTS_GROUP_VECTORS_H

#include <stdio.h>

#include "unit.h"

enum { VECTOR_SIZE_MAX = 4096, VECTORS_DOCUMENT_SIZE_MAX = 1 << 18 };

/* The written bytes must be those that the document has under this name. */
static inline void vector_check(const char *name, struct bytes written) {
    static char memory[VECTORS_DOCUMENT_SIZE_MAX];
    static char text[2 * VECTOR_SIZE_MAX + 1];
    assert_true(written.size <= VECTOR_SIZE_MAX);
    for (size_t i = 0; i < written.size; i++) {
        snprintf(text + 2 * i, 3, "%02x", written.data[i]);
    }
    FILE *file = fopen(MNEMON_SOURCE_ROOT "/docs/protocol/group.md", "rb");
    assert_non_null(file);
    struct bytes document = bytes_of(memory, fread(memory, 1, sizeof memory, file));
    fclose(file);
    bool is_inside = false;
    struct bytes line;
    while (bytes_split(&document, '\n', &line)) {
        if (bytes_starts_with(line, BYTES("```"))) {
            is_inside = bytes_equal(line, BYTES("```vectors"));
            continue;
        }
        size_t equals = bytes_find(line, BYTES(" = "));
        if (is_inside && equals < line.size &&
            bytes_equal(bytes_slice(line, 0, equals), bytes_of_string(name))) {
            assert_bytes_equal(bytes_of(text, 2 * written.size), bytes_skip(line, equals + 3));
            return;
        }
    }
    fail_msg("docs/protocol/group.md has no vector \"%s\" = %s", name, text);
}

#endif
