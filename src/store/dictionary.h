/*
 * dictionary - what the pages of this archive have in common, so that each of them compresses well alone.
 *
 * The first text documents of a volume are collected; when there are enough, a zstd dictionary is trained
 * from them and every later segment begins with it. It is trained once: segments then share it, and what a
 * segment needs to be read is in the segment itself.
 *
 * Writers offer samples from their threads; the committer trains.
 */
#ifndef MNEMON_STORE_DICTIONARY_H
#define MNEMON_STORE_DICTIONARY_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"

enum {
    DICTIONARY_SIZE = 112 << 10, /* zstd's own advice */
    DICTIONARY_SAMPLES_SIZE =
        4 << 20, /* about a hundred times the dictionary is enough, half of that will do */
    DICTIONARY_SAMPLE_SIZE_MAX = 16 << 10, /* of one document: one long page must not be all there is */
    DICTIONARY_SAMPLES_COUNT_MAX = 8192,
};

struct dictionary {
    pthread_mutex_t lock;
    atomic_bool is_wanted;                      /* samples are still collected */
    struct buf samples;                         /* lock */
    size_t sizes[DICTIONARY_SAMPLES_COUNT_MAX]; /* lock */
    unsigned samples_count;                     /* lock */
};

void dictionary_init(struct dictionary *dictionary, bool is_wanted);
void dictionary_done(struct dictionary *dictionary);

/* One record: its parts as they stand one after the other. Cheap when no samples are wanted. */
void dictionary_offer(struct dictionary *dictionary, const struct bytes *parts, size_t parts_count);

/*
 * Train, when enough was offered: true with the dictionary in out. False while there is not enough, or where
 * the samples have nothing in common; then it is not tried again.
 */
bool dictionary_train(struct dictionary *dictionary, struct buf *out);

#endif
