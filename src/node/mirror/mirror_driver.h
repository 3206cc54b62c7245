/*
 * mirror_driver - mirror-d on a real node: the collections of the data directory, kept up to date.
 *
 *      DIR/collections/NAME ──> collection.h      what is here and on its way
 *      protocol/mirror/mirror.h                   one for each: which version, from which nodes, which to
 * tell PEER_RPC_MIRROR                            questions to others and of others (mirror_driver_code.h)
 *
 * A thread of its own does all the work and waits for nobody: its questions go through peer RPC, the answers
 * come back to its queue. Questions of others are answered by the thread of peer RPC, from files.
 *
 * Sources are the neighbours in the topologies of the groups, those that people named (--from), and whoever
 * asks us about a collection: it is told when there is news. Nobody is believed: versions are signed by the
 * publisher, everything else has a digest below the one that is signed. A node that gives something else is
 * blamed and left out for a while. Members of our groups and of our ring may ask for every collection, others
 * for those whose owner named them or said "public" (collection_setup.h).
 *
 * docs/protocol/mirror.md.
 */
#ifndef MNEMON_NODE_MIRROR_MIRROR_DRIVER_H
#define MNEMON_NODE_MIRROR_MIRROR_DRIVER_H

#include "base/clock.h"
#include "base/json.h"
#include "node/rpc/peer_rpc.h"
#include "protocol/mirror/mirror.h"

struct mirror_driver;

enum { MIRROR_DRIVER_SOURCES_MAX = 64 };

/* 0 or NULL stands for the default in parentheses. */
struct mirror_driver_config {
    const char *directory; /* of the data; outlives it */
    struct peer_rpc *peer_rpc;
    struct peer self;
    uint64_t gather_us;               /* (1 min) protocol/mirror/mirror.h, as the next */
    uint64_t ask_us;                  /* (10 min) */
    const struct mirror_limit *limit; /* (none) how fast collections are fetched; copied, as the next */
    const struct mirror_limit *upload_limit; /* (none) and given */
    const struct clock *clock;               /* (clock_system) */
    /* May the peer read every collection: is it in a group or in the ring with us? NULL: every node may. */
    bool (*is_member)(void *context, const struct peer *peer);
    /* The neighbours of all groups; how many. May be NULL. */
    size_t (*neighbours)(void *context, struct mirror_source out[MIRROR_DRIVER_SOURCES_MAX]);
    /* So much came from the peer in so long. May be NULL. */
    void (*learned)(void *context, const struct peer *peer, uint64_t size, uint64_t duration_us);
    void (*blame)(void *context, const struct peer *peer, const char *sentence);
    void (*note)(void *context, const char *sentence);
    /* Append what is known of it as an archive, as a member of its JSON. May be NULL. */
    void (*put_archive)(void *context, const char *name, struct json *json);
    void *context;
};

/* Serves PEER_RPC_MIRROR; before peer_rpc_start(). */
enum err mirror_driver_new(const struct mirror_driver_config *config,
                           struct mirror_driver **ret_mirror_driver, struct err_detail *detail) MUST_CHECK;
enum err mirror_driver_start(struct mirror_driver *driver, struct err_detail *detail) MUST_CHECK;

/* After peer_rpc_stop(); what has come stays. */
void mirror_driver_stop(struct mirror_driver *driver);
void mirror_driver_free(struct mirror_driver *driver);

/* Any thread: is a peer heard that shares no group or ring with us? It is if we ask it, or if others may read
 * something here; what it may have is judged question by question. */
bool mirror_driver_hears(struct mirror_driver *driver, const struct peer *peer);

/* Any thread: append what /api/v1/mirrors says (docs/api.md). NULL: of a node without collections. */
void mirror_driver_put(struct mirror_driver *driver, struct buf *out);

/* Any thread: append the numbers of all collections for /metrics. NULL: likewise. */
void mirror_driver_put_metrics(struct mirror_driver *driver, struct buf *out);

/* Any thread: write the section on collections of the dashboard; nothing if there are none. */
struct sheet;
void mirror_driver_show(struct mirror_driver *driver, struct sheet *sheet);

#endif
