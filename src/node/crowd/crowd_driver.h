/*
 * crowd_driver - the crowd on a real node: drives protocol/crowd/crowd.h on the ring's loop, and its files.
 *
 *      EVENT_MESSAGE <── crowd_driver_receive() <── transport.h (DATAGRAM_CROWD, admitted by the gate)
 *      ACTION_SEND  ──> transport_send()
 *      CROWD_FIND   <── crowd_driver_find(), any thread, waits
 *      CROWD_ASKED  ──> config.have(): what this node offers (offers.h)
 *      contacts: --join, the ring's members, and the last good ones in crowd-contacts (crowd_driver_beat())
 *
 * The crowd's network is the ring: a node that may speak to the ring may speak here, no other. Nothing is
 * fetched because somebody asked for it.
 */
#ifndef MNEMON_NODE_CROWD_CROWD_DRIVER_H
#define MNEMON_NODE_CROWD_CROWD_DRIVER_H

#include "base/clock.h"
#include "base/json.h"
#include "protocol/crowd/crowd.h"
#include "protocol/crowd/wish.h"
#include "protocol/ring/ring.h"

struct crowd_driver;
struct crowd_driver_hit;
struct datagram_message;
struct transport;

enum { CROWD_DRIVER_HITS_MAX = 16, CROWD_DRIVER_CONTACTS_MAX = 100 };

/* 0 or NULL stands for the default in parentheses. Texts outlive it. */
struct crowd_driver_config {
    const char *directory; /* of the data */
    struct transport *transport;
    struct crowd_config
        crowd; /* of it: kind, part, view_size, fanout, hop_us …; self, network, seed are set here */
    const struct clock *clock;
    /*
     * What of ours answers the wish: into memory of CROWD_FINDING_SIZE_MAX, its size; 0: nothing. On the
     * ring's loop: must not wait.
     */
    size_t (*have)(void *context, struct bytes wish, uint8_t *memory);
    /*
     * Called if that gave nothing, unless NULL. True: the search goes on, and crowd_driver_looked() follows
     * from any thread. On the ring's loop: must not wait.
     */
    bool (*look)(void *context, uint64_t number, struct bytes wish);
    /* (none) of a light member: crowd_driver_find() asks this instead, and crowd_driver_begin() is not
     * called. */
    enum err (*search)(void *context, struct bytes wish, uint32_t timeout_ms, size_t hits_wanted,
                       struct crowd_driver_hit *out, size_t *ret_count);
    void (*blame)(void *context, const struct peer *peer, const char *sentence);
    void *context;
};

struct crowd_driver *crowd_driver_new(const struct crowd_driver_config *config); /* NULL: out of memory */

/* No find waits any more (ERR_CANCELLED), nothing is received. Before the ring stops. */
void crowd_driver_stop(struct crowd_driver *driver);
void crowd_driver_free(struct crowd_driver *driver);

/* ---- the ring's loop ---- */

/* Begins if it has not yet: there is a charter and an address now. ring: its id, the same under all charters.
 */
void crowd_driver_begin(struct crowd_driver *driver, const struct peer *self,
                        const uint8_t ring[CROWD_NETWORK_SIZE]);
void crowd_driver_news(struct crowd_driver *driver,
                       const struct ring *ring); /* members that can be contacts */
void crowd_driver_receive(struct crowd_driver *driver, const struct datagram_message *message);
void crowd_driver_wake(struct crowd_driver *driver); /* the time of transport_wake_at() has come */

/* ---- any thread ---- */

struct crowd_driver_hit {
    struct peer holder;
    uint8_t hops_count;
    uint8_t findings_count;
    struct wish_finding findings[WISH_FINDINGS_MAX]; /* urls and titles borrow from `contents` */
    size_t contents_size;
    uint8_t contents[CROWD_FINDING_SIZE_MAX];
};

/* Of a hit whose contents have come: what is in it. False: it makes no sense. */
bool crowd_driver_read_hit(struct crowd_driver_hit *hit);

/*
 * Search and wait. Returns as soon as something was found, with what has come by then; `hits_wanted` (1 to
 * CROWD_DRIVER_HITS_MAX): it waits for so many, but after the first one not longer than half of the time that
 * the first took, 50 ms at least. Threads that wish for the same at the same time share one search.
 * ERR_NOT_FOUND: nobody has it, or it was not found a short while ago; ERR_TIMEOUT; ERR_BUSY: too many
 * searches; ERR_UNREACHABLE: there is no crowd, or no neighbour; ERR_CANCELLED.
 */
enum err crowd_driver_find(struct crowd_driver *driver, const struct wish *wish, uint32_t timeout_ms,
                           size_t hits_wanted, struct crowd_driver_hit *out, size_t *ret_count) MUST_CHECK;

/* The peer did not give what it had offered: for ten minutes it is in no view of ours and not heard, and its
 * hits are passed over. */
void crowd_driver_distrust(struct crowd_driver *driver, const struct peer *peer);
bool crowd_driver_is_distrusted(struct crowd_driver *driver, const struct peer *peer);

/* What config.look was asked for; an empty finding: nothing. */
void crowd_driver_looked(struct crowd_driver *driver, uint64_t number, struct bytes finding);

/* Every second or so, one thread that may wait for the disk. */
void crowd_driver_beat(struct crowd_driver *driver);

/* Append members of the object that /api/v1/crowd gives (docs/api.md): state, view, searches, counters. */
void crowd_driver_put(struct crowd_driver *driver, struct json *json);

/* Append the same numbers for /metrics. */
void crowd_driver_put_metrics(struct crowd_driver *driver, struct buf *out);

/* Write who the neighbours are, for the dashboard; the counters are for more of it. */
struct sheet;
void crowd_driver_show(struct crowd_driver *driver, struct sheet *sheet, struct crowd_counters *ret_counters);

#endif
