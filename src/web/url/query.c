#include "web/url/query.h"

#include <stdlib.h>

/* Arguments of an ordinary query; for more, memory is taken from the heap. */
enum { ARGUMENTS_INLINE = 32 };

struct argument {
    struct bytes text;
    size_t name_size;
};

static bool next_argument(struct bytes *rest, struct argument *ret_argument) {
    if (!bytes_split(rest, '&', &ret_argument->text)) {
        return false;
    }
    ret_argument->name_size = bytes_find_byte(ret_argument->text, '=');
    return true;
}

/* By name first: comparing whole arguments would put "a1=" before "a=", since '1' is less than '='. */
static int compare(const struct argument *a, const struct argument *b) {
    int order = bytes_compare(bytes_slice(a->text, 0, a->name_size), bytes_slice(b->text, 0, b->name_size));
    return order != 0 ? order
                      : bytes_compare(bytes_skip(a->text, a->name_size), bytes_skip(b->text, b->name_size));
}

static int compare_for_qsort(const void *a, const void *b) {
    return compare(a, b);
}

static size_t count_arguments(struct bytes query, bool *ret_is_sorted) {
    struct argument previous = {{NULL, 0}, 0};
    struct argument argument;
    size_t count = 0;
    *ret_is_sorted = true;
    while (next_argument(&query, &argument)) {
        *ret_is_sorted = *ret_is_sorted && (count == 0 || compare(&previous, &argument) <= 0);
        previous = argument;
        count++;
    }
    return count;
}

/* qsort() takes memory above 1 KiB, and a handful is sorted faster without it. */
static void sort(struct argument *arguments, size_t count) {
    if (count > ARGUMENTS_INLINE) {
        qsort(arguments, count, sizeof *arguments, compare_for_qsort);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        struct argument argument = arguments[i];
        size_t j = i;
        for (; j > 0 && compare(&arguments[j - 1], &argument) > 0; j--) {
            arguments[j] = arguments[j - 1];
        }
        arguments[j] = argument;
    }
}

/* Write them one after the other to `to`, joined by '&'. */
static void write_arguments(uint8_t *to, const struct argument *arguments, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            *to++ = '&';
        }
        if (arguments[i].text.size > 0) {
            memcpy(to, arguments[i].text.data, arguments[i].text.size);
            to += arguments[i].text.size;
        }
    }
}

enum err query_sort(struct buf *buf, size_t from) {
    struct bytes query = bytes_skip(buf_bytes(buf), from);
    bool is_sorted;
    size_t count = count_arguments(query, &is_sorted);
    if (is_sorted) {
        return ERR_OK;
    }
    /* The arguments are read from a copy behind the end of the buffer while the original is overwritten. */
    if (buf_reserve(buf, query.size) != ERR_OK) {
        return buf->err;
    }
    struct argument few[ARGUMENTS_INLINE];
    struct argument *arguments = few;
    if (count > ARGUMENTS_INLINE && (arguments = calloc(count, sizeof *arguments)) == NULL) {
        return ERR_MEMORY;
    }
    memcpy(buf->data + buf->size, buf->data + from, query.size);
    struct bytes rest = bytes_of(buf->data + buf->size, query.size);
    for (size_t i = 0; i < count; i++) {
        next_argument(&rest, &arguments[i]);
    }
    sort(arguments, count);
    write_arguments(buf->data + from, arguments, count);
    if (arguments != few) {
        free(arguments);
    }
    return ERR_OK;
}
