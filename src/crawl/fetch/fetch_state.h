/*
 * fetch_state - what the engine (fetch.h) is made of, and what its files tell each other. Private to them:
 * one machine in several files, each of which begins with what it does.
 */
#ifndef MNEMON_CRAWL_FETCH_FETCH_STATE_H
#define MNEMON_CRAWL_FETCH_FETCH_STATE_H

#include <curl/curl.h>
#include <openssl/ssl.h>
#include <uv.h>

#include "base/address.h"
#include "base/buf.h"
#include "base/map.h"
#include "crawl/fetch/fetch.h"
#include "crawl/fetch/logins.h"
#include "http/message/chunked.h"
#include "http/message/http_head.h"
#include "net/dns.h"
#include "web/url/url.h"

/* ---- fetch_hosts.c ---- */

struct fetch_host {
    struct dns_answer answer; /* as libcurl has it */
    size_t users_count;
    size_t key_size;
    char key[]; /* "example.org:80" */
};

struct fetch_hosts {
    struct map map; /* key: struct fetch_host * */
};

void fetch_hosts_init(struct fetch_hosts *hosts, size_t count_max, uint64_t seed);
void fetch_hosts_done(struct fetch_hosts *hosts);

/*
 * One more transfer goes to the host. What libcurl must be told for that is appended: to tell
 * "example.org:80:192.0.2.1,[2001:db8::1]", to forget "-example.org:80", mostly nothing to either.
 */
enum err fetch_hosts_use(struct fetch_hosts *hosts, struct bytes key, const struct dns_answer *answer,
                         struct buf *tell, struct buf *forget, struct fetch_host **ret_host) MUST_CHECK;

/* The transfer has ended; host may be NULL. */
void fetch_hosts_leave(struct fetch_host *host);

/* libcurl may not have heard it: tell it again next time. */
void fetch_hosts_doubt(struct fetch_host *host);

/* ---- fetch_message.c ---- */

enum {
    FETCH_MESSAGE_VALUE_SIZE_MAX = 4096, /* of If-None-Match and its like; longer ones are left out */
    FETCH_MESSAGE_BLOCK_SIZE_MAX = 64 << 10,
};

/* What all requests of an engine share. */
struct fetch_message {
    struct buf block;   /* of a request without anything special, ended by a zero byte beyond its size */
    size_t public_size; /* of the block: what is recorded of it */
    struct buf rest;    /* the block after the line of Accept */
    struct buf secrets; /* own headers that no record may show; they end a block */
    const char *accept; /* from the own headers, or NULL */
};

/* ERR_INVALID, with the reason, if an own header is none or is not for others to set. */
enum err fetch_message_init(struct fetch_message *message, const struct fetch_config *config,
                            struct err_detail *detail) MUST_CHECK;
void fetch_message_done(struct fetch_message *message);

/*
 * Whether message->block does, or fetch_message_put_block() must make one. login: the value of Authorization
 * (logins_find()), or empty. The first *ret_public_size bytes of the block may be recorded.
 */
bool fetch_message_is_usual(const struct fetch_request *request, struct bytes login);
enum err fetch_message_put_block(const struct fetch_message *message, const struct fetch_request *request,
                                 struct bytes login, struct buf *block, size_t *ret_public_size) MUST_CHECK;

/* The path and query of the URL; all of it, without user and fragment, for a proxy. */
enum err fetch_message_put_target(const struct url *url, bool is_for_proxy, struct buf *target) MUST_CHECK;

/* "http://example.org:8080" */
enum err fetch_message_put_origin(const struct url *url, struct buf *origin) MUST_CHECK;

/* The whole request, with as much of the block as may be recorded. */
enum err fetch_message_put(struct bytes target, const struct url *url, struct bytes block,
                           struct buf *request) MUST_CHECK;

/* ---- fetch_sockets.c ---- */

struct fetch_socket {
    uint32_t watched; /* EPOLLIN, EPOLLOUT; 0: not in the set */
    bool is_wanted;   /* a transfer waits for it */
    bool is_own;      /* made by fetch_sockets_open(): a connection */
};

typedef void fetch_sockets_ready(void *context);

struct fetch_sockets {
    uv_loop_t *loop;
    uv_poll_t poll; /* of the set */
    uv_timer_t timer;
    CURLM *multi;
    int epoll_fd;
    struct fetch_socket *items; /* by file descriptor */
    size_t items_count;
    size_t open_count; /* connections, kept ones included */
    bool is_due;       /* libcurl wants to be called now */
    bool is_running;
    fetch_sockets_ready *ready; /* libcurl has done something: look for transfers that ended */
    void *context;
};

/* Take over the socket and timer functions of the multi handle. */
enum err fetch_sockets_init(struct fetch_sockets *sockets, uv_loop_t *loop, CURLM *multi,
                            fetch_sockets_ready *ready, void *context, struct err_detail *detail) MUST_CHECK;

/* After the multi handle has gone. Closed by the loop: on_closed is called FETCH_SOCKETS_HANDLES times. */
enum { FETCH_SOCKETS_HANDLES = 2 };
void fetch_sockets_close(struct fetch_sockets *sockets, uv_close_cb on_closed);
void fetch_sockets_done(struct fetch_sockets *sockets);

/* For CURLOPT_OPENSOCKETFUNCTION and CURLOPT_CLOSESOCKETFUNCTION: a socket, or -1 with errno. */
int fetch_sockets_open(struct fetch_sockets *sockets, const struct curl_sockaddr *address);
int fetch_sockets_close_one(struct fetch_sockets *sockets, int fd);

/* ---- fetch_trust.c ---- */

struct fetch_trust {
    X509_STORE *store; /* NULL until the first connection */
    bool refuses_bad;
};

void fetch_trust_init(struct fetch_trust *trust, bool refuses_bad);
void fetch_trust_done(struct fetch_trust *trust);

/* Prepare the context of one connection to the host, a name or an address without brackets. */
enum err fetch_trust_prepare(struct fetch_trust *trust, SSL_CTX *context, struct bytes host) MUST_CHECK;

/* What was found, of a connection or a code of OpenSSL's. */
void fetch_trust_report(const SSL *connection, struct fetch_result *result);
void fetch_trust_report_code(long code, struct fetch_result *result);

/* The handshake is over: let go of the certificate, the verdict stays. Harmless if that was done before.
 */
void fetch_trust_settle(SSL *connection);

/* Let go of the buffers that an idle connection need not have; the next read takes them again. */
void fetch_trust_release(SSL *connection);

/* ---- fetch_transfer.c ---- */

enum fetch_phase {
    FETCH_PHASE_NAME,
    FETCH_PHASE_CONNECT,
    FETCH_PHASE_WAIT,
    FETCH_PHASE_HEAD,
    FETCH_PHASE_BODY,
};

struct fetch_transfer {
    struct fetch *fetch;
    CURL *easy;
    struct fetch_transfer *next; /* of the running ones, the failed ones or the free ones */
    struct fetch_transfer *previous;
    fetch_done *done;
    void *context;
    struct fetch_result *result;
    struct url url;
    struct dns_question question;
    struct fetch_host *host; /* NULL: libcurl was told nothing */
    enum fetch_phase phase;
    bool is_added; /* to the multi handle */
    bool is_told;  /* libcurl was given addresses with this transfer */
    bool is_chunked;
    bool allows_private;
    bool is_fresh;     /* libcurl was told to take no connection of others */
    uint64_t start_us; /* monotonic, as the next ones */
    uint64_t sent_us;
    uint64_t first_byte_us;
    uint64_t progress_ms;   /* of the loop's clock: when something last happened */
    uint64_t slow_since_us; /* monotonic; since then less than slow_size_min came; 0: no body yet */
    uint64_t slow_from_size;
    size_t heads_size;     /* with those of informational responses */
    struct chunked chunks; /* of the body, if is_chunked */
    enum err own_err;      /* why a callback of ours ended the transfer */
    const char *refusal;   /* why its address was refused */
    int socket_errno;      /* why there was no socket */
    struct buf origin;     /* of the URL; what libcurl has */
    struct buf target;
    struct buf block; /* of the request, where it is not the usual one */
    struct buf tell;
    struct buf forget;
    struct curl_slist block_node;
    struct curl_slist tell_node;
    struct curl_slist forget_node;
    long cache_timeout_s; /* as set */
    char error_text[CURL_ERROR_SIZE];
};

/* The engine, as its parts see it. */
struct fetch {
    struct fetch_config config; /* with the defaults filled in */
    CURLM *multi;
    struct fetch_sockets sockets;
    struct fetch_message message;
    struct http_head head; /* of the response that is being looked at */
    struct fetch_hosts hosts;
    struct fetch_trust trust;
    uv_timer_t sweep; /* for time-outs; runs, and keeps the loop running, while transfers do */
    uint64_t sweep_ms;
    struct fetch_transfer *running;
    struct fetch_transfer *failed; /* before libcurl saw them: done() is due */
    struct fetch_transfer *free_ones;
    size_t running_count; /* failed ones included */
    size_t free_count;
    uint64_t received_size;
    uint64_t sent_size;
    size_t open_handles_count; /* of libuv */
    bool is_proxy_http;        /* and not SOCKS */
    bool is_in_done;
};

/* The host of its URL, an IPv6 address without brackets. */
static inline struct bytes fetch_transfer_host(const struct fetch_transfer *transfer) {
    struct bytes host = url_host(&transfer->url);
    return transfer->url.host_type == URL_HOST_IPV6 ? bytes_slice(host, 1, host.size - 1) : host;
}

/* NULL if there is no memory. */
struct fetch_transfer *fetch_transfer_new(struct fetch *fetch);
void fetch_transfer_free(struct fetch_transfer *transfer);

/* Begin: find the name's addresses and go on from there. ERR_OK, or the result says what is wrong already. */
enum err fetch_transfer_begin(struct fetch_transfer *transfer,
                              const struct fetch_request *request) MUST_CHECK;

/* Fill in the result from what libcurl says at the end. */
void fetch_transfer_judge(struct fetch_transfer *transfer, CURLcode code);

/* Past one of the limits at that time? The result then says so. */
bool fetch_transfer_is_late(struct fetch_transfer *transfer, uint64_t now_us, uint64_t now_ms);

/* A failure without libcurl's doing: fill in the result. Returns err. */
enum err fetch_transfer_fail(struct fetch_transfer *transfer, enum err err, bool is_worth_retry,
                             const char *format, ...) __attribute__((format(printf, 4, 5)));

/* In fetch.c: the transfer has failed outside of libcurl, after fetch_start(). */
void fetch_abandon(struct fetch_transfer *transfer);

#endif
