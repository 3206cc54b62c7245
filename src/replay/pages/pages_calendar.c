#include <stdlib.h>

#include "base/json.h"
#include "base/utc.h"
#include "replay/pages/pages.h"
#include "replay/pages/pages_failures.h"
#include "replay/pages/pages_kit.h"
#include "replay/site/trust.h"

enum { SPARK_HEIGHT = 24, YEARS_SHOWN_MAX = 60 };

static const int64_t DAY_US = INT64_C(86400) * 1000000;

/*
 * The captures of one URL by year, month and day: one walk from the newest capture back, over
 * CALENDAR_CAPTURES_MAX at most. All years get counts; of the year that is shown each day keeps its newest
 * CALENDAR_DAY_MAX captures.
 */
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
    uint64_t id;
    uint32_t next; /* older one of the same day, + 1; 0: none */
    uint16_t status;
    bool is_unchanged;       /* the same bytes as the capture before */
    uint8_t agree_count;     /* of the witnesses of its visit, of whom some got something else */
    uint8_t witnesses_count; /* 0: they agree, or there is one */
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
    bool is_range;        /* only a part of all time was asked for */
    struct absent absent; /* who did not answer */
    int64_t first_us;
    int64_t last_us;
    uint64_t first_id;
    uint64_t last_id;
    struct calendar_year years[CALENDAR_YEARS_MAX]; /* the newest first */
    size_t years_count;
    int32_t year; /* that is shown */
    struct calendar_day days[CALENDAR_DAYS_COUNT];
    struct calendar_entry *entries; /* the newest first */
    size_t entries_count;
    struct pages_failures failures; /* when there was no answer */
    struct archive_reader *reader;  /* while it is read */
    size_t looks_count;
};

/* ---- reading ---- */

/* The index of the slot of a day; month and day from 1. */
static size_t calendar_slot(unsigned month, unsigned day) {
    return (month - 1) * 31 + day - 1;
}

/* The capture that came before in the walk, so after in time. */
struct newer {
    struct capture capture; /* borrows text */
    struct buf text;
    struct calendar_entry *entry;  /* NULL: it was not kept */
    struct calendar_entry *before; /* that of the capture here, while the next is looked at; likewise */
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

static struct calendar_entry *calendar_keep(struct calendar *calendar, const struct utc *utc,
                                            const struct capture *capture) {
    struct calendar_day *day = &calendar->days[calendar_slot(utc->month, utc->day)];
    day->count++;
    day->moved_count += capture->status >= 300 && capture->status < 400 && capture->status != 304;
    day->failed_count += capture->status >= 400;
    if (day->kept_count == CALENDAR_DAY_MAX) {
        return NULL;
    }
    struct calendar_entry *entry = &calendar->entries[calendar->entries_count++];
    *entry = (struct calendar_entry){
        .time_us = capture->time_us, .id = capture_id(capture), .status = capture->status};
    uint32_t number = (uint32_t)calendar->entries_count;
    if (day->kept_count++ == 0) {
        day->newest = number;
    } else {
        calendar->entries[day->oldest - 1].next = number;
    }
    day->oldest = number;
    return entry;
}

/* How many of those who fetched it then got the same; bounded, since each is a look at the index. */
static void calendar_count_witnesses(struct calendar *calendar, const struct capture *capture,
                                     struct calendar_entry *entry) {
    enum { LOOKS_MAX = 64 };
    struct archive_witnesses witnesses;
    if (entry == NULL || entry->witnesses_count > 0 || calendar->looks_count == LOOKS_MAX) {
        return;
    }
    calendar->looks_count++;
    archive_witnesses_find(calendar->reader, NULL, capture, &witnesses);
    entry->agree_count = (uint8_t)witnesses.agree_count;
    entry->witnesses_count = (uint8_t)witnesses.count;
}

/* Two versions of one visit: its witnesses do not agree. */
static void calendar_look_at_visit(struct calendar *calendar, const struct capture *capture,
                                   struct newer *newer) {
    bool is_one_visit = (capture->flags & newer->capture.flags & CAPTURE_WITNESS) != 0 &&
                        capture->visit_s == newer->capture.visit_s &&
                        bytes_equal(capture->url, newer->capture.url);
    if (is_one_visit) {
        calendar_count_witnesses(calendar, &newer->capture, newer->before);
        calendar_count_witnesses(calendar, capture, newer->entry);
    }
    newer->before = newer->entry;
}

/* False: it is too old for the years that have room. */
static bool calendar_add(struct calendar *calendar, const struct capture *capture, struct newer *newer) {
    struct utc utc;
    utc_split(capture->time_us, &utc);
    struct calendar_year *year = find_year(calendar, utc.year);
    if (year == NULL) {
        return false;
    }
    if (calendar->total_count++ == 0) {
        calendar->last_us = capture->time_us;
        calendar->last_id = capture_id(capture);
        calendar->year = calendar->year == 0 ? utc.year : calendar->year;
        buf_put(&calendar->url, capture->url);
    }
    calendar->first_us = capture->time_us;
    calendar->first_id = capture_id(capture);
    year->count++;
    year->months[utc.month - 1]++;
    if (newer->entry != NULL) {
        newer->entry->is_unchanged = memcmp(newer->capture.digest, capture->digest, KEY_DIGEST_SIZE) == 0;
    }
    newer->entry = utc.year == calendar->year ? calendar_keep(calendar, &utc, capture) : NULL;
    calendar_look_at_visit(calendar, capture, newer);
    newer->capture = *capture;
    return archive_keep(&newer->text, &newer->capture) == ERR_OK;
}

static enum err walk_captures(struct calendar *calendar, struct archive_walk *walk,
                              const struct absent *absent, struct err_detail *detail) {
    struct capture capture;
    struct newer newer = {.entry = NULL};
    enum err err;
    buf_init(&newer.text, INDEX_SURT_SIZE_MAX + INDEX_URL_SIZE_MAX + INDEX_MIME_SIZE_MAX);
    while ((err = archive_walk_next(walk, &capture, detail)) == ERR_OK) {
        if (calendar->total_count == CALENDAR_CAPTURES_MAX || !calendar_add(calendar, &capture, &newer)) {
            calendar->is_cut = true;
            err = ERR_OK;
            break;
        }
    }
    buf_done(&newer.text);
    if (calendar->is_cut) {
        return ERR_OK;
    }
    if (err != ERR_NOT_FOUND) {
        return err;
    }
    return calendar->total_count > 0 ? ERR_OK
                                     : partial_missing(absent, "There is no capture of this URL.", detail);
}

static void calendar_free(struct calendar *calendar) {
    buf_done(&calendar->url);
    pages_failures_done(&calendar->failures);
    free(calendar->entries);
    free(calendar);
}

static struct archive_range calendar_range(struct bytes url, int64_t from_us, int64_t to_us) {
    return (struct archive_range){
        .url = url, .match = QUERY_EXACT, .from_us = from_us, .to_us = to_us, .in_reverse = true};
}

/* year 0: the newest that has captures. ERR_NOT_FOUND if there are none at all. */
static enum err calendar_read(struct archive_reader *reader, const struct archive_range *range, int32_t year,
                              struct calendar **ret_calendar, struct err_detail *detail) {
    struct calendar *calendar = calloc(1, sizeof *calendar);
    struct archive_walk *walk;
    if (calendar == NULL) {
        return ERR_MEMORY;
    }
    calendar->reader = reader;
    buf_init(&calendar->url, INDEX_URL_SIZE_MAX);
    pages_failures_init(&calendar->failures);
    calendar->is_range = range->from_us != INT64_MIN || range->to_us != INT64_MAX;
    calendar->year = year > 0 && year <= 9999 ? year : 0;
    calendar->entries = calloc(CALENDAR_ENTRIES_MAX, sizeof *calendar->entries);
    enum err err = calendar->entries == NULL ? ERR_MEMORY : ERR_OK;
    if (err == ERR_OK) {
        err = archive_walk_open(reader, range, &walk, detail);
    }
    if (err == ERR_OK) {
        err = walk_captures(calendar, walk, archive_reader_absent(reader), detail);
        calendar->absent = *archive_reader_absent(reader);
        archive_walk_close(walk);
    }
    if (err != ERR_OK) {
        calendar_free(calendar);
        return err;
    }
    pages_failures_read(&calendar->failures, reader, range);
    *ret_calendar = calendar;
    return ERR_OK;
}

static unsigned calendar_days_of(int32_t year, unsigned month) {
    static const unsigned days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && is_leap ? 1 : 0);
}

/* The weekday of the first of the month; 0: Monday. */
static unsigned calendar_weekday(int32_t year, unsigned month) {
    struct utc utc = {.year = year, .month = (uint8_t)month, .day = 1};
    int64_t time_us;
    bool is_date = utc_join(&utc, &time_us);
    ASSERT(is_date);
    utc_split(time_us, &utc);
    return (utc.weekday + 6u) % 7;
}

/* ---- the years ---- */

static const char *captures_word(uint64_t count) {
    return count == 1 ? "capture" : "captures";
}

static void put_spark(struct sheet *sheet, const struct calendar_year *year, uint32_t max) {
    sheet_format(sheet, "<svg viewBox=\"0 0 60 %d\" preserveAspectRatio=none aria-hidden=true>",
                 SPARK_HEIGHT);
    for (int i = 0; i < 12; i++) {
        if (year->months[i] > 0) {
            uint32_t height = 2 + (uint32_t)((uint64_t)year->months[i] * (SPARK_HEIGHT - 2) / max);
            sheet_format(sheet, "<rect class=bar x=%d y=%u width=4 height=%u />", i * 5,
                         SPARK_HEIGHT - height, height);
        }
    }
    sheet_html(sheet, "</svg>");
}

static void put_years(struct sheet *sheet, const struct calendar *calendar) {
    uint32_t max = 1;
    size_t count = calendar->years_count < YEARS_SHOWN_MAX ? calendar->years_count : YEARS_SHOWN_MAX;
    for (size_t i = 0; i < count; i++) {
        for (size_t month = 0; month < 12; month++) {
            max = calendar->years[i].months[month] > max ? calendar->years[i].months[month] : max;
        }
    }
    sheet_html(sheet, "<nav aria-label=Years><ol class=years>\n");
    for (size_t i = count; i-- > 0;) {
        const struct calendar_year *year = &calendar->years[i];
        sheet_format(sheet, "<li><a href=\"/web/%04d*/", year->year);
        FILL(sheet, "{url}\"{html}>", {.text = buf_bytes(&calendar->url)},
             {.string = year->year == calendar->year ? " aria-current=page" : ""});
        put_spark(sheet, year, max);
        FILL(sheet, "<b>{number}</b><span class=quiet>{count}<span class=unseen> {html}</span></span></a>\n",
             {.number = (uint64_t)year->year}, {.number = year->count},
             {.string = captures_word(year->count)});
    }
    sheet_html(sheet, "</ol></nav>\n");
}

/* ---- the days ---- */

static unsigned level_of(uint32_t count) {
    return count < 2 ? 1 : count < 5 ? 2 : count < 20 ? 3 : 4;
}

/* By what all captures of the day were. */
static const char *mood_of(const struct calendar_day *day) {
    return day->failed_count == day->count ? " failed" : day->moved_count == day->count ? " moved" : "";
}

static void put_entry_text(struct sheet *sheet, const struct calendar_entry *entry) {
    struct utc utc;
    utc_split(entry->time_us, &utc);
    sheet_format(sheet, "%02u:%02u:%02u", utc.hour, utc.minute, utc.second);
}

static void put_entry(struct sheet *sheet, const struct calendar *calendar,
                      const struct calendar_entry *entry) {
    char stamp[STAMP_SIZE];
    FILL(sheet, "<li><a href=\"{replay}\">",
         {.text = buf_bytes(&calendar->url), .time_us = entry->time_us, .id = entry->id});
    put_entry_text(sheet, entry);
    FILL(sheet, "</a> {status}", {.number = entry->status});
    if (entry->is_unchanged) {
        sheet_html(sheet, " ");
        sheet_badge(sheet, SHEET_PLAIN, "unchanged");
    }
    if (entry->witnesses_count > 0) {
        sheet_format(sheet, " <a class=disputed href=\"/details/%s/",
                     stamp_format((struct stamp){entry->time_us, entry->id}, stamp));
        sheet_url(sheet, buf_bytes(&calendar->url));
        sheet_format(sheet, "\">%u of %u witnesses agree</a>", entry->agree_count, entry->witnesses_count);
    }
}

static void put_more(struct sheet *sheet, const struct calendar *calendar, const struct calendar_day *day,
                     unsigned month, unsigned number) {
    FILL(sheet, "<li class=quiet>and {count} earlier: <a href=\"/cdx/search/cdx?url={argument}",
         {.number = day->count - day->kept_count}, {.text = buf_bytes(&calendar->url)});
    sheet_format(sheet, "&amp;from=%04d%02u%02u&amp;to=%04d%02u%02u\">the day as text</a>", calendar->year,
                 month, number, calendar->year, month, number);
}

static void put_single(struct sheet *sheet, const struct calendar *calendar, const struct calendar_day *day,
                       unsigned month, unsigned number) {
    const struct calendar_entry *entry = &calendar->entries[day->newest - 1];
    sheet_format(sheet, "<a class=\"day level-1%s\" href=\"", mood_of(day));
    sheet_replay_url(sheet, (struct stamp){entry->time_us, entry->id}, "", buf_bytes(&calendar->url));
    sheet_format(sheet, "\" aria-label=\"%u %s: 1 capture, ", number, sheet_months[month - 1]);
    put_entry_text(sheet, entry);
    sheet_format(sheet, ", status %u%s\" title=\"", entry->status, entry->is_unchanged ? ", unchanged" : "");
    put_entry_text(sheet, entry);
    sheet_format(sheet, ", status %u%s\">%u</a>", entry->status, entry->is_unchanged ? ", unchanged" : "",
                 number);
}

static void put_several(struct sheet *sheet, const struct calendar *calendar, const struct calendar_day *day,
                        unsigned month, unsigned number) {
    sheet_format(sheet,
                 "<details class=days name=day><summary class=\"day level-%u%s\" aria-label=\"%u %s: %u "
                 "captures\" title=\"%u captures\">%u</summary><div class=popup><b>%u %s</b> "
                 "<span class=quiet>%u captures</span><ul>",
                 level_of(day->count), mood_of(day), number, sheet_months[month - 1], day->count, day->count,
                 number, number, sheet_months[month - 1], day->count);
    for (uint32_t at = day->newest; at != 0; at = calendar->entries[at - 1].next) {
        put_entry(sheet, calendar, &calendar->entries[at - 1]);
    }
    if (day->count > day->kept_count) {
        put_more(sheet, calendar, day, month, number);
    }
    sheet_html(sheet, "</ul></div></details>");
}

/* The newest of a day; NULL: none. */
static const struct pages_failure *find_failure(const struct calendar *calendar, unsigned month,
                                                unsigned number) {
    for (size_t i = 0; i < calendar->failures.count; i++) {
        struct utc utc;
        utc_split(calendar->failures.items[i].time_us, &utc);
        if (utc.year == calendar->year && utc.month == month && utc.day == number) {
            return &calendar->failures.items[i];
        }
    }
    return NULL;
}

static void put_day(struct sheet *sheet, const struct calendar *calendar, unsigned month, unsigned number) {
    const struct calendar_day *day = &calendar->days[calendar_slot(month, number)];
    sheet_html(sheet, "<td>");
    const struct pages_failure *failure = find_failure(calendar, month, number);
    if (day->count == 0 && failure != NULL) {
        sheet_html(sheet, "<a class=\"day down\" href=\"");
        pages_failures_put_link(sheet, &calendar->failures, failure);
        sheet_format(sheet,
                     "\" title=\"could not be fetched\" aria-label=\"%u %s: could not be fetched\">%u</a>",
                     number, sheet_months[month - 1], number);
    } else if (day->count == 0) {
        sheet_format(sheet, "%u", number);
    } else if (day->count == 1) {
        put_single(sheet, calendar, day, month, number);
    } else {
        put_several(sheet, calendar, day, month, number);
    }
}

static void put_month(struct sheet *sheet, const struct calendar *calendar, unsigned month) {
    static const char *const weekdays[] = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                           "Friday", "Saturday", "Sunday"};
    bool is_bare = true;
    for (unsigned day = 1; day <= 31; day++) {
        is_bare = is_bare && calendar->days[calendar_slot(month, day)].count == 0;
    }
    sheet_format(sheet, "<table class=\"month%s\"><caption>%s</caption>\n<thead><tr>", is_bare ? " bare" : "",
                 sheet_months[month - 1]);
    for (size_t i = 0; i < 7; i++) {
        sheet_format(sheet, "<th scope=col abbr=%s>%.2s", weekdays[i], weekdays[i]);
    }
    sheet_html(sheet, "<tbody><tr>");
    unsigned column = calendar_weekday(calendar->year, month);
    for (unsigned i = 0; i < column; i++) {
        sheet_html(sheet, "<td>");
    }
    for (unsigned day = 1; day <= calendar_days_of(calendar->year, month); day++) {
        if (column == 7) {
            sheet_html(sheet, "\n<tr>");
            column = 0;
        }
        put_day(sheet, calendar, month, day);
        column++;
    }
    sheet_html(sheet, "</table>\n");
}

static void put_legend(struct sheet *sheet) {
    sheet_html(sheet, "<ul class=legend aria-label=Legend>"
                      "<li><span class=\"day level-1\">1</span>one capture"
                      "<li><span class=\"day level-2\">2</span>2 to 4"
                      "<li><span class=\"day level-3\">3</span>5 to 19"
                      "<li><span class=\"day level-4\">4</span>20 and more"
                      "<li><span class=\"day level-1 moved\">5</span>only redirects"
                      "<li><span class=\"day level-1 failed\">6</span>only errors"
                      "<li><span class=\"day down\">7</span>could not be fetched</ul>\n");
}

/* ---- the page ---- */

/* The day, with the time of day if only that tells the two apart. */
static void calendar_put_end(struct sheet *sheet, const struct calendar *calendar, int64_t time_us) {
    bool is_one_day = calendar->last_us - calendar->first_us < DAY_US;
    FILL(sheet, is_one_day ? "<a href=\"{replay}\">{time}</a>" : "<a href=\"{replay}\">{date}</a>",
         {.text = buf_bytes(&calendar->url), .time_us = time_us}, {.time_us = time_us});
}

static void put_summary(struct sheet *sheet, const struct calendar *calendar) {
    FILL(sheet,
         "<p class=trail><a href=\"/\">Archive</a> / Calendar</p>\n<h1 class=url>{text}</h1>\n"
         "<p class=lead>{count} {html}",
         {.text = buf_bytes(&calendar->url)}, {.number = calendar->total_count},
         {.string = captures_word(calendar->total_count)});
    if (calendar->total_count > 1) {
        sheet_html(sheet, ", the first ");
        calendar_put_end(sheet, calendar, calendar->first_us);
        sheet_html(sheet, ", the last ");
    } else {
        sheet_html(sheet, ": ");
    }
    calendar_put_end(sheet, calendar, calendar->last_us);
    sheet_html(sheet, ".</p>\n");
    if (calendar->is_range) {
        FILL(sheet,
             "<p class=quiet>Only captures of the time that was asked for. "
             "<a href=\"/web/*/{url}\">All captures</a></p>\n",
             {.text = buf_bytes(&calendar->url)});
    }
    if (calendar->is_cut) {
        sheet_notice(sheet, SHEET_WARNING,
                     "There are more captures than can be counted here; older ones are left out.");
    }
    partial_put_notice(sheet, &calendar->absent);
}

static void put_actions(struct sheet *sheet, const struct calendar *calendar) {
    struct bytes url = buf_bytes(&calendar->url);
    char text[STAMP_SIZE];
    struct stamp first = {calendar->first_us, calendar->first_id};
    struct stamp last = {calendar->last_us, calendar->last_id};
    sheet_html(sheet, "<p class=actions><a class=button href=\"");
    pages_put_path(sheet, "/details", last, url, PAGES_VIEW_PAGE);
    sheet_html(sheet, "\">Details of the last</a>");
    if (first.id != last.id) {
        sheet_format(sheet, "<a class=button href=\"/compare/%s", stamp_format(first, text));
        pages_put_path(sheet, "", last, url, PAGES_VIEW_TEXT);
        sheet_html(sheet, "\">Compare first and last</a>");
    }
    FILL(sheet, "<a class=button href=\"/web/*/{url}*\">Addresses that begin with this one</a></p>\n",
         {.text = url});
}

static void calendar_put_page(struct sheet *sheet, const struct calendar *calendar) {
    put_summary(sheet, calendar);
    put_years(sheet, calendar);
    put_legend(sheet);
    sheet_format(sheet, "<h2 class=unseen>%d</h2>\n<div class=months>\n", calendar->year);
    for (unsigned month = 1; month <= 12; month++) {
        put_month(sheet, calendar, month);
    }
    sheet_html(sheet, "</div>\n");
    pages_failures_put(sheet, &calendar->failures);
    sheet_html(sheet, "<h2>More</h2>\n");
    put_actions(sheet, calendar);
}

static void calendar_answer_missing(struct replay *replay, struct http_request *request,
                                    struct archive_reader *reader, const struct archive_range *range) {
    struct bytes url = range->url;
    struct sheet sheet;
    struct pages_failures failures;
    pages_failures_init(&failures);
    pages_failures_read(&failures, reader, range);
    sheet_begin_bare(&sheet, replay, request, "Not in this archive", SHEET_NONE);
    FILL(&sheet,
         "<div class=error><p class=error-status>404</p><h1>Not in this archive</h1>\n"
         "<p class=lead>There is no capture of <span class=url>{text}</span>.</p>\n<p class=actions>"
         "<a class=button href=\"/web/*/{url}*\">Addresses that begin with this one</a>"
         "<a class=button href=\"/save/{url}\">Save it now</a>"
         "<a class=button href=\"/\">Look for something else</a></p></div>\n",
         {.text = url}, {.text = url}, {.text = url});
    pages_failures_put(&sheet, &failures);
    pages_failures_done(&failures);
    sheet_answer(&sheet, STATUS_NOT_FOUND);
}

void pages_calendar(struct replay *replay, struct http_request *request, struct bytes url, int32_t year,
                    int64_t from_us, int64_t to_us) {
    struct archive_reader *reader = trust_reader_begin(replay, request);
    struct err_detail detail = {0};
    struct calendar *calendar = NULL;
    struct archive_range range = calendar_range(url, from_us, to_us);
    enum err err = reader == NULL ? ERR_MEMORY : calendar_read(reader, &range, year, &calendar, &detail);
    pages_add_partial(request, reader);
    if (err == ERR_NOT_FOUND) {
        calendar_answer_missing(replay, request, reader, &range);
    }
    archive_reader_end(reader);
    if (err == ERR_NOT_FOUND) {
        return;
    }
    if (err != ERR_OK) {
        pages_answer_error(replay, request, err, &detail);
        return;
    }
    struct sheet sheet;
    sheet_begin_bare(&sheet, replay, request, "Calendar", SHEET_NONE);
    calendar_put_page(&sheet, calendar);
    calendar_free(calendar);
    sheet_script(&sheet, "calendar.js");
    sheet_answer(&sheet, STATUS_OK);
}

/* ---- as JSON ---- */

static void put_day_json(struct json *json, const struct calendar *calendar, unsigned month,
                         unsigned number) {
    const struct calendar_day *day = &calendar->days[calendar_slot(month, number)];
    if (day->count == 0) {
        return;
    }
    json_open(json, NULL);
    json_format(json, "date", "%04d-%02u-%02u", calendar->year, month, number);
    json_count(json, "count", day->count);
    char id[STAMP_SIZE];
    json_open_list(json, "captures");
    for (uint32_t at = day->newest; at != 0; at = calendar->entries[at - 1].next) {
        const struct calendar_entry *entry = &calendar->entries[at - 1];
        json_open(json, NULL);
        json_timestamp(json, "timestamp", entry->time_us);
        json_text(json, "id", stamp_format((struct stamp){entry->time_us, entry->id}, id));
        json_count(json, "status", entry->status);
        json_bool(json, "unchanged", entry->is_unchanged);
        if (entry->witnesses_count > 0) {
            json_open(json, "agreement");
            json_count(json, "agree", entry->agree_count);
            json_count(json, "of", entry->witnesses_count);
            json_close(json);
        }
        json_close(json);
    }
    json_close(json);
    json_close(json);
}

static void calendar_put_json(struct json *json, const struct calendar *calendar) {
    json_open(json, NULL);
    json_bytes(json, "url", buf_bytes(&calendar->url));
    json_count(json, "count", calendar->total_count);
    json_bool(json, "cut", calendar->is_cut);
    absent_put_json(&calendar->absent, json);
    json_timestamp(json, "first", calendar->first_us);
    json_timestamp(json, "last", calendar->last_us);
    json_open_list(json, "years");
    for (size_t i = calendar->years_count; i-- > 0;) {
        const struct calendar_year *year = &calendar->years[i];
        json_open(json, NULL);
        json_signed(json, "year", year->year);
        json_count(json, "count", year->count);
        json_open_list(json, "months");
        for (size_t month = 0; month < 12; month++) {
            json_count(json, NULL, year->months[month]);
        }
        json_close(json);
        json_close(json);
    }
    json_close(json);
    json_signed(json, "year", calendar->year);
    pages_failures_put_json(json, &calendar->failures);
    json_open_list(json, "days");
    for (unsigned month = 1; month <= 12; month++) {
        for (unsigned day = 1; day <= 31; day++) {
            put_day_json(json, calendar, month, day);
        }
    }
    json_close(json);
    json_close(json);
}

void pages_calendar_json(struct http_request *request) {
    struct replay *replay = http_request_context(request);
    struct archive_reader *reader = trust_reader_begin(replay, request);
    struct err_detail detail = {0};
    struct calendar *calendar = NULL;
    struct buf url;
    struct buf text;
    struct json json;
    buf_init(&url, URL_SIZE_MAX);
    buf_init(&text, PAGES_JSON_SIZE_MAX);
    json_init(&json, &text);
    int32_t year = (int32_t)pages_argument_number(request, "year", 9999, 0);
    enum err err = reader == NULL ? ERR_MEMORY : ERR_OK;
    if (err == ERR_OK && !pages_argument(request, "url", &url)) {
        err = url.err != ERR_OK ? url.err : err_set(&detail, ERR_INVALID, "url is missing");
    }
    if (err == ERR_OK) {
        struct archive_range range = calendar_range(buf_bytes(&url), INT64_MIN, INT64_MAX);
        err = calendar_read(reader, &range, year, &calendar, &detail);
    }
    pages_add_partial(request, reader);
    if (err == ERR_OK) {
        calendar_put_json(&json, calendar);
        calendar_free(calendar);
        http_answer_json(request, STATUS_OK, "no-cache", &text);
    } else {
        pages_answer_error(replay, request, err, &detail);
    }
    buf_done(&text);
    buf_done(&url);
    archive_reader_end(reader);
}
