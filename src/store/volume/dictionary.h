/*
 * dictionary - what the pages of this archive have in common, so that each of them compresses well alone.
 *
 * The first text documents of a volume are collected; when there are enough, a zstd dictionary is trained
 * from them and every later segment begins with it. It is trained once: segments then share it, and what a
 * segment needs to be read is in the segment itself.
 *
 *      collecting ──> full ──> training (a thread of its own, about 0.05 s) ──> ready ──> taken
 *
 * Writers offer samples from their threads; the committer starts the training and takes its result, and never
 * waits for it.
 */
#ifndef MNEMON_STORE_VOLUME_DICTIONARY_H
#define MNEMON_STORE_VOLUME_DICTIONARY_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "run/task.h"
#include "store/volume/dictionary_visits.h"

enum {
    DICTIONARY_SIZE = 112 << 10,           /* zstd's own advice */
    DICTIONARY_SAMPLES_SIZE = 4 << 20,     /* twice as much makes pages 1.5 % smaller, and the start longer */
    DICTIONARY_SAMPLE_SIZE_MAX = 16 << 10, /* of one document: one long page must not be all there is */
    DICTIONARY_SAMPLES_COUNT_MAX = 8192,
};

enum dictionary_state {
    DICTIONARY_COLLECTING,
    DICTIONARY_FULL,
    DICTIONARY_TRAINING,
    DICTIONARY_READY,
    DICTIONARY_TAKEN, /* or not wanted, or in vain */
};

struct dictionary {
    _Atomic(enum dictionary_state) state;
    pthread_mutex_t lock;
    struct buf samples; /* lock, while collecting; then the trainer's */
    size_t sizes[DICTIONARY_SAMPLES_COUNT_MAX + DICTIONARY_VISITS_COUNT]; /* likewise */
    unsigned samples_count;                                               /* likewise */
    struct task trainer;                                                  /* the committer's */
    struct buf result; /* the trainer's, then the committer's; empty if the samples share nothing */
};

void dictionary_init(struct dictionary *dictionary, bool is_wanted);

/* Waits for a training that is under way. */
void dictionary_done(struct dictionary *dictionary);

/* One record: its parts as they stand one after the other. Cheap when no samples are wanted. */
void dictionary_offer(struct dictionary *dictionary, const struct bytes *parts, size_t parts_count);

/*
 * Go one step further, if there is one to take: true, once, with the dictionary appended to out. False while
 * there is none, and for ever where the samples have nothing in common.
 */
bool dictionary_take(struct dictionary *dictionary, struct buf *out);

#endif
