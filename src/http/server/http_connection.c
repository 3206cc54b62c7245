#include "http/server/http_connection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/utc.h"
#include "http/message/status.h"
#include "http/server/http_state.h"

enum {
    OUTPUT_SIZE_MAX = (48 << 10) + HTTP_BLOCK_SIZE, /* all headers, or a block */
    CHUNK_HEAD_SIZE = 10,                           /* up to eight digits and CRLF */
    CHUNK_TAIL_SIZE = 2,
    SEND_TURNS_MAX = 8, /* blocks of one stream before others have their turn */
    AGAIN_US = 1000,
    LINGER_SIZE_MAX = 1 << 20,
    LINGER_US = 2000000,
};

static const uint64_t DUE_NEVER = UINT64_MAX;

static const struct http_server_config *connection_config(const struct http_connection *connection) {
    return &connection->thread->server->config;
}

/* It must come further within so long, or as long as so many bytes may take in addition. */
static void connection_expect(struct http_connection *connection, uint64_t within_us, uint64_t size) {
    const struct http_server_config *config = connection_config(connection);
    connection->due_us =
        clock_monotonic_us(config->clock) + within_us + size / config->rate_min * UINT64_C(1000000);
}

static void connection_expect_bytes(struct http_connection *connection, uint64_t size) {
    connection_expect(connection, connection_config(connection)->request_timeout_ms * UINT64_C(1000), size);
}

/* ---- end ---- */

static void connection_free(struct http_connection *connection) {
    buf_done(&connection->input);
    buf_done(&connection->output);
    http_head_done(&connection->head);
    free(connection);
}

static void on_closed(uv_handle_t *handle) {
    connection_free(handle->data);
}

static void connection_on_poll(uv_poll_t *poll, int status, int events);

static void connection_poll(struct http_connection *connection, int events) {
    if (events == connection->events) {
        return;
    }
    connection->events = events;
    int result = events == 0 ? uv_poll_stop(&connection->poll)
                             : uv_poll_start(&connection->poll, events, connection_on_poll);
    ASSERT(result == 0);
}

/* A request that is suspended or away is somebody else's: the end comes when it is back. */
static void connection_close(struct http_connection *connection) {
    if (connection->phase == HTTP_PHASE_CLOSED) {
        return;
    }
    connection->is_gone = true;
    if (connection->request.is_suspended || connection->request.is_away) {
        connection_poll(connection, 0);
        return;
    }
    http_request_end(&connection->request);
    connection->phase = HTTP_PHASE_CLOSED;
    *connection->link = connection->next;
    if (connection->next != NULL) {
        connection->next->link = connection->link;
    }
    http_door_leave(&connection->thread->server->door, connection->fd);
    uv_close((uv_handle_t *)&connection->poll, on_closed);
    close(connection->fd);
}

/* ---- sending ---- */

static void connection_finish(struct http_connection *connection);

/* Of the stream, behind what is in the output. False: nothing yet, or it broke and the connection is closed.
 */
static bool connection_read_stream(struct http_connection *connection) {
    const struct http_request *request = &connection->request;
    struct buf *output = &connection->output;
    size_t wanted = HTTP_BLOCK_SIZE - CHUNK_HEAD_SIZE - CHUNK_TAIL_SIZE;
    size_t got = 0;
    if (request->size != HTTP_SIZE_UNKNOWN && request->size - connection->stream_offset < wanted) {
        wanted = (size_t)(request->size - connection->stream_offset);
    }
    buf_clear(output);
    enum err err = buf_reserve(output, HTTP_BLOCK_SIZE);
    if (err == ERR_OK && wanted > 0) {
        err = request->stream.read(request->stream.context, connection->stream_offset,
                                   output->data + CHUNK_HEAD_SIZE, wanted, &got);
    }
    if (err == ERR_BUSY) {
        connection->is_stalled = true;
        connection->output_sent = 0; /* of nothing */
        connection_poll(connection, 0);
        loop_timer_set(&connection->thread->again, AGAIN_US, 0);
        return false;
    }
    connection->stream_offset += got;
    bool is_short = got == 0 && wanted > 0 && request->size != HTTP_SIZE_UNKNOWN;
    if (err != ERR_OK || is_short) {
        connection_close(connection);
        return false;
    }
    connection->is_last = got == 0 || connection->stream_offset == request->size;
    connection->output_sent = CHUNK_HEAD_SIZE;
    output->size = CHUNK_HEAD_SIZE + got;
    if (connection->is_chunked) {
        char head[CHUNK_HEAD_SIZE + 1];
        size_t size = (size_t)snprintf(head, sizeof head, "%zx\r\n", got);
        connection->output_sent -= size;
        memcpy(output->data + connection->output_sent, head, size);
        buf_put(output, BYTES("\r\n")); /* the last chunk is empty, and so is the trailer */
    }
    connection_expect_bytes(connection, got);
    return true;
}

/* False: it cannot be sent now, or not at all. */
static bool connection_send_some(struct http_connection *connection) {
    struct bytes output = bytes_skip(buf_bytes(&connection->output), connection->output_sent);
    struct iovec parts[2] = {
        {.iov_base = (void *)(uintptr_t)output.data, .iov_len = output.size},
        {.iov_base = (void *)(uintptr_t)connection->content.data, .iov_len = connection->content.size},
    };
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = connection->content.size > 0 ? 2 : 1};
    ssize_t sent = sendmsg(connection->fd, &message, MSG_NOSIGNAL);
    if (sent < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            connection_close(connection);
        }
        return false;
    }
    size_t of_output = (size_t)sent < output.size ? (size_t)sent : output.size;
    connection->output_sent += of_output;
    connection->content = bytes_skip(connection->content, (size_t)sent - of_output);
    return connection->output_sent == connection->output.size && connection->content.size == 0;
}

static void connection_send(struct http_connection *connection) {
    connection->is_stalled = false;
    for (int turns = 0; turns < SEND_TURNS_MAX; turns++) {
        if (!connection_send_some(connection)) {
            break;
        }
        if (connection->is_last) {
            connection_finish(connection);
            return;
        }
        if (!connection_read_stream(connection)) {
            return;
        }
    }
    if (connection->phase == HTTP_PHASE_SEND) {
        connection_poll(connection, (connection->events & UV_READABLE) | UV_WRITABLE);
        if (!http_door_wait(&connection->thread->server->door, connection->fd, HTTP_WAIT_TAKEN)) {
            connection_close(connection);
        }
    }
}

static bool has_body(unsigned status) {
    return status >= 200 && status != STATUS_NO_CONTENT && status != STATUS_NOT_MODIFIED;
}

static void connection_put_head(struct http_connection *connection) {
    const struct http_request *request = &connection->request;
    struct buf *output = &connection->output;
    char date[UTC_RFC1123_SIZE];
    bool is_old = connection->head.minor_version == 0;
    connection->is_chunked = request->size == HTTP_SIZE_UNKNOWN && !is_old && has_body(request->status);
    connection->closes |= request->size == HTTP_SIZE_UNKNOWN && is_old;
    buf_clear(output);
    buf_put_format(output, "HTTP/1.1 %u %s\r\nDate: %s\r\n", request->status, status_reason(request->status),
                   utc_format_rfc1123(clock_wall_us(connection_config(connection)->clock), date));
    if (connection->closes || is_old) {
        buf_put_string(output, connection->closes ? "Connection: close\r\n" : "Connection: keep-alive\r\n");
    }
    if (connection->is_chunked) {
        buf_put_string(output, "Transfer-Encoding: chunked\r\n");
    } else if (request->size != HTTP_SIZE_UNKNOWN && has_body(request->status)) {
        buf_put_format(output, "Content-Length: %ju\r\n", (uintmax_t)request->size);
    }
    buf_put(output, buf_bytes(&request->headers));
    buf_put_string(output, "\r\n");
}

/* The answer is there. */
static void connection_start_sending(struct http_connection *connection) {
    struct http_request *request = &connection->request;
    struct http_server *server = connection->thread->server;
    if (request->is_lost || connection->is_gone) {
        connection_close(connection);
        return;
    }
    http_request_count(request);
    pthread_mutex_lock(&server->lock);
    connection->closes |= server->is_stopping;
    pthread_mutex_unlock(&server->lock);
    connection_put_head(connection);
    if (connection->output.err != ERR_OK) {
        connection_close(connection);
        return;
    }
    bool is_head = bytes_equal(connection->head.method, BYTES("HEAD"));
    bool has_stream = request->stream.read != NULL;
    connection->phase = HTTP_PHASE_SEND;
    connection->output_sent = 0;
    connection->stream_offset = 0;
    connection->is_last = is_head || !has_stream || !has_body(request->status);
    connection->content = bytes_of(NULL, 0);
    if (!is_head && !has_stream && has_body(request->status)) {
        connection->content = request->scratch.directory != NULL ? buf_bytes(&request->scratch.memory)
                                                                 : buf_bytes(&request->content);
    }
    connection_expect_bytes(connection, has_stream ? 0 : request->size);
    connection_send(connection);
}

/* ---- reading ---- */

static void connection_refuse(struct http_connection *connection, unsigned status, const char *reason) {
    char text[160];
    snprintf(text, sizeof text, "the request has %s", reason);
    connection->closes = connection->is_cut = true;
    connection->phase = HTTP_PHASE_WORK;
    connection->request.connection = connection;
    if (!http_request_is_answered(&connection->request)) {
        http_answer_status(&connection->request, status, ERR_INVALID, text);
    }
    connection_start_sending(connection);
}

static void connection_work(struct http_connection *connection) {
    struct http_request *request = &connection->request;
    connection->phase = HTTP_PHASE_WORK;
    if (!http_door_wait(&connection->thread->server->door, connection->fd, HTTP_WAIT_WORK)) {
        connection_close(connection);
        return;
    }
    connection->due_us = DUE_NEVER;
    if (!http_request_is_answered(request)) {
        http_request_work(request);
    }
    if (!request->is_suspended && !request->is_away) {
        connection_start_sending(connection);
    }
}

/* Does the list of the field have this word? */
static bool head_says(const struct http_head *head, struct bytes name, struct bytes word) {
    for (const struct field *field = NULL; (field = fields_find(&head->fields, name, field)) != NULL;) {
        struct bytes rest = field->value;
        struct bytes part;
        while (rest.size > 0 && bytes_split(&rest, ',', &part)) {
            if (bytes_equal_ignore_case(bytes_trim(part), word)) {
                return true;
            }
        }
    }
    return false;
}

static bool stays_open(const struct http_head *head) {
    bool is_old = head->minor_version == 0;
    return is_old ? head_says(head, BYTES("Connection"), BYTES("keep-alive"))
                  : !head_says(head, BYTES("Connection"), BYTES("close"));
}

/* The head is whole. */
static void connection_begin(struct http_connection *connection) {
    const struct http_head *head = &connection->head;
    struct http_request *request = &connection->request;
    struct http_framing framing;
    const char *reason = http_head_framing(head, HTTP_MESSAGE_REQUEST, &framing);
    if (reason == NULL && head->minor_version == 1 &&
        fields_find(&head->fields, BYTES("Host"), NULL) == NULL) {
        reason = "no Host";
    }
    if (reason != NULL) {
        connection_refuse(connection, STATUS_BAD_REQUEST, reason);
        return;
    }
    connection->closes = !stays_open(head);
    connection->body_kind = framing.kind;
    connection->body_left = framing.size;
    if (framing.kind == HTTP_BODY_CHUNKED) {
        chunked_start(&connection->chunked, HTTP_RULES_STRICT);
    }
    bool is_chunked = framing.kind == HTTP_BODY_CHUNKED;
    bool has_none = !is_chunked && framing.size == 0;
    bool is_asked = head_says(head, BYTES("Expect"), BYTES("100-continue"));
    http_request_begin(request, connection, is_chunked ? HTTP_SIZE_UNKNOWN : framing.size);
    if (http_request_is_answered(request) && !has_none &&
        (is_asked || framing.size > HTTP_DISCARD_SIZE_MAX)) {
        connection->closes = connection->is_cut = true;
        has_none = true;
    }
    if (has_none) {
        connection_work(connection);
        return;
    }
    connection->phase = HTTP_PHASE_BODY;
    connection_expect_bytes(connection, is_chunked ? request->body.size_max : framing.size);
    if (is_asked && send(connection->fd, "HTTP/1.1 100 Continue\r\n\r\n", 25, MSG_NOSIGNAL) != 25) {
        connection_close(connection);
    }
}

static void connection_read_head(struct http_connection *connection, struct bytes *input) {
    struct http_head *head = &connection->head;
    if (!connection->has_started) {
        connection->has_started = true;
        connection_expect_bytes(connection, 0);
    }
    http_head_feed(head, input);
    if (head->state == HTTP_HEAD_WHOLE) {
        connection_begin(connection);
    } else if (head->state == HTTP_HEAD_NONE) {
        bool is_long = head->text.size == HTTP_HEAD_SIZE_MAX || head->text.err != ERR_OK;
        connection_refuse(connection, is_long ? STATUS_HEAD_TOO_LARGE : STATUS_BAD_REQUEST, head->reason);
    }
}

static void connection_read_body(struct http_connection *connection, struct bytes *input) {
    struct http_request *request = &connection->request;
    struct bytes piece;
    bool is_taken = true;
    bool is_over = false;
    if (connection->body_kind == HTTP_BODY_LENGTH) {
        size_t size = connection->body_left < input->size ? (size_t)connection->body_left : input->size;
        is_taken = http_request_take(request, bytes_slice(*input, 0, size));
        *input = bytes_skip(*input, size);
        connection->body_left -= size;
        is_over = connection->body_left == 0;
    } else {
        while (is_taken && chunked_next(&connection->chunked, input, &piece)) {
            is_taken = http_request_take(request, piece);
        }
        is_over = connection->chunked.state == CHUNKED_ENDED;
    }
    if (!is_taken) {
        connection_close(connection);
    } else if (is_over) {
        connection_work(connection);
    } else if (connection->body_kind == HTTP_BODY_CHUNKED && connection->chunked.state == CHUNKED_WRONG) {
        connection_refuse(connection, STATUS_BAD_REQUEST, "a body that is not chunked as it says");
    }
}

static bool connection_reads(const struct http_connection *connection) {
    return connection->phase == HTTP_PHASE_HEAD || connection->phase == HTTP_PHASE_BODY;
}

/* As many requests as are there, as long as each is answered at once. Returns how many bytes were used. */
static size_t connection_use(struct http_connection *connection, struct bytes bytes) {
    struct bytes rest = bytes;
    connection->is_reading = true;
    while (rest.size > 0 && connection_reads(connection)) {
        if (connection->phase == HTTP_PHASE_HEAD) {
            connection_read_head(connection, &rest);
        } else {
            connection_read_body(connection, &rest);
        }
    }
    connection->is_reading = false;
    return bytes.size - rest.size;
}

/* What was received while the last request was being answered. */
static void connection_use_input(struct http_connection *connection) {
    if (connection->input.size > 0) {
        size_t used = connection_use(connection, buf_bytes(&connection->input));
        buf_consume(&connection->input, used);
    }
    if (connection->has_ended && connection_reads(connection)) {
        connection_close(connection); /* there will be no more */
    }
}

/* All of the answer is sent. */
static void connection_finish(struct http_connection *connection) {
    http_request_end(&connection->request);
    connection->content = bytes_of(NULL, 0);
    if (connection->closes && (!connection->is_cut || connection->has_ended)) {
        connection_close(connection);
        return;
    }
    if (connection->closes) {
        connection->phase = HTTP_PHASE_LINGER;
        connection_expect(connection, LINGER_US, 0);
        shutdown(connection->fd, SHUT_WR);
        connection_poll(connection, UV_READABLE);
        return;
    }
    connection->phase = HTTP_PHASE_HEAD;
    connection->has_started = false;
    http_head_start(&connection->head);
    connection_expect(connection, connection_config(connection)->idle_timeout_ms * UINT64_C(1000), 0);
    connection_poll(connection, connection->has_ended ? 0 : UV_READABLE);
    if (!http_door_wait(&connection->thread->server->door, connection->fd, HTTP_WAIT_REQUEST)) {
        connection_close(connection);
    } else if (!connection->is_reading) {
        connection_use_input(connection);
    }
}

static void connection_on_end(struct http_connection *connection) {
    connection->has_ended = true;
    if (connection_reads(connection) || connection->phase == HTTP_PHASE_LINGER) {
        connection_close(connection);
    } else {
        connection_poll(connection, connection->events & ~UV_READABLE);
    }
}

static void connection_receive(struct http_connection *connection) {
    ssize_t got = recv(connection->fd, connection->thread->block, HTTP_BLOCK_SIZE, 0);
    if (got < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            connection_close(connection);
        }
        return;
    }
    if (got == 0) {
        connection_on_end(connection);
        return;
    }
    if (connection->phase == HTTP_PHASE_LINGER) {
        connection->lingered_size += (uint64_t)got;
        if (connection->lingered_size > LINGER_SIZE_MAX) {
            connection_close(connection);
        }
        return;
    }
    struct bytes bytes = bytes_of(connection->thread->block, (size_t)got);
    struct bytes rest = bytes_skip(bytes, connection_use(connection, bytes));
    bool is_busy = connection->phase == HTTP_PHASE_WORK || connection->phase == HTTP_PHASE_SEND;
    if (is_busy && rest.size > 0) {
        if (buf_put(&connection->input, rest) != ERR_OK) {
            connection_close(connection);
            return;
        }
        connection_poll(connection, connection->events & ~UV_READABLE); /* the rest waits in the socket */
    }
}

static void connection_on_poll(uv_poll_t *poll, int status, int events) {
    struct http_connection *connection = poll->data;
    http_errands_make_room(&connection->thread->errands);
    if (status < 0) {
        connection_close(connection);
        return;
    }
    if ((events & UV_WRITABLE) != 0 && connection->phase == HTTP_PHASE_SEND) {
        connection_send(connection);
    }
    if ((events & UV_READABLE) != 0 && (connection->events & UV_READABLE) != 0 &&
        connection->phase != HTTP_PHASE_CLOSED) {
        connection_receive(connection);
    }
}

void http_connection_go_on(struct http_connection *connection) {
    ASSERT(connection->phase == HTTP_PHASE_WORK);
    connection_work(connection);
}

/* ---- beginning ---- */

static void connection_arrive(void *context) {
    struct http_connection *connection = context;
    struct http_thread *thread = connection->thread;
    http_errands_make_room(&thread->errands);
    int result = uv_poll_init(&thread->loop.uv, &connection->poll, connection->fd);
    ASSERT(result == 0); /* a socket that nobody else polls */
    connection->poll.data = connection;
    connection->next = thread->first;
    connection->link = &thread->first;
    if (thread->first != NULL) {
        thread->first->link = &connection->next;
    }
    thread->first = connection;
    connection_expect_bytes(connection, 0);
    connection_poll(connection, UV_READABLE);
    connection_receive(connection); /* most have sent their request by now */
}

bool http_connection_new(struct http_thread *thread, int fd, const struct address *client) {
    struct http_connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL) {
        return false;
    }
    connection->thread = thread;
    connection->fd = fd;
    connection->client = *client;
    connection->arrived = (struct loop_post){.run = connection_arrive, .context = connection};
    buf_init(&connection->input, HTTP_BLOCK_SIZE);
    buf_init(&connection->output, OUTPUT_SIZE_MAX);
    bool is_taken = http_head_init(&connection->head) == ERR_OK;
    connection->head.rules = HTTP_RULES_STRICT;
    is_taken = is_taken && loop_post(&thread->loop, &connection->arrived);
    if (!is_taken) {
        connection_free(connection);
    }
    return is_taken;
}

/* ---- all of a thread ---- */

static void connections_each(struct http_thread *thread, void (*run)(struct http_connection *connection)) {
    for (struct http_connection *connection = thread->first; connection != NULL;) {
        struct http_connection *next = connection->next;
        run(connection);
        connection = next;
    }
}

static void cut_if_due(struct http_connection *connection) {
    struct http_server *server = connection->thread->server;
    if (connection->due_us <= clock_monotonic_us(server->config.clock)) {
        connection->due_us = DUE_NEVER;
        http_count(&server->cut_count, 1);
        connection_close(connection);
    }
}

void http_connections_look(void *thread) {
    connections_each(thread, cut_if_due);
}

static void send_if_stalled(struct http_connection *connection) {
    if (connection->is_stalled) {
        connection_send(connection);
    }
}

void http_connections_again(void *thread) {
    connections_each(thread, send_if_stalled);
}

void http_connections_close(void *thread) {
    connections_each(thread, connection_close);
}
