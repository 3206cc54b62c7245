/*
 * exceptions - cases of data made by others that we fail on purpose, each a line of a file beside the tests:
 * the case's file, tab, its input as JSON, tab, why. A case that passes again must leave the file.
 */
#ifndef MNEMON_TESTS_EXCEPTIONS_H
#define MNEMON_TESTS_EXCEPTIONS_H

#include <stdio.h>

#include "base/buf.h"
#include "unit.h"

enum { EXCEPTIONS_MAX = 64, EXCEPTION_LINE_SIZE_MAX = 4096 };

struct exception {
    char line[EXCEPTION_LINE_SIZE_MAX];
    struct bytes key; /* "file<tab>input" */
    bool is_used;
};

struct exceptions {
    const char *name; /* of their file */
    struct exception list[EXCEPTIONS_MAX];
    size_t count;
};

static inline void exceptions_read(struct exceptions *exceptions, const char *name) {
    char path[EXCEPTION_LINE_SIZE_MAX];
    snprintf(path, sizeof path, MNEMON_SOURCE_ROOT "/tests/unit/%s", name);
    exceptions->name = name;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char line[EXCEPTION_LINE_SIZE_MAX];
    while (fgets(line, sizeof line, file) != NULL) {
        if (line[0] == '#' || line[0] == '\n') {
            continue;
        }
        assert_true(exceptions->count < EXCEPTIONS_MAX);
        struct exception *exception = &exceptions->list[exceptions->count++];
        memcpy(exception->line, line, sizeof line);
        struct bytes text = bytes_of_string(exception->line);
        size_t tab = bytes_find_byte(text, '\t');
        assert_true(tab < text.size);
        size_t key_size = tab + 1 + bytes_find_byte(bytes_skip(text, tab + 1), '\t');
        assert_true(key_size < text.size); /* a reason is there */
        exception->key = bytes_slice(text, 0, key_size);
    }
    fclose(file);
}

/* Is the case one of them? It has failed. */
static inline bool exceptions_expect(struct exceptions *exceptions, struct bytes key) {
    for (size_t i = 0; i < exceptions->count; i++) {
        if (bytes_equal(exceptions->list[i].key, key)) {
            return exceptions->list[i].is_used = true;
        }
    }
    return false;
}

/* A line for each of that file that has passed. */
static inline void exceptions_put_unused(const struct exceptions *exceptions, const char *file,
                                         struct buf *failures) {
    for (size_t i = 0; i < exceptions->count; i++) {
        const struct exception *exception = &exceptions->list[i];
        if (bytes_starts_with(exception->key, bytes_of_string(file)) && !exception->is_used) {
            buf_put_format(failures, "  passes now, remove it from %s: %.*s\n", exceptions->name,
                           BYTES_ARG(exception->key));
        }
    }
}

#endif
