#include "warc/warc_reader.h"

enum {
    START_SIZE = 16,       /* "WARC/1.1" with its line end */
    ARC_START_SIZE = 4096, /* a line of an ARC file */
};

enum err warc_reader_init(struct warc_reader *reader, const struct unpack_options *options) {
    *reader = (struct warc_reader){.state = WARC_READER_BETWEEN};
    buf_init(&reader->head, WARC_RECORD_HEAD_SIZE_MAX);
    return unpack_init(&reader->unpack, options);
}

void warc_reader_done(struct warc_reader *reader) {
    unpack_done(&reader->unpack);
    buf_done(&reader->head);
}

void warc_reader_open(struct warc_reader *reader, struct source *source) {
    unpack_open(&reader->unpack, source);
    reader->state = WARC_READER_BETWEEN;
    reader->is_at_member_start = true;
    reader->has_record = false;
    reader->is_arc_file = false;
    reader->end_max = UINT64_MAX;
}

static bool warc_is_plain(const struct warc_reader *reader) {
    return reader->unpack.framing == UNPACK_PLAIN;
}

/*
 * Keep the error for later calls. The detail was filled, with an offset in the file; it is never NULL here,
 * because the public functions put &reader->damage in its place.
 */
static enum err stop(struct warc_reader *reader, enum err err, struct err_detail *detail) {
    reader->state = WARC_READER_DAMAGED;
    reader->is_at_line_start = false;
    reader->damage = *detail;
    reader->damage.err = err;
    return err;
}

/* The same error again. */
static enum err warc_report(const struct warc_reader *reader, struct err_detail *detail) {
    *detail = reader->damage;
    return reader->damage.err;
}

static size_t count_newlines(struct bytes bytes) {
    size_t count = 0;
    while (count < bytes.size && (bytes.data[count] == '\r' || bytes.data[count] == '\n')) {
        count++;
    }
    return count;
}

/* Pass line ends. *ret_event is UNPACK_BYTES if another byte follows in the same member. */
static enum err pass_newlines(struct warc_reader *reader, enum unpack_event *ret_event,
                              struct err_detail *detail) {
    for (;;) {
        enum err err = unpack_fill(&reader->unpack, ret_event, detail);
        if (err != ERR_OK || *ret_event != UNPACK_BYTES) {
            return err;
        }
        struct bytes ready = unpack_ready(&reader->unpack);
        size_t count = count_newlines(ready);
        unpack_consume(&reader->unpack, count);
        if (count < ready.size) {
            return ERR_OK;
        }
    }
}

/*
 * A member ended inside a record. That is allowed: frames of any size may make up a record. But where the
 * next one starts a record of its own, this one is too short. *ret_goes_on is false then and at the end of
 * the file.
 */
static enum err cross_member(struct warc_reader *reader, bool *ret_goes_on, struct err_detail *detail) {
    enum unpack_event event;
    do {
        enum err err = unpack_fill(&reader->unpack, &event, detail);
        if (err != ERR_OK) {
            return err;
        }
    } while (event == UNPACK_MEMBER_END); /* an empty member */
    *ret_goes_on = false;
    if (event == UNPACK_END) {
        return ERR_OK;
    }
    struct bytes text;
    enum err err = unpack_peek(&reader->unpack, START_SIZE, &text, detail);
    if (err == ERR_OK) {
        *ret_goes_on = !warc_record_is_start(text);
        reader->is_at_member_start = true;
    }
    return err;
}

/*
 * Ready bytes of this record. *ret_goes_on is false if the file, or what belongs to the record, has ended.
 */
static enum err fill_record(struct warc_reader *reader, bool *ret_goes_on, struct err_detail *detail) {
    enum unpack_event event;
    /* Not to the end again for every record that lies about its length: that would be quadratic. */
    if (warc_is_plain(reader) && reader->body_left > reader->end_max - unpack_offset(&reader->unpack)) {
        *ret_goes_on = false;
        return ERR_OK;
    }
    enum err err = unpack_fill(&reader->unpack, &event, detail);
    if (err != ERR_OK) {
        return err;
    }
    *ret_goes_on = event == UNPACK_BYTES;
    return event == UNPACK_MEMBER_END ? cross_member(reader, ret_goes_on, detail) : ERR_OK;
}

static enum err fail_truncated(struct warc_reader *reader, const char *part, struct err_detail *detail) {
    bool is_at_end = unpack_ready(&reader->unpack).size == 0;
    bool is_whole_file = warc_is_plain(reader) || is_at_end;
    if (warc_is_plain(reader) && is_at_end && unpack_offset(&reader->unpack) < reader->end_max) {
        reader->end_max = unpack_offset(&reader->unpack);
    }
    enum err err =
        err_set_at(detail, ERR_TRUNCATED, (size_t)reader->record.offset, "%s inside the %s of this record",
                   is_whole_file ? "the file ends" : "another record begins", part);
    err = stop(reader, err, detail);
    reader->is_at_line_start = !is_whole_file;
    return err;
}

/* Append the next line to the head, with its end. */
static enum err warc_read_line(struct warc_reader *reader, size_t *ret_size, struct err_detail *detail) {
    size_t from = reader->head.size;
    for (;;) {
        bool goes_on;
        enum err err = fill_record(reader, &goes_on, detail);
        if (err != ERR_OK) {
            return stop(reader, err, detail);
        }
        if (!goes_on) {
            return fail_truncated(reader, "header", detail);
        }
        struct bytes ready = unpack_ready(&reader->unpack);
        size_t newline = bytes_find_byte(ready, '\n');
        size_t taken = newline < ready.size ? newline + 1 : ready.size;
        err = buf_put(&reader->head, bytes_slice(ready, 0, taken));
        if (err != ERR_OK) {
            if (err == ERR_LIMIT) {
                err_set_at(detail, err, (size_t)reader->record.offset, "the header is longer than %d bytes",
                           WARC_RECORD_HEAD_SIZE_MAX);
            } else {
                err_set_at(detail, err, (size_t)reader->record.offset, "%s", err_text(err));
            }
            return stop(reader, err, detail);
        }
        unpack_consume(&reader->unpack, taken);
        if (newline < ready.size) {
            *ret_size = reader->head.size - from;
            return ERR_OK;
        }
    }
}

/* All lines up to and with the empty one. */
static enum err read_lines(struct warc_reader *reader, struct err_detail *detail) {
    for (;;) {
        size_t size = 0;
        enum err err = warc_read_line(reader, &size, detail);
        if (err != ERR_OK) {
            return err;
        }
        const uint8_t *line = reader->head.data + reader->head.size - size;
        if (count_newlines(bytes_of(line, size)) == size) { /* some writers have CR CR LF */
            return ERR_OK;
        }
    }
}

/* The place in the header is one in the file if the file is plain. */
static enum err fail_header(struct warc_reader *reader, enum err err, struct err_detail *detail) {
    detail->offset = (size_t)reader->record.offset + (warc_is_plain(reader) ? detail->offset : 0);
    err = stop(reader, err, detail);
    reader->is_at_line_start = true; /* behind the header */
    return err;
}

static enum err read_warc_header(struct warc_reader *reader, struct err_detail *detail) {
    enum err err = read_lines(reader, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = warc_record_parse(&reader->record, reader->head.data, reader->head.size, detail);
    return err == ERR_OK ? ERR_OK : fail_header(reader, err, detail);
}

static enum err read_arc_header(struct warc_reader *reader, struct bytes text, struct err_detail *detail) {
    if (!warc_record_is_arc_start(text)) {
        const char *what = !reader->has_record ? "this is neither a WARC nor an ARC file"
                           : reader->is_arc_file
                               ? "no record begins here; the length of the one before may be wrong"
                               : "no record begins here; the Content-Length of the one before may be wrong";
        return stop(reader,
                    err_set_at(detail, ERR_INVALID, (size_t)unpack_offset(&reader->unpack), "%s", what),
                    detail);
    }
    size_t size = bytes_find_byte(text, '\n') + 1;
    enum err err =
        warc_record_parse_arc(&reader->record, bytes_slice(text, 0, size - 1), &reader->head, detail);
    unpack_consume(&reader->unpack, size); /* the line was copied to the head */
    return err == ERR_OK ? ERR_OK : fail_header(reader, err, detail);
}

static enum err read_header(struct warc_reader *reader, struct err_detail *detail) {
    struct bytes text;
    struct warc_record *record = &reader->record;
    record->offset = unpack_offset(&reader->unpack);
    record->length = 0;
    record->is_alone = warc_is_plain(reader) || reader->is_at_member_start;
    reader->is_at_member_start = false;
    reader->body_left = 0;
    buf_clear(&reader->head);
    bool may_be_arc = !reader->has_record || reader->is_arc_file;
    enum err err = unpack_peek(&reader->unpack, may_be_arc ? ARC_START_SIZE : START_SIZE, &text, detail);
    if (err != ERR_OK) {
        return stop(reader, err, detail);
    }
    if (warc_record_begins(text)) {
        err = read_warc_header(reader, detail);
    } else {
        err = read_arc_header(reader, may_be_arc ? text : bytes_of(NULL, 0), detail);
    }
    if (err == ERR_OK) {
        reader->has_record = true;
        reader->is_arc_file = record->is_arc;
        reader->body_left = record->content_length;
        reader->body_offset = unpack_offset(&reader->unpack);
        reader->state = WARC_READER_IN_RECORD;
    }
    return err;
}

enum err warc_reader_next(struct warc_reader *reader, bool *ret_found, struct err_detail *detail) {
    detail = detail != NULL ? detail : &reader->damage;
    enum err err = warc_reader_finish(reader, detail);
    if (err != ERR_OK) {
        return err;
    }
    enum unpack_event event;
    while ((err = pass_newlines(reader, &event, detail)) == ERR_OK && event == UNPACK_MEMBER_END) {
        reader->is_at_member_start = true;
    }
    if (err != ERR_OK) {
        return stop(reader, err, detail);
    }
    if (event == UNPACK_END) {
        *ret_found = false;
        return ERR_OK;
    }
    err = read_header(reader, detail);
    if (err == ERR_OK) {
        *ret_found = true;
    }
    return err;
}

enum err warc_reader_read(struct warc_reader *reader, struct bytes *ret_piece, struct err_detail *detail) {
    detail = detail != NULL ? detail : &reader->damage;
    if (reader->state == WARC_READER_DAMAGED) {
        return warc_report(reader, detail);
    }
    if (reader->state == WARC_READER_BETWEEN || reader->body_left == 0) {
        *ret_piece = bytes_of(NULL, 0);
        return ERR_OK;
    }
    bool goes_on;
    enum err err = fill_record(reader, &goes_on, detail);
    if (err != ERR_OK) {
        return stop(reader, err, detail);
    }
    if (!goes_on) {
        return fail_truncated(reader, "block", detail);
    }
    struct bytes piece = unpack_ready(&reader->unpack);
    piece.size = piece.size < reader->body_left ? piece.size : (size_t)reader->body_left;
    unpack_consume(&reader->unpack, piece.size); /* the bytes stay until the next fill */
    reader->body_left -= piece.size;
    *ret_piece = piece;
    return ERR_OK;
}

static enum err skip_body(struct warc_reader *reader, struct err_detail *detail) {
    while (reader->body_left > 0) {
        bool goes_on;
        enum err err = fill_record(reader, &goes_on, detail);
        if (err != ERR_OK) {
            return stop(reader, err, detail);
        }
        if (!goes_on) {
            return fail_truncated(reader, "block", detail);
        }
        uint64_t skipped;
        err = unpack_skip(&reader->unpack, reader->body_left, &skipped, detail);
        if (err != ERR_OK) {
            return stop(reader, err, detail);
        }
        reader->body_left -= skipped;
    }
    return ERR_OK;
}

enum err warc_reader_finish(struct warc_reader *reader, struct err_detail *detail) {
    detail = detail != NULL ? detail : &reader->damage;
    if (reader->state == WARC_READER_DAMAGED) {
        return warc_report(reader, detail);
    }
    if (reader->state == WARC_READER_BETWEEN) {
        return ERR_OK;
    }
    enum unpack_event event;
    enum err err = skip_body(reader, detail);
    if (err != ERR_OK) {
        return err;
    }
    if ((err = pass_newlines(reader, &event, detail)) != ERR_OK) {
        return stop(reader, err, detail);
    }
    struct warc_record *record = &reader->record;
    reader->is_at_member_start = event == UNPACK_MEMBER_END;
    if (warc_is_plain(reader)) {
        record->length = unpack_offset(&reader->unpack) - record->offset;
    } else if (event == UNPACK_BYTES) {
        record->is_alone = false;
    } else if (record->is_alone) {
        record->length = unpack_stored_end(&reader->unpack) - record->offset;
    }
    reader->state = WARC_READER_BETWEEN;
    return ERR_OK;
}

static size_t find_letter(struct bytes text) {
    size_t at = 0;
    while (at < text.size && (text.data[at] | 0x20) != 'w') {
        at++;
    }
    return at;
}

/*
 * How far it is from the start of the text, which is no record, to the next place where one could begin: the
 * end of a line in an ARC file; any W or w in a WARC file, because the line end before it may be what was
 * damaged.
 */
static size_t find_candidate(struct bytes text, bool is_arc, bool *ret_found) {
    size_t at = is_arc ? bytes_find_byte(text, '\n') + 1 : find_letter(bytes_skip(text, 1)) + 1;
    *ret_found = !is_arc || at <= text.size; /* the first byte of what comes next could be a W */
    return at < text.size ? at : text.size;
}

/* Look for a record from here on. If the compression turns out to be damaged too, *ret_is_broken. */
static enum err find_start(struct warc_reader *reader, bool *ret_found, bool *ret_is_broken,
                           struct err_detail *detail) {
    struct unpack *unpack = &reader->unpack;
    bool is_arc = reader->is_arc_file || !reader->has_record;
    bool is_candidate = reader->is_at_line_start || !is_arc;
    *ret_is_broken = false;
    for (;;) {
        enum unpack_event event;
        struct bytes text = {NULL, 0};
        enum err err = unpack_fill(unpack, &event, detail);
        if (err == ERR_OK && event == UNPACK_BYTES && is_candidate) {
            err = unpack_peek(unpack, is_arc ? ARC_START_SIZE : START_SIZE, &text, detail);
        }
        if (err != ERR_OK) {
            *ret_is_broken = unpack->is_broken;
            return unpack->is_broken ? ERR_OK : err;
        }
        if (event == UNPACK_END) {
            *ret_found = false;
            return ERR_OK;
        }
        if (event == UNPACK_MEMBER_END) {
            is_candidate = true;
            reader->is_at_member_start = true;
            continue;
        }
        if (is_candidate && (warc_record_is_start(text) || (is_arc && warc_record_is_arc_start(text)))) {
            *ret_found = true;
            return ERR_OK;
        }
        unpack_consume(unpack, find_candidate(unpack_ready(unpack), is_arc, &is_candidate));
        reader->is_at_member_start = false;
    }
}

static bool is_any_start(struct bytes text) {
    return warc_record_is_start(text) || warc_record_is_arc_start(text);
}

enum err warc_reader_recover(struct warc_reader *reader, bool *ret_found, struct err_detail *detail) {
    ASSERT(reader->state == WARC_READER_DAMAGED);
    struct unpack *unpack = &reader->unpack;
    bool is_broken = unpack->is_broken;
    bool found = false;
    enum err err = ERR_OK;
    if (!is_broken && unpack->is_started) {
        /* A length that is too large swallowed what follows; look for it behind the header. */
        if (warc_is_plain(reader) && reader->body_left > 0 && source_can_seek(unpack->in.source)) {
            reader->is_at_line_start = true;
            err = unpack_seek(unpack, reader->body_offset, detail);
        }
        err = err == ERR_OK ? find_start(reader, &found, &is_broken, detail) : err;
    }
    if (err == ERR_OK && is_broken) {
        err = unpack_find_member(unpack, unpack->member_offset + 1, is_any_start, &found, detail);
        reader->is_at_member_start = true;
    }
    if (err != ERR_OK) {
        return err;
    }
    reader->state = WARC_READER_BETWEEN;
    reader->body_left = 0;
    *ret_found = found;
    return ERR_OK;
}

enum err warc_reader_seek(struct warc_reader *reader, uint64_t offset, struct err_detail *detail) {
    enum err err = unpack_seek(&reader->unpack, offset, detail);
    if (err == ERR_OK) {
        reader->state = WARC_READER_BETWEEN;
        reader->is_at_member_start = true;
    }
    return err;
}
