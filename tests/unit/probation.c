/* probation: who counts, and what of it outlives the process. */
#include "protocol/copies/probation.h"

#include <stdlib.h>

#include "unit.h"

static const uint64_t MINUTE = UINT64_C(60000000);
static const uint64_t HOUR = UINT64_C(3600000000);
static const uint64_t DAY = UINT64_C(24) * UINT64_C(3600000000);

static struct peer node(uint32_t number) {
    struct peer peer = {.key = {1}};
    memcpy(peer.key + 4, &number, sizeof number);
    return peer;
}

/* Its ring is that old when the node begins, at 0. */
static struct probation *make(uint64_t ring_age_us) {
    struct probation *probation = malloc(sizeof *probation);
    struct probation_config config = {
        .period_us = 3 * DAY, .gap_us_max = 30 * MINUTE, .ring_created_s = 77, .ring_age_us = ring_age_us};
    assert_non_null(probation);
    probation_init(probation, &config, 0);
    return probation;
}

/* It answers every 10 minutes. */
static void be_up(struct probation *probation, struct peer peer, uint64_t from_us, uint64_t to_us) {
    for (uint64_t now_us = from_us; now_us <= to_us; now_us += 10 * MINUTE) {
        probation_note(probation, &peer, ERR_OK, now_us);
    }
}

static void whoever_comes_while_the_ring_is_young_counts(void **state) {
    struct probation *probation = make(2 * DAY);
    struct peer founder = node(1);
    struct peer late = node(2);
    (void)state;
    assert_false(probation_counts(probation, &founder)); /* never met */
    probation_meet(probation, &founder, DAY - 1);
    probation_meet(probation, &late, DAY);
    assert_true(probation_counts(probation, &founder) && !probation_counts(probation, &late));
    assert_true(probation_left_us(probation, &founder) == 0 &&
                probation_left_us(probation, &late) == 3 * DAY);
    free(probation);
}

static void a_node_that_is_new_itself_counts_those_that_it_finds(void **state) {
    struct probation *probation = make(100 * DAY);
    struct peer there = node(1);
    struct peer late = node(2);
    (void)state;
    probation_meet(probation, &there, 10 * MINUTE - 1);
    probation_meet(probation, &late, 10 * MINUTE);
    assert_true(probation_counts(probation, &there) && !probation_counts(probation, &late));
    free(probation);
}

static void a_newcomer_counts_when_it_was_up_for_the_period(void **state) {
    struct probation *probation = make(100 * DAY);
    struct peer peer = node(1);
    (void)state;
    probation_meet(probation, &peer, HOUR);
    be_up(probation, peer, 2 * HOUR, 2 * HOUR + DAY);
    probation_note(probation, &peer, ERR_TIMEOUT, 27 * HOUR); /* down for a day */
    be_up(probation, peer, 2 * DAY, 3 * DAY);
    assert_true(probation_left_us(probation, &peer) == DAY);
    probation_note(probation, &peer, ERR_OK, 3 * DAY + HOUR); /* not asked for too long */
    assert_true(probation_left_us(probation, &peer) == DAY);
    uint64_t generation = probation->generation;
    be_up(probation, peer, 4 * DAY, 5 * DAY - 10 * MINUTE);
    assert_true(!probation_counts(probation, &peer) && probation->generation == generation);
    be_up(probation, peer, 5 * DAY, 5 * DAY);
    assert_true(probation_counts(probation, &peer) && probation->generation > generation);
    probation_note(probation, &peer, ERR_NOT_FOUND, 6 * DAY); /* it says so: no lie */
    probation_note(probation, &peer, ERR_TIMEOUT, 6 * DAY);
    assert_true(probation_counts(probation, &peer));
    probation_note(probation, &peer, ERR_MISMATCH, 6 * DAY);
    assert_true(!probation_counts(probation, &peer) && probation_left_us(probation, &peer) == 3 * DAY);
    free(probation);
}

static void without_a_period_all_count(void **state) {
    struct probation *probation = malloc(sizeof *probation);
    struct peer peer = node(1);
    (void)state;
    probation_init(probation, &(struct probation_config){.ring_age_us = DAY}, 0);
    probation_meet(probation, &peer, DAY);
    assert_true(probation_counts(probation, &peer) && probation->count == 0);
    free(probation);
}

static void fresh_keys_drive_out_nobody_who_counts(void **state) {
    struct probation *probation = make(100 * DAY);
    struct peer patient = node(1000000);
    (void)state;
    for (uint32_t i = 0; i < 100; i++) {
        struct peer peer = node(i);
        probation_meet(probation, &peer, MINUTE);
    }
    probation_meet(probation, &patient, HOUR);
    be_up(probation, patient, HOUR, 10 * HOUR);
    for (uint32_t i = 100; i < 100 + 5 * PROBATION_MAX; i++) {
        struct peer peer = node(i);
        probation_meet(probation, &peer, 10 * HOUR);
        assert_false(probation_counts(probation, &peer));
    }
    for (uint32_t i = 0; i < 100; i++) {
        struct peer peer = node(i);
        assert_true(probation_counts(probation, &peer));
    }
    assert_true(probation_left_us(probation, &patient) == 3 * DAY - 9 * HOUR);
    free(probation);
}

static void a_restart_puts_nobody_on_probation_again(void **state) {
    struct probation *probation = make(100 * DAY);
    struct probation *next = make(101 * DAY);
    struct probation *other = make(101 * DAY);
    uint8_t *memory = malloc(PROBATION_SIZE_MAX);
    struct peer there = node(1);
    struct peer late = node(2);
    struct peer later = node(3);
    (void)state;
    probation_meet(probation, &there, 0);
    probation_meet(probation, &late, HOUR);
    be_up(probation, late, HOUR, 5 * HOUR);
    struct bytes bytes = probation_write(probation, 5 * HOUR, memory);
    assert_int_equal(probation_read(next, bytes, NULL), ERR_OK);
    probation_meet(next, &later, MINUTE); /* these are not the first minutes in which it looks */
    probation_meet(next, &late, MINUTE);
    assert_true(probation_counts(next, &there) && !probation_counts(next, &later));
    assert_true(probation_left_us(next, &late) == 3 * DAY - 4 * HOUR);
    other->config.ring_created_s = 78;
    assert_int_equal(probation_read(other, bytes, NULL), ERR_MISMATCH);
    for (size_t size = 0; size < bytes.size; size++) {
        assert_int_not_equal(probation_read(other, bytes_of(memory, size), NULL), ERR_OK);
    }
    assert_true(other->count == 0);
    for (uint32_t i = 0; i < PROBATION_MAX; i++) { /* there is room for as many as there can be */
        struct peer peer = node(10 + i);
        probation_meet(probation, &peer, 5 * HOUR);
        probation->entries[i].up_us = 3 * DAY - 1;
    }
    bytes = probation_write(probation, 5 * HOUR, memory);
    assert_int_equal(probation_read(next, bytes, NULL), ERR_OK);
    assert_int_equal(next->count, PROBATION_MAX);
    free(memory);
    free(other);
    free(next);
    free(probation);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_comes_while_the_ring_is_young_counts),
        cmocka_unit_test(a_node_that_is_new_itself_counts_those_that_it_finds),
        cmocka_unit_test(a_newcomer_counts_when_it_was_up_for_the_period),
        cmocka_unit_test(without_a_period_all_count),
        cmocka_unit_test(fresh_keys_drive_out_nobody_who_counts),
        cmocka_unit_test(a_restart_puts_nobody_on_probation_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
