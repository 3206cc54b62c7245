#include "run/nudge.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void on_readable(uv_poll_t *poll, int status, int events) {
    struct nudge *nudge = poll->data;
    (void)status;
    (void)events;
    eventfd_t count;
    (void)eventfd_read(nudge->fd, &count); /* where there is nothing to read, the look is for nothing */
    atomic_store(&nudge->is_sent, false);  /* before the look: what comes during it nudges again */
    nudge->woken(nudge->context);
}

enum err nudge_init(struct nudge *nudge, uv_loop_t *loop, void (*woken)(void *context), void *context) {
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    *nudge = (struct nudge){.fd = fd, .woken = woken, .context = context};
    if (fd < 0) {
        return err_from_errno(errno);
    }
    if (uv_poll_init(loop, &nudge->poll, fd) != 0) {
        close(fd);
        return ERR_SYSTEM;
    }
    nudge->poll.data = nudge;
    uv_poll_start(&nudge->poll, UV_READABLE, on_readable);
    return ERR_OK;
}

static void nudge_on_closed(uv_handle_t *handle) {
    const struct nudge *nudge = handle->data;
    close(nudge->fd);
}

void nudge_close(struct nudge *nudge) {
    uv_close((uv_handle_t *)&nudge->poll, nudge_on_closed);
}

void nudge_send(struct nudge *nudge) {
    if (!atomic_exchange(&nudge->is_sent, true)) {
        (void)eventfd_write(nudge->fd, 1); /* it fails only where 2^64 are unread */
    }
}
