#include "run/bell.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"

bool bell_wait_until(struct bell *bell, unsigned heard, uint64_t until_us) {
    struct timespec until = {
        .tv_sec = (time_t)(until_us / 1000000),
        .tv_nsec = (long)(until_us % 1000000 * 1000),
    };
    /* Before the kernel looks at the strokes: whoever rings either sees it, or is seen by the kernel. */
    atomic_fetch_add(&bell->waiters_count, 1);
    long result = syscall(SYS_futex, &bell->strokes, FUTEX_WAIT_BITSET_PRIVATE, heard,
                          until_us == BELL_NEVER_US ? NULL : &until, NULL, FUTEX_BITSET_MATCH_ANY);
    bool is_late = result != 0 && errno == ETIMEDOUT;
    ASSERT(result == 0 || is_late || errno == EAGAIN || errno == EINTR); /* woken, has rung, a signal */
    atomic_fetch_sub(&bell->waiters_count, 1);
    return !is_late;
}

void bell_wait(struct bell *bell, unsigned heard) {
    (void)bell_wait_until(bell, heard, BELL_NEVER_US);
}

bool bell_await(struct bell *bell, pthread_mutex_t *lock, uint64_t until_us) {
    unsigned heard = bell_listen(bell);
    pthread_mutex_unlock(lock);
    bool is_in_time = bell_wait_until(bell, heard, until_us);
    pthread_mutex_lock(lock);
    return is_in_time;
}

void bell_ring(struct bell *bell) {
    atomic_fetch_add(&bell->strokes, 1);
    if (atomic_load(&bell->waiters_count) > 0) {
        long result = syscall(SYS_futex, &bell->strokes, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
        ASSERT(result >= 0);
    }
}
