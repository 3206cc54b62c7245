#include "crawl/rules/revisit.h"

#include "base/assert.h"

/*
 * ln(top / bottom), at least 0, in 1/2^32 units, by integers alone: the last bit of libm's may differ. The
 * mantissa has 62 fraction bits, because near 1 an error there counts a thousand times in the result.
 */
static uint64_t log_of(uint64_t top, uint64_t bottom) {
    ASSERT(top >= bottom && bottom > 0 && top < UINT64_C(1) << 32);
    unsigned __int128 mantissa = ((unsigned __int128)top << 62) / bottom;
    uint64_t log2 = 0;
    while (mantissa >> 63 != 0) {
        mantissa >>= 1;
        log2 += UINT64_C(1) << 32;
    }
    for (uint64_t bit = UINT64_C(1) << 31; bit > 0; bit >>= 1) { /* each further bit comes from squaring */
        mantissa = mantissa * mantissa >> 62;
        if (mantissa >> 63 != 0) {
            log2 |= bit;
            mantissa >>= 1;
        }
    }
    return (uint64_t)((unsigned __int128)log2 * UINT64_C(2977044472) >> 32); /* ln 2 = 0.693147… */
}

uint64_t revisit_change_interval_us(const struct revisit *revisit) {
    ASSERT(revisit->visits_count > 0 && revisit->last_us >= revisit->first_us);
    uint64_t n = revisit->visits_count - 1; /* distances between visits */
    uint64_t changes = revisit->changes_count < n ? revisit->changes_count : n;
    if (changes == 0) {
        return UINT64_MAX;
    }
    /* Doubled, so that the halves are whole; and n bounded, so that the fraction keeps its bits. */
    while (n >= UINT64_C(1) << 30) {
        n /= 2;
        changes /= 2;
    }
    uint64_t log = log_of(2 * n + 1, 2 * (n - changes) + 1);
    uint64_t distance_us = (uint64_t)(revisit->last_us - revisit->first_us) / n;
    unsigned __int128 interval_us = log == 0 ? UINT64_MAX : ((unsigned __int128)distance_us << 32) / log;
    return interval_us < UINT64_MAX ? (uint64_t)interval_us : UINT64_MAX;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

int64_t revisit_due_us(const struct revisit *revisit, uint64_t period_us, uint32_t target_percent) {
    ASSERT(period_us > 0 && period_us < UINT64_MAX / REVISIT_PERIODS_MAX / 4);
    uint64_t wait_us = period_us;
    if (revisit->visits_count > 1) {
        uint64_t interval_us = revisit_change_interval_us(revisit);
        uint64_t percent = target_percent == 0 ? REVISIT_TARGET_PERCENT : target_percent;
        uint64_t wanted_us =
            interval_us / 100 >= UINT64_MAX / percent / 2 ? UINT64_MAX : interval_us / 100 * percent;
        bool has_previous = revisit->previous_us != 0 && revisit->previous_us < revisit->last_us;
        uint64_t distance_us = has_previous ? (uint64_t)(revisit->last_us - revisit->previous_us) : period_us;
        wait_us = least(wanted_us, least(period_us * REVISIT_PERIODS_MAX, 2 * distance_us));
        wait_us = wait_us > period_us ? wait_us : period_us;
    }
    return revisit->last_us + (int64_t)wait_us;
}
