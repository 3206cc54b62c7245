#include "store/volume/decoders.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <zstd.h>

static void decoder_free(struct decoder *decoder) {
    ZSTD_freeDCtx(decoder->zstd);
    libdeflate_free_decompressor(decoder->deflate);
    prefix_decoder_done(&decoder->prefix);
    free(decoder);
}

static struct decoder *decoder_new(void) {
    struct decoder *decoder = calloc(1, sizeof *decoder);
    if (decoder == NULL) {
        return NULL;
    }
    prefix_decoder_init(&decoder->prefix);
    decoder->zstd = ZSTD_createDCtx();
    decoder->deflate = libdeflate_alloc_decompressor();
    if (decoder->zstd == NULL || decoder->deflate == NULL) {
        decoder_free(decoder);
        return NULL;
    }
    return decoder;
}

void decoders_init(struct decoders *decoders) {
    *decoders = (struct decoders){.free = NULL};
    pthread_mutex_init(&decoders->lock, NULL);
}

void decoders_done(struct decoders *decoders) {
    while (decoders->free != NULL) {
        struct decoder *decoder = decoders->free;
        decoders->free = decoder->next;
        decoder_free(decoder);
    }
    pthread_mutex_destroy(&decoders->lock);
}

struct decoder *decoders_take(struct decoders *decoders) {
    pthread_mutex_lock(&decoders->lock);
    struct decoder *decoder = decoders->free;
    if (decoder != NULL) {
        decoders->free = decoder->next;
    }
    pthread_mutex_unlock(&decoders->lock);
    return decoder != NULL ? decoder : decoder_new();
}

void decoders_give(struct decoders *decoders, struct decoder *decoder) {
    pthread_mutex_lock(&decoders->lock);
    decoder->next = decoders->free;
    decoders->free = decoder;
    pthread_mutex_unlock(&decoders->lock);
}
