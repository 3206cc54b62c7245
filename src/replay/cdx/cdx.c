#include "replay/cdx/cdx.h"

#include "base/json.h"
#include "http/server/form.h"
#include "replay/cdx/cdx_answer.h"
#include "replay/cdx/cdx_run.h"
#include "replay/site/origin.h"
#include "replay/site/partial.h"
#include "replay/site/replay.h"
#include "replay/site/trust.h"

enum {
    ERROR_SIZE_MAX = 4 << 10,
    ORIGIN_SIZE_MAX = 1 << 10,
    CAPTURES_MAX = 2000, /* that are looked at: a URL with more redirects in a row around that time counts as
                            not archived */
    CALLBACK_SIZE_MAX = 128,
    HOST_SIZE_MAX = 255,
    BODY_SIZE_MAX = 1 << 20,
};

/* A regular expression that is too much work is the client's fault, not a request that is too large. */
static void answer_error(struct http_request *request, bool is_json, enum err err,
                         const struct err_detail *detail) {
    unsigned status = err == ERR_LIMIT ? STATUS_BAD_REQUEST : partial_status(err);
    const char *text = err_detail_text(detail, err);
    if (!is_json) {
        http_answer_status(request, status, err, text);
        return;
    }
    struct buf body;
    buf_init(&body, ERROR_SIZE_MAX);
    http_put_error(&body, err, text);
    buf_put_byte(&body, '\n');
    http_answer(request, status, "application/json", buf_bytes(&body));
    buf_done(&body);
}

/* ERR_BUSY: nothing yet, and others may be served first. */
static enum err cdx_read_answer(void *context, uint64_t offset, void *out, size_t size, size_t *ret_size) {
    struct cdx_answer *answer = context;
    (void)offset;
    if (cdx_answer_bytes(answer).size == 0 && !cdx_answer_is_over(answer)) {
        enum err err = cdx_answer_work(answer, NULL);
        if (err != ERR_OK) {
            return err;
        }
    }
    struct bytes bytes = cdx_answer_bytes(answer);
    *ret_size = bytes.size < size ? bytes.size : size;
    if (*ret_size > 0) {
        memcpy(out, bytes.data, *ret_size);
        cdx_answer_consume(answer, *ret_size);
    }
    return *ret_size == 0 && !cdx_answer_is_over(answer) ? ERR_BUSY : ERR_OK;
}

static void close_answer(void *context) {
    cdx_answer_free(context);
}

/* Short answers go out in one piece, and what is wrong mostly shows in the first. */
static void answer_cdx(struct http_request *request) {
    const struct replay *replay = http_request_context(request);
    struct err_detail detail = {0};
    struct cdx_answer *answer;
    bool is_json;
    struct buf origin;
    buf_init(&origin, ORIGIN_SIZE_MAX);
    origin_put(&origin, request);
    enum cdx_dialect dialect = (enum cdx_dialect)http_request_variant(request);
    enum err err = cdx_answer_new(replay->archive, replay->clock, dialect, http_request_query(request),
                                  buf_bytes(&origin), &answer, &is_json, &detail);
    buf_done(&origin);
    if (err != ERR_OK) {
        answer_error(request, is_json, err, &detail);
        return;
    }
    err = cdx_answer_work(answer, &detail);
    const struct absent *absent = cdx_answer_absent(answer);
    partial_add_header(request, absent);
    if (absent->is_any) {
        cdx_answer_mark(answer);
        err = err == ERR_OK && cdx_answer_is_empty(answer) ? partial_missing(absent, "", &detail) : err;
    }
    if (err == ERR_OK && !cdx_answer_is_over(answer) && !cdx_answer_hold(answer)) {
        err = err_set(&detail, ERR_BUSY, "too many long lists are being sent; try again later");
    }
    if (err == ERR_OK && !cdx_answer_is_over(answer)) {
        struct http_stream stream = {
            .size = HTTP_SIZE_UNKNOWN, .read = cdx_read_answer, .close = close_answer, .context = answer};
        http_answer_stream(request, STATUS_OK, cdx_answer_type(answer), &stream);
        return;
    }
    if (err == ERR_OK) {
        http_answer(request, STATUS_OK, cdx_answer_type(answer), cdx_answer_bytes(answer));
    } else {
        answer_error(request, is_json, err, &detail);
    }
    cdx_answer_free(answer);
}

/* ---- /wayback/available ---- */

struct asked {
    struct buf url;
    struct buf timestamp;
    struct buf callback;
};

/* A name of JavaScript, with dots: anything else might be a script of somebody else's. */
static bool is_callback(struct bytes name) {
    bool is_start = true;
    for (size_t i = 0; i < name.size; i++) {
        uint8_t byte = name.data[i];
        bool is_letter = byte_is_alpha(byte) || byte == '_' || byte == '$';
        if (!is_letter && (is_start || (!byte_is_digit(byte) && byte != '.'))) {
            return false;
        }
        is_start = byte == '.';
    }
    return name.size <= CALLBACK_SIZE_MAX && !is_start;
}

static enum err read_available_time(const struct asked *asked, const struct clock *clock, int64_t *ret_us,
                                    struct err_detail *detail) {
    *ret_us = clock_wall_us(clock);
    if (asked->timestamp.size > 0 && !utc_parse_digits(buf_bytes(&asked->timestamp), false, ret_us)) {
        return err_set(detail, ERR_INVALID, "timestamp= is not a time; write 1 to 14 digits");
    }
    return ERR_OK;
}

/* ERR_NOT_FOUND. */
static enum err find_available(struct cdx_run *run, struct capture *ret_capture, struct err_detail *detail) {
    enum err err = ERR_BUSY;
    for (size_t i = 0; i < CAPTURES_MAX && err == ERR_BUSY; i++) {
        run->steps_left = 1;
        err = cdx_run_next(run, ret_capture, detail);
    }
    return err == ERR_BUSY ? ERR_NOT_FOUND : err;
}

static void put_capture(struct json *json, const struct capture *capture, struct bytes host) {
    char timestamp[UTC_DIGITS_SIZE];
    struct buf url;
    buf_init(&url, BODY_SIZE_MAX);
    if (host.size > 0 && host.size <= HOST_SIZE_MAX) {
        buf_put_format(&url, "http://%.*s", BYTES_ARG(host));
    }
    buf_put_format(&url, "/web/%s/", utc_format_digits(capture->time_us, timestamp));
    buf_put(&url, capture->url);
    json_open(json, "closest");
    json_format(json, "status", "%u", capture->status);
    json_bool(json, "available", true);
    json_bytes(json, "url", buf_bytes(&url));
    json_text(json, "timestamp", timestamp);
    json_close(json);
    buf_done(&url);
}

static enum err put_closest(struct json *json, struct http_request *request, const struct asked *asked,
                            struct archive_reader *reader, struct err_detail *detail) {
    const struct replay *replay = http_request_context(request);
    struct cdx_query query;
    cdx_query_init(&query, CDX_PYWB);
    query.url = buf_bytes(&asked->url);
    query.match = QUERY_EXACT;
    query.sort = CDX_CLOSEST;
    query.filters[0] =
        (struct cdx_filter){.field = CDX_STATUSCODE, .kind = CDX_FILTER_EQUALS, .text = BYTES("200")};
    query.filters[1] =
        (struct cdx_filter){.field = CDX_ACCESS, .kind = CDX_FILTER_EQUALS, .text = BYTES("allow")};
    query.filters_count = 2;
    enum err err = read_available_time(asked, replay->clock, &query.closest_us, detail);
    struct cdx_run run;
    if (err == ERR_OK) {
        err = cdx_run_open(&run, replay->archive, reader, &query, false, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    struct capture capture;
    err = find_available(&run, &capture, detail);
    if (err == ERR_OK) {
        put_capture(json, &capture, http_request_header(request, "Host"));
    }
    cdx_run_close(&run);
    return err;
}

/* *ret_status: 503 if nothing was found and somebody that could hold it did not answer. */
static enum err put_answer(struct buf *out, struct http_request *request, const struct asked *asked,
                           unsigned *ret_status, struct err_detail *detail) {
    const struct replay *replay = http_request_context(request);
    const struct buf *const fields[] = {&asked->url, &asked->timestamp, &asked->callback};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (fields[i]->err != ERR_OK) {
            return fields[i]->err; /* without it another question would be answered */
        }
    }
    if (asked->url.size == 0) {
        return err_set(detail, ERR_INVALID, "url= is missing");
    }
    if (asked->callback.size > 0 && !is_callback(buf_bytes(&asked->callback))) {
        return err_set(detail, ERR_INVALID, "callback= is not the name of a function");
    }
    struct archive_reader *reader = trust_reader_begin(replay, request);
    if (reader == NULL) {
        return ERR_MEMORY;
    }
    if (asked->callback.size > 0) {
        buf_put_format(out, "/**/%.*s(", BYTES_ARG(buf_bytes(&asked->callback)));
    }
    struct json json;
    json_begin_spaced(&json, out);
    json_bytes(&json, "url", buf_bytes(&asked->url));
    json_open(&json, "archived_snapshots");
    enum err err = put_closest(&json, request, asked, reader, detail);
    const struct absent *absent = archive_reader_absent(reader);
    json_close(&json);
    absent_put_json(absent, &json);
    json_end(&json);
    partial_add_header(request, absent);
    *ret_status = err == ERR_NOT_FOUND && absent->is_any ? STATUS_UNAVAILABLE : STATUS_OK;
    err = err == ERR_NOT_FOUND ? ERR_OK : err;
    buf_put_string(out, asked->callback.size > 0 ? ");\n" : "\n");
    archive_reader_end(reader);
    return err == ERR_OK ? out->err : err;
}

static void answer_available(struct http_request *request) {
    struct bytes query = http_request_query(request);
    struct asked asked;
    struct err_detail detail = {0};
    struct buf body;
    buf_init(&body, BODY_SIZE_MAX);
    buf_init(&asked.url, BODY_SIZE_MAX);
    buf_init(&asked.timestamp, BODY_SIZE_MAX);
    buf_init(&asked.callback, BODY_SIZE_MAX);
    form_get(query, "url", &asked.url);
    form_get(query, "timestamp", &asked.timestamp);
    form_get(query, "callback", &asked.callback);
    unsigned status = STATUS_OK;
    enum err err = put_answer(&body, request, &asked, &status, &detail);
    if (err != ERR_OK) {
        buf_clear(&body);
        http_put_error(&body, err, err_detail_text(&detail, err));
        buf_put_byte(&body, '\n');
    }
    bool is_script = err == ERR_OK && asked.callback.size > 0;
    http_add_header(request, "X-Content-Type-Options", "nosniff");
    http_answer(request, err == ERR_OK ? status : partial_status(err),
                is_script ? "application/javascript; charset=utf-8" : "application/json", buf_bytes(&body));
    buf_done(&body);
    buf_done(&asked.url);
    buf_done(&asked.timestamp);
    buf_done(&asked.callback);
}

/* ---- */

size_t cdx_routes(struct replay *replay, struct http_route out[CDX_ROUTES_MAX]) {
    static const struct http_route routes[] = {
        {.method = "GET", .path = "/cdx/search/cdx", .variant = CDX_ARCHIVE_ORG, .answer = answer_cdx},
        {.method = "GET", .path = "/cdx", .variant = CDX_PYWB, .answer = answer_cdx},
        {.method = "GET", .path = "/wayback/available", .answer = answer_available},
    };
    _Static_assert(sizeof routes / sizeof *routes <= CDX_ROUTES_MAX, "they have room");
    return replay_put_routes(replay, routes, sizeof routes / sizeof *routes, out);
}
