/*
 * search_state - one machine in two files: search.c answers questions, search_feed.c fills the database.
 * Private to them.
 *
 * One lock guards what is marked with it; nobody holds it during I/O. The feeder alone writes to the
 * database.
 */
#ifndef MNEMON_REPLAY_SEARCH_SEARCH_STATE_H
#define MNEMON_REPLAY_SEARCH_SEARCH_STATE_H

#include <pthread.h>

#include "replay/search/search.h"
#include "replay/search/search_database.h"
#include "run/task.h"

enum { SEARCH_PATH_SIZE_MAX = 4096, SEARCH_STALE_MAX = 64 };

/* One local volume. */
struct search_volume {
    uint16_t number;
    struct volume *volume;
    struct index_position position; /* lock: as in the database */
};

/* One connection of an asker. */
struct search_reader {
    sqlite3 *database;
    sqlite3_stmt *find;
    bool is_shown; /* rows from the next on */
    const struct clock *clock;
    uint64_t due_us;
};

/* A thread that answers. */
struct search_asker {
    struct search *search;
    struct search_reader reader;
    uint64_t generation; /* of what the reader has open; 0: nothing */
};

struct search {
    struct search_config config;
    char directory[SEARCH_PATH_SIZE_MAX];
    char path[SEARCH_PATH_SIZE_MAX]; /* of the database */
    struct archive *archive;         /* without rules: they may change, what is in the database stays */
    struct search_volume *volumes;
    size_t volumes_count;

    pthread_mutex_t lock;
    uint64_t generation;                /* lock: of the database; another one after it was made again */
    bool is_open;                       /* lock */
    bool is_damaged;                    /* lock: an asker says so */
    uint64_t documents_count;           /* lock */
    size_t mirrored_left;               /* lock: that are not yet read to their end */
    char error[ERR_TEXT_SIZE_MAX];      /* lock */
    struct key stale[SEARCH_STALE_MAX]; /* lock: documents that were found removed */
    size_t stale_count;                 /* lock */

    struct task feeder;
    struct search_feed *feed; /* the feeder's */
    struct pool askers;
    struct search_asker seats[SEARCH_ASKERS_COUNT]; /* of the askers */
};

/* search_feed.c: the feeder's task begins; the task has ended. */
enum err search_feed_start(struct search *search) MUST_CHECK;
void search_feed_stop(struct search *search);

#endif
