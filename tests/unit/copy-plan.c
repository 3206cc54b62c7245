/* keeper: who is compared when, who counts as a copy, what is surplus. */
#include "protocol/copies/copy_plan.h"

#include <stdlib.h>
#include <string.h>

#include "copy-plan-fixture.h"

enum { COPIES = 3, TASKS_MAX = 64 };

/* ---- helpers ---- */

/* The arc (from, to] of ours, before us the node `before`, behind us those named. */
static struct copy_plan_arc arc(uint64_t from, uint64_t to, uint8_t before, const char *names) {
    struct copy_plan_arc out = {
        .from = at(from), .to = at(to), .has_predecessor = true, .predecessor = node(before)};
    for (; *names != '\0'; names++) {
        out.peers[out.count++] = node((uint8_t)*names);
    }
    return out;
}

static struct copy_plan *make(void) {
    struct copy_plan_config config = {.copies = COPIES, .seed = 7};
    return copy_plan_init(malloc(copy_plan_size(&config)), &config, SECOND);
}

static void set(struct copy_plan *copy_plan, uint64_t from, uint64_t to, uint8_t before, const char *names,
                uint64_t now_us) {
    struct copy_plan_arc one = arc(from, to, before, names);
    copy_plan_set_arcs(copy_plan, &one, 1, now_us);
}

/* All tasks that are due now, done with this outcome; who they were for, in their order. With who is new, a
 * comparison of a part of the arc goes well before that of all of it, and is not told. */
static const char *work(struct copy_plan *copy_plan, uint64_t now_us, enum err err, uint64_t missing_count,
                        enum copy_plan_task_kind kind, char out[TASKS_MAX]) {
    struct copy_plan_task task;
    struct copy_plan_outcome outcome = {.err = err, .missing_there_count = missing_count};
    size_t count = 0;
    while (copy_plan_next(copy_plan, now_us, &task)) {
        assert_true(count < TASKS_MAX - 1);
        if (task.kind == kind) {
            if (!task.has_rest || err != ERR_OK) {
                out[count++] = (char)task.peer.key[0];
            }
            copy_plan_done(copy_plan, &task, &outcome, now_us);
        } else {
            copy_plan_done(copy_plan, &task, &(struct copy_plan_outcome){.err = ERR_OK}, now_us);
        }
    }
    out[count] = '\0';
    return out;
}

static const char *compare(struct copy_plan *copy_plan, uint64_t now_us, char out[TASKS_MAX]) {
    return work(copy_plan, now_us, ERR_OK, 0, COPY_PLAN_COMPARE, out);
}

static struct copy_plan_piece_status piece(const struct copy_plan *copy_plan, size_t index) {
    struct copy_plan_piece_status status;
    assert_true(index < copy_plan_pieces_count(copy_plan));
    copy_plan_piece(copy_plan, index, &status);
    return status;
}

static struct copy_plan_member_status member(const struct copy_plan *copy_plan, size_t index, char name) {
    struct copy_plan_member_status status;
    for (size_t i = 0; i < piece(copy_plan, index).members_count; i++) {
        copy_plan_member(copy_plan, index, i, &status);
        if (status.peer.key[0] == (uint8_t)name) {
            return status;
        }
    }
    fail_msg("%c is no member", name);
    return status;
}

/* ---- comparisons ---- */

static void what_a_member_may_lack_is_not_whole_until_a_later_comparison(void **state) {
    struct copy_plan *copy_plan = make();
    char out[TASKS_MAX];
    (void)state;
    struct copy_plan_task task;
    struct copy_plan_outcome equal = {.err = ERR_OK};
    struct ring_id place = {UINT64_C(0x15) << 56, 0};
    set(copy_plan, 0x10, 0x20, 'p', "ab", SECOND);
    assert_string_equal(compare(copy_plan, SECOND, out), "ab");
    assert_int_equal(piece(copy_plan, 0).level, COPY_PLAN_WHOLE);
    struct peer lacking = member(copy_plan, 0, 'a').peer;
    copy_plan_unproven(copy_plan, place, &lacking, 10 * SECOND);
    assert_int_equal(piece(copy_plan, 0).level, COPY_PLAN_FRESH);
    assert_true(member(copy_plan, 0, 'a').is_unproven && !member(copy_plan, 0, 'b').is_unproven);
    assert_true(copy_plan_next(copy_plan, 12 * SECOND, &task)); /* soon, not at the interval */
    assert_true(task.kind == COPY_PLAN_COMPARE && peer_equal(&task.peer, &lacking));
    copy_plan_unproven(copy_plan, place, &lacking, 13 * SECOND); /* while it is compared */
    copy_plan_done(copy_plan, &task, &equal, 14 * SECOND);
    assert_int_equal(piece(copy_plan, 0).level, COPY_PLAN_FRESH); /* that one began too early */
    assert_string_equal(compare(copy_plan, 16 * SECOND, out), "a");
    assert_int_equal(piece(copy_plan, 0).level, COPY_PLAN_WHOLE);
    copy_plan_unproven(copy_plan, (struct ring_id){UINT64_C(0x30) << 56, 0}, NULL,
                       20 * SECOND); /* not ours */
    assert_int_equal(piece(copy_plan, 0).level, COPY_PLAN_WHOLE);
    copy_plan_unproven(copy_plan, place, NULL, 20 * SECOND);
    assert_string_equal(compare(copy_plan, 22 * SECOND, out), "ab");
    assert_int_equal(piece(copy_plan, 0).level, COPY_PLAN_WHOLE);
    free(copy_plan);
}

static void compares_new_members_at_once_and_then_at_the_interval(void **state) {
    struct copy_plan *copy_plan = make();
    char out[TASKS_MAX];
    (void)state;
    struct copy_plan_task task;
    assert_false(copy_plan_next(copy_plan, SECOND, &task));
    set(copy_plan, 0x10, 0x20, 'p', "abcd", SECOND);
    assert_int_equal(piece(copy_plan, 0).level, COPY_PLAN_LOW);
    assert_true(piece(copy_plan, 0).repairing_since_us > 0);
    assert_string_equal(compare(copy_plan, SECOND, out), "ab");
    assert_int_equal(piece(copy_plan, 0).level, COPY_PLAN_WHOLE);
    assert_int_equal(piece(copy_plan, 0).repairing_since_us, 0);
    assert_true(member(copy_plan, 0, 'c').is_spare);
    assert_string_equal(compare(copy_plan, 2 * SECOND, out), "");
    uint64_t wake_us = copy_plan_wake_at(copy_plan, 2 * SECOND);
    assert_true(wake_us >= 3 * MINUTE && wake_us <= 7 * MINUTE);
    compare(copy_plan, 7 * MINUTE, out);
    assert_int_equal(strlen(out), 2);
    free(copy_plan);
}

static void compares_again_soon_while_something_is_missing(void **state) {
    struct copy_plan *copy_plan = make();
    char out[TASKS_MAX];
    (void)state;
    set(copy_plan, 0x10, 0x20, 'p', "a", SECOND);
    uint64_t now_us = SECOND;
    uint64_t waits[5];
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(work(copy_plan, now_us, ERR_OK, 100, COPY_PLAN_COMPARE, out), "a");
        assert_int_equal(piece(copy_plan, 0).missing_count, 100);
        waits[i] = copy_plan_wake_at(copy_plan, now_us) - now_us;
        now_us += waits[i];
    }
    assert_int_equal(waits[0], SECOND);
    assert_true(waits[4] > waits[1]); /* it does not get less */
    assert_string_equal(work(copy_plan, now_us, ERR_OK, 10, COPY_PLAN_COMPARE, out), "a");
    assert_int_equal(copy_plan_wake_at(copy_plan, now_us) - now_us, SECOND);
    copy_plan_moved(copy_plan, 20, now_us + 20 * SECOND);
    assert_int_equal(piece(copy_plan, 0).estimate_s > 0, true);
    free(copy_plan);
}

static void who_is_silent_is_asked_less_and_less(void **state) {
    struct copy_plan *copy_plan = make();
    char out[TASKS_MAX];
    (void)state;
    set(copy_plan, 0x10, 0x20, 'p', "a", SECOND);
    uint64_t now_us = SECOND;
    uint64_t last_us = 0;
    for (unsigned i = 0; i < 5; i++) {
        assert_string_equal(work(copy_plan, now_us, ERR_TIMEOUT, 0, COPY_PLAN_COMPARE, out), "a");
        uint64_t wait_us = copy_plan_wake_at(copy_plan, now_us) - now_us;
        assert_true(wait_us > last_us);
        last_us = wait_us;
        now_us += wait_us;
    }
    assert_int_equal(member(copy_plan, 0, 'a').silent_count, 5);
    assert_string_equal(compare(copy_plan, now_us, out), "a");
    assert_int_equal(member(copy_plan, 0, 'a').silent_count, 0);
    free(copy_plan);
}

static void one_silence_is_enough_for_all_arcs(void **state) {
    struct copy_plan *copy_plan = make();
    struct copy_plan_arc arcs[] = {arc(0x10, 0x20, 'p', "a"), arc(0x30, 0x40, 'q', "a"),
                                   arc(0x50, 0x60, 'r', "a")};
    char out[TASKS_MAX];
    (void)state;
    copy_plan_set_arcs(copy_plan, arcs, 3, SECOND);
    assert_string_equal(work(copy_plan, SECOND, ERR_TIMEOUT, 0, COPY_PLAN_COMPARE, out), "a");
    assert_int_equal(member(copy_plan, 2, 'a').silent_count, 1);
    assert_string_equal(compare(copy_plan, 10 * SECOND, out), "aaa");
    assert_int_equal(member(copy_plan, 2, 'a').silent_count, 0);
    free(copy_plan);
}

static void compares_what_was_touched(void **state) {
    struct copy_plan *copy_plan = make();
    char out[TASKS_MAX];
    (void)state;
    set(copy_plan, 0x10, 0x20, 'p', "abc", SECOND);
    compare(copy_plan, SECOND, out);
    struct peer from_elsewhere = node('b');
    from_elsewhere.address.port = 40000;
    copy_plan_touch(copy_plan, at(0x30), NULL, 10 * SECOND);
    assert_string_equal(compare(copy_plan, 10 * SECOND, out), "");
    copy_plan_touch(copy_plan, at(0x18), &from_elsewhere, 10 * SECOND);
    assert_string_equal(compare(copy_plan, 10 * SECOND, out), "b");
    copy_plan_touch(copy_plan, at(0x18), NULL, 20 * SECOND);
    compare(copy_plan, 20 * SECOND, out);
    assert_int_equal(strlen(out), 2);
    copy_plan_touch(copy_plan, at(0x18), NULL, 20 * SECOND); /* not more than once a second */
    assert_string_equal(compare(copy_plan, 20 * SECOND, out), "");
    free(copy_plan);
}

/* ---- copies ---- */

static void who_is_away_is_replaced_after_the_grace_time(void **state) {
    struct copy_plan *copy_plan = make();
    char out[TASKS_MAX];
    (void)state;
    set(copy_plan, 0x10, 0x20, 'p', "abcd", SECOND);
    compare(copy_plan, SECOND, out);
    set(copy_plan, 0x10, 0x20, 'p', "bcd", MINUTE);
    assert_string_equal(compare(copy_plan, MINUTE, out), "");
    assert_int_equal(piece(copy_plan, 0).level, COPY_PLAN_AWAY);
    assert_int_equal(piece(copy_plan, 0).away_count, 1);
    assert_true(copy_plan_wake_at(copy_plan, MINUTE) <= MINUTE + HOUR);
    compare(copy_plan, HOUR, out);
    assert_null(strchr(out, 'c'));
    compare(copy_plan, HOUR + 2 * MINUTE, out);
    assert_non_null(strchr(out, 'c'));
    assert_int_equal(piece(copy_plan, 0).level, COPY_PLAN_WHOLE);
    set(copy_plan, 0x10, 0x20, 'p', "abcd", 2 * HOUR); /* back after all: only what it misses */
    compare(copy_plan, 2 * HOUR, out);
    assert_non_null(strchr(out, 'a'));
    assert_true(member(copy_plan, 0, 'c').is_spare);
    free(copy_plan);
}

static void who_returns_in_time_is_compared_at_once(void **state) {
    struct copy_plan *copy_plan = make();
    char out[TASKS_MAX];
    (void)state;
    set(copy_plan, 0x10, 0x20, 'p', "abcd", SECOND);
    compare(copy_plan, SECOND, out);
    set(copy_plan, 0x10, 0x20, 'p', "bcd", MINUTE);
    set(copy_plan, 0x10, 0x20, 'p', "abcd", 2 * MINUTE);
    assert_string_equal(compare(copy_plan, 2 * MINUTE, out), "a");
    assert_int_equal(piece(copy_plan, 0).level, COPY_PLAN_WHOLE);
    free(copy_plan);
}

static void when_too_many_are_away_they_are_replaced_at_once(void **state) {
    struct copy_plan *copy_plan = make();
    char out[TASKS_MAX];
    (void)state;
    set(copy_plan, 0x10, 0x20, 'p', "abcd", SECOND);
    compare(copy_plan, SECOND, out);
    set(copy_plan, 0x10, 0x20, 'p', "bcd", MINUTE);
    set(copy_plan, 0x10, 0x20, 'p', "cd", 2 * MINUTE);
    assert_string_equal(compare(copy_plan, 2 * MINUTE, out), "c"); /* for a; b may still be back */
    assert_int_equal(piece(copy_plan, 0).away_count, 1);
    assert_int_equal(piece(copy_plan, 0).level, COPY_PLAN_AWAY);
    free(copy_plan);
}

static void the_former_primary_of_what_we_inherit_counts_as_away(void **state) {
    struct copy_plan *copy_plan = make();
    char out[TASKS_MAX];
    (void)state;
    set(copy_plan, 0x10, 0x20, 'p', "abc", SECOND);
    compare(copy_plan, SECOND, out);
    set(copy_plan, 0x08, 0x20, 'o', "abc", MINUTE);
    assert_int_equal(copy_plan_pieces_count(copy_plan), 2);
    assert_true(ring_id_equal(piece(copy_plan, 1).from, at(0x08)));
    assert_true(ring_id_equal(piece(copy_plan, 1).to, at(0x10)));
    assert_true(member(copy_plan, 1, 'p').is_away);
    assert_string_equal(compare(copy_plan, MINUTE, out), "a"); /* not b: p has the third copy */
    assert_int_equal(piece(copy_plan, 1).level, COPY_PLAN_AWAY);
    set(copy_plan, 0x04, 0x20, 'n', "abc", 2 * MINUTE); /* o has gone too */
    assert_int_equal(copy_plan_pieces_count(copy_plan), 3);
    compare(copy_plan, 2 * HOUR, out);
    assert_int_equal(copy_plan_pieces_count(copy_plan), 1);
    assert_true(ring_id_equal(piece(copy_plan, 0).from, at(0x04)));
    compare(copy_plan, 2 * HOUR + MINUTE, out);
    assert_int_equal(piece(copy_plan, 0).level, COPY_PLAN_WHOLE);
    set(copy_plan, 0x18, 0x20, 'm', "abc", 2 * HOUR + 2 * MINUTE); /* somebody new takes over */
    assert_int_equal(copy_plan_pieces_count(copy_plan), 1);
    assert_true(ring_id_equal(piece(copy_plan, 0).from, at(0x18)));
    free(copy_plan);
}

/* It is there, but not relied on (protocol/copies/primary_watch.h): what it has is no copy, and another one
 * is made at once. */
static void a_primary_that_fails_counts_as_no_copy(void **state) {
    struct copy_plan *copy_plan = make();
    char out[TASKS_MAX];
    (void)state;
    set(copy_plan, 0x10, 0x20, 'p', "abc", SECOND);
    compare(copy_plan, SECOND, out);
    struct copy_plan_arc guarded = arc(0x08, 0x20, 'o', "abc");
    guarded.is_guarding = true;
    copy_plan_set_arcs(copy_plan, &guarded, 1, MINUTE);
    compare(copy_plan, MINUTE, out);
    compare(copy_plan, MINUTE + 10 * SECOND, out); /* those that were compared for a part of it */
    assert_int_equal(copy_plan_pieces_count(copy_plan), 1);
    assert_true(ring_id_equal(piece(copy_plan, 0).from, at(0x08)));
    assert_int_equal(piece(copy_plan, 0).away_count, 0);
    assert_int_equal(piece(copy_plan, 0).copies_count, COPIES);
    assert_int_equal(piece(copy_plan, 0).level, COPY_PLAN_WHOLE);
    set(copy_plan, 0x10, 0x20, 'p', "abc", HOUR); /* it is believed again */
    assert_true(ring_id_equal(piece(copy_plan, 0).from, at(0x10)));
    assert_int_equal(piece(copy_plan, 0).level, COPY_PLAN_WHOLE);
    free(copy_plan);
}

static void the_former_primary_comes_back(void **state) {
    struct copy_plan *copy_plan = make();
    char out[TASKS_MAX];
    (void)state;
    set(copy_plan, 0xf0, 0x20, 'p', "abc", SECOND); /* past the zero of the ring */
    compare(copy_plan, SECOND, out);
    set(copy_plan, 0xe0, 0x20, 'o', "abc", MINUTE);
    assert_int_equal(copy_plan_pieces_count(copy_plan), 2);
    set(copy_plan, 0xf0, 0x20, 'p', "abc", 2 * MINUTE);
    assert_int_equal(copy_plan_pieces_count(copy_plan), 1);
    assert_true(ring_id_equal(piece(copy_plan, 0).from, at(0xf0)));
    set(copy_plan, 0x20, 0x20, 'p', "", 3 * MINUTE); /* alone */
    assert_int_equal(copy_plan_pieces_count(copy_plan), 2);
    copy_plan_set_arcs(copy_plan, NULL, 0, 4 * MINUTE);
    assert_int_equal(copy_plan_pieces_count(copy_plan), 0);
    free(copy_plan);
}

static void the_next_takes_the_part_of_one_that_is_full(void **state) {
    struct copy_plan *copy_plan = make();
    char out[TASKS_MAX];
    struct copy_plan_task task;
    (void)state;
    set(copy_plan, 0x10, 0x20, 'p', "abcd", SECOND);
    assert_true(copy_plan_next(copy_plan, SECOND, &task));
    assert_int_equal(task.peer.key[0], 'a');
    copy_plan_done(copy_plan, &task, &(struct copy_plan_outcome){.err = ERR_NO_SPACE}, SECOND);
    assert_string_equal(compare(copy_plan, SECOND, out), "bc");
    assert_true(member(copy_plan, 0, 'a').is_full);
    assert_int_equal(piece(copy_plan, 0).level, COPY_PLAN_WHOLE);
    compare(copy_plan, HOUR, out); /* asked again later */
    assert_non_null(strchr(out, 'a'));
    assert_false(member(copy_plan, 0, 'a').is_full);
    assert_true(member(copy_plan, 0, 'c').is_spare);
    free(copy_plan);
}

/* ---- challenges ---- */

static void who_fails_a_challenge_is_passed_over(void **state) {
    struct copy_plan *copy_plan = make();
    char out[TASKS_MAX];
    (void)state;
    set(copy_plan, 0x10, 0x20, 'p', "abcd", SECOND);
    compare(copy_plan, SECOND, out);
    work(copy_plan, 16 * MINUTE, ERR_OK, 0, COPY_PLAN_CHALLENGE, out);
    assert_int_equal(strlen(out), 2);
    struct copy_plan_task task;
    bool is_caught = false;
    for (unsigned i = 0; i < TASKS_MAX && !is_caught && copy_plan_next(copy_plan, 32 * MINUTE, &task); i++) {
        is_caught = task.kind == COPY_PLAN_CHALLENGE && task.peer.key[0] == 'a';
        struct copy_plan_outcome outcome = {.err = is_caught ? ERR_MISMATCH : ERR_OK};
        copy_plan_done(copy_plan, &task, &outcome, 32 * MINUTE);
    }
    assert_true(is_caught);
    assert_true(member(copy_plan, 0, 'a').is_false);
    assert_int_equal(member(copy_plan, 0, 'a').failed_count, 1);
    compare(copy_plan, 32 * MINUTE, out);
    assert_non_null(strchr(out, 'c'));
    free(copy_plan);
}

/* Compares and challenges until that many challenges were answered so. */
static void challenge(struct copy_plan *copy_plan, uint64_t *now_us, enum err err, unsigned count) {
    struct copy_plan_task task;
    for (unsigned i = 0; count > 0; i++) {
        assert_true(i < 1000);
        *now_us =
            copy_plan_wake_at(copy_plan, *now_us) > *now_us ? copy_plan_wake_at(copy_plan, *now_us) : *now_us;
        if (copy_plan_next(copy_plan, *now_us, &task)) {
            bool is_challenge = task.kind == COPY_PLAN_CHALLENGE;
            copy_plan_done(copy_plan, &task, &(struct copy_plan_outcome){.err = is_challenge ? err : ERR_OK},
                           *now_us);
            count -= is_challenge;
        }
    }
}

static void who_says_that_he_has_lost_something_is_compared_and_at_last_not_believed(void **state) {
    struct copy_plan *copy_plan = make();
    uint64_t now_us = SECOND;
    (void)state;
    set(copy_plan, 0x10, 0x20, 'p', "a", SECOND);
    challenge(copy_plan, &now_us, ERR_NOT_FOUND, 2);
    assert_false(member(copy_plan, 0, 'a').is_false);
    assert_false(member(copy_plan, 0, 'a').is_complete);
    assert_true(copy_plan_wake_at(copy_plan, now_us) <= now_us);
    challenge(copy_plan, &now_us, ERR_OK, 1);
    assert_true(member(copy_plan, 0, 'a').is_complete);
    challenge(copy_plan, &now_us, ERR_NOT_FOUND, 3);
    assert_true(member(copy_plan, 0, 'a').is_false);
    assert_int_equal(member(copy_plan, 0, 'a').failed_count, 1);
    free(copy_plan);
}

/* ---- surplus ---- */

static bool next_release(struct copy_plan *copy_plan, uint64_t now_us, struct copy_plan_task *ret_task) {
    while (copy_plan_next(copy_plan, now_us, ret_task)) {
        if (ret_task->kind == COPY_PLAN_RELEASE) {
            return true;
        }
        copy_plan_done(copy_plan, ret_task, &(struct copy_plan_outcome){.err = ERR_OK}, now_us);
    }
    return false;
}

static void only_what_nobody_claims_is_surplus(void **state) {
    struct copy_plan *copy_plan = make();
    struct copy_plan_task task;
    struct peer primary = node('q');
    (void)state;
    set(copy_plan, 0x10, 0x20, 'p', "abc", SECOND);
    copy_plan_claim(copy_plan, &primary, at(0x20), at(0x30), true, SECOND);
    assert_false(next_release(copy_plan, 59 * MINUTE, &task)); /* too early to say */
    copy_plan_claim(copy_plan, &primary, at(0x20), at(0x30), true, 59 * MINUTE);
    copy_plan_claim(copy_plan, &primary, at(0xf0), at(0x08), true, 59 * MINUTE);
    assert_int_equal(copy_plan_claims_count(copy_plan), 2);
    assert_true(copy_plan_is_compared(copy_plan, at(0x28), &primary, at(0x20), 60 * MINUTE));
    assert_false(copy_plan_is_compared(copy_plan, at(0x38), &primary, at(0x20), 60 * MINUTE));
    uint64_t now_us = 61 * MINUTE;
    assert_true(next_release(copy_plan, now_us, &task));
    assert_true(ring_id_equal(task.from, at(0x08)) && ring_id_equal(task.to, at(0x10)));
    struct copy_plan_task other;
    assert_false(next_release(copy_plan, now_us, &other)); /* one at a time */
    copy_plan_done(copy_plan, &task, &(struct copy_plan_outcome){.err = ERR_OK}, now_us);
    assert_true(next_release(copy_plan, now_us, &task));
    assert_true(ring_id_equal(task.from, at(0x30)) && ring_id_equal(task.to, at(0xf0)));
    copy_plan_done(copy_plan, &task,
                   &(struct copy_plan_outcome){.err = ERR_OK, .is_partial = true, .reached = at(0x40)},
                   now_us);
    assert_true(next_release(copy_plan, now_us, &task));
    assert_true(ring_id_equal(task.from, at(0x40)));
    copy_plan_done(copy_plan, &task, &(struct copy_plan_outcome){.err = ERR_OK}, now_us);
    assert_false(next_release(copy_plan, now_us, &task));
    now_us = 130 * MINUTE; /* the claims are over */
    assert_true(next_release(copy_plan, now_us, &task));
    assert_true(ring_id_equal(task.from, at(0)) && ring_id_equal(task.to, at(0x10)));
    free(copy_plan);
}

static void who_keeps_everything_has_no_surplus(void **state) {
    struct copy_plan_config config = {.copies = COPIES, .seed = 7, .keeps_everything = true};
    struct copy_plan *copy_plan = copy_plan_init(malloc(copy_plan_size(&config)), &config, SECOND);
    struct copy_plan_task task;
    (void)state;
    set(copy_plan, 0x10, 0x20, 'p', "abc", SECOND);
    assert_false(next_release(copy_plan, 3 * HOUR, &task));
    assert_true(copy_plan_wake_at(copy_plan, 3 * HOUR) > 3 * HOUR); /* and nothing waits to be looked for */
    free(copy_plan);
}

static void what_may_not_have_come_is_doubted_until_the_next_comparison(void **state) {
    struct copy_plan *copy_plan = make();
    struct copy_plan_piece_status status;
    struct copy_plan_task task;
    struct peer giver = node('a');
    (void)state;
    set(copy_plan, 0x10, 0x20, 'p', "ab", SECOND);
    copy_plan_doubt(copy_plan, at(0x18), &giver);
    copy_plan_piece(copy_plan, 0, &status);
    assert_true(status.is_doubted);
    assert_int_equal(status.missing_count, 0); /* nobody has counted */
    bool is_compared = false;
    while (!is_compared && copy_plan_next(copy_plan, HOUR, &task)) {
        struct copy_plan_outcome outcome = {.err = ERR_OK};
        copy_plan_done(copy_plan, &task, &outcome, HOUR);
        is_compared = task.kind == COPY_PLAN_COMPARE && peer_same_key(&task.peer, &giver);
    }
    assert_true(is_compared);
    copy_plan_piece(copy_plan, 0, &status);
    assert_false(status.is_doubted);
    free(copy_plan);
}

static void a_claim_is_no_comparison_until_it_was_equal(void **state) {
    struct copy_plan *copy_plan = make();
    struct peer primary = node('q');
    (void)state;
    copy_plan_claim(copy_plan, &primary, at(0x20), at(0x30), false, SECOND);
    assert_false(copy_plan_is_compared(copy_plan, at(0x28), &primary, at(0x20), SECOND));
    copy_plan_claim(copy_plan, &primary, at(0x20), at(0x30), true, MINUTE);
    assert_true(copy_plan_is_compared(copy_plan, at(0x28), &primary, at(0x20), MINUTE));
    copy_plan_claim(copy_plan, &primary, at(0x20), at(0x30), false, 2 * MINUTE);
    assert_true(copy_plan_is_compared(copy_plan, at(0x28), &primary, at(0x20),
                                      2 * MINUTE)); /* what is new is on its way */
    copy_plan_doubt(copy_plan, at(0x28), &primary); /* something of it did not come */
    assert_false(copy_plan_is_compared(copy_plan, at(0x28), &primary, at(0x20), 2 * MINUTE));
    copy_plan_claim(copy_plan, &primary, at(0x20), at(0x30), true, 3 * MINUTE);
    assert_true(copy_plan_is_compared(copy_plan, at(0x28), &primary, at(0x20), 3 * MINUTE));
    assert_false(copy_plan_is_compared(copy_plan, at(0x28), &primary, at(0x20), 20 * MINUTE));
    struct peer next = node('r');
    assert_false(
        copy_plan_is_compared(copy_plan, at(0x28), &next, at(0x20), 3 * MINUTE)); /* it is no primary now */
    assert_false(
        copy_plan_is_compared(copy_plan, at(0x28), &primary, at(0x24), 3 * MINUTE)); /* one came in before */
    assert_true(
        copy_plan_is_compared(copy_plan, at(0x28), &primary, at(0x1c), 3 * MINUTE)); /* a piece of its arc */
    copy_plan_claim(copy_plan, &primary, at(0x18), at(0x30), false, 4 * MINUTE);     /* it has grown */
    assert_false(copy_plan_is_compared(copy_plan, at(0x28), &primary, at(0x20), 4 * MINUTE));
    free(copy_plan);
}

static void claims_are_bounded(void **state) {
    struct copy_plan_config config = {.copies = COPIES, .claims_max = 4};
    struct copy_plan *copy_plan = copy_plan_init(malloc(copy_plan_size(&config)), &config, SECOND);
    (void)state;
    for (uint8_t i = 1; i < 100; i++) {
        struct peer liar = node(i);
        copy_plan_claim(copy_plan, &liar, at(0), at(i), true, SECOND);
    }
    assert_int_equal(copy_plan_claims_count(copy_plan), 4);
    struct peer primary = node('q');
    copy_plan_claim(copy_plan, &primary, at(0x80), at(0x90), true, 2 * HOUR);
    assert_true(copy_plan_is_compared(copy_plan, at(0x88), &primary, at(0x80), 2 * HOUR));
    free(copy_plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_member_may_lack_is_not_whole_until_a_later_comparison),
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
        cmocka_unit_test(what_may_not_have_come_is_doubted_until_the_next_comparison),
        cmocka_unit_test(a_claim_is_no_comparison_until_it_was_equal),
        cmocka_unit_test(claims_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
