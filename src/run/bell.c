#include "run/bell.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"

void bell_wait(struct bell *bell, unsigned heard) {
    long result = syscall(SYS_futex, &bell->strokes, FUTEX_WAIT_PRIVATE, heard, NULL, NULL, 0);
    ASSERT(result == 0 || errno == EAGAIN || errno == EINTR); /* woken, has rung already, a signal */
}

void bell_ring(struct bell *bell) {
    atomic_fetch_add_explicit(&bell->strokes, 1, memory_order_release);
    long result = syscall(SYS_futex, &bell->strokes, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    ASSERT(result >= 0);
}
