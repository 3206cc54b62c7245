#include <stdio.h>

#include "base/json.h"
#include "replay/pages/pages_kit.h"
#include "replay/survey/survey.h"

enum {
    HOSTS_SHOWN_MAX = 25,
    TYPES_SHOWN_MAX = 12,
    CHART_WIDTH = 960,
    CHART_HEIGHT = 200,
    CHART_FOOT = 24,
    BARS_MIN = 12,   /* a year has its width, however little of it there is */
    BARS_MAX = 60,   /* months up to so many, else years */
    YEARS_MAX = 200, /* of the chart; older ones are left out */
};

static const char *const orders[] = {[SURVEY_BY_CAPTURES] = "captures",
                                     [SURVEY_BY_SIZE] = "size",
                                     [SURVEY_BY_NAME] = "name",
                                     [SURVEY_BY_LAST] = "last"};

/* ---- over time ---- */

struct bar {
    int32_t number; /* a month, or a year */
    uint64_t captures_count;
    uint64_t size;
};

struct bars {
    bool is_yearly;
    size_t count;
    struct bar items[YEARS_MAX];
};

/* Months without captures have a place too: time passes evenly. */
static void make_bars(struct bars *bars, const struct survey_snapshot *snapshot) {
    *bars = (struct bars){.count = 0};
    if (snapshot->months_count == 0) {
        return;
    }
    int32_t last = snapshot->months[snapshot->months_count - 1].month;
    bars->is_yearly = last - snapshot->months[0].month >= BARS_MAX;
    int32_t unit = bars->is_yearly ? 12 : 1;
    int32_t max = bars->is_yearly ? YEARS_MAX : BARS_MAX;
    int32_t start = snapshot->months[0].month / unit;
    start = last / unit - start < BARS_MIN - 1 ? last / unit - BARS_MIN + 1 : start;
    start = last / unit - start >= max ? last / unit - max + 1 : start;
    bars->count = (size_t)(last / unit - start + 1);
    for (size_t i = 0; i < bars->count; i++) {
        bars->items[i].number = start + (int32_t)i;
    }
    for (size_t i = 0; i < snapshot->months_count; i++) {
        int32_t index = snapshot->months[i].month / unit - start;
        if (index >= 0) {
            bars->items[index].captures_count += snapshot->months[i].captures_count;
            bars->items[index].size += snapshot->months[i].size;
        }
    }
}

static void put_bar_name(struct sheet *sheet, const struct bars *bars, const struct bar *bar) {
    if (bars->is_yearly) {
        sheet_format(sheet, "%d", bar->number);
    } else {
        sheet_format(sheet, "%.3s %d", sheet_months[bar->number % 12], bar->number / 12);
    }
}

static void put_bar(struct sheet *sheet, const struct bars *bars, size_t index, uint64_t max) {
    const struct bar *bar = &bars->items[index];
    double slot = (double)CHART_WIDTH / (double)bars->count;
    double width = slot > 48 ? 40 : slot * 0.8;
    double height = max == 0 ? 0 : (double)bar->captures_count * (CHART_HEIGHT - 8) / (double)max;
    height = bar->captures_count > 0 && height < 2 ? 2 : height;
    double middle = (double)index * slot + slot / 2;
    sheet_format(sheet, "<rect class=bar x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=2><title>",
                 middle - width / 2, CHART_HEIGHT - height, width, height);
    put_bar_name(sheet, bars, bar);
    FILL(sheet, ": {count} captures</title></rect>", {.number = bar->captures_count});
    size_t every = bars->count / 12 + 1;
    if (index % every == 0) {
        sheet_format(sheet, "<text x=\"%.1f\" y=%d text-anchor=middle>", middle,
                     CHART_HEIGHT + CHART_FOOT - 6);
        put_bar_name(sheet, bars, bar);
        sheet_html(sheet, "</text>");
    }
}

static void put_bars_table(struct sheet *sheet, const struct bars *bars) {
    sheet_html(sheet, "<details><summary>The same as a table</summary>\n");
    sheet_table_begin(sheet, "Captures over time");
    sheet_format(sheet,
                 "<thead><tr><th scope=col>%s<th scope=col class=number>Captures<th scope=col "
                 "class=number>Size<tbody>\n",
                 bars->is_yearly ? "Year" : "Month");
    for (size_t i = 0; i < bars->count; i++) {
        if (bars->items[i].captures_count > 0) {
            sheet_html(sheet, "<tr><th scope=row>");
            put_bar_name(sheet, bars, &bars->items[i]);
            FILL(sheet, "<td class=number>{count}<td class=number>{size}\n",
                 {.number = bars->items[i].captures_count}, {.number = bars->items[i].size});
        }
    }
    sheet_table_end(sheet);
    sheet_html(sheet, "</details>\n");
}

static void put_time(struct sheet *sheet, const struct survey_snapshot *snapshot) {
    struct bars bars;
    uint64_t max = 0;
    make_bars(&bars, snapshot);
    for (size_t i = 0; i < bars.count; i++) {
        max = bars.items[i].captures_count > max ? bars.items[i].captures_count : max;
    }
    sheet_html(sheet, "<h2>Over time</h2>\n<figure>");
    sheet_format(sheet,
                 "<svg class=chart viewBox=\"0 0 %d %d\" role=img aria-labelledby=\"chart-title chart-text\">"
                 "<title id=chart-title>Captures per %s</title><desc id=chart-text>From ",
                 CHART_WIDTH, CHART_HEIGHT + CHART_FOOT, bars.is_yearly ? "year" : "month");
    put_bar_name(sheet, &bars, &bars.items[0]);
    sheet_html(sheet, " to ");
    put_bar_name(sheet, &bars, &bars.items[bars.count - 1]);
    FILL(sheet, ", at most {count}.</desc>", {.number = max});
    for (size_t i = 0; i < bars.count; i++) {
        put_bar(sheet, &bars, i, max);
    }
    sheet_format(
        sheet, "<path class=axis d=\"M0 %dH%d\" /></svg><figcaption>Captures per %s</figcaption></figure>\n",
        CHART_HEIGHT, CHART_WIDTH, bars.is_yearly ? "year" : "month");
    put_bars_table(sheet, &bars);
}

/* ---- hosts ---- */

static enum survey_order read_order(const struct http_request *request) {
    struct buf text;
    enum survey_order order = SURVEY_BY_CAPTURES;
    buf_init(&text, 32);
    if (pages_argument(request, "sort", &text)) {
        for (size_t i = 0; i < SURVEY_ORDERS_COUNT; i++) {
            if (bytes_equal(buf_bytes(&text), bytes_of_string(orders[i]))) {
                order = (enum survey_order)i;
            }
        }
    }
    buf_done(&text);
    return order;
}

static void put_column(struct sheet *sheet, enum survey_order order, enum survey_order column,
                       const char *name, const char *class_name) {
    bool is_current = order == column;
    sheet_format(sheet, "<th scope=col%s%s><a href=\"/holdings?sort=%s#hosts\">%s%s</a>", class_name,
                 !is_current                ? ""
                 : column == SURVEY_BY_NAME ? " aria-sort=ascending"
                                            : " aria-sort=descending",
                 orders[column], name,
                 !is_current                ? ""
                 : column == SURVEY_BY_NAME ? " <span aria-hidden=true>▴</span>"
                                            : " <span aria-hidden=true>▾</span>");
}

static void holdings_put_host(struct sheet *sheet, const struct survey_host *host) {
    bool is_scheme = bytes_ends_with(host->surt, BYTES(":")); /* dns: … */
    sheet_html(sheet, "<tr><th scope=row class=grow>");
    if (is_scheme) {
        sheet_text(sheet, host->name);
    } else {
        FILL(sheet, "<a href=\"/web/*/{url}/*\">{text}</a>", {.text = host->name}, {.text = host->name});
    }
    FILL(sheet, "<td class=number>{count}<td class=number>{size}<td>{date}<td>{date}\n",
         {.number = host->total.captures_count}, {.number = host->total.size}, {.time_us = host->first_us},
         {.time_us = host->last_us});
}

static void put_pager(struct sheet *sheet, enum survey_order order, size_t from, size_t count) {
    if (from == 0 && count <= HOSTS_SHOWN_MAX) {
        return;
    }
    sheet_html(sheet, "<nav class=actions aria-label=\"Pages of hosts\">");
    if (from > 0) {
        sheet_format(sheet,
                     "<a class=button rel=prev href=\"/holdings?sort=%s&amp;from=%zu#hosts\">Before</a>",
                     orders[order], from > HOSTS_SHOWN_MAX ? from - HOSTS_SHOWN_MAX : 0);
    }
    FILL(sheet, "<span class=quiet>{count} to {count} of {count}</span>", {.number = from + 1},
         {.number = from + HOSTS_SHOWN_MAX < count ? from + HOSTS_SHOWN_MAX : count}, {.number = count});
    if (from + HOSTS_SHOWN_MAX < count) {
        sheet_format(sheet, "<a class=button rel=next href=\"/holdings?sort=%s&amp;from=%zu#hosts\">More</a>",
                     orders[order], from + HOSTS_SHOWN_MAX);
    }
    sheet_html(sheet, "</nav>\n");
}

static void put_hosts(struct sheet *sheet, struct archive_reader *reader,
                      const struct survey_snapshot *snapshot) {
    enum survey_order order = read_order(sheet->request);
    size_t from = (size_t)pages_argument_number(sheet->request, "from", SURVEY_HOSTS_MAX, 0);
    from = from < snapshot->hosts_count ? from : 0;
    sheet_html(sheet, "<h2 id=hosts>Hosts</h2>\n");
    sheet_table_begin(sheet, "Hosts");
    sheet_html(sheet, "<thead><tr>");
    put_column(sheet, order, SURVEY_BY_NAME, "Host", "");
    put_column(sheet, order, SURVEY_BY_CAPTURES, "Captures", " class=number");
    put_column(sheet, order, SURVEY_BY_SIZE, "Size", " class=number");
    sheet_html(sheet, "<th scope=col>First");
    put_column(sheet, order, SURVEY_BY_LAST, "Last", "");
    sheet_html(sheet, "<tbody>\n");
    for (size_t i = from; i < snapshot->hosts_count && i < from + HOSTS_SHOWN_MAX; i++) {
        const struct survey_host *host = snapshot->hosts[order][i];
        if (pages_host_is_seen(reader, host)) {
            holdings_put_host(sheet, host);
        }
    }
    sheet_table_end(sheet);
    put_pager(sheet, order, from, snapshot->hosts_count);
    if (snapshot->others.captures_count > 0) {
        FILL(sheet, "<p class=quiet>And more hosts, which together have {count} captures.</p>\n",
             {.number = snapshot->others.captures_count});
    }
}

/* ---- types, statuses, volumes ---- */

static void put_share(struct sheet *sheet, uint64_t part, uint64_t whole) {
    double share = whole == 0 ? 0 : (double)part * 100 / (double)whole;
    sheet_format(sheet, "<td class=number>%.1f %%", share);
}

static void put_types(struct sheet *sheet, const struct survey_snapshot *snapshot) {
    sheet_html(sheet, "<section><h2>Types</h2>\n");
    sheet_table_begin(sheet, "Types of documents");
    sheet_html(sheet, "<thead><tr><th scope=col>Type<th scope=col class=number>Captures<th scope=col "
                      "class=number>Share<th scope=col class=number>Size<tbody>\n");
    for (size_t i = 0; i < snapshot->types_count && i < TYPES_SHOWN_MAX; i++) {
        const struct survey_type *type = &snapshot->types[i];
        FILL(sheet, "<tr><th scope=row>{text}<td class=number>{count}",
             {.text = type->name.size > 0 ? type->name : BYTES("unknown")},
             {.number = type->total.captures_count});
        put_share(sheet, type->total.captures_count, snapshot->total.captures_count);
        sheet_cell_size(sheet, type->total.size);
        sheet_html(sheet, "\n");
    }
    sheet_table_end(sheet);
    sheet_html(sheet, "</section>\n");
}

static void put_statuses(struct sheet *sheet, const struct survey_snapshot *snapshot) {
    sheet_html(sheet, "<section><h2>Statuses</h2>\n");
    sheet_table_begin(sheet, "Statuses");
    sheet_html(sheet, "<thead><tr><th scope=col>Status<th scope=col class=number>Captures<th scope=col "
                      "class=number>Share<tbody>\n");
    for (size_t i = 0; i < SURVEY_STATUSES_MAX; i++) {
        if (snapshot->statuses[i] > 0) {
            FILL(sheet, "<tr><th scope=row>{status}<td class=number>{count}", {.number = i},
                 {.number = snapshot->statuses[i]});
            put_share(sheet, snapshot->statuses[i], snapshot->total.captures_count);
            sheet_html(sheet, "\n");
        }
    }
    sheet_table_end(sheet);
    sheet_html(sheet, "</section>\n");
}

static void holdings_put_volumes(struct sheet *sheet, const struct survey_snapshot *snapshot) {
    sheet_html(sheet, "<h2>Volumes</h2>\n");
    sheet_table_begin(sheet, "Volumes");
    sheet_html(sheet, "<thead><tr><th scope=col>Volume<th scope=col>Where<th scope=col>State<th scope=col "
                      "class=number>Segments<th scope=col class=number>Size<th scope=col class=number>Of it "
                      "removed<th scope=col class=number>Index<tbody>\n");
    for (size_t i = 0; i < snapshot->volumes_count; i++) {
        const struct survey_volume *volume = &snapshot->volumes[i];
        sheet_format(sheet, "<tr><th scope=row>%u<td>%s<td>", volume->number,
                     volume->is_remote ? "another machine" : "this machine");
        sheet_badge(sheet, volume->is_up ? SHEET_GOOD : SHEET_BAD, volume->is_up ? "up" : "down");
        FILL(
            sheet,
            "<td class=number>{count}<td class=number>{size}<td class=number>{size}<td class=number>{size}\n",
            {.number = volume->stat.segments_count}, {.number = volume->stat.size},
            {.number = volume->stat.dead_size}, {.number = volume->stat.index_size});
    }
    sheet_table_end(sheet);
}

/* ---- the page ---- */

static void put_age(struct sheet *sheet, const struct survey_snapshot *snapshot) {
    FILL(sheet, "<p class=quiet>Counted {time}{html}.</p>\n", {.time_us = snapshot->made_us},
         {.string = snapshot->is_complete ? "" : "; counting goes on"});
    if (snapshot->is_partial) {
        sheet_notice(sheet, SHEET_WARNING,
                     "A volume of this archive could not be reached; its captures are left out.");
    }
}

static void holdings_put_page(struct sheet *sheet, struct archive_reader *reader,
                              const struct survey_snapshot *snapshot) {
    if (snapshot == NULL) {
        sheet_notice(sheet, SHEET_PLAIN, "The contents of this archive are being counted.");
        return;
    }
    if (snapshot->total.captures_count == 0) {
        sheet_html(sheet, "<p class=lead>Nothing yet. <a href=\"/\">How to begin</a></p>\n");
    } else {
        pages_put_figures(sheet, snapshot);
        FILL(sheet, "<p>From {date} to {date}.</p>\n", {.time_us = snapshot->first_us},
             {.time_us = snapshot->last_us});
        put_time(sheet, snapshot);
        put_hosts(sheet, reader, snapshot);
        sheet_html(sheet, "<div class=cards>\n");
        put_types(sheet, snapshot);
        put_statuses(sheet, snapshot);
        sheet_html(sheet, "</div>\n");
    }
    holdings_put_volumes(sheet, snapshot);
    put_age(sheet, snapshot);
}

void pages_holdings(struct http_request *request) {
    struct replay *replay = http_request_context(request);
    struct archive_reader *reader = archive_reader_begin(replay->archive);
    if (reader == NULL) {
        http_answer_error(request, ERR_MEMORY, NULL);
        return;
    }
    const struct survey_snapshot *snapshot = survey_get(replay->survey);
    struct sheet sheet;
    sheet_begin(&sheet, replay, request, "What this archive holds", SHEET_HOLDINGS);
    holdings_put_page(&sheet, reader, snapshot);
    survey_release(snapshot);
    archive_reader_end(reader);
    sheet_answer(&sheet, STATUS_OK);
}

enum { JSON_HOSTS_MAX = 1000 };

static void put_total_json(struct json *json, const struct survey_total *total) {
    JSON_COUNTS(json, {"captures", total->captures_count}, {"revisits", total->revisits_count},
                {"size", total->size}, {"saved_size", total->saved_size},
                {"stored_size", total->stored_size});
}

static void put_hosts_json(struct json *json, struct archive_reader *reader,
                           const struct survey_snapshot *snapshot, size_t from) {
    json_open_list(json, "hosts");
    for (size_t i = from; i < snapshot->hosts_count && i < from + JSON_HOSTS_MAX; i++) {
        const struct survey_host *host = snapshot->hosts[SURVEY_BY_CAPTURES][i];
        if (!pages_host_is_seen(reader, host)) {
            continue;
        }
        json_open(json, NULL);
        json_bytes(json, "host", host->name);
        put_total_json(json, &host->total);
        json_timestamp(json, "first", host->first_us);
        json_timestamp(json, "last", host->last_us);
        json_close(json);
    }
    json_close(json);
}

static void put_types_json(struct json *json, const struct survey_snapshot *snapshot) {
    json_open_list(json, "types");
    for (size_t i = 0; i < snapshot->types_count; i++) {
        json_open(json, NULL);
        json_bytes(json, "type", snapshot->types[i].name);
        put_total_json(json, &snapshot->types[i].total);
        json_close(json);
    }
    json_close(json);
    json_open(json, "statuses");
    for (size_t i = 0; i < SURVEY_STATUSES_MAX; i++) {
        if (snapshot->statuses[i] > 0) {
            char name[8];
            snprintf(name, sizeof name, "%zu", i);
            json_count(json, name, snapshot->statuses[i]);
        }
    }
    json_close(json);
}

static void put_months_json(struct json *json, const struct survey_snapshot *snapshot) {
    json_open_list(json, "months");
    for (size_t i = 0; i < snapshot->months_count; i++) {
        const struct survey_month *month = &snapshot->months[i];
        json_open(json, NULL);
        json_format(json, "month", "%04d-%02d", month->month / 12, month->month % 12 + 1);
        JSON_COUNTS(json, {"captures", month->captures_count}, {"size", month->size});
        json_close(json);
    }
    json_close(json);
}

static void put_volumes_json(struct json *json, const struct survey_snapshot *snapshot) {
    json_open_list(json, "volumes");
    for (size_t i = 0; i < snapshot->volumes_count; i++) {
        const struct survey_volume *volume = &snapshot->volumes[i];
        json_open(json, NULL);
        json_count(json, "volume", volume->number);
        json_bool(json, "remote", volume->is_remote);
        json_bool(json, "up", volume->is_up);
        JSON_COUNTS(json, {"segments", volume->stat.segments_count}, {"size", volume->stat.size},
                    {"dead_size", volume->stat.dead_size}, {"index_size", volume->stat.index_size});
        json_close(json);
    }
    json_close(json);
}

void pages_holdings_json(struct http_request *request) {
    struct replay *replay = http_request_context(request);
    struct archive_reader *reader = archive_reader_begin(replay->archive);
    const struct survey_snapshot *snapshot = survey_get(replay->survey);
    if (reader == NULL || snapshot == NULL) {
        http_answer_error(request, reader == NULL ? ERR_MEMORY : ERR_BUSY, "the archive is being counted");
    } else {
        struct buf text;
        struct json json;
        size_t from = (size_t)pages_argument_number(request, "from", SURVEY_HOSTS_MAX, 0);
        buf_init(&text, PAGES_JSON_SIZE_MAX);
        json_begin(&json, &text);
        json_time(&json, "counted_at", snapshot->made_us);
        json_bool(&json, "complete", snapshot->is_complete);
        json_bool(&json, "partial", snapshot->is_partial);
        put_total_json(&json, &snapshot->total);
        if (snapshot->total.captures_count > 0) {
            json_timestamp(&json, "first", snapshot->first_us);
            json_timestamp(&json, "last", snapshot->last_us);
        }
        json_count(&json, "hosts_count", snapshot->hosts_count);
        put_hosts_json(&json, reader, snapshot, from);
        put_types_json(&json, snapshot);
        put_months_json(&json, snapshot);
        put_volumes_json(&json, snapshot);
        json_end(&json);
        http_answer_json(request, STATUS_OK, "no-cache", &text);
    }
    survey_release(snapshot);
    archive_reader_end(reader);
}
