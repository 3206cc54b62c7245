#include "store/disk/vfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { PATH_SIZE_MAX = 4096, FILE_MODE = 0644, DIRECTORY_MODE = 0700 };

static int root_of(const struct vfs *vfs) {
    return ((const struct vfs_posix *)vfs)->root_fd;
}

static enum err failed(void) {
    return err_from_errno(errno);
}

static enum err posix_open(struct vfs *vfs, const char *path, unsigned flags, int64_t *ret_handle) {
    int mode = flags & VFS_WRITE ? O_RDWR : O_RDONLY;
    mode |= flags & VFS_CREATE ? O_CREAT : 0;
    mode |= flags & VFS_EXCLUSIVE ? O_EXCL : 0;
    int fd = openat(root_of(vfs), path, mode | O_CLOEXEC, FILE_MODE);
    if (fd < 0) {
        return failed();
    }
    *ret_handle = fd;
    return ERR_OK;
}

static void posix_close(struct vfs *vfs, int64_t handle) {
    (void)vfs;
    close((int)handle); /* nothing is lost here that a sync had promised */
}

static enum err posix_read(struct vfs *vfs, int64_t handle, uint64_t offset, void *out, size_t size,
                           size_t *ret_size) {
    (void)vfs;
    size_t done = 0;
    while (done < size) {
        ssize_t got = pread((int)handle, (uint8_t *)out + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return failed();
        }
        if (got == 0) {
            break;
        }
        done += (size_t)got;
    }
    *ret_size = done;
    return ERR_OK;
}

static enum err posix_write(struct vfs *vfs, int64_t handle, uint64_t offset, struct bytes bytes) {
    (void)vfs;
    while (bytes.size > 0) {
        ssize_t written = pwrite((int)handle, bytes.data, bytes.size, (off_t)offset);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return failed();
        }
        bytes = bytes_skip(bytes, (size_t)written);
        offset += (uint64_t)written;
    }
    return ERR_OK;
}

static enum err posix_truncate(struct vfs *vfs, int64_t handle, uint64_t size) {
    (void)vfs;
    return ftruncate((int)handle, (off_t)size) == 0 ? ERR_OK : failed();
}

static enum err posix_sync(struct vfs *vfs, int64_t handle) {
    (void)vfs;
    return fdatasync((int)handle) == 0 ? ERR_OK : failed();
}

static enum err posix_size(struct vfs *vfs, int64_t handle, uint64_t *ret_size) {
    (void)vfs;
    struct stat status;
    if (fstat((int)handle, &status) != 0) {
        return failed();
    }
    *ret_size = (uint64_t)status.st_size;
    return ERR_OK;
}

static enum err posix_rename(struct vfs *vfs, const char *old_path, const char *new_path) {
    return renameat(root_of(vfs), old_path, root_of(vfs), new_path) == 0 ? ERR_OK : failed();
}

static enum err posix_unlink(struct vfs *vfs, const char *path) {
    return unlinkat(root_of(vfs), path, 0) == 0 ? ERR_OK : failed();
}

/* Its name is durable when the directory above it is. */
static enum err sync_above(int root_fd, const char *path) {
    char above[PATH_SIZE_MAX + 4];
    snprintf(above, sizeof above, "%s/..", path);
    int fd = openat(root_fd, above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum err err = fd >= 0 && fsync(fd) == 0 ? ERR_OK : failed();
    if (fd >= 0) {
        close(fd);
    }
    return err;
}

static enum err make_one(int root_fd, const char *path) {
    if (mkdirat(root_fd, path, DIRECTORY_MODE) == 0) {
        return sync_above(root_fd, path);
    }
    struct stat status;
    if (errno != EEXIST || fstatat(root_fd, path, &status, 0) != 0) {
        return failed();
    }
    return S_ISDIR(status.st_mode) ? ERR_OK : err_from_errno(ENOTDIR);
}

static enum err posix_make_directory(struct vfs *vfs, const char *path) {
    char part[PATH_SIZE_MAX];
    for (size_t i = 0; path[i] != '\0'; i++) {
        if (i + 1 >= sizeof part) {
            return ERR_LIMIT;
        }
        part[i] = path[i];
        part[i + 1] = '\0';
        if (path[i + 1] == '/' || path[i + 1] == '\0') {
            enum err err = make_one(root_of(vfs), part);
            if (err != ERR_OK) {
                return err;
            }
        }
    }
    return ERR_OK;
}

static int open_directory(const struct vfs *vfs, const char *path) {
    return openat(root_of(vfs), path[0] == '\0' ? "." : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static enum err posix_sync_directory(struct vfs *vfs, const char *path) {
    int fd = open_directory(vfs, path);
    if (fd < 0) {
        return failed();
    }
    enum err err = fsync(fd) == 0 ? ERR_OK : failed();
    close(fd);
    return err;
}

static enum err posix_list(struct vfs *vfs, const char *path, vfs_visit *visit, void *context) {
    int fd = open_directory(vfs, path);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    if (directory == NULL) {
        enum err err = failed();
        if (fd >= 0) {
            close(fd);
        }
        return err;
    }
    errno = 0;
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            visit(context, entry->d_name);
        }
        errno = 0;
    }
    enum err err = err_from_errno(errno);
    closedir(directory);
    return err;
}

static enum err posix_lock_opened(int fd, int kind, int64_t *ret_handle) {
    if (fd < 0) {
        return failed();
    }
    if (flock(fd, kind | LOCK_NB) != 0) {
        enum err err = failed();
        close(fd);
        return err;
    }
    *ret_handle = fd;
    return ERR_OK;
}

static enum err posix_lock(struct vfs *vfs, const char *path, int64_t *ret_handle) {
    int fd = openat(root_of(vfs), path, O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
    return posix_lock_opened(fd, LOCK_EX, ret_handle);
}

static enum err posix_lock_to_read(struct vfs *vfs, const char *path, int64_t *ret_handle) {
    return posix_lock_opened(openat(root_of(vfs), path, O_RDONLY | O_CLOEXEC), LOCK_SH, ret_handle);
}

static enum err posix_free_size(struct vfs *vfs, const char *path, uint64_t *ret_size) {
    int fd = open_directory(vfs, path);
    struct statvfs status;
    if (fd < 0) {
        return failed();
    }
    enum err err = fstatvfs(fd, &status) == 0 ? ERR_OK : failed();
    close(fd);
    if (err == ERR_OK) {
        *ret_size = (uint64_t)status.f_bavail * status.f_frsize;
    }
    return err;
}

static const struct vfs_table posix_table = {
    .open = posix_open,
    .close = posix_close,
    .read = posix_read,
    .write = posix_write,
    .truncate = posix_truncate,
    .sync = posix_sync,
    .size = posix_size,
    .rename = posix_rename,
    .unlink = posix_unlink,
    .make_directory = posix_make_directory,
    .sync_directory = posix_sync_directory,
    .list = posix_list,
    .lock = posix_lock,
    .lock_to_read = posix_lock_to_read,
    .free_size = posix_free_size,
};

enum err vfs_posix_init(struct vfs_posix *posix, const char *root, struct err_detail *detail) {
    struct vfs_posix here = {.vfs = {&posix_table}, .root_fd = AT_FDCWD};
    enum err err = posix_make_directory(&here.vfs, root);
    int fd = err == ERR_OK ? open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd < 0) {
        err = err == ERR_OK ? failed() : err;
        return err_set(detail, err, "%s: %s", root, err_text(err));
    }
    *posix = (struct vfs_posix){.vfs = {&posix_table}, .root_fd = fd};
    return ERR_OK;
}

void vfs_posix_done(struct vfs_posix *posix) {
    close(posix->root_fd);
    posix->root_fd = -1;
}
