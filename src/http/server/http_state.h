/*
 * http_state - what is inside a struct http_server, its connections and their requests. One machine in four
 * files: http_server.c has the threads and the routes, http_connection.c reads and writes sockets,
 * http_request.c is what the functions of a route call, http_errands.c has what is done elsewhere meanwhile.
 */
#ifndef MNEMON_HTTP_SERVER_HTTP_STATE_H
#define MNEMON_HTTP_SERVER_HTTP_STATE_H

#include <stdatomic.h>

#include "base/buf.h"
#include "http/message/chunked.h"
#include "http/message/http_head.h"
#include "http/server/http_door.h"
#include "http/server/http_errands.h"
#include "http/server/http_server.h"
#include "run/bell.h"
#include "run/pool.h"

enum {
    HTTP_BLOCK_SIZE = 64 << 10,      /* that is received, or read from a stream, at once */
    HTTP_DISCARD_SIZE_MAX = 1 << 20, /* of the body of a request that was refused, so that its client hears */
};

/* As struct http_route_stat. Counted without a lock: a reader may see half of a request. */
struct http_counters {
    _Atomic uint64_t statuses[HTTP_STATUSES_COUNT];
    _Atomic uint64_t delays[HTTP_DELAYS_COUNT + 1];
    _Atomic uint64_t delay_sum_us;
    _Atomic uint64_t sent_size;
};

/* A loop and the connections that it serves. All but the loop's posts belongs to its thread. */
struct http_thread {
    struct http_server *server;
    struct loop loop;
    struct loop_timer look;  /* who is too slow? */
    struct loop_timer again; /* streams that had nothing to send are asked again */
    struct http_errands errands;
    struct http_connection *first;
    uint8_t *block; /* HTTP_BLOCK_SIZE: what has just been received */
};

struct http_server {
    struct http_server_config config; /* with its defaults filled in */
    struct http_door door;
    struct http_thread *threads;    /* config.threads_count of them */
    unsigned threads_count;         /* that have a loop */
    struct pool workers;            /* for routes that are long */
    struct http_counters *counters; /* of each route, and of what has none */
    _Atomic uint64_t requests_count;
    _Atomic uint64_t received_size;
    _Atomic uint64_t sent_size;
    _Atomic uint64_t cut_count;

    pthread_mutex_t lock;
    struct bell changes;    /* one of the counts is 0 */
    uint32_t active_count;  /* lock: requests that have begun and are not over */
    uint32_t working_count; /* lock: of them, whose route has been asked and has not answered */
    bool is_stopping;       /* lock */
    bool is_closing;        /* lock: no route is asked any more */
};

struct http_request {
    struct http_connection *connection;
    const struct http_route *route;
    struct bytes path;
    struct bytes query;
    struct bytes rest;
    struct scratch body;
    uint64_t discarded_size; /* of the body, after it was refused */
    uint64_t begun_us;       /* monotonic */
    bool has_begun;
    bool is_working;   /* it is in working_count */
    bool is_suspended; /* until http_request_resume(), which posts `resumed`; or until its errand is back */
    struct loop_post resumed;
    struct http_errand errand;
    struct http_request *next_away; /* of the loop's errands */
    bool is_away;                   /* a worker has it, for `job` */
    bool is_put_off;                /* a worker is to have it */
    struct pool_job job;
    void *state;

    /* The answer. */
    struct buf headers;        /* "Name: value" CRLF … */
    unsigned status;           /* 0: there is none yet */
    bool is_lost;              /* no memory to answer it: the connection is closed */
    uint64_t size;             /* of the body, or HTTP_SIZE_UNKNOWN */
    struct buf content;        /* all of the body */
    struct scratch scratch;    /* or here */
    struct http_stream stream; /* or from here, if it has a read function */
};

enum http_phase {
    HTTP_PHASE_HEAD, /* of the next request; there may be none */
    HTTP_PHASE_BODY,
    HTTP_PHASE_WORK,
    HTTP_PHASE_SEND,
    HTTP_PHASE_LINGER, /* all is sent; what the client still sends is thrown away, so that it hears us out */
    HTTP_PHASE_CLOSED,
};

struct http_connection {
    struct http_thread *thread;
    struct http_connection *next; /* of the thread's */
    struct http_connection **link;
    struct loop_post arrived;
    uv_poll_t poll;
    int events; /* that it waits for */
    int fd;
    struct address client;
    enum http_phase phase;
    uint64_t due_us;  /* by then it must have come further */
    bool is_reading;  /* connection_use() is at work */
    bool has_started; /* bytes of the next head have come */
    bool has_ended;   /* the client sends no more */
    bool is_gone;     /* nobody takes the answer any more */
    bool closes;      /* after this answer */
    bool is_cut;      /* not all of the request was read */
    bool is_stalled;  /* its stream has nothing yet */
    struct buf input; /* received too early */
    uint64_t lingered_size;

    struct http_head head;
    enum http_body_kind body_kind;
    uint64_t body_left; /* of HTTP_BODY_LENGTH */
    struct chunked chunked;
    struct http_request request;

    struct buf output; /* head of the answer, then blocks of its stream */
    size_t output_sent;
    struct bytes content; /* what is left of the body that lies in memory */
    uint64_t stream_offset;
    bool is_chunked;
    bool is_last; /* no more of the stream */
};

/* ---- what the files call of each other, on the thread of the connection ---- */

/* The head is there. Asks the route to begin; it may have answered. size: as the head states it. */
void http_request_begin(struct http_request *request, struct http_connection *connection, uint64_t size);

/* False: the body is far too large to be thrown away. */
bool http_request_take(struct http_request *request, struct bytes part);

/* All of it is there: an answer, lost, suspended, or away. */
void http_request_work(struct http_request *request);

/* It has no answer any more. */
void http_request_forget(struct http_request *request);

void http_request_count(const struct http_request *request);
void http_request_end(struct http_request *request);

static inline bool http_request_is_answered(const struct http_request *request) {
    return request->status != 0 || request->is_lost;
}

/* The route answered, or wants to be asked again. */
void http_connection_go_on(struct http_connection *connection);

static inline uint64_t http_sum(const _Atomic uint64_t *sum) {
    return atomic_load_explicit(sum, memory_order_relaxed);
}

static inline void http_count(_Atomic uint64_t *sum, uint64_t value) {
    atomic_fetch_add_explicit(sum, value, memory_order_relaxed);
}

#endif
