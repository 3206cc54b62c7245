/* search-cover: which nodes are asked so that all of the ring is answered for, and what is said of the rest.
 */
#include "protocol/search/search_cover.h"

#include "node/search/search_put.h"
#include "unit.h"

enum { NODES = 12, COPIES = 3 };
#define STEP (UINT64_MAX / NODES + 1)

/* A ring of NODES nodes with one place each; node i ends arc i and holds it, with the two before...
 * clockwise: arc i is held by nodes i, i + 1, i + 2. */
struct street {
    struct search_cover_node nodes[NODES];
    struct search_cover_arc arcs[NODES];
    double weights[NODES];
    struct search_cover cover;
};

static struct peer peer_of(size_t index) {
    struct peer peer = {.address = {.port = 1}};
    peer.key[0] = (uint8_t)(index % NODES + 1);
    return peer;
}

static struct ring_id end_of(size_t index) {
    return (struct ring_id){(uint64_t)(index % NODES) * STEP, 0};
}

static void street_init(struct street *street, uint64_t seed) {
    struct search_cover_config config = {.nodes = street->nodes,
                                         .weights = street->weights,
                                         .nodes_max = NODES,
                                         .arcs = street->arcs,
                                         .arcs_max = NODES,
                                         .seed = seed};
    search_cover_init(&street->cover, &config);
    for (size_t i = 0; i < NODES; i++) {
        struct holders_arc arc = {.from = end_of(i + NODES - 1), .to = end_of(i), .count = COPIES};
        for (size_t j = 0; j < COPIES; j++) {
            arc.peers[j] = peer_of(i + j);
        }
        search_cover_add(&street->cover, &arc);
    }
    assert_int_equal(street->cover.nodes_count, NODES);
}

/* The answer of a node that is sure of the arcs (from, to], or of none. */
static void answer(struct street *street, size_t node, bool is_sure, uint64_t left_count) {
    size_t place = (size_t)street->nodes[node].peer.key[0] - 1;
    struct search_code_arc arc = {end_of(place + NODES - COPIES), end_of(place)};
    struct search_code_head head = {.left_count = left_count, .arcs_count = is_sure};
    struct buf out;
    buf_init(&out, SEARCH_CODE_ANSWER_SIZE_MAX);
    assert_int_equal(search_put_head(&out, &head, &arc), ERR_OK);
    assert_int_equal(search_code_check_answer(buf_bytes(&out), NULL), ERR_OK);
    search_cover_take(&street->cover, node, buf_bytes(&out));
    buf_done(&out);
}

static struct search_cover_sum sum_of(const struct street *street) {
    struct search_cover_sum sum;
    search_cover_sum(&street->cover, &sum);
    assert_int_equal(sum.whole_count + sum.behind_count + sum.missing_count, NODES);
    assert_true(sum.whole + sum.behind + sum.missing > 0.999 && sum.whole + sum.behind + sum.missing < 1.001);
    return sum;
}

static void few_nodes_cover_all(void **state) {
    (void)state;
    bool was_first[NODES] = {false};
    size_t firsts_count = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct street street;
        size_t node;
        size_t asked_count = 0;
        street_init(&street, seed);
        while (search_cover_choose(&street.cover, &node)) {
            firsts_count += asked_count == 0 && !was_first[node];
            was_first[node] = was_first[node] || asked_count == 0;
            asked_count++;
        }
        assert_in_range(asked_count, NODES / COPIES, NODES / COPIES + 2);
        for (size_t i = 0; i < NODES; i++) {
            if (street.nodes[i].state == SEARCH_COVER_ASKED) {
                answer(&street, i, true, 0);
            }
        }
        assert_int_equal(sum_of(&street).whole_count, NODES);
        assert_false(search_cover_choose(&street.cover, &node));
    }
    assert_int_equal(firsts_count, NODES); /* no node is asked each time */
}

/* One by one until nobody is left; these nodes fail. */
static struct search_cover_sum run_with(struct street *street, const bool *fails, bool waits) {
    size_t node;
    while (search_cover_choose(&street->cover, &node)) {
        size_t place = (size_t)street->nodes[node].peer.key[0] - 1;
        if (!fails[place]) {
            answer(street, node, true, 0);
        } else if (waits) {
            search_cover_wait(&street->cover, node);
        } else {
            search_cover_fail(&street->cover, node, SEARCH_COVER_SILENT);
        }
    }
    return sum_of(street);
}

static void other_holders_answer_for_a_silent_one(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct street street;
        bool fails[NODES] = {[4] = true, [5] = true, [9] = true};
        street_init(&street, seed);
        assert_int_equal(run_with(&street, fails, seed % 2 == 0).whole_count, NODES);
    }
}

static void what_all_holders_fail_for_is_missing(void **state) {
    (void)state;
    struct street street;
    bool fails[NODES] = {[4] = true, [5] = true, [6] = true};
    street_init(&street, 1);
    struct search_cover_sum sum = run_with(&street, fails, false);
    assert_int_equal(sum.missing_count, 1);
    assert_true(sum.missing > 0.9 / NODES && sum.missing < 1.1 / NODES);
    search_cover_weigh(&street.cover, SEARCH_COVER_MISSING);
    for (size_t i = 0; i < NODES; i++) {
        size_t place = (size_t)street.nodes[i].peer.key[0] - 1;
        assert_int_equal(street.weights[i] > 0, fails[place]);
        assert_int_equal(street.nodes[i].state == SEARCH_COVER_FAILED, fails[place]);
    }
}

static void a_late_answer_still_counts(void **state) {
    (void)state;
    struct street street;
    bool fails[NODES] = {[4] = true, [5] = true, [6] = true};
    street_init(&street, 2);
    assert_int_equal(run_with(&street, fails, true).missing_count, 1);
    struct peer late = peer_of(5);
    answer(&street, search_cover_find(&street.cover, &late), true, 0);
    assert_int_equal(sum_of(&street).missing_count, 0);
}

static void who_is_not_sure_leaves_it_to_others(void **state) {
    (void)state;
    struct street street;
    size_t node;
    size_t asked_count = 0;
    street_init(&street, 3);
    while (search_cover_choose(&street.cover, &node)) {
        answer(&street, node, asked_count % 2 == 0, asked_count % 4 == 2 ? 7 : 0);
        asked_count++;
    }
    struct search_cover_sum sum = sum_of(&street);
    assert_true(asked_count > NODES / COPIES + 2); /* as long as something is open, others are asked */
    assert_int_equal(sum.missing_count, 0);
    assert_true(sum.behind_count > 0 && sum.whole_count > 0);
}

static void a_node_is_believed_of_its_own_arcs_only(void **state) {
    (void)state;
    struct street street;
    struct search_code_head head = {.has_everything = true};
    struct buf out;
    buf_init(&out, 1 << 10);
    street_init(&street, 4);
    assert_int_equal(search_put_head(&out, &head, NULL), ERR_OK);
    search_cover_take(&street.cover, 0, buf_bytes(&out));
    assert_int_equal(sum_of(&street).whole_count, COPIES);
    struct search_code_arc all = {end_of(3), end_of(3)};
    head = (struct search_code_head){.arcs_count = 1};
    buf_clear(&out);
    assert_int_equal(search_put_head(&out, &head, &all), ERR_OK);
    search_cover_take(&street.cover, 6, buf_bytes(&out));
    assert_int_equal(sum_of(&street).whole_count, 2 * COPIES);
    head = (struct search_code_head){.has_everything = true};
    search_cover_take_own(&street.cover, 1, &head, NULL);
    assert_int_equal(sum_of(&street).whole_count, NODES);
    buf_done(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_nodes_cover_all),
        cmocka_unit_test(other_holders_answer_for_a_silent_one),
        cmocka_unit_test(what_all_holders_fail_for_is_missing),
        cmocka_unit_test(a_late_answer_still_counts),
        cmocka_unit_test(who_is_not_sure_leaves_it_to_others),
        cmocka_unit_test(a_node_is_believed_of_its_own_arcs_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
