#include <stdio.h>

#include "store/volume/volume_record.h"
#include "store/volume/volume_state.h"

/* One segment that is being read again. */
struct recovery {
    struct volume *volume;
    struct volume_recovery *report;
    struct volume_scan *scan;
    struct segment *segment;
    struct segment_reader reader;
    uint64_t good_end;      /* up to here everything is a record or known damage */
    uint64_t from;          /* where reading this segment began */
    uint64_t done_size;     /* of the segments before it */
    uint64_t all_size;      /* to be read */
    uint64_t unpacked_size; /* of the documents of this segment; of a mirrored volume only */
    bool is_refused;        /* the whole mirrored volume is, not only a record */
};

enum { UNPACKED_RATIO_MAX = 1000 };
static const uint64_t UNPACKED_FREE_SIZE = UINT64_C(8) << 30;

static void recover_tell(const struct recovery *recovery) {
    const struct volume_config *config = &recovery->volume->config;
    if (config->progress != NULL) {
        uint64_t done_size = recovery->done_size + recovery->good_end - recovery->from;
        config->progress(config->progress_context, recovery->report->records_count, done_size,
                         recovery->all_size);
    }
}

static enum err recover_commit_up_to(struct recovery *recovery, uint64_t offset, struct err_detail *detail) {
    struct index_position position = {.segment = recovery->segment->number, .offset = offset};
    return ledger_commit(&recovery->volume->ledger, &position, detail);
}

/*
 * A mirrored volume unpacks to a thousand times its size at most, and some: archives do not, what is meant to
 * keep others busy does.
 */
static enum err recover_check_unpacked(struct recovery *recovery, const struct ledger_entry *entry,
                                       struct err_detail *detail) {
    uint64_t read_size = entry->location.offset + entry->location.length - recovery->from;
    recovery->unpacked_size += entry->size;
    if (recovery->unpacked_size / UNPACKED_RATIO_MAX > read_size + UNPACKED_FREE_SIZE / UNPACKED_RATIO_MAX) {
        recovery->is_refused = true;
        return err_set(detail, ERR_LIMIT, "segment %u unpacks to more than %d times its size",
                       recovery->segment->number, UNPACKED_RATIO_MAX);
    }
    return ERR_OK;
}

static enum err recover_enter_record(struct recovery *recovery, struct err_detail *detail) {
    struct ledger_entry entry;
    enum err err =
        volume_scan_record(recovery->scan, &recovery->reader.warc, recovery->segment->number, &entry, detail);
    if (err == ERR_OK && recovery->volume->config.is_mirrored) {
        err = recover_check_unpacked(recovery, &entry, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    if (entry.kind == LEDGER_REMOVAL || entry.mends.segment != 0) { /* they look into the index */
        err = recover_commit_up_to(recovery, recovery->good_end, detail);
    }
    if (err == ERR_OK) {
        err = ledger_apply(&recovery->volume->ledger, &entry);
    }
    if (err != ERR_OK) {
        return err;
    }
    recovery->good_end = entry.location.offset + entry.location.length;
    recovery->report->records_count += entry.kind != LEDGER_OTHER;
    recover_tell(recovery);
    return ledger_is_full(&recovery->volume->ledger)
               ? recover_commit_up_to(recovery, recovery->good_end, detail)
               : ERR_OK;
}

void volume_note_damage(struct volume_recovery *recovery, enum err err, const struct err_detail *detail) {
    if (recovery->damaged_count++ == 0) {
        snprintf(recovery->damage, sizeof recovery->damage, "%s", err_detail_text(detail, err));
    }
}

enum err volume_pass_damage(struct warc_reader *reader, bool *ret_goes_on, struct err_detail *detail) {
    if (reader->state != WARC_READER_DAMAGED) {
        *ret_goes_on = true;
        return ERR_OK;
    }
    return warc_reader_recover(reader, ret_goes_on, detail);
}

/*
 * Go on at the next record behind the damage. If there is none, the rest was being written when the
 * machine stopped, nobody was told that it is durable, and it is cut off. If there is one, the damage lies
 * between durable records and must stay where it is: `verify` names it.
 */
static enum err recover_pass_damage(struct recovery *recovery, bool *ret_goes_on, struct err_detail *detail) {
    enum err err = warc_reader_recover(&recovery->reader.warc, ret_goes_on, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (*ret_goes_on) {
        recovery->report->damaged_count++;
        return ERR_OK;
    }
    struct segment *segment = recovery->segment;
    err = vfs_truncate(&segment->file, recovery->good_end);
    if (err == ERR_OK) {
        err = vfs_sync(&segment->file);
    }
    if (err != ERR_OK) {
        return err_set(detail, err, "segment %u cannot be cut: %s", segment->number, err_text(err));
    }
    recovery->report->cut_size += segment->size - recovery->good_end;
    segment->size = recovery->good_end;
    return ERR_OK;
}

/*
 * The same for a mirrored volume. A torn record at its end stays as well: a later version may have the rest
 * of it, and then reading goes on there. What no mnemon writes is a reason to refuse all of it.
 */
static enum err recover_pass_refused(struct recovery *recovery, enum err err, bool *ret_goes_on,
                                     struct err_detail *detail) {
    struct segment *segment = recovery->segment;
    struct err_detail reason = detail != NULL ? *detail : (struct err_detail){0};
    bool is_absurd = err == ERR_LIMIT && recovery->reader.warc.state != WARC_READER_DAMAGED;
    if (is_absurd || recovery->is_refused) {
        return err;
    }
    enum err passed = volume_pass_damage(&recovery->reader.warc, ret_goes_on, detail);
    if (passed != ERR_OK) {
        return passed;
    }
    bool is_torn = err == ERR_TRUNCATED && !*ret_goes_on;
    if (!is_torn) {
        volume_note_damage(recovery->report, err, &reason);
    }
    if (!*ret_goes_on) {
        recovery->report->cut_size += segment->size - recovery->good_end;
        segment->size = recovery->good_end;
    }
    return ERR_OK;
}

static bool recover_is_cancelled(const struct recovery *recovery) {
    const atomic_bool *flag = recovery->volume->config.is_cancelled;
    return flag != NULL && atomic_load_explicit(flag, memory_order_relaxed);
}

static enum err recover_read_records(struct recovery *recovery, struct err_detail *detail) {
    bool is_mirrored = recovery->volume->config.is_mirrored;
    bool goes_on = true;
    while (goes_on) {
        bool found = false;
        if (recover_is_cancelled(recovery)) {
            return ERR_CANCELLED;
        }
        enum err err = warc_reader_next(&recovery->reader.warc, &found, detail);
        if (err == ERR_OK && !found) {
            return ERR_OK;
        }
        if (err == ERR_OK) {
            err = recover_enter_record(recovery, detail);
        }
        if (segment_is_damage(err)) {
            err = is_mirrored ? recover_pass_refused(recovery, err, &goes_on, detail)
                              : recover_pass_damage(recovery, &goes_on, detail);
        }
        if (err != ERR_OK) {
            return err;
        }
    }
    return ERR_OK;
}

static enum err recover_segment(struct recovery *recovery, uint64_t from, struct err_detail *detail) {
    struct segment *segment = recovery->segment;
    if (from > segment->size) {
        /* The index has run ahead, or somebody cut the file: the index is not to be believed. */
        return err_set(detail, ERR_MISMATCH, "segment %u is shorter than its index", segment->number);
    }
    enum err err = segment_reader_open(&recovery->reader, segment, from, segment->size, detail);
    if (err != ERR_OK) {
        return err;
    }
    recovery->good_end = from;
    recovery->from = from;
    recovery->unpacked_size = 0;
    err = recover_read_records(recovery, detail);
    segment_reader_done(&recovery->reader);
    recovery->done_size += segment->size - from;
    return err == ERR_OK ? recover_commit_up_to(recovery, segment->size, detail) : err;
}

/* The size of the segments that the index has not seen, or not wholly. */
static uint64_t recover_missed_size(const struct volume *volume, const struct index_position *position) {
    uint64_t size = 0;
    for (size_t i = 0; i < volume->segments_count; i++) {
        const struct segment *segment = volume->segments[i];
        uint64_t from = segment->number == position->segment ? position->offset : 0;
        size += segment->number >= position->segment && from < segment->size ? segment->size - from : 0;
    }
    return size;
}

enum err volume_leave_missed(struct volume *volume, uint64_t *ret_size) {
    struct index_position position;
    enum err err = index_position(volume->index, &position);
    if (err != ERR_OK) {
        return err;
    }
    *ret_size = recover_missed_size(volume, &position);
    while (volume->segments_count > 0 &&
           volume->segments[volume->segments_count - 1]->number > position.segment) {
        volume_remove_segment(volume, volume->segments[volume->segments_count - 1]);
    }
    struct segment *last = volume->segments_count > 0 ? volume->segments[volume->segments_count - 1] : NULL;
    if (last != NULL && last->number == position.segment && last->size > position.offset) {
        last->size = position.offset;
    }
    return ERR_OK;
}

enum err volume_recover(struct volume *volume, struct volume_recovery *report, struct err_detail *detail) {
    struct index_position position;
    enum err err = index_position(volume->index, &position);
    if (err != ERR_OK) {
        return err;
    }
    struct volume_scan scan;
    err = volume_scan_init(&scan, volume);
    struct recovery recovery = {.volume = volume,
                                .report = report,
                                .scan = &scan,
                                .all_size = recover_missed_size(volume, &position)};
    for (size_t i = 0; i < volume->segments_count && err == ERR_OK; i++) {
        recovery.segment = volume->segments[i];
        if (recovery.segment->number < position.segment) {
            continue;
        }
        uint64_t from = recovery.segment->number == position.segment ? position.offset : 0;
        err = recover_segment(&recovery, from, detail);
    }
    volume_scan_done(&scan);
    ledger_abort(&volume->ledger);
    return err;
}
