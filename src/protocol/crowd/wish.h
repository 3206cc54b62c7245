/*
 * wish - what a search of the crowd is for, and what a holder says of it; as bytes in base/wire.h terms.
 *
 * Each node that a query reaches reads the wish for itself. A URL travels as the hash of its SURT: it is
 * found by nodes that have it, and tells nothing to those that do not. Words travel as they are.
 *
 *      wish      1:u8 surt_hash[16] time                      a capture of this URL
 *                2:u8 digest[32]                              the payload with this SHA-256
 *                3:u8 words:string time                       captures with all these words in their titles
 *      time      0:u8                                         the newest
 *                1:u8 at_us:u64                               the nearest to that
 *                2:u8 from_us:u64 to_us:u64                 the newest that is not outside
 *      finding   count:u8 (1 to 4), then of each, the best first:
 *                key[40] size:varint url:string title:string         the key: base/ringkey.h
 *
 * URL and title are empty if the wish named the URL. Readers take any bytes.
 */
#ifndef MNEMON_PROTOCOL_CROWD_WISH_H
#define MNEMON_PROTOCOL_CROWD_WISH_H

#include "base/ringkey.h"
#include "base/wire.h"
#include "protocol/crowd/crowd.h"

enum wish_kind { WISH_URL = 1, WISH_DIGEST, WISH_WORDS };
enum wish_time { WISH_NEWEST, WISH_NEAREST, WISH_BETWEEN };

enum {
    WISH_HASH_SIZE = 16,
    WISH_DIGEST_SIZE = 32,
    WISH_WORDS_SIZE_MAX = 256, /* lower-case, separated by single spaces */
    WISH_FINDINGS_MAX = 4,
    WISH_URL_SIZE_MAX = 512, /* longer ones are not named in findings */
    WISH_TITLE_SIZE_MAX = 120,
};

struct wish {
    enum wish_kind kind;
    uint8_t hash[WISH_HASH_SIZE]; /* the first bytes of the SHA-256 of the SURT */
    uint8_t digest[WISH_DIGEST_SIZE];
    struct bytes words;
    enum wish_time time;
    int64_t from_us; /* NEAREST: that time */
    int64_t to_us;
};

struct wish_finding {
    struct ringkey key;
    uint64_t size; /* of the payload */
    struct bytes url;
    struct bytes title;
};

/* Into memory of CROWD_WISH_SIZE_MAX; always fits. */
struct bytes wish_write(const struct wish *wish, void *memory);
bool wish_read(struct bytes bytes, struct wish *ret_wish);

/* Into memory of CROWD_FINDING_SIZE_MAX: as many of them as fit, at least the first. */
struct bytes wish_write_findings(const struct wish_finding *findings, size_t count, void *memory);
bool wish_read_findings(struct bytes bytes, struct wish_finding out[WISH_FINDINGS_MAX], size_t *ret_count);

/*
 * Is a capture of that time better than another for the wish? One that is outside of its window is none:
 * wish_takes_time(). If two captures are equally near, the newer one.
 */
bool wish_takes_time(const struct wish *wish, int64_t time_us);
bool wish_prefers(const struct wish *wish, int64_t time_us, int64_t other_us);

#endif
