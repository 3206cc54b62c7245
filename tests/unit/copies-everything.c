/* keeping: a member of the ring that keeps everything, not only its part. */
#include "copies-world.h"

enum { COUNT = 40, COPY_PLAN = 3 };

static struct node *begin(struct world *world) {
    world->nodes_count = NODES_MAX;
    world->copies = 2;
    world->grace_us = SECOND_US;
    world->nodes[COPY_PLAN].keeps_everything = true;
    start_all(world);
    for (unsigned n = 0; n < COUNT; n++) {
        put(&world->nodes[n % COPY_PLAN], n, n);
    }
    return &world->nodes[COPY_PLAN];
}

/* Each capture with its two holders and with the keeper, and with nobody else. */
static bool are_settled(struct world *world, unsigned count) {
    bool are = are_kept(world, count, NODES_MAX);
    for (unsigned n = 0; n < count && are; n++) {
        struct ringkey key = key_of(n, n);
        struct holders_arc arc;
        ask_known(&world->nodes[COPY_PLAN], ring_id_read(key.bytes), &arc);
        are = has(&world->nodes[COPY_PLAN], &key) &&
              count_copies(world, &key) == world->copies + (arc.self_rank < 0);
    }
    return are;
}

static bool says(struct node *node, const char *text) {
    struct buf out;
    struct json json;
    buf_init(&out, 1 << 20);
    json_init(&json, &out);
    copies_put_json(node->copies, &json, NULL);
    const char *said = buf_string(&out);
    bool is_said = said != NULL && strstr(said, text) != NULL;
    buf_done(&out);
    return is_said;
}

static void it_has_everything_and_the_others_no_more_and_no_less(void **state) {
    struct world *world = *state;
    struct node *copy_plan = begin(world);
    wait_for(are_settled(world, COUNT));
    wait_for(says(copy_plan, "\"whole\":true"));
    assert_true(says(copy_plan, "\"keep\":\"everything\""));
    assert_true(says(&world->nodes[0], "\"keep\":\"arc\""));
    put(&world->nodes[0], COUNT, COUNT);
    put(&world->nodes[1], COUNT + 1, COUNT + 1);
    wait_for(are_settled(world, COUNT + 2));
    uint64_t toured_count = stat_of(copy_plan).toured_count;
    wait_for(stat_of(copy_plan).toured_count > toured_count + 20); /* more than a grace time */
    assert_true(are_settled(world, COUNT + 2));
    assert_int_equal(stat_of(copy_plan).released_count, 0);
    assert_int_equal(stat_of(copy_plan).fetched_count, COUNT + 2); /* none twice */
    for (unsigned i = 0; i < NODES_MAX; i++) {
        wait_for(all_are_whole(&world->nodes[i]));
        assert_int_equal(atomic_load(&world->nodes[i].blames_count), 0);
    }
}

/* The next round is an hour away. */
static void what_is_new_is_told_at_once(void **state) {
    struct world *world = *state;
    struct node *copy_plan = &world->nodes[COPY_PLAN];
    world->nodes_count = NODES_MAX;
    world->copies = 2;
    world->compare_us = 3600 * (uint64_t)SECOND_US;
    copy_plan->keeps_everything = true;
    start_all(world);
    wait_for(copies_has_everything(copy_plan->copies));
    assert_false(copies_has_everything(world->nodes[0].copies));
    for (unsigned n = 0; n < COUNT; n++) {
        put(&world->nodes[n % COPY_PLAN], n, n);
    }
    wait_for(stat_of(copy_plan).keys_count == COUNT);
}

static void what_others_lose_is_read_from_it(void **state) {
    struct world *world = *state;
    struct node *copy_plan = begin(world);
    wait_for(stat_of(copy_plan).keys_count == COUNT);
    stop(&world->nodes[0]);
    stop(&world->nodes[1]);
    for (unsigned n = 0; n < COUNT; n++) {
        expect_body(copy_plan, n, n);
    }
}

/* All holders of most places begin with nothing: the primaries are offered what they lack. */
static void what_all_holders_lost_comes_back_from_it(void **state) {
    struct world *world = *state;
    struct node *copy_plan = begin(world);
    wait_for(are_settled(world, COUNT));
    for (unsigned i = 0; i < COPY_PLAN; i++) {
        struct node *node = &world->nodes[i];
        stop(node);
        assert_int_equal(nftw(node->directory, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
        mkdir(node->directory, 0777);
    }
    for (unsigned i = 0; i < COPY_PLAN; i++) {
        start(&world->nodes[i]);
    }
    wait_for(are_settled(world, COUNT));
    assert_int_equal(stat_of(copy_plan).keys_count, COUNT);
}

static void who_no_longer_wants_everything_gives_up_the_surplus(void **state) {
    struct world *world = *state;
    struct node *copy_plan = begin(world);
    wait_for(are_settled(world, COUNT));
    stop(copy_plan);
    copy_plan->keeps_everything = false;
    start(copy_plan);
    wait_for(have_copies(world, COUNT, world->copies));
    assert_true(are_kept(world, COUNT, NODES_MAX));
    wait_for(stat_of(copy_plan).released_count > 0);
}

/* One holder gives what is false: what the other one has of the same arcs comes all the same. */
static void a_liar_does_not_hold_it_up(void **state) {
    struct world *world = *state;
    world->nodes[0].vice = GIVES_FALSE;
    world->nodes_count = NODES_MAX;
    world->copies = 2;
    world->nodes[COPY_PLAN].keeps_everything = true;
    start_all(world);
    for (unsigned n = 0; n < COUNT; n++) {
        put(&world->nodes[1 + n % 2], n, n);
    }
    wait_for(stat_of(&world->nodes[COPY_PLAN]).keys_count == COUNT);
}

static void a_full_disk_takes_nothing(void **state) {
    struct world *world = *state;
    world->nodes[COPY_PLAN].is_full = true;
    struct node *copy_plan = begin(world);
    wait_for(stat_of(copy_plan).is_full);
    assert_int_equal(stat_of(copy_plan).fetched_count, 0);
    assert_int_equal(stat_of(copy_plan).toured_count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        copies_test(it_has_everything_and_the_others_no_more_and_no_less),
        copies_test(what_is_new_is_told_at_once),
        copies_test(what_others_lose_is_read_from_it),
        copies_test(what_all_holders_lost_comes_back_from_it),
        copies_test(who_no_longer_wants_everything_gives_up_the_surplus),
        copies_test(a_liar_does_not_hold_it_up),
        copies_test(a_full_disk_takes_nothing),
    };
    signal(SIGPIPE, SIG_IGN); /* as the program does */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
