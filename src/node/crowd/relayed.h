/*
 * relayed - a light member's side of its relay: it chooses one among the members that have the feature
 * `relay`, keeps a stream to it open, searches the crowd through it and answers what it passes on.
 *
 *      own thread      choose ── stay every two seconds ── no answer, or full: another one, at once
 *      any thread      relayed_find() ── search ──> relay ── found ──> hits
 *      peer_rpc        wish <── relay: what of our own offers answers it
 *
 * With no relay there is no crowd (ERR_UNREACHABLE); reading from the ring does not depend on it.
 */
#ifndef MNEMON_NODE_CROWD_RELAYED_H
#define MNEMON_NODE_CROWD_RELAYED_H

#include "node/crowd/crowd_driver.h"
#include "node/crowd/offers.h"
#include "node/rpc/peer_rpc.h"
#include "node/versions/dialects.h"

struct relayed;

/* All of it outlives the struct relayed. */
struct relayed_config {
    struct peer_rpc *peer_rpc;
    struct dialects *dialects;
    struct offers *offers;
    /* The nodes that are known; returns how many there are. Its thread. */
    size_t (*list)(void *context, struct peer *out, size_t peers_max);
    void (*note)(void *context, const char *sentence);
    void *context;
    const struct clock *clock;
};

/* It answers PEER_RPC_RELAYED from then on. Before peer_rpc starts. */
enum err relayed_new(const struct relayed_config *config, struct relayed **ret_relayed) MUST_CHECK;

enum err relayed_start(struct relayed *relayed, struct err_detail *detail) MUST_CHECK;

/* Nobody waits any more (ERR_CANCELLED), none is chosen. Then, when peer_rpc has stopped, the thread ends.
 * All may be NULL. */
void relayed_cancel(struct relayed *relayed);
void relayed_stop(struct relayed *relayed);
void relayed_free(struct relayed *relayed);

/* Any thread: is this node the relay? */
bool relayed_is_relay(struct relayed *relayed, const struct peer *peer);

/* As crowd_driver_config.search has it. context: the struct relayed. */
enum err relayed_find(void *context, struct bytes wish, uint32_t timeout_ms, size_t hits_wanted,
                      struct crowd_driver_hit *out, size_t *ret_count);

struct relayed_stat {
    bool has_relay;
    struct peer relay;       /* if it has one, as the next */
    int64_t since_us;        /* wall time */
    const char *why_none;    /* else */
    uint64_t changes_count;  /* relays so far */
    uint64_t searches_count; /* through them */
    uint64_t wishes_count;   /* that they passed on */
};

/* Any thread. */
void relayed_stat(struct relayed *relayed, struct relayed_stat *ret_stat);

#endif
