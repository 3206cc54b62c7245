#include "http/server/http_request.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/json.h"
#include "http/message/status.h"
#include "http/server/http_state.h"

enum { HEADERS_SIZE_MAX = 48 << 10, ERROR_SIZE_MAX = 4 << 10 };

void *http_request_context(const struct http_request *request) {
    return request->route->context;
}

unsigned http_request_variant(const struct http_request *request) {
    return request->route->variant;
}

void *http_request_state(const struct http_request *request) {
    return request->state;
}

void http_request_set_state(struct http_request *request, void *state) {
    request->state = state;
}

const char *http_request_method(const struct http_request *request) {
    return request->route->method;
}

struct bytes http_request_path(const struct http_request *request) {
    return request->path;
}

struct bytes http_request_rest(const struct http_request *request) {
    return request->rest;
}

struct bytes http_request_query(const struct http_request *request) {
    return request->query;
}

struct bytes http_request_header(const struct http_request *request, const char *name) {
    return fields_get(&request->connection->head.fields, bytes_of_string(name));
}

uint16_t http_request_port(const struct http_request *request) {
    return request->connection->thread->server->door.address.port;
}

void http_request_client(const struct http_request *request, struct address *ret_client) {
    *ret_client = request->connection->client;
}

bool http_request_is_gone(const struct http_request *request) {
    uint8_t byte;
    ssize_t got = recv(request->connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

void http_request_limit_body(struct http_request *request, uint64_t size_max) {
    if (size_max < request->body.size_max) {
        request->body.size_max = size_max;
    }
}

enum err http_request_body(struct http_request *request, struct bytes *ret_body) {
    return scratch_bytes(&request->body, ret_body);
}

/* ---- the answer ---- */

/* A value that would end the line, and begin another field, is left out. */
void http_add_header(struct http_request *request, const char *name, const char *value) {
    struct bytes text = bytes_of_string(value);
    if (text.size == 0 || http_has_controls(text)) {
        return;
    }
    if (request->headers.size_max == 0) {
        buf_init(&request->headers, HEADERS_SIZE_MAX);
    }
    buf_put_string(&request->headers, name);
    buf_put_string(&request->headers, ": ");
    buf_put(&request->headers, text);
    buf_put_string(&request->headers, "\r\n");
}

void http_request_count(const struct http_request *request) {
    struct http_server *server = request->connection->thread->server;
    size_t index = server->config.routes_count;
    if (request->route != NULL) {
        index = (size_t)(request->route - server->config.routes);
    }
    uint64_t delay_us = 0; /* of what never became a request */
    if (request->has_begun) {
        delay_us = clock_monotonic_us(server->config.clock) - request->begun_us;
    }
    size_t bucket = 0;
    while (bucket < HTTP_DELAYS_COUNT && delay_us > http_delays_us[bucket]) {
        bucket++;
    }
    size_t hundreds = request->status / 100;
    uint64_t size = request->size == HTTP_SIZE_UNKNOWN ? 0 : request->size;
    struct http_counters *counters = &server->counters[index];
    http_count(&counters->statuses[hundreds < HTTP_STATUSES_COUNT ? hundreds : 0], 1);
    http_count(&counters->delays[bucket], 1);
    http_count(&counters->delay_sum_us, delay_us);
    http_count(&counters->sent_size, size);
    http_count(&server->sent_size, size);
}

void http_request_forget(struct http_request *request) {
    if (request->stream.close != NULL) {
        request->stream.close(request->stream.context);
    }
    if (request->scratch.directory != NULL) {
        scratch_done(&request->scratch);
    }
    buf_done(&request->content);
    buf_done(&request->headers);
    request->stream = (struct http_stream){0};
    request->scratch = (struct scratch){0};
    request->content = request->headers = (struct buf){0};
    request->status = 0;
    request->is_lost = false;
}

/* It is sent when the route's function has returned. */
static void set_answer(struct http_request *request, unsigned status, const char *type, uint64_t size) {
    ASSERT(!http_request_is_answered(request) && !request->is_suspended);
    http_add_header(request, "Content-Type", type);
    request->is_lost = request->headers.err != ERR_OK;
    request->status = status;
    request->size = size;
}

void http_answer(struct http_request *request, unsigned status, const char *type, struct bytes body) {
    if (body.size > 0) {
        buf_init(&request->content, body.size);
        request->is_lost = buf_put(&request->content, body) != ERR_OK;
    }
    if (request->is_lost) {
        return;
    }
    set_answer(request, status, type, body.size);
}

void http_answer_stream(struct http_request *request, unsigned status, const char *type,
                        const struct http_stream *stream) {
    request->stream = *stream;
    set_answer(request, status, type, stream->size);
}

static enum err read_scratch(void *context, uint64_t offset, void *out, size_t size, size_t *ret_size) {
    struct scratch *scratch = context;
    uint64_t left = scratch->size - offset;
    *ret_size = left < size ? (size_t)left : size;
    return scratch_read(scratch, offset, out, *ret_size);
}

static void leave_scratch(void *context) {
    (void)context; /* it goes with its request */
}

void http_answer_scratch(struct http_request *request, unsigned status, const char *type,
                         struct scratch *take_scratch) {
    if (take_scratch->err != ERR_OK) {
        scratch_clear(take_scratch);
        request->is_lost = true;
        return;
    }
    struct scratch *scratch = &request->scratch;
    *scratch = *take_scratch;
    scratch_init(take_scratch, scratch->directory, scratch->memory.size_max, scratch->size_max);
    scratch_set_budget(take_scratch, scratch->budget);
    if (!scratch_is_in_memory(scratch)) {
        request->stream = (struct http_stream){scratch->size, read_scratch, leave_scratch, scratch};
    }
    set_answer(request, status, type, scratch->size);
}

unsigned http_status(enum err err) {
    static const uint16_t statuses[] = {
        [-ERR_OK] = STATUS_OK,
        [-ERR_INVALID] = STATUS_BAD_REQUEST,
        [-ERR_TRUNCATED] = STATUS_BAD_REQUEST,
        [-ERR_LIMIT] = STATUS_TOO_LARGE,
        [-ERR_UNSUPPORTED] = STATUS_NOT_IMPLEMENTED,
        [-ERR_NOT_FOUND] = STATUS_NOT_FOUND,
        [-ERR_EXISTS] = STATUS_CONFLICT,
        [-ERR_MISMATCH] = STATUS_CONFLICT,
        [-ERR_PERMISSION] = STATUS_FORBIDDEN,
        [-ERR_REFUSED] = STATUS_FORBIDDEN,
        [-ERR_MEMORY] = STATUS_UNAVAILABLE,
        [-ERR_BUSY] = STATUS_UNAVAILABLE,
        [-ERR_CANCELLED] = STATUS_UNAVAILABLE,
        [-ERR_UNREACHABLE] = STATUS_BAD_GATEWAY,
        [-ERR_CLOSED] = STATUS_BAD_GATEWAY,
        [-ERR_TIMEOUT] = STATUS_LATE_GATEWAY,
        [-ERR_NO_SPACE] = STATUS_NO_SPACE,
        [-ERR_QUOTA] = STATUS_NO_SPACE,
        [-ERR_SYSTEM] = STATUS_INTERNAL,
        [-ERR_FILES] = STATUS_UNAVAILABLE,
        [-ERR_THREADS] = STATUS_UNAVAILABLE,
        [-ERR_DELETED] = STATUS_CONFLICT,
    };
    size_t index = (size_t)-err;
    bool is_stated = index < sizeof statuses / sizeof *statuses && statuses[index] != 0;
    return is_stated ? statuses[index] : STATUS_INTERNAL;
}

void http_put_error(struct buf *out, enum err err, const char *text) {
    struct json json;
    json_begin(&json, out);
    json_text(&json, "error", err_name(err));
    json_text(&json, "text", text);
    json_end(&json);
}

void http_answer_json(struct http_request *request, unsigned status, const char *cache, struct buf *text) {
    buf_put_byte(text, '\n');
    if (text->err != ERR_OK) {
        http_answer_error(request, text->err, text->err == ERR_LIMIT ? "the answer is too long" : NULL);
    } else {
        http_add_header(request, "Cache-Control", cache);
        http_add_header(request, "X-Content-Type-Options", "nosniff");
        http_answer(request, status, "application/json", buf_bytes(text));
    }
    buf_done(text);
}

void http_answer_status(struct http_request *request, unsigned status, enum err err, const char *text) {
    struct buf body;
    buf_init(&body, ERROR_SIZE_MAX);
    text = text == NULL ? err_text(err) : text;
    bool is_api = bytes_starts_with(request->path, BYTES("/api/"));
    if (is_api) {
        http_put_error(&body, err, text);
    } else {
        buf_put_string(&body, text);
    }
    buf_put_byte(&body, '\n');
    http_answer(request, status, is_api ? "application/json" : "text/plain; charset=utf-8", buf_bytes(&body));
    buf_done(&body);
}

void http_answer_error(struct http_request *request, enum err err, const char *text) {
    http_answer_status(request, http_status(err), err, text);
}

/* ---- later ---- */

bool http_request_is_on_worker(const struct http_request *request) {
    return request->is_away;
}

void http_request_put_off(struct http_request *request) {
    ASSERT(!request->is_away && !request->is_suspended);
    http_request_forget(request);
    request->is_put_off = true;
}

bool http_request_may_await(const struct http_request *request) {
    return http_errands_have_room(&request->connection->thread->errands);
}

void http_request_await(struct http_request *request, const struct http_errand *errand) {
    ASSERT(!request->is_away);
    http_request_suspend(request);
    request->errand = *errand;
    http_errands_add(&request->connection->thread->errands, request);
}

void http_request_suspend(struct http_request *request) {
    ASSERT(!http_request_is_answered(request) && !request->is_suspended);
    request->is_suspended = true;
}

static void request_resumed(void *context) {
    struct http_request *request = context;
    request->is_suspended = false;
    http_connection_go_on(request->connection);
}

void http_request_resume(struct http_request *request) {
    struct loop *loop = &request->connection->thread->loop;
    request->resumed = (struct loop_post){.run = request_resumed, .context = request};
    bool is_posted = loop_post(loop, &request->resumed);
    ASSERT(is_posted); /* http_server_stop() waits for it */
}
