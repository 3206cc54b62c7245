#include <stdio.h>
#include <stdlib.h>

#include "base/hex.h"
#include "base/utc.h"
#include "store/volume/volume_record.h"
#include "store/volume/volume_writer.h"
#include "warc/request_key.h"
#include "web/type/mime_type.h"
#include "web/url/surt.h"
#include "web/url/url.h"

enum { NUMBER_SIZE = 8, MENDS_SIZE = 48, FIELDS_MAX = 8 };

struct bytes volume_urn(const uint8_t digest[SHA256_SIZE], char out[VOLUME_URN_SIZE]) {
    size_t prefix_size = sizeof VOLUME_URN_PREFIX - 1;
    memcpy(out, VOLUME_URN_PREFIX, prefix_size);
    hex_encode(bytes_of(digest, SHA256_SIZE), out + prefix_size);
    return bytes_of(out, prefix_size + (size_t)(2 * SHA256_SIZE));
}

/* ---- compressors ---- */

void encoders_init(struct encoders *encoders, int level, struct warc_random random) {
    *encoders = (struct encoders){.level = level, .random = random};
    pthread_mutex_init(&encoders->lock, NULL);
}

static void encoders_let_go(struct encoder *encoder) {
    if (encoder->segment != 0) {
        warc_writer_done(&encoder->warc);
        encoder->segment = 0;
    }
}

void encoders_done(struct encoders *encoders) {
    while (encoders->free != NULL) {
        struct encoder *encoder = encoders->free;
        encoders->free = encoder->next;
        encoders_let_go(encoder);
        free(encoder);
    }
    pthread_mutex_destroy(&encoders->lock);
}

/* The one that was used last, or a new one; NULL: out of memory. */
static struct encoder *encoders_find(struct encoders *encoders) {
    pthread_mutex_lock(&encoders->lock);
    struct encoder *encoder = encoders->free;
    if (encoder != NULL) {
        encoders->free = encoder->next;
    }
    pthread_mutex_unlock(&encoders->lock);
    return encoder != NULL ? encoder : calloc(1, sizeof *encoder);
}

static void encoders_return(struct encoders *encoders, struct encoder *encoder) {
    pthread_mutex_lock(&encoders->lock);
    encoder->next = encoders->free;
    encoders->free = encoder;
    pthread_mutex_unlock(&encoders->lock);
}

/* One that writes into out, with the dictionary of the segment; its offsets count from the start of out. */
static enum err encoders_take(struct encoders *encoders, const struct segment *segment, struct scratch *out,
                              struct encoder **ret_encoder) {
    struct encoder *encoder = encoders_find(encoders);
    if (encoder == NULL) {
        return ERR_MEMORY;
    }
    scratch_sink_init(&encoder->sink, out);
    if (encoder->segment == segment->number) {
        warc_writer_resume(&encoder->warc, 0);
        *ret_encoder = encoder;
        return ERR_OK;
    }
    encoders_let_go(encoder);
    struct pack_options options = {
        .framing = segment->framing,
        .level = encoders->level,
        .dictionary = segment->has_dictionary ? &segment->dictionary : NULL,
    };
    enum err err = warc_writer_init(&encoder->warc, &encoder->sink.sink, 0, &options, encoders->random);
    if (err != ERR_OK) {
        encoders_return(encoders, encoder);
        return err;
    }
    encoder->segment = segment->number;
    *ret_encoder = encoder;
    return ERR_OK;
}

/* ---- what the index will know of it ---- */

/* Copy into the item's own memory, which does not move: it was reserved. */
static struct bytes encode_keep(struct buf *text, struct bytes bytes) {
    size_t from = text->size;
    enum err err = buf_put(text, bytes);
    ASSERT(err == ERR_OK);
    return bytes_skip(buf_bytes(text), from);
}

static enum err encode_describe_capture(struct volume_writer *writer, const struct volume_plan *plan,
                                        struct volume_item *item, struct err_detail *detail) {
    struct ledger_entry *entry = &item->entries[0];
    _Static_assert((int)MIME_ESSENCE_SIZE_MAX <= (int)INDEX_MIME_SIZE_MAX,
                   "the index has room for every type");
    struct bytes mime = mime_type_essence(&plan->type);
    buf_clear(&writer->url);
    enum err err = request_key_join(&writer->url, plan->document->url, buf_bytes(&writer->request_key));
    struct bytes url = buf_bytes(&writer->url);
    err = err == ERR_OK ? canon_run(&writer->canon, url, detail) : err;
    if (err == ERR_OK) {
        buf_clear(&writer->surt);
        err = surt_put(&writer->surt, &writer->canon);
    }
    if (err == ERR_OK) {
        err = buf_reserve(&item->text, writer->surt.size + url.size + mime.size);
    }
    if (err == ERR_OK) {
        entry->surt = encode_keep(&item->text, buf_bytes(&writer->surt));
        entry->url = encode_keep(&item->text, url);
        entry->mime = encode_keep(&item->text, mime);
    }
    return err;
}

static enum err encode_describe(struct volume_writer *writer, const struct volume_plan *plan,
                                struct bytes uri, struct volume_item *item, struct err_detail *detail) {
    const struct document *document = plan->document;
    struct ledger_entry *entry = &item->entries[0];
    *entry = (struct ledger_entry){
        .kind = plan->is_duplicate ? LEDGER_REVISIT : LEDGER_ORIGINAL,
        .number = plan->number,
        .size = plan->payload_size,
        .time_us = document->time_us,
        .uri_hash = volume_hash_uri(&writer->hasher.sha256, uri),
        .status = plan->status,
        .is_bare = plan->is_bare,
        .mends = plan->mends,
    };
    if (plan->is_duplicate) {
        entry->flags = CAPTURE_REVISIT; /* whose records are all marked as truncated, for want of a body */
    } else if (document->truncated.size > 0) {
        entry->flags = CAPTURE_TRUNCATED;
    }
    memcpy(entry->digest, plan->digest, sizeof entry->digest);
    bool is_capture = document->url.size > 0 && !plan->is_bare;
    if (is_capture) {
        volume_describe_witness(document->visit, document->signature, entry);
        volume_describe_voucher(document->signature, document->imported, entry);
    }
    return is_capture ? encode_describe_capture(writer, plan, item, detail) : ERR_OK;
}

/* ---- the records ---- */

static bool encode_is_incompressible_type(struct bytes mime) {
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
        if (bytes_starts_with_ignore_case(mime, kind)) {
            return true;
        }
    }
    return false;
}

/* A document that came in a compressed content encoding has nothing left to compress; a revisit has no body.
 */
static bool encode_is_incompressible(const struct volume_writer *writer, const struct volume_plan *plan) {
    bool is_encoded = plan->document->head.size > 0 &&
                      fields_get(&writer->hasher.payload.head.fields, BYTES("Content-Encoding")).size > 0;
    return !plan->is_duplicate &&
           (is_encoded || encode_is_incompressible_type(mime_type_essence(&plan->type)));
}

/* The URL stands in the original's record alone; the next duplicate of it need not read that again. */
static enum err encode_read_origin(struct volume_writer *writer, const struct location *location,
                                   struct volume_origin *ret_origin, struct err_detail *detail) {
    enum err err = volume_read_origin(writer->reader, location, ret_origin, detail);
    if (err == ERR_OK) {
        origins_add(writer->volume->origins, location, ret_origin->uri);
    }
    return err == ERR_NOT_FOUND ? ERR_BUSY : err; /* compaction has moved it just now */
}

/*
 * What a duplicate is of. Mostly of the same URL, of a document that was stored or asked for a while ago, or
 * of a plain one: then nothing is read.
 */
static enum err encode_find_origin(struct volume_writer *writer, const struct volume_plan *plan,
                                   struct bytes uri, uint64_t uri_hash, struct bytes urn,
                                   struct volume_origin *ret_origin, struct err_detail *detail) {
    const struct block *original = &plan->look.block;
    *ret_origin = (struct volume_origin){.uri = uri, .date_us = original->origin_time_us};
    if (original->origin_uri_hash == uri_hash) {
        return ERR_OK;
    }
    if (origins_find(writer->volume->origins, &original->location, &writer->origin)) {
        ret_origin->uri = buf_bytes(&writer->origin);
        return ERR_OK;
    }
    if (original->origin_uri_hash == volume_hash_uri(&writer->hasher.sha256, urn)) {
        ret_origin->uri = urn;
        return ERR_OK;
    }
    return encode_read_origin(writer, &original->location, ret_origin, detail);
}

static void encode_make_revisit(struct warc_draft *draft, const struct document *document,
                                const struct volume_origin *origin) {
    bool is_http = document->head.size > 0;
    draft->type = WARC_TYPE_REVISIT;
    draft->revisit = document->is_not_modified ? WARC_REVISIT_NOT_MODIFIED : WARC_REVISIT_IDENTICAL_PAYLOAD;
    draft->refers_to_target_uri = origin->uri;
    draft->refers_to_date_us = origin->date_us;
    draft->body = bytes_of(NULL, 0);
    draft->has_plain_id = document->is_not_modified && document->request.size == 0;
    if (!is_http && document->content_type.size == 0) {
        draft->content_type = BYTES("application/octet-stream"); /* a revisit's usual one says HTTP */
    }
}

static enum err encode_put_record(struct encoder *encoder, const struct warc_draft *draft,
                                  struct volume_item *item, struct warc_written *ret_written,
                                  struct err_detail *detail) {
    ASSERT(item->entries_count < VOLUME_ITEM_ENTRIES_MAX);
    enum err err = warc_writer_put(&encoder->warc, draft, ret_written, detail);
    if (err != ERR_OK) {
        return err;
    }
    ASSERT(ret_written->length <= UINT32_MAX); /* the largest document leaves room for what is added */
    item->entries[item->entries_count++].location =
        (struct location){.offset = ret_written->offset, .length = (uint32_t)ret_written->length};
    return ERR_OK;
}

static enum err encode_put_request(struct encoder *encoder, const struct document *document, struct bytes uri,
                                   const struct warc_id *response, struct volume_item *item,
                                   struct err_detail *detail) {
    struct warc_draft draft = {
        .type = WARC_TYPE_REQUEST,
        .date_us = document->time_us,
        .target_uri = uri,
        .ip_address = document->ip_address,
        .concurrent_to = response,
        .body = document->request,
    };
    struct warc_written written;
    item->entries[1] = (struct ledger_entry){.kind = LEDGER_OTHER};
    return encode_put_record(encoder, &draft, item, &written, detail);
}

/* The fields of our own, with the text of two of them. */
struct own_fields {
    struct field fields[FIELDS_MAX];
    size_t count;
    char number[NUMBER_SIZE];
    char mends[MENDS_SIZE];
};

static void encode_add_field(struct own_fields *own, struct bytes name, struct bytes value) {
    ASSERT(own->count < FIELDS_MAX);
    own->fields[own->count++] = (struct field){name, value};
}

static void encode_list_fields(const struct volume_writer *writer, const struct volume_plan *plan,
                               struct own_fields *own) {
    const struct document *document = plan->document;
    own->count = 0;
    if (writer->request_key.size > 0) {
        encode_add_field(own, BYTES(VOLUME_REQUEST_KEY_FIELD), buf_bytes(&writer->request_key));
    }
    if (plan->number > 0) {
        snprintf(own->number, sizeof own->number, "%u", plan->number);
        encode_add_field(own, BYTES(VOLUME_BLOCK_FIELD), bytes_of_string(own->number));
    }
    if (document->tls.size > 0) {
        encode_add_field(own, BYTES(VOLUME_TLS_FIELD), document->tls);
    }
    if (document->signature.size > 0) {
        encode_add_field(own, BYTES(VOLUME_SIGNATURE_FIELD), document->signature);
    }
    if (document->imported.size > 0) {
        encode_add_field(own, BYTES(VOLUME_IMPORTED_FIELD), document->imported);
    }
    if (document->visit.size > 0) {
        encode_add_field(own, BYTES(VOLUME_VISIT_FIELD), document->visit);
    }
    if (plan->is_bare) {
        encode_add_field(own, BYTES(VOLUME_BARE_FIELD), BYTES("yes"));
    }
    if (plan->mends.segment != 0) {
        snprintf(own->mends, sizeof own->mends, "%u %ju %u", plan->mends.segment,
                 (uintmax_t)plan->mends.offset, plan->mends.length);
        encode_add_field(own, BYTES(VOLUME_MENDS_FIELD), bytes_of_string(own->mends));
    }
}

/* The record of the document: itself, or the news that it is still the same. */
static enum err encode_put_document(struct volume_writer *writer, struct encoder *encoder,
                                    const struct volume_plan *plan, struct bytes uri, struct bytes urn,
                                    struct volume_item *item, struct err_detail *detail) {
    const struct document *document = plan->document;
    struct own_fields own;
    encode_list_fields(writer, plan, &own);
    struct warc_draft draft = {
        .type = document->head.size > 0 ? WARC_TYPE_RESPONSE : WARC_TYPE_RESOURCE,
        .date_us = document->time_us,
        .target_uri = uri,
        .content_type = document->head.size > 0 ? bytes_of(NULL, 0) : document->content_type,
        .ip_address = document->ip_address,
        .truncated = document->truncated,
        .payload_sha256 = plan->sha256,
        .fields = own.fields,
        .fields_count = own.count,
        .head = document->head,
        .body = document->body,
        .is_incompressible = encode_is_incompressible(writer, plan),
        .is_block_digest_optional = item->segment->framing != PACK_PLAIN,
    };
    struct volume_origin origin;
    enum err err = ERR_OK;
    if (plan->is_duplicate) {
        err = encode_find_origin(writer, plan, uri, item->entries[0].uri_hash, urn, &origin, detail);
        encode_make_revisit(&draft, document, &origin);
    }
    struct warc_written written;
    if (err == ERR_OK) {
        err = encode_put_record(encoder, &draft, item, &written, detail);
    }
    if (err == ERR_OK && !draft.is_incompressible) {
        struct bytes parts[] = {buf_bytes(&encoder->warc.head), draft.head, draft.body};
        enum dictionary_kind kind = draft.has_plain_id ? DICTIONARY_VISIT : DICTIONARY_PAGE;
        dictionary_offer(&writer->volume->dictionary, parts, sizeof parts / sizeof *parts, kind);
    }
    if (err == ERR_OK && document->request.size > 0) {
        err = encode_put_request(encoder, document, uri, &written.id, item, detail);
    }
    return err;
}

enum err volume_encode(struct volume_writer *writer, const struct volume_plan *plan, struct volume_item *item,
                       struct err_detail *detail) {
    char text[VOLUME_URN_SIZE];
    struct bytes urn = volume_urn(plan->sha256, text);
    struct bytes uri = plan->document->url.size > 0 ? plan->document->url : urn;
    struct encoder *encoder;
    buf_clear(&writer->request_key);
    enum err err = request_key_put(&writer->request_key, plan->document->request);
    if (err == ERR_OK) {
        err = encode_describe(writer, plan, uri, item, detail);
    }
    if (err == ERR_OK) {
        err = encoders_take(&writer->volume->encoders, item->segment, &item->frames, &encoder);
    }
    if (err == ERR_OK) {
        err = encode_put_document(writer, encoder, plan, uri, urn, item, detail);
        encoders_return(&writer->volume->encoders, encoder);
    }
    return err;
}

enum { DELETION_SIZE = 2 * KEY_DIGEST_SIZE + 1 + NUMBER_SIZE };

/* "digest.number" */
static struct bytes encode_format_deletion(const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number,
                                           char out[DELETION_SIZE]) {
    hex_encode(bytes_of(digest, KEY_DIGEST_SIZE), out);
    snprintf(out + (size_t)(2 * KEY_DIGEST_SIZE), 1 + NUMBER_SIZE, ".%u", number);
    return bytes_of_string(out);
}

/* A metadata record of these fields; item->entries[0] is set already. */
static enum err encode_put_metadata(struct volume_writer *writer, struct bytes uri,
                                    const struct field *fields, size_t fields_count, struct volume_item *item,
                                    struct err_detail *detail) {
    struct warc_draft draft = {
        .type = WARC_TYPE_METADATA,
        .date_us = clock_wall_us(writer->volume->config.clock),
        .target_uri = uri,
        .content_type = BYTES("application/warc-fields"),
        .fields = fields,
        .fields_count = fields_count,
        .is_block_digest_optional = item->segment->framing != PACK_PLAIN,
    };
    struct encoder *encoder;
    enum err err = encoders_take(&writer->volume->encoders, item->segment, &item->frames, &encoder);
    if (err != ERR_OK) {
        return err;
    }
    struct warc_written written;
    err = encode_put_record(encoder, &draft, item, &written, detail);
    encoders_return(&writer->volume->encoders, encoder);
    return err;
}

enum err volume_encode_deletion(struct volume_writer *writer, const struct key *key, struct volume_item *item,
                                struct err_detail *detail) {
    char value[DELETION_SIZE];
    char urn[VOLUME_URN_SIZE];
    struct field field = {BYTES(VOLUME_DELETE_FIELD),
                          encode_format_deletion(key->digest, key->number, value)};
    item->entries[0] = (struct ledger_entry){.kind = LEDGER_DELETION, .number = key->number};
    memcpy(item->entries[0].digest, key->digest, sizeof key->digest);
    return encode_put_metadata(writer, volume_urn(key->digest, urn), &field, 1, item, detail);
}

enum err volume_encode_removal(struct volume_writer *writer, const struct capture *capture, bool is_purge,
                               struct volume_item *item, struct err_detail *detail) {
    char value[DELETION_SIZE];
    char time[UTC_RFC3339_SIZE];
    struct field fields[] = {
        {BYTES(VOLUME_DELETE_FIELD), encode_format_deletion(capture->digest, capture->block_number, value)},
        {BYTES(VOLUME_CAPTURE_FIELD), bytes_of_string(utc_format_rfc3339(capture->time_us, time))},
        {BYTES(VOLUME_PURGE_FIELD), BYTES("yes")},
    };
    size_t fields_count = is_purge ? 3 : 2;
    struct ledger_entry *entry = &item->entries[0];
    enum err err = buf_reserve(&item->text, capture->surt.size + capture->url.size);
    if (err != ERR_OK) {
        return err_set(detail, err, "%s", err_text(err));
    }
    *entry = (struct ledger_entry){
        .kind = LEDGER_REMOVAL,
        .number = capture->block_number,
        .time_us = capture->time_us,
        .is_purge = is_purge,
        .surt = encode_keep(&item->text, capture->surt),
        .url = encode_keep(&item->text, capture->url),
    };
    memcpy(entry->digest, capture->digest, sizeof capture->digest);
    return encode_put_metadata(writer, capture->url, fields, fields_count, item, detail);
}
