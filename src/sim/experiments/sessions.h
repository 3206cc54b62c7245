/*
 * sessions - how long volunteers' programs run, and how long they are away, as Gnutella's were (thesis 6.3).
 *
 * Half of all sessions are shorter than an hour (Saroiu, Gummadi and Gribble 2002), and of the nodes that are
 * there at a time 93 % are gone ten hours later (the same, in the thesis). An exponential distribution cannot
 * have both: it would leave 0.1 %. A Weibull distribution of shape 0.7 has, with many short sessions and some
 * very long ones. Integers, so that equal seeds give equal lives on every machine.
 */
#ifndef MNEMON_SIM_EXPERIMENTS_SESSIONS_H
#define MNEMON_SIM_EXPERIMENTS_SESSIONS_H

#include "base/prng.h"

/* One of them, by the median of all; at least 1. */
uint64_t sessions_draw_us(struct prng *prng, uint64_t median_us);

#endif
