/* http-server: routes, bounds and time limits of the HTTP server, over real sockets. */
#include "http/server/http_server.h"

#include <pthread.h>
#include <stdatomic.h>

#include "await.h"
#include "http-client.h"
#include "scratch.h"
#include "unit.h"

enum { BODY_MAX = 3 << 20, STREAM_SIZE = 300000, WORKERS = 24 };

/* What the routes below leave for the tests. */
struct fixture {
    char *directory;
    struct http_server *server;
    struct http_server_config config;
    struct http_route routes[10];
    atomic_int asked_count; /* errands that are away */
    atomic_int long_count;  /* that a worker has begun */
    atomic_int gone_count;  /* of them, whose client left */
    uint16_t port;
    char answer[HTTP_ANSWER_SIZE];
    atomic_int ends_count;
    atomic_int closes_count;
    atomic_int reads_count;
    atomic_bool is_held; /* resumers wait while it is */
    pthread_t resumer;
};

static void answer_echo(struct http_request *request) {
    struct bytes body;
    char text[256];
    if (http_request_body(request, &body) != ERR_OK) {
        http_answer_error(request, ERR_IO, NULL);
        return;
    }
    unsigned sum = 0;
    for (size_t i = 0; i < body.size; i++) {
        sum = sum * 31 + body.data[i];
    }
    int size = snprintf(text, sizeof text, "%.*s|%.*s|%.*s|%zu|%u", BYTES_ARG(http_request_path(request)),
                        BYTES_ARG(http_request_rest(request)), BYTES_ARG(http_request_query(request)),
                        body.size, sum);
    http_add_header(request, "X-Test", "yes");
    http_answer(request, 200, "text/plain", bytes_of(text, (size_t)size));
}

static void begin_locked(struct http_request *request) {
    if (http_request_header(request, "X-Key").size == 0) {
        http_answer_status(request, 401, ERR_PERMISSION, "a key is \"needed\"");
    }
}

static void begin_limited(struct http_request *request) {
    http_request_limit_body(request, 10);
}

static enum err read_numbers(void *context, uint64_t offset, void *out, size_t size, size_t *ret_size) {
    (void)context;
    uint64_t left = offset < STREAM_SIZE ? STREAM_SIZE - offset : 0;
    *ret_size = left < size ? (size_t)left : size;
    memset(out, 'n', *ret_size);
    return ERR_OK;
}

static enum err read_and_fail(void *context, uint64_t offset, void *out, size_t size, size_t *ret_size) {
    enum err err = read_numbers(context, offset, out, size, ret_size);
    return offset > 0 ? ERR_IO : err;
}

/* Every other time there is nothing yet. */
static enum err read_with_pauses(void *context, uint64_t offset, void *out, size_t size, size_t *ret_size) {
    struct fixture *fixture = context;
    bool is_pause = atomic_fetch_add(&fixture->reads_count, 1) % 2 == 0;
    return is_pause ? ERR_BUSY : read_numbers(context, offset, out, size, ret_size);
}

static void count_close(void *context) {
    atomic_fetch_add(&((struct fixture *)context)->closes_count, 1);
}

static void answer_stream(struct http_request *request) {
    struct bytes query = http_request_query(request);
    struct http_stream stream = {
        .size = bytes_equal(query, BYTES("sized")) ? STREAM_SIZE : HTTP_SIZE_UNKNOWN,
        .read = bytes_equal(query, BYTES("fails"))    ? read_and_fail
                : bytes_equal(query, BYTES("pauses")) ? read_with_pauses
                                                      : read_numbers,
        .close = count_close,
        .context = http_request_context(request),
    };
    http_answer_stream(request, 200, "text/plain", &stream);
}

static void *resume_later(void *context) {
    struct http_request *request = context;
    struct fixture *fixture = http_request_context(request);
    for (unsigned turns = 0; atomic_load(&fixture->is_held) && await_turn(&turns);) {
    }
    http_request_resume(request);
    return NULL;
}

/* Suspends twice before it answers. */
static void answer_later(struct http_request *request) {
    uintptr_t count = (uintptr_t)http_request_state(request);
    if (count == 2) {
        http_answer(request, 200, "text/plain", BYTES("at last"));
        return;
    }
    pthread_t thread;
    pthread_attr_t attributes;
    http_request_set_state(request, (void *)(count + 1));
    http_request_suspend(request);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attributes, resume_later, request) != 0) {
        abort();
    }
    pthread_attr_destroy(&attributes);
}

/* Takes its thread for as long as the test wants, or until its client has left. */
static void answer_long(struct http_request *request) {
    struct fixture *fixture = http_request_context(request);
    atomic_fetch_add(&fixture->long_count, 1);
    for (unsigned turns = 0; atomic_load(&fixture->is_held) && await_turn(&turns);) {
        if (http_request_is_gone(request)) {
            atomic_fetch_add(&fixture->gone_count, 1);
            break;
        }
    }
    http_add_header(request, "X-Query", http_request_query(request).size > 0 ? "yes" : "no");
    http_answer(request, 200, "text/plain", BYTES("at last"));
}

/* Finds out only when it has answered that it should not be here. */
static void answer_put_off(struct http_request *request) {
    struct http_stream stream = {.size = HTTP_SIZE_UNKNOWN,
                                 .read = read_numbers,
                                 .close = count_close,
                                 .context = http_request_context(request)};
    if (http_request_is_on_worker(request)) {
        answer_long(request);
        return;
    }
    http_add_header(request, "X-Forgotten", "yes");
    http_answer_stream(request, 500, "text/plain", &stream);
    http_request_put_off(request);
}

static bool errand_is_back(void *context) {
    return !atomic_load(&((struct fixture *)context)->is_held);
}

static void errand_await(void *context, uint32_t timeout_us) {
    (void)context;
    usleep(timeout_us);
}

/* Goes on two errands before it answers; what may not go, is put off. */
static void answer_errand(struct http_request *request) {
    struct fixture *fixture = http_request_context(request);
    uintptr_t count = (uintptr_t)http_request_state(request);
    struct http_errand errand = {.is_back = errand_is_back, .await = errand_await, .context = fixture};
    if (http_request_is_on_worker(request)) {
        answer_long(request);
    } else if (count == 2) {
        http_answer(request, 200, "text/plain", BYTES("at last"));
    } else if (!http_request_may_await(request)) {
        http_request_put_off(request);
    } else {
        http_request_set_state(request, (void *)(count + 1));
        atomic_fetch_add(&fixture->asked_count, 1);
        http_request_await(request, &errand);
    }
}

static void count_end(struct http_request *request) {
    atomic_fetch_add(&((struct fixture *)http_request_context(request))->ends_count, 1);
}

static void start(struct fixture *fixture) {
    struct err_detail detail = {0};
    struct address address;
    enum err err = http_server_start(&fixture->config, &fixture->server, &detail);
    if (err != ERR_OK) {
        fail_msg("%s", err_detail_text(&detail, err));
    }
    http_server_address(fixture->server, &address);
    fixture->port = address.port;
}

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    if (scratch_make((void **)&fixture->directory) != 0) {
        return -1;
    }
    const struct http_route routes[] = {
        {"GET", "/echo", 0, fixture, NULL, answer_echo, NULL, false, 0},
        {"POST", "/echo", BODY_MAX, fixture, NULL, answer_echo, count_end, false, 0},
        {"GET", "/any/*", 0, fixture, NULL, answer_echo, NULL, false, 0},
        {"POST", "/api/locked", BODY_MAX, fixture, begin_locked, answer_echo, count_end, false, 0},
        {"POST", "/limited", BODY_MAX, fixture, begin_limited, answer_echo, NULL, false, 0},
        {"GET", "/stream", 0, fixture, NULL, answer_stream, NULL, false, 0},
        {"GET", "/later", 0, fixture, NULL, answer_later, count_end, false, 0},
        {"GET", "/long", 0, fixture, NULL, answer_long, count_end, true, 0},
        {"GET", "/turns-out-long", 0, fixture, NULL, answer_put_off, count_end, false, 0},
        {"GET", "/errand", 0, fixture, NULL, answer_errand, count_end, false, 0},
    };
    memcpy(fixture->routes, routes, sizeof routes);
    fixture->config = (struct http_server_config){
        .address = address_ipv4(127, 0, 0, 1, 0),
        .routes = fixture->routes,
        .routes_count = sizeof routes / sizeof *routes,
        .scratch_directory = fixture->directory,
    };
    start(fixture);
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    if (fixture->server != NULL) {
        http_server_stop(fixture->server, 1000);
    }
    int result = scratch_remove((void **)&fixture->directory);
    free(fixture);
    return result;
}

static void restart(struct fixture *fixture) {
    http_server_stop(fixture->server, 1000);
    start(fixture);
}

static const char *ask(struct fixture *fixture, const char *request) {
    return http_ask(fixture->port, request, fixture->answer);
}

static void expect(struct fixture *fixture, const char *request, const char *status, const char *part) {
    ask(fixture, request);
    if (strncmp(fixture->answer + 9, status, 3) != 0 || strstr(fixture->answer, part) == NULL) {
        fail_msg("to %s it answers %s", request, fixture->answer);
    }
}

static void finds_routes_by_path_and_method(void **state) {
    expect(*state, "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "200", "/echo|||0|0");
    expect(*state, "GET /any/x%2Fy/../z?a=%20b&c HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "200",
           "/any/x%2Fy/../z|x%2Fy/../z|a=%20b&c|0|0");
    expect(*state, "GET /echo/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "404",
           "there is no such page");
    expect(*state, "GET /api/none HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "404",
           "{\"error\":\"unsupported\",\"text\":\"there is no such page\"}");
    expect(*state, "POST /stream HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
           "405", "Allow: GET");
    expect(*state, "HEAD /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "200", "X-Test: yes");
    assert_null(strstr(((struct fixture *)*state)->answer, "/echo|"));
}

static bool refuse_strangers(void *context, struct http_request *request) {
    struct fixture *fixture = context;
    struct address client;
    http_request_client(request, &client);
    bool is_known = bytes_equal(http_request_header(request, "Host"), BYTES("a"));
    if (client.ip[12] != 127 || client.port == 0 || http_request_port(request) != fixture->port) {
        http_answer_status(request, 500, ERR_SYSTEM, "it does not know who asks");
        return false;
    }
    if (!is_known) {
        http_answer_status(request, 421, ERR_PERMISSION, "a stranger");
    }
    return is_known;
}

static void every_request_passes_the_check(void **state) {
    struct fixture *fixture = *state;
    fixture->config.check = refuse_strangers;
    fixture->config.check_context = fixture;
    restart(fixture);
    expect(fixture, "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "200", "/echo|");
    expect(fixture, "GET /echo HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n", "421", "a stranger");
    expect(fixture, "GET /none HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n", "421", "a stranger");
    expect(fixture, "GET /api/x HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n", "421",
           "{\"error\":\"permission\"");
    expect(fixture, "POST /echo HTTP/1.1\r\nHost: b\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
           "421", "a stranger");
}

static void answers_are_counted_by_route(void **state) {
    struct fixture *fixture = *state;
    struct http_route_stat stat;
    expect(fixture, "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "200", "/echo|");
    expect(fixture, "HEAD /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "200", "");
    expect(fixture, "GET /none HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "404", "");
    http_server_route_stat(fixture->server, 0, &stat);
    uint64_t delays_count = 0;
    for (size_t i = 0; i <= HTTP_DELAYS_COUNT; i++) {
        delays_count += stat.delays[i];
    }
    assert_int_equal(stat.statuses[2], 2);
    assert_int_equal(stat.statuses[4], 0);
    assert_int_equal(delays_count, 2);
    assert_true(stat.sent_size > 0);
    http_server_route_stat(fixture->server, fixture->config.routes_count, &stat);
    assert_int_equal(stat.statuses[4], 1);
    http_server_route_stat(fixture->server, 1, &stat);
    assert_int_equal(stat.statuses[2], 0);
}

static void takes_bodies_whole_chunked_and_none(void **state) {
    expect(*state, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
           "200", "|3|96354");
    expect(*state,
           "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
           "1\r\na\r\n2\r\nbc\r\n0\r\n\r\n",
           "200", "|3|96354");
    expect(*state, "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "200", "|0|0");
    assert_int_equal(atomic_load(&((struct fixture *)*state)->ends_count), 3);
}

static void serves_many_requests_on_one_connection(void **state) {
    struct fixture *fixture = *state;
    int fd = http_connect(fixture->port);
    for (int i = 0; i < 50; i++) {
        const char *request = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
        http_send(fd, request, strlen(request));
        http_receive(fd, fixture->answer, 1);
        assert_memory_equal(fixture->answer + 9, "200", 3);
    }
    close(fd);
    struct http_server_stat stat;
    http_server_stat(fixture->server, &stat);
    assert_int_equal(stat.requests_count, 50);
    assert_int_equal(stat.received_size, 150);
}

/* Above SCRATCH_MEMORY_MAX it is a file. */
static void takes_large_bodies_and_leaves_no_file(void **state) {
    struct fixture *fixture = *state;
    char head[128];
    char *body = malloc(BODY_MAX);
    unsigned sum = 0;
    for (size_t i = 0; i < BODY_MAX; i++) {
        body[i] = (char)(i / 3);
        sum = sum * 31 + (uint8_t)body[i];
    }
    snprintf(head, sizeof head,
             "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", BODY_MAX);
    int fd = http_connect(fixture->port);
    http_send(fd, head, strlen(head));
    http_send(fd, body, BODY_MAX);
    http_receive(fd, fixture->answer, SIZE_MAX);
    close(fd);
    free(body);
    char wanted[64];
    snprintf(wanted, sizeof wanted, "|%d|%u", BODY_MAX, sum);
    assert_non_null(strstr(fixture->answer, wanted));
}

static void refuses_bodies_that_are_too_large(void **state) {
    char request[256];
    snprintf(request, sizeof request,
             "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\nConnection: close\r\n\r\n",
             BODY_MAX + 1);
    expect(*state, request, "413", "the body is too large");
    expect(
        *state,
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551615\r\nConnection: close\r\n\r\n",
        "400", "an invalid Content-Length");
    expect(*state, "GET /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
           "413", "");
    expect(*state,
           "POST /limited HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\nConnection: close\r\n\r\n01234567890",
           "413", "");
    expect(*state,
           "POST /limited HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
           "b\r\n01234567890\r\n0\r\n\r\n",
           "413", "the body is too large");
    expect(*state,
           "POST /limited HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\nConnection: close\r\n\r\n0123456789",
           "200", "|10|");
}

/* A client that sends all of it before it listens must still hear why. */
static void says_why_before_it_has_read_the_body(void **state) {
    struct fixture *fixture = *state;
    expect(fixture,
           "POST /api/locked HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc", "401",
           "{\"error\":\"permission\",\"text\":\"a key is \\\"needed\\\"\"}");
    expect(fixture, "POST /api/locked HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n", "401",
           "permission");
    expect(fixture,
           "POST /api/locked HTTP/1.1\r\nHost: a\r\nX-Key: 1\r\nContent-Length: 3\r\nConnection: "
           "close\r\n\r\nabc",
           "200", "|3|");
    assert_int_equal(atomic_load(&fixture->ends_count), 3);
}

static void refuses_headers_that_are_too_large(void **state) {
    struct fixture *fixture = *state;
    size_t size = 200000;
    char *request = malloc(size + 64);
    memset(request, 'a', size + 63);
    memcpy(request, "GET /", 5);
    memcpy(request + size, " HTTP/1.1\r\nHost: a\r\n\r\n", 23);
    ask(fixture, request);
    assert_int_equal(fixture->answer[9], '4');
    memcpy(request, "GET /echo HTTP/1.1\r\nHost: a\r\nX-A: ", 34);
    ask(fixture, request);
    assert_int_equal(fixture->answer[9], '4');
    free(request);
    expect(fixture, "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "200", "");
}

static void survives_what_is_not_http(void **state) {
    static const char *const rubbish[] = {
        "\r\n\r\n",
        "GET\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01",
        "GET /echo HTTP/9.9\r\n\r\n",
        "GET / HTTP/1.1\r\n: \r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    };
    struct fixture *fixture = *state;
    fixture->config.request_timeout_ms = 300; /* some of it looks like the beginning of a request */
    restart(fixture);
    for (size_t i = 0; i < sizeof rubbish / sizeof *rubbish; i++) {
        int fd = http_connect(fixture->port);
        http_send(fd, rubbish[i], strlen(rubbish[i]));
        shutdown(fd, SHUT_WR);
        http_receive(fd, fixture->answer, SIZE_MAX);
        close(fd);
    }
    expect(fixture, "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "200", "");
}

static size_t count_n(const char *text) {
    size_t count = 0;
    for (; *text != '\0'; text++) {
        count += *text == 'n';
    }
    return count;
}

/* Larger than the buffer of the answer: read it in pieces. */
static size_t stream_size(struct fixture *fixture, const char *query) {
    char request[128];
    size_t count = 0;
    snprintf(request, sizeof request, "GET /stream?%s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
             query);
    int fd = http_connect(fixture->port);
    http_send(fd, request, strlen(request));
    http_receive(fd, fixture->answer, 200); /* all of the header, part of the body */
    count += count_n(strstr(fixture->answer, "\r\n\r\n"));
    while (http_receive(fd, fixture->answer, 1) > 0) {
        count += count_n(fixture->answer);
    }
    close(fd);
    return count;
}

static void streams_answers_with_and_without_a_size(void **state) {
    struct fixture *fixture = *state;
    assert_int_equal(stream_size(fixture, "sized"), STREAM_SIZE);
    assert_int_equal(stream_size(fixture, "unsized"), STREAM_SIZE);
    assert_true(stream_size(fixture, "fails") < STREAM_SIZE);
    assert_int_equal(stream_size(fixture, "pauses"), STREAM_SIZE);
    restart(fixture); /* all connections are closed */
    assert_int_equal(atomic_load(&fixture->closes_count), 4);
}

static void *ask_later(void *context) {
    char *answer = malloc(HTTP_ANSWER_SIZE);
    struct fixture *fixture = context;
    http_ask(fixture->port, "GET /later HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", answer);
    bool is_right = strstr(answer, "at last") != NULL;
    free(answer);
    return is_right ? context : NULL;
}

static uint32_t active_count(struct fixture *fixture) {
    struct http_server_stat stat;
    http_server_stat(fixture->server, &stat);
    return stat.active_count;
}

/* More of them than the server has threads. */
static void suspended_requests_take_no_thread(void **state) {
    struct fixture *fixture = *state;
    pthread_t threads[WORKERS];
    atomic_store(&fixture->is_held, true);
    for (int i = 0; i < WORKERS; i++) {
        pthread_create(&threads[i], NULL, ask_later, fixture);
    }
    await_that(active_count(fixture) >= WORKERS);
    expect(fixture, "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "200", "");
    atomic_store(&fixture->is_held, false);
    for (int i = 0; i < WORKERS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_non_null(result);
    }
    restart(fixture);
    assert_int_equal(atomic_load(&fixture->ends_count), WORKERS);
}

static void *ask_errand(void *context) {
    struct fixture *fixture = context;
    char answer[HTTP_ANSWER_SIZE];
    http_ask(fixture->port, "GET /errand HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", answer);
    return strstr(answer, "200 OK") != NULL && strstr(answer, "at last") != NULL ? fixture : NULL;
}

/* One loop, more errands than it may have, and none comes back: others are answered, and the rest put off. */
static void a_loop_goes_on_while_errands_are_away(void **state) {
    struct fixture *fixture = *state;
    pthread_t threads[WORKERS];
    fixture->config.threads_count = 1;
    fixture->config.workers_count = WORKERS;
    restart(fixture);
    atomic_store(&fixture->is_held, true);
    for (int i = 0; i < WORKERS; i++) {
        pthread_create(&threads[i], NULL, ask_errand, fixture);
    }
    await_that(atomic_load(&fixture->asked_count) + atomic_load(&fixture->long_count) == WORKERS);
    assert_true(atomic_load(&fixture->asked_count) > 1 && atomic_load(&fixture->long_count) > 1);
    expect(fixture, "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "200", "");
    atomic_store(&fixture->is_held, false);
    for (int i = 0; i < WORKERS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_non_null(result);
    }
    restart(fixture);
    assert_int_equal(atomic_load(&fixture->ends_count), WORKERS);
}

/* Their requests are answered in order all the same, and a client that leaves meanwhile is noticed. */
static void errands_of_one_connection_come_one_after_the_other(void **state) {
    struct fixture *fixture = *state;
    static const char request[] = "GET /errand HTTP/1.1\r\nHost: a\r\n\r\n";
    expect(fixture,
           "GET /errand HTTP/1.1\r\nHost: a\r\n\r\nGET /echo?second HTTP/1.1\r\nHost: a\r\nConnection: "
           "close\r\n\r\n",
           "200", "at last");
    assert_true(strstr(fixture->answer, "at last") < strstr(fixture->answer, "second"));
    assert_int_equal(atomic_load(&fixture->ends_count), 1);
    atomic_store(&fixture->is_held, true);
    int fd = http_connect(fixture->port);
    assert_int_equal(write(fd, request, sizeof request - 1), sizeof request - 1);
    await_that(atomic_load(&fixture->asked_count) == 3);
    close(fd);
    atomic_store(&fixture->is_held, false);
    await_that(atomic_load(&fixture->ends_count) == 2);
}

static void *ask_long(void *context) {
    struct fixture *fixture = context;
    char answer[HTTP_ANSWER_SIZE];
    http_ask(fixture->port, "GET /long?a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", answer);
    bool is_good = strstr(answer, "200 OK") != NULL && strstr(answer, "X-Query: yes") != NULL &&
                   strstr(answer, "at last") != NULL;
    return is_good ? fixture : NULL;
}

/* They have the workers, and more of them wait; the server's own thread is free for others. */
static void long_requests_take_no_thread_of_the_server(void **state) {
    struct fixture *fixture = *state;
    pthread_t threads[WORKERS];
    fixture->config.threads_count = 1;
    fixture->config.workers_count = 2;
    restart(fixture);
    atomic_store(&fixture->is_held, true);
    for (int i = 0; i < WORKERS; i++) {
        pthread_create(&threads[i], NULL, ask_long, fixture);
    }
    await_that(active_count(fixture) >= WORKERS && atomic_load(&fixture->long_count) == 2);
    expect(fixture, "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "200", "");
    atomic_store(&fixture->is_held, false);
    for (int i = 0; i < WORKERS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_non_null(result);
    }
    restart(fixture);
    assert_int_equal(atomic_load(&fixture->ends_count), WORKERS);
}

static void a_request_that_turns_out_long_begins_again_on_a_worker(void **state) {
    struct fixture *fixture = *state;
    struct http_route_stat stat;
    expect(fixture, "GET /turns-out-long?a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "200",
           "X-Query: yes");
    assert_null(strstr(fixture->answer, "X-Forgotten"));
    assert_int_equal(atomic_load(&fixture->closes_count), 1);
    assert_int_equal(atomic_load(&fixture->ends_count), 1);
    http_server_route_stat(fixture->server, 8, &stat);
    assert_int_equal(stat.statuses[2], 1);
    assert_int_equal(stat.statuses[5], 0);
}

static void long_work_learns_that_its_client_left(void **state) {
    struct fixture *fixture = *state;
    atomic_store(&fixture->is_held, true);
    int fd = http_connect(fixture->port);
    static const char request[] = "GET /long HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_int_equal(write(fd, request, sizeof request - 1), sizeof request - 1);
    await_that(atomic_load(&fixture->long_count) == 1);
    assert_int_equal(atomic_load(&fixture->gone_count), 0);
    close(fd);
    await_that(atomic_load(&fixture->gone_count) == 1);
    await_that(atomic_load(&fixture->ends_count) == 1);
    atomic_store(&fixture->is_held, false);
}

static void *release_later(void *context) {
    usleep(200000); /* while the server is already being stopped: it must wait so long */
    atomic_store(&((struct fixture *)context)->is_held, false);
    return NULL;
}

/* Even without any patience. */
static void stopping_waits_for_what_is_suspended(void **state) {
    struct fixture *fixture = *state;
    pthread_t client;
    pthread_t releaser;
    atomic_store(&fixture->is_held, true);
    pthread_create(&client, NULL, ask_later, fixture);
    await_that(active_count(fixture) > 0);
    pthread_create(&releaser, NULL, release_later, fixture);
    http_server_stop(fixture->server, 0);
    fixture->server = NULL;
    assert_false(atomic_load(&fixture->is_held));
    pthread_join(releaser, NULL);
    pthread_join(client, NULL);
    assert_int_equal(atomic_load(&fixture->ends_count), 1);
}

static void stopping_answers_what_has_begun(void **state) {
    struct fixture *fixture = *state;
    pthread_t client;
    pthread_t releaser;
    void *result;
    atomic_store(&fixture->is_held, true);
    pthread_create(&client, NULL, ask_later, fixture);
    await_that(active_count(fixture) > 0);
    pthread_create(&releaser, NULL, release_later, fixture);
    http_server_stop(fixture->server, 60000);
    fixture->server = NULL;
    pthread_join(releaser, NULL);
    pthread_join(client, &result);
    assert_non_null(result);
}

/* A header byte now and then, a body byte now and then, an answer that nobody takes, nothing at all. */
static void cuts_off_whoever_is_too_slow(void **state) {
    struct fixture *fixture = *state;
    fixture->config.request_timeout_ms = 300;
    fixture->config.idle_timeout_ms = 300;
    restart(fixture);
    static const char *const starts[] = {
        "",
        "GET /echo HTTP/1.1\r\nX-Slow: ",
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n",
        "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n",
    };
    int fds[4];
    for (size_t i = 0; i < 4; i++) {
        fds[i] = http_connect(fixture->port);
        http_send(fds[i], starts[i], strlen(starts[i]));
    }
    for (size_t i = 0; i < 4; i++) {
        bool is_open = true;
        for (int tries = 0; tries < 600 && is_open; tries++) { /* a minute at most */
            struct pollfd wait = {.fd = fds[i], .events = POLLIN};
            http_send(fds[1], "a", 1); /* all the time: they must not be idle */
            http_send(fds[2], "a", 1);
            is_open = poll(&wait, 1, 100) == 0 || recv(fds[i], fixture->answer, HTTP_ANSWER_SIZE, 0) > 0;
        }
        assert_false(is_open);
    }
    for (size_t i = 0; i < 4; i++) {
        close(fds[i]);
    }
    struct http_server_stat stat;
    http_server_stat(fixture->server, &stat);
    assert_true(stat.cut_count >= 4);
    expect(fixture, "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "200", "");
}

static int closed_count(const int *fds, int count) {
    int closed = 0;
    for (int i = 0; i < count; i++) {
        struct pollfd wait = {.fd = fds[i], .events = POLLIN};
        closed += poll(&wait, 1, 0) == 1;
    }
    return closed;
}

/* The older ones, which have sent nothing, make room. */
static void one_address_cannot_take_all_connections(void **state) {
    struct fixture *fixture = *state;
    fixture->config.connections_max = 64;
    fixture->config.connections_per_address_max = 8;
    restart(fixture);
    int fds[32];
    for (int i = 0; i < 32; i++) {
        fds[i] = http_connect(fixture->port);
    }
    await_that(closed_count(fds, 24) == 24);
    assert_int_equal(closed_count(fds + 24, 8), 0);
    for (int i = 0; i < 32; i++) {
        close(fds[i]);
    }
}

static int http_connect_from(uint16_t port, uint8_t last) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in own = {.sin_family = AF_INET};
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    own.sin_addr.s_addr = htonl(0x7f000000U | last);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof own), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&name, sizeof name), 0);
    return fd;
}

/* Two addresses had locked a third out until their requests were overdue. */
static void idle_connections_lock_nobody_out(void **state) {
    struct fixture *fixture = *state;
    fixture->config.connections_max = 16;
    fixture->config.idle_timeout_ms = fixture->config.request_timeout_ms = 10 * HTTP_WAIT_MS;
    restart(fixture);
    int fds[16];
    for (int i = 0; i < 16; i++) {
        fds[i] = http_connect_from(fixture->port, i < 8 ? 2 : 3);
        http_send(fds[i], "GET /echo HTTP/1.1\r\nX-Slow: ", 28);
    }
    for (int i = 0; i < 40; i++) {
        expect(fixture, "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "200", "");
    }
    assert_int_equal(closed_count(fds, 16), 1); /* the others have room beside the one */
    for (int i = 0; i < 16; i++) {
        close(fds[i]);
    }
}

/* It has sent all it will, and waits for the end of the answers. */
static void a_client_that_has_ended_is_not_waited_for(void **state) {
    struct fixture *fixture = *state;
    fixture->config.idle_timeout_ms = 10 * HTTP_WAIT_MS;
    restart(fixture);
    int fd = http_connect(fixture->port);
    http_send(fd, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n", 31);
    shutdown(fd, SHUT_WR);
    assert_true(http_receive(fd, fixture->answer, SIZE_MAX) > 0);
    assert_int_equal(recv(fd, fixture->answer, 1, MSG_DONTWAIT), 0); /* and not: nothing yet */
    close(fd);
}

static void says_what_is_wrong_with_an_address(void **state) {
    struct fixture *fixture = *state;
    struct http_server *server;
    struct err_detail detail = {0};
    struct http_server_config config = fixture->config;
    config.address.port = fixture->port;
    assert_int_equal(http_server_start(&config, &server, &detail), ERR_BUSY);
    assert_non_null(strstr(detail.text, "127.0.0.1:"));
    config.address = address_ipv4(192, 0, 2, 1, 0);
    assert_int_not_equal(http_server_start(&config, &server, &detail), ERR_OK);
    assert_non_null(strstr(detail.text, "192.0.2.1"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(finds_routes_by_path_and_method, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_request_passes_the_check, set_up, tear_down),
        cmocka_unit_test_setup_teardown(answers_are_counted_by_route, set_up, tear_down),
        cmocka_unit_test_setup_teardown(takes_bodies_whole_chunked_and_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(serves_many_requests_on_one_connection, set_up, tear_down),
        cmocka_unit_test_setup_teardown(takes_large_bodies_and_leaves_no_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_bodies_that_are_too_large, set_up, tear_down),
        cmocka_unit_test_setup_teardown(says_why_before_it_has_read_the_body, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_headers_that_are_too_large, set_up, tear_down),
        cmocka_unit_test_setup_teardown(survives_what_is_not_http, set_up, tear_down),
        cmocka_unit_test_setup_teardown(streams_answers_with_and_without_a_size, set_up, tear_down),
        cmocka_unit_test_setup_teardown(suspended_requests_take_no_thread, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_loop_goes_on_while_errands_are_away, set_up, tear_down),
        cmocka_unit_test_setup_teardown(errands_of_one_connection_come_one_after_the_other, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(long_requests_take_no_thread_of_the_server, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_request_that_turns_out_long_begins_again_on_a_worker, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(long_work_learns_that_its_client_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stopping_waits_for_what_is_suspended, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stopping_answers_what_has_begun, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cuts_off_whoever_is_too_slow, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_address_cannot_take_all_connections, set_up, tear_down),
        cmocka_unit_test_setup_teardown(idle_connections_lock_nobody_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_client_that_has_ended_is_not_waited_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(says_what_is_wrong_with_an_address, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
