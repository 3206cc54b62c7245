/*
 * relay - a member's part for light members, which nobody can reach: it takes part in the crowd for them.
 *
 *      light member ── stay ──────────> relay_answer()      every two seconds, over the stream it keeps open
 *                   ── search ────────> own offers, other light members, crowd_driver_find() ── found ──> it
 *      the crowd    ── somebody asks ─> relay_look() ── wish ──> all of its light members
 *                        one has it: taken once, checked, offered by this node from then on
 *
 * What a light member has reaches others only as an offer of this node, which has checked it as everything
 * from the crowd: so no node is sent to an address that cannot be reached, a capture leaves the line of the
 * light member once, and the bounds of offers (crowd.cache) are those of what is relayed.
 *
 * Bounds: light members (crowd.relay), searches of each, wishes passed on, what is under way, sizes.
 */
#ifndef MNEMON_NODE_CROWD_RELAY_H
#define MNEMON_NODE_CROWD_RELAY_H

#include "node/crowd/crowd_driver.h"
#include "node/crowd/crowd_reader.h"
#include "node/crowd/offers.h"
#include "node/rpc/peer_rpc.h"

struct relay;

enum { RELAY_MEMBERS_MAX = 1024 };

/* All of it outlives the relay. */
struct relay_config {
    struct peer self; /* as others reach it */
    size_t members_max;
    struct peer_rpc *peer_rpc;
    struct crowd_driver *crowd_driver;
    struct offers *offers;
    struct captures *captures;
    bool (*trusts)(void *context, const uint8_t signer[PEER_KEY_SIZE]); /* as of crowd_reader.h */
    void (*blame)(void *context, const struct peer *peer, const char *sentence);
    /* (no) Has this node stored what is wished for? True: relay_looked() follows with this number, and what
     * there is then is offered. */
    bool (*look)(void *context, uint64_t number, struct bytes wish);
    void *context; /* of all three */
    const struct clock *clock;
};

/* It answers PEER_RPC_RELAY from then on. Before peer_rpc starts. */
enum err relay_new(const struct relay_config *config, struct relay **ret_relay) MUST_CHECK;

/* When crowd_driver and peer_rpc have stopped: nobody waits any more. Either may be NULL. */
void relay_stop(struct relay *relay);
void relay_free(struct relay *relay);

/* As crowd_driver_config.look has it; crowd_driver_looked() follows. The ring's loop. */
bool relay_look(struct relay *relay, uint64_t number, struct bytes wish);

/* What config.look was asked for. Is the number the relay's? Any thread. */
bool relay_looked(struct relay *relay, uint64_t number);

struct relay_stat {
    uint64_t members_count; /* light members that are there */
    uint64_t members_max;
    uint64_t searches_count; /* for them */
    uint64_t wishes_count;   /* passed on to them */
    uint64_t taken_count;    /* captures that they had */
    uint64_t refused_count;  /* searches and wishes above the bounds, light members beyond the number */
};

/* Any thread. */
void relay_stat(struct relay *relay, struct relay_stat *ret_stat);

#endif
