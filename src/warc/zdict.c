#define ZSTD_STATIC_LINKING_ONLY /* a dictionary with parameters of our own */

#include "warc/zdict.h"

#include <stdlib.h>
#include <zstd.h>

enum {
    FRAME_LEVEL =
        9, /* written once per file, while writers wait: above, a few bytes take ten times as long */
    LONG_MATCH = 6,
    LONG_MATCH_LEVEL_MAX = 4,
    SMALL_LEVEL = 1,
    SMALL_HASH_LOG = 14, /* 64 KiB */
    SMALL_MATCH = 6,
    SMALL_STEP = 4,
    FINE_LEVEL = 19,
};

/*
 * At the fast levels zstd would also take matches of 5 bytes. From 6 on records grow by 3 %, but there are
 * fewer sequences and unpacking, which happens far more often, is 13 % faster.
 */
static ZSTD_CDict *new_encoder(struct bytes dictionary, int level) {
    ZSTD_compressionParameters parameters = ZSTD_getCParams(level, ZSTD_CONTENTSIZE_UNKNOWN, dictionary.size);
    if (level <= LONG_MATCH_LEVEL_MAX && parameters.minMatch < LONG_MATCH) {
        parameters.minMatch = LONG_MATCH;
    }
    return ZSTD_createCDict_advanced(dictionary.data, dictionary.size, ZSTD_dlm_byCopy, ZSTD_dct_auto,
                                     parameters, ZSTD_defaultCMem);
}

/*
 * The tables of the encoder above are larger than a processor's nearest caches: for a small record, each look
 * into them is a wait for memory. This one's are not. A revisit record takes 2 us less, of 5, and with every
 * position of a short text in the table it is even smaller: 240 bytes instead of 265. Not looking at every
 * position of the record, most of which are digits that occur nowhere else, halves that time again and costs
 * no byte.
 */
static ZSTD_CDict *new_small_encoder(struct bytes dictionary) {
    ZSTD_compressionParameters parameters = ZSTD_getCParams(SMALL_LEVEL, ZDICT_SMALL_SIZE_MAX, 0);
    parameters.hashLog = SMALL_HASH_LOG;
    parameters.minMatch = SMALL_MATCH;
    parameters.targetLength = SMALL_STEP;
    return ZSTD_createCDict_advanced(dictionary.data, dictionary.size, ZSTD_dlm_byCopy, ZSTD_dct_auto,
                                     parameters, ZSTD_defaultCMem);
}

/* The best that there is: 40 us for a record that waited for a server and is kept for ever. */
static ZSTD_CDict *new_fine_encoder(struct bytes dictionary) {
    ZSTD_compressionParameters parameters =
        ZSTD_getCParams(FINE_LEVEL, ZDICT_SMALL_SIZE_MAX, dictionary.size);
    return ZSTD_createCDict_advanced(dictionary.data, dictionary.size, ZSTD_dlm_byCopy, ZSTD_dct_auto,
                                     parameters, ZSTD_defaultCMem);
}

enum err zdict_init(struct zdict *zdict, struct bytes dictionary, int level, struct err_detail *detail) {
    if (dictionary.size == 0 || dictionary.size > ZDICT_SIZE_MAX) {
        return err_set(detail, dictionary.size == 0 ? ERR_INVALID : ERR_LIMIT,
                       "a dictionary of %zu bytes; 1 to %d are allowed", dictionary.size, ZDICT_SIZE_MAX);
    }
    struct zdict made = {
        .decoder = ZSTD_createDDict(dictionary.data, dictionary.size),
        .id = ZSTD_getDictID_fromDict(dictionary.data, dictionary.size),
    };
    if (level != ZDICT_LEVEL_NONE) {
        made.encoder = new_encoder(dictionary, level);
        made.small_encoder = new_small_encoder(dictionary);
        made.fine_encoder = new_fine_encoder(dictionary);
    }
    bool has_encoders = made.encoder != NULL && made.small_encoder != NULL && made.fine_encoder != NULL;
    if (made.decoder == NULL || (level != ZDICT_LEVEL_NONE && !has_encoders)) {
        zdict_done(&made);
        return err_set(detail, ERR_INVALID, "zstd does not take the dictionary of %zu bytes",
                       dictionary.size);
    }
    *zdict = made;
    return ERR_OK;
}

/* Decode the one frame of a compressed dictionary into memory of the heap. */
static enum err decompress(struct bytes content, struct buf *out, struct err_detail *detail) {
    unsigned long long size = ZSTD_getFrameContentSize(content.data, content.size);
    if (size == ZSTD_CONTENTSIZE_ERROR) {
        return err_set(detail, ERR_INVALID, "the compressed dictionary has a broken header");
    }
    /* Not all writers state the size; then the limit is the only measure there is. */
    size_t capacity = size == ZSTD_CONTENTSIZE_UNKNOWN ? ZDICT_SIZE_MAX : (size_t)size;
    if (size != ZSTD_CONTENTSIZE_UNKNOWN && size > ZDICT_SIZE_MAX) {
        return err_set(detail, ERR_LIMIT, "the dictionary has %llu bytes; at most %d are allowed", size,
                       ZDICT_SIZE_MAX);
    }
    if (buf_reserve(out, capacity) != ERR_OK) {
        return err_set(detail, out->err, "%s", err_text(out->err));
    }
    size_t result = ZSTD_decompress(out->data, capacity, content.data, content.size);
    if (ZSTD_isError(result)) {
        return err_set(detail, ERR_INVALID, "the compressed dictionary is broken: %s",
                       ZSTD_getErrorName(result));
    }
    out->size = result;
    return ERR_OK;
}

enum err zdict_unpack(struct bytes content, struct buf *out, struct err_detail *detail) {
    if (!bytes_starts_with(content, BYTES("\x28\xb5\x2f\xfd"))) {
        enum err err = buf_put(out, content);
        return err == ERR_OK ? ERR_OK : err_set(detail, err, "%s", err_text(err));
    }
    return decompress(content, out, detail);
}

enum err zdict_init_content(struct zdict *zdict, struct bytes content, struct err_detail *detail) {
    struct buf dictionary;
    buf_init(&dictionary, ZDICT_SIZE_MAX);
    enum err err = zdict_unpack(content, &dictionary, detail);
    if (err == ERR_OK) {
        err = zdict_init(zdict, buf_bytes(&dictionary), ZDICT_LEVEL_NONE, detail);
    }
    buf_done(&dictionary);
    return err;
}

void zdict_done(struct zdict *zdict) {
    ZSTD_freeDDict(zdict->decoder);
    ZSTD_freeCDict(zdict->encoder);
    ZSTD_freeCDict(zdict->small_encoder);
    ZSTD_freeCDict(zdict->fine_encoder);
    *zdict = (struct zdict){0};
}

static void put_u32(struct buf *out, uint32_t value) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
        buf_put_byte(out, (uint8_t)(value >> shift));
    }
}

enum err zdict_put_frame(struct buf *out, struct bytes dictionary) {
    ASSERT(dictionary.size > 0 && dictionary.size <= ZDICT_SIZE_MAX);
    size_t capacity = ZSTD_compressBound(dictionary.size);
    uint8_t *compressed = malloc(capacity);
    if (compressed == NULL) {
        return ERR_MEMORY;
    }
    size_t result = ZSTD_compress(compressed, capacity, dictionary.data, dictionary.size, FRAME_LEVEL);
    bool is_smaller = !ZSTD_isError(result) && result < dictionary.size;
    struct bytes content = is_smaller ? bytes_of(compressed, result) : dictionary;
    put_u32(out, ZDICT_FRAME_MAGIC);
    put_u32(out, (uint32_t)content.size);
    enum err err = buf_put(out, content);
    free(compressed);
    return err;
}
