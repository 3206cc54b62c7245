/*
 * trap_shape - what the spelling of one URL tells: repeated parts, dates, session ids.
 *
 * Part of trap.h, which says what is made of it. Pure, no memory; time is linear in the URL but for the
 * repetitions, which are looked for in a bounded number of segments and arguments.
 */
#ifndef MNEMON_CRAWL_RULES_TRAP_SHAPE_H
#define MNEMON_CRAWL_RULES_TRAP_SHAPE_H

#include "web/url/url.h"

enum { TRAP_SEGMENTS_KEPT = 64, TRAP_ARGUMENTS_KEPT = 64, TRAP_PERIOD_MAX = 8 };

struct trap_segments {
    struct bytes items[TRAP_SEGMENTS_KEPT]; /* the first ones; empty segments are left out */
    uint32_t count;                         /* of all */
};

void trap_segments_split(struct trap_segments *segments, struct bytes path);

/*
 * Do one to TRAP_PERIOD_MAX segments occur more than repetitions_max times in a row? Sequences of short or
 * numeric segments only (map tiles, /0/0/0/, dates) must do so three times as often.
 */
bool trap_segments_repeat(const struct trap_segments *segments, uint32_t repetitions_max);

/* Does one segment that is a word occur more often than that, wherever? */
bool trap_segments_recur(const struct trap_segments *segments, uint32_t occurrences_max);

/* Does one "name=value" occur more often than that? */
bool trap_arguments_recur(struct bytes query, uint32_t occurrences_max);

/* Parts between '&' and ';' that are not empty. */
unsigned trap_arguments_count(struct bytes query);

/* How sure it is that a URL belongs to a calendar. */
enum trap_calendar {
    TRAP_CALENDAR_NONE,
    TRAP_CALENDAR_WEAK,   /* a name speaks of time: /events/2031-05, ?date=2031-05-07 */
    TRAP_CALENDAR_STRONG, /* of a calendar: /calendar/…, ?year=2031&month=5 */
};

struct trap_date {
    bool is_date;
    enum trap_calendar calendar;
    int32_t year; /* the latest, if there are several dates */
};

/*
 * The date that a URL is about, as far as it can be told. Without a name that speaks of time only a whole
 * date counts: /2031/05/07/, 2031-05-07; with one also 2031-05, 2031/5, 20310507, 203105 and year=2031.
 */
void trap_find_date(const struct url *url, struct trap_date *ret_date);

/*
 * A session id by its name (sid, PHPSESSID, ;jsessionid=…) and looks (16 letters and digits or more): hashes
 * of the URL without it and of the id. False if there is none.
 */
bool trap_find_session(const struct url *url, uint64_t *ret_rest_hash, uint64_t *ret_id_hash);

#endif
