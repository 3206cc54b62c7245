/* One request: the origin is asked, others if it does not answer; the first answer counts. */
#include <stdio.h>

#include "net/reach.h"
#include "node/proxy/proxy_state.h"
#include "node/proxy/proxy_substitute.h"

/* ---- the origin: from a host's name to the head of its answer ---- */

static const uint64_t attempt_us = 2000000; /* then the host's next address is tried, if it has one */

static void exchange_fail(struct proxy_origin *origin, enum err err, const char *reason) {
    snprintf(origin->reason, sizeof origin->reason, "%s", reason); /* which may be the wire's own */
    proxy_wire_close(origin->wire);
    origin->wire = NULL;
    origin->state = PROXY_ORIGIN_FAILED;
    origin->err = err;
}

/* ---- which servers may be asked ---- */

static bool is_nowhere(const struct address *address) {
    static const uint8_t nowhere[16] = {0};
    struct address nowhere_ipv4 = address_ipv4(0, 0, 0, 0, address->port);
    return memcmp(address->ip, nowhere, sizeof nowhere) == 0 || address_equal(address, &nowhere_ipv4);
}

/* Does this node itself listen there? A connection to no address leads to this machine. */
static bool is_service(const struct address *service, const struct address *address) {
    return service->port == address->port && (address_equal(service, address) || is_nowhere(address) ||
                                              (is_nowhere(service) && reach_refusal(address) != NULL));
}

/*
 * A page on the web must not reach this network through us: it names a host of its own and lets the name
 * lead to an address here (DNS rebinding), which a browser with a proxy cannot see. Whoever types an address,
 * or "localhost", knows where it leads; but only if nobody else can use this proxy.
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
        exchange_fail(origin, ERR_PERMISSION, sentence);
        return;
    }
    origin->wire = proxy_wire_new(&proxy->loop.uv, proxy_connection_run, connection);
    if (origin->wire == NULL) {
        exchange_fail(origin, ERR_MEMORY, err_text(ERR_MEMORY));
        return;
    }
    origin->state = PROXY_ORIGIN_CONNECTING;
    origin->begun_at_us = proxy_now_us(proxy);
    proxy_wire_connect(origin->wire, &origin->address);
    if (origin->url.scheme_type == URL_SCHEME_HTTPS && !origin->is_tunnel) {
        SSL *tls = proxy_authority_connect(proxy->authority, url_host(&origin->url));
        if (tls == NULL) {
            exchange_fail(origin, ERR_INVALID, "no TLS to such a name");
            return;
        }
        proxy_wire_secure(origin->wire, tls);
    }
}

static void resolved(struct proxy_connection *connection, const struct dns_answer *answer) {
    struct proxy_origin *origin = &connection->exchange.origin;
    if (answer->err != ERR_OK) {
        exchange_fail(origin, answer->err,
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
        exchange_fail(origin, ERR_MEMORY, err_text(ERR_MEMORY));
        return;
    }
    origin->has_head_memory = true;
    http_head_start(&origin->head);
    origin->is_untrusted = false;
    if (address_parse(host, 1, &known.addresses[0])) {
        resolved(connection, &known);
        return;
    }
    if (host.size > DNS_NAME_SIZE_MAX) {
        exchange_fail(origin, ERR_NOT_FOUND, "there is no such host");
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
    origin->is_untrusted = origin->is_untrusted || origin->wire->is_untrusted;
    bool has_more = origin->next_index < origin->answer.count;
    bool is_late = proxy_now_us(connection->proxy) > origin->begun_at_us + attempt_us;
    if (origin->wire->is_open) {
        origin->state = PROXY_ORIGIN_OPEN;
        proxy_wire_write(origin->wire, buf_bytes(&origin->request));
        buf_clear(&origin->request);
    } else if (has_more && (origin->wire->err != ERR_OK || is_late)) {
        connect_next(connection);
    } else if (origin->wire->err != ERR_OK) {
        exchange_fail(origin, origin->wire->err, origin->wire->reason);
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
        exchange_fail(origin, ERR_INVALID, "it answered something that is not HTTP");
    } else if (wire->err != ERR_OK || wire->is_ended) {
        exchange_fail(origin, ERR_CLOSED,
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

static void proxy_origin_end(struct proxy_origin *origin) {
    dns_cancel(&origin->question);
    proxy_wire_close(origin->wire);
    origin->wire = NULL;
    origin->state = PROXY_ORIGIN_NONE;
    origin->is_tunnel = false;
    buf_clear(&origin->request);
}

/* ---- what passes through: the body of a request, the answer of the origin, a tunnel ---- */

/* As much of what has come as the other side has room for. */
static struct bytes ready(const struct proxy_wire *from, const struct proxy_wire *to) {
    size_t room = proxy_wire_room(to);
    struct bytes bytes = buf_bytes(&from->in);
    return bytes_slice(bytes, 0, bytes.size < room ? bytes.size : room);
}

/* ---- requests ---- */

static bool proxy_relay_request(struct proxy_connection *connection) {
    struct proxy_exchange *exchange = &connection->exchange;
    struct proxy_wire *client = connection->client;
    struct proxy_wire *wire = exchange->origin.wire;
    if (exchange->request_body.is_ended || wire == NULL || exchange->origin.state < PROXY_ORIGIN_OPEN) {
        return true;
    }
    if (exchange->expects_continue) {
        exchange->expects_continue = false;
        proxy_wire_write(client, BYTES("HTTP/1.1 100 Continue\r\n\r\n"));
    }
    struct bytes bytes = ready(client, wire);
    size_t taken = http_body_take(&exchange->request_body, bytes);
    proxy_wire_write(wire, bytes_slice(bytes, 0, taken));
    proxy_wire_take(client, taken);
    return !exchange->request_body.is_wrong;
}

/* ---- what may be kept ---- */

static bool is_private_answer(const struct fields *fields) {
    return fields_find(fields, BYTES("Set-Cookie"), NULL) != NULL ||
           fields_find(fields, BYTES("Set-Cookie2"), NULL) != NULL ||
           proxy_head_lists(fields, BYTES("Cache-Control"), BYTES("private")) ||
           proxy_head_lists(fields, BYTES("Cache-Control"), BYTES("no-store")) ||
           proxy_head_lists(fields, BYTES("Vary"), BYTES("*")) ||
           proxy_head_lists(fields, BYTES("Vary"), BYTES("Cookie")) ||
           proxy_head_lists(fields, BYTES("Vary"), BYTES("Authorization"));
}

/* Everybody would have got this answer. */
static bool may_keep(const struct proxy_connection *connection) {
    const struct proxy_config *config = &connection->proxy->config;
    const struct proxy_exchange *exchange = &connection->exchange;
    const struct proxy_origin *origin = &exchange->origin;
    return (config->archives || config->crowd->offers != NULL) && exchange->is_public && !exchange->is_head &&
           origin->head.status == 200 && !is_private_answer(&origin->head.fields) &&
           (config->allows_private || reach_refusal(&origin->address) == NULL) &&
           (exchange->answer_body.kind != HTTP_BODY_LENGTH ||
            exchange->answer_body.left <= PROXY_JOBS_BODY_SIZE_MAX);
}

static void begin_copy(struct proxy_connection *connection) {
    const struct proxy_config *config = &connection->proxy->config;
    struct proxy_exchange *exchange = &connection->exchange;
    const struct proxy_origin *origin = &exchange->origin;
    struct proxy_job *job = proxy_job_new(config, PROXY_JOB_KEEP, url_href(&origin->url));
    if (job == NULL || buf_put(&job->head, buf_bytes(&origin->head.text)) != ERR_OK) {
        proxy_job_free(job);
        return;
    }
    job->time_us = clock_wall_us(config->clock);
    job->address = origin->address;
    job->is_secure = origin->url.scheme_type == URL_SCHEME_HTTPS;
    exchange->copy = job;
}

static void exchange_copy(struct proxy_exchange *exchange, struct bytes bytes) {
    if (exchange->copy != NULL && scratch_put(&exchange->copy->body, bytes) != ERR_OK) {
        proxy_job_free(exchange->copy); /* too large, or the disk is full */
        exchange->copy = NULL;
    }
}

static void end_copy(struct proxy_connection *connection) {
    struct proxy_exchange *exchange = &connection->exchange;
    if (exchange->copy != NULL && !exchange->origin.wire->is_cut) {
        proxy_jobs_put(connection->proxy->jobs, exchange->copy);
        exchange->copy = NULL;
    }
}

/* ---- answers ---- */

static void put_connection(const struct proxy_exchange *exchange, struct buf *out) {
    const struct http_head *head = &exchange->origin.head;
    if (head->status == 101) {
        proxy_head_put_field(out, BYTES("Upgrade"), fields_get(&head->fields, BYTES("Upgrade")));
        buf_put_string(out, "Connection: Upgrade\r\n\r\n");
    } else {
        buf_put_string(out, exchange->keeps_connection ? "Connection: keep-alive\r\n\r\n"
                                                       : "Connection: close\r\n\r\n");
    }
}

/* If nobody can say where the answer ends, the browser gets none. */
static void proxy_relay_begin(struct proxy_connection *connection) {
    struct proxy_exchange *exchange = &connection->exchange;
    const struct http_head *head = &exchange->origin.head;
    struct buf out;
    struct http_framing framing;
    enum http_message message = exchange->is_head ? HTTP_MESSAGE_ANSWER_TO_HEAD : HTTP_MESSAGE_ANSWER;
    if (http_head_framing(head, message, &framing) != NULL ||
        (exchange->minor_version == 0 && framing.kind == HTTP_BODY_CHUNKED) ||
        (head->status == 101 && !exchange->wants_upgrade)) {
        proxy_connection_refuse(connection, 502, "the server's answer has no clear end");
        return;
    }
    http_body_start(&exchange->answer_body, framing);
    exchange->keeps_connection = exchange->keeps_connection && exchange->request_body.is_ended &&
                                 exchange->answer_body.kind != HTTP_BODY_UNTIL_CLOSE;
    buf_init(&out, 2 * PROXY_HEAD_SIZE_MAX);
    proxy_head_put_answer(head, &out);
    put_connection(exchange, &out);
    proxy_wire_write(connection->client, buf_bytes(&out));
    enum err err = out.err;
    buf_done(&out);
    if (err != ERR_OK) {
        proxy_connection_enter(connection, PROXY_PHASE_DEAD);
        return;
    }
    exchange->is_relaying = true;
    if (may_keep(connection)) {
        begin_copy(connection);
    }
    if (head->status == 101) {
        proxy_connection_enter(connection, PROXY_PHASE_TUNNEL);
    }
}

/* True where more can be done at once. */
static bool proxy_relay_answer(struct proxy_connection *connection) {
    struct proxy_exchange *exchange = &connection->exchange;
    struct proxy_wire *wire = exchange->origin.wire;
    struct bytes bytes = ready(wire, connection->client);
    size_t taken = http_body_take(&exchange->answer_body, bytes);
    exchange_copy(exchange, bytes_slice(bytes, 0, taken));
    proxy_wire_write(connection->client, bytes_slice(bytes, 0, taken));
    proxy_wire_take(wire, taken);
    bool is_over = wire->in.size == 0 && (wire->is_ended || wire->err != ERR_OK);
    if (exchange->answer_body.is_wrong ||
        (is_over && (wire->err != ERR_OK || !http_body_finish(&exchange->answer_body)) &&
         !exchange->answer_body.is_ended)) {
        proxy_connection_enter(connection, PROXY_PHASE_DEAD); /* the browser sees that it is not whole */
        return false;
    }
    if (exchange->answer_body.is_ended) {
        end_copy(connection);
        proxy_connection_next(connection);
        return true;
    }
    return taken > 0 && wire->in.size > 0;
}

/* ---- tunnels ---- */

static bool pass(struct proxy_wire *from, struct proxy_wire *to) {
    struct bytes bytes = ready(from, to);
    proxy_wire_write(to, bytes);
    proxy_wire_take(from, bytes.size);
    if (from->is_ended && from->in.size == 0) {
        proxy_wire_finish(to);
    }
    return bytes.size > 0;
}

bool proxy_relay_tunnel(struct proxy_connection *connection) {
    struct proxy_wire *client = connection->client;
    struct proxy_wire *wire = connection->exchange.origin.wire;
    bool has_moved = pass(client, wire);
    has_moved = pass(wire, client) || has_moved;
    bool is_over = client->is_ended && wire->is_ended && client->in.size == 0 && wire->in.size == 0 &&
                   proxy_wire_is_drained(client) && proxy_wire_is_drained(wire);
    if (client->err != ERR_OK || (wire->err != ERR_OK && wire->in.size == 0) || is_over) {
        proxy_connection_enter(connection, PROXY_PHASE_DEAD);
        return false;
    }
    return has_moved;
}

enum { PIECE_SIZE = 32 << 10 };

static const uint64_t patience_us = 30000000;       /* for an origin, where others have nothing either */
static const uint64_t long_patience_us = 300000000; /* if nobody else can answer */
static const uint64_t silence_us = 30000000; /* so long others are asked at once: a page has many parts */

void proxy_exchange_init(struct proxy_exchange *exchange) {
    url_init(&exchange->origin.url);
    buf_init(&exchange->origin.request, 2 * PROXY_HEAD_SIZE_MAX + URL_SIZE_MAX);
    buf_init(&exchange->accepts, PROXY_HEAD_SIZE_MAX);
}

void proxy_exchange_begin(struct proxy_connection *connection, const struct proxy_head *head) {
    struct proxy_exchange *exchange = &connection->exchange;
    const struct url *url = &exchange->origin.url;
    exchange->is_head = bytes_equal(head->http.method, BYTES("HEAD"));
    bool is_get = exchange->is_head || bytes_equal(head->http.method, BYTES("GET"));
    bool is_question = is_get && head->framing.kind == HTTP_BODY_NONE && !head->wants_upgrade;
    /* Other nodes are asked by URL: one with a password is not shown to them. */
    exchange->may_fall_back =
        is_question && !url_has_userinfo(url) && proxy_substitute_suits(&head->http.fields);
    exchange->is_public = is_question && !url_has_userinfo(url) &&
                          fields_find(&head->http.fields, BYTES("Cookie"), NULL) == NULL &&
                          fields_find(&head->http.fields, BYTES("Authorization"), NULL) == NULL;
    exchange->keeps_connection = head->keeps_connection;
    exchange->expects_continue = head->expects_continue && head->framing.kind != HTTP_BODY_NONE;
    exchange->wants_upgrade = head->wants_upgrade;
    exchange->minor_version = head->http.minor_version;
    exchange->begun_at_us = proxy_now_us(connection->proxy);
    http_body_start(&exchange->request_body, head->framing);
    buf_put(&exchange->accepts, fields_get(&head->http.fields, BYTES("Accept-Encoding")));
    if (proxy_head_put_request(head, url, &exchange->origin.request) != ERR_OK) {
        proxy_connection_refuse(connection, 431, "the request is too long");
        return;
    }
    proxy_connection_enter(connection, PROXY_PHASE_EXCHANGE);
    proxy_origin_begin(connection);
}

/* ---- asking others ---- */

static void exchange_look(struct proxy_connection *connection) {
    struct proxy_exchange *exchange = &connection->exchange;
    struct proxy_job *job =
        proxy_job_new(&connection->proxy->config, PROXY_JOB_LOOK, url_href(&exchange->origin.url));
    if (job == NULL) {
        exchange->look = PROXY_LOOK_NOTHING;
        return;
    }
    buf_put(&job->accepts, buf_bytes(&exchange->accepts));
    job->context = connection;
    exchange->looked = job;
    exchange->look = PROXY_LOOK_PENDING;
    proxy_jobs_put(connection->proxy->jobs, job);
}

void proxy_exchange_looked(void *context) {
    struct proxy_job *job = context;
    struct proxy_connection *connection = job->context;
    if (connection == NULL) {
        proxy_job_free(job);
        return;
    }
    connection->exchange.look = job->is_found ? PROXY_LOOK_FOUND : PROXY_LOOK_NOTHING;
    proxy_connection_run(connection);
}

/* Nobody waits for it any more. */
static void forget_look(struct proxy_exchange *exchange) {
    if (exchange->look == PROXY_LOOK_PENDING) {
        exchange->looked->context = NULL;
        atomic_store(&exchange->looked->is_forgotten, true);
    } else {
        proxy_job_free(exchange->looked);
    }
    exchange->looked = NULL;
    exchange->look = PROXY_LOOK_NOTHING;
}

static void begin_answer(struct proxy_connection *connection) {
    struct proxy_exchange *exchange = &connection->exchange;
    struct proxy_job *job = exchange->looked;
    proxy_origin_end(&exchange->origin);
    buf_put_string(&job->head, exchange->keeps_connection ? "Connection: keep-alive\r\n\r\n"
                                                          : "Connection: close\r\n\r\n");
    exchange->sent_size = 0;
    if (job->head.err != ERR_OK) {
        proxy_connection_enter(connection, PROXY_PHASE_DEAD);
        return;
    }
    proxy_wire_write(connection->client, buf_bytes(&job->head));
    proxy_connection_enter(connection, PROXY_PHASE_ANSWER);
}

bool proxy_exchange_answer(struct proxy_connection *connection) {
    struct proxy_exchange *exchange = &connection->exchange;
    const struct scratch *body = &exchange->looked->body;
    uint8_t piece[PIECE_SIZE];
    while (!exchange->is_head && exchange->sent_size < body->size) {
        size_t size = proxy_wire_room(connection->client);
        size = size < sizeof piece ? size : sizeof piece;
        size = size < body->size - exchange->sent_size ? size : (size_t)(body->size - exchange->sent_size);
        if (size == 0) {
            return false;
        }
        if (scratch_read(body, exchange->sent_size, piece, size) != ERR_OK) {
            proxy_connection_enter(connection, PROXY_PHASE_DEAD);
            return false;
        }
        proxy_wire_write(connection->client, bytes_of(piece, size));
        exchange->sent_size += size;
    }
    proxy_connection_next(connection);
    return true;
}

/* ---- which one answers ---- */

static bool is_absent(uint16_t status) {
    return status >= 502 && status <= 504;
}

static void give_up(struct proxy_connection *connection, const char *origin_said) {
    const struct proxy_exchange *exchange = &connection->exchange;
    char sentence[3 * PROXY_REASON_SIZE_MAX + 100];
    if (exchange->origin.is_untrusted) {
        snprintf(sentence, sizeof sentence,
                 "The server is there, but it cannot prove who it is: %s. Nothing is shown in its place.",
                 origin_said);
        proxy_connection_refuse(connection, 502, sentence);
        return;
    }
    if (exchange->looked != NULL && exchange->look == PROXY_LOOK_NOTHING) {
        snprintf(sentence, sizeof sentence, "The server: %s. The crowd: %s. The archive: %s.", origin_said,
                 exchange->looked->crowd_said, exchange->looked->archive_said);
    } else {
        snprintf(sentence, sizeof sentence, "The server: %s.", origin_said);
    }
    proxy_connection_refuse(connection, exchange->origin.err == ERR_PERMISSION ? 403 : 504, sentence);
}

/* The origin has failed. */
static void replace_origin(struct proxy_connection *connection) {
    struct proxy_exchange *exchange = &connection->exchange;
    const struct proxy_origin *origin = &exchange->origin;
    bool may_look = exchange->may_fall_back && origin->err != ERR_PERMISSION && !origin->is_untrusted;
    if (may_look && exchange->look == PROXY_LOOK_NOT_YET) {
        exchange_look(connection);
    }
    if (!may_look || exchange->look == PROXY_LOOK_NOTHING) {
        give_up(connection, origin->reason);
    }
}

/* "https://host:port": each has a standing of its own. */
static struct bytes server_of(const struct url *url) {
    return bytes_slice(url_href(url), 0, url->path.from);
}

/* Its answer has begun. One that says that somebody else is not there is held back while others are asked. */
static void exchange_take_answer(struct proxy_connection *connection) {
    struct proxy_exchange *exchange = &connection->exchange;
    standing_clear(&connection->proxy->standing, STANDING_SILENT, server_of(&exchange->origin.url));
    bool holds_back = exchange->may_fall_back && is_absent(exchange->origin.head.status);
    if (holds_back && exchange->look == PROXY_LOOK_NOT_YET) {
        exchange_look(connection);
    }
    if (holds_back && exchange->look == PROXY_LOOK_PENDING) {
        return;
    }
    forget_look(exchange);
    proxy_relay_begin(connection);
}

static void wait_on(struct proxy_connection *connection) {
    struct proxy_exchange *exchange = &connection->exchange;
    struct proxy *proxy = connection->proxy;
    uint64_t now_us = proxy_now_us(proxy);
    uint64_t waited_us = now_us - exchange->begun_at_us;
    bool is_late = waited_us >= proxy->config.timeout_us;
    struct bytes server = server_of(&exchange->origin.url);
    if (is_late) {
        standing_note(&proxy->standing, STANDING_SILENT, server, now_us, now_us + silence_us);
    }
    if (exchange->may_fall_back && exchange->look == PROXY_LOOK_NOT_YET &&
        (is_late || standing_holds(&proxy->standing, STANDING_SILENT, server, now_us))) {
        exchange_look(connection);
    }
    if (waited_us >= (exchange->may_fall_back ? patience_us : long_patience_us) &&
        exchange->look != PROXY_LOOK_PENDING) {
        give_up(connection, "it does not answer");
    }
}

bool proxy_exchange_run(struct proxy_connection *connection) {
    struct proxy_exchange *exchange = &connection->exchange;
    if (exchange->look == PROXY_LOOK_FOUND && !exchange->is_relaying && !exchange->origin.is_untrusted) {
        begin_answer(connection);
        return true;
    }
    if (exchange->is_relaying) {
        if (!proxy_relay_request(connection)) {
            proxy_connection_enter(connection, PROXY_PHASE_DEAD);
            return false;
        }
        return proxy_relay_answer(connection);
    }
    proxy_origin_step(connection);
    if (!proxy_relay_request(connection)) {
        proxy_connection_refuse(connection, 400, "the body of the request is not in chunks as it says");
        return true;
    }
    if (exchange->origin.state == PROXY_ORIGIN_FAILED) {
        replace_origin(connection);
    } else if (exchange->origin.state == PROXY_ORIGIN_ANSWERED) {
        exchange_take_answer(connection);
    } else {
        wait_on(connection);
    }
    return connection->phase != PROXY_PHASE_EXCHANGE || exchange->is_relaying;
}

/* ---- its end ---- */

void proxy_exchange_end(struct proxy_exchange *exchange) {
    proxy_origin_end(&exchange->origin);
    proxy_job_free(exchange->copy);
    exchange->copy = NULL;
    forget_look(exchange);
    exchange->look = PROXY_LOOK_NOT_YET;
    exchange->is_relaying = false;
    buf_clear(&exchange->accepts);
}

void proxy_exchange_done(struct proxy_exchange *exchange) {
    proxy_exchange_end(exchange);
    url_done(&exchange->origin.url);
    buf_done(&exchange->origin.request);
    buf_done(&exchange->accepts);
    if (exchange->origin.has_head_memory) {
        http_head_done(&exchange->origin.head);
    }
}
