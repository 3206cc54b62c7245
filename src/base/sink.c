#include "base/sink.h"

#include <errno.h>
#include <unistd.h>

#include "base/whole_file.h"

static enum err buf_append(struct sink *sink, struct bytes bytes, struct err_detail *detail) {
    struct buf *buf = ((struct sink_buf *)sink)->buf;
    enum err err = buf_put(buf, bytes);
    return err == ERR_OK ? ERR_OK : err_set_at(detail, err, buf->size, "%s", err_text(err));
}

static enum err buf_rewrite(struct sink *sink, uint64_t offset, struct bytes bytes,
                            struct err_detail *detail) {
    (void)detail;
    struct sink_buf *into = (struct sink_buf *)sink;
    size_t size = into->buf->size - into->start;
    ASSERT(offset <= size && bytes.size <= size - offset);
    memcpy(into->buf->data + into->start + offset, bytes.data, bytes.size);
    return ERR_OK;
}

void sink_buf_init(struct sink_buf *into, struct buf *buf) {
    *into = (struct sink_buf){
        .sink = {.append = buf_append, .rewrite = buf_rewrite}, .buf = buf, .start = buf->size};
}

static enum err file_append(struct sink *sink, struct bytes bytes, struct err_detail *detail) {
    bool is_written = whole_file_write_all(((struct sink_file *)sink)->descriptor, bytes);
    return is_written ? ERR_OK : err_set(detail, err_from_errno(errno), "cannot write: %s", strerror(errno));
}

static enum err file_rewrite(struct sink *sink, uint64_t offset, struct bytes bytes,
                             struct err_detail *detail) {
    struct sink_file *file = (struct sink_file *)sink;
    while (bytes.size > 0) {
        ssize_t written = pwrite(file->descriptor, bytes.data, bytes.size, (off_t)(file->start + offset));
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return err_set(detail, err_from_errno(errno), "cannot write: %s", strerror(errno));
        }
        offset += (uint64_t)written;
        bytes = bytes_skip(bytes, (size_t)written);
    }
    return ERR_OK;
}

void sink_file_init(struct sink_file *file, int descriptor) {
    off_t position = lseek(descriptor, 0, SEEK_CUR);
    bool can_rewrite = position >= 0;
    *file = (struct sink_file){
        .sink = {.append = file_append, .rewrite = can_rewrite ? file_rewrite : NULL},
        .descriptor = descriptor,
        .start = can_rewrite ? (uint64_t)position : 0,
    };
}
