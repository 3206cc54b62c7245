#include "sim/experiments/volunteers.h"

#include <stdlib.h>

#include "base/assert.h"
#include "sim/experiments/sessions.h"

enum {
    PPM = 1000000,
    UPTIME_PPM_MIN = 5000, /* of a node that is found; else it takes years until it is */
    UPTIME_PPM_MAX = 995000,
    FOUND_AFTER_DAYS = 20, /* its life begins so long before, as anything */
};
static const uint64_t HOUR_US = UINT64_C(3600) * 1000000;

struct anchor {
    uint32_t rank_ppm; /* of the nodes, the worst first … */
    uint32_t uptime_ppm;
};

static uint32_t volunteers_draw_uptime_ppm(struct prng *prng) {
    static const struct anchor anchors[] = {
        {0, UPTIME_PPM_MIN}, {800000, 450000}, {970000, 800000}, {PPM, UPTIME_PPM_MAX}};
    uint64_t rank = prng_below(prng, PPM);
    size_t i = 1;
    while (anchors[i].rank_ppm <= rank) {
        i++;
    }
    const struct anchor *low = &anchors[i - 1];
    uint64_t width = anchors[i].rank_ppm - low->rank_ppm;
    uint64_t height = anchors[i].uptime_ppm - low->uptime_ppm;
    return low->uptime_ppm + (uint32_t)(height * (rank - low->rank_ppm) / width);
}

/* From long before it is found; whoever is not up at hour 0 was not found, and begins another life. */
static void volunteers_live(struct prng *prng, uint32_t uptime_ppm, uint8_t *was_up) {
    uint64_t found_us = FOUND_AFTER_DAYS * 24 * HOUR_US;
    uint64_t absence_us = HOUR_US / 1000 * (PPM - uptime_ppm) / uptime_ppm * 1000;
    uint64_t end_us = 0;
    bool is_up = prng_chance_ppm(prng, uptime_ppm);
    uint32_t hour = 0;
    while (hour < VOLUNTEERS_HOURS) {
        end_us += sessions_draw_us(prng, is_up ? HOUR_US : absence_us);
        for (; hour < VOLUNTEERS_HOURS && found_us + hour * HOUR_US < end_us; hour++) {
            was_up[hour] = is_up;
        }
        if (hour > 0 && !was_up[0]) {
            hour = 0;
            end_us = 0;
        }
        is_up = !is_up;
    }
}

enum err volunteers_init(struct volunteers *volunteers, uint32_t count, struct prng *prng) {
    *volunteers = (struct volunteers){.count = count, .was_up = calloc(count, VOLUNTEERS_HOURS)};
    for (uint32_t i = 0; volunteers->was_up != NULL && i < count; i++) {
        volunteers_live(prng, volunteers_draw_uptime_ppm(prng),
                        volunteers->was_up + (size_t)i * VOLUNTEERS_HOURS);
    }
    return volunteers->was_up != NULL ? ERR_OK : ERR_MEMORY;
}

void volunteers_done(struct volunteers *volunteers) {
    free(volunteers->was_up);
}

uint32_t volunteers_uptime_ppm(const struct volunteers *volunteers, uint32_t node, uint32_t from,
                               uint32_t count) {
    ASSERT(node < volunteers->count && count > 0 && from + count <= VOLUNTEERS_HOURS);
    uint64_t up_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        up_count += volunteers->was_up[(size_t)node * VOLUNTEERS_HOURS + from + i];
    }
    return (uint32_t)(up_count * PPM / count);
}
