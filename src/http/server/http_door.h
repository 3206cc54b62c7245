/*
 * http_door - where connections come in: a loop takes them and deals them out to those that serve.
 *
 *      clients ──> listening socket ──> door ──> the serving thread that has the fewest connections
 *
 * Threads that take connections by themselves leave one of them with ten and more that come at once, which it
 * then serves on one processor while the others sleep.
 *
 * Bounds: so many connections in all, and so many of one address; of IPv6 the first 64 bits count, which is
 * what one customer gets. If a bound is reached, the connection that has kept the server waiting longest
 * makes room: one that has not sent a whole request, else one that does not take its answer. A request that
 * is being worked on is never cut off. If all are, the next connections wait outside, or, if only one address
 * has too many, they are closed.
 *
 * Connections are known by their descriptor.
 */
#ifndef MNEMON_HTTP_SERVER_HTTP_DOOR_H
#define MNEMON_HTTP_SERVER_HTTP_DOOR_H

#include "base/address.h"
#include "base/err.h"
#include "run/loop.h"

enum { HTTP_DOOR_THREADS_MAX = 64 };

/* On the door's loop. False: it could not be taken; the door closes it. */
typedef bool http_door_give(void *context, unsigned thread, int take_fd, const struct address *client);

struct http_door_config {
    unsigned threads_count;
    unsigned connections_max;
    unsigned connections_per_address_max;
    http_door_give *give;
    void *context;
};

/* What a connection waits for; the first ones make room first. */
enum http_wait {
    HTTP_WAIT_REQUEST, /* its client sends it, or rests */
    HTTP_WAIT_TAKEN,   /* its client takes the answer */
    HTTP_WAIT_WORK,    /* the server works on the request */
};

/* The connection of one descriptor. */
struct http_place {
    bool is_taken;
    bool is_leaving; /* it had to make room, and is no longer counted */
    enum http_wait wait;
    uint64_t since; /* of door->changes_count */
    unsigned thread;
    struct address client; /* without its port; of IPv6 the first 64 bits */
};

struct http_door {
    struct http_door_config config;
    struct address address; /* with the port that it really has */
    int fd;
    bool has_loop;
    struct loop loop;
    uv_poll_t poll;
    struct loop_timer retry; /* no descriptor was left */
    struct loop_post room;   /* somebody has left a full house */
    bool is_open;            /* the loop's: it looks for connections */

    pthread_mutex_t lock;
    bool is_full;                          /* lock: whoever leaves posts `room` */
    struct http_place *places;             /* lock: by descriptor */
    size_t places_count;                   /* lock */
    unsigned taken_count;                  /* lock: without those that are leaving */
    uint64_t changes_count;                /* lock */
    uint64_t evicted_count;                /* lock: that had to make room */
    unsigned last_thread;                  /* lock: that was given one */
    unsigned loads[HTTP_DOOR_THREADS_MAX]; /* lock: connections of each thread */
};

/* Listens; nobody comes in yet. ERR_BUSY if the port is taken, … with a text that names the address. */
enum err http_door_init(struct http_door *door, const struct http_door_config *config,
                        const struct address *address, struct err_detail *detail) MUST_CHECK;
void http_door_done(struct http_door *door);

enum err http_door_open(struct http_door *door) MUST_CHECK;

/* No connection comes in any more; those that are inside stay. */
void http_door_close(struct http_door *door);

/* The connection waits for something else from now on. False: it had to make room, and must be closed. */
bool http_door_wait(struct http_door *door, int fd, enum http_wait wait);

/* The connection ends; its descriptor is still open. Any thread. */
void http_door_leave(struct http_door *door, int fd);

uint64_t http_door_evicted_count(struct http_door *door);

#endif
