#include "run/task.h"

#include <sched.h>
#include <string.h>

#include "await.h"

struct fixture {
    struct task task;
    atomic_uint runs_count;
    _Atomic uint64_t rest_us;
    atomic_bool is_held; /* run() does not return */
    atomic_bool is_resting;
    atomic_bool has_rested_to_the_end;
};

static uint64_t run(void *context) {
    struct fixture *fixture = context;
    atomic_fetch_add(&fixture->runs_count, 1);
    while (atomic_load(&fixture->is_held)) {
        sched_yield();
    }
    return atomic_load(&fixture->rest_us);
}

static void start(struct fixture *fixture, uint64_t rest_us) {
    memset(fixture, 0, sizeof *fixture);
    atomic_store(&fixture->rest_us, rest_us);
    assert_int_equal(task_start(&fixture->task, "test-task", PRIORITY_BEHIND, run, fixture), ERR_OK);
}

static void runs_again_when_its_time_has_come(void **state) {
    (void)state;
    static struct fixture fixture;
    start(&fixture, 1);
    await_that(atomic_load(&fixture.runs_count) >= 3);
    task_stop(&fixture.task);
}

static void runs_again_when_poked(void **state) {
    (void)state;
    static struct fixture fixture;
    start(&fixture, TASK_FOR_EVER_US);
    await_that(atomic_load(&fixture.runs_count) == 1);
    for (unsigned i = 1; i < 200; i++) {
        task_poke(&fixture.task);
        await_that(atomic_load(&fixture.runs_count) == i + 1);
    }
    task_stop(&fixture.task);
}

static void a_poke_during_a_run_is_not_lost(void **state) {
    (void)state;
    static struct fixture fixture;
    memset(&fixture, 0, sizeof fixture);
    atomic_store(&fixture.rest_us, TASK_FOR_EVER_US);
    atomic_store(&fixture.is_held, true);
    assert_int_equal(task_start(&fixture.task, "test-task", PRIORITY_USUAL, run, &fixture), ERR_OK);
    await_that(atomic_load(&fixture.runs_count) == 1);
    task_poke(&fixture.task);
    task_poke(&fixture.task);
    atomic_store(&fixture.is_held, false);
    await_that(atomic_load(&fixture.runs_count) == 2);
    task_stop(&fixture.task);
    assert_int_equal(atomic_load(&fixture.runs_count), 2);
}

static uint64_t run_and_rest(void *context) {
    struct fixture *fixture = context;
    atomic_store(&fixture->is_resting, true);
    if (task_rest(&fixture->task, TASK_FOR_EVER_US)) {
        atomic_store(&fixture->has_rested_to_the_end, true);
    }
    return TASK_FOR_EVER_US;
}

static void a_rest_within_a_run_ends_with_the_task(void **state) {
    (void)state;
    static struct fixture fixture;
    memset(&fixture, 0, sizeof fixture);
    assert_int_equal(task_start(&fixture.task, "test-task", PRIORITY_IDLE, run_and_rest, &fixture), ERR_OK);
    await_that(atomic_load(&fixture.is_resting));
    task_poke(&fixture.task); /* does not count here */
    task_stop(&fixture.task);
    assert_false(atomic_load(&fixture.has_rested_to_the_end));
    assert_true(task_is_stopping(&fixture.task));
}

static void one_that_was_never_started_can_be_stopped_twice(void **state) {
    (void)state;
    struct task task = {0};
    task_poke(&task);
    task_stop(&task);
    task_stop(&task);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_again_when_its_time_has_come),
        cmocka_unit_test(runs_again_when_poked),
        cmocka_unit_test(a_poke_during_a_run_is_not_lost),
        cmocka_unit_test(a_rest_within_a_run_ends_with_the_task),
        cmocka_unit_test(one_that_was_never_started_can_be_stopped_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
