#include "node/mirror/mirror_driver_rates.h"

#include <time.h>

#include "base/value.h"

enum { HOURS_MAX = 24, MINUTES = 60, US_PER_S = 1000000 };
static const uint64_t RATE_MIN = 1024; /* as the other limits of a node have it */
static const uint64_t RATE_MAX = UINT64_C(1) << 40;

static enum err read_rate(struct bytes text, uint64_t *ret_rate, struct err_detail *detail) {
    if (bytes_equal_ignore_case(text, BYTES("unlimited"))) {
        *ret_rate = MIRROR_LIMIT_NONE;
        return ERR_OK;
    }
    if (bytes_equal_ignore_case(text, BYTES("no"))) {
        *ret_rate = 0;
        return ERR_OK;
    }
    enum err err = value_read_size(text, 0, RATE_MAX, ret_rate, detail);
    if (err == ERR_OK && *ret_rate > 0 && *ret_rate < RATE_MIN) {
        err = err_set(detail, ERR_INVALID, "less than 1 KiB a second; \"no\" for nothing");
    }
    return err;
}

/* HH:MM, up to 24:00. */
static bool rates_read_time(struct bytes text, uint16_t *ret_minute) {
    size_t colon = bytes_find_byte(text, ':');
    uint64_t hours;
    uint64_t minutes;
    if (colon >= text.size || !bytes_to_u64(bytes_slice(text, 0, colon), HOURS_MAX, &hours) ||
        text.size != colon + 3 || !bytes_to_u64(bytes_skip(text, colon + 1), MINUTES - 1, &minutes) ||
        hours * MINUTES + minutes > MIRROR_LIMIT_DAY_MINUTES) {
        return false;
    }
    *ret_minute = (uint16_t)(hours * MINUTES + minutes);
    return true;
}

static enum err add_window(struct bytes text, struct mirror_limit *limit, struct err_detail *detail) {
    struct mirror_window window = {0};
    struct err_detail reason = {0};
    size_t space = bytes_find_byte(text, ' ');
    struct bytes hours = bytes_slice(text, 0, space);
    size_t dash = bytes_find_byte(hours, '-');
    if (space >= text.size || dash >= hours.size ||
        !rates_read_time(bytes_slice(hours, 0, dash), &window.from_minute) ||
        !rates_read_time(bytes_skip(hours, dash + 1), &window.to_minute)) {
        return err_set(detail, ERR_INVALID, "\"%.*s\" is no window as 22:00-06:00 10 MB", BYTES_ARG(text));
    }
    enum err err = read_rate(bytes_trim(bytes_skip(text, space)), &window.rate, &reason);
    if (err != ERR_OK) {
        return err_set(detail, err, "window \"%.*s\": %.120s", BYTES_ARG(text),
                       err_detail_text(&reason, err));
    }
    return mirror_limit_add_window(limit, window)
               ? ERR_OK
               : err_set(detail, ERR_INVALID, "window \"%.*s\": it has no length, or there are more than %d",
                         BYTES_ARG(text), MIRROR_LIMIT_WINDOWS_MAX);
}

enum err mirror_driver_rates_read(struct bytes limit, const struct config_list *windows,
                                  struct mirror_limit *ret_limit, struct err_detail *detail) {
    uint64_t rate;
    enum err err = read_rate(limit, &rate, detail);
    if (err != ERR_OK) {
        return err;
    }
    mirror_limit_init(ret_limit, rate, 0);
    for (size_t i = 0; i < windows->count && err == ERR_OK; i++) {
        err = add_window(windows->items[i], ret_limit, detail);
    }
    return err;
}

void mirror_driver_rates_set_clock(struct mirror_limit *limit, const struct clock *clock) {
    int64_t wall_us = clock_wall_us(clock);
    time_t seconds = (time_t)(wall_us / US_PER_S);
    struct tm local;
    if (localtime_r(&seconds, &local) != NULL) {
        uint64_t minutes = (uint64_t)local.tm_hour * MINUTES + (uint64_t)local.tm_min;
        uint64_t day_us = (minutes * MINUTES + (uint64_t)local.tm_sec) * US_PER_S;
        mirror_limit_set_clock(limit, day_us + (uint64_t)(wall_us % US_PER_S), clock_monotonic_us(clock));
    }
}

bool mirror_driver_rates_until(const struct mirror_limit *limit, uint64_t now_us,
                               char ret_text[MIRROR_DRIVER_UNTIL_SIZE]) {
    uint64_t change_us = mirror_limit_change_at(limit, now_us);
    if (change_us == UINT64_MAX) {
        return false;
    }
    unsigned minute = mirror_limit_minute(limit, change_us);
    snprintf(ret_text, MIRROR_DRIVER_UNTIL_SIZE, "%02u:%02u", minute / MINUTES, minute % MINUTES);
    return true;
}

void mirror_driver_rates_put(const struct mirror_limit *limit, uint64_t now_us, struct json *json,
                             const char *name) {
    uint64_t rate = mirror_limit_rate(limit, now_us);
    char until[MIRROR_DRIVER_UNTIL_SIZE];
    json_open(json, name);
    if (rate == MIRROR_LIMIT_NONE) {
        json_none(json, "limit");
    } else {
        json_count(json, "limit", rate);
    }
    json_text(json, "until", mirror_driver_rates_until(limit, now_us, until) ? until : NULL);
    json_close(json);
}
