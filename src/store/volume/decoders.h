/*
 * decoders - what unpacks records of a volume, one after the other for whoever reads.
 *
 * A decoder works with a few hundred kilobytes: tables, and a dictionary (prefix_decoder.h). Readers are as
 * many as there are requests under way; with a decoder for each, answering with a page took 122 µs where it
 * takes 114 with shared ones, as if none were in the processor's cache when its turn comes. So the one that
 * was used last is taken next, and what it has unpacked is copied out. Any thread.
 */
#ifndef MNEMON_STORE_VOLUME_DECODERS_H
#define MNEMON_STORE_VOLUME_DECODERS_H

#include <pthread.h>

#include "store/volume/prefix_decoder.h"

struct libdeflate_decompressor;

struct decoder {
    struct decoder *next; /* of those that rest */
    struct ZSTD_DCtx_s *zstd;
    struct libdeflate_decompressor *deflate;
    struct prefix_decoder prefix;
};

struct decoders {
    pthread_mutex_t lock;
    struct decoder *free; /* lock: the one that was used last is the first */
};

void decoders_init(struct decoders *decoders);
void decoders_done(struct decoders *decoders); /* all have been given back */

struct decoder *decoders_take(struct decoders *decoders); /* NULL: out of memory */
void decoders_give(struct decoders *decoders, struct decoder *take_decoder);

#endif
