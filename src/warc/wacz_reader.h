/*
 * wacz_reader - the files in a WACZ file that a stranger has made, and what its datapackage.json says of
 * them.
 *
 *      wacz_reader_open(&wacz, &file.source, file_size, &detail);
 *      for each of wacz.resources:
 *          wacz_reader_check(resource, &file.source, &detail);             CRC-32, size and digest
 *          zip_source_init(&bytes, &file.source, resource->entry);
 *
 * A package that lies about itself (datapackage-digest.json), that cannot be parsed or names files that are
 * not there is refused as a whole. A ZIP file without a package is read all the same: its files then have no
 * digests. Nothing is ever written to the disk, so names lead nowhere. Collections of WACZ files
 * ("multi-wacz-package") are not read.
 */
#ifndef MNEMON_WARC_WACZ_READER_H
#define MNEMON_WARC_WACZ_READER_H

#include "warc/warc_digest.h"
#include "warc/zip_reader.h"

enum { WACZ_PACKAGE_SIZE_MAX = 8 << 20 }; /* some 40,000 files */

struct wacz_resource {
    const struct zip_entry *entry;
    bool is_warc; /* a WARC or ARC file in archive/ */
    bool has_digest;
    struct warc_digest digest;
};

struct wacz_reader {
    struct zip_reader zip;
    struct wacz_resource *resources; /* one per file of the ZIP file, by name */
    size_t resources_count;
    bool has_package;
};

/* The errors of zip_reader_open(); ERR_MISMATCH, ERR_INVALID and ERR_UNSUPPORTED of the package. */
enum err wacz_reader_open(struct wacz_reader *wacz, struct source *source, uint64_t file_size,
                          struct err_detail *detail) MUST_CHECK;
void wacz_reader_done(struct wacz_reader *wacz);

/*
 * Read the file from its first byte to its last: ERR_CORRUPT if it is not what the ZIP file says,
 * ERR_MISMATCH if it is not what the package says. Any thread, with a source of its own.
 */
enum err wacz_reader_check(const struct wacz_resource *resource, struct source *source,
                           struct err_detail *detail) MUST_CHECK;

#endif
