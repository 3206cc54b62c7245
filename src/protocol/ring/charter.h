/*
 * charter - what all nodes of a ring share, signed by its founder or its stewards. Pure.
 *
 *      identity    founder's key, name, time of creation      never changes; its digest is the ring's id
 *      rules       replicas, list size, witnesses …           of the newest version that anybody has shown
 *      removed     keys that are no members any more          likewise
 *      links       who took over from whom (stewards.h)       none in layout 1: the founder, alone
 *
 * Every message of the ring carries the id, not the digest of a version: so a new version spreads from node
 * to node, and meanwhile the ring stays one. A node takes a version that is higher than its own, of the same
 * id, signed by the founder or by enough of the stewards; nothing else ever changes its rules.
 *
 * In layout 2 each link is signed by the stewards before it, the first by the founder, so whoever knows the
 * ring's id can check all of it. A node never takes a charter whose links are others than those of its own:
 * keys that were replaced, or a second set of stewards that was signed at the same time, change nothing
 * there.
 *
 * Signing and verifying are the caller's (net/identity.h has them), since cryptography has no place in pure
 * code. Format, bounds and golden vectors: docs/formats/charter.md. How it travels: docs/protocol/charter.md.
 */
#ifndef MNEMON_PROTOCOL_RING_CHARTER_H
#define MNEMON_PROTOCOL_RING_CHARTER_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/peer.h"
#include "base/sha256.h"
#include "protocol/ring/stewards.h"

enum {
    CHARTER_ID_SIZE = 16,
    CHARTER_SIGNATURE_SIZE = 64, /* Ed25519 */
    CHARTER_NAME_SIZE_MAX = 64,
    CHARTER_SCOPE_COUNT_MAX = 32,
    CHARTER_PATTERN_SIZE_MAX = 200,
    CHARTER_REMOVED_COUNT_MAX = 1024,
    CHARTER_REPLICAS_MAX = 20,
    CHARTER_LIST_SIZE_MAX = 20, /* as RING_LIST_MAX of ring.h */
    CHARTER_PERIOD_S_MIN = 60,
    CHARTER_PERIOD_S_MAX = 10 * 366 * 86400,
    CHARTER_LINKS_MAX = 64,
    CHARTER_LINK_SIZE_MAX = 1 << 10,
    CHARTER_RULES_SIZE_MAX = 40 << 10,
    CHARTER_SIZE_MAX = 104 << 10, /* of the encoding: above all maxima together */
};

enum charter_mapping { CHARTER_BY_URL, CHARTER_BY_HOST, CHARTER_BY_SECTION };
extern const char *const charter_mappings[]; /* "url", "host", "section", NULL */

struct charter_pattern {
    uint8_t size; /* 1 to CHARTER_PATTERN_SIZE_MAX */
    char text[CHARTER_PATTERN_SIZE_MAX];
};

/* Stewards that took over. */
struct charter_link {
    uint32_t version; /* of the charter, from which on */
    uint64_t signed_s;
    struct stewards stewards;
    uint8_t rules[SHA256_SIZE];           /* the digest of those that they took over */
    struct steward_signatures signatures; /* of the stewards before; of the first link the founder's */
};

struct charter {
    uint8_t founder[PEER_KEY_SIZE];
    char name[CHARTER_NAME_SIZE_MAX + 1]; /* letters, digits, '.', '_' and '-'; ended by a zero byte */
    uint64_t created_s;                   /* since 1970 */

    uint32_t version;  /* 1, 2 … */
    uint64_t signed_s; /* when this version was signed */
    uint8_t replicas;
    uint8_t list_size; /* r; as in the first version, since all nodes must have the same */
    uint8_t witnesses; /* 1 to replicas */
    uint8_t mapping;   /* enum charter_mapping; as in the first version, since all documents would move */
    uint32_t period_s; /* of the crawl */
    bool is_open;      /* else by invitation (invitation.h) */
    bool members_may_add_jobs;
    uint32_t scope_count; /* patterns as in crawl/rules/pattern.h; none: any URL */
    struct charter_pattern scope[CHARTER_SCOPE_COUNT_MAX];
    uint32_t removed_count;
    uint8_t removed[CHARTER_REMOVED_COUNT_MAX][PEER_KEY_SIZE]; /* rising; of nodes and of invitations */

    /* Zeros in layout 1. */
    uint32_t links_count;
    struct charter_link links[CHARTER_LINKS_MAX];
    uint32_t rules_version; /* the version with which the rules came; then only stewards have changed */
    uint64_t rules_signed_s;
    uint8_t rules_generation; /* whose: 0: the founder's; i: of links[i - 1] */
    struct steward_signatures rules_signatures;
    uint8_t
        founder_signature[CHARTER_SIGNATURE_SIZE]; /* over all of it, for programs that know layout 1
                                                      only; zeros: the founder did not sign this version */
};

/* Which stewards act now: 0: the founder alone. */
static inline uint32_t charter_generation(const struct charter *charter) {
    return charter->links_count;
}

typedef steward_verify charter_verify;
typedef void charter_sign(const void *signer, const char *context, struct bytes message,
                          uint8_t out[CHARTER_SIGNATURE_SIZE]);

#define CHARTER_CONTEXT "mnemon charter 1"
#define CHARTER_RULES_CONTEXT "mnemon charter 2"
#define CHARTER_LINK_CONTEXT "mnemon stewards 1"

/* The defaults of a new ring; founder, name and times are the caller's. */
void charter_init(struct charter *charter);

/* Are all values within their bounds? ERR_INVALID says which one is not. */
enum err charter_check(const struct charter *charter, struct err_detail *detail) MUST_CHECK;

bool charter_name_is_valid(struct bytes name);

/* The charter must be within its bounds; out has room for CHARTER_SIZE_MAX. Returns what was written. sign:
 * of the founder; NULL in layout 2: with the signatures that it has. */
struct bytes charter_write(const struct charter *charter, charter_sign *sign, const void *signer,
                           uint8_t *out);

/*
 * ERR_INVALID, ERR_TRUNCATED, ERR_LIMIT: it is no charter; ERR_UNSUPPORTED: one of a later layout;
 * ERR_MISMATCH: the founder, or enough stewards, have not signed it. *ret_charter then holds what nobody may
 * use.
 */
enum err charter_read(struct bytes input, charter_verify *verify, struct charter *ret_charter,
                      struct err_detail *detail) MUST_CHECK;

/*
 * One of a later layout: what all layouts begin with, up to signed_s, and the founder's signature, with which
 * all end; the rest of *ret_charter is zeros. It can be kept and passed on. ERR_EXISTS: this program reads
 * all of it; otherwise the errors of charter_read().
 */
enum err charter_read_later(struct bytes input, charter_verify *verify, struct charter *ret_charter,
                            struct err_detail *detail) MUST_CHECK;

/* The ring's id: the first bytes of the SHA-256 of founder, name and creation. */
void charter_id(const struct charter *charter, struct sha256 *sha256, uint8_t out[CHARTER_ID_SIZE]);

/* Have they the same founder, name and creation? */
bool charter_is_same_ring(const struct charter *charter, const struct charter *other);

/* May `newer` take the place of `charter`? ERR_MISMATCH: of another ring, or of other stewards; ERR_EXISTS:
 * not newer. */
enum err charter_succeeds(const struct charter *charter, const struct charter *newer,
                          struct err_detail *detail) MUST_CHECK;

bool charter_is_removed(const struct charter *charter, const uint8_t key[PEER_KEY_SIZE]);

/* ---- stewards ---- */

/* Of a generation up to charter_generation(); of 0: the founder. */
void charter_stewards(const struct charter *charter, uint32_t generation, struct stewards *ret_stewards);

/* Is the key one of those who act now? */
bool charter_is_steward(const struct charter *charter, const uint8_t key[PEER_KEY_SIZE]);

/* Was something of this time made while that generation acted, as far as it says so itself? */
bool charter_is_in_time(const struct charter *charter, uint32_t generation, uint64_t made_s);

/*
 * An act changes the rules, or who the stewards are. Its body says how; what is signed is the digest that
 * these return: the body after all that the signers rely on.
 *
 *      rules     u8 generation, the rules            context CHARTER_RULES_CONTEXT
 *      stewards  a link without its signatures       context CHARTER_LINK_CONTEXT
 *
 * *ret_next is the charter that follows if enough have signed, with no signatures of the act yet. The
 * reader's errors; ERR_EXISTS: it does not follow the charter as it is now, but an older one; ERR_MISMATCH:
 * it changes what cannot change, or there is no room for more links.
 */
enum charter_act { CHARTER_ACT_RULES, CHARTER_ACT_STEWARDS };
enum err charter_apply(const struct charter *charter, enum charter_act act, struct bytes body,
                       struct charter *ret_next, uint8_t ret_digest[SHA256_SIZE],
                       struct err_detail *detail) MUST_CHECK;

/* The signatures of that act become part of the charter that follows. */
void charter_take_signatures(struct charter *next, enum charter_act act,
                             const struct steward_signatures *signatures);

/* The bodies, into CHARTER_RULES_SIZE_MAX bytes. The rules are those of the charter, with the next version;
 * the stewards take over with it. */
struct bytes charter_write_rules_act(const struct charter *charter, uint64_t now_s, uint8_t *out);
struct bytes charter_write_stewards_act(const struct charter *charter, const struct stewards *stewards,
                                        uint64_t now_s, uint8_t *out);

/* From layout 1 to 2, by the founder alone. ERR_INVALID: stewards that cannot be. */
enum err charter_hand_over(struct charter *charter, const struct stewards *stewards, uint64_t now_s,
                           charter_sign *sign, const void *signer, struct err_detail *detail) MUST_CHECK;

/* Add a key; ERR_EXISTS if it is there already, ERR_LIMIT. */
enum err charter_remove(struct charter *charter, const uint8_t key[PEER_KEY_SIZE]) MUST_CHECK;

#endif
