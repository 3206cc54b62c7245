#include "store/volume/verify.h"

#include "store/index/index_cursor.h"
#include "store/volume/damage.h"
#include "store/volume/follow.h"
#include "store/volume/volume_state.h"
#include "warc/warc_check.h"

enum { OFFSETS_MAX = 1 << 27 };

struct verify {
    struct volume *volume;
    const struct verify_observer *observer;
    struct verify_report report;
    uint64_t total_size;
    const struct segment *segment; /* that is being read */
    struct warc_check check;
    struct map records; /* segment and offset of every good record */
    struct map told;    /* of those that are not readable and whose capture was told */
    struct volume_reader *reader;
};

static void verify_tell_damage(struct verify *verify, const struct segment *segment, uint64_t offset,
                               const char *reason) {
    char name[SEGMENT_NAME_SIZE_MAX];
    if (verify->observer->damage != NULL) {
        verify->observer->damage(verify->observer->context,
                                 segment_name(segment->number, segment->framing, name), offset, reason);
    }
}

/* Is all of the range known as damaged records that others have replaced? */
static bool verify_is_mended(const struct verify *verify, uint64_t from, uint64_t end) {
    struct location mended;
    while (from < end &&
           index_find_mended(verify->volume->index, verify->segment->number, from, &mended) == ERR_OK &&
           mended.offset == from) {
        from += mended.length;
    }
    return from >= end;
}

static void verify_tell_progress(const struct verify *verify, uint64_t offset) {
    if (verify->observer->progress != NULL) {
        verify->observer->progress(verify->observer->context, verify->report.size + offset,
                                   verify->total_size);
    }
}

static enum err verify_check_record(void *context, struct warc_reader *reader, struct err_detail *detail) {
    struct verify *verify = context;
    uint64_t offset = reader->record.offset;
    struct location location = {.segment = verify->segment->number, .offset = offset};
    verify_tell_progress(verify, offset);
    enum err err = warc_check_read(&verify->check, reader, detail);
    if (err != ERR_OK) {
        return err;
    }
    verify->report.records_count++;
    if (warc_check_is_good(&verify->check)) {
        return damage_set_add(&verify->records, &location);
    }
    if (!verify_is_mended(verify, offset, offset + reader->record.length)) {
        verify->report.damaged_count++;
        verify_tell_damage(verify, verify->segment, offset, "the bytes do not fit the digest in the header");
    }
    return ERR_OK;
}

/* It is told unless it was mended. */
static enum err verify_pass_damage(void *context, uint64_t from, uint64_t end,
                                   const struct err_detail *reason) {
    struct verify *verify = context;
    if (!verify_is_mended(verify, from, end)) {
        verify->report.damaged_count++;
        verify_tell_damage(verify, verify->segment, reason->offset, err_detail_text(reason, reason->err));
    }
    return ERR_OK;
}

static enum err verify_check_segment(struct verify *verify, const struct segment *segment, uint64_t size,
                                     struct err_detail *detail) {
    static const struct segment_visitor visitor = {.record = verify_check_record,
                                                   .damage = verify_pass_damage};
    struct segment_reader reader;
    enum err err = segment_reader_open(&reader, segment, 0, size, detail);
    if (err != ERR_OK) {
        return err;
    }
    verify->segment = segment;
    err = segment_reader_walk(&reader, UINT64_MAX, &visitor, verify, detail);
    segment_reader_done(&reader);
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
    bool is_sound = is_newer || damage_set_has(&verify->records, location);
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
    if (!damage_set_has(&verify->told, location)) {
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
            err = damage_set_add(&verify->told, &capture.location);
        }
    }
    index_cursor_close(cursor);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/* For each segment that was there at the start: hold it, so that no compaction removes it under us. */
static enum err verify_check_segments(struct verify *verify, const struct index_position *end,
                                      struct err_detail *detail) {
    struct segment *segment;
    enum err err = ERR_OK;
    for (uint32_t number = 0;
         err == ERR_OK && (segment = volume_hold_from(verify->volume, number)) != NULL;) {
        uint64_t size;
        number = segment->number + 1;
        err = follow_readable_size(segment, end, &size);
        if (err == ERR_OK && segment->number <= end->segment) {
            err = verify_check_segment(verify, segment, size, detail);
        }
        volume_release(segment);
    }
    return err;
}

enum err verify_volume(struct volume *volume, const struct verify_observer *observer,
                       struct verify_report *ret_report, struct err_detail *detail) {
    struct verify verify = {.volume = volume, .observer = observer};
    damage_set_init(&verify.records, OFFSETS_MAX);
    damage_set_init(&verify.told, OFFSETS_MAX);
    struct index_position end = {0};
    enum err err = warc_check_init(&verify.check);
    verify.reader = volume_reader_new(volume);
    err = err == ERR_OK && verify.reader == NULL ? ERR_MEMORY : err;
    if (err == ERR_OK) {
        err = index_position(volume->index, &end);
    }
    if (err == ERR_OK) {
        uint64_t left_size;
        err = follow_left(volume, &(struct index_position){0}, &left_size, &verify.total_size);
    }
    if (err == ERR_OK) {
        err = verify_check_segments(&verify, &end, detail);
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
    volume_reader_free(verify.reader);
    warc_check_done(&verify.check);
    map_done(&verify.records);
    map_done(&verify.told);
    return err;
}
