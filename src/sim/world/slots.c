#include "sim/world/slots.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/wire.h"

enum { HEADER_SIZE = 12, SLOT_NAME_SIZE_MAX = 24, CALLS_PER_SAVE = 4 };

struct slots *slots_new(uint32_t count, const struct disk_dials *dials, uint64_t seed) {
    ASSERT(count <= SLOTS_COUNT_MAX);
    struct slots *slots = calloc(1, sizeof *slots);
    struct slots_save *saves = calloc(2 * (size_t)count + 1, sizeof *saves);
    if (slots == NULL || saves == NULL) {
        free(slots);
        free(saves);
        return NULL;
    }
    disk_init(&slots->disk, dials, seed);
    slots->count = count;
    slots->waiting = saves;
    slots->running = saves + count;
    for (uint32_t i = 0; i < 2 * count; i++) {
        buf_init(&saves[i].file, SLOTS_SIZE_MAX);
    }
    return slots;
}

void slots_free(struct slots *slots) {
    if (slots == NULL) {
        return;
    }
    for (uint32_t i = 0; i < 2 * slots->count; i++) {
        buf_done(&slots->waiting[i].file);
    }
    free(slots->waiting);
    disk_done(&slots->disk);
    free(slots);
}

static uint64_t checksum(struct bytes bytes) {
    return map_hash(bytes, 0);
}

enum err slots_put(struct slots *slots, uint32_t slot, uint64_t number, struct bytes bytes) {
    ASSERT(slot < slots->count);
    struct slots_save *save = &slots->waiting[slot];
    buf_clear(&save->file);
    uint8_t header[HEADER_SIZE] = {0};
    buf_put(&save->file, bytes_of(header, sizeof header));
    if (buf_put(&save->file, bytes) != ERR_OK) {
        return save->file.err;
    }
    /* The checksum covers the slot too: a file under a wrong name is not taken for that slot's. */
    struct wire_writer writer;
    wire_writer_init(&writer, save->file.data + 8, HEADER_SIZE - 8);
    wire_write_u32(&writer, slot);
    wire_writer_init(&writer, save->file.data, 8);
    wire_write_u64(&writer, checksum(bytes_skip(buf_bytes(&save->file), 8)));
    save->number = number;
    save->order = ++slots->order_last;
    return ERR_OK;
}

bool slots_begin(struct slots *slots) {
    if (slots->is_busy) {
        return false;
    }
    for (uint32_t i = 0; i < slots->count; i++) {
        if (slots->waiting[i].order != 0) {
            struct slots_save idle = slots->running[i];
            slots->running[i] = slots->waiting[i];
            slots->waiting[i] = idle;
            slots->is_busy = true;
        }
    }
    return slots->is_busy;
}

static const char *slot_name(uint32_t slot, const char *suffix, char out[SLOT_NAME_SIZE_MAX]) {
    snprintf(out, SLOT_NAME_SIZE_MAX, "slots/%u%s", (unsigned)slot, suffix);
    return out;
}

/* Write and sync the file beside the slot; a limit of 0 calls does nothing, 1 writes only. */
static enum err write_new(struct slots *slots, uint32_t slot, unsigned calls_max) {
    char name[SLOT_NAME_SIZE_MAX];
    uint32_t handle;
    enum err err =
        disk_open(&slots->disk, slot_name(slot, ".new", name), DISK_CREATE | DISK_TRUNCATE, &handle);
    if (err != ERR_OK) {
        return err;
    }
    err = disk_write(&slots->disk, handle, 0, buf_bytes(&slots->running[slot].file));
    if (err == ERR_OK && calls_max >= 2) {
        err = disk_sync(&slots->disk, handle);
    }
    disk_close(&slots->disk, handle);
    return err;
}

static enum err save_slot(struct slots *slots, uint32_t slot, unsigned calls_max) {
    if (calls_max == 0) {
        return ERR_OK;
    }
    enum err err = write_new(slots, slot, calls_max);
    if (err != ERR_OK || calls_max < 3) {
        return err;
    }
    char old_name[SLOT_NAME_SIZE_MAX];
    char new_name[SLOT_NAME_SIZE_MAX];
    err = disk_rename(&slots->disk, slot_name(slot, ".new", old_name), slot_name(slot, "", new_name));
    if (err != ERR_OK || calls_max < 4) {
        return err;
    }
    return disk_sync_directory(&slots->disk, "slots");
}

enum err slots_commit(struct slots *slots) {
    ASSERT(slots->is_busy);
    for (uint32_t i = 0; i < slots->count; i++) {
        if (slots->running[i].order != 0) {
            enum err err = save_slot(slots, i, CALLS_PER_SAVE);
            if (err != ERR_OK) {
                return err;
            }
        }
    }
    slots->is_busy = false;
    return ERR_OK;
}

bool slots_next_saved(struct slots *slots, uint32_t *ret_slot, uint64_t *ret_number) {
    ASSERT(!slots->is_busy);
    struct slots_save *next = NULL;
    for (uint32_t i = 0; i < slots->count; i++) {
        struct slots_save *save = &slots->running[i];
        if (save->order != 0 && (next == NULL || save->order < next->order)) {
            next = save;
        }
    }
    if (next == NULL) {
        return false;
    }
    next->order = 0;
    *ret_slot = (uint32_t)(next - slots->running);
    *ret_number = next->number;
    return true;
}

static void forget_saves(struct slots *slots) {
    for (uint32_t i = 0; i < 2 * slots->count; i++) {
        slots->waiting[i].order = 0;
    }
    slots->is_busy = false;
}

/* The calls that the group got done before the power went. An error among them stops it just the same. */
static void commit_in_part(struct slots *slots) {
    for (uint32_t i = 0; i < slots->count; i++) {
        if (slots->running[i].order == 0) {
            continue;
        }
        unsigned calls_max = (unsigned)prng_below(&slots->disk.prng, CALLS_PER_SAVE + 1);
        if (save_slot(slots, i, calls_max) != ERR_OK || calls_max < CALLS_PER_SAVE) {
            return;
        }
    }
}

enum err slots_crash(struct slots *slots) {
    if (slots->is_busy) {
        commit_in_part(slots);
    }
    forget_saves(slots);
    return disk_crash(&slots->disk);
}

void slots_wipe(struct slots *slots) {
    forget_saves(slots);
    disk_wipe(&slots->disk);
}

static enum err slots_read_file(struct slots *slots, uint32_t slot, struct buf *out) {
    char name[SLOT_NAME_SIZE_MAX];
    uint32_t handle;
    enum err err = disk_open(&slots->disk, slot_name(slot, "", name), 0, &handle);
    if (err != ERR_OK) {
        return err;
    }
    uint64_t size = 0;
    err = disk_size(&slots->disk, handle, &size);
    err = err != ERR_OK ? err : buf_reserve(out, size);
    if (err == ERR_OK && size > 0) {
        size_t count = 0;
        err = disk_read(&slots->disk, handle, 0, out->data + out->size, size, &count);
        out->size += count;
    }
    disk_close(&slots->disk, handle);
    return err;
}

enum err slots_restore(struct slots *slots, uint32_t slot, struct buf *out) {
    struct buf file;
    buf_init(&file, SLOTS_SIZE_MAX);
    enum err err = slots_read_file(slots, slot, &file);
    if (err != ERR_OK) {
        goto out;
    }
    struct wire_reader reader;
    wire_reader_init(&reader, buf_bytes(&file));
    uint64_t expected = wire_read_u64(&reader);
    uint32_t found_slot = wire_read_u32(&reader);
    struct bytes contents = wire_read_bytes(&reader, wire_reader_left(&reader));
    if (wire_reader_finish(&reader, NULL) != ERR_OK || found_slot != slot ||
        checksum(bytes_skip(buf_bytes(&file), 8)) != expected) {
        slots->corrupt_count++;
        err = ERR_CORRUPT;
        goto out;
    }
    err = buf_put(out, contents);
out:
    buf_done(&file);
    return err;
}
