/*
 * fetch_transfer - one transfer of the engine (fetch.h): libcurl's handle, what has arrived, what became of
 * it. And the engine as its transfers see it.
 *
 *      NAME ──> CONNECT ──> WAIT ──> HEAD ──> BODY
 *      the name      the request     first line of the    the head
 *      is known      goes out        final response       is whole
 *
 * A transfer and its handle are used again and again; options that hold for all transfers are set once. After
 * the end of a transfer nothing of it is left in here: the result has been handed over.
 */
#ifndef MNEMON_CRAWL_FETCH_FETCH_TRANSFER_H
#define MNEMON_CRAWL_FETCH_FETCH_TRANSFER_H

#include <curl/curl.h>

#include "crawl/fetch/fetch_hosts.h"
#include "crawl/fetch/fetch_message.h"
#include "crawl/fetch/fetch_sockets.h"
#include "crawl/fetch/fetch_trust.h"
#include "http/message/chunked.h"
#include "http/message/http_head.h"
#include "net/dns.h"
#include "web/url/url.h"

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
