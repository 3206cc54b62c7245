/*
 * link_sender - links on their way between this node and others: drives protocol/links/link_relay.h, on a
 * thread of its own.
 *
 *      frontiers      ── read, drop: may wait for the disk ──┐
 *      route.h        ── link_sender_outgoing() ───────────────> │ the thread: link_relay_step()
 *      the ring's loop, UDP  <── send() ──────────────────── │
 *      the ring's loop, UDP  ── link_sender_receive() ─────────> │
 *      the crawl      <── deliver(): links of others ─────── │
 *      the crawl      ── link_sender_took() ───────────────────> │
 *
 * A part of the outgoing links is in memory at a time, in the order of their places; they leave the frontier
 * when their holders have them. What is too much is dropped as the network would: whoever sent it sends
 * again.
 */
#ifndef MNEMON_NODE_LINKS_LINK_SENDER_H
#define MNEMON_NODE_LINKS_LINK_SENDER_H

#include "base/buf.h"
#include "base/clock.h"
#include "crawl/frontier/frontier.h"
#include "protocol/links/link_relay.h"

struct link_sender;

enum { LINK_SENDER_JOBS_MAX = 64, LINK_SENDER_JOB_NAME_SIZE_MAX = 128 };

/* Links that another node has found. Borrowed for the call. */
struct link_sender_delivery {
    uint64_t number; /* for link_sender_took() */
    struct peer from;
    bool is_primary;    /* the sender takes us for their primary: if we are not, LINK_RELAY_MOVED */
    const uint8_t *job; /* link_sender_job_id() of its name */
    const struct links_code_link *links;
    size_t count;
};

/* On the thread of the link sender. */
struct link_sender_table {
    /* frontier_read_outgoing() and frontier_drop_outgoing() of a job; may wait for the disk. */
    enum err (*read)(void *context, const char *job, const uint8_t after_position[ROUTE_POSITION_SIZE],
                     struct bytes after_url, struct buf *work, struct frontier_outgoing *ret_links,
                     size_t count_max, size_t *ret_count);
    void (*drop)(void *context, const char *job, const struct frontier_outgoing *links, size_t count);

    /* link_sender_took() follows, from here or later from any thread. */
    void (*deliver)(void *context, const struct link_sender_delivery *delivery);

    /* Look up: link_sender_found() follows, from here or later from any thread. */
    void (*find)(void *context, uint64_t number, struct ring_id key, size_t vnodes_wanted);

    /* As struct link_relay_owner has them; without waiting. */
    size_t (*after)(void *context, struct ring_id id, struct vnode *out, size_t places_max);
    uint64_t (*arcs)(void *context);

    /* A datagram of kind DATAGRAM_LINKS; may be lost. */
    void (*send)(void *context, const struct peer *to, struct bytes message);

    /* The node sent something that makes no sense. */
    void (*blame)(void *context, const uint8_t key[PEER_KEY_SIZE], struct bytes why);
};

/* 0 stands for the default in parentheses. */
struct link_sender_config {
    struct peer self;
    uint8_t holders_count;     /* R of the charter */
    uint64_t flush_us;         /* (link_relay.h's) */
    uint64_t seed;             /* secret */
    const struct clock *clock; /* (clock_system) */
    const struct link_sender_table *table;
    void *context;
};

/* ERR_MEMORY, ERR_SYSTEM. */
enum err link_sender_start(const struct link_sender_config *config,
                           struct link_sender **ret_link_sender) MUST_CHECK;

/* No call of the table is under way afterwards, and none follows. What others say to it is lost. May be NULL.
 */
void link_sender_stop(struct link_sender *link_sender);

/* When nobody can say anything to it any more. May be NULL. */
void link_sender_free(struct link_sender *link_sender);

/* ---- any thread ---- */

/* There are outgoing links in the frontier of this job; also once for each job at the start. */
void link_sender_outgoing(struct link_sender *link_sender, const char *job);

void link_sender_receive(struct link_sender *link_sender, const struct peer *from, struct bytes message);
void link_sender_took(struct link_sender *link_sender, uint64_t number, enum link_relay_status status,
                      size_t accepted_count, size_t new_count);
void link_sender_found(struct link_sender *link_sender, uint64_t number, const struct vnode *places,
                       size_t count);

struct link_relay_counters link_sender_counters(struct link_sender *link_sender);

/* ERR_MEMORY. */
enum err link_sender_job_id(const char *job, uint8_t ret_id[LINKS_CODE_JOB_SIZE]) MUST_CHECK;

#endif
