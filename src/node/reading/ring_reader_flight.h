/*
 * ring_reader_flight - of several threads that want the same thing at the same time, one goes for it, and the
 * others wait until it is back.
 */
#ifndef MNEMON_NODE_READING_RING_READER_FLIGHT_H
#define MNEMON_NODE_READING_RING_READER_FLIGHT_H

#include <pthread.h>

#include "base/bytes.h"
#include "base/err.h"
#include "run/bell.h"

enum { RING_READER_FLIGHTS_MAX = 128, RING_READER_FLIGHT_KEY_SIZE = 16 };

struct ring_reader_flight {
    uint8_t key[RING_READER_FLIGHT_KEY_SIZE];
    bool is_used;
    bool is_over;           /* but some have not seen it yet */
    uint32_t waiters_count; /* beside the thread that went */
    enum err err;           /* how it ended */
};

struct ring_reader_flights {
    pthread_mutex_t lock;
    struct bell over;
    struct ring_reader_flight flights[RING_READER_FLIGHTS_MAX];
};

void ring_reader_flights_init(struct ring_reader_flights *flights);
void ring_reader_flights_done(struct ring_reader_flights *flights);

/*
 * Not NULL: go, and say ring_reader_flight_end() when back. NULL: somebody else went, and *ret_err says how
 * it ended; or ERR_BUSY, there are too many.
 */
struct ring_reader_flight *ring_reader_flight_begin(struct ring_reader_flights *flights,
                                                    const uint8_t key[RING_READER_FLIGHT_KEY_SIZE],
                                                    enum err *ret_err);
void ring_reader_flight_end(struct ring_reader_flights *flights, struct ring_reader_flight *flight,
                            enum err err);

#endif
