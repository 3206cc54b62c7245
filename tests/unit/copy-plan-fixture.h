/* keeper-fixture - nodes and places for the tests of protocol/copies/copy_plan.h: node n is 10.0.0.n, a place
 * has one byte.
 */
#ifndef MNEMON_TESTS_COPY_PLAN_FIXTURE_H
#define MNEMON_TESTS_COPY_PLAN_FIXTURE_H

#include <string.h>

#include "protocol/copies/copy_plan.h"
#include "unit.h"

static const uint64_t SECOND = 1000000;
static const uint64_t MINUTE = 60 * 1000000;
static const uint64_t HOUR = UINT64_C(3600) * 1000000;

static inline struct peer node(uint8_t n) {
    struct peer peer = {.address = address_ipv4(10, 0, 0, n, 7070)};
    memset(peer.key, n, sizeof peer.key);
    return peer;
}

static inline struct ring_id at(uint64_t high) {
    return (struct ring_id){high << 56, 0};
}

#endif
