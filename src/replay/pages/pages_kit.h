/*
 * pages_kit - what the pages for people share: arguments of a query, the capture that a path names, errors.
 *
 *      /details/TIME/URL        the URL is all that follows, its query included
 *      /details/TIME/URL?warc   the last argument is ours if it is a view: what shall be shown
 *
 * A URL that ends so itself gets "&view=page" (pages_put_path() does that).
 */
#ifndef MNEMON_REPLAY_PAGES_PAGES_KIT_H
#define MNEMON_REPLAY_PAGES_PAGES_KIT_H

#include "replay/archive/wayback_path.h"
#include "replay/site/fill.h"
#include "replay/site/partial.h"

enum pages_view { PAGES_VIEW_PAGE, PAGES_VIEW_TEXT, PAGES_VIEW_SOURCE, PAGES_VIEW_WARC };

/* What "TIME/URL" or "TIME/TIME/URL" asks for; a time may have an id behind it (archive/stamp.h). */
struct pages_target {
    struct wayback_path path; /* borrows from the request */
    enum pages_view view;
    struct stamp stamps[2];
};

/* times_count: 1 or 2. ERR_INVALID with the reason. */
enum err pages_target_read(struct pages_target *target, const struct http_request *request,
                           size_t times_count, struct err_detail *detail) MUST_CHECK;
void pages_target_done(struct pages_target *target);

/* Append "/details/20260102030405/URL", with "/details" as the place and the view at its end: for a header.
 */
void pages_put_location(struct buf *out, const char *place, struct stamp stamp, struct bytes url,
                        enum pages_view view);

/* The same for an attribute. */
void pages_put_path(struct sheet *sheet, const char *place, struct stamp stamp, struct bytes url,
                    enum pages_view view);

/* Replace *out by the decoded value of an argument of the query; false if there is none. */
bool pages_argument(const struct http_request *request, const char *name, struct buf *out);

/* A number of the query; the default if there is none or it is none. */
uint64_t pages_argument_number(const struct http_request *request, const char *name, uint64_t max,
                               uint64_t number);

/*
 * The capture of the URL that has the id of the stamp; without one, the closest to its time. Its slices live
 * in the reader until the next find.
 */
enum err pages_find(struct archive_reader *reader, struct bytes url, struct stamp stamp,
                    struct capture *ret_capture, struct err_detail *detail) MUST_CHECK;

/* A request whose arguments url and timestamp (the newest without) ask for a capture. */
struct pages_asked {
    struct replay *replay;
    struct http_request *request;
    struct archive_reader *reader;
};

/* Answer it by use(), whose context is the struct pages_asked, as archive_try() does; or with its error. */
void pages_answer_asked(struct http_request *request,
                        enum err (*use)(void *context, const struct capture *capture,
                                        struct err_detail *detail));

/* The header that says who did not answer (replay/site/partial.h); the reader may be NULL. */
void pages_add_partial(struct http_request *request, const struct archive_reader *reader);

/* ERR_PERMISSION stands for a rule that blocks: 451. JSON under /api/, else a page. */
void pages_answer_error(struct replay *replay, struct http_request *request, enum err err,
                        const struct err_detail *detail);

enum { PAGES_JSON_SIZE_MAX = 16 << 20 };

/* ---- the functions of the routes, and what the pages use of each other ---- */

struct survey_snapshot;
struct survey_host;

void pages_start(struct http_request *request);
void pages_suggest(struct http_request *request);
void pages_calendar_json(struct http_request *request);
void pages_list_form(struct http_request *request); /* /list?url=…&text=… */
void pages_details(struct http_request *request);
void pages_capture_json(struct http_request *request);
void pages_embeds_json(struct http_request *request);
void pages_compare(struct http_request *request);
void pages_holdings(struct http_request *request);
void pages_holdings_json(struct http_request *request);

/* The big numbers. */
void pages_put_figures(struct sheet *sheet, const struct survey_snapshot *snapshot);

/* Do the rules let the host as a whole be named? */
bool pages_host_is_seen(struct archive_reader *reader, const struct survey_host *host);

/* Answer with the capture as a WARC file of its own. ERR_…: nothing was answered. */
enum err pages_answer_warc(struct replay *replay, struct http_request *request, struct archive_reader *reader,
                           const struct capture *capture, struct err_detail *detail) MUST_CHECK;

#endif
