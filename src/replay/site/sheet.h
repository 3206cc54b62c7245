/*
 * sheet - a page of the archive's own, for people: head, navigation, content, foot; and how it is sent.
 *
 *      struct sheet sheet;
 *      sheet_begin(&sheet, replay, request, "Jobs", SHEET_JOBS);
 *      sheet_html(&sheet, "<p>");
 *      sheet_text(&sheet, url);            escaped, for text and for attribute values in double quotes
 *      sheet_answer(&sheet, 200);          ends the page, sends it, frees the sheet
 *
 * Own pages run only own scripts (/static/…) and are never framed. If a page has a script, it adds to what
 * is there without it. The classes of the style sheet are told at the head of web/style.css; there are no
 * style attributes, the Content-Security-Policy refuses them.
 */
#ifndef MNEMON_REPLAY_SITE_SHEET_H
#define MNEMON_REPLAY_SITE_SHEET_H

#include "base/buf.h"
#include "http/server/http_request.h"
#include "replay/site/replay.h"

enum sheet_tab {
    SHEET_NONE,
    SHEET_START,
    SHEET_SEARCH,
    SHEET_HOLDINGS,
    SHEET_JOBS,
    SHEET_DASHBOARD,
};

enum { SHEET_SIZE_MAX = 16 << 20, SHEET_SCRIPTS_MAX = 2 };

struct sheet {
    struct buf out;
    struct replay *replay;
    struct http_request *request;
    const char *scripts[SHEET_SCRIPTS_MAX]; /* of /static/ */
    size_t scripts_count;
};

extern const char *const sheet_months[12]; /* "January" … */

void sheet_begin(struct sheet *sheet, struct replay *replay, struct http_request *request, const char *title,
                 enum sheet_tab tab);

/* The same without the <h1>, for a caller that writes it. */
void sheet_begin_bare(struct sheet *sheet, struct replay *replay, struct http_request *request,
                      const char *title, enum sheet_tab tab);

/* A script of the page, "jobs.js"; before sheet_answer(). Two sections may name the same one. */
void sheet_script(struct sheet *sheet, const char *name);

void sheet_html(struct sheet *sheet, const char *html);
void sheet_format(struct sheet *sheet, const char *format, ...)
    __attribute__((format(printf, 2, 3))); /* not escaped */
void sheet_text(struct sheet *sheet, struct bytes text);
void sheet_string(struct sheet *sheet, const char *text);
void sheet_count(struct sheet *sheet, uint64_t count); /* 1,234 */
void sheet_size(struct sheet *sheet, uint64_t size);   /* 1.2 MB */
void sheet_time(struct sheet *sheet, int64_t time_us); /* <time>, 2 January 2026, 03:04:05 UTC */
void sheet_date(struct sheet *sheet, int64_t time_us); /* <time>, 2 Jan 2026 */

/* A URL as part of a path of ours, for an attribute: what would end it there is percent-encoded. */
void sheet_url(struct sheet *sheet, struct bytes url);

/* A value of a query of ours, for an attribute: everything but letters, digits and "-._~" is encoded. */
void sheet_argument(struct sheet *sheet, struct bytes value);

/* "/web/20260102030405~0123456789abcdef/URL", escaped for an attribute; modifier may be "". */
void sheet_replay_url(struct sheet *sheet, struct stamp stamp, const char *modifier, struct bytes url);

/* ---- pieces that look the same on all pages ---- */

enum sheet_mood { SHEET_PLAIN, SHEET_GOOD, SHEET_WARNING, SHEET_BAD };

/* A paragraph that stands out; its text is escaped. */
void sheet_notice(struct sheet *sheet, enum sheet_mood mood, const char *text);

/* A small label: "unchanged". */
void sheet_badge(struct sheet *sheet, enum sheet_mood mood, const char *text);

/* An HTTP status as a badge, with what it means: "404", not found. 0: "no status". */
void sheet_status(struct sheet *sheet, uint16_t status);

/* A row of a <dl class=facts>: the name; the caller writes the value and then "</dd>". */
void sheet_fact(struct sheet *sheet, const char *name);

/* The same with its value; nothing if that is empty. */
void sheet_fact_text(struct sheet *sheet, const char *name, struct bytes value);

/* A cell of a table. */
void sheet_cell_size(struct sheet *sheet, uint64_t size);

/* <table class=table> that scrolls by itself if it is too wide; the caption is not seen, but read. */
void sheet_table_begin(struct sheet *sheet, const char *caption);
void sheet_table_end(struct sheet *sheet);

void sheet_answer(struct sheet *sheet, unsigned status);

/* Free it unsent: something went wrong on the way, and the request is answered otherwise. */
void sheet_drop(struct sheet *sheet);

/* A whole page that says what went wrong, in words for people, with the status that fits. */
void sheet_answer_error(struct replay *replay, struct http_request *request, unsigned status,
                        const char *title, const char *text);

/* Does the client want HTML (a browser), rather than text or JSON? By Accept. */
bool sheet_is_wanted(const struct http_request *request);

/* Append the text escaped for HTML; controls become U+FFFD, and so does what is not UTF-8. */
void sheet_escape(struct buf *out, struct bytes text);

#endif
