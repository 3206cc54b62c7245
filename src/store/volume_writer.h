/*
 * volume_writer - what the files share that turn documents into records for the committer. Private to them.
 *
 *      volume_plan.c      what is this document: signature, duplicate or new, which block?
 *      volume_encode.c    its records, compressed
 *      volume_put.c       the public calls
 */
#ifndef MNEMON_STORE_VOLUME_WRITER_H
#define MNEMON_STORE_VOLUME_WRITER_H

#include "base/sha256.h"
#include "store/volume_state.h"
#include "url/canon.h"
#include "warc/payload.h"

struct volume_writer {
    struct volume *volume;
    struct volume_reader *reader; /* to compare, and to learn what a duplicate is of */
    struct payload payload;
    struct sha256 sha256;
    struct canon canon;
    struct buf surt;
};

/* What is known of a document before it is written. */
struct volume_plan {
    const struct document *document;
    enum store_mode mode;
    uint8_t digest[SHA256_SIZE];
    uint8_t signature[KEY_SIGNATURE_SIZE];
    uint16_t number;
    uint64_t payload_size;
    bool is_duplicate;
    struct volume_look look; /* at the block of that number */
    uint16_t status;
    struct bytes mime; /* in writer->payload or the document */
};

/* ERR_NOT_FOUND where the body is left out and it is no duplicate. */
enum err volume_make_plan(struct volume_writer *writer, const struct document *document, enum store_mode mode,
                          struct volume_plan *ret_plan, struct err_detail *detail) MUST_CHECK;

/*
 * Fill the item with frames and entries. ERR_BUSY: plan again. ERR_CORRUPT: what it is a duplicate of is
 * damaged.
 */
enum err volume_encode(struct volume_writer *writer, const struct volume_plan *plan, struct volume_item *item,
                       struct err_detail *detail) MUST_CHECK;
enum err volume_encode_deletion(struct volume_writer *writer, const struct key *key, struct volume_item *item,
                                struct err_detail *detail) MUST_CHECK;

#endif
