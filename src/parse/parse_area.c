#include "parse/parse_area.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* As run/bell.h, but between processes. */
void parse_area_wait(_Atomic uint32_t *word, uint32_t value, uint32_t timeout_ms) {
    struct timespec timeout = {.tv_sec = timeout_ms / 1000, .tv_nsec = (long)(timeout_ms % 1000) * 1000000};
    syscall(SYS_futex, word, FUTEX_WAIT, value, timeout_ms == 0 ? NULL : &timeout, NULL, 0);
}

void parse_area_wake(_Atomic uint32_t *word) {
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
