#include "run/bell.h"

#include <pthread.h>
#include <sched.h>

#include "unit.h"

enum { LISTENERS_COUNT = 8, ROUNDS_COUNT = 2000 };

struct round {
    struct bell bell;
    atomic_uint now;      /* what is waited for */
    atomic_uint answered; /* by all listeners together */
};

static void await(struct round *round, unsigned wanted) {
    for (;;) {
        unsigned heard = bell_listen(&round->bell);
        if (atomic_load(&round->now) >= wanted) {
            return;
        }
        bell_wait(&round->bell, heard);
    }
}

static void *listen_to_all(void *context) {
    struct round *round = context;
    for (unsigned i = 1; i <= ROUNDS_COUNT; i++) {
        await(round, i);
        atomic_fetch_add(&round->answered, 1);
    }
    return NULL;
}

/* Would any stroke be missed, its listener would wait for ever. */
static void wakes_everybody_every_time(void **state) {
    (void)state;
    static struct round round;
    pthread_t threads[LISTENERS_COUNT];
    for (size_t i = 0; i < LISTENERS_COUNT; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, listen_to_all, &round), 0);
    }
    for (unsigned i = 1; i <= ROUNDS_COUNT; i++) {
        atomic_store(&round.now, i);
        bell_ring(&round.bell);
        if (i % 2 == 0) {
            continue; /* also twice in a row */
        }
        while (atomic_load(&round.answered) < i * LISTENERS_COUNT) {
            sched_yield();
        }
    }
    for (size_t i = 0; i < LISTENERS_COUNT; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(atomic_load(&round.answered), ROUNDS_COUNT * LISTENERS_COUNT);
}

static void does_not_wait_for_a_stroke_that_was_missed(void **state) {
    (void)state;
    struct bell bell = {0};
    unsigned heard = bell_listen(&bell);
    bell_ring(&bell);
    bell_wait(&bell, heard); /* returns at once */
    assert_int_not_equal(bell_listen(&bell), heard);
}

static void gives_up_when_its_time_has_come(void **state) {
    (void)state;
    struct bell bell = {0};
    assert_false(bell_wait_until(&bell, bell_listen(&bell), 1)); /* long past */
    assert_true(bell_wait_until(&bell, bell_listen(&bell) + 1, 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wakes_everybody_every_time),
        cmocka_unit_test(does_not_wait_for_a_stroke_that_was_missed),
        cmocka_unit_test(gives_up_when_its_time_has_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
