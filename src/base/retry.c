#include "base/retry.h"

#include <stddef.h>

void retry_sent(struct retry *retry, const struct rtt *rtt, uint64_t now_us) {
    static const struct rtt unknown;
    retry->tries_count++;
    retry->sent_at_us = now_us;
    retry->due_us = now_us + rtt_timeout_us(rtt != NULL ? rtt : &unknown, retry->tries_count);
}

void retry_sent_doubling(struct retry *retry, uint64_t first_us, uint64_t max_us, uint64_t now_us) {
    retry->sent_at_us = now_us;
    retry->due_us = now_us + retry_doubled_us(first_us, retry->tries_count, max_us);
    retry->tries_count++;
}

void retry_measure(const struct retry *retry, struct rtt *rtt, uint64_t now_us) {
    if (retry->tries_count == 1) {
        rtt_sample(rtt, now_us - retry->sent_at_us);
    }
}

uint64_t retry_doubled_us(uint64_t first_us, uint32_t times, uint64_t max_us) {
    uint64_t wait_us = first_us;
    for (uint32_t i = 0; i < times && wait_us < max_us; i++) {
        wait_us *= 2;
    }
    return wait_us < max_us ? wait_us : max_us;
}
