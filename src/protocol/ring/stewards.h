/*
 * stewards - who may act for a ring, and how many of them must agree. Pure.
 *
 *      generation 0     the founder, alone, for everything            charters of layout 1
 *      generation 1     n keys, k of them for each kind of act        signed by the founder
 *      generation 2     …                                             signed by k of generation 1
 *
 * Whatever stewards sign together carries a list of keys and signatures, in the order of the keys. An act
 * counts if enough stewards of its generation have signed it, and if it was made before the next one took
 * over: so what was agreed on stays when stewards come and go, and a steward who has gone cannot sign
 * anything new. More than half of them must agree on a charter: no two can then be agreed on at once, unless
 * somebody signs both.
 *
 * docs/formats/charter.md, docs/decisions/0025-stewards.md.
 */
#ifndef MNEMON_PROTOCOL_RING_STEWARDS_H
#define MNEMON_PROTOCOL_RING_STEWARDS_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/peer.h"
#include "base/wire.h"

enum {
    STEWARDS_MAX = 7,
    STEWARD_SIGNATURE_SIZE = 64, /* Ed25519 */
    STEWARD_SIGNATURES_SIZE_MAX = 1 + STEWARDS_MAX * (PEER_KEY_SIZE + STEWARD_SIGNATURE_SIZE),
    STEWARDS_SLACK_S = 900, /* of clocks that go ahead: an act may seem to be that much younger than it is */
};

/* Kinds of acts; their order is that of the numbers in a charter. */
enum steward_power {
    STEWARD_AMEND,  /* the charter: its rules, who is removed, who the stewards are */
    STEWARD_INVITE, /* let nodes in */
    STEWARD_RULE,   /* takedowns, and that they end; who may import */
    STEWARD_DELETE,
    STEWARD_JOB, /* where members may not, or without robots.txt */
    STEWARD_POWERS_COUNT,
};
extern const char *const steward_powers[]; /* "amend", "invite", "rule", "delete", "job", NULL */

struct stewards {
    uint8_t count;                             /* 1 to STEWARDS_MAX */
    uint8_t keys[STEWARDS_MAX][PEER_KEY_SIZE]; /* rising */
    uint8_t needed[STEWARD_POWERS_COUNT];      /* 1 to count; more than half for STEWARD_AMEND */
};

struct steward_signature {
    uint8_t key[PEER_KEY_SIZE];
    uint8_t signature[STEWARD_SIGNATURE_SIZE];
};

struct steward_signatures {
    uint8_t count;                                /* up to STEWARDS_MAX */
    struct steward_signature items[STEWARDS_MAX]; /* by key, rising */
};

/* Is the signature one of that key over the context, a zero byte and the message? */
typedef bool steward_verify(const uint8_t key[PEER_KEY_SIZE], const char *context, struct bytes message,
                            const uint8_t signature[STEWARD_SIGNATURE_SIZE]);

/* Within its bounds? ERR_INVALID says what is not. */
enum err stewards_check(const struct stewards *stewards, struct err_detail *detail) MUST_CHECK;

/* ERR_EXISTS, ERR_LIMIT. */
enum err stewards_add(struct stewards *stewards, const uint8_t key[PEER_KEY_SIZE]) MUST_CHECK;

bool stewards_have(const struct stewards *stewards, const uint8_t key[PEER_KEY_SIZE]);
bool stewards_are_equal(const struct stewards *a, const struct stewards *b);

/* How many have signed that are stewards? Of what verify does not believe none. */
size_t stewards_count_signed(const struct stewards *stewards, const struct steward_signatures *signatures,
                             const char *context, struct bytes message, steward_verify *verify);

/* Enough of them, and nobody else, and no false signature: what one adds cannot make two of one act. */
bool stewards_have_signed(const struct stewards *stewards, enum steward_power power,
                          const struct steward_signatures *signatures, const char *context,
                          struct bytes message, steward_verify *verify);

bool steward_signatures_have(const struct steward_signatures *signatures, const uint8_t key[PEER_KEY_SIZE]);

/* In its place. ERR_EXISTS: of a key that has signed already; ERR_LIMIT. */
enum err steward_signatures_add(struct steward_signatures *signatures,
                                const struct steward_signature *signature) MUST_CHECK;

/* Part of other layouts: the reader keeps its first error. */
void stewards_write(struct wire_writer *writer, const struct stewards *stewards);
void stewards_read(struct wire_reader *reader, struct stewards *stewards);
void steward_signatures_write(struct wire_writer *writer, const struct steward_signatures *signatures);
void steward_signatures_read(struct wire_reader *reader, struct steward_signatures *signatures);

#endif
