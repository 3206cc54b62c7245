/* One request: the origin is asked, others where it does not answer; who is first, answers. */
#include <stdio.h>

#include "node/proxy/proxy_state.h"

enum { PIECE_SIZE = 32 << 10 };

static const uint64_t patience_us = 30000000;       /* for an origin, where others have nothing either */
static const uint64_t long_patience_us = 300000000; /* where nobody else can answer */
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
    exchange->may_fall_back = is_get && head->framing.kind == HTTP_BODY_NONE && !head->wants_upgrade;
    exchange->is_public = exchange->may_fall_back && url_username(url).size == 0 &&
                          url_password(url).size == 0 &&
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

static void look(struct proxy_connection *connection) {
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

/* ---- who answers ---- */

static bool is_absent(uint16_t status) {
    return status >= 502 && status <= 504;
}

static void give_up(struct proxy_connection *connection, const char *origin_said) {
    const struct proxy_exchange *exchange = &connection->exchange;
    char sentence[3 * PROXY_REASON_SIZE_MAX + 100];
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
    bool may_look = exchange->may_fall_back && origin->err != ERR_PERMISSION;
    if (may_look && exchange->look == PROXY_LOOK_NOT_YET) {
        look(connection);
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
static void take_answer(struct proxy_connection *connection) {
    struct proxy_exchange *exchange = &connection->exchange;
    standing_clear(&connection->proxy->standing, STANDING_SILENT, server_of(&exchange->origin.url));
    bool holds_back = exchange->may_fall_back && is_absent(exchange->origin.head.status);
    if (holds_back && exchange->look == PROXY_LOOK_NOT_YET) {
        look(connection);
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
        look(connection);
    }
    if (waited_us >= (exchange->may_fall_back ? patience_us : long_patience_us) &&
        exchange->look != PROXY_LOOK_PENDING) {
        give_up(connection, "it does not answer");
    }
}

bool proxy_exchange_run(struct proxy_connection *connection) {
    struct proxy_exchange *exchange = &connection->exchange;
    if (exchange->look == PROXY_LOOK_FOUND && !exchange->is_relaying) {
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
        take_answer(connection);
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
