#include "protocol/ring/throttle.h"

/* A machine has at most 32 places, and each of them notifies five times a second when all is in motion. */
enum {
    PEER_BURST = 160,
    PEER_US = 20000,
    STRANGERS_BURST = 8, /* who asked us for our state, as everybody does first, is none any more */
    STRANGERS_US = 250000,
};

static bool take(uint64_t *full_at_us, uint64_t now_us, uint64_t each_us, uint64_t burst) {
    uint64_t at_us = *full_at_us > now_us ? *full_at_us : now_us;
    if (at_us - now_us > each_us * (burst - 1)) {
        return false;
    }
    *full_at_us = at_us + each_us;
    return true;
}

bool throttle_admits(struct throttle *throttle, uint64_t hash, uint64_t now_us) {
    return take(&throttle->full_at_us[hash % THROTTLE_BUCKETS_COUNT], now_us, PEER_US, PEER_BURST);
}

bool throttle_admits_stranger(struct throttle *throttle, uint64_t now_us) {
    return take(&throttle->strangers_full_at_us, now_us, STRANGERS_US, STRANGERS_BURST);
}
