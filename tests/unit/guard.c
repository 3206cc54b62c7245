/* guard: a primary that is false or silent is found out by the one behind it, and believed again when it is
 * better. */
#include "protocol/copies/guard.h"

#include "unit.h"

static const uint64_t SECOND = 1000000;
static const uint64_t MINUTE = 60 * 1000000;

static struct guard_arc arc_of(uint8_t number) {
    return (struct guard_arc){
        .primary = {.address = address_ipv4(192, 0, 2, number, 7070), .key = {number}},
        .from = {.high = number},
        .to = {.high = number + UINT64_C(1)},
    };
}

static struct guard make(uint64_t now_us) {
    struct guard guard;
    struct guard_arc arcs[] = {arc_of(1), arc_of(2)};
    guard_init(&guard, &(struct guard_config){.seed = 5});
    guard_set(&guard, arcs, 2, now_us);
    return guard;
}

static void hear(struct guard *guard, uint8_t number, uint64_t now_us) {
    struct guard_arc arc = arc_of(number);
    guard_hear(guard, &arc.primary, now_us);
}

/* The next challenge, at the time when it is due, within so much time. False: none. */
static bool await_challenge(struct guard *guard, uint64_t *now_us, uint64_t within_us,
                            struct guard_arc *ret_arc) {
    uint64_t until_us = *now_us + within_us;
    while (*now_us < until_us) {
        if (guard_next(guard, *now_us, ret_arc)) {
            return true;
        }
        *now_us += SECOND;
    }
    return false;
}

static void who_cannot_prove_it_fails_until_he_can(void **state) {
    uint64_t now_us = MINUTE;
    struct guard guard = make(now_us);
    struct guard_arc arc = {0};
    (void)state;
    assert_int_equal(guard_failing(&guard, now_us), 0);
    do {
        assert_true(await_challenge(&guard, &now_us, 15 * MINUTE, &arc));
    } while (arc.primary.key[0] != 2);
    assert_true(ring_id_equal(arc.to, arc_of(2).to));
    guard_done(&guard, &arc.primary, ERR_MISMATCH, now_us);
    assert_int_equal(guard_failing(&guard, now_us), 2);
    assert_true(guard_fails(&guard, &arc.primary, now_us));

    /* What he can do right after he was caught does not count, and time alone does not help him. */
    guard_done(&guard, &arc.primary, ERR_OK, now_us);
    assert_true(guard_fails(&guard, &arc.primary, now_us));
    uint64_t caught_us = now_us;
    do {
        hear(&guard, 1, now_us);
        hear(&guard, 2, now_us);
        assert_true(await_challenge(&guard, &now_us, 15 * MINUTE, &arc));
    } while (arc.primary.key[0] != 2);
    assert_true(now_us >= caught_us + 30 * MINUTE);
    guard_done(&guard, &arc.primary, ERR_TIMEOUT, now_us);
    assert_true(guard_fails(&guard, &arc.primary, now_us));
    guard_done(&guard, &arc.primary, ERR_OK, now_us);
    assert_int_equal(guard_failing(&guard, now_us), 0);
}

static void who_has_lost_some_in_a_row_fails(void **state) {
    uint64_t now_us = MINUTE;
    struct guard guard = make(now_us);
    struct peer peer = arc_of(1).primary;
    (void)state;
    guard_done(&guard, &peer, ERR_NOT_FOUND, now_us); /* it may be new */
    guard_done(&guard, &peer, ERR_CORRUPT, now_us);
    guard_done(&guard, &peer, ERR_OK, now_us);
    guard_done(&guard, &peer, ERR_NOT_FOUND, now_us);
    guard_done(&guard, &peer, ERR_NOT_FOUND, now_us);
    assert_int_equal(guard_failing(&guard, now_us), 0);
    guard_done(&guard, &peer, ERR_NOT_FOUND, now_us);
    assert_int_equal(guard_failing(&guard, now_us), 1);
}

static void who_never_compares_fails_until_he_does(void **state) {
    uint64_t now_us = MINUTE;
    struct guard guard = make(now_us);
    struct peer peer = arc_of(1).primary;
    (void)state;
    now_us += 119 * MINUTE;
    hear(&guard, 2, now_us);
    assert_int_equal(guard_failing(&guard, now_us), 0);
    now_us += MINUTE;
    assert_int_equal(guard_failing(&guard, now_us), 1);
    peer.address.port = 40000; /* of a stream that he opened */
    guard_hear(&guard, &peer, now_us);
    assert_int_equal(guard_failing(&guard, now_us), 0);
}

static void what_is_known_of_him_outlives_changes_of_the_ring(void **state) {
    uint64_t now_us = MINUTE;
    struct guard guard = make(now_us);
    struct guard_arc arcs[] = {arc_of(3), arc_of(1)};
    (void)state;
    guard_accuse(&guard, &arcs[1].primary, now_us);
    guard_accuse(&guard, &arcs[0].primary, now_us); /* nobody watches him */
    arcs[1].from.low = 7;                           /* somebody came before him */
    guard_set(&guard, arcs, 2, now_us + MINUTE);
    assert_int_equal(guard_failing(&guard, now_us + MINUTE), 2);
    guard_set(&guard, arcs, 1, now_us + MINUTE);
    assert_int_equal(guard_failing(&guard, now_us + MINUTE), 0);
    guard_set(&guard, arcs, 2, now_us + MINUTE); /* who comes back begins anew */
    assert_int_equal(guard_failing(&guard, now_us + MINUTE), 0);
}

static void more_than_there_is_room_for_are_not_watched(void **state) {
    struct guard guard;
    struct guard_arc arcs[GUARD_WATCHED_MAX + 1];
    (void)state;
    guard_init(&guard, &(struct guard_config){.seed = 5});
    for (size_t i = 0; i <= GUARD_WATCHED_MAX; i++) {
        arcs[i] = arc_of((uint8_t)i);
    }
    guard_set(&guard, arcs, GUARD_WATCHED_MAX + 1, MINUTE);
    for (size_t i = 0; i <= GUARD_WATCHED_MAX; i++) {
        guard_accuse(&guard, &arcs[i].primary, MINUTE);
    }
    assert_true(guard_failing(&guard, MINUTE) == UINT64_MAX);
    assert_false(guard_fails(&guard, &arcs[GUARD_WATCHED_MAX].primary, MINUTE));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_cannot_prove_it_fails_until_he_can),
        cmocka_unit_test(who_has_lost_some_in_a_row_fails),
        cmocka_unit_test(who_never_compares_fails_until_he_does),
        cmocka_unit_test(what_is_known_of_him_outlives_changes_of_the_ring),
        cmocka_unit_test(more_than_there_is_room_for_are_not_watched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
