/*
 * proxy - an HTTP proxy for one's own browser: the web as it is, and as others have just seen it if it is not
 * there.
 *
 *      browser ──> origin ─ answers ─────────────────────────────> passed through; what may be public is
 *                         │                                        offered to the crowd (proxy_jobs.c)
 *                         ─ no name, no connection, 502 to 504, ─> the crowd, then the archive, then a page
 *                           no byte for timeout_us                 that says what was tried
 *
 * Only GET and HEAD without a body are answered from elsewhere, marked by X-Mnemon-Source. An origin that is
 * only slow is waited for while others are asked, and still answers if it is first or they have nothing.
 * https: is a tunnel that is not looked into, unless the user asked for it (proxy_authority.h).
 *
 *      proxy.c             the socket, the loop, time-outs; a browser's connection: its requests, its tunnels
 *      proxy_exchange.c    one request: the origin, or others in its place; what passes through
 *      proxy_wire.c        TCP and TLS;  proxy_head.c  the heads of HTTP
 *      proxy_jobs.c        threads for what may wait: looking for an answer, keeping a capture
 *      proxy_substitute.c  what such an answer may be, and do
 *
 * Threads: a loop of its own, which never waits, and PROXY_THREADS_COUNT for the rest. What is refused, and
 * why, is in docs/proxy.md.
 */
#ifndef MNEMON_NODE_PROXY_PROXY_H
#define MNEMON_NODE_PROXY_PROXY_H

#include "base/address.h"
#include "base/clock.h"
#include "node/crowd/crowd_parts.h"
#include "node/transport/transport.h"
#include "replay/archive/archive.h"

struct proxy;

enum { PROXY_CONNECTIONS_MAX = 256, PROXY_THREADS_COUNT = 8 };

/* 0 or NULL stands for the default in parentheses. All of it outlives the proxy. */
struct proxy_config {
    const char *directory; /* of the data */
    struct address listen; /* port 0: any that is free */
    uint64_t timeout_us;   /* (3 s) for the first byte of the origin; then others are asked, too */
    bool intercepts;       /* takes https: apart, with certificates of its own */
    bool archives;         /* what may be public is stored, too */
    bool allows_private;   /* names may lead to private addresses, and what is there may be offered */
    const char *nameservers;
    struct archive *archive;
    struct access *access; /* its rules count for the crowd, too */
    bool reads_need_login; /* then only those who must be at this machine are shown the archive */
    const struct crowd_parts *crowd;
    struct transport *transport;
    struct address http; /* the node's own pages: not to be had through the proxy */
    const struct clock *clock;
    void (*note)(void *context,
                 const char *sentence); /* for the person in front of it; NULL: nobody is told */
    void *context;
};

/* ERR_BUSY if the port is taken; the errors of proxy_authority_open(). */
enum err proxy_start(const struct proxy_config *config, struct proxy **ret_proxy,
                     struct err_detail *detail) MUST_CHECK;

/* Connections break off. After the crowd was stopped, so that nobody waits for it. */
void proxy_stop(struct proxy *take_proxy);

void proxy_address(const struct proxy *proxy, struct address *ret_address);

#endif
