#include "store/volume/follow.h"

#include <stdlib.h>

#include "store/volume/volume_record.h"
#include "store/volume/volume_state.h"

struct follow {
    struct volume *volume;
    struct index_position position;
    struct volume_scan scan;
    struct segment *segment; /* held; NULL: none */
    uint64_t end;            /* how much of it may be read */
    bool is_last;            /* the volume ended there when the segment was opened */
    struct segment_reader reader;
    struct buf text; /* of an entry that was not read from the segment */
};

struct follow *follow_new(struct volume *volume) {
    struct follow *follow = calloc(1, sizeof *follow);
    if (follow == NULL) {
        return NULL;
    }
    follow->volume = volume;
    buf_init(&follow->text, RECENT_SIZE_MAX);
    if (volume_scan_init(&follow->scan, volume) != ERR_OK) {
        follow_free(follow);
        return NULL;
    }
    return follow;
}

void follow_pause(struct follow *follow) {
    if (follow->segment != NULL) {
        segment_reader_done(&follow->reader);
        volume_release(follow->segment);
        follow->segment = NULL;
    }
}

void follow_free(struct follow *follow) {
    follow_pause(follow);
    volume_scan_done(&follow->scan);
    buf_done(&follow->text);
    free(follow);
}

void follow_seek(struct follow *follow, const struct index_position *position) {
    follow_pause(follow);
    follow->position = *position;
}

struct index_position follow_position(const struct follow *follow) {
    return follow->position;
}

bool follow_is_behind(const struct follow *follow) {
    struct index_position end;
    enum err err = index_position(follow->volume->index, &end);
    return err != ERR_OK || end.segment != follow->position.segment || end.offset != follow->position.offset;
}

enum err follow_readable_size(const struct segment *segment, const struct index_position *end,
                              uint64_t *ret_size) {
    if (segment->number < end->segment) {
        return vfs_size(&segment->file, ret_size);
    }
    *ret_size = segment->number == end->segment ? end->offset : 0;
    return ERR_OK;
}

/* Hold the segment that the position is in, or the next one. */
static enum err open_segment(struct follow *follow, struct err_detail *detail) {
    struct index_position end;
    enum err err = index_position(follow->volume->index, &end);
    if (err != ERR_OK) {
        return err;
    }
    struct segment *segment = volume_hold_from(follow->volume, follow->position.segment);
    if (segment == NULL) {
        return follow->position.segment > end.segment + 1 ? ERR_MISMATCH : ERR_NOT_FOUND;
    }
    uint64_t from = segment->number == follow->position.segment ? follow->position.offset : 0;
    err = follow_readable_size(segment, &end, &follow->end);
    follow->is_last = segment->number >= end.segment;
    if (err == ERR_OK && from > follow->end) {
        err = ERR_MISMATCH;
    } else if (err == ERR_OK && from == follow->end && follow->is_last) {
        err = ERR_NOT_FOUND;
    }
    err = err == ERR_OK ? segment_reader_open(&follow->reader, segment, from, follow->end, detail) : err;
    if (err != ERR_OK) {
        volume_release(segment);
        return err;
    }
    follow->segment = segment;
    follow->position = (struct index_position){.segment = segment->number, .offset = from};
    return ERR_OK;
}

/* The segment has been read: the next one follows, unless it may still grow. */
static void close_segment(struct follow *follow) {
    follow->position.offset = follow->end;
    if (!follow->is_last) {
        follow->position = (struct index_position){.segment = follow->segment->number + 1};
    }
    follow_pause(follow);
}

static enum err read_record(struct follow *follow, struct ledger_entry *ret_entry, bool *ret_found,
                            struct err_detail *detail) {
    enum err err = warc_reader_next(&follow->reader.warc, ret_found, detail);
    if (err == ERR_OK && *ret_found) {
        err = volume_scan_record(&follow->scan, &follow->reader.warc, follow->segment->number, ret_entry,
                                 detail);
    }
    if (err == ERR_OK && *ret_found) {
        follow->position.offset = ret_entry->location.offset + ret_entry->location.length;
    }
    return err;
}

/* What was committed a moment ago, as the committer knows it. */
static bool take_recent(struct follow *follow, struct ledger_entry *ret_entry) {
    bool is_found = recent_find(&follow->volume->recent, &follow->position, &follow->text, ret_entry);
    if (is_found) {
        follow->position.offset += ret_entry->location.length;
    }
    return is_found;
}

enum err follow_next(struct follow *follow, struct ledger_entry *ret_entry, struct err_detail *detail) {
    if (follow->segment == NULL && take_recent(follow, ret_entry)) {
        return ERR_OK;
    }
    while (true) {
        enum err err = follow->segment == NULL ? open_segment(follow, detail) : ERR_OK;
        if (err != ERR_OK) {
            return err;
        }
        bool found = false;
        bool goes_on = true;
        err = read_record(follow, ret_entry, &found, detail);
        if (err == ERR_OK && found) {
            return ERR_OK;
        }
        if (segment_is_damage(err)) {
            err = volume_pass_damage(&follow->reader.warc, &goes_on, detail);
        } else if (err == ERR_OK) {
            goes_on = false;
        }
        if (err != ERR_OK) {
            return err;
        }
        if (!goes_on) {
            close_segment(follow);
        }
    }
}

enum err follow_left(struct volume *volume, const struct index_position *position, uint64_t *ret_left_size,
                     uint64_t *ret_all_size) {
    struct index_position end;
    enum err err = index_position(volume->index, &end);
    uint64_t left_size = 0;
    uint64_t all_size = 0;
    pthread_rwlock_rdlock(&volume->segments_lock);
    for (size_t i = 0; err == ERR_OK && i < volume->segments_count; i++) {
        const struct segment *segment = volume->segments[i];
        uint64_t size = 0;
        err = follow_readable_size(segment, &end, &size);
        uint64_t from = segment->number == position->segment ? position->offset : 0;
        all_size += size;
        left_size += segment->number >= position->segment && from < size ? size - from : 0;
    }
    pthread_rwlock_unlock(&volume->segments_lock);
    if (err == ERR_OK) {
        *ret_left_size = left_size;
        *ret_all_size = all_size;
    }
    return err;
}
