#include "crawl/engine/trip.h"

#include <stdlib.h>

#include "web/url/url.h"

struct trip *trip_new(void) {
    struct trip *trip = calloc(1, sizeof *trip);
    if (trip != NULL) {
        buf_init(&trip->address, URL_SIZE_MAX + 1);
        arena_init(&trip->arena, TRIP_LINKS_SIZE_MAX);
    }
    return trip;
}

void trip_free(struct trip *trip) {
    if (trip->result != NULL) {
        fetch_result_free(trip->result);
    }
    buf_done(&trip->address);
    arena_done(&trip->arena);
    free(trip);
}

void trip_clear(struct trip *trip) {
    if (trip->result != NULL) {
        fetch_result_free(trip->result);
    }
    struct buf address = trip->address;
    struct arena arena = trip->arena;
    buf_clear(&address);
    arena_reset(&arena);
    *trip = (struct trip){.address = address, .arena = arena};
}
