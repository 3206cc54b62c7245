/* routing: where a URL belongs, asked once or often, under the rules of the charter that holds now. */
#include "node/ring/routing.h"

#include <stdio.h>

#include "unit.h"
#include "web/url/surt.h"

struct fixture {
    struct holders *holders;
    struct routing *routing;
    struct sha256 sha256;
};

static int set_up(void **state) {
    static struct fixture fixture;
    fixture.holders = holders_new(NULL);
    assert_non_null(fixture.holders);
    fixture.routing = routing_new(fixture.holders);
    assert_non_null(fixture.routing);
    assert_int_equal(sha256_init(&fixture.sha256), ERR_OK);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    routing_free(fixture->routing);
    holders_free(fixture->holders);
    sha256_done(&fixture->sha256);
    return 0;
}

static void expect_place(struct fixture *fixture, struct bytes url, enum position_mapping mapping) {
    struct canon canon;
    struct buf surt;
    uint8_t expected[ROUTE_POSITION_SIZE];
    uint8_t place[ROUTE_POSITION_SIZE];
    canon_init(&canon);
    buf_init(&surt, 1 << 12);
    assert_int_equal(canon_run(&canon, url, NULL), ERR_OK);
    assert_int_equal(surt_put(&surt, &canon), ERR_OK);
    position_of_surt(&fixture->sha256, buf_bytes(&surt), mapping, expected);
    assert_int_equal(routing_ask(fixture->routing, url, place), ROUTE_ELSEWHERE); /* there is no ring yet */
    assert_memory_equal(place, expected, sizeof place);
    assert_false(routing_is_primary(fixture->routing, url)); /* nor a first holder */
    buf_done(&surt);
    canon_done(&canon);
}

static struct bytes numbered(char *text, size_t size, unsigned number) {
    int length = snprintf(text, size, "http://www.example%u.org/Page/%u?b=2&a=1", number % 7, number);
    return bytes_of(text, (size_t)length);
}

static void the_place_is_that_of_the_surt_however_often_it_is_asked_for(void **state) {
    char text[80];
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 6000; i++) {
            expect_place(*state, numbered(text, sizeof text, i), POSITION_BY_URL);
        }
    }
}

static void another_mapping_counts_at_once(void **state) {
    struct fixture *fixture = *state;
    char text[80];
    for (unsigned round = 0; round < 4; round++) {
        enum position_mapping mapping = round % 2 == 0 ? POSITION_BY_URL : POSITION_BY_HOST;
        routing_set_rules(fixture->routing, mapping, 1);
        for (unsigned i = 0; i < 50; i++) {
            expect_place(fixture, numbered(text, sizeof text, i), mapping);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_place_is_that_of_the_surt_however_often_it_is_asked_for, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(another_mapping_counts_at_once, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
