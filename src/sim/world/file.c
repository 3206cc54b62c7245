#include "sim/world/file.h"

#include <stdlib.h>

static void file_init(struct file *file) {
    *file = (struct file){0};
}

static void forget_changes(struct file *file, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        file->changes_size -= file->changes[i].bytes_size;
        free(file->changes[i].bytes);
    }
    file->changes_count -= count;
    memmove(file->changes, file->changes + count, file->changes_count * sizeof *file->changes);
}

void file_done(struct file *file) {
    file_sync(file);
    free(file->changes);
    free(file->data);
    file_init(file);
}

void file_sync(struct file *file) {
    if (file->changes_count > 0) {
        forget_changes(file, file->changes_count);
    }
}

static enum err reserve_data(struct file *file, size_t size) {
    if (size <= file->capacity) {
        return ERR_OK;
    }
    size_t capacity = size < 2 * file->capacity ? 2 * file->capacity : size;
    uint8_t *data = realloc(file->data, capacity);
    if (data == NULL) {
        return ERR_MEMORY;
    }
    memset(data + file->capacity, 0, capacity - file->capacity);
    file->data = data;
    file->capacity = capacity;
    return ERR_OK;
}

static enum err reserve_change(struct file *file) {
    if (file->changes_count == FILE_CHANGES_MAX || file->changes_size > FILE_CHANGES_SIZE_MAX) {
        forget_changes(file, (file->changes_count + 1) / 2);
    }
    if (file->changes_count < file->changes_max) {
        return ERR_OK;
    }
    uint32_t changes_max = file->changes_max == 0 ? 4 : 2 * file->changes_max;
    struct file_change *changes = realloc(file->changes, changes_max * sizeof *changes);
    if (changes == NULL) {
        return ERR_MEMORY;
    }
    file->changes = changes;
    file->changes_max = changes_max;
    return ERR_OK;
}

/* A change of bytes_size bytes at offset, whose new bytes (NULL: zeros) then stand in data. */
static enum err change(struct file *file, uint64_t offset, const uint8_t *bytes, size_t bytes_size,
                       uint64_t size_after) {
    uint64_t end = offset + bytes_size > size_after ? offset + bytes_size : size_after;
    if (reserve_data(file, end) != ERR_OK || reserve_change(file) != ERR_OK) {
        return ERR_MEMORY;
    }
    uint8_t *before = NULL;
    if (bytes_size > 0) {
        before = malloc(bytes_size);
        if (before == NULL) {
            return ERR_MEMORY;
        }
        memcpy(before, file->data + offset, bytes_size);
        if (bytes != NULL) {
            memcpy(file->data + offset, bytes, bytes_size);
        } else {
            memset(file->data + offset, 0, bytes_size);
        }
    }
    file->changes[file->changes_count++] = (struct file_change){
        .offset = offset,
        .size_before = file->size,
        .size_after = size_after,
        .bytes = before,
        .bytes_size = bytes_size,
    };
    file->changes_size += bytes_size;
    file->size = size_after;
    return ERR_OK;
}

enum err file_write(struct file *file, uint64_t offset, struct bytes bytes) {
    uint64_t end = offset + bytes.size;
    return change(file, offset, bytes.data, bytes.size, end > file->size ? end : file->size);
}

enum err file_resize(struct file *file, uint64_t size) {
    return change(file, size, NULL, size < file->size ? file->size - size : 0, size);
}

static void take_back(struct file *file, struct file_change *change) {
    for (size_t i = 0; i < change->bytes_size; i++) {
        uint8_t after = file->data[change->offset + i];
        file->data[change->offset + i] = change->bytes[i];
        change->bytes[i] = after;
    }
    file->size = change->size_before;
}

static void file_cut(struct file *file, uint64_t size) {
    memset(file->data + size, 0, file->size - size);
    file->size = size;
}

static void lengthen(struct file *file, uint64_t size) {
    file->size = size > file->size ? size : file->size;
}

/* The sectors of a write that reach the disk: all, or each with the chance of a coin. */
static void redo_write(struct file *file, struct prng *prng, const struct file_change *change, bool is_torn) {
    uint64_t end = change->offset + change->bytes_size;
    uint64_t offset = change->offset;
    while (offset < end) {
        uint64_t sector_end = (offset / FILE_SECTOR_SIZE + 1) * FILE_SECTOR_SIZE;
        sector_end = sector_end < end ? sector_end : end;
        if (!is_torn || prng_below(prng, 2) == 0) {
            memcpy(file->data + offset, change->bytes + (offset - change->offset), sector_end - offset);
            lengthen(file, sector_end);
        }
        offset = sector_end;
    }
}

static void redo(struct file *file, struct prng *prng, const struct file_change *change, uint32_t lost_ppm,
                 uint32_t torn_ppm) {
    bool is_lost = prng_chance_ppm(prng, lost_ppm);
    if (change->size_after < change->size_before) {
        if (!is_lost && change->size_after < file->size) {
            file_cut(file, change->size_after);
        }
        return;
    }
    bool is_torn = !is_lost && prng_chance_ppm(prng, torn_ppm);
    if (!is_lost) {
        redo_write(file, prng, change, is_torn);
    }
    bool keeps_length = (!is_lost && !is_torn) || prng_below(prng, 2) == 0;
    if (change->size_after > change->size_before && keeps_length) {
        lengthen(file, change->size_after);
    }
}

void file_crash(struct file *file, struct prng *prng, uint32_t lost_ppm, uint32_t torn_ppm) {
    for (uint32_t i = file->changes_count; i-- > 0;) {
        take_back(file, &file->changes[i]);
    }
    for (uint32_t i = 0; i < file->changes_count; i++) {
        redo(file, prng, &file->changes[i], lost_ppm, torn_ppm);
    }
    file_sync(file);
}

size_t file_rot(struct file *file, struct prng *prng, uint32_t sector_ppm) {
    size_t flips_count = 0;
    for (size_t offset = 0; offset < file->size; offset += FILE_SECTOR_SIZE) {
        if (prng_chance_ppm(prng, sector_ppm)) {
            size_t left = file->size - offset;
            uint64_t bit = prng_below(prng, 8 * (left < FILE_SECTOR_SIZE ? left : FILE_SECTOR_SIZE));
            file->data[offset + bit / 8] ^= (uint8_t)(1 << bit % 8);
            flips_count++;
        }
    }
    return flips_count;
}
