/*
 * volume_record - how the store's own facts are written in WARC records, and read back.
 *
 *      WARC-Target-URI: urn:sha256:<hex>        a plain document, which has no URL
 *      Mnemon-Block: 2                          number of the block, where it is not 0
 *      Mnemon-Signature: <key> <hex>            who fetched it and vouches for it: crawl/engine/attest.h
 *      Mnemon-Imported: <key> <hex>             likewise, who imported it from a file
 *      Mnemon-Request-Key: __wb_method=POST&a=1 method and body of the request, if it is no GET: the capture
 * is found by its URL with these arguments (warc/request_key.h) Mnemon-Delete: <hex>.<number>            one
 * reference to that block is gone (a metadata record) Mnemon-Capture: <date>                   with it: the
 * captures of the target URI and this date are gone Mnemon-Bare: yes                         not a capture:
 * only holds the document of revisits Mnemon-Mends: <segment> <offset> <length>    takes the place of that
 * record, which is damaged
 *
 * Other tools see ordinary WARC with unknown fields, which the standard tells them to ignore.
 */
#ifndef MNEMON_STORE_VOLUME_VOLUME_RECORD_H
#define MNEMON_STORE_VOLUME_VOLUME_RECORD_H

#include "base/sha256.h"
#include "store/index/ledger.h"
#include "store/volume/volume.h"
#include "warc/payload.h"
#include "warc/warc_reader.h"
#include "web/url/canon.h"

#define VOLUME_URN_PREFIX "urn:sha256:"
#define VOLUME_BLOCK_FIELD "Mnemon-Block"
#define VOLUME_REQUEST_KEY_FIELD "Mnemon-Request-Key"
#define VOLUME_DELETE_FIELD "Mnemon-Delete"
#define VOLUME_CAPTURE_FIELD "Mnemon-Capture"
#define VOLUME_BARE_FIELD "Mnemon-Bare"
#define VOLUME_PURGE_FIELD "Mnemon-Purge" /* of a removal: the next compaction leaves none of the bytes */
#define VOLUME_MENDS_FIELD "Mnemon-Mends"
#define VOLUME_TLS_FIELD "Mnemon-TLS"
#define VOLUME_SIGNATURE_FIELD "Mnemon-Signature"
#define VOLUME_IMPORTED_FIELD "Mnemon-Imported"
#define VOLUME_VISIT_FIELD "Mnemon-Visit"   /* when the visit began in which several nodes fetched it */
#define VOLUME_SOURCE_FIELD "Mnemon-Source" /* only of a guest's: which node it came from */

/* What a revisit says of the record that it refers to. */
struct volume_origin {
    struct bytes uri; /* in the reader's memory, until its next call */
    int64_t date_us;
};

/* What the index is to know of a capture with these fields: is it that of a witness? */
void volume_describe_witness(struct bytes visit, struct bytes signature, struct ledger_entry *entry);

/* And does a node vouch for it? */
void volume_describe_voucher(struct bytes signature, struct bytes imported, struct ledger_entry *entry);

/* What the index keeps of a target URI: 48 bits of its SHA-256. */
uint64_t volume_hash_uri(struct sha256 *sha256, struct bytes uri);

/* From the header of the record; of a large one nothing else is read, and no checksum compared. */
enum err volume_read_origin(struct volume_reader *reader, const struct location *location,
                            struct volume_origin *ret_origin, struct err_detail *detail) MUST_CHECK;

/* In volume_reader.c: the start of a record, with its header and not much more. Else as volume_get_record().
 */
enum err volume_get_head(struct volume_reader *reader, const struct location *location,
                         struct bytes *ret_head, struct err_detail *detail) MUST_CHECK;

/* Reads records as the ledger wants them; its memory is used again and again. */
struct volume_scan {
    const struct volume *volume;
    struct payload payload;
    struct sha256 sha256;
    struct canon canon;
    struct buf surt;
    struct buf url;
    struct buf mime;
};

enum err volume_scan_init(struct volume_scan *scan, const struct volume *volume) MUST_CHECK;
void volume_scan_done(struct volume_scan *scan);

/*
 * The entry of the record that the reader is at, in segment `number`; reads it to its end. Its slices live in
 * the scan until the next call. The errors of warc_reader_read().
 */
enum err volume_scan_record(struct volume_scan *scan, struct warc_reader *reader, uint32_t number,
                            struct ledger_entry *ret_entry, struct err_detail *detail) MUST_CHECK;

#endif
