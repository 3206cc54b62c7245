/*
 * bucket - a token bucket in one number: how often something may happen.
 *
 * full_at_ns is when the bucket would be full again, so a zeroed bucket is full and an idle one needs no
 * timer. Pure; the caller brings the time.
 */
#ifndef MNEMON_NET_BUCKET_H
#define MNEMON_NET_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

struct bucket {
    uint64_t full_at_ns;
};

struct bucket_rate {
    uint32_t per_second;
    uint32_t burst; /* tokens in a full bucket, 1 or more */
};

/* Take one token; false where there is none. */
static inline bool bucket_take(struct bucket *bucket, struct bucket_rate rate, uint64_t now_us) {
    const uint64_t now_ns = now_us * 1000;
    const uint64_t token_ns = UINT64_C(1000000000) / (rate.per_second > 0 ? rate.per_second : 1);
    uint64_t full_at_ns = bucket->full_at_ns > now_ns ? bucket->full_at_ns : now_ns;
    if (full_at_ns - now_ns > token_ns * (rate.burst - 1)) {
        return false;
    }
    bucket->full_at_ns = full_at_ns + token_ns;
    return true;
}

#endif
