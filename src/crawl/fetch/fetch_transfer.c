#include "crawl/fetch/fetch_transfer.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "net/reach.h"

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
    bool is_for_proxy = transfer->fetch->config.proxy != NULL && url->scheme_type == URL_SCHEME_HTTP &&
                        transfer->fetch->is_proxy_http;
    enum err err = ERR_OK;
    if (!fetch_message_is_usual(request, url)) {
        block = &transfer->block;
        buf_clear(block);
        err = fetch_message_put_block(message, request, url, block);
    }
    buf_clear(&transfer->origin);
    buf_clear(&transfer->target);
    err = err == ERR_OK ? fetch_message_put_origin(url, &transfer->origin) : err;
    err = err == ERR_OK ? fetch_message_put_target(url, is_for_proxy, &transfer->target) : err;
    err = err == ERR_OK ? fetch_message_put(buf_bytes(&transfer->target), url, buf_bytes(block),
                                            &transfer->result->request)
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
        const char *one =
            transfer->fetch->config.allows_private ? NULL : reach_refusal(&answer->addresses[i]);
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

static enum err add(struct fetch_transfer *transfer) {
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
    err = err == ERR_OK ? add(transfer) : err;
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
    bool is_waiting = false;
    err = set_request(transfer, request);
    err = err == ERR_OK ? find_addresses(transfer, &is_waiting) : err;
    return err == ERR_OK && !is_waiting ? add(transfer) : err;
}
