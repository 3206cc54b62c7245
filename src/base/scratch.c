#include "base/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/whole_file.h"

enum { FILE_MODE = 0600, PATH_SIZE_MAX = 4096 };

void scratch_init(struct scratch *scratch, const char *directory, size_t memory_max, uint64_t size_max) {
    *scratch = (struct scratch){.directory = directory, .size_max = size_max, .fd = -1};
    buf_init(&scratch->memory, memory_max);
}

void scratch_set_budget(struct scratch *scratch, struct scratch_budget *budget) {
    ASSERT(scratch->size == 0);
    scratch->budget = budget;
}

/* ---- the budget ---- */

void scratch_budget_init(struct scratch_budget *budget, uint64_t size_max) {
    budget->size_max = size_max;
    atomic_init(&budget->size, 0);
}

void scratch_budget_init_by_disk(struct scratch_budget *budget, const char *directory, uint64_t size_min) {
    struct statvfs disk;
    uint64_t part = 0;
    if (statvfs(directory, &disk) == 0) {
        part = (uint64_t)disk.f_bavail * disk.f_frsize / 4;
    }
    scratch_budget_init(budget, part > size_min ? part : size_min);
}

static enum err scratch_take(struct scratch *scratch, uint64_t size) {
    struct scratch_budget *budget = scratch->budget;
    if (budget == NULL) {
        return ERR_OK;
    }
    uint64_t before = atomic_fetch_add(&budget->size, size);
    if (before + size > budget->size_max) {
        atomic_fetch_sub(&budget->size, size);
        return ERR_BUSY;
    }
    scratch->taken_size += size;
    return ERR_OK;
}

static void scratch_give_back(struct scratch *scratch) {
    if (scratch->budget != NULL) {
        atomic_fetch_sub(&scratch->budget->size, scratch->taken_size);
    }
    scratch->taken_size = 0;
}

/* ---- */

static void unmap(struct scratch *scratch) {
    if (scratch->map != NULL) {
        munmap(scratch->map, scratch->map_size);
        scratch->map = NULL;
        scratch->map_size = 0;
    }
}

void scratch_clear(struct scratch *scratch) {
    unmap(scratch);
    if (scratch->fd >= 0) {
        close(scratch->fd);
        scratch->fd = -1;
    }
    scratch_give_back(scratch);
    if (scratch->memory.capacity > SCRATCH_KEPT_MAX) {
        buf_done(&scratch->memory);
    }
    buf_clear(&scratch->memory);
    scratch->size = 0;
    scratch->err = ERR_OK;
}

void scratch_done(struct scratch *scratch) {
    scratch_clear(scratch);
    buf_done(&scratch->memory);
}

/* For file systems that have no files without a name. */
static int open_and_unlink(const char *directory) {
    char path[PATH_SIZE_MAX];
    int size = snprintf(path, sizeof path, "%s/scratch-XXXXXX", directory);
    if (size >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) {
        unlink(path);
    }
    return fd;
}

static int open_nameless(const char *directory) {
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, FILE_MODE);
    bool is_unknown = fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL);
    return is_unknown ? open_and_unlink(directory) : fd;
}

static enum err write_all(int fd, struct bytes bytes) {
    return whole_file_write_all(fd, bytes) ? ERR_OK : err_from_errno(errno);
}

static enum err move_to_file(struct scratch *scratch) {
    scratch->fd = open_nameless(scratch->directory);
    if (scratch->fd < 0) {
        return err_from_errno(errno);
    }
    enum err err = write_all(scratch->fd, buf_bytes(&scratch->memory));
    buf_done(&scratch->memory);
    return err;
}

enum err scratch_put(struct scratch *scratch, struct bytes bytes) {
    if (scratch->err != ERR_OK) {
        return scratch->err;
    }
    if (bytes.size > scratch->size_max - scratch->size) {
        return scratch->err = ERR_LIMIT;
    }
    enum err err = ERR_OK;
    bool fits = scratch->fd < 0 && bytes.size <= scratch->memory.size_max - scratch->memory.size;
    if (fits) {
        err = buf_put(&scratch->memory, bytes);
    } else {
        err = scratch_take(scratch, bytes.size + (scratch->fd < 0 ? scratch->size : 0));
        err = err == ERR_OK && scratch->fd < 0 ? move_to_file(scratch) : err;
        err = err == ERR_OK ? write_all(scratch->fd, bytes) : err;
    }
    if (err == ERR_OK) {
        scratch->size += bytes.size;
    }
    return scratch->err = err;
}

enum err scratch_bytes(struct scratch *scratch, struct bytes *ret_bytes) {
    if (scratch->err != ERR_OK) {
        return scratch->err;
    }
    if (scratch->fd < 0) {
        *ret_bytes = buf_bytes(&scratch->memory);
        return ERR_OK;
    }
    if (scratch->map_size < scratch->size) {
        unmap(scratch);
        void *map = mmap(NULL, (size_t)scratch->size, PROT_READ, MAP_SHARED, scratch->fd, 0);
        if (map == MAP_FAILED) {
            return err_from_errno(errno);
        }
        scratch->map = map;
        scratch->map_size = (size_t)scratch->size;
    }
    *ret_bytes = bytes_of(scratch->map, scratch->map_size);
    return ERR_OK;
}

enum err scratch_read(const struct scratch *scratch, uint64_t offset, void *out, size_t size) {
    ASSERT(offset <= scratch->size && size <= scratch->size - offset);
    if (scratch->fd < 0) {
        if (size > 0) {
            memcpy(out, scratch->memory.data + offset, size);
        }
        return ERR_OK;
    }
    enum err err = whole_file_read_at(scratch->fd, offset, out, size);
    return err == ERR_TRUNCATED ? ERR_IO : err;
}

static enum err sink_append_scratch(struct sink *sink, struct bytes bytes, struct err_detail *detail) {
    struct scratch *scratch = ((struct scratch_sink *)sink)->scratch;
    enum err err = scratch_put(scratch, bytes);
    return err == ERR_OK ? ERR_OK
                         : err_set_at(detail, err, (size_t)scratch->size, "scratch file: %s", err_text(err));
}

void scratch_sink_init(struct scratch_sink *sink, struct scratch *scratch) {
    *sink = (struct scratch_sink){.sink = {.append = sink_append_scratch}, .scratch = scratch};
}
