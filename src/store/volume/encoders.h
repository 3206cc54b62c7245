/*
 * encoders - the compressors of a volume, shared by all writers.
 *
 * A compressor's tables take hundreds of kilobytes. With one for each of 64 writers they push each other out
 * of the processor's cache: storing a page of 12 KB then cost 220 us of processor time instead of 120. So
 * they are a stack: the one that was used last is given out first, and only as many are in use as there are
 * writers compressing at the same time.
 */
#ifndef MNEMON_STORE_VOLUME_ENCODERS_H
#define MNEMON_STORE_VOLUME_ENCODERS_H

#include <pthread.h>

#include "base/scratch.h"
#include "store/volume/segment.h"
#include "warc/warc_writer.h"

struct encoder {
    struct encoder *next;
    struct scratch_sink sink;
    struct warc_writer warc;
    uint32_t segment; /* number of the one that it is set up for; 0: none */
};

struct encoders {
    pthread_mutex_t lock;
    struct encoder *free; /* lock: last used first */
    int level;
    struct warc_random random;
};

void encoders_init(struct encoders *encoders, int level, struct warc_random random);

/* All have been returned. */
void encoders_done(struct encoders *encoders);

/* One that writes into out, with the dictionary of the segment; its offsets count from the start of
 * out. */
enum err encoders_take(struct encoders *encoders, const struct segment *segment, struct scratch *out,
                       struct encoder **ret_encoder) MUST_CHECK;
void encoders_return(struct encoders *encoders, struct encoder *encoder);

#endif
