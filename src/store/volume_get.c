#include <libdeflate.h>
#include <stdlib.h>
#include <zstd.h>

#include "base/sha256.h"
#include "store/volume_state.h"
#include "warc/payload.h"
#include "warc/warc_record.h"

enum { RECORD_SIZE_MAX = VOLUME_DOCUMENT_SIZE_MAX + (1 << 20), KEPT_SIZE_MAX = 4 << 20, TRIES_MAX = 8 };

struct volume_reader {
    struct volume *volume;
    ZSTD_DCtx *zstd;
    struct libdeflate_decompressor *deflate;
    struct buf frame;    /* as stored */
    struct buf record;   /* decompressed */
    struct buf document; /* where it is not one piece of the record */
    struct payload payload;
    struct warc_record parsed;
    struct sha256 sha256;
};

struct volume_reader *volume_reader_new(struct volume *volume) {
    struct volume_reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL) {
        return NULL;
    }
    reader->volume = volume;
    reader->zstd = ZSTD_createDCtx();
    reader->deflate = libdeflate_alloc_decompressor();
    buf_init(&reader->frame, RECORD_SIZE_MAX);
    buf_init(&reader->record, RECORD_SIZE_MAX);
    buf_init(&reader->document, RECORD_SIZE_MAX);
    if (payload_init(&reader->payload) != ERR_OK || sha256_init(&reader->sha256) != ERR_OK ||
        reader->zstd == NULL || reader->deflate == NULL) {
        volume_reader_free(reader);
        return NULL;
    }
    return reader;
}

void volume_reader_free(struct volume_reader *reader) {
    ZSTD_freeDCtx(reader->zstd);
    libdeflate_free_decompressor(reader->deflate);
    buf_done(&reader->frame);
    buf_done(&reader->record);
    buf_done(&reader->document);
    payload_done(&reader->payload);
    sha256_done(&reader->sha256);
    free(reader);
}

static enum err decode_zstd(struct volume_reader *reader, const struct segment *segment) {
    struct bytes frame = buf_bytes(&reader->frame);
    unsigned long long size = ZSTD_getFrameContentSize(frame.data, frame.size);
    if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > RECORD_SIZE_MAX) {
        return ERR_CORRUPT;
    }
    enum err err = buf_reserve(&reader->record, (size_t)size);
    if (err != ERR_OK) {
        return err;
    }
    size_t got =
        segment->has_dictionary
            ? ZSTD_decompress_usingDDict(reader->zstd, reader->record.data, (size_t)size, frame.data,
                                         frame.size, segment->dictionary.decoder)
            : ZSTD_decompressDCtx(reader->zstd, reader->record.data, (size_t)size, frame.data, frame.size);
    if (ZSTD_isError(got) || got != size) {
        return ERR_CORRUPT;
    }
    reader->record.size = got;
    return ERR_OK;
}

static enum err decode_gzip(struct volume_reader *reader) {
    struct bytes frame = buf_bytes(&reader->frame);
    if (frame.size < 18) {
        return ERR_CORRUPT;
    }
    const uint8_t *tail = frame.data + frame.size - 4; /* the size, little-endian, ends a member */
    size_t size = (size_t)tail[0] | (size_t)tail[1] << 8 | (size_t)tail[2] << 16 | (size_t)tail[3] << 24;
    if (size > RECORD_SIZE_MAX) {
        return ERR_CORRUPT;
    }
    enum err err = buf_reserve(&reader->record, size);
    if (err != ERR_OK) {
        return err;
    }
    enum libdeflate_result result =
        libdeflate_gzip_decompress(reader->deflate, frame.data, frame.size, reader->record.data, size, NULL);
    if (result != LIBDEFLATE_SUCCESS) {
        return ERR_CORRUPT;
    }
    reader->record.size = size;
    return ERR_OK;
}

static enum err decode(struct volume_reader *reader, const struct segment *segment) {
    switch (segment->framing) {
    case PACK_ZSTD:
        return decode_zstd(reader, segment);
    case PACK_GZIP:
        return decode_gzip(reader);
    case PACK_PLAIN:
        return buf_put(&reader->record, buf_bytes(&reader->frame));
    }
    assert_failed("every framing has a decoder", __FILE__, __LINE__);
}

/* A huge document must not make the reader keep its memory for ever. */
static void start_buf(struct buf *buf) {
    if (buf->capacity > KEPT_SIZE_MAX) {
        buf_done(buf);
    }
    buf_clear(buf);
}

enum err volume_get_record(struct volume_reader *reader, const struct location *location,
                           struct bytes *ret_record, struct err_detail *detail) {
    start_buf(&reader->frame);
    start_buf(&reader->record);
    struct segment *segment;
    enum err err = volume_hold(reader->volume, location->segment, &segment);
    if (err != ERR_OK) {
        return err_set(detail, err, "segment %u is missing", location->segment);
    }
    err = segment_read(segment, location, &reader->frame);
    if (err == ERR_OK) {
        err = decode(reader, segment);
    }
    volume_release(segment);
    if (err != ERR_OK) {
        return err_set_at(detail, err, location->offset, "segment %u, byte %ju: %s", location->segment,
                          (uintmax_t)location->offset, err_text(err));
    }
    *ret_record = buf_bytes(&reader->record);
    return ERR_OK;
}

/* The block of the record in reader->record, and its header in reader->parsed. */
static enum err parse_record(struct volume_reader *reader, struct bytes *ret_block) {
    struct bytes record = buf_bytes(&reader->record);
    size_t end = bytes_find(record, BYTES("\r\n\r\n"));
    if (end == record.size) {
        return ERR_CORRUPT;
    }
    struct bytes rest = bytes_skip(record, end + 4);
    enum err err = warc_record_parse(&reader->parsed, reader->record.data, end + 4, NULL);
    if (err != ERR_OK || reader->parsed.content_length > rest.size) {
        return ERR_CORRUPT;
    }
    *ret_block = bytes_slice(rest, 0, (size_t)reader->parsed.content_length);
    return ERR_OK;
}

/* The payload of the record: mostly one piece of it; put together where it came in chunks. */
static enum err find_document(struct volume_reader *reader, struct bytes *ret_document) {
    struct bytes block;
    enum err err = parse_record(reader, &block);
    if (err != ERR_OK) {
        return err;
    }
    struct bytes first = bytes_of(NULL, 0);
    struct bytes part;
    size_t parts_count = 0;
    start_buf(&reader->document);
    payload_start(&reader->payload, warc_record_is_http(&reader->parsed));
    while (payload_next(&reader->payload, &block, &part)) {
        if (parts_count == 1) {
            buf_put(&reader->document, first);
        }
        if (parts_count++ == 0) {
            first = part;
        } else {
            buf_put(&reader->document, part);
        }
    }
    if (payload_finish(&reader->payload, &part)) {
        if (parts_count == 1) {
            buf_put(&reader->document, first);
        }
        buf_put(&reader->document, part);
        parts_count = 2;
    }
    *ret_document = parts_count <= 1 ? first : buf_bytes(&reader->document);
    return reader->document.err;
}

/* Compressed frames carry a checksum of their own; plain ones have only the signature. */
static bool is_intact(struct volume_reader *reader, const struct key *key, const struct block *block,
                      struct bytes document) {
    if (document.size != block->size) {
        return false;
    }
    if (reader->volume->config.framing != PACK_PLAIN) {
        return true;
    }
    uint8_t digest[SHA256_SIZE];
    uint8_t signature[KEY_SIGNATURE_SIZE];
    sha256_digest(&reader->sha256, document, digest);
    volume_sign(reader->volume, digest, signature);
    return memcmp(signature, key->signature, sizeof signature) == 0;
}

/* The record of the block. Compaction may move it between the two looks; then look again. */
static enum err read_block(struct volume_reader *reader, const struct key *key, struct block *ret_block,
                           struct err_detail *detail) {
    enum err err = ERR_NOT_FOUND;
    for (unsigned i = 0; i < TRIES_MAX; i++) {
        err = index_find_block(reader->volume->index, key->signature, key->number, ret_block);
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
