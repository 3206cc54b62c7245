/*
 * dictionary - what the records of this archive have in common, so that each of them compresses well alone.
 *
 * The first text documents of a volume are collected; when there are enough, a zstd dictionary is trained
 * from them and every later segment begins with it. Segments share it, and what a segment needs to be read is
 * in the segment itself.
 *
 *      collecting ──> full ──> training (a thread of its own, about 0.05 s) ──> ready ──> taken
 *          ^                                                                      │
 *          └───────────────────── once more, with unchanged visits ───────────────┘
 *
 * The first dictionary is trained before anything was visited a second time. When a volume has come to hold
 * more unchanged visits than anything else, it gets a second and last one: the text of the first, with real
 * visits at its end, and the codes that suit these. A mark in it says so: it is not made again.
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
    DICTIONARY_VISITS_WANTED =
        1024,                    /* of a second dictionary, with fewer records of other kinds among them */
    DICTIONARY_OTHERS_MAX = 256, /* of those, that count for its codes */
};

/* What a record is. */
enum dictionary_kind { DICTIONARY_PAGE, DICTIONARY_VISIT };

enum dictionary_state {
    DICTIONARY_COLLECTING,
    DICTIONARY_FULL,
    DICTIONARY_TRAINING,
    DICTIONARY_READY,
    DICTIONARY_TAKEN, /* both are, or none is wanted */
};

struct dictionary {
    _Atomic(enum dictionary_state) state;
    pthread_mutex_t lock;
    struct buf samples; /* lock, while collecting; then the trainer's */
    size_t sizes[DICTIONARY_SAMPLES_COUNT_MAX + DICTIONARY_VISITS_COUNT]; /* likewise */
    unsigned samples_count;                                               /* likewise */
    struct task trainer;                                                  /* the committer's */
    struct buf result; /* the trainer's, then the committer's; empty if the samples share nothing */
    bool is_second;    /* lock; the trainer's while it trains */
    unsigned
        others_count; /* lock: records seen that are no visits, while samples of the second are collected */
    struct buf first; /* the trainer's: what the second is made from; may be empty */
};

/* present: the dictionary that new segments get so far; empty if there is none. */
void dictionary_init(struct dictionary *dictionary, bool is_wanted, struct bytes present);

/* Waits for a training that is under way. */
void dictionary_done(struct dictionary *dictionary);

/* One record: its parts as they stand one after the other. Cheap when no samples are wanted. */
void dictionary_offer(struct dictionary *dictionary, const struct bytes *parts, size_t parts_count,
                      enum dictionary_kind kind);

/*
 * Go one step further, if there is one to take. True, at most twice, with the dictionary in place of what is
 * in out; false while there is no new one.
 */
bool dictionary_take(struct dictionary *dictionary, struct buf *out);

#endif
