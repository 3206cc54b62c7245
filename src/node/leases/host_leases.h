/*
 * host_leases - hosts are lent and borrowed between the nodes of a ring, so that a host is asked by one node
 * at a time: what stands between two crawlers (crawl/rules/permit.h).
 *
 * The home of a host is the first holder of the position of its SURT's host part, "org,example)". Messages
 * (host_leases_code.h) go over streams (peer_rpc.h); between the crawl's loop and the thread of peer_rpc they
 * are handed over in both directions, and a task looks homes up, since that waits for the ring.
 *
 *      crawl's loop        permits ─> home known? ─> parcel ────> peer_rpc ─────> home
 *                          crawler <── event <────────────────── handler     <── borrower
 *      the finder          a home that is not known, did not answer or says it is none
 *
 * A message that is lost counts as a refusal after a while (crawler), or as a lease not given back
 * (host_lender.h). Parcels and events under way and hosts to look up are bounded; any more are dropped.
 */
#ifndef MNEMON_NODE_LEASES_HOST_LEASES_H
#define MNEMON_NODE_LEASES_HOST_LEASES_H

#include "crawl/rules/permit.h"
#include "node/ring/holders.h"
#include "node/rpc/peer_rpc.h"
#include "replay/admin/ring_view.h"

struct crawler;
struct host_leases;
struct loop;

struct host_leases_config {
    struct peer_rpc *peer_rpc; /* not started yet; outlives it */
    struct peer self;
    struct holders_source homes; /* know, find and own of it: the home of a position is its first holder */
    const struct clock *clock;   /* (clock_system) */
};

/* Serves PEER_RPC_LEND from now on. ERR_MEMORY, ERR_SYSTEM. */
enum err host_leases_new(const struct host_leases_config *config, struct host_leases **ret_host_leases,
                         struct err_detail *detail) MUST_CHECK;

/* For crawler_config. */
const struct permits *host_leases_permits(struct host_leases *host_leases);

/*
 * The crawler that has these permits, and its loop: before the loop runs, or on it. Until then, and after
 * host_leases_detach() (on the loop, before the crawler is freed), nothing is lent or borrowed. The loop ends
 * before host_leases_free().
 */
void host_leases_attach(void *host_leases, struct loop *loop, struct crawler *crawler);
void host_leases_detach(void *host_leases);

/* Detached, and peer_rpc is stopped. Waits for a lookup that is under way. */
void host_leases_free(struct host_leases *host_leases);

/* Any thread. */
void host_leases_stat(struct host_leases *host_leases, struct ring_view_leases *ret_stat);

#endif
