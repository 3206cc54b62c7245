/*
 * http_server - the HTTP/1.1 server of a node: routes by table, bounds on everything.
 *
 *      connections ──> door ──> threads_count loops ──> route ──> its functions, on the same loop
 *                                                        └──> is_long: answer(), on a worker
 *
 * A route's functions must not take long, or the other connections of the loop wait with them. A function
 * that reads documents of any size, which others chose, says so: is_long. One that waits for an event
 * suspends the request and resumes it from another thread (http_request.h).
 *
 * Bounds: connections, also per address (http_door.h); the head of a request (HTTP_HEAD_SIZE_MAX); bodies
 * (per route; above SCRATCH_MEMORY_MAX they lie in a file); time to send a request, to take an answer, to be
 * idle. A client that breaks one is answered or cut off; the others do not notice.
 *
 * Every request passes config.check first, whatever it asks for: there a node refuses strangers.
 *
 * Errors under /api/ are JSON, {"error":"not_found","text":"…"}, elsewhere a line of text.
 */
#ifndef MNEMON_HTTP_SERVER_HTTP_SERVER_H
#define MNEMON_HTTP_SERVER_HTTP_SERVER_H

#include "base/address.h"
#include "base/clock.h"
#include "base/err.h"
#include "http/server/http_request.h"

struct http_server;

/* Functions may be NULL but for answer. */
struct http_route {
    const char *method;     /* "GET" answers HEAD too */
    const char *path;       /* all of it, or with a "*" at its end for anything */
    uint64_t body_size_max; /* 0: there must be none */
    void *context;          /* http_request_context() */

    /* The header is there, the body is not: a function that answers now need not read it. */
    void (*begin)(struct http_request *request);

    /* All of it is there: answer, or suspend. Called again after each resume. */
    void (*answer)(struct http_request *request);

    /* It is over, however it went: give back what http_request_set_state() was given. */
    void (*end)(struct http_request *request);

    /* answer() runs on one of the server's workers, where it may take its time; it does not suspend. */
    bool is_long;

    unsigned variant; /* http_request_variant(): for routes that share their functions */
};

/* 0 or NULL stands for the default in parentheses. */
struct http_server_config {
    struct address address;          /* port 0: any that is free */
    const struct http_route *routes; /* the first that fits; they outlive the server */
    size_t routes_count;
    const char *scratch_directory;        /* for large bodies; required */
    unsigned threads_count;               /* (two for each processor, 4 to 64) */
    unsigned workers_count;               /* (32) at most, for routes that are long */
    unsigned connections_max;             /* (1,024); at most three quarters of the descriptor limit */
    unsigned connections_per_address_max; /* (half of them) */
    uint32_t request_timeout_ms; /* (15,000) for a header; and for bodies, beside their size / rate_min */
    uint32_t idle_timeout_ms;    /* (60,000) between requests */
    uint32_t rate_min;           /* (16 KiB) bytes a second, both ways */
    const struct clock *clock;   /* (clock_system) */

    /* Before the route is looked for: true, or it has answered. Any thread. (all pass) */
    bool (*check)(void *context, struct http_request *request);
    void *check_context;
};

/* ERR_BUSY if the port is taken, ERR_PERMISSION, ERR_INVALID … with a text that names the address. */
enum err http_server_start(const struct http_server_config *config, struct http_server **ret_server,
                           struct err_detail *detail) MUST_CHECK;

/* With the port that it really has. */
void http_server_address(const struct http_server *server, struct address *ret_address);

/* As it was configured, or what the limit of descriptors allows. */
unsigned http_server_connections_max(const struct http_server *server);

struct http_server_stat {
    uint64_t requests_count;
    uint64_t received_size; /* of bodies */
    uint64_t sent_size;     /* of bodies; what streams without a size is not counted */
    uint64_t cut_count;     /* connections that were too slow, or had to make room */
    uint32_t active_count;  /* requests now */
};

void http_server_stat(struct http_server *server, struct http_server_stat *ret_stat);

enum { HTTP_DELAYS_COUNT = 12, HTTP_STATUSES_COUNT = 6 };

/* Upper bounds of the delays that are counted apart, in microseconds. */
extern const uint32_t http_delays_us[HTTP_DELAYS_COUNT];

/* How one route answered, and how long after the header had come. */
struct http_route_stat {
    uint64_t statuses[HTTP_STATUSES_COUNT]; /* by hundreds: [4] are 400 to 499 */
    uint64_t delays[HTTP_DELAYS_COUNT + 1]; /* up to the bound of each, and above the last; not summed up */
    uint64_t delay_sum_us;
    uint64_t sent_size; /* as above */
};

/* index: in config.routes; routes_count for what has no route. */
void http_server_route_stat(const struct http_server *server, size_t index, struct http_route_stat *ret_stat);

/*
 * Take no more connections, let requests that have begun end within grace_ms, then close. Requests that are
 * suspended are waited for however long that takes: whoever suspended them must still resume them.
 */
void http_server_stop(struct http_server *take_server, uint32_t grace_ms);

#endif
