#include "base/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/uninitialized.h"

enum { PATH_SIZE_MAX = 4096 + 256, READ_SIZE = 64 << 10, DIRECTORY_MODE = 0700 };

enum err whole_file_fail(const char *path, struct err_detail *detail) {
    int number = errno;
    return err_set(detail, err_from_errno(number), "%.180s: %s", path, strerror(number));
}

enum err whole_file_read(const char *path, struct buf *out, struct err_detail *detail) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return whole_file_fail(path, detail);
    }
    UNINITIALIZED uint8_t part[READ_SIZE];
    ssize_t got = 1;
    enum err err = ERR_OK;
    while (err == ERR_OK && got > 0) {
        got = read(fd, part, sizeof part);
        err = got < 0   ? whole_file_fail(path, detail)
              : got > 0 ? buf_put(out, bytes_of(part, (size_t)got))
                        : ERR_OK;
    }
    close(fd);
    return err == ERR_LIMIT ? err_set(detail, ERR_LIMIT, "%.180s is too long", path) : err;
}

enum err whole_file_read_at(int fd, uint64_t offset, void *out, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t got = pread(fd, (uint8_t *)out + done, size - done, (off_t)(offset + done));
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return got == 0 ? ERR_TRUNCATED : err_from_errno(errno);
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return ERR_OK;
}

bool whole_file_write_all(int fd, struct bytes bytes) {
    while (bytes.size > 0) {
        ssize_t count = write(fd, bytes.data, bytes.size);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return false;
        }
        bytes = bytes_skip(bytes, (size_t)count);
    }
    return true;
}

/* A name is durable when its directory is. */
static enum err sync_parent(const char *path, struct err_detail *detail) {
    char parent[PATH_SIZE_MAX];
    snprintf(parent, sizeof parent, "%s", path);
    char *slash = strrchr(parent, '/');
    if (slash == NULL) {
        snprintf(parent, sizeof parent, ".");
    } else {
        slash[slash == parent] = '\0'; /* "/" stays */
    }
    int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum err err = fd >= 0 && fsync(fd) == 0 ? ERR_OK : whole_file_fail(parent, detail);
    if (fd >= 0) {
        close(fd);
    }
    return err;
}

bool whole_file_is_special(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

static enum err write_special(const char *path, struct bytes bytes, struct err_detail *detail) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    enum err err = fd >= 0 && whole_file_write_all(fd, bytes) ? ERR_OK : whole_file_fail(path, detail);
    if (fd >= 0) {
        close(fd);
    }
    return err;
}

enum err whole_file_replace(const char *path, struct bytes bytes, mode_t mode, struct err_detail *detail) {
    char part[PATH_SIZE_MAX];
    if (whole_file_is_special(path)) {
        return write_special(path, bytes, detail);
    }
    if ((size_t)snprintf(part, sizeof part, "%s.part", path) >= sizeof part) {
        return err_set(detail, ERR_LIMIT, "the path is too long: %.180s", path);
    }
    (void)unlink(part); /* of a crash; what is there may have another mode, or be a link */
    int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) {
        return whole_file_fail(part, detail);
    }
    bool is_written = whole_file_write_all(fd, bytes) && fsync(fd) == 0;
    enum err err = is_written ? ERR_OK : whole_file_fail(part, detail);
    close(fd);
    if (err == ERR_OK && rename(part, path) != 0) {
        err = whole_file_fail(path, detail);
    }
    if (err != ERR_OK) {
        unlink(part);
        return err;
    }
    return sync_parent(path, detail);
}

/* What a call did to a name, or found done already, made durable. */
static enum err settle_name(const char *path, int result, struct err_detail *detail) {
    enum err err = result == 0 ? ERR_OK : whole_file_fail(path, detail);
    if (err == ERR_NOT_FOUND) {
        enum err synced = sync_parent(path, NULL);
        (void)synced; /* its directory may be missing, too */
    }
    return err == ERR_OK ? sync_parent(path, detail) : err;
}

enum err whole_file_remove(const char *path, struct err_detail *detail) {
    return settle_name(path, unlink(path), detail);
}

enum err whole_file_rename(const char *path, const char *new_path, struct err_detail *detail) {
    return settle_name(path, rename(path, new_path), detail);
}

enum err whole_file_make_directory(const char *path, struct err_detail *detail) {
    char whole[PATH_SIZE_MAX];
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/') {
        size--;
    }
    if ((size_t)snprintf(whole, sizeof whole, "%.*s", (int)size, path) >= sizeof whole) {
        return err_set(detail, ERR_LIMIT, "the path is too long: %.180s", path);
    }
    if (mkdir(whole, DIRECTORY_MODE) == 0) {
        return sync_parent(whole, detail);
    }
    if (errno != EEXIST) {
        return whole_file_fail(whole, detail);
    }
    enum err err = sync_parent(whole, NULL); /* whoever made it may have been killed before it did so */
    (void)err;                               /* a parent that we may not read was there long before */
    return ERR_OK;
}
