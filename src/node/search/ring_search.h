/*
 * ring_search - full text over the ring: what this node asks others, and how their answers become one.
 *
 *      search_job of a reader ──> a thread of the pool ──> search.h, here
 *                                        │            └──> PEER_RPC_SEARCH, to as many nodes as hold the rest
 *                                        │                 (protocol/search/search_cover.h)
 *                                        └── merged by score, each capture once ──> done()
 *
 * A holder that is silent is not waited for long: another one is asked in its place. The search ends when all
 * of the ring is answered for, when nobody is left to ask, or after RING_SEARCH_TIME_US; the report says what
 * was not searched and why.
 *
 * Holders that are gone are not asked, since the ring does not know them any more. If as many went lately as
 * there are copies, some captures may be on none of those that are left: the report says so.
 *
 * What others say is checked (search_code.h), and the rules of this node hold for it: its access rules, what
 * the ring has deleted, the scope of the ring. A result is a claim until the capture is opened, which checks
 * it: so each names the node that gave it.
 *
 * Any thread may ask. Bounds: RING_SEARCH_THREADS searches at a time, RING_SEARCH_WAITING wait, each asks
 * RING_SEARCH_NODES_MAX nodes, RING_SEARCH_AT_ONCE at a time, and takes RING_SEARCH_ANSWERS_SIZE_MAX bytes.
 */
#ifndef MNEMON_NODE_SEARCH_RING_SEARCH_H
#define MNEMON_NODE_SEARCH_RING_SEARCH_H

#include "node/rpc/peer_rpc.h"
#include "protocol/search/search_cover.h"
#include "replay/search/search.h"
#include "replay/search/search_ring.h"

struct ring_search;

enum {
    RING_SEARCH_THREADS = 4,
    RING_SEARCH_WAITING = 16,
    RING_SEARCH_NODES_MAX = 256,
    RING_SEARCH_AT_ONCE = 64,
    RING_SEARCH_ANSWERS_SIZE_MAX = 32 << 20,
    RING_SEARCH_SEEN_MAX = 1024, /* nodes of which it is known that they went */
    RING_SEARCH_KNOWN_NODES_MAX = 1 << 14,
    RING_SEARCH_KNOWN_ARCS_MAX = 1 << 16,
    RING_SEARCH_TIME_US = 3000000, /* of one search: more than a node takes for its part */
};

/* Of which arcs this node surely has everything; any thread. */
typedef void ring_search_claims(void *context, bool *ret_has_everything,
                                struct search_code_arc out[SEARCH_CODE_ARCS_MAX], uint32_t *ret_count);

/* NULL stands for the default in parentheses; all of it outlives the search. */
struct ring_search_config {
    struct peer_rpc *peer_rpc;
    struct search *search;
    struct archive *archive;
    struct dialects *dialects; /* (no node has search) */
    struct peer self;
    const struct clock *clock;
    ring_search_claims *claims;
    /* All arcs of the ring as it is known, by visit(); how many nodes there are. Any thread. */
    size_t (*each_arc)(void *context, void (*visit)(void *visitor, const struct holders_arc *arc),
                       void *visitor);
    size_t (*copies)(void *context); /* R of the charter */
    uint64_t gone_us;                /* so long a node that went is remembered */
    /* Is the URL in the scope of the ring? (yes) */
    bool (*allows)(void *context, struct bytes url);
    void (*blame)(void *context, const struct peer *peer, const char *sentence);
    void *context;
};

enum err ring_search_start(const struct ring_search_config *config,
                           struct ring_search **ret_ring_search) MUST_CHECK;

/* After peer_rpc_stop(): searches end with what they have. */
void ring_search_stop(struct ring_search *ring_search);

/* After search_stop(). NULL is nothing. */
void ring_search_free(struct ring_search *ring_search);

/* These are the nodes of the ring now: every few seconds, from one thread. */
void ring_search_see(struct ring_search *ring_search, const struct peer *nodes, size_t count);

/* As search_ask(); job and report are the caller's until done(). ERR_BUSY: too many wait already. */
enum err ring_search_ask(struct ring_search *ring_search, struct search_job *job,
                         struct search_ring_report *report) MUST_CHECK;

#endif
