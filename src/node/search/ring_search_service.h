/*
 * ring_search_service - the other side of a search over the ring: answers PEER_RPC_SEARCH from the index of
 * this node, with the arcs of which it surely has everything.
 *
 * The search runs on the threads of search.h, so that the thread of peer_rpc never waits for it; at most
 * RING_SEARCH_SERVICE_MAX questions of others are under way at a time, and few of one node. What is above
 * that, and above the rate of what readers may ask (ring.requests), is told ERR_BUSY at once.
 */
#ifndef MNEMON_NODE_SEARCH_RING_SEARCH_SERVICE_H
#define MNEMON_NODE_SEARCH_RING_SEARCH_SERVICE_H

#include "node/search/ring_search.h"

enum { RING_SEARCH_SERVICE_MAX = 8, RING_SEARCH_SERVICE_PER_NODE = 4 };

struct ring_search_service;

/* The config: of it peer_rpc, search, archive, claims and context. Before peer_rpc_start(), or while it
 * runs. NULL: out of memory. */
struct ring_search_service *ring_search_service_new(const struct ring_search_config *config);

/* After peer_rpc_stop() and search_stop(). NULL is nothing. */
void ring_search_service_free(struct ring_search_service *service);

#endif
