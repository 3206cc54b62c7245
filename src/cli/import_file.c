#include <string.h>

#include "cli/import.h"

enum { DATE_SIZE_SHOWN = 40 };

/* ---- records in memory ---- */

/* Copy the header: what the reader gives is gone with its next record, and ARC has fields but no text. */
static enum err copy_header(struct import_record *to, const struct warc_record *from,
                            struct err_detail *detail) {
    buf_clear(&to->text);
    buf_put_string(&to->text, "WARC/1.1\r\n");
    for (size_t i = 0; i < from->fields.count; i++) {
        buf_put(&to->text, from->fields.items[i].name);
        buf_put_string(&to->text, ": ");
        buf_put(&to->text, from->fields.items[i].value);
        buf_put_string(&to->text, "\r\n");
    }
    enum err err = buf_put_string(&to->text, "\r\n");
    return err == ERR_OK ? warc_record_parse(&to->header, to->text.data, to->text.size, detail) : err;
}

/* Read the record that the reader is at. Damage in it comes back as an error. */
static enum err take_record(struct import_job *job, struct import_record *to, struct err_detail *detail) {
    const struct warc_record *from = &job->warc.record;
    scratch_clear(&to->block);
    enum err err = copy_header(to, from, detail);
    struct bytes piece = {NULL, 0};
    do {
        if (err == ERR_OK) {
            err = warc_reader_read(&job->warc, &piece, detail);
        }
        if (err == ERR_OK && (err = scratch_put(&to->block, piece)) != ERR_OK) {
            err_set_at(detail, err, (size_t)from->offset, "scratch file: %s", err_text(err));
            import_stop(job->import, err); /* not the file is damaged, the disk is full */
        }
    } while (err == ERR_OK && piece.size > 0);
    if (err != ERR_OK) {
        return err;
    }
    to->is_there = true;
    to->number = job->records_count;
    to->offset = from->offset;
    return ERR_OK;
}

/* ---- requests ---- */

/* Does one of them name the other, or were both made of one URL at one time? */
static bool belong_together(const struct warc_record *capture, const struct warc_record *request) {
    struct bytes capture_id = fields_get(&capture->fields, BYTES("WARC-Record-ID"));
    struct bytes request_id = fields_get(&request->fields, BYTES("WARC-Record-ID"));
    const struct field *field = NULL;
    bool names_any = false;
    while ((field = fields_find(&request->fields, BYTES("WARC-Concurrent-To"), field)) != NULL) {
        names_any = true;
        if (bytes_equal(field->value, capture_id)) {
            return true;
        }
    }
    while ((field = fields_find(&capture->fields, BYTES("WARC-Concurrent-To"), field)) != NULL) {
        names_any = true;
        if (bytes_equal(field->value, request_id)) {
            return true;
        }
    }
    return !names_any && capture->has_date && request->has_date && capture->date_us == request->date_us &&
           bytes_equal(capture->target_uri, request->target_uri);
}

/* Once: the second pass comes by again. */
static void skip(struct import_job *job, enum warc_type type) {
    if (!job->is_second_pass) {
        import_count(job, &job->import->tally.skipped_counts[type]);
    }
}

static void drop_request(struct import_job *job) {
    if (job->request.is_there && !job->is_request_attached) {
        skip(job, WARC_TYPE_REQUEST);
    }
    job->request.is_there = false;
    job->is_request_attached = false;
}

static void attach_if_together(struct import_job *job) {
    if (job->capture.is_there && job->request.is_there && !job->is_request_attached) {
        job->is_request_attached = belong_together(&job->capture.header, &job->request.header);
    }
}

/* The capture has seen its neighbours: it can be stored. */
static void flush_capture(struct import_job *job) {
    if (!job->capture.is_there) {
        return;
    }
    if (job->is_second_pass) {
        import_store(job);
    } else {
        import_dispatch(job);
    }
    job->capture.is_there = false;
    if (job->is_request_attached) {
        drop_request(job);
    }
}

/* A request is held until the capture beside it is known: before it as wget writes, behind it as others do.
 */
static enum err take_request(struct import_job *job, struct err_detail *detail) {
    if (job->is_request_attached) {
        flush_capture(job); /* which has its request; this one is the next capture's */
    }
    drop_request(job);
    if (job->warc.record.content_length > IMPORT_REQUEST_SIZE_MAX) {
        skip(job, WARC_TYPE_REQUEST);
        return ERR_OK;
    }
    enum err err = take_record(job, &job->request, detail);
    attach_if_together(job);
    return err;
}

/* ---- captures ---- */

static bool is_storable(struct import_job *job) {
    const struct warc_record *record = &job->warc.record;
    struct bytes date = fields_get(&record->fields, BYTES("WARC-Date"));
    const char *reason = record->target_uri.size == 0                        ? "it has no WARC-Target-URI"
                         : date.size == 0                                    ? "it has no WARC-Date"
                         : !record->has_date                                 ? "its WARC-Date is no date"
                         : record->content_length > VOLUME_DOCUMENT_SIZE_MAX ? "it is too large to be stored"
                                                                             : NULL;
    if (reason == NULL) {
        return true;
    }
    date.size = record->has_date ? 0 : date.size < DATE_SIZE_SHOWN ? date.size : DATE_SIZE_SHOWN;
    import_count(job, &job->import->tally.refused_count);
    import_report(job, record->offset, "this %s is not imported: %s%s%.*s", warc_type_name(record->type),
                  reason, date.size > 0 ? ": " : "", BYTES_ARG(date));
    return false;
}

static enum err take_capture(struct import_job *job, struct err_detail *detail) {
    flush_capture(job);
    if (!is_storable(job)) {
        return ERR_OK;
    }
    enum err err = take_record(job, &job->capture, detail);
    if (err != ERR_OK) {
        return err;
    }
    attach_if_together(job);
    if (!job->is_request_attached) {
        drop_request(job);
    }
    return ERR_OK;
}

/* ---- files ---- */

/* In the second pass only the revisits that the first could not place are looked at. */
static bool is_deferred(struct import_job *job) {
    const struct buf *deferred = &job->file->deferred;
    uint64_t number;
    if (job->deferred_next * sizeof number >= deferred->size) {
        return false;
    }
    memcpy(&number, deferred->data + job->deferred_next * sizeof number, sizeof number);
    if (number != job->records_count) {
        return false;
    }
    job->deferred_next++;
    return true;
}

static enum err look_at_record(struct import_job *job, struct err_detail *detail) {
    enum warc_type type = job->warc.record.type;
    bool is_capture = type == WARC_TYPE_RESPONSE || type == WARC_TYPE_RESOURCE || type == WARC_TYPE_REVISIT;
    if (job->is_second_pass && type != WARC_TYPE_REQUEST && !is_deferred(job)) {
        if (is_capture) {
            flush_capture(job);
        }
        return ERR_OK;
    }
    if (is_capture) {
        return take_capture(job, detail);
    }
    if (type == WARC_TYPE_REQUEST) {
        return take_request(job, detail);
    }
    skip(job, type);
    return ERR_OK;
}

static void file_show_progress(struct import_job *job) {
    struct import *import = job->import;
    if (job->is_second_pass) {
        return;
    }
    uint64_t size = unpack_stored_end(&job->warc.unpack);
    pthread_mutex_lock(&import->lock);
    import->progress.done_count++;
    import->progress.bytes_count += size - job->counted_size;
    progress_update(&import->progress, NULL);
    pthread_mutex_unlock(&import->lock);
    job->counted_size = size;
}

/* Name the damage and go on behind it. False if there is nothing behind it, or the file cannot be read. */
static bool pass_damage(struct import_job *job, enum err err, struct err_detail *detail) {
    bool can_go_on = err != ERR_IO && err != ERR_MEMORY && err != ERR_FILES && err != ERR_SYSTEM;
    if (!job->is_second_pass) {
        import_count(job, &job->import->tally.damaged_count);
        import_report(job, detail->offset, "%s", err_detail_text(detail, err));
    }
    bool found = false;
    return can_go_on && warc_reader_recover(&job->warc, &found, detail) == ERR_OK && found;
}

static void read_records(struct import_job *job) {
    while (!import_is_stopped(job->import)) {
        struct err_detail detail = {0};
        bool found = false;
        enum err err = warc_reader_next(&job->warc, &found, &detail);
        if (err == ERR_OK && !found) {
            break;
        }
        if (err == ERR_OK) {
            err = look_at_record(job, &detail);
            job->records_count++;
        }
        if (err != ERR_OK && !pass_damage(job, err, &detail)) {
            break;
        }
        file_show_progress(job);
    }
    flush_capture(job);
    drop_request(job);
}

void import_read_file(struct import_job *job) {
    struct import_source source;
    if (!import_source_open(job, &source)) {
        return;
    }
    job->records_count = 0;
    job->counted_size = 0;
    job->deferred_next = 0;
    if (source.records != NULL) {
        warc_reader_open(&job->warc, source.records);
        read_records(job);
    }
    import_source_close(&source);
}
