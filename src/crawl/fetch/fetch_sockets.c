/*
 * fetch_sockets - libcurl's sockets and its timer on the loop.
 *
 * All sockets are in one epoll set of their own, which the loop watches as one handle: libuv would take a
 * socket out of its set and put it back for every change of mind, and libcurl changes its mind several times
 * a transfer. A socket stays in the set, watched for reading, while its connection is kept idle. Whatever
 * happens on it then, the end of the connection or bytes that nobody asked for, makes it unfit for another
 * request, so it is shut down; libcurl finds it dead and takes a new one.
 */
#include "crawl/fetch/fetch_state.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 256,
    ROUNDS_MAX = 16,        /* of new transfers, before others on the loop get their turn */
    ITEMS_COUNT_MIN = 1024, /* grows by doubling */
    DRAIN_SIZE = 4096,
    DRAIN_COUNT_MAX = 16,
};

/* NULL if there is no memory. */
static struct fetch_socket *item_of(struct fetch_sockets *sockets, int fd) {
    size_t index = (size_t)fd;
    if (index >= sockets->items_count) {
        size_t count = sockets->items_count == 0 ? ITEMS_COUNT_MIN : sockets->items_count;
        while (count <= index) {
            count *= 2;
        }
        struct fetch_socket *items = reallocarray(sockets->items, count, sizeof *items);
        if (items == NULL) {
            return NULL;
        }
        memset(items + sockets->items_count, 0, (count - sockets->items_count) * sizeof *items);
        sockets->items = items;
        sockets->items_count = count;
    }
    return &sockets->items[index];
}

static int watch(struct fetch_sockets *sockets, int fd, struct fetch_socket *item, uint32_t events) {
    if (item->watched == events) {
        return 0;
    }
    struct epoll_event event = {.events = events, .data.fd = fd};
    int operation = item->watched == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    int result = epoll_ctl(sockets->epoll_fd, operation, fd, &event);
    item->watched = result == 0 ? events : 0;
    return result;
}

static int on_wish(CURL *easy, curl_socket_t fd, int what, void *context, void *socket_context) {
    struct fetch_sockets *sockets = context;
    struct fetch_socket *item = item_of(sockets, fd);
    (void)easy;
    (void)socket_context;
    if (item == NULL) {
        return -1;
    }
    item->is_wanted = what != CURL_POLL_REMOVE;
    uint32_t events = 0;
    if (what == CURL_POLL_REMOVE) {
        events = item->is_own ? EPOLLIN : 0;
    } else {
        events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
    }
    return watch(sockets, fd, item, events);
}

/* Nobody waits for it, and it has something to say. */
static void end_idle(struct fetch_sockets *sockets, int fd, struct fetch_socket *item) {
    uint8_t waste[DRAIN_SIZE];
    ssize_t got = recv(fd, waste, sizeof waste, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    for (unsigned i = 0; got > 0 && i < DRAIN_COUNT_MAX; i++) { /* libcurl takes a readable one for alive */
        got = recv(fd, waste, sizeof waste, MSG_DONTWAIT);
    }
    shutdown(fd, SHUT_RDWR);
    watch(sockets, fd, item, 0);
}

static void dispatch(struct fetch_sockets *sockets, const struct epoll_event *event) {
    int fd = event->data.fd;
    struct fetch_socket *item = item_of(sockets, fd);
    ASSERT(item != NULL);
    if (item->watched == 0) {
        return; /* closed by an event before this one */
    }
    if (!item->is_wanted) {
        end_idle(sockets, fd, item);
        return;
    }
    int mask = (event->events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
               (event->events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
               (event->events & EPOLLERR ? CURL_CSELECT_ERR : 0);
    int running;
    curl_multi_socket_action(sockets->multi, fd, mask, &running);
}

static void sockets_on_timer(uv_timer_t *timer);

/* New transfers are started at once, not in the next turn of the loop: they only need to send. */
static void sockets_run(struct fetch_sockets *sockets) {
    sockets->ready(sockets->context);
    for (unsigned round = 0; sockets->is_due && round < ROUNDS_MAX; round++) {
        int running;
        sockets->is_due = false;
        curl_multi_socket_action(sockets->multi, CURL_SOCKET_TIMEOUT, 0, &running);
        sockets->ready(sockets->context);
    }
    if (sockets->is_due) {
        uv_timer_start(&sockets->timer, sockets_on_timer, 0, 0);
    }
}

static void sockets_on_timer(uv_timer_t *timer) {
    struct fetch_sockets *sockets = timer->data;
    sockets->is_running = true;
    sockets->is_due = true;
    sockets_run(sockets);
    sockets->is_running = false;
}

static void on_poll(uv_poll_t *poll, int status, int events) {
    struct fetch_sockets *sockets = poll->data;
    struct epoll_event list[EVENTS_MAX];
    (void)status;
    (void)events;
    sockets->is_running = true;
    int count = epoll_wait(sockets->epoll_fd, list, EVENTS_MAX, 0);
    for (int i = 0; i < count; i++) {
        dispatch(sockets, &list[i]);
    }
    sockets_run(sockets);
    sockets->is_running = false;
}

/* Inside sockets_run() a timer of 0 is only noted: sockets_run() looks for it before it returns. */
static int on_timer_wish(CURLM *multi, long wait_ms, void *context) {
    struct fetch_sockets *sockets = context;
    (void)multi;
    if (wait_ms < 0) {
        sockets->is_due = false;
        uv_timer_stop(&sockets->timer);
    } else if (wait_ms > 0 || !sockets->is_running) {
        uv_timer_start(&sockets->timer, sockets_on_timer, (uint64_t)wait_ms, 0);
    } else {
        sockets->is_due = true;
    }
    return 0;
}

enum err fetch_sockets_init(struct fetch_sockets *sockets, uv_loop_t *loop, CURLM *multi,
                            fetch_sockets_ready *ready, void *context, struct err_detail *detail) {
    *sockets = (struct fetch_sockets){.loop = loop,
                                      .multi = multi,
                                      .ready = ready,
                                      .context = context,
                                      .epoll_fd = epoll_create1(EPOLL_CLOEXEC)};
    if (sockets->epoll_fd < 0) {
        return err_set(detail, err_from_errno(errno), "epoll: %s", strerror(errno));
    }
    int result = uv_poll_init(loop, &sockets->poll, sockets->epoll_fd);
    if (result != 0) {
        close(sockets->epoll_fd);
        return err_set(detail, ERR_SYSTEM, "epoll on the loop: %s", uv_strerror(result));
    }
    uv_timer_init(loop, &sockets->timer);
    sockets->poll.data = sockets->timer.data = sockets;
    uv_unref((uv_handle_t *)&sockets->poll); /* kept connections do not keep the loop running */
    uv_unref((uv_handle_t *)&sockets->timer);
    uv_poll_start(&sockets->poll, UV_READABLE, on_poll);
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_wish);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, sockets);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer_wish);
    curl_multi_setopt(multi, CURLMOPT_TIMERDATA, sockets);
    return ERR_OK;
}

void fetch_sockets_close(struct fetch_sockets *sockets, uv_close_cb on_closed) {
    uv_close((uv_handle_t *)&sockets->poll, on_closed);
    uv_close((uv_handle_t *)&sockets->timer, on_closed);
    close(sockets->epoll_fd);
}

void fetch_sockets_done(struct fetch_sockets *sockets) {
    free(sockets->items);
    sockets->items = NULL;
}

int fetch_sockets_open(struct fetch_sockets *sockets, const struct curl_sockaddr *address) {
    int fd = socket(address->family, address->socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address->protocol);
    if (fd < 0) {
        return -1;
    }
    struct fetch_socket *item = item_of(sockets, fd);
    if (item == NULL) {
        close(fd);
        errno = ENOMEM;
        return -1;
    }
    *item = (struct fetch_socket){.is_own = true};
    sockets->open_count++;
    return fd;
}

int fetch_sockets_close_one(struct fetch_sockets *sockets, int fd) {
    struct fetch_socket *item = item_of(sockets, fd);
    ASSERT(item != NULL && item->is_own);
    *item = (struct fetch_socket){0};
    sockets->open_count--;
    return close(fd);
}
