/* keeping: what is wanted of others is fetched, many at once; what does not come is wanted still. */
#include "await.h"
#include "copies-world.h"

enum { OFFERER, OTHER, SELF, SOME_COUNT = 3 /* a batch that one thread fetches, in the order of the keys */ };

static int compare_keys(const void *a, const void *b) {
    return ringkey_compare(a, b);
}

/* Of put(n, n), in the order in which they are fetched. */
struct some {
    struct ringkey keys[SOME_COUNT];
};

static struct some some_keys(void) {
    struct some some;
    for (unsigned n = 0; n < SOME_COUNT; n++) {
        some.keys[n] = key_of(n, n);
    }
    qsort(some.keys, SOME_COUNT, sizeof some.keys[0], compare_keys);
    return some;
}

static void give_to(struct node *node, const struct ringkey *key) {
    for (unsigned n = 0; n < SOME_COUNT; n++) {
        struct ringkey other = key_of(n, n);
        if (ringkey_compare(&other, key) == 0) {
            put(node, n, n);
        }
    }
    copies_feed(node->copies);
    assert_true(has(node, key));
}

static void want(struct node *node, const struct ringkey *key, const struct node *giver) {
    pthread_mutex_lock(&node->copies->lock);
    assert_true(replicator_want(node->copies->replicator, TRANSFER_ORDER_OFFERED, key, &giver->peer));
    pthread_mutex_unlock(&node->copies->lock);
}

/* It has said so, and that holds until the end of the test. */
static void take_for_busy(struct node *node, const struct node *giver) {
    pthread_mutex_lock(&node->peer_rpc->lock);
    standing_note(&node->peer_rpc->standing, STANDING_BUSY, peer_key(&giver->peer), 0, UINT64_MAX);
    pthread_mutex_unlock(&node->peer_rpc->lock);
    assert_true(peer_rpc_is_busy(node->peer_rpc, &giver->peer));
}

/* The machine hears of other work, too: of reading what is here again. */
static bool is_idle(struct copies *copies) {
    copies_take_works(copies);
    pthread_mutex_lock(&copies->news.lock);
    bool is_idle = copies->news.open_count == 0;
    pthread_mutex_unlock(&copies->news.lock);
    return is_idle;
}

/* Ask for all that may be asked for now, and wait until what came is stored. */
static void fetch(struct node *node) {
    copies_act(node->copies);
    await_that(is_idle(node->copies));
    copies_feed(node->copies);
}

static bool fetches(struct node *node, const struct ringkey *key) {
    fetch(node);
    return has(node, key);
}

static bool gives_up(struct node *node) {
    fetch(node);
    return stat_of(node).wanted_count == 0;
}

static uint64_t answers_of(struct node *node) {
    struct ring_view_rpc stat;
    peer_rpc_stat(node->peer_rpc, &stat);
    return stat.answers_count;
}

static struct world *begin(void **state) {
    struct world *world = *state;
    world->is_still = true;
    start_all(world);
    return world;
}

/* Somebody else is not asked in its stead: it would be done sooner. */
static void over_fast_lines_only_a_busy_giver_is_waited_for(void **state) {
    struct world *world = begin(state);
    struct node *self = &world->nodes[SELF];
    struct some some = some_keys();
    give_to(&world->nodes[OTHER], &some.keys[1]);
    take_for_busy(self, &world->nodes[OFFERER]);
    want(self, &some.keys[0], &world->nodes[OFFERER]);
    want(self, &some.keys[1], &world->nodes[OTHER]);
    fetch(self);
    assert_true(has(self, &some.keys[1]));
    assert_int_equal(stat_of(self).wanted_count, 1);
    assert_int_equal(answers_of(&world->nodes[OTHER]), 1);
}

/* That it lacks something does not mean that it does not answer. */
static void over_slow_lines_others_give_what_they_have(void **state) {
    struct world *world = *state;
    struct node *self = &world->nodes[SELF];
    struct some some = some_keys();
    world->is_still = world->has_slow_lines = true;
    start_all(world);
    take_for_busy(self, &world->nodes[OFFERER]);
    for (size_t i = 0; i < SOME_COUNT; i++) {
        want(self, &some.keys[i], &world->nodes[OFFERER]);
        if (i > 0) {
            give_to(&world->nodes[OTHER], &some.keys[i]);
        }
    }
    fetch(self);
    assert_false(has(self, &some.keys[0]));
    assert_true(has(self, &some.keys[1]));
    assert_true(has(self, &some.keys[2]));
    assert_int_equal(stat_of(self).wanted_count, 1); /* it waits for who offered it */
}

static void what_a_giver_has_not_got_yet_is_asked_of_him_again(void **state) {
    struct world *world = begin(state);
    struct node *self = &world->nodes[SELF];
    struct some some = some_keys();
    want(self, &some.keys[0], &world->nodes[OFFERER]);
    fetch(self);
    assert_int_equal(stat_of(self).wanted_count, 1);
    uint64_t now_us = copies_now_us(self->copies);
    assert_true(transfer_wake_at(replicator_transfer(self->copies->replicator), now_us) > now_us); /* later */
    give_to(&world->nodes[OFFERER], &some.keys[0]);
    await_that(fetches(self, &some.keys[0]));
    assert_int_equal(stat_of(self).wanted_count, 0);
}

static void what_a_giver_never_gets_is_not_asked_for_without_end(void **state) {
    enum { TIMES = 4 }; /* once, and three times again */
    struct world *world = begin(state);
    struct node *self = &world->nodes[SELF];
    struct some some = some_keys();
    want(self, &some.keys[0], &world->nodes[OFFERER]);
    await_that(gives_up(self));
    assert_int_equal(answers_of(&world->nodes[OFFERER]), TIMES);
}

/* It has answered; what it lacks is no reason to leave the rest. */
static void who_lacks_one_thing_gives_the_others(void **state) {
    struct world *world = begin(state);
    struct node *self = &world->nodes[SELF];
    struct some some = some_keys();
    for (size_t i = 0; i < SOME_COUNT; i++) {
        want(self, &some.keys[i], &world->nodes[OFFERER]);
        if (i > 0) {
            give_to(&world->nodes[OFFERER], &some.keys[i]);
        }
    }
    fetch(self);
    assert_true(has(self, &some.keys[1]));
    assert_true(has(self, &some.keys[2]));
    assert_int_equal(stat_of(self).wanted_count, 1);
}

/* Nobody else of the batch waits for it in vain; what was wanted of it is wanted still. */
static void a_silent_giver_is_asked_once(void **state) {
    struct world *world = begin(state);
    struct node *self = &world->nodes[SELF];
    struct some some = some_keys();
    stop(&world->nodes[OFFERER]);
    for (size_t i = 0; i < SOME_COUNT; i++) {
        want(self, &some.keys[i], &world->nodes[OFFERER]);
    }
    struct ring_view_rpc stat;
    fetch(self);
    peer_rpc_stat(self->peer_rpc, &stat);
    assert_int_equal(stat.questions_count, 1);
    assert_int_equal(stat_of(self).wanted_count, SOME_COUNT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        copies_test(over_fast_lines_only_a_busy_giver_is_waited_for),
        copies_test(over_slow_lines_others_give_what_they_have),
        copies_test(what_a_giver_has_not_got_yet_is_asked_of_him_again),
        copies_test(what_a_giver_never_gets_is_not_asked_for_without_end),
        copies_test(who_lacks_one_thing_gives_the_others),
        copies_test(a_silent_giver_is_asked_once),
    };
    signal(SIGPIPE, SIG_IGN); /* as the program does */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
