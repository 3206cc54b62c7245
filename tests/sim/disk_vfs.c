#include "disk_vfs.h"

#include <stdio.h>

/* The disk, with the lock held; NULL, without it, when the machine has stopped. A change uses up one of those
 * that are left. */
static struct disk *vfs_enter(struct vfs *vfs, bool is_change) {
    struct disk_vfs *disk_vfs = (struct disk_vfs *)vfs;
    pthread_mutex_lock(&disk_vfs->lock);
    if (disk_vfs->changes_left == 0) {
        pthread_mutex_unlock(&disk_vfs->lock);
        return NULL;
    }
    if (is_change && disk_vfs->changes_left != UINT64_MAX) {
        disk_vfs->changes_left--;
    }
    return disk_vfs->disk;
}

static enum err vfs_leave(struct vfs *vfs, enum err err) {
    pthread_mutex_unlock(&((struct disk_vfs *)vfs)->lock);
    return err;
}

static enum err vfs_disk_open(struct vfs *vfs, const char *path, unsigned flags, int64_t *ret_handle) {
    struct disk *disk = vfs_enter(vfs, (flags & VFS_CREATE) != 0);
    if (disk == NULL) {
        return ERR_IO;
    }
    unsigned disk_flags =
        (flags & VFS_CREATE ? DISK_CREATE : 0u) | (flags & VFS_EXCLUSIVE ? DISK_EXCLUSIVE : 0u);
    uint32_t handle;
    enum err err = disk_open(disk, path, disk_flags, &handle);
    if (err == ERR_OK) {
        *ret_handle = handle;
    }
    return vfs_leave(vfs, err);
}

/* The lock alone: for what works on a stopped machine, too. */
static struct disk_vfs *vfs_look(struct vfs *vfs) {
    struct disk_vfs *disk_vfs = (struct disk_vfs *)vfs;
    pthread_mutex_lock(&disk_vfs->lock);
    return disk_vfs;
}

static void vfs_disk_close(struct vfs *vfs, int64_t handle) {
    struct disk_vfs *disk_vfs = vfs_look(vfs);
    if (handle < 0) {
        disk_vfs->is_locked = false;
    } else {
        disk_close(disk_vfs->disk, (uint32_t)handle);
    }
    vfs_leave(vfs, ERR_OK);
}

static enum err vfs_disk_size(struct vfs *vfs, int64_t handle, uint64_t *ret_size) {
    return vfs_leave(vfs, disk_size(vfs_look(vfs)->disk, (uint32_t)handle, ret_size));
}

static enum err vfs_disk_read(struct vfs *vfs, int64_t handle, uint64_t offset, void *out, size_t size,
                              size_t *ret_size) {
    struct disk *disk = vfs_enter(vfs, false);
    return disk == NULL ? ERR_IO
                        : vfs_leave(vfs, disk_read(disk, (uint32_t)handle, offset, out, size, ret_size));
}

static enum err vfs_disk_write(struct vfs *vfs, int64_t handle, uint64_t offset, struct bytes bytes) {
    struct disk *disk = vfs_enter(vfs, true);
    return disk == NULL ? ERR_IO : vfs_leave(vfs, disk_write(disk, (uint32_t)handle, offset, bytes));
}

static enum err vfs_disk_truncate(struct vfs *vfs, int64_t handle, uint64_t size) {
    struct disk *disk = vfs_enter(vfs, true);
    return disk == NULL ? ERR_IO : vfs_leave(vfs, disk_truncate(disk, (uint32_t)handle, size));
}

static enum err vfs_disk_sync(struct vfs *vfs, int64_t handle) {
    struct disk *disk = vfs_enter(vfs, true);
    return disk == NULL ? ERR_IO : vfs_leave(vfs, disk_sync(disk, (uint32_t)handle));
}

static enum err vfs_disk_rename(struct vfs *vfs, const char *old_path, const char *new_path) {
    struct disk *disk = vfs_enter(vfs, true);
    return disk == NULL ? ERR_IO : vfs_leave(vfs, disk_rename(disk, old_path, new_path));
}

static enum err vfs_disk_unlink(struct vfs *vfs, const char *path) {
    struct disk *disk = vfs_enter(vfs, true);
    return disk == NULL ? ERR_IO : vfs_leave(vfs, disk_unlink(disk, path));
}

static enum err vfs_disk_sync_directory(struct vfs *vfs, const char *path) {
    struct disk *disk = vfs_enter(vfs, true);
    return disk == NULL ? ERR_IO : vfs_leave(vfs, disk_sync_directory(disk, path));
}

static enum err vfs_disk_make_directory(struct vfs *vfs, const char *path) {
    (void)vfs;
    (void)path; /* the virtual disk makes them by itself */
    return ERR_OK;
}

/* The names are collected first: the visitor may open and remove files. */
static enum err vfs_disk_list(struct vfs *vfs, const char *path, vfs_visit *visit, void *context) {
    enum { NAMES_MAX = 1024, NAME_SIZE_MAX = 64 };
    char names[NAMES_MAX][NAME_SIZE_MAX];
    uint32_t names_count = 0;
    uint32_t cursor = 0;
    const char *name;
    struct disk_vfs *disk_vfs = vfs_look(vfs);
    while (names_count < NAMES_MAX && disk_list(disk_vfs->disk, path, &cursor, &name)) {
        const char *slash = strrchr(name, '/');
        snprintf(names[names_count++], NAME_SIZE_MAX, "%s", slash == NULL ? name : slash + 1);
    }
    vfs_leave(vfs, ERR_OK);
    for (uint32_t i = 0; i < names_count; i++) {
        visit(context, names[i]);
    }
    return names_count < NAMES_MAX ? ERR_OK : ERR_LIMIT;
}

static enum err vfs_disk_lock(struct vfs *vfs, const char *path, int64_t *ret_handle) {
    (void)path;
    struct disk_vfs *disk_vfs = vfs_look(vfs);
    if (disk_vfs->is_locked) {
        return vfs_leave(vfs, ERR_BUSY);
    }
    disk_vfs->is_locked = true;
    *ret_handle = -1;
    return vfs_leave(vfs, ERR_OK);
}

static enum err vfs_disk_free_size(struct vfs *vfs, const char *path, uint64_t *ret_size) {
    (void)path;
    struct disk_vfs *disk_vfs = vfs_look(vfs);
    uint64_t capacity = disk_vfs->disk->dials->capacity_size;
    uint64_t used = disk_vfs->disk->used_size;
    *ret_size = capacity == 0 ? UINT64_MAX : capacity > used ? capacity - used : 0;
    return vfs_leave(vfs, ERR_OK);
}

static const struct vfs_table table = {
    .open = vfs_disk_open,
    .close = vfs_disk_close,
    .read = vfs_disk_read,
    .write = vfs_disk_write,
    .truncate = vfs_disk_truncate,
    .sync = vfs_disk_sync,
    .size = vfs_disk_size,
    .rename = vfs_disk_rename,
    .unlink = vfs_disk_unlink,
    .make_directory = vfs_disk_make_directory,
    .sync_directory = vfs_disk_sync_directory,
    .list = vfs_disk_list,
    .lock = vfs_disk_lock,
    .free_size = vfs_disk_free_size,
};

void disk_vfs_init(struct disk_vfs *disk_vfs, struct disk *disk) {
    *disk_vfs = (struct disk_vfs){.vfs = {&table}, .disk = disk, .changes_left = UINT64_MAX};
    pthread_mutex_init(&disk_vfs->lock, NULL);
}

void disk_vfs_done(struct disk_vfs *disk_vfs) {
    pthread_mutex_destroy(&disk_vfs->lock);
}

void disk_vfs_stop_after(struct disk_vfs *disk_vfs, uint64_t changes_count) {
    pthread_mutex_lock(&disk_vfs->lock);
    disk_vfs->changes_left = changes_count;
    pthread_mutex_unlock(&disk_vfs->lock);
}

enum err disk_vfs_restart(struct disk_vfs *disk_vfs) {
    pthread_mutex_lock(&disk_vfs->lock);
    disk_vfs->changes_left = UINT64_MAX;
    disk_vfs->is_locked = false;
    return vfs_leave(&disk_vfs->vfs, disk_crash(disk_vfs->disk));
}
