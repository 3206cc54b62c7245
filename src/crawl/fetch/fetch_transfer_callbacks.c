#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "crawl/fetch/fetch_transfer.h"
#include "net/reach.h"

enum {
    BODIES_MEMORY_SIZE = 64 << 20, /* of all running transfers */
    BODY_MEMORY_SIZE_MIN = 32 << 10,
    BODY_RESERVE_SIZE_MAX = 64 << 10, /* on the word of a server */
};

static curl_socket_t on_open(void *context, curlsocktype purpose, struct curl_sockaddr *address) {
    struct fetch_transfer *transfer = context;
    struct fetch *fetch = transfer->fetch;
    struct address to = {.port = 0};
    (void)purpose;
    if (address->family == AF_INET) {
        uint8_t ip[4];
        memcpy(ip, &((const struct sockaddr_in *)(const void *)&address->addr)->sin_addr, sizeof ip);
        to = address_ipv4(ip[0], ip[1], ip[2], ip[3], 0);
    } else if (address->family == AF_INET6) {
        memcpy(to.ip, &((const struct sockaddr_in6 *)(const void *)&address->addr)->sin6_addr, sizeof to.ip);
    }
    /* The proxy is the user's choice; what is behind it is the proxy's business. */
    if (!fetch->config.allows_private && fetch->config.proxy == NULL) {
        transfer->refusal = reach_refusal(&to);
        if (transfer->refusal != NULL) {
            return CURL_SOCKET_BAD;
        }
    }
    int fd = fetch_sockets_open(&fetch->sockets, address);
    transfer->socket_errno = fd < 0 ? errno : 0;
    return fd < 0 ? CURL_SOCKET_BAD : fd;
}

static int on_close(void *context, curl_socket_t fd) {
    return fetch_sockets_close_one(context, fd);
}

/* NULL where there is none. */
static SSL *tls_of(const struct fetch_transfer *transfer) {
    struct curl_tlssessioninfo *session = NULL;
    if (transfer->url.scheme_type == URL_SCHEME_HTTPS) {
        curl_easy_getinfo(transfer->easy, CURLINFO_TLS_SSL_PTR, &session);
    }
    return session != NULL && session->backend == CURLSSLBACKEND_OPENSSL ? session->internals : NULL;
}

/* Connected, TLS included; the request goes out next. Again, where a kept connection proves dead. */
static int on_request(void *context, char *ip, char *own_ip, int port, int own_port) {
    struct fetch_transfer *transfer = context;
    (void)own_ip;
    (void)port;
    (void)own_port;
    snprintf(transfer->result->ip, sizeof transfer->result->ip, "%s", ip);
    transfer->result->time_us = clock_wall_us(&clock_system);
    transfer->sent_us = clock_monotonic_us(&clock_system);
    transfer->phase = FETCH_PHASE_WAIT;
    transfer->progress_ms = uv_now(transfer->fetch->config.loop);
    SSL *connection = tls_of(transfer);
    if (connection != NULL) {
        fetch_trust_settle(connection);
    }
    return CURL_PREREQFUNC_OK;
}

static CURLcode on_tls(CURL *easy, void *context, void *transfer_pointer) {
    struct fetch_transfer *transfer = transfer_pointer;
    (void)easy;
    enum err err = fetch_trust_prepare(&transfer->fetch->trust, context, fetch_transfer_host(transfer));
    return err == ERR_OK ? CURLE_OK : CURLE_ABORTED_BY_CALLBACK;
}

/* Only with a proxy: libcurl then adds lines of its own. */
static int on_debug(CURL *easy, curl_infotype type, char *data, size_t size, void *context) {
    struct fetch_transfer *transfer = context;
    (void)easy;
    if (type == CURLINFO_HEADER_OUT) {
        buf_clear(&transfer->result->request); /* a CONNECT came before */
        buf_put(&transfer->result->request, bytes_of(data, size));
    }
    return 0;
}

static bool has_chunks(struct fetch_transfer *transfer) {
    struct http_head *head = &transfer->fetch->head;
    struct bytes text = buf_bytes(&transfer->result->head);
    http_head_start(head);
    http_head_feed(head, &text);
    return head->state == HTTP_HEAD_WHOLE && http_head_is_chunked(head);
}

/* More transfers, less memory for each: the sum is bounded. */
static void begin_body(struct fetch_transfer *transfer) {
    const struct fetch *fetch = transfer->fetch;
    struct scratch *body = &transfer->result->body;
    size_t memory_max = BODIES_MEMORY_SIZE / (fetch->running_count + 1);
    memory_max = memory_max > SCRATCH_MEMORY_MAX ? SCRATCH_MEMORY_MAX : memory_max;
    memory_max = memory_max < BODY_MEMORY_SIZE_MIN ? BODY_MEMORY_SIZE_MIN : memory_max;
    curl_off_t announced = -1;
    scratch_init(body, fetch->config.scratch_directory, memory_max, fetch->config.body_size_max);
    curl_easy_getinfo(transfer->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &announced);
    if (announced > 0 && announced <= BODY_RESERVE_SIZE_MAX && (size_t)announced <= memory_max) {
        buf_reserve(&body->memory, (size_t)announced);
        body->memory.err = ERR_OK; /* if there is none, the first put will say so */
    }
}

static void note_tls(struct fetch_transfer *transfer) {
    SSL *connection = tls_of(transfer);
    if (connection != NULL) {
        fetch_trust_report(connection, transfer->result);
        fetch_trust_release(connection);
    }
}

/* The empty line. False where the transfer must end. */
static bool end_head(struct fetch_transfer *transfer) {
    long status = 0;
    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status == 101) {
        transfer->own_err = ERR_INVALID; /* a change of protocol that nobody asked for */
        return false;
    }
    if (status >= 100 && status < 200) {
        buf_clear(&transfer->result->head);
        transfer->phase = FETCH_PHASE_WAIT; /* nor does it count as an answer in time */
        return true;
    }
    transfer->result->status = (uint16_t)status;
    transfer->phase = FETCH_PHASE_BODY;
    transfer->is_chunked = has_chunks(transfer);
    note_tls(transfer);
    begin_body(transfer);
    return true;
}

static size_t on_head_line(char *data, size_t one, size_t size, void *context) {
    struct fetch_transfer *transfer = context;
    struct buf *head = &transfer->result->head;
    struct bytes line = bytes_of(data, size);
    (void)one;
    if (transfer->phase == FETCH_PHASE_WAIT) {
        transfer->phase = FETCH_PHASE_HEAD;
        transfer->first_byte_us = clock_monotonic_us(&clock_system);
        buf_reserve(head, 512);
    }
    transfer->progress_ms = uv_now(transfer->fetch->config.loop);
    transfer->fetch->received_size += size;
    transfer->heads_size += size;
    if (transfer->heads_size > FETCH_HEAD_SIZE_MAX || buf_put(head, line) != ERR_OK) {
        transfer->own_err = head->err == ERR_MEMORY ? ERR_MEMORY : ERR_LIMIT;
        return 0;
    }
    bool is_end = size > 0 && (data[0] == '\r' || data[0] == '\n');
    return !is_end || end_head(transfer) ? size : 0;
}

static size_t on_body(char *data, size_t one, size_t size, void *context) {
    struct fetch_transfer *transfer = context;
    struct scratch *body = &transfer->result->body;
    struct bytes bytes = bytes_of(data, size);
    (void)one;
    if (transfer->phase != FETCH_PHASE_BODY) {
        transfer->own_err = ERR_INVALID; /* bytes without a head */
        return 0;
    }
    transfer->progress_ms = uv_now(transfer->fetch->config.loop);
    transfer->fetch->received_size += size;
    if (transfer->is_chunked) {
        bytes.size = chunked_take(&transfer->chunks, bytes);
        if (bytes.size < size || transfer->chunks.state >= CHUNKED_LOST) {
            curl_easy_setopt(transfer->easy, CURLOPT_FORBID_REUSE, 1L); /* what follows is nobody's */
        }
    }
    uint64_t room = body->size_max - body->size;
    if (bytes.size > room) {
        transfer->own_err = ERR_LIMIT;
        bytes.size = (size_t)room;
    }
    enum err err = scratch_put(body, bytes);
    transfer->own_err = err != ERR_OK ? err : transfer->own_err;
    return transfer->own_err == ERR_OK ? size : 0;
}

void fetch_transfer_set_callbacks(struct fetch_transfer *transfer) {
    CURL *easy = transfer->easy;
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, &transfer->fetch->sockets);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_request);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_head_line);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, on_tls);
    curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, transfer);
    if (transfer->fetch->config.proxy != NULL) {
        curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, on_debug);
        curl_easy_setopt(easy, CURLOPT_DEBUGDATA, transfer);
        curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
    }
}
