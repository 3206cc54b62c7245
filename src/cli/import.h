/*
 * import - WARC and ARC files into the archive: what the threads of one run share, and what each has.
 *
 *      import.c            the command: threads, second pass, summary
 *      import_file.c       one file: its records, damage, which request belongs to which response
 *      import_capture.c    one capture: is it there already, store it
 *      import_revisit.c    a revisit: which stored document it means
 *
 * A run may be repeated and may be killed at any time: a capture that the archive holds (same URL, time,
 * status and payload) is passed over. Files are taken by threads one at a time. While a payload is on its way
 * to the disk, a second capture of it waits; so it is found as a duplicate, and nothing is stored twice.
 *
 * Revisits whose original has not been seen get a second chance when all files are done: whether they are
 * found does not depend on the order of the files or on the speed of the threads.
 */
#ifndef MNEMON_CLI_IMPORT_H
#define MNEMON_CLI_IMPORT_H

#include <pthread.h>

#include "base/map.h"
#include "base/sha256.h"
#include "cli/data.h"
#include "cli/progress.h"
#include "cli/record.h"
#include "url/canon.h"
#include "warc/warc_check.h"
#include "warc/warc_reader.h"

enum {
    IMPORT_JOBS_MAX = 64,
    IMPORT_REQUEST_SIZE_MAX = 16 << 20, /* uploads above it are not kept */
    IMPORT_DIGESTS_MAX = 1 << 20,       /* remembered, about 100 bytes each, for revisits */
    IMPORT_DIGEST_KEY_SIZE = 1 + WARC_DIGEST_SIZE_MAX,
    IMPORT_TYPES_COUNT = WARC_TYPE_CONTINUATION + 1,
};

struct import_tally {
    uint64_t captures_count;   /* stored by this run */
    uint64_t duplicates_count; /* of them, whose payload was there */
    uint64_t requests_count;   /* stored with their captures */
    uint64_t present_count;    /* captures that were there already */
    uint64_t unresolved_count; /* revisits of what nobody has */
    uint64_t damaged_count;    /* places in the files */
    uint64_t refused_count;    /* records that cannot be stored: too large, no URL, no date */
    uint64_t mismatched_count; /* stored, but their digest says that they were different once */
    uint64_t skipped_counts[IMPORT_TYPES_COUNT]; /* records that are no captures, by type */
    uint64_t files_failed_count;
};

struct import_file {
    const char *path;    /* "-": standard input */
    struct buf deferred; /* uint64_t each: numbers of revisit records for the second pass */
};

/* Shared by all threads; the lock guards everything from `progress` on. */
struct import {
    struct cli *cli;
    struct data data;
    struct import_file *files;
    size_t files_count;
    pthread_mutex_t lock;
    pthread_cond_t has_left; /* somebody has left `busy` */
    struct progress progress;
    struct import_tally tally;
    size_t files_next;
    struct map busy;    /* signatures of payloads on their way to the disk */
    struct map digests; /* payload digests as files state them -> signature */
    enum err err;       /* the first that ends the run: disk full, I/O */
};

/* A record in memory, its header read again from an own copy. */
struct import_record {
    bool is_there;
    uint64_t number; /* in its file, from 0 */
    uint64_t offset;
    struct buf text;
    struct warc_record header;
    struct buf block;
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
    struct sha256 sha256;
    struct warc_hash hash;
    struct canon canon;
    struct buf surt;
    struct buf from;
    struct buf to;
    struct buf chunks; /* a body in chunks again */
    struct volume_writer *writer;
    struct volume_reader *reader;        /* payloads */
    struct volume_reader *record_reader; /* records, while a payload is in use */
    struct record record;
};

enum err import_job_init(struct import_job *job, struct import *import) MUST_CHECK;
void import_job_done(struct import_job *job);

static const uint64_t IMPORT_OFFSET_NONE = UINT64_MAX;

/* "mnemon: FILE, byte N: reason", or the reason alone where there is no offset. */
void import_report(struct import_job *job, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Add to one of import->tally's counts. */
void import_count(struct import_job *job, uint64_t *count);

/* The run cannot go on. Only the first reason is kept. */
void import_stop(struct import *import, enum err err);
bool import_is_stopped(struct import *import);

/* All records of job->file. */
void import_read_file(struct import_job *job);

/* Store job->capture, with job->request where it is attached. */
void import_store_capture(struct import_job *job);

/* The SURT of the URL, in job->surt. */
enum err import_make_surt(struct import_job *job, struct bytes url, struct err_detail *detail) MUST_CHECK;

/* Until nobody is storing this payload. */
void import_await(struct import *import, const uint8_t signature[KEY_SIGNATURE_SIZE]);

/* Remember which payload a file states this digest for. */
void import_remember(struct import *import, const struct warc_digest *digest,
                     const uint8_t signature[KEY_SIGNATURE_SIZE]);

/* The document that the revisit in job->capture means. ERR_NOT_FOUND where the archive has none such. */
enum err import_resolve(struct import_job *job, struct key *ret_key, struct err_detail *detail) MUST_CHECK;

#endif
