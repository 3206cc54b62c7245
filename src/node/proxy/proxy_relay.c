/* What passes through: the body of a request, the answer of the origin, a tunnel. */
#include <stdlib.h>

#include "net/reach.h"
#include "node/proxy/proxy_state.h"

/* As much of what has come as the other side has room for. */
static struct bytes ready(const struct proxy_wire *from, const struct proxy_wire *to) {
    size_t room = proxy_wire_room(to);
    struct bytes bytes = buf_bytes(&from->in);
    return bytes_slice(bytes, 0, bytes.size < room ? bytes.size : room);
}

/* ---- requests ---- */

bool proxy_relay_request(struct proxy_connection *connection) {
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

static void copy(struct proxy_exchange *exchange, struct bytes bytes) {
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

/* Where nobody can say where the answer ends, the browser gets none. */
void proxy_relay_begin(struct proxy_connection *connection) {
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
bool proxy_relay_answer(struct proxy_connection *connection) {
    struct proxy_exchange *exchange = &connection->exchange;
    struct proxy_wire *wire = exchange->origin.wire;
    struct bytes bytes = ready(wire, connection->client);
    size_t taken = http_body_take(&exchange->answer_body, bytes);
    copy(exchange, bytes_slice(bytes, 0, taken));
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
