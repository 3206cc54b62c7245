/*
 * http_guard - time limits of connections: whoever is slower than allowed is cut off.
 *
 * libmicrohttpd itself only ends connections on which nothing happens; a client that sends a byte now and
 * then would keep its place for ever. Here each connection has a time by which it must have come further; a
 * thread looks once a second and shuts down the sockets of those that have not. Their owner then finds them
 * closed by the other side.
 *
 * The same look ends connections that rest between two requests and whose client will send no more: if the
 * end came together with the last request, libmicrohttpd does not see it before the connection has been idle
 * for long.
 *
 * Any thread may call. A connection is taken out before its descriptor is closed, so none is shut down that
 * has become another's.
 */
#ifndef MNEMON_HTTP_SERVER_HTTP_GUARD_H
#define MNEMON_HTTP_SERVER_HTTP_GUARD_H

#include <pthread.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/err.h"

static const uint64_t HTTP_GUARD_NEVER = UINT64_MAX;

struct http_guarded {
    struct http_guarded *next;
    struct http_guarded *previous;
    int fd;
    uint64_t due_us; /* of the monotonic clock */
    bool is_resting; /* no request has begun */
};

struct http_guard {
    const struct clock *clock;
    pthread_mutex_t lock;
    pthread_cond_t wakes;
    struct http_guarded all; /* lock: head of a ring */
    bool is_stopping;        /* lock */
    uint64_t cut_count;      /* lock: connections cut off so far */
    pthread_t thread;
};

enum err http_guard_init(struct http_guard *guard, const struct clock *clock) MUST_CHECK;
void http_guard_done(struct http_guard *guard);

void http_guard_add(struct http_guard *guard, struct http_guarded *guarded, int fd, uint64_t within_us);
void http_guard_remove(struct http_guard *guard, struct http_guarded *guarded);

/* The next step is due within so long from now; HTTP_GUARD_NEVER: as long as it takes. */
void http_guard_expect(struct http_guard *guard, struct http_guarded *guarded, uint64_t within_us,
                       bool is_resting);

uint64_t http_guard_cut_count(struct http_guard *guard);

#endif
