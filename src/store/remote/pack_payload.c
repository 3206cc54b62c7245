#include "store/remote/pack_payload.h"

#include <zstd.h>

enum {
    LEVEL = 1,
    SIZE_MIN = 256,               /* below it, a frame's own bytes eat what it saves */
    PERMILLE_MAX = 930,           /* of the size; above it, unpacking is not worth its time */
    PROBE_ABOVE = 16 << 10,       /* larger ones are packed only if their middle can be */
    PROBE_SIZE = 8 << 10,         /* not their beginning, which is not typical */
    AT_ONCE_SIZE_MAX = 256 << 10, /* larger ones go through zstd in pieces */
    PIECE_SIZE = 128 << 10,
    WINDOW_LOG_MAX = 23, /* 8 MiB, as for .warc.zst */
};

enum err pack_payload_init(struct pack_payload *pack) {
    *pack = (struct pack_payload){.packer = ZSTD_createCCtx(), .unpacker = ZSTD_createDCtx()};
    buf_init(&pack->piece, ZSTD_COMPRESSBOUND(AT_ONCE_SIZE_MAX));
    if (pack->packer == NULL || pack->unpacker == NULL) {
        pack_payload_done(pack);
        return ERR_MEMORY;
    }
    ZSTD_CCtx_setParameter(pack->packer, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(pack->packer, ZSTD_c_checksumFlag, 1);
    ZSTD_DCtx_setParameter(pack->unpacker, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
    return ERR_OK;
}

void pack_payload_done(struct pack_payload *pack) {
    ZSTD_freeCCtx(pack->packer);
    ZSTD_freeDCtx(pack->unpacker);
    buf_done(&pack->piece);
}

/* Into the piece. */
static enum err pack_at_once(struct pack_payload *pack, struct bytes document) {
    buf_clear(&pack->piece);
    enum err err = buf_reserve(&pack->piece, ZSTD_compressBound(document.size));
    if (err != ERR_OK) {
        return err;
    }
    size_t packed =
        ZSTD_compress2(pack->packer, pack->piece.data, pack->piece.capacity, document.data, document.size);
    if (ZSTD_isError(packed)) {
        return ERR_MEMORY;
    }
    pack->piece.size = packed;
    return ERR_OK;
}

static bool is_worth_it(const struct pack_payload *pack, size_t size) {
    return pack->piece.size <= size / 1000 * PERMILLE_MAX + size % 1000 * PERMILLE_MAX / 1000;
}

static enum err probe(struct pack_payload *pack, struct bytes document, bool *ret_helps) {
    size_t from = (document.size - PROBE_SIZE) / 2;
    enum err err = pack_at_once(pack, bytes_slice(document, from, from + PROBE_SIZE));
    *ret_helps = is_worth_it(pack, PROBE_SIZE);
    return err;
}

static enum err pack_in_pieces(struct pack_payload *pack, struct bytes document, struct scratch *out) {
    buf_clear(&pack->piece);
    enum err err = buf_reserve(&pack->piece, PIECE_SIZE);
    ZSTD_CCtx_reset(pack->packer, ZSTD_reset_session_only);
    ZSTD_CCtx_setPledgedSrcSize(pack->packer, document.size);
    ZSTD_inBuffer input = {document.data, document.size, 0};
    size_t left = 1;
    while (err == ERR_OK && left != 0) {
        ZSTD_outBuffer output = {pack->piece.data, PIECE_SIZE, 0};
        left = ZSTD_compressStream2(pack->packer, &output, &input, ZSTD_e_end);
        err = ZSTD_isError(left) ? ERR_MEMORY : scratch_put(out, bytes_of(output.dst, output.pos));
    }
    return err;
}

enum err pack_payload_put(struct pack_payload *pack, struct bytes document, struct scratch *out,
                          bool *ret_is_packed) {
    bool helps = document.size >= SIZE_MIN;
    enum err err = ERR_OK;
    if (document.size > PROBE_ABOVE) {
        err = probe(pack, document, &helps);
    }
    bool is_packed_at_once = helps && document.size <= AT_ONCE_SIZE_MAX;
    if (err == ERR_OK && is_packed_at_once) {
        err = pack_at_once(pack, document);
        helps = is_worth_it(pack, document.size);
    }
    if (err == ERR_OK && !helps) {
        err = scratch_put(out, document);
    } else if (err == ERR_OK) {
        err = is_packed_at_once ? scratch_put(out, buf_bytes(&pack->piece))
                                : pack_in_pieces(pack, document, out);
    }
    if (err == ERR_OK) {
        *ret_is_packed = helps;
    }
    return err;
}

static enum err unpack_at_once(struct pack_payload *pack, struct bytes frame, size_t size,
                               struct scratch *out) {
    buf_clear(&pack->piece);
    enum err err = buf_reserve(&pack->piece, size + 1); /* an empty document has an address too */
    if (err != ERR_OK) {
        return err;
    }
    size_t got = ZSTD_decompressDCtx(pack->unpacker, pack->piece.data, size, frame.data, frame.size);
    if (ZSTD_isError(got) || got != size) {
        return ERR_INVALID;
    }
    return scratch_put(out, bytes_of(pack->piece.data, got));
}

static enum err unpack_in_pieces(struct pack_payload *pack, struct bytes frame, uint64_t size,
                                 struct scratch *out) {
    buf_clear(&pack->piece);
    enum err err = buf_reserve(&pack->piece, PIECE_SIZE);
    ZSTD_DCtx_reset(pack->unpacker, ZSTD_reset_session_only);
    ZSTD_inBuffer input = {frame.data, frame.size, 0};
    size_t left = 1;
    uint64_t got = 0;
    while (err == ERR_OK && left != 0) {
        ZSTD_outBuffer output = {pack->piece.data, PIECE_SIZE, 0};
        size_t before = input.pos;
        left = ZSTD_decompressStream(pack->unpacker, &output, &input);
        got += output.pos;
        if (ZSTD_isError(left) || got > size) {
            return ERR_INVALID;
        }
        if (left != 0 && output.pos == 0 && input.pos == before) {
            return ERR_TRUNCATED;
        }
        err = scratch_put(out, bytes_of(output.dst, output.pos));
    }
    return err != ERR_OK ? err : got == size ? ERR_OK : ERR_INVALID;
}

enum err pack_payload_unpack(struct pack_payload *pack, struct bytes frame, uint64_t size_max,
                             struct scratch *out, struct err_detail *detail) {
    unsigned long long size = ZSTD_getFrameContentSize(frame.data, frame.size);
    if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN) {
        return err_set(detail, ERR_INVALID, "no zstd frame that states its size");
    }
    if (size > size_max) {
        return err_set(detail, ERR_LIMIT, "a zstd frame of %llu bytes, above %ju", size, (uintmax_t)size_max);
    }
    if (ZSTD_findFrameCompressedSize(frame.data, frame.size) != frame.size) {
        return err_set(detail, ERR_INVALID, "not exactly one zstd frame");
    }
    enum err err = size <= AT_ONCE_SIZE_MAX ? unpack_at_once(pack, frame, (size_t)size, out)
                                            : unpack_in_pieces(pack, frame, size, out);
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "a damaged zstd frame");
}
