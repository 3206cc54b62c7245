/*
 * fetch_exchange - what a download engine (fetch.h) is given and what it gives: its settings, a request, the
 * result.
 */
#ifndef MNEMON_CRAWL_FETCH_FETCH_EXCHANGE_H
#define MNEMON_CRAWL_FETCH_FETCH_EXCHANGE_H

#include <uv.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/scratch.h"

struct dns;
struct logins;

enum { FETCH_IP_SIZE_MAX = 46, FETCH_HEAD_SIZE_MAX = 256 << 10 };

/* 0 or NULL stands for the default in parentheses. Texts must outlive the engine. */
struct fetch_config {
    uv_loop_t *loop;
    struct dns *dns;
    const char *scratch_directory;
    const char *user_agent;      /* (fetch_user_agent) */
    const char *const *headers;  /* "Name: value" of every request, ended by NULL; (none) */
    const struct logins *logins; /* (none) sent to their own origins, recorded nowhere */
    const char *proxy;   /* http://, socks4a:// or socks5h://; (none). Names are then resolved by the proxy */
    bool allows_private; /* loopback, private and special addresses too */
    bool refuses_bad_certificates;
    uint64_t connect_timeout_us;    /* (20 s) name, connection, TLS */
    uint64_t first_byte_timeout_us; /* (30 s) */
    uint64_t stall_timeout_us;      /* (30 s) without a byte */
    uint64_t slow_timeout_us;       /* (60 s) without slow_size_min more bytes of a body: one that drips */
    uint64_t slow_size_min;         /* (6,000: 100 bytes a second) */
    uint64_t total_timeout_us;      /* (1 h) */
    uint64_t body_size_max;         /* (4 GiB) as received */
    size_t transfers_max;           /* (1000) at once */
};

/*
 * A user and password in the URL are not looked at: config.logins has those that are sent. A value with
 * control characters in it could smuggle in another header; that header is left out.
 */
struct fetch_request {
    struct bytes url;           /* http or https, normalised; copied */
    struct bytes if_none_match; /* values as received in an earlier response; may be empty; copied */
    struct bytes if_modified_since;
    struct bytes accept; /* value of Accept; (any) */
    bool bars_private;   /* no private address, whatever the engine allows to others */
};

enum fetch_end {
    FETCH_WHOLE,
    FETCH_TOO_LONG,     /* cut at body_size_max */
    FETCH_TOO_SLOW,     /* cut by a time-out after the head had arrived */
    FETCH_DISCONNECTED, /* shorter than announced, a bad chunk, a reset */
};

enum fetch_tls { FETCH_TLS_NONE, FETCH_TLS_GOOD, FETCH_TLS_BAD };

/*
 * Belongs to whoever got it, on any thread, until fetch_result_free().
 *
 * Failures: ERR_NOT_FOUND no such name; ERR_PERMISSION the address is not a public one; ERR_UNREACHABLE,
 * ERR_REFUSED, ERR_TIMEOUT no connection or no answer; ERR_REFUSED a bad certificate too, where those are
 * refused; ERR_CLOSED the connection ended before the head did; ERR_INVALID no HTTP, or no such URL;
 * ERR_LIMIT a head above FETCH_HEAD_SIZE_MAX; ERR_CANCELLED the engine ended; and those of the own system.
 */
struct fetch_result {
    enum err err; /* ERR_OK: a response with a whole head arrived. Else why not, and detail says it */
    struct err_detail detail;
    bool is_worth_retry; /* of a failure: a later try may go better */
    bool is_tls_failure; /* there was a connection, but no TLS on it, or none that is trusted */
    enum fetch_end end;
    struct buf request;  /* as sent, but without Authorization and Proxy-Authorization */
    struct buf head;     /* of the final response, as received, with its empty line */
    struct scratch body; /* as received: chunks and content encodings stay */
    uint16_t status;
    char ip[FETCH_IP_SIZE_MAX]; /* of the server (of the proxy, if there is one); may be empty */
    enum fetch_tls tls;
    char tls_reason[64];    /* of a bad one: "self-signed certificate" */
    int64_t time_us;        /* wall clock, when the request was sent */
    uint64_t connect_us;    /* durations: until the request was sent; 0 if a connection was kept */
    uint64_t first_byte_us; /* from there to the first byte of the final response */
    uint64_t total_us;      /* from fetch_start() */
    bool is_connection_new;
};

typedef void fetch_done(void *context, struct fetch_result *take_result);

#endif
