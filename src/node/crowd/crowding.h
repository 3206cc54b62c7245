/*
 * crowding - the crowd on a real node: drives protocol/crowd/crowd.h on the ring's loop, and its files.
 *
 *      EVENT_MESSAGE <── crowding_receive() <── ringing.h (DATAGRAM_CROWD, admitted by the gate)
 *      ACTION_SEND  ──> ringing_send()
 *      CROWD_FIND   <── crowding_find(), any thread, waits
 *      CROWD_ASKED  ──> config.have(): what this node offers (offers.h)
 *      contacts: --join, the ring's members, and the last good ones in crowd-contacts (crowding_beat())
 *
 * The crowd's network is the ring: who may speak to the ring may speak here, and nobody else. Nothing is
 * fetched because somebody asked for it.
 */
#ifndef MNEMON_NODE_CROWD_CROWDING_H
#define MNEMON_NODE_CROWD_CROWDING_H

#include "base/buf.h"
#include "base/clock.h"
#include "protocol/crowd/crowd.h"
#include "protocol/crowd/wish.h"
#include "protocol/ring/ring.h"

struct crowding;
struct datagram_message;
struct ringing;

enum { CROWDING_HITS_MAX = 16, CROWDING_CONTACTS_MAX = 100 };

/* 0 or NULL stands for the default in parentheses. Texts outlive it. */
struct crowding_config {
    const char *directory; /* of the data */
    struct ringing *ringing;
    struct crowd_config
        crowd; /* of it: kind, part, view_size, fanout, hop_us …; self, network, seed are set here */
    const struct clock *clock;
    /*
     * What of ours answers the wish: into memory of CROWD_FINDING_SIZE_MAX, its size; 0: nothing. On the
     * ring's loop: must not wait.
     */
    size_t (*have)(void *context, struct bytes wish, uint8_t *memory);
    /*
     * Where that gave nothing, and this is not NULL: true where it is looked for further, then
     * crowding_looked() follows from any thread. On the ring's loop: must not wait.
     */
    bool (*look)(void *context, uint64_t number, struct bytes wish);
    void (*blame)(void *context, const struct peer *peer, const char *sentence);
    void *context;
};

struct crowding *crowding_new(const struct crowding_config *config); /* NULL: out of memory */

/* No find waits any more (ERR_CANCELLED), nothing is received. Before the ring stops. */
void crowding_stop(struct crowding *crowding);
void crowding_free(struct crowding *crowding);

/* ---- the ring's loop ---- */

/* Begins where it has not: there is a charter and an address. ring: its id, the same under all charters. */
void crowding_begin(struct crowding *crowding, const struct peer *self,
                    const uint8_t ring[CROWD_NETWORK_SIZE]);
void crowding_news(struct crowding *crowding, const struct ring *ring); /* members that can be contacts */
void crowding_receive(struct crowding *crowding, const struct datagram_message *message);
void crowding_wake(struct crowding *crowding); /* the time of ringing_wake_at() has come */

/* ---- any thread ---- */

struct crowding_hit {
    struct peer holder;
    uint8_t hops_count;
    uint8_t findings_count;
    struct wish_finding findings[WISH_FINDINGS_MAX]; /* urls and titles borrow from `contents` */
    size_t contents_size;
    uint8_t contents[CROWD_FINDING_SIZE_MAX];
};

/*
 * Search and wait. Returns as soon as something was found, with what has come by then; `hits_wanted` (1 to
 * CROWDING_HITS_MAX): it waits for so many, but after the first one not longer than half of the time that the
 * first took, 50 ms at least. Threads that wish for the same at the same time share one search.
 * ERR_NOT_FOUND: nobody has it, or it was not found a short while ago; ERR_TIMEOUT; ERR_BUSY: too many
 * searches; ERR_UNREACHABLE: there is no crowd, or no neighbour; ERR_CANCELLED.
 */
enum err crowding_find(struct crowding *crowding, const struct wish *wish, uint32_t timeout_ms,
                       size_t hits_wanted, struct crowding_hit *out, size_t *ret_count) MUST_CHECK;

/* He offered what he did not give: for ten minutes he is in no view of ours, not heard, and his hits are
 * passed over. */
void crowding_distrust(struct crowding *crowding, const struct peer *peer);
bool crowding_is_distrusted(struct crowding *crowding, const struct peer *peer);

/* What config.look was asked for; an empty finding: nothing. */
void crowding_looked(struct crowding *crowding, uint64_t number, struct bytes finding);

/* Every second or so, one thread that may wait for the disk. */
void crowding_beat(struct crowding *crowding);

/* Append members of the object that /api/v1/crowd gives (docs/api.md): state, view, searches, counters. */
void crowding_put(struct crowding *crowding, struct buf *out);

#endif
