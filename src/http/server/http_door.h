/*
 * http_door - where connections come in: a thread takes them and deals them out to those that serve.
 *
 *      clients ──> listening socket ──> door ──> the serving thread that has the fewest connections
 *
 * Threads that take connections by themselves leave one of them with ten and more that come at once, which it
 * then serves on one processor while the others sleep.
 *
 * Bounds: so many connections in all, the next ones wait outside until somebody leaves; so many of one
 * address, the next ones are closed. Connections are known by their descriptor: if the server lost a
 * connection without a word, for want of memory, its place is free again when the descriptor comes back.
 */
#ifndef MNEMON_HTTP_SERVER_HTTP_DOOR_H
#define MNEMON_HTTP_SERVER_HTTP_DOOR_H

#include <pthread.h>
#include <sys/socket.h>

#include "base/address.h"
#include "base/err.h"

enum { HTTP_DOOR_THREADS_MAX = 64 };

/* From the door's thread. False: it could not be served, and is closed. */
typedef bool http_door_give(void *context, unsigned thread, int take_fd, const struct sockaddr *client,
                            socklen_t client_size);

struct http_door_config {
    unsigned threads_count;
    unsigned connections_max;
    unsigned connections_per_address_max;
    http_door_give *give;
    void *context;
};

/* The connection of one descriptor. */
struct http_place {
    bool is_taken;
    unsigned thread;
    struct address client; /* without its port */
};

struct http_door {
    struct http_door_config config;
    struct address address; /* with the port that it really has */
    int fd;
    pthread_t thread;
    bool has_thread;

    pthread_mutex_t lock;
    pthread_cond_t left;                   /* somebody has left, or it is stopping */
    bool is_stopping;                      /* lock */
    struct http_place *places;             /* lock: by descriptor */
    size_t places_count;                   /* lock */
    unsigned taken_count;                  /* lock */
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

/* The address of a client; zeros for what is neither IPv4 nor IPv6. */
struct address http_door_client(const struct sockaddr *name);

/* The connection ends; its descriptor is still open. Any thread. */
void http_door_leave(struct http_door *door, int fd);

#endif
