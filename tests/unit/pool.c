#include "run/pool.h"

#include <sched.h>
#include <string.h>

#include "await.h"
#include "run/loop.h"

enum { JOBS_COUNT = 8, MANY_COUNT = 400, SEATS_MAX = 4 };

struct fixture {
    struct pool pool;
    atomic_bool is_held; /* jobs do not return */
    atomic_uint running_count;
    atomic_uint runs_count;
    atomic_uint cancelled_count;
    atomic_uint done_count;
    atomic_uint seat_users[SEATS_MAX]; /* at this moment */
    atomic_bool is_seat_shared;
    struct loop loop;
    atomic_bool is_done_elsewhere; /* than on the loop */
};

struct work {
    struct fixture *fixture;
    struct pool_job job;
    unsigned number; /* which it was that ran, from 1 on; 0: it did not */
};

static void setup(struct fixture *fixture, const struct pool_config *config) {
    memset(fixture, 0, sizeof *fixture);
    assert_int_equal(pool_start(&fixture->pool, config), ERR_OK);
}

static void run_work(void *context, size_t seat) {
    struct work *work = context;
    struct fixture *fixture = work->fixture;
    if (atomic_fetch_add(&fixture->seat_users[seat], 1) != 0) {
        atomic_store(&fixture->is_seat_shared, true);
    }
    atomic_fetch_add(&fixture->running_count, 1);
    while (atomic_load(&fixture->is_held)) {
        sched_yield();
    }
    atomic_fetch_sub(&fixture->running_count, 1);
    atomic_fetch_sub(&fixture->seat_users[seat], 1);
    work->number = atomic_fetch_add(&fixture->runs_count, 1) + 1;
}

static void run_cancelled(void *context) {
    const struct work *work = context;
    atomic_fetch_add(&work->fixture->cancelled_count, 1);
}

static struct pool_job *prepare(struct fixture *fixture, struct work *work) {
    *work = (struct work){.fixture = fixture, .job = {.run = run_work, .context = work}};
    return &work->job;
}

static void runs_in_order(void **state) {
    (void)state;
    static struct fixture fixture;
    struct work works[JOBS_COUNT];
    setup(&fixture, &(struct pool_config){.name = "test-pool", .threads_max = 1});
    for (size_t i = 0; i < JOBS_COUNT; i++) {
        assert_true(pool_try(&fixture.pool, prepare(&fixture, &works[i])));
    }
    pool_stop(&fixture.pool); /* nobody takes what was cancelled, so all are run */
    for (size_t i = 0; i < JOBS_COUNT; i++) {
        assert_int_equal(works[i].number, i + 1);
    }
    assert_false(pool_try(&fixture.pool, &works[0].job));
    pool_stop(&fixture.pool);
}

/* All seats come into use, and none by two at a time. */
static void has_as_many_threads_as_there_is_work_for(void **state) {
    (void)state;
    static struct fixture fixture;
    static struct work works[MANY_COUNT];
    setup(&fixture, &(struct pool_config){.name = "test-pool", .threads_max = SEATS_MAX});
    atomic_store(&fixture.is_held, true);
    for (size_t i = 0; i < MANY_COUNT; i++) {
        assert_true(pool_try(&fixture.pool, prepare(&fixture, &works[i])));
    }
    await_that(atomic_load(&fixture.running_count) == SEATS_MAX);
    atomic_store(&fixture.is_held, false);
    await_that(atomic_load(&fixture.runs_count) == MANY_COUNT);
    assert_false(atomic_load(&fixture.is_seat_shared));
    pool_stop(&fixture.pool);
}

static void refuses_when_full(void **state) {
    (void)state;
    static struct fixture fixture;
    struct work works[3];
    setup(&fixture, &(struct pool_config){.name = "test-pool", .threads_max = 1, .jobs_max = 1});
    atomic_store(&fixture.is_held, true);
    assert_true(pool_try(&fixture.pool, prepare(&fixture, &works[0])));
    await_that(atomic_load(&fixture.running_count) == 1);
    assert_true(pool_try(&fixture.pool, prepare(&fixture, &works[1])));
    assert_false(pool_try(&fixture.pool, prepare(&fixture, &works[2])));
    atomic_store(&fixture.is_held, false);
    pool_stop(&fixture.pool);
    assert_int_equal(atomic_load(&fixture.runs_count), 2);
    assert_int_equal(works[2].number, 0);
}

static void later_jobs_let_others_pass(void **state) {
    (void)state;
    static struct fixture fixture;
    struct work works[3];
    setup(&fixture, &(struct pool_config){.name = "test-pool", .threads_max = 1});
    atomic_store(&fixture.is_held, true);
    assert_true(pool_try(&fixture.pool, prepare(&fixture, &works[0])));
    await_that(atomic_load(&fixture.running_count) == 1);
    prepare(&fixture, &works[1])->is_later = true;
    assert_true(pool_try(&fixture.pool, &works[1].job));
    assert_true(pool_try(&fixture.pool, prepare(&fixture, &works[2])));
    atomic_store(&fixture.is_held, false);
    pool_stop(&fixture.pool);
    assert_int_equal(works[2].number, 2);
    assert_int_equal(works[1].number, 3);
}

static size_t waiting_count(struct pool *pool) {
    pthread_mutex_lock(&pool->lock);
    size_t count = pool->jobs_count;
    pthread_mutex_unlock(&pool->lock);
    return count;
}

static void *stop(void *context) {
    struct fixture *fixture = context;
    pool_stop(&fixture->pool);
    return NULL;
}

static void stopping_hands_over_what_has_not_begun(void **state) {
    (void)state;
    static struct fixture fixture;
    struct work works[JOBS_COUNT];
    pthread_t thread;
    setup(&fixture, &(struct pool_config){.name = "test-pool", .threads_max = 1, .cancelled = run_cancelled});
    atomic_store(&fixture.is_held, true);
    for (size_t i = 0; i < JOBS_COUNT; i++) {
        assert_true(pool_try(&fixture.pool, prepare(&fixture, &works[i])));
    }
    await_that(atomic_load(&fixture.running_count) == 1);
    assert_int_equal(pthread_create(&thread, NULL, stop, &fixture), 0);
    await_that(waiting_count(&fixture.pool) == 0);
    atomic_store(&fixture.is_held, false);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&fixture.runs_count), 1);
    assert_int_equal(atomic_load(&fixture.cancelled_count), JOBS_COUNT - 1);
}

static void run_done(void *context) {
    const struct work *work = context;
    if (!loop_is_here(&work->fixture->loop) || work->number == 0) {
        atomic_store(&work->fixture->is_done_elsewhere, true);
    }
    atomic_fetch_add(&work->fixture->done_count, 1);
}

static void tells_a_loop_what_is_done(void **state) {
    (void)state;
    static struct fixture fixture;
    static struct work works[MANY_COUNT];
    setup(&fixture,
          &(struct pool_config){.name = "test-pool", .threads_max = SEATS_MAX, .priority = PRIORITY_LATER});
    assert_int_equal(loop_init(&fixture.loop, 1), ERR_OK);
    assert_int_equal(loop_start(&fixture.loop, "test-loop", PRIORITY_USUAL), ERR_OK);
    for (size_t i = 0; i < MANY_COUNT; i++) {
        struct pool_job *job = prepare(&fixture, &works[i]);
        job->loop = &fixture.loop;
        job->done = run_done;
        assert_true(pool_try(&fixture.pool, job));
    }
    pool_stop(&fixture.pool);
    loop_stop(&fixture.loop, NULL, NULL); /* has run all that was posted */
    assert_int_equal(atomic_load(&fixture.done_count), MANY_COUNT);
    assert_false(atomic_load(&fixture.is_done_elsewhere));
}

static void one_that_was_never_started_takes_nothing(void **state) {
    (void)state;
    static struct fixture fixture;
    static struct pool pool;
    struct work work;
    memset(&fixture, 0, sizeof fixture);
    assert_false(pool_try(&pool, prepare(&fixture, &work)));
    pool_stop(&pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_in_order),
        cmocka_unit_test(has_as_many_threads_as_there_is_work_for),
        cmocka_unit_test(refuses_when_full),
        cmocka_unit_test(later_jobs_let_others_pass),
        cmocka_unit_test(stopping_hands_over_what_has_not_begun),
        cmocka_unit_test(tells_a_loop_what_is_done),
        cmocka_unit_test(one_that_was_never_started_takes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
