/*
 * act - something that stewards shall agree on, and who has signed it so far. Pure.
 *
 *      kind         what it becomes: a version of the charter, an invitation, a decree
 *      body         all that is agreed on; its digest with the kind is the id of the act
 *      signatures   of stewards who act now; when there are enough, it is done
 *
 * An act is made for the charter as it is: when that has changed, or ACT_LASTS_S after it was made, it is
 * over, and nobody keeps it any more. So at most ACT_COUNT_MAX of each steward are pending. Who signs an act
 * signs the same bytes as of what it becomes (charter.h, invitation.h, decree.h).
 *
 * Format: docs/formats/act.md; how acts travel: docs/protocol/ring-services.md, service 21.
 */
#ifndef MNEMON_PROTOCOL_RING_ACT_H
#define MNEMON_PROTOCOL_RING_ACT_H

#include "protocol/ring/decree.h"

enum {
    ACT_ID_SIZE = 16,
    ACT_BODY_SIZE_MAX = DECREE_SIZE_MAX, /* the largest; CHARTER_RULES_SIZE_MAX is less */
    ACT_SIZE_MAX = ACT_BODY_SIZE_MAX + 16 + STEWARD_SIGNATURES_SIZE_MAX,
    ACT_COUNT_MAX = 16, /* that one steward has signed and that are pending */
    ACTS_MAX = ACT_COUNT_MAX * STEWARDS_MAX,
    ACT_LASTS_S = 14 * 86400,
    ACT_EARLY_S = 86400, /* a clock that is wrong by more makes acts that nobody takes */
};

enum act_kind { ACT_RULES = 1, ACT_STEWARDS = 2, ACT_INVITATION = 3, ACT_DECREE = 4 };

/* "amendment", "stewards", "invitation", "decree". */
const char *act_kind_name(enum act_kind kind);

/* Slices borrow from what was read. */
struct act {
    enum act_kind kind;
    struct bytes body;
    struct steward_signatures signatures;
};

/* What it says, as far as the charter lets it be understood. */
struct act_meaning {
    enum steward_power power;
    uint64_t made_s;
    const char *context; /* of what is signed: */
    uint8_t message[INVITATION_BODY_SIZE];
    size_t message_size;
    struct charter *next; /* ACT_RULES, ACT_STEWARDS: the charter that would follow; the caller's memory */
    struct invitation invitation;
    struct decree decree;
};

_Static_assert((int)INVITATION_BODY_SIZE >= (int)SHA256_SIZE, "a digest has room");

/* Within the bounds; out has room for ACT_SIZE_MAX. Returns what was written. */
struct bytes act_write(const struct act *act, uint8_t *out);
enum err act_read(struct bytes input, struct act *ret_act, struct err_detail *detail) MUST_CHECK;

void act_id(const struct act *act, uint8_t out[ACT_ID_SIZE]);

/*
 * What would it be under this charter? next: memory for a charter. ERR_EXISTS: it is over, since the charter
 * or its stewards have changed; ERR_MISMATCH: of another ring, or it changes what cannot change; ERR_TIMEOUT:
 * it was made too long ago, or later than now; the errors of the readers.
 */
enum err act_understand(const struct act *act, const struct charter *charter,
                        const uint8_t ring[CHARTER_ID_SIZE], uint64_t now_s, struct charter *next,
                        struct act_meaning *ret_meaning, struct err_detail *detail) MUST_CHECK;

/* Take out what is not the good signature of a steward who acts now. How many are left? */
size_t act_clean(struct act *act, const struct act_meaning *meaning, const struct charter *charter,
                 charter_verify *verify);

/* Signatures that this one lacks. How many are new? */
size_t act_merge(struct act *act, const struct steward_signatures *signatures);

/* Have enough signed? How many must? */
bool act_is_done(const struct act *act, const struct act_meaning *meaning, const struct charter *charter);
unsigned act_needed(const struct act_meaning *meaning, const struct charter *charter);

/* Sign it. ERR_EXISTS: this key has; ERR_PERMISSION: it is no steward's. */
enum err act_sign(struct act *act, const struct act_meaning *meaning, const struct charter *charter,
                  const uint8_t key[PEER_KEY_SIZE], charter_sign *sign, const void *signer) MUST_CHECK;

/* Do both change the charter, so that only one of them can come to count? */
bool act_excludes(const struct act *act, const struct act *other);

/* What it becomes when enough have signed: into out, of CHARTER_SIZE_MAX bytes. */
struct bytes act_write_done(const struct act *act, struct act_meaning *meaning, uint8_t *out);

#endif
