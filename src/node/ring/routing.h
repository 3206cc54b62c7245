/*
 * routing - which nodes a URL belongs to, for the crawl (crawl/rules/route.h): the holders of its position
 * (holders.h).
 *
 * Among the holders the first `witnesses` fetch, the others keep. While nothing is known (the node is not yet
 * in its ring), a URL is kept and not fetched; it is looked at again when the ring has changed.
 *
 * Any thread.
 */
#ifndef MNEMON_NODE_RING_ROUTING_H
#define MNEMON_NODE_RING_ROUTING_H

#include "crawl/rules/route.h"
#include "node/ring/holders.h"
#include "store/keyset/position.h"

struct routing;

struct routing *routing_new(struct holders *holders); /* NULL: out of memory */
void routing_free(struct routing *routing);

/* By the charter. */
void routing_set_rules(struct routing *routing, enum position_mapping mapping, size_t witnesses);

/* The patterns of a charter's scope; its founder has read them, and what cannot be read here lets nothing in.
 */
struct charter;
struct pattern_list;
void routing_read_scope(const struct charter *charter, struct pattern_list *ret_patterns);
void routing_set_scope(struct routing *routing, const struct charter *charter);

/* As struct route has them. */
bool routing_allows(struct routing *routing, struct bytes url);
enum route_verdict routing_ask(struct routing *routing, struct bytes url,
                               uint8_t ret_place[ROUTE_POSITION_SIZE]);

/* Is this node the first of its holders, as far as it knows? */
bool routing_is_primary(struct routing *routing, struct bytes url);

/* Do several nodes fetch each URL? */
bool routing_has_witnesses(struct routing *routing);

#endif
