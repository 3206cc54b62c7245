/*
 * import - WARC, ARC and WACZ files into the archive: what the threads of one run share, and what each has.
 *
 *      import.c            the command: threads, second pass, summary
 *      import_wacz.c       which files there are, also in WACZ files, and their bytes
 *      import_file.c       one file: its records, damage, which request belongs to which response
 *      import_queue.c      from the threads that read files to those that store captures
 *      import_capture.c    one capture: is it there already, store it
 *      import_revisit.c    a revisit: which stored document it means
 *
 *      readers                                         workers
 *        read and decompress records, find the           check digests, hash, ask whether it is there,
 *        request of each capture          ── tasks ──>   compress, submit
 *
 * A run may be repeated and may be killed at any time: a capture that the archive holds (same URL, time,
 * status and payload) is passed over. While a payload is on its way to the disk, a second capture of it
 * waits; so it is found as a duplicate, and nothing is stored twice.
 *
 * Captures of one file are stored in any order, but for those that may depend on each other: a revisit, or a
 * second capture of a payload, comes to the workers only after the captures before it that state the same
 * digest; a revisit that names no digest after all that were before it in its file.
 *
 * Revisits whose original has not been seen get a second chance when all files are done: whether they are
 * found does not depend on the order of the files or on the speed of the threads.
 */
#ifndef MNEMON_CLI_IMPORT_H
#define MNEMON_CLI_IMPORT_H

#include <pthread.h>

#include "base/map.h"
#include "base/scratch.h"
#include "cli/data.h"
#include "cli/progress.h"
#include "crawl/engine/attest.h"
#include "crawl/rules/pattern.h"
#include "run/bell.h"
#include "store/document/document_hasher.h"
#include "store/instance/record.h"
#include "warc/wacz_reader.h"
#include "warc/warc_check.h"
#include "warc/warc_reader.h"
#include "warc/zip_source.h"
#include "web/url/canon.h"

enum {
    IMPORT_JOBS_MAX = 64,
    IMPORT_BUSY_MAX = 1024,             /* payloads on their way to the disks */
    IMPORT_TASKS_MAX = 32,              /* captures between readers and workers */
    IMPORT_TASKS_SIZE_MAX = 256 << 20,  /* and their bytes, of which little is in memory */
    IMPORT_MEMORY_MAX = 2 << 20,        /* of one record; above it there is a scratch file */
    IMPORT_REQUEST_SIZE_MAX = 16 << 20, /* uploads above it are not kept */
    IMPORT_DIGESTS_MAX = 1 << 20,       /* remembered, about 100 bytes each, for revisits */
    IMPORT_DIGEST_KEY_SIZE = 1 + WARC_DIGEST_SIZE_MAX,
    IMPORT_STATED_MAX = 2,
    IMPORT_TYPES_COUNT = WARC_TYPE_CONTINUATION + 1,
};

struct import_tally {
    uint64_t captures_count;   /* stored by this run */
    uint64_t duplicates_count; /* of them, whose payload was there */
    uint64_t requests_count;   /* stored with their captures */
    uint64_t present_count;    /* captures that were there already */
    uint64_t unresolved_count; /* revisits of what nobody has */
    uint64_t damaged_count;    /* places in the files */
    uint64_t refused_count;    /* records that cannot be stored: too large, no URL, no date, deleted */
    uint64_t mismatched_count; /* stored, but their digest says that they were different once */
    uint64_t skipped_counts[IMPORT_TYPES_COUNT]; /* records that are no captures, by type */
    uint64_t files_failed_count;
};

/* A WACZ file, whose files are imported one by one. */
struct import_wacz {
    struct import_wacz *next;
    const char *path;
    struct wacz_reader reader;
};

struct import_file {
    const char *path;    /* "-": standard input; of a file in a WACZ file "a.wacz/archive/data.warc.gz" */
    struct buf deferred; /* uint64_t each: numbers of revisit records for the second pass */
    const struct import_wacz *wacz; /* that it is in; NULL: in none */
    const struct wacz_resource *member;
};

/* The bytes of a file. */
struct import_source {
    struct source_file file;
    struct zip_source member;
    struct source *records; /* NULL: there are none in it, and that its bytes are right is all that counts */
};

/* A record, its header read again from an own copy. */
struct import_record {
    bool is_there;
    uint64_t number; /* in its file, from 0 */
    uint64_t offset;
    struct buf text;
    struct warc_record header;
    struct scratch block;
    struct bytes bytes; /* of the block, once it is a worker's */
};

enum import_task_state { IMPORT_TASK_FREE, IMPORT_TASK_WAITING, IMPORT_TASK_TAKEN };

/* A capture on its way from a reader to a worker. */
struct import_task {
    enum import_task_state state;
    uint64_t number; /* in the order they were put */
    struct import_file *file;
    bool has_digest; /* that its header states of its payload */
    struct warc_digest digest;
    struct import_record capture;
    struct import_record request;
    bool is_request_attached;
};

/* The import's lock guards all of it. */
struct import_queue {
    struct bell has_task; /* for workers */
    struct bell has_done; /* for readers */
    struct import_task *tasks;
    uint64_t put_count;
    uint64_t size; /* of the captures' blocks, until they are done */
    bool is_closed;
};

/* Shared by all threads; the lock guards everything from `progress` on. */
/* Payloads of which files of this run state one digest: more than one if some of them are wrong. */
struct import_stated {
    uint8_t count;
    uint8_t digests[IMPORT_STATED_MAX][KEY_DIGEST_SIZE];
};

struct import {
    struct cli *cli;
    struct data data;
    struct import_file *files;
    size_t files_count;
    struct import_wacz *waczs;
    bool ignores_digests;      /* those of WACZ files */
    bool has_identity;         /* else nobody vouches for what is imported */
    bool is_in_ring;           /* what follows is its rule */
    int64_t latest_us;         /* captures with later times are refused by all nodes */
    struct pattern_list scope; /* of the charter */
    bool has_scope;
    struct identity identity;
    pthread_mutex_t lock;
    struct bell has_left; /* somebody has left `busy` */
    struct progress progress;
    struct import_tally tally;
    struct import_queue queue;
    size_t files_next;
    struct map busy;    /* digests of payloads on their way to the disk */
    struct map digests; /* payload digests as files state them -> struct import_stated */
    enum err err;       /* the first that ends the run: disk full, I/O */
};

/* One thread. */
struct import_job {
    struct import *import;
    struct import_file *file;
    bool is_second_pass;
    size_t deferred_next;
    uint64_t records_count; /* of this file so far */
    uint64_t counted_size;  /* of it, what progress knows */
    struct warc_reader warc;
    struct import_record capture; /* waits for its request */
    struct import_record request; /* waits for its capture */
    bool is_request_attached;     /* request belongs to capture */
    struct warc_check check;
    struct payload payload;
    struct document_hasher hasher;
    struct warc_hash hash;
    struct canon canon;
    struct buf url; /* by which the capture is found: warc/request_key.h */
    struct buf surt;
    struct buf from;
    struct buf to;
    struct buf chunks;                       /* a body in chunks again */
    struct instance_session *session;        /* for storing, and for payloads */
    struct instance_session *record_session; /* records, while a payload is in use */
    struct record record;
    struct document_sum sum; /* of what was not modified */
    struct buf message;      /* what is signed */
    char attest[ATTEST_TEXT_SIZE];
};

/* The directory for scratch files is borrowed. */
void import_record_init(struct import_record *record, const char *directory, uint64_t size_max);
void import_record_done(struct import_record *record);

static const uint64_t IMPORT_OFFSET_NONE = UINT64_MAX;

/* "mnemon: PATH, byte N: reason", or the reason alone where there is no path. */
void import_say(struct import *import, const char *path, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same about job->file, or the reason alone where there is no offset. */
void import_report(struct import_job *job, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Add to one of import->tally's counts. */
void import_count(struct import_job *job, uint64_t *count);

/* The run cannot go on. Only the first reason is kept. */
void import_stop(struct import *import, enum err err);
bool import_is_stopped(struct import *import);

/* Fill import->files: each argument, or if it is a WACZ file, the files in it. */
enum err import_list_files(struct import *import) MUST_CHECK;
void import_free_files(struct import *import);

/* The bytes of job->file. False if they cannot be had or are not the right ones, which has been told. */
bool import_source_open(struct import_job *job, struct import_source *source) MUST_CHECK;
void import_source_close(struct import_source *source);

/* All records of job->file. */
void import_read_file(struct import_job *job);

enum err import_queue_init(struct import_queue *queue, const char *directory) MUST_CHECK;
void import_queue_done(struct import_queue *queue);

/* A reader's: hand job->capture, and job->request where it is attached, to a worker. Waits for its turn. */
void import_dispatch(struct import_job *job);

/* No reader will dispatch any more. */
void import_queue_close(struct import *import);

/* A worker's: all tasks, until the queue is closed and empty. */
void import_work(struct import_job *job);

/* Check and store job->capture at once, with job->request where it is attached. */
void import_store(struct import_job *job);

/* The same, when its bytes are in one piece and checked. */
void import_store_capture(struct import_job *job);

/* The SURT of the URL, in job->surt. */
enum err import_make_surt(struct import_job *job, struct bytes url, struct err_detail *detail) MUST_CHECK;

/* Until nobody is storing this payload. */
void import_await(struct import *import, const uint8_t digest[KEY_DIGEST_SIZE]);

/* Remember for which payload a file states a digest. */
void import_remember(struct import *import, const struct warc_digest *stated,
                     const uint8_t digest[KEY_DIGEST_SIZE]);

/* Standard input cannot be read a second time. */
bool import_can_read_again(const struct import_job *job);

/* The document that the revisit in job->capture means. ERR_NOT_FOUND if the archive has none such. */
enum err import_resolve(struct import_job *job, struct key *ret_key, struct err_detail *detail) MUST_CHECK;

#endif
