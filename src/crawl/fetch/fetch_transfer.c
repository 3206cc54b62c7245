/*
 * fetch_transfer - one transfer of the engine (fetch.h): libcurl's handle, what has arrived, what became of
 * it.
 *
 *      NAME ──> CONNECT ──> WAIT ──> HEAD ──> BODY
 *      the name      the request     first line of the    the head
 *      is known      goes out        final response       is whole
 *
 * A transfer and its handle are used again and again; options that hold for all transfers are set once. After
 * the end of a transfer nothing of it is left in here: the result has been handed over.
 */
#include "crawl/fetch/fetch_state.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "net/reach.h"

/* ---- the end: what became of it ---- */

enum err fetch_transfer_fail(struct fetch_transfer *transfer, enum err err, bool is_worth_retry,
                             const char *format, ...) {
    struct fetch_result *result = transfer->result;
    char text[ERR_TEXT_SIZE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    result->err = err_set(&result->detail, err, "%s", text);
    result->is_worth_retry = is_worth_retry;
    return err;
}

static enum err err_from_socket(int number) {
    switch (number) {
    case 0:
        return ERR_UNREACHABLE;
    case ECONNREFUSED:
        return ERR_REFUSED;
    case ECONNRESET:
        return ERR_CLOSED;
    case ETIMEDOUT:
        return ERR_TIMEOUT;
    case EMFILE:
    case ENFILE:
        return ERR_FILES;
    case ENOMEM:
    case ENOBUFS:
        return ERR_MEMORY;
    default:
        return ERR_UNREACHABLE;
    }
}

static void judge_no_connection(struct fetch_transfer *transfer, const char *text) {
    long number = 0;
    curl_easy_getinfo(transfer->easy, CURLINFO_OS_ERRNO, &number);
    if (transfer->refusal != NULL) {
        fetch_transfer_fail(transfer, ERR_PERMISSION, false, "the host has %s; such are not fetched from",
                            transfer->refusal);
        return;
    }
    int why = transfer->socket_errno != 0 ? transfer->socket_errno : (int)number;
    enum err err = err_from_socket(why);
    fetch_transfer_fail(transfer, err, true, "%s", why != 0 ? strerror(why) : text);
}

static void judge_bad_certificate(struct fetch_transfer *transfer, const char *text) {
    long code = 0;
    curl_easy_getinfo(transfer->easy, CURLINFO_SSL_VERIFYRESULT, &code);
    if (code != 0) {
        fetch_trust_report_code(code, transfer->result);
        text = transfer->result->tls_reason;
    }
    fetch_transfer_fail(transfer, ERR_REFUSED, false, "bad certificate: %s", text);
    transfer->result->is_tls_failure = true;
}

/* A callback of ours has ended it. */
static void judge_own_end(struct fetch_transfer *transfer) {
    struct fetch_result *result = transfer->result;
    bool is_body = transfer->phase == FETCH_PHASE_BODY;
    if (is_body && transfer->own_err == ERR_LIMIT) {
        result->end = FETCH_TOO_LONG;
    } else if (is_body) {
        fetch_transfer_fail(transfer, transfer->own_err, true, "the body could not be kept: %s",
                            err_text(transfer->own_err));
    } else if (transfer->own_err == ERR_LIMIT) {
        fetch_transfer_fail(transfer, ERR_LIMIT, false, "the head of the response is longer than %d KiB",
                            FETCH_HEAD_SIZE_MAX >> 10);
    } else if (transfer->own_err == ERR_INVALID) {
        fetch_transfer_fail(transfer, ERR_INVALID, false, "the answer is not an HTTP response");
    } else {
        fetch_transfer_fail(transfer, transfer->own_err, true, "%s", err_text(transfer->own_err));
    }
}

/* What an end without a whole head means, in libcurl's words; any other end is no HTTP. */
static const struct {
    CURLcode code;
    enum err err;
} failures[] = {
    {CURLE_SSL_CONNECT_ERROR, ERR_REFUSED},
    {CURLE_OPERATION_TIMEDOUT, ERR_TIMEOUT},
    {CURLE_COULDNT_RESOLVE_HOST, ERR_UNREACHABLE},
    {CURLE_COULDNT_RESOLVE_PROXY, ERR_UNREACHABLE},
    {CURLE_PROXY, ERR_UNREACHABLE},
    {CURLE_GOT_NOTHING, ERR_CLOSED},
    {CURLE_SEND_ERROR, ERR_CLOSED},
    {CURLE_RECV_ERROR, ERR_CLOSED},
    {CURLE_PARTIAL_FILE, ERR_CLOSED},
};

/* No whole head came. */
static void judge_failure(struct fetch_transfer *transfer, CURLcode code) {
    const char *text = transfer->error_text[0] != '\0' ? transfer->error_text : curl_easy_strerror(code);
    enum err err = ERR_INVALID;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        err = failures[i].code == code ? failures[i].err : err;
    }
    if (code == CURLE_COULDNT_CONNECT) {
        judge_no_connection(transfer, text);
    } else if (code == CURLE_PEER_FAILED_VERIFICATION) {
        judge_bad_certificate(transfer, text);
    } else if (code == CURLE_OUT_OF_MEMORY && transfer->phase == FETCH_PHASE_CONNECT) {
        fetch_transfer_fail(transfer, ERR_MEMORY, true, "%s", text);
    } else if (code == CURLE_OUT_OF_MEMORY) { /* so libcurl says of a line above its limit of 100 KB */
        fetch_transfer_fail(transfer, ERR_LIMIT, false, "the head of the response is too long");
    } else if (code == CURLE_OK && transfer->phase == FETCH_PHASE_HEAD) {
        fetch_transfer_fail(transfer, ERR_CLOSED, true, "the connection ended before the head did");
    } else if (code == CURLE_OK) {
        fetch_transfer_fail(transfer, ERR_INVALID, false, "the answer is not an HTTP response");
    } else {
        fetch_transfer_fail(transfer, err, err != ERR_INVALID, "%s", text);
        transfer->result->is_tls_failure = code == CURLE_SSL_CONNECT_ERROR;
    }
}

void fetch_transfer_judge(struct fetch_transfer *transfer, CURLcode code) {
    struct fetch_result *result = transfer->result;
    long connects_count = 0;
    curl_easy_getinfo(transfer->easy, CURLINFO_NUM_CONNECTS, &connects_count);
    result->is_connection_new = connects_count > 0;
    if (transfer->own_err != ERR_OK) {
        judge_own_end(transfer);
    } else if (transfer->phase != FETCH_PHASE_BODY) {
        judge_failure(transfer, code);
    } else {
        result->end = code == CURLE_OK ? FETCH_WHOLE : FETCH_DISCONNECTED;
    }
}

/* A body that drips: each byte in time, and yet it would take a day. Asked again and again. */
static bool is_slow(struct fetch_transfer *transfer, uint64_t now_us) {
    const struct fetch_config *config = &transfer->fetch->config;
    uint64_t size = transfer->result->body.size;
    if (transfer->slow_since_us == 0 || size - transfer->slow_from_size >= config->slow_size_min) {
        transfer->slow_since_us = now_us;
        transfer->slow_from_size = size;
        return false;
    }
    return now_us - transfer->slow_since_us > config->slow_timeout_us;
}

/* What waits too long, in words; NULL if nothing does. */
static const char *late_what(struct fetch_transfer *transfer, uint64_t now_us, uint64_t now_ms) {
    const struct fetch_config *config = &transfer->fetch->config;
    uint64_t idle_us = now_ms > transfer->progress_ms ? (now_ms - transfer->progress_ms) * 1000 : 0;
    uint64_t age_us = now_us - transfer->start_us;
    if (age_us > config->total_timeout_us) {
        return "the transfer";
    }
    switch (transfer->phase) {
    case FETCH_PHASE_NAME:
        return age_us > config->connect_timeout_us ? "the name of the host" : NULL;
    case FETCH_PHASE_CONNECT:
        return age_us > config->connect_timeout_us ? "the connection" : NULL;
    case FETCH_PHASE_WAIT:
        return now_us - transfer->sent_us > config->first_byte_timeout_us ? "the response" : NULL;
    case FETCH_PHASE_HEAD: /* also one that comes line by line */
        return now_us - transfer->sent_us > config->first_byte_timeout_us + config->stall_timeout_us
                   ? "the head of the response"
                   : NULL;
    case FETCH_PHASE_BODY:
        return idle_us > config->stall_timeout_us || is_slow(transfer, now_us) ? "the body" : NULL;
    }
    return NULL;
}

bool fetch_transfer_is_late(struct fetch_transfer *transfer, uint64_t now_us, uint64_t now_ms) {
    const char *what = late_what(transfer, now_us, now_ms);
    if (what == NULL) {
        return false;
    }
    if (transfer->phase == FETCH_PHASE_BODY) {
        transfer->result->end = FETCH_TOO_SLOW;
    } else {
        fetch_transfer_fail(transfer, ERR_TIMEOUT, true, "%s did not come in time", what);
    }
    return true;
}

/* ---- what libcurl calls on the way ---- */

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
    if (!transfer->allows_private && fetch->config.proxy == NULL) {
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

/* NULL if there is none. */
static SSL *tls_of(const struct fetch_transfer *transfer) {
    struct curl_tlssessioninfo *session = NULL;
    if (transfer->url.scheme_type == URL_SCHEME_HTTPS) {
        curl_easy_getinfo(transfer->easy, CURLINFO_TLS_SSL_PTR, &session);
    }
    return session != NULL && session->backend == CURLSSLBACKEND_OPENSSL ? session->internals : NULL;
}

/* Connected, TLS included; the request goes out next. Again, if a kept connection proves dead. */
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

/* The empty line. False if the transfer must end. */
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

/* Have libcurl call for sockets, bytes and certificates. */
static void fetch_transfer_set_callbacks(struct fetch_transfer *transfer) {
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

/* ---- the beginning: name, connection, request ---- */

enum {
    ORIGIN_SIZE_MAX = 1 << 10,
    KEY_SIZE_MAX = 300,
    RESOLVE_SIZE_MAX = 1 << 10,
    REQUEST_SIZE_MAX = FETCH_MESSAGE_BLOCK_SIZE_MAX + URL_SIZE_MAX + ORIGIN_SIZE_MAX,
    BUFFER_SIZE = 32 << 10, /* libcurl's, while a transfer runs: most pages come in one piece */
    CACHE_FOREVER_S = -1,
    CACHE_NOT_S = 0,
    CACHE_PROXY_S = 60,
};

static void set_constant_options(struct fetch_transfer *transfer) {
    CURL *easy = transfer->easy;
    const struct fetch_config *config = &transfer->fetch->config;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error_text);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_HTTP_TRANSFER_DECODING, 0L);
    curl_easy_setopt(easy, CURLOPT_HTTP_CONTENT_DECODING, 0L);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)BUFFER_SIZE);
    curl_easy_setopt(easy, CURLOPT_PROXY,
                     config->proxy != NULL ? config->proxy : ""); /* not the environment's */
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    fetch_transfer_set_callbacks(transfer);
    /* fetch_trust does it; sessions are not resumed, since the verdict on the certificate is not in them. */
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
    transfer->cache_timeout_s = config->proxy != NULL ? CACHE_PROXY_S : CACHE_FOREVER_S;
    curl_easy_setopt(easy, CURLOPT_DNS_CACHE_TIMEOUT, transfer->cache_timeout_s);
}

struct fetch_transfer *fetch_transfer_new(struct fetch *fetch) {
    struct fetch_transfer *transfer = calloc(1, sizeof *transfer);
    if (transfer == NULL) {
        return NULL;
    }
    transfer->fetch = fetch;
    transfer->easy = curl_easy_init();
    if (transfer->easy == NULL) {
        free(transfer);
        return NULL;
    }
    url_init(&transfer->url);
    buf_init(&transfer->origin, ORIGIN_SIZE_MAX);
    buf_init(&transfer->target, URL_SIZE_MAX + ORIGIN_SIZE_MAX);
    buf_init(&transfer->block, FETCH_MESSAGE_BLOCK_SIZE_MAX);
    buf_init(&transfer->tell, RESOLVE_SIZE_MAX);
    buf_init(&transfer->forget, RESOLVE_SIZE_MAX);
    set_constant_options(transfer);
    return transfer;
}

void fetch_transfer_free(struct fetch_transfer *transfer) {
    ASSERT(transfer->result == NULL && !transfer->is_added && transfer->host == NULL);
    curl_easy_cleanup(transfer->easy);
    url_done(&transfer->url);
    buf_done(&transfer->origin);
    buf_done(&transfer->target);
    buf_done(&transfer->block);
    buf_done(&transfer->tell);
    buf_done(&transfer->forget);
    free(transfer);
}

static void set_block(struct fetch_transfer *transfer, char *text) {
    if (transfer->block_node.data != text) {
        transfer->block_node = (struct curl_slist){.data = text};
        curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, &transfer->block_node);
    }
}

static enum err set_request(struct fetch_transfer *transfer, const struct fetch_request *request) {
    struct fetch_message *message = &transfer->fetch->message;
    const struct url *url = &transfer->url;
    struct buf *block = &message->block;
    size_t public_size = message->public_size;
    struct bytes login = logins_find(transfer->fetch->config.logins, url);
    bool is_for_proxy = transfer->fetch->config.proxy != NULL && url->scheme_type == URL_SCHEME_HTTP &&
                        transfer->fetch->is_proxy_http;
    enum err err = ERR_OK;
    if (!fetch_message_is_usual(request, login)) {
        block = &transfer->block;
        buf_clear(block);
        err = fetch_message_put_block(message, request, login, block, &public_size);
    }
    buf_clear(&transfer->origin);
    buf_clear(&transfer->target);
    err = err == ERR_OK ? fetch_message_put_origin(url, &transfer->origin) : err;
    err = err == ERR_OK ? fetch_message_put_target(url, is_for_proxy, &transfer->target) : err;
    struct bytes shown = bytes_slice(buf_bytes(block), 0, public_size);
    err = err == ERR_OK
              ? fetch_message_put(buf_bytes(&transfer->target), url, shown, &transfer->result->request)
              : err;
    if (err != ERR_OK) {
        return fetch_transfer_fail(transfer, err, err == ERR_MEMORY, "the request: %s", err_text(err));
    }
    set_block(transfer, (char *)block->data);
    CURLcode code = curl_easy_setopt(transfer->easy, CURLOPT_URL, (const char *)transfer->origin.data);
    if (code == CURLE_OK) {
        code = curl_easy_setopt(transfer->easy, CURLOPT_REQUEST_TARGET, (const char *)transfer->target.data);
    }
    return code == CURLE_OK
               ? ERR_OK
               : fetch_transfer_fail(transfer, ERR_INVALID, false, "%s", curl_easy_strerror(code));
}

/* A connection that somebody else may keep open to a private address is opened by name: a request that may
 * not go there would be sent over it. */
static void set_reach(struct fetch_transfer *transfer, const struct fetch_request *request) {
    bool is_fresh = request->bars_private && transfer->fetch->config.allows_private;
    transfer->allows_private = transfer->fetch->config.allows_private && !request->bars_private;
    if (is_fresh != transfer->is_fresh) {
        transfer->is_fresh = is_fresh;
        curl_easy_setopt(transfer->easy, CURLOPT_FRESH_CONNECT, is_fresh ? 1L : 0L);
    }
}

static void set_cache_timeout(struct fetch_transfer *transfer, long timeout_s) {
    if (transfer->cache_timeout_s != timeout_s) {
        transfer->cache_timeout_s = timeout_s;
        curl_easy_setopt(transfer->easy, CURLOPT_DNS_CACHE_TIMEOUT, timeout_s);
    }
}

/* Hand what is in tell and forget to libcurl; it reads the list once, at the start of the transfer. */
static enum err set_resolve(struct fetch_transfer *transfer) {
    if (transfer->tell.size == 0) {
        return ERR_OK; /* nothing was forgotten either */
    }
    char *tell = (char *)(uintptr_t)buf_string(&transfer->tell);
    char *forget = (char *)(uintptr_t)buf_string(&transfer->forget);
    if (tell == NULL || forget == NULL) {
        return ERR_MEMORY;
    }
    transfer->tell_node = (struct curl_slist){.data = tell};
    transfer->forget_node = (struct curl_slist){.data = forget, .next = &transfer->tell_node};
    transfer->is_told = true;
    curl_easy_setopt(transfer->easy, CURLOPT_RESOLVE,
                     transfer->forget.size > 0 ? &transfer->forget_node : &transfer->tell_node);
    return ERR_OK;
}

static enum err use_answer(struct fetch_transfer *transfer, const struct dns_answer *answer) {
    struct fetch *fetch = transfer->fetch;
    char key[KEY_SIZE_MAX];
    struct bytes host = url_host(&transfer->url);
    int size =
        snprintf(key, sizeof key, "%.*s:%d", BYTES_ARG(host), (int)url_port_or_default(&transfer->url));
    if (size >= (int)sizeof key || key[0] == '+' || key[0] == '*') { /* signs of CURLOPT_RESOLVE's, too */
        return fetch_transfer_fail(transfer, ERR_INVALID, false, "no host can have that name");
    }
    buf_clear(&transfer->tell);
    buf_clear(&transfer->forget);
    enum err err = fetch_hosts_use(&fetch->hosts, bytes_of(key, (size_t)size), answer, &transfer->tell,
                                   &transfer->forget, &transfer->host);
    err = err == ERR_OK ? set_resolve(transfer) : err;
    return err == ERR_OK
               ? ERR_OK
               : fetch_transfer_fail(transfer, err, true, "the host's addresses: %s", err_text(err));
}

/* Drop the addresses that may not be contacted. */
static enum err filter(struct fetch_transfer *transfer, const struct dns_answer *answer,
                       struct dns_answer *out) {
    const char *refusal = NULL;
    char text[ADDRESS_TEXT_SIZE_MAX] = "";
    *out = (struct dns_answer){.err = ERR_OK};
    for (size_t i = 0; i < answer->count; i++) {
        const char *one = transfer->allows_private ? NULL : reach_refusal(&answer->addresses[i]);
        if (one == NULL) {
            out->addresses[out->count++] = answer->addresses[i];
        } else if (refusal == NULL) {
            refusal = one;
            address_format(&answer->addresses[i], text);
            *strrchr(text, ':') = '\0';
        }
    }
    if (out->count > 0) {
        return ERR_OK;
    }
    return fetch_transfer_fail(transfer, ERR_PERMISSION, false, "%s is %s; such are not fetched from", text,
                               refusal);
}

static enum err connect_to(struct fetch_transfer *transfer, const struct dns_answer *answer) {
    struct dns_answer filtered;
    if (answer->err != ERR_OK) {
        bool is_final = answer->err == ERR_NOT_FOUND || answer->err == ERR_INVALID;
        return fetch_transfer_fail(transfer, answer->err, !is_final,
                                   answer->err == ERR_NOT_FOUND ? "there is no host of that name"
                                                                : "the host's name could not be resolved");
    }
    enum err err = filter(transfer, answer, &filtered);
    if (err == ERR_OK && transfer->url.host_type != URL_HOST_IPV6) {
        err = use_answer(transfer, &filtered);
    }
    if (err != ERR_OK) {
        return err;
    }
    /* libcurl cannot be told about, nor made to forget, an IPv6 address as a name; so it shall not keep it.
     */
    bool is_ipv6 = transfer->url.host_type == URL_HOST_IPV6;
    set_cache_timeout(transfer, is_ipv6 ? CACHE_NOT_S : CACHE_FOREVER_S);
    return ERR_OK;
}

static enum err transfer_add(struct fetch_transfer *transfer) {
    transfer->phase = FETCH_PHASE_CONNECT;
    CURLMcode code = curl_multi_add_handle(transfer->fetch->multi, transfer->easy);
    if (code != CURLM_OK) {
        return fetch_transfer_fail(transfer, ERR_SYSTEM, true, "libcurl: %s", curl_multi_strerror(code));
    }
    transfer->is_added = true;
    return ERR_OK;
}

static void on_name(void *context, const struct dns_answer *answer) {
    struct fetch_transfer *transfer = context;
    enum err err = connect_to(transfer, answer);
    err = err == ERR_OK ? transfer_add(transfer) : err;
    if (err != ERR_OK) {
        fetch_abandon(transfer);
    }
}

static enum err find_addresses(struct fetch_transfer *transfer, bool *ret_is_waiting) {
    const struct url *url = &transfer->url;
    struct bytes host = fetch_transfer_host(transfer);
    bool is_address = url->host_type == URL_HOST_IPV4 || url->host_type == URL_HOST_IPV6;
    struct dns_answer literal = {.count = 1};
    const struct dns_answer *answer = &literal;
    if (is_address && !address_parse(host, 80, &literal.addresses[0])) {
        return fetch_transfer_fail(transfer, ERR_INVALID, false, "the host is no address");
    }
    if (transfer->fetch->config.proxy != NULL) {
        struct dns_answer filtered;
        return is_address ? filter(transfer, &literal, &filtered) : ERR_OK;
    }
    if (!is_address) {
        answer = dns_ask(transfer->fetch->config.dns, host, &transfer->question, on_name, transfer);
        if (answer == NULL) {
            *ret_is_waiting = true; /* goes on in on_name() */
            return ERR_OK;
        }
    }
    return connect_to(transfer, answer);
}

enum err fetch_transfer_begin(struct fetch_transfer *transfer, const struct fetch_request *request) {
    struct fetch_result *result = transfer->result;
    struct err_detail detail;
    transfer->phase = FETCH_PHASE_NAME;
    transfer->start_us = clock_monotonic_us(&clock_system);
    transfer->is_chunked = transfer->is_told = false;
    transfer->own_err = ERR_OK;
    transfer->refusal = NULL;
    transfer->socket_errno = 0;
    transfer->heads_size = 0;
    transfer->sent_us = transfer->first_byte_us = 0;
    transfer->slow_since_us = transfer->slow_from_size = 0;
    chunked_start(&transfer->chunks, HTTP_RULES_RECORDED);
    result->time_us = clock_wall_us(&clock_system);
    buf_init(&result->request, REQUEST_SIZE_MAX);
    buf_init(&result->head, FETCH_HEAD_SIZE_MAX);
    scratch_init(&result->body, transfer->fetch->config.scratch_directory, 1,
                 transfer->fetch->config.body_size_max);
    enum err err = url_parse(&transfer->url, request->url, NULL, &detail);
    if (err != ERR_OK || !url_is_web(&transfer->url)) {
        const char *why = err != ERR_OK ? detail.text : "not a URL of the web";
        return fetch_transfer_fail(transfer, err != ERR_OK ? err : ERR_INVALID, false, "%s", why);
    }
    url_remove_userinfo(&transfer->url);
    bool is_waiting = false;
    set_reach(transfer, request);
    err = set_request(transfer, request);
    err = err == ERR_OK ? find_addresses(transfer, &is_waiting) : err;
    return err == ERR_OK && !is_waiting ? transfer_add(transfer) : err;
}
