/*
 * index_cursor - a walk over the captures or over the blocks of an index.
 *
 * A cursor sees the index as it was when it was opened and never blocks writers, but keeps files that they
 * have replaced: close it soon. It belongs to one thread and must not outlive the index.
 */
#ifndef MNEMON_STORE_INDEX_INDEX_CURSOR_H
#define MNEMON_STORE_INDEX_INDEX_CURSOR_H

#include "store/index/index.h"

struct index_cursor;

/*
 * Walk captures whose key lies in [from, to), in order or in reverse: by SURT, then time, then location. An
 * empty `to` is the end.
 *
 *      one SURT            from (surt, INT64_MIN)  to (surt, INT64_MAX)    index_put_capture_prefix()
 *      one SURT since t    from (surt, t)          to (surt, INT64_MAX)
 *      SURTs "org,ex…"     from "org,ex"           to "org,ex\xff"         plain bytes; no SURT holds 0xff
 *
 * The first two ask the Bloom filters, so that a SURT without captures mostly costs no read. The capture of a
 * revisit takes part of its digest from its block and is passed over if that is gone: put both in one
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

/* Walk all blocks in order of their digests, for verify and for repair. */
enum err index_blocks_open(const struct index *index, struct index_cursor **ret_cursor) MUST_CHECK;

/* From a key of index_code_block_key() on, or from any bytes that sort like one. */
enum err index_blocks_open_at(const struct index *index, struct bytes from,
                              struct index_cursor **ret_cursor) MUST_CHECK;
enum err index_blocks_next(struct index_cursor *cursor, uint8_t ret_digest[KEY_DIGEST_SIZE],
                           uint16_t *ret_number, struct block *ret_block) MUST_CHECK;

#endif
