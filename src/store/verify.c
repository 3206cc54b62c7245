#include "store/verify.h"

#include "base/map.h"
#include "store/volume_state.h"
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
};

struct record_key {
    uint32_t segment;
    uint32_t unused; /* no padding: keys are compared as bytes */
    uint64_t offset;
};

static void tell_damage(struct verify *verify, const struct segment *segment, uint64_t offset,
                        const char *reason) {
    char name[SEGMENT_NAME_SIZE_MAX];
    if (verify->observer->damage != NULL) {
        verify->observer->damage(verify->observer->context,
                                 segment_name(segment->number, segment->framing, name), offset, reason);
    }
}

static enum err remember(struct verify *verify, uint32_t segment, uint64_t offset) {
    struct record_key key = {.segment = segment, .offset = offset};
    enum err err = map_reserve(&verify->records, verify->records.count + 1);
    if (err == ERR_OK) {
        map_put(&verify->records, bytes_of(&key, sizeof key));
    }
    return err;
}

/* Read the record that the reader is at, against its digests. */
static enum err check_record(struct verify *verify, const struct segment *segment, struct warc_reader *reader,
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
    warc_check_finish(&verify->check);
    verify->report.records_count++;
    if (!warc_check_is_good(&verify->check)) {
        verify->report.damaged_count++;
        tell_damage(verify, segment, reader->record.offset, "the bytes do not fit the digest in the header");
        return ERR_OK;
    }
    return remember(verify, segment->number, reader->record.offset);
}

static void tell_progress(const struct verify *verify, uint64_t offset) {
    if (verify->observer->progress != NULL) {
        verify->observer->progress(verify->observer->context, verify->report.size + offset,
                                   verify->total_size);
    }
}

static enum err check_records(struct verify *verify, const struct segment *segment,
                              struct warc_reader *reader, struct err_detail *detail) {
    bool goes_on = true;
    while (goes_on) {
        bool found = false;
        struct err_detail damage = {0};
        enum err err = warc_reader_next(reader, &found, &damage);
        if (err == ERR_OK && !found) {
            return ERR_OK;
        }
        if (err == ERR_OK) {
            tell_progress(verify, reader->record.offset);
            err = check_record(verify, segment, reader, &damage);
        }
        if (volume_is_damage(err)) {
            verify->report.damaged_count++;
            tell_damage(verify, segment, damage.offset, err_detail_text(&damage, err));
            err = warc_reader_recover(reader, &goes_on, detail);
        }
        if (err != ERR_OK) {
            return err;
        }
    }
    return ERR_OK;
}

static enum err check_segment(struct verify *verify, const struct segment *segment, uint64_t size,
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
    err = check_records(verify, segment, &reader, detail);
    warc_reader_done(&reader);
    verify->report.size += size;
    return err;
}

/* The entries of live blocks must lead to records that were found good. */
static enum err check_index(struct verify *verify, const struct index_position *end) {
    struct index_cursor *cursor;
    enum err err = index_blocks_open(verify->volume->index, &cursor);
    if (err != ERR_OK) {
        return err;
    }
    uint8_t signature[KEY_SIGNATURE_SIZE];
    uint16_t number;
    struct block block;
    while ((err = index_blocks_next(cursor, signature, &number, &block)) == ERR_OK) {
        bool is_newer = block.location.segment > end->segment ||
                        (block.location.segment == end->segment && block.location.offset >= end->offset);
        if (block.references <= 0 || is_newer) {
            continue;
        }
        struct record_key key = {.segment = block.location.segment, .offset = block.location.offset};
        struct segment *segment;
        if (map_get(&verify->records, bytes_of(&key, sizeof key)) != NULL ||
            volume_hold(verify->volume, block.location.segment, &segment) != ERR_OK) {
            continue; /* found, or moved by a compaction since */
        }
        verify->report.lost_count++;
        tell_damage(verify, segment, block.location.offset,
                    "the index names a document here that is not readable");
        volume_release(segment);
    }
    index_cursor_close(cursor);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/* Up to where a segment can be read: all of it, or as far as its records were durable when we began. */
static enum err readable_size(const struct segment *segment, const struct index_position *end,
                              uint64_t *ret_size) {
    if (segment->number == end->segment) {
        *ret_size = end->offset;
        return ERR_OK;
    }
    return vfs_size(&segment->file, ret_size);
}

/* For each segment that was there at the start: hold it, so that no compaction removes it under us. */
static enum err for_each_segment(struct verify *verify, const struct index_position *end,
                                 enum err (*visit)(struct verify *verify, const struct segment *segment,
                                                   uint64_t size, struct err_detail *detail),
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
        err = readable_size(segment, end, &size);
        if (err == ERR_OK) {
            err = visit(verify, segment, size, detail);
        }
        volume_release(segment);
    }
    return err;
}

static enum err add_size(struct verify *verify, const struct segment *segment, uint64_t size,
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
    struct index_position end = {0};
    enum err err = warc_check_init(&verify.check);
    if (err == ERR_OK) {
        err = index_position(volume->index, &end);
        err = err == ERR_NOT_FOUND ? ERR_OK : err; /* nothing was stored yet */
    }
    if (err == ERR_OK) {
        err = for_each_segment(&verify, &end, add_size, detail);
    }
    if (err == ERR_OK) {
        err = for_each_segment(&verify, &end, check_segment, detail);
    }
    if (err == ERR_OK) {
        err = check_index(&verify, &end);
    }
    if (err == ERR_OK) {
        *ret_report = verify.report;
    }
    warc_check_done(&verify.check);
    map_done(&verify.records);
    return err;
}
