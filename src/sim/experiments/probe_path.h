/*
 * probe_path - how long a TCP transfer of some size takes over an idle path, from its first byte to its last.
 *
 * Slow start and nothing else: the sender begins with `window_first` segments and sends one more for each
 * acknowledgement, until the path is full or its window is. What a bandwidth probe sees of a path, and so why
 * short ones see too little (Table 1 of the paper).
 */
#ifndef MNEMON_SIM_EXPERIMENTS_PROBE_PATH_H
#define MNEMON_SIM_EXPERIMENTS_PROBE_PATH_H

#include <stdint.h>

struct probe_path {
    uint64_t round_trip_us;
    uint64_t bandwidth;    /* bytes a second */
    uint32_t segment_size; /* bytes of data */
    uint32_t window_first; /* segments; 1 in 1995, 10 today (RFC 6928) */
    uint32_t window_max;   /* segments; the receiver's */
    uint32_t ack_delay_us; /* of a receiver that acknowledges every other segment, and a single one so late;
                              0: it acknowledges each at once */
};

/* The time between the first and the last byte at the receiver, as the paper defines it. */
uint64_t probe_path_us(const struct probe_path *path, uint64_t size);

#endif
