/*
 * index - what a volume holds and where: blocks by digest, captures by SURT and time. RocksDB.
 *
 * The index is a convenience, never the truth: everything in it is written in the segments too and can be
 * rebuilt from them. So it may lag behind, never run ahead: an entry is put only after its record is durable,
 * and the position up to which the segments are indexed is part of the same atomic batch. After a crash the
 * volume reads the segments from that position on.
 *
 *      column family   key                                  value
 *      blocks          digest, number                    struct block
 *      captures        surt, 0x00, time, segment, offset    struct capture without what the key says
 *      segments        number                               struct index_segment
 *      meta            name                                 "position", "format", "serial" of the commit
 *                      "mended", segment, offset            length of a damaged record that another replaces
 *
 * The bytes are drawn in index_code.h. One batch at a time may be built and committed, by the committer's
 * thread. Any thread may read. Memory: a cache of 64 MiB and at most twice 32 MiB of newest entries, whatever
 * the number of captures. RocksDB aborts the process where its own allocations fail.
 */
#ifndef MNEMON_STORE_INDEX_INDEX_H
#define MNEMON_STORE_INDEX_INDEX_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"
#include "store/document/key.h"
#include "store/document/location.h"

struct index;
struct index_batch;
struct index_cursor;

/* In bytes; those of SURTs and URLs are URL_SIZE_MAX of web/url/url.h. */
enum { INDEX_SURT_SIZE_MAX = 1 << 16, INDEX_URL_SIZE_MAX = 1 << 16, INDEX_MIME_SIZE_MAX = 127 };

/* One stored document. Its location is that of the record that holds it. */
struct block {
    struct location location; /* segment 0: only revisits and deletions of it have been read so far */
    uint64_t size;            /* of the document */
    int32_t references;       /* stores minus deletions; store/index/ledger.h says what 0 and less mean */
    uint32_t records_count;   /* stores whose records are in the segments */
    /* Of the record at the location, for the revisits that refer to it: its date, and what its URI hashes to
     * (48 bits), by which a writer knows whether it has that URI in hand. */
    int64_t origin_time_us;
    uint64_t origin_uri_hash;
};

static const uint64_t INDEX_URI_HASH_MAX = (UINT64_C(1) << 48) - 1;

enum capture_flag {
    CAPTURE_REVISIT = 1,   /* the record has no payload of its own: look for the block */
    CAPTURE_TRUNCATED = 2, /* the payload was cut when it was fetched */
};

/* One capture of a URL. Slices borrow from whoever gave the struct. */
struct capture {
    struct bytes surt;
    int64_t time_us;
    struct location location;
    struct bytes url;  /* as it was fetched */
    struct bytes mime; /* as CDX writes it, without parameters; may be empty */
    uint16_t status;   /* of HTTP; 0 where there is none */
    uint8_t flags;     /* enum capture_flag */
    uint16_t block_number;
    uint16_t volume; /* whose segments these are; 0 until an instance says so: an index does not know */
    uint8_t digest[KEY_DIGEST_SIZE]; /* of the payload */
};

struct index_segment {
    uint64_t size;      /* of the file as far as it is indexed */
    uint64_t dead_size; /* of frames that nobody needs any more */
    uint32_t records_count;
};

/* The segments are indexed up to here. */
struct index_position {
    uint32_t segment; /* 0: nothing is */
    uint64_t offset;
};

struct index_counts {
    uint64_t blocks_count; /* estimates: what was put twice counts twice until RocksDB has merged its files */
    uint64_t captures_count;
    uint64_t disk_size;         /* of the sorted files, without the log of the newest entries */
    uint64_t memory_size;       /* cache, newest entries, tables of contents */
    uint64_t compactions_count; /* that RocksDB runs now */
};

/*
 * Open or create the index in a directory of the real file system, whose parent must exist. ERR_CORRUPT where
 * it is damaged and ERR_MISMATCH where its format is another's: the caller may then index_destroy() it and
 * read all segments again. ERR_BUSY where somebody has it open, in this process or in another.
 */
enum err index_open(const char *directory, struct index **ret_index, struct err_detail *detail) MUST_CHECK;
void index_close(struct index *index);

/* Remove all files of an index that is not open. ERR_OK where there is none. */
enum err index_destroy(const char *directory, struct err_detail *detail) MUST_CHECK;

/* ---- reading: ERR_NOT_FOUND, ERR_CORRUPT, ERR_IO ---- */

enum err index_find_block(const struct index *index, const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number,
                          struct block *ret_block) MUST_CHECK;

/*
 * The same for writers, who ask once for each new document whether it is known. One time in a hundred the
 * filter does not know and a page is read for nothing: the cache is not for such pages, of which a crawl
 * reads ever more. Filters are kept in it all the same.
 */
enum err index_probe_block(const struct index *index, const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number,
                           struct block *ret_block) MUST_CHECK;
enum err index_find_segment(const struct index *index, uint32_t number,
                            struct index_segment *ret_segment) MUST_CHECK;
enum err index_position(const struct index *index, struct index_position *ret_position) MUST_CHECK;
void index_counts(const struct index *index, struct index_counts *ret_counts);

/* Is there an entry of this SURT, time, segment and offset? The capture is one that index_can_hold(). */
enum err index_has_capture(const struct index *index, const struct capture *capture,
                           bool *ret_is_there) MUST_CHECK;

/* The same, and its document has references. */
enum err index_is_live(const struct index *index, const struct capture *capture,
                       bool *ret_is_live) MUST_CHECK;

/*
 * The first record of the segment, at this offset or behind, that was damaged and has been replaced by
 * another. ERR_NOT_FOUND where there is none.
 */
enum err index_find_mended(const struct index *index, uint32_t segment, uint64_t offset,
                           struct location *ret_location) MUST_CHECK;

/*
 * Has any block ever lost its last reference? Until then every capture has its document, and nobody need look
 * for the block of each.
 */
bool index_has_dead(const struct index *index);

/*
 * Merge the sorted files that captures and blocks lie in, in the background and a few at a time: a lookup
 * asks each run of them. For an index that nobody writes to for a while, since every merge is one that the
 * next entries may make necessary again. Does nothing where too little would be gained, or while a merge goes
 * on; so call it now and then. Any thread.
 */
void index_settle(const struct index *index);

/* Of pages of the database in memory, in bytes; 64 MiB at first. Any thread. */
void index_set_cache_size(const struct index *index, size_t size);

/*
 * Walk captures whose key lies in [from, to), in order or in reverse: by SURT, then time, then location. An
 * empty `to` is the end. A cursor sees the index as it was when it was opened and never blocks writers, but
 * keeps files that they have replaced: close it soon. It belongs to one thread and must not outlive the
 * index.
 *
 *      one SURT            from (surt, INT64_MIN)  to (surt, INT64_MAX)    index_put_capture_prefix()
 *      one SURT since t    from (surt, t)          to (surt, INT64_MAX)
 *      SURTs "org,ex…"     from "org,ex"           to "org,ex\xff"         plain bytes; no SURT holds 0xff
 *
 * The first two ask the Bloom filters, so that a SURT without captures mostly costs no read. The capture of a
 * revisit takes part of its digest from its block and is passed over where that is gone: put both in one
 * batch.
 */
enum err index_cursor_open(const struct index *index, struct bytes from, struct bytes to, bool in_reverse,
                           struct index_cursor **ret_cursor) MUST_CHECK;

/* The captures of one SURT and one time. */
enum err index_cursor_open_time(const struct index *index, struct bytes surt, int64_t time_us,
                                struct index_cursor **ret_cursor) MUST_CHECK;

/* ERR_NOT_FOUND at the end. *ret_capture borrows from the cursor until the next call. An error stays. */
enum err index_cursor_next(struct index_cursor *cursor, struct capture *ret_capture) MUST_CHECK;
void index_cursor_close(struct index_cursor *cursor);

/*
 * Append the key where the captures of a SURT from a time on begin. Any time is allowed; those before year 1
 * and after year 9999 are before and after all captures.
 */
void index_put_capture_prefix(struct buf *buf, struct bytes surt, int64_t time_us);

/* Walk all blocks in order of their digests, for verify and for repair. */
enum err index_blocks_open(const struct index *index, struct index_cursor **ret_cursor) MUST_CHECK;

/* From a key of index_code_block_key() on, or from any bytes that sort like one. */
enum err index_blocks_open_at(const struct index *index, struct bytes from,
                              struct index_cursor **ret_cursor) MUST_CHECK;
enum err index_blocks_next(struct index_cursor *cursor, uint8_t ret_digest[KEY_DIGEST_SIZE],
                           uint16_t *ret_number, struct block *ret_block) MUST_CHECK;

/* ---- writing: collected in a batch, then all or nothing ---- */

struct index_batch *index_batch_new(struct index *index); /* NULL: out of memory */
void index_batch_free(struct index_batch *batch);
void index_batch_clear(struct index_batch *batch);

void index_batch_put_block(struct index_batch *batch, const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number,
                           const struct block *block);
void index_batch_remove_block(struct index_batch *batch, const uint8_t digest[KEY_DIGEST_SIZE],
                              uint16_t number);

/*
 * False where a capture breaks a limit: sizes, 0x00 or 0xff in the SURT, a time out of years 1 to 9999, no
 * segment, unknown flags. Ask before putting what others wrote; putting such a capture fails an ASSERT.
 */
bool index_can_hold(const struct capture *capture);
void index_batch_put_capture(struct index_batch *batch, const struct capture *capture);

/* Of the capture, only SURT, time, segment and offset matter. */
void index_batch_remove_capture(struct index_batch *batch, const struct capture *capture);

/* Does the batch put or remove a capture of this SURT and time? Looks at all of its changes. */
bool index_batch_has_captures(const struct index_batch *batch, struct bytes surt, int64_t time_us);

void index_batch_put_mended(struct index_batch *batch, const struct location *location);
void index_batch_remove_mended(struct index_batch *batch, const struct location *location);

void index_batch_put_segment(struct index_batch *batch, uint32_t number, const struct index_segment *segment);
void index_batch_remove_segment(struct index_batch *batch, uint32_t number);
void index_batch_set_position(struct index_batch *batch, const struct index_position *position);

/*
 * The batch is empty afterwards; where it fails it is as before. What was committed survives the end of the
 * process; a crash of the machine may take the newest commits, never an older one without those after it.
 * Once RocksDB failed to write (ERR_NO_SPACE, ERR_IO, …), the index only reads until it is opened again or
 * mended.
 */
enum err index_commit(struct index *index, struct index_batch *batch, struct err_detail *detail) MUST_CHECK;

/*
 * After a write has failed: where there is room again and no cursor is open, close the database and open it,
 * so that writing goes on. Tries at most once a second, and only after it could write a file of some
 * megabytes there; else returns the old error. Readers wait meanwhile. By the thread that commits, without a
 * batch begun by another. ERR_OK also where nothing is to be mended.
 */
enum err index_mend(struct index *index, struct err_detail *detail) MUST_CHECK;

/* Everything committed so far also survives a crash of the machine. */
enum err index_flush(struct index *index, struct err_detail *detail) MUST_CHECK;

/* Merge all files into their smallest form. Reads and rewrites all of them; others may go on meanwhile. */
enum err index_compact(struct index *index, struct err_detail *detail) MUST_CHECK;

#endif
