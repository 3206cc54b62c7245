/*
 * search_state - what the files of search_*.c share. Private to them.
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

enum { SEARCH_PATH_SIZE_MAX = 4096, SEARCH_STALE_MAX = 64, SEARCH_DROP_MAX = 256 };

/* One local volume. */
struct search_volume {
    uint16_t number;
    struct volume *volume;
    struct index_position position; /* lock: as in the database */
};

/* search_query.c: one connection of an asker. */
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

/* search_writer.c: what the feeder does to the database. Needs a transaction, but for open and close. */
enum search_statement {
    SEARCH_SEE,
    SEARCH_SEE_MIRRORED,
    SEARCH_ADD,
    SEARCH_ADD_BODY,
    SEARCH_ADD_WORDS,
    SEARCH_FIND,
    SEARCH_DROP_WORDS,
    SEARCH_DROP_BODY,
    SEARCH_DROP,
    SEARCH_MOVE,
    SEARCH_POSITION,
    SEARCH_COUNT,
    SEARCH_MARK,
    SEARCH_SET_MARK,
    SEARCH_OF_VOLUME,
    SEARCH_STATEMENTS_COUNT,
};

struct search_writer {
    sqlite3 *database;
    sqlite3_stmt *statements[SEARCH_STATEMENTS_COUNT];
};

struct search_page {
    const struct capture *capture;
    struct bytes host;
    struct bytes language;
    struct bytes title;
    struct bytes description;
    struct bytes body;
    struct bytes packed; /* the body */
};

enum err search_writer_open(struct search_writer *writer, const char *path,
                            struct err_detail *detail) MUST_CHECK;
void search_writer_close(struct search_writer *writer);

/* The page was seen once more; *ret_is_known: there is a row of it. */
enum err search_writer_see(struct search_writer *writer, const struct capture *capture, bool *ret_is_known,
                           struct err_detail *detail) MUST_CHECK;
enum err search_writer_add(struct search_writer *writer, const struct search_page *page,
                           struct err_detail *detail) MUST_CHECK;

/* All rows of captures on key->volume of that document; how many there were. */
enum err search_writer_drop(struct search_writer *writer, const struct key *key, uint64_t *ret_count,
                            struct err_detail *detail) MUST_CHECK;

/* The position is all zero where there is none. */
enum err search_writer_position(struct search_writer *writer, uint16_t volume,
                                struct index_position *ret_position, struct err_detail *detail) MUST_CHECK;
enum err search_writer_move(struct search_writer *writer, uint16_t volume,
                            const struct index_position *position, struct err_detail *detail) MUST_CHECK;
enum err search_writer_count(struct search_writer *writer, uint64_t *ret_count,
                             struct err_detail *detail) MUST_CHECK;

/* Some rows of captures on that volume, SEARCH_DROP_MAX at most; how many there were. */
enum err search_writer_drop_volume(struct search_writer *writer, uint16_t volume, uint64_t *ret_count,
                                   struct err_detail *detail) MUST_CHECK;

/* What the rows of a deposit were made from; 0: there are none. */
enum err search_writer_mark(struct search_writer *writer, uint16_t volume, uint64_t *ret_mark,
                            struct err_detail *detail) MUST_CHECK;
enum err search_writer_set_mark(struct search_writer *writer, uint16_t volume, uint64_t mark,
                                struct err_detail *detail) MUST_CHECK;

/*
 * search_mirrored.c: the archives of others, which come, grow and go while the feeder runs; its alone. What
 * the database knows of each is told apart by a mark: another one, and all its rows are made again. Rows of
 * one that has gone while nobody looked stay until its number is used again; they are shown to nobody.
 */
struct search_mirrored;
struct follow;

struct search_mirrored *search_mirrored_new(struct instance *instance); /* NULL: out of memory */
void search_mirrored_free(struct search_mirrored *mirrored);            /* NULL: nothing happens */

/* Look which there are now; whether there is anything to do for them. Needs no transaction. */
bool search_mirrored_look(struct search_mirrored *mirrored);

/* The database is another one. */
void search_mirrored_forget(struct search_mirrored *mirrored);

/*
 * Take out what must go, some of it; then each that can be read on in turn, from index 0, and its number;
 * NULL behind the last. *ret_dropped_count: rows; *ret_has_more: is set where there are more to be dropped.
 */
enum err search_mirrored_settle(struct search_mirrored *mirrored, struct search_writer *writer,
                                uint64_t *ret_dropped_count, bool *ret_has_more,
                                struct err_detail *detail) MUST_CHECK;
struct follow *search_mirrored_follow(struct search_mirrored *mirrored, size_t index, uint16_t *ret_number);
size_t search_mirrored_left(const struct search_mirrored *mirrored);

/* search_query.c */
enum err search_reader_open(struct search_reader *reader, const char *path, const struct clock *clock,
                            struct err_detail *detail) MUST_CHECK;
void search_reader_close(struct search_reader *reader);

/* Fills in the job. Documents that were found removed are added to stale. */
enum err search_reader_run(struct search_reader *reader, struct archive_reader *archive,
                           struct search_job *job, struct key stale[SEARCH_STALE_MAX],
                           size_t *stale_count) MUST_CHECK;

#endif
