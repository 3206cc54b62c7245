#include "run/loop.h"

#include <sched.h>
#include <string.h>

#include "await.h"

enum { POSTERS_COUNT = 4, POSTS_COUNT = 500, CALLS_MAX = 8 };

struct fixture {
    struct loop loop;
    atomic_uint runs_count;
    atomic_bool is_here; /* all runs were on the loop's thread */
    atomic_bool is_ended;
    atomic_bool is_held; /* run_hold() does not return yet */
    atomic_bool has_held;
    struct loop_post post;
    uv_timer_t forgotten;
};

static void setup(struct fixture *fixture) {
    memset(fixture, 0, sizeof *fixture);
    assert_int_equal(loop_init(&fixture->loop, CALLS_MAX), ERR_OK);
    atomic_store(&fixture->is_here, true);
}

static void start(struct fixture *fixture) {
    setup(fixture);
    assert_int_equal(loop_start(&fixture->loop, "test-loop", PRIORITY_USUAL), ERR_OK);
}

static void run_count(void *context) {
    struct fixture *fixture = context;
    if (!loop_is_here(&fixture->loop)) {
        atomic_store(&fixture->is_here, false);
    }
    atomic_fetch_add(&fixture->runs_count, 1);
}

static void run_hold(void *context) {
    struct fixture *fixture = context;
    atomic_store(&fixture->has_held, true);
    while (atomic_load(&fixture->is_held)) {
        sched_yield();
    }
}

static void run_end(void *context) {
    struct fixture *fixture = context;
    atomic_store(&fixture->is_ended, true);
}

/* The loop's thread is busy until let_go(). */
static void hold(struct fixture *fixture) {
    atomic_store(&fixture->is_held, true);
    atomic_store(&fixture->has_held, false);
    assert_int_equal(loop_call(&fixture->loop, run_hold, fixture), ERR_OK);
    await_that(atomic_load(&fixture->has_held));
}

static void let_go(struct fixture *fixture) {
    atomic_store(&fixture->is_held, false);
}

static void *post_many(void *context) {
    struct fixture *fixture = context;
    struct loop_post posts[POSTS_COUNT];
    for (size_t i = 0; i < POSTS_COUNT; i++) {
        posts[i] = (struct loop_post){.run = run_count, .context = fixture};
        loop_post(&fixture->loop, &posts[i]);
    }
    while (atomic_load(&fixture->runs_count) < POSTERS_COUNT * POSTS_COUNT) {
        sched_yield();
    }
    return NULL;
}

static void runs_posts_of_all_threads_on_its_own(void **state) {
    (void)state;
    static struct fixture fixture;
    pthread_t threads[POSTERS_COUNT];
    start(&fixture);
    for (size_t i = 0; i < POSTERS_COUNT; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, post_many, &fixture), 0);
    }
    await_that(atomic_load(&fixture.runs_count) == POSTERS_COUNT * POSTS_COUNT);
    assert_true(atomic_load(&fixture.is_here));
    assert_false(loop_is_here(&fixture.loop));
    for (size_t i = 0; i < POSTERS_COUNT; i++) {
        pthread_join(threads[i], NULL);
    }
    loop_stop(&fixture.loop, NULL, NULL);
}

static void runs_a_post_once_that_waits_already(void **state) {
    (void)state;
    static struct fixture fixture;
    start(&fixture);
    fixture.post = (struct loop_post){.run = run_count, .context = &fixture};
    hold(&fixture);
    for (size_t i = 0; i < 3; i++) {
        assert_true(loop_post(&fixture.loop, &fixture.post));
    }
    let_go(&fixture);
    loop_stop(&fixture.loop, NULL, NULL);
    assert_int_equal(atomic_load(&fixture.runs_count), 1);
}

static void runs_no_post_that_was_dropped(void **state) {
    (void)state;
    static struct fixture fixture;
    struct loop_post posts[4];
    setup(&fixture);
    for (size_t i = 0; i < 4; i++) {
        posts[i] = (struct loop_post){.run = run_count, .context = &fixture};
    }
    for (size_t i = 0; i < 3; i++) {
        assert_true(loop_post(&fixture.loop, &posts[i]));
    }
    loop_drop(&fixture.loop, &posts[2]); /* the last, */
    loop_drop(&fixture.loop, &posts[0]); /* the first, */
    loop_drop(&fixture.loop, &posts[3]); /* and one that does not wait */
    assert_true(loop_post(&fixture.loop, &posts[3]));
    loop_stop(&fixture.loop, NULL, NULL);
    assert_int_equal(atomic_load(&fixture.runs_count), 2);
}

static void run_and_post_again(void *context) {
    struct fixture *fixture = context;
    atomic_fetch_add(&fixture->runs_count, 1);
    (void)loop_post(&fixture->loop, &fixture->post);
}

/* A timer has its turn although there is always a post. */
static void posts_that_post_do_not_starve_the_rest(void **state) {
    (void)state;
    static struct fixture fixture;
    struct loop_timer timer;
    setup(&fixture);
    fixture.post = (struct loop_post){.run = run_and_post_again, .context = &fixture};
    loop_timer_init(&fixture.loop, &timer, run_end, &fixture);
    loop_timer_set(&timer, 1, 0);
    assert_true(loop_post(&fixture.loop, &fixture.post));
    assert_int_equal(loop_start(&fixture.loop, "test-loop", PRIORITY_USUAL), ERR_OK);
    await_that(atomic_load(&fixture.is_ended));
    loop_stop(&fixture.loop, NULL, NULL);
}

static void refuses_more_calls_than_its_bound(void **state) {
    (void)state;
    static struct fixture fixture;
    start(&fixture);
    hold(&fixture);
    for (size_t i = 0; i < CALLS_MAX; i++) {
        assert_int_equal(loop_call(&fixture.loop, run_count, &fixture), ERR_OK);
    }
    assert_int_equal(loop_call(&fixture.loop, run_count, &fixture), ERR_BUSY);
    let_go(&fixture);
    await_that(atomic_load(&fixture.runs_count) == CALLS_MAX);
    assert_int_equal(loop_call(&fixture.loop, run_count, &fixture), ERR_OK);
    loop_stop(&fixture.loop, NULL, NULL);
    assert_int_equal(atomic_load(&fixture.runs_count), CALLS_MAX + 1);
}

static void *stop(void *context) {
    struct fixture *fixture = context;
    loop_stop(&fixture->loop, run_end, fixture);
    return NULL;
}

static bool is_refused(struct fixture *fixture) {
    return !loop_post(&fixture->loop, &fixture->post);
}

static void stops_after_what_it_has_taken(void **state) {
    (void)state;
    static struct fixture fixture;
    pthread_t thread;
    start(&fixture);
    hold(&fixture);
    fixture.post = (struct loop_post){.run = run_count, .context = &fixture};
    assert_true(loop_post(&fixture.loop, &fixture.post));
    assert_int_equal(pthread_create(&thread, NULL, stop, &fixture), 0);
    await_that(is_refused(&fixture));
    assert_int_equal(loop_call(&fixture.loop, run_count, &fixture), ERR_CLOSED);
    assert_false(atomic_load(&fixture.is_ended));
    let_go(&fixture);
    pthread_join(thread, NULL);
    assert_true(atomic_load(&fixture.is_ended));
    assert_int_equal(atomic_load(&fixture.runs_count), 1);
}

/* A timer and a uv handle that nobody has closed do not keep it. */
static void stops_without_ever_having_started(void **state) {
    (void)state;
    static struct fixture fixture;
    struct loop_timer timer;
    setup(&fixture);
    uv_timer_init(&fixture.loop.uv, &fixture.forgotten);
    loop_timer_init(&fixture.loop, &timer, run_count, &fixture);
    loop_timer_set(&timer, UINT64_C(3600) * 1000000, 0);
    assert_true(loop_timer_is_set(&timer));
    fixture.post = (struct loop_post){.run = run_count, .context = &fixture};
    assert_true(loop_post(&fixture.loop, &fixture.post));
    loop_stop(&fixture.loop, run_end, &fixture);
    assert_true(atomic_load(&fixture.is_ended));
    assert_int_equal(atomic_load(&fixture.runs_count), 1);
}

static void run_close(void *context) {
    struct fixture *fixture = context;
    loop_close(&fixture->loop);
}

static void can_end_by_itself(void **state) {
    (void)state;
    static struct fixture fixture;
    start(&fixture);
    assert_int_equal(loop_call(&fixture.loop, run_count, &fixture), ERR_OK);
    assert_int_equal(loop_call(&fixture.loop, run_close, &fixture), ERR_OK);
    loop_join(&fixture.loop);
    assert_int_equal(atomic_load(&fixture.runs_count), 1);
}

static void timers_repeat_until_they_are_stopped(void **state) {
    (void)state;
    static struct fixture fixture;
    static struct loop_timer timer;
    setup(&fixture);
    loop_timer_init(&fixture.loop, &timer, run_count, &fixture);
    loop_timer_set(&timer, 0, 1);
    assert_int_equal(loop_start(&fixture.loop, "test-loop", PRIORITY_LATER), ERR_OK);
    await_that(atomic_load(&fixture.runs_count) >= 3);
    loop_stop(&fixture.loop, NULL, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_posts_of_all_threads_on_its_own),
        cmocka_unit_test(runs_a_post_once_that_waits_already),
        cmocka_unit_test(runs_no_post_that_was_dropped),
        cmocka_unit_test(posts_that_post_do_not_starve_the_rest),
        cmocka_unit_test(refuses_more_calls_than_its_bound),
        cmocka_unit_test(stops_after_what_it_has_taken),
        cmocka_unit_test(stops_without_ever_having_started),
        cmocka_unit_test(can_end_by_itself),
        cmocka_unit_test(timers_repeat_until_they_are_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
