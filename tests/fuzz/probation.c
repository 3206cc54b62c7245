/* probation - what a node remembers of the members that it counts: DIR/ring/probation, damaged. What is read
 * is within its bounds and, written again, gives what is read the same way. */
#include "protocol/copies/probation.h"

#include <string.h>

#include "base/assert.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct probation probation, again;
    static uint8_t memory[PROBATION_SIZE_MAX];
    struct probation_config config = {.period_us = 1000000, .gap_us_max = 1000};
    probation_init(&probation, &config, 0);
    if (probation_read(&probation, bytes_of(data, size), NULL) != ERR_OK) {
        return 0;
    }
    ASSERT(probation.count <= PROBATION_MAX);
    for (size_t i = 0; i < probation.count; i++) {
        struct peer peer;
        memset(&peer, 0, sizeof peer);
        memcpy(peer.key, probation.entries[i].key, PEER_KEY_SIZE);
        probation_note(&probation, &peer, ERR_OK, 1 + i);
        ASSERT(probation_counts(&probation, &peer) == (probation_left_us(&probation, &peer) == 0));
    }
    for (uint8_t i = 0; i < 4; i++) { /* two are met in the first minutes, two later */
        struct peer peer = {.key = {0xff, i}};
        probation_meet(&probation, &peer, i < 2 ? 0 : config.period_us);
        probation_note(&probation, &peer, ERR_OK, config.period_us + i);
        probation_note(&probation, &peer, ERR_OK, config.period_us + 10 * i);
        probation_note(&probation, &peer, i == 3 ? ERR_MISMATCH : ERR_TIMEOUT, config.period_us + 50);
        ASSERT(probation_counts(&probation, &peer) == (probation_left_us(&probation, &peer) == 0));
    }
    struct bytes bytes = probation_write(&probation, 2 * config.period_us, memory);
    probation_init(&again, &config, 0);
    ASSERT(probation_read(&again, bytes, NULL) == ERR_OK && again.count == probation.count);
    return 0;
}
