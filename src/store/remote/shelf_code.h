/*
 * shelf_code - what a volume server and its clients say to each other, as bytes in base/wire.h terms.
 *
 *      claims     count:varint { digest[32] size:varint }              to ask whether they are held
 *      answers    count:varint bits                                     of claim 0 the lowest bit of byte 0
 *      document   meta_size:u32 meta body                               to put; the body to the end
 *        meta     mode:u8 form:u8 time_us:u64 url head content_type request ip_address truncated: strings
 *                 size:varint                                           of the body, or of the payload left
 * out [digest[32] is_not_modified:bool]                     where it is left out stored     number:u16
 * signature[32] is_duplicate:bool size:varint location block      location size:varint
 * references:varint(zigzag) records_count:varint walk       from:string to:string in_reverse:bool
 * count_max:varint captures   { 1:u8 capture } 0:u8 is_end:bool next:string         next: where the walk goes
 * on capture  surt:string time_us:u64 location url:string mime:string status:varint flags:u8 block_number:u16
 * signature[32] blocks     { 1:u8 signature[32] number:u16 block } 0:u8 is_end:bool next:string stat six
 * varints location   segment:varint offset:varint length:varint
 *
 * Readers take any bytes: every length has a bound, every value its range, and *detail says at which byte and
 * why. Slices borrow from the bytes that were read. Used by shelf_remote.c and
 * replay/volumes/volume_service.c; the whole protocol is in docs/protocol/volumes.md.
 */
#ifndef MNEMON_STORE_REMOTE_SHELF_CODE_H
#define MNEMON_STORE_REMOTE_SHELF_CODE_H

#include "base/buf.h"
#include "base/wire.h"
#include "store/shelf/shelf.h"

enum {
    SHELF_CODE_CLAIMS_MAX = 1024,
    SHELF_CODE_CLAIMS_SIZE_MAX = 3 + SHELF_CODE_CLAIMS_MAX * (KEY_SIGNATURE_SIZE + WIRE_VARINT_SIZE_MAX),
    SHELF_CODE_HEAD_SIZE_MAX = 1 << 20, /* of an HTTP request or response, each */
    SHELF_CODE_FIELD_SIZE_MAX = 4096,   /* of a media type */
    SHELF_CODE_WORD_SIZE_MAX = 64,      /* of an IP address, of why it is truncated, of TLS */
    SHELF_CODE_SIGNATURE_SIZE_MAX = 256,
    SHELF_CODE_META_SIZE_MAX = 2 * SHELF_CODE_HEAD_SIZE_MAX + INDEX_URL_SIZE_MAX + (1 << 14),
    SHELF_CODE_META_PREFIX_SIZE = 4,
    SHELF_CODE_SMALL_SIZE_MAX = 128, /* stored, block, stat, the answers to one claim */
    SHELF_CODE_KEY_SIZE_MAX = INDEX_SURT_SIZE_MAX + 64,
    SHELF_CODE_WALK_SIZE_MAX = 2 * SHELF_CODE_KEY_SIZE_MAX + 64,
    SHELF_CODE_PAGE_COUNT_MAX = 4096,
    SHELF_CODE_PAGE_SIZE = 256 << 10,   /* a page ends with the entry that passes it */
    SHELF_CODE_PAGE_SIZE_MAX = 1 << 20, /* so no page is larger */
};

/* ---- claims and answers ---- */

void shelf_code_put_claims(struct buf *out, const struct document_sum *claims, size_t claims_count);

/* Call begin, then next for each; ERR_OK from finish means that all of it was sound. */
size_t shelf_code_begin_claims(struct wire_reader *reader);
void shelf_code_next_claim(struct wire_reader *reader, struct document_sum *ret_claim);

void shelf_code_put_answers(struct buf *out, const bool *holds, size_t holds_count);
enum err shelf_code_read_answers(struct bytes in, bool *ret_holds, size_t holds_count,
                                 struct err_detail *detail) MUST_CHECK;

/* ---- documents ---- */

enum shelf_code_form {
    SHELF_CODE_PLAIN,
    SHELF_CODE_ZSTD,     /* one frame that says its content size */
    SHELF_CODE_LEFT_OUT, /* a duplicate: the digest instead of the body */
};

/* The meta part with its size before it; the caller appends the body. ERR_LIMIT where a part is too long. */
enum err shelf_code_put_meta(struct buf *out, const struct document *document, enum store_mode mode,
                             enum shelf_code_form form) MUST_CHECK;

/* A document that was received. */
struct shelf_code_document {
    struct document document; /* its body and its sum are not set */
    enum store_mode mode;
    enum shelf_code_form form;
    struct document_sum sum; /* digest only where the body was left out; the size always */
    struct bytes body;       /* in its form */
};

enum err shelf_code_read_document(struct bytes in, struct shelf_code_document *ret_document,
                                  struct err_detail *detail) MUST_CHECK;

/* ---- answers of fixed shape ---- */

void shelf_code_put_stored(struct buf *out, const struct stored *stored);
void shelf_code_put_block(struct buf *out, const struct block *block);
void shelf_code_put_stat(struct buf *out, const struct shelf_stat *stat);

/* The volume of the key is left 0: it is the reader's number that counts. */
enum err shelf_code_read_stored(struct bytes in, struct stored *ret_stored,
                                struct err_detail *detail) MUST_CHECK;
enum err shelf_code_read_block(struct bytes in, struct block *ret_block,
                               struct err_detail *detail) MUST_CHECK;
enum err shelf_code_read_stat(struct bytes in, struct shelf_stat *ret_stat,
                              struct err_detail *detail) MUST_CHECK;

/* ---- walks, in pages ---- */

/* Keys of the index; empty: no bound. Blocks are walked forward only, and to their end. */
struct shelf_code_walk {
    struct bytes from;
    struct bytes to;
    bool in_reverse;
    uint32_t count_max; /* 1 to SHELF_CODE_PAGE_COUNT_MAX */
};

enum err shelf_code_put_walk(struct buf *out, const struct shelf_code_walk *walk) MUST_CHECK;
enum err shelf_code_read_walk(struct bytes in, struct shelf_code_walk *ret_walk,
                              struct err_detail *detail) MUST_CHECK;

void shelf_code_put_capture(struct buf *out, const struct capture *capture);
void shelf_code_put_key_block(struct buf *out, const struct key *key, const struct block *block);

/* What the end of a page says. */
struct shelf_code_page_end {
    bool is_end;       /* of the whole walk */
    struct bytes next; /* `from`, or `to` in reverse, of the next page */
};

void shelf_code_put_page_end(struct buf *out, const struct shelf_code_page_end *end);

/* ERR_OK and the next entry; ERR_NOT_FOUND behind the last, with *ret_end filled and the page checked. */
enum err shelf_code_next_capture(struct wire_reader *reader, struct capture *ret_capture,
                                 struct shelf_code_page_end *ret_end, struct err_detail *detail) MUST_CHECK;
enum err shelf_code_next_block(struct wire_reader *reader, struct key *ret_key, struct block *ret_block,
                               struct shelf_code_page_end *ret_end, struct err_detail *detail) MUST_CHECK;

#endif
