#include "base/rtt.h"

#include "base/assert.h"

enum { SAMPLE_US_MAX = 60000000 }; /* longer is no measurement */

void rtt_sample(struct rtt *rtt, uint64_t sample_us) {
    uint32_t sample = sample_us > SAMPLE_US_MAX ? SAMPLE_US_MAX : (uint32_t)sample_us;
    sample = sample == 0 ? 1 : sample;
    if (rtt->smoothed_us == 0) {
        rtt->smoothed_us = sample;
        rtt->variation_us = sample / 2;
        return;
    }
    uint32_t error = sample > rtt->smoothed_us ? sample - rtt->smoothed_us : rtt->smoothed_us - sample;
    rtt->variation_us = rtt->variation_us - rtt->variation_us / 4 + error / 4;
    rtt->smoothed_us = rtt->smoothed_us - rtt->smoothed_us / 8 + sample / 8;
    rtt->smoothed_us = rtt->smoothed_us == 0 ? 1 : rtt->smoothed_us;
}

uint64_t rtt_timeout_us(const struct rtt *rtt, unsigned try) {
    ASSERT(try > 0);
    uint64_t timeout_us = RTT_TIMEOUT_US_FIRST;
    if (rtt->smoothed_us > 0) {
        timeout_us = (uint64_t)rtt->smoothed_us + 4 * (uint64_t)rtt->variation_us;
        timeout_us = timeout_us < RTT_TIMEOUT_US_MIN ? RTT_TIMEOUT_US_MIN : timeout_us;
    }
    for (unsigned i = 1; i < try && timeout_us < RTT_TIMEOUT_US_MAX; i++) {
        timeout_us *= 2;
    }
    return timeout_us > RTT_TIMEOUT_US_MAX ? RTT_TIMEOUT_US_MAX : timeout_us;
}
