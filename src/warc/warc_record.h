/*
 * warc_record - one record of a WARC or ARC file: where it lies, and its header.
 *
 *      WARC/1.1 CRLF
 *      WARC-Type: response CRLF
 *      WARC-Record-ID: <urn:uuid:…> CRLF            any number of fields, in any order
 *      Content-Length: 1610 CRLF
 *      CRLF
 *      1610 bytes                                   the block; its start may be an HTTP head, the rest the
 * payload CRLF CRLF
 *
 * ARC (version 1) has one line instead, and a line end behind the block. It is given the fields that the same
 * record has in WARC, so that whoever reads records need not care:
 *
 *      http://example.com/ 93.184.216.119 20140216050221 text/html 1591 LF
 *      1591 bytes LF
 */
#ifndef MNEMON_WARC_WARC_RECORD_H
#define MNEMON_WARC_WARC_RECORD_H

#include "base/buf.h"
#include "http/message/fields.h"

enum { WARC_RECORD_HEAD_SIZE_MAX = 64 << 10 };

enum warc_type {
    WARC_TYPE_UNKNOWN,
    WARC_TYPE_WARCINFO,
    WARC_TYPE_RESPONSE,
    WARC_TYPE_RESOURCE,
    WARC_TYPE_REQUEST,
    WARC_TYPE_METADATA,
    WARC_TYPE_REVISIT,
    WARC_TYPE_CONVERSION,
    WARC_TYPE_CONTINUATION,
};

struct warc_record {
    uint64_t offset; /* in the file: of the record, or of the member that it starts in */
    uint64_t length; /* stored bytes from there to its end; 0 until that is known, and if it is not alone */
    bool is_alone;   /* no other record shares its members, so offset and length find it */
    bool is_arc;
    uint8_t version_major; /* 1 for WARC/1.1, and for ARC */
    uint8_t version_minor;
    enum warc_type type;
    uint64_t content_length;
    bool has_date;
    int64_t date_us;
    struct bytes target_uri; /* without <> around it; empty if there is none */
    struct bytes content_type;
    struct fields fields; /* all of them, as they came */
};

/* "response" and so on; "unknown" for WARC_TYPE_UNKNOWN. */
const char *warc_type_name(enum warc_type type);

/*
 * Parse a header with all of its lines. The text is changed if lines are folded, and borrowed. ERR_INVALID
 * with the byte of the text in detail->offset; offset, length and is_alone of the record are not touched.
 */
enum err warc_record_parse(struct warc_record *record, uint8_t *text, size_t size,
                           struct err_detail *detail) MUST_CHECK;

/* The same for the one line of an ARC record, from which the fields are first made in `head`. */
enum err warc_record_parse_arc(struct warc_record *record, struct bytes line, struct buf *head,
                               struct err_detail *detail) MUST_CHECK;

/* Whether the text could be the start of a record: "WARC/1." or a line of an ARC file. */
bool warc_record_begins(struct bytes text); /* "WARC/", whatever follows; some write it in small letters */
bool warc_record_is_start(struct bytes text);
bool warc_record_is_arc_start(struct bytes text);

/*
 * A whole record in memory: its header, which is copied to the text, and its block, a slice of the record.
 * False if it is none.
 */
bool warc_record_split(struct warc_record *record, struct bytes all, struct buf *text,
                       struct bytes *ret_block);

/* Is the block an HTTP message? By Content-Type. */
bool warc_record_is_http(const struct warc_record *record);

/* Without the <> that URIs of some fields, and of wget's files all, stand in. */
struct bytes warc_bare_uri(struct bytes value);

#endif
