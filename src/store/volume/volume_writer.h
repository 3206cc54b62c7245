/*
 * volume_writer - turns documents into records for the committer. Private to the volume.
 *
 * One machine in several files:
 *      volume_writer.c    what is this document: digest, duplicate or new, which block? And the public calls
 *      volume_encode.c    its records, compressed
 *      volume_mend.c      the calls that remove and repair captures
 */
#ifndef MNEMON_STORE_VOLUME_VOLUME_WRITER_H
#define MNEMON_STORE_VOLUME_VOLUME_WRITER_H

#include "store/document/document_hasher.h"
#include "store/volume/volume_state.h"
#include "web/type/mime_type.h"
#include "web/url/canon.h"

enum { VOLUME_URN_SIZE = 80 };

struct volume_writer {
    struct volume *volume;
    struct volume_reader *reader;  /* to compare, and to learn what a duplicate is of */
    struct document_hasher hasher; /* its payload has the head of the document */
    struct canon canon;
    struct buf surt;
    struct buf request_key; /* of the document that is written; warc/request_key.h */
    struct buf url;         /* by which it is found */
    struct buf origin;      /* URI of what a duplicate is of */
};

/* What is known of a document before it is written. */
struct volume_plan {
    const struct document *document;
    enum store_mode mode;
    uint8_t sha256[SHA256_SIZE];
    uint8_t digest[KEY_DIGEST_SIZE];
    uint16_t number;
    uint64_t payload_size;
    bool is_duplicate;
    struct volume_look look; /* at the block of that number */
    uint16_t status;
    struct mime_type type;
    bool is_bare;          /* not as a capture: only for revisits of it */
    struct location mends; /* the damaged record that it replaces; segment 0: none */
};

/*
 * For a block that is there: is_duplicate and what follows the look are the caller's to set. ERR_MISMATCH
 * if the document is another; ERR_NOT_FOUND if there is no such block, or not any more.
 */
enum err volume_plan_again(struct volume_writer *writer, const struct document *document,
                           const struct key *key, struct volume_plan *ret_plan,
                           struct err_detail *detail) MUST_CHECK;

/* "urn:sha256:…": what a plain document is called in WARC. */
struct bytes volume_urn(const uint8_t sha256[SHA256_SIZE], char out[VOLUME_URN_SIZE]);

/*
 * Fill the item with frames and entries. ERR_BUSY: plan again. ERR_CORRUPT: what it is a duplicate of is
 * damaged.
 */
enum err volume_encode(struct volume_writer *writer, const struct volume_plan *plan, struct volume_item *item,
                       struct err_detail *detail) MUST_CHECK;
enum err volume_encode_deletion(struct volume_writer *writer, const struct key *key, struct volume_item *item,
                                struct err_detail *detail) MUST_CHECK;

/* SURT, URL, time, digest and block number name the capture; its location does not matter. */
enum err volume_encode_removal(struct volume_writer *writer, const struct capture *capture, bool is_purge,
                               struct volume_item *item, struct err_detail *detail) MUST_CHECK;

#endif
