#include "replay/admin/ring_text.h"

#include "unit.h"

static void assert_says(enum ring_text which, const char *ring_text, const char *expected) {
    json_t *ring = json_loads(ring_text, 0, NULL);
    struct buf out;
    assert_non_null(ring);
    buf_init(&out, 4096);
    ring_text_put(which, ring, &out);
    buf_put_byte(&out, '\0');
    assert_int_equal(out.err, ERR_OK);
    assert_string_equal((const char *)out.data, expected);
    buf_done(&out);
    json_decref(ring);
}

static void says_nothing_without_a_ring(void **state) {
    (void)state;
    for (int i = 0; i < RING_TEXT_COUNT; i++) {
        assert_says((enum ring_text)i, "{}", "");
        assert_says((enum ring_text)i, "{\"together\":17}", "");
    }
}

static void says_that_it_waits(void **state) {
    (void)state;
    assert_says(RING_TEXT_COPIES, "{\"together\":{}}", "not yet: this node waits for the ring");
    assert_says(RING_TEXT_REPAIR, "{\"together\":{}}", "");
    assert_says(RING_TEXT_LINKS, "{\"together\":{}}", "");
    assert_says(RING_TEXT_HOSTS, "{\"together\":{}}", "");
}

#define MEMBERS ",\"members\":[{},{}]}"
#define COPIES(arcs)                                                                               \
    "{\"charter\":{\"replicas\":3},\"places\":[{\"share\":0.125},{\"share\":0.25}],\"together\":{" \
    "\"keeping\":{\"keys\":1234,\"fed\":true,\"wanted\":0,"                                        \
    "\"arcs\":[" arcs "]}}}"
#define WHOLE "{\"level\":\"whole\",\"missing\":0" MEMBERS
#define AWAY "{\"level\":\"away\",\"missing\":0" MEMBERS
#define LOW "{\"level\":\"low\",\"missing\":12,\"repairing_s\":5,\"left_s\":20" MEMBERS
#define LONELY "{\"level\":\"low\",\"missing\":0,\"members\":[{}]}"

static void counts_arcs_by_level(void **state) {
    (void)state;
    assert_says(RING_TEXT_COPIES, COPIES(WHOLE "," WHOLE),
                "1,234 captures here, 3 copies of each wanted; sees to 37.5 % of the ring; arcs: 2 whole");
    assert_says(RING_TEXT_COPIES, COPIES(LOW "," WHOLE "," AWAY),
                "1,234 captures here, 3 copies of each wanted; sees to 37.5 % of the ring; arcs: 1 whole, 1 "
                "with a node away, "
                "1 with too few copies");
}

static void says_that_nodes_are_too_few(void **state) {
    (void)state;
    assert_says(RING_TEXT_COPIES, COPIES(LONELY),
                "1,234 captures here, 3 copies of each wanted, more than there are nodes; sees to 37.5 % of "
                "the ring; arcs: 1 with too few "
                "copies");
}

static void says_what_is_repaired_and_for_how_long(void **state) {
    (void)state;
    assert_says(RING_TEXT_REPAIR, COPIES(WHOLE "," AWAY), "");
    assert_says(RING_TEXT_REPAIR, COPIES(LOW "," LOW "," WHOLE),
                "2 arcs, 24 captures missing, about 20 s left");
    assert_says(RING_TEXT_REPAIR, "{\"together\":{\"keeping\":{\"wanted\":1}}}", "1 capture on the way here");
}

static void says_what_a_link_costs(void **state) {
    (void)state;
    assert_says(RING_TEXT_LINKS, "{\"together\":{\"links\":{\"sent\":0,\"accepted\":0}}}",
                "none sent; none accepted");
    assert_says(RING_TEXT_LINKS,
                "{\"together\":{\"links\":{\"sent\":1000,\"sent_size\":23400,\"accepted\":7}}}",
                "1,000 sent, 23.4 bytes each; 7 new ones accepted");
}

static void leaves_out_decrees_that_were_withdrawn(void **state) {
    (void)state;
    assert_says(RING_TEXT_DECREES, "{\"together\":{\"decrees\":[{\"kind\":\"job\",\"withdrawn\":true}]}}",
                "none");
    assert_says(RING_TEXT_DECREES,
                "{\"together\":{\"decrees\":[{\"kind\":\"job\",\"counts\":true},{\"kind\":\"rules\"}]}}",
                "1 job, 1 takedown rule; of them 1 without effect");
}

static void names_the_worst_of_a_member(void **state) {
    (void)state;
    static const struct {
        const char *member;
        const char *expected;
    } rows[] = {{"{\"away\":true,\"complete\":true,\"compared_s\":3}", "away"},
                {"{\"away\":true,\"false\":true}", "false"},
                {"{\"complete\":true,\"compared_s\":3}", "complete"},
                {"{\"compared_s\":3}", "behind"},
                {"{}", "not yet compared"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *member = json_loads(rows[i].member, 0, NULL);
        assert_string_equal(ring_text_member(member), rows[i].expected);
        json_decref(member);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_nothing_without_a_ring),
        cmocka_unit_test(says_that_it_waits),
        cmocka_unit_test(counts_arcs_by_level),
        cmocka_unit_test(says_that_nodes_are_too_few),
        cmocka_unit_test(says_what_is_repaired_and_for_how_long),
        cmocka_unit_test(says_what_a_link_costs),
        cmocka_unit_test(leaves_out_decrees_that_were_withdrawn),
        cmocka_unit_test(names_the_worst_of_a_member),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
