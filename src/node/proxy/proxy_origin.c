/* From a host's name to the head of its answer. */
#include <stdio.h>

#include "net/reach.h"
#include "node/proxy/proxy_state.h"

static const uint64_t attempt_us = 2000000; /* then the host's next address is tried, where it has one */

static void fail(struct proxy_origin *origin, enum err err, const char *reason) {
    origin->state = PROXY_ORIGIN_FAILED;
    origin->err = err;
    snprintf(origin->reason, sizeof origin->reason, "%s", reason);
    proxy_wire_close(origin->wire);
    origin->wire = NULL;
}

/* ---- who may be asked ---- */

static bool is_nowhere(const struct address *address) {
    static const uint8_t nowhere[16] = {0};
    struct address nowhere_ipv4 = address_ipv4(0, 0, 0, 0, address->port);
    return memcmp(address->ip, nowhere, sizeof nowhere) == 0 || address_equal(address, &nowhere_ipv4);
}

/* Does this node itself listen there? Who connects to no address comes to this machine. */
static bool is_service(const struct address *service, const struct address *address) {
    return service->port == address->port && (address_equal(service, address) || is_nowhere(address) ||
                                              (is_nowhere(service) && reach_refusal(address) != NULL));
}

/*
 * A page on the web must not reach this network through us: it names a host of its own and lets the name
 * lead to an address here (DNS rebinding), which a browser with a proxy cannot see. Who types an address, or
 * "localhost", knows where he goes; but only where nobody else can use this proxy.
 */
static const char *refusal(const struct proxy *proxy, const struct proxy_origin *origin,
                           const struct address *address) {
    struct bytes host = url_host(&origin->url);
    bool is_named = origin->url.host_type == URL_HOST_DOMAIN && !bytes_equal(host, BYTES("localhost")) &&
                    !bytes_ends_with(host, BYTES(".localhost"));
    if (is_service(&proxy->config.http, address) || is_service(&proxy->bound, address)) {
        return "that is this node itself: open it without the proxy";
    }
    if (proxy->config.allows_private || reach_refusal(address) == NULL) {
        return NULL;
    }
    if (!proxy->is_private) {
        return "that is a private address, and others than you can use this proxy";
    }
    return is_named ? "that name leads to a private address (--allow-private)" : NULL;
}

/* ---- connecting ---- */

static void connect_next(struct proxy_connection *connection) {
    struct proxy *proxy = connection->proxy;
    struct proxy_origin *origin = &connection->exchange.origin;
    proxy_wire_close(origin->wire);
    origin->wire = NULL;
    origin->address = origin->answer.addresses[origin->next_index++];
    origin->address.port = (uint16_t)url_port_or_default(&origin->url);
    const char *sentence = refusal(proxy, origin, &origin->address);
    if (sentence != NULL) {
        fail(origin, ERR_PERMISSION, sentence);
        return;
    }
    origin->wire = proxy_wire_new(&proxy->loop.uv, proxy_connection_run, connection);
    if (origin->wire == NULL) {
        fail(origin, ERR_MEMORY, err_text(ERR_MEMORY));
        return;
    }
    origin->state = PROXY_ORIGIN_CONNECTING;
    origin->begun_at_us = proxy_now_us(proxy);
    proxy_wire_connect(origin->wire, &origin->address);
    if (origin->url.scheme_type == URL_SCHEME_HTTPS && !origin->is_tunnel) {
        SSL *tls = proxy_authority_connect(proxy->authority, url_host(&origin->url));
        if (tls == NULL) {
            fail(origin, ERR_INVALID, "no TLS to such a name");
            return;
        }
        proxy_wire_secure(origin->wire, tls);
    }
}

static void resolved(struct proxy_connection *connection, const struct dns_answer *answer) {
    struct proxy_origin *origin = &connection->exchange.origin;
    if (answer->err != ERR_OK) {
        fail(origin, answer->err,
             answer->err == ERR_NOT_FOUND ? "there is no such host" : err_text(answer->err));
        return;
    }
    origin->answer = *answer;
    origin->next_index = 0;
    connect_next(connection);
}

static void on_resolved(void *context, const struct dns_answer *answer) {
    resolved(context, answer);
    proxy_connection_run(context);
}

void proxy_origin_begin(struct proxy_connection *connection) {
    struct proxy_origin *origin = &connection->exchange.origin;
    struct bytes host = url_host(&origin->url);
    struct dns_answer known = {.count = 1};
    if (!origin->has_head_memory && http_head_init(&origin->head) != ERR_OK) {
        fail(origin, ERR_MEMORY, err_text(ERR_MEMORY));
        return;
    }
    origin->has_head_memory = true;
    http_head_start(&origin->head);
    if (address_parse(host, 1, &known.addresses[0])) {
        resolved(connection, &known);
        return;
    }
    if (host.size > DNS_NAME_SIZE_MAX) {
        fail(origin, ERR_NOT_FOUND, "there is no such host");
        return;
    }
    origin->state = PROXY_ORIGIN_RESOLVING;
    const struct dns_answer *answer =
        dns_ask(connection->proxy->dns, host, &origin->question, on_resolved, connection);
    if (answer != NULL) {
        resolved(connection, answer);
    }
}

/* ---- asking ---- */

static void try_connection(struct proxy_connection *connection) {
    struct proxy_origin *origin = &connection->exchange.origin;
    bool has_more = origin->next_index < origin->answer.count;
    bool is_late = proxy_now_us(connection->proxy) > origin->begun_at_us + attempt_us;
    if (origin->wire->is_open) {
        origin->state = PROXY_ORIGIN_OPEN;
        proxy_wire_write(origin->wire, buf_bytes(&origin->request));
        buf_clear(&origin->request);
    } else if (has_more && (origin->wire->err != ERR_OK || is_late)) {
        connect_next(connection);
    } else if (origin->wire->err != ERR_OK) {
        fail(origin, origin->wire->err, origin->wire->reason);
    }
}

/* Answers that only say that there will be one are passed over. */
static bool is_interim(const struct http_head *head) {
    return head->status >= 100 && head->status < 200 && head->status != 101;
}

static void read_head(struct proxy_connection *connection) {
    struct proxy_origin *origin = &connection->exchange.origin;
    struct proxy_wire *wire = origin->wire;
    while (wire->in.size > 0 && origin->head.state == HTTP_HEAD_READING) {
        struct bytes rest = buf_bytes(&wire->in);
        http_head_feed(&origin->head, &rest);
        proxy_wire_take(wire, wire->in.size - rest.size);
        if (origin->head.state == HTTP_HEAD_WHOLE && is_interim(&origin->head)) {
            http_head_start(&origin->head);
        }
    }
    if (origin->head.state == HTTP_HEAD_WHOLE && origin->head.status > 0) {
        origin->state = PROXY_ORIGIN_ANSWERED;
    } else if (origin->head.state != HTTP_HEAD_READING) {
        fail(origin, ERR_INVALID, "it answered something that is not HTTP");
    } else if (wire->err != ERR_OK || wire->is_ended) {
        fail(origin, ERR_CLOSED,
             wire->err != ERR_OK ? wire->reason : "it closed the connection without an answer");
    }
}

void proxy_origin_step(struct proxy_connection *connection) {
    struct proxy_origin *origin = &connection->exchange.origin;
    if (origin->state == PROXY_ORIGIN_CONNECTING) {
        try_connection(connection);
    }
    if (origin->state == PROXY_ORIGIN_OPEN && !origin->is_tunnel) {
        read_head(connection);
    }
}

void proxy_origin_end(struct proxy_origin *origin) {
    dns_cancel(&origin->question);
    proxy_wire_close(origin->wire);
    origin->wire = NULL;
    origin->state = PROXY_ORIGIN_NONE;
    origin->is_tunnel = false;
    buf_clear(&origin->request);
}
