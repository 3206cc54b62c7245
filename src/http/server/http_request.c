#include "http/server/http_request.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/json.h"
#include "http/server/http_state.h"

enum { HEADERS_SIZE_MAX = 48 << 10, BLOCK_SIZE = 64 << 10, ERROR_SIZE_MAX = 4 << 10 };

void *http_request_context(const struct http_request *request) {
    return request->route->context;
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
    const char *value = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
    return value == NULL ? bytes_of(NULL, 0) : bytes_of_string(value);
}

uint16_t http_request_port(const struct http_request *request) {
    return request->server->door.address.port;
}

void http_request_client(const struct http_request *request, struct address *ret_client) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    *ret_client = (struct address){0};
    if (info != NULL && info->client_addr != NULL) {
        *ret_client = http_door_client(info->client_addr);
    }
}

bool http_request_is_gone(const struct http_request *request) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    uint8_t byte;
    ssize_t got = info == NULL ? 0 : recv(info->connect_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

void http_request_limit_body(struct http_request *request, uint64_t size_max) {
    if (size_max < request->body.size_max) {
        request->body.size_max = size_max;
    }
}

enum err http_request_body(struct http_request *request, struct bytes *ret_body) {
    return scratch_bytes(&request->body, ret_body);
}

void http_request_expect(const struct http_request *request, uint64_t size) {
    const struct http_server_config *config = &request->server->config;
    uint64_t allowed_us = config->request_timeout_ms * UINT64_C(1000);
    allowed_us += size / config->rate_min * 1000000;
    http_guard_expect(&request->server->guard, request->guarded, allowed_us, false);
}

/* ---- the answer ---- */

void http_add_header(struct http_request *request, const char *name, const char *value) {
    if (request->headers.size_max == 0) {
        buf_init(&request->headers, HEADERS_SIZE_MAX);
    }
    buf_put(&request->headers, bytes_of(name, strlen(name) + 1));
    buf_put(&request->headers, bytes_of(value, strlen(value) + 1));
}

static void add_headers(struct http_request *request, struct MHD_Response *response) {
    struct bytes rest = buf_bytes(&request->headers);
    while (request->headers.err == ERR_OK && rest.size > 0) {
        const char *name = (const char *)rest.data;
        const char *value = name + strlen(name) + 1;
        MHD_add_response_header(response, name, value);
        rest = bytes_skip(rest, strlen(name) + strlen(value) + 2);
    }
}

/* The response is queued when the route's function has returned. */
static void set_answer(struct http_request *request, unsigned status, const char *type,
                       struct MHD_Response *response, uint64_t size) {
    ASSERT(request->response == NULL && !request->is_suspended);
    request->is_lost = response == NULL || request->headers.err != ERR_OK;
    if (response == NULL) {
        return;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    add_headers(request, response);
    request->response = response;
    request->status = status;
    request->answer_size = size == HTTP_SIZE_UNKNOWN ? 0 : size;
    struct http_server *server = request->server;
    pthread_mutex_lock(&server->lock);
    bool is_stopping = server->is_stopping;
    server->stat.sent_size += request->answer_size;
    pthread_mutex_unlock(&server->lock);
    if (is_stopping) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    }
}

void http_answer(struct http_request *request, unsigned status, const char *type, struct bytes body) {
    struct MHD_Response *response =
        MHD_create_response_from_buffer(body.size, (void *)(uintptr_t)body.data, MHD_RESPMEM_MUST_COPY);
    set_answer(request, status, type, response, body.size);
}

struct stream {
    struct http_stream stream;
    struct http_request *request; /* outlives its response */
};

static ssize_t read_stream(void *context, uint64_t offset, char *out, size_t size) {
    struct stream *stream = context;
    size_t got = 0;
    http_request_expect(stream->request, size);
    enum err err = stream->stream.read(stream->stream.context, offset, out, size, &got);
    if (err == ERR_BUSY) {
        return 0; /* it is asked again when the other connections of the thread have had their turn */
    }
    if (err != ERR_OK) {
        return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    return got == 0 ? MHD_CONTENT_READER_END_OF_STREAM : (ssize_t)got;
}

static void close_stream(void *context) {
    struct stream *stream = context;
    stream->stream.close(stream->stream.context);
    free(stream);
}

void http_answer_stream(struct http_request *request, unsigned status, const char *type,
                        const struct http_stream *given) {
    struct stream *stream = malloc(sizeof *stream);
    if (stream == NULL) {
        given->close(given->context);
        request->is_lost = true;
        return;
    }
    *stream = (struct stream){.stream = *given, .request = request};
    uint64_t size = given->size == HTTP_SIZE_UNKNOWN ? MHD_SIZE_UNKNOWN : given->size;
    struct MHD_Response *response =
        MHD_create_response_from_callback(size, BLOCK_SIZE, read_stream, stream, close_stream);
    if (response == NULL) {
        close_stream(stream);
    }
    set_answer(request, status, type, response, given->size);
}

static void free_scratch(void *context) {
    scratch_done(context);
    free(context);
}

static enum err read_scratch(void *context, uint64_t offset, void *out, size_t size, size_t *ret_size) {
    struct scratch *scratch = context;
    uint64_t left = scratch->size - offset;
    *ret_size = left < size ? (size_t)left : size;
    return scratch_read(scratch, offset, out, *ret_size);
}

void http_answer_scratch(struct http_request *request, unsigned status, const char *type,
                         struct scratch *take_scratch) {
    struct scratch *scratch = malloc(sizeof *scratch);
    if (scratch == NULL || take_scratch->err != ERR_OK) {
        free(scratch);
        scratch_clear(take_scratch);
        request->is_lost = true;
        return;
    }
    *scratch = *take_scratch;
    scratch_init(take_scratch, scratch->directory, scratch->memory.size_max, scratch->size_max);
    scratch_set_budget(take_scratch, scratch->budget);
    if (scratch_is_in_memory(scratch)) {
        struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback_cls(
            scratch->memory.size, scratch->memory.data, free_scratch, scratch);
        if (response == NULL) {
            free_scratch(scratch);
        }
        set_answer(request, status, type, response, scratch->size);
        return;
    }
    struct http_stream stream = {
        .size = scratch->size, .read = read_scratch, .close = free_scratch, .context = scratch};
    http_answer_stream(request, status, type, &stream);
}

unsigned http_status(enum err err) {
    static const uint16_t statuses[] = {
        [-ERR_OK] = MHD_HTTP_OK,
        [-ERR_INVALID] = MHD_HTTP_BAD_REQUEST,
        [-ERR_TRUNCATED] = MHD_HTTP_BAD_REQUEST,
        [-ERR_LIMIT] = MHD_HTTP_CONTENT_TOO_LARGE,
        [-ERR_UNSUPPORTED] = MHD_HTTP_NOT_IMPLEMENTED,
        [-ERR_NOT_FOUND] = MHD_HTTP_NOT_FOUND,
        [-ERR_EXISTS] = MHD_HTTP_CONFLICT,
        [-ERR_MISMATCH] = MHD_HTTP_CONFLICT,
        [-ERR_PERMISSION] = MHD_HTTP_FORBIDDEN,
        [-ERR_REFUSED] = MHD_HTTP_FORBIDDEN,
        [-ERR_MEMORY] = MHD_HTTP_SERVICE_UNAVAILABLE,
        [-ERR_BUSY] = MHD_HTTP_SERVICE_UNAVAILABLE,
        [-ERR_CANCELLED] = MHD_HTTP_SERVICE_UNAVAILABLE,
        [-ERR_UNREACHABLE] = MHD_HTTP_BAD_GATEWAY,
        [-ERR_CLOSED] = MHD_HTTP_BAD_GATEWAY,
        [-ERR_TIMEOUT] = MHD_HTTP_GATEWAY_TIMEOUT,
        [-ERR_NO_SPACE] = MHD_HTTP_INSUFFICIENT_STORAGE,
        [-ERR_SYSTEM] = MHD_HTTP_INTERNAL_SERVER_ERROR,
    };
    size_t index = (size_t)-err;
    bool is_stated = index < sizeof statuses / sizeof *statuses && statuses[index] != 0;
    return is_stated ? statuses[index] : MHD_HTTP_INTERNAL_SERVER_ERROR;
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
        http_answer_error(request, text->err, "the answer is too long");
    } else {
        http_add_header(request, MHD_HTTP_HEADER_CACHE_CONTROL, cache);
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

/* is_suspended is the route's: a worker that has the request may answer it. */
void http_request_leave_thread(struct http_request *request) {
    struct http_server *server = request->server;
    pthread_mutex_lock(&server->lock);
    server->suspended_count++;
    pthread_mutex_unlock(&server->lock);
    MHD_suspend_connection(request->connection);
}

void http_request_suspend(struct http_request *request) {
    ASSERT(request->response == NULL && !request->is_suspended);
    request->is_suspended = true;
    http_request_leave_thread(request);
}

/* The count goes down when libmicrohttpd has done all of its part: http_server_stop() waits for that. */
void http_request_resume(struct http_request *request) {
    struct http_server *server = request->server;
    MHD_resume_connection(request->connection);
    pthread_mutex_lock(&server->lock);
    if (--server->suspended_count == 0) {
        pthread_cond_broadcast(&server->changes);
    }
    pthread_mutex_unlock(&server->lock);
}
