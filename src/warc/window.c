#include "warc/window.h"

#include <stdlib.h>

enum err window_init(struct window *window, size_t capacity) {
    ASSERT(capacity > 0);
    *window = (struct window){.capacity = capacity};
    window->data = malloc(capacity);
    return window->data == NULL ? ERR_MEMORY : ERR_OK;
}

void window_done(struct window *window) {
    free(window->data);
    *window = (struct window){0};
}

void window_open(struct window *window, struct source *source) {
    window->source = source;
    window->from = 0;
    window->to = 0;
    window->offset = 0;
    window->is_at_end = false;
}

static void move_to_front(struct window *window) {
    size_t ready = window->to - window->from;
    if (window->from > 0 && ready > 0) {
        memmove(window->data, window->data + window->from, ready);
    }
    window->offset += window->from;
    window->from = 0;
    window->to = ready;
}

enum err window_fill(struct window *window, size_t wanted, struct err_detail *detail) {
    ASSERT(wanted <= window->capacity);
    if (window->to - window->from >= wanted || window->is_at_end) {
        return ERR_OK;
    }
    move_to_front(window);
    while (window->to < wanted) {
        size_t got = 0;
        enum err err = source_read(window->source, window->data + window->to, window->capacity - window->to,
                                   &got, detail);
        if (err != ERR_OK) {
            return err;
        }
        if (got == 0) {
            window->is_at_end = true;
            return ERR_OK;
        }
        window->to += got;
    }
    return ERR_OK;
}

static enum err jump(struct window *window, uint64_t offset, struct err_detail *detail) {
    enum err err = source_seek(window->source, offset, detail);
    if (err != ERR_OK) {
        return err;
    }
    window->offset = offset;
    window->from = 0;
    window->to = 0;
    window->is_at_end = false;
    return ERR_OK;
}

enum err window_skip(struct window *window, uint64_t count, bool *ret_is_whole, struct err_detail *detail) {
    uint64_t left = count;
    for (;;) {
        size_t ready = window->to - window->from;
        size_t taken = left < ready ? (size_t)left : ready;
        window_consume(window, taken);
        left -= taken;
        if (left == 0 || window->is_at_end) {
            break;
        }
        enum err err = ERR_OK;
        if (left > window->capacity && source_can_seek(window->source)) {
            /* Only the last byte has to be read: whether it exists shows whether the file is long enough. */
            uint64_t here = window_offset(window);
            uint64_t last = left - 1 <= INT64_MAX - here ? here + left - 1 : INT64_MAX;
            err = jump(window, last, detail);
            left = 1;
        }
        err = err == ERR_OK ? window_fill(window, 1, detail) : err;
        if (err != ERR_OK) {
            return err;
        }
    }
    *ret_is_whole = left == 0;
    return ERR_OK;
}

enum err window_seek(struct window *window, uint64_t offset, struct err_detail *detail) {
    if (offset >= window->offset && offset - window->offset <= window->to) {
        window->from = (size_t)(offset - window->offset);
        return ERR_OK;
    }
    if (!source_can_seek(window->source)) {
        return err_set_at(detail, ERR_UNSUPPORTED, (size_t)offset, "this input can only be read forward");
    }
    return jump(window, offset, detail);
}
