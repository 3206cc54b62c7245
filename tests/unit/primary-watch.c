/* guard: a primary that is false or silent is found out by the one behind it, and believed again when it is
 * better. */
#include "protocol/copies/primary_watch.h"

#include "unit.h"

static const uint64_t SECOND = 1000000;
static const uint64_t MINUTE = 60 * 1000000;

static struct primary_watch_arc arc_of(uint8_t number) {
    return (struct primary_watch_arc){
        .primary = {.address = address_ipv4(192, 0, 2, number, 7070), .key = {number}},
        .from = {.high = number},
        .to = {.high = number + UINT64_C(1)},
    };
}

static struct primary_watch make(uint64_t now_us) {
    struct primary_watch primary_watch;
    struct primary_watch_arc arcs[] = {arc_of(1), arc_of(2)};
    primary_watch_init(&primary_watch, &(struct primary_watch_config){.seed = 5});
    primary_watch_set(&primary_watch, arcs, 2, now_us);
    return primary_watch;
}

static void hear(struct primary_watch *primary_watch, uint8_t number, uint64_t now_us) {
    struct primary_watch_arc arc = arc_of(number);
    primary_watch_hear(primary_watch, &arc.primary, now_us);
}

/* The next challenge, at the time when it is due, within so much time. False: none. */
static bool await_challenge(struct primary_watch *primary_watch, uint64_t *now_us, uint64_t within_us,
                            struct primary_watch_arc *ret_arc) {
    uint64_t until_us = *now_us + within_us;
    while (*now_us < until_us) {
        if (primary_watch_next(primary_watch, *now_us, ret_arc)) {
            return true;
        }
        *now_us += SECOND;
    }
    return false;
}

static void who_cannot_prove_it_fails_until_he_can(void **state) {
    uint64_t now_us = MINUTE;
    struct primary_watch primary_watch = make(now_us);
    struct primary_watch_arc arc = {0};
    (void)state;
    assert_int_equal(primary_watch_failing(&primary_watch, now_us), 0);
    do {
        assert_true(await_challenge(&primary_watch, &now_us, 15 * MINUTE, &arc));
    } while (arc.primary.key[0] != 2);
    assert_true(ring_id_equal(arc.to, arc_of(2).to));
    primary_watch_done(&primary_watch, &arc.primary, ERR_MISMATCH, now_us);
    assert_int_equal(primary_watch_failing(&primary_watch, now_us), 2);
    assert_true(primary_watch_fails(&primary_watch, &arc.primary, now_us));

    /* What it can do right after it was caught does not count, and time alone does not help it. */
    primary_watch_done(&primary_watch, &arc.primary, ERR_OK, now_us);
    assert_true(primary_watch_fails(&primary_watch, &arc.primary, now_us));
    uint64_t caught_us = now_us;
    do {
        hear(&primary_watch, 1, now_us);
        hear(&primary_watch, 2, now_us);
        assert_true(await_challenge(&primary_watch, &now_us, 15 * MINUTE, &arc));
    } while (arc.primary.key[0] != 2);
    assert_true(now_us >= caught_us + 30 * MINUTE);
    primary_watch_done(&primary_watch, &arc.primary, ERR_TIMEOUT, now_us);
    assert_true(primary_watch_fails(&primary_watch, &arc.primary, now_us));
    primary_watch_done(&primary_watch, &arc.primary, ERR_OK, now_us);
    assert_int_equal(primary_watch_failing(&primary_watch, now_us), 0);
}

static void who_has_lost_some_in_a_row_fails(void **state) {
    uint64_t now_us = MINUTE;
    struct primary_watch primary_watch = make(now_us);
    struct peer peer = arc_of(1).primary;
    (void)state;
    primary_watch_done(&primary_watch, &peer, ERR_NOT_FOUND, now_us); /* it may be new */
    primary_watch_done(&primary_watch, &peer, ERR_CORRUPT, now_us);
    primary_watch_done(&primary_watch, &peer, ERR_OK, now_us);
    primary_watch_done(&primary_watch, &peer, ERR_NOT_FOUND, now_us);
    primary_watch_done(&primary_watch, &peer, ERR_NOT_FOUND, now_us);
    assert_int_equal(primary_watch_failing(&primary_watch, now_us), 0);
    primary_watch_done(&primary_watch, &peer, ERR_NOT_FOUND, now_us);
    assert_int_equal(primary_watch_failing(&primary_watch, now_us), 1);
}

static void who_never_compares_fails_until_he_does(void **state) {
    uint64_t now_us = MINUTE;
    struct primary_watch primary_watch = make(now_us);
    struct peer peer = arc_of(1).primary;
    (void)state;
    now_us += 119 * MINUTE;
    hear(&primary_watch, 2, now_us);
    assert_int_equal(primary_watch_failing(&primary_watch, now_us), 0);
    now_us += MINUTE;
    assert_int_equal(primary_watch_failing(&primary_watch, now_us), 1);
    peer.address.port = 40000; /* of a stream that it opened */
    primary_watch_hear(&primary_watch, &peer, now_us);
    assert_int_equal(primary_watch_failing(&primary_watch, now_us), 0);
}

static void what_is_known_of_him_outlives_changes_of_the_ring(void **state) {
    uint64_t now_us = MINUTE;
    struct primary_watch primary_watch = make(now_us);
    struct primary_watch_arc arcs[] = {arc_of(3), arc_of(1)};
    (void)state;
    primary_watch_accuse(&primary_watch, &arcs[1].primary, now_us);
    primary_watch_accuse(&primary_watch, &arcs[0].primary, now_us); /* nobody watches it */
    arcs[1].from.low = 7;                                           /* somebody came before it */
    primary_watch_set(&primary_watch, arcs, 2, now_us + MINUTE);
    assert_int_equal(primary_watch_failing(&primary_watch, now_us + MINUTE), 2);
    primary_watch_set(&primary_watch, arcs, 1, now_us + MINUTE);
    assert_int_equal(primary_watch_failing(&primary_watch, now_us + MINUTE), 0);
    primary_watch_set(&primary_watch, arcs, 2, now_us + MINUTE); /* who comes back begins anew */
    assert_int_equal(primary_watch_failing(&primary_watch, now_us + MINUTE), 0);
}

static void more_than_there_is_room_for_are_not_watched(void **state) {
    struct primary_watch primary_watch;
    struct primary_watch_arc arcs[PRIMARY_WATCH_WATCHED_MAX + 1];
    (void)state;
    primary_watch_init(&primary_watch, &(struct primary_watch_config){.seed = 5});
    for (size_t i = 0; i <= PRIMARY_WATCH_WATCHED_MAX; i++) {
        arcs[i] = arc_of((uint8_t)i);
    }
    primary_watch_set(&primary_watch, arcs, PRIMARY_WATCH_WATCHED_MAX + 1, MINUTE);
    for (size_t i = 0; i <= PRIMARY_WATCH_WATCHED_MAX; i++) {
        primary_watch_accuse(&primary_watch, &arcs[i].primary, MINUTE);
    }
    assert_true(primary_watch_failing(&primary_watch, MINUTE) == UINT64_MAX);
    assert_false(primary_watch_fails(&primary_watch, &arcs[PRIMARY_WATCH_WATCHED_MAX].primary, MINUTE));
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
