#include "node/captures/captures.h"

#include <sodium.h>
#include <stdlib.h>

#include "crawl/engine/attest.h"
#include "node/captures/captures_state.h"
#include "store/document/attested.h"
#include "store/instance/merge.h"
#include "store/remote/backend_code.h"
#include "store/volume/volume_record.h"
#include "warc/request_key.h"
#include "web/url/url.h"

/* ---- a capture by its key ---- */

static enum err by_key_walk(struct merge *merge, const struct ringkey *key, struct capture *ret_capture,
                            struct err_detail *detail) {
    enum err err = ERR_OK;
    bool is_it = false;
    while (!is_it && (err = merge_next(merge, ret_capture, detail)) == ERR_OK) {
        is_it = memcmp(ret_capture->digest, ringkey_digest(key), RINGKEY_DIGEST_SIZE) == 0;
    }
    return err == ERR_NOT_FOUND && merge_is_partial(merge) ? err_set(detail, ERR_BUSY, "a volume is down")
                                                           : err;
}

enum err capture_by_key(struct instance_session *session, struct bytes surt, const struct ringkey *key,
                        struct buf *bounds, struct buf *url, struct capture *ret_capture,
                        struct err_detail *detail) {
    struct merge *merge;
    int64_t time_us = ringkey_time_us(key);
    if (time_us == INT64_MAX) {
        return err_set(detail, ERR_NOT_FOUND, "no capture of that key");
    }
    buf_clear(bounds);
    index_put_capture_prefix(bounds, surt, time_us);
    size_t from_size = bounds->size;
    index_put_capture_prefix(bounds, surt, time_us + 1);
    if (bounds->err != ERR_OK) {
        return bounds->err;
    }
    struct bytes both = buf_bytes(bounds);
    enum err err = merge_open(session, bytes_slice(both, 0, from_size), bytes_skip(both, from_size), false,
                              &merge, detail);
    if (err != ERR_OK) {
        return err;
    }
    struct capture capture;
    err = by_key_walk(merge, key, &capture, detail);
    if (err == ERR_OK && url != NULL) {
        buf_clear(url);
        err = buf_put(url, capture.url);
    }
    merge_close(merge); /* and with it the slices of the capture */
    if (err == ERR_OK) {
        capture.surt = surt;
        capture.url = url != NULL ? buf_bytes(url) : bytes_of(NULL, 0);
        capture.mime = bytes_of(NULL, 0);
        *ret_capture = capture;
    }
    return err;
}

/* ---- what the service works with; made with the first question, on the thread of peer_rpc ---- */

static void captures_give_done(struct captures *captures) {
    if (!captures->has_kit) {
        return;
    }
    for (size_t i = 0; i < CAPTURES_GIVERS_COUNT; i++) {
        instance_session_free(captures->givers[i].session);
        captures->givers[i] = (struct captures_giver){0};
    }
    instance_session_free(captures->session);
    record_done(&captures->record);
    sha256_done(&captures->sha256);
    pack_payload_done(&captures->pack_payload);
    buf_done(&captures->surt);
    buf_done(&captures->bounds);
    buf_done(&captures->message);
    buf_done(&captures->description);
    scratch_done(&captures->piece);
    captures->has_kit = false;
}

enum err captures_prepare(struct captures *captures) {
    if (captures->has_kit) {
        return ERR_OK;
    }
    const char *directory = captures->config.scratch_directory;
    buf_init(&captures->surt, URL_SIZE_MAX + 16);
    buf_init(&captures->bounds, BACKEND_CODE_WALK_SIZE_MAX);
    buf_init(&captures->message, ATTEST_MESSAGE_SIZE_MAX);
    buf_init(&captures->description, BACKEND_CODE_META_SIZE_MAX + BACKEND_CODE_META_PREFIX_SIZE);
    scratch_init(&captures->piece, directory, 2 * PEER_RPC_PIECE_SIZE_MAX, 2 * PEER_RPC_PIECE_SIZE_MAX);
    captures->session = instance_session_new(captures->config.instance);
    bool is_ready = captures->session != NULL;
    is_ready = record_init(&captures->record) == ERR_OK && is_ready;
    is_ready = sha256_init(&captures->sha256) == ERR_OK && is_ready;
    if (pack_payload_init(&captures->pack_payload) != ERR_OK) {
        captures->pack_payload = (struct pack_payload){0};
        is_ready = false;
    }
    captures->has_kit = true;
    if (!is_ready) {
        captures_give_done(captures);
        return ERR_MEMORY;
    }
    return ERR_OK;
}

/* Into captures->surt; ERR_NOT_FOUND: the key is of another position than the given SURT. */
static enum err captures_find_surt(struct captures *captures, const struct ringkey *key, struct bytes surt) {
    uint8_t place[RINGKEY_POSITION_SIZE];
    buf_clear(&captures->surt);
    enum err err = ERR_NOT_FOUND;
    if (surt.size > 0) {
        err = buf_put(&captures->surt, surt);
    } else if (captures->config.find_surt != NULL) {
        err = captures->config.find_surt(captures->config.context, key, &captures->surt);
    }
    if (err != ERR_OK) {
        return err;
    }
    position_of_surt(&captures->sha256, buf_bytes(&captures->surt), captures->config.mapping, place);
    return memcmp(place, key->bytes, RINGKEY_POSITION_SIZE) == 0 ? ERR_OK : ERR_NOT_FOUND;
}

/* ---- describing ---- */

static struct bytes field(const struct record *record, struct bytes name) {
    return fields_get(&record->header.fields, name);
}

/* What the record says, as a document without its body. The request is in the other session's hands. */
static struct document read_document(const struct captures *captures, const struct capture *capture,
                                     struct bytes request, const struct document_sum *sum) {
    const struct record *record = &captures->record;
    bool is_revisit = (capture->flags & CAPTURE_REVISIT) != 0;
    bool has_head = record->head.size > 0;
    return (struct document){
        .url = record->header.target_uri,
        .time_us = capture->time_us,
        .head = record->head,
        .content_type = has_head ? bytes_of(NULL, 0) : record->header.content_type,
        .request = request,
        .ip_address = field(record, BYTES("WARC-IP-Address")),
        .tls = field(record, BYTES(VOLUME_TLS_FIELD)),
        /* A head that is too long to be taken apart is part of the payload, and was signed as a head. */
        .signature = has_head ? field(record, BYTES(VOLUME_SIGNATURE_FIELD)) : bytes_of(NULL, 0),
        .imported = has_head ? field(record, BYTES(VOLUME_IMPORTED_FIELD)) : bytes_of(NULL, 0),
        .visit = has_head ? field(record, BYTES(VOLUME_VISIT_FIELD)) : bytes_of(NULL, 0),
        /* Every revisit's record is marked as truncated, for want of a body. */
        .truncated = is_revisit ? bytes_of(NULL, 0) : field(record, BYTES("WARC-Truncated")),
        .sum = sum,
        .is_not_modified = is_revisit && record_is_not_modified(&record->header),
        .is_body_left_out = true,
    };
}

/*
 * The request may be lost: a crash tore its record, or the file that was imported had none. The signatures
 * are false then, through no fault of ours; the rest is given as what nobody vouches for.
 */
static enum err drop_false_signatures(struct captures *captures, struct document *document) {
    uint8_t signer[PEER_KEY_SIZE];
    bool covers_request;
    enum err err = ERR_OK;
    if (document->signature.size > 0 && document->request.size == 0) {
        err = attest_verify(&captures->sha256, &captures->message, document, signer, &covers_request, NULL);
        document->signature = err == ERR_MISMATCH ? bytes_of(NULL, 0) : document->signature;
        err = err == ERR_MISMATCH || err == ERR_UNSUPPORTED ? ERR_OK : err;
    }
    if (err == ERR_OK && document->imported.size > 0 && document->request.size == 0) {
        err = attest_verify_import(&captures->sha256, &captures->message, document, signer, NULL);
        document->imported = err == ERR_MISMATCH ? bytes_of(NULL, 0) : document->imported;
        err = err == ERR_MISMATCH || err == ERR_UNSUPPORTED ? ERR_OK : err;
    }
    return err;
}

/* Programs that do not know that there may be later versions would take us for a liar. */
static void captures_drop_later(const struct captures *captures, const struct peer *to,
                                struct document *document) {
    struct dialects *dialects = captures->config.dialects;
    if (to == NULL || dialects == NULL || dialects_has(dialects, to, DIALECT_KEEPS_LATER)) {
        return;
    }
    document->signature = attested_is_later(document->signature) ? bytes_of(NULL, 0) : document->signature;
    document->imported = attested_is_later(document->imported) ? bytes_of(NULL, 0) : document->imported;
}

/*
 * A capture that mnemon 0.2 or earlier stored is in the index, and in the ring, under its URL alone, whatever
 * its method (cli/store_methods.h). With its request it would be another capture than was asked for, and this
 * node be blamed: it is given without.
 */
static enum err captures_drop_unkeyed(const struct captures *captures, struct bytes *request) {
    struct buf key;
    buf_init(&key, REQUEST_KEY_TEXT_SIZE_MAX);
    enum err err = request_key_put(&key, *request);
    if (err == ERR_OK && key.size > 0 &&
        field(&captures->record, BYTES(VOLUME_REQUEST_KEY_FIELD)).size == 0) {
        *request = bytes_of(NULL, 0);
    }
    buf_done(&key);
    return err;
}

enum err captures_describe(struct captures *captures, const struct peer *to, struct instance_session *session,
                           const struct capture *capture, uint64_t payload_size, struct err_detail *detail) {
    struct document_sum sum = {.size = payload_size};
    struct bytes request;
    memcpy(sum.digest, capture->digest, sizeof sum.digest);
    enum err err =
        record_read(&captures->record, captures->session, capture->volume, &capture->location, detail);
    if (err == ERR_OK) {
        err = instance_get_request(session, capture->volume, &capture->location, &request, detail);
    }
    err = err == ERR_OK ? captures_drop_unkeyed(captures, &request) : err;
    if (err != ERR_OK) {
        return err;
    }
    struct document document = read_document(captures, capture, request, &sum);
    captures_drop_later(captures, to, &document);
    err = drop_false_signatures(captures, &document);
    if (err == ERR_OK) {
        err = backend_code_put_meta(&captures->description, &document, STORE_REGULAR, BACKEND_CODE_LEFT_OUT);
    }
    if (err == ERR_OK && captures->description.size > CAPTURES_CODE_DESCRIPTION_SIZE_MAX) {
        err = err_set(detail, ERR_LIMIT, "its description is too long");
    }
    return err;
}

/* ---- giving ---- */

enum err captures_locate(struct captures *captures, const struct ringkey *key, struct bytes surt,
                         struct capture *ret_capture, struct key *ret_key, struct block *ret_block,
                         struct err_detail *detail) {
    enum err err = captures_find_surt(captures, key, surt);
    if (err == ERR_OK) {
        err = capture_by_key(captures->session, buf_bytes(&captures->surt), key, &captures->bounds, NULL,
                             ret_capture, detail);
    }
    return err == ERR_OK ? instance_locate(captures->session, ret_capture, ret_key, ret_block, detail) : err;
}

/* The one that has it open, or the one that was idle longest. */
static struct captures_giver *choose_giver(struct captures *captures, const struct ringkey *key) {
    struct captures_giver *oldest = &captures->givers[0];
    for (size_t i = 0; i < CAPTURES_GIVERS_COUNT; i++) {
        struct captures_giver *giver = &captures->givers[i];
        if (giver->is_open && ringkey_compare(&giver->key, key) == 0) {
            return giver;
        }
        oldest = giver->used_at < oldest->used_at ? giver : oldest;
    }
    oldest->is_open = false;
    return oldest;
}

/* Whole captures are looked up anew, so that what was removed is not given from memory. */
static enum err open_giver(struct captures *captures, const struct peer *from, struct captures_giver *giver,
                           const struct captures_question *question, uint64_t *ret_size,
                           struct err_detail *detail) {
    bool goes_on = giver->is_open && !question->wants_description && question->offset > 0;
    *ret_size = giver->payload.size;
    if (goes_on) {
        return ERR_OK;
    }
    giver->is_open = false;
    if (giver->session == NULL &&
        (giver->session = instance_session_new(captures->config.instance)) == NULL) {
        return ERR_MEMORY;
    }
    struct capture capture;
    struct block block;
    struct key key;
    enum err err = captures_locate(captures, &question->key, question->surt, &capture, &key, &block, detail);
    if (err == ERR_OK && question->wants_description) {
        err = captures_describe(captures, from, giver->session, &capture, block.size, detail);
    }
    if (err == ERR_OK && question->size_max > 0) {
        err = instance_get(giver->session, &key, &giver->payload, detail);
        giver->is_open = err == ERR_OK;
        giver->key = question->key;
    }
    if (err == ERR_OK) {
        *ret_size = giver->is_open ? giver->payload.size : block.size;
    }
    return err;
}

/* The part that was asked for; with a description in front, as much of it as fits. */
static enum err captures_cut_piece(struct captures *captures, const struct captures_giver *giver,
                                   const struct captures_question *question, struct captures_answer *answer) {
    size_t room = PEER_RPC_PIECE_SIZE_MAX - captures->description.size;
    size_t size = question->size_max < room ? question->size_max : room;
    scratch_clear(&captures->piece);
    if (!giver->is_open || question->offset >= giver->payload.size) {
        return ERR_OK;
    }
    struct bytes rest = bytes_skip(giver->payload, (size_t)question->offset);
    struct bytes piece = bytes_slice(rest, 0, rest.size < size ? rest.size : size);
    enum err err = pack_payload_put(&captures->pack_payload, piece, &captures->piece, &answer->is_packed);
    return err == ERR_OK ? scratch_bytes(&captures->piece, &answer->piece) : err;
}

enum err captures_give(void *context, const struct peer *from, struct bytes in, struct buf *out,
                       struct err_detail *detail) {
    struct captures *captures = context;
    struct captures_question question;
    struct captures_answer answer = {0};
    enum err err = captures_code_read_question(in, &question, detail);
    if (err == ERR_OK && question.surt.size == 0 && question.wants_description &&
        captures->config.may_copy != NULL && !captures->config.may_copy(captures->config.context, from)) {
        err = err_set(detail, ERR_BUSY, "copies are given to another node now");
    }
    if (err == ERR_OK) {
        enum peer_rpc_read read = question.wants_description ? PEER_RPC_READ_CAPTURE : PEER_RPC_READ_ON;
        err = peer_rpc_begin_read(captures->config.peer_rpc, from, read, detail);
    }
    if (err == ERR_OK) {
        err = captures_prepare(captures);
    }
    if (err != ERR_OK) {
        return err;
    }
    buf_clear(&captures->description);
    struct captures_giver *giver = choose_giver(captures, &question.key);
    giver->used_at = ++captures->questions_count;
    err = open_giver(captures, from, giver, &question, &answer.size, detail);
    if (err == ERR_NOT_FOUND) {
        return captures_code_put_answer(out, &answer);
    }
    if (err == ERR_OK) {
        err = captures_cut_piece(captures, giver, &question, &answer);
    }
    if (err == ERR_OK) {
        answer.is_there = true;
        answer.description = buf_bytes(&captures->description);
        err = captures_code_put_answer(out, &answer);
    }
    return err;
}

enum err captures_read_own(struct captures *captures, const struct ringkey *key,
                           struct bytes *ret_description, struct bytes *ret_payload,
                           struct err_detail *detail) {
    struct captures_question question = {.key = *key, .wants_description = true, .size_max = 1};
    uint64_t size;
    ASSERT(captures->config.peer_rpc == NULL);
    enum err err = captures_prepare(captures);
    if (err != ERR_OK) {
        return err;
    }
    buf_clear(&captures->description);
    struct captures_giver *giver = choose_giver(captures, key);
    err = open_giver(captures, NULL, giver, &question, &size, detail);
    if (err == ERR_OK) {
        *ret_description = buf_bytes(&captures->description);
        *ret_payload = giver->payload;
    }
    return err;
}

/* ---- begin and end ---- */

enum { TIMEOUT_MS = 2000, PIECE_SIZE_FIRST = 256 << 10 };

struct captures *captures_new(const struct captures_config *config) {
    struct captures *captures = calloc(1, sizeof *captures);
    if (captures == NULL) {
        return NULL;
    }
    captures->config = *config;
    captures->config.timeout_ms = config->timeout_ms > 0 ? config->timeout_ms : TIMEOUT_MS;
    if (config->peer_rpc != NULL) {
        peer_rpc_serve(config->peer_rpc, PEER_RPC_CAPTURE, captures_give, captures);
        peer_rpc_serve(config->peer_rpc, PEER_RPC_CAPTURES, captures_give_many, captures);
    }
    return captures;
}

void captures_free(struct captures *captures) {
    captures_give_done(captures);
    free(captures);
}

struct captures_session *captures_session_new(struct captures *captures) {
    struct captures_session *session = calloc(1, sizeof *session);
    if (session == NULL) {
        return NULL;
    }
    session->captures = captures;
    session->piece_size = PIECE_SIZE_FIRST;
    randombytes_buf(&session->seed, sizeof session->seed);
    canon_init(&session->canon);
    buf_init(&session->surt, URL_SIZE_MAX + 16);
    buf_init(&session->url, URL_SIZE_MAX + 16);
    buf_init(&session->question, PEER_RPC_QUESTION_SIZE_MAX);
    buf_init(&session->answer, PEER_RPC_ANSWER_SIZE_MAX);
    buf_init(&session->kept, PEER_RPC_ANSWER_SIZE_MAX);
    buf_init(&session->message, ATTEST_MESSAGE_SIZE_MAX);
    buf_init(&session->description, CAPTURES_CODE_DESCRIPTION_SIZE_MAX);
    const char *directory = captures->config.scratch_directory;
    scratch_init(&session->body, directory, SCRATCH_MEMORY_MAX, UINT64_MAX);
    scratch_init(&session->piece, directory, 2 * PEER_RPC_PIECE_SIZE_MAX, 2 * PEER_RPC_PIECE_SIZE_MAX);
    bool is_ready = document_hasher_init(&session->hasher) == ERR_OK;
    if (pack_payload_init(&session->pack_payload) != ERR_OK) {
        session->pack_payload = (struct pack_payload){0};
        is_ready = false;
    }
    is_ready = payload_init(&session->head) == ERR_OK && is_ready;
    if (!is_ready) {
        captures_session_free(session);
        return NULL;
    }
    return session;
}

void captures_session_free(struct captures_session *session) {
    if (session == NULL) {
        return;
    }
    document_hasher_done(&session->hasher);
    pack_payload_done(&session->pack_payload);
    payload_done(&session->head);
    canon_done(&session->canon);
    buf_done(&session->surt);
    buf_done(&session->url);
    buf_done(&session->question);
    buf_done(&session->answer);
    buf_done(&session->kept);
    buf_done(&session->message);
    buf_done(&session->description);
    scratch_done(&session->body);
    scratch_done(&session->piece);
    free(session);
}
