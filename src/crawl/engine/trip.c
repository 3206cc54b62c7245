#include "crawl/engine/trip.h"

#include <stdlib.h>

#include "web/url/url.h"

struct trip *trip_new(void) {
    struct trip *trip = calloc(1, sizeof *trip);
    if (trip != NULL) {
        buf_init(&trip->address, URL_SIZE_MAX + 1);
        buf_init(&trip->failure, TRIP_FAILURE_SIZE_MAX);
        arena_init(&trip->arena, TRIP_LINKS_SIZE_MAX);
    }
    return trip;
}

void trip_free(struct trip *trip) {
    fetch_result_free(trip->result);
    buf_done(&trip->address);
    buf_done(&trip->failure);
    arena_done(&trip->arena);
    free(trip);
}

void trip_clear(struct trip *trip) {
    fetch_result_free(trip->result);
    struct buf address = trip->address;
    struct buf failure = trip->failure;
    struct arena arena = trip->arena;
    buf_clear(&address);
    buf_clear(&failure);
    arena_reset(&arena);
    *trip = (struct trip){.address = address, .failure = failure, .arena = arena};
}
