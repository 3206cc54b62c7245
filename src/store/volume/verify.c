#include "store/volume/verify.h"

#include "base/map.h"
#include "store/index/index_cursor.h"
#include "store/volume/volume_state.h"
#include "warc/warc_check.h"
#include "warc/warc_reader.h"

enum { OFFSETS_MAX = 1 << 27 };

struct verify {
    struct volume *volume;
    const struct verify_observer *observer;
    struct verify_report report;
    uint64_t total_size;
    struct warc_check check;
    struct map records; /* segment and offset of every good record */
    struct map told;    /* of those that are not readable and whose capture was told */
    struct volume_reader *reader;
};

struct record_key {
    uint32_t segment;
    uint32_t unused; /* no padding: keys are compared as bytes */
    uint64_t offset;
};

static void verify_tell_damage(struct verify *verify, const struct segment *segment, uint64_t offset,
                               const char *reason) {
    char name[SEGMENT_NAME_SIZE_MAX];
    if (verify->observer->damage != NULL) {
        verify->observer->damage(verify->observer->context,
                                 segment_name(segment->number, segment->framing, name), offset, reason);
    }
}

static enum err verify_remember(struct map *records, uint32_t segment, uint64_t offset) {
    struct record_key key = {.segment = segment, .offset = offset};
    enum err err = map_reserve(records, records->count + 1);
    if (err == ERR_OK) {
        map_put(records, bytes_of(&key, sizeof key));
    }
    return err;
}

static bool verify_has_record(const struct map *records, const struct location *location) {
    struct record_key key = {.segment = location->segment, .offset = location->offset};
    return map_get(records, bytes_of(&key, sizeof key)) != NULL;
}

/* Is all of the range known as damaged records that others have replaced? */
static bool verify_is_mended(const struct verify *verify, const struct segment *segment, uint64_t from,
                             uint64_t end) {
    struct location mended;
    while (from < end && index_find_mended(verify->volume->index, segment->number, from, &mended) == ERR_OK &&
           mended.offset == from) {
        from += mended.length;
    }
    return from >= end;
}

/* Read the record that the reader is at, against its digests. *ret_end is where it ends. */
static enum err verify_check_record(struct verify *verify, const struct segment *segment,
                                    struct warc_reader *reader, uint64_t *ret_end,
                                    struct err_detail *detail) {
    struct bytes piece;
    enum err err;
    warc_check_start(&verify->check, &reader->record);
    while ((err = warc_reader_read(reader, &piece, detail)) == ERR_OK && piece.size > 0) {
        warc_check_feed(&verify->check, piece);
    }
    if (err == ERR_OK) {
        err = warc_reader_finish(reader, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    uint64_t offset = reader->record.offset;
    warc_check_finish(&verify->check);
    *ret_end = offset + reader->record.length;
    verify->report.records_count++;
    if (warc_check_is_good(&verify->check)) {
        return verify_remember(&verify->records, segment->number, offset);
    }
    if (!verify_is_mended(verify, segment, offset, *ret_end)) {
        verify->report.damaged_count++;
        verify_tell_damage(verify, segment, offset, "the bytes do not fit the digest in the header");
    }
    return ERR_OK;
}

static void verify_tell_progress(const struct verify *verify, uint64_t offset) {
    if (verify->observer->progress != NULL) {
        verify->observer->progress(verify->observer->context, verify->report.size + offset,
                                   verify->total_size);
    }
}

/* Go on behind the damage, which begins at `from`; it is told unless it was mended. */
static enum err verify_pass_damage(struct verify *verify, const struct segment *segment,
                                   struct warc_reader *reader, uint64_t size, const char *reason,
                                   uint64_t offset, uint64_t *from, bool *ret_goes_on,
                                   struct err_detail *detail) {
    enum err err = warc_reader_recover(reader, ret_goes_on, detail);
    if (err != ERR_OK) {
        return err;
    }
    uint64_t end = *ret_goes_on ? unpack_offset(&reader->unpack) : size;
    if (!verify_is_mended(verify, segment, *from, end)) {
        verify->report.damaged_count++;
        verify_tell_damage(verify, segment, offset, reason);
    }
    *from = end;
    return ERR_OK;
}

static enum err verify_check_records(struct verify *verify, const struct segment *segment, uint64_t size,
                                     struct warc_reader *reader, struct err_detail *detail) {
    bool goes_on = true;
    uint64_t end = 0; /* of what was read last */
    while (goes_on) {
        bool found = false;
        struct err_detail damage = {0};
        enum err err = warc_reader_next(reader, &found, &damage);
        if (err == ERR_OK && !found) {
            return ERR_OK;
        }
        if (err == ERR_OK) {
            verify_tell_progress(verify, reader->record.offset);
            err = verify_check_record(verify, segment, reader, &end, &damage);
        }
        if (volume_is_damage(err)) {
            err = verify_pass_damage(verify, segment, reader, size, err_detail_text(&damage, err),
                                     damage.offset, &end, &goes_on, detail);
        }
        if (err != ERR_OK) {
            return err;
        }
    }
    return ERR_OK;
}

static enum err verify_check_segment(struct verify *verify, const struct segment *segment, uint64_t size,
                                     struct err_detail *detail) {
    struct warc_reader reader;
    struct segment_source source;
    struct unpack_options options = {.dictionary = segment->has_dictionary ? &segment->dictionary : NULL};
    enum err err = warc_reader_init(&reader, &options);
    if (err != ERR_OK) {
        return err;
    }
    segment_source_init(&source, segment, size);
    warc_reader_open(&reader, &source.source);
    err = verify_check_records(verify, segment, size, &reader, detail);
    warc_reader_done(&reader);
    verify->report.size += size;
    return err;
}

static void verify_tell_capture(struct verify *verify, const struct capture *capture) {
    if (verify->observer->capture != NULL) {
        verify->observer->capture(verify->observer->context, capture);
    }
}

/*
 * Is there no sound record at the location of an entry? Most were met on the way. One that was not may have
 * been moved there by a compaction since.
 */
static enum err verify_is_lost(struct verify *verify, const struct location *location,
                               const struct index_position *end, bool *ret_is_lost) {
    bool is_newer = location->segment > end->segment ||
                    (location->segment == end->segment && location->offset >= end->offset);
    bool is_sound = is_newer || verify_has_record(&verify->records, location);
    enum err err = is_sound ? ERR_OK : volume_check_record(verify->reader, location, &is_sound);
    *ret_is_lost = !is_sound;
    return err;
}

/* The document of a block is not readable, and the index says so still. */
static void verify_lose_block(struct verify *verify, const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number,
                              const struct location *location) {
    struct block now;
    struct segment *segment;
    if (index_find_block(verify->volume->index, digest, number, &now) != ERR_OK ||
        now.location.segment != location->segment || now.location.offset != location->offset) {
        return; /* moved, mended or removed since */
    }
    struct capture capture = {.block_number = number, .location = *location};
    memcpy(capture.digest, digest, sizeof capture.digest);
    verify->report.lost_count++;
    if (volume_hold(verify->volume, location->segment, &segment) == ERR_OK) {
        verify_tell_damage(verify, segment, location->offset,
                           "the index names a document here that is not readable");
        volume_release(segment);
    }
    if (!verify_has_record(&verify->told, location)) {
        verify_tell_capture(verify, &capture);
    }
}

/* The entries of live blocks must lead to records that were found good. */
static enum err verify_check_blocks(struct verify *verify, const struct index_position *end) {
    struct index_cursor *cursor;
    enum err err = index_blocks_open(verify->volume->index, &cursor);
    if (err != ERR_OK) {
        return err;
    }
    uint8_t digest[KEY_DIGEST_SIZE];
    uint16_t number;
    struct block block;
    while (err == ERR_OK && (err = index_blocks_next(cursor, digest, &number, &block)) == ERR_OK) {
        bool lost = false;
        if (block.references > 0 && block.location.segment != 0) {
            err = verify_is_lost(verify, &block.location, end, &lost);
        }
        if (err == ERR_OK && lost) {
            verify_lose_block(verify, digest, number, &block.location);
        }
    }
    index_cursor_close(cursor);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/* And so must those of captures. */
static enum err verify_check_captures(struct verify *verify, const struct index_position *end) {
    struct index_cursor *cursor;
    struct capture capture;
    struct bytes all = {NULL, 0};
    enum err err = index_cursor_open(verify->volume->index, all, all, false, &cursor);
    if (err != ERR_OK) {
        return err;
    }
    while (err == ERR_OK && (err = index_cursor_next(cursor, &capture)) == ERR_OK) {
        bool lost = false;
        err = verify_is_lost(verify, &capture.location, end, &lost);
        if (err == ERR_OK && lost) {
            err = index_is_live(verify->volume->index, &capture, &lost); /* still? */
        }
        if (err == ERR_OK && lost) {
            verify->report.captures_count++;
            verify_tell_capture(verify, &capture);
            err = verify_remember(&verify->told, capture.location.segment, capture.location.offset);
        }
    }
    index_cursor_close(cursor);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/* Up to where a segment can be read: all of it, or as far as its records were durable when we began. */
static enum err verify_readable_size(const struct segment *segment, const struct index_position *end,
                                     uint64_t *ret_size) {
    if (segment->number == end->segment) {
        *ret_size = end->offset;
        return ERR_OK;
    }
    return vfs_size(&segment->file, ret_size);
}

/* For each segment that was there at the start: hold it, so that no compaction removes it under us. */
static enum err verify_for_each_segment(struct verify *verify, const struct index_position *end,
                                        enum err (*visit)(struct verify *verify,
                                                          const struct segment *segment, uint64_t size,
                                                          struct err_detail *detail),
                                        struct err_detail *detail) {
    enum err err = ERR_OK;
    for (size_t i = 0; err == ERR_OK; i++) {
        struct segment *segment = NULL;
        pthread_rwlock_rdlock(&verify->volume->segments_lock);
        if (i < verify->volume->segments_count && verify->volume->segments[i]->number <= end->segment) {
            segment = verify->volume->segments[i];
            atomic_fetch_add_explicit(&segment->holders_count, 1, memory_order_relaxed);
        }
        pthread_rwlock_unlock(&verify->volume->segments_lock);
        if (segment == NULL) {
            break;
        }
        uint64_t size;
        err = verify_readable_size(segment, end, &size);
        if (err == ERR_OK) {
            err = visit(verify, segment, size, detail);
        }
        volume_release(segment);
    }
    return err;
}

static enum err verify_add_size(struct verify *verify, const struct segment *segment, uint64_t size,
                                struct err_detail *detail) {
    (void)segment;
    (void)detail;
    verify->total_size += size;
    return ERR_OK;
}

enum err verify_volume(struct volume *volume, const struct verify_observer *observer,
                       struct verify_report *ret_report, struct err_detail *detail) {
    struct verify verify = {.volume = volume, .observer = observer};
    map_init(&verify.records, sizeof(struct record_key), 0, OFFSETS_MAX, 1);
    map_init(&verify.told, sizeof(struct record_key), 0, OFFSETS_MAX, 1);
    struct index_position end = {0};
    enum err err = warc_check_init(&verify.check);
    verify.reader = volume_reader_new(volume);
    err = err == ERR_OK && verify.reader == NULL ? ERR_MEMORY : err;
    if (err == ERR_OK) {
        err = index_position(volume->index, &end);
        err = err == ERR_NOT_FOUND ? ERR_OK : err; /* nothing was stored yet */
    }
    if (err == ERR_OK) {
        err = verify_for_each_segment(&verify, &end, verify_add_size, detail);
    }
    if (err == ERR_OK) {
        err = verify_for_each_segment(&verify, &end, verify_check_segment, detail);
    }
    if (err == ERR_OK) {
        err = verify_check_captures(&verify, &end);
    }
    if (err == ERR_OK) {
        err = verify_check_blocks(&verify, &end);
    }
    if (err == ERR_OK) {
        *ret_report = verify.report;
    }
    if (verify.reader != NULL) {
        volume_reader_free(verify.reader);
    }
    warc_check_done(&verify.check);
    map_done(&verify.records);
    map_done(&verify.told);
    return err;
}
