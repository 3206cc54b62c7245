/*
 * charter - what all nodes of a ring share, signed by its founder. Pure.
 *
 *      identity    founder's key, name, time of creation      never changes; its digest is the ring's id
 *      rules       replicas, list size, witnesses …           of the newest version that anybody has shown
 *      removed     keys that are no members any more          likewise
 *
 * Every message of the ring carries the id, not the digest of a version: so a new version spreads from node
 * to node, and meanwhile the ring stays one. A node takes a version that is higher than its own, of the same
 * id, with the founder's signature; nothing else ever changes its rules.
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
    CHARTER_SIZE_MAX = 40 << 10, /* of the encoding: above all maxima together */
};

enum charter_mapping { CHARTER_BY_URL, CHARTER_BY_HOST, CHARTER_BY_SECTION };
extern const char *const charter_mappings[]; /* "url", "host", "section", NULL */

struct charter_pattern {
    uint8_t size; /* 1 to CHARTER_PATTERN_SIZE_MAX */
    char text[CHARTER_PATTERN_SIZE_MAX];
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
};

/* Is the signature one of that key over the context, a zero byte and the message? */
typedef bool charter_verify(const uint8_t key[PEER_KEY_SIZE], const char *context, struct bytes message,
                            const uint8_t signature[CHARTER_SIGNATURE_SIZE]);
typedef void charter_sign(const void *signer, const char *context, struct bytes message,
                          uint8_t out[CHARTER_SIGNATURE_SIZE]);

#define CHARTER_CONTEXT "mnemon charter 1"

/* The defaults of a new ring; founder, name and times are the caller's. */
void charter_init(struct charter *charter);

/* Are all values within their bounds? ERR_INVALID says which one is not. */
enum err charter_check(const struct charter *charter, struct err_detail *detail) MUST_CHECK;

bool charter_name_is_valid(struct bytes name);

/* The charter must be within its bounds; out has room for CHARTER_SIZE_MAX. Returns what was written. */
struct bytes charter_write(const struct charter *charter, charter_sign *sign, const void *signer,
                           uint8_t *out);

/*
 * ERR_INVALID, ERR_TRUNCATED, ERR_LIMIT: it is no charter; ERR_UNSUPPORTED: one of a later layout;
 * ERR_MISMATCH: the signature is not the founder's. *ret_charter then holds what nobody may use.
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

/* May `newer` take the place of `charter`? ERR_MISMATCH: of another ring; ERR_EXISTS: not newer. */
enum err charter_succeeds(const struct charter *charter, const struct charter *newer,
                          struct err_detail *detail) MUST_CHECK;

bool charter_is_removed(const struct charter *charter, const uint8_t key[PEER_KEY_SIZE]);

/* Add a key; ERR_EXISTS if it is there already, ERR_LIMIT. */
enum err charter_remove(struct charter *charter, const uint8_t key[PEER_KEY_SIZE]) MUST_CHECK;

#endif
