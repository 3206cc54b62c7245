/*
 * index_code - how the entries of the index are written: keys that sort as bytes, values in base/wire.h
 * terms.
 *
 *      blocks     digest[32] [number:u16]                number only where it is not 0; big-endian
 *                 segment:varint offset:varint length:varint size:varint references:varint
 *                 records_count:varint [time:varint uri_hash:u48]
 *                                       references zigzag: 0, -1, 1, -2 are 0, 1, 2, 3; time in microseconds
 *                                       from 0001-01-01; the last two only where segment is not 0
 *
 *      captures   surt 0x00 seconds:u40 microseconds:u24 segment:sized offset:sized        big-endian
 *                 flags:u8 url mime:u8 [mime:string] status:varint block_number:varint length:varint
 *                 digest[32], of a revisit only digest[18]
 *                 [visit:u32 signer:u16]                of a witness; visit in seconds from 1970
 *                 [voucher:u64]                         if a node has signed it, or that it imported it
 *
 *      segments   number:u32                                big-endian
 *                 size:varint dead_size:varint records_count:varint
 *
 *      position   segment:varint offset:varint              value of "position" in meta
 *
 *      mended     "mended" segment:u32 offset:u64           big-endian, in meta
 *                 length:varint
 *
 * seconds are counted from 0001-01-01, so that times before 1970 sort too; apart from the microseconds, which
 * most archives leave 0 and which then compress to nothing. A sized integer is the count of its bytes, then
 * those bytes: shorter is smaller, so it sorts, and it takes 1 to 9 bytes. url: index_url.h. mime: code of
 * index_code.c, or MIME_OTHER and the text.
 *
 * A value begins with what hardly differs between captures: zstd then finds it, the end of the key before it
 * and RocksDB's own fields as one piece. The digest is the only long part. A capture of the same payload
 * nearly always follows another of the same SURT, so that its digest is a repetition too and needs no
 * reference that could dangle. A revisit of another URL has no such neighbour; 18 bytes name its block, whose
 * key has all 32 and is in the index as long as any record of it is (index_cursor.c).
 *
 * Readers take any bytes: damage is ERR_CORRUPT. Buffers that writers append to keep their own error.
 */
#ifndef MNEMON_STORE_INDEX_INDEX_CODE_H
#define MNEMON_STORE_INDEX_INDEX_CODE_H

#include "base/buf.h"
#include "store/document/key.h"
#include "store/document/location.h"

/* In bytes; those of SURTs and URLs are URL_SIZE_MAX of web/url/url.h. */
enum { INDEX_SURT_SIZE_MAX = 1 << 16, INDEX_URL_SIZE_MAX = 1 << 16, INDEX_MIME_SIZE_MAX = 127 };

/* One stored document. Its location is that of the record that holds it. */
struct block {
    struct location location; /* segment 0: only revisits and deletions of it have been read so far */
    uint64_t size;            /* of the document */
    int32_t references;       /* stores minus deletions; store/index/ledger.h says what 0 and less mean */
    uint32_t records_count;   /* stores whose records are in the segments */
    /* For the revisits that refer to the record at the location: its date, and what its URI hashes to
     * (48 bits), by which a writer knows whether it has that URI in hand. */
    int64_t origin_time_us;
    uint64_t origin_uri_hash;
};

static const uint64_t INDEX_URI_HASH_MAX = (UINT64_C(1) << 48) - 1;

enum capture_flag {
    CAPTURE_REVISIT = 1,   /* the record has no payload of its own: look for the block */
    CAPTURE_TRUNCATED = 2, /* the payload was cut when it was fetched */
    CAPTURE_WITNESS = 4,   /* one of several nodes fetched it in one visit: it has visit and signer */
    CAPTURE_IMPORTED = 8,  /* a node says that it took it from a file */
    CAPTURE_SIGNED = 16,   /* a node says that it fetched it */
};

/* One capture of a URL. Slices borrow from whoever gave the struct. */
struct capture {
    struct bytes surt;
    int64_t time_us;
    struct location location;
    struct bytes url;  /* as it was fetched */
    struct bytes mime; /* as CDX writes it, without parameters; may be empty */
    uint16_t status;   /* of HTTP; 0 if there is none */
    uint8_t flags;     /* enum capture_flag */
    uint16_t block_number;
    uint16_t volume; /* whose segments these are; 0 until an instance says so: an index does not know */
    uint8_t digest[KEY_DIGEST_SIZE]; /* of the payload */
    uint32_t visit_s; /* of a witness: when its visit began; 0 where another machine lists it */
    uint16_t signer;  /* of a witness: the start of the key of the node that fetched it */
    uint64_t voucher; /* the first 8 bytes of the key of the node that signed it; else of the one that
                       * imported it. 0: neither, or of a listing or an index from before 0.3 */
};

static inline bool capture_has_voucher(const struct capture *capture) {
    return (capture->flags & (CAPTURE_SIGNED | CAPTURE_IMPORTED)) != 0;
}

struct index_segment {
    uint64_t size;      /* of the file as far as it is indexed */
    uint64_t dead_size; /* of frames that nobody needs any more */
    uint32_t records_count;
    bool has_purged; /* bytes of captures that must not survive the next compaction */
};

/* The segments are indexed up to here. */
struct index_position {
    uint32_t segment; /* 0: nothing is */
    uint64_t offset;
};

/* The kinds of entries, each sorted by its keys. */
enum index_family {
    INDEX_FAMILY_DEFAULT, /* RocksDB insists on it; empty */
    INDEX_FAMILY_BLOCKS,
    INDEX_FAMILY_CAPTURES,
    INDEX_FAMILY_SEGMENTS,
    INDEX_FAMILY_META,
    INDEX_FAMILIES_COUNT,
};

enum {
    INDEX_CODE_BLOCK_KEY_SIZE_MAX = KEY_DIGEST_SIZE + 2,
    INDEX_CODE_SEGMENT_KEY_SIZE = 4,
    INDEX_CODE_MENDED_KEY_SIZE = 6 + 4 + 8,
    INDEX_CODE_SHORT_DIGEST_SIZE = 18, /* two documents that share it take 2^72 tries */
    INDEX_CODE_SMALL_SIZE_MAX = 64,    /* any value but that of a capture */
    INDEX_CODE_CAPTURE_KEY_SIZE_MAX = INDEX_SURT_SIZE_MAX + 1 + 8 + 5 + 9,
    INDEX_CODE_CAPTURE_OVERHEAD_SIZE_MAX = 128, /* of a capture's value beside the text of URL and type */
    INDEX_CODE_CAPTURE_SIZE_MAX =
        INDEX_URL_SIZE_MAX + INDEX_MIME_SIZE_MAX + INDEX_CODE_CAPTURE_OVERHEAD_SIZE_MAX,
};

/* Each writes into out and returns the part of it that it used. */
struct bytes index_code_block_key(uint8_t out[INDEX_CODE_BLOCK_KEY_SIZE_MAX],
                                  const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number);
struct bytes index_code_segment_key(uint8_t out[INDEX_CODE_SEGMENT_KEY_SIZE], uint32_t number);
struct bytes index_code_block(uint8_t out[INDEX_CODE_SMALL_SIZE_MAX], const struct block *block);
struct bytes index_code_segment(uint8_t out[INDEX_CODE_SMALL_SIZE_MAX], const struct index_segment *segment);
struct bytes index_code_position(uint8_t out[INDEX_CODE_SMALL_SIZE_MAX],
                                 const struct index_position *position);

struct bytes index_code_mended_key(uint8_t out[INDEX_CODE_MENDED_KEY_SIZE], uint32_t segment,
                                   uint64_t offset);
struct bytes index_code_mended(uint8_t out[INDEX_CODE_SMALL_SIZE_MAX], const struct location *location);

/* ERR_NOT_FOUND if the key is that of something else, or of another segment. */
enum err index_code_read_mended(struct bytes key, struct bytes value, uint32_t segment,
                                struct location *ret_location) MUST_CHECK;
enum err index_code_read_block_key(struct bytes key, uint8_t ret_digest[KEY_DIGEST_SIZE],
                                   uint16_t *ret_number) MUST_CHECK;
enum err index_code_read_block(struct bytes value, struct block *ret_block) MUST_CHECK;
enum err index_code_read_segment(struct bytes value, struct index_segment *ret_segment) MUST_CHECK;
enum err index_code_read_position(struct bytes value, struct index_position *ret_position) MUST_CHECK;

/*
 * False if a capture breaks a limit: sizes, 0x00 or 0xff in the SURT, a time out of years 1 to 9999, no
 * segment, unknown flags. Ask before putting what others wrote; putting such a capture fails an ASSERT.
 */
bool index_can_hold(const struct capture *capture);
/*
 * Append the key where the captures of a SURT from a time on begin. Any time is allowed; those before year 1
 * and after year 9999 are before and after all captures.
 */
void index_put_capture_prefix(struct buf *buf, struct bytes surt, int64_t time_us);

/* Append. The capture is one that index_can_hold(). url is work space: INDEX_URL_WORK_SIZE_MAX. */
void index_code_put_capture_key(struct buf *key, const struct capture *capture);
void index_code_put_capture(struct buf *value, const struct capture *capture, struct buf *url);

/*
 * The capture borrows from key, value and url, a buffer of INDEX_URL_WORK_SIZE_MAX. Of a revisit's digest
 * only the first INDEX_CODE_SHORT_DIGEST_SIZE bytes are known here, the others are 0.
 */
enum err index_code_read_capture(struct bytes key, struct bytes value, struct buf *url,
                                 struct capture *ret_capture) MUST_CHECK;

/* The size of "surt" 0x00 at the start of a key or of a prefix of one; 0 if there is no 0x00. */
size_t index_code_surt_size(struct bytes key);

#endif
