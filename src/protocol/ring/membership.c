#include "protocol/ring/membership.h"

enum { BOUND_SIZE = CHARTER_ID_SIZE + PEER_KEY_SIZE + 8 };

const char *membership_verdict_text(enum membership_verdict verdict) {
    static const char *const texts[MEMBERSHIP_VERDICTS_COUNT] = {
        [MEMBERSHIP_GOOD] = "a member",
        [MEMBERSHIP_REMOVED] = "it has been removed from the ring",
        [MEMBERSHIP_MISSING] = "the ring is by invitation, and it has none",
        [MEMBERSHIP_FOREIGN] = "its invitation is not for this node and ring",
        [MEMBERSHIP_EXPIRED] = "its invitation has expired",
        [MEMBERSHIP_EARLY] = "its invitation is not valid yet",
    };
    ASSERT(verdict < MEMBERSHIP_VERDICTS_COUNT);
    return texts[verdict];
}

/* What the token's key signs. */
static struct bytes bound_part(const struct invitation *invitation, const uint8_t node_key[PEER_KEY_SIZE],
                               uint64_t joined_s, uint8_t memory[BOUND_SIZE]) {
    struct wire_writer writer;
    wire_writer_init(&writer, memory, BOUND_SIZE);
    wire_write_bytes(&writer, bytes_of(invitation->ring, CHARTER_ID_SIZE));
    wire_write_bytes(&writer, bytes_of(node_key, PEER_KEY_SIZE));
    wire_write_u64(&writer, joined_s);
    return wire_writer_bytes(&writer);
}

void membership_bind(struct membership *membership, const struct invitation *invitation,
                     const uint8_t node_key[PEER_KEY_SIZE], uint64_t now_s, charter_sign *sign,
                     const void *signer) {
    uint8_t memory[BOUND_SIZE];
    ASSERT(invitation->is_bearer);
    *membership = (struct membership){.is_there = true, .invitation = *invitation, .joined_s = now_s};
    sign(signer, MEMBERSHIP_CONTEXT, bound_part(invitation, node_key, now_s, memory), membership->signature);
}

/* ---- judging ---- */

static bool is_for_node(const struct membership *membership, const uint8_t node_key[PEER_KEY_SIZE],
                        charter_verify *verify) {
    const struct invitation *invitation = &membership->invitation;
    uint8_t memory[BOUND_SIZE];
    if (!invitation->is_bearer) {
        return memcmp(invitation->key, node_key, PEER_KEY_SIZE) == 0;
    }
    return verify(invitation->key, MEMBERSHIP_CONTEXT,
                  bound_part(invitation, node_key, membership->joined_s, memory), membership->signature);
}

/* An invitation for a key is valid from … until; one of a bearer must have been used in that time. */
static enum membership_verdict judge_time(const struct membership *membership, uint64_t now_s) {
    const struct invitation *invitation = &membership->invitation;
    uint64_t at_s = invitation->is_bearer ? membership->joined_s : now_s;
    uint64_t latest_s = now_s + MEMBERSHIP_CLOCK_SLACK_S;
    if (invitation->from_s > latest_s || (invitation->is_bearer && membership->joined_s > latest_s)) {
        return MEMBERSHIP_EARLY;
    }
    if (invitation->is_bearer && membership->joined_s < invitation->from_s &&
        invitation->from_s - membership->joined_s > MEMBERSHIP_CLOCK_SLACK_S) {
        return MEMBERSHIP_EARLY;
    }
    bool has_end = invitation->is_bearer || invitation->until_s > 0;
    return has_end && at_s > invitation->until_s ? MEMBERSHIP_EXPIRED : MEMBERSHIP_GOOD;
}

enum membership_verdict membership_judge(const struct membership *membership, const struct charter *charter,
                                         const uint8_t ring[CHARTER_ID_SIZE],
                                         const uint8_t node_key[PEER_KEY_SIZE], uint64_t now_s,
                                         charter_verify *verify) {
    const struct invitation *invitation = &membership->invitation;
    if (charter_is_removed(charter, node_key)) {
        return MEMBERSHIP_REMOVED;
    }
    if (charter->is_open || charter_is_steward(charter, node_key)) {
        return MEMBERSHIP_GOOD;
    }
    if (!membership->is_there) {
        return MEMBERSHIP_MISSING;
    }
    if (memcmp(invitation->ring, ring, CHARTER_ID_SIZE) != 0 ||
        !invitation_counts(invitation, charter, verify) || !is_for_node(membership, node_key, verify)) {
        return MEMBERSHIP_FOREIGN;
    }
    if (charter_is_removed(charter, invitation->key)) {
        return MEMBERSHIP_REMOVED;
    }
    return judge_time(membership, now_s);
}

/* ---- encoding ---- */

struct bytes membership_write(const struct membership *membership, uint8_t out[MEMBERSHIP_SIZE_MAX]) {
    struct wire_writer writer;
    wire_writer_init(&writer, out, MEMBERSHIP_SIZE_MAX);
    if (membership->is_there) {
        invitation_write(&writer, &membership->invitation);
    }
    if (membership->is_there && membership->invitation.is_bearer) {
        wire_write_u64(&writer, membership->joined_s);
        wire_write_bytes(&writer, bytes_of(membership->signature, CHARTER_SIGNATURE_SIZE));
    }
    return wire_writer_bytes(&writer);
}

enum err membership_read(struct bytes input, struct membership *ret_membership, struct err_detail *detail) {
    struct membership membership = {0};
    struct wire_reader reader;
    wire_reader_init(&reader, input);
    if (input.size > 0) {
        membership.is_there = true;
        invitation_read(&reader, &membership.invitation);
    }
    if (membership.invitation.is_bearer) {
        membership.joined_s = wire_read_u64(&reader);
        wire_read_array(&reader, membership.signature, CHARTER_SIGNATURE_SIZE);
    }
    enum err err = wire_reader_finish(&reader, detail);
    if (err == ERR_OK) {
        *ret_membership = membership;
    }
    return err;
}
