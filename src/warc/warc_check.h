/*
 * warc_check - compares a record with the digests that its header states, while somebody reads it.
 *
 *      warc_check_start(&check, &reader.record);
 *      for each piece of the block: warc_check_feed(&check, piece);
 *      warc_check_finish(&check);        then look at check.block and check.payload
 *
 * The payload digest is right if it is that of the payload (without chunks, as the standard says) or of the
 * body as received (as several writers compute it). That of a revisit is about a payload which is not there.
 */
#ifndef MNEMON_WARC_WARC_CHECK_H
#define MNEMON_WARC_WARC_CHECK_H

#include "warc/payload.h"
#include "warc/warc_digest.h"
#include "warc/warc_reader.h"

enum warc_check_result {
    WARC_CHECK_ABSENT, /* the header states none */
    WARC_CHECK_EQUAL,
    WARC_CHECK_DIFFERENT,
    WARC_CHECK_UNSUPPORTED, /* by an algorithm that we do not compute */
    WARC_CHECK_MALFORMED,   /* what the header states is no digest */
    WARC_CHECK_ELSEWHERE,   /* a revisit: its payload is in another record */
};

struct warc_check {
    enum warc_check_result block;
    enum warc_check_result payload;
    struct warc_digest block_stated;
    struct warc_digest payload_stated;
    struct warc_hash block_hash;
    struct warc_hash payload_hash;   /* of the body as received */
    struct warc_hash unchunked_hash; /* used if the body is chunked */
    struct payload parts;
    struct chunked chunked;
    bool hashes_block; /* the outcome is not known before the end */
    bool hashes_payload;
};

enum err warc_check_init(struct warc_check *check) MUST_CHECK;
void warc_check_done(struct warc_check *check);

/* The record's fields are looked at now and not again. */
void warc_check_start(struct warc_check *check, const struct warc_record *record);
void warc_check_feed(struct warc_check *check, struct bytes piece);
void warc_check_finish(struct warc_check *check);

/* All of them: the record that the reader is at, to its end. The errors of warc_reader_read(). */
enum err warc_check_read(struct warc_check *check, struct warc_reader *reader,
                         struct err_detail *detail) MUST_CHECK;

/* False if something differs or is malformed. */
static inline bool warc_check_is_good(const struct warc_check *check) {
    return check->block != WARC_CHECK_DIFFERENT && check->block != WARC_CHECK_MALFORMED &&
           check->payload != WARC_CHECK_DIFFERENT && check->payload != WARC_CHECK_MALFORMED;
}

#endif
