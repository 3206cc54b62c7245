/*
 * zip_reader - the directory of a ZIP file that a stranger has made.
 *
 *      zip_reader_open(&reader, &file.source, file_size, &detail);
 *      entry = zip_reader_find(&reader, BYTES("datapackage.json"));
 *      zip_source_init(&bytes, &file.source, entry);              zip_source.h
 *
 * Everything that two programs could understand differently is refused, with its place in the file and the
 * reason, before anything is read from it: entries that overlap or lie in the directory, local headers that
 * contradict the directory, two ends or bytes behind the end, bytes before the first entry, a directory that
 * is not where the end says, sizes that deflate cannot reach, names that are absolute, climb ("..") or occur
 * twice, encryption, methods other than stored and deflate, several disks. What the sizes and CRC-32 claim is
 * checked by whoever reads the entries.
 *
 * Memory: the directory, at most ZIP_DIRECTORY_SIZE_MAX, and about its size again. One thread at a time
 * opens; afterwards any number may look.
 */
#ifndef MNEMON_WARC_ZIP_READER_H
#define MNEMON_WARC_ZIP_READER_H

#include "base/buf.h"
#include "base/source.h"
#include "warc/zip.h"

enum { ZIP_DIRECTORY_SIZE_MAX = 64 << 20, ZIP_NAME_SIZE_MAX = 1024 };

struct zip_entry {
    struct bytes name; /* of a directory if it ends in '/' */
    uint16_t flags;    /* enum zip_flag */
    uint16_t method;   /* enum zip_method */
    uint32_t crc32;
    uint64_t size;
    uint64_t stored_size;
    uint64_t header_offset;
    uint64_t data_offset;
};

struct zip_reader {
    struct zip_entry *entries; /* by name; the names borrow `directory` */
    size_t entries_count;
    struct buf directory;
};

/*
 * The source must be able to seek and is only needed for the call. ERR_INVALID, ERR_TRUNCATED,
 * ERR_UNSUPPORTED, ERR_LIMIT with detail->offset; then there is nothing to free.
 */
enum err zip_reader_open(struct zip_reader *reader, struct source *source, uint64_t file_size,
                         struct err_detail *detail) MUST_CHECK;
void zip_reader_done(struct zip_reader *reader);

/* NULL if there is none of that name. */
const struct zip_entry *zip_reader_find(const struct zip_reader *reader, struct bytes name);

/* Could these be the first bytes of a ZIP file? */
static inline bool zip_is_start(struct bytes text) {
    return text.size >= 4 && text.data[0] == 'P' && text.data[1] == 'K' &&
           ((text.data[2] == 3 && text.data[3] == 4) || (text.data[2] == 5 && text.data[3] == 6));
}

#endif
