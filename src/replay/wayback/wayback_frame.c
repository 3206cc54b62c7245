#include <stdio.h>

#include "replay/site/assets.h"
#include "replay/site/sheet.h"
#include "replay/wayback/memento.h"
#include "replay/wayback/wayback_state.h"

enum { POLICY_SIZE_MAX = 2048 };

/* "2 January 2026, 03:04:05 UTC" */
static void put_date(struct buf *out, int64_t time_us) {
    static const char *const months[] = {"January",   "February", "March",    "April",
                                         "May",       "June",     "July",     "August",
                                         "September", "October",  "November", "December"};
    struct utc utc;
    char text[UTC_RFC3339_SIZE];
    utc_split(time_us, &utc);
    buf_put_format(out, "<time datetime=\"%s\">%u %s %d, %02u:%02u:%02u UTC</time>",
                   utc_format_rfc3339(time_us, text), utc.day, months[utc.month - 1], utc.year, utc.hour,
                   utc.minute, utc.second);
}

static void put_url(struct buf *out, struct bytes url) {
    for (size_t i = 0; i < url.size; i++) { /* as in a path, and in an attribute */
        uint8_t byte = url.data[i];
        if (byte == '&') {
            buf_put_string(out, "&amp;");
        } else if (byte == '\'' || byte == '#') {
            buf_put_format(out, "%%%02X", byte);
        } else {
            wayback_put_url(out, bytes_slice(url, i, i + 1));
        }
    }
}

static void put_capture_link(struct buf *out, const struct wayback *wayback, const char *id,
                             const char *words, int64_t time_us) {
    char digits[UTC_DIGITS_SIZE];
    if (time_us == INT64_MIN || time_us == wayback->capture.time_us) {
        buf_put_format(out, "<a id=%s aria-disabled=true>%s</a>\n", id, words);
        return;
    }
    buf_put_format(out, "<a id=%s href=\"/web/%s/", id, utc_format_digits(time_us, digits));
    put_url(out, wayback->capture.url);
    buf_put_format(out, "\">%s</a>\n", words);
}

static void put_link(struct buf *out, const char *path, struct bytes url, const char *words) {
    buf_put_format(out, "<a href=\"%s", path);
    put_url(out, url);
    buf_put_format(out, "\">%s</a>\n", words);
}

static void put_links(struct buf *out, const struct wayback *wayback, const struct archive_neighbours *near) {
    struct bytes url = wayback->capture.url;
    char path[64];
    buf_put_string(out, "<nav aria-label=\"Captures of this page\">\n");
    put_capture_link(out, wayback, "first", "First", near->first_us);
    put_capture_link(out, wayback, "previous", "Previous", near->previous_us);
    put_capture_link(out, wayback, "next", "Next", near->next_us);
    put_capture_link(out, wayback, "last", "Last", near->last_us);
    put_link(out, "/web/*/", url, "Calendar");
    snprintf(path, sizeof path, "/details/%s/", wayback->stamp);
    put_link(out, path, url, "Details");
    if (near->previous_us != INT64_MIN) {
        char digits[UTC_DIGITS_SIZE];
        snprintf(path, sizeof path, "/compare/%s/%s/", utc_format_digits(near->previous_us, digits),
                 wayback->stamp);
        put_link(out, path, url, "Compare");
    }
    buf_put_string(out, "</nav>\n");
}

static void put_asset(struct buf *out, const char *before, const char *name, const char *after) {
    if (assets_find(bytes_of_string(name)) != NULL) {
        buf_put_string(out, before);
        assets_put_url(out, name);
        buf_put_string(out, after);
    }
}

static void put_head(struct buf *out, const struct wayback *wayback) {
    buf_put_string(out, "<!DOCTYPE html>\n<html lang=en>\n<meta charset=utf-8>\n"
                        "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n<title>");
    sheet_escape(out, wayback->capture.url);
    buf_put_format(out, " – %s</title>\n", wayback->replay->title);
    put_asset(out, "<link rel=icon href=\"", "icon.svg", "\">\n");
    put_asset(out, "<link rel=stylesheet href=\"", "frame.css", "\">\n");
    put_asset(out, "<script src=\"", "frame.js", "\" defer></script>\n");
}

static void put_banner(struct buf *out, const struct wayback *wayback,
                       const struct archive_neighbours *near) {
    buf_put_string(out, "<header id=banner data-url=\"");
    sheet_escape(out, url_href(&wayback->kit->url)); /* as web/replay.js is told: the two are compared */
    buf_put_format(out, "\" data-time=\"%s\" data-prefix=\"/web/~%s/\">\n<a id=home href=\"/\">",
                   wayback->stamp, wayback->replay->frame_key);
    sheet_escape(out, bytes_of_string(wayback->replay->title));
    buf_put_string(out, "</a>\n<p id=shown><span id=url>");
    sheet_escape(out, wayback->capture.url);
    buf_put_string(out, "</span> <span id=date>");
    put_date(out, wayback->capture.time_us);
    buf_put_string(out, "</span>");
    if (wayback->record.status != STATUS_OK) {
        buf_put_format(out, " <strong id=status>status %u</strong>", wayback->record.status);
    }
    if (wayback->capture.flags & CAPTURE_TRUNCATED) {
        buf_put_string(out, " <strong id=truncated>cut off when it was archived</strong>");
    }
    if (instance_is_mirrored(wayback->capture.volume)) {
        const struct instance *instance = archive_instance(wayback->replay->archive);
        struct bytes origin = bytes_of_string(instance_mirrored_origin(instance, wayback->capture.volume));
        buf_put_string(out, " <span id=origin title=\"");
        sheet_escape(out, origin);
        buf_put_string(out, "\">from the collection ");
        sheet_escape(out, bytes_slice(origin, 0, bytes_find_byte(origin, '@')));
        buf_put_string(out, "</span>");
    }
    buf_put_string(out, "</p>\n");
    put_links(out, wayback, near);
    buf_put_string(out, "<div id=parts></div>\n<p id=notice role=status></p>\n</header>\n");
}

static void put_frame(struct buf *out, const struct wayback *wayback) {
    buf_put_string(out, "<iframe id=replay title=\"The archived page ");
    sheet_escape(out, wayback->capture.url);
    buf_put_format(out, "\" src=\"/web/~%s/%smp_/", wayback->replay->frame_key, wayback->stamp);
    put_url(out, wayback->capture.url);
    buf_put_string(out, "\"></iframe>\n");
}

/* The frame may only show /web/: this is what keeps a replayed page from going to the live web. */
static void add_policy(const struct wayback *wayback) {
    char policy[POLICY_SIZE_MAX];
    struct bytes host = wayback_host(wayback->request);
    snprintf(
        policy, sizeof policy,
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "frame-src %.*s/web/; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        BYTES_ARG(host));
    http_add_header(wayback->request, "Content-Security-Policy", policy);
    http_add_header(wayback->request, "X-Content-Type-Options", "nosniff");
    http_add_header(wayback->request, "Referrer-Policy", "same-origin");
    http_add_header(wayback->request, "Cross-Origin-Opener-Policy", "same-origin");
    http_add_header(wayback->request, "Cache-Control", "private, no-store"); /* the secret is in it */
    http_add_header(wayback->request, "Vary", "Accept, Sec-Fetch-Dest");
}

enum err wayback_answer_frame(struct wayback *wayback) {
    struct archive_neighbours near;
    enum err err =
        archive_neighbours(wayback->reader, wayback->capture.surt, wayback->capture.time_us, &near);
    if (err == ERR_OK) {
        err = memento_add_links(wayback->request, wayback->reader, wayback->capture.url, &wayback->capture,
                                &wayback->kit->text);
    }
    if (err == ERR_OK) {
        err = url_parse(&wayback->kit->url, wayback->capture.url, NULL, NULL);
    }
    if (err != ERR_OK) {
        return err;
    }
    struct buf out;
    buf_init(&out, SHEET_SIZE_MAX);
    put_head(&out, wayback);
    put_banner(&out, wayback, &near);
    put_frame(&out, wayback);
    err = out.err;
    if (err == ERR_OK) {
        memento_add_datetime(wayback->request, wayback->capture.time_us);
        add_policy(wayback);
        bool is_failure = wayback->record.status >= STATUS_BAD_REQUEST;
        http_answer(wayback->request, is_failure ? wayback->record.status : STATUS_OK,
                    "text/html; charset=utf-8", buf_bytes(&out));
    }
    buf_done(&out);
    return err;
}
