/*
 * shiftclock - the wall clock of another day for one process: MNEMON_CLOCK_SHIFT is so many seconds behind
 * (below 0) or ahead of the true time. Clocks that only measure how long something takes are left alone.
 *
 * Loaded in front of the C library (LD_PRELOAD), so that a test of days takes seconds and the program is the
 * one that everybody runs.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t shift_s(void) {
    const char *text = getenv("MNEMON_CLOCK_SHIFT");
    return text != NULL ? strtol(text, NULL, 10) : 0;
}

int clock_gettime(clockid_t id, struct timespec *ret_time) {
    int failed = (int)syscall(SYS_clock_gettime, id, ret_time);
    if (failed == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
        ret_time->tv_sec += shift_s();
    }
    return failed;
}

time_t time(time_t *ret_time) {
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (ret_time != NULL) {
        *ret_time = now.tv_sec;
    }
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict ret_time, void *restrict zone) {
    struct timespec now;
    (void)zone;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    ret_time->tv_sec = now.tv_sec;
    ret_time->tv_usec = now.tv_nsec / 1000;
    return 0;
}
