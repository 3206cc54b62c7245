#include <stdlib.h>

#include "replay/pages/pages_calendar.h"

/* Of the capture that came before it in the walk, so after it in time. */
struct newer {
    uint8_t digest[KEY_DIGEST_SIZE];
    struct calendar_entry *entry; /* NULL: it was not kept */
};

static struct calendar_year *find_year(struct calendar *calendar, int32_t number) {
    struct calendar_year *last =
        calendar->years_count == 0 ? NULL : &calendar->years[calendar->years_count - 1];
    if (last != NULL && last->year == number) {
        return last;
    }
    if (calendar->years_count == CALENDAR_YEARS_MAX) {
        return NULL;
    }
    last = &calendar->years[calendar->years_count++];
    *last = (struct calendar_year){.year = number};
    return last;
}

static struct calendar_entry *keep(struct calendar *calendar, const struct utc *utc,
                                   const struct capture *capture) {
    struct calendar_day *day = &calendar->days[calendar_slot(utc->month, utc->day)];
    day->count++;
    day->moved_count += capture->status >= 300 && capture->status < 400 && capture->status != 304;
    day->failed_count += capture->status >= 400;
    if (day->kept_count == CALENDAR_DAY_MAX) {
        return NULL;
    }
    struct calendar_entry *entry = &calendar->entries[calendar->entries_count++];
    *entry = (struct calendar_entry){.time_us = capture->time_us, .status = capture->status};
    uint32_t number = (uint32_t)calendar->entries_count;
    if (day->kept_count++ == 0) {
        day->newest = number;
    } else {
        calendar->entries[day->oldest - 1].next = number;
    }
    day->oldest = number;
    return entry;
}

/* False: it is too old for the years that have room. */
static bool add(struct calendar *calendar, const struct capture *capture, struct newer *newer) {
    struct utc utc;
    utc_split(capture->time_us, &utc);
    struct calendar_year *year = find_year(calendar, utc.year);
    if (year == NULL) {
        return false;
    }
    if (calendar->total_count++ == 0) {
        calendar->last_us = capture->time_us;
        calendar->year = calendar->year == 0 ? utc.year : calendar->year;
        buf_put(&calendar->url, capture->url);
    }
    calendar->first_us = capture->time_us;
    year->count++;
    year->months[utc.month - 1]++;
    if (newer->entry != NULL) {
        newer->entry->is_unchanged = memcmp(newer->digest, capture->digest, KEY_DIGEST_SIZE) == 0;
    }
    newer->entry = utc.year == calendar->year ? keep(calendar, &utc, capture) : NULL;
    memcpy(newer->digest, capture->digest, KEY_DIGEST_SIZE);
    return true;
}

static enum err walk_captures(struct calendar *calendar, struct archive_walk *walk,
                              struct err_detail *detail) {
    struct capture capture;
    struct newer newer = {0};
    enum err err;
    while ((err = archive_walk_next(walk, &capture, detail)) == ERR_OK) {
        if (calendar->total_count == CALENDAR_CAPTURES_MAX || !add(calendar, &capture, &newer)) {
            calendar->is_cut = true;
            return ERR_OK;
        }
    }
    return err == ERR_NOT_FOUND && calendar->total_count > 0 ? ERR_OK : err;
}

enum err calendar_read(struct archive_reader *reader, struct bytes url, int32_t year,
                       struct calendar **ret_calendar, struct err_detail *detail) {
    struct calendar *calendar = calloc(1, sizeof *calendar);
    struct archive_walk *walk;
    struct archive_range range = {
        .url = url, .match = QUERY_EXACT, .from_us = INT64_MIN, .to_us = INT64_MAX, .in_reverse = true};
    if (calendar == NULL) {
        return ERR_MEMORY;
    }
    buf_init(&calendar->url, INDEX_URL_SIZE_MAX);
    calendar->year = year > 0 && year <= 9999 ? year : 0;
    calendar->entries = calloc(CALENDAR_ENTRIES_MAX, sizeof *calendar->entries);
    enum err err = calendar->entries == NULL ? ERR_MEMORY : ERR_OK;
    if (err == ERR_OK) {
        err = archive_walk_open(reader, &range, &walk, detail);
    }
    if (err == ERR_OK) {
        err = walk_captures(calendar, walk, detail);
        calendar->is_partial = archive_walk_is_partial(walk);
        archive_walk_close(walk);
    }
    if (err != ERR_OK) {
        calendar_free(calendar);
        return err;
    }
    *ret_calendar = calendar;
    return ERR_OK;
}

void calendar_free(struct calendar *calendar) {
    buf_done(&calendar->url);
    free(calendar->entries);
    free(calendar);
}

unsigned calendar_days_of(int32_t year, unsigned month) {
    static const unsigned days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && is_leap ? 1 : 0);
}

unsigned calendar_weekday(int32_t year, unsigned month) {
    struct utc utc = {.year = year, .month = (uint8_t)month, .day = 1};
    int64_t time_us;
    bool is_date = utc_join(&utc, &time_us);
    ASSERT(is_date);
    utc_split(time_us, &utc);
    return (utc.weekday + 6u) % 7;
}
