/*
 * prefix_decoder - unpacks small zstd records of one dictionary, a sixth faster than zstd does by itself.
 *
 * zstd keeps a dictionary in memory of its own, and each match that reaches into it takes a detour. Here the
 * dictionary lies directly before the place where records are unpacked to, so that for zstd it is simply what
 * came before:
 *
 *      memory    [dictionary | record]
 *
 * Most segments of a volume have the same dictionary. Where another one comes, the decoder moves over to it
 * only when it came often: setting up costs as much as two records.
 *
 * For one thread at a time.
 */
#ifndef MNEMON_STORE_VOLUME_PREFIX_DECODER_H
#define MNEMON_STORE_VOLUME_PREFIX_DECODER_H

#include "base/sha256.h"
#include "store/volume/segment.h"

enum {
    PREFIX_DECODER_RECORD_SIZE_MAX = 256 << 10,
    PREFIX_DECODER_DICTIONARY_SIZE_MAX = 1 << 20,
};

struct ZSTD_DCtx_s;

struct prefix_decoder {
    uint8_t *memory; /* NULL: there is no dictionary yet */
    size_t dictionary_size;
    struct ZSTD_DDict_s *dictionary;
    uint8_t digest[SHA256_SIZE];        /* of the dictionary */
    uint8_t wanted_digest[SHA256_SIZE]; /* of another one that was asked for … */
    unsigned wanted_count;              /* … so many times in a row */
};

void prefix_decoder_init(struct prefix_decoder *decoder);
void prefix_decoder_done(struct prefix_decoder *decoder);

/* Does it unpack records of the segment, of that size? Else they are for zstd alone. */
bool prefix_decoder_takes(struct prefix_decoder *decoder, const struct segment *segment, size_t size);

/* Unpack the frame of such a record. It stays until the next one. ERR_CORRUPT. */
enum err prefix_decoder_run(struct prefix_decoder *decoder, struct ZSTD_DCtx_s *zstd, struct bytes frame,
                            size_t size, struct bytes *ret_record) MUST_CHECK;

#endif
