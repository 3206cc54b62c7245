/* vectors - the golden vectors of a document of docs/protocol: lines "name = hex" in blocks of vectors. */
#ifndef MNEMON_TESTS_VECTORS_H
#define MNEMON_TESTS_VECTORS_H

#include <stdio.h>

#include "unit.h"

enum { VECTORS_DOCUMENT_SIZE_MAX = 1 << 18 };

/* Each of them, in their order. Returns how many there are. */
static inline unsigned vectors_walk(const char *name, void (*check)(struct bytes name, struct bytes hex)) {
    static char memory[VECTORS_DOCUMENT_SIZE_MAX];
    char path[256];
    snprintf(path, sizeof path, MNEMON_SOURCE_ROOT "/docs/protocol/%s", name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    struct bytes document = bytes_of(memory, fread(memory, 1, sizeof memory, file));
    fclose(file);
    assert_true(document.size < sizeof memory);
    bool is_inside = false;
    unsigned count = 0;
    struct bytes line;
    while (bytes_split(&document, '\n', &line)) {
        size_t equals = bytes_find(line, BYTES(" = "));
        if (bytes_starts_with(line, BYTES("```"))) {
            is_inside = bytes_equal(line, BYTES("```vectors"));
        } else if (is_inside && line.size > 0 && line.data[0] != '#') {
            assert_true(equals < line.size);
            check(bytes_slice(line, 0, equals), bytes_skip(line, equals + 3));
            count++;
        }
    }
    return count;
}

#endif
