/*
 * decree - what a ring shall do or not show, in a signed text: a job for all nodes, rules of access, what is
 * deleted. Pure.
 *
 *      author, kind, name      which decree it is; its id is their digest
 *      version                 the higher one counts: the clock, or one more than the version before
 *      text                    what the kind says; empty: withdrawn
 *      membership              why its author may be in the ring; none in layout 1
 *      generation, signatures  in layout 3: which stewards (stewards.h) have signed it
 *
 * What the founder decreed while it acted alone counts, and then what enough stewards have signed: as decrees
 * of the founder's key, so that a stewards' decree is a later version of the founder's of that name; a
 * member's count if the charter allows jobs of members, and only jobs. In a ring by invitation a member's
 * decree carries the author's membership, so that any node can judge it without having met the author. A
 * decree of a removed member no longer counts. Every node keeps every decree that counts, as far as there is
 * room (decree_room.h), and passes it on (docs/protocol/ring-services.md); withdrawn ones are kept too, so
 * that nobody brings them back.
 *
 * Format: docs/formats/decree.md.
 */
#ifndef MNEMON_PROTOCOL_RING_DECREE_H
#define MNEMON_PROTOCOL_RING_DECREE_H

#include "protocol/ring/membership.h"

enum {
    DECREE_ID_SIZE = 16,
    DECREE_NAME_SIZE_MAX = 95,
    DECREE_TEXT_SIZE_MAX = 64 << 10,
    DECREE_SIZE_MAX = DECREE_TEXT_SIZE_MAX + 1024, /* of the encoding: above all maxima together */
};

enum decree_kind {
    DECREE_JOB = 1,      /* text: job.conf and seeds (docs/formats/decree.md) */
    DECREE_RULES = 2,    /* text: lines of .aclj (docs/formats/access.md) */
    DECREE_DELETION = 3, /* text: which captures are deleted, and why; nodes before 0.3 do not know it */
    DECREE_IMPORTS = 10, /* text: who may import (import_rule.h); likewise */
};

/* On the wire a kind of stewards' decrees is so much higher: 4 to 6, and 13. */
enum { DECREE_STEWARDS_KIND = 3 };

/* Of a later program: it is kept and passed on if it is the founder's, and has no effect here. */
static inline bool decree_kind_is_later(enum decree_kind kind) {
    return kind > DECREE_DELETION && kind != DECREE_IMPORTS;
}

/* "job", "rules", "deletion", "imports", "unknown". */
const char *decree_kind_name(enum decree_kind kind);

/* Slices borrow from what was read. */
struct decree {
    uint8_t ring[CHARTER_ID_SIZE];
    uint8_t author[PEER_KEY_SIZE];
    enum decree_kind kind;
    struct bytes name; /* 1 to 95 of a-z 0-9 . _ -, the first no dot */
    uint64_t version;
    struct bytes text;
    struct membership membership; /* is_there: layout 2, else layout 1 */
    uint32_t generation;          /* of the stewards whose decree it is, layout 3; 0: its author's alone */
    struct steward_signatures signatures; /* theirs */
};

#define DECREE_CONTEXT "mnemon decree 1"
#define DECREE_STEWARDS_CONTEXT "mnemon decree 3"

bool decree_name_is_valid(struct bytes name);

/* Values must be within their bounds; out has room for DECREE_SIZE_MAX. Returns what was written. */
struct bytes decree_write(const struct decree *decree, charter_sign *sign, const void *signer, uint8_t *out);

/* Of stewards: the body of the act, all but the signatures; and back. */
struct bytes decree_write_body(const struct decree *decree, uint8_t *out);
enum err decree_read_body(struct bytes body, struct decree *ret_decree, struct err_detail *detail) MUST_CHECK;

/* What stewards sign: the digest of the body. */
void decree_digest(const struct decree *decree, uint8_t out[SHA256_SIZE]);

/* What must be agreed on for it. */
enum steward_power decree_power(const struct decree *decree);

/* ERR_INVALID, ERR_TRUNCATED, ERR_LIMIT: it is none; ERR_UNSUPPORTED: a later layout. The signature
 * is the next function's: what does not count anyway need not be verified. */
enum err decree_parse(struct bytes input, struct decree *ret_decree, struct err_detail *detail) MUST_CHECK;

/* Of what decree_parse() has read: has its author signed it? ERR_MISMATCH. Stewards: decree_counts() asks. */
enum err decree_verify(struct bytes input, const struct decree *decree, charter_verify *verify,
                       struct err_detail *detail) MUST_CHECK;

/* Both. */
enum err decree_read(struct bytes input, charter_verify *verify, struct decree *ret_decree,
                     struct err_detail *detail) MUST_CHECK;

void decree_id(const struct decree *decree, struct sha256 *sha256, uint8_t out[DECREE_ID_SIZE]);

/* Is it the ring's own word: of stewards, or of the founder while it acted alone? Else it is a member's. */
bool decree_is_rings(const struct decree *decree, const struct charter *charter);

/* Has the author's key the founder's room? Of stewards as well. */
static inline bool decree_is_founders(const struct decree *decree, const struct charter *charter) {
    return memcmp(decree->author, charter->founder, PEER_KEY_SIZE) == 0;
}

/*
 * Does it count under this charter at this time? ERR_MISMATCH: of another ring; ERR_NOT_FOUND: its author has
 * been removed, so it will never count again; ERR_PERMISSION with the reason. verify: NULL if the signatures
 * of its membership were found good before, or need not be known yet.
 */
enum err decree_counts(const struct decree *decree, const struct charter *charter,
                       const uint8_t ring[CHARTER_ID_SIZE], uint64_t now_s, charter_verify *verify,
                       struct err_detail *detail) MUST_CHECK;

/* The version of a decree that takes the place of one with that version (0: of none): higher, whatever the
 * clock says. 0: there is none. */
uint64_t decree_next_version(uint64_t previous, int64_t now_us);

#endif
