/* Documents and records of a volume, read: one read and one decompression, or in pieces if they are large. */
#include <libdeflate.h>
#include <stdlib.h>
#include <zstd.h>

#include "base/sha256.h"
#include "store/volume/decoders.h"
#include "store/volume/volume_record.h"
#include "store/volume/volume_state.h"
#include "warc/payload.h"
#include "warc/unpack.h"
#include "warc/warc_check.h"
#include "warc/warc_record.h"
#include "web/type/mime_type.h"

enum {
    WHOLE_SIZE_MAX =
        4 << 20, /* records up to this, stored and unpacked, are read at once; others in pieces */
    GZIP_SIZE_MIN = 18,
};

/* A document, and a header before it. */
static const uint64_t RECORD_SIZE_MAX = (UINT64_C(4) << 30) - (UINT64_C(32) << 20);

struct volume_reader {
    struct volume *volume;
    struct buf frame;        /* as stored */
    struct buf whole;        /* decompressed at once */
    struct scratch pieces;   /* decompressed piece by piece */
    struct bytes record;     /* in one of them */
    bool is_brief;           /* what is large is not unpacked now */
    struct scratch document; /* where it is not one piece of the record */
    struct buf head;         /* of the record: parsing writes to it */
    bool has_unpack;         /* the next is set up: the first large record was read */
    struct unpack unpack;
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
    buf_init(&reader->frame, WHOLE_SIZE_MAX);
    buf_init(&reader->whole, WHOLE_SIZE_MAX);
    buf_init(&reader->head, WARC_RECORD_HEAD_SIZE_MAX);
    const char *directory = volume->config.index_directory;
    scratch_init(&reader->pieces, directory, SCRATCH_MEMORY_MAX, RECORD_SIZE_MAX);
    scratch_init(&reader->document, directory, SCRATCH_MEMORY_MAX, RECORD_SIZE_MAX);
    scratch_set_budget(&reader->pieces, volume->config.scratch_budget);
    scratch_set_budget(&reader->document, volume->config.scratch_budget);
    if (payload_init(&reader->payload) != ERR_OK || sha256_init(&reader->sha256) != ERR_OK) {
        volume_reader_free(reader);
        return NULL;
    }
    return reader;
}

void volume_reader_free(struct volume_reader *reader) {
    if (reader == NULL) {
        return;
    }
    buf_done(&reader->frame);
    buf_done(&reader->whole);
    buf_done(&reader->head);
    scratch_done(&reader->pieces);
    scratch_done(&reader->document);
    if (reader->has_unpack) {
        unpack_done(&reader->unpack);
    }
    payload_done(&reader->payload);
    sha256_done(&reader->sha256);
    free(reader);
}

/* ---- small records: at once ---- */

static enum err reader_decode_zstd(struct volume_reader *reader, struct decoder *decoder,
                                   const struct segment *segment, size_t size) {
    struct bytes frame = buf_bytes(&reader->frame);
    uint8_t *out = reader->whole.data;
    size_t got = segment->has_dictionary
                     ? ZSTD_decompress_usingDDict(decoder->zstd, out, size, frame.data, frame.size,
                                                  segment->dictionary.decoder)
                     : ZSTD_decompressDCtx(decoder->zstd, out, size, frame.data, frame.size);
    return ZSTD_isError(got) || got != size ? ERR_CORRUPT : ERR_OK;
}

static enum err reader_decode_gzip(struct volume_reader *reader, struct decoder *decoder, size_t size) {
    struct bytes frame = buf_bytes(&reader->frame);
    enum libdeflate_result result =
        libdeflate_gzip_decompress(decoder->deflate, frame.data, frame.size, reader->whole.data, size, NULL);
    return result == LIBDEFLATE_SUCCESS ? ERR_OK : ERR_CORRUPT;
}

/* The size of the record in the frame, as the frame states it. */
static enum err reader_stated_size(struct bytes frame, enum pack_framing framing, uint64_t *ret_size) {
    switch (framing) {
    case PACK_ZSTD: {
        unsigned long long size = ZSTD_getFrameContentSize(frame.data, frame.size);
        *ret_size = size;
        return size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN ? ERR_CORRUPT : ERR_OK;
    }
    case PACK_GZIP: {
        if (frame.size < GZIP_SIZE_MIN) {
            return ERR_CORRUPT;
        }
        const uint8_t *tail = frame.data + frame.size - 4; /* little-endian, ends a member */
        *ret_size = tail[0] | (uint32_t)tail[1] << 8 | (uint32_t)tail[2] << 16 | (uint32_t)tail[3] << 24;
        return ERR_OK;
    }
    case PACK_PLAIN:
        *ret_size = frame.size;
        return ERR_OK;
    }
    assert_failed("every framing has a size", __FILE__, __LINE__);
}

/* Into reader->whole, which has room for it. */
static enum err reader_decode_with(struct volume_reader *reader, struct decoder *decoder,
                                   const struct segment *segment, size_t size) {
    struct bytes record;
    if (!prefix_decoder_takes(&decoder->prefix, segment, size)) {
        return segment->framing == PACK_ZSTD ? reader_decode_zstd(reader, decoder, segment, size)
                                             : reader_decode_gzip(reader, decoder, size);
    }
    enum err err =
        prefix_decoder_run(&decoder->prefix, decoder->zstd, buf_bytes(&reader->frame), size, &record);
    return err == ERR_OK ? buf_put(&reader->whole, record) : err;
}

static enum err reader_decode_whole(struct volume_reader *reader, const struct segment *segment,
                                    size_t size) {
    if (segment->framing == PACK_PLAIN) {
        reader->record = buf_bytes(&reader->frame);
        return ERR_OK;
    }
    struct decoders *decoders = &reader->volume->decoders;
    struct decoder *decoder = decoders_take(decoders);
    if (decoder == NULL) {
        return ERR_MEMORY;
    }
    buf_clear(&reader->whole);
    enum err err = buf_reserve(&reader->whole, size);
    if (err == ERR_OK) {
        err = reader_decode_with(reader, decoder, segment, size);
    }
    decoders_give(decoders, decoder);
    reader->record = bytes_of(reader->whole.data, size);
    return err;
}

/* ---- large records: in pieces ---- */

static enum err reader_prepare_unpack(struct volume_reader *reader) {
    if (reader->has_unpack) {
        return ERR_OK;
    }
    enum err err = unpack_init(&reader->unpack, NULL);
    reader->has_unpack = err == ERR_OK;
    return err;
}

/* A member's own checksum is compared at its end, so nothing is returned before. */
static enum err reader_unpack_member(struct volume_reader *reader, uint64_t end, uint64_t size_wanted) {
    struct unpack *unpack = &reader->unpack;
    for (;;) {
        enum unpack_event event;
        enum err err = unpack_fill(unpack, &event, NULL);
        if (err != ERR_OK) {
            return err;
        }
        if (event != UNPACK_BYTES) {
            return event == UNPACK_MEMBER_END && unpack_stored_end(unpack) == end ? ERR_OK : ERR_CORRUPT;
        }
        struct bytes ready = unpack_ready(unpack);
        err = scratch_put(&reader->pieces, ready);
        if (err != ERR_OK) {
            return err == ERR_LIMIT ? ERR_CORRUPT : err;
        }
        unpack_consume(unpack, ready.size);
        if (reader->pieces.size >= size_wanted) {
            return ERR_OK;
        }
    }
}

static enum err reader_copy_plain(struct volume_reader *reader, struct segment_source *source,
                                  uint64_t size_wanted) {
    enum err err = buf_reserve(&reader->frame, WHOLE_SIZE_MAX);
    for (size_t got = 1; got > 0 && err == ERR_OK;) {
        err = source_read(&source->source, reader->frame.data, WHOLE_SIZE_MAX, &got, NULL);
        if (err == ERR_OK) {
            err = scratch_put(&reader->pieces, bytes_of(reader->frame.data, got));
        }
        if (err == ERR_OK && reader->pieces.size >= size_wanted) {
            return ERR_OK;
        }
    }
    return err == ERR_OK && source->offset < source->end ? ERR_CORRUPT : err;
}

static enum err reader_decode_pieces(struct volume_reader *reader, const struct segment *segment,
                                     const struct location *location, uint64_t size_wanted) {
    struct segment_source source;
    segment_source_init(&source, segment, location->offset + location->length);
    buf_clear(&reader->frame);
    enum err err = ERR_OK;
    if (segment->framing == PACK_PLAIN) {
        source.offset = location->offset;
        err = reader_copy_plain(reader, &source, size_wanted);
    } else {
        err = reader_prepare_unpack(reader);
        if (err == ERR_OK) {
            unpack_open(&reader->unpack, &source.source);
            err = unpack_seek(&reader->unpack, location->offset, NULL);
        }
        if (err == ERR_OK) {
            err = reader_unpack_member(reader, source.end, size_wanted);
        }
    }
    return err == ERR_OK ? scratch_bytes(&reader->pieces, &reader->record) : err;
}

/* ---- records ---- */

/* At least size_wanted bytes of the record, or all there are. */
static enum err reader_decode(struct volume_reader *reader, const struct segment *segment,
                              const struct location *location, uint64_t size_wanted) {
    if (location->length > WHOLE_SIZE_MAX) {
        return reader->is_brief ? ERR_LIMIT : reader_decode_pieces(reader, segment, location, size_wanted);
    }
    uint64_t size;
    enum err err = segment_read(segment, location, &reader->frame);
    if (err == ERR_OK) {
        err = reader_stated_size(buf_bytes(&reader->frame), segment->framing, &size);
    }
    if (err != ERR_OK) {
        return err;
    }
    if (size <= WHOLE_SIZE_MAX) {
        return reader_decode_whole(reader, segment, (size_t)size);
    }
    return reader->is_brief ? ERR_LIMIT : reader_decode_pieces(reader, segment, location, size_wanted);
}

static enum err reader_get_record(struct volume_reader *reader, const struct location *location,
                                  uint64_t size_wanted, struct bytes *ret_record, struct err_detail *detail) {
    buf_clear(&reader->frame);
    scratch_clear(&reader->pieces);
    struct segment *segment;
    enum err err = volume_hold(reader->volume, location->segment, &segment);
    if (err != ERR_OK) {
        return err_set(detail, err, "segment %u is missing", location->segment);
    }
    err = reader_decode(reader, segment, location, size_wanted);
    volume_release(segment);
    bool is_put_off = reader->is_brief && err == ERR_LIMIT;
    if (segment_is_damage(err) && !is_put_off) {
        err = ERR_CORRUPT;
    }
    if (err != ERR_OK) {
        return err_set_at(detail, err, location->offset, "segment %u, byte %ju: %s", location->segment,
                          (uintmax_t)location->offset, err_text(err));
    }
    *ret_record = reader->record;
    return ERR_OK;
}

enum err volume_get_record(struct volume_reader *reader, const struct location *location,
                           struct bytes *ret_record, struct err_detail *detail) {
    return reader_get_record(reader, location, UINT64_MAX, ret_record, detail);
}

enum err volume_get_brief_record(struct volume_reader *reader, const struct location *location,
                                 struct bytes *ret_record, struct err_detail *detail) {
    reader->is_brief = true;
    enum err err = reader_get_record(reader, location, UINT64_MAX, ret_record, detail);
    reader->is_brief = false;
    return err;
}

enum err volume_get_head(struct volume_reader *reader, const struct location *location,
                         struct bytes *ret_head, struct err_detail *detail) {
    return reader_get_record(reader, location, WARC_RECORD_HEAD_SIZE_MAX, ret_head, detail);
}

/* ---- documents ---- */

enum { TRIES_MAX = 8 };

/* What reading a document needs of a record's header. */
struct volume_header {
    uint64_t content_length;
    bool is_http;
};

/*
 * The header as our writer makes it; false if it is not so simple (a folded line, say). This runs for
 * every document that is read, and takes a fifth of the time of parsing all fields.
 */
static bool reader_skim_header(struct bytes head, struct volume_header *ret_header) {
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
            struct mime_type type;
            (void)mime_type_extract(&type, bytes_skip(line, sizeof "Content-Type: " - 1));
            ret_header->is_http = mime_type_is(&type, "application/http");
        }
    }
    return has_length;
}

/* The block of the record in reader->record. */
static enum err reader_find_block(struct volume_reader *reader, bool *ret_is_http, struct bytes *ret_block) {
    struct bytes record = reader->record;
    size_t end = bytes_find(record, BYTES("\r\n\r\n"));
    struct volume_header header;
    if (end < record.size && reader_skim_header(bytes_slice(record, 0, end + 4), &header)) {
        struct bytes rest = bytes_skip(record, end + 4);
        if (header.content_length > rest.size) {
            return ERR_CORRUPT;
        }
        *ret_is_http = header.is_http;
        *ret_block = bytes_slice(rest, 0, (size_t)header.content_length);
        return ERR_OK;
    }
    if (!warc_record_split(&reader->parsed, record, &reader->head, ret_block)) {
        return ERR_CORRUPT;
    }
    *ret_is_http = warc_record_is_http(&reader->parsed);
    return ERR_OK;
}

/* The payload of the record: mostly one piece of it; put together where it came in chunks. */
static enum err reader_find_document(struct volume_reader *reader, struct bytes *ret_document) {
    struct bytes block;
    bool is_http;
    enum err err = reader_find_block(reader, &is_http, &block);
    if (err != ERR_OK) {
        return err;
    }
    struct bytes first = bytes_of(NULL, 0);
    struct bytes part;
    size_t parts_count = 0;
    scratch_clear(&reader->document);
    payload_start(&reader->payload, is_http);
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
static bool reader_is_intact(struct volume_reader *reader, const struct key *key, const struct block *block,
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
static enum err reader_read_block(struct volume_reader *reader, const struct key *key,
                                  struct block *ret_block, struct err_detail *detail) {
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
    enum err err = reader_read_block(reader, key, &block, detail);
    if (err != ERR_OK) {
        return err;
    }
    struct bytes document;
    err = reader_find_document(reader, &document);
    if (err == ERR_OK && !reader_is_intact(reader, key, &block, document)) {
        err = ERR_CORRUPT;
    }
    if (err != ERR_OK) {
        return err_set_at(detail, err, block.location.offset, "segment %u, byte %ju: %s",
                          block.location.segment, (uintmax_t)block.location.offset, err_text(err));
    }
    *ret_document = document;
    return ERR_OK;
}

/* ---- whether a record is sound ---- */

enum err volume_check_record(struct volume_reader *reader, const struct location *location,
                             bool *ret_is_sound) {
    struct bytes record;
    struct warc_check check;
    enum err err = volume_get_record(reader, location, &record, NULL);
    if (err == ERR_CORRUPT || err == ERR_NOT_FOUND) {
        *ret_is_sound = false;
        return ERR_OK;
    }
    if (err == ERR_OK) {
        err = warc_check_init(&check);
    }
    if (err != ERR_OK) {
        return err;
    }
    struct bytes block;
    *ret_is_sound = warc_record_split(&reader->parsed, record, &reader->head, &block);
    if (*ret_is_sound) {
        warc_check_start(&check, &reader->parsed);
        warc_check_feed(&check, block);
        warc_check_finish(&check);
        *ret_is_sound = warc_check_is_good(&check);
    }
    warc_check_done(&check);
    return ERR_OK;
}
