#include "sim/experiments/probe_path.h"

#include "base/assert.h"

enum { SECOND_US = 1000000 };

/*
 * Round by round: a window of w segments takes w * segment / bandwidth to leave; the next round begins one
 * round trip after this one began, or when all of it has left, whichever is later. The receiver sees the
 * first byte half a round trip after the sender sends it, and every other one as much later.
 */
uint64_t probe_path_us(const struct probe_path *path, uint64_t size) {
    ASSERT(path->bandwidth > 0 && path->segment_size > 0 && path->window_first > 0);
    uint64_t begin_us = 0;
    uint64_t window = path->window_first;
    uint64_t left = size;
    for (;;) {
        uint64_t round = window * path->segment_size;
        uint64_t sent = left < round ? left : round;
        uint64_t takes_us = sent * SECOND_US / path->bandwidth;
        left -= sent;
        if (left == 0) {
            return begin_us + takes_us;
        }
        uint64_t answer_us = path->round_trip_us + (window == 1 ? path->ack_delay_us : 0);
        begin_us += takes_us > answer_us ? takes_us : answer_us;
        window += path->ack_delay_us == 0 ? window : (window + 1) / 2;
        window = window < path->window_max ? window : path->window_max;
    }
}
