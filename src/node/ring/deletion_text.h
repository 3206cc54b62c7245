/*
 * deletion_text - the text of a decree that deletes captures: which, and why (docs/formats/decree.md).
 *
 *      reason asked for by the people in it
 *      url http://example.org/private
 *      delete - 1763473800000000 org,example)/private###
 *
 * A text that says something else is refused as a whole: half a deletion would be taken for all of it.
 */
#ifndef MNEMON_NODE_RING_DELETION_TEXT_H
#define MNEMON_NODE_RING_DELETION_TEXT_H

#include "store/instance/deletion.h"

enum { DELETION_TEXT_REASON_SIZE_MAX = 1024, DELETION_TEXT_URLS_MAX = 256 };

/* Slices borrow from the text. */
struct deletion_text {
    struct bytes reason;
    struct bytes urls[DELETION_TEXT_URLS_MAX]; /* as they were written */
    size_t urls_count;
    int64_t from_us; /* of the first that is deleted; INT64_MIN: from the beginning */
    int64_t to_us;
};

/* 1 to 1,024 bytes of one line. */
bool deletion_text_is_reason(struct bytes reason);

/* Append. The reason first, then each URL with what it means. */
void deletion_text_put_reason(struct buf *out, struct bytes reason);
void deletion_text_put_url(struct buf *out, struct bytes url, const struct deletion *deletions, size_t count);

/*
 * version: of the decree, which is when it was made: it cannot delete what comes later. set: gets the
 * deletions; may be NULL. ERR_INVALID, ERR_UNSUPPORTED, ERR_LIMIT.
 */
enum err deletion_text_read(struct bytes text, uint64_t version, struct deletion_text *ret_text,
                            struct deletion_set *set, struct err_detail *detail) MUST_CHECK;

#endif
