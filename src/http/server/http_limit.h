/*
 * http_limit - how often each address may do something: a bucket per address that drains at a steady rate.
 *
 * Only one time is kept for each address: when it would be back at rest if it did nothing more (the generic
 * cell rate algorithm). Addresses share a table of fixed size; in a full row the one closest to rest makes
 * room. In IPv6 the first 64 bits count: they are what one customer gets. Any thread.
 */
#ifndef MNEMON_HTTP_SERVER_HTTP_LIMIT_H
#define MNEMON_HTTP_SERVER_HTTP_LIMIT_H

#include <pthread.h>

#include "base/address.h"

enum { HTTP_LIMIT_ROWS = 512, HTTP_LIMIT_ROW_SIZE = 8 };

struct http_limit_entry {
    uint8_t ip[16];
    uint64_t rest_us; /* at rest from then on */
};

struct http_limit {
    uint64_t interval_us; /* that one costs */
    uint64_t slack_us;    /* that a burst may be ahead */
    uint64_t seed;
    pthread_mutex_t lock;
    uint64_t refused_count;                                             /* lock */
    struct http_limit_entry rows[HTTP_LIMIT_ROWS][HTTP_LIMIT_ROW_SIZE]; /* lock */
};

/* So many within so long, and as many of them at once as burst says. */
void http_limit_init(struct http_limit *limit, uint64_t count, uint64_t per_us, uint64_t burst,
                     uint64_t seed);
void http_limit_done(struct http_limit *limit);

/* Count one; false if it is too many, with the time until one is allowed again. */
bool http_limit_take(struct http_limit *limit, const struct address *address, uint64_t now_us,
                     uint64_t *ret_wait_us);

/* Would one be allowed? Nothing is counted. */
bool http_limit_is_open(struct http_limit *limit, const struct address *address, uint64_t now_us,
                        uint64_t *ret_wait_us);

uint64_t http_limit_refused_count(struct http_limit *limit);

#endif
