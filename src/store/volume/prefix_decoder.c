#define ZSTD_STATIC_LINKING_ONLY /* a dictionary that is not copied */

#include "store/volume/prefix_decoder.h"

#include <stdlib.h>
#include <zstd.h>

enum { WANTED_COUNT = 16 }; /* records of a dictionary in a row before it is set up */

void prefix_decoder_init(struct prefix_decoder *decoder) {
    *decoder = (struct prefix_decoder){0};
}

void prefix_decoder_done(struct prefix_decoder *decoder) {
    ZSTD_freeDDict(decoder->dictionary);
    free(decoder->memory);
    prefix_decoder_init(decoder);
}

/* Without memory there is no dictionary, and no harm done. */
static void set_up(struct prefix_decoder *decoder, const struct segment *segment) {
    struct bytes dictionary = buf_bytes(&segment->dictionary_raw);
    prefix_decoder_done(decoder);
    decoder->memory = malloc(dictionary.size + PREFIX_DECODER_RECORD_SIZE_MAX);
    if (decoder->memory == NULL) {
        return;
    }
    memcpy(decoder->memory, dictionary.data, dictionary.size);
    decoder->dictionary_size = dictionary.size;
    decoder->dictionary = ZSTD_createDDict_byReference(decoder->memory, dictionary.size);
    memcpy(decoder->digest, segment->dictionary_digest, sizeof decoder->digest);
    if (decoder->dictionary == NULL) {
        prefix_decoder_done(decoder);
    }
}

static bool is_wanted_often(struct prefix_decoder *decoder, const struct segment *segment) {
    if (memcmp(decoder->wanted_digest, segment->dictionary_digest, sizeof decoder->wanted_digest) != 0) {
        memcpy(decoder->wanted_digest, segment->dictionary_digest, sizeof decoder->wanted_digest);
        decoder->wanted_count = 0;
    }
    return ++decoder->wanted_count >= WANTED_COUNT;
}

bool prefix_decoder_takes(struct prefix_decoder *decoder, const struct segment *segment, size_t size) {
    if (!segment->has_dictionary || size > PREFIX_DECODER_RECORD_SIZE_MAX ||
        segment->dictionary_raw.size > PREFIX_DECODER_DICTIONARY_SIZE_MAX) {
        return false;
    }
    bool is_mine = decoder->memory != NULL &&
                   memcmp(decoder->digest, segment->dictionary_digest, sizeof decoder->digest) == 0;
    if (is_mine) {
        decoder->wanted_count = 0;
        return true;
    }
    if (!is_wanted_often(decoder, segment)) {
        return false;
    }
    set_up(decoder, segment);
    return decoder->memory != NULL;
}

enum err prefix_decoder_run(struct prefix_decoder *decoder, struct ZSTD_DCtx_s *zstd, struct bytes frame,
                            size_t size, struct bytes *ret_record) {
    ASSERT(decoder->memory != NULL && size <= PREFIX_DECODER_RECORD_SIZE_MAX);
    uint8_t *out = decoder->memory + decoder->dictionary_size;
    size_t got = ZSTD_decompress_usingDDict(zstd, out, size, frame.data, frame.size, decoder->dictionary);
    if (ZSTD_isError(got) || got != size) {
        return ERR_CORRUPT;
    }
    *ret_record = bytes_of(out, size);
    return ERR_OK;
}
