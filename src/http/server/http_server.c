#include "http/server/http_server.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "http/message/status.h"
#include "http/server/http_connection.h"
#include "http/server/http_state.h"
#include "run/priority.h"

enum {
    THREADS_MIN = 4,
    WORKERS_COUNT = 32,
    CONNECTIONS_MAX = 1024,
    REQUEST_TIMEOUT_MS = 15000,
    IDLE_TIMEOUT_MS = 60000,
    RATE_MIN = 16 << 10,
    LOOK_PERIOD_US = 1000000,
};

const uint32_t http_delays_us[HTTP_DELAYS_COUNT] = {100,   250,   500,    1000,   2500,    5000,
                                                    10000, 50000, 100000, 500000, 1000000, 5000000};

/* ---- routes ---- */

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

static bool fits_method(const struct http_route *route, struct bytes method) {
    struct bytes wanted = bytes_of_string(route->method);
    return bytes_equal(wanted, method) ||
           (bytes_equal(method, BYTES("HEAD")) && bytes_equal(wanted, BYTES("GET")));
}

/* For what no other route is there: it must not hide that one is there for another method. */
static bool is_fallback(const struct http_route *route) {
    return strcmp(route->path, "/*") == 0;
}

/* Answers if there is none. */
static void find_route(struct http_request *request, struct bytes method) {
    const struct http_server_config *config = &request->connection->thread->server->config;
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
        http_answer_status(request, STATUS_NOT_FOUND, ERR_UNSUPPORTED, "there is no such page");
        return;
    }
    http_add_header(request, "Allow", other->method);
    http_answer_status(request, STATUS_OTHER_METHOD, ERR_UNSUPPORTED, "this page takes another method");
}

/* ---- one request, as its connection hands it over ---- */

/* False if the server is closing. */
static bool start_work(struct http_request *request) {
    struct http_server *server = request->connection->thread->server;
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
    struct http_server *server = request->connection->thread->server;
    if (!request->is_working) {
        return;
    }
    request->is_working = false;
    pthread_mutex_lock(&server->lock);
    if (--server->working_count == 0) {
        bell_ring(&server->changes);
    }
    pthread_mutex_unlock(&server->lock);
}

void http_request_begin(struct http_request *request, struct http_connection *connection, uint64_t size) {
    struct http_server *server = connection->thread->server;
    const struct http_server_config *config = &server->config;
    struct bytes target = connection->head.target;
    size_t path_size = bytes_find_byte(target, '?');
    *request = (struct http_request){
        .connection = connection,
        .path = bytes_slice(target, 0, path_size),
        .query = path_size < target.size ? bytes_skip(target, path_size + 1) : bytes_of(NULL, 0),
        .has_begun = true,
        .begun_us = clock_monotonic_us(config->clock),
    };
    scratch_init(&request->body, config->scratch_directory, SCRATCH_MEMORY_MAX, 0);
    http_count(&server->requests_count, 1);
    pthread_mutex_lock(&server->lock);
    server->active_count++;
    pthread_mutex_unlock(&server->lock);
    if (config->check == NULL || config->check(config->check_context, request)) {
        find_route(request, connection->head.method);
    }
    if (request->route != NULL) {
        request->body.size_max = request->route->body_size_max;
    }
    if (request->route != NULL && request->route->begin != NULL) {
        request->route->begin(request);
    }
    if (!http_request_is_answered(request) && size != HTTP_SIZE_UNKNOWN && size > request->body.size_max) {
        http_answer_status(request, STATUS_TOO_LARGE, ERR_LIMIT, "the body is too large");
    }
}

bool http_request_take(struct http_request *request, struct bytes part) {
    http_count(&request->connection->thread->server->received_size, part.size);
    if (http_request_is_answered(request)) {
        request->discarded_size += part.size;
        return request->discarded_size <= HTTP_DISCARD_SIZE_MAX;
    }
    enum err err = scratch_put(&request->body, part);
    if (err != ERR_OK) {
        http_answer_error(request, err, err == ERR_LIMIT ? "the body is too large" : NULL);
    }
    return true;
}

static void long_run(void *context, size_t seat) {
    struct http_request *request = context;
    (void)seat;
    request->route->answer(request);
    ASSERT(!request->is_suspended && http_request_is_answered(request));
}

static void long_done(void *context) {
    struct http_request *request = context;
    request->is_away = false;
    end_work(request);
    http_connection_go_on(request->connection);
}

/* False: it is stopping. */
static bool give_to_worker(struct http_request *request) {
    struct http_thread *thread = request->connection->thread;
    request->job =
        (struct pool_job){.run = long_run, .context = request, .loop = &thread->loop, .done = long_done};
    request->is_away = true; /* before a worker looks */
    if (!pool_try(&thread->server->workers, &request->job)) {
        request->is_away = false;
        return false;
    }
    return true;
}

void http_request_work(struct http_request *request) {
    bool is_long = request->route->is_long || request->is_put_off;
    if (!start_work(request) || (is_long && !give_to_worker(request))) {
        http_answer_error(request, ERR_BUSY, "the server is stopping");
        return;
    }
    if (is_long) {
        return;
    }
    request->route->answer(request);
    if (request->is_put_off) {
        http_request_work(request);
        return;
    }
    ASSERT(request->is_suspended || http_request_is_answered(request));
    if (!request->is_suspended) {
        end_work(request);
    }
}

void http_request_end(struct http_request *request) {
    if (request->connection == NULL) {
        return; /* there is none */
    }
    struct http_server *server = request->connection->thread->server;
    end_work(request);
    if (request->route != NULL && request->route->end != NULL) {
        request->route->end(request);
    }
    http_request_forget(request);
    if (request->has_begun) {
        scratch_done(&request->body);
        pthread_mutex_lock(&server->lock);
        if (--server->active_count == 0) {
            bell_ring(&server->changes);
        }
        pthread_mutex_unlock(&server->lock);
    }
    *request = (struct http_request){0};
}

/* ---- starting and stopping ---- */

/* Of the descriptors that the process may have, three quarters: volumes, index and peers need theirs. */
static unsigned descriptors_left(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 4 * 3 > UINT16_MAX + 1U) {
        return UINT16_MAX + 1U;
    }
    return limit.rlim_cur < 8 ? 1 : (unsigned)(limit.rlim_cur / 4 * 3);
}

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
    unsigned possible = descriptors_left();
    config->connections_max = config->connections_max > possible ? possible : config->connections_max;
    if (config->connections_per_address_max == 0) {
        config->connections_per_address_max = (config->connections_max + 1) / 2;
    }
    if (config->request_timeout_ms == 0) {
        config->request_timeout_ms = REQUEST_TIMEOUT_MS;
    }
    config->idle_timeout_ms = config->idle_timeout_ms == 0 ? IDLE_TIMEOUT_MS : config->idle_timeout_ms;
    config->rate_min = config->rate_min == 0 ? RATE_MIN : config->rate_min;
    config->clock = config->clock == NULL ? &clock_system : config->clock;
}

static bool http_give(void *context, unsigned thread, int take_fd, const struct address *client) {
    struct http_server *server = context;
    return http_connection_new(&server->threads[thread], take_fd, client);
}

static enum err start_thread(struct http_server *server, struct http_thread *thread) {
    thread->server = server;
    thread->block = malloc(HTTP_BLOCK_SIZE);
    enum err err = thread->block == NULL ? ERR_MEMORY : loop_init(&thread->loop, 0);
    if (err != ERR_OK) {
        free(thread->block);
        return err;
    }
    loop_timer_init(&thread->loop, &thread->look, http_connections_look, thread);
    loop_timer_init(&thread->loop, &thread->again, http_connections_again, thread);
    loop_timer_set(&thread->look, LOOK_PERIOD_US, LOOK_PERIOD_US);
    http_errands_init(&thread->errands, &thread->loop);
    server->threads_count++;
    return loop_start(&thread->loop, "http", PRIORITY_USUAL);
}

static void stop_threads(struct http_server *server) {
    for (unsigned i = 0; i < server->threads_count; i++) {
        loop_stop(&server->threads[i].loop, http_connections_close, &server->threads[i]);
        free(server->threads[i].block);
    }
}

static enum err http_start_threads(struct http_server *server, struct err_detail *detail) {
    enum err err = ERR_OK;
    priority_set_turns(PRIORITY_SHORT_TURNS); /* theirs */
    while (err == ERR_OK && server->threads_count < server->config.threads_count) {
        err = start_thread(server, &server->threads[server->threads_count]);
    }
    if (err == ERR_OK) {
        struct pool_config workers = {.name = "http-work", .threads_max = server->config.workers_count};
        err = pool_start(&server->workers, &workers);
    }
    priority_set_turns(PRIORITY_USUAL_TURNS);
    if (err == ERR_OK) {
        err = http_door_open(&server->door);
    }
    if (err != ERR_OK) {
        pool_stop(&server->workers);
        stop_threads(server);
        return err_set(detail, err, "cannot start the threads of the server: %s", err_text(err));
    }
    return ERR_OK;
}

static void free_server(struct http_server *server) {
    pthread_mutex_destroy(&server->lock);
    free(server->threads);
    free(server->counters);
    free(server);
}

static struct http_server *make_server(const struct http_server_config *config) {
    struct http_server *server = calloc(1, sizeof *server);
    if (server == NULL) {
        return NULL;
    }
    server->config = *config;
    fill_defaults(&server->config);
    pthread_mutex_init(&server->lock, NULL);
    server->counters = calloc(config->routes_count + 1, sizeof *server->counters);
    server->threads = calloc(server->config.threads_count, sizeof *server->threads);
    if (server->counters == NULL || server->threads == NULL) {
        free_server(server);
        return NULL;
    }
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
    err = http_start_threads(server, detail);
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

unsigned http_server_connections_max(const struct http_server *server) {
    return server->config.connections_max;
}

void http_server_stat(struct http_server *server, struct http_server_stat *ret_stat) {
    pthread_mutex_lock(&server->lock);
    uint32_t active_count = server->active_count;
    pthread_mutex_unlock(&server->lock);
    *ret_stat = (struct http_server_stat){
        .requests_count = http_sum(&server->requests_count),
        .received_size = http_sum(&server->received_size),
        .sent_size = http_sum(&server->sent_size),
        .cut_count = http_sum(&server->cut_count) + http_door_evicted_count(&server->door),
        .active_count = active_count,
    };
}

void http_server_route_stat(const struct http_server *server, size_t index,
                            struct http_route_stat *ret_stat) {
    ASSERT(index <= server->config.routes_count);
    const struct http_counters *counters = &server->counters[index];
    for (size_t i = 0; i < HTTP_STATUSES_COUNT; i++) {
        ret_stat->statuses[i] = http_sum(&counters->statuses[i]);
    }
    for (size_t i = 0; i <= HTTP_DELAYS_COUNT; i++) {
        ret_stat->delays[i] = http_sum(&counters->delays[i]);
    }
    ret_stat->delay_sum_us = http_sum(&counters->delay_sum_us);
    ret_stat->sent_size = http_sum(&counters->sent_size);
}

static void await_requests(struct http_server *server, uint32_t grace_ms) {
    uint64_t until_us = clock_monotonic_us(&clock_system) + grace_ms * UINT64_C(1000);
    pthread_mutex_lock(&server->lock);
    server->is_stopping = true;
    while (server->active_count > 0 && bell_await(&server->changes, &server->lock, until_us)) {
    }
    server->is_closing = true;
    while (server->working_count > 0) {
        (void)bell_await(&server->changes, &server->lock, BELL_NEVER_US);
    }
    pthread_mutex_unlock(&server->lock);
}

void http_server_stop(struct http_server *server, uint32_t grace_ms) {
    http_door_close(&server->door);
    await_requests(server, grace_ms);
    pool_stop(&server->workers);
    stop_threads(server);
    http_door_done(&server->door);
    free_server(server);
}
