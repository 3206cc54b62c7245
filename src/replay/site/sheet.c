#include "replay/site/sheet.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/utc.h"
#include "base/utf8.h"
#include "base/value.h"
#include "replay/site/assets.h"
#include "web/url/percent.h"

enum { FORMAT_SIZE_MAX = 4096 };

static const struct {
    enum sheet_tab tab;
    const char *path;
    const char *name;
} tabs[] = {
    {SHEET_START, "/", "Archive"},
    {SHEET_SEARCH, "/search", "Search"},
    {SHEET_HOLDINGS, "/holdings", "Holdings"},
    {SHEET_JOBS, "/jobs", "Jobs"},
    {SHEET_DASHBOARD, "/dashboard", "Dashboard"},
};

const char *const sheet_months[12] = {"January", "February", "March",     "April",   "May",      "June",
                                      "July",    "August",   "September", "October", "November", "December"};

/* Layers of one page over the years; drawn in the colour of the text. */
static const char mark[] =
    "<svg class=mark viewBox=\"0 0 32 32\" aria-hidden=true focusable=false>"
    "<path d=\"M5 25h22M8 19h16M11 13h10M14 7h4\" fill=none stroke=currentColor stroke-width=2.6 "
    "stroke-linecap=round /></svg>";

/* ---- text ---- */

static void put_replacement(struct buf *out) {
    buf_put_string(out, "\xef\xbf\xbd");
}

void sheet_escape(struct buf *out, struct bytes text) {
    for (size_t i = 0; i < text.size;) {
        uint8_t byte = text.data[i];
        size_t length = utf8_length(bytes_skip(text, i));
        if (byte == '\r') {
            length = 1; /* the line feed that mostly follows says enough */
        } else if (byte == '<' || byte == '>' || byte == '&' || byte == '"' || byte == '\'') {
            buf_put_format(out, "&#%u;", byte);
        } else if (length == 0 || byte == 0x7f || (byte < ' ' && byte != '\t' && byte != '\n')) {
            put_replacement(out);
            length = 1;
        } else {
            buf_put(out, bytes_slice(text, i, i + length));
        }
        i += length;
    }
}

void sheet_html(struct sheet *sheet, const char *html) {
    buf_put_string(&sheet->out, html);
}

void sheet_format(struct sheet *sheet, const char *format, ...) {
    char text[FORMAT_SIZE_MAX];
    va_list list;
    va_start(list, format);
    int size = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    ASSERT(size >= 0 && (size_t)size < sizeof text);
    buf_put_string(&sheet->out, text);
}

void sheet_text(struct sheet *sheet, struct bytes text) {
    sheet_escape(&sheet->out, text);
}

void sheet_string(struct sheet *sheet, const char *text) {
    sheet_escape(&sheet->out, bytes_of_string(text));
}

void sheet_count(struct sheet *sheet, uint64_t count) {
    value_put_count(&sheet->out, count);
}

void sheet_size(struct sheet *sheet, uint64_t size) {
    value_put_size(&sheet->out, size);
}

void sheet_time(struct sheet *sheet, int64_t time_us) {
    char text[UTC_RFC3339_SIZE];
    struct utc utc;
    utc_split(time_us, &utc);
    sheet_format(sheet, "<time datetime=\"%s\">%u %s %d, %02u:%02u:%02u UTC</time>",
                 utc_format_rfc3339(time_us, text), utc.day, sheet_months[utc.month - 1], utc.year, utc.hour,
                 utc.minute, utc.second);
}

void sheet_date(struct sheet *sheet, int64_t time_us) {
    char text[UTC_RFC3339_SIZE];
    struct utc utc;
    utc_split(time_us, &utc);
    sheet_format(sheet, "<time datetime=\"%s\">%u %.3s %d</time>", utc_format_rfc3339(time_us, text), utc.day,
                 sheet_months[utc.month - 1], utc.year);
}

/* ---- URLs ---- */

void sheet_url(struct sheet *sheet, struct bytes url) {
    for (size_t i = 0; i < url.size; i++) {
        uint8_t byte = url.data[i];
        if (byte <= ' ' || byte >= 0x7f || byte == '"' || byte == '<' || byte == '>' || byte == '#' ||
            byte == '\\') {
            percent_put_byte(&sheet->out, byte);
        } else if (byte == '&' || byte == '\'') {
            buf_put_format(&sheet->out, "&#%u;", byte);
        } else {
            buf_put_byte(&sheet->out, byte);
        }
    }
}

void sheet_argument(struct sheet *sheet, struct bytes value) {
    for (size_t i = 0; i < value.size; i++) {
        uint8_t byte = value.data[i];
        bool is_plain = byte_is_alnum(byte) || byte == '-' || byte == '.' || byte == '_' || byte == '~';
        if (is_plain) {
            buf_put_byte(&sheet->out, byte);
        } else {
            percent_put_byte(&sheet->out, byte);
        }
    }
}

void sheet_replay_url(struct sheet *sheet, struct stamp stamp, const char *modifier, struct bytes url) {
    char text[STAMP_SIZE];
    sheet_format(sheet, "/web/%s%s/", stamp_format(stamp, text), modifier);
    sheet_url(sheet, url);
}

/* ---- pieces ---- */

static const char *const moods[] = {
    [SHEET_PLAIN] = "plain", [SHEET_GOOD] = "good", [SHEET_WARNING] = "warning", [SHEET_BAD] = "bad"};

void sheet_notice(struct sheet *sheet, enum sheet_mood mood, const char *text) {
    sheet_format(sheet, "<p class=\"notice %s\">", moods[mood]);
    sheet_string(sheet, text);
    sheet_html(sheet, "</p>\n");
}

void sheet_badge(struct sheet *sheet, enum sheet_mood mood, const char *text) {
    sheet_format(sheet, "<span class=\"badge %s\">", moods[mood]);
    sheet_string(sheet, text);
    sheet_html(sheet, "</span>");
}

static const char *status_meaning(uint16_t status) {
    return status < 200    ? "information"
           : status < 300  ? "found"
           : status == 304 ? "not modified"
           : status < 400  ? "redirect"
           : status < 500  ? "client error"
                           : "server error";
}

void sheet_status(struct sheet *sheet, uint16_t status) {
    if (status == 0) {
        sheet_badge(sheet, SHEET_PLAIN, "no status");
        return;
    }
    bool is_good = status < 300 || status == 304; /* what was there before still was */
    enum sheet_mood mood = is_good ? SHEET_GOOD : status < 400 ? SHEET_WARNING : SHEET_BAD;
    sheet_format(sheet, "<span class=\"badge %s\">%u <span class=quiet>%s</span></span>", moods[mood], status,
                 status_meaning(status));
}

void sheet_fact(struct sheet *sheet, const char *name) {
    sheet_format(sheet, "<dt>%s</dt><dd>", name);
}

void sheet_fact_text(struct sheet *sheet, const char *name, struct bytes value) {
    if (value.size > 0) {
        sheet_fact(sheet, name);
        sheet_text(sheet, value);
        sheet_html(sheet, "</dd>\n");
    }
}

void sheet_cell_size(struct sheet *sheet, uint64_t size) {
    sheet_html(sheet, "<td class=number>");
    sheet_size(sheet, size);
}

void sheet_table_begin(struct sheet *sheet, const char *caption) {
    sheet_html(sheet, "<div class=scroll tabindex=0 role=region aria-label=\"");
    sheet_string(sheet, caption);
    sheet_html(sheet, "\"><table class=table><caption class=unseen>");
    sheet_string(sheet, caption);
    sheet_html(sheet, "</caption>\n");
}

void sheet_table_end(struct sheet *sheet) {
    sheet_html(sheet, "</table></div>\n");
}

/* ---- the whole ---- */

static void sheet_put_head(struct sheet *sheet, const char *title) {
    sheet_html(sheet, "<!DOCTYPE html>\n<html lang=en>\n<meta charset=utf-8>\n"
                      "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n"
                      "<meta name=color-scheme content=\"light dark\">\n<title>");
    sheet_string(sheet, title);
    if (strcmp(title, sheet->replay->title) != 0) {
        sheet_html(sheet, " – ");
        sheet_string(sheet, sheet->replay->title);
    }
    sheet_html(sheet, "</title>\n<link rel=stylesheet href=\"");
    assets_put_url(&sheet->out, "style.css");
    sheet_html(sheet, "\">\n<link rel=icon type=\"image/svg+xml\" href=\"");
    assets_put_url(&sheet->out, "icon.svg");
    sheet_html(sheet, "\">\n");
}

void sheet_begin_bare(struct sheet *sheet, struct replay *replay, struct http_request *request,
                      const char *title, enum sheet_tab tab) {
    *sheet = (struct sheet){.replay = replay, .request = request};
    buf_init(&sheet->out, SHEET_SIZE_MAX);
    sheet_put_head(sheet, title);
    sheet_html(sheet, "<body>\n<a class=skip href=\"#content\">Skip to the content</a>\n"
                      "<header class=top><div class=top-inner><a class=wordmark href=\"/\">");
    sheet_html(sheet, mark);
    sheet_string(sheet, replay->title);
    sheet_html(sheet, "</a>\n<nav aria-label=Main><ul>");
    for (size_t i = 0; i < sizeof tabs / sizeof *tabs; i++) {
        sheet_format(sheet, "<li><a href=\"%s\"%s>%s</a>", tabs[i].path,
                     tabs[i].tab == tab ? " aria-current=page" : "", tabs[i].name);
    }
    sheet_html(sheet, "</ul></nav></div></header>\n<main id=content>\n");
}

void sheet_begin(struct sheet *sheet, struct replay *replay, struct http_request *request, const char *title,
                 enum sheet_tab tab) {
    sheet_begin_bare(sheet, replay, request, title, tab);
    sheet_html(sheet, "<h1>");
    sheet_string(sheet, title);
    sheet_html(sheet, "</h1>\n");
}

void sheet_script(struct sheet *sheet, const char *name) {
    for (size_t i = 0; i < sheet->scripts_count; i++) {
        if (strcmp(sheet->scripts[i], name) == 0) {
            return;
        }
    }
    ASSERT(sheet->scripts_count < SHEET_SCRIPTS_MAX);
    sheet->scripts[sheet->scripts_count++] = name;
}

static void put_foot(struct sheet *sheet) {
    sheet_html(sheet, "</main>\n<footer class=foot><p>This is mnemon, a web archive. It shows the past: "
                      "pages may have changed since.</p></footer>\n");
    for (size_t i = 0; i < sheet->scripts_count; i++) {
        sheet_html(sheet, "<script src=\"");
        assets_put_url(&sheet->out, sheet->scripts[i]);
        sheet_html(sheet, "\" defer></script>\n");
    }
    sheet_html(sheet, "</body>\n</html>\n");
}

void sheet_answer(struct sheet *sheet, unsigned status) {
    put_foot(sheet);
    if (sheet->out.err != ERR_OK) {
        http_answer_error(sheet->request, sheet->out.err,
                          sheet->out.err == ERR_LIMIT ? "the page is too long" : NULL);
    } else {
        http_add_header(sheet->request, "Content-Security-Policy",
                        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
                        "connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; "
                        "frame-ancestors 'none'");
        http_add_header(sheet->request, "X-Content-Type-Options", "nosniff");
        http_add_header(sheet->request, "Referrer-Policy", "same-origin");
        http_add_header(sheet->request, "Cache-Control", "no-cache");
        http_answer(sheet->request, status, "text/html; charset=utf-8", buf_bytes(&sheet->out));
    }
    buf_done(&sheet->out);
}

void sheet_drop(struct sheet *sheet) {
    buf_done(&sheet->out);
}

void sheet_answer_error(struct replay *replay, struct http_request *request, unsigned status,
                        const char *title, const char *text) {
    struct sheet sheet;
    sheet_begin_bare(&sheet, replay, request, title, SHEET_NONE);
    sheet_format(&sheet, "<div class=error><p class=error-status>%u</p><h1>", status);
    sheet_string(&sheet, title);
    sheet_html(&sheet, "</h1>\n<p class=lead>");
    sheet_string(&sheet, text);
    sheet_html(&sheet, "</p>\n<p><a href=\"/\">Back to the start page</a> · "
                       "<a href=\"/holdings\">What it holds</a></p></div>\n");
    sheet_answer(&sheet, status);
}

bool sheet_is_wanted(const struct http_request *request) {
    struct bytes accept = http_request_header(request, "Accept");
    return bytes_find(accept, BYTES("text/html")) < accept.size;
}
