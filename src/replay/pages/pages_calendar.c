#include "replay/pages/pages_calendar.h"

#include "base/json.h"
#include "replay/pages/pages.h"
#include "replay/pages/pages_parts.h"

enum { STATUS_OK = 200, STATUS_NOT_FOUND = 404, SPARK_HEIGHT = 24, YEARS_SHOWN_MAX = 60 };

static const int64_t DAY_US = INT64_C(86400) * 1000000;

static const char *const months[] = {"January", "February", "March",     "April",   "May",      "June",
                                     "July",    "August",   "September", "October", "November", "December"};

static const char *captures_word(uint64_t count) {
    return count == 1 ? "capture" : "captures";
}

/* ---- the years ---- */

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
        sheet_html(sheet, "<li><a href=\"");
        pages_put_calendar_path(sheet, year->year, buf_bytes(&calendar->url));
        sheet_format(sheet, "\"%s>", year->year == calendar->year ? " aria-current=page" : "");
        put_spark(sheet, year, max);
        sheet_format(sheet, "<b>%d</b><span class=quiet>", year->year);
        sheet_count(sheet, year->count);
        sheet_format(sheet, "<span class=unseen> %s</span></span></a>\n", captures_word(year->count));
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
    sheet_html(sheet, "<li><a href=\"");
    sheet_replay_url(sheet, entry->time_us, "", buf_bytes(&calendar->url));
    sheet_html(sheet, "\">");
    put_entry_text(sheet, entry);
    sheet_html(sheet, "</a> ");
    sheet_status(sheet, entry->status);
    if (entry->is_unchanged) {
        sheet_html(sheet, " ");
        sheet_badge(sheet, SHEET_PLAIN, "unchanged");
    }
}

static void put_more(struct sheet *sheet, const struct calendar *calendar, const struct calendar_day *day,
                     unsigned month, unsigned number) {
    sheet_html(sheet, "<li class=quiet>and ");
    sheet_count(sheet, day->count - day->kept_count);
    sheet_html(sheet, " earlier: <a href=\"/cdx/search/cdx?url=");
    sheet_argument(sheet, buf_bytes(&calendar->url));
    sheet_format(sheet, "&amp;from=%04d%02u%02u&amp;to=%04d%02u%02u\">the day as text</a>", calendar->year,
                 month, number, calendar->year, month, number);
}

static void put_single(struct sheet *sheet, const struct calendar *calendar, const struct calendar_day *day,
                       unsigned month, unsigned number) {
    const struct calendar_entry *entry = &calendar->entries[day->newest - 1];
    sheet_format(sheet, "<a class=\"day level-1%s\" href=\"", mood_of(day));
    sheet_replay_url(sheet, entry->time_us, "", buf_bytes(&calendar->url));
    sheet_format(sheet, "\" aria-label=\"%u %s: 1 capture, ", number, months[month - 1]);
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
                 level_of(day->count), mood_of(day), number, months[month - 1], day->count, day->count,
                 number, number, months[month - 1], day->count);
    for (uint32_t at = day->newest; at != 0; at = calendar->entries[at - 1].next) {
        put_entry(sheet, calendar, &calendar->entries[at - 1]);
    }
    if (day->count > day->kept_count) {
        put_more(sheet, calendar, day, month, number);
    }
    sheet_html(sheet, "</ul></div></details>");
}

static void put_day(struct sheet *sheet, const struct calendar *calendar, unsigned month, unsigned number) {
    const struct calendar_day *day = &calendar->days[calendar_slot(month, number)];
    sheet_html(sheet, "<td>");
    if (day->count == 0) {
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
                 months[month - 1]);
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
                      "<li><span class=\"day level-1 failed\">6</span>only errors</ul>\n");
}

/* ---- the page ---- */

/* The day, or also the time of day where that is all that tells them apart. */
static void put_end(struct sheet *sheet, const struct calendar *calendar, int64_t time_us) {
    sheet_html(sheet, "<a href=\"");
    sheet_replay_url(sheet, time_us, "", buf_bytes(&calendar->url));
    sheet_html(sheet, "\">");
    if (calendar->last_us - calendar->first_us < DAY_US) {
        sheet_time(sheet, time_us);
    } else {
        sheet_date(sheet, time_us);
    }
    sheet_html(sheet, "</a>");
}

static void put_summary(struct sheet *sheet, const struct calendar *calendar) {
    sheet_html(sheet, "<p class=trail><a href=\"/\">Archive</a> / Calendar</p>\n<h1 class=url>");
    sheet_text(sheet, buf_bytes(&calendar->url));
    sheet_html(sheet, "</h1>\n<p class=lead>");
    sheet_count(sheet, calendar->total_count);
    sheet_format(sheet, " %s", captures_word(calendar->total_count));
    if (calendar->total_count > 1) {
        sheet_html(sheet, ", the first ");
        put_end(sheet, calendar, calendar->first_us);
        sheet_html(sheet, ", the last ");
    } else {
        sheet_html(sheet, ": ");
    }
    put_end(sheet, calendar, calendar->last_us);
    sheet_html(sheet, ".</p>\n");
    if (calendar->is_cut) {
        sheet_notice(sheet, SHEET_WARNING,
                     "There are more captures than are counted here; older ones are left out.");
    }
    if (calendar->is_partial) {
        sheet_notice(sheet, SHEET_WARNING,
                     "A volume of this archive cannot be reached now; what lies there is left out.");
    }
}

static void put_actions(struct sheet *sheet, const struct calendar *calendar) {
    struct bytes url = buf_bytes(&calendar->url);
    char first[UTC_DIGITS_SIZE];
    sheet_html(sheet, "<p class=actions><a class=button href=\"");
    pages_put_path(sheet, "/details", calendar->last_us, url, PAGES_VIEW_PAGE);
    sheet_html(sheet, "\">Details of the last</a>");
    if (calendar->first_us != calendar->last_us) {
        sheet_html(sheet, "<a class=button href=\"");
        sheet_format(sheet, "/compare/%s", utc_format_digits(calendar->first_us, first));
        pages_put_path(sheet, "", calendar->last_us, url, PAGES_VIEW_TEXT);
        sheet_html(sheet, "\">Compare first and last</a>");
    }
    sheet_html(sheet, "<a class=button href=\"/web/*/");
    sheet_url(sheet, url);
    sheet_html(sheet, "*\">Addresses that begin so</a></p>\n");
}

static void put_page(struct sheet *sheet, const struct calendar *calendar) {
    put_summary(sheet, calendar);
    put_years(sheet, calendar);
    put_legend(sheet);
    sheet_format(sheet, "<h2 class=unseen>%d</h2>\n<div class=months>\n", calendar->year);
    for (unsigned month = 1; month <= 12; month++) {
        put_month(sheet, calendar, month);
    }
    sheet_html(sheet, "</div>\n<h2>More</h2>\n");
    put_actions(sheet, calendar);
}

static void answer_missing(struct replay *replay, struct http_request *request, struct bytes url) {
    struct sheet sheet;
    sheet_begin_bare(&sheet, replay, request, "Not in this archive", SHEET_NONE);
    sheet_html(&sheet, "<div class=error><p class=error-status>404</p><h1>Not in this archive</h1>\n"
                       "<p class=lead>There is no capture of <span class=url>");
    sheet_text(&sheet, url);
    sheet_html(&sheet, "</span>.</p>\n<p class=actions><a class=button href=\"/web/*/");
    sheet_url(&sheet, url);
    sheet_html(&sheet, "*\">Addresses that begin so</a><a class=button href=\"/save/");
    sheet_url(&sheet, url);
    sheet_html(&sheet,
               "\">Save it now</a><a class=button href=\"/\">Look for something else</a></p></div>\n");
    sheet_answer(&sheet, STATUS_NOT_FOUND);
}

void pages_calendar(struct replay *replay, struct http_request *request, struct bytes url, int32_t year) {
    struct archive_reader *reader = archive_reader_begin(replay->archive);
    struct err_detail detail = {0};
    struct calendar *calendar = NULL;
    enum err err = reader == NULL ? ERR_MEMORY : calendar_read(reader, url, year, &calendar, &detail);
    if (reader != NULL) {
        archive_reader_end(reader);
    }
    if (err == ERR_NOT_FOUND) {
        answer_missing(replay, request, url);
        return;
    }
    if (err != ERR_OK) {
        pages_answer_error(replay, request, err, &detail);
        return;
    }
    struct sheet sheet;
    sheet_begin_bare(&sheet, replay, request, "Calendar", SHEET_NONE);
    put_page(&sheet, calendar);
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
    json_open_list(json, "captures");
    for (uint32_t at = day->newest; at != 0; at = calendar->entries[at - 1].next) {
        const struct calendar_entry *entry = &calendar->entries[at - 1];
        json_open(json, NULL);
        json_timestamp(json, "timestamp", entry->time_us);
        json_count(json, "status", entry->status);
        json_bool(json, "unchanged", entry->is_unchanged);
        json_close(json);
    }
    json_close(json);
    json_close(json);
}

static void put_json(struct json *json, const struct calendar *calendar) {
    json_open(json, NULL);
    json_bytes(json, "url", buf_bytes(&calendar->url));
    json_count(json, "count", calendar->total_count);
    json_bool(json, "cut", calendar->is_cut);
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
    struct archive_reader *reader = archive_reader_begin(replay->archive);
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
        err = err_set(&detail, ERR_INVALID, "url is missing");
    }
    if (err == ERR_OK) {
        err = calendar_read(reader, buf_bytes(&url), year, &calendar, &detail);
    }
    if (err == ERR_OK) {
        put_json(&json, calendar);
        calendar_free(calendar);
        http_answer_json(request, PAGES_OK, "no-cache", &text);
    } else {
        pages_answer_error(replay, request, err, &detail);
    }
    buf_done(&text);
    buf_done(&url);
    if (reader != NULL) {
        archive_reader_end(reader);
    }
}
