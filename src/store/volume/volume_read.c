#include <libdeflate.h>
#include <stdlib.h>
#include <zstd.h>

#include "store/volume/volume_reader.h"
#include "store/volume/volume_record.h"

enum {
    WHOLE_SIZE_MAX =
        4 << 20, /* records up to this, stored and unpacked, are read at once; others in pieces */
    GZIP_SIZE_MIN = 18,
};

/* A document, and a header before it. */
static const uint64_t RECORD_SIZE_MAX = (UINT64_C(4) << 30) - (UINT64_C(32) << 20);

struct volume_reader *volume_reader_new(struct volume *volume) {
    struct volume_reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL) {
        return NULL;
    }
    reader->volume = volume;
    reader->zstd = ZSTD_createDCtx();
    prefix_decoder_init(&reader->prefix);
    reader->deflate = libdeflate_alloc_decompressor();
    buf_init(&reader->frame, WHOLE_SIZE_MAX);
    buf_init(&reader->whole, WHOLE_SIZE_MAX);
    buf_init(&reader->head, WARC_RECORD_HEAD_SIZE_MAX);
    const char *directory = volume->config.scratch_directory;
    scratch_init(&reader->pieces, directory, SCRATCH_MEMORY_MAX, RECORD_SIZE_MAX);
    scratch_init(&reader->document, directory, SCRATCH_MEMORY_MAX, RECORD_SIZE_MAX);
    if (payload_init(&reader->payload) != ERR_OK || sha256_init(&reader->sha256) != ERR_OK ||
        reader->zstd == NULL || reader->deflate == NULL) {
        volume_reader_free(reader);
        return NULL;
    }
    return reader;
}

void volume_reader_free(struct volume_reader *reader) {
    ZSTD_freeDCtx(reader->zstd);
    prefix_decoder_done(&reader->prefix);
    libdeflate_free_decompressor(reader->deflate);
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

static enum err decode_zstd(struct volume_reader *reader, const struct segment *segment, size_t size) {
    struct bytes frame = buf_bytes(&reader->frame);
    uint8_t *out = reader->whole.data;
    size_t got = segment->has_dictionary
                     ? ZSTD_decompress_usingDDict(reader->zstd, out, size, frame.data, frame.size,
                                                  segment->dictionary.decoder)
                     : ZSTD_decompressDCtx(reader->zstd, out, size, frame.data, frame.size);
    return ZSTD_isError(got) || got != size ? ERR_CORRUPT : ERR_OK;
}

static enum err decode_gzip(struct volume_reader *reader, size_t size) {
    struct bytes frame = buf_bytes(&reader->frame);
    enum libdeflate_result result =
        libdeflate_gzip_decompress(reader->deflate, frame.data, frame.size, reader->whole.data, size, NULL);
    return result == LIBDEFLATE_SUCCESS ? ERR_OK : ERR_CORRUPT;
}

/* The size of the record in the frame, as the frame states it. */
static enum err stated_size(struct bytes frame, enum pack_framing framing, uint64_t *ret_size) {
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

static enum err decode_whole(struct volume_reader *reader, const struct segment *segment, size_t size) {
    if (segment->framing == PACK_PLAIN) {
        reader->record = buf_bytes(&reader->frame);
        return ERR_OK;
    }
    if (prefix_decoder_takes(&reader->prefix, segment, size)) {
        return prefix_decoder_run(&reader->prefix, reader->zstd, buf_bytes(&reader->frame), size,
                                  &reader->record);
    }
    buf_clear(&reader->whole);
    enum err err = buf_reserve(&reader->whole, size);
    if (err == ERR_OK) {
        err = segment->framing == PACK_ZSTD ? decode_zstd(reader, segment, size) : decode_gzip(reader, size);
    }
    reader->record = bytes_of(reader->whole.data, size);
    return err;
}

/* ---- large records: in pieces ---- */

static enum err prepare_unpack(struct volume_reader *reader) {
    if (reader->has_unpack) {
        return ERR_OK;
    }
    enum err err = unpack_init(&reader->unpack, NULL);
    reader->has_unpack = err == ERR_OK;
    return err;
}

/* A member's own checksum is compared at its end, so nothing is returned before. */
static enum err unpack_member(struct volume_reader *reader, uint64_t end, uint64_t size_wanted) {
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

static enum err copy_plain(struct volume_reader *reader, struct segment_source *source,
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

static enum err decode_pieces(struct volume_reader *reader, const struct segment *segment,
                              const struct location *location, uint64_t size_wanted) {
    struct segment_source source;
    segment_source_init(&source, segment, location->offset + location->length);
    buf_clear(&reader->frame);
    enum err err = ERR_OK;
    if (segment->framing == PACK_PLAIN) {
        source.offset = location->offset;
        err = copy_plain(reader, &source, size_wanted);
    } else {
        err = prepare_unpack(reader);
        if (err == ERR_OK) {
            unpack_open(&reader->unpack, &source.source);
            err = unpack_seek(&reader->unpack, location->offset, NULL);
        }
        if (err == ERR_OK) {
            err = unpack_member(reader, source.end, size_wanted);
        }
    }
    return err == ERR_OK ? scratch_bytes(&reader->pieces, &reader->record) : err;
}

/* ---- */

/* At least size_wanted bytes of the record, or all there are. */
static enum err decode(struct volume_reader *reader, const struct segment *segment,
                       const struct location *location, uint64_t size_wanted) {
    if (location->length > WHOLE_SIZE_MAX) {
        return decode_pieces(reader, segment, location, size_wanted);
    }
    uint64_t size;
    enum err err = segment_read(segment, location, &reader->frame);
    if (err == ERR_OK) {
        err = stated_size(buf_bytes(&reader->frame), segment->framing, &size);
    }
    if (err != ERR_OK) {
        return err;
    }
    return size > WHOLE_SIZE_MAX ? decode_pieces(reader, segment, location, size_wanted)
                                 : decode_whole(reader, segment, (size_t)size);
}

static enum err get_record(struct volume_reader *reader, const struct location *location,
                           uint64_t size_wanted, struct bytes *ret_record, struct err_detail *detail) {
    buf_clear(&reader->frame);
    scratch_clear(&reader->pieces);
    struct segment *segment;
    enum err err = volume_hold(reader->volume, location->segment, &segment);
    if (err != ERR_OK) {
        return err_set(detail, err, "segment %u is missing", location->segment);
    }
    err = decode(reader, segment, location, size_wanted);
    volume_release(segment);
    if (volume_is_damage(err)) {
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
    return get_record(reader, location, UINT64_MAX, ret_record, detail);
}

enum err volume_get_head(struct volume_reader *reader, const struct location *location,
                         struct bytes *ret_head, struct err_detail *detail) {
    return get_record(reader, location, WARC_RECORD_HEAD_SIZE_MAX, ret_head, detail);
}
