/*
 * throttle - how often one peer may tell us things unasked: the bound on notify.
 *
 * Buckets by a keyed hash of the address, so that nobody can aim at another's; peers that fall into one share
 * it, which the bound has room for. A bucket is the time at which it is full again: zeros are full. Those who
 * have not proved their address share one small bucket, and cannot use up that of a peer.
 */
#ifndef MNEMON_PROTOCOL_RING_THROTTLE_H
#define MNEMON_PROTOCOL_RING_THROTTLE_H

#include "base/address.h"

enum { THROTTLE_BUCKETS_COUNT = 64 };

struct throttle {
    uint64_t full_at_us[THROTTLE_BUCKETS_COUNT];
    uint64_t strangers_full_at_us;
};

/* False: too much, drop it. hash: of the peer's address, under a secret. */
bool throttle_admits(struct throttle *throttle, uint64_t hash, uint64_t now_us);
bool throttle_admits_stranger(struct throttle *throttle, uint64_t now_us);

#endif
