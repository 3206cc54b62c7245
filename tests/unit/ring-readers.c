/* Who reads an archive whose captures other nodes hold, and list: the pages for people. */
#include "http-client.h"
#include "replay/pages.h"
#include "ring-shelf-fixture.h"

#define PAGE "http://example.org/a"

/* The reader, as others see it. */
struct world {
    struct fixture *fixture;
    struct archive *archive;
    struct replay replay;
    struct http_route routes[PAGES_ROUTES_MAX];
    struct http_server *server;
    uint16_t port;
    char answer[HTTP_ANSWER_SIZE];
};

static int set_up(void **state) {
    struct world *world = calloc(1, sizeof *world);
    void *fixture;
    if (world == NULL || fixture_setup(&fixture) != 0) {
        return -1;
    }
    world->fixture = fixture;
    struct archive_config archive = {
        .instance = world->fixture->nodes[READER].instance,
        .scratch_directory = world->fixture->root,
    };
    world->archive = archive_new(&archive);
    world->replay = (struct replay){.archive = world->archive, .clock = &clock_system, .title = "test"};
    struct http_server_config server = {
        .routes = world->routes,
        .routes_count = pages_routes(&world->replay, world->routes),
        .scratch_directory = world->fixture->root,
        .threads_count = 1,
    };
    struct address address;
    assert_true(address_parse(BYTES("127.0.0.1"), 0, &server.address));
    assert_int_equal(http_server_start(&server, &world->server, NULL), ERR_OK);
    http_server_address(world->server, &address);
    world->port = address.port;
    *state = world;
    return 0;
}

static int tear_down(void **state) {
    struct world *world = *state;
    void *fixture = world->fixture;
    http_server_stop(world->server, 1000);
    archive_free(world->archive);
    free(world);
    return fixture_teardown(&fixture);
}

static void put(struct world *world, const char *url, int64_t seconds, const char *body) {
    struct document document = fixture_document(url, seconds, bytes_of_string(body));
    fixture_put(world->fixture, &document);
}

static const char *get(struct world *world, const char *path) {
    char request[512];
    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path);
    return http_ask(world->port, request, world->answer);
}

static void expect(struct world *world, const char *path, const char *status, const char *words) {
    const char *answer = get(world, path);
    if (strncmp(answer, "HTTP/1.1 ", 9) != 0 || strncmp(answer + 9, status, 3) != 0 ||
        strstr(answer, words) == NULL) {
        fail_msg("%s: neither %s nor \"%s\" in: %s", path, status, words, answer);
    }
}

/* ---- pages ---- */

/* Also one whose document is that of another. */
static void what_others_hold_is_given_as_a_warc(void **state) {
    struct world *world = *state;
    put(world, PAGE, 1, "the same");
    put(world, "http://example.org/ab", 3, "the same");
    expect(world, "/details/19700101000001/" PAGE "?warc", "200", "application/warc");
    expect(world, "/api/v1/capture?url=http://example.org/ab", "200", "\"revisit\":true");
    expect(world, "/details/19700101000003/http://example.org/ab?warc", "200", "application/warc");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(what_others_hold_is_given_as_a_warc),
    };
    signal(SIGPIPE, SIG_IGN); /* as the program does: nodes go away while others write to them */
    return cmocka_run_group_tests_name("ring_readers", tests, NULL, NULL);
}
