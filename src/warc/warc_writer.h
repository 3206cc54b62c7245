/*
 * warc_writer - appends records to a WARC 1.1 file, exactly as docs/formats/warc.md says.
 *
 *      struct warc_draft draft = {.type = WARC_TYPE_RESPONSE, .date_us = now, .target_uri = uri, .body =
 * block}; err = warc_writer_put(&writer, &draft, &written, &detail);      written.offset, written.length
 *
 * One record becomes one gzip member or zstd frame. Block and payload digests are computed here (SHA-256).
 *
 * The writer neither opens, syncs nor cuts files: it appends to a sink and counts. After a failed append it
 * refuses everything, because the sink may hold half a record, until the owner has cut the file back and
 * calls warc_writer_resume().
 *
 * Nothing is allocated per record once every kind has been written. One thread at a time.
 */
#ifndef MNEMON_WARC_WARC_WRITER_H
#define MNEMON_WARC_WARC_WRITER_H

#include "base/sha256.h"
#include "warc/pack.h"
#include "warc/payload.h"
#include "warc/warc_id.h"
#include "warc/warc_record.h"

enum warc_revisit {
    WARC_REVISIT_IDENTICAL_PAYLOAD, /* the payload was stored before; the block is the HTTP head */
    WARC_REVISIT_NOT_MODIFIED,      /* the server said so (304) */
};

/* Such an ID is "<urn:x-mnemon:2026-01-02T03:04:05Z:http://example.org/>". */
#define WARC_PLAIN_ID_PREFIX "urn:x-mnemon:"

/* What to write. Zero or empty if it does not apply; all of it is borrowed for the call. */
struct warc_draft {
    enum warc_type type;
    int64_t date_us;                     /* the same for all records of one capture */
    struct bytes target_uri;             /* mandatory; optional for metadata, none for warcinfo */
    struct bytes content_type;           /* empty: the usual one of the type */
    struct bytes ip_address;             /* of the server */
    struct bytes filename;               /* warcinfo */
    struct bytes truncated;              /* why the block is not whole: length, time, disconnect */
    const struct warc_id *id;            /* NULL: a new one */
    bool has_plain_id;                   /* made of date and target URI: it takes no room where many are */
    const struct warc_id *concurrent_to; /* the other record of the capture */
    enum warc_revisit revisit;           /* revisit, with the next three */
    struct bytes refers_to_target_uri;   /* mandatory: readers resolve through it */
    int64_t refers_to_date_us;           /* mandatory */
    const uint8_t *payload_sha256;       /* mandatory for identical payload; else NULL: it is computed */
    const struct field *fields;          /* any others */
    size_t fields_count;
    struct bytes head; /* the block is head, then body: an HTTP head may come from elsewhere than its body */
    struct bytes body;
    bool is_incompressible; /* an image, an archive */
    /* Leave the block digest out if only it would have to be computed: HTTP with a known payload digest,
     * and what has no payload. The checksum of the gzip member or zstd frame then is what protects the block.
     */
    bool is_block_digest_optional;
};

struct warc_written {
    uint64_t offset; /* in the file */
    uint64_t length;
    struct warc_id id;
    bool has_payload_sha256; /* response, resource, conversion, revisit */
    uint8_t payload_sha256[SHA256_SIZE];
    bool has_block_sha256;
    uint8_t block_sha256[SHA256_SIZE];
};

enum { WARC_WRITER_RANDOM_SIZE = 32 * WARC_ID_SIZE };

struct warc_writer {
    struct pack pack;
    uint64_t offset; /* where the next record will lie */
    bool is_torn;
    struct warc_random random;
    uint8_t random_bytes[WARC_WRITER_RANDOM_SIZE]; /* asked for at once: the system is slow */
    size_t random_left;
    struct buf head;
    struct payload payload;
    struct sha256 block_hash;
    struct sha256 payload_hash;
};

/* sink and random are borrowed; offset is the size of what the sink appends to. */
enum err warc_writer_init(struct warc_writer *writer, struct sink *sink, uint64_t offset,
                          const struct pack_options *options, struct warc_random random) MUST_CHECK;
void warc_writer_done(struct warc_writer *writer);

/*
 * Append a record. ERR_INVALID if the draft lacks something or holds line ends in a field; then nothing
 * was written.
 */
enum err warc_writer_put(struct warc_writer *writer, const struct warc_draft *draft,
                         struct warc_written *ret_written, struct err_detail *detail) MUST_CHECK;

/* The file has been cut to this size: go on there. */
void warc_writer_resume(struct warc_writer *writer, uint64_t offset);

/* Lines for the block of a warcinfo record; skipped if the value is empty. */
void warc_put_info(struct buf *out, const char *name, struct bytes value);

#endif
