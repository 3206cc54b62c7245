#include "warc/warc_check.h"

enum err warc_check_init(struct warc_check *check) {
    *check = (struct warc_check){0};
    if (payload_init(&check->parts) != ERR_OK || warc_hash_init(&check->block_hash) != ERR_OK ||
        warc_hash_init(&check->payload_hash) != ERR_OK || warc_hash_init(&check->unchunked_hash) != ERR_OK) {
        warc_check_done(check);
        return ERR_MEMORY;
    }
    return ERR_OK;
}

void warc_check_done(struct warc_check *check) {
    warc_hash_done(&check->block_hash);
    warc_hash_done(&check->payload_hash);
    warc_hash_done(&check->unchunked_hash);
    payload_done(&check->parts);
}

/* True if there is something to compare with. */
static bool read_stated(const struct warc_record *record, struct bytes name, struct warc_digest *digest,
                        enum warc_check_result *result) {
    const struct field *field = fields_find(&record->fields, name, NULL);
    if (field == NULL) {
        *result = WARC_CHECK_ABSENT;
        return false;
    }
    enum err err = warc_digest_parse(digest, field->value, NULL);
    *result = err == ERR_UNSUPPORTED ? WARC_CHECK_UNSUPPORTED : WARC_CHECK_MALFORMED;
    return err == ERR_OK;
}

void warc_check_start(struct warc_check *check, const struct warc_record *record) {
    check->hashes_block =
        read_stated(record, BYTES("WARC-Block-Digest"), &check->block_stated, &check->block);
    check->hashes_payload =
        read_stated(record, BYTES("WARC-Payload-Digest"), &check->payload_stated, &check->payload);
    if (check->hashes_payload && record->type == WARC_TYPE_REVISIT) {
        check->payload = WARC_CHECK_ELSEWHERE;
        check->hashes_payload = false;
    }
    if (check->hashes_block) {
        warc_hash_start(&check->block_hash, check->block_stated.algorithm);
    }
    if (check->hashes_payload) {
        payload_start(&check->parts, warc_record_is_http(record));
        check->parts.keeps_chunks = true;
        chunked_start(&check->chunked, HTTP_RULES_RECORDED);
        warc_hash_start(&check->payload_hash, check->payload_stated.algorithm);
        warc_hash_start(&check->unchunked_hash, check->payload_stated.algorithm);
    }
}

static bool is_chunked(const struct warc_check *check) {
    return check->parts.head.state == HTTP_HEAD_WHOLE && http_head_is_chunked(&check->parts.head);
}

static void warc_check_feed_body(struct warc_check *check, struct bytes body) {
    warc_hash_update(&check->payload_hash, body);
    struct bytes part;
    while (is_chunked(check) && chunked_next(&check->chunked, &body, &part)) {
        warc_hash_update(&check->unchunked_hash, part);
    }
}

void warc_check_feed(struct warc_check *check, struct bytes piece) {
    if (check->hashes_block) {
        warc_hash_update(&check->block_hash, piece);
    }
    struct bytes body;
    while (check->hashes_payload && payload_next(&check->parts, &piece, &body)) {
        warc_check_feed_body(check, body);
    }
}

static bool matches(struct warc_hash *hash, const struct warc_digest *stated) {
    struct warc_digest computed;
    warc_hash_finish(hash, &computed);
    return warc_digest_equal(&computed, stated);
}

void warc_check_finish(struct warc_check *check) {
    if (check->hashes_block) {
        check->block =
            matches(&check->block_hash, &check->block_stated) ? WARC_CHECK_EQUAL : WARC_CHECK_DIFFERENT;
    }
    if (check->hashes_payload) {
        struct bytes body;
        if (payload_finish(&check->parts, &body)) {
            warc_check_feed_body(check, body);
        }
        if (is_chunked(check) && chunked_finish(&check->chunked, &body)) {
            warc_hash_update(&check->unchunked_hash, body);
        }
        bool is_equal = matches(&check->payload_hash, &check->payload_stated) ||
                        (is_chunked(check) && matches(&check->unchunked_hash, &check->payload_stated));
        check->payload = is_equal ? WARC_CHECK_EQUAL : WARC_CHECK_DIFFERENT;
    }
    check->hashes_block = false;
    check->hashes_payload = false;
}

enum err warc_check_read(struct warc_check *check, struct warc_reader *reader, struct err_detail *detail) {
    struct bytes piece;
    enum err err;
    warc_check_start(check, &reader->record);
    while ((err = warc_reader_read(reader, &piece, detail)) == ERR_OK && piece.size > 0) {
        warc_check_feed(check, piece);
    }
    warc_check_finish(check);
    return err == ERR_OK ? warc_reader_finish(reader, detail) : err;
}
