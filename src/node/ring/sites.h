/*
 * sites - at which site each node stands, and whether holders are chosen by it
 * (docs/decisions/0021-sites.md).
 *
 * A site is a name that nodes say of themselves (--site), or their network. Holders are chosen by sites from
 * when all nodes that are known have said that they understand it, and as long as none is known that does
 * not: a newcomer that has not said hello yet changes nothing. With one site only there is nothing to choose.
 *
 * The ring's loop brings the news with sites_update(); any thread may ask.
 */
#ifndef MNEMON_NODE_RING_SITES_H
#define MNEMON_NODE_RING_SITES_H

#include "base/arena.h"
#include "node/versions/dialects.h"
#include "replay/admin/ring_view.h"

struct sites;

/* dialects outlive it. NULL: out of memory. */
struct sites *sites_new(struct dialects *dialects);
void sites_free(struct sites *sites); /* may be NULL */

/* These are the nodes of the ring, self among them. */
void sites_update(struct sites *sites, const struct peer *nodes, size_t nodes_count, const struct peer *self);

/* Are holders chosen by sites now? sites: NULL: no. */
bool sites_are_used(struct sites *sites);

/* Two nodes stand at one site if it is equal. */
uint64_t sites_of(struct sites *sites, const struct peer *peer);

/*
 * For people: the names, whether they count, and why not; and how many captures of the arcs that are this
 * node's own, as view->copies has them, have a copy at each site.
 */
void sites_view(struct sites *sites, struct arena *arena, struct ring_view *view);

#endif
