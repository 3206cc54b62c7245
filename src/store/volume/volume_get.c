#include "store/volume/volume_reader.h"

enum { TRIES_MAX = 8 };

/* What reading a document needs of a record's header. */
struct volume_header {
    uint64_t content_length;
    bool is_http;
};

/*
 * The header as our writer makes it; false where it is not so simple (a folded line, say). This runs for
 * every document that is read, and takes a fifth of the time of parsing all fields.
 */
static bool skim_header(struct bytes head, struct volume_header *ret_header) {
    struct bytes line;
    bool has_length = false;
    ret_header->is_http = false;
    while (bytes_split(&head, '\n', &line)) {
        if (line.size > 0 && (line.data[0] == ' ' || line.data[0] == '\t')) {
            return false;
        }
        if (bytes_starts_with(line, BYTES("Content-Length: "))) {
            struct bytes digits = bytes_trim(bytes_skip(line, sizeof "Content-Length: " - 1));
            has_length = !has_length && bytes_to_u64(digits, UINT64_MAX, &ret_header->content_length);
        } else if (bytes_starts_with(line, BYTES("Content-Type: "))) {
            struct bytes mime = http_mime(bytes_skip(line, sizeof "Content-Type: " - 1));
            ret_header->is_http = bytes_equal_ignore_case(mime, BYTES("application/http"));
        }
    }
    return has_length;
}

static enum err parse_header(struct volume_reader *reader, struct bytes head,
                             struct volume_header *ret_header) {
    buf_clear(&reader->head);
    if (buf_put(&reader->head, head) != ERR_OK ||
        warc_record_parse(&reader->parsed, reader->head.data, reader->head.size, NULL) != ERR_OK) {
        return ERR_CORRUPT;
    }
    ret_header->content_length = reader->parsed.content_length;
    ret_header->is_http = warc_record_is_http(&reader->parsed);
    return ERR_OK;
}

/* The block of the record in reader->record. */
static enum err find_block(struct volume_reader *reader, struct volume_header *ret_header,
                           struct bytes *ret_block) {
    struct bytes record = reader->record;
    size_t end = bytes_find(record, BYTES("\r\n\r\n"));
    if (end == record.size) {
        return ERR_CORRUPT;
    }
    struct bytes head = bytes_slice(record, 0, end + 4);
    enum err err = skim_header(head, ret_header) ? ERR_OK : parse_header(reader, head, ret_header);
    struct bytes rest = bytes_skip(record, end + 4);
    if (err != ERR_OK || ret_header->content_length > rest.size) {
        return ERR_CORRUPT;
    }
    *ret_block = bytes_slice(rest, 0, (size_t)ret_header->content_length);
    return ERR_OK;
}

/* The payload of the record: mostly one piece of it; put together where it came in chunks. */
static enum err find_document(struct volume_reader *reader, struct bytes *ret_document) {
    struct bytes block;
    struct volume_header header;
    enum err err = find_block(reader, &header, &block);
    if (err != ERR_OK) {
        return err;
    }
    struct bytes first = bytes_of(NULL, 0);
    struct bytes part;
    size_t parts_count = 0;
    scratch_clear(&reader->document);
    payload_start(&reader->payload, header.is_http);
    while (payload_next(&reader->payload, &block, &part)) {
        if (parts_count == 1) {
            scratch_put(&reader->document, first);
        }
        if (parts_count++ == 0) {
            first = part;
        } else {
            scratch_put(&reader->document, part);
        }
    }
    if (payload_finish(&reader->payload, &part)) {
        if (parts_count == 1) {
            scratch_put(&reader->document, first);
        }
        scratch_put(&reader->document, part);
        parts_count = 2;
    }
    if (parts_count <= 1) {
        *ret_document = first;
        return ERR_OK;
    }
    return scratch_bytes(&reader->document, ret_document);
}

/* Compressed frames carry a checksum of their own; plain ones have only the digest. */
static bool is_intact(struct volume_reader *reader, const struct key *key, const struct block *block,
                      struct bytes document) {
    if (document.size != block->size) {
        return false;
    }
    if (reader->volume->config.framing != PACK_PLAIN) {
        return true;
    }
    uint8_t sha256[SHA256_SIZE];
    uint8_t digest[KEY_DIGEST_SIZE];
    sha256_digest(&reader->sha256, document, sha256);
    volume_shorten(reader->volume, sha256, digest);
    return memcmp(digest, key->digest, sizeof digest) == 0;
}

/* The record of the block. Compaction may move it between the two looks; then look again. */
static enum err read_block(struct volume_reader *reader, const struct key *key, struct block *ret_block,
                           struct err_detail *detail) {
    enum err err = ERR_NOT_FOUND;
    for (unsigned i = 0; i < TRIES_MAX; i++) {
        err = index_find_block(reader->volume->index, key->digest, key->number, ret_block);
        if (err == ERR_OK && (ret_block->references <= 0 || ret_block->location.segment == 0)) {
            err = ERR_NOT_FOUND;
        }
        if (err != ERR_OK) {
            return err_set(detail, err, "no such document: %s", err_text(err));
        }
        struct bytes record;
        err = volume_get_record(reader, &ret_block->location, &record, detail);
        if (err != ERR_NOT_FOUND) {
            return err;
        }
    }
    return err_set(detail, ERR_CORRUPT, "segment %u is missing", ret_block->location.segment);
}

enum err volume_get(struct volume_reader *reader, const struct key *key, struct bytes *ret_document,
                    struct err_detail *detail) {
    struct block block;
    enum err err = read_block(reader, key, &block, detail);
    if (err != ERR_OK) {
        return err;
    }
    struct bytes document;
    err = find_document(reader, &document);
    if (err == ERR_OK && !is_intact(reader, key, &block, document)) {
        err = ERR_CORRUPT;
    }
    if (err != ERR_OK) {
        return err_set_at(detail, err, block.location.offset, "segment %u, byte %ju: %s",
                          block.location.segment, (uintmax_t)block.location.offset, err_text(err));
    }
    *ret_document = document;
    return ERR_OK;
}
