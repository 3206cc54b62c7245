/*
 * cdxj_indexer - reads a WARC or ARC file and gives the CDXJ entry of every capture in it.
 *
 * As pywb's cdxj-indexer does: response, resource, revisit, conversion and metadata records are captures,
 * except `application/warc-fields`. A revisit has the mime type `warc/revisit` and no status. The digest is
 * the header's, without "sha1:"; where it states none, SHA-1 of the payload in base32.
 *
 *      cdxj_indexer_open(&indexer, &source, BYTES("a.warc.gz"));
 *      while ((err = cdxj_indexer_next(&indexer, &found, &detail)) == ERR_OK && found) {
 *          cdxj_put(&out, &indexer.entry);
 *      }
 *
 * Entries come in the order of the file. Damage is reported and left as warc_reader.h describes, through
 * indexer.reader.
 */
#ifndef MNEMON_WARC_CDXJ_INDEXER_H
#define MNEMON_WARC_CDXJ_INDEXER_H

#include "warc/cdxj.h"
#include "warc/payload.h"
#include "warc/warc_digest.h"
#include "warc/warc_reader.h"
#include "web/url/canon.h"

struct cdxj_indexer {
    struct warc_reader reader;
    struct cdxj entry;      /* borrows all of the rest; until the next call */
    uint64_t skipped_count; /* captures without a URI or a date */
    struct bytes filename;
    struct payload payload;
    struct warc_hash hash;
    struct canon canon;
    struct buf key;
    struct buf digest;
};

/* options: see unpack.h; may be NULL. */
enum err cdxj_indexer_init(struct cdxj_indexer *indexer, const struct unpack_options *options) MUST_CHECK;
void cdxj_indexer_done(struct cdxj_indexer *indexer);

/* Source and filename are borrowed until the next open or done. */
void cdxj_indexer_open(struct cdxj_indexer *indexer, struct source *source, struct bytes filename);

/*
 * Go to the next capture; *ret_found is false at the end. The errors of warc_reader_next(); ERR_UNSUPPORTED
 * for a record that shares its gzip member with others, which no index can point to: calling again goes on
 * behind it.
 */
enum err cdxj_indexer_next(struct cdxj_indexer *indexer, bool *ret_found,
                           struct err_detail *detail) MUST_CHECK;

#endif
