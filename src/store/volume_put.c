#include <stdio.h>
#include <stdlib.h>

#include "base/hex.h"
#include "store/volume_record.h"
#include "store/volume_state.h"
#include "url/surt.h"
#include "url/url.h"
#include "warc/payload.h"
#include "warc/warc_writer.h"

/* What a document without a type is, here and in the WARC record. */
#define DEFAULT_TYPE "application/octet-stream"

enum { TRIES_MAX = 16, URN_SIZE = 80 };

struct volume_writer {
    struct volume *volume;
    struct volume_reader *reader; /* to compare, and to learn what a duplicate is of */
    struct payload payload;
    struct sha256 sha256;
    struct canon canon;
};

/* What is known of a document before it is written. */
struct plan {
    const struct document *document;
    uint8_t digest[SHA256_SIZE];
    uint8_t signature[KEY_SIGNATURE_SIZE];
    uint16_t number;
    uint64_t payload_size;
    bool is_chunked;
    bool is_duplicate;
    struct block original; /* of a duplicate */
    uint16_t status;
    struct bytes mime; /* in writer->payload or the document */
};

struct volume_writer *volume_writer_new(struct volume *volume) {
    struct volume_writer *writer = calloc(1, sizeof *writer);
    if (writer == NULL) {
        return NULL;
    }
    writer->volume = volume;
    writer->reader = volume_reader_new(volume);
    canon_init(&writer->canon);
    if (payload_init(&writer->payload) != ERR_OK || sha256_init(&writer->sha256) != ERR_OK ||
        writer->reader == NULL) {
        volume_writer_free(writer);
        return NULL;
    }
    return writer;
}

void volume_writer_free(struct volume_writer *writer) {
    if (writer->reader != NULL) {
        volume_reader_free(writer->reader);
    }
    payload_done(&writer->payload);
    sha256_done(&writer->sha256);
    canon_done(&writer->canon);
    free(writer);
}

/* Hash the payload; learn its size, type and status on the way. */
static void study(struct volume_writer *writer, struct plan *plan) {
    const struct document *document = plan->document;
    struct bytes part;
    bool is_http = document->head.size > 0;
    sha256_start(&writer->sha256);
    payload_start(&writer->payload, is_http);
    struct bytes pieces[2] = {document->head, document->body};
    for (size_t i = 0; i < 2; i++) {
        while (payload_next(&writer->payload, &pieces[i], &part)) {
            sha256_update(&writer->sha256, part);
            plan->payload_size += part.size;
        }
    }
    if (payload_finish(&writer->payload, &part)) {
        sha256_update(&writer->sha256, part);
        plan->payload_size += part.size;
    }
    sha256_finish(&writer->sha256, plan->digest);
    volume_sign(writer->volume, plan->digest, plan->signature);
    plan->is_chunked = writer->payload.is_chunked;
    plan->status = is_http ? writer->payload.head.status : 0;
    struct bytes plain_type = document->content_type.size > 0 ? document->content_type : BYTES(DEFAULT_TYPE);
    plan->mime =
        http_mime(is_http ? fields_get(&writer->payload.head.fields, BYTES("Content-Type")) : plain_type);
}

/* Do the stored bytes equal the document's payload? */
static enum err compare(struct volume_writer *writer, const struct plan *plan, bool *ret_is_equal,
                        struct err_detail *detail) {
    struct key key = {.number = plan->number};
    memcpy(key.signature, plan->signature, sizeof key.signature);
    struct bytes stored;
    enum err err = volume_get(writer->reader, &key, &stored, detail);
    if (err != ERR_OK) {
        return err;
    }
    struct bytes pieces[2] = {plan->document->head, plan->document->body};
    struct bytes part;
    bool is_equal = true;
    payload_start(&writer->payload, plan->document->head.size > 0);
    for (size_t i = 0; i < 2; i++) {
        while (payload_next(&writer->payload, &pieces[i], &part)) {
            is_equal = is_equal && bytes_starts_with(stored, part);
            stored = is_equal ? bytes_skip(stored, part.size) : stored;
        }
    }
    if (payload_finish(&writer->payload, &part)) {
        is_equal = is_equal && bytes_equal(stored, part);
        stored = is_equal ? bytes_skip(stored, part.size) : stored;
    }
    *ret_is_equal = is_equal && stored.size == 0;
    return ERR_OK;
}

/*
 * Which block is it? The first live one of this signature that is the same by the rules of the mode, else the
 * first number that was never used. A damaged block is no reason to lose a new document: it then gets one of
 * its own.
 */
static enum err choose_block(struct volume_writer *writer, struct plan *plan, enum store_mode mode,
                             struct err_detail *detail) {
    for (plan->number = 0; plan->number < UINT16_MAX; plan->number++) {
        struct block *block = &plan->original;
        enum err err = index_find_block(writer->volume->index, plan->signature, plan->number, block);
        if (err == ERR_NOT_FOUND) {
            return ERR_OK;
        }
        if (err != ERR_OK) {
            return err;
        }
        bool is_live = block->references > 0 && block->location.segment != 0;
        if (!is_live || mode == STORE_FORCE_NEW || block->size != plan->payload_size) {
            continue;
        }
        plan->is_duplicate = mode == STORE_REGULAR;
        if (mode == STORE_COMPARE) {
            err = compare(writer, plan, &plan->is_duplicate, detail);
            if (err != ERR_OK && err != ERR_CORRUPT) {
                return err;
            }
        }
        if (plan->is_duplicate) {
            return ERR_OK;
        }
    }
    return err_set(detail, ERR_LIMIT, "65,535 blocks have this signature");
}

/* Copy into the item's own memory, which does not move: it was reserved. */
static struct bytes keep(struct buf *text, struct bytes bytes) {
    size_t from = text->size;
    enum err err = buf_put(text, bytes);
    ASSERT(err == ERR_OK);
    return bytes_skip(buf_bytes(text), from);
}

static enum err describe(struct volume_writer *writer, const struct plan *plan, struct volume_item *item,
                         struct err_detail *detail) {
    const struct document *document = plan->document;
    struct ledger_entry *entry = &item->entries[0];
    *entry = (struct ledger_entry){
        .kind = plan->is_duplicate ? LEDGER_REVISIT : LEDGER_ORIGINAL,
        .number = plan->number,
        .size = plan->payload_size,
        .time_us = document->time_us,
        .status = plan->status,
        .flags = (uint8_t)((plan->is_duplicate ? CAPTURE_REVISIT : 0) |
                           (document->truncated.size > 0 ? CAPTURE_TRUNCATED : 0)),
    };
    memcpy(entry->signature, plan->signature, sizeof entry->signature);
    if (document->url.size == 0) {
        return ERR_OK;
    }
    enum err err = canon_run(&writer->canon, document->url, detail);
    if (err == ERR_OK) {
        err = buf_reserve(&item->text, 4 * (size_t)URL_SIZE_MAX);
    }
    if (err != ERR_OK) {
        return err;
    }
    struct buf surt;
    buf_init(&surt, URL_SIZE_MAX + 16);
    err = surt_put(&surt, &writer->canon);
    if (err == ERR_OK) {
        entry->surt = keep(&item->text, buf_bytes(&surt));
        entry->url = keep(&item->text, document->url);
        entry->mime =
            keep(&item->text, plan->mime.size <= INDEX_MIME_SIZE_MAX ? plan->mime : bytes_of(NULL, 0));
    }
    buf_done(&surt);
    return err;
}

/* "urn:sha256:…": what a plain document is called in WARC. */
static struct bytes urn_of(const uint8_t digest[SHA256_SIZE], char out[URN_SIZE]) {
    char hex[2 * SHA256_SIZE + 1];
    int size =
        snprintf(out, URN_SIZE, VOLUME_URN_PREFIX "%s", hex_encode(bytes_of(digest, SHA256_SIZE), hex));
    return bytes_of(out, (size_t)size);
}

static bool is_incompressible(struct bytes mime) {
    static const char *const exceptions[] = {"image/svg+xml", "image/bmp", "image/x-icon", "audio/wav"};
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++) {
        if (bytes_equal_ignore_case(mime, bytes_of_string(exceptions[i]))) {
            return false;
        }
    }
    static const char *const kinds[] = {"image/",          "video/",           "audio/",
                                        "application/zip", "application/gzip", "application/x-gzip",
                                        "font/woff",       "application/pdf",  "application/x-7z-compressed"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct bytes kind = bytes_of_string(kinds[i]);
        if (mime.size >= kind.size && bytes_equal_ignore_case(bytes_slice(mime, 0, kind.size), kind)) {
            return true;
        }
    }
    return false;
}

/* A document that came in a compressed content encoding has nothing left to compress. */
static bool is_encoded(const struct volume_writer *writer, const struct document *document) {
    return document->head.size > 0 &&
           fields_get(&writer->payload.head.fields, BYTES("Content-Encoding")).size > 0;
}

/* The record of the document: itself, or the news that it is still the same. */
static enum err encode_document(struct volume_writer *writer, struct encoder *encoder,
                                const struct plan *plan, struct volume_item *item,
                                struct err_detail *detail) {
    const struct document *document = plan->document;
    char urn[URN_SIZE];
    char number[8];
    struct bytes uri = document->url.size > 0 ? document->url : urn_of(plan->digest, urn);
    int number_size = snprintf(number, sizeof number, "%u", plan->number);
    struct field block_field = {BYTES(VOLUME_BLOCK_FIELD), bytes_of(number, (size_t)number_size)};
    struct warc_draft draft = {
        .type = document->head.size > 0 ? WARC_TYPE_RESPONSE : WARC_TYPE_RESOURCE,
        .date_us = document->time_us,
        .target_uri = uri,
        .content_type = document->head.size > 0 ? bytes_of(NULL, 0) : document->content_type,
        .ip_address = document->ip_address,
        .truncated = document->truncated,
        .payload_sha256 = plan->digest,
        .fields = &block_field,
        .fields_count = plan->number > 0 ? 1 : 0,
        .head = document->head,
        .body = document->body,
        .is_incompressible = is_incompressible(plan->mime) || is_encoded(writer, document),
    };
    struct volume_origin origin;
    if (plan->is_duplicate) {
        enum err err = volume_read_origin(writer->reader, &plan->original.location, &origin, detail);
        if (err != ERR_OK) {
            return err == ERR_NOT_FOUND ? ERR_BUSY : err; /* compaction has moved it just now */
        }
        draft.type = WARC_TYPE_REVISIT;
        draft.revisit = WARC_REVISIT_IDENTICAL_PAYLOAD;
        draft.refers_to_target_uri = origin.uri;
        draft.refers_to_date_us = origin.date_us;
        draft.body = bytes_of(NULL, 0);
        draft.content_type = bytes_of(NULL, 0);
    }
    struct warc_written written;
    enum err err = warc_writer_put(&encoder->warc, &draft, &written, detail);
    if (err != ERR_OK) {
        return err;
    }
    item->entries[0].location =
        (struct location){.offset = written.offset, .length = (uint32_t)written.length};
    item->entries_count = 1;
    if (!draft.is_incompressible) {
        struct bytes parts[] = {buf_bytes(&encoder->warc.head), draft.head, draft.body};
        dictionary_offer(&writer->volume->dictionary, parts, sizeof parts / sizeof *parts);
    }
    if (document->request.size == 0) {
        return ERR_OK;
    }
    struct warc_draft request = {
        .type = WARC_TYPE_REQUEST,
        .date_us = document->time_us,
        .target_uri = uri,
        .ip_address = document->ip_address,
        .concurrent_to = &written.id,
        .body = document->request,
    };
    struct warc_written second;
    err = warc_writer_put(&encoder->warc, &request, &second, detail);
    if (err == ERR_OK) {
        item->entries[1] = (struct ledger_entry){
            .kind = LEDGER_OTHER,
            .location = {.offset = second.offset, .length = (uint32_t)second.length},
        };
        item->entries_count = 2;
    }
    return err;
}

/* One try, up to the queue. */
static enum err prepare(struct volume_writer *writer, const struct document *document, enum store_mode mode,
                        struct volume_item *item, struct err_detail *detail) {
    if (document->head.size + document->body.size > VOLUME_DOCUMENT_SIZE_MAX) {
        return err_set(detail, ERR_LIMIT, "documents above %d bytes are not stored",
                       VOLUME_DOCUMENT_SIZE_MAX);
    }
    struct plan plan = {.document = document};
    study(writer, &plan);
    enum err err = choose_block(writer, &plan, mode, detail);
    if (err == ERR_OK) {
        err = describe(writer, &plan, item, detail);
    }
    struct encoder *encoder;
    if (err == ERR_OK) {
        err = encoders_take(&writer->volume->encoders, item->segment, &item->frames, &encoder);
    }
    if (err == ERR_OK) {
        err = encode_document(writer, encoder, &plan, item, detail);
        encoders_return(&writer->volume->encoders, encoder);
    }
    if (err != ERR_OK) {
        return err;
    }
    item->expects_new = !plan.is_duplicate;
    item->accepts_twin = mode == STORE_REGULAR;
    item->stored = (struct stored){
        .key = {.volume = writer->volume->config.number, .number = plan.number},
        .is_duplicate = plan.is_duplicate,
        .document_size = plan.payload_size,
    };
    memcpy(item->stored.key.signature, plan.signature, sizeof plan.signature);
    return ERR_OK;
}

enum err volume_put(struct volume_writer *writer, const struct document *document, enum store_mode mode,
                    struct stored *ret_stored, struct err_detail *detail) {
    enum err err = ERR_BUSY;
    for (unsigned i = 0; i < TRIES_MAX && err == ERR_BUSY; i++) {
        struct volume_item *item = volume_take_item(writer->volume);
        err = prepare(writer, document, mode, item, detail);
        if (err == ERR_OK) {
            volume_queue_item(writer->volume, item);
            volume_await_item(writer->volume, item);
            err = item->err;
            *ret_stored = err == ERR_OK ? item->stored : *ret_stored;
        }
        volume_free_item(writer->volume, item);
        if (err == ERR_CORRUPT && mode != STORE_FORCE_NEW) {
            mode = STORE_FORCE_NEW; /* what it would be a duplicate of is damaged: keep this one */
            err = ERR_BUSY;
        }
    }
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "%s", err_text(err));
}

enum err volume_submit(struct volume_writer *writer, const struct document *document, enum store_mode mode,
                       volume_done *done, void *context, struct err_detail *detail) {
    struct volume_item *item = volume_take_item(writer->volume);
    enum err err = prepare(writer, document, mode, item, detail);
    if (err != ERR_OK) {
        volume_free_item(writer->volume, item);
        return err;
    }
    item->done = done;
    item->context = context;
    volume_queue_item(writer->volume, item);
    return ERR_OK;
}

static enum err encode_deletion(struct volume_writer *writer, struct encoder *encoder, const struct key *key,
                                struct volume_item *item, struct err_detail *detail) {
    char signature[2 * KEY_SIGNATURE_SIZE + 1];
    char value[2 * KEY_SIGNATURE_SIZE + 8];
    char urn[URN_SIZE];
    int size = snprintf(value, sizeof value, "%s.%u",
                        hex_encode(bytes_of(key->signature, KEY_SIGNATURE_SIZE), signature), key->number);
    struct field field = {BYTES(VOLUME_DELETE_FIELD), bytes_of(value, (size_t)size)};
    struct warc_draft draft = {
        .type = WARC_TYPE_METADATA,
        .date_us = clock_wall_us(writer->volume->config.clock),
        .target_uri = urn_of(key->signature, urn),
        .content_type = BYTES("application/warc-fields"),
        .fields = &field,
        .fields_count = 1,
    };
    struct warc_written written;
    enum err err = warc_writer_put(&encoder->warc, &draft, &written, detail);
    if (err != ERR_OK) {
        return err;
    }
    item->entries[0] = (struct ledger_entry){
        .kind = LEDGER_DELETION,
        .location = {.offset = written.offset, .length = (uint32_t)written.length},
        .number = key->number,
    };
    memcpy(item->entries[0].signature, key->signature, sizeof key->signature);
    item->entries_count = 1;
    item->expects_new = false;
    return ERR_OK;
}

enum err volume_remove(struct volume_writer *writer, const struct key *key, struct err_detail *detail) {
    struct volume_item *item = volume_take_item(writer->volume);
    struct encoder *encoder;
    enum err err = encoders_take(&writer->volume->encoders, item->segment, &item->frames, &encoder);
    if (err == ERR_OK) {
        err = encode_deletion(writer, encoder, key, item, detail);
        encoders_return(&writer->volume->encoders, encoder);
    }
    if (err == ERR_OK) {
        volume_queue_item(writer->volume, item);
        volume_await_item(writer->volume, item);
        err = item->err == ERR_BUSY ? ERR_NOT_FOUND : item->err; /* no live block of that key */
    }
    volume_free_item(writer->volume, item);
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "%s", err_text(err));
}
