/*
 * rtt - how long one destination takes to answer, and how long to wait for it: RFC 6298 in integers.
 *
 * Eight bytes per destination. The caller keeps Karn's rule: no sample from a question that was sent twice.
 */
#ifndef MNEMON_BASE_RTT_H
#define MNEMON_BASE_RTT_H

#include <stdint.h>

enum {
    RTT_TIMEOUT_US_FIRST = 500000, /* before anything was measured; the RFC's 1 s is for strangers to TCP */
    RTT_TIMEOUT_US_MIN = 200000,
    RTT_TIMEOUT_US_MAX = 2000000,
};

/* All zero: nothing measured yet. */
struct rtt {
    uint32_t smoothed_us; /* 0: none */
    uint32_t variation_us;
};

void rtt_sample(struct rtt *rtt, uint64_t sample_us);

/* How long to wait for the answer to the try-th question (1, 2 …): doubled each time, within the bounds. */
uint64_t rtt_timeout_us(const struct rtt *rtt, unsigned try);

#endif
