/* tour: one arc after the other, another holder each round, soon again where something is missing. */
#include "protocol/copies/full_sync.h"

#include "unit.h"

enum { ARCS = 4, OWN = 2, STEPS_MAX = 1000 };
static const uint64_t SECOND = 1000000;
static const uint64_t MINUTE = 60 * 1000000;

/* ---- a ring of four places, the third is ours; three holders of each arc ---- */

static struct ring_id place_of(unsigned n) {
    return (struct ring_id){UINT64_C(0x4000000000000000) * n + 7, 0};
}

static unsigned owner_of(struct ring_id place) {
    for (unsigned n = 0; n < ARCS; n++) {
        if (ring_id_compare(place, place_of(n)) <= 0) {
            return n;
        }
    }
    return 0;
}

static struct full_sync_arc arc_of(struct ring_id place) {
    unsigned owner = owner_of(place);
    int rank = (int)((OWN + ARCS - owner) % ARCS);
    return (struct full_sync_arc){.to = place_of(owner), .count = 3, .self_rank = rank < 3 ? rank : -1};
}

static struct full_sync make(void) {
    struct full_sync full_sync;
    full_sync_init(&full_sync, &(struct full_sync_config){.seed = 3}, SECOND);
    return full_sync;
}

/* The next stop that is compared, at the time when it is due; the clock goes there. */
static struct full_sync_stop next(struct full_sync *full_sync, uint64_t *now_us) {
    struct full_sync_stop stop;
    struct full_sync_arc arc;
    unsigned steps = 0;
    do {
        assert_true(steps++ < STEPS_MAX);
        *now_us = full_sync_wake_at(full_sync) > *now_us ? full_sync_wake_at(full_sync) : *now_us;
        arc = arc_of(full_sync_place(full_sync));
    } while (!full_sync_choose(full_sync, &arc, *now_us, &stop));
    assert_true(stop.index < 3 && (int)stop.index != arc.self_rank && arc.self_rank != 0);
    return stop;
}

/* One round, its stops with this outcome; how many there were. */
static unsigned go_round(struct full_sync *full_sync, uint64_t *now_us, enum err err, uint64_t missing_count,
                         uint64_t held_count) {
    uint64_t rounds_count = full_sync->rounds_count;
    unsigned count = 0;
    while (full_sync->rounds_count == rounds_count) {
        struct full_sync_stop stop = next(full_sync, now_us);
        struct full_sync_outcome outcome = {
            .err = err, .missing_count = missing_count, .held_count = held_count};
        full_sync_done(full_sync, &stop, &outcome, *now_us);
        assert_true(count++ < STEPS_MAX);
    }
    return count;
}

/* ---- tests ---- */

static void every_place_but_ours_is_compared_once_a_round(void **state) {
    struct full_sync full_sync = make();
    uint64_t now_us = SECOND;
    struct ring_id reached = {UINT64_MAX, UINT64_MAX};
    (void)state;
    for (unsigned i = 0; i < ARCS; i++) { /* that of the first place has two parts, at zero */
        struct full_sync_stop stop = next(&full_sync, &now_us);
        bool is_behind_own = ring_id_equal(stop.from, place_of(OWN));
        assert_true(is_behind_own || ring_id_equal(stop.from, reached));
        assert_int_equal(stop.is_last, i == ARCS - 1);
        assert_false(ring_id_equal(stop.from, stop.to));
        reached = stop.to;
        full_sync_done(&full_sync, &stop, &(struct full_sync_outcome){.held_count = 1}, now_us);
    }
    assert_true(ring_id_equal(reached, (struct ring_id){UINT64_MAX, UINT64_MAX}));
    assert_int_equal(full_sync.rounds_count, 1);
    assert_int_equal(full_sync.last.stops_count, ARCS);
}

static void the_stops_of_a_round_are_spread_over_the_interval(void **state) {
    struct full_sync full_sync = make();
    uint64_t now_us = SECOND;
    (void)state;
    go_round(&full_sync, &now_us, ERR_OK, 0, 100);
    assert_true(now_us < 2 * SECOND); /* the first one is hurried */
    assert_true(full_sync_is_whole(&full_sync, now_us));
    uint64_t begin_us = now_us;
    go_round(&full_sync, &now_us, ERR_OK, 0, 100);
    assert_true(now_us - begin_us > 3 * MINUTE && now_us - begin_us < 7 * MINUTE);
    go_round(&full_sync, &now_us, ERR_OK, 0, 100);
    assert_false(full_sync_is_whole(&full_sync, now_us + 20 * MINUTE));
    assert_true(full_sync_is_whole(&full_sync, now_us));
    full_sync_doubt(&full_sync);
    assert_false(full_sync_is_whole(&full_sync, now_us));
}

static void where_much_is_missing_the_next_round_comes_soon(void **state) {
    struct full_sync full_sync = make();
    uint64_t now_us = SECOND;
    (void)state;
    for (uint64_t held_count = 100; held_count < 1000; held_count += 100) {
        go_round(&full_sync, &now_us, ERR_OK, 50, held_count);
        assert_false(full_sync_is_whole(&full_sync, now_us));
    }
    assert_true(now_us < 30 * SECOND);
    for (unsigned i = 0; i < 12; i++) { /* nothing comes: less and less often */
        go_round(&full_sync, &now_us, ERR_OK, 50, 900);
    }
    uint64_t begin_us = now_us;
    go_round(&full_sync, &now_us, ERR_OK, 0, 950);
    assert_true(now_us - begin_us > 3 * MINUTE);
    assert_true(full_sync_is_whole(&full_sync, now_us));
}

static void it_is_current_only_where_what_is_new_is_told(void **state) {
    struct full_sync full_sync = make();
    uint64_t now_us = SECOND;
    (void)state;
    go_round(&full_sync, &now_us, ERR_OK, 0, 100);
    assert_true(full_sync_is_current(&full_sync, now_us));
    struct full_sync_stop stop = next(&full_sync, &now_us);
    full_sync_done(&full_sync, &stop, &(struct full_sync_outcome){.held_count = 100, .is_deaf = true},
                   now_us);
    go_round(&full_sync, &now_us, ERR_OK, 0, 100);
    assert_true(full_sync_is_whole(&full_sync, now_us));
    assert_false(full_sync_is_current(&full_sync, now_us));
    go_round(&full_sync, &now_us, ERR_OK, 0, 100);
    assert_true(full_sync_is_current(&full_sync, now_us));
}

static void what_is_new_does_not_hurry_it(void **state) {
    struct full_sync full_sync = make();
    uint64_t now_us = SECOND;
    (void)state;
    go_round(&full_sync, &now_us, ERR_OK, 0, 100000);
    go_round(&full_sync, &now_us, ERR_OK, 3, 100010);
    assert_false(full_sync_is_whole(&full_sync, now_us));
    uint64_t begin_us = now_us;
    go_round(&full_sync, &now_us, ERR_OK, 0, 100020);
    assert_true(now_us - begin_us > 3 * MINUTE);
}

static void each_round_asks_another_holder(void **state) {
    struct full_sync full_sync = make();
    uint64_t now_us = SECOND;
    unsigned asked[3] = {0};
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        struct full_sync_stop stop = next(&full_sync, &now_us);
        asked[stop.index]++;
        full_sync_done(&full_sync, &stop, &(struct full_sync_outcome){.held_count = 100}, now_us);
        while (full_sync.rounds_count == i) {
            stop = next(&full_sync, &now_us);
            full_sync_done(&full_sync, &stop, &(struct full_sync_outcome){.held_count = 100}, now_us);
        }
    }
    assert_int_equal(asked[0], 3); /* of the first arc we are the last of three holders */
    assert_int_equal(asked[1], 3);
}

static void who_is_silent_is_passed_over_for_another_holder(void **state) {
    struct full_sync full_sync = make();
    uint64_t now_us = SECOND;
    (void)state;
    struct full_sync_stop first = next(&full_sync, &now_us);
    full_sync_done(&full_sync, &first, &(struct full_sync_outcome){.err = ERR_TIMEOUT}, now_us);
    struct full_sync_stop second = next(&full_sync, &now_us);
    assert_true(ring_id_equal(first.from, second.from) && first.index != second.index);
    full_sync_done(&full_sync, &second, &(struct full_sync_outcome){.err = ERR_OK}, now_us);
    assert_int_equal(full_sync.now.silent_count, 0);
    struct full_sync_stop third = next(&full_sync, &now_us);
    assert_true(ring_id_equal(third.from, second.to));
}

/* All others are silent: it ends nevertheless, is not whole, and comes back later and later. */
static void a_ring_of_silence_is_asked_less_and_less_often(void **state) {
    struct full_sync full_sync = make();
    uint64_t now_us = SECOND;
    (void)state;
    unsigned asked_count = go_round(&full_sync, &now_us, ERR_UNREACHABLE, 0, 5);
    assert_true(asked_count > ARCS && asked_count <= 3 * ARCS);
    assert_int_equal(full_sync.last.silent_count, ARCS);
    for (unsigned i = 0; i < 12; i++) {
        go_round(&full_sync, &now_us, ERR_UNREACHABLE, 0, 5 + i);
    }
    uint64_t begin_us = now_us;
    go_round(&full_sync, &now_us, ERR_UNREACHABLE, 0, 5);
    assert_true(now_us - begin_us > 3 * MINUTE);
    assert_false(full_sync_is_whole(&full_sync, now_us));
}

static void alone_it_has_everything(void **state) {
    struct full_sync full_sync = make();
    struct full_sync_stop stop;
    struct full_sync_arc arc = {.to = place_of(1), .count = 1, .self_rank = 0};
    (void)state;
    assert_false(full_sync_choose(&full_sync, &arc, SECOND, &stop));
    assert_false(full_sync_choose(&full_sync, &arc, SECOND, &stop));
    assert_int_equal(full_sync.rounds_count, 1);
    assert_true(full_sync_is_whole(&full_sync, SECOND));
    assert_true(full_sync_wake_at(&full_sync) > 3 * MINUTE);
}

/* A comparison of the whole ring would be refused. */
static void an_arc_is_never_the_whole_ring(void **state) {
    struct full_sync full_sync = make();
    struct full_sync_stop stop;
    struct full_sync_arc arc = {.to = {UINT64_MAX, UINT64_MAX}, .count = 1, .self_rank = -1};
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        assert_true(full_sync_choose(&full_sync, &arc, SECOND, &stop));
        assert_false(ring_id_equal(stop.from, stop.to));
        full_sync_done(&full_sync, &stop, &(struct full_sync_outcome){.held_count = 1}, SECOND);
    }
    assert_int_equal(full_sync.rounds_count, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_place_but_ours_is_compared_once_a_round),
        cmocka_unit_test(the_stops_of_a_round_are_spread_over_the_interval),
        cmocka_unit_test(where_much_is_missing_the_next_round_comes_soon),
        cmocka_unit_test(it_is_current_only_where_what_is_new_is_told),
        cmocka_unit_test(what_is_new_does_not_hurry_it),
        cmocka_unit_test(each_round_asks_another_holder),
        cmocka_unit_test(who_is_silent_is_passed_over_for_another_holder),
        cmocka_unit_test(a_ring_of_silence_is_asked_less_and_less_often),
        cmocka_unit_test(alone_it_has_everything),
        cmocka_unit_test(an_arc_is_never_the_whole_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
