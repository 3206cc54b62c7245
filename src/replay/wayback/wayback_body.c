#include <stdio.h>

#include "replay/wayback/wayback_state.h"

enum {
    COPIED_SIZE_MAX = 1 << 20, /* smaller bodies are copied, so that a slow client keeps no reader */
    CODINGS_SIZE_MAX = 256,
    REASON_SIZE_MAX = 160,
};

/* ---- encodings ---- */

struct bytes wayback_coding(const struct archive_record *record) {
    struct bytes coding = bytes_trim(fields_get(record->fields, BYTES("Content-Encoding")));
    return bytes_equal_ignore_case(coding, BYTES("identity")) ? bytes_of(NULL, 0) : coding;
}

static struct bytes without_x(struct bytes coding) {
    return bytes_starts_with(coding, BYTES("x-")) ? bytes_skip(coding, 2) : coding;
}

/* "gzip;q=0" refuses it. */
static bool has_weight(struct bytes parameters) {
    size_t at = bytes_find(parameters, BYTES("q="));
    if (at == parameters.size) {
        return true;
    }
    for (size_t i = at + 2; i < parameters.size && parameters.data[i] != ';'; i++) {
        if (parameters.data[i] >= '1' && parameters.data[i] <= '9') {
            return true;
        }
    }
    return false;
}

static bool takes_one(struct bytes accepted, struct bytes coding) {
    struct bytes item;
    bool takes_any = false;
    while (bytes_split(&accepted, ',', &item)) {
        size_t semicolon = bytes_find_byte(item, ';');
        struct bytes name = bytes_trim(bytes_slice(item, 0, semicolon));
        if (bytes_equal_ignore_case(without_x(name), without_x(coding))) {
            return has_weight(bytes_skip(item, semicolon));
        }
        takes_any = takes_any || (bytes_equal(name, BYTES("*")) && has_weight(bytes_skip(item, semicolon)));
    }
    return takes_any;
}

/* A client that says nothing accepts everything (RFC 9110). */
static bool takes(const struct http_request *request, struct bytes codings) {
    struct bytes accepted = http_request_header(request, "Accept-Encoding");
    struct bytes coding;
    if (accepted.size == 0) {
        return true;
    }
    while (bytes_split(&codings, ',', &coding)) {
        if (!takes_one(accepted, bytes_trim(coding))) {
            return false;
        }
    }
    return true;
}

/* Many servers say gzip of what is not, and browsers would refuse it; or say it in two fields. */
static bool is_mislabelled(const struct archive_record *record, struct bytes coding) {
    return wayback_next_coding(record, wayback_next_coding(record, NULL)) != NULL ||
           (bytes_equal_ignore_case(without_x(coding), BYTES("gzip")) &&
            !bytes_starts_with(record->body, BYTES("\x1f\x8b")));
}

/* ---- ranges ---- */

enum range { RANGE_ALL, RANGE_PART, RANGE_NONE };

/* "bytes=0-99", "bytes=100-", "bytes=-100"; several are answered with everything, as the standard allows. */
static enum range parse_range(struct bytes text, uint64_t size, uint64_t *ret_from, uint64_t *ret_to) {
    if (!bytes_starts_with(text, BYTES("bytes=")) || bytes_find_byte(text, ',') < text.size) {
        return RANGE_ALL;
    }
    text = bytes_trim(bytes_skip(text, sizeof "bytes=" - 1));
    size_t dash = bytes_find_byte(text, '-');
    if (dash == text.size) {
        return RANGE_ALL;
    }
    struct bytes first = bytes_trim(bytes_slice(text, 0, dash));
    struct bytes last = bytes_trim(bytes_skip(text, dash + 1));
    uint64_t from = 0;
    uint64_t to = UINT64_MAX;
    if ((first.size > 0 && !bytes_to_u64(first, UINT64_MAX, &from)) ||
        (last.size > 0 && !bytes_to_u64(last, UINT64_MAX, &to)) || (first.size == 0 && last.size == 0)) {
        return RANGE_ALL;
    }
    if (first.size == 0) { /* the last so many */
        from = to < size ? size - to : 0;
        from = to == 0 ? size : from;
        to = UINT64_MAX;
    }
    if (to < from) {
        return first.size > 0 ? RANGE_ALL : RANGE_NONE;
    }
    if (from >= size) {
        return RANGE_NONE;
    }
    *ret_from = from;
    *ret_to = to < size - 1 ? to + 1 : size;
    return RANGE_PART;
}

static enum range asked_range(const struct http_request *request, const char *etag, uint64_t size,
                              uint64_t *ret_from, uint64_t *ret_to) {
    struct bytes text = http_request_header(request, "Range");
    struct bytes condition = http_request_header(request, "If-Range");
    if (text.size == 0 || (condition.size > 0 && !bytes_equal(condition, bytes_of_string(etag)))) {
        return RANGE_ALL;
    }
    return parse_range(text, size, ret_from, ret_to);
}

/* ---- sending ---- */

static enum err read_streamed(void *context, uint64_t offset, void *out, size_t size, size_t *ret_size) {
    const struct wayback_kit *kit = context;
    struct bytes rest =
        bytes_skip(kit->streamed, offset < kit->streamed.size ? (size_t)offset : kit->streamed.size);
    *ret_size = rest.size < size ? rest.size : size;
    if (*ret_size > 0) {
        memcpy(out, rest.data, *ret_size);
    }
    return ERR_OK;
}

static void end_stream(void *context) {
    struct wayback_kit *kit = context;
    kit->streamed = bytes_of(NULL, 0);
    archive_reader_end(kit->reader);
}

static void refuse_busy(struct wayback *wayback) {
    http_add_header(wayback->request, "Retry-After", "5");
    http_answer_status(wayback->request, STATUS_UNAVAILABLE, ERR_BUSY,
                       "too many large documents are being sent at the moment");
}

/* Large bodies stay where they are, with the reader, until they are sent. */
static void send(struct wayback *wayback, unsigned status, const char *type, struct bytes body) {
    if (body.size <= COPIED_SIZE_MAX) {
        http_answer(wayback->request, status, type, body);
        return;
    }
    if (!archive_reader_hold(wayback->reader)) {
        refuse_busy(wayback);
        return;
    }
    wayback->keeps_reader = true;
    wayback->kit->streamed = body;
    struct http_stream stream = {
        .size = body.size, .read = read_streamed, .close = end_stream, .context = wayback->kit};
    http_answer_stream(wayback->request, status, type, &stream);
}

/* The bytes as the server sent them, all or a part. */
static void send_plain(struct wayback *wayback, unsigned status, const char *type, struct bytes body) {
    char etag[WAYBACK_ETAG_SIZE_MAX];
    char text[96];
    uint64_t from = 0;
    uint64_t to = body.size;
    wayback_etag(wayback, false, etag);
    enum range range =
        status == STATUS_OK ? asked_range(wayback->request, etag, body.size, &from, &to) : RANGE_ALL;
    if (status == STATUS_OK) {
        http_add_header(wayback->request, "ETag", etag);
        http_add_header(wayback->request, "Accept-Ranges", "bytes");
    }
    if (range == RANGE_NONE) {
        snprintf(text, sizeof text, "bytes */%zu", body.size);
        http_add_header(wayback->request, "Content-Range", text);
        http_answer(wayback->request, STATUS_BAD_RANGE, "text/plain; charset=utf-8",
                    BYTES("the document has no such bytes\n"));
        return;
    }
    if (range == RANGE_PART) {
        snprintf(text, sizeof text, "bytes %ju-%ju/%zu", (uintmax_t)from, (uintmax_t)to - 1, body.size);
        http_add_header(wayback->request, "Content-Range", text);
        status = STATUS_PARTIAL;
    }
    send(wayback, status, type, bytes_slice(body, (size_t)from, (size_t)to));
}

/* The encodings as they are recorded, of all fields. */
static void add_codings(struct wayback *wayback) {
    char text[CODINGS_SIZE_MAX];
    struct buf *codings = &wayback->kit->text;
    buf_clear(codings);
    for (const struct field *field = NULL; (field = wayback_next_coding(&wayback->record, field)) != NULL;) {
        buf_put_string(codings, codings->size > 0 ? ", " : "");
        buf_put(codings, field->value);
    }
    http_add_header(wayback->request, "Content-Encoding",
                    wayback_clean(buf_bytes(codings), text, sizeof text));
}

static void send_encoded(struct wayback *wayback, unsigned status, const char *type) {
    char etag[WAYBACK_ETAG_SIZE_MAX];
    char reason[REASON_SIZE_MAX];
    enum err err = wayback->undecoded.err;
    if (err == ERR_LIMIT || err == ERR_UNSUPPORTED) {
        struct bytes text = bytes_of_string(err_detail_text(&wayback->undecoded, err));
        http_add_header(wayback->request, "X-Mnemon-Undecoded", wayback_clean(text, reason, sizeof reason));
    }
    wayback_etag(wayback, false, etag);
    http_add_header(wayback->request, "ETag", etag);
    add_codings(wayback);
    send(wayback, status, type, wayback->record.body);
}

enum err wayback_send_stored(struct wayback *wayback, unsigned status, const char *type,
                             struct err_detail *detail) {
    const struct archive_record *record = &wayback->record;
    struct bytes coding = wayback_coding(record);
    if (coding.size == 0) {
        send_plain(wayback, status, type, record->body);
        return ERR_OK;
    }
    if (takes(wayback->request, coding) && !is_mislabelled(record, coding)) {
        send_encoded(wayback, status, type);
        return ERR_OK;
    }
    enum err err = wayback_send_decoded(wayback, status, type, &wayback->undecoded);
    switch (err) {
    case ERR_OK:
        return ERR_OK;
    case ERR_LIMIT:
    case ERR_UNSUPPORTED:
        send_encoded(wayback, status, type);
        return ERR_OK;
    case ERR_CLOSED:
    case ERR_CORRUPT:
    case ERR_UNREACHABLE: /* parse_is_lost() */
        err_set(&wayback->undecoded, ERR_UNSUPPORTED, "its parser ended");
        send_encoded(wayback, status, type);
        return ERR_OK;
    case ERR_BUSY:
    case ERR_CANCELLED: /* nobody will read that */
        refuse_busy(wayback);
        return ERR_OK;
    default:
        return err_set(detail, err, "it cannot be decoded: %s", err_text(err));
    }
}
