#include "node/reading/ring_reader_flight.h"

void ring_reader_flights_init(struct ring_reader_flights *flights) {
    *flights = (struct ring_reader_flights){0};
    pthread_mutex_init(&flights->lock, NULL);
}

void ring_reader_flights_done(struct ring_reader_flights *flights) {
    pthread_mutex_destroy(&flights->lock);
}

static struct ring_reader_flight *flight_find(struct ring_reader_flights *flights,
                                              const uint8_t key[RING_READER_FLIGHT_KEY_SIZE]) {
    for (size_t i = 0; i < RING_READER_FLIGHTS_MAX; i++) {
        struct ring_reader_flight *flight = &flights->flights[i];
        if (flight->is_used && !flight->is_over && memcmp(flight->key, key, sizeof flight->key) == 0) {
            return flight;
        }
    }
    return NULL;
}

static struct ring_reader_flight *find_unused(struct ring_reader_flights *flights) {
    for (size_t i = 0; i < RING_READER_FLIGHTS_MAX; i++) {
        if (!flights->flights[i].is_used) {
            return &flights->flights[i];
        }
    }
    return NULL;
}

struct ring_reader_flight *ring_reader_flight_begin(struct ring_reader_flights *flights,
                                                    const uint8_t key[RING_READER_FLIGHT_KEY_SIZE],
                                                    enum err *ret_err) {
    pthread_mutex_lock(&flights->lock);
    struct ring_reader_flight *other = flight_find(flights, key);
    struct ring_reader_flight *mine = other == NULL ? find_unused(flights) : NULL;
    if (other != NULL) {
        other->waiters_count++;
        while (!other->is_over) {
            (void)bell_await(&flights->over, &flights->lock, BELL_NEVER_US);
        }
        *ret_err = other->err;
        other->waiters_count--;
        other->is_used = other->waiters_count > 0;
    } else if (mine != NULL) {
        *mine = (struct ring_reader_flight){.is_used = true};
        memcpy(mine->key, key, sizeof mine->key);
    } else {
        *ret_err = ERR_BUSY;
    }
    pthread_mutex_unlock(&flights->lock);
    return mine;
}

void ring_reader_flight_end(struct ring_reader_flights *flights, struct ring_reader_flight *flight,
                            enum err err) {
    pthread_mutex_lock(&flights->lock);
    flight->err = err;
    flight->is_over = true;
    flight->is_used = flight->waiters_count > 0;
    bell_ring(&flights->over);
    pthread_mutex_unlock(&flights->lock);
}
