/*
 * pages_calendar - the captures of one URL by year, month and day: what calendar page and API show.
 *
 * One walk from the newest capture back, over CALENDAR_CAPTURES_MAX at most. All years get counts; of the
 * year that is shown each day keeps its newest CALENDAR_DAY_MAX captures. Private to pages_calendar*.c.
 */
#ifndef MNEMON_REPLAY_PAGES_PAGES_CALENDAR_H
#define MNEMON_REPLAY_PAGES_PAGES_CALENDAR_H

#include "base/utc.h"
#include "replay/pages/pages_kit.h"

enum {
    CALENDAR_CAPTURES_MAX = 200000,
    CALENDAR_YEARS_MAX = 200,
    CALENDAR_DAY_MAX = 12,
    CALENDAR_DAYS_COUNT = 12 * 31, /* a slot for each day that a month could have */
    CALENDAR_ENTRIES_MAX = CALENDAR_DAYS_COUNT * CALENDAR_DAY_MAX,
};

struct calendar_year {
    int32_t year;
    uint32_t count;
    uint32_t months[12];
};

struct calendar_entry {
    int64_t time_us;
    uint32_t next; /* older one of the same day, + 1; 0: none */
    uint16_t status;
    bool is_unchanged; /* the same bytes as the capture before */
};

struct calendar_day {
    uint32_t count;
    uint32_t newest;       /* index of its newest entry, + 1; 0: none */
    uint32_t oldest;       /* of those that are kept, + 1 */
    uint32_t kept_count;   /* entries */
    uint32_t moved_count;  /* redirects */
    uint32_t failed_count; /* status 400 and more */
};

struct calendar {
    struct buf url;       /* of the newest capture */
    uint64_t total_count; /* captures that were looked at */
    bool is_cut;          /* there are older ones */
    bool is_partial;      /* volumes were down */
    int64_t first_us;
    int64_t last_us;
    struct calendar_year years[CALENDAR_YEARS_MAX]; /* the newest first */
    size_t years_count;
    int32_t year; /* that is shown */
    struct calendar_day days[CALENDAR_DAYS_COUNT];
    struct calendar_entry *entries; /* the newest first */
    size_t entries_count;
};

/* year 0: the newest that has captures. ERR_NOT_FOUND where there are none at all. */
enum err calendar_read(struct archive_reader *reader, struct bytes url, int32_t year,
                       struct calendar **ret_calendar, struct err_detail *detail) MUST_CHECK;
void calendar_free(struct calendar *calendar);

/* The index of the slot of a day; month and day from 1. */
static inline size_t calendar_slot(unsigned month, unsigned day) {
    return (month - 1) * 31 + day - 1;
}

unsigned calendar_days_of(int32_t year, unsigned month);
unsigned calendar_weekday(int32_t year, unsigned month); /* of the first: 0 Monday */

#endif
