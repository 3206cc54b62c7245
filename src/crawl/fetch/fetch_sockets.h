/*
 * fetch_sockets - libcurl's sockets and its timer on the loop.
 *
 * All sockets are in one epoll set of their own, which the loop watches as one handle: libuv would take a
 * socket out of its set and put it back for every change of mind, and libcurl changes its mind several times
 * a transfer. A socket stays in the set, watched for reading, while its connection is kept idle. Whatever
 * happens on it then, the end of the connection or bytes that nobody asked for, makes it unfit for another
 * request, so it is shut down; libcurl finds it dead and takes a new one.
 */
#ifndef MNEMON_CRAWL_FETCH_FETCH_SOCKETS_H
#define MNEMON_CRAWL_FETCH_FETCH_SOCKETS_H

#include <curl/curl.h>
#include <uv.h>

#include "base/bytes.h"
#include "base/err.h"

struct fetch_socket {
    uint32_t watched; /* EPOLLIN, EPOLLOUT; 0: not in the set */
    bool is_wanted;   /* a transfer waits for it */
    bool is_own;      /* made by fetch_sockets_open(): a connection */
};

typedef void fetch_sockets_ready(void *context);

struct fetch_sockets {
    uv_loop_t *loop;
    uv_poll_t poll; /* of the set */
    uv_timer_t timer;
    CURLM *multi;
    int epoll_fd;
    struct fetch_socket *items; /* by file descriptor */
    size_t items_count;
    size_t open_count; /* connections, kept ones included */
    bool is_due;       /* libcurl wants to be called now */
    bool is_running;
    fetch_sockets_ready *ready; /* libcurl has done something: look for transfers that ended */
    void *context;
};

/* Take over the socket and timer functions of the multi handle. */
enum err fetch_sockets_init(struct fetch_sockets *sockets, uv_loop_t *loop, CURLM *multi,
                            fetch_sockets_ready *ready, void *context, struct err_detail *detail) MUST_CHECK;

/* After the multi handle has gone. Closed by the loop: on_closed is called FETCH_SOCKETS_HANDLES times. */
enum { FETCH_SOCKETS_HANDLES = 2 };
void fetch_sockets_close(struct fetch_sockets *sockets, uv_close_cb on_closed);
void fetch_sockets_done(struct fetch_sockets *sockets);

/* For CURLOPT_OPENSOCKETFUNCTION and CURLOPT_CLOSESOCKETFUNCTION: a socket, or -1 with errno. */
int fetch_sockets_open(struct fetch_sockets *sockets, const struct curl_sockaddr *address);
int fetch_sockets_close_one(struct fetch_sockets *sockets, int fd);

#endif
