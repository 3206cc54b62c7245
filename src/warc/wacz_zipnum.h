/*
 * wacz_zipnum - a sorted CDXJ index in blocks, so that a reader fetches a small list and one block instead of
 * all of it.
 *
 *      index.cdx.gz    gzip members of WACZ_ZIPNUM_LINES lines each
 *      index.idx       !meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}
 *                      org,example)/ 20260102030405 {"offset": 0, "length": 7351, "filename": "index.cdx.gz"}
 *                      … the key and time of the first line of each block, and where it is
 */
#ifndef MNEMON_WARC_WACZ_ZIPNUM_H
#define MNEMON_WARC_WACZ_ZIPNUM_H

#include "base/json.h"
#include "warc/pack.h"

enum { WACZ_ZIPNUM_LINES = 1024 };

struct wacz_zipnum {
    struct pack pack;
    struct sink *idx;
    const char *filename;
    uint64_t offset; /* of the next block */
    struct buf block;
    size_t lines_count; /* in it */
    struct buf line;
    struct json json; /* of the line */
};

/* The sinks and the name of the blocks' file are borrowed. */
enum err wacz_zipnum_init(struct wacz_zipnum *zipnum, struct sink *blocks, struct sink *idx,
                          const char *filename) MUST_CHECK;
void wacz_zipnum_done(struct wacz_zipnum *zipnum);

/* The next line in order, with its line end. */
enum err wacz_zipnum_put(struct wacz_zipnum *zipnum, struct bytes line, struct err_detail *detail) MUST_CHECK;

/* The last block. */
enum err wacz_zipnum_finish(struct wacz_zipnum *zipnum, struct err_detail *detail) MUST_CHECK;

#endif
