#include "store/volume/segment_reader.h"

bool segment_is_damage(enum err err) {
    return err == ERR_INVALID || err == ERR_TRUNCATED || err == ERR_CORRUPT || err == ERR_LIMIT ||
           err == ERR_MISMATCH;
}

enum err segment_reader_open(struct segment_reader *reader, const struct segment *segment, uint64_t from,
                             uint64_t end, struct err_detail *detail) {
    struct unpack_options options = {.dictionary = segment->has_dictionary ? &segment->dictionary : NULL};
    enum err err = warc_reader_init(&reader->warc, &options);
    if (err != ERR_OK) {
        return err;
    }
    segment_source_init(&reader->source, segment, end);
    warc_reader_open(&reader->warc, &reader->source.source);
    reader->position = from;
    reader->is_at_end = false;
    err = from > 0 ? warc_reader_seek(&reader->warc, from, detail) : ERR_OK;
    if (err != ERR_OK) {
        segment_reader_done(reader);
    }
    return err;
}

void segment_reader_done(struct segment_reader *reader) {
    warc_reader_done(&reader->warc);
}

/* To the next record or the end. An error that is not the reader's own, of the index say, is nothing to pass.
 */
static enum err segment_reader_step(struct segment_reader *reader, const struct segment_visitor *visitor,
                                    void *context, struct err_detail *reason) {
    bool found = false;
    enum err err = warc_reader_next(&reader->warc, &found, reason);
    if (err == ERR_OK && found) {
        err = visitor->record(context, &reader->warc, reason);
        uint64_t end = reader->warc.record.offset + reader->warc.record.length;
        reader->position = err == ERR_OK ? end : reader->position;
    } else if (err == ERR_OK) {
        reader->position = reader->source.end;
        reader->is_at_end = true;
    }
    return err;
}

static enum err segment_reader_pass(struct segment_reader *reader, const struct segment_visitor *visitor,
                                    void *context, uint64_t from, const struct err_detail *reason,
                                    struct err_detail *detail) {
    bool goes_on = false;
    enum err err = warc_reader_recover(&reader->warc, &goes_on, detail);
    if (err != ERR_OK) {
        return err;
    }
    reader->position = goes_on ? unpack_offset(&reader->warc.unpack) : reader->source.end;
    reader->is_at_end = !goes_on;
    return visitor->damage(context, from, reader->position, reason);
}

enum err segment_reader_walk(struct segment_reader *reader, uint64_t size_max,
                             const struct segment_visitor *visitor, void *context,
                             struct err_detail *detail) {
    enum err err = ERR_OK;
    for (uint64_t start = reader->position; err == ERR_OK && !reader->is_at_end;) {
        uint64_t from = reader->position;
        struct err_detail reason = {0};
        if (from - start >= size_max) {
            break;
        }
        err = segment_reader_step(reader, visitor, context, &reason);
        if (segment_is_damage(err) && reader->warc.state == WARC_READER_DAMAGED) {
            reason.err = err;
            err = segment_reader_pass(reader, visitor, context, from, &reason, detail);
        } else if (err != ERR_OK && detail != NULL) {
            *detail = reason;
        }
    }
    return err;
}
