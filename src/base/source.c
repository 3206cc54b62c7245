#include "base/source.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static enum err memory_read(struct source *source, void *out, size_t size, size_t *ret_size,
                            struct err_detail *detail) {
    (void)detail;
    struct source_memory *memory = (struct source_memory *)source;
    struct bytes rest = bytes_skip(memory->bytes, memory->offset);
    size_t taken = size < rest.size ? size : rest.size;
    if (taken > 0) {
        memcpy(out, rest.data, taken);
    }
    memory->offset += taken;
    *ret_size = taken;
    return ERR_OK;
}

static enum err memory_seek(struct source *source, uint64_t offset, struct err_detail *detail) {
    (void)detail;
    struct source_memory *memory = (struct source_memory *)source;
    memory->offset = offset < memory->bytes.size ? (size_t)offset : memory->bytes.size;
    return ERR_OK;
}

void source_memory_init(struct source_memory *memory, struct bytes bytes) {
    *memory = (struct source_memory){.source = {.read = memory_read, .seek = memory_seek}, .bytes = bytes};
}

static enum err file_failed(const struct source_file *file, int number, struct err_detail *detail) {
    return err_set_at(detail, err_from_errno(number), file->offset, "cannot read: %s", strerror(number));
}

/* With positions if there are any: the descriptor's own is not used then, so several sources may share it. */
static enum err file_read(struct source *source, void *out, size_t size, size_t *ret_size,
                          struct err_detail *detail) {
    struct source_file *file = (struct source_file *)source;
    ssize_t got;
    do {
        got = source_can_seek(source) ? pread(file->descriptor, out, size, (off_t)file->offset)
                                      : read(file->descriptor, out, size);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        return file_failed(file, errno, detail);
    }
    file->offset += (uint64_t)got;
    *ret_size = (size_t)got;
    return ERR_OK;
}

static enum err file_seek(struct source *source, uint64_t offset, struct err_detail *detail) {
    struct source_file *file = (struct source_file *)source;
    if (offset > INT64_MAX) {
        return err_set_at(detail, ERR_LIMIT, file->offset, "no file is that long");
    }
    file->offset = offset;
    return ERR_OK;
}

void source_file_init(struct source_file *file, int descriptor) {
    off_t position = lseek(descriptor, 0, SEEK_CUR);
    bool can_seek = position >= 0;
    *file = (struct source_file){
        .source = {.read = file_read, .seek = can_seek ? file_seek : NULL},
        .descriptor = descriptor,
        .offset = can_seek ? (uint64_t)position : 0,
    };
}

enum err source_file_open(struct source_file *file, const char *path, struct err_detail *detail) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        return err_set(detail, err_from_errno(errno), "cannot open %s: %s", path, strerror(errno));
    }
    source_file_init(file, descriptor);
    file->is_owned = true;
    return ERR_OK;
}

void source_file_done(struct source_file *file) {
    if (file->is_owned) {
        close(file->descriptor);
    }
    file->descriptor = -1;
    file->is_owned = false;
}

enum err source_file_size(const struct source_file *file, uint64_t *ret_size, struct err_detail *detail) {
    struct stat status;
    if (fstat(file->descriptor, &status) != 0) {
        return file_failed(file, errno, detail);
    }
    *ret_size = (uint64_t)status.st_size;
    return ERR_OK;
}
