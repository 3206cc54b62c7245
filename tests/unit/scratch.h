/* scratch - a directory of its own for a test that needs real files, removed with all that is in it. */
#ifndef MNEMON_TESTS_SCRATCH_H
#define MNEMON_TESTS_SCRATCH_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SCRATCH_PATH_SIZE = 4096 };

static inline int scratch_remove_one(const char *path, const struct stat *status, int kind,
                                     struct FTW *place) {
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

/* For cmocka's set-up: *state becomes the path. */
static inline int scratch_make(void **state) {
    const char *parent = getenv("TMPDIR");
    char *path = malloc(SCRATCH_PATH_SIZE);
    if (path == NULL) {
        return -1;
    }
    snprintf(path, SCRATCH_PATH_SIZE, "%s/mnemon-unit-XXXXXX", parent != NULL ? parent : "/tmp");
    *state = path;
    return mkdtemp(path) == NULL ? -1 : 0;
}

/* For cmocka's tear-down. */
static inline int scratch_remove(void **state) {
    int result = nftw(*state, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(*state);
    return result;
}

/* "directory/name" in out, which is returned. */
static inline char *scratch_path(const char *directory, const char *name, char out[SCRATCH_PATH_SIZE]) {
    if (snprintf(out, SCRATCH_PATH_SIZE, "%s/%s", directory, name) >= SCRATCH_PATH_SIZE) {
        abort();
    }
    return out;
}

#endif
