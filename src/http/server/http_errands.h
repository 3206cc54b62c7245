/*
 * http_errands - requests of one loop whose work is done elsewhere, while the loop goes on
 * (http_request_await()).
 *
 *      turn of the loop:   events of connections    requests in, errands out
 *                          errands that are back    answer() again, answers out
 *                          else, if some are away   wait for them, for SLICE_US at most
 *
 * Whoever does the work need not wake the loop out of its wait for events, which would take a descriptor: the
 * loop waits for the work itself, as long as that lasts no longer than others may wait for the loop. It waits
 * for several at a time, so that it is woken once for them.
 *
 * A loop has AWAY_MAX errands at most: each keeps what its request has opened. If there are more requests,
 * they wait in their sockets; if none comes back for long, routes hear it from http_request_may_await(). All
 * of it on the loop's thread.
 */
#ifndef MNEMON_HTTP_SERVER_HTTP_ERRANDS_H
#define MNEMON_HTTP_SERVER_HTTP_ERRANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

struct http_request;
struct loop;

struct http_errands {
    uv_check_t look; /* after the events of a turn */
    uv_idle_t hurry; /* while errands are away: the loop does not wait for events */
    struct http_request *first;
    struct http_request **last;
    size_t count;
    unsigned slices_count; /* of time that were waited since one was back */
};

/* Before the loop starts; closed with it, when none is away. */
void http_errands_init(struct http_errands *errands, struct loop *loop);

void http_errands_add(struct http_errands *errands, struct http_request *request);
bool http_errands_have_room(const struct http_errands *errands);

/* Before an event brings another request: wait for room if there is none, but not for ever. */
void http_errands_make_room(struct http_errands *errands);

#endif
