/* Invitations to a group: those of a ring (protocol/ring/invitation.h), with the group's id in place of the
 * ring's. */
#include <sodium.h>
#include <stdlib.h>

#include "net/identity.h"
#include "node/group/group_driver_state.h"
#include "node/transport/transport.h"
#include "protocol/ring/membership.h"

enum { US_PER_S = 1000000 };
_Static_assert((int)GROUP_ID_SIZE == (int)CHARTER_ID_SIZE, "one layout of invitations");
_Static_assert((int)MEMBERSHIP_SIZE_MAX <= (int)GROUP_PAPERS_SIZE_MAX, "papers hold a membership");

static void sign(const void *signer, const char *context, struct bytes message,
                 uint8_t out[CHARTER_SIGNATURE_SIZE]) {
    identity_sign(signer, context, message, out);
}

static uint64_t now_s(const struct group_driver *group_driver) {
    return (uint64_t)(clock_wall_us(group_driver->config.clock) / US_PER_S);
}

/* A token becomes the membership of this node. */
static bool use_token(struct group_driver *group_driver, const struct group_driver_slot *slot,
                      struct membership *membership, struct err_detail *detail) {
    struct invitation invitation;
    struct identity bearer;
    uint8_t seed[INVITATION_SEED_SIZE];
    if (invitation_parse(bytes_trim(bytes_of_string(slot->wish.token)), &group_driver->sha256, &invitation,
                         seed, detail) != ERR_OK) {
        return false;
    }
    bool is_ours = memcmp(invitation.ring, slot->id, GROUP_ID_SIZE) == 0;
    if (!is_ours) {
        (void)err_set(detail, ERR_MISMATCH, "it is for another group");
    } else if (!invitation.is_bearer) {
        *membership = (struct membership){.is_there = true, .invitation = invitation};
    } else if (identity_from_seed(&bearer, seed) == ERR_OK) {
        membership_bind(membership, &invitation, group_driver->self.key, now_s(group_driver), sign, &bearer);
        identity_done(&bearer);
    }
    sodium_memzero(seed, sizeof seed);
    return is_ours;
}

struct bytes group_driver_write_papers(struct group_driver *group_driver,
                                       const struct group_driver_slot *slot,
                                       uint8_t out[GROUP_PAPERS_SIZE_MAX]) {
    struct membership membership = {0};
    struct err_detail detail = {0};
    if (slot->wish.token[0] != '\0' && !use_token(group_driver, slot, &membership, &detail)) {
        group_driver_note(group_driver, "group \"%s\": the token is not used: %s", slot->wish.name,
                          err_detail_text(&detail, ERR_INVALID));
    }
    return membership_write(&membership, out);
}

bool group_driver_papers_are_good(struct group_driver *group_driver, const struct group_driver_slot *slot,
                                  const struct peer *peer, struct bytes papers) {
    struct membership membership = {0};
    bool is_read = papers.size > 0 && membership_read(papers, &membership, NULL) == ERR_OK;
    struct charter *charter = is_read ? calloc(1, sizeof *charter) : NULL;
    if (charter == NULL) {
        return false;
    }
    memcpy(charter->founder, slot->rules.founder, PEER_KEY_SIZE);
    for (size_t i = 0; i < slot->wish.refused.count; i++) {
        enum err err = charter_remove(charter, slot->wish.refused.keys[i]);
        ASSERT(err == ERR_OK); /* fewer than a charter has room for, and no two the same */
    }
    enum membership_verdict verdict =
        membership_judge(&membership, charter, slot->id, peer->key, now_s(group_driver), identity_verify);
    free(charter);
    return verdict == MEMBERSHIP_GOOD;
}
