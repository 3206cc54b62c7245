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
#include "node/settings.h"
#include "run/confine.h"
#include "store/instance/instance.h"

struct mirror_limit;
struct node;
struct parsers;
struct port_mapper;

/* 0 or NULL stands for the default in parentheses. */
struct node_config {
    const char *directory;           /* outlives the node */
    struct instance *instance;       /* outlives the node */
    const struct settings *settings; /* outlive the node; addresses and limits as below instead */
    struct address http;             /* port 0: any that is free */
    struct address ring;             /* for other nodes (node/transport/transport.h, as the next three) */
    struct address ring_public;      /* zeros: the same */
    struct address ring_second;      /* of the other family; zeros: none */
    struct port_mapper *port_mapper; /* (none) for its status; outlives the node */
    const char *ring_join;           /* HOST[:PORT] of somebody in it */
    const char *ring_token;
    const char *program;                     /* (none) its version, which other nodes are told */
    const struct mirror_limit *mirror_limit; /* (none) node/mirror/mirror_driver.h; outlives the node */
    const struct mirror_limit *mirror_upload_limit; /* likewise */
    struct confine_state confined;                  /* the process, for its status */
    struct parsers *parsers; /* (documents are parsed in the process itself) started; outlive the node */
    bool has_proxy;          /* (node/proxy/proxy.h) */
    struct address proxy;
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
bool node_is_light(const struct node *node); /* in its ring */

/* The address at which browsers find the proxy. False: there is none. */
bool node_proxy_address(const struct node *node, struct address *ret_address);

/*
 * Before any thread is started: SIGINT and SIGTERM no longer end the process but wait for
 * node_await_signal(), and a peer that is gone is an error of its connection only.
 */
void node_take_signals(void);

/* The number of the signal. 0: it did not come in this time. */
int node_await_signal(uint64_t time_us);

#endif
