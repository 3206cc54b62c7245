/*
 * zip_source - the bytes of one entry of a ZIP file, as a source.
 *
 * A stored entry is a window on the file and can seek. A deflated one is undone on the way and only goes
 * forward. Never more comes out than the directory says: a bomb ends with ERR_CORRUPT when its size is
 * reached, and costs a buffer of 64 KiB. Whoever reads from the first byte to the end without seeking also
 * has CRC-32 checked: the read that would say "end" then says ERR_CORRUPT. Errors have the place in the ZIP
 * file.
 */
#ifndef MNEMON_WARC_ZIP_SOURCE_H
#define MNEMON_WARC_ZIP_SOURCE_H

#include "base/source.h"
#include "warc/zip_reader.h"

struct zip_source {
    struct source source; /* first: the functions find the rest from here */
    struct source *file;
    const struct zip_entry *entry;
    uint64_t taken; /* of the stored bytes */
    uint64_t made;  /* of the entry: where the next read is */
    uint32_t crc32; /* of all before it */
    bool has_crc;   /* nothing was left out */
    bool is_ended;  /* the deflate stream is */
    struct z_stream_s *stream;
    uint8_t *in;
};

/* File and entry are borrowed; the file must be able to seek, and may be shared with others that do before
 * each read. */
enum err zip_source_init(struct zip_source *zip, struct source *file,
                         const struct zip_entry *entry) MUST_CHECK;
void zip_source_done(struct zip_source *zip);

#endif
