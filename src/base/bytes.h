/*
 * bytes - a borrowed slice of memory: where it starts and how long it is.
 *
 * Passed by value, never owns. The memory belongs to whoever made it and must outlive the slice. An empty
 * slice may have a NULL start. Text is bytes too; nothing here ends in a zero byte unless it says so.
 */
#ifndef MNEMON_BASE_BYTES_H
#define MNEMON_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"

struct bytes {
    const uint8_t *data;
    size_t size;
};

/* For string literals: the size is known to the compiler. */
#define BYTES(literal) bytes_of("" literal, sizeof(literal) - 1)

/* For printf: "%.*s" takes an int and a pointer. */
#define BYTES_ARG(slice) (int)((slice).size < 1u << 30 ? (slice).size : 1u << 30), (const char *)(slice).data

static inline struct bytes bytes_of(const void *data, size_t size) {
    return (struct bytes){data, size};
}

static inline struct bytes bytes_of_string(const char *string) {
    return bytes_of(string, strlen(string));
}

/* From index `from` up to, not including, index `to`. */
static inline struct bytes bytes_slice(struct bytes slice, size_t from, size_t to) {
    ASSERT(from <= to && to <= slice.size);
    return (struct bytes){from == 0 ? slice.data : slice.data + from, to - from};
}

static inline struct bytes bytes_skip(struct bytes slice, size_t count) {
    return bytes_slice(slice, count, slice.size);
}

static inline bool bytes_equal(struct bytes a, struct bytes b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Order of unsigned bytes, a prefix before what it begins: <0, 0, >0. */
int bytes_compare(struct bytes a, struct bytes b);

/* ASCII letters only; other bytes must be equal. */
bool bytes_equal_ignore_case(struct bytes a, struct bytes b);

bool bytes_starts_with(struct bytes slice, struct bytes prefix);
bool bytes_ends_with(struct bytes slice, struct bytes suffix);
bool bytes_starts_with_ignore_case(struct bytes slice, struct bytes prefix);
bool bytes_ends_with_ignore_case(struct bytes slice, struct bytes suffix);
bool bytes_contain_ignore_case(struct bytes slice, struct bytes part);

/* Is it one of the words, without regard to case? The list ends with NULL. */
bool bytes_is_one_of(struct bytes slice, const char *const *words);

/* How many bytes both begin with alike. */
size_t bytes_common_size(struct bytes a, struct bytes b);

/* No byte above 0x7f. */
bool bytes_are_ascii(struct bytes slice);

/* Index of the first occurrence, or slice.size if there is none. */
size_t bytes_find_byte(struct bytes slice, uint8_t byte);
size_t bytes_find(struct bytes slice, struct bytes needle);

/* Without spaces, tabs, CR and LF at both ends. */
struct bytes bytes_trim(struct bytes slice);

/* Cut white space, as byte_is_space() has it, off the front. */
void bytes_skip_spaces(struct bytes *slice);

/*
 * Cut the part before the next separator off *rest. True while there are parts: "a,,b" gives "a", "", "b"
 * and "" gives one empty part. Afterwards *rest is {NULL, 0}.
 */
bool bytes_split(struct bytes *rest, uint8_t separator, struct bytes *ret_part);

/* Decimal digits only, all of the slice, at most max. False otherwise, *ret_value untouched. */
bool bytes_to_u64(struct bytes slice, uint64_t max, uint64_t *ret_value);

static inline uint8_t byte_lower(uint8_t byte) {
    return byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte | 0x20) : byte;
}

static inline bool byte_is_digit(uint8_t byte) {
    return byte >= '0' && byte <= '9';
}

static inline bool byte_is_alpha(uint8_t byte) {
    return byte_lower(byte) >= 'a' && byte_lower(byte) <= 'z';
}

static inline bool byte_is_alnum(uint8_t byte) {
    return byte_is_alpha(byte) || byte_is_digit(byte);
}

/* White space as HTML has it: with the form feed, without the vertical tab. */
static inline bool byte_is_space(uint8_t byte) {
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\f' || byte == '\r';
}

#endif
