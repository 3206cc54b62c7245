/* turnstile: so many at once, some that wait, and the others are turned away. */
#include "run/turnstile.h"

#include <stdatomic.h>

#include "await.h"
#include "unit.h"

struct visitor {
    struct turnstile *turnstile;
    atomic_bool is_in;
    atomic_bool has_answer;
    atomic_bool has_gone;
};

static bool has_gone(void *context) {
    return atomic_load(&((struct visitor *)context)->has_gone);
}

static void *visit(void *context) {
    struct visitor *visitor = context;
    atomic_store(&visitor->is_in, turnstile_enter(visitor->turnstile, 60000, has_gone, visitor));
    atomic_store(&visitor->has_answer, true);
    return NULL;
}

static void one_that_leaves_makes_room_for_one_that_waits(void **state) {
    struct turnstile turnstile;
    (void)state;
    turnstile_init(&turnstile, 1, 1);
    struct visitor second = {.turnstile = &turnstile};
    pthread_t thread;
    assert_true(turnstile_enter(&turnstile, 0, NULL, NULL));
    pthread_create(&thread, NULL, visit, &second);
    await_that(turnstile_waiting_count(&turnstile) == 1);
    assert_false(turnstile_enter(&turnstile, 60000, NULL, NULL)); /* at once: one waits already */
    assert_false(atomic_load(&second.has_answer));
    turnstile_leave(&turnstile);
    pthread_join(thread, NULL);
    assert_true(atomic_load(&second.is_in));
    turnstile_leave(&turnstile);
    turnstile_done(&turnstile);
}

static void nobody_waits_for_ever(void **state) {
    struct turnstile turnstile;
    (void)state;
    turnstile_init(&turnstile, 1, 2);
    struct visitor second = {.turnstile = &turnstile};
    pthread_t thread;
    assert_true(turnstile_enter(&turnstile, 0, NULL, NULL));
    assert_false(turnstile_enter(&turnstile, 1, NULL, NULL));
    pthread_create(&thread, NULL, visit, &second);
    await_that(turnstile_waiting_count(&turnstile) == 1);
    atomic_store(&second.has_gone, true);
    pthread_join(thread, NULL);
    assert_false(atomic_load(&second.is_in));
    turnstile_leave(&turnstile);
    turnstile_done(&turnstile);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_leaves_makes_room_for_one_that_waits),
        cmocka_unit_test(nobody_waits_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
