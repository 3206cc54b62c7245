/*
 * http-smuggling: requests with more than one meaning, one behind the other on a connection. Each shape is
 * followed by "GET /hidden": the server must answer 400 to the first and close, never answer the second.
 */
#include "http/server/http_server.h"

#include "http-client.h"
#include "scratch.h"
#include "unit.h"

#define HIDDEN "GET /hidden HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
#define POST "POST /echo HTTP/1.1\r\nHost: a\r\n"
#define CHUNKS "0\r\n\r\n"

struct shape {
    const char *name;
    const char *request;
};

static const struct shape shapes[] = {
    {"length and coding", POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" CHUNKS},
    {"coding and length", POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" CHUNKS},
    {"coding and length 0", POST "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n" CHUNKS},
    {"two different lengths", POST "Content-Length: 0\r\nContent-Length: 5\r\n\r\n"},
    {"two equal lengths", POST "Content-Length: 0\r\nContent-Length: 0\r\n\r\n"},
    {"a list of lengths", POST "Content-Length: 0, 5\r\n\r\n"},
    {"a list of equal lengths", POST "Content-Length: 0, 0\r\n\r\n"},
    {"a signed length", POST "Content-Length: +0\r\n\r\n"},
    {"a negative length", POST "Content-Length: -1\r\n\r\n"},
    {"a hexadecimal length", POST "Content-Length: 0x0\r\n\r\n"},
    {"a length with a blank in it", POST "Content-Length: 0 0\r\n\r\n"},
    {"an empty length", POST "Content-Length:\r\n\r\n"},
    {"a length beyond 64 bits", POST "Content-Length: 18446744073709551616\r\n\r\n"},
    {"another coding", POST "Transfer-Encoding: gzip\r\n\r\n" CHUNKS},
    {"chunked behind another", POST "Transfer-Encoding: gzip, chunked\r\n\r\n" CHUNKS},
    {"chunked before another", POST "Transfer-Encoding: chunked, identity\r\n\r\n" CHUNKS},
    {"chunked twice", POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" CHUNKS},
    {"chunked in quotes", POST "Transfer-Encoding: \"chunked\"\r\n\r\n" CHUNKS},
    {"nearly chunked", POST "Transfer-Encoding: xchunked\r\n\r\n" CHUNKS},
    {"chunked with a vertical tab", POST "Transfer-Encoding:\x0b"
                                         "chunked\r\n\r\n" CHUNKS},
    {"a blank before the colon", POST "Transfer-Encoding : chunked\r\n\r\n" CHUNKS},
    {"a blank before the colon of a length", POST "Content-Length : 5\r\n\r\n"},
    {"a tab before the colon", POST "Content-Length\t: 5\r\n\r\n"},
    {"chunked in HTTP/1.0", "POST /echo HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" CHUNKS},
    {"a folded line", POST "X-A: b\r\n c\r\n\r\n"},
    {"a folded coding", POST "Transfer-Encoding:\r\n chunked\r\n\r\n" CHUNKS},
    {"a folded first field", "GET /echo HTTP/1.1\r\n X: y\r\nHost: a\r\n\r\n"},
    {"bare line feeds", "GET /echo HTTP/1.1\nHost: a\n\n"},
    {"one bare line feed", "GET /echo HTTP/1.1\r\nHost: a\nX-A: b\r\n\r\n"},
    {"a bare line feed at the end", "GET /echo HTTP/1.1\r\nHost: a\r\n\n"},
    {"a bare carriage return", "GET /echo HTTP/1.1\r\nHost: a\r\nX-A: b\rContent-Length: 5\r\n\r\n"},
    {"a carriage return too many", "GET /echo HTTP/1.1\r\nHost: a\r\r\n\r\n"},
    {"two Hosts", "GET /echo HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"},
    {"two equal Hosts", "GET /echo HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"},
    {"no Host", "GET /echo HTTP/1.1\r\n\r\n"},
    {"a field without a colon", "GET /echo HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n"},
    {"a field without a name", "GET /echo HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n"},
    {"a name that is no token", "GET /echo HTTP/1.1\r\nHost: a\r\nX(A): b\r\n\r\n"},
    {"a blank in the target", "GET /echo /x HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"two blanks in the first line", "GET  /echo HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"a tab in the first line", "GET\t/echo HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"no version", "GET /echo\r\nHost: a\r\n\r\n"},
    {"another version", "GET /echo HTTP/1.2\r\nHost: a\r\n\r\n"},
    {"a version with a blank behind it", "GET /echo HTTP/1.1 \r\nHost: a\r\n\r\n"},
    {"a blank before the method", " GET /echo HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"a chunk size with a sign", POST "Transfer-Encoding: chunked\r\n\r\n+0\r\n\r\n"},
    {"a chunk size with 0x", POST "Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n"},
    {"a chunk size beyond 64 bits", POST "Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n\r\n"},
    {"a chunk ended by a line feed", POST "Transfer-Encoding: chunked\r\n\r\n1\na\n0\n\n"},
    {"a chunk that is longer than it says", POST "Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n"},
};

struct fixture {
    char *directory;
    struct http_server *server;
    uint16_t port;
    char answer[HTTP_ANSWER_SIZE];
};

static void answer_word(struct http_request *request) {
    http_answer(request, 200, "text/plain", bytes_of_string(http_request_context(request)));
}

static int set_up(void **state) {
    static const struct http_route routes[] = {
        {"GET", "/echo", 0, (void *)(uintptr_t) "seen", NULL, answer_word, NULL, false, 0},
        {"POST", "/echo", 1000, (void *)(uintptr_t) "seen", NULL, answer_word, NULL, false, 0},
        {"GET", "/hidden", 0, (void *)(uintptr_t) "smuggled", NULL, answer_word, NULL, false, 0},
    };
    struct fixture *fixture = calloc(1, sizeof *fixture);
    if (fixture == NULL || scratch_make((void **)&fixture->directory) != 0) {
        return -1;
    }
    struct http_server_config config = {
        .address = address_ipv4(127, 0, 0, 1, 0),
        .routes = routes,
        .routes_count = sizeof routes / sizeof *routes,
        .scratch_directory = fixture->directory,
    };
    struct address address;
    if (http_server_start(&config, &fixture->server, NULL) != ERR_OK) {
        return -1;
    }
    http_server_address(fixture->server, &address);
    fixture->port = address.port;
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    http_server_stop(fixture->server, 1000);
    int result = scratch_remove((void **)&fixture->directory);
    free(fixture);
    return result;
}

static void whatever_has_two_meanings_is_refused(void **state) {
    struct fixture *fixture = *state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        char request[1024];
        snprintf(request, sizeof request, "%s%s", shapes[i].request, HIDDEN);
        http_ask(fixture->port, request, fixture->answer);
        const char *answer = fixture->answer;
        if (strncmp(answer, "HTTP/1.1 400 ", 13) != 0 || strstr(answer, "Connection: close\r\n") == NULL ||
            strstr(answer, "smuggled") != NULL || strstr(answer, "seen") != NULL) {
            fail_msg("%s: %s", shapes[i].name, answer);
        }
    }
}

/* The table would prove nothing if all were refused. */
static void requests_one_behind_the_other_are_answered(void **state) {
    struct fixture *fixture = *state;
    static const char *const plain[] = {
        "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /echo HTTP/1.1\r\nHost:a\r\nX-A:\tb \r\n\r\n",
        "\r\nGET /echo HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        POST "Content-Length: 5\r\n\r\nabcde",
        POST "Content-Length: 0\r\n\r\n",
        POST "Transfer-Encoding: Chunked\r\n\r\n5;x=y\r\nabcde\r\n0\r\nTrailer: z\r\n\r\n",
        POST "Expect: 100-continue\r\nContent-Length: 1\r\n\r\na",
    };
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        char request[1024];
        snprintf(request, sizeof request, "%s%s", plain[i], HIDDEN);
        http_ask(fixture->port, request, fixture->answer);
        const char *first = strstr(fixture->answer, "seen");
        if (first == NULL || strstr(first, "smuggled") == NULL) {
            fail_msg("%s: %s", plain[i], fixture->answer);
        }
    }
}

/* However it is cut into segments. */
static void a_request_may_come_byte_by_byte(void **state) {
    struct fixture *fixture = *state;
    const char *request = POST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" HIDDEN;
    int fd = http_connect(fixture->port);
    for (size_t i = 0; request[i] != '\0'; i++) {
        http_send(fd, request + i, 1);
    }
    http_receive(fd, fixture->answer, SIZE_MAX);
    close(fd);
    assert_non_null(strstr(fixture->answer, "seen"));
    assert_non_null(strstr(fixture->answer, "smuggled"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(whatever_has_two_meanings_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(requests_one_behind_the_other_are_answered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_request_may_come_byte_by_byte, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
