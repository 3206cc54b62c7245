/*
 * wacz_writer - writes a WACZ 1.1.1 file: a ZIP file whose datapackage.json names every file in it with its
 * SHA-256.
 *
 *      wacz_writer_start(&writer, WACZ_WARC_PATH, UINT64_MAX, &detail);
 *      warc_writer_init(&warc, &writer.sink, 0, …);           what is appended is hashed on its way
 *      wacz_writer_end(&writer, &detail);
 *      …                                                      indexes, pages
 *      wacz_writer_finish(&writer, BYTES("mnemon/1.0"), BYTES(""), &detail);
 *
 * All files are stored, none is deflated: readers fetch parts of them by range. Format: docs/formats/wacz.md.
 * Memory: the directory of the ZIP file. After a failure the owner drops the file.
 */
#ifndef MNEMON_WARC_WACZ_WRITER_H
#define MNEMON_WARC_WACZ_WRITER_H

#include "base/json.h"
#include "base/sha256.h"
#include "warc/pack.h"
#include "warc/zip_writer.h"

#define WACZ_WARC_NAME "data.warc.gz"
#define WACZ_WARC_PATH "archive/" WACZ_WARC_NAME
#define WACZ_INDEX_PATH "indexes/index.cdxj"
#define WACZ_BLOCKS_NAME "index.cdx.gz"
#define WACZ_BLOCKS_PATH "indexes/" WACZ_BLOCKS_NAME
#define WACZ_IDX_PATH "indexes/index.idx"
#define WACZ_PAGES_PATH "pages/pages.jsonl"

struct wacz_writer {
    struct sink sink; /* first: appends to the file that is open */
    struct zip_writer zip;
    struct sha256 sha256;
    struct buf path; /* of the file that is open */
    struct buf resources;
    struct json list; /* in resources */
    int64_t created_us;
};

/* The sink is borrowed and must be able to rewrite. */
enum err wacz_writer_init(struct wacz_writer *writer, struct sink *sink, int64_t created_us) MUST_CHECK;
void wacz_writer_done(struct wacz_writer *writer);

/* Begin a file of at most size_max bytes. */
enum err wacz_writer_start(struct wacz_writer *writer, const char *path, uint64_t size_max,
                           struct err_detail *detail) MUST_CHECK;
enum err wacz_writer_end(struct wacz_writer *writer, struct err_detail *detail) MUST_CHECK;

/* The package, its digest and the directory. more: an object whose members the package gets, too; may be
 * empty. */
enum err wacz_writer_finish(struct wacz_writer *writer, struct bytes software, struct bytes more,
                            struct err_detail *detail) MUST_CHECK;

/* ---- the lines of pages.jsonl ---- */

/* The first of them. */
enum err wacz_put_pages_head(struct buf *out);

/* The title may be empty. The id is made of URL and time, so that it is the same in every file. */
enum err wacz_put_page(struct buf *out, struct sha256 *sha256, struct bytes url, int64_t time_us,
                       struct bytes title);

/*
 * ---- a sorted CDXJ index in blocks, so that a reader fetches a small list and one block instead of all ----
 *
 *      index.cdx.gz    gzip members of WACZ_ZIPNUM_LINES lines each
 *      index.idx       !meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}
 *                      org,example)/ 20260102030405 {"offset": 0, "length": 7351, "filename": "index.cdx.gz"}
 *                      … the key and time of the first line of each block, and where it is
 */

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
