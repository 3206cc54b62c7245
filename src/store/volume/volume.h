/*
 * volume - documents on one disk: segments, their index, and the thread that makes records durable.
 *
 *      writers (any threads)                         committer (one thread)
 *        hash, look for a duplicate,                   take all that is queued, append it to the segment,
 *        compress into a frame, queue it  ── queue ──> sync once, enter it into the index, wake its writers
 *      readers (any threads)
 *        index, one read, decompress
 *
 * volume_put() returns when the document is durable: it survives the end of the process and of the machine.
 * While a sync runs, the next group gathers; so all documents that wait for a sync share its cost.
 *
 * Opening a volume repairs what a crash left: a torn record at the end is cut off, records that the index
 * missed are read again. A damaged or missing index is rebuilt from the segments.
 *
 * If the disk is full, or may not be written to, the volume is opened for reading only: what is indexed is
 * read, nothing is repaired, no file is changed, and every write is refused with the error of that moment.
 * The next opening that finds room makes up for it.
 *
 * A mirrored volume holds the segments of another node (docs/decisions/0013-collections.md): it is only read.
 * Its files are never cut, written or removed, nothing in them is believed without its digest, and it grows
 * when volume_extend() is told where newer files are. It has no committer: no writer may be made of it.
 */
#ifndef MNEMON_STORE_VOLUME_VOLUME_H
#define MNEMON_STORE_VOLUME_VOLUME_H

#include <stdatomic.h>

#include "base/clock.h"
#include "base/sink.h"
#include "store/disk/vfs.h"
#include "store/document/document.h"
#include "store/index/index.h"
#include "warc/pack.h"
#include "warc/warc_id.h"

struct scratch_budget;
struct volume;
struct volume_writer;
struct quota;
struct volume_reader;

enum {
    VOLUME_QUEUE_COUNT_MAX = 4096,    /* documents between writers and committer: a sync stops no writer */
    VOLUME_QUEUE_SIZE_MAX = 64 << 20, /* and their compressed bytes */
};

/*
 * Head, body and request of one document. A frame's length has 32 bits in the index; the margin of 64 MiB is
 * for what a compressor may add to bytes that do not compress. Whatever the size, writing, reading, verifying
 * and compacting take a few megabytes of memory: what is large goes through files without a name.
 */
static const uint64_t VOLUME_DOCUMENT_SIZE_MAX = (UINT64_C(4) << 30) - (UINT64_C(64) << 20);

/* While opening reads segments again: so many records so far, and how far that is in bytes of segments. */
typedef void volume_progress(void *context, uint64_t records_count, uint64_t done_size, uint64_t all_size);

/* 0 or NULL stands for the default in parentheses. */
struct volume_config {
    uint16_t number;
    struct vfs *vfs;                       /* required */
    const char *directory;                 /* of the segments, in the vfs; required */
    const char *index_directory;           /* in the real file system, also for base/scratch.h; required */
    struct scratch_budget *scratch_budget; /* of files for documents that are read (no bound); outlives it */
    enum pack_framing framing;
    int level;                 /* of compression (3 for zstd, 6 for gzip) */
    uint32_t linger_us;        /* (0) a group of which nobody waits for a document waits so long for more */
    uint64_t segment_size_max; /* a new segment begins above this (1 GiB) */
    struct quota *quota;       /* of all local volumes of the archive (none); outlives it */
    uint64_t free_size_min;    /* less than this on the disk and it counts as full (64 MiB) */
    unsigned digest_bits;      /* (256); fewer only to test collisions */
    struct warc_random random; /* required */
    const struct clock *clock; /* (clock_system) */
    struct bytes user_agent;   /* for warcinfo, of a crawl that is about to begin; (none) */
    struct bytes robots;       /* likewise: "classic", "ignore" */
    volume_progress *progress; /* (nobody is told) */
    void *progress_context;
    bool is_rebuilding; /* throw the index away and open the volume from its segments alone */
    bool is_mirrored;
    const atomic_bool
        *is_cancelled; /* (never) of a mirrored volume: reading its segments ends with ERR_CANCELLED */
};

/* What opening found and mended. */
struct volume_recovery {
    uint64_t records_count;         /* of documents and deletions, entered into the index */
    uint64_t cut_size;              /* torn bytes cut off */
    uint64_t damaged_count;         /* places that are no record, with good ones behind */
    bool is_rebuilt;                /* the whole index was */
    enum err refuses;               /* not ERR_OK: it is open for reading only, and this is why */
    uint64_t missed_size;           /* then: of what the index does not know, so nobody sees it */
    char damage[ERR_TEXT_SIZE_MAX]; /* what is wrong with the first of them; of a mirrored volume only */
};

struct volume_stat {
    uint64_t segments_count;
    uint64_t size;           /* of all segments */
    uint64_t dead_size;      /* of it, what compaction would give back */
    uint64_t blocks_count;   /* estimate */
    uint64_t captures_count; /* estimate */
    uint64_t index_size;
};

/* ERR_BUSY if another process has the volume open. */
enum err volume_open(const struct volume_config *config, struct volume **ret_volume,
                     struct volume_recovery *ret_recovery, struct err_detail *detail) MUST_CHECK;

/* All writers and readers must have been freed; what was put is durable. */
void volume_close(struct volume *volume);

/* ---- mirrored volumes ---- */

enum { VOLUME_MIRRORED_SEGMENTS_MAX = 4096 }; /* each is an open file */

/*
 * Are the segments in one directory those in another, grown? That is: the same ones byte for byte as far as
 * they went, but for the last, behind which there may be more. What was compacted is not. Compares the ends
 * of files that are not the same one.
 */
enum err volume_is_grown(struct vfs *vfs, const char *old_directory, const char *new_directory,
                         bool *ret_is_grown) MUST_CHECK;

/*
 * Go on with the segments in another directory, grown as volume_is_grown() says; only what is new is read.
 * Readers see new records as they are entered. One thread. If it fails, the volume has what it had, and it
 * may be called again.
 */
enum err volume_extend(struct volume *volume, const char *directory, struct volume_recovery *ret_recovery,
                       struct err_detail *detail) MUST_CHECK;

void volume_stat(struct volume *volume, struct volume_stat *ret_stat);

/* What it takes of its quota, if there is one, is looked at again: something was removed. */
void volume_measure(struct volume *volume);

/* What its committer has done since it was opened, and what waits for it now. */
struct volume_load {
    uint64_t groups_count;    /* commits: each one append, one sync, one batch of the index */
    uint64_t documents_count; /* in them */
    uint64_t commit_us;       /* that all of them took together */
    uint64_t sync_us;         /* of that, for the disk to say that it has it */
    uint64_t taken_count;     /* documents between a writer and their commit, of VOLUME_QUEUE_COUNT_MAX */
    uint64_t queue_size;      /* of those that are compressed, of VOLUME_QUEUE_SIZE_MAX */
    enum err err;             /* of the last commit */
};

void volume_load(struct volume *volume, struct volume_load *ret_load);

/* How the records of a segment are compressed: the end of its name says so. A volume may hold both. */
enum pack_framing volume_framing(struct volume *volume, uint32_t segment);

/* For queries by URL; read only. */
const struct index *volume_index(const struct volume *volume);

/* Is there a live document of this digest and size? */
enum err volume_holds(const struct volume *volume, const struct document_sum *sum,
                      bool *ret_holds) MUST_CHECK;

/* ---- writing: one writer per thread ---- */

struct volume_writer *volume_writer_new(struct volume *volume); /* NULL: out of memory */
void volume_writer_free(struct volume_writer *writer);          /* may be NULL */

/* Durable on return. ERR_NO_SPACE leaves the volume usable: it serves on and takes documents when there is
 * room. */
enum err volume_put(struct volume_writer *writer, const struct document *document, enum store_mode mode,
                    struct stored *ret_stored, struct err_detail *detail) MUST_CHECK;

/*
 * Drop one reference; at none the document is gone, and its bytes with the next compaction. Durable on
 * return. ERR_NOT_FOUND if there is no such document.
 */
enum err volume_remove(struct volume_writer *writer, const struct key *key,
                       struct err_detail *detail) MUST_CHECK;

/*
 * The same without waiting: done is called once, from the committer's thread, and must not call the volume.
 * Waits only while the queue is full. What the document borrows is not needed after the call has returned.
 * ERR_BUSY in done(), never in STORE_REGULAR mode unless a duplicate was removed meanwhile: submit it again.
 */
typedef void volume_done(void *context, enum err err, const struct stored *stored);
enum err volume_submit(struct volume_writer *writer, const struct document *document, enum store_mode mode,
                       volume_done *done, void *context, struct err_detail *detail) MUST_CHECK;

/* Likewise; ERR_BUSY in done() means that there is no such document. */
enum err volume_submit_remove(struct volume_writer *writer, const struct key *key, volume_done *done,
                              void *context, struct err_detail *detail) MUST_CHECK;

/*
 * Remove a capture, known by SURT, URL, time, digest and block number (a compaction may have moved it): it
 * leaves the index, and its document loses a reference. A record that holds the document of other captures
 * stays for them. Durable on return, and stays so when the index is rebuilt; the bytes come back with a
 * compaction. ERR_NOT_FOUND if there is none (any more): nothing has changed then.
 */
enum err volume_remove_capture(struct volume_writer *writer, const struct capture *capture,
                               struct err_detail *detail) MUST_CHECK;

/*
 * Purge a capture, at the location that it says: it is removed as above, without waiting for it, and the next
 * compaction rewrites what holds bytes of it, however few they are. If its record holds the document of other
 * captures, that is stored once more first, without URL and head. ERR_BUSY in done(): look for it again.
 */
enum err volume_submit_purge(struct volume_writer *writer, const struct capture *capture, volume_done *done,
                             void *context, struct err_detail *detail) MUST_CHECK;

/* So many of them; those that were there are gone, durably, on return. */
enum err volume_purge(struct volume_writer *writer, const struct capture *captures, size_t count,
                      size_t *ret_count, struct err_detail *detail) MUST_CHECK;

/*
 * Store a document again whose bytes on disk are damaged: the one of the key, and the capture of the
 * document's URL and time where it has one here. What is sound stays as it is; what is damaged is replaced by
 * a new record:
 *
 *      the record of the capture       a new one of it: whole, or a revisit where the document is sound
 *      only that of the document       a bare one: it holds the document for others, but is no capture
 *
 * The digest is computed, whatever the document says, unless its body is left out (a capture of what was not
 * modified): ERR_MISMATCH if it is another document. is_elsewhere: the document itself is on another
 * volume, and only the capture is looked at. ERR_NOT_FOUND if there is no such document here. Durable on
 * return. *ret_is_repaired is false if nothing is damaged.
 */
enum err volume_repair(struct volume_writer *writer, const struct key *key, const struct document *document,
                       bool is_elsewhere, bool *ret_is_repaired, struct err_detail *detail) MUST_CHECK;

/* Until everything that was submitted, by any writer, is done. */
void volume_drain(struct volume *volume);

/* ---- reading: one reader per thread ---- */

struct volume_reader *volume_reader_new(struct volume *volume); /* NULL: out of memory */
void volume_reader_free(struct volume_reader *reader);          /* may be NULL */

/*
 * The document of the key, in the reader's hands (read-only) until the next call. ERR_NOT_FOUND; ERR_CORRUPT
 * if its bytes on disk are damaged: they are never returned as good.
 */
enum err volume_get(struct volume_reader *reader, const struct key *key, struct bytes *ret_document,
                    struct err_detail *detail) MUST_CHECK;

/*
 * Is the record at the location sound: its frame, and the digests in its header? Not so either where there is
 * none.
 */
enum err volume_check_record(struct volume_reader *reader, const struct location *location,
                             bool *ret_is_sound) MUST_CHECK;

/* The whole record at a location, decompressed, header first. */
enum err volume_get_record(struct volume_reader *reader, const struct location *location,
                           struct bytes *ret_record, struct err_detail *detail) MUST_CHECK;

/*
 * The same for a thread that may not be kept for long: ERR_LIMIT, before anything is unpacked, where the
 * record is large. How much is stored does not tell: a few KiB of zstd may be gigabytes.
 */
enum err volume_get_brief_record(struct volume_reader *reader, const struct location *location,
                                 struct bytes *ret_record, struct err_detail *detail) MUST_CHECK;

#endif
