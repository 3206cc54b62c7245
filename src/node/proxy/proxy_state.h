/*
 * proxy_state - the state of proxy.h. Private; all of it belongs to the thread of the proxy's loop.
 *
 * One machine in several files: proxy.c listens and drives the connections of browsers; proxy_exchange.c runs
 * one request: asks the origin or others, and passes on what comes.
 */
#ifndef MNEMON_NODE_PROXY_PROXY_STATE_H
#define MNEMON_NODE_PROXY_PROXY_STATE_H

#include "base/standing.h"
#include "http/message/http_body.h"
#include "net/dns.h"
#include "node/proxy/proxy.h"
#include "node/proxy/proxy_authority.h"
#include "node/proxy/proxy_head.h"
#include "node/proxy/proxy_jobs.h"
#include "node/proxy/proxy_wire.h"
#include "run/loop.h"

enum { PROXY_REASON_SIZE_MAX = 200, PROXY_SILENCES_MAX = 64 };

/* ---- the origin of one request ---- */

enum proxy_origin_state {
    PROXY_ORIGIN_NONE,
    PROXY_ORIGIN_RESOLVING,
    PROXY_ORIGIN_CONNECTING,
    PROXY_ORIGIN_OPEN,     /* the request is on its way */
    PROXY_ORIGIN_ANSWERED, /* the head of its answer is there */
    PROXY_ORIGIN_FAILED,
};

struct proxy_origin {
    enum proxy_origin_state state;
    struct url url; /* of whose host */
    bool is_tunnel; /* nothing is said to it, and TLS is the browser's */
    struct dns_question question;
    struct dns_answer answer;
    size_t next_index;    /* of the answer's addresses */
    uint64_t begun_at_us; /* the connection to that one */
    struct address address;
    struct proxy_wire *wire;
    struct buf request;    /* its head, until it is sent */
    struct http_head head; /* of the answer */
    bool has_head_memory;
    bool is_untrusted; /* one of its addresses had a false certificate */
    enum err err;      /* of FAILED; ERR_PERMISSION: it may not be asked at all */
    char reason[PROXY_REASON_SIZE_MAX];
};

/* ---- one request ---- */

enum proxy_look { PROXY_LOOK_NOT_YET, PROXY_LOOK_PENDING, PROXY_LOOK_FOUND, PROXY_LOOK_NOTHING };

struct proxy_exchange {
    struct proxy_origin origin;
    bool is_head;
    bool may_fall_back; /* others than the origin may answer it */
    bool is_public;     /* it shows nothing that only this browser has */
    bool keeps_connection;
    bool expects_continue;
    bool wants_upgrade;
    unsigned minor_version;
    uint64_t begun_at_us;
    struct http_body request_body;

    bool is_relaying; /* the head of the origin's answer went to the browser */
    struct http_body answer_body;
    struct proxy_job *copy; /* of what passes, to be kept; NULL: it is not */

    enum proxy_look look;
    struct proxy_job *looked; /* of PENDING: not ours now; of the other two: what came */
    uint64_t sent_size;       /* of the answer that was found */
    struct buf accepts;
};

/* ---- one browser's connection ---- */

enum proxy_phase {
    PROXY_PHASE_HEAD,     /* waits for a request */
    PROXY_PHASE_PEEK,     /* behind CONNECT: what will it speak? */
    PROXY_PHASE_SHAKE,    /* TLS with it is being agreed on */
    PROXY_PHASE_EXCHANGE, /* the origin or somebody else is asked */
    PROXY_PHASE_ANSWER,   /* what somebody else had is sent */
    PROXY_PHASE_DIAL,     /* CONNECT: to the origin */
    PROXY_PHASE_TUNNEL,
    PROXY_PHASE_LINGER, /* all is said; a while for the browser to read it */
    PROXY_PHASE_DEAD,
};

struct proxy_connection {
    struct proxy *proxy;
    struct proxy_connection *next;
    struct proxy_connection *previous;
    struct proxy_wire *client;
    enum proxy_phase phase;
    uint64_t since_us; /* this phase, or the first byte of a head */
    bool has_begun;    /* that byte is there */
    uint64_t moved;    /* by the wires, when last looked */
    uint64_t moved_at_us;
    struct buf secure_host; /* "host:port" where https: is taken apart, else empty */
    struct proxy_exchange exchange;
};

struct proxy {
    struct proxy_config config; /* with its defaults filled in */
    struct address bound;
    bool is_private; /* only this machine can reach it */
    struct loop loop;
    uv_tcp_t listener;
    struct loop_timer tick;
    struct dns *dns;
    struct proxy_authority *authority; /* NULL: tunnels only */
    struct proxy_jobs *jobs;
    struct proxy_connection *connections;
    size_t connections_count;
    struct standing standing; /* servers that were silent: others are asked at once, not after the time-out */
    struct standing_entry silences[PROXY_SILENCES_MAX];
    struct proxy_head head; /* for the request that is being read */
    uint64_t noted_us;      /* when it was last said where a dead server can be read */
};

static inline uint64_t proxy_now_us(const struct proxy *proxy) {
    return clock_monotonic_us(proxy->config.clock);
}

/* proxy.c */
void proxy_connection_run(void *connection); /* something may have changed */
void proxy_connection_enter(struct proxy_connection *connection, enum proxy_phase phase);

/* An answer of our own; then the next request, or the end. */
void proxy_connection_refuse(struct proxy_connection *connection, unsigned status, const char *sentence);

/* The exchange is over: the next request, or the end. */
void proxy_connection_next(struct proxy_connection *connection);

/* proxy_exchange.c: true if more can be done at once. */
void proxy_exchange_init(struct proxy_exchange *exchange);
void proxy_exchange_begin(struct proxy_connection *connection, const struct proxy_head *head);
bool proxy_exchange_run(struct proxy_connection *connection);
bool proxy_exchange_answer(struct proxy_connection *connection);
void proxy_exchange_looked(void *take_job);
void proxy_exchange_end(struct proxy_exchange *exchange); /* ready for the next one */
void proxy_exchange_done(struct proxy_exchange *exchange);

bool proxy_relay_tunnel(struct proxy_connection *connection);

/* exchange.origin.url is set. */
void proxy_origin_begin(struct proxy_connection *connection);
void proxy_origin_step(struct proxy_connection *connection);

#endif
