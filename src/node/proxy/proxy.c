#include "node/proxy/proxy.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/socket_address.h"
#include "node/proxy/proxy_state.h"
#include "replay/archive/wayback_path.h"

/* ---- one browser's connection: requests one after the other, or a tunnel ---- */

enum { ERROR_SIZE_MAX = 32 << 10, POINTER_SIZE_MAX = 1 << 10, NOTES_US = 1000000 };

static const uint64_t idle_us = 75000000;          /* between requests */
static const uint64_t head_us = 15000000;          /* for a head, or TLS, that has begun */
static const uint64_t still_us = 120000000;        /* without a byte, in the middle of a message */
static const uint64_t tunnel_still_us = 600000000; /* in a tunnel */
static const uint64_t dial_us = 20000000;          /* for the connection that a tunnel needs */
static const uint64_t linger_us = 2000000;

void proxy_connection_enter(struct proxy_connection *connection, enum proxy_phase phase) {
    connection->phase = phase;
    connection->since_us = connection->moved_at_us = proxy_now_us(connection->proxy);
    connection->has_begun = false;
}

/* ---- answers of our own ---- */

static const char *status_text(unsigned status) {
    switch (status) {
    case 400:
        return "Bad Request";
    case 403:
        return "Forbidden";
    case 405:
        return "Method Not Allowed";
    case 431:
        return "Request Header Fields Too Large";
    case 502:
        return "Bad Gateway";
    default:
        return "Gateway Timeout";
    }
}

static void put_html(struct buf *out, const char *text) {
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '<':
            buf_put_string(out, "&lt;");
            break;
        case '&':
            buf_put_string(out, "&amp;");
            break;
        default:
            buf_put_byte(out, (uint8_t)*text);
        }
    }
}

/*
 * The address of what the node's own pages have of it: there it is shown as what it is, and cannot be taken
 * for the site. Nothing, if this machine is not the only one to be told.
 */
static void put_way(struct buf *out, const struct proxy_connection *connection) {
    const struct proxy *proxy = connection->proxy;
    const struct proxy_origin *origin = &connection->exchange.origin;
    char address[ADDRESS_TEXT_SIZE_MAX];
    if (!proxy->is_private || proxy->config.http.port == 0 ||
        url_href(&origin->url).size > POINTER_SIZE_MAX) {
        return;
    }
    buf_put_format(out, "http://%s/web/%s", address_format(&proxy->config.http, address),
                   origin->is_tunnel ? "*/" : "");
    wayback_put_url(out, url_href(&origin->url));
    buf_put_string(out, origin->is_tunnel ? "*" : "");
}

static void put_pointer(struct buf *out, struct bytes way) {
    char text[4 * POINTER_SIZE_MAX];
    snprintf(text, sizeof text, "%.*s", BYTES_ARG(way));
    buf_put_string(out, "<p>What the archive has of it: <a href=\"");
    put_html(out, text);
    buf_put_string(out, "\">");
    put_html(out, text);
    buf_put_string(out, "</a></p>\n");
}

/* No browser shows the body of a refused tunnel: it might be anybody's. Who started the proxy is told. */
static void note_way(struct proxy_connection *connection, struct bytes way) {
    struct proxy *proxy = connection->proxy;
    const struct proxy_origin *origin = &connection->exchange.origin;
    uint64_t now_us = proxy_now_us(proxy);
    char sentence[6 * POINTER_SIZE_MAX];
    bool is_soon = proxy->noted_us != 0 && now_us - proxy->noted_us < NOTES_US;
    if (proxy->config.note == NULL || way.size == 0 || !origin->is_tunnel || is_soon) {
        return;
    }
    proxy->noted_us = now_us;
    snprintf(sentence, sizeof sentence, "%.*s does not answer; what the archive has of it: %.*s",
             BYTES_ARG(url_href(&origin->url)), BYTES_ARG(way));
    proxy->config.note(proxy->config.context, sentence);
}

void proxy_connection_refuse(struct proxy_connection *connection, unsigned status, const char *sentence) {
    struct proxy_exchange *exchange = &connection->exchange;
    struct buf page;
    struct buf out;
    struct buf way;
    exchange->keeps_connection =
        exchange->keeps_connection && exchange->request_body.is_ended && !exchange->request_body.is_wrong;
    buf_init(&page, ERROR_SIZE_MAX);
    buf_init(&out, 2 * ERROR_SIZE_MAX);
    buf_init(&way, ERROR_SIZE_MAX);
    buf_put_format(&page,
                   "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>%u %s</title>\n"
                   "<h1>%s</h1>\n<p>",
                   status, status_text(status), status_text(status));
    put_html(&page, sentence);
    buf_put_string(&page, "</p>\n");
    if (status == 502 || status == 504) {
        put_way(&way, connection);
    }
    if (way.size > 0) {
        put_pointer(&page, buf_bytes(&way));
        note_way(connection, buf_bytes(&way));
    }
    buf_put_string(&page, "<p>mnemon proxy</p>\n");
    buf_put_format(&out,
                   "HTTP/1.1 %u %s\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %zu\r\n"
                   "Cache-Control: no-store\r\nX-Mnemon-Source: proxy\r\nConnection: %s\r\n",
                   status, status_text(status), page.size,
                   exchange->keeps_connection ? "keep-alive" : "close");
    if (way.size > 0) {
        buf_put_format(&out, "Link: <%.*s>; rel=\"archives\"\r\n", BYTES_ARG(buf_bytes(&way)));
    }
    buf_put_string(&out, "\r\n");
    if (!exchange->is_head) {
        buf_put(&out, buf_bytes(&page));
    }
    proxy_wire_write(connection->client, buf_bytes(&out));
    buf_done(&page);
    buf_done(&out);
    buf_done(&way);
    proxy_connection_next(connection);
}

void proxy_connection_next(struct proxy_connection *connection) {
    struct proxy_exchange *exchange = &connection->exchange;
    bool keeps = exchange->keeps_connection && exchange->request_body.is_ended;
    proxy_exchange_end(exchange);
    proxy_connection_enter(connection, keeps ? PROXY_PHASE_HEAD : PROXY_PHASE_LINGER);
    if (!keeps) {
        proxy_wire_finish(connection->client);
    }
}

/* Before there is an exchange: the connection cannot be used any more. */
static void refuse_head(struct proxy_connection *connection, unsigned status, const char *sentence) {
    connection->exchange.keeps_connection = false;
    connection->exchange.is_head = false;
    proxy_connection_refuse(connection, status, sentence);
}

/* ---- requests ---- */

static void dial(struct proxy_connection *connection) {
    proxy_connection_enter(connection, PROXY_PHASE_DIAL);
    connection->exchange.origin.is_tunnel = true;
    proxy_origin_begin(connection);
}

static void begin_connect(struct proxy_connection *connection, const struct proxy_head *head) {
    struct err_detail detail = {0};
    struct url *url = &connection->exchange.origin.url;
    if (connection->secure_host.size > 0 || head->framing.kind != HTTP_BODY_NONE) {
        refuse_head(connection, 400, "CONNECT has no place here");
        return;
    }
    enum err err = proxy_head_authority(head, url, &detail);
    if (err != ERR_OK) {
        refuse_head(connection, 400, err_detail_text(&detail, err));
        return;
    }
    proxy_wire_take(connection->client, head->size);
    http_body_start(&connection->exchange.request_body, head->framing);
    connection->exchange.keeps_connection = false;
    connection->exchange.is_head = false;
    if (connection->proxy->authority == NULL) {
        dial(connection);
        return;
    }
    proxy_wire_write(connection->client, BYTES("HTTP/1.1 200 Connection established\r\n\r\n"));
    proxy_connection_enter(connection, PROXY_PHASE_PEEK);
}

static void begin_request(struct proxy_connection *connection, const struct proxy_head *head) {
    struct err_detail detail = {0};
    if (bytes_equal(head->http.method, BYTES("TRACE"))) {
        refuse_head(connection, 405, "TRACE is not passed on");
        return;
    }
    enum err err =
        proxy_head_url(head, buf_bytes(&connection->secure_host), &connection->exchange.origin.url, &detail);
    if (err != ERR_OK) {
        refuse_head(connection, 400, err_detail_text(&detail, err));
        return;
    }
    proxy_wire_take(connection->client, head->size);
    proxy_exchange_begin(connection, head);
}

static bool read_head(struct proxy_connection *connection) {
    struct proxy_wire *client = connection->client;
    struct proxy_head *head = &connection->proxy->head;
    const char *reason;
    if (client->in.size > 0 && !connection->has_begun) {
        connection->has_begun = true;
        connection->since_us = proxy_now_us(connection->proxy);
    }
    switch (proxy_head_read(head, buf_bytes(&client->in), &reason)) {
    case HTTP_HEAD_READING:
        if (client->in.size >= PROXY_WIRE_IN_SIZE) {
            refuse_head(connection, 431, "the head of the request is too long");
            return true;
        }
        if (client->is_ended) {
            proxy_connection_enter(connection, PROXY_PHASE_DEAD);
        }
        return false;
    case HTTP_HEAD_NONE:
        refuse_head(connection, 400, reason);
        return true;
    case HTTP_HEAD_WHOLE:
        break;
    }
    if (bytes_equal(head->http.method, BYTES("CONNECT"))) {
        begin_connect(connection, head);
    } else {
        begin_request(connection, head);
    }
    return true;
}

/* ---- behind CONNECT ---- */

enum { TLS_HANDSHAKE = 0x16 }; /* the first byte of a connection with TLS */

static void secure(struct proxy_connection *connection) {
    const struct url *url = &connection->exchange.origin.url;
    SSL *tls = proxy_authority_accept(connection->proxy->authority, url_host(url));
    buf_clear(&connection->secure_host);
    buf_put(&connection->secure_host, url_host(url));
    buf_put_format(&connection->secure_host, ":%d", url_port_or_default(url));
    if (tls == NULL || connection->secure_host.err != ERR_OK) {
        SSL_free(tls);
        proxy_connection_enter(connection, PROXY_PHASE_DEAD);
        return;
    }
    proxy_wire_secure(connection->client, tls);
    proxy_connection_enter(connection, PROXY_PHASE_SHAKE);
}

/* What is not TLS cannot be taken apart: a tunnel, as without certificates. */
static bool peek(struct proxy_connection *connection) {
    struct proxy_wire *client = connection->client;
    if (client->in.size == 0) {
        if (client->is_ended) {
            proxy_connection_enter(connection, PROXY_PHASE_DEAD);
        }
        return false;
    }
    if (client->in.data[0] == TLS_HANDSHAKE) {
        secure(connection);
    } else {
        dial(connection);
    }
    return true;
}

static bool run_dial(struct proxy_connection *connection) {
    struct proxy_origin *origin = &connection->exchange.origin;
    char sentence[PROXY_REASON_SIZE_MAX + 40];
    proxy_origin_step(connection);
    if (origin->state == PROXY_ORIGIN_OPEN) {
        if (connection->proxy->authority == NULL) {
            proxy_wire_write(connection->client, BYTES("HTTP/1.1 200 Connection established\r\n\r\n"));
        }
        proxy_connection_enter(connection, PROXY_PHASE_TUNNEL);
        return true;
    }
    bool is_over = proxy_now_us(connection->proxy) - connection->since_us > dial_us;
    if (origin->state == PROXY_ORIGIN_FAILED || is_over) {
        snprintf(sentence, sizeof sentence, "The server: %s.",
                 origin->state == PROXY_ORIGIN_FAILED ? origin->reason : "it does not answer");
        proxy_connection_refuse(connection, origin->err == ERR_PERMISSION ? 403 : 504, sentence);
        return true;
    }
    return false;
}

/* ---- the whole ---- */

static bool proxy_step(struct proxy_connection *connection) {
    struct proxy_wire *client = connection->client;
    switch (connection->phase) {
    case PROXY_PHASE_HEAD:
        return read_head(connection);
    case PROXY_PHASE_PEEK:
        return peek(connection);
    case PROXY_PHASE_SHAKE:
        if (client->is_open) {
            proxy_connection_enter(connection, PROXY_PHASE_HEAD);
        }
        return client->is_open;
    case PROXY_PHASE_EXCHANGE:
        return proxy_exchange_run(connection);
    case PROXY_PHASE_ANSWER:
        return proxy_exchange_answer(connection);
    case PROXY_PHASE_DIAL:
        return run_dial(connection);
    case PROXY_PHASE_TUNNEL:
        return proxy_relay_tunnel(connection);
    case PROXY_PHASE_LINGER:
        proxy_wire_take(client, client->in.size);
        if (client->is_ended && proxy_wire_is_drained(client)) {
            proxy_connection_enter(connection, PROXY_PHASE_DEAD);
        }
        return false;
    case PROXY_PHASE_DEAD:
        break;
    }
    return false;
}

/* A browser that has closed does not want the answer; what it sent before is not looked at. */
static bool is_gone(const struct proxy_connection *connection) {
    const struct proxy_wire *client = connection->client;
    bool awaits_answer = connection->phase == PROXY_PHASE_EXCHANGE ||
                         connection->phase == PROXY_PHASE_ANSWER || connection->phase == PROXY_PHASE_DIAL ||
                         connection->phase == PROXY_PHASE_SHAKE;
    return client->err != ERR_OK || (client->is_ended && awaits_answer);
}

static void proxy_connection_free(struct proxy_connection *connection) {
    struct proxy *proxy = connection->proxy;
    if (connection->previous != NULL) {
        connection->previous->next = connection->next;
    } else {
        proxy->connections = connection->next;
    }
    if (connection->next != NULL) {
        connection->next->previous = connection->previous;
    }
    proxy->connections_count--;
    proxy_exchange_done(&connection->exchange);
    proxy_wire_close(connection->client);
    buf_done(&connection->secure_host);
    free(connection);
}

void proxy_connection_run(void *context) {
    struct proxy_connection *connection = context;
    bool goes_on = true;
    while (goes_on && connection->phase != PROXY_PHASE_DEAD) {
        if (is_gone(connection)) {
            connection->phase = PROXY_PHASE_DEAD;
        } else {
            goes_on = proxy_step(connection);
        }
    }
    if (connection->phase == PROXY_PHASE_DEAD) {
        proxy_connection_free(connection);
    }
}

static bool is_late(const struct proxy_connection *connection, uint64_t now_us) {
    uint64_t in_phase_us = now_us - connection->since_us;
    uint64_t still = now_us - connection->moved_at_us;
    switch (connection->phase) {
    case PROXY_PHASE_HEAD:
        return in_phase_us > (connection->has_begun ? head_us : idle_us);
    case PROXY_PHASE_PEEK:
    case PROXY_PHASE_SHAKE:
        return in_phase_us > head_us;
    case PROXY_PHASE_EXCHANGE: /* before the answer, the exchange has an end of its own */
        return connection->exchange.is_relaying && still > still_us;
    case PROXY_PHASE_ANSWER:
        return still > still_us;
    case PROXY_PHASE_TUNNEL:
        return still > tunnel_still_us;
    case PROXY_PHASE_LINGER:
        return in_phase_us > linger_us && (proxy_wire_is_drained(connection->client) || still > still_us);
    case PROXY_PHASE_DIAL: /* likewise */
    case PROXY_PHASE_DEAD:
        break;
    }
    return false;
}

static void proxy_connection_tick(struct proxy_connection *connection) {
    const struct proxy_wire *origin = connection->exchange.origin.wire;
    uint64_t now_us = proxy_now_us(connection->proxy);
    uint64_t moved = connection->client->moved + (origin != NULL ? origin->moved : 0);
    if (moved != connection->moved) {
        connection->moved = moved;
        connection->moved_at_us = now_us;
    }
    if (is_late(connection, now_us)) {
        connection->phase = PROXY_PHASE_DEAD;
    }
    proxy_connection_run(connection);
}

static void proxy_connection_open(struct proxy *proxy, uv_stream_t *listener) {
    struct proxy_connection *connection = calloc(1, sizeof *connection);
    struct proxy_wire *client =
        connection != NULL ? proxy_wire_new(&proxy->loop.uv, proxy_connection_run, connection) : NULL;
    if (client == NULL) {
        free(connection);
        return;
    }
    proxy_wire_accept(client, listener);
    connection->proxy = proxy;
    connection->client = client;
    buf_init(&connection->secure_host, URL_SIZE_MAX);
    proxy_exchange_init(&connection->exchange);
    connection->next = proxy->connections;
    if (connection->next != NULL) {
        connection->next->previous = connection;
    }
    proxy->connections = connection;
    proxy->connections_count++;
    proxy_connection_enter(connection, PROXY_PHASE_HEAD);
    if (client->err != ERR_OK || proxy->connections_count > PROXY_CONNECTIONS_MAX) {
        proxy_connection_free(connection);
    }
}

enum { BACKLOG = 128, TICK_US = 100000 };

static const uint64_t timeout_us_default = 3000000;

/* ---- the loop ---- */

static void proxy_tick(void *context) {
    struct proxy *proxy = context;
    struct proxy_connection *next;
    for (struct proxy_connection *each = proxy->connections; each != NULL; each = next) {
        next = each->next;
        proxy_connection_tick(each);
    }
    if (proxy->connections == NULL) {
        loop_timer_stop(&proxy->tick);
    }
}

static void on_connection(uv_stream_t *listener, int status) {
    struct proxy *proxy = listener->data;
    if (status != 0) {
        return;
    }
    proxy_connection_open(proxy, listener);
    if (!loop_timer_is_set(&proxy->tick)) {
        loop_timer_set(&proxy->tick, TICK_US, TICK_US);
    }
}

static void proxy_end(void *context) {
    struct proxy *proxy = context;
    while (proxy->connections != NULL) {
        proxy_connection_free(proxy->connections);
    }
    uv_close((uv_handle_t *)&proxy->listener, NULL);
    dns_free(proxy->dns);
}

/* ---- starting ---- */

static enum err open_listener(struct proxy *proxy, struct err_detail *detail) {
    struct sockaddr_storage storage;
    char text[ADDRESS_TEXT_SIZE_MAX];
    int size = sizeof storage;
    const struct address *address = &proxy->config.listen;
    int status = uv_tcp_bind(&proxy->listener, socket_address_put(address, &storage), 0);
    if (status == 0) {
        status = uv_listen((uv_stream_t *)&proxy->listener, BACKLOG, on_connection);
    }
    if (status == 0) {
        status = uv_tcp_getsockname(&proxy->listener, (struct sockaddr *)&storage, &size);
    }
    if (status != 0 || !socket_address_get((struct sockaddr *)&storage, &proxy->bound)) {
        return err_set(detail, status == UV_EADDRINUSE ? ERR_BUSY : ERR_SYSTEM, "the proxy at %s: %s",
                       address_format(address, text), uv_strerror(status));
    }
    return ERR_OK;
}

static enum err open_parts(struct proxy *proxy, struct err_detail *detail) {
    const struct proxy_config *config = &proxy->config;
    struct dns_config dns = {.loop = &proxy->loop.uv, .nameservers = config->nameservers};
    enum err err = proxy_head_init(&proxy->head);
    if (err == ERR_OK) {
        err = open_listener(proxy, detail);
    }
    if (err == ERR_OK) {
        err = dns_new(&dns, &proxy->dns, detail);
    }
    if (err == ERR_OK && config->intercepts) {
        err = proxy_authority_open(config->directory, config->clock, &proxy->authority, detail);
    }
    if (err == ERR_OK) {
        err = proxy_jobs_start(config, &proxy->loop, proxy_exchange_looked, &proxy->jobs, detail);
    }
    if (err == ERR_OK && loop_start(&proxy->loop, "proxy", PRIORITY_USUAL) != ERR_OK) {
        err = err_set(detail, ERR_SYSTEM, "no thread for the proxy");
    }
    return err;
}

enum err proxy_start(const struct proxy_config *config, struct proxy **ret_proxy, struct err_detail *detail) {
    uint64_t seed;
    struct proxy *proxy = calloc(1, sizeof *proxy);
    enum err err = proxy != NULL ? loop_init(&proxy->loop, 0) : ERR_MEMORY;
    if (err != ERR_OK) {
        free(proxy);
        return err;
    }
    randombytes_buf(&seed, sizeof seed);
    proxy->config = *config;
    proxy->config.clock = config->clock != NULL ? config->clock : &clock_system;
    proxy->config.timeout_us = config->timeout_us > 0 ? config->timeout_us : timeout_us_default;
    standing_init(&proxy->standing, proxy->silences, PROXY_SILENCES_MAX, seed);
    proxy->is_private = address_is_loopback(&config->listen);
    uv_tcp_init(&proxy->loop.uv, &proxy->listener);
    proxy->listener.data = proxy;
    loop_timer_init(&proxy->loop, &proxy->tick, proxy_tick, proxy);
    err = open_parts(proxy, detail);
    if (err != ERR_OK) {
        proxy_stop(proxy);
        return err;
    }
    *ret_proxy = proxy;
    return ERR_OK;
}

void proxy_stop(struct proxy *proxy) {
    if (proxy->jobs != NULL) {
        proxy_jobs_stop(proxy->jobs);
    }
    loop_stop(&proxy->loop, proxy_end, proxy);
    if (proxy->jobs != NULL) {
        proxy_jobs_free(proxy->jobs);
    }
    proxy_authority_free(proxy->authority);
    proxy_head_done(&proxy->head);
    free(proxy);
}

void proxy_address(const struct proxy *proxy, struct address *ret_address) {
    *ret_address = proxy->bound;
}
