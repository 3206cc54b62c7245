#include "http/server/http_server.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "http/server/http_state.h"
#include "run/priority.h"

enum {
    THREADS_MIN = 4,
    WORKERS_COUNT = 32,
    CONNECTIONS_MAX = 1024,
    CONNECTION_MEMORY_SIZE = 64 << 10,
    REQUEST_TIMEOUT_MS = 15000,
    IDLE_TIMEOUT_MS = 60000,
    RATE_MIN = 16 << 10,
    DISCARD_SIZE_MAX = 1 << 20, /* of the body of a request that was refused, so that its client hears why */
};

const uint32_t http_delays_us[HTTP_DELAYS_COUNT] = {100,   250,   500,    1000,   2500,    5000,
                                                    10000, 50000, 100000, 500000, 1000000, 5000000};

/* ---- one request, from libmicrohttpd's callbacks ---- */

static void *begin_target(void *context, const char *target, struct MHD_Connection *connection) {
    struct http_server *server = context;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct http_request *request = calloc(1, sizeof *request);
    char *copy = strdup(target);
    if (request == NULL || copy == NULL || info == NULL || info->socket_context == NULL) {
        free(request);
        free(copy);
        return NULL;
    }
    struct bytes whole = bytes_of_string(copy);
    size_t path_size = bytes_find_byte(whole, '?');
    *request = (struct http_request){
        .server = server,
        .connection = connection,
        .guarded = info->socket_context,
        .target = copy,
        .path = bytes_slice(whole, 0, path_size),
        .query = path_size < whole.size ? bytes_skip(whole, path_size + 1) : bytes_of(NULL, 0),
    };
    scratch_init(&request->body, server->config.scratch_directory, SCRATCH_MEMORY_MAX, 0);
    return request;
}

static bool fits_path(const struct http_route *route, struct bytes path, struct bytes *ret_rest) {
    struct bytes pattern = bytes_of_string(route->path);
    if (!bytes_ends_with(pattern, BYTES("*"))) {
        *ret_rest = bytes_of(NULL, 0);
        return bytes_equal(pattern, path);
    }
    pattern.size--;
    if (!bytes_starts_with(path, pattern)) {
        return false;
    }
    *ret_rest = bytes_skip(path, pattern.size);
    return true;
}

static bool fits_method(const struct http_route *route, const char *method) {
    return strcmp(route->method, method) == 0 ||
           (strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0);
}

/* For what no other route is there: it must not hide that one is there for another method. */
static bool is_fallback(const struct http_route *route) {
    return strcmp(route->path, "/*") == 0;
}

/* Answers if there is none. */
static void find_route(struct http_request *request, const char *method) {
    const struct http_server_config *config = &request->server->config;
    const struct http_route *other = NULL; /* of the right path for another method */
    for (size_t i = 0; i < config->routes_count; i++) {
        const struct http_route *route = &config->routes[i];
        bool is_late = is_fallback(route) && (other != NULL || !fits_method(route, method));
        if (is_late || !fits_path(route, request->path, &request->rest)) {
            continue;
        }
        if (fits_method(route, method)) {
            request->route = route;
            return;
        }
        other = other == NULL ? route : other;
    }
    if (other == NULL) {
        http_answer_status(request, MHD_HTTP_NOT_FOUND, ERR_UNSUPPORTED, "there is no such page");
        return;
    }
    http_add_header(request, MHD_HTTP_HEADER_ALLOW, other->method);
    http_answer_status(request, MHD_HTTP_METHOD_NOT_ALLOWED, ERR_UNSUPPORTED,
                       "this page takes another method");
}

/* What the header says of the body; a size that is not stated counts as the largest allowed. */
static uint64_t stated_size(const struct http_request *request) {
    uint64_t size = 0;
    struct bytes length = http_request_header(request, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (http_request_header(request, MHD_HTTP_HEADER_TRANSFER_ENCODING).size > 0) {
        return request->body.size_max;
    }
    if (length.size > 0 && !bytes_to_u64(length, UINT64_MAX, &size)) {
        return UINT64_MAX;
    }
    return size;
}

/* False if the server is closing. */
static bool start_work(struct http_request *request) {
    struct http_server *server = request->server;
    pthread_mutex_lock(&server->lock);
    bool may_work = request->is_working || !server->is_closing;
    if (may_work && !request->is_working) {
        request->is_working = true;
        server->working_count++;
    }
    pthread_mutex_unlock(&server->lock);
    return may_work;
}

static void end_work(struct http_request *request) {
    struct http_server *server = request->server;
    if (!request->is_working) {
        return;
    }
    request->is_working = false;
    pthread_mutex_lock(&server->lock);
    if (--server->working_count == 0) {
        pthread_cond_broadcast(&server->changes);
    }
    pthread_mutex_unlock(&server->lock);
}

static void http_add(_Atomic uint64_t *sum, uint64_t value) {
    atomic_fetch_add_explicit(sum, value, memory_order_relaxed);
}

static void count_answer(const struct http_request *request) {
    const struct http_server *server = request->server;
    size_t index = server->config.routes_count;
    if (request->route != NULL) {
        index = (size_t)(request->route - server->config.routes);
    }
    uint64_t delay_us = clock_monotonic_us(server->config.clock) - request->begun_us;
    size_t bucket = 0;
    while (bucket < HTTP_DELAYS_COUNT && delay_us > http_delays_us[bucket]) {
        bucket++;
    }
    size_t hundreds = request->status / 100;
    struct http_counters *counters = &server->counters[index];
    http_add(&counters->statuses[hundreds < HTTP_STATUSES_COUNT ? hundreds : 0], 1);
    http_add(&counters->delays[bucket], 1);
    http_add(&counters->delay_sum_us, delay_us);
    http_add(&counters->sent_size, request->answer_size);
}

static enum MHD_Result queue(struct http_request *request) {
    end_work(request);
    if (request->is_lost || request->response == NULL) {
        return MHD_NO;
    }
    count_answer(request);
    http_request_expect(request, request->answer_size);
    return MHD_queue_response(request->connection, request->status, request->response);
}

static enum MHD_Result begin_request(struct http_request *request, const char *method) {
    struct http_server *server = request->server;
    const struct http_server_config *config = &server->config;
    request->has_begun = true;
    request->begun_us = clock_monotonic_us(config->clock);
    pthread_mutex_lock(&server->lock);
    server->active_count++;
    server->stat.requests_count++;
    pthread_mutex_unlock(&server->lock);
    if (config->check == NULL || config->check(config->check_context, request)) {
        find_route(request, method);
    }
    if (request->route != NULL) {
        request->body.size_max = request->route->body_size_max;
    }
    if (request->route != NULL && request->route->begin != NULL) {
        request->route->begin(request);
    }
    uint64_t size = stated_size(request);
    bool is_answered = request->response != NULL || request->is_lost;
    if (!is_answered && size > request->body.size_max) {
        http_answer_status(request, MHD_HTTP_CONTENT_TOO_LARGE, ERR_LIMIT, "the body is too large");
        is_answered = true;
    }
    http_request_expect(request, size);
    return is_answered && size > DISCARD_SIZE_MAX ? queue(request) : MHD_YES;
}

static enum MHD_Result take_body(struct http_request *request, struct bytes part) {
    struct http_server *server = request->server;
    pthread_mutex_lock(&server->lock);
    server->stat.received_size += part.size;
    pthread_mutex_unlock(&server->lock);
    if (request->response != NULL) {
        request->discarded_size += part.size;
        return request->discarded_size <= DISCARD_SIZE_MAX ? MHD_YES : MHD_NO;
    }
    enum err err = scratch_put(&request->body, part);
    if (err != ERR_OK) {
        http_answer_error(request, err, err == ERR_LIMIT ? "the body is too large" : NULL);
    }
    return MHD_YES;
}

static void answer_request(struct http_request *request) {
    request->is_suspended = false;
    if (!start_work(request)) {
        http_answer_error(request, ERR_BUSY, "the server is stopping");
        return;
    }
    http_guard_expect(&request->server->guard, request->guarded, HTTP_GUARD_NEVER, false);
    request->route->answer(request);
    ASSERT(request->is_suspended || request->response != NULL || request->is_lost);
}

/* ---- workers ---- */

static void http_work(void *context, size_t seat) {
    struct http_request *request = context;
    (void)seat;
    request->route->answer(request);
    ASSERT(!request->is_suspended && (request->response != NULL || request->is_lost));
    http_request_resume(request);
}

/*
 * True: the connection's thread does not look at the request again before it is resumed. False: it is
 * answered.
 */
static bool give_to_worker(struct http_request *request) {
    struct http_server *server = request->server;
    if (request->was_refused || !start_work(request)) {
        http_answer_error(request, ERR_BUSY, "the server is stopping");
        return false;
    }
    http_guard_expect(&server->guard, request->guarded, HTTP_GUARD_NEVER, false);
    request->job = (struct pool_job){.run = http_work, .context = request};
    http_request_leave_thread(request);
    if (!pool_try(&server->workers, &request->job)) {
        request->was_refused = true;
        http_request_resume(request);
    }
    return true;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *target,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **state) {
    (void)context;
    (void)connection;
    (void)target;
    (void)version;
    struct http_request *request = *state;
    if (request == NULL) {
        return MHD_NO; /* no memory */
    }
    if (!request->has_begun) {
        return begin_request(request, method);
    }
    if (*upload_size > 0) {
        enum MHD_Result result = take_body(request, bytes_of(upload, *upload_size));
        *upload_size = 0;
        return result;
    }
    if (request->response == NULL && !request->is_lost && request->route->is_long) {
        return give_to_worker(request) ? MHD_YES : queue(request);
    }
    if (request->response == NULL && !request->is_lost) {
        answer_request(request);
    }
    return request->is_suspended ? MHD_YES : queue(request);
}

static void end_request(void *context, struct MHD_Connection *connection, void **state,
                        enum MHD_RequestTerminationCode code) {
    (void)connection;
    (void)code;
    struct http_server *server = context;
    struct http_request *request = *state;
    if (request == NULL) {
        return;
    }
    *state = NULL;
    end_work(request);
    if (request->route != NULL && request->route->end != NULL) {
        request->route->end(request);
    }
    if (request->response != NULL) {
        MHD_destroy_response(request->response);
    }
    uint64_t idle_ms = (uint64_t)server->config.idle_timeout_ms + server->config.request_timeout_ms;
    http_guard_expect(&server->guard, request->guarded, idle_ms * 1000, true);
    pthread_mutex_lock(&server->lock);
    server->active_count -= request->has_begun ? 1 : 0;
    if (server->active_count == 0) {
        pthread_cond_broadcast(&server->changes);
    }
    pthread_mutex_unlock(&server->lock);
    scratch_done(&request->body);
    buf_done(&request->headers);
    free(request->target);
    free(request);
}

static void http_on_connection(void *context, struct MHD_Connection *connection, void **state,
                               enum MHD_ConnectionNotificationCode code) {
    struct http_server *server = context;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    int fd = info->connect_fd;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*state != NULL) {
            http_guard_remove(&server->guard, *state);
            free(*state);
        }
        http_door_leave(&server->door, fd);
        return;
    }
    struct http_guarded *guarded = malloc(sizeof *guarded);
    *state = guarded;
    if (guarded != NULL) {
        http_guard_add(&server->guard, guarded, fd, server->config.request_timeout_ms * UINT64_C(1000));
    }
}

/* Targets stay as they were sent: archived URLs are full of percent signs. */
static size_t keep_escapes(void *context, struct MHD_Connection *connection, char *text) {
    (void)context;
    (void)connection;
    return strlen(text);
}

/* ---- starting and stopping ---- */

static void fill_defaults(struct http_server_config *config) {
    ASSERT(config->scratch_directory != NULL && config->routes != NULL);
    if (config->threads_count == 0) {
        long wanted = 2 * sysconf(_SC_NPROCESSORS_ONLN); /* more would only take turns */
        config->threads_count = wanted < THREADS_MIN ? THREADS_MIN : (unsigned)wanted;
    }
    config->workers_count = config->workers_count == 0 ? WORKERS_COUNT : config->workers_count;
    if (config->threads_count > HTTP_DOOR_THREADS_MAX) {
        config->threads_count = HTTP_DOOR_THREADS_MAX;
    }
    config->connections_max = config->connections_max == 0 ? CONNECTIONS_MAX : config->connections_max;
    if (config->connections_per_address_max == 0) {
        config->connections_per_address_max = (config->connections_max + 1) / 2;
    }
    if (config->connection_memory_size == 0) {
        config->connection_memory_size = CONNECTION_MEMORY_SIZE;
    }
    if (config->request_timeout_ms == 0) {
        config->request_timeout_ms = REQUEST_TIMEOUT_MS;
    }
    config->idle_timeout_ms = config->idle_timeout_ms == 0 ? IDLE_TIMEOUT_MS : config->idle_timeout_ms;
    config->rate_min = config->rate_min == 0 ? RATE_MIN : config->rate_min;
    config->clock = config->clock == NULL ? &clock_system : config->clock;
}

static bool http_give(void *context, unsigned thread, int take_fd, const struct sockaddr *client,
                      socklen_t client_size) {
    struct http_server *server = context;
    return MHD_add_connection(server->daemons[thread], take_fd, client, client_size) == MHD_YES;
}

/* One with its thread. */
static struct MHD_Daemon *start_daemon(struct http_server *server) {
    const struct http_server_config *config = &server->config;
    unsigned flags =
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET;
    return MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, server, MHD_OPTION_CONNECTION_LIMIT, config->connections_max,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, config->connection_memory_size, MHD_OPTION_CONNECTION_TIMEOUT,
        config->idle_timeout_ms / 1000 + 1, MHD_OPTION_URI_LOG_CALLBACK, begin_target, server,
        MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, server, MHD_OPTION_NOTIFY_COMPLETED, end_request, server,
        MHD_OPTION_NOTIFY_CONNECTION, http_on_connection, server, MHD_OPTION_END);
}

static void stop_daemons(struct http_server *server) {
    while (server->daemons_count > 0) {
        MHD_stop_daemon(server->daemons[--server->daemons_count]);
    }
}

static enum err http_start_threads(struct http_server *server, struct err_detail *detail) {
    bool is_well = true;
    priority_set_turns(PRIORITY_SHORT_TURNS); /* theirs */
    while (is_well && server->daemons_count < server->config.threads_count) {
        struct MHD_Daemon *daemon = start_daemon(server);
        is_well = daemon != NULL;
        server->daemons[server->daemons_count] = daemon;
        server->daemons_count += is_well;
    }
    struct pool_config workers = {.name = "http-work", .threads_max = server->config.workers_count};
    is_well = is_well && pool_start(&server->workers, &workers) == ERR_OK;
    priority_set_turns(PRIORITY_USUAL_TURNS);
    if (is_well && http_door_open(&server->door) == ERR_OK) {
        return ERR_OK;
    }
    pool_stop(&server->workers);
    stop_daemons(server);
    return err_set(detail, ERR_SYSTEM, "cannot start the threads of the server");
}

static void free_server(struct http_server *server) {
    pthread_cond_destroy(&server->changes);
    pthread_mutex_destroy(&server->lock);
    free(server->counters);
    free(server);
}

static struct http_server *make_server(const struct http_server_config *config) {
    struct http_server *server = calloc(1, sizeof *server);
    struct http_counters *counters = calloc(config->routes_count + 1, sizeof *counters);
    if (server == NULL || counters == NULL) {
        free(server);
        free(counters);
        return NULL;
    }
    server->counters = counters;
    server->config = *config;
    fill_defaults(&server->config);
    pthread_mutex_init(&server->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&server->changes, &attributes);
    pthread_condattr_destroy(&attributes);
    return server;
}

enum err http_server_start(const struct http_server_config *config, struct http_server **ret_server,
                           struct err_detail *detail) {
    struct http_server *server = make_server(config);
    if (server == NULL) {
        return ERR_MEMORY;
    }
    struct http_door_config door = {
        .threads_count = server->config.threads_count,
        .connections_max = server->config.connections_max,
        .connections_per_address_max = server->config.connections_per_address_max,
        .give = http_give,
        .context = server,
    };
    enum err err = http_door_init(&server->door, &door, &config->address, detail);
    if (err != ERR_OK) {
        free_server(server);
        return err;
    }
    err = http_guard_init(&server->guard, server->config.clock);
    if (err == ERR_OK) {
        err = http_start_threads(server, detail);
        if (err != ERR_OK) {
            http_guard_done(&server->guard);
        }
    }
    if (err != ERR_OK) {
        http_door_done(&server->door);
        free_server(server);
        return err;
    }
    *ret_server = server;
    return ERR_OK;
}

void http_server_address(const struct http_server *server, struct address *ret_address) {
    *ret_address = server->door.address;
}

void http_server_stat(struct http_server *server, struct http_server_stat *ret_stat) {
    pthread_mutex_lock(&server->lock);
    struct http_server_stat stat = server->stat;
    stat.active_count = server->active_count;
    pthread_mutex_unlock(&server->lock);
    stat.cut_count = http_guard_cut_count(&server->guard);
    *ret_stat = stat;
}

void http_server_route_stat(const struct http_server *server, size_t index,
                            struct http_route_stat *ret_stat) {
    ASSERT(index <= server->config.routes_count);
    const struct http_counters *counters = &server->counters[index];
    for (size_t i = 0; i < HTTP_STATUSES_COUNT; i++) {
        ret_stat->statuses[i] = atomic_load_explicit(&counters->statuses[i], memory_order_relaxed);
    }
    for (size_t i = 0; i <= HTTP_DELAYS_COUNT; i++) {
        ret_stat->delays[i] = atomic_load_explicit(&counters->delays[i], memory_order_relaxed);
    }
    ret_stat->delay_sum_us = atomic_load_explicit(&counters->delay_sum_us, memory_order_relaxed);
    ret_stat->sent_size = atomic_load_explicit(&counters->sent_size, memory_order_relaxed);
}

static void await_requests(struct http_server *server, uint32_t grace_ms) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += grace_ms / 1000;
    until.tv_nsec += (long)(grace_ms % 1000) * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    int number = 0;
    pthread_mutex_lock(&server->lock);
    server->is_stopping = true;
    while (server->active_count > 0 && number != ETIMEDOUT) {
        number = pthread_cond_timedwait(&server->changes, &server->lock, &until);
    }
    server->is_closing = true;
    while (server->working_count > 0 || server->suspended_count > 0) {
        pthread_cond_wait(&server->changes, &server->lock);
    }
    pthread_mutex_unlock(&server->lock);
}

void http_server_stop(struct http_server *server, uint32_t grace_ms) {
    http_door_close(&server->door);
    await_requests(server, grace_ms);
    pool_stop(&server->workers);
    stop_daemons(server);
    http_door_done(&server->door);
    http_guard_done(&server->guard);
    free_server(server);
}
