/*
 * zip_writer - writes a ZIP file of stored entries, each of any size, in one pass.
 *
 *      zip_writer_start(&writer, BYTES("pages/pages.jsonl"), UINT64_MAX, &detail);
 *      zip_writer_write(&writer, piece, &detail);                     as often as needed
 *      zip_writer_end(&writer, &detail);
 *      zip_writer_finish(&writer, &detail);                           the directory
 *
 * The header of an entry says its size and CRC-32, which are known only when its bytes have been written: the
 * header is written again then. So the sink must be able to (sink.h), and no reader needs the data
 * descriptors that some do not understand. An entry that may reach 4 GiB has its sizes in a zip64 extra
 * field, in the header and in the directory, whether it comes to be that large or not: readers exist that
 * take the absence of extra fields in the directory for their absence in the header.
 *
 * Memory: the directory. After a failure the writer refuses everything; the owner drops the file.
 */
#ifndef MNEMON_WARC_ZIP_WRITER_H
#define MNEMON_WARC_ZIP_WRITER_H

#include "base/sink.h"
#include "warc/zip.h"

struct zip_writer {
    struct sink *sink;
    uint64_t offset; /* of the next byte */
    uint16_t time;   /* of all entries, as ZIP has it: two seconds a step, since 1980 */
    uint16_t date;
    struct buf directory;
    uint64_t entries_count;
    bool is_torn;
    bool is_in_entry; /* the rest is about it: */
    bool is_large;    /* may reach 4 GiB */
    uint64_t header_offset;
    uint64_t size;
    uint64_t size_max;
    uint32_t crc32;
    struct buf name;
};

/* The sink is borrowed and must be able to rewrite; nothing was appended through it yet. */
void zip_writer_init(struct zip_writer *writer, struct sink *sink, int64_t time_us);
void zip_writer_done(struct zip_writer *writer);

/* Begin an entry of at most size_max bytes; no entry is open. The name is new, and relative. */
enum err zip_writer_start(struct zip_writer *writer, struct bytes name, uint64_t size_max,
                          struct err_detail *detail) MUST_CHECK;
enum err zip_writer_write(struct zip_writer *writer, struct bytes bytes,
                          struct err_detail *detail) MUST_CHECK;
enum err zip_writer_end(struct zip_writer *writer, struct err_detail *detail) MUST_CHECK;

/* The directory, behind the last entry. Nothing can be written after it. */
enum err zip_writer_finish(struct zip_writer *writer, struct err_detail *detail) MUST_CHECK;

#endif
