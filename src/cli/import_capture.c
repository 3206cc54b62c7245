#include <stdlib.h>
#include <string.h>

#include "cli/import.h"
#include "store/instance/merge.h"
#include "store/volume/volume_record.h"
#include "warc/request_key.h"
#include "web/url/surt.h"

/* The URL by which it is found, into job->url, and its SURT. */
static enum err make_key(struct import_job *job, const struct document *document, struct err_detail *detail) {
    buf_clear(&job->url);
    enum err err = request_key_put_url(&job->url, document->url, document->request);
    return err == ERR_OK ? import_make_surt(job, buf_bytes(&job->url), detail) : err;
}

enum err import_make_surt(struct import_job *job, struct bytes url, struct err_detail *detail) {
    buf_clear(&job->surt);
    enum err err = canon_run(&job->canon, url, detail);
    return err == ERR_OK ? surt_put(&job->surt, &job->canon) : err;
}

/* ---- payloads on their way ---- */

/* With the lock. */
static void await_locked(struct import *import, struct bytes digest) {
    while (map_get(&import->busy, digest) != NULL) {
        (void)bell_await(&import->has_left, &import->lock, BELL_NEVER_US);
    }
}

void import_await(struct import *import, const uint8_t digest[KEY_DIGEST_SIZE]) {
    pthread_mutex_lock(&import->lock);
    await_locked(import, bytes_of(digest, KEY_DIGEST_SIZE));
    pthread_mutex_unlock(&import->lock);
}

/* Wait until no other thread is storing this payload and there is room, then store it. */
static void enter(struct import *import, const uint8_t digest[KEY_DIGEST_SIZE]) {
    struct bytes key = bytes_of(digest, KEY_DIGEST_SIZE);
    pthread_mutex_lock(&import->lock);
    while (map_get(&import->busy, key) != NULL || import->busy.count == IMPORT_BUSY_MAX) {
        (void)bell_await(&import->has_left, &import->lock, BELL_NEVER_US);
    }
    void *place = map_put(&import->busy, key);
    ASSERT(place != NULL); /* import.c has reserved for them all */
    pthread_mutex_unlock(&import->lock);
}

static void leave(struct import *import, const uint8_t digest[KEY_DIGEST_SIZE]) {
    pthread_mutex_lock(&import->lock);
    map_remove(&import->busy, bytes_of(digest, KEY_DIGEST_SIZE));
    bell_ring(&import->has_left);
    pthread_mutex_unlock(&import->lock);
}

/* A capture that was submitted. */
struct pending {
    struct import *import;
    uint8_t digest[KEY_DIGEST_SIZE];
};

/* Called by a volume's thread when the capture is durable, or will never be. */
static void stored(void *context, enum err err, const struct stored *stored) {
    struct pending *pending = context;
    struct import *import = pending->import;
    if (err == ERR_OK) {
        pthread_mutex_lock(&import->lock);
        import->tally.captures_count++;
        import->tally.duplicates_count += stored->is_duplicate ? 1 : 0;
        pthread_mutex_unlock(&import->lock);
    } else {
        import_stop(import, err);
    }
    leave(import, pending->digest);
    free(pending);
}

/* ---- one document ---- */

/* Does the archive hold this very capture? Its SURT is in job->surt, its head in job->hasher. */
static enum err find_present(struct import_job *job, const struct document *document, bool *ret_is_present,
                             struct err_detail *detail) {
    uint16_t status = document->head.size > 0 ? job->hasher.payload.head.status : 0;
    struct merge *merge;
    buf_clear(&job->from);
    buf_clear(&job->to);
    index_put_capture_prefix(&job->from, buf_bytes(&job->surt), document->time_us);
    index_put_capture_prefix(&job->to, buf_bytes(&job->surt), document->time_us + 1);
    enum err err =
        job->from.err != ERR_OK ? job->from.err : job->to.err; /* a bound that is missing is none */
    if (err == ERR_OK) {
        err = merge_open(job->session, buf_bytes(&job->from), buf_bytes(&job->to), false, &merge, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    struct capture capture;
    bool is_present = false;
    while (!is_present && (err = merge_next(merge, &capture, detail)) == ERR_OK) {
        struct key key;
        struct block block;
        is_present = memcmp(capture.digest, document->sum->digest, KEY_DIGEST_SIZE) == 0 &&
                     capture.status == status && bytes_equal(capture.url, buf_bytes(&job->url)) &&
                     instance_locate(job->session, &capture, &key, &block, NULL) == ERR_OK;
    }
    merge_close(merge);
    *ret_is_present = is_present;
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/*
 * This node vouches for having imported it. A signature of the node that fetched it, if the file has one, is
 * kept if it is right: this node would be blamed for handing on a false one.
 */
static enum err capture_sign(struct import_job *job, struct document *document) {
    struct sha256 *sha256 = &job->hasher.sha256;
    uint8_t signer[PEER_KEY_SIZE];
    bool covers_request;
    enum err err = ERR_OK;
    if (document->signature.size > 0) {
        err = attest_verify(sha256, &job->message, document, signer, &covers_request, NULL);
        bool is_kept = err == ERR_OK || err == ERR_UNSUPPORTED; /* a later version is no lie */
        document->signature = is_kept ? document->signature : bytes_of(NULL, 0);
        document->visit = is_kept ? document->visit : bytes_of(NULL, 0);
    }
    if (document->head.size > 0 && job->import->has_identity && err != ERR_MEMORY) {
        err = attest_sign_import(&job->import->identity, sha256, &job->message, document, job->attest);
    }
    return err == ERR_MEMORY ? err : ERR_OK;
}

static enum err submit_new(struct import_job *job, struct document *document, struct err_detail *detail) {
    struct pending *pending = malloc(sizeof *pending);
    if (pending == NULL) {
        return ERR_MEMORY;
    }
    pending->import = job->import;
    memcpy(pending->digest, document->sum->digest, sizeof pending->digest);
    enum err err = capture_sign(job, document);
    if (err == ERR_OK) {
        err = instance_submit(job->session, document, STORE_REGULAR, INSTANCE_VOLUME_ANY, stored, pending,
                              detail);
    }
    if (err != ERR_OK) {
        free(pending);
    }
    return err;
}

/* After enter(): what is on its way is never in two hands. */
static enum err submit(struct import_job *job, struct document *document, struct err_detail *detail) {
    bool is_present = false;
    enum err err = find_present(job, document, &is_present, detail);
    if (err == ERR_OK && !is_present) {
        err = submit_new(job, document, detail);
    }
    if (err != ERR_OK || is_present) {
        leave(job->import, document->sum->digest);
    }
    if (is_present) {
        import_count(job, &job->import->tally.present_count);
    } else if (err == ERR_OK && document->request.size > 0) {
        import_count(job, &job->import->tally.requests_count);
    }
    return err;
}

/* The files of others find a payload by the digest that its own file states. */
static void remember_digest(struct import_job *job, const uint8_t digest[KEY_DIGEST_SIZE]) {
    struct warc_digest stated = {0};
    struct bytes text = fields_get(&job->capture.header.fields, BYTES("WARC-Payload-Digest"));
    bool is_own = job->capture.header.type != WARC_TYPE_REVISIT;
    if (is_own && text.size > 0 && warc_digest_parse(&stated, text, NULL) == ERR_OK) {
        import_remember(job->import, &stated, digest);
    }
}

static void capture_refuse(struct import_job *job, enum err err, const struct err_detail *detail) {
    const struct import_record *capture = &job->capture;
    bool is_own_fault =
        err == ERR_INVALID || err == ERR_LIMIT || err == ERR_UNSUPPORTED || err == ERR_DELETED;
    import_count(job, &job->import->tally.refused_count);
    import_report(job, capture->offset, "%.*s is not imported: %s", BYTES_ARG(capture->header.target_uri),
                  err_detail_text(detail, err));
    if (!is_own_fault) {
        import_stop(job->import, err);
    }
}

static void store_document(struct import_job *job, struct document document) {
    struct err_detail detail = {0};
    struct document_sum sum;
    enum err err = make_key(job, &document, &detail);
    if (err == ERR_OK) {
        document_hasher_run(&job->hasher, &document, &sum);
        document.sum = document.sum == NULL ? &sum : document.sum; /* known of what was not modified */
        remember_digest(job, document.sum->digest);
        enter(job->import, document.sum->digest);
        err = submit(job, &document, &detail);
    }
    if (err != ERR_OK) {
        capture_refuse(job, err, &detail);
    }
}

/* ---- from record to document ---- */

static void fill_document(const struct import_job *job, struct document *document) {
    const struct warc_record *header = &job->capture.header;
    *document = (struct document){
        .url = header->target_uri,
        .time_us = header->date_us,
        .ip_address = fields_get(&header->fields, BYTES("WARC-IP-Address")),
        .tls = fields_get(&header->fields, BYTES(VOLUME_TLS_FIELD)),
        .signature = fields_get(&header->fields, BYTES(VOLUME_SIGNATURE_FIELD)),
        .visit = fields_get(&header->fields, BYTES(VOLUME_VISIT_FIELD)),
        .request = job->is_request_attached ? job->request.bytes : bytes_of(NULL, 0),
    };
}

/* Not every writer says application/http of what is it. */
static bool is_message(const struct warc_record *header, struct bytes block) {
    return warc_record_is_http(header) ||
           (header->type != WARC_TYPE_RESOURCE && bytes_starts_with(block, BYTES("HTTP/")) &&
            bytes_starts_with_ignore_case(header->target_uri, BYTES("http")));
}

static void store_original(struct import_job *job) {
    const struct warc_record *header = &job->capture.header;
    struct bytes block = job->capture.bytes;
    bool is_http = is_message(header, block);
    size_t head_size = is_http ? record_split(&job->payload, block) : 0;
    struct document document;
    fill_document(job, &document);
    document.head = bytes_slice(block, 0, head_size);
    document.body = bytes_skip(block, head_size);
    document.content_type = is_http ? bytes_of(NULL, 0) : header->content_type;
    document.truncated = fields_get(&header->fields, BYTES("WARC-Truncated"));
    store_document(job, document);
}

/*
 * The head is the revisit's own, or that of the original where it has none; the payload is the original's.
 * The volume finds it to be a duplicate and keeps but the head.
 */
static enum err make_revisit(struct import_job *job, const struct key *key, struct document *document,
                             struct err_detail *detail) {
    struct block block;
    struct bytes own = job->capture.bytes;
    size_t head_size = is_message(&job->capture.header, own) ? record_split(&job->payload, own) : 0;
    fill_document(job, document);
    document->head = bytes_slice(own, 0, head_size);
    enum err err = instance_find_block(job->session, key, &block, detail);
    if (err == ERR_OK && head_size > 0 && record_is_not_modified(&job->capture.header)) {
        memcpy(job->sum.digest, key->digest, sizeof job->sum.digest);
        job->sum.size = block.size;
        document->sum = &job->sum;
        document->is_not_modified = document->is_body_left_out = true;
        return ERR_OK;
    }
    if (err == ERR_OK && head_size == 0) {
        err = record_read(&job->record, job->record_session, key->volume, &block.location, detail);
        document->head = job->record.head;
        document->content_type = job->record.header.content_type;
        record_split(&job->payload, document->head);
    }
    struct bytes payload;
    if (err == ERR_OK) {
        err = instance_get(job->session, key, &payload, detail);
    }
    return err == ERR_OK ? record_encode(&job->payload, payload, &job->chunks, &document->body) : err;
}

/* The first time, that it is unresolved is only noted: its original may be in a file that comes later. */
static void defer(struct import_job *job) {
    if (!job->is_second_pass) {
        import_count(job, &job->import->tally.unresolved_count);
    }
    if (!job->is_second_pass && import_can_read_again(job)) {
        uint64_t number = job->capture.number;
        pthread_mutex_lock(&job->import->lock);
        enum err err = buf_put(&job->file->deferred, bytes_of(&number, sizeof number));
        pthread_mutex_unlock(&job->import->lock);
        if (err == ERR_OK) {
            return;
        }
    }
    import_report(job, job->capture.offset, "%.*s is a revisit of a capture that the archive does not hold",
                  BYTES_ARG(job->capture.header.target_uri));
}

static void store_revisit(struct import_job *job) {
    struct err_detail detail = {0};
    struct key key;
    struct document document;
    enum err err = import_resolve(job, &key, &detail);
    if (err == ERR_NOT_FOUND) {
        defer(job);
        return;
    }
    if (err == ERR_OK && job->is_second_pass) {
        pthread_mutex_lock(&job->import->lock);
        job->import->tally.unresolved_count--;
        pthread_mutex_unlock(&job->import->lock);
    }
    if (err == ERR_OK) {
        err = make_revisit(job, &key, &document, &detail);
    }
    if (err != ERR_OK) {
        capture_refuse(job, err, &detail);
        return;
    }
    store_document(job, document);
}

/* Would the other nodes of the ring refuse it? */
static bool capture_is_refused(const struct import_job *job, struct err_detail *detail) {
    const struct import *import = job->import;
    const struct warc_record *header = &job->capture.header;
    enum err err = ERR_OK;
    if (import->is_in_ring && header->date_us > import->latest_us) {
        err = err_set(detail, ERR_INVALID, "its time has not come yet");
    } else if (import->has_scope &&
               pattern_list_find(&import->scope, warc_bare_uri(header->target_uri)) == PATTERN_NONE) {
        err = err_set(detail, ERR_INVALID, "it is outside the scope of the ring");
    }
    return err != ERR_OK;
}

void import_store_capture(struct import_job *job) {
    struct err_detail detail = {0};
    if (capture_is_refused(job, &detail)) {
        capture_refuse(job, ERR_INVALID, &detail);
    } else if (job->capture.header.type == WARC_TYPE_REVISIT) {
        store_revisit(job);
    } else {
        store_original(job);
    }
}
