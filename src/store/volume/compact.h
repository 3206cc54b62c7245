/*
 * compact - gives back the bytes of removed documents: rewrites segments in which little is alive.
 *
 *      1. copy the live records of segment n into a new file, "n-1.warc.zst.tmp"
 *      2. sync it and give it its name                 a crash before 3: the new file is removed
 *      3. move all entries of the index, in one batch  a crash after 3: the old file is removed
 *      4. remove the old file, when its last reader is done
 *
 * Frames are copied as they are, so nothing is decompressed twice and signatures stay. Reads and writes go
 * on; only step 3 keeps the committer waiting, for one batch. What is dropped: records of documents without
 * references and of captures that were removed, unless they hold the document of others; requests of dropped
 * responses; deletions once nothing is left that they speak of; damaged records that others have replaced.
 * Other damage is kept as it is.
 *
 * One compaction at a time.
 */
#ifndef MNEMON_STORE_VOLUME_COMPACT_H
#define MNEMON_STORE_VOLUME_COMPACT_H

#include <stdatomic.h>

#include "store/volume/volume.h"

struct compact_report {
    uint32_t segments_count; /* rewritten */
    uint64_t dropped_count;  /* records */
    uint64_t kept_count;
    uint64_t freed_size;
};

/*
 * Rewrite every segment in which at least dead_percent of the bytes belong to removed documents, and those
 * that have bytes of purged captures. 0: every segment that has anything dead. Then the index, if it has
 * removed entries: URLs of captures that are gone are in its files until it is rewritten.
 */
enum err compact_volume(struct volume *volume, unsigned dead_percent, struct compact_report *ret_report,
                        struct err_detail *detail) MUST_CHECK;

/* The same, until *is_stopping. */
enum err compact_some(struct volume *volume, unsigned dead_percent, const atomic_bool *is_stopping,
                      struct compact_report *ret_report, struct err_detail *detail) MUST_CHECK;

#endif
