#include "crawl/fetch/fetch.h"

#include "allocations.h"
#include "crawl/fetch/fetch_state.h"
#include "nameserver.h"
#include "origin.h"
#include "unit.h"

static const char hello[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
static const char public_ip[] = "192.31.196.77"; /* AS112: public, and nothing answers there */

enum { NAME_TIMEOUT_US = 300000 };

struct fixture {
    uv_loop_t loop;
    struct nameserver nameserver;
    const char *ip; /* of every name */
    struct origin origin;
    struct dns *dns;
    struct fetch *fetch;
    char detail[ERR_TEXT_SIZE_MAX]; /* of the last failure */
};

/* One who fetches. */
struct asker {
    struct fixture *fixture;
    struct fetch_result *result; /* of the last one */
    unsigned done_count;
    unsigned again_count; /* how often done() starts another */
};

static void answer(void *context, const char *name, uint16_t type, struct nameserver_reply *reply) {
    struct fixture *fixture = context;
    reply->ttl_s = 0; /* so long as dns_config says */
    reply->is_silent = strcmp(name, "silent.example") == 0;
    if (type == NAMESERVER_TYPE_A) {
        reply->addresses[0] = fixture->ip;
    }
}

static void open_with(struct fixture *fixture, struct fetch_config config) {
    struct err_detail detail;
    memset(fixture, 0, sizeof *fixture);
    fixture->ip = "127.0.0.1";
    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    nameserver_open(&fixture->nameserver, &fixture->loop, answer, fixture);
    origin_open(&fixture->origin, &fixture->loop, hello);
    /* Names may take long on a busy machine, but where a test waits for one that never comes. */
    struct dns_config dns_config = {.loop = &fixture->loop,
                                    .nameservers = fixture->nameserver.address,
                                    .timeout_us = config.connect_timeout_us > 0 ? NAME_TIMEOUT_US : 0,
                                    .ttl_min_us = 1000};
    assert_int_equal(dns_new(&dns_config, &fixture->dns, &detail), ERR_OK);
    config.loop = &fixture->loop;
    config.dns = fixture->dns;
    config.scratch_directory = "/tmp";
    if (fetch_new(&config, &fixture->fetch, &detail) != ERR_OK) {
        fail_msg("%s", detail.text);
    }
}

static void close_all(struct fixture *fixture) {
    fetch_free(fixture->fetch);
    dns_free(fixture->dns);
    nameserver_close(&fixture->nameserver);
    origin_close(&fixture->origin);
    uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
}

static enum err start(struct asker *asker, const char *host);

static void take(void *context, struct fetch_result *result) {
    struct asker *asker = context;
    fetch_result_free(asker->result);
    asker->result = result;
    asker->done_count++;
    if (asker->again_count > 0) {
        asker->again_count--;
        assert_int_equal(start(asker, "a.example"), ERR_OK);
    }
}

static enum err start(struct asker *asker, const char *host) {
    char url[128];
    unsigned done_count = asker->done_count;
    snprintf(url, sizeof url, "http://%s:%u/", host, asker->fixture->origin.port);
    struct fetch_request request = {.url = bytes_of_string(url)};
    enum err err = fetch_start(asker->fixture->fetch, &request, take, asker);
    assert_int_equal(asker->done_count, done_count); /* never from inside */
    return err;
}

static void expect(struct fixture *fixture, const char *host, enum err err) {
    struct asker asker = {.fixture = fixture};
    assert_int_equal(start(&asker, host), ERR_OK);
    uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_int_equal(asker.done_count, 1);
    if (asker.result->err != err) {
        fail_msg("%s: %s (%s)", host, err_name(asker.result->err), asker.result->detail.text);
    }
    memcpy(fixture->detail, asker.result->detail.text, sizeof fixture->detail);
    struct bytes body = {NULL, 0};
    assert_int_equal(scratch_bytes(&asker.result->body, &body), ERR_OK);
    assert_bytes_equal(body, err == ERR_OK ? BYTES("hello") : BYTES(""));
    fetch_result_free(asker.result);
}

static void fetches_by_name_and_by_address(void **state) {
    struct fixture fixture;
    (void)state;
    open_with(&fixture, (struct fetch_config){.allows_private = true});
    expect(&fixture, "a.example", ERR_OK);
    expect(&fixture, "127.0.0.1", ERR_OK);
    expect(&fixture, "127.1", ERR_OK);
    assert_int_equal(fixture.origin.connections_count, 2);
    assert_int_equal(fixture.origin.requests_count, 3);
    struct fetch_stat stat;
    fetch_stat(fixture.fetch, &stat);
    assert_int_equal(stat.running_count, 0);
    assert_int_equal(stat.connections_count, 2);
    assert_int_equal(stat.received_size, 3 * strlen(hello));
    close_all(&fixture);
}

static void starts_others_from_inside_done(void **state) {
    struct fixture fixture;
    (void)state;
    open_with(&fixture, (struct fetch_config){.allows_private = true, .transfers_max = 2});
    struct asker askers[2] = {{.fixture = &fixture, .again_count = 500},
                              {.fixture = &fixture, .again_count = 500}};
    assert_int_equal(start(&askers[0], "a.example"), ERR_OK);
    assert_int_equal(start(&askers[1], "not a url"), ERR_OK);
    uv_run(&fixture.loop, UV_RUN_DEFAULT);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(askers[i].done_count, 501);
        assert_int_equal(askers[i].result->err, ERR_OK);
        fetch_result_free(askers[i].result);
    }
    assert_int_equal(fixture.origin.connections_count, 2);
    close_all(&fixture);
}

static void runs_no_more_than_allowed(void **state) {
    struct fixture fixture;
    (void)state;
    open_with(&fixture, (struct fetch_config){.allows_private = true, .transfers_max = 3});
    struct asker asker = {.fixture = &fixture};
    assert_int_equal(start(&asker, "a.example"), ERR_OK);
    assert_int_equal(start(&asker, "127.0.0.1"), ERR_OK);
    assert_int_equal(start(&asker, "not a url"), ERR_OK);
    assert_int_equal(start(&asker, "b.example"), ERR_LIMIT);
    uv_run(&fixture.loop, UV_RUN_DEFAULT);
    assert_int_equal(asker.done_count, 3);
    assert_int_equal(start(&asker, "b.example"), ERR_OK);
    uv_run(&fixture.loop, UV_RUN_DEFAULT);
    assert_int_equal(asker.done_count, 4);
    fetch_result_free(asker.result);
    close_all(&fixture);
}

static void ends_whatever_is_running(void **state) {
    struct fixture fixture;
    (void)state;
    open_with(&fixture, (struct fetch_config){.allows_private = true});
    fixture.origin.answer = NULL;
    struct asker asker = {.fixture = &fixture};
    assert_int_equal(start(&asker, "a.example"), ERR_OK);      /* will wait for a response */
    assert_int_equal(start(&asker, "silent.example"), ERR_OK); /* waits for its name */
    while (fixture.origin.requests_count == 0) {
        uv_run(&fixture.loop, UV_RUN_ONCE);
    }
    assert_int_equal(start(&asker, "127.0.0.1"), ERR_OK); /* just given to libcurl */
    fetch_free(fixture.fetch);
    fixture.fetch = NULL;
    assert_int_equal(asker.done_count, 3);
    assert_int_equal(asker.result->err, ERR_CANCELLED);
    fetch_result_free(asker.result);
    close_all(&fixture);
}

static void refuses_private_addresses_when_the_name_is_resolved(void **state) {
    struct fixture fixture;
    (void)state;
    open_with(&fixture, (struct fetch_config){0});
    expect(&fixture, "a.example", ERR_PERMISSION);
    expect(&fixture, "127.0.0.1", ERR_PERMISSION);
    expect(&fixture, "[::1]", ERR_PERMISSION);
    assert_int_equal(fixture.origin.connections_count, 0);
    close_all(&fixture);
}

/* As if libcurl had got the address from elsewhere than from us. */
static void refuses_private_addresses_when_the_socket_is_made(void **state) {
    struct fixture fixture;
    (void)state;
    open_with(&fixture, (struct fetch_config){.allows_private = true});
    fixture.origin.closes = true;
    expect(&fixture, "a.example", ERR_OK);
    fixture.fetch->config.allows_private = false;
    fixture.ip = public_ip;
    struct address address;
    assert_true(address_parse(bytes_of_string(public_ip), 1, &address));
    address.port = 0;
    char key[64];
    snprintf(key, sizeof key, "a.example:%u", fixture.origin.port);
    struct fetch_host **host = map_get(&fixture.fetch->hosts.map, bytes_of_string(key));
    assert_non_null(host);
    (*host)->answer.addresses[0] = address;
    uv_sleep(5); /* the name's TTL of 1 ms */
    uv_update_time(&fixture.loop);
    expect(&fixture, "a.example", ERR_PERMISSION);
    assert_non_null(strstr(fixture.detail, "the host has a loopback address"));
    assert_int_equal(fixture.origin.connections_count, 1);
    close_all(&fixture);
}

static void on_later(uv_timer_t *timer) {
    uv_close((uv_handle_t *)timer, NULL);
}

static void a_name_that_comes_too_late_disturbs_nobody(void **state) {
    struct fixture fixture;
    uv_timer_t later;
    (void)state;
    open_with(&fixture, (struct fetch_config){.allows_private = true, .connect_timeout_us = 50000});
    expect(&fixture, "silent.example", ERR_TIMEOUT);
    fixture.fetch->config.connect_timeout_us = 60 * 1000000; /* the others have their time */
    expect(&fixture, "a.example", ERR_OK);
    uv_timer_init(&fixture.loop, &later);
    uv_timer_start(&later, on_later, NAME_TIMEOUT_US / 1000 + 100, 0); /* the resolver has given up */
    uv_run(&fixture.loop, UV_RUN_DEFAULT);
    expect(&fixture, "a.example", ERR_OK);
    close_all(&fixture);
}

static void forgets_the_oldest_hosts(void **state) {
    struct fixture fixture;
    (void)state;
    open_with(&fixture, (struct fetch_config){.allows_private = true, .transfers_max = 8});
    fixture.origin.closes = true;
    struct asker asker = {.fixture = &fixture};
    for (size_t i = 0; i < 4096 + 200; i++) {
        char host[32];
        snprintf(host, sizeof host, "h%zu.example", i);
        assert_int_equal(start(&asker, host), ERR_OK);
        if (i % 8 == 7) {
            uv_run(&fixture.loop, UV_RUN_DEFAULT);
            assert_int_equal(asker.done_count, i + 1);
            assert_int_equal(asker.result->err, ERR_OK);
        }
    }
    assert_int_equal(fixture.fetch->hosts.map.count, 4096);
    fetch_result_free(asker.result);
    expect(&fixture, "h0.example", ERR_OK); /* told anew */
    close_all(&fixture);
}

static void says_what_is_wrong_with_the_configuration(void **state) {
    uv_loop_t loop;
    struct dns *dns;
    struct fetch *fetch = NULL;
    struct err_detail detail;
    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(dns_new(&(struct dns_config){.loop = &loop}, &dns, &detail), ERR_OK);
    struct fetch_config config = {.loop = &loop, .dns = dns, .scratch_directory = "/tmp"};
    config.proxy = "ftp://a";
    assert_int_equal(fetch_new(&config, &fetch, &detail), ERR_INVALID);
    config.proxy = NULL;
    config.headers = (const char *const[]){"X: y", "X: a\r\nY: b", NULL};
    assert_int_equal(fetch_new(&config, &fetch, &detail), ERR_INVALID);
    assert_null(fetch);
    fetch_free(NULL);
    dns_free(dns);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* The first, second, third … allocation of a fetch fails: it ends with an error, once, and the next one goes
 * well. */
static void survives_every_failed_allocation(void **state) {
    (void)state;
    bool is_done = false;
    for (size_t n = 0; !is_done; n++) {
        struct fixture fixture;
        open_with(&fixture, (struct fetch_config){.allows_private = true});
        struct asker asker = {.fixture = &fixture};
        allocations_left = n;
        enum err err = start(&asker, "a.example");
        uv_run(&fixture.loop, UV_RUN_DEFAULT);
        is_done = allocations_left > 0;
        allocations_left = SIZE_MAX;
        assert_int_equal(asker.done_count, err == ERR_OK ? 1 : 0);
        if (is_done) {
            assert_int_equal(asker.result->err, ERR_OK);
        } else {
            assert_true(err == ERR_MEMORY || asker.result->err == ERR_MEMORY || asker.result->err == ERR_OK);
        }
        fetch_result_free(asker.result);
        expect(&fixture, "b.example", ERR_OK);
        close_all(&fixture);
        assert_true(n < 100);
    }
}

static void give_away(void *result) {
    fetch_result_free(result);
}

static void results_may_end_on_another_thread(void **state) {
    struct fixture fixture;
    uv_thread_t thread;
    (void)state;
    open_with(&fixture, (struct fetch_config){.allows_private = true});
    struct asker asker = {.fixture = &fixture};
    assert_int_equal(start(&asker, "a.example"), ERR_OK);
    uv_run(&fixture.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_thread_create(&thread, give_away, asker.result), 0);
    expect(&fixture, "a.example", ERR_OK);
    uv_thread_join(&thread);
    close_all(&fixture);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fetches_by_name_and_by_address),
        cmocka_unit_test(starts_others_from_inside_done),
        cmocka_unit_test(runs_no_more_than_allowed),
        cmocka_unit_test(ends_whatever_is_running),
        cmocka_unit_test(refuses_private_addresses_when_the_name_is_resolved),
        cmocka_unit_test(refuses_private_addresses_when_the_socket_is_made),
        cmocka_unit_test(a_name_that_comes_too_late_disturbs_nobody),
        cmocka_unit_test(forgets_the_oldest_hosts),
        cmocka_unit_test(says_what_is_wrong_with_the_configuration),
        cmocka_unit_test(survives_every_failed_allocation),
        cmocka_unit_test(results_may_end_on_another_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
