/*
 * arrivals - which counters of one sender's life have come: each is taken once, in nearly any order.
 *
 *      lowest ……… recent[oldest] < … < recent[newest]       the last ARRIVALS_COUNT that came, in order
 *
 * The counters are times and so lie far apart: the window is a sorted ring of the last 1,024 that came, not
 * bits. What is not above `lowest` is too old to tell and refused. In order, an arrival costs a few steps;
 * one that was overtaken by k others costs k. 8 KiB, no allocation, pure.
 */
#ifndef MNEMON_NET_ARRIVALS_H
#define MNEMON_NET_ARRIVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ARRIVALS_COUNT = 1024 };

struct arrivals {
    uint64_t lowest; /* everything up to here counts as come */
    uint32_t first;  /* index of the oldest in recent */
    uint32_t count;
    uint64_t recent[ARRIVALS_COUNT];
};

/* A life whose counters up to `lowest` are of no interest. */
void arrivals_begin(struct arrivals *arrivals, uint64_t lowest);

/* True the first time, false if it came before or is too old to tell. */
bool arrivals_take(struct arrivals *arrivals, uint64_t counter);

/* The highest that came, or where it began. */
uint64_t arrivals_highest(const struct arrivals *arrivals);

#endif
