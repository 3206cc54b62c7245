/*
 * membership - how a node shows that it may be in a ring by invitation. Pure.
 *
 *      founder, stewards   need none, as long as they act for the ring
 *      invited by key      the invitation
 *      invited as bearer   the invitation, and the node's key signed with the token's key
 *
 * In an open ring every node is a member that has not been removed. The same bytes lie in DIR/ring/membership
 * and go to every node that asks (docs/protocol/charter.md).
 */
#ifndef MNEMON_PROTOCOL_RING_MEMBERSHIP_H
#define MNEMON_PROTOCOL_RING_MEMBERSHIP_H

#include "protocol/ring/invitation.h"

enum {
    MEMBERSHIP_PLAIN_SIZE_MAX = INVITATION_PLAIN_SIZE + 8 + CHARTER_SIGNATURE_SIZE, /* by a founder */
    MEMBERSHIP_SIZE_MAX = INVITATION_SIZE_MAX + 8 + CHARTER_SIGNATURE_SIZE,
    MEMBERSHIP_CLOCK_SLACK_S = 900, /* above what net/ refuses as a wrong clock */
};

#define MEMBERSHIP_CONTEXT "mnemon membership 1"

struct membership {
    bool is_there; /* else nothing is shown */
    struct invitation invitation;
    uint64_t joined_s;                         /* of a bearer */
    uint8_t signature[CHARTER_SIGNATURE_SIZE]; /* likewise: of the token's key over the node's */
};

enum membership_verdict {
    MEMBERSHIP_GOOD,
    MEMBERSHIP_REMOVED,
    MEMBERSHIP_MISSING, /* nothing was shown, and the ring is not open */
    MEMBERSHIP_FOREIGN, /* of another ring, for another node, or not the word of those who may */
    MEMBERSHIP_EXPIRED,
    MEMBERSHIP_EARLY,
    MEMBERSHIP_VERDICTS_COUNT,
};

/* A sentence fragment: "it has no invitation". */
const char *membership_verdict_text(enum membership_verdict verdict);

/* An invitation for a bearer becomes one for this node. sign: with the key of the token. */
void membership_bind(struct membership *membership, const struct invitation *invitation,
                     const uint8_t node_key[PEER_KEY_SIZE], uint64_t now_s, charter_sign *sign,
                     const void *signer);

enum membership_verdict membership_judge(const struct membership *membership, const struct charter *charter,
                                         const uint8_t ring[CHARTER_ID_SIZE],
                                         const uint8_t node_key[PEER_KEY_SIZE], uint64_t now_s,
                                         charter_verify *verify);

/* At most MEMBERSHIP_SIZE_MAX bytes; none if there is none. */
struct bytes membership_write(const struct membership *membership, uint8_t out[MEMBERSHIP_SIZE_MAX]);
enum err membership_read(struct bytes input, struct membership *ret_membership,
                         struct err_detail *detail) MUST_CHECK;

#endif
