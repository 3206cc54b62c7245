/*
 * index_entry - what an index holds: documents in blocks, captures of URLs, segments, and how far they are
 * read.
 *
 * Plain structs, for readers and writers of an index (index.h) and for its code (index_code.h).
 */
#ifndef MNEMON_STORE_INDEX_INDEX_ENTRY_H
#define MNEMON_STORE_INDEX_INDEX_ENTRY_H

#include "base/bytes.h"
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
};

struct index_segment {
    uint64_t size;      /* of the file as far as it is indexed */
    uint64_t dead_size; /* of frames that nobody needs any more */
    uint32_t records_count;
};

/* The segments are indexed up to here. */
struct index_position {
    uint32_t segment; /* 0: nothing is */
    uint64_t offset;
};

#endif
