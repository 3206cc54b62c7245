/*
 * vfs - the only way of the store to the disk: a small table of functions.
 *
 * vfs_posix is the real one. The simulator has one over its virtual disk, tests have one that fails the n-th
 * call. The promises are those of POSIX: written bytes survive a crash after vfs_sync() of the file, names
 * after vfs_sync_directory() of their directory, a rename is atomic.
 *
 * Paths are relative to the root that the vfs was opened with, with '/' between parts:
 * "volumes/0/00000001.warc.zst". Any thread may call; two threads may read one file at once, one at a time
 * may write it.
 */
#ifndef MNEMON_STORE_DISK_VFS_H
#define MNEMON_STORE_DISK_VFS_H

#include "base/bytes.h"
#include "base/err.h"

struct vfs;

struct vfs_file {
    struct vfs *vfs;
    int64_t handle; /* what the implementation makes of it */
};

enum vfs_flag {
    VFS_WRITE = 1,     /* else for reading only */
    VFS_CREATE = 2,    /* where it is not there; with VFS_WRITE */
    VFS_EXCLUSIVE = 4, /* ERR_EXISTS if it is; with VFS_CREATE */
};

/* Told every name of a directory, without its path, in no order. */
typedef void vfs_visit(void *context, const char *name);

/* Errors are those of err_from_errno(). A call that fails may have done part of its work, as write(2) may. */
struct vfs_table {
    enum err (*open)(struct vfs *vfs, const char *path, unsigned flags, int64_t *ret_handle);
    void (*close)(struct vfs *vfs, int64_t handle);
    enum err (*read)(struct vfs *vfs, int64_t handle, uint64_t offset, void *out, size_t size,
                     size_t *ret_size);
    enum err (*write)(struct vfs *vfs, int64_t handle, uint64_t offset, struct bytes bytes);
    enum err (*truncate)(struct vfs *vfs, int64_t handle, uint64_t size);
    enum err (*sync)(struct vfs *vfs, int64_t handle);
    enum err (*size)(struct vfs *vfs, int64_t handle, uint64_t *ret_size);
    enum err (*rename)(struct vfs *vfs, const char *old_path, const char *new_path);
    enum err (*unlink)(struct vfs *vfs, const char *path);
    enum err (*make_directory)(struct vfs *vfs, const char *path);
    enum err (*sync_directory)(struct vfs *vfs, const char *path);
    enum err (*list)(struct vfs *vfs, const char *path, vfs_visit *visit, void *context);
    enum err (*lock)(struct vfs *vfs, const char *path, int64_t *ret_handle);
    enum err (*lock_to_read)(struct vfs *vfs, const char *path, int64_t *ret_handle); /* may be NULL */
    enum err (*free_size)(struct vfs *vfs, const char *path, uint64_t *ret_size);
};

struct vfs {
    const struct vfs_table *table;
};

static inline enum err vfs_open(struct vfs *vfs, const char *path, unsigned flags,
                                struct vfs_file *ret_file) {
    struct vfs_file file = {.vfs = vfs};
    enum err err = vfs->table->open(vfs, path, flags, &file.handle);
    if (err == ERR_OK) {
        *ret_file = file;
    }
    return err;
}

static inline void vfs_close(struct vfs_file *file) {
    file->vfs->table->close(file->vfs, file->handle);
    file->vfs = NULL;
}

/* *ret_size is less than size only at the end of the file. */
static inline enum err vfs_read(const struct vfs_file *file, uint64_t offset, void *out, size_t size,
                                size_t *ret_size) {
    return file->vfs->table->read(file->vfs, file->handle, offset, out, size, ret_size);
}

/* All of it or an error. */
static inline enum err vfs_write(const struct vfs_file *file, uint64_t offset, struct bytes bytes) {
    return file->vfs->table->write(file->vfs, file->handle, offset, bytes);
}

static inline enum err vfs_truncate(const struct vfs_file *file, uint64_t size) {
    return file->vfs->table->truncate(file->vfs, file->handle, size);
}

static inline enum err vfs_sync(const struct vfs_file *file) {
    return file->vfs->table->sync(file->vfs, file->handle);
}

static inline enum err vfs_size(const struct vfs_file *file, uint64_t *ret_size) {
    return file->vfs->table->size(file->vfs, file->handle, ret_size);
}

static inline enum err vfs_rename(struct vfs *vfs, const char *old_path, const char *new_path) {
    return vfs->table->rename(vfs, old_path, new_path);
}

static inline enum err vfs_unlink(struct vfs *vfs, const char *path) {
    return vfs->table->unlink(vfs, path);
}

/* Also those above it; ERR_OK if it is there already. */
static inline enum err vfs_make_directory(struct vfs *vfs, const char *path) {
    return vfs->table->make_directory(vfs, path);
}

static inline enum err vfs_sync_directory(struct vfs *vfs, const char *path) {
    return vfs->table->sync_directory(vfs, path);
}

static inline enum err vfs_list(struct vfs *vfs, const char *path, vfs_visit *visit, void *context) {
    return vfs->table->list(vfs, path, visit, context);
}

/* Held until the file is closed or the process ends. ERR_BUSY if another process holds it. */
static inline enum err vfs_lock(struct vfs *vfs, const char *path, struct vfs_file *ret_file) {
    struct vfs_file file = {.vfs = vfs};
    enum err err = vfs->table->lock(vfs, path, &file.handle);
    if (err == ERR_OK) {
        *ret_file = file;
    }
    return err;
}

/*
 * The same where nothing may be written: others may hold it to read, too, and nobody to write. ERR_NOT_FOUND
 * if there is no such file: it is not made.
 */
static inline enum err vfs_lock_to_read(struct vfs *vfs, const char *path, struct vfs_file *ret_file) {
    struct vfs_file file = {.vfs = vfs};
    enum err err = vfs->table->lock_to_read != NULL ? vfs->table->lock_to_read(vfs, path, &file.handle)
                                                    : ERR_UNSUPPORTED;
    if (err == ERR_OK) {
        *ret_file = file;
    }
    return err;
}

/* What the user may still write there, in bytes. */
static inline enum err vfs_free_size(struct vfs *vfs, const char *path, uint64_t *ret_size) {
    return vfs->table->free_size(vfs, path, ret_size);
}

/* Real files under a root directory, which must outlive it and is created if it is missing. */
struct vfs_posix {
    struct vfs vfs; /* first: the functions find the rest from here */
    int root_fd;
};

enum err vfs_posix_init(struct vfs_posix *posix, const char *root, struct err_detail *detail) MUST_CHECK;
void vfs_posix_done(struct vfs_posix *posix);

#endif
