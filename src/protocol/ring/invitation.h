/*
 * invitation - the word of the founder, or of stewards, that somebody may be a member, and the token that
 * carries it. Pure.
 *
 *      for a key       the founder names the key of a node; the invitation itself is its membership
 *      for a bearer    the founder signs the public key of a key pair made for this purpose; the token holds
 *                      its secret, and whoever has it signs the key of its own node with it (membership.h)
 *
 * So a node gets in while the founder is away. What that cannot do: tell whether a token was used twice, or
 * after its time with the clock set back; a founder who learns of it removes the token's public key, and
 * with it all who came by it. Invitations for a key have neither weakness.
 *
 * Layouts and golden vectors: docs/formats/charter.md.
 */
#ifndef MNEMON_PROTOCOL_RING_INVITATION_H
#define MNEMON_PROTOCOL_RING_INVITATION_H

#include "base/wire.h"
#include "protocol/ring/charter.h"

enum {
    INVITATION_SIGNED_SIZE = 70,
    INVITATION_PLAIN_SIZE = INVITATION_SIGNED_SIZE + CHARTER_SIGNATURE_SIZE, /* of layout 1 */
    INVITATION_BODY_SIZE = INVITATION_SIGNED_SIZE + 4,                       /* layout 2, what is signed */
    INVITATION_SIZE_MAX = INVITATION_BODY_SIZE + STEWARD_SIGNATURES_SIZE_MAX,
    INVITATION_SEED_SIZE = 32,    /* of an Ed25519 key pair */
    INVITATION_TOKEN_SIZE = 1280, /* of the text, with its zero byte, rounded up */
};

#define INVITATION_CONTEXT "mnemon invitation 1"
#define INVITATION_STEWARDS_CONTEXT "mnemon invitation 2"

struct invitation {
    uint8_t ring[CHARTER_ID_SIZE];
    bool is_bearer;
    uint8_t key[PEER_KEY_SIZE]; /* of the node, or of the token */
    uint64_t from_s;            /* since 1970 */
    uint64_t until_s;           /* of a key: the membership ends; 0: never. Of a bearer: to be used by then */
    uint32_t generation;        /* of the stewards; 0: of the founder, layout 1 */
    uint8_t signature[CHARTER_SIGNATURE_SIZE]; /* of the founder */
    struct steward_signatures signatures;      /* of stewards */
};

/* Fills in the signature. */
void invitation_sign(struct invitation *invitation, charter_sign *sign, const void *signer);
bool invitation_verify(const struct invitation *invitation, const uint8_t founder[PEER_KEY_SIZE],
                       charter_verify *verify);

/* Is it the word of those who acted for the ring then? Of the founder, or of enough stewards. */
bool invitation_counts(const struct invitation *invitation, const struct charter *charter,
                       charter_verify *verify);

/* Of stewards: the body of the act, all but the signatures; and back. */
struct bytes invitation_write_body(const struct invitation *invitation, uint8_t out[INVITATION_BODY_SIZE]);
enum err invitation_read_body(struct bytes body, struct invitation *ret_invitation,
                              struct err_detail *detail) MUST_CHECK;

/* Part of other layouts: the reader keeps its first error. */
void invitation_write(struct wire_writer *writer, const struct invitation *invitation);
void invitation_read(struct wire_reader *reader, struct invitation *ret_invitation);

/* One line of small letters and digits, ended by a zero byte. seed: of a bearer, else NULL. Returns out. */
const char *invitation_format(const struct invitation *invitation, const uint8_t *seed, struct sha256 *sha256,
                              char out[INVITATION_TOKEN_SIZE]);

/* The same backwards; the seed is zeros if it is none of a bearer. ERR_INVALID: mistyped or no token. */
enum err invitation_parse(struct bytes text, struct sha256 *sha256, struct invitation *ret_invitation,
                          uint8_t ret_seed[INVITATION_SEED_SIZE], struct err_detail *detail) MUST_CHECK;

#endif
