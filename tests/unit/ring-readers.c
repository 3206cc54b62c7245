/* Who reads an archive whose captures other nodes hold, and list: the pages for people, the proxy. */
#include "http-client.h"
#include "node/proxy/proxy_jobs.h"
#include "node/ring_services_state.h"
#include "replay/pages/pages.h"
#include "ring-reader-fixture.h"

#define PAGE "http://example.org/a"
#define MADE_UP "19700101000010" /* the capture that the inventor lists */
#define NEAREST "19700101000004" /* the one that is nearest to it */

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

/* Three true captures, and one node that answers for all others: with one that nobody made, and no other. */
static void put_true_and_made_up(struct world *world) {
    put(world, PAGE, 1, "one");
    put(world, PAGE, 2, "two");
    put(world, PAGE, 4, "four");
    fixture_make_inventor(&world->fixture->nodes[2], 1);
    world->fixture->nodes[2].lie = LIE_INVENT;
    world->fixture->nodes[1].is_current = world->fixture->nodes[3].is_current = false;
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

/* Its address names one capture: another is shown under its own. */
static void details_lead_to_the_nearest_that_can_be_had(void **state) {
    struct world *world = *state;
    put_true_and_made_up(world);
    expect(world, "/details/" MADE_UP "/" PAGE, "302", "Location: /details/" NEAREST "~");
    expect(world, "/details/" NEAREST "/" PAGE, "200", "Read from");
}

static void a_warc_leads_to_the_nearest_that_can_be_had(void **state) {
    struct world *world = *state;
    put_true_and_made_up(world);
    expect(world, "/details/" MADE_UP "/" PAGE "?warc", "302", "Location: /details/" NEAREST "~");
    expect(world, "/details/" NEAREST "/" PAGE "?warc", "200", "capture-" NEAREST ".warc.gz");
}

/* Also one whose document is that of another. */
static void what_others_hold_is_given_as_a_warc(void **state) {
    struct world *world = *state;
    put(world, PAGE, 1, "the same");
    put(world, "http://example.org/ab", 3, "the same");
    expect(world, "/details/19700101000001/" PAGE "?warc", "200", "application/warc");
    expect(world, "/api/v1/capture?url=http://example.org/ab", "200", "\"revisit\":true");
    expect(world, "/details/19700101000003/http://example.org/ab?warc", "200", "application/warc");
}

static void programs_are_told_of_the_nearest_that_can_be_had(void **state) {
    struct world *world = *state;
    put_true_and_made_up(world);
    expect(world, "/api/v1/capture?url=" PAGE, "200", "{\"url\":\"" PAGE "\",\"timestamp\":\"" NEAREST "\",");
}

static void parts_are_those_of_the_nearest_that_can_be_had(void **state) {
    struct world *world = *state;
    put_true_and_made_up(world);
    expect(world, "/api/v1/parts?url=" PAGE, "200",
           "{\"url\":\"" PAGE "\",\"timestamp\":\"" NEAREST "\",\"parts\":[");
}

/* Each of the two on its own. */
static void the_nearest_that_can_be_had_are_compared(void **state) {
    struct world *world = *state;
    put_true_and_made_up(world);
    expect(world, "/compare/19700101000001/" MADE_UP "/" PAGE "?view=source", "200",
           "<del>one</del><ins>four</ins>");
}

/* Where there is no other, it is said what is the matter with this one. */
static void what_cannot_be_had_at_all_is_an_error(void **state) {
    struct world *world = *state;
    fixture_make_inventor(&world->fixture->nodes[2], 1);
    world->fixture->nodes[1].is_current = world->fixture->nodes[3].is_current = false;
    expect(world, "/details/" MADE_UP "/" PAGE, "404", "no other node has the capture");
}

/* ---- the proxy ---- */

static void the_proxy_answers_with_the_newest_that_can_be_had(void **state) {
    struct world *world = *state;
    static const struct crowd_parts none; /* a node without a crowd */
    struct proxy_config config = {
        .directory = world->fixture->root,
        .archive = world->archive,
        .crowd = &none,
        .clock = &clock_system,
    };
    struct proxy_worker *worker = proxy_worker_new(&config);
    struct proxy_job *job = proxy_job_new(&config, PROXY_JOB_LOOK, BYTES(PAGE));
    struct bytes body;
    put_true_and_made_up(world);
    proxy_worker_look(worker, job);
    assert_string_equal(job->archive_said, "");
    assert_true(job->is_found);
    assert_int_equal(scratch_bytes(&job->body, &body), ERR_OK);
    assert_bytes_equal(body, BYTES("four"));
    assert_non_null(strstr(buf_string(&job->head), "Memento-Datetime: Thu, 01 Jan 1970 00:00:04 GMT\r\n"));
    proxy_job_free(job);
    proxy_worker_free(worker);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(details_lead_to_the_nearest_that_can_be_had),
        TEST(a_warc_leads_to_the_nearest_that_can_be_had),
        TEST(what_others_hold_is_given_as_a_warc),
        TEST(programs_are_told_of_the_nearest_that_can_be_had),
        TEST(parts_are_those_of_the_nearest_that_can_be_had),
        TEST(the_nearest_that_can_be_had_are_compared),
        TEST(what_cannot_be_had_at_all_is_an_error),
        TEST(the_proxy_answers_with_the_newest_that_can_be_had),
    };
    signal(SIGPIPE, SIG_IGN); /* as the program does: nodes go away while others write to them */
    return cmocka_run_group_tests_name("ring_readers", tests, NULL, NULL);
}
