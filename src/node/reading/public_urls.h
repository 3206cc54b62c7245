/*
 * public_urls - the origins at which browsers find other nodes, so that this one can lead readers to the node
 * that is responsible (ring.redirect) instead of fetching for them.
 *
 * A node tells its own when it is asked (PEER_RPC_ENTRANCE), and signs it with its key: no node can speak for
 * another, and readers are not led to what is not signed. It is an origin, "https://archive.example.org", and
 * nothing else: no path, no name, no password. An answer counts for ten minutes, silence for half a minute.
 */
#ifndef MNEMON_NODE_READING_PUBLIC_URLS_H
#define MNEMON_NODE_READING_PUBLIC_URLS_H

#include "base/clock.h"
#include "node/rpc/peer_rpc.h"

enum { PUBLIC_URLS_TEXT_SIZE = 256 /* with its zero byte */ };

struct public_urls;

struct public_urls_config {
    struct peer_rpc *peer_rpc;
    const struct identity *identity; /* borrowed */
    const char *own;                 /* our own, copied; NULL: we have none */
    uint32_t timeout_ms;             /* of a question; 0: 1,000 */
    const struct clock *clock;
    void (*blame)(void *context, const struct peer *peer, const char *sentence); /* any thread */
    void *context;
};

/* "http://HOST", "https://HOST:PORT": exactly as the origin of a URL is written? */
bool public_urls_is_origin(struct bytes text);

/* Serves its question: before peer_rpc_start(). NULL: out of memory. */
struct public_urls *public_urls_new(const struct public_urls_config *config);
void public_urls_free(struct public_urls *public_urls); /* after peer_rpc_stop() */

/*
 * False: the node has none, does not say, or too many wait already. Any thread but that of peer_rpc; waits
 * for the node.
 */
bool public_urls_find(struct public_urls *public_urls, const struct peer *peer,
                      char out[PUBLIC_URLS_TEXT_SIZE]);

#endif
