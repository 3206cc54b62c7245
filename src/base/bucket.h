/*
 * bucket - a token bucket in one number: how often something may happen.
 *
 * The number is when the bucket would be full again, so a zeroed bucket is full and an idle one needs no
 * timer. Pure; the caller brings the time.
 */
#ifndef MNEMON_BASE_BUCKET_H
#define MNEMON_BASE_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

/* Take one token of a bucket that holds `burst` and gains one in `each`, in any unit of time. False: it is
 * empty. */
static inline bool bucket_take_one(uint64_t *full_at, uint64_t now, uint64_t each, uint64_t burst) {
    uint64_t at = *full_at > now ? *full_at : now;
    if (at - now > each * (burst - 1)) {
        return false;
    }
    *full_at = at + each;
    return true;
}

struct bucket {
    uint64_t full_at_ns;
};

struct bucket_rate {
    uint32_t per_second;
    uint32_t burst; /* tokens in a full bucket, 1 or more */
};

/* Take one token; false if there is none. */
static inline bool bucket_take(struct bucket *bucket, struct bucket_rate rate, uint64_t now_us) {
    uint64_t token_ns = UINT64_C(1000000000) / (rate.per_second > 0 ? rate.per_second : 1);
    return bucket_take_one(&bucket->full_at_ns, now_us * 1000, token_ns, rate.burst);
}

#endif
