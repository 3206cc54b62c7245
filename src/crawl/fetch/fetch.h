/*
 * fetch - the download engine: many transfers on one loop, each recorded byte for byte.
 *
 * One request, one response: redirects are results, not followed. libcurl's multi_socket interface on libuv,
 * HTTP/1.1, connections kept alive. Names are resolved by net/dns.h on the same loop; every address is
 * checked against the rules of net/reach.h when it was resolved and again when the socket is made, so that no
 * answer of a nameserver leads to a private address.
 *
 * Bodies collect in a scratch (base/scratch.h): small ones in memory, large ones in an unlinked file; the
 * more transfers run, the smaller is "small". All functions are the loop thread's.
 *
 *      fetch.c            the engine: start, end, time-outs
 *      fetch_transfer.c   one transfer: libcurl's handle, what arrives, what became of it
 *      fetch_message.c    the request
 *      fetch_hosts.c      which addresses libcurl was told for which host
 *      fetch_sockets.c    libcurl's sockets and timer on the loop
 *      fetch_trust.c        certificates
 */
#ifndef MNEMON_CRAWL_FETCH_FETCH_H
#define MNEMON_CRAWL_FETCH_FETCH_H

#include "crawl/fetch/fetch_exchange.h"

struct fetch;

extern const char fetch_user_agent[];

struct fetch_stat {
    uint64_t running_count;
    uint64_t connections_count; /* open, kept ones included */
    uint64_t received_size;     /* since the start */
    uint64_t sent_size;
};

enum err fetch_new(const struct fetch_config *config, struct fetch **ret_fetch,
                   struct err_detail *detail) MUST_CHECK;

/*
 * Running transfers end with ERR_CANCELLED first. Not from inside done(). The memory goes when the loop has
 * run once more.
 */
void fetch_free(struct fetch *fetch);

/*
 * Start a transfer; done() is called later from the loop, never from inside this call. ERR_LIMIT if
 * transfers_max are running. What is wrong with the URL or its address is told by done().
 */
enum err fetch_start(struct fetch *fetch, const struct fetch_request *request, fetch_done *done,
                     void *context) MUST_CHECK;

/* All running transfers end with ERR_CANCELLED, before this returns. Start none meanwhile. */
void fetch_cancel(struct fetch *fetch);

/* For the whole process: as many connections and files as the system permits; it often gives 1,024 at first.
 */
void fetch_raise_descriptors_limit(void);

void fetch_stat(const struct fetch *fetch, struct fetch_stat *ret_stat);
void fetch_result_free(struct fetch_result *result);

#endif
