/*
 * backend_code - what a volume server and its clients say to each other, as bytes in base/wire.h terms.
 *
 *      claims     count:varint { digest[32] size:varint }           to ask whether they are held
 *      answers    count:varint bits                                  claim 0: the lowest bit of byte 0
 *      document   meta_size:u32 meta body                            to put; the body goes to the end
 *        meta     mode:u8 form:u8 time_us:u64
 *                 url head content_type request ip_address truncated   (strings)
 *                 size:varint                                        of the body, or of the payload left out
 *                 [digest[32] is_not_modified:bool]                  if it is left out
 *      stored     number:u16 digest[32] is_duplicate:bool size:varint location
 *      block      location size:varint references:varint(zigzag) records_count:varint
 *      walk       from:string to:string in_reverse:bool count_max:varint
 *      captures   { 1:u8 capture } 0:u8 is_end:bool next:string      next: where the walk goes on
 *      capture    surt:string time_us:u64 location url:string mime:string status:varint
 *                 flags:u8 block_number:u16 digest[32]
 *                 [visit_s:u32 signer:u16]                           of a witness: flag 4
 *                 [voucher:u64]                                      flags 8 and 16: a node vouches for it
 *      blocks     { 1:u8 digest[32] number:u16 block } 0:u8 is_end:bool next:string
 *      stat       six varints
 *      location   segment:varint offset:varint length:varint
 *
 * Readers take any bytes: every length has a bound, every value its range, and *detail says at which byte and
 * why. Slices borrow from the bytes that were read. Used by backend_remote.c and
 * replay/volumes/volume_service.c; the whole protocol is in docs/protocol/volumes.md.
 */
#ifndef MNEMON_STORE_REMOTE_BACKEND_CODE_H
#define MNEMON_STORE_REMOTE_BACKEND_CODE_H

#include "base/buf.h"
#include "base/wire.h"
#include "store/backend/backend.h"

enum {
    BACKEND_CODE_CLAIMS_MAX = 1024,
    BACKEND_CODE_CLAIMS_SIZE_MAX = 3 + BACKEND_CODE_CLAIMS_MAX * (KEY_DIGEST_SIZE + WIRE_VARINT_SIZE_MAX),
    BACKEND_CODE_HEAD_SIZE_MAX = 1 << 20, /* of an HTTP request or response, each */
    BACKEND_CODE_FIELD_SIZE_MAX = 4096,   /* of a media type */
    BACKEND_CODE_WORD_SIZE_MAX = 64,      /* of an IP address, of why it is truncated, of TLS */
    BACKEND_CODE_SIGNATURE_SIZE_MAX = 256,
    BACKEND_CODE_META_SIZE_MAX = 2 * BACKEND_CODE_HEAD_SIZE_MAX + INDEX_URL_SIZE_MAX + (1 << 14),
    BACKEND_CODE_META_PREFIX_SIZE = 4,
    BACKEND_CODE_SMALL_SIZE_MAX = 128, /* stored, block, stat, the answers to one claim */
    BACKEND_CODE_KEY_SIZE_MAX = INDEX_SURT_SIZE_MAX + 64,
    BACKEND_CODE_WALK_SIZE_MAX = 2 * BACKEND_CODE_KEY_SIZE_MAX + 64,
    BACKEND_CODE_PAGE_COUNT_MAX = 4096,
    BACKEND_CODE_PAGE_SIZE = 256 << 10,   /* a page ends with the entry that passes it */
    BACKEND_CODE_PAGE_SIZE_MAX = 1 << 20, /* so no page is larger */
};

/* ---- claims and answers ---- */

void backend_code_put_claims(struct buf *out, const struct document_sum *claims, size_t claims_count);

/* Call begin, then next for each; ERR_OK from finish means that all of it was sound. */
size_t backend_code_begin_claims(struct wire_reader *reader);
void backend_code_next_claim(struct wire_reader *reader, struct document_sum *ret_claim);

void backend_code_put_answers(struct buf *out, const bool *holds, size_t holds_count);
enum err backend_code_read_answers(struct bytes in, bool *ret_holds, size_t holds_count,
                                   struct err_detail *detail) MUST_CHECK;

/* ---- documents ---- */

enum backend_code_form {
    BACKEND_CODE_PLAIN,
    BACKEND_CODE_ZSTD,     /* one frame that says its content size */
    BACKEND_CODE_LEFT_OUT, /* a duplicate: the digest instead of the body */
};

/* The meta part with its size before it; the caller appends the body. ERR_LIMIT if a part is too long. */
enum err backend_code_put_meta(struct buf *out, const struct document *document, enum store_mode mode,
                               enum backend_code_form form) MUST_CHECK;

/* A document that was received. */
struct backend_code_document {
    struct document document; /* its body and its sum are not set */
    enum store_mode mode;
    enum backend_code_form form;
    struct document_sum sum; /* digest only where the body was left out; the size always */
    struct bytes body;       /* in its form */
};

enum err backend_code_read_document(struct bytes in, struct backend_code_document *ret_document,
                                    struct err_detail *detail) MUST_CHECK;

/* ---- answers of fixed shape ---- */

void backend_code_put_stored(struct buf *out, const struct stored *stored);
void backend_code_put_block(struct buf *out, const struct block *block);
void backend_code_put_stat(struct buf *out, const struct volume_stat *stat);

/* The volume of the key is left 0: it is the reader's number that counts. */
enum err backend_code_read_stored(struct bytes in, struct stored *ret_stored,
                                  struct err_detail *detail) MUST_CHECK;
enum err backend_code_read_block(struct bytes in, struct block *ret_block,
                                 struct err_detail *detail) MUST_CHECK;
enum err backend_code_read_stat(struct bytes in, struct volume_stat *ret_stat,
                                struct err_detail *detail) MUST_CHECK;

/* ---- walks, in pages ---- */

/* Of a capture in a page: all programs know the first two. */
enum backend_code_flags {
    BACKEND_CODE_FLAGS_FIRST = CAPTURE_REVISIT | CAPTURE_TRUNCATED,
    BACKEND_CODE_FLAGS_WITNESS = CAPTURE_WITNESS,
    BACKEND_CODE_FLAGS_VOUCHED = CAPTURE_IMPORTED | CAPTURE_SIGNED,
    BACKEND_CODE_FLAGS_ALL =
        BACKEND_CODE_FLAGS_FIRST | BACKEND_CODE_FLAGS_WITNESS | BACKEND_CODE_FLAGS_VOUCHED,
};

/* Keys of the index; empty: no bound. Blocks are walked forward only, and to their end. */
struct backend_code_walk {
    struct bytes from;
    struct bytes to;
    bool in_reverse;
    uint32_t count_max; /* 1 to BACKEND_CODE_PAGE_COUNT_MAX */
    uint8_t flags;      /* is not in the bytes: enum backend_code_flags that whoever asked understands */
};

enum err backend_code_put_walk(struct buf *out, const struct backend_code_walk *walk) MUST_CHECK;
enum err backend_code_read_walk(struct bytes in, struct backend_code_walk *ret_walk,
                                struct err_detail *detail) MUST_CHECK;

/* Without what the flags do not name: programs up to 0.2 refuse it. */
void backend_code_put_capture(struct buf *out, const struct capture *capture, uint8_t flags);
void backend_code_put_key_block(struct buf *out, const struct key *key, const struct block *block);

/* What the end of a page says. */
struct backend_code_page_end {
    bool is_end;       /* of the whole walk */
    struct bytes next; /* `from`, or `to` in reverse, of the next page */
};

/* How many: the answer to a page of captures that are to be purged. */
void backend_code_put_count(struct buf *out, uint64_t count);
enum err backend_code_read_count(struct bytes in, uint64_t count_max, uint64_t *ret_count,
                                 struct err_detail *detail) MUST_CHECK;

void backend_code_put_page_end(struct buf *out, const struct backend_code_page_end *end);

/* ERR_OK and the next entry; ERR_NOT_FOUND behind the last, with *ret_end filled and the page checked. */
enum err backend_code_next_capture(struct wire_reader *reader, struct capture *ret_capture,
                                   struct backend_code_page_end *ret_end,
                                   struct err_detail *detail) MUST_CHECK;
enum err backend_code_next_block(struct wire_reader *reader, struct key *ret_key, struct block *ret_block,
                                 struct backend_code_page_end *ret_end, struct err_detail *detail) MUST_CHECK;

#endif
