/*
 * bench - timing for the side-by-side benchmarks.
 *
 * A benchmark never judges an absolute time: machines differ. It runs both sides alternately in one process,
 * takes the best of several rounds of each, and reports the ratio.
 */
#ifndef MNEMON_BENCH_H
#define MNEMON_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <time.h>

static inline double bench_now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* One row: what was measured, how much per second, and how many times the baseline that is (0: no baseline).
 */
static inline void bench_row(const char *what, double per_second, const char *unit, double ratio) {
    if (ratio > 0) {
        printf("%-44s %14.0f %-10s %6.2fx\n", what, per_second, unit, ratio);
    } else {
        printf("%-44s %14.0f %-10s\n", what, per_second, unit);
    }
}

#endif
