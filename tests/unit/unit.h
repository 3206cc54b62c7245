/* unit - what every cmocka test needs: cmocka wants four headers before its own. */
#ifndef MNEMON_TESTS_UNIT_H
#define MNEMON_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"

/* Slices print as text when they differ. A macro so that cmocka names the line of the caller. */
#define assert_bytes_equal(a, b)                                                   \
    do {                                                                           \
        struct bytes left_ = (a);                                                  \
        struct bytes right_ = (b);                                                 \
        if (!bytes_equal(left_, right_)) {                                         \
            fail_msg("\"%.*s\" != \"%.*s\"", BYTES_ARG(left_), BYTES_ARG(right_)); \
        }                                                                          \
    } while (0)

#endif
