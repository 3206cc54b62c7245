/*
 * walking - links on their way between this node and others: drives protocol/links/walk.h, on a thread of its
 * own.
 *
 *      frontiers      ── read, drop: may wait for the disk ──┐
 *      route.h        ── walking_outgoing() ───────────────> │ the thread: walk_step()
 *      the ring's loop, UDP  <── send() ──────────────────── │
 *      the ring's loop, UDP  ── walking_receive() ─────────> │
 *      the crawl      <── deliver(): links of others ─────── │
 *      the crawl      ── walking_took() ───────────────────> │
 *
 * A part of the outgoing links is in memory at a time, in the order of their places; they leave the frontier
 * when their holders have them. What is too much is dropped as the network would: whoever sent it sends
 * again.
 */
#ifndef MNEMON_NODE_LINKS_WALKING_H
#define MNEMON_NODE_LINKS_WALKING_H

#include "base/buf.h"
#include "base/clock.h"
#include "crawl/frontier/frontier.h"
#include "protocol/links/walk.h"

struct walking;

enum { WALKING_JOBS_MAX = 64, WALKING_JOB_NAME_SIZE_MAX = 128 };

/* Links that another node has found. Borrowed for the call. */
struct walking_delivery {
    uint64_t number; /* for walking_took() */
    struct peer from;
    bool is_primary;    /* he takes us for their primary: if we are not, WALK_MOVED */
    const uint8_t *job; /* walking_job_id() of its name */
    const struct links_code_link *links;
    size_t count;
};

/* On the thread of walking. */
struct walking_table {
    /* frontier_read_outgoing() and frontier_drop_outgoing() of a job; may wait for the disk. */
    enum err (*read)(void *context, const char *job, const uint8_t after_place[ROUTE_PLACE_SIZE],
                     struct bytes after_url, struct buf *work, struct frontier_outgoing *ret_links,
                     size_t count_max, size_t *ret_count);
    void (*drop)(void *context, const char *job, const struct frontier_outgoing *links, size_t count);

    /* walking_took() follows, from here or later from any thread. */
    void (*deliver)(void *context, const struct walking_delivery *delivery);

    /* Look up: walking_found() follows, from here or later from any thread. */
    void (*find)(void *context, uint64_t number, struct ring_id key, size_t places_wanted);

    /* As struct walk_owner has them; without waiting. */
    size_t (*after)(void *context, struct ring_id id, struct ring_place *out, size_t places_max);
    uint64_t (*arcs)(void *context);

    /* A datagram of kind DATAGRAM_LINKS; may be lost. */
    void (*send)(void *context, const struct peer *to, struct bytes message);

    /* He sent what makes no sense. */
    void (*blame)(void *context, const uint8_t key[PEER_KEY_SIZE], struct bytes why);
};

/* 0 stands for the default in parentheses. */
struct walking_config {
    struct peer self;
    uint8_t holders_count;     /* R of the charter */
    uint64_t flush_us;         /* (walk.h's) */
    uint64_t seed;             /* secret */
    const struct clock *clock; /* (clock_system) */
    const struct walking_table *table;
    void *context;
};

/* ERR_MEMORY, ERR_SYSTEM. */
enum err walking_start(const struct walking_config *config, struct walking **ret_walking) MUST_CHECK;

/* No call of the table is under way afterwards, and none follows. May be NULL. */
void walking_stop(struct walking *walking);

/* ---- any thread ---- */

/* There are outgoing links in the frontier of this job; also once for each job at the start. */
void walking_outgoing(struct walking *walking, const char *job);

void walking_receive(struct walking *walking, const struct peer *from, struct bytes message);
void walking_took(struct walking *walking, uint64_t number, enum walk_status status, size_t accepted_count);
void walking_found(struct walking *walking, uint64_t number, const struct ring_place *places, size_t count);

struct walk_counters walking_counters(struct walking *walking);

/* ERR_MEMORY. */
enum err walking_job_id(const char *job, uint8_t ret_id[LINKS_CODE_JOB_SIZE]) MUST_CHECK;

#endif
