/*
 * warc_reader - the records of a WARC or ARC file, one after the other.
 *
 *      warc_reader_open(&reader, &source);
 *      while ((err = warc_reader_next(&reader, &found, &detail)) == ERR_OK && found) {
 *          use(&reader.record);
 *          do {
 *              err = warc_reader_read(&reader, &piece, &detail);      // or not at all
 *          } while (err == ERR_OK && piece.size > 0);
 *      }
 *
 * Constant memory whatever the file says: a header of at most 64 KiB and the buffers of unpack.h, taken once
 * and used again by the next warc_reader_open(). Bodies are passed through in pieces.
 *
 * Lenient wherever other readers are: line ends, folding, case, blank lines between records or none, records
 * that share a gzip member or span several. Damage is an error with its reason and the offset in the file
 * (for compressed files that of the member), and sticks. The owner then stops, or calls warc_reader_recover()
 * to go on at the next record that can be found: verifying an archive names every damage and loses nothing
 * behind it.
 *
 * One thread at a time. reader.record is valid until the next call of next, recover, seek or open.
 */
#ifndef MNEMON_WARC_WARC_READER_H
#define MNEMON_WARC_WARC_READER_H

#include "warc/unpack.h"
#include "warc/warc_record.h"

enum warc_reader_state {
    WARC_READER_BETWEEN, /* records: the next thing to come is a header */
    WARC_READER_IN_RECORD,
    WARC_READER_DAMAGED,
};

struct warc_reader {
    struct unpack unpack;
    struct buf head;
    struct warc_record record;
    enum warc_reader_state state;
    uint64_t body_left;
    uint64_t body_offset;    /* in the file; for plain files only */
    uint64_t end_max;        /* the file is no longer than this; for plain files only */
    bool is_at_member_start; /* of the member only blank lines were read, if anything */
    bool is_at_line_start;   /* where damage was met: a record may begin right here */
    bool has_record;         /* the file has had one, */
    bool is_arc_file;        /* which was an ARC record */
    struct err_detail damage;
};

/* options: limits and dictionary, see unpack.h; may be NULL. */
enum err warc_reader_init(struct warc_reader *reader, const struct unpack_options *options) MUST_CHECK;
void warc_reader_done(struct warc_reader *reader);

/* Read this file from its first byte. The source is borrowed until the next open or done. */
void warc_reader_open(struct warc_reader *reader, struct source *source);

/*
 * Go to the next record, past what is left of this one, and read its header. *ret_found is false at the end.
 * ERR_INVALID, ERR_TRUNCATED, ERR_CORRUPT, ERR_LIMIT and ERR_MISMATCH are damage; the same error comes again
 * until warc_reader_recover() or warc_reader_seek().
 */
enum err warc_reader_next(struct warc_reader *reader, bool *ret_found, struct err_detail *detail) MUST_CHECK;

/* The next piece of the record's block, which lasts until the next call; an empty one at its end. */
enum err warc_reader_read(struct warc_reader *reader, struct bytes *ret_piece,
                          struct err_detail *detail) MUST_CHECK;

/* Pass what is left of the record, so that record.length and record.is_alone are known. Nothing to do twice.
 */
enum err warc_reader_finish(struct warc_reader *reader, struct err_detail *detail) MUST_CHECK;

/*
 * After damage: look for the next place where a record starts; warc_reader_next() then reads it. *ret_found
 * is false if there is none up to the end of the file. Only for a source that can go back nothing is
 * missed.
 */
enum err warc_reader_recover(struct warc_reader *reader, bool *ret_found,
                             struct err_detail *detail) MUST_CHECK;

/* Go to the record at this offset, as an index gives it. */
enum err warc_reader_seek(struct warc_reader *reader, uint64_t offset, struct err_detail *detail) MUST_CHECK;

#endif
