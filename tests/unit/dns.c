#include "net/dns.h"

#include "nameserver.h"
#include "unit.h"

/* A loop with a nameserver and a resolver that knows no other. */
struct fixture {
    uv_loop_t loop;
    struct nameserver server;
    struct dns *dns;
    bool is_silent;
    uint32_t ttl_s;
};

/* One who asks. */
struct asker {
    struct dns_question question;
    struct dns_answer answer;
    unsigned told_count;
};

static void answer(void *context, const char *name, uint16_t type, struct nameserver_reply *reply) {
    struct fixture *fixture = context;
    reply->ttl_s = fixture->ttl_s;
    reply->is_silent = fixture->is_silent || strcmp(name, "silent.example") == 0;
    if (strcmp(name, "both.example") == 0) {
        reply->addresses[0] = type == NAMESERVER_TYPE_A ? "192.0.2.1" : "2001:db8::1";
    } else if (strcmp(name, "many.example") == 0 && type == NAMESERVER_TYPE_A) {
        for (size_t i = 0; i < 8; i++) {
            static const char *const many[] = {"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4",
                                               "192.0.2.5", "192.0.2.6", "192.0.2.7", "192.0.2.8"};
            reply->addresses[i] = many[i];
        }
    } else if (strcmp(name, "missing.example") == 0) {
        reply->code = NAMESERVER_NXDOMAIN;
    } else if (strcmp(name, "failing.example") == 0) {
        reply->code = NAMESERVER_SERVFAIL;
    } else if (strcmp(name, "empty.example") != 0 && type == NAMESERVER_TYPE_A) {
        reply->addresses[0] = "192.0.2.9";
    }
}

static void open_with(struct fixture *fixture, struct dns_config config) {
    *fixture = (struct fixture){.ttl_s = 300};
    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    nameserver_open(&fixture->server, &fixture->loop, answer, fixture);
    config.loop = &fixture->loop;
    config.nameservers = config.nameservers != NULL ? config.nameservers : fixture->server.address;
    struct err_detail detail;
    if (dns_new(&config, &fixture->dns, &detail) != ERR_OK) {
        fail_msg("%s", detail.text);
    }
}

static void close_all(struct fixture *fixture) {
    dns_free(fixture->dns);
    nameserver_close(&fixture->server);
    uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
}

static void take_answer(void *context, const struct dns_answer *given) {
    struct asker *asker = context;
    asker->answer = *given;
    asker->told_count++;
}

/* True where the answer was known. */
static bool ask(struct fixture *fixture, const char *name, struct asker *asker) {
    *asker = (struct asker){0};
    const struct dns_answer *known =
        dns_ask(fixture->dns, bytes_of_string(name), &asker->question, take_answer, asker);
    assert_int_equal(asker->told_count, 0); /* never from inside */
    if (known != NULL) {
        asker->answer = *known;
    }
    return known != NULL;
}

/* The loop ends when nobody waits. */
static void expect(struct fixture *fixture, const char *name, enum err err, size_t count) {
    struct asker asker;
    if (!ask(fixture, name, &asker)) {
        uv_run(&fixture->loop, UV_RUN_DEFAULT);
        assert_int_equal(asker.told_count, 1);
    }
    assert_int_equal(asker.answer.err, err);
    assert_int_equal(asker.answer.count, count);
}

static bool has(const struct dns_answer *given, const char *text) {
    struct address address;
    assert_true(address_parse(bytes_of_string(text), 0, &address));
    for (size_t i = 0; i < given->count; i++) {
        if (address_equal(&given->addresses[i], &address)) {
            return true;
        }
    }
    return false;
}

static void finds_addresses_of_both_kinds(void **state) {
    struct fixture fixture;
    struct asker asker;
    (void)state;
    open_with(&fixture, (struct dns_config){0});
    assert_false(ask(&fixture, "both.example", &asker));
    uv_run(&fixture.loop, UV_RUN_DEFAULT);
    assert_int_equal(asker.told_count, 1);
    assert_int_equal(asker.answer.err, ERR_OK);
    assert_int_equal(asker.answer.count, 2);
    assert_true(has(&asker.answer, "192.0.2.1"));
    assert_true(has(&asker.answer, "2001:db8::1"));
    expect(&fixture, "many.example", ERR_OK, DNS_ADDRESSES_MAX);
    close_all(&fixture);
}

static void asks_once_for_what_it_knows(void **state) {
    struct fixture fixture;
    struct asker asker;
    (void)state;
    open_with(&fixture, (struct dns_config){0});
    expect(&fixture, "a.example", ERR_OK, 1);
    expect(&fixture, "missing.example", ERR_NOT_FOUND, 0);
    expect(&fixture, "empty.example", ERR_NOT_FOUND, 0);
    expect(&fixture, "failing.example", ERR_UNREACHABLE, 0);
    unsigned questions_count = fixture.server.questions_count;
    assert_true(ask(&fixture, "a.example", &asker));
    assert_true(has(&asker.answer, "192.0.2.9"));
    assert_true(ask(&fixture, "missing.example", &asker));
    assert_int_equal(asker.answer.err, ERR_NOT_FOUND);
    assert_true(ask(&fixture, "failing.example", &asker));
    assert_int_equal(asker.answer.err, ERR_UNREACHABLE);
    uv_run(&fixture.loop, UV_RUN_DEFAULT);
    assert_int_equal(fixture.server.questions_count, questions_count);
    close_all(&fixture);
}

static void joins_questions_for_one_name(void **state) {
    struct fixture fixture;
    struct asker askers[10];
    (void)state;
    open_with(&fixture, (struct dns_config){0});
    for (size_t i = 0; i < 10; i++) {
        assert_false(ask(&fixture, "a.example", &askers[i]));
    }
    dns_cancel(&askers[0].question);
    dns_cancel(&askers[5].question);
    dns_cancel(&askers[9].question);
    uv_run(&fixture.loop, UV_RUN_DEFAULT);
    for (size_t i = 0; i < 10; i++) {
        bool is_cancelled = i == 0 || i == 5 || i == 9;
        assert_int_equal(askers[i].told_count, is_cancelled ? 0 : 1);
        assert_int_equal(askers[i].answer.count, is_cancelled ? 0 : 1);
    }
    assert_int_equal(fixture.server.questions_count, 2); /* A and AAAA */
    dns_cancel(&askers[1].question);                     /* nothing happens */
    close_all(&fixture);
}

static void asks_again_when_the_answer_has_expired(void **state) {
    struct fixture fixture;
    struct asker asker;
    (void)state;
    open_with(&fixture, (struct dns_config){.ttl_min_us = 20000});
    fixture.ttl_s = 0; /* raised to the 20 ms above */
    expect(&fixture, "a.example", ERR_OK, 1);
    assert_true(ask(&fixture, "a.example", &asker));
    while (ask(&fixture, "a.example", &asker)) {
        uv_sleep(1);
        uv_update_time(&fixture.loop);
    }
    uv_run(&fixture.loop, UV_RUN_DEFAULT);
    assert_int_equal(asker.told_count, 1);
    assert_int_equal(fixture.server.questions_count, 4);
    close_all(&fixture);
}

static void gives_up_on_a_silent_nameserver_and_serves_others_meanwhile(void **state) {
    struct fixture fixture;
    struct asker silent;
    struct asker other;
    (void)state;
    open_with(&fixture, (struct dns_config){.timeout_us = 400000});
    uint64_t start_ms = uv_now(&fixture.loop);
    assert_false(ask(&fixture, "silent.example", &silent));
    assert_false(ask(&fixture, "a.example", &other));
    while (other.told_count == 0) {
        uv_run(&fixture.loop, UV_RUN_ONCE);
    }
    assert_int_equal(silent.told_count, 0);
    assert_int_equal(other.answer.err, ERR_OK);
    uv_run(&fixture.loop, UV_RUN_DEFAULT);
    assert_int_equal(silent.told_count, 1);
    assert_int_equal(silent.answer.err, ERR_TIMEOUT);
    assert_true(uv_now(&fixture.loop) - start_ms >= 390);
    assert_true(ask(&fixture, "silent.example", &silent)); /* the failure is kept */
    close_all(&fixture);
}

static void learns_from_an_answer_that_comes_too_late(void **state) {
    struct fixture fixture;
    struct asker asker;
    (void)state;
    /* We wait 60 ms; c-ares 50, 100 and 200 ms for its tries. */
    open_with(&fixture, (struct dns_config){.timeout_us = 60000});
    fixture.is_silent = true;
    expect(&fixture, "a.example", ERR_TIMEOUT, 0);
    fixture.is_silent = false;
    uv_ref((uv_handle_t *)&fixture.server.udp);
    do {
        uv_run(&fixture.loop, UV_RUN_ONCE);
        assert_true(ask(&fixture, "a.example", &asker));
    } while (asker.answer.err == ERR_TIMEOUT);
    uv_unref((uv_handle_t *)&fixture.server.udp);
    close_all(&fixture);
}

static void tells_that_no_nameserver_listens(void **state) {
    struct fixture fixture;
    struct asker asker;
    struct nameserver closed;
    (void)state;
    open_with(&fixture, (struct dns_config){0});
    nameserver_open(&closed, &fixture.loop, answer, &fixture);
    char address[sizeof closed.address];
    memcpy(address, closed.address, sizeof address);
    nameserver_close(&closed);
    close_all(&fixture);
    open_with(&fixture, (struct dns_config){.nameservers = address, .timeout_us = 2000000});
    assert_false(ask(&fixture, "a.example", &asker));
    uv_run(&fixture.loop, UV_RUN_DEFAULT);
    assert_int_equal(asker.told_count, 1);
    assert_true(asker.answer.err == ERR_UNREACHABLE || asker.answer.err == ERR_TIMEOUT);
    close_all(&fixture);
}

static void keeps_no_more_names_than_allowed(void **state) {
    struct fixture fixture;
    struct asker askers[6];
    (void)state;
    open_with(&fixture, (struct dns_config){.entries_max = 4});
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < 9; i++) {
            char name[32];
            snprintf(name, sizeof name, "n%zu.example", i);
            expect(&fixture, name, ERR_OK, 1);
        }
    }
    assert_int_equal(fixture.server.questions_count, 2 * 27); /* the four kept were never the next */
    struct asker asker;
    assert_true(ask(&fixture, "n8.example", &asker));
    assert_true(ask(&fixture, "n5.example", &asker));
    /* Names that are being asked cannot go. */
    for (size_t i = 0; i < 6; i++) {
        char name[32];
        snprintf(name, sizeof name, "m%zu.example", i);
        assert_int_equal(ask(&fixture, name, &askers[i]), i >= 4);
        assert_int_equal(askers[i].answer.err, i >= 4 ? ERR_LIMIT : ERR_OK);
    }
    uv_run(&fixture.loop, UV_RUN_DEFAULT);
    close_all(&fixture);
}

static void never_answers_from_inside_the_question(void **state) {
    struct fixture fixture;
    struct asker asker;
    (void)state;
    open_with(&fixture, (struct dns_config){0});
    assert_false(ask(&fixture, "localhost", &asker)); /* c-ares knows this at once */
    uv_run(&fixture.loop, UV_RUN_DEFAULT);
    assert_int_equal(asker.told_count, 1);
    assert_true(has(&asker.answer, "127.0.0.1") || has(&asker.answer, "::1"));
    assert_int_equal(fixture.server.questions_count, 0);
    close_all(&fixture);
}

static void refuses_what_is_no_name(void **state) {
    struct fixture fixture;
    struct asker asker = {0};
    char name[300];
    (void)state;
    open_with(&fixture, (struct dns_config){0});
    memset(name, 'a', sizeof name);
    const struct bytes rows[] = {bytes_of(name, 0), bytes_of(name, 255), bytes_of(name, 300),
                                 BYTES("a\0.example")};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct dns_answer *known = dns_ask(fixture.dns, rows[i], &asker.question, take_answer, &asker);
        assert_non_null(known);
        assert_int_equal(known->err, ERR_INVALID);
    }
    expect(&fixture, "a..example", ERR_NOT_FOUND, 0);
    name[64] = '\0'; /* a label of 64 */
    expect(&fixture, name, ERR_NOT_FOUND, 0);
    close_all(&fixture);
}

static void ends_with_questions_under_way(void **state) {
    struct fixture fixture;
    struct asker asker;
    (void)state;
    open_with(&fixture, (struct dns_config){0});
    assert_false(ask(&fixture, "silent.example", &asker));
    dns_cancel(&asker.question);
    close_all(&fixture);
    assert_int_equal(asker.told_count, 0);
}

static void says_what_is_wrong_with_nameservers(void **state) {
    uv_loop_t loop;
    struct dns *dns = NULL;
    struct err_detail detail;
    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    struct dns_config config = {.loop = &loop, .nameservers = "not an address"};
    assert_int_equal(dns_new(&config, &dns, &detail), ERR_INVALID);
    assert_non_null(strstr(detail.text, "not an address"));
    assert_null(dns);
    dns_free(NULL);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_addresses_of_both_kinds),
        cmocka_unit_test(asks_once_for_what_it_knows),
        cmocka_unit_test(joins_questions_for_one_name),
        cmocka_unit_test(asks_again_when_the_answer_has_expired),
        cmocka_unit_test(gives_up_on_a_silent_nameserver_and_serves_others_meanwhile),
        cmocka_unit_test(learns_from_an_answer_that_comes_too_late),
        cmocka_unit_test(tells_that_no_nameserver_listens),
        cmocka_unit_test(keeps_no_more_names_than_allowed),
        cmocka_unit_test(never_answers_from_inside_the_question),
        cmocka_unit_test(refuses_what_is_no_name),
        cmocka_unit_test(ends_with_questions_under_way),
        cmocka_unit_test(says_what_is_wrong_with_nameservers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
