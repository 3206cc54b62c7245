/*
 * mirror_limit - how fast a node may fetch, by the time of day: "1 MB a second, by night as much as there
 * is, at noon nothing". Pure.
 *
 * One for all collections of a node, or one for each. A bucket of two seconds: what is fetched is taken from
 * it when it is asked for. Hours are as the owner's clock on the wall counts them.
 */
#ifndef MNEMON_PROTOCOL_MIRROR_MIRROR_LIMIT_H
#define MNEMON_PROTOCOL_MIRROR_MIRROR_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MIRROR_LIMIT_WINDOWS_MAX = 8, MIRROR_LIMIT_DAY_MINUTES = 24 * 60 };
static const uint64_t MIRROR_LIMIT_NONE = UINT64_MAX; /* as fast as it goes */

/* from <= minute of the day < to; if to <= from, over midnight. */
struct mirror_window {
    uint16_t from_minute;
    uint16_t to_minute;
    uint64_t rate; /* bytes a second; 0: nothing */
};

struct mirror_limit {
    uint64_t rate;                                          /* outside of all windows */
    struct mirror_window windows[MIRROR_LIMIT_WINDOWS_MAX]; /* the first that fits counts */
    size_t windows_count;
    uint64_t midnight_us; /* a midnight of the owner's, by the monotonic clock, modulo a day */
    uint64_t filled_at_us;
    int64_t tokens; /* bytes that may be asked for; below 0: owed */
};

/* Without windows. rate: MIRROR_LIMIT_NONE for no limit. */
void mirror_limit_init(struct mirror_limit *limit, uint64_t rate, uint64_t now_us);

/* False if the minutes are none of a day, are the same, or there are too many windows. */
bool mirror_limit_add_window(struct mirror_limit *limit, struct mirror_window window);

/* It is so many microseconds after midnight now. Again when the clock on the wall was set. */
void mirror_limit_set_clock(struct mirror_limit *limit, uint64_t day_us, uint64_t now_us);

/* How much may be asked for now: MIRROR_LIMIT_NONE, or so many bytes. */
uint64_t mirror_limit_left(struct mirror_limit *limit, uint64_t now_us);

/* So much was asked for. What is more than was left is owed: a chunk may be larger than two seconds' worth.
 */
void mirror_limit_take(struct mirror_limit *limit, uint64_t size, uint64_t now_us);

/* When something may be asked for; or the rate changes: look again then. */
uint64_t mirror_limit_wake_at(struct mirror_limit *limit, uint64_t now_us);

/* For people: bytes a second; when that will be another, UINT64_MAX if it will not; and which minute of
 * the day that is. */
uint64_t mirror_limit_rate(const struct mirror_limit *limit, uint64_t now_us);
uint64_t mirror_limit_change_at(const struct mirror_limit *limit, uint64_t now_us);
uint16_t mirror_limit_minute(const struct mirror_limit *limit, uint64_t at_us);

#endif
