/* A record of another node's capture: fetched from a holder, from the crowd, or from what was kept of it. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "node/crowd/offers.h"
#include "node/reading/ring_reader_state.h"
#include "store/volume/volume_record.h"

enum { SOURCE_SIZE_MAX = ADDRESS_TEXT_SIZE_MAX + 8 };
static const uint64_t JUST_US = 1500000;

/* ---- records, made of what came ---- */

/* Into session->record, in the form that a volume would give it. */
static enum err write_record(struct ring_reader_session *session, const struct captured *captured,
                             const char *source, bool is_revisit, struct err_detail *detail) {
    const struct document *document = &captured->document;
    bool is_http = document->head.size > 0;
    struct field fields[5] = {{BYTES(VOLUME_SOURCE_FIELD), bytes_of_string(source)}};
    size_t fields_count = 1;
    struct warc_written written;
    if (document->tls.size > 0) {
        fields[fields_count++] = (struct field){BYTES(VOLUME_TLS_FIELD), document->tls};
    }
    if (document->signature.size > 0) {
        fields[fields_count++] = (struct field){BYTES(VOLUME_SIGNATURE_FIELD), document->signature};
    }
    if (document->imported.size > 0) {
        fields[fields_count++] = (struct field){BYTES(VOLUME_IMPORTED_FIELD), document->imported};
    }
    if (document->visit.size > 0) {
        fields[fields_count++] = (struct field){BYTES(VOLUME_VISIT_FIELD), document->visit};
    }
    struct warc_draft draft = {
        .type = is_revisit ? WARC_TYPE_REVISIT
                : is_http  ? WARC_TYPE_RESPONSE
                           : WARC_TYPE_RESOURCE,
        .date_us = document->time_us,
        .target_uri = document->url,
        .content_type = is_http                            ? bytes_of(NULL, 0)
                        : document->content_type.size == 0 ? BYTES("application/octet-stream")
                                                           : document->content_type,
        .ip_address = document->ip_address,
        .truncated = document->truncated,
        .payload_sha256 = captured->sum.digest,
        .fields = fields,
        .fields_count = fields_count,
        .head = document->head,
        .is_block_digest_optional = true,
    };
    if (is_revisit) {
        draft.revisit =
            document->is_not_modified ? WARC_REVISIT_NOT_MODIFIED : WARC_REVISIT_IDENTICAL_PAYLOAD;
        draft.refers_to_target_uri = document->url; /* of what, its holder knows */
        draft.refers_to_date_us = document->time_us;
    } else {
        draft.body = document->body;
    }
    scratch_clear(&session->record);
    warc_writer_resume(&session->writer, 0);
    return warc_writer_put(&session->writer, &draft, &written, detail);
}

/* Where in the record the payload lies: its end is the block's, two line ends and a last chunk before its. */
static void find_payload(struct ring_reader_session *session, const struct captured *captured) {
    struct ring_reader_parcel *parcel = &session->parcel;
    size_t block_end = (size_t)session->record.size - 4;
    size_t start = (size_t)(captured->payload.data - captured->document.body.data);
    parcel->payload_size = captured->payload.size;
    parcel->payload_start =
        captured->payload.size == 0 ? 0 : block_end - captured->document.body.size + start;
}

/* ---- from its holders ---- */

/* One question to the holders, in a thread of its own, which counts until this is released. */
struct errand {
    struct ring_reader *backend;
    struct captures_session *captures;
    struct peer peers[RING_READER_HOLDERS_MAX];
    size_t count;
    struct ringkey key;
    struct buf surt;
    bool with_payload;
    struct captured captured;
    enum err err;
    struct err_detail detail;
};

static void errand_release(void *context) {
    struct errand *errand = context;
    struct ring_reader *backend = errand->backend;
    captures_session_free(errand->captures);
    buf_done(&errand->surt);
    free(errand);
    ring_reader_leave_aside(backend); /* from here on the backend may be gone */
}

static void errand_run(void *context) {
    struct errand *errand = context;
    errand->err =
        captures_fetch_at(errand->captures, errand->peers, errand->count, &errand->key,
                          buf_bytes(&errand->surt), errand->with_payload, &errand->captured, &errand->detail);
}

/* It takes the session's fetches along, and the seat that was entered aside. NULL: out of memory. */
static struct errand *errand_new(struct ring_reader_session *session, const struct peer *peers, size_t count,
                                 const struct ringkey *key, bool with_payload) {
    struct errand *errand = calloc(1, sizeof *errand);
    if (errand == NULL) {
        ring_reader_leave_aside(session->backend);
        return NULL;
    }
    *errand = (struct errand){
        .backend = session->backend,
        .captures = session->captures,
        .count = count,
        .key = *key,
        .with_payload = with_payload,
        .err = ERR_UNREACHABLE,
    };
    session->captures = NULL;
    memcpy(errand->peers, peers, count * sizeof *peers);
    buf_init(&errand->surt, INDEX_SURT_SIZE_MAX);
    if (buf_put(&errand->surt, buf_bytes(&session->surt)) != ERR_OK) {
        errand_release(errand);
        return NULL;
    }
    return errand;
}

/* It is back: what it brought is in the hands of the session's fetches. */
static enum err errand_take(struct ring_reader_session *session, struct errand *errand,
                            struct captured *ret_captured, struct err_detail *detail) {
    session->captures = errand->captures;
    errand->captures = NULL;
    if (errand->err != ERR_OK) {
        return err_set(detail, errand->err, "%s", err_detail_text(&errand->detail, errand->err));
    }
    *ret_captured = errand->captured;
    ret_captured->document.sum = &ret_captured->sum;
    return ERR_OK;
}

/* ---- from whoever has it ---- */

/* What is asked for, and the nodes that may have it. */
struct wanted {
    const struct ring_reader_capture *capture;
    bool with_payload;
    struct peer peers[RING_READER_HOLDERS_MAX]; /* the node that listed it, its holders; the busy ones last */
    size_t count;
    size_t ready_count;
    char source[SOURCE_SIZE_MAX];
};

static void set_source(struct wanted *wanted, const char *kind, const struct peer *from) {
    char text[ADDRESS_TEXT_SIZE_MAX];
    snprintf(wanted->source, sizeof wanted->source, "%s %s", kind, address_format(&from->address, text));
}

static enum err ask_holders(struct ring_reader_session *session, struct wanted *wanted, size_t first,
                            size_t count, struct captured *ret_captured, struct err_detail *detail) {
    if (count == 0) {
        return err_set(detail, ERR_BUSY, "its holders are busy");
    }
    enum err err = captures_fetch_at(session->captures, wanted->peers + first, count, &wanted->capture->key,
                                     buf_bytes(&session->surt), wanted->with_payload, ret_captured, detail);
    if (err == ERR_OK) {
        set_source(wanted, "ring", &ret_captured->from);
    }
    return err;
}

static enum err ask_crowd(struct ring_reader_session *session, struct wanted *wanted,
                          struct captured *ret_captured, struct err_detail *detail) {
    enum err err = ring_reader_crowd_fetch(session, wanted->capture, ret_captured, detail);
    if (err == ERR_OK) {
        set_source(wanted, "crowd", &ret_captured->from);
    }
    return err;
}

/* The holders that are not busy; when they take long, the crowd beside them. */
static enum err ask_both(struct ring_reader_session *session, struct wanted *wanted,
                         struct captured *ret_captured, struct err_detail *detail) {
    struct ring_reader *backend = session->backend;
    if (wanted->ready_count == 0 || !ring_reader_enter_aside(backend)) {
        return ask_crowd(session, wanted, ret_captured, detail);
    }
    struct errand *errand =
        errand_new(session, wanted->peers, wanted->ready_count, &wanted->capture->key, wanted->with_payload);
    struct ring_reader_aside *aside =
        errand != NULL ? ring_reader_aside_start(&backend->asides, errand_run, errand_release, errand) : NULL;
    if (aside == NULL) {
        if (errand != NULL) {
            errand_release(errand);
        }
        return ERR_MEMORY;
    }
    enum err err = ERR_TIMEOUT;
    uint64_t patience_us = ring_reader_patience_us(backend, wanted->peers, wanted->ready_count);
    bool is_back = ring_reader_aside_wait(aside, patience_us);
    if (!is_back || errand->err != ERR_OK) {
        err = ask_crowd(session, wanted, ret_captured, detail);
    }
    if (err != ERR_OK && ring_reader_aside_wait(aside, UINT64_MAX)) {
        err = errand_take(session, errand, ret_captured, detail);
        if (err == ERR_OK) {
            set_source(wanted, "ring", &ret_captured->from);
        }
    }
    ring_reader_aside_leave(aside);
    return err;
}

static enum err need_captures(struct ring_reader_session *session) {
    if (session->captures == NULL) {
        session->captures = captures_session_new(session->backend->config.captures);
    }
    return session->captures == NULL ? ERR_MEMORY : ERR_OK;
}

/* A busy holder is asked last, if no other has it. */
static enum err ask_others(struct ring_reader_session *session, struct wanted *wanted,
                           struct captured *ret_captured, struct err_detail *detail) {
    struct ring_reader *backend = session->backend;
    const struct ring_reader_capture *capture = wanted->capture;
    const struct peer *lister = capture->listed_at_us > 0 ? &capture->from : NULL;
    enum err err = ring_reader_holders(backend, capture->key.bytes, lister, wanted->peers, &wanted->count);
    if (err != ERR_OK) {
        return err;
    }
    /* A node that has just listed it gives it, too (peer_rpc_begin_read()). */
    bool is_just_listed = clock_monotonic_us(&clock_system) < capture->listed_at_us + JUST_US;
    wanted->ready_count =
        ring_reader_put_busy_last(backend, wanted->peers, wanted->count, is_just_listed ? lister : NULL);
    if (!ring_reader_has_crowd(backend)) {
        return ask_holders(session, wanted, 0, wanted->ready_count, ret_captured, detail);
    }
    err = ask_both(session, wanted, ret_captured, detail);
    size_t busy_count = wanted->count - wanted->ready_count;
    if (err != ERR_OK && busy_count > 0) {
        err = need_captures(session);
        err = err == ERR_OK
                  ? ask_holders(session, wanted, wanted->ready_count, busy_count, ret_captured, detail)
                  : err;
    }
    return err;
}

/* What this node has read before it hands on; then it can read it again itself. */
static enum err ask_offers(struct ring_reader_session *session, struct wanted *wanted,
                           struct captured *ret_captured) {
    struct offers *offers = session->backend->config.offers;
    if (offers == NULL) {
        return ERR_NOT_FOUND;
    }
    const struct ring_reader_capture *capture = wanted->capture;
    if (capture->listed_at_us == 0 && capture->from.address.port > 0) { /* somebody of the crowd gave it */
        set_source(wanted, "crowd", &capture->from);
    } else {
        snprintf(wanted->source, sizeof wanted->source, "crowd this-node");
    }
    return offers_get(offers, session->captures, &capture->key, ret_captured, NULL);
}

/* It was checked, and a person here wanted it. */
static void record_offer(struct ring_reader_session *session, const struct wanted *wanted,
                         const struct captured *captured) {
    struct offers *offers = session->backend->config.offers;
    struct bytes title = bytes_of(NULL, 0);
    if (offers == NULL) {
        return;
    }
    if (!session->has_title) {
        session->has_title = offers_title_init(&session->title) == ERR_OK;
    }
    if (session->has_title) {
        title = offers_title_find(&session->title, &captured->document, captured->payload);
    }
    offers_put(offers, &wanted->capture->key, captured, buf_bytes(&session->surt), title);
}

static enum err ask_anybody(struct ring_reader_session *session, struct wanted *wanted,
                            struct captured *ret_captured, struct err_detail *detail) {
    enum err err = need_captures(session);
    if (err == ERR_OK) {
        err = ask_offers(session, wanted, ret_captured);
        err = err == ERR_OK ? err : ask_others(session, wanted, ret_captured, detail);
    }
    bool is_of_ring = strncmp(wanted->source, "ring", 4) == 0;
    if (err == ERR_OK && is_of_ring && !ret_captured->document.is_body_left_out) {
        record_offer(session, wanted, ret_captured);
    }
    return err;
}

/* It was listed, and nobody gave it: whoever looks again finds another, from somebody else. */
static void doubt(struct ring_reader_session *session, const struct ring_reader_capture *capture) {
    struct ring_reader *backend = session->backend;
    uint8_t hash[SHA256_SIZE];
    bool is_listed = capture->listed_at_us > 0;
    sha256_digest(&session->sha256, buf_bytes(&session->surt), hash);
    ring_reader_doubts_add(&backend->doubts, capture->number, is_listed ? &capture->from : NULL,
                           clock_monotonic_us(&clock_system));
    ring_reader_listed_pass_over(&backend->listed, capture->number);
    ring_reader_cache_forget(&backend->listings, hash);
}

/* ---- */

enum err ring_reader_fetch(struct ring_reader_session *session, const struct ring_reader_capture *capture,
                           bool is_whole, struct err_detail *detail) {
    struct captured captured;
    bool is_revisit = !is_whole && capture->flags & CAPTURE_REVISIT;
    struct wanted wanted = {.capture = capture, .with_payload = !is_revisit};
    enum err err = ring_reader_enter(session->backend);
    if (err != ERR_OK) {
        return err_set(detail, err, "too many wait for other nodes already");
    }
    err = ask_anybody(session, &wanted, &captured, detail);
    ring_reader_leave(session->backend);
    if (err == ERR_MISMATCH || err == ERR_NOT_FOUND) {
        doubt(session, capture);
    }
    if (err == ERR_MISMATCH) {
        return ERR_CORRUPT; /* the words are there already */
    }
    if (err == ERR_OK && !is_revisit && captured.document.is_body_left_out) {
        return err_set(detail, ERR_NOT_FOUND, "a capture that was not modified has no document of its own");
    }
    if (err == ERR_OK) {
        err = write_record(session, &captured, wanted.source, is_revisit, detail);
    }
    buf_clear(&session->request);
    if (err == ERR_OK) {
        err = buf_put(&session->request, captured.document.request);
    }
    if (err != ERR_OK) {
        return err;
    }
    session->parcel = (struct ring_reader_parcel){.number = capture->number, .is_whole = is_whole};
    if (!is_revisit) {
        find_payload(session, &captured);
    }
    return ERR_OK;
}
