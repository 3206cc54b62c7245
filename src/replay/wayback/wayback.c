#include "replay/wayback/wayback.h"

#include <stdio.h>
#include <stdlib.h>

#include "replay/pages/pages.h"
#include "replay/site/sheet.h"
#include "replay/site/trust.h"
#include "replay/wayback/memento.h"
#include "replay/wayback/wayback_state.h"
#include "warc/request_key.h"

enum {
    TEXT_SIZE_MAX = 2048,
    INSERT_SIZE_MAX = 6 * URL_SIZE_MAX + 1024,
    SHOWN_SIZE_MAX = 512,
    REQUEST_SIZE_MAX = 4 << 20
};

static const char plain_prefix[] = "/web/";

/* ---- the kit ---- */

static void kit_free(void *context) {
    struct wayback_kit *kit = context;
    wayback_path_done(&kit->path);
    parse_seat_done(&kit->short_seat);
    parse_seat_done(&kit->long_seat);
    buf_done(&kit->params);
    url_done(&kit->url);
    url_done(&kit->target);
    buf_done(&kit->text);
    buf_done(&kit->insert);
    scratch_done(&kit->output);
    sha256_done(&kit->sha256);
    free(kit);
}

static struct wayback_kit *kit_new(struct archive *archive, struct archive_reader *reader) {
    struct wayback_kit *kit = calloc(1, sizeof *kit);
    if (kit == NULL) {
        return NULL;
    }
    if (sha256_init(&kit->sha256) != ERR_OK) {
        free(kit);
        return NULL;
    }
    kit->archive = archive;
    kit->reader = reader;
    wayback_path_init(&kit->path);
    url_init(&kit->url);
    url_init(&kit->target);
    buf_init(&kit->text, WAYBACK_HEADER_SIZE_MAX);
    buf_init(&kit->insert, INSERT_SIZE_MAX);
    scratch_init(&kit->output, archive_scratch_directory(archive), SCRATCH_MEMORY_MAX,
                 WAYBACK_DECODE_SIZE_MAX);
    scratch_set_budget(&kit->output, archive_budget(archive));
    parse_seat_init(&kit->short_seat, archive_short_parsers(archive), PARSE_SHORT);
    parse_seat_init(&kit->long_seat, archive_parsers(archive), PARSE_LONG);
    buf_init(&kit->params, PARSE_PARAMS_SIZE_MAX);
    return kit;
}

static struct wayback_kit *kit_of(struct archive *archive, struct archive_reader *reader) {
    struct wayback_kit *kit = archive_reader_extra(reader);
    if (kit == NULL && (kit = kit_new(archive, reader)) != NULL) {
        archive_reader_set_extra(reader, kit, kit_free);
    }
    return kit;
}

/* ---- refusing ---- */

/* A page of the archive's own is never shown in a frame; there a line of text does. */
static bool wants_page(const struct wayback *wayback) {
    bool is_elsewhere = http_request_header(wayback->request, "Sec-Fetch-Dest").size > 0 && !wayback->is_top;
    return sheet_is_wanted(wayback->request) && !is_elsewhere;
}

static void wayback_refuse(struct wayback *wayback, unsigned status, const char *title, const char *text) {
    if (wants_page(wayback)) {
        sheet_answer_error(wayback->replay, wayback->request, status, title, text);
        return;
    }
    char line[TEXT_SIZE_MAX];
    snprintf(line, sizeof line, "%s: %.1024s", title, text);
    http_add_header(wayback->request, "Cache-Control", "no-cache");
    http_answer_status(wayback->request, status, ERR_NOT_FOUND, line);
}

static void wayback_put_link(struct sheet *sheet, const char *path, struct bytes url, const char *rest,
                             const char *words) {
    sheet_html(sheet, "<li><a href=\"");
    sheet_html(sheet, path);
    sheet_url(sheet, url);
    sheet_html(sheet, rest);
    sheet_html(sheet, "\">");
    sheet_html(sheet, words);
    sheet_html(sheet, "</a>\n");
}

/* Nothing of it is held: what can be done about that. */
static void wayback_answer_missing(struct wayback *wayback, const char *reason) {
    struct bytes url = buf_bytes(&wayback->path->url);
    if (!wants_page(wayback)) {
        char text[TEXT_SIZE_MAX];
        struct bytes shown = bytes_slice(url, 0, url.size < SHOWN_SIZE_MAX ? url.size : SHOWN_SIZE_MAX);
        snprintf(text, sizeof text, "%.*s (%s)", BYTES_ARG(shown), reason);
        wayback_refuse(wayback, STATUS_NOT_FOUND, "not in this archive", text);
        return;
    }
    struct sheet sheet;
    sheet_begin(&sheet, wayback->replay, wayback->request, "Not in this archive", SHEET_NONE);
    sheet_html(&sheet, "<p class=url>");
    sheet_text(&sheet, url);
    sheet_html(&sheet, "\n<p>");
    sheet_string(&sheet, reason);
    sheet_html(&sheet, "\n<ul>\n");
    wayback_put_link(&sheet, "/save/", url, "", "Archive this page now");
    wayback_put_link(&sheet, "/web/*/", url, "*", "Pages whose address begins with this one");
    if (url_parse(&wayback->kit->url, url, NULL, NULL) == ERR_OK && url_host(&wayback->kit->url).size > 0) {
        wayback_put_link(&sheet, "/web/*/", url_host(&wayback->kit->url), "/*",
                         "Everything that this archive has of this site");
    }
    sheet_html(&sheet, "</ul>\n");
    sheet_answer(&sheet, STATUS_NOT_FOUND);
}

/* One line for the operator: readers can do nothing about it. */
static void wayback_tell(struct wayback *wayback, const char *text) {
    char line[TEXT_SIZE_MAX];
    struct bytes url = wayback->capture.url;
    if (wayback->replay->tell == NULL) {
        return;
    }
    snprintf(line, sizeof line, "replay of %s %.*s: %s", wayback->stamp,
             (int)(url.size < SHOWN_SIZE_MAX ? url.size : SHOWN_SIZE_MAX), (const char *)url.data, text);
    wayback->replay->tell(wayback->replay->tell_context, line);
}

/* Say what went wrong, to people or programs, and tell the operator what only the operator can mend. */
static void wayback_refuse_error(struct wayback *wayback, enum err err, const struct err_detail *detail) {
    const char *text = err_detail_text(detail, err);
    const struct absent *absent = archive_reader_absent(wayback->reader);
    char reason[ABSENT_TEXT_SIZE_MAX + 64];
    if (wayback->is_put_off) {
        return; /* a worker will see */
    }
    switch (err) {
    case ERR_NOT_FOUND:
        wayback_answer_missing(wayback,
                               detail->err == err ? text : "this archive has no capture of this URL");
        return;
    case ERR_PERMISSION:
        wayback_refuse(wayback, STATUS_BLOCKED, "blocked",
                       "a rule of this archive forbids showing this capture");
        return;
    case ERR_UNREACHABLE:
    case ERR_TIMEOUT:
    case ERR_CLOSED:
    case ERR_BUSY:
        wayback_tell(wayback, text);
        http_add_header(wayback->request, "Retry-After", "30");
        partial_add_header(wayback->request, absent);
        snprintf(reason, sizeof reason, "%s did not answer, and may hold this capture",
                 absent->is_any ? absent->text : "the volume that has it");
        wayback_refuse(wayback, STATUS_UNAVAILABLE, "not available now", reason);
        return;
    case ERR_CORRUPT:
    case ERR_TRUNCATED:
    case ERR_MISMATCH:
    case ERR_IO:
        wayback_tell(wayback, text);
        wayback_refuse(wayback, STATUS_BAD_GATEWAY, "damaged",
                       "the record of this capture is damaged and cannot be read");
        return;
    default:
        wayback_tell(wayback, text);
        wayback_refuse(wayback, STATUS_INTERNAL, "failed", text);
    }
}

/* ---- leading elsewhere ---- */

void wayback_redirect(struct wayback *wayback, const char *prefix, const char *stamp, struct bytes modifier,
                      struct bytes url) {
    struct buf *text = &wayback->kit->text;
    buf_clear(text);
    buf_put_format(text, "%s%s%.*s%s", prefix, stamp, BYTES_ARG(modifier),
                   stamp[0] != '\0' || modifier.size > 0 ? "/" : "");
    wayback_put_url(text, url);
    if (text->err != ERR_OK) {
        wayback_refuse(wayback, STATUS_BAD_REQUEST, "bad request", "the URL is too long for a redirect");
        return;
    }
    http_add_header(wayback->request, "Location", buf_string(text));
    http_add_header(wayback->request, "Cache-Control", "private, no-cache");
    http_answer(wayback->request, STATUS_FOUND, "text/plain; charset=utf-8", bytes_of(NULL, 0));
}

/*
 * The TimeGate's answer, and that to any time which is not exactly a capture's. What was asked for stays in
 * the address if a capture of another URL stands in for it: there the page will say so.
 */
static enum err lead_to_capture(struct wayback *wayback) {
    struct bytes url = wayback->is_other ? buf_bytes(&wayback->path->url) : wayback->capture.url;
    http_add_header(wayback->request, "Vary", "accept-datetime");
    partial_add_header(wayback->request, archive_reader_absent(wayback->reader));
    enum err err =
        memento_add_links(wayback->request, wayback->reader, url, &wayback->capture, &wayback->kit->text);
    if (err == ERR_OK) {
        wayback_add_url(wayback);
        wayback_redirect(wayback, wayback->prefix, wayback->stamp, wayback->path->modifier, url);
    }
    return err;
}

void wayback_put_prefix(const struct wayback *wayback, bool has_key, char out[WAYBACK_PREFIX_SIZE_MAX]) {
    const char *word = trust_word(wayback->trust);
    bool is_plain = !has_key && word == NULL;
    snprintf(out, WAYBACK_PREFIX_SIZE_MAX, "%s%s%s%s%s%s", plain_prefix, is_plain ? "" : "~",
             has_key ? wayback->replay->frame_key : "", has_key && word != NULL ? "-" : "",
             word != NULL ? word : "", is_plain ? "" : "/");
}

/* The time that was asked for, as it was, with its id. */
static void wayback_put_asked(const struct wayback_path *path, char out[STAMP_SIZE]) {
    if (path->id != 0) {
        stamp_format((struct stamp){path->time_us, path->id}, out);
    } else {
        snprintf(out, STAMP_SIZE, "%.*s", BYTES_ARG(path->digits));
    }
}

/*
 * Browsers get pages in our frame only, and frames of ours get the secret (wayback_safety.h). True: it was
 * answered.
 */
static bool lead_to_frame(struct wayback *wayback) {
    const struct wayback_path *path = wayback->path;
    char digits[STAMP_SIZE];
    struct bytes url = buf_bytes(&path->url);
    wayback_put_asked(path, digits);
    bool is_bare_page = wayback_is_page(path) && path->modifier.size > 0;
    if (wayback->is_top && (path->key.size > 0 || is_bare_page)) {
        char prefix[WAYBACK_PREFIX_SIZE_MAX];
        wayback_put_prefix(wayback, false, prefix);
        wayback_redirect(wayback, prefix, digits, is_bare_page ? bytes_of(NULL, 0) : path->modifier, url);
        return true;
    }
    if (!wayback->is_ours && wayback_is_own_frame(wayback->request)) {
        char prefix[WAYBACK_PREFIX_SIZE_MAX];
        wayback_put_prefix(wayback, true, prefix);
        wayback_redirect(wayback, prefix, digits, path->modifier, url);
        return true;
    }
    return false;
}

/* Is anything of it on this node's own disks? */
static bool is_here(struct wayback *wayback, struct bytes surt) {
    struct archive_reader *reader = archive_reader_begin_here(wayback->replay->archive);
    struct capture capture;
    struct err_detail detail = {0};
    if (reader == NULL) {
        return true;
    }
    enum err err = archive_find(reader, surt, bytes_of(NULL, 0), wayback->path->time_us, ARCHIVE_CLOSEST,
                                &capture, &detail);
    archive_reader_end(reader);
    return err != ERR_NOT_FOUND;
}

/*
 * To the node that is responsible, if nothing is here and the operator wants that. Never parts of a page:
 * a replayed page may load nothing from elsewhere (wayback_safety.h). True: it was answered.
 */
static bool lead_away(struct wayback *wayback) {
    const struct replay *replay = wayback->replay;
    const struct wayback_path *path = wayback->path;
    struct buf *prefix = &wayback->kit->insert;
    char digits[STAMP_SIZE];
    struct bytes surt;
    bool is_part = http_request_header(wayback->request, "Sec-Fetch-Dest").size > 0 && !wayback->is_top;
    if (replay->lead == NULL || is_part || wayback->is_ours ||
        archive_key(wayback->reader, buf_bytes(&path->url), &surt, NULL) != ERR_OK ||
        is_here(wayback, surt)) {
        return false;
    }
    buf_clear(prefix);
    if (!replay->lead(replay->lead_context, surt, prefix)) {
        return false;
    }
    buf_put_string(prefix, plain_prefix);
    const char *text = buf_string(prefix);
    wayback_put_asked(path, digits);
    if (text != NULL) {
        wayback_redirect(wayback, text, digits, path->modifier, buf_bytes(&path->url));
    }
    return text != NULL;
}

/* ---- one capture ---- */

bool wayback_is_page(const struct wayback_path *path) {
    return path->as == REWRITE_PAGE || path->as == REWRITE_IFRAME || path->as == REWRITE_FRAME;
}

void wayback_choose(struct wayback *wayback, const struct capture *capture) {
    const struct wayback_path *path = wayback->path;
    wayback->capture = *capture;
    utc_format_digits(capture->time_us, wayback->stamp);
    wayback->is_exact = bytes_equal(path->digits, bytes_of_string(wayback->stamp));
    wayback->is_other = !archive_is_asked(wayback->reader, wayback_path_asked(path), capture->url);
    stamp_format(path->id != 0 ? stamp_of(capture) : stamp_of_time(capture->time_us), wayback->address);
    bool is_part = !wayback_is_page(path) && path->digits.size == WAYBACK_DIGITS_MAX;
    snprintf(wayback->around, sizeof wayback->around, "%.*s",
             BYTES_ARG(is_part ? path->digits : bytes_of_string(wayback->stamp)));
}

/* The newest of the period that the digits stand for, else what is closest to its end. */
static enum err find_in_period(struct wayback *wayback, struct bytes surt, struct capture *ret_capture,
                               struct err_detail *detail) {
    const struct wayback_path *path = wayback->path;
    int64_t from_us = INT64_MIN;
    bool is_sound = utc_parse_digits(path->digits, false, &from_us);
    struct bytes asked = wayback_path_asked(path);
    enum err err =
        archive_find(wayback->reader, surt, asked, path->time_us, ARCHIVE_NOT_NEWER, ret_capture, detail);
    if (err != ERR_OK || !is_sound || ret_capture->time_us >= from_us) {
        return err;
    }
    return archive_find(wayback->reader, surt, asked, path->time_us, ARCHIVE_CLOSEST, ret_capture, detail);
}

static enum err wayback_find(void *context, struct capture *ret_capture, struct err_detail *detail) {
    struct wayback *wayback = context;
    const struct wayback_path *path = wayback->path;
    struct bytes surt;
    enum archive_choice choice = ARCHIVE_CLOSEST;
    int64_t time_us = path->time_us;
    wayback->capture.url = buf_bytes(&path->url); /* what was found before goes with this look */
    enum err err = archive_key(wayback->reader, buf_bytes(&path->url), &surt, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (path->id != 0) {
        return archive_find_id(wayback->reader, surt, (struct stamp){path->time_us, path->id}, ret_capture,
                               detail);
    }
    if (wayback_path_is_gate(path)) {
        struct bytes date = http_request_header(wayback->request, "Accept-Datetime");
        if (date.size > 0 && !utc_parse_http(bytes_trim(date), &time_us)) {
            return err_set(detail, ERR_INVALID, "Accept-Datetime is not a date: \"%.64s\"",
                           (const char *)date.data);
        }
        choice = date.size > 0 ? ARCHIVE_CLOSEST : ARCHIVE_NOT_NEWER;
    } else if (!wayback_is_page(path) && path->digits.size == WAYBACK_DIGITS_MAX) {
        choice = ARCHIVE_NOT_NEWER;
    }
    bool is_period = path->digits.size > 0 && path->digits.size < WAYBACK_DIGITS_MAX;
    return is_period ? find_in_period(wayback, surt, ret_capture, detail)
                     : archive_find(wayback->reader, surt, wayback_path_asked(path), time_us, choice,
                                    ret_capture, detail);
}

/* The client has it already. Rules were asked before: they may have changed. */
static bool is_known_to_client(struct wayback *wayback) {
    struct bytes known = http_request_header(wayback->request, "If-None-Match");
    char etag[WAYBACK_ETAG_SIZE_MAX];
    bool is_framed =
        wayback->is_top && wayback->path->modifier.size == 0; /* what it has may be from inside */
    if (known.size == 0 || is_framed || archive_verdict(wayback->reader, &wayback->capture) != ACCESS_ALLOW) {
        return false;
    }
    for (int i = 0; i < 2; i++) {
        wayback_etag(wayback, i == 0, etag);
        if (bytes_find(known, bytes_of_string(etag)) < known.size) {
            http_add_header(wayback->request, "ETag", etag);
            return true;
        }
    }
    return false;
}

static enum err answer_found(void *context, const struct capture *capture, struct err_detail *detail) {
    struct wayback *wayback = context;
    bool is_any_time = wayback->path->digits.size < WAYBACK_DIGITS_MAX;
    wayback_choose(wayback, capture);
    if (wayback->path->id != 0 &&
        wayback->is_other) { /* the id says which one; its address has its own URL */
        wayback_redirect(wayback, wayback->prefix, wayback->address, wayback->path->modifier, capture->url);
        return ERR_OK;
    }
    if (!wayback->is_exact && (is_any_time || wayback_is_page(wayback->path))) {
        return lead_to_capture(wayback);
    }
    if (is_known_to_client(wayback)) {
        http_add_header(wayback->request, "Cache-Control", "private, no-cache");
        http_answer(wayback->request, STATUS_NOT_MODIFIED, "", bytes_of(NULL, 0));
        return ERR_OK;
    }
    return wayback_serve(wayback, detail);
}

static void answer_capture(struct wayback *wayback) {
    struct err_detail detail = {0};
    if (lead_to_frame(wayback) || lead_away(wayback)) {
        return;
    }
    struct archive_attempt attempt = {.find = wayback_find, .use = answer_found, .context = wayback};
    enum err err = archive_try(wayback->reader, &attempt, &detail);
    bool is_found = wayback->stamp[0] != '\0';
    if (!is_found && (err == ERR_INVALID || err == ERR_LIMIT)) {
        wayback_refuse(wayback, STATUS_BAD_REQUEST, "bad request", err_detail_text(&detail, err));
    } else if (err != ERR_OK) {
        wayback_refuse_error(wayback, err, &detail);
    }
}

/* ---- */

static int32_t year_of(struct bytes digits) {
    uint64_t year = 0;
    return digits.size >= 4 && bytes_to_u64(bytes_slice(digits, 0, 4), 9999, &year) ? (int32_t)year : 0;
}

/*
 * A request that is no GET is answered by the capture of such a request, of this body: they are part of the
 * URL by which it is found (warc/request_key.h). Nothing is changed by it, whatever its method.
 */
static enum err wayback_add_request(struct wayback *wayback, struct wayback_path *path) {
    struct bytes method = bytes_of_string(http_request_method(wayback->request));
    struct bytes body;
    if (bytes_equal(method, BYTES("GET")) || path->kind != WAYBACK_CAPTURE) {
        return ERR_OK;
    }
    struct buf key;
    struct buf url;
    buf_init(&key, REQUEST_KEY_TEXT_SIZE_MAX);
    buf_init(&url, URL_SIZE_MAX);
    enum err err = http_request_body(wayback->request, &body);
    if (err == ERR_OK) {
        err =
            request_key_put_parts(&key, method, http_request_header(wayback->request, "Content-Type"), body);
    }
    if (err == ERR_OK) {
        err = request_key_join(&url, buf_bytes(&path->url), buf_bytes(&key));
    }
    if (err == ERR_OK) {
        buf_clear(&path->url);
        err = buf_put(&path->url, buf_bytes(&url));
    }
    buf_done(&url);
    buf_done(&key);
    return err;
}

static void wayback_dispatch(struct wayback *wayback) {
    struct err_detail detail = {0};
    struct wayback_path *path = &wayback->kit->path;
    enum err err = wayback_path_parse(path, replay_target(wayback->request), &detail);
    wayback->path = path;
    wayback->is_top = wayback_is_top_level(wayback->request);
    if (err == ERR_NOT_FOUND) {
        wayback_redirect(wayback, "/", "", bytes_of(NULL, 0), bytes_of(NULL, 0));
        return;
    }
    if (err != ERR_OK) {
        wayback_refuse(wayback, STATUS_BAD_REQUEST, "bad request", err_detail_text(&detail, err));
        return;
    }
    err = wayback_add_request(wayback, path);
    if (err != ERR_OK) {
        wayback_refuse(wayback, STATUS_BAD_REQUEST, "bad request", err_text(err));
        return;
    }
    wayback->trust = trust_take_suffix(&path->key);
    wayback->is_ours = wayback_is_key(wayback->replay, path->key);
    wayback_put_prefix(wayback, wayback->is_ours, wayback->prefix);
    wayback_add_sharing(wayback->request, wayback->is_ours);
    switch (path->kind) {
    case WAYBACK_CALENDAR:
        pages_calendar(wayback->replay, wayback->request, buf_bytes(&path->url), year_of(path->digits),
                       path->digits.size > 0 ? INT64_MIN : path->from_us,
                       path->digits.size > 0 ? INT64_MAX : path->time_us);
        return;
    case WAYBACK_LIST:
        pages_list(wayback->replay, wayback->request, buf_bytes(&path->url));
        return;
    case WAYBACK_CAPTURE:
        answer_capture(wayback);
        return;
    }
}

/* It is answered, or put off. */
static void wayback_end(struct wayback *wayback) {
    struct http_request *request = wayback->request;
    bool is_put_off = wayback->is_put_off;
    http_request_set_state(request, NULL);
    wayback_end_work(wayback);
    if (!wayback->keeps_reader) {
        scratch_clear(&wayback->kit->output); /* whatever became of it, its file goes now */
        archive_reader_end(wayback->reader);
    }
    if (is_put_off) {
        http_request_put_off(request);
    }
}

static void wayback_begin(struct http_request *request) {
    struct replay *replay = http_request_context(request);
    struct archive_reader *reader = trust_reader_begin(replay, request);
    struct wayback_kit *kit = reader != NULL ? kit_of(replay->archive, reader) : NULL;
    if (kit == NULL) {
        archive_reader_end(reader);
        http_answer_error(request, ERR_MEMORY, NULL);
        return;
    }
    struct wayback *wayback = &kit->wayback;
    *wayback = (struct wayback){.replay = replay, .request = request, .reader = reader, .kit = kit};
    wayback_dispatch(wayback);
    if (wayback->is_awaited) {
        struct http_errand errand = {
            .is_back = wayback_is_parsed, .await = wayback_await_parsed, .context = wayback};
        http_request_set_state(request, wayback);
        http_request_await(request, &errand);
        return;
    }
    wayback_end(wayback);
}

static void wayback_answer(struct http_request *request) {
    const struct replay *replay = http_request_context(request);
    struct wayback *wayback = http_request_state(request);
    if (wayback != NULL) { /* it was away to be parsed */
        struct err_detail detail = {0};
        enum err err = wayback_serve_parsed(wayback, &detail);
        if (err != ERR_OK) {
            wayback_refuse_error(wayback, err, &detail);
        }
        wayback_end(wayback);
    } else if (!http_request_is_on_worker(request) && !instance_is_here(archive_instance(replay->archive))) {
        http_request_put_off(request); /* other nodes may have to be asked */
    } else {
        wayback_begin(request);
    }
}

size_t wayback_routes(struct replay *replay, struct http_route out[WAYBACK_ROUTES_MAX]) {
    wayback_make_key(replay);
    static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
    _Static_assert(sizeof methods / sizeof *methods <= WAYBACK_ROUTES_MAX, "they have room");
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        out[i] = (struct http_route){.method = methods[i],
                                     .path = "/web/*",
                                     .body_size_max = i == 0 ? 0 : REQUEST_SIZE_MAX,
                                     .context = replay,
                                     .answer = wayback_answer};
    }
    return sizeof methods / sizeof *methods;
}
