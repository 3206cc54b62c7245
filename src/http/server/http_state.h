/*
 * http_state - what is inside a struct http_server and its requests. One machine in two files: http_server.c
 * runs libmicrohttpd and finds routes, http_request.c is what the functions of a route call.
 */
#ifndef MNEMON_HTTP_SERVER_HTTP_STATE_H
#define MNEMON_HTTP_SERVER_HTTP_STATE_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "http/server/http_door.h"
#include "http/server/http_guard.h"
#include "http/server/http_server.h"
#include "run/pool.h"

/* As struct http_route_stat. Counted without a lock: a reader may see half of a request. */
struct http_counters {
    _Atomic uint64_t statuses[HTTP_STATUSES_COUNT];
    _Atomic uint64_t delays[HTTP_DELAYS_COUNT + 1];
    _Atomic uint64_t delay_sum_us;
    _Atomic uint64_t sent_size;
};

struct http_server {
    struct http_server_config config; /* with its defaults filled in */
    struct http_door door;
    struct MHD_Daemon *daemons[HTTP_DOOR_THREADS_MAX]; /* each has one thread */
    unsigned daemons_count;
    struct http_guard guard;
    struct pool workers;
    struct http_counters *counters; /* of each route, and of what has none */

    pthread_mutex_t lock;
    pthread_cond_t changes;       /* one of the counts is 0 */
    uint32_t active_count;        /* lock: requests that have begun and are not over */
    uint32_t working_count;       /* lock: of them, whose route has been asked and has not answered */
    uint32_t suspended_count;     /* lock: of them, nobody has called http_request_resume() to its end */
    bool is_stopping;             /* lock */
    bool is_closing;              /* lock: no route is asked any more */
    struct http_server_stat stat; /* lock: its sums */
};

struct http_request {
    struct http_server *server;
    struct MHD_Connection *connection;
    struct http_guarded *guarded; /* its connection's */
    const struct http_route *route;
    char *target; /* as it was sent */
    struct bytes path;
    struct bytes query;
    struct bytes rest;
    struct scratch body;
    uint64_t discarded_size; /* of the body, after it was refused */
    struct buf headers;      /* of the answer: name, zero byte, value, zero byte … */
    struct MHD_Response *response;
    unsigned status;
    uint64_t answer_size; /* 0 if it is not known */
    uint64_t begun_us;    /* monotonic */
    bool has_begun;
    bool is_working;   /* it is in working_count */
    bool is_suspended; /* by its route; not while a worker has it */
    bool was_refused;  /* no worker took it */
    struct pool_job job;
    bool is_lost; /* no memory to answer it */
    void *state;
};

/* libmicrohttpd does nothing with it until http_request_resume(). */
void http_request_leave_thread(struct http_request *request);

/* Its connection must come further within the time that so many bytes may take. */
void http_request_expect(const struct http_request *request, uint64_t size);

#endif
