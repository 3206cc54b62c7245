/* keeper: after cuts and losses. Comparisons that go on where the last one ended, what is handed on, who was
 * only displaced, who is heard of again. */
#include "copy-plan-fixture.h"
#include "protocol/copies/copy_plan_state.h"

#include <stdlib.h>

enum { COPIES = 3, NAMES_MAX = 16 };

/* ---- helpers ---- */

static struct ringkey key_at(uint64_t high) {
    struct ringkey key = {0};
    ring_id_write(at(high), key.bytes);
    return key;
}

static struct copy_plan *make(void) {
    struct copy_plan_config config = {.copies = COPIES, .seed = 7};
    return copy_plan_init(malloc(copy_plan_size(&config)), &config, SECOND);
}

/* We have (from, to], and those named follow us. */
static void set(struct copy_plan *copy_plan, uint64_t from, uint64_t to, const char *names, uint64_t now_us) {
    struct copy_plan_arc arc = {
        .from = at(from), .to = at(to), .has_predecessor = true, .predecessor = node('p')};
    for (; *names != '\0'; names++) {
        arc.peers[arc.count++] = node((uint8_t)*names);
    }
    copy_plan_set_arcs(copy_plan, &arc, 1, now_us);
}

static void done(struct copy_plan *copy_plan, const struct copy_plan_task *task, enum err err,
                 uint64_t now_us) {
    copy_plan_done(copy_plan, task, &(struct copy_plan_outcome){.err = err}, now_us);
}

/* The same, and who is new has been compared from its own place on: now comes all of the arc. */
static void set_one(struct copy_plan *copy_plan, uint64_t now_us) {
    struct copy_plan_task task;
    set(copy_plan, 0x10, 0x80, "a", now_us);
    assert_true(copy_plan_next(copy_plan, now_us, &task));
    assert_true(task.has_rest);
    done(copy_plan, &task, ERR_OK, now_us);
}

/* All that is due goes well; of whom the whole arc was compared. */
static const char *compare_all(struct copy_plan *copy_plan, uint64_t now_us, char out[NAMES_MAX]) {
    struct copy_plan_task task;
    size_t count = 0;
    while (copy_plan_next(copy_plan, now_us, &task)) {
        assert_true(count < NAMES_MAX - 1);
        if (task.kind == COPY_PLAN_COMPARE && !task.has_rest) {
            out[count++] = (char)task.peer.key[0];
        }
        done(copy_plan, &task, ERR_OK, now_us);
    }
    out[count] = '\0';
    return out;
}

/* The next task of this kind that is due within a time; others go well. */
static bool next_of(struct copy_plan *copy_plan, enum copy_plan_task_kind kind, uint64_t *now_us,
                    uint64_t within_us, struct copy_plan_task *ret_task) {
    uint64_t end_us = *now_us + within_us;
    for (unsigned i = 0; i < 1000 && *now_us <= end_us; i++) {
        while (copy_plan_next(copy_plan, *now_us, ret_task)) {
            if (ret_task->kind == kind) {
                return true;
            }
            done(copy_plan, ret_task, ERR_OK, *now_us);
        }
        uint64_t wake_us = copy_plan_wake_at(copy_plan, *now_us);
        *now_us = wake_us > *now_us ? wake_us : *now_us + 1;
    }
    return false;
}

/* The comparison that is due now ends at a key, and there was more. Returns how long it is until the next. */
static uint64_t cap(struct copy_plan *copy_plan, uint64_t *now_us, uint64_t rest) {
    struct copy_plan_task task;
    struct copy_plan_outcome outcome = {
        .err = ERR_OK, .missing_there_count = 8192, .is_capped = true, .rest = key_at(rest)};
    assert_true(copy_plan_next(copy_plan, *now_us, &task));
    assert_int_equal(task.kind, COPY_PLAN_COMPARE);
    copy_plan_done(copy_plan, &task, &outcome, *now_us);
    uint64_t wait_us = copy_plan_wake_at(copy_plan, *now_us) - *now_us;
    *now_us += wait_us;
    return wait_us;
}

/* ---- more than can be taken at once ---- */

static void a_comparison_that_was_capped_is_followed_at_once_by_the_next(void **state) {
    struct copy_plan *copy_plan = make();
    uint64_t now_us = SECOND;
    struct copy_plan_task task;
    (void)state;
    set_one(copy_plan, now_us);
    for (uint64_t rest = 0x18; rest <= 0x78; rest += 8) { /* as much is missing as before, each time */
        assert_true(cap(copy_plan, &now_us, rest) <= SECOND);
        assert_true(copy_plan_next(copy_plan, now_us, &task));
        struct ringkey expected = key_at(rest);
        assert_true(task.has_rest);
        assert_memory_equal(&task.rest, &expected, sizeof expected);
        assert_true(ring_id_equal(task.from, at(0x10)) && ring_id_equal(task.to, at(0x80)));
        copy_plan_done(
            copy_plan, &task,
            &(struct copy_plan_outcome){.err = ERR_OK, .is_capped = true, .rest = key_at(rest + 4)}, now_us);
        now_us += SECOND;
    }
    assert_true(copy_plan_next(copy_plan, now_us, &task));
    done(copy_plan, &task, ERR_OK, now_us);
    struct copy_plan_member_status member;
    copy_plan_member(copy_plan, 0, 0, &member);
    assert_false(member.is_complete); /* what was found is still on its way */
    now_us += SECOND;
    assert_true(copy_plan_next(copy_plan, now_us, &task));
    assert_false(task.has_rest); /* all of it once more */
    done(copy_plan, &task, ERR_OK, now_us);
    copy_plan_member(copy_plan, 0, 0, &member);
    assert_true(member.is_complete);
    free(copy_plan);
}

static void what_comes_is_given_the_time_to_come(void **state) {
    struct copy_plan *copy_plan = make();
    struct copy_plan_task task;
    uint64_t now_us = SECOND;
    struct copy_plan_outcome outcome = {.err = ERR_OK, .missing_there_count = 9000, .coming_count = 5000};
    (void)state;
    set_one(copy_plan, now_us);
    for (unsigned i = 0; i < 3; i++) { /* a millisecond each, but not for ever */
        assert_true(copy_plan_next(copy_plan, now_us, &task));
        copy_plan_done(copy_plan, &task, &outcome, now_us);
        uint64_t wait_us = copy_plan_wake_at(copy_plan, now_us) - now_us;
        assert_int_equal(wait_us, i == 0 ? 5 * SECOND : i == 1 ? SECOND : 15 * SECOND);
        outcome.coming_count = i == 0 ? 10 : 1000000;
        outcome.missing_there_count /= 2;
        now_us += wait_us;
    }
    free(copy_plan);
}

static void one_that_gets_no_further_waits_longer_each_time(void **state) {
    struct copy_plan *copy_plan = make();
    uint64_t now_us = SECOND;
    uint64_t last_us = 0;
    (void)state;
    set_one(copy_plan, now_us);
    assert_int_equal(cap(copy_plan, &now_us, 0x20), SECOND);
    assert_int_equal(cap(copy_plan, &now_us, 0x20), SECOND); /* it had no room */
    for (unsigned i = 0; i < 10; i++) {
        uint64_t wait_us = cap(copy_plan, &now_us, 0x20);
        assert_true(wait_us >= last_us && wait_us <= 15 * SECOND);
        last_us = wait_us;
    }
    assert_int_equal(last_us, 15 * SECOND);
    assert_int_equal(cap(copy_plan, &now_us, 0x21), SECOND); /* it has again */
    free(copy_plan);
}

/* It wants everything that it is offered, and fetches nothing. */
static void who_never_takes_what_he_wants_is_not_asked_for_ever(void **state) {
    struct copy_plan *copy_plan = make();
    uint64_t now_us = SECOND;
    uint64_t wait_us = 0;
    struct copy_plan_task task;
    (void)state;
    set_one(copy_plan, now_us);
    for (unsigned pass = 0; pass < 10; pass++) {
        cap(copy_plan, &now_us, 0x20);
        cap(copy_plan, &now_us, 0x40);
        assert_true(copy_plan_next(copy_plan, now_us, &task));
        copy_plan_done(copy_plan, &task,
                       &(struct copy_plan_outcome){.err = ERR_OK, .missing_there_count = 100}, now_us);
        uint64_t last_us = wait_us;
        wait_us = copy_plan_wake_at(copy_plan, now_us) - now_us;
        assert_true(wait_us >= last_us);
        now_us += wait_us;
    }
    assert_int_equal(wait_us, MINUTE);
    free(copy_plan);
}

static void readers_are_not_told_that_all_is_here_before_it_was_looked_at(void **state) {
    struct copy_plan *copy_plan = make();
    uint64_t now_us = SECOND;
    struct peer self = node('s');
    char out[NAMES_MAX];
    (void)state;
    set_one(copy_plan, now_us);
    cap(copy_plan, &now_us, 0x20);
    assert_false(copy_plan_is_compared(copy_plan, at(0x18), &self, at(0x10), now_us));
    compare_all(copy_plan, now_us, out);
    assert_true(copy_plan_is_compared(copy_plan, at(0x18), &self, at(0x10), now_us));
    free(copy_plan);
}

static void who_was_away_is_compared_anew(void **state) {
    struct copy_plan *copy_plan = make();
    uint64_t now_us = SECOND;
    struct copy_plan_task task;
    struct ringkey rest = key_at(0x20);
    (void)state;
    set_one(copy_plan, now_us);
    cap(copy_plan, &now_us, 0x20);
    set(copy_plan, 0x10, 0x80, "", now_us);
    set(copy_plan, 0x10, 0x80, "a", now_us + SECOND);
    assert_true(copy_plan_next(copy_plan, now_us + SECOND, &task));
    assert_memory_not_equal(&task.rest, &rest, sizeof rest);
    done(copy_plan, &task, ERR_OK, now_us + SECOND);
    assert_true(copy_plan_next(copy_plan, now_us + SECOND, &task));
    assert_false(task.has_rest);
    done(copy_plan, &task, ERR_OK, now_us + SECOND);
    free(copy_plan);
}

/* So that not all who are filled at the same time lack the end of the arc. */
static void who_is_new_is_first_compared_from_a_place_of_his_own(void **state) {
    struct copy_plan *copy_plan = make();
    struct copy_plan_task tasks[2];
    struct peer self = node('s');
    char out[NAMES_MAX];
    (void)state;
    set(copy_plan, 0xf0, 0x20, "abc", SECOND); /* past the zero of the ring */
    for (unsigned i = 0; i < 2; i++) {
        assert_true(copy_plan_next(copy_plan, SECOND, &tasks[i]));
        assert_true(tasks[i].has_rest);
        assert_true(ring_id_is_owned(at(0xf0), ring_id_read(tasks[i].rest.bytes), at(0x20)));
    }
    assert_memory_not_equal(&tasks[0].rest, &tasks[1].rest, sizeof tasks[0].rest);
    done(copy_plan, &tasks[0], ERR_OK, SECOND);
    done(copy_plan, &tasks[1], ERR_OK, SECOND);
    assert_false(
        copy_plan_is_compared(copy_plan, at(0x10), &self, at(0xf0), SECOND)); /* that was a part of it */
    assert_string_equal(compare_all(copy_plan, SECOND, out), "ab");
    assert_true(copy_plan_is_compared(copy_plan, at(0x10), &self, at(0xf0), SECOND));
    free(copy_plan);
}

/* ---- what was ours ---- */

static void what_was_ours_is_handed_on_part_by_part(void **state) {
    struct copy_plan *copy_plan = make();
    uint64_t now_us = SECOND;
    struct copy_plan_task task;
    char out[NAMES_MAX];
    (void)state;
    set(copy_plan, 0xf0, 0x40, "abc", now_us);
    compare_all(copy_plan, now_us, out);
    set(copy_plan, 0x30, 0x40, "abc", now_us); /* many came in between */
    assert_int_equal(copy_plan->left_count, 1);
    assert_true(next_of(copy_plan, COPY_PLAN_HAND_ON, &now_us, 4 * SECOND, &task));
    assert_true(now_us > 2 * SECOND); /* they may come by themselves */
    assert_true(ring_id_equal(task.from, at(0xf0)) && ring_id_equal(task.to, at(0x30)));
    struct copy_plan_outcome outcome = {.err = ERR_OK, .missing_there_count = 5, .is_partial = true};
    outcome.reached = at(0x08);
    copy_plan_done(copy_plan, &task, &outcome, now_us);
    assert_true(next_of(copy_plan, COPY_PLAN_HAND_ON, &now_us, SECOND, &task)); /* has it come? */
    assert_true(ring_id_equal(task.from, at(0xf0)));
    outcome.missing_there_count = 0;
    copy_plan_done(copy_plan, &task, &outcome, now_us);
    struct peer other = node('q');
    copy_plan_claim(copy_plan, &other, at(0x08), at(0x20), false, now_us); /* it came by itself */
    assert_true(next_of(copy_plan, COPY_PLAN_HAND_ON, &now_us, SECOND, &task));
    assert_true(ring_id_equal(task.from, at(0x20)) && ring_id_equal(task.to, at(0x30)));
    done(copy_plan, &task, ERR_OK, now_us);
    assert_int_equal(copy_plan->left_count, 0);
    free(copy_plan);
}

static void not_what_its_primary_has_compared_with_us_since(void **state) {
    struct copy_plan *copy_plan = make();
    uint64_t now_us = SECOND;
    struct copy_plan_task task;
    struct peer next = node('q');
    char out[NAMES_MAX];
    (void)state;
    set(copy_plan, 0x10, 0x40, "abc", now_us);
    compare_all(copy_plan, now_us, out);
    copy_plan_claim(copy_plan, &next, at(0x10), at(0x30), true, now_us);
    now_us += SECOND;
    set(copy_plan, 0x30, 0x40, "abc", now_us);
    assert_int_equal(copy_plan->left_count, 1); /* that was before */
    copy_plan_claim(copy_plan, &next, at(0x10), at(0x30), false, now_us);
    assert_false(next_of(copy_plan, COPY_PLAN_HAND_ON, &now_us, MINUTE, &task));
    assert_int_equal(copy_plan->left_count, 0);
    free(copy_plan);
}

static void nor_what_is_ours_again(void **state) {
    struct copy_plan *copy_plan = make();
    uint64_t now_us = SECOND;
    struct copy_plan_task task;
    (void)state;
    set(copy_plan, 0x10, 0x40, "abc", now_us);
    for (unsigned i = 0; i < 100; i++) { /* one entry, however often somebody comes and goes */
        set(copy_plan, 0x30, 0x40, "abc", now_us);
        set(copy_plan, 0x10, 0x40, "abc", now_us);
        assert_int_equal(copy_plan->left_count, 1);
    }
    assert_false(next_of(copy_plan, COPY_PLAN_HAND_ON, &now_us, MINUTE, &task));
    free(copy_plan);
}

static void where_nobody_takes_it_we_try_less_often_and_then_it_is_surplus(void **state) {
    struct copy_plan *copy_plan = make();
    uint64_t now_us = SECOND;
    struct copy_plan_task task;
    unsigned count = 0;
    (void)state;
    set(copy_plan, 0x10, 0x40, "abc", now_us);
    set(copy_plan, 0x30, 0x40, "abc", now_us);
    while (next_of(copy_plan, COPY_PLAN_HAND_ON, &now_us, HOUR, &task)) {
        done(copy_plan, &task, ERR_TIMEOUT, now_us);
        count++;
    }
    assert_true(count > 5 && count < 30);
    assert_int_equal(copy_plan->left_count, 0);
    free(copy_plan);
}

/* ---- who counts as away ---- */

static void who_is_only_displaced_is_not_away(void **state) {
    struct copy_plan *copy_plan = make();
    struct copy_plan_piece_status piece;
    char out[NAMES_MAX];
    (void)state;
    set(copy_plan, 0x10, 0x20, "abcdef", SECOND);
    assert_string_equal(compare_all(copy_plan, SECOND, out), "ab");
    set(copy_plan, 0x10, 0x20, "ghijkl", 2 * SECOND);
    assert_string_equal(compare_all(copy_plan, 2 * SECOND, out), "gh");
    copy_plan_piece(copy_plan, 0, &piece);
    assert_int_equal(piece.away_count, 0);
    assert_int_equal(piece.level, COPY_PLAN_WHOLE);
    set(copy_plan, 0x10, 0x20, "hijklm", 3 * SECOND); /* but g has gone, for the others moved up */
    copy_plan_piece(copy_plan, 0, &piece);
    assert_int_equal(piece.away_count, 1);
    assert_int_equal(piece.level, COPY_PLAN_AWAY);
    free(copy_plan);
}

/* ---- who is heard of ---- */

static void who_asks_us_is_asked_again_soon(void **state) {
    struct copy_plan *copy_plan = make();
    uint64_t now_us = SECOND;
    struct copy_plan_task task;
    struct peer peer = node('a');
    (void)state;
    set(copy_plan, 0x10, 0x20, "a", now_us);
    for (unsigned i = 0; i < 8; i++) {
        assert_true(next_of(copy_plan, COPY_PLAN_COMPARE, &now_us, HOUR, &task));
        done(copy_plan, &task, ERR_TIMEOUT, now_us);
    }
    uint64_t silent_us = now_us;
    assert_true(copy_plan_wake_at(copy_plan, now_us) > now_us + 2 * MINUTE);
    copy_plan_hear(copy_plan, &peer, now_us + SECOND);
    uint64_t wake_us = copy_plan_wake_at(copy_plan, now_us + SECOND);
    assert_true(wake_us > silent_us + 20 * SECOND && wake_us < silent_us + 40 * SECOND);
    copy_plan_hear(copy_plan, &peer, now_us + MINUTE);
    assert_true(copy_plan_wake_at(copy_plan, now_us + MINUTE) <= now_us + MINUTE);
    free(copy_plan);
}

/* ---- those who follow the holders ---- */

/* How a task goes where b, a holder, lacks something all the time. */
static void repair(struct copy_plan *copy_plan, const struct copy_plan_task *task, uint64_t now_us) {
    bool is_b = task->peer.key[0] == 'b' && task->kind == COPY_PLAN_COMPARE;
    struct copy_plan_outcome outcome = {.err = ERR_OK, .missing_there_count = is_b ? 100 : 0};
    copy_plan_done(copy_plan, task, &outcome, now_us);
}

/* Names of those who were asked until then. */
static const char *repair_until(struct copy_plan *copy_plan, uint64_t *now_us, uint64_t until_us,
                                char out[NAMES_MAX]) {
    struct copy_plan_task task;
    size_t count = 0;
    for (; *now_us < until_us; *now_us += SECOND) {
        while (copy_plan_next(copy_plan, *now_us, &task)) {
            if (task.kind == COPY_PLAN_ASK && !task.has_rest) {
                assert_true(count < NAMES_MAX - 1);
                out[count++] = (char)task.peer.key[0];
            }
            repair(copy_plan, &task, *now_us);
        }
    }
    out[count] = '\0';
    return out;
}

static void where_a_repair_takes_long_those_behind_the_holders_are_asked(void **state) {
    struct copy_plan *copy_plan = make();
    uint64_t now_us = SECOND;
    char out[NAMES_MAX];
    (void)state;
    set(copy_plan, 0x10, 0x80, "abcd", now_us);
    assert_string_equal(repair_until(copy_plan, &now_us, 30 * SECOND, out), "");
    assert_string_equal(repair_until(copy_plan, &now_us, 60 * SECOND, out), "cd");
    assert_string_equal(repair_until(copy_plan, &now_us, 3 * MINUTE, out), ""); /* again at the interval */
    assert_int_equal(strlen(repair_until(copy_plan, &now_us, 8 * MINUTE, out)), 2);
    free(copy_plan);
}

static void but_not_where_all_is_whole(void **state) {
    struct copy_plan *copy_plan = make();
    uint64_t now_us = SECOND;
    struct copy_plan_task task;
    char out[NAMES_MAX];
    (void)state;
    set(copy_plan, 0x10, 0x80, "abcd", now_us);
    assert_string_equal(compare_all(copy_plan, now_us, out), "ab");
    assert_false(next_of(copy_plan, COPY_PLAN_ASK, &now_us, HOUR, &task));
    free(copy_plan);
}

static void who_becomes_a_holder_while_he_is_asked_is_compared_at_once(void **state) {
    struct copy_plan *copy_plan = make();
    uint64_t now_us = SECOND;
    struct copy_plan_task asked;
    struct copy_plan_task task;
    char out[NAMES_MAX];
    (void)state;
    set(copy_plan, 0x10, 0x80, "abc", now_us);
    repair_until(copy_plan, &now_us, 30 * SECOND, out);
    for (asked.kind = COPY_PLAN_COMPARE; asked.kind != COPY_PLAN_ASK; now_us += SECOND) {
        assert_true(now_us < 2 * MINUTE);
        while (copy_plan_next(copy_plan, now_us, &asked) && asked.kind != COPY_PLAN_ASK) {
            repair(copy_plan, &asked, now_us);
        }
    }
    copy_plan_set_copies(copy_plan, COPIES + 1, now_us);
    compare_all(copy_plan, now_us, out);
    assert_null(strchr(out, 'c'));
    done(copy_plan, &asked, ERR_OK, now_us);
    assert_true(copy_plan_next(copy_plan, now_us, &task));
    assert_int_equal(task.kind, COPY_PLAN_COMPARE);
    assert_int_equal(task.peer.key[0], 'c');
    free(copy_plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_comparison_that_was_capped_is_followed_at_once_by_the_next),
        cmocka_unit_test(what_comes_is_given_the_time_to_come),
        cmocka_unit_test(one_that_gets_no_further_waits_longer_each_time),
        cmocka_unit_test(who_never_takes_what_he_wants_is_not_asked_for_ever),
        cmocka_unit_test(readers_are_not_told_that_all_is_here_before_it_was_looked_at),
        cmocka_unit_test(who_was_away_is_compared_anew),
        cmocka_unit_test(who_is_new_is_first_compared_from_a_place_of_his_own),
        cmocka_unit_test(what_was_ours_is_handed_on_part_by_part),
        cmocka_unit_test(not_what_its_primary_has_compared_with_us_since),
        cmocka_unit_test(nor_what_is_ours_again),
        cmocka_unit_test(where_nobody_takes_it_we_try_less_often_and_then_it_is_surplus),
        cmocka_unit_test(who_is_only_displaced_is_not_away),
        cmocka_unit_test(who_asks_us_is_asked_again_soon),
        cmocka_unit_test(where_a_repair_takes_long_those_behind_the_holders_are_asked),
        cmocka_unit_test(but_not_where_all_is_whole),
        cmocka_unit_test(who_becomes_a_holder_while_he_is_asked_is_compared_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
