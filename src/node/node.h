/*
 * node - the running node: the archive of a data directory, and what it offers to others.
 *
 *      HTTP   / /web/ /cdx …           the archive, for people and programs (replay/routes.h)
 *             /jobs /save /dashboard …  the work of the node, and its orders (replay/admin/, node/admin/)
 *             /api/v1/volumes…          its local volumes, for clients with the token (replay/volumes/)
 *
 *      proxy  the web for one's own browser, if that is wanted (node/proxy/proxy.h)
 *
 * and it runs the jobs of the data directory (node/crawl/crawl_loop.h) and is part of its ring
 * (node/transport/transport.h). DIR/node.json says where it is found (node/node_file.h).
 *
 * Threads: the ring's loop, the crawl's loop and its workers, those of the HTTP server, one committer per
 * volume, the monitor (node/admin/monitor.h), those of search and survey, and the caller's, which only waits.
 */
#ifndef MNEMON_NODE_NODE_H
#define MNEMON_NODE_NODE_H

#include "base/address.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/err.h"
#include "node/ring_services.h"
#include "store/instance/instance.h"

struct node;

/* 0 or NULL stands for the default in parentheses. */
struct node_config {
    const char *directory;         /* outlives the node */
    struct instance *instance;     /* outlives the node */
    struct address http;           /* port 0: any that is free */
    unsigned connections_max;      /* of HTTP (http/server/http_server.h) */
    uint32_t request_timeout_ms;   /* likewise */
    struct config_list hosts;      /* of HTTP, as the three below (replay/admin/admin.h); outlive the node */
    uint64_t rate;                 /* likewise; 0: any */
    bool reads_need_login;         /* likewise */
    const char *title;             /* of the archive ("mnemon"); outlives the node */
    bool searches;                 /* full text (replay/search/search.h) */
    const char *crawl_user_agent;  /* of the crawl; as in node/crawl/crawl_loop.h */
    const char *crawl_nameservers; /* likewise */
    size_t crawl_connections_max;  /* likewise */
    bool crawl_allows_private;     /* likewise */
    struct address ring;           /* as others reach it (node/transport/transport.h, as the four below) */
    const char *ring_join;         /* HOST[:PORT] of somebody in it */
    const char *ring_token;
    uint8_t ring_places;
    uint8_t ring_first_place;
    uint64_t ring_upload_rate; /* (any) bytes a second for other nodes (node/ring_services.h), as the next */
    uint64_t ring_download_rate;
    uint32_t ring_reads_rate; /* (any) a second, of other nodes */
    struct ring_services_copies copies;
    bool leads_away;           /* readers of what is not here (replay/site/replay.h) */
    const char *public_origin; /* (none) node/reading/public_urls.h */
    struct ring_services_crowd crowd;
    struct ring_services_groups groups;
    struct ring_services_mirrors mirrors;
    bool has_proxy; /* (node/proxy/proxy.h, as the four below) */
    struct address proxy;
    uint64_t proxy_timeout_us;
    bool proxy_intercepts;
    bool proxy_archives;
    void (*tell)(void *context, const char *name,
                 const char *sentence);                /* of a job; any thread; may be NULL */
    void (*note)(void *context, const char *sentence); /* of the rest; any thread; may be NULL */
    void *context;
    const struct clock *clock; /* (clock_system) */
};

/* ERR_BUSY: the port is taken; the errors of node/admin/token.h. */
enum err node_start(const struct node_config *config, struct node **ret_node,
                    struct err_detail *detail) MUST_CHECK;

/* Requests that have begun are answered; what was stored is durable. */
void node_stop(struct node *take_node);

void node_http_address(const struct node *node, struct address *ret_address);
const char *node_token_path(const struct node *node);
const char *node_token(const struct node *node);
size_t node_volumes_count(const struct node *node); /* that it offers */

/* The address of its socket for other nodes. False: it is in no ring, and in no group yet. */
bool node_ring_address(const struct node *node, struct address *ret_address);
bool node_has_ring(const struct node *node);

/* The address at which browsers find the proxy. False: there is none. */
bool node_proxy_address(const struct node *node, struct address *ret_address);

/*
 * Before any thread is started: SIGINT and SIGTERM no longer end the process but wait for
 * node_await_signal(), and a peer that is gone is an error of its connection only.
 */
void node_take_signals(void);

/* The number of the signal. */
int node_await_signal(void);

#endif
