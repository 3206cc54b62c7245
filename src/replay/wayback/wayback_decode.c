/*
 * Archived bodies without their content encodings, piece by piece. What others have archived decides how much
 * work that is, so the work is measured as it goes: above WORK_FREE_SIZE it needs a place in the archive's
 * gate, and it ends when the client has left.
 */
#include <stdio.h>

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

/* A head with nothing but the encodings: the chunks that the server's own speaks of are undone already. */
static struct bytes decode_make_head(const struct archive_record *record, struct buf *out) {
    buf_clear(out);
    buf_put_string(out, "HTTP/1.1 200 OK\r\n");
    for (const struct field *field = NULL; (field = wayback_next_coding(record, field)) != NULL;) {
        buf_put_format(out, "Content-Encoding: %.*s\r\n", BYTES_ARG(field->value));
    }
    buf_put_string(out, "\r\n");
    return buf_bytes(out);
}

enum err wayback_decode_start(struct wayback *wayback, uint64_t size_max, struct err_detail *detail) {
    struct wayback_kit *kit = wayback->kit;
    kit->encoded = wayback->record.body;
    kit->has_ended = false;
    struct bytes head = decode_make_head(&wayback->record, &kit->text);
    if (kit->text.err != ERR_OK) {
        return err_set(detail, ERR_LIMIT, "its encodings have too long a name");
    }
    return content_start(&kit->content, head, size_max, NULL, detail);
}

/* Of the stages and of the end. */
static uint64_t decode_work(const struct content *content) {
    uint64_t size = content->size;
    for (size_t i = 0; i < content->stages_count; i++) {
        size += content->stages[i].size;
    }
    return size;
}

/* What is wrong with the document itself counts as its end: what comes before is shown. */
static bool decode_is_damage(enum err err) {
    return err == ERR_CORRUPT || err == ERR_TRUNCATED;
}

enum err wayback_decode_turn(struct wayback_kit *kit, struct bytes *ret_piece, bool *ret_is_over,
                             struct err_detail *detail) {
    enum err err = content_next(&kit->content, &kit->encoded, ret_piece, detail);
    *ret_is_over = false;
    if (err == ERR_OK && (ret_piece->size > 0 || kit->content.is_paused)) {
        return ERR_OK;
    }
    if (err == ERR_OK && !kit->has_ended) {
        kit->has_ended = true;
        content_end(&kit->content);
        return ERR_OK;
    }
    content_rest(&kit->content);
    *ret_is_over = true;
    return decode_is_damage(err) ? ERR_OK : err;
}

enum err wayback_decode_next(struct wayback *wayback, struct bytes *ret_piece, struct err_detail *detail) {
    struct wayback_kit *kit = wayback->kit;
    bool is_over = false;
    enum err err = ERR_OK;
    struct bytes piece = bytes_of(NULL, 0);
    while (err == ERR_OK && piece.size == 0 && !is_over) {
        uint64_t before = decode_work(&kit->content);
        err = wayback_decode_turn(kit, &piece, &is_over, detail);
        bool has_codings = kit->content.stages_count > 0;
        if (err == ERR_OK && has_codings) { /* what is not encoded costs nothing before somebody uses it */
            err = wayback_work(wayback, decode_work(&kit->content) - before);
        }
    }
    *ret_piece = piece;
    return err;
}

enum err wayback_decode_head(struct wayback *wayback, struct buf *out, size_t size_max,
                             struct err_detail *detail) {
    buf_clear(out);
    enum err err = wayback_decode_start(wayback, WAYBACK_DECODE_SIZE_MAX, detail);
    struct bytes piece = bytes_of(NULL, 0);
    do {
        err = err == ERR_OK ? wayback_decode_next(wayback, &piece, detail) : err;
        size_t room = size_max - out->size;
        if (err == ERR_OK) {
            err = buf_put(out, bytes_slice(piece, 0, piece.size < room ? piece.size : room));
        }
    } while (err == ERR_OK && piece.size > 0 && out->size < size_max);
    content_rest(&wayback->kit->content);
    return err;
}

/* ---- sending it ---- */

enum { DECODED_MEMORY_SIZE = 1 << 20 }; /* smaller ones are sent from memory; larger ones are decoded again */

/* How large it is; if it is small, all of it, in kit->decoded. */
static enum err decode_measure(struct wayback *wayback, uint64_t *ret_size, struct err_detail *detail) {
    struct buf *decoded = &wayback->kit->decoded;
    buf_clear(decoded);
    enum err err = wayback_decode_start(wayback, WAYBACK_DECODE_SIZE_MAX, detail);
    struct bytes piece = bytes_of(NULL, 0);
    uint64_t size = 0;
    do {
        err = err == ERR_OK ? wayback_decode_next(wayback, &piece, detail) : err;
        size += err == ERR_OK ? piece.size : 0;
        if (err == ERR_OK && size <= DECODED_MEMORY_SIZE) {
            err = buf_put(decoded, piece);
        }
    } while (err == ERR_OK && piece.size > 0);
    *ret_size = size;
    return err;
}

/*
 * On the connection's thread, at the client's pace: one short turn of the decoder for each call, so that the
 * other connections of the thread do not notice.
 */
static enum err decode_read(void *context, uint64_t offset, void *out, size_t size, size_t *ret_size) {
    struct wayback_kit *kit = context;
    bool is_over = false;
    (void)offset; /* a stream is read from its beginning to its end */
    if (kit->streamed.size == 0) {
        enum err err = wayback_decode_turn(kit, &kit->streamed, &is_over, NULL);
        if (err != ERR_OK) {
            return err;
        }
    }
    if (kit->streamed.size == 0 && !is_over) {
        return ERR_BUSY;
    }
    *ret_size = kit->streamed.size < size ? kit->streamed.size : size;
    if (*ret_size > 0) {
        memcpy(out, kit->streamed.data, *ret_size);
    }
    kit->streamed = bytes_skip(kit->streamed, *ret_size);
    return ERR_OK;
}

static void decode_end_stream(void *context) {
    struct wayback_kit *kit = context;
    kit->streamed = bytes_of(NULL, 0);
    content_rest(&kit->content);
    turnstile_leave(archive_streams(kit->archive));
    archive_reader_end(kit->reader);
}

static enum err decode_send_stream(struct wayback *wayback, unsigned status, const char *type, uint64_t size,
                                   struct err_detail *detail) {
    struct turnstile *streams = archive_streams(wayback->replay->archive);
    if (!turnstile_enter(streams, 0, NULL, NULL)) {
        return ERR_BUSY;
    }
    enum err err = wayback_decode_start(wayback, WAYBACK_DECODE_SIZE_MAX, detail);
    if (err != ERR_OK || !archive_reader_hold(wayback->reader)) {
        turnstile_leave(streams);
        return err != ERR_OK ? err : ERR_BUSY;
    }
    wayback->keeps_reader = true;
    wayback->kit->streamed = bytes_of(NULL, 0);
    struct http_stream stream = {
        .size = size, .read = decode_read, .close = decode_end_stream, .context = wayback->kit};
    http_answer_stream(wayback->request, status, type, &stream);
    return ERR_OK;
}

enum err wayback_send_decoded(struct wayback *wayback, unsigned status, const char *type,
                              struct err_detail *detail) {
    uint64_t size = 0;
    enum err err = decode_measure(wayback, &size, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (size > DECODED_MEMORY_SIZE) {
        return decode_send_stream(wayback, status, type, size, detail);
    }
    http_answer(wayback->request, status, type, buf_bytes(&wayback->kit->decoded));
    return ERR_OK;
}
