#include "sim/world/disk.h"

#include <stdlib.h>

enum { HANDLE_INDEX_BITS = 8 }; /* a handle is an index below DISK_OPEN_MAX and the generation above it */

/* ---- names: in the order of their bytes, a path is one name ---- */

static void names_done(struct names *names) {
    for (uint32_t i = 0; i < names->count; i++) {
        free(names->entries[i].name);
    }
    free(names->entries);
}

/* The index of the name, or where it would be put. */
static uint32_t find_index(const struct names *names, const char *name) {
    uint32_t low = 0;
    uint32_t high = names->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(names->entries[middle].name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool is_at(const struct names *names, uint32_t index, const char *name) {
    return index < names->count && strcmp(names->entries[index].name, name) == 0;
}

static const struct names_entry *names_find(const struct names *names, const char *name) {
    uint32_t index = find_index(names, name);
    return is_at(names, index, name) ? &names->entries[index] : NULL;
}

static enum err names_reserve(struct names *names) {
    if (names->count < names->capacity) {
        return ERR_OK;
    }
    uint32_t capacity = names->capacity == 0 ? 4 : 2 * names->capacity;
    struct names_entry *entries = realloc(names->entries, capacity * sizeof *entries);
    if (entries == NULL) {
        return ERR_MEMORY;
    }
    names->entries = entries;
    names->capacity = capacity;
    return ERR_OK;
}

static enum err names_bind(struct names *names, const char *name, uint32_t inode) {
    uint32_t index = find_index(names, name);
    if (is_at(names, index, name)) {
        names->entries[index].inode = inode;
        return ERR_OK;
    }
    if (names_reserve(names) != ERR_OK) {
        return ERR_MEMORY;
    }
    char *copy = strdup(name);
    if (copy == NULL) {
        return ERR_MEMORY;
    }
    struct names_entry *entry = &names->entries[index];
    memmove(entry + 1, entry, (names->count - index) * sizeof *entry);
    *entry = (struct names_entry){copy, inode};
    names->count++;
    return ERR_OK;
}

static void names_unbind(struct names *names, const char *name) {
    uint32_t index = find_index(names, name);
    if (!is_at(names, index, name)) {
        return;
    }
    struct names_entry *entry = &names->entries[index];
    free(entry->name);
    names->count--;
    memmove(entry, entry + 1, (names->count - index) * sizeof *entry);
}

/* ---- start and end ---- */

void disk_init(struct disk *disk, const struct disk_dials *dials, uint64_t seed) {
    *disk = (struct disk){.dials = dials};
    prng_init(&disk->prng, seed);
}

static void forget_entry_changes(struct disk *disk) {
    for (uint32_t i = 0; i < disk->entry_changes_count; i++) {
        free(disk->entry_changes[i].old_name);
        free(disk->entry_changes[i].new_name);
    }
    disk->entry_changes_count = 0;
}

void disk_done(struct disk *disk) {
    forget_entry_changes(disk);
    free(disk->entry_changes);
    names_done(&disk->now);
    names_done(&disk->durable);
    for (uint32_t i = 0; i < disk->inodes_count; i++) {
        file_done(&disk->inodes[i].file);
    }
    free(disk->inodes);
    free(disk->handles);
}

/* ---- inodes and names ---- */

static void hold(struct disk *disk, uint32_t inode) {
    disk->inodes[inode].holders_count++;
}

static void disk_release(struct disk *disk, uint32_t inode) {
    ASSERT(disk->inodes[inode].holders_count > 0);
    if (--disk->inodes[inode].holders_count == 0) {
        disk->used_size -= disk->inodes[inode].file.size;
        file_done(&disk->inodes[inode].file);
    }
}

static enum err take_inode(struct disk *disk, uint32_t *ret_inode) {
    for (uint32_t i = 0; i < disk->inodes_count; i++) {
        if (disk->inodes[i].holders_count == 0) {
            *ret_inode = i;
            return ERR_OK;
        }
    }
    if (disk->inodes_count == DISK_FILES_MAX) {
        return ERR_LIMIT;
    }
    /* One by one: most disks hold a handful of files, and there may be 100,000 disks. */
    struct disk_inode *inodes = realloc(disk->inodes, (disk->inodes_count + 1) * sizeof *inodes);
    if (inodes == NULL) {
        return ERR_MEMORY;
    }
    disk->inodes = inodes;
    disk->inodes[disk->inodes_count] = (struct disk_inode){0};
    *ret_inode = disk->inodes_count++;
    return ERR_OK;
}

static enum err bind(struct disk *disk, struct names *names, const char *name, uint32_t inode) {
    const struct names_entry *before = names_find(names, name);
    bool had_inode = before != NULL;
    uint32_t inode_before = had_inode ? before->inode : 0;
    enum err err = names_bind(names, name, inode);
    if (err != ERR_OK) {
        return err;
    }
    hold(disk, inode);
    if (had_inode) {
        disk_release(disk, inode_before);
    }
    return ERR_OK;
}

static void unbind(struct disk *disk, struct names *names, const char *name) {
    const struct names_entry *entry = names_find(names, name);
    if (entry != NULL) {
        uint32_t inode = entry->inode;
        names_unbind(names, name);
        disk_release(disk, inode);
    }
}

static enum err apply(struct disk *disk, struct names *names, const struct disk_entry_change *change) {
    if (change->new_name != NULL) {
        enum err err = bind(disk, names, change->new_name, change->inode);
        if (err != ERR_OK) {
            return err;
        }
    }
    if (change->old_name != NULL) {
        unbind(disk, names, change->old_name);
    }
    return ERR_OK;
}

/* ---- unsynced entry changes ---- */

static bool is_in_directory(const char *name, const char *directory) {
    if (name == NULL) {
        return false;
    }
    const char *slash = strrchr(name, '/');
    size_t size = slash == NULL ? 0 : (size_t)(slash - name);
    return strlen(directory) == size && memcmp(name, directory, size) == 0;
}

static void forget_entry_change(struct disk *disk, uint32_t index) {
    struct disk_entry_change *change = &disk->entry_changes[index];
    if (change->new_name != NULL) {
        disk_release(disk, change->inode);
    }
    free(change->old_name);
    free(change->new_name);
    disk->entry_changes_count--;
    memmove(change, change + 1, (disk->entry_changes_count - index) * sizeof *change);
}

static enum err make_durable(struct disk *disk, uint32_t index) {
    enum err err = apply(disk, &disk->durable, &disk->entry_changes[index]);
    if (err == ERR_OK) {
        forget_entry_change(disk, index);
    }
    return err;
}

static enum err reserve_entry_change(struct disk *disk) {
    if (disk->entry_changes_count == DISK_ENTRY_CHANGES_MAX) {
        return make_durable(disk, 0);
    }
    if (disk->entry_changes_count < disk->entry_changes_max) {
        return ERR_OK;
    }
    uint32_t changes_max = disk->entry_changes_max == 0 ? 4 : 2 * disk->entry_changes_max;
    struct disk_entry_change *changes = realloc(disk->entry_changes, changes_max * sizeof *changes);
    if (changes == NULL) {
        return ERR_MEMORY;
    }
    disk->entry_changes = changes;
    disk->entry_changes_max = changes_max;
    return ERR_OK;
}

/* Happens now for readers, and durably at the next sync of the directory. */
static enum err change_entry(struct disk *disk, const char *old_name, const char *new_name, uint32_t inode) {
    enum err err = reserve_entry_change(disk);
    if (err != ERR_OK) {
        return err;
    }
    struct disk_entry_change change = {
        .old_name = old_name == NULL ? NULL : strdup(old_name),
        .new_name = new_name == NULL ? NULL : strdup(new_name),
        .inode = inode,
    };
    bool has_names =
        (old_name == NULL || change.old_name != NULL) && (new_name == NULL || change.new_name != NULL);
    if (!has_names || apply(disk, &disk->now, &change) != ERR_OK) {
        free(change.old_name);
        free(change.new_name);
        return ERR_MEMORY;
    }
    if (new_name != NULL) {
        hold(disk, inode);
    }
    disk->entry_changes[disk->entry_changes_count++] = change;
    return ERR_OK;
}

/* ---- calls ---- */

/* Every changing call passes here first; an error is the call's result. */
static enum err disk_enter(struct disk *disk) {
    disk->counters.changes_count++;
    enum err err = ERR_OK;
    if (disk->counters.changes_count == disk->fail_at) {
        err = disk->fail_err;
    } else if (prng_chance_ppm(&disk->prng, disk->dials->error_ppm)) {
        err = ERR_IO;
    }
    disk->counters.failed_count += err != ERR_OK;
    return err;
}

static enum err check_space(struct disk *disk, uint64_t growth) {
    uint64_t capacity = disk->dials->capacity_size;
    bool fits = capacity == 0 || (disk->used_size <= capacity && growth <= capacity - disk->used_size);
    if (fits && !disk->is_full) {
        return ERR_OK;
    }
    disk->counters.failed_count++;
    return ERR_NO_SPACE;
}

static enum err find_file(const struct disk *disk, uint32_t handle, struct file **ret_file) {
    uint32_t index = handle & (DISK_OPEN_MAX - 1);
    bool is_open = handle >> HANDLE_INDEX_BITS == disk->generation && index < disk->handles_count &&
                   disk->handles[index] != 0;
    if (!is_open) {
        return ERR_CLOSED;
    }
    *ret_file = &disk->inodes[disk->handles[index] - 1].file;
    return ERR_OK;
}

static enum err take_handle(struct disk *disk, uint32_t *ret_index) {
    for (uint32_t i = 0; i < disk->handles_count; i++) {
        if (disk->handles[i] == 0) {
            *ret_index = i;
            return ERR_OK;
        }
    }
    if (disk->handles_count == DISK_OPEN_MAX) {
        return ERR_LIMIT;
    }
    uint32_t *handles = realloc(disk->handles, (disk->handles_count + 1) * sizeof *handles);
    if (handles == NULL) {
        return ERR_MEMORY;
    }
    disk->handles = handles;
    disk->handles[disk->handles_count] = 0;
    *ret_index = disk->handles_count++;
    return ERR_OK;
}

static enum err create(struct disk *disk, const char *name, uint32_t *ret_inode) {
    enum err err = disk_enter(disk);
    err = err != ERR_OK ? err : check_space(disk, 0);
    uint32_t inode = 0;
    err = err != ERR_OK ? err : take_inode(disk, &inode);
    err = err != ERR_OK ? err : change_entry(disk, NULL, name, inode);
    if (err == ERR_OK) {
        *ret_inode = inode;
    }
    return err;
}

static enum err resize(struct disk *disk, struct file *file, uint64_t size) {
    uint64_t size_before = file->size;
    enum err err = disk_enter(disk);
    err = err != ERR_OK || size <= size_before ? err : check_space(disk, size - size_before);
    err = err != ERR_OK ? err : file_resize(file, size);
    if (err == ERR_OK) {
        disk->used_size = disk->used_size - size_before + size;
    }
    return err;
}

enum err disk_open(struct disk *disk, const char *name, unsigned flags, uint32_t *ret_handle) {
    ASSERT(name[0] != '\0' && strlen(name) <= DISK_NAME_SIZE_MAX);
    const struct names_entry *entry = names_find(&disk->now, name);
    if (entry == NULL && (flags & DISK_CREATE) == 0) {
        return ERR_NOT_FOUND;
    }
    if (entry != NULL && (flags & DISK_EXCLUSIVE) != 0) {
        return ERR_EXISTS;
    }
    uint32_t index;
    enum err err = take_handle(disk, &index);
    if (err != ERR_OK) {
        return err;
    }
    uint32_t inode = entry == NULL ? 0 : entry->inode;
    if (entry == NULL) {
        err = create(disk, name, &inode);
    } else if ((flags & DISK_TRUNCATE) != 0) {
        err = resize(disk, &disk->inodes[inode].file, 0);
    }
    if (err != ERR_OK) {
        return err;
    }
    disk->handles[index] = inode + 1;
    hold(disk, inode);
    *ret_handle = disk->generation << HANDLE_INDEX_BITS | index;
    return ERR_OK;
}

void disk_close(struct disk *disk, uint32_t handle) {
    struct file *file;
    if (find_file(disk, handle, &file) != ERR_OK) {
        return;
    }
    uint32_t index = handle & (DISK_OPEN_MAX - 1);
    disk_release(disk, disk->handles[index] - 1);
    disk->handles[index] = 0;
}

enum err disk_write(struct disk *disk, uint32_t handle, uint64_t offset, struct bytes bytes) {
    struct file *file;
    enum err err = find_file(disk, handle, &file);
    err = err != ERR_OK ? err : disk_enter(disk);
    if (err != ERR_OK) {
        return err;
    }
    uint64_t size_before = file->size;
    uint64_t end = offset + bytes.size;
    ASSERT(end >= offset);
    if (end > size_before) {
        err = check_space(disk, end - size_before);
    }
    err = err != ERR_OK ? err : file_write(file, offset, bytes);
    if (err == ERR_OK) {
        disk->used_size += file->size - size_before;
    }
    return err;
}

enum err disk_append(struct disk *disk, uint32_t handle, struct bytes bytes) {
    uint64_t size;
    enum err err = disk_size(disk, handle, &size);
    return err != ERR_OK ? err : disk_write(disk, handle, size, bytes);
}

enum err disk_truncate(struct disk *disk, uint32_t handle, uint64_t size) {
    struct file *file;
    enum err err = find_file(disk, handle, &file);
    return err != ERR_OK ? err : resize(disk, file, size);
}

enum err disk_sync(struct disk *disk, uint32_t handle) {
    struct file *file;
    enum err err = find_file(disk, handle, &file);
    err = err != ERR_OK ? err : disk_enter(disk);
    if (err == ERR_OK) {
        file_sync(file);
    }
    return err;
}

enum err disk_read(struct disk *disk, uint32_t handle, uint64_t offset, void *out, size_t size,
                   size_t *ret_size) {
    struct file *file;
    enum err err = find_file(disk, handle, &file);
    if (err != ERR_OK) {
        return err;
    }
    uint64_t left = offset < file->size ? file->size - offset : 0;
    size_t count = left < size ? left : size;
    if (count > 0) {
        memcpy(out, file->data + offset, count);
    }
    *ret_size = count;
    return ERR_OK;
}

enum err disk_size(struct disk *disk, uint32_t handle, uint64_t *ret_size) {
    struct file *file;
    enum err err = find_file(disk, handle, &file);
    if (err == ERR_OK) {
        *ret_size = file->size;
    }
    return err;
}

enum err disk_rename(struct disk *disk, const char *old_name, const char *new_name) {
    ASSERT(new_name[0] != '\0' && strlen(new_name) <= DISK_NAME_SIZE_MAX);
    const struct names_entry *entry = names_find(&disk->now, old_name);
    if (entry == NULL) {
        return ERR_NOT_FOUND;
    }
    if (strcmp(old_name, new_name) == 0) {
        return ERR_OK;
    }
    enum err err = disk_enter(disk);
    return err != ERR_OK ? err : change_entry(disk, old_name, new_name, entry->inode);
}

enum err disk_unlink(struct disk *disk, const char *name) {
    if (names_find(&disk->now, name) == NULL) {
        return ERR_NOT_FOUND;
    }
    enum err err = disk_enter(disk);
    return err != ERR_OK ? err : change_entry(disk, name, NULL, 0);
}

enum err disk_sync_directory(struct disk *disk, const char *directory) {
    enum err err = disk_enter(disk);
    uint32_t index = 0;
    while (err == ERR_OK && index < disk->entry_changes_count) {
        const struct disk_entry_change *change = &disk->entry_changes[index];
        if (is_in_directory(change->old_name, directory) || is_in_directory(change->new_name, directory)) {
            err = make_durable(disk, index);
        } else {
            index++;
        }
    }
    return err;
}

bool disk_list(const struct disk *disk, const char *directory, uint32_t *cursor, const char **ret_name) {
    while (*cursor < disk->now.count) {
        const char *name = disk->now.entries[(*cursor)++].name;
        if (is_in_directory(name, directory)) {
            *ret_name = name;
            return true;
        }
    }
    return false;
}

/* ---- faults ---- */

uint64_t disk_latency_us(struct disk *disk) {
    uint32_t jitter_us = disk->dials->jitter_us;
    return disk->dials->latency_us + (jitter_us == 0 ? 0 : prng_between(&disk->prng, 0, jitter_us));
}

static void close_all(struct disk *disk) {
    for (uint32_t i = 0; i < disk->handles_count; i++) {
        if (disk->handles[i] != 0) {
            disk_release(disk, disk->handles[i] - 1);
            disk->handles[i] = 0;
        }
    }
    disk->generation++;
}

static void unbind_all(struct disk *disk, struct names *names) {
    while (names->count > 0) {
        unbind(disk, names, names->entries[names->count - 1].name);
    }
}

enum err disk_crash(struct disk *disk) {
    disk->counters.crashes_count++;
    close_all(disk);
    while (disk->entry_changes_count > 0) {
        /* Out of memory is one more way to lose an unsynced change. */
        if (prng_chance_ppm(&disk->prng, disk->dials->entry_lost_ppm) || make_durable(disk, 0) != ERR_OK) {
            forget_entry_change(disk, 0);
        }
    }
    unbind_all(disk, &disk->now);
    disk->used_size = 0;
    for (uint32_t i = 0; i < disk->inodes_count; i++) {
        struct file *file = &disk->inodes[i].file;
        file_crash(file, &disk->prng, disk->dials->write_lost_ppm, disk->dials->write_torn_ppm);
        disk->used_size += file->size;
    }
    for (uint32_t i = 0; i < disk->durable.count; i++) {
        const struct names_entry *entry = &disk->durable.entries[i];
        if (bind(disk, &disk->now, entry->name, entry->inode) != ERR_OK) {
            return ERR_MEMORY;
        }
    }
    return ERR_OK;
}

void disk_wipe(struct disk *disk) {
    close_all(disk);
    while (disk->entry_changes_count > 0) {
        forget_entry_change(disk, 0);
    }
    unbind_all(disk, &disk->now);
    unbind_all(disk, &disk->durable);
    ASSERT(disk->used_size == 0);
}

size_t disk_rot(struct disk *disk, uint32_t sector_ppm) {
    size_t flips_count = 0;
    for (uint32_t i = 0; i < disk->inodes_count; i++) {
        flips_count += file_rot(&disk->inodes[i].file, &disk->prng, sector_ppm);
    }
    disk->counters.flips_count += flips_count;
    return flips_count;
}

void disk_fail_after(struct disk *disk, uint64_t count, enum err err) {
    disk->fail_at = count == 0 ? 0 : disk->counters.changes_count + count;
    disk->fail_err = err;
}
