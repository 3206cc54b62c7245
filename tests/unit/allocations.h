/*
 * allocations - counts the allocations of the code under test and fails them on demand.
 *
 * For one file of a test that is linked with -Wl,--wrap of the four functions (allocations_dep in
 * meson.build); defines them, so it is included once. Libraries outside the tree are not affected.
 */
#ifndef MNEMON_TESTS_ALLOCATIONS_H
#define MNEMON_TESTS_ALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static size_t allocations_count;           /* asked for so far */
static size_t allocations_left = SIZE_MAX; /* how many may still succeed */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_reallocarray(void *memory, size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_reallocarray(void *memory, size_t count, size_t size);

static bool allocation_passes(void) {
    allocations_count++;
    if (allocations_left == 0) {
        return false;
    }
    allocations_left--;
    return true;
}

void *__wrap_malloc(size_t size) {
    return allocation_passes() ? __real_malloc(size) : NULL;
}

void *__wrap_calloc(size_t count, size_t size) {
    return allocation_passes() ? __real_calloc(count, size) : NULL;
}

void *__wrap_realloc(void *memory, size_t size) {
    return allocation_passes() ? __real_realloc(memory, size) : NULL;
}

void *__wrap_reallocarray(void *memory, size_t count, size_t size) {
    return allocation_passes() ? __real_reallocarray(memory, count, size) : NULL;
}

#endif
