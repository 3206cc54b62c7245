/*
 * await - wait until something holds, never for a time: the one loop for what other threads do.
 *
 * It looks often, so that a test is as quick as what it waits for, and gives up late, so that a machine on
 * which everything takes ten times as long is no failure.
 */
#ifndef MNEMON_TESTS_AWAIT_H
#define MNEMON_TESTS_AWAIT_H

#include <stdbool.h>
#include <unistd.h>

#include "unit.h"

enum { AWAIT_TURN_US = 2000, AWAIT_TURNS_MAX = 60000 }; /* two minutes, and more where turns take longer */

/* Sleep a little; false where it has been too often. For loops in threads, where cmocka cannot fail. */
static inline bool await_turn(unsigned *turns_count) {
    usleep(AWAIT_TURN_US);
    return ++*turns_count < AWAIT_TURNS_MAX;
}

/* Until the expression holds. A macro, so that cmocka names the line of the test that waits in vain. */
#define await_that(expression)                                    \
    do {                                                          \
        unsigned turns_count_ = 0;                                \
        while (!(expression)) {                                   \
            if (!await_turn(&turns_count_)) {                     \
                fail_msg("waited in vain until %s", #expression); \
            }                                                     \
        }                                                         \
    } while (0)

#endif
