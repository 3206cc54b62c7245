#include "parse/parse_area.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* As run/bell.h, but between processes. */
void parse_area_wait(_Atomic uint32_t *word, uint32_t value, uint32_t timeout_us) {
    struct timespec timeout = {.tv_sec = timeout_us / 1000000,
                               .tv_nsec = (long)(timeout_us % 1000000) * 1000};
    syscall(SYS_futex, word, FUTEX_WAIT, value, timeout_us == 0 ? NULL : &timeout, NULL, 0);
}

void parse_area_wake(_Atomic uint32_t *word) {
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
