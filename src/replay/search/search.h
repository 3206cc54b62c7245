/*
 * search - full text of the HTML captures on this machine, ranked: of the node's own local volumes, and of
 * the archives of others that it keeps. SQLite's FTS5.
 *
 *      feeder (one thread)                          askers (SEARCH_ASKERS_COUNT threads)
 *        follow the segments (store/volume/follow.h),        take a job, run it on a connection of their own,
 *        read each new page, enter it                 check each result against the archive, call done()
 *               │                                            │
 *               └──────── DIR/search/text.db ────────────────┘
 *
 * One row per payload and URL: a page that was seen again unchanged adds no row, its row says when it was
 * first and last seen. Rows and the position in the segments are written in one transaction, so that after a
 * crash nothing is missing or double. The database is a convenience: if it is missing, damaged or of
 * another format, it is made again from the archive.
 *
 * The rules of access and the removal of documents count at once: each result is checked when it is found,
 * and what may not be read is not shown, nor any of its words. The feeder takes removed documents out.
 *
 * The feeder is the least urgent thread of the machine (SCHED_IDLE) and pauses between batches.
 *
 * Words of a question: all must be there, anywhere in title, description or text. "two words" side by side,
 * -word not there, word* as the start of a word (three letters at least). Case and accents do not matter.
 * Nothing else has a meaning.
 */
#ifndef MNEMON_REPLAY_SEARCH_SEARCH_H
#define MNEMON_REPLAY_SEARCH_SEARCH_H

#include "base/arena.h"
#include "replay/archive/archive.h"
#include "replay/search/search_words.h"
#include "run/pool.h"
#include "store/instance/absent.h"

struct search;

enum {
    SEARCH_ASKERS_COUNT = 2,
    SEARCH_JOBS_MAX = 32,     /* waiting for an asker */
    SEARCH_LIMIT_MAX = 100,   /* that readers may want at once */
    SEARCH_RESULTS_MAX = 501, /* of one answer: another node wants the first of several pages */
    SEARCH_OFFSET_MAX = 10000,
    SEARCH_TIME_MAX_US = 2000000, /* of one question */
};

/* 0 or NULL stands for the default in parentheses. */
struct search_config {
    bool is_enabled;
    const char *directory;     /* of the data; outlives the search */
    struct instance *instance; /* outlives the search */
    struct parsers *parsers;   /* (its own thread) find the texts of pages; outlive the search */
    const struct clock *clock; /* (clock_system) */
    /* What a user should know, as that all is read again; any thread; may be NULL. */
    void (*tell)(void *context, const char *name, const char *sentence);
    void *context;
};

/* *ret_search is NULL if it is switched off. What keeps the database from being opened, search_stat()
 * says. */
enum err search_start(const struct search_config *config, struct search **ret_search,
                      struct err_detail *detail) MUST_CHECK;

/* No jobs may be left: stop the server first. NULL does nothing. */
void search_stop(struct search *take_search);

struct search_stat {
    uint64_t documents_count;
    uint64_t captures_count;       /* of the node's own local volumes; an estimate */
    uint64_t left_count;           /* of them, not yet read; an estimate, but 0 only if all are read */
    uint64_t left_size;            /* bytes of segments not yet read */
    uint64_t size;                 /* on disk */
    bool is_open;                  /* questions can be answered */
    char error[ERR_TEXT_SIZE_MAX]; /* why nothing is being read; empty: all is well */
};

void search_stat(struct search *search, struct search_stat *ret_stat);

/* The volumes of the archive whose captures it does not find: those that are down, and those of others. */
void search_add_absent(const struct search *search, struct absent *absent);

/* ---- questions ---- */

struct search_question {
    struct bytes words;
    struct bytes host; /* and its subdomains; empty: all */
    int64_t from_us;   /* INT64_MIN … INT64_MAX for all */
    int64_t to_us;
    size_t offset;
    size_t limit;
    bool is_own; /* only what this node has stored itself, not the archives of others that it keeps */
};

struct search_result {
    struct bytes url;
    struct bytes title;
    struct bytes language;
    struct bytes snippet;            /* with marks */
    int64_t time_us;                 /* of a capture in the period asked for */
    double score;                    /* the higher the better */
    struct bytes node;               /* the address of the node of the ring that found it; empty: this one */
    uint8_t digest[KEY_DIGEST_SIZE]; /* of the payload; all of it only if it was found here */
};

/* All slices of the question are borrowed until done(); results live until search_job_done(). */
struct search_job {
    struct search_question question;
    struct archive *archive;     /* whose rules count */
    void (*done)(void *context); /* from an asker's thread; the last that it does with the job */
    void *context;

    /* ERR_INVALID, ERR_LIMIT: the question is wrong; ERR_TIMEOUT: it takes too long; ERR_BUSY: the database
     * is not open. */
    enum err err;
    struct err_detail detail;
    struct search_result *results;
    size_t results_count;
    bool has_more;

    struct arena arena;
    struct search *search;
    struct pool_job job; /* of the askers */
};

void search_job_init(struct search_job *job);
void search_job_done(struct search_job *job);

/* ERR_BUSY: too many wait already; done() is then not called. */
enum err search_ask(struct search *search, struct search_job *job) MUST_CHECK;

#endif
