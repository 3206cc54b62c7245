#include "store/volume/volume_record.h"

#include "base/hex.h"
#include "base/utc.h"
#include "store/document/attested.h"
#include "store/volume/volume_state.h"
#include "warc/request_key.h"
#include "warc/warc_digest.h"
#include "web/type/mime_type.h"
#include "web/url/surt.h"
#include "web/url/url.h"

static const int64_t DATE_SLACK_US = INT64_C(86400000000); /* clocks differ */

uint64_t volume_hash_uri(struct sha256 *sha256, struct bytes uri) {
    uint8_t digest[SHA256_SIZE];
    uint64_t hash = 0;
    sha256_digest(sha256, uri, digest);
    for (size_t i = 0; i < 6; i++) {
        hash = hash << 8 | digest[i];
    }
    return hash;
}

/* The key of the signer stands first, in base32; its first letters tell nodes apart well enough. */
void volume_describe_witness(struct bytes visit, struct bytes signature, struct ledger_entry *entry) {
    enum { SIGNER_LETTERS = 4, SECOND_US = 1000000 };
    int64_t visit_us = 0;
    bool is_one = visit.size > 0 && signature.size > SIGNER_LETTERS && utc_parse_rfc3339(visit, &visit_us) &&
                  visit_us >= 0 && visit_us <= entry->time_us && visit_us / SECOND_US <= UINT32_MAX;
    if (!is_one) {
        return;
    }
    uint32_t hash = 0;
    for (size_t i = 0; i < SIGNER_LETTERS; i++) {
        hash = hash * 31 + signature.data[i];
    }
    entry->flags |= CAPTURE_WITNESS;
    entry->visit_s = (uint32_t)(visit_us / SECOND_US);
    entry->signer = (uint16_t)(hash ^ hash >> 16);
}

void volume_describe_voucher(struct bytes signature, struct bytes imported, struct ledger_entry *entry) {
    struct attested signer;
    struct attested importer;
    /* What this program cannot check counts as nobody's word. */
    bool is_signed = attested_read(signature, &signer) && signer.later == 0;
    bool is_imported = attested_read(imported, &importer) && importer.later == 0;
    entry->voucher = is_signed     ? attested_key_start(&signer)
                     : is_imported ? attested_key_start(&importer)
                                   : 0;
    entry->flags |= (uint8_t)((is_signed ? CAPTURE_SIGNED : 0) | (is_imported ? CAPTURE_IMPORTED : 0));
}

enum err volume_read_origin(struct volume_reader *reader, const struct location *location,
                            struct volume_origin *ret_origin, struct err_detail *detail) {
    struct bytes record;
    enum err err = volume_get_head(reader, location, &record, detail);
    if (err != ERR_OK) {
        return err;
    }
    /* Only two fields are wanted, and this runs for every duplicate: look for them instead of parsing all. */
    struct bytes head = bytes_slice(record, 0, bytes_find(record, BYTES("\r\n\r\n")));
    struct bytes line;
    struct volume_origin origin = {0};
    bool has_date = false;
    while (bytes_split(&head, '\n', &line)) {
        size_t colon = bytes_find_byte(line, ':');
        if (colon == line.size) {
            continue;
        }
        struct bytes name = bytes_slice(line, 0, colon);
        struct bytes value = bytes_trim(bytes_skip(line, colon + 1));
        if (bytes_equal_ignore_case(name, BYTES("WARC-Target-URI"))) {
            origin.uri = warc_bare_uri(value);
        } else if (bytes_equal_ignore_case(name, BYTES("WARC-Date"))) {
            has_date = utc_parse_rfc3339(value, &origin.date_us);
        }
    }
    if (!has_date || origin.uri.size == 0) {
        return err_set(detail, ERR_CORRUPT, "segment %u, byte %ju: a record without URI or date",
                       location->segment, (uintmax_t)location->offset);
    }
    *ret_origin = origin;
    return ERR_OK;
}

enum err volume_scan_init(struct volume_scan *scan, const struct volume *volume) {
    *scan = (struct volume_scan){.volume = volume};
    canon_init(&scan->canon);
    buf_init(&scan->surt, URL_SIZE_MAX + 16);
    buf_init(&scan->url, URL_SIZE_MAX + 16);
    buf_init(&scan->mime, INDEX_MIME_SIZE_MAX);
    enum err err = payload_init(&scan->payload);
    return err == ERR_OK ? sha256_init(&scan->sha256) : err;
}

void volume_scan_done(struct volume_scan *scan) {
    payload_done(&scan->payload);
    canon_done(&scan->canon);
    buf_done(&scan->surt);
    buf_done(&scan->url);
    buf_done(&scan->mime);
    sha256_done(&scan->sha256);
}

/* "hex.number" of a deletion. */
static bool record_read_deletion(struct bytes value, struct ledger_entry *entry) {
    size_t dot = bytes_find_byte(value, '.');
    uint64_t number;
    if (dot == value.size || !bytes_to_u64(bytes_skip(value, dot + 1), UINT16_MAX, &number)) {
        return false;
    }
    entry->number = (uint16_t)number;
    return hex_decode(bytes_slice(value, 0, dot), entry->digest, sizeof entry->digest);
}

/* Does the record remove one reference, or captures? It then reads their time. */
static enum ledger_kind record_kind_of_deletion(const struct warc_record *record, struct bytes value,
                                                struct ledger_entry *entry) {
    struct bytes time = fields_get(&record->fields, BYTES(VOLUME_CAPTURE_FIELD));
    if (value.size == 0 || !record_read_deletion(value, entry)) {
        return LEDGER_OTHER;
    }
    if (time.size == 0) {
        return LEDGER_DELETION;
    }
    entry->is_purge = fields_get(&record->fields, BYTES(VOLUME_PURGE_FIELD)).size > 0;
    return utc_parse_rfc3339(time, &entry->time_us) ? LEDGER_REMOVAL : LEDGER_OTHER;
}

/* "segment offset length" of the record that this one replaces. */
static void record_read_mends(const struct warc_record *record, struct ledger_entry *entry) {
    struct bytes rest = fields_get(&record->fields, BYTES(VOLUME_MENDS_FIELD));
    uint64_t numbers[3] = {0};
    for (size_t i = 0; i < 3; i++) {
        struct bytes text;
        if (!bytes_split(&rest, ' ', &text) ||
            !bytes_to_u64(text, i == 1 ? UINT64_MAX : UINT32_MAX, &numbers[i])) {
            return;
        }
    }
    entry->mends = (struct location){
        .segment = (uint32_t)numbers[0], .offset = numbers[1], .length = (uint32_t)numbers[2]};
}

static enum ledger_kind record_kind_of(const struct warc_record *record, struct ledger_entry *entry) {
    struct bytes deletion = fields_get(&record->fields, BYTES(VOLUME_DELETE_FIELD));
    switch (record->type) {
    case WARC_TYPE_RESPONSE:
    case WARC_TYPE_RESOURCE:
        return LEDGER_ORIGINAL;
    case WARC_TYPE_REVISIT:
        return LEDGER_REVISIT;
    case WARC_TYPE_METADATA:
        return record_kind_of_deletion(record, deletion, entry);
    default:
        return LEDGER_OTHER;
    }
}

/* The payload's SHA-256 as the header states it; false if it does not. */
static bool record_read_digest(const struct warc_record *record, uint8_t digest[SHA256_SIZE]) {
    struct warc_digest stated;
    struct bytes text = fields_get(&record->fields, BYTES("WARC-Payload-Digest"));
    if (text.size == 0 || warc_digest_parse(&stated, text, NULL) != ERR_OK ||
        stated.algorithm != WARC_DIGEST_SHA256) {
        return false;
    }
    memcpy(digest, stated.value, SHA256_SIZE);
    return true;
}

/* Capture by URL: its key in the index. What has no key is kept all the same, and found by content key. */
static void record_describe_capture(struct volume_scan *scan, const struct warc_record *record,
                                    struct ledger_entry *entry) {
    bool is_plain = bytes_starts_with(record->target_uri, BYTES(VOLUME_URN_PREFIX));
    struct bytes key = fields_get(&record->fields, BYTES(VOLUME_REQUEST_KEY_FIELD));
    buf_clear(&scan->surt);
    buf_clear(&scan->url);
    if (is_plain || record->target_uri.size == 0 ||
        request_key_join(&scan->url, record->target_uri, key) != ERR_OK ||
        canon_run(&scan->canon, buf_bytes(&scan->url), NULL) != ERR_OK ||
        surt_put(&scan->surt, &scan->canon) != ERR_OK) {
        return;
    }
    entry->surt = buf_bytes(&scan->surt);
    entry->url = buf_bytes(&scan->url);
    bool is_truncated = fields_get(&record->fields, BYTES("WARC-Truncated")).size > 0;
    entry->flags = (uint8_t)((entry->kind == LEDGER_REVISIT ? CAPTURE_REVISIT : 0) |
                             (is_truncated && entry->kind == LEDGER_ORIGINAL ? CAPTURE_TRUNCATED : 0));
    volume_describe_witness(fields_get(&record->fields, BYTES(VOLUME_VISIT_FIELD)),
                            fields_get(&record->fields, BYTES(VOLUME_SIGNATURE_FIELD)), entry);
    volume_describe_voucher(fields_get(&record->fields, BYTES(VOLUME_SIGNATURE_FIELD)),
                            fields_get(&record->fields, BYTES(VOLUME_IMPORTED_FIELD)), entry);
}

/* Read the block to its end: size and, if asked, digest of the payload. */
static enum err record_read_block(struct volume_scan *scan, struct warc_reader *reader, bool wants_digest,
                                  uint64_t *ret_size, struct err_detail *detail) {
    struct bytes piece;
    struct bytes part;
    uint64_t size = 0;
    enum err err;
    sha256_start(&scan->sha256);
    payload_start(&scan->payload, warc_record_is_http(&reader->record));
    while ((err = warc_reader_read(reader, &piece, detail)) == ERR_OK && piece.size > 0) {
        while (payload_next(&scan->payload, &piece, &part)) {
            size += part.size;
            if (wants_digest) {
                sha256_update(&scan->sha256, part);
            }
        }
    }
    if (err == ERR_OK && payload_finish(&scan->payload, &part)) {
        size += part.size;
        if (wants_digest) {
            sha256_update(&scan->sha256, part);
        }
    }
    *ret_size = size;
    return err;
}

static void record_describe_http(struct volume_scan *scan, const struct warc_record *record,
                                 struct ledger_entry *entry) {
    bool is_http = warc_record_is_http(record);
    entry->status = is_http ? scan->payload.head.status : 0;
    struct mime_type type;
    if (is_http) {
        (void)http_type(&scan->payload.head.fields, &type);
    } else {
        (void)mime_type_extract(&type, record->content_type);
    }
    buf_clear(&scan->mime);
    if (entry->surt.size > 0 && buf_put(&scan->mime, mime_type_essence(&type)) == ERR_OK) {
        entry->mime = buf_bytes(&scan->mime);
    }
}

/* Nothing in a mirrored volume is believed: a record that is too large, has a date of tomorrow or does not
 * match its digest is refused.
 */
static enum err record_check_head(const struct volume_scan *scan, const struct warc_record *record,
                                  struct err_detail *detail) {
    int64_t now_us = clock_wall_us(scan->volume->config.clock);
    if (record->content_length > VOLUME_DOCUMENT_SIZE_MAX) {
        return err_set(detail, ERR_LIMIT, "a record of %ju bytes", (uintmax_t)record->content_length);
    }
    if (record->date_us > now_us + DATE_SLACK_US) {
        return err_set(detail, ERR_INVALID, "a record of the future");
    }
    return ERR_OK;
}

static enum err record_check_digest(const uint8_t stated[SHA256_SIZE], const uint8_t found[SHA256_SIZE],
                                    struct err_detail *detail) {
    return memcmp(stated, found, SHA256_SIZE) == 0
               ? ERR_OK
               : err_set(detail, ERR_MISMATCH, "a document that its digest does not fit");
}

enum err volume_scan_record(struct volume_scan *scan, struct warc_reader *reader, uint32_t number,
                            struct ledger_entry *ret_entry, struct err_detail *detail) {
    const struct warc_record *record = &reader->record;
    struct ledger_entry entry = {.time_us = record->date_us};
    uint8_t digest[SHA256_SIZE] = {0};
    uint64_t block_number = 0;
    entry.kind = record_kind_of(record, &entry);
    bool has_digest = record_read_digest(record, digest);
    bool is_mirrored = scan->volume->config.is_mirrored;
    bool wants_digest = entry.kind == LEDGER_ORIGINAL && (!has_digest || is_mirrored);
    struct bytes block_field = fields_get(&record->fields, BYTES(VOLUME_BLOCK_FIELD));
    bool has_number = block_field.size > 0 && bytes_to_u64(block_field, UINT16_MAX, &block_number);
    if (entry.kind == LEDGER_REVISIT && !has_digest) {
        entry.kind = LEDGER_OTHER; /* server-not-modified: nothing says of what */
    }
    bool is_stored = entry.kind == LEDGER_ORIGINAL || entry.kind == LEDGER_REVISIT;
    if (is_stored) {
        entry.uri_hash = volume_hash_uri(&scan->sha256, record->target_uri);
        entry.is_bare =
            entry.kind == LEDGER_ORIGINAL && fields_get(&record->fields, BYTES(VOLUME_BARE_FIELD)).size > 0;
        record_read_mends(record, &entry);
    }
    if ((is_stored && !entry.is_bare) || entry.kind == LEDGER_REMOVAL) {
        record_describe_capture(scan, record, &entry);
    }
    if (entry.kind == LEDGER_REMOVAL && entry.surt.size == 0) {
        entry.kind = LEDGER_OTHER; /* of what cannot be in the index */
    }
    enum err err = is_mirrored ? record_check_head(scan, record, detail) : ERR_OK;
    err = err == ERR_OK ? record_read_block(scan, reader, wants_digest, &entry.size, detail) : err;
    if (err == ERR_OK && is_stored) {
        record_describe_http(scan, record, &entry);
    }
    if (err == ERR_OK) {
        err = warc_reader_finish(reader, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    if (wants_digest) {
        uint8_t found[SHA256_SIZE];
        sha256_finish(&scan->sha256, found);
        err = has_digest ? record_check_digest(digest, found, detail) : ERR_OK;
        memcpy(digest, found, sizeof digest);
    }
    if (err != ERR_OK) {
        return err;
    }
    if (is_stored) {
        entry.number = has_number ? (uint16_t)block_number : 0;
        volume_shorten(scan->volume, digest, entry.digest);
    }
    entry.location = (struct location){
        .segment = number,
        .offset = record->offset,
        .length = (uint32_t)record->length,
    };
    *ret_entry = entry;
    return ERR_OK;
}
