/*
 * cdx_field - the fields of a line of CDX: their names in both dialects, and their text for a capture.
 *
 * A line is filled with those fields that somebody asks for, since some cost more than others.
 */
#ifndef MNEMON_REPLAY_CDX_CDX_FIELD_H
#define MNEMON_REPLAY_CDX_CDX_FIELD_H

#include "base/utc.h"
#include "replay/archive/archive.h"
#include "store/instance/capture_line.h"

enum cdx_dialect {
    CDX_ARCHIVE_ORG, /* the Internet Archive's */
    CDX_PYWB,
};

/* In the order of the lines. */
enum cdx_field {
    CDX_URLKEY,
    CDX_TIMESTAMP,
    CDX_ORIGINAL,
    CDX_MIMETYPE,
    CDX_STATUSCODE,
    CDX_DIGEST,
    CDX_LENGTH, /* of the record as it is stored */
    CDX_OFFSET,
    CDX_FILENAME,
    CDX_ACCESS,          /* "allow" or "block" */
    CDX_ID,              /* what names this very capture: replay/archive/stamp.h */
    CDX_METHOD,          /* of the request, if it was no GET */
    CDX_REQUEST_BODY,    /* of that, as arguments: warc/request_key.h */
    CDX_PROVENANCE,      /* "fetched", "imported", "unknown": archive_provenance() */
    CDX_VOUCHER,         /* the key of the node that says so, its first 12 digits */
    CDX_ORIGINAL_LENGTH, /* of the record that a revisit refers to */
    CDX_ORIGINAL_OFFSET,
    CDX_ORIGINAL_FILENAME,
    CDX_FIELDS_COUNT,
    CDX_WHOLE_LINE = CDX_FIELDS_COUNT, /* for filters: all of the above that are public, with spaces */
};

/* The first so many are what the Internet Archive shows. */
enum { CDX_PUBLIC_COUNT = CDX_LENGTH + 1, CDX_NUMBER_SIZE = 21, CDX_VOUCHER_SIZE = 13 };

static inline unsigned cdx_field_bit(enum cdx_field field) {
    return 1U << field;
}

/* By the name of either dialect; false if there is no such field. */
bool cdx_field_parse(struct bytes name, enum cdx_field *ret_field);
const char *cdx_field_name(enum cdx_dialect dialect, enum cdx_field field);

struct cdx_line {
    struct bytes values[CDX_FIELDS_COUNT]; /* empty: it has none */
    struct bytes own_type; /* with CDX_MIMETYPE: what the server said, also if it is "warc/revisit" */
    struct capture_line text;
    struct capture_line original_text;
    bool is_resolved; /* revisits show their own type, and where the payload is */
    char timestamp[UTC_DIGITS_SIZE];
    char id[STAMP_SIZE];
    char voucher[CDX_VOUCHER_SIZE];
    char status[CDX_NUMBER_SIZE];
    char length[CDX_NUMBER_SIZE];
    char offset[CDX_NUMBER_SIZE];
    char original_length[CDX_NUMBER_SIZE];
    char original_offset[CDX_NUMBER_SIZE];
    struct buf whole;
};

void cdx_line_init(struct cdx_line *line, struct instance *instance, bool is_resolved);
void cdx_line_done(struct cdx_line *line);

/* The fields whose bits are set, and those only. They borrow the capture and the line. */
void cdx_line_fill(struct cdx_line *line, struct archive_reader *reader, const struct capture *capture,
                   unsigned fields);

/* One of them; "-" if it is empty. CDX_WHOLE_LINE needs all public ones. */
struct bytes cdx_line_value(struct cdx_line *line, enum cdx_field field);

#endif
