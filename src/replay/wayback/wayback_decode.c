/*
 * Archived bodies in the hands of a parser, piece by piece. What others have archived decides how much work
 * that is, so the work is measured as it goes: above WORK_FREE_SIZE it needs a place in the archive's gate,
 * and it ends when the client has left.
 */
#include "parse/parse_decode.h"
#include "replay/wayback/wayback_state.h"

enum {
    WORK_FREE_SIZE = 1 << 20, /* a few milliseconds; most documents are done by then */
    WORK_LOOK_SIZE = 1 << 20, /* how often it is asked whether the client is still there */
    PLACE_TIMEOUT_MS = 20000, /* for a place */
};

/* ---- the work of one request ---- */

static bool decode_has_gone(void *context) {
    return http_request_is_gone(context);
}

enum err wayback_put_off(struct wayback *wayback) {
    wayback->is_put_off = !http_request_is_on_worker(wayback->request);
    return wayback->is_put_off ? ERR_BUSY : ERR_OK;
}

enum err wayback_work(struct wayback *wayback, uint64_t size) {
    uint64_t before = wayback->work_size;
    wayback->work_size += size;
    if (wayback->work_size <= WORK_FREE_SIZE) {
        return ERR_OK;
    }
    if (wayback_put_off(wayback) != ERR_OK) {
        return ERR_BUSY;
    }
    if (!wayback->has_place) {
        struct turnstile *work = archive_work(wayback->replay->archive);
        wayback->has_place = turnstile_enter(work, PLACE_TIMEOUT_MS, decode_has_gone, wayback->request);
        return wayback->has_place ? ERR_OK : ERR_BUSY;
    }
    bool is_time = before / WORK_LOOK_SIZE < wayback->work_size / WORK_LOOK_SIZE;
    return is_time && http_request_is_gone(wayback->request) ? ERR_CANCELLED : ERR_OK;
}

void wayback_end_work(struct wayback *wayback) {
    if (wayback->has_place) {
        turnstile_leave(archive_work(wayback->replay->archive));
        wayback->has_place = false;
    }
}

/* ---- the document ---- */

const struct field *wayback_next_coding(const struct archive_record *record, const struct field *after) {
    return fields_find(record->fields, BYTES("Content-Encoding"), after);
}

struct bytes wayback_coding_head(const struct archive_record *record, struct buf *out) {
    buf_clear(out);
    buf_put_string(out, "HTTP/1.1 200 OK\r\n");
    for (const struct field *field = NULL; (field = wayback_next_coding(record, field)) != NULL;) {
        buf_put_format(out, "Content-Encoding: %.*s\r\n", BYTES_ARG(field->value));
    }
    buf_put_string(out, "\r\n");
    return buf_bytes(out);
}

static enum err parse_put_output(void *context, struct bytes piece) {
    const struct wayback *wayback = context;
    return scratch_put(&wayback->kit->output, piece);
}

static enum err parse_count_work(void *context, uint64_t size) {
    return wayback_work(context, size);
}

static void parse_prepare(struct wayback *wayback, const struct parse_kind *kind, uint64_t out_size_max) {
    struct wayback_kit *kit = wayback->kit;
    scratch_clear(&kit->output);
    kit->job.kind = kind;
    kit->job.params = buf_bytes(&kit->params);
    kit->job.document = wayback->record.body;
    kit->job.out_size_max = out_size_max;
    kit->job.put = parse_put_output;
    kit->job.work = parse_count_work;
    kit->job.context = wayback;
}

/* Is it on a loop, which does not wait for parsers? */
static bool parse_is_aside(const struct wayback *wayback) {
    return wayback->kit->short_seat.parsers != NULL && !http_request_is_on_worker(wayback->request);
}

enum err wayback_parse(struct wayback *wayback, const struct parse_kind *kind, uint64_t out_size_max) {
    struct wayback_kit *kit = wayback->kit;
    if (parse_is_aside(wayback)) {
        return wayback_put_off(wayback); /* seldom: of what is rewritten, wayback_parse_aside() has it done */
    }
    parse_prepare(wayback, kind, out_size_max);
    return parse_run(http_request_is_on_worker(wayback->request) ? &kit->long_seat : &kit->short_seat,
                     &kit->job);
}

bool wayback_parse_aside(struct wayback *wayback, const struct parse_kind *kind, uint64_t out_size_max) {
    if (!parse_is_aside(wayback) || !http_request_may_await(wayback->request)) {
        return false;
    }
    parse_prepare(wayback, kind, out_size_max);
    parse_set_out(&wayback->kit->short_seat, &wayback->kit->job);
    wayback->is_awaited = true;
    return true;
}

bool wayback_is_parsed(void *context) {
    struct wayback *wayback = context;
    return parse_go_on(&wayback->kit->short_seat, &wayback->kit->job, &wayback->parsed);
}

void wayback_await_parsed(void *context, uint32_t timeout_us) {
    struct wayback *wayback = context;
    parse_await_for(&wayback->kit->short_seat, &wayback->kit->job, timeout_us);
}

/* ---- sending it ---- */

enum err wayback_send_decoded(struct wayback *wayback, unsigned status, const char *type,
                              struct err_detail *detail) {
    struct wayback_kit *kit = wayback->kit;
    struct parse_decode_params params = {
        .head = wayback_coding_head(&wayback->record, &kit->text),
        .size_max = WAYBACK_DECODE_SIZE_MAX,
    };
    if (kit->text.err != ERR_OK) {
        return err_set(detail, ERR_LIMIT, "its encodings have too long a name");
    }
    enum err err = parse_decode_params(&kit->params, &params);
    err = err == ERR_OK ? wayback_parse(wayback, &parse_decode, WAYBACK_DECODE_SIZE_MAX) : err;
    if (err != ERR_OK) {
        struct wire_reader reader;
        struct err_detail reason;
        wire_reader_init(&reader, bytes_of(kit->job.note, kit->job.note_size));
        parse_read_detail(&reader, &reason);
        return reason.err == err ? err_set(detail, err, "%s", reason.text) : err;
    }
    wayback_send_output(wayback, status, type);
    return ERR_OK;
}
