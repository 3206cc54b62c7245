#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/uninitialized.h"

enum { BUF_CAPACITY_MIN = 64 };

void buf_init(struct buf *buf, size_t size_max) {
    ASSERT(size_max > 0 && size_max < SIZE_MAX / 2);
    *buf = (struct buf){.size_max = size_max};
}

void buf_done(struct buf *buf) {
    free(buf->data);
    *buf = (struct buf){.size_max = buf->size_max};
}

void buf_clear(struct buf *buf) {
    buf->size = 0;
    buf->err = ERR_OK;
}

/* Room for count more bytes, whatever the limit says. */
static enum err buf_grow(struct buf *buf, size_t count) {
    if (count <= buf->capacity - buf->size) {
        return ERR_OK;
    }
    size_t capacity = buf->capacity < BUF_CAPACITY_MIN ? BUF_CAPACITY_MIN : buf->capacity;
    while (capacity < buf->size + count) {
        capacity *= 2;
    }
    uint8_t *data = realloc(buf->data, capacity);
    if (data == NULL) {
        return buf->err = ERR_MEMORY;
    }
    buf->data = data;
    buf->capacity = capacity;
    return ERR_OK;
}

enum err buf_reserve(struct buf *buf, size_t count) {
    if (buf->err != ERR_OK) {
        return buf->err;
    }
    if (count > buf->size_max - buf->size) {
        return buf->err = ERR_LIMIT;
    }
    return buf_grow(buf, count);
}

/* Nearly always: then nothing more need be asked. */
static inline bool has_room(const struct buf *buf, size_t count) {
    return buf->err == ERR_OK && count <= buf->size_max - buf->size && count <= buf->capacity - buf->size;
}

enum err buf_put(struct buf *buf, struct bytes bytes) {
    enum err err = has_room(buf, bytes.size) ? ERR_OK : buf_reserve(buf, bytes.size);
    if (err == ERR_OK && bytes.size > 0) {
        memcpy(buf->data + buf->size, bytes.data, bytes.size);
        buf->size += bytes.size;
    }
    return err;
}

enum err buf_put_byte(struct buf *buf, uint8_t byte) {
    enum err err = has_room(buf, 1) ? ERR_OK : buf_reserve(buf, 1);
    if (err == ERR_OK) {
        buf->data[buf->size++] = byte;
    }
    return err;
}

enum err buf_put_string(struct buf *buf, const char *string) {
    return buf_put(buf, bytes_of_string(string));
}

enum err buf_put_format(struct buf *buf, const char *format, ...) {
    UNINITIALIZED char text[256];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    ASSERT(size >= 0);
    if ((size_t)size < sizeof text) {
        return buf_put(buf, bytes_of(text, (size_t)size));
    }
    if (buf_reserve(buf, (size_t)size) != ERR_OK || buf_grow(buf, (size_t)size + 1) != ERR_OK) {
        return buf->err;
    }
    va_start(arguments, format);
    vsnprintf((char *)buf->data + buf->size, (size_t)size + 1, format, arguments);
    va_end(arguments);
    buf->size += (size_t)size;
    return ERR_OK;
}

enum err buf_put_u64(struct buf *buf, uint64_t value) {
    uint8_t digits[20];
    size_t from = sizeof digits;
    do {
        digits[--from] = (uint8_t)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    return buf_put(buf, bytes_of(digits + from, sizeof digits - from));
}

const char *buf_string(struct buf *buf) {
    if (buf->err != ERR_OK || buf_grow(buf, 1) != ERR_OK) {
        return NULL;
    }
    buf->data[buf->size] = '\0';
    return (const char *)buf->data;
}

void buf_truncate(struct buf *buf, size_t size) {
    ASSERT(size <= buf->size);
    buf->size = size;
}

void buf_consume(struct buf *buf, size_t count) {
    ASSERT(count <= buf->size);
    if (count > 0) {
        memmove(buf->data, buf->data + count, buf->size - count);
        buf->size -= count;
    }
}
