#include "replay/cdx/available.h"

#include "base/json.h"
#include "replay/cdx/cdx_run.h"
#include "replay/site/replay.h"

enum {
    STATUS_OK = 200,
    CAPTURES_MAX = 2000, /* that are looked at: who has more redirects in a row around that time has none */
    CALLBACK_SIZE_MAX = 128,
    HOST_SIZE_MAX = 255,
    BODY_SIZE_MAX = 1 << 20,
};

struct asked {
    struct buf text; /* of the values */
    struct bytes url;
    struct bytes timestamp;
    struct bytes callback;
};

static enum err read_asked(struct asked *asked, struct bytes query) {
    struct bytes name;
    struct bytes value;
    buf_init(&asked->text, BODY_SIZE_MAX);
    enum err err = buf_reserve(&asked->text, query.size + 1); /* nothing moves */
    while (err == ERR_OK && cdx_query_next(&query, &asked->text, &name, &value)) {
        if (bytes_equal(name, BYTES("url"))) {
            asked->url = value;
        } else if (bytes_equal(name, BYTES("timestamp"))) {
            asked->timestamp = value;
        } else if (bytes_equal(name, BYTES("callback"))) {
            asked->callback = value;
        }
    }
    return err;
}

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

static enum err read_time(const struct asked *asked, const struct clock *clock, int64_t *ret_us,
                          struct err_detail *detail) {
    *ret_us = clock_wall_us(clock);
    if (asked->timestamp.size > 0 && !utc_parse_digits(asked->timestamp, false, ret_us)) {
        return err_set(detail, ERR_INVALID, "timestamp= is no time; write 1 to 14 digits");
    }
    return ERR_OK;
}

/* ERR_NOT_FOUND. */
static enum err find(struct cdx_run *run, struct capture *ret_capture, struct err_detail *detail) {
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
    query.url = asked->url;
    query.match = QUERY_EXACT;
    query.sort = CDX_CLOSEST;
    query.filters[0] =
        (struct cdx_filter){.field = CDX_STATUSCODE, .kind = CDX_FILTER_EQUALS, .text = BYTES("200")};
    query.filters[1] =
        (struct cdx_filter){.field = CDX_ACCESS, .kind = CDX_FILTER_EQUALS, .text = BYTES("allow")};
    query.filters_count = 2;
    enum err err = read_time(asked, replay->clock, &query.closest_us, detail);
    struct cdx_run run;
    if (err == ERR_OK) {
        err = cdx_run_open(&run, replay->archive, reader, &query, false, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    struct capture capture;
    err = find(&run, &capture, detail);
    if (err == ERR_OK) {
        put_capture(json, &capture, http_request_header(request, "Host"));
    }
    cdx_run_close(&run);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

static enum err put_answer(struct buf *out, struct http_request *request, const struct asked *asked,
                           struct err_detail *detail) {
    const struct replay *replay = http_request_context(request);
    if (asked->url.size == 0) {
        return err_set(detail, ERR_INVALID, "url= is missing");
    }
    if (asked->callback.size > 0 && !is_callback(asked->callback)) {
        return err_set(detail, ERR_INVALID, "callback= is no name of a function");
    }
    struct archive_reader *reader = archive_reader_begin(replay->archive);
    if (reader == NULL) {
        return ERR_MEMORY;
    }
    if (asked->callback.size > 0) {
        buf_put_format(out, "/**/%.*s(", BYTES_ARG(asked->callback));
    }
    struct json json;
    json_begin_spaced(&json, out);
    json_bytes(&json, "url", asked->url);
    json_open(&json, "archived_snapshots");
    enum err err = put_closest(&json, request, asked, reader, detail);
    json_end(&json);
    buf_put_string(out, asked->callback.size > 0 ? ");\n" : "\n");
    archive_reader_end(reader);
    return err == ERR_OK ? out->err : err;
}

void available_answer(struct http_request *request) {
    struct asked asked = {0};
    struct err_detail detail = {0};
    struct buf body;
    buf_init(&body, BODY_SIZE_MAX);
    enum err err = read_asked(&asked, http_request_query(request));
    if (err == ERR_OK) {
        err = put_answer(&body, request, &asked, &detail);
    }
    if (err != ERR_OK) {
        buf_clear(&body);
        http_put_error(&body, err, err_detail_text(&detail, err));
        buf_put_byte(&body, '\n');
    }
    bool is_script = err == ERR_OK && asked.callback.size > 0;
    http_add_header(request, "X-Content-Type-Options", "nosniff");
    http_answer(request, err == ERR_OK ? STATUS_OK : http_status(err),
                is_script ? "application/javascript; charset=utf-8" : "application/json", buf_bytes(&body));
    buf_done(&body);
    buf_done(&asked.text);
}
