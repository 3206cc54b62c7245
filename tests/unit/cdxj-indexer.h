/*
 * cdxj_indexer - reads a WARC or ARC file and gives the CDXJ entry of every capture in it.
 *
 * A mnemon node does not index that way; tests, fuzzing and benchmarks do, to compare what the reader finds
 * with what other tools find in the same files.
 *
 * As pywb's cdxj-indexer does: response, resource, revisit, conversion and metadata records are captures,
 * except `application/warc-fields`. A revisit has the mime type `warc/revisit` and no status. The digest is
 * the header's, without "sha1:"; if it states none, SHA-1 of the payload in base32.
 *
 *      cdxj_indexer_open(&indexer, &source, BYTES("a.warc.gz"));
 *      while ((err = cdxj_indexer_next(&indexer, &found, &detail)) == ERR_OK && found) {
 *          cdxj_put(&out, &indexer.entry);
 *      }
 *
 * Entries come in the order of the file. Damage is reported and left as warc_reader.h describes, through
 * indexer.reader.
 */
#ifndef CDXJ_INDEXER_H
#define CDXJ_INDEXER_H

#include "base/base32.h"
#include "warc/cdxj.h"
#include "warc/payload.h"
#include "warc/warc_digest.h"
#include "warc/warc_reader.h"
#include "web/url/canon.h"
#include "web/url/surt.h"
#include "web/url/url.h"

struct cdxj_indexer {
    struct warc_reader reader;
    struct cdxj entry;      /* borrows all of the rest; until the next call */
    uint64_t skipped_count; /* captures without a URI or a date */
    struct bytes filename;
    struct payload payload;
    struct warc_hash hash;
    struct canon canon;
    struct buf key;
    char digest[64]; /* base32 */
    struct mime_type type;
};

static void cdxj_indexer_done(struct cdxj_indexer *indexer) {
    warc_reader_done(&indexer->reader);
    warc_hash_done(&indexer->hash);
    payload_done(&indexer->payload);
    canon_done(&indexer->canon);
    buf_done(&indexer->key);
}

/* options: see unpack.h; may be NULL. */
static enum err cdxj_indexer_init(struct cdxj_indexer *indexer, const struct unpack_options *options) {
    *indexer = (struct cdxj_indexer){0};
    canon_init(&indexer->canon);
    buf_init(&indexer->key, 4 * URL_SIZE_MAX);
    enum err err = payload_init(&indexer->payload);
    if (err == ERR_OK) {
        err = warc_hash_init(&indexer->hash);
    }
    if (err == ERR_OK) {
        err = warc_reader_init(&indexer->reader, options);
    }
    if (err != ERR_OK) {
        cdxj_indexer_done(indexer);
    }
    return err;
}

/* Source and filename are borrowed until the next open or done. */
static void cdxj_indexer_open(struct cdxj_indexer *indexer, struct source *source, struct bytes filename) {
    warc_reader_open(&indexer->reader, source);
    indexer->filename = filename;
    indexer->skipped_count = 0;
}

static bool cdxj_indexer_is_capture(const struct warc_record *record) {
    struct mime_type type;
    switch (record->type) {
    case WARC_TYPE_RESPONSE:
    case WARC_TYPE_REVISIT:
    case WARC_TYPE_CONVERSION:
        return true;
    case WARC_TYPE_RESOURCE:
    case WARC_TYPE_METADATA:
        return !mime_type_extract(&type, record->content_type) ||
               !mime_type_is(&type, "application/warc-fields");
    default:
        return false;
    }
}

/* The SURT; for what has none the URI itself, without what would break the line. */
static enum err cdxj_indexer_make_key(struct cdxj_indexer *indexer, struct bytes uri) {
    buf_clear(&indexer->key);
    enum err err = canon_run(&indexer->canon, uri, NULL);
    if (err == ERR_OK) {
        return surt_put(&indexer->key, &indexer->canon);
    }
    if (err == ERR_MEMORY) {
        return err;
    }
    for (size_t i = 0; i < uri.size; i++) {
        if (uri.data[i] <= ' ') {
            buf_put_format(&indexer->key, "%%%02x", uri.data[i]);
        } else {
            buf_put_byte(&indexer->key, byte_lower(uri.data[i]));
        }
    }
    return indexer->key.err;
}

/* Read the block: its HTTP head, and the digest if the header has none. */
static enum err cdxj_indexer_read_block(struct cdxj_indexer *indexer, bool wants_digest,
                                        struct err_detail *detail) {
    struct payload *payload = &indexer->payload;
    struct bytes piece;
    struct bytes part;
    payload_start(payload, warc_record_is_http(&indexer->reader.record));
    warc_hash_start(&indexer->hash, WARC_DIGEST_SHA1);
    for (;;) {
        enum err err = warc_reader_read(&indexer->reader, &piece, detail);
        if (err != ERR_OK) {
            return err;
        }
        if (piece.size == 0) {
            break;
        }
        while (payload_next(payload, &piece, &part)) {
            if (wants_digest) {
                warc_hash_update(&indexer->hash, part);
            }
        }
        if (payload->is_in_body && !wants_digest) {
            break; /* what is left need not be looked at */
        }
    }
    if (payload_finish(payload, &part) && wants_digest) {
        warc_hash_update(&indexer->hash, part);
    }
    return warc_reader_finish(&indexer->reader, detail);
}

static struct bytes cdxj_indexer_stated_digest(const struct warc_record *record) {
    struct bytes digest = fields_get(&record->fields, BYTES("WARC-Payload-Digest"));
    bool is_sha1 = digest.size > 5 && bytes_equal_ignore_case(bytes_slice(digest, 0, 5), BYTES("sha1:"));
    return is_sha1 ? bytes_skip(digest, 5) : digest;
}

static struct bytes cdxj_indexer_computed_digest(struct cdxj_indexer *indexer) {
    struct warc_digest digest;
    warc_hash_finish(&indexer->hash, &digest);
    return bytes_of_string(base32_encode(bytes_of(digest.value, digest.size), indexer->digest));
}

static struct bytes cdxj_indexer_mime_of(struct cdxj_indexer *indexer) {
    const struct warc_record *record = &indexer->reader.record;
    if (record->type == WARC_TYPE_REVISIT) {
        return BYTES("warc/revisit");
    }
    const struct http_head *head = &indexer->payload.head;
    bool is_http = head->state == HTTP_HEAD_WHOLE;
    bool is_type = is_http ? http_type(&head->fields, &indexer->type)
                           : mime_type_extract(&indexer->type, record->content_type);
    return is_type ? mime_type_essence(&indexer->type) : BYTES("unk");
}

static enum err cdxj_indexer_make_entry(struct cdxj_indexer *indexer, struct err_detail *detail) {
    const struct warc_record *record = &indexer->reader.record;
    struct bytes digest = cdxj_indexer_stated_digest(record);
    bool wants_digest = digest.size == 0 && record->type != WARC_TYPE_REVISIT;
    enum err err = cdxj_indexer_read_block(indexer, wants_digest, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (!record->is_alone) {
        return err_set_at(detail, ERR_UNSUPPORTED, (size_t)record->offset,
                          "records share one compressed member, so that no index can point to them");
    }
    if ((err = cdxj_indexer_make_key(indexer, record->target_uri)) != ERR_OK) {
        return err_set_at(detail, err, (size_t)record->offset, "%s", err_text(err));
    }
    indexer->entry = (struct cdxj){
        .key = buf_bytes(&indexer->key),
        .time_us = record->date_us,
        .url = record->target_uri,
        .mime = cdxj_indexer_mime_of(indexer),
        .status = record->type == WARC_TYPE_REVISIT ? 0 : indexer->payload.head.status,
        .digest = wants_digest ? cdxj_indexer_computed_digest(indexer) : digest,
        .has_place = true,
        .length = record->length,
        .offset = record->offset,
        .filename = indexer->filename,
    };
    return ERR_OK;
}

/*
 * Go to the next capture; *ret_found is false at the end. The errors of warc_reader_next(); ERR_UNSUPPORTED
 * for a record that shares its gzip member with others, which no index can point to: calling again goes on
 * behind it.
 */
static enum err cdxj_indexer_next(struct cdxj_indexer *indexer, bool *ret_found, struct err_detail *detail) {
    for (;;) {
        bool found;
        enum err err = warc_reader_next(&indexer->reader, &found, detail);
        if (err != ERR_OK) {
            return err;
        }
        if (!found) {
            *ret_found = false;
            return ERR_OK;
        }
        const struct warc_record *record = &indexer->reader.record;
        if (!cdxj_indexer_is_capture(record)) {
            continue;
        }
        if (record->target_uri.size == 0 || !record->has_date) {
            indexer->skipped_count++;
            continue;
        }
        err = cdxj_indexer_make_entry(indexer, detail);
        if (err == ERR_OK) {
            *ret_found = true;
        }
        return err;
    }
}

#endif
