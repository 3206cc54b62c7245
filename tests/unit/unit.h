/* unit - what every cmocka test needs: cmocka wants four headers before its own. */
#ifndef MNEMON_TESTS_UNIT_H
#define MNEMON_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"

/* Sanitizers slow the code down by 5 to 20 times: what is only about time may then be smaller. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNIT_IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define UNIT_IS_SANITIZED 1
#endif
#endif
#ifndef UNIT_IS_SANITIZED
#define UNIT_IS_SANITIZED 0
#endif

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
