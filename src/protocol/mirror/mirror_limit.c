#include "protocol/mirror/mirror_limit.h"

#include "base/assert.h"

static const uint64_t SECOND_US = 1000000;
static const uint64_t MINUTE_US = 60 * 1000000;
static const uint64_t DAY_US = MIRROR_LIMIT_DAY_MINUTES * UINT64_C(60000000);
static const uint64_t RATE_MAX = UINT64_C(1) << 40; /* above it is none: products stay below 2^64 */

enum { BUCKET_S = 2 };

void mirror_limit_init(struct mirror_limit *limit, uint64_t rate, uint64_t now_us) {
    *limit = (struct mirror_limit){.rate = rate, .filled_at_us = now_us};
    limit->tokens = rate < RATE_MAX ? (int64_t)(rate * BUCKET_S) : 0;
}

bool mirror_limit_add_window(struct mirror_limit *limit, struct mirror_window window) {
    if (limit->windows_count == MIRROR_LIMIT_WINDOWS_MAX || window.from_minute == window.to_minute ||
        window.from_minute >= MIRROR_LIMIT_DAY_MINUTES || window.to_minute > MIRROR_LIMIT_DAY_MINUTES) {
        return false;
    }
    limit->windows[limit->windows_count++] = window;
    return true;
}

void mirror_limit_set_clock(struct mirror_limit *limit, uint64_t day_us, uint64_t now_us) {
    limit->midnight_us = (now_us % DAY_US + DAY_US - day_us % DAY_US) % DAY_US;
}

static uint64_t day_of(const struct mirror_limit *limit, uint64_t now_us) {
    return (now_us % DAY_US + DAY_US - limit->midnight_us) % DAY_US;
}

uint16_t mirror_limit_minute(const struct mirror_limit *limit, uint64_t at_us) {
    return (uint16_t)(day_of(limit, at_us) / MINUTE_US);
}

uint64_t mirror_limit_rate(const struct mirror_limit *limit, uint64_t now_us) {
    uint16_t minute = mirror_limit_minute(limit, now_us);
    for (size_t i = 0; i < limit->windows_count; i++) {
        const struct mirror_window *window = &limit->windows[i];
        bool is_after = minute >= window->from_minute;
        bool is_before = minute < window->to_minute;
        if (window->from_minute < window->to_minute ? is_after && is_before : is_after || is_before) {
            return window->rate;
        }
    }
    return limit->rate;
}

/* The next time at which a window begins or ends. */
static uint64_t edge_at(const struct mirror_limit *limit, uint64_t now_us) {
    uint64_t day_us = day_of(limit, now_us);
    uint64_t wait_us = DAY_US;
    for (size_t i = 0; i < 2 * limit->windows_count; i++) {
        const struct mirror_window *window = &limit->windows[i / 2];
        uint64_t edge_us = (i % 2 == 0 ? window->from_minute : window->to_minute) * MINUTE_US;
        uint64_t until_us = (edge_us + DAY_US - day_us) % DAY_US;
        if (until_us > 0 && until_us < wait_us) {
            wait_us = until_us;
        }
    }
    return now_us + wait_us;
}

uint64_t mirror_limit_change_at(const struct mirror_limit *limit, uint64_t now_us) {
    uint64_t at_us = now_us;
    for (size_t i = 0; i < 2 * limit->windows_count; i++) {
        at_us = edge_at(limit, at_us);
        if (mirror_limit_rate(limit, at_us) != mirror_limit_rate(limit, now_us)) {
            return at_us;
        }
    }
    return UINT64_MAX;
}

/* The rate of now counts for all the time since the last look. */
static void limit_fill(struct mirror_limit *limit, uint64_t rate, uint64_t now_us) {
    ASSERT(now_us >= limit->filled_at_us);
    uint64_t passed_us = now_us - limit->filled_at_us;
    passed_us = passed_us < DAY_US ? passed_us : DAY_US;
    int64_t full = (int64_t)(rate * BUCKET_S);
    int64_t gained = (int64_t)(rate * (passed_us / SECOND_US) + rate * (passed_us % SECOND_US) / SECOND_US);
    if (gained == 0 && rate > 0) {
        return; /* not even one byte yet: the time is kept for later */
    }
    limit->filled_at_us = now_us;
    limit->tokens += gained;
    limit->tokens = limit->tokens < full ? limit->tokens : full;
}

uint64_t mirror_limit_left(struct mirror_limit *limit, uint64_t now_us) {
    uint64_t rate = mirror_limit_rate(limit, now_us);
    if (rate >= RATE_MAX) {
        limit->filled_at_us = now_us;
        limit->tokens = 0;
        return MIRROR_LIMIT_NONE;
    }
    limit_fill(limit, rate, now_us);
    return limit->tokens > 0 ? (uint64_t)limit->tokens : 0;
}

void mirror_limit_take(struct mirror_limit *limit, uint64_t size, uint64_t now_us) {
    ASSERT(size <= INT32_MAX);
    if (mirror_limit_left(limit, now_us) != MIRROR_LIMIT_NONE) {
        limit->tokens -= (int64_t)size;
    }
}

uint64_t mirror_limit_wake_at(struct mirror_limit *limit, uint64_t now_us) {
    if (mirror_limit_left(limit, now_us) > 0) {
        return now_us;
    }
    uint64_t rate = mirror_limit_rate(limit, now_us);
    uint64_t change_us = edge_at(limit, now_us);
    if (rate == 0) {
        return change_us;
    }
    uint64_t paid_us = now_us + ((uint64_t)-limit->tokens + 1) * SECOND_US / rate + 1;
    return paid_us < change_us ? paid_us : change_us;
}
