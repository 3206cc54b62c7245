#define ZSTD_STATIC_LINKING_ONLY /* how a dictionary is used */

#include "warc/pack.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

enum {
    ZLIB_GZIP = 15 + 16, /* largest window, gzip header and trailer */
    ZLIB_MEMORY = 8,     /* zlib's default */
    GZIP_LEVEL = 6,
    GZIP_LEVEL_MAX = 9,
    ZSTD_LEVEL = 3,
    ATTACHED_SIZE_MAX = 64 << 10,
    ZSTD_LEVEL_MAX = 19,            /* above, windows are larger than readers of .warc.zst have to allow */
    ZSTD_LEVEL_INCOMPRESSIBLE = -7, /* looks at little and copies the rest: 10 times as fast */
};

static enum err init_gzip(struct pack *pack) {
    pack->deflate = libdeflate_alloc_compressor(pack->options.level);
    pack->deflate_stored = libdeflate_alloc_compressor(0);
    pack->stream = calloc(1, sizeof *pack->stream);
    if (pack->deflate == NULL || pack->deflate_stored == NULL || pack->stream == NULL) {
        return ERR_MEMORY;
    }
    ASSERT(libdeflate_gzip_compress_bound(pack->deflate, PACK_WHOLE_SIZE_MAX) <= PACK_OUT_SIZE);
    int result = deflateInit2(pack->stream, pack->options.level, Z_DEFLATED, ZLIB_GZIP, ZLIB_MEMORY,
                              Z_DEFAULT_STRATEGY);
    if (result != Z_OK) {
        free(pack->stream);
        pack->stream = NULL;
        return ERR_MEMORY;
    }
    return ERR_OK;
}

static enum err init_zstd(struct pack *pack) {
    pack->zstd = ZSTD_createCCtx();
    if (pack->zstd == NULL) {
        return ERR_MEMORY;
    }
    ASSERT(ZSTD_compressBound(PACK_WHOLE_SIZE_MAX) <= PACK_OUT_SIZE);
    size_t result = ZSTD_CCtx_setParameter(pack->zstd, ZSTD_c_checksumFlag, 1);
    ASSERT(!ZSTD_isError(result));
    return ERR_OK;
}

enum err pack_init(struct pack *pack, struct sink *sink, const struct pack_options *options) {
    ASSERT(options->dictionary == NULL || options->framing == PACK_ZSTD);
    ASSERT(options->dictionary == NULL || options->dictionary->encoder != NULL);
    ASSERT(options->level >= 0 &&
           options->level <= (options->framing == PACK_GZIP ? GZIP_LEVEL_MAX : ZSTD_LEVEL_MAX));
    *pack = (struct pack){.options = *options, .sink = sink};
    if (options->level == 0) {
        pack->options.level = options->framing == PACK_GZIP ? GZIP_LEVEL : ZSTD_LEVEL;
    }
    pack->whole = malloc(PACK_WHOLE_SIZE_MAX);
    pack->out = malloc(PACK_OUT_SIZE);
    enum err err = pack->whole == NULL || pack->out == NULL ? ERR_MEMORY : ERR_OK;
    if (err == ERR_OK && options->framing == PACK_GZIP) {
        err = init_gzip(pack);
    } else if (err == ERR_OK && options->framing == PACK_ZSTD) {
        err = init_zstd(pack);
    }
    if (err != ERR_OK) {
        pack_done(pack);
    }
    return err;
}

void pack_done(struct pack *pack) {
    libdeflate_free_compressor(pack->deflate);
    libdeflate_free_compressor(pack->deflate_stored);
    if (pack->stream != NULL) {
        deflateEnd(pack->stream);
        free(pack->stream);
    }
    ZSTD_freeCCtx(pack->zstd);
    free(pack->whole);
    free(pack->out);
    *pack = (struct pack){0};
}

static enum err pack_append(struct pack *pack, struct bytes bytes, struct err_detail *detail) {
    pack->stored_size += bytes.size;
    return bytes.size == 0 ? ERR_OK : sink_append(pack->sink, bytes, detail);
}

static const ZSTD_CDict *encoder_for(const struct pack *pack, const struct zdict *dictionary, uint64_t size) {
    if (dictionary == NULL) {
        return NULL;
    }
    return size > ZDICT_SMALL_SIZE_MAX ? dictionary->encoder
           : pack->effort == PACK_FINE ? dictionary->fine_encoder
                                       : dictionary->small_encoder;
}

/* A frame that does not use the dictionary need not name it. */
static void start_zstd(struct pack *pack, uint64_t size) {
    const struct zdict *dictionary = pack->effort == PACK_INCOMPRESSIBLE ? NULL : pack->options.dictionary;
    int level = pack->effort == PACK_INCOMPRESSIBLE ? ZSTD_LEVEL_INCOMPRESSIBLE : pack->options.level;
    size_t result = ZSTD_CCtx_reset(pack->zstd, ZSTD_reset_session_only);
    ASSERT(!ZSTD_isError(result));
    result = ZSTD_CCtx_setParameter(pack->zstd, ZSTD_c_compressionLevel, level);
    ASSERT(!ZSTD_isError(result));
    /* zstd would copy the tables of the dictionary for all but the smallest records: for a page that costs
     * more than looking into them from where they are. */
    int attaches = size <= ATTACHED_SIZE_MAX ? ZSTD_dictForceAttach : ZSTD_dictDefaultAttach;
    result = ZSTD_CCtx_setParameter(pack->zstd, ZSTD_c_forceAttachDict, attaches);
    ASSERT(!ZSTD_isError(result));
    /* The encoder for small records takes long steps: zstd would think that there is no time for literals. */
    bool is_small =
        dictionary != NULL && size <= ZDICT_SMALL_SIZE_MAX; /* and of the fine one nothing is lost */
    int literals = is_small ? ZSTD_ps_enable : ZSTD_ps_auto;
    result = ZSTD_CCtx_setParameter(pack->zstd, ZSTD_c_literalCompressionMode, literals);
    ASSERT(!ZSTD_isError(result));
    result = ZSTD_CCtx_refCDict(pack->zstd, encoder_for(pack, dictionary, size));
    ASSERT(!ZSTD_isError(result));
    result = ZSTD_CCtx_setPledgedSrcSize(pack->zstd, size);
    ASSERT(!ZSTD_isError(result));
}

static void start_gzip(struct pack *pack) {
    int result = deflateReset(pack->stream);
    ASSERT(result == Z_OK);
    int level = pack->effort == PACK_INCOMPRESSIBLE ? Z_NO_COMPRESSION : pack->options.level;
    result = deflateParams(pack->stream, level, Z_DEFAULT_STRATEGY);
    ASSERT(result == Z_OK);
}

enum err pack_start(struct pack *pack, uint64_t size, enum pack_effort effort, struct err_detail *detail) {
    if (size > INT64_MAX) {
        return err_set(detail, ERR_LIMIT, "no record is that large");
    }
    pack->left = size;
    pack->stored_size = 0;
    pack->whole_size = 0;
    pack->is_whole = size <= PACK_WHOLE_SIZE_MAX;
    pack->effort = effort;
    if (pack->options.framing == PACK_ZSTD) {
        start_zstd(pack, size);
    } else if (pack->options.framing == PACK_GZIP && !pack->is_whole) {
        start_gzip(pack);
    }
    return ERR_OK;
}

static enum err stream_gzip(struct pack *pack, struct bytes bytes, bool is_last, struct err_detail *detail) {
    z_stream *stream = pack->stream;
    for (int result = Z_OK; result != Z_STREAM_END;) {
        /* avail_in is 32 bits wide, a body may be larger. */
        size_t taken = bytes.size < PACK_OUT_SIZE ? bytes.size : PACK_OUT_SIZE;
        bool is_final = is_last && taken == bytes.size;
        stream->next_in = (uint8_t *)(uintptr_t)bytes.data; /* zlib does not write to it */
        stream->avail_in = (uInt)taken;
        stream->next_out = pack->out;
        stream->avail_out = PACK_OUT_SIZE;
        result = deflate(stream, is_final ? Z_FINISH : Z_NO_FLUSH);
        ASSERT(result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR);
        bytes = bytes_skip(bytes, taken - stream->avail_in);
        enum err err = pack_append(pack, bytes_of(pack->out, PACK_OUT_SIZE - stream->avail_out), detail);
        if (err != ERR_OK) {
            return err;
        }
        if (bytes.size == 0 && !is_last && stream->avail_out > 0) {
            break;
        }
    }
    return ERR_OK;
}

static enum err stream_zstd(struct pack *pack, struct bytes bytes, bool is_last, struct err_detail *detail) {
    ZSTD_inBuffer input = {bytes.data, bytes.size, 0};
    for (size_t left = 1; left > 0 && (is_last || input.pos < input.size);) {
        ZSTD_outBuffer output = {pack->out, PACK_OUT_SIZE, 0};
        left = ZSTD_compressStream2(pack->zstd, &output, &input, is_last ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left)) {
            return err_set(detail, ERR_MEMORY, "zstd: %s", ZSTD_getErrorName(left));
        }
        enum err err = pack_append(pack, bytes_of(pack->out, output.pos), detail);
        if (err != ERR_OK) {
            return err;
        }
        left = is_last ? left : input.size - input.pos;
    }
    return ERR_OK;
}

static enum err stream(struct pack *pack, struct bytes bytes, bool is_last, struct err_detail *detail) {
    switch (pack->options.framing) {
    case PACK_GZIP:
        return stream_gzip(pack, bytes, is_last, detail);
    case PACK_ZSTD:
        return stream_zstd(pack, bytes, is_last, detail);
    case PACK_PLAIN:
        break;
    }
    return pack_append(pack, bytes, detail);
}

enum err pack_write(struct pack *pack, struct bytes bytes, struct err_detail *detail) {
    ASSERT(bytes.size <= pack->left);
    pack->left -= bytes.size;
    if (!pack->is_whole) {
        return stream(pack, bytes, false, detail);
    }
    if (bytes.size > 0) {
        memcpy(pack->whole + pack->whole_size, bytes.data, bytes.size);
        pack->whole_size += bytes.size;
    }
    return ERR_OK;
}

/* The output is large enough for any input of this size, so that compressing cannot fail. */
static struct bytes compress_whole(struct pack *pack) {
    size_t size = 0;
    switch (pack->options.framing) {
    case PACK_PLAIN:
        return bytes_of(pack->whole, pack->whole_size);
    case PACK_GZIP:
        size = libdeflate_gzip_compress(pack->effort == PACK_INCOMPRESSIBLE ? pack->deflate_stored
                                                                            : pack->deflate,
                                        pack->whole, pack->whole_size, pack->out, PACK_OUT_SIZE);
        ASSERT(size > 0);
        break;
    case PACK_ZSTD:
        size = ZSTD_compress2(pack->zstd, pack->out, PACK_OUT_SIZE, pack->whole, pack->whole_size);
        break;
    }
    return bytes_of(pack->out, size);
}

enum err pack_finish(struct pack *pack, uint64_t *ret_stored_size, struct err_detail *detail) {
    ASSERT(pack->left == 0);
    enum err err;
    if (!pack->is_whole) {
        err = stream(pack, bytes_of(NULL, 0), true, detail);
    } else {
        struct bytes member = compress_whole(pack);
        if (pack->options.framing == PACK_ZSTD && ZSTD_isError(member.size)) {
            return err_set(detail, ERR_MEMORY, "zstd: %s", ZSTD_getErrorName(member.size));
        }
        err = pack_append(pack, member, detail);
    }
    if (err == ERR_OK) {
        *ret_stored_size = pack->stored_size;
    }
    return err;
}
