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
 * the number of captures.
 *
 * index_batch.h collects changes, index_cursor.h walks over entries.
 */
#ifndef MNEMON_STORE_INDEX_INDEX_H
#define MNEMON_STORE_INDEX_INDEX_H

#include "base/err.h"
#include "store/index/index_code.h"

struct index;
struct index_batch;
struct kv;

struct index_counts {
    uint64_t blocks_count; /* estimates: what was put twice counts twice until RocksDB has merged its files */
    uint64_t captures_count;
    uint64_t disk_size;         /* of the sorted files, without the log of the newest entries */
    uint64_t memory_size;       /* cache, newest entries, tables of contents */
    uint64_t compactions_count; /* that RocksDB runs now */
};

/*
 * Open or create the index in a directory of the real file system, whose parent must exist. ERR_CORRUPT if
 * it is damaged and ERR_MISMATCH if its format is another's: the caller may then index_destroy() it and
 * read all segments again. ERR_BUSY if somebody has it open, in this process or in another.
 */
enum err index_open(const char *directory, struct index **ret_index, struct err_detail *detail) MUST_CHECK;

/* The same for reading only, as kv_open_to_read(): commits are refused with the error `why`. */
enum err index_open_to_read(const char *directory, enum err why, struct index **ret_index,
                            struct err_detail *detail) MUST_CHECK;

/* ERR_NO_SPACE: too little room to open it for writing, or to begin a new one. */
enum err index_has_room(const char *directory, struct err_detail *detail) MUST_CHECK;
void index_close(struct index *index);

/* Remove all files of an index that is not open. ERR_OK if there is none. */
enum err index_destroy(const char *directory, struct err_detail *detail) MUST_CHECK;

/* ---- reading: ERR_NOT_FOUND, ERR_CORRUPT, ERR_IO ---- */

enum err index_find_block(const struct index *index, const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number,
                          struct block *ret_block) MUST_CHECK;

/*
 * The same for writers, which ask once for each new document whether it is known. One time in a hundred the
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
 * another. ERR_NOT_FOUND if there is none.
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
 * next entries may make necessary again. Does nothing if too little would be gained, or while a merge goes
 * on; so call it now and then. Any thread.
 */
void index_settle(const struct index *index);

/* Set the size of the cache of database pages, in bytes; 64 MiB at first. Any thread. */
void index_set_cache_size(const struct index *index, size_t size);

/* ---- writing: collected in a batch (index_batch.h), then all or nothing ---- */

/*
 * The batch is empty afterwards; if it fails it is as before. What was committed survives the end of the
 * process; a crash of the machine may take the newest commits, never an older one without those after it.
 * Once RocksDB failed to write (ERR_NO_SPACE, ERR_IO, …), the index only reads until it is opened again or
 * mended.
 */
enum err index_commit(struct index *index, struct index_batch *batch, struct err_detail *detail) MUST_CHECK;

/*
 * After a write has failed: where there is room again and no cursor is open, close the database and open it,
 * so that writing goes on. Tries at most once a second, and only after it could write a file of some
 * megabytes there; else returns the old error. Readers wait meanwhile. By the thread that commits, without a
 * batch begun by another. ERR_OK also if nothing is to be mended.
 */
enum err index_mend(struct index *index, struct err_detail *detail) MUST_CHECK;

/* The database, for index_cursor.h and for tests. */
extern const struct kv_options index_kv_options;
struct kv *index_kv(const struct index *index);

/* What was removed leaves the files, too; as kv_forget(). */
enum err index_forget(struct index *index, struct err_detail *detail) MUST_CHECK;

#endif
