/*
 * decrees_state - one machine in two files: decrees.c keeps, checks and signs decrees, decrees_obey.c makes
 * jobs and access rules of them. Private to them.
 */
#ifndef MNEMON_NODE_RING_DECREES_STATE_H
#define MNEMON_NODE_RING_DECREES_STATE_H

#include <pthread.h>
#include <sys/stat.h>

#include "node/ring/decrees.h"

enum { DECREES_PATH_SIZE_MAX = 4096 + 256 };

struct decrees_entry {
    uint8_t id[DECREE_ID_SIZE];
    uint8_t *encoded;
    size_t size;
    struct decree decree; /* borrows from encoded */
    bool is_on_disk;
    bool counts;
    char why_not[ERR_TEXT_SIZE_MAX];
};

struct decrees {
    struct decrees_config config;
    pthread_mutex_t lock;
    struct decrees_entry *entries; /* lock; by id */
    size_t count;
    size_t capacity;
    bool has_charter; /* lock */
    struct charter charter;
    uint8_t ring[CHARTER_ID_SIZE];

    /* The beat's. */
    struct timespec seen; /* of the directory */
    bool is_obeyed;       /* lock: since the last change */
    unsigned again_beats; /* until they are obeyed again; 0: they need not be */
};

/* By the thread of the beat; the lock is not held. Append the encoded decrees that matter, and write jobs and
 * rules as they say. False: the disk did not take all of it. */
bool decrees_obey(struct decrees *decrees);

#endif
