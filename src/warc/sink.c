#include "warc/sink.h"

#include <errno.h>
#include <unistd.h>

static enum err buf_append(struct sink *sink, struct bytes bytes, struct err_detail *detail) {
    struct buf *buf = ((struct sink_buf *)sink)->buf;
    enum err err = buf_put(buf, bytes);
    return err == ERR_OK ? ERR_OK : err_set_at(detail, err, buf->size, "%s", err_text(err));
}

void sink_buf_init(struct sink_buf *into, struct buf *buf) {
    *into = (struct sink_buf){.sink = {.append = buf_append}, .buf = buf};
}

static enum err file_append(struct sink *sink, struct bytes bytes, struct err_detail *detail) {
    int descriptor = ((struct sink_file *)sink)->descriptor;
    while (bytes.size > 0) {
        ssize_t written = write(descriptor, bytes.data, bytes.size);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return err_set(detail, err_from_errno(errno), "cannot write: %s", strerror(errno));
        }
        bytes = bytes_skip(bytes, (size_t)written);
    }
    return ERR_OK;
}

void sink_file_init(struct sink_file *file, int descriptor) {
    *file = (struct sink_file){.sink = {.append = file_append}, .descriptor = descriptor};
}
