#include "protocol/ring/throttle.h"

#include "base/bucket.h"

/* A machine has at most 32 places, and each of them notifies five times a second when all is in motion. */
enum {
    PEER_BURST = 160,
    PEER_US = 20000,
    STRANGERS_BURST = 8, /* who asked us for our state, as everybody does first, is none any more */
    STRANGERS_US = 250000,
};

bool throttle_admits(struct throttle *throttle, uint64_t hash, uint64_t now_us) {
    return bucket_take_one(&throttle->full_at_us[hash % THROTTLE_BUCKETS_COUNT], now_us, PEER_US, PEER_BURST);
}

bool throttle_admits_stranger(struct throttle *throttle, uint64_t now_us) {
    return bucket_take_one(&throttle->strangers_full_at_us, now_us, STRANGERS_US, STRANGERS_BURST);
}
