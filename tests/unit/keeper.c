/* keeper: who is compared when, who counts as a copy, what is surplus. */
#include "protocol/copies/keeper.h"

#include <stdlib.h>
#include <string.h>

#include "keeper-fixture.h"

enum { COPIES = 3, TASKS_MAX = 64 };

/* ---- helpers ---- */

/* The arc (from, to] of ours, before us the node `before`, behind us those named. */
static struct keeper_arc arc(uint64_t from, uint64_t to, uint8_t before, const char *names) {
    struct keeper_arc out = {
        .from = at(from), .to = at(to), .has_predecessor = true, .predecessor = node(before)};
    for (; *names != '\0'; names++) {
        out.peers[out.count++] = node((uint8_t)*names);
    }
    return out;
}

static struct keeper *make(void) {
    struct keeper_config config = {.copies = COPIES, .seed = 7};
    return keeper_init(malloc(keeper_size(&config)), &config, SECOND);
}

static void set(struct keeper *keeper, uint64_t from, uint64_t to, uint8_t before, const char *names,
                uint64_t now_us) {
    struct keeper_arc one = arc(from, to, before, names);
    keeper_set_arcs(keeper, &one, 1, now_us);
}

/* All tasks that are due now, done with this outcome; who they were for, in their order. With who is new, a
 * comparison of a part of the arc goes well before that of all of it, and is not told. */
static const char *work(struct keeper *keeper, uint64_t now_us, enum err err, uint64_t missing_count,
                        enum keeper_task_kind kind, char out[TASKS_MAX]) {
    struct keeper_task task;
    struct keeper_outcome outcome = {.err = err, .missing_there_count = missing_count};
    size_t count = 0;
    while (keeper_next(keeper, now_us, &task)) {
        assert_true(count < TASKS_MAX - 1);
        if (task.kind == kind) {
            if (!task.has_rest || err != ERR_OK) {
                out[count++] = (char)task.peer.key[0];
            }
            keeper_done(keeper, &task, &outcome, now_us);
        } else {
            keeper_done(keeper, &task, &(struct keeper_outcome){.err = ERR_OK}, now_us);
        }
    }
    out[count] = '\0';
    return out;
}

static const char *compare(struct keeper *keeper, uint64_t now_us, char out[TASKS_MAX]) {
    return work(keeper, now_us, ERR_OK, 0, KEEPER_COMPARE, out);
}

static struct keeper_piece_status piece(const struct keeper *keeper, size_t index) {
    struct keeper_piece_status status;
    assert_true(index < keeper_pieces_count(keeper));
    keeper_piece(keeper, index, &status);
    return status;
}

static struct keeper_member_status member(const struct keeper *keeper, size_t index, char name) {
    struct keeper_member_status status;
    for (size_t i = 0; i < piece(keeper, index).members_count; i++) {
        keeper_member(keeper, index, i, &status);
        if (status.peer.key[0] == (uint8_t)name) {
            return status;
        }
    }
    fail_msg("%c is no member", name);
    return status;
}

/* ---- comparisons ---- */

static void compares_new_members_at_once_and_then_at_the_interval(void **state) {
    struct keeper *keeper = make();
    char out[TASKS_MAX];
    (void)state;
    struct keeper_task task;
    assert_false(keeper_next(keeper, SECOND, &task));
    set(keeper, 0x10, 0x20, 'p', "abcd", SECOND);
    assert_int_equal(piece(keeper, 0).level, KEEPER_LOW);
    assert_true(piece(keeper, 0).repairing_since_us > 0);
    assert_string_equal(compare(keeper, SECOND, out), "ab");
    assert_int_equal(piece(keeper, 0).level, KEEPER_WHOLE);
    assert_int_equal(piece(keeper, 0).repairing_since_us, 0);
    assert_true(member(keeper, 0, 'c').is_spare);
    assert_string_equal(compare(keeper, 2 * SECOND, out), "");
    uint64_t wake_us = keeper_wake_at(keeper, 2 * SECOND);
    assert_true(wake_us >= 3 * MINUTE && wake_us <= 7 * MINUTE);
    compare(keeper, 7 * MINUTE, out);
    assert_int_equal(strlen(out), 2);
    free(keeper);
}

static void compares_again_soon_while_something_is_missing(void **state) {
    struct keeper *keeper = make();
    char out[TASKS_MAX];
    (void)state;
    set(keeper, 0x10, 0x20, 'p', "a", SECOND);
    uint64_t now_us = SECOND;
    uint64_t waits[5];
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(work(keeper, now_us, ERR_OK, 100, KEEPER_COMPARE, out), "a");
        assert_int_equal(piece(keeper, 0).missing_count, 100);
        waits[i] = keeper_wake_at(keeper, now_us) - now_us;
        now_us += waits[i];
    }
    assert_int_equal(waits[0], SECOND);
    assert_true(waits[4] > waits[1]); /* it does not get less */
    assert_string_equal(work(keeper, now_us, ERR_OK, 10, KEEPER_COMPARE, out), "a");
    assert_int_equal(keeper_wake_at(keeper, now_us) - now_us, SECOND);
    keeper_moved(keeper, 20, now_us + 20 * SECOND);
    assert_int_equal(piece(keeper, 0).estimate_s > 0, true);
    free(keeper);
}

static void who_is_silent_is_asked_less_and_less(void **state) {
    struct keeper *keeper = make();
    char out[TASKS_MAX];
    (void)state;
    set(keeper, 0x10, 0x20, 'p', "a", SECOND);
    uint64_t now_us = SECOND;
    uint64_t last_us = 0;
    for (unsigned i = 0; i < 5; i++) {
        assert_string_equal(work(keeper, now_us, ERR_TIMEOUT, 0, KEEPER_COMPARE, out), "a");
        uint64_t wait_us = keeper_wake_at(keeper, now_us) - now_us;
        assert_true(wait_us > last_us);
        last_us = wait_us;
        now_us += wait_us;
    }
    assert_int_equal(member(keeper, 0, 'a').silent_count, 5);
    assert_string_equal(compare(keeper, now_us, out), "a");
    assert_int_equal(member(keeper, 0, 'a').silent_count, 0);
    free(keeper);
}

static void one_silence_is_enough_for_all_arcs(void **state) {
    struct keeper *keeper = make();
    struct keeper_arc arcs[] = {arc(0x10, 0x20, 'p', "a"), arc(0x30, 0x40, 'q', "a"),
                                arc(0x50, 0x60, 'r', "a")};
    char out[TASKS_MAX];
    (void)state;
    keeper_set_arcs(keeper, arcs, 3, SECOND);
    assert_string_equal(work(keeper, SECOND, ERR_TIMEOUT, 0, KEEPER_COMPARE, out), "a");
    assert_int_equal(member(keeper, 2, 'a').silent_count, 1);
    assert_string_equal(compare(keeper, 10 * SECOND, out), "aaa");
    assert_int_equal(member(keeper, 2, 'a').silent_count, 0);
    free(keeper);
}

static void compares_what_was_touched(void **state) {
    struct keeper *keeper = make();
    char out[TASKS_MAX];
    (void)state;
    set(keeper, 0x10, 0x20, 'p', "abc", SECOND);
    compare(keeper, SECOND, out);
    struct peer from_elsewhere = node('b');
    from_elsewhere.address.port = 40000;
    keeper_touch(keeper, at(0x30), NULL, 10 * SECOND);
    assert_string_equal(compare(keeper, 10 * SECOND, out), "");
    keeper_touch(keeper, at(0x18), &from_elsewhere, 10 * SECOND);
    assert_string_equal(compare(keeper, 10 * SECOND, out), "b");
    keeper_touch(keeper, at(0x18), NULL, 20 * SECOND);
    compare(keeper, 20 * SECOND, out);
    assert_int_equal(strlen(out), 2);
    keeper_touch(keeper, at(0x18), NULL, 20 * SECOND); /* not more than once a second */
    assert_string_equal(compare(keeper, 20 * SECOND, out), "");
    free(keeper);
}

/* ---- copies ---- */

static void who_is_away_is_replaced_after_the_grace_time(void **state) {
    struct keeper *keeper = make();
    char out[TASKS_MAX];
    (void)state;
    set(keeper, 0x10, 0x20, 'p', "abcd", SECOND);
    compare(keeper, SECOND, out);
    set(keeper, 0x10, 0x20, 'p', "bcd", MINUTE);
    assert_string_equal(compare(keeper, MINUTE, out), "");
    assert_int_equal(piece(keeper, 0).level, KEEPER_AWAY);
    assert_int_equal(piece(keeper, 0).away_count, 1);
    assert_true(keeper_wake_at(keeper, MINUTE) <= MINUTE + HOUR);
    compare(keeper, HOUR, out);
    assert_null(strchr(out, 'c'));
    compare(keeper, HOUR + 2 * MINUTE, out);
    assert_non_null(strchr(out, 'c'));
    assert_int_equal(piece(keeper, 0).level, KEEPER_WHOLE);
    set(keeper, 0x10, 0x20, 'p', "abcd", 2 * HOUR); /* back after all: only what it misses */
    compare(keeper, 2 * HOUR, out);
    assert_non_null(strchr(out, 'a'));
    assert_true(member(keeper, 0, 'c').is_spare);
    free(keeper);
}

static void who_returns_in_time_is_compared_at_once(void **state) {
    struct keeper *keeper = make();
    char out[TASKS_MAX];
    (void)state;
    set(keeper, 0x10, 0x20, 'p', "abcd", SECOND);
    compare(keeper, SECOND, out);
    set(keeper, 0x10, 0x20, 'p', "bcd", MINUTE);
    set(keeper, 0x10, 0x20, 'p', "abcd", 2 * MINUTE);
    assert_string_equal(compare(keeper, 2 * MINUTE, out), "a");
    assert_int_equal(piece(keeper, 0).level, KEEPER_WHOLE);
    free(keeper);
}

static void when_too_many_are_away_they_are_replaced_at_once(void **state) {
    struct keeper *keeper = make();
    char out[TASKS_MAX];
    (void)state;
    set(keeper, 0x10, 0x20, 'p', "abcd", SECOND);
    compare(keeper, SECOND, out);
    set(keeper, 0x10, 0x20, 'p', "bcd", MINUTE);
    set(keeper, 0x10, 0x20, 'p', "cd", 2 * MINUTE);
    assert_string_equal(compare(keeper, 2 * MINUTE, out), "c"); /* for a; b may still be back */
    assert_int_equal(piece(keeper, 0).away_count, 1);
    assert_int_equal(piece(keeper, 0).level, KEEPER_AWAY);
    free(keeper);
}

static void the_former_primary_of_what_we_inherit_counts_as_away(void **state) {
    struct keeper *keeper = make();
    char out[TASKS_MAX];
    (void)state;
    set(keeper, 0x10, 0x20, 'p', "abc", SECOND);
    compare(keeper, SECOND, out);
    set(keeper, 0x08, 0x20, 'o', "abc", MINUTE);
    assert_int_equal(keeper_pieces_count(keeper), 2);
    assert_true(ring_id_equal(piece(keeper, 1).from, at(0x08)));
    assert_true(ring_id_equal(piece(keeper, 1).to, at(0x10)));
    assert_true(member(keeper, 1, 'p').is_away);
    assert_string_equal(compare(keeper, MINUTE, out), "a"); /* not b: p has the third copy */
    assert_int_equal(piece(keeper, 1).level, KEEPER_AWAY);
    set(keeper, 0x04, 0x20, 'n', "abc", 2 * MINUTE); /* o has gone too */
    assert_int_equal(keeper_pieces_count(keeper), 3);
    compare(keeper, 2 * HOUR, out);
    assert_int_equal(keeper_pieces_count(keeper), 1);
    assert_true(ring_id_equal(piece(keeper, 0).from, at(0x04)));
    compare(keeper, 2 * HOUR + MINUTE, out);
    assert_int_equal(piece(keeper, 0).level, KEEPER_WHOLE);
    set(keeper, 0x18, 0x20, 'm', "abc", 2 * HOUR + 2 * MINUTE); /* somebody new takes over */
    assert_int_equal(keeper_pieces_count(keeper), 1);
    assert_true(ring_id_equal(piece(keeper, 0).from, at(0x18)));
    free(keeper);
}

/* He is there, but not relied on (protocol/copies/guard.h): what he has is no copy, and another one is made
 * at once. */
static void a_primary_that_fails_counts_as_no_copy(void **state) {
    struct keeper *keeper = make();
    char out[TASKS_MAX];
    (void)state;
    set(keeper, 0x10, 0x20, 'p', "abc", SECOND);
    compare(keeper, SECOND, out);
    struct keeper_arc guarded = arc(0x08, 0x20, 'o', "abc");
    guarded.is_guarding = true;
    keeper_set_arcs(keeper, &guarded, 1, MINUTE);
    compare(keeper, MINUTE, out);
    compare(keeper, MINUTE + 10 * SECOND, out); /* those that were compared for a part of it */
    assert_int_equal(keeper_pieces_count(keeper), 1);
    assert_true(ring_id_equal(piece(keeper, 0).from, at(0x08)));
    assert_int_equal(piece(keeper, 0).away_count, 0);
    assert_int_equal(piece(keeper, 0).copies_count, COPIES);
    assert_int_equal(piece(keeper, 0).level, KEEPER_WHOLE);
    set(keeper, 0x10, 0x20, 'p', "abc", HOUR); /* he is believed again */
    assert_true(ring_id_equal(piece(keeper, 0).from, at(0x10)));
    assert_int_equal(piece(keeper, 0).level, KEEPER_WHOLE);
    free(keeper);
}

static void the_former_primary_comes_back(void **state) {
    struct keeper *keeper = make();
    char out[TASKS_MAX];
    (void)state;
    set(keeper, 0xf0, 0x20, 'p', "abc", SECOND); /* past the zero of the ring */
    compare(keeper, SECOND, out);
    set(keeper, 0xe0, 0x20, 'o', "abc", MINUTE);
    assert_int_equal(keeper_pieces_count(keeper), 2);
    set(keeper, 0xf0, 0x20, 'p', "abc", 2 * MINUTE);
    assert_int_equal(keeper_pieces_count(keeper), 1);
    assert_true(ring_id_equal(piece(keeper, 0).from, at(0xf0)));
    set(keeper, 0x20, 0x20, 'p', "", 3 * MINUTE); /* alone */
    assert_int_equal(keeper_pieces_count(keeper), 2);
    keeper_set_arcs(keeper, NULL, 0, 4 * MINUTE);
    assert_int_equal(keeper_pieces_count(keeper), 0);
    free(keeper);
}

static void the_next_takes_the_part_of_one_that_is_full(void **state) {
    struct keeper *keeper = make();
    char out[TASKS_MAX];
    struct keeper_task task;
    (void)state;
    set(keeper, 0x10, 0x20, 'p', "abcd", SECOND);
    assert_true(keeper_next(keeper, SECOND, &task));
    assert_int_equal(task.peer.key[0], 'a');
    keeper_done(keeper, &task, &(struct keeper_outcome){.err = ERR_NO_SPACE}, SECOND);
    assert_string_equal(compare(keeper, SECOND, out), "bc");
    assert_true(member(keeper, 0, 'a').is_full);
    assert_int_equal(piece(keeper, 0).level, KEEPER_WHOLE);
    compare(keeper, HOUR, out); /* asked again later */
    assert_non_null(strchr(out, 'a'));
    assert_false(member(keeper, 0, 'a').is_full);
    assert_true(member(keeper, 0, 'c').is_spare);
    free(keeper);
}

/* ---- challenges ---- */

static void who_fails_a_challenge_is_passed_over(void **state) {
    struct keeper *keeper = make();
    char out[TASKS_MAX];
    (void)state;
    set(keeper, 0x10, 0x20, 'p', "abcd", SECOND);
    compare(keeper, SECOND, out);
    work(keeper, 16 * MINUTE, ERR_OK, 0, KEEPER_CHALLENGE, out);
    assert_int_equal(strlen(out), 2);
    struct keeper_task task;
    bool is_caught = false;
    for (unsigned i = 0; i < TASKS_MAX && !is_caught && keeper_next(keeper, 32 * MINUTE, &task); i++) {
        is_caught = task.kind == KEEPER_CHALLENGE && task.peer.key[0] == 'a';
        struct keeper_outcome outcome = {.err = is_caught ? ERR_MISMATCH : ERR_OK};
        keeper_done(keeper, &task, &outcome, 32 * MINUTE);
    }
    assert_true(is_caught);
    assert_true(member(keeper, 0, 'a').is_false);
    assert_int_equal(member(keeper, 0, 'a').failed_count, 1);
    compare(keeper, 32 * MINUTE, out);
    assert_non_null(strchr(out, 'c'));
    free(keeper);
}

/* Compares and challenges until that many challenges were answered so. */
static void challenge(struct keeper *keeper, uint64_t *now_us, enum err err, unsigned count) {
    struct keeper_task task;
    for (unsigned i = 0; count > 0; i++) {
        assert_true(i < 1000);
        *now_us = keeper_wake_at(keeper, *now_us) > *now_us ? keeper_wake_at(keeper, *now_us) : *now_us;
        if (keeper_next(keeper, *now_us, &task)) {
            bool is_challenge = task.kind == KEEPER_CHALLENGE;
            keeper_done(keeper, &task, &(struct keeper_outcome){.err = is_challenge ? err : ERR_OK}, *now_us);
            count -= is_challenge;
        }
    }
}

static void who_says_that_he_has_lost_something_is_compared_and_at_last_not_believed(void **state) {
    struct keeper *keeper = make();
    uint64_t now_us = SECOND;
    (void)state;
    set(keeper, 0x10, 0x20, 'p', "a", SECOND);
    challenge(keeper, &now_us, ERR_NOT_FOUND, 2);
    assert_false(member(keeper, 0, 'a').is_false);
    assert_false(member(keeper, 0, 'a').is_complete);
    assert_true(keeper_wake_at(keeper, now_us) <= now_us);
    challenge(keeper, &now_us, ERR_OK, 1);
    assert_true(member(keeper, 0, 'a').is_complete);
    challenge(keeper, &now_us, ERR_NOT_FOUND, 3);
    assert_true(member(keeper, 0, 'a').is_false);
    assert_int_equal(member(keeper, 0, 'a').failed_count, 1);
    free(keeper);
}

/* ---- surplus ---- */

static bool next_release(struct keeper *keeper, uint64_t now_us, struct keeper_task *ret_task) {
    while (keeper_next(keeper, now_us, ret_task)) {
        if (ret_task->kind == KEEPER_RELEASE) {
            return true;
        }
        keeper_done(keeper, ret_task, &(struct keeper_outcome){.err = ERR_OK}, now_us);
    }
    return false;
}

static void only_what_nobody_claims_is_surplus(void **state) {
    struct keeper *keeper = make();
    struct keeper_task task;
    struct peer primary = node('q');
    (void)state;
    set(keeper, 0x10, 0x20, 'p', "abc", SECOND);
    keeper_claim(keeper, &primary, at(0x20), at(0x30), true, SECOND);
    assert_false(next_release(keeper, 59 * MINUTE, &task)); /* too early to say */
    keeper_claim(keeper, &primary, at(0x20), at(0x30), true, 59 * MINUTE);
    keeper_claim(keeper, &primary, at(0xf0), at(0x08), true, 59 * MINUTE);
    assert_int_equal(keeper_claims_count(keeper), 2);
    assert_true(keeper_is_compared(keeper, at(0x28), &primary, at(0x20), 60 * MINUTE));
    assert_false(keeper_is_compared(keeper, at(0x38), &primary, at(0x20), 60 * MINUTE));
    uint64_t now_us = 61 * MINUTE;
    assert_true(next_release(keeper, now_us, &task));
    assert_true(ring_id_equal(task.from, at(0x08)) && ring_id_equal(task.to, at(0x10)));
    struct keeper_task other;
    assert_false(next_release(keeper, now_us, &other)); /* one at a time */
    keeper_done(keeper, &task, &(struct keeper_outcome){.err = ERR_OK}, now_us);
    assert_true(next_release(keeper, now_us, &task));
    assert_true(ring_id_equal(task.from, at(0x30)) && ring_id_equal(task.to, at(0xf0)));
    keeper_done(keeper, &task,
                &(struct keeper_outcome){.err = ERR_OK, .is_partial = true, .reached = at(0x40)}, now_us);
    assert_true(next_release(keeper, now_us, &task));
    assert_true(ring_id_equal(task.from, at(0x40)));
    keeper_done(keeper, &task, &(struct keeper_outcome){.err = ERR_OK}, now_us);
    assert_false(next_release(keeper, now_us, &task));
    now_us = 130 * MINUTE; /* the claims are over */
    assert_true(next_release(keeper, now_us, &task));
    assert_true(ring_id_equal(task.from, at(0)) && ring_id_equal(task.to, at(0x10)));
    free(keeper);
}

static void who_keeps_everything_has_no_surplus(void **state) {
    struct keeper_config config = {.copies = COPIES, .seed = 7, .keeps_everything = true};
    struct keeper *keeper = keeper_init(malloc(keeper_size(&config)), &config, SECOND);
    struct keeper_task task;
    (void)state;
    set(keeper, 0x10, 0x20, 'p', "abc", SECOND);
    assert_false(next_release(keeper, 3 * HOUR, &task));
    assert_true(keeper_wake_at(keeper, 3 * HOUR) > 3 * HOUR); /* and nothing waits to be looked for */
    free(keeper);
}

static void a_claim_is_no_comparison_until_it_was_equal(void **state) {
    struct keeper *keeper = make();
    struct peer primary = node('q');
    (void)state;
    keeper_claim(keeper, &primary, at(0x20), at(0x30), false, SECOND);
    assert_false(keeper_is_compared(keeper, at(0x28), &primary, at(0x20), SECOND));
    keeper_claim(keeper, &primary, at(0x20), at(0x30), true, MINUTE);
    assert_true(keeper_is_compared(keeper, at(0x28), &primary, at(0x20), MINUTE));
    keeper_claim(keeper, &primary, at(0x20), at(0x30), false, 2 * MINUTE);
    assert_true(
        keeper_is_compared(keeper, at(0x28), &primary, at(0x20), 2 * MINUTE)); /* what is new is on its way */
    keeper_doubt(keeper, at(0x28), &primary); /* something of it did not come */
    assert_false(keeper_is_compared(keeper, at(0x28), &primary, at(0x20), 2 * MINUTE));
    keeper_claim(keeper, &primary, at(0x20), at(0x30), true, 3 * MINUTE);
    assert_true(keeper_is_compared(keeper, at(0x28), &primary, at(0x20), 3 * MINUTE));
    assert_false(keeper_is_compared(keeper, at(0x28), &primary, at(0x20), 20 * MINUTE));
    struct peer next = node('r');
    assert_false(
        keeper_is_compared(keeper, at(0x28), &next, at(0x20), 3 * MINUTE)); /* he is no primary now */
    assert_false(
        keeper_is_compared(keeper, at(0x28), &primary, at(0x24), 3 * MINUTE)); /* one came in before */
    assert_true(
        keeper_is_compared(keeper, at(0x28), &primary, at(0x1c), 3 * MINUTE)); /* a piece of his arc */
    keeper_claim(keeper, &primary, at(0x18), at(0x30), false, 4 * MINUTE);     /* it has grown */
    assert_false(keeper_is_compared(keeper, at(0x28), &primary, at(0x20), 4 * MINUTE));
    free(keeper);
}

static void claims_are_bounded(void **state) {
    struct keeper_config config = {.copies = COPIES, .claims_max = 4};
    struct keeper *keeper = keeper_init(malloc(keeper_size(&config)), &config, SECOND);
    (void)state;
    for (uint8_t i = 1; i < 100; i++) {
        struct peer liar = node(i);
        keeper_claim(keeper, &liar, at(0), at(i), true, SECOND);
    }
    assert_int_equal(keeper_claims_count(keeper), 4);
    struct peer primary = node('q');
    keeper_claim(keeper, &primary, at(0x80), at(0x90), true, 2 * HOUR);
    assert_true(keeper_is_compared(keeper, at(0x88), &primary, at(0x80), 2 * HOUR));
    free(keeper);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compares_new_members_at_once_and_then_at_the_interval),
        cmocka_unit_test(compares_again_soon_while_something_is_missing),
        cmocka_unit_test(who_is_silent_is_asked_less_and_less),
        cmocka_unit_test(one_silence_is_enough_for_all_arcs),
        cmocka_unit_test(compares_what_was_touched),
        cmocka_unit_test(who_is_away_is_replaced_after_the_grace_time),
        cmocka_unit_test(who_returns_in_time_is_compared_at_once),
        cmocka_unit_test(when_too_many_are_away_they_are_replaced_at_once),
        cmocka_unit_test(the_former_primary_of_what_we_inherit_counts_as_away),
        cmocka_unit_test(a_primary_that_fails_counts_as_no_copy),
        cmocka_unit_test(the_former_primary_comes_back),
        cmocka_unit_test(the_next_takes_the_part_of_one_that_is_full),
        cmocka_unit_test(who_fails_a_challenge_is_passed_over),
        cmocka_unit_test(who_says_that_he_has_lost_something_is_compared_and_at_last_not_believed),
        cmocka_unit_test(only_what_nobody_claims_is_surplus),
        cmocka_unit_test(who_keeps_everything_has_no_surplus),
        cmocka_unit_test(a_claim_is_no_comparison_until_it_was_equal),
        cmocka_unit_test(claims_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
