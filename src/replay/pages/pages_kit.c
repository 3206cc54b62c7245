#include "replay/pages/pages_kit.h"

#include "base/utc.h"
#include "http/server/form.h"
#include "replay/site/trust.h"

enum { LOCATION_SIZE_MAX = 4 * URL_SIZE_MAX };

static const char *const views[] = {[PAGES_VIEW_PAGE] = "view=page",
                                    [PAGES_VIEW_TEXT] = "view=text",
                                    [PAGES_VIEW_SOURCE] = "view=source",
                                    [PAGES_VIEW_WARC] = "warc"};

enum { VIEWS_COUNT = sizeof views / sizeof *views };

/* ---- what a path names ---- */

/* The last argument of a URL's query, if it is a view; else VIEWS_COUNT. */
static size_t find_view(struct bytes url, size_t *ret_start) {
    size_t start = url.size;
    while (start > 0 && url.data[start - 1] != '&' && url.data[start - 1] != '?') {
        start--;
    }
    *ret_start = start == 0 ? 0 : start - 1;
    for (size_t i = 0; i < VIEWS_COUNT && start > 0; i++) {
        if (bytes_equal(bytes_skip(url, start), bytes_of_string(views[i]))) {
            return i;
        }
    }
    return VIEWS_COUNT;
}

/* 1 to 14 digits: that second, or the end of the year, month … that they stand for. */
static bool pages_read_time(struct bytes digits, struct stamp *ret_stamp) {
    ret_stamp->id = stamp_take_id(&digits);
    return utc_parse_digits(digits, digits.size < WAYBACK_DIGITS_MAX, &ret_stamp->time_us);
}

/* The time before the next slash is cut off *text. */
static enum err take_time(struct bytes *text, struct stamp *ret_stamp, struct err_detail *detail) {
    size_t end = bytes_find_byte(*text, '/');
    struct bytes digits = bytes_slice(*text, 0, end);
    if (!pages_read_time(digits, ret_stamp)) {
        return err_set(detail, ERR_INVALID,
                       "\"%.*s\" is not a time: write 1 to 14 digits, as in 20260102030405",
                       (int)(digits.size < 40 ? digits.size : 40), (const char *)digits.data);
    }
    *text = bytes_skip(*text, end < text->size ? end + 1 : end);
    return ERR_OK;
}

enum err pages_target_read(struct pages_target *target, const struct http_request *request,
                           size_t times_count, struct err_detail *detail) {
    *target = (struct pages_target){.view = PAGES_VIEW_PAGE};
    wayback_path_init(&target->path);
    struct bytes text = replay_target(request);
    (void)trust_take_prefix(&text);
    size_t start;
    size_t view = find_view(text, &start);
    if (view < VIEWS_COUNT) {
        target->view = (enum pages_view)view;
        text = bytes_slice(text, 0, start);
    }
    for (size_t i = 0; i < times_count; i++) {
        enum err err = take_time(&text, &target->stamps[i], detail);
        if (err != ERR_OK) {
            return err;
        }
    }
    /* Digits behind the time are the start of a URL, not another time. */
    if (text.size == 0) {
        return err_set(detail, ERR_INVALID, "no URL follows the time");
    }
    return wayback_path_parse(&target->path, text, detail);
}

void pages_target_done(struct pages_target *target) {
    wayback_path_done(&target->path);
}

void pages_put_location(struct buf *out, const char *place, struct stamp stamp, struct bytes url,
                        enum pages_view view) {
    char text[STAMP_SIZE];
    size_t start;
    buf_put_format(out, "%s/%s/", place, stamp_format(stamp, text));
    wayback_put_url(out, url);
    if (view != PAGES_VIEW_PAGE || find_view(url, &start) < VIEWS_COUNT) {
        buf_put_string(out, bytes_find_byte(url, '?') < url.size ? "&" : "?");
        buf_put_string(out, views[view]);
    }
}

void pages_put_path(struct sheet *sheet, const char *place, struct stamp stamp, struct bytes url,
                    enum pages_view view) {
    struct buf path;
    buf_init(&path, LOCATION_SIZE_MAX);
    pages_put_location(&path, place, stamp, url, view);
    sheet_text(sheet, buf_bytes(&path));
    buf_done(&path);
}

/* ---- queries ---- */

bool pages_argument(const struct http_request *request, const char *name, struct buf *out) {
    buf_clear(out);
    return form_get(http_request_query(request), name, out) && out->err == ERR_OK;
}

uint64_t pages_argument_number(const struct http_request *request, const char *name, uint64_t max,
                               uint64_t number) {
    struct buf text;
    buf_init(&text, 32);
    if (pages_argument(request, name, &text)) {
        bytes_to_u64(buf_bytes(&text), max, &number);
    }
    buf_done(&text);
    return number;
}

enum err pages_find(struct archive_reader *reader, struct bytes url, struct stamp stamp,
                    struct capture *ret_capture, struct err_detail *detail) {
    struct bytes surt;
    enum err err = archive_key(reader, url, &surt, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (stamp.id != 0) {
        return archive_find_id(reader, surt, stamp, ret_capture, detail);
    }
    err = archive_find(reader, surt, url, stamp.time_us, ARCHIVE_CLOSEST, ret_capture, detail);
    return err == ERR_NOT_FOUND ? err_set(detail, err, "This archive has no capture of this URL.") : err;
}

/* ---- answers ---- */

void pages_add_partial(struct http_request *request, const struct archive_reader *reader) {
    if (reader != NULL) {
        partial_add_header(request, archive_reader_absent(reader));
    }
}

static const char *error_title(unsigned status) {
    switch (status) {
    case 400:
        return "The request cannot be understood";
    case 404:
        return "Not in this archive";
    case STATUS_BLOCKED:
        return "Not shown";
    case STATUS_UNAVAILABLE:
        return "Not available now";
    default:
        return status < 500 ? "This cannot be done" : "Something went wrong here";
    }
}

void pages_answer_error(struct replay *replay, struct http_request *request, enum err err,
                        const struct err_detail *detail) {
    unsigned status = err == ERR_PERMISSION ? STATUS_BLOCKED : partial_status(err);
    const char *text = err_detail_text(detail, err);
    if (bytes_starts_with(http_request_path(request), BYTES("/api/"))) {
        http_answer_status(request, status, err, text);
    } else {
        sheet_answer_error(replay, request, status, error_title(status), text);
    }
}

static enum err find_asked(void *context, struct capture *ret_capture, struct err_detail *detail) {
    const struct pages_asked *asked = context;
    struct buf url;
    struct buf digits;
    struct stamp stamp = stamp_of_time(UTC_MAX_US);
    buf_init(&url, URL_SIZE_MAX);
    buf_init(&digits, STAMP_SIZE);
    enum err err = ERR_OK;
    bool has_url = pages_argument(asked->request, "url", &url) && url.size > 0;
    if (!has_url) {
        err = url.err == ERR_MEMORY ? ERR_MEMORY : err_set(detail, ERR_INVALID, "url is missing");
    } else if (pages_argument(asked->request, "timestamp", &digits) || digits.err != ERR_OK) {
        bool is_time = digits.err == ERR_OK && pages_read_time(buf_bytes(&digits), &stamp);
        err = is_time ? ERR_OK
              : digits.err == ERR_MEMORY
                  ? ERR_MEMORY
                  : err_set(detail, ERR_INVALID, "timestamp is not a time: write 1 to 14 digits");
    }
    if (err == ERR_OK) {
        err = pages_find(asked->reader, buf_bytes(&url), stamp, ret_capture, detail);
    }
    buf_done(&url);
    buf_done(&digits);
    return err;
}

void pages_answer_asked(struct http_request *request,
                        enum err (*use)(void *context, const struct capture *capture,
                                        struct err_detail *detail)) {
    struct replay *replay = http_request_context(request);
    struct pages_asked asked = {
        .replay = replay, .request = request, .reader = trust_reader_begin(replay, request)};
    struct archive_attempt attempt = {.find = find_asked, .use = use, .context = &asked};
    struct err_detail detail = {0};
    enum err err = asked.reader == NULL ? ERR_MEMORY : archive_try(asked.reader, &attempt, &detail);
    if (err != ERR_OK) {
        pages_add_partial(request, asked.reader);
        pages_answer_error(replay, request, err, &detail);
    }
    archive_reader_end(asked.reader);
}
