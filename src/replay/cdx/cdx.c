#include "replay/cdx/cdx.h"

#include "replay/cdx/available.h"
#include "replay/cdx/cdx_answer.h"

enum { STATUS_OK = 200, STATUS_BAD_REQUEST = 400, ERROR_SIZE_MAX = 4 << 10 };

/* A regular expression that is too much work is the client's fault, not a request that is too large. */
static void answer_error(struct http_request *request, bool is_json, enum err err,
                         const struct err_detail *detail) {
    unsigned status = err == ERR_LIMIT ? STATUS_BAD_REQUEST : http_status(err);
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
static enum err read_answer(void *context, uint64_t offset, void *out, size_t size, size_t *ret_size) {
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
static void answer_cdx(struct http_request *request, enum cdx_dialect dialect) {
    const struct replay *replay = http_request_context(request);
    struct err_detail detail = {0};
    struct cdx_answer *answer;
    bool is_json;
    enum err err = cdx_answer_new(replay->archive, replay->clock, dialect, http_request_query(request),
                                  &answer, &is_json, &detail);
    if (err != ERR_OK) {
        answer_error(request, is_json, err, &detail);
        return;
    }
    err = cdx_answer_work(answer, &detail);
    if (err == ERR_OK && !cdx_answer_is_over(answer) && !cdx_answer_hold(answer)) {
        err = err_set(&detail, ERR_BUSY, "too many long lists are being sent; try again later");
    }
    if (err == ERR_OK && !cdx_answer_is_over(answer)) {
        struct http_stream stream = {
            .size = HTTP_SIZE_UNKNOWN, .read = read_answer, .close = close_answer, .context = answer};
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

static void answer_archive_org(struct http_request *request) {
    answer_cdx(request, CDX_ARCHIVE_ORG);
}

static void answer_pywb(struct http_request *request) {
    answer_cdx(request, CDX_PYWB);
}

size_t cdx_routes(struct replay *replay, struct http_route out[CDX_ROUTES_MAX]) {
    static const struct http_route routes[] = {
        {.method = "GET", .path = "/cdx/search/cdx", .answer = answer_archive_org},
        {.method = "GET", .path = "/cdx", .answer = answer_pywb},
        {.method = "GET", .path = "/wayback/available", .answer = available_answer},
    };
    _Static_assert(sizeof routes / sizeof *routes <= CDX_ROUTES_MAX, "they have room");
    return replay_put_routes(replay, routes, sizeof routes / sizeof *routes, out);
}
