/*
 * export_wacz - what a WACZ file has beside the WARC file that export writes: index, pages, package.
 *
 *      archive/data.warc.gz    written first, as the captures come
 *      indexes/index.cdxj      up to EXPORT_WACZ_INDEX_SIZE_MAX, above it index.cdx.gz and index.idx
 *      pages/pages.jsonl       every capture of HTML with status 200, with its title
 *      datapackage.json        names, sizes and digests of all of them
 *
 * Index and pages wait in scratch files beside the output until the WARC file has ended: memory does not grow
 * with the archive.
 */
#ifndef MNEMON_CLI_EXPORT_WACZ_H
#define MNEMON_CLI_EXPORT_WACZ_H

#include "cli/line_runs.h"
#include "store/instance/absent.h"
#include "store/instance/record.h"
#include "warc/content.h"
#include "warc/wacz_writer.h"
#include "warc/warc_writer.h"

/* Readers load a plain index at once; one in blocks they search, by a key that they compute themselves. */
enum { EXPORT_WACZ_INDEX_SIZE_MAX = 8 << 20, EXPORT_WACZ_DIRECTORY_SIZE_MAX = 4096 };

struct export_wacz {
    char directory[EXPORT_WACZ_DIRECTORY_SIZE_MAX]; /* of the output, for scratch files */
    struct wacz_writer writer;
    struct line_runs index;
    struct scratch pages;
    uint64_t pages_count;
    struct content content;
    struct sha256 sha256;
    struct buf html;
    struct text *text; /* of a page, for its title */
    struct buf line;
    struct buf last_page; /* its line */
};

/* The file, which must be able to rewrite, and its path. After a failure export_wacz_done() is due all the
 * same.
 */
enum err export_wacz_init(struct export_wacz *wacz, struct sink *file, const char *path, int64_t now_us,
                          struct err_detail *detail) MUST_CHECK;
void export_wacz_done(struct export_wacz *wacz);

/* The capture that has just been written, and its record; the session reads the payload of a revisit. */
enum err export_wacz_add(struct export_wacz *wacz, const struct capture *capture, const struct record *record,
                         struct instance_session *session, const struct warc_written *written,
                         bool is_revisit, struct err_detail *detail) MUST_CHECK;

/* All captures are written: the rest of the file. The package names those that did not answer. */
enum err export_wacz_finish(struct export_wacz *wacz, const struct absent *absent,
                            struct err_detail *detail) MUST_CHECK;

#endif
