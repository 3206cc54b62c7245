/* copies: what is deleted here is not taken from a node that has not heard of it, and does not keep both
 * busy. */
#include "copies-world.h"
#include "store/instance/deletion.h"
#include "store/instance/purge.h"

enum { COUNT = 30, DELETED_COUNT = 20 /* the first of them */ };

static struct deletion until(unsigned count) {
    return (struct deletion){
        .key = BYTES("org,example)/"), .from_us = INT64_MIN, .to_us = (int64_t)count * SECOND_US};
}

static void forbid(struct node *node, unsigned count) {
    struct deletion_set *set = deletion_set_new();
    struct deletion deletion = until(count);
    assert_int_equal(deletion_set_add(set, &deletion), ERR_OK);
    instance_set_deletions(node->instance, set);
}

static void begin_with(struct world *world, unsigned nodes_count) {
    world->nodes_count = nodes_count;
    world->copies = nodes_count;
    world->compare_us = SECOND_US / 10;
    start_all(world);
}

static void await_rounds(struct node *node, unsigned count) {
    uint64_t before = stat_of(node).compared_count;
    wait_for(stat_of(node).compared_count > before + count);
}

static void it_is_refused_once_and_not_asked_for_again(void **state) {
    struct world *world = *state;
    begin_with(world, 2);
    struct node *behind = &world->nodes[0];
    struct node *node = &world->nodes[1];
    forbid(node, DELETED_COUNT);
    for (unsigned n = 0; n < COUNT; n++) {
        put(behind, n, n);
    }
    wait_for(stat_of(node).keys_count == COUNT - DELETED_COUNT);
    wait_for(stat_of(node).wanted_count == 0);
    await_rounds(node, 10);
    unsigned given_count = atomic_load(&behind->given_count);
    assert_true(given_count >= COUNT);
    await_rounds(node, 10);
    await_rounds(behind, 1); /* it finds each time that the other lacks them, and waits ever longer */
    assert_int_equal(atomic_load(&behind->given_count), given_count);
    assert_int_equal(stat_of(node).keys_count, COUNT - DELETED_COUNT);
    assert_int_equal(stat_of(behind).keys_count, COUNT);
    assert_int_equal(stat_of(node).fetched_count, COUNT - DELETED_COUNT);
    assert_int_equal(atomic_load(&node->blames_count), 0); /* the other is not false */
    assert_int_equal(atomic_load(&behind->blames_count), 0);
    wait_for(all_are_whole(node)); /* nothing is missing there */
}

static void it_comes_when_it_is_no_longer_deleted(void **state) {
    struct world *world = *state;
    begin_with(world, 2);
    struct node *node = &world->nodes[1];
    forbid(node, DELETED_COUNT);
    for (unsigned n = 0; n < COUNT; n++) {
        put(&world->nodes[0], n, n);
    }
    wait_for(stat_of(node).keys_count == COUNT - DELETED_COUNT);
    instance_set_deletions(node->instance, deletion_set_new());
    wait_for(all_have(world, COUNT));
}

static void keys_of_what_is_purged_leave_all_nodes(void **state) {
    struct world *world = *state;
    begin_with(world, 3);
    for (unsigned n = 0; n < COUNT; n++) {
        put(&world->nodes[n % 3], n, n);
    }
    wait_for(all_have(world, COUNT));
    for (unsigned i = 0; i < 3; i++) { /* one after the other, while they compare */
        struct deletion deletion = until(DELETED_COUNT);
        struct purge_config config = {.deletions = &deletion, .deletions_count = 1};
        uint64_t count;
        forbid(&world->nodes[i], DELETED_COUNT);
        assert_int_equal(purge_run(world->nodes[i].session, &config, &count, NULL), ERR_OK);
        assert_int_equal(count, DELETED_COUNT);
    }
    wait_for(all_have(world, COUNT - DELETED_COUNT));
    await_rounds(&world->nodes[0], 10);
    await_rounds(&world->nodes[1], 10);
    assert_true(all_have(world, COUNT - DELETED_COUNT));
    for (unsigned i = 0; i < 3; i++) {
        wait_for(all_are_whole(&world->nodes[i]));
        assert_int_equal(atomic_load(&world->nodes[i].blames_count), 0);
    }
}

static void a_node_that_was_away_offers_nothing_before_it_may(void **state) {
    struct world *world = *state;
    atomic_store(&world->nodes[0].is_mute, true);
    begin_with(world, 2);
    for (unsigned n = 0; n < COUNT; n++) {
        put(&world->nodes[0], n, n);
        put(&world->nodes[1], COUNT + n, COUNT + n);
    }
    wait_for(stat_of(&world->nodes[0]).keys_count == 2 * COUNT); /* it takes */
    assert_int_equal(stat_of(&world->nodes[0]).offered_count, 0);
    assert_int_equal(stat_of(&world->nodes[0]).compared_count, 0);
    atomic_store(&world->nodes[0].is_mute, false);
    wait_for(all_have(world, 2 * COUNT));
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(it_is_refused_once_and_not_asked_for_again),
        IN_WORLD(it_comes_when_it_is_no_longer_deleted),
        IN_WORLD(keys_of_what_is_purged_leave_all_nodes),
        IN_WORLD(a_node_that_was_away_offers_nothing_before_it_may),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
