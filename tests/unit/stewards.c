/* stewards: who may change a charter, invite and decree when several keys act together; with real keys. */
#include "protocol/ring/stewards.h"

#include <stdio.h>
#include <stdlib.h>

#include "net/identity.h"
#include "protocol/ring/act.h"
#include "unit.h"

enum { NOW_S = 1800000000, DAY_S = 86400, KEYS_COUNT = 6 };

struct fixture {
    struct identity keys[KEYS_COUNT]; /* the first is the founder's */
    struct charter charter;
    struct charter other;
    struct charter next;
    uint8_t ring[CHARTER_ID_SIZE];
    uint8_t encoded[CHARTER_SIZE_MAX];
    uint8_t body[CHARTER_RULES_SIZE_MAX];
    uint8_t changed[CHARTER_SIZE_MAX];
};

static void sign(const void *signer, const char *context, struct bytes message,
                 uint8_t out[CHARTER_SIGNATURE_SIZE]) {
    identity_sign(signer, context, message, out);
}

static struct stewards make_stewards(const struct fixture *fixture, size_t first, size_t count,
                                     uint8_t needed) {
    struct stewards stewards = {.count = 0};
    for (size_t i = first; i < first + count; i++) {
        assert_int_equal(stewards_add(&stewards, fixture->keys[i].key), ERR_OK);
    }
    memset(stewards.needed, needed, sizeof stewards.needed);
    return stewards;
}

/* 0, 1 and 2 act, two of them together; from a day after the ring was made. */
static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    struct sha256 sha256;
    assert_non_null(fixture);
    for (size_t i = 0; i < KEYS_COUNT; i++) {
        uint8_t seed[IDENTITY_SEED_SIZE];
        memset(seed, (int)i + 1, sizeof seed);
        assert_int_equal(identity_from_seed(&fixture->keys[i], seed), ERR_OK);
    }
    struct charter *charter = &fixture->charter;
    charter_init(charter);
    memcpy(charter->founder, fixture->keys[0].key, PEER_KEY_SIZE);
    snprintf(charter->name, sizeof charter->name, "films");
    charter->created_s = charter->signed_s = NOW_S;
    struct stewards stewards = make_stewards(fixture, 0, 3, 2);
    assert_int_equal(charter_hand_over(charter, &stewards, NOW_S + DAY_S, sign, &fixture->keys[0], NULL),
                     ERR_OK);
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    charter_id(charter, &sha256, fixture->ring);
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    free(*state);
    return 0;
}

static struct bytes encode(struct fixture *fixture, const struct charter *charter) {
    return charter_write(charter, NULL, NULL, fixture->encoded);
}

static enum err read_again(struct fixture *fixture, const struct charter *charter) {
    return charter_read(encode(fixture, charter), identity_verify, &fixture->other, NULL);
}

/* Of the keys whose bits are set. */
static enum err understand(struct fixture *fixture, struct act *act, unsigned signers, uint64_t now_s,
                           struct act_meaning *meaning) {
    enum err err =
        act_understand(act, &fixture->charter, fixture->ring, now_s, &fixture->next, meaning, NULL);
    for (size_t i = 0; err == ERR_OK && i < KEYS_COUNT; i++) {
        if ((signers >> i & 1) != 0) {
            (void)!act_sign(act, meaning, &fixture->charter, fixture->keys[i].key, sign, &fixture->keys[i]);
        }
    }
    return err;
}

/* The act is signed by these and, if that is enough, done: the charter is the next then. */
static bool agree(struct fixture *fixture, enum act_kind kind, struct bytes body, unsigned signers,
                  uint64_t now_s) {
    struct act act = {.kind = kind, .body = body};
    struct act_meaning meaning;
    if (understand(fixture, &act, signers, now_s, &meaning) != ERR_OK ||
        !act_is_done(&act, &meaning, &fixture->charter)) {
        return false;
    }
    struct bytes done = act_write_done(&act, &meaning, fixture->encoded);
    assert_int_equal(charter_read(done, identity_verify, &fixture->other, NULL), ERR_OK);
    assert_int_equal(charter_succeeds(&fixture->charter, &fixture->other, NULL), ERR_OK);
    fixture->charter = fixture->other;
    return true;
}

static struct bytes amendment(struct fixture *fixture, uint8_t replicas, uint64_t now_s) {
    fixture->other = fixture->charter;
    fixture->other.replicas = replicas;
    return charter_write_rules_act(&fixture->other, now_s, fixture->body);
}

static struct bytes take_over(struct fixture *fixture, size_t first, size_t count, uint8_t needed,
                              uint64_t now_s) {
    struct stewards stewards = make_stewards(fixture, first, count, needed);
    return charter_write_stewards_act(&fixture->charter, &stewards, now_s, fixture->body);
}

/* ---- charters ---- */

static void a_charter_with_stewards_comes_back_and_every_changed_byte_is_seen(void **state) {
    struct fixture *fixture = *state;
    struct bytes encoded = charter_write(&fixture->charter, sign, &fixture->keys[0], fixture->encoded);
    assert_int_equal(encoded.data[4], 2);
    assert_int_equal(charter_read(encoded, identity_verify, &fixture->other, NULL), ERR_OK);
    assert_int_equal(fixture->other.version, 2);
    assert_int_equal(fixture->other.rules_version, 1);
    assert_int_equal(charter_generation(&fixture->other), 1);
    assert_true(charter_is_steward(&fixture->other, fixture->keys[2].key));
    assert_false(charter_is_steward(&fixture->other, fixture->keys[3].key));
    for (size_t i = 0; i < encoded.size; i++) {
        fixture->encoded[i] ^= 1;
        assert_int_not_equal(charter_read(encoded, identity_verify, &fixture->other, NULL), ERR_OK);
        fixture->encoded[i] ^= 1;
        assert_int_not_equal(charter_read(bytes_of(encoded.data, i), identity_verify, &fixture->other, NULL),
                             ERR_OK);
    }
}

/* What programs do that know layout 1 only (docs/protocol/versions.md). */
static void programs_without_stewards_find_the_founders_signature_at_the_end(void **state) {
    struct fixture *fixture = *state;
    struct bytes encoded = charter_write(&fixture->charter, sign, &fixture->keys[0], fixture->encoded);
    struct bytes signed_part = bytes_slice(encoded, 0, encoded.size - CHARTER_SIGNATURE_SIZE);
    assert_true(identity_verify(fixture->charter.founder, CHARTER_CONTEXT, signed_part,
                                encoded.data + signed_part.size));
    size_t at = 5 + PEER_KEY_SIZE + 1 + strlen("films") + 8;
    assert_memory_equal(encoded.data + at, "\2\0\0\0", 4); /* the version */
}

static void an_old_charter_becomes_one_with_stewards_and_never_goes_back(void **state) {
    struct fixture *fixture = *state;
    struct charter *old = &fixture->other;
    charter_init(old);
    memcpy(old->founder, fixture->keys[0].key, PEER_KEY_SIZE);
    snprintf(old->name, sizeof old->name, "films");
    old->created_s = NOW_S;
    assert_int_equal(charter_succeeds(old, &fixture->charter, NULL), ERR_OK);
    old->version = 99; /* as who has stolen the founder's key could sign it */
    assert_int_equal(charter_succeeds(old, &fixture->charter, NULL), ERR_OK);
    assert_int_equal(charter_succeeds(&fixture->charter, old, NULL), ERR_EXISTS);
}

static void two_of_three_change_the_rules_and_one_does_not(void **state) {
    struct fixture *fixture = *state;
    assert_false(agree(fixture, ACT_RULES, amendment(fixture, 3, NOW_S + 2 * DAY_S), 1, NOW_S + 2 * DAY_S));
    assert_false(
        agree(fixture, ACT_RULES, amendment(fixture, 3, NOW_S + 2 * DAY_S), 1 + 8 + 16, NOW_S + 2 * DAY_S));
    assert_true(
        agree(fixture, ACT_RULES, amendment(fixture, 3, NOW_S + 2 * DAY_S), 2 + 4, NOW_S + 2 * DAY_S));
    assert_int_equal(fixture->charter.version, 3);
    assert_int_equal(fixture->charter.replicas, 3);
    /* The same again is over. */
    struct bytes body = amendment(fixture, 4, NOW_S + 3 * DAY_S);
    assert_true(agree(fixture, ACT_RULES, body, 1 + 4, NOW_S + 3 * DAY_S));
    assert_false(agree(fixture, ACT_RULES, body, 1 + 4, NOW_S + 3 * DAY_S));
}

static void signatures_that_are_missing_false_or_of_others_do_not_count(void **state) {
    struct fixture *fixture = *state;
    assert_true(
        agree(fixture, ACT_RULES, amendment(fixture, 3, NOW_S + 2 * DAY_S), 1 + 2, NOW_S + 2 * DAY_S));
    struct charter *charter = &fixture->charter;
    struct steward_signatures good = charter->rules_signatures;
    charter->rules_signatures.count = 1;
    assert_int_equal(read_again(fixture, charter), ERR_MISMATCH);
    charter->rules_signatures = good;
    charter->rules_signatures.items[1].signature[5] ^= 1;
    assert_int_equal(read_again(fixture, charter), ERR_MISMATCH);
    charter->rules_signatures.items[1] = good.items[0]; /* twice the same */
    assert_int_not_equal(read_again(fixture, charter), ERR_OK);
    charter->rules_signatures = good;
    charter->links[0].signatures.items[0].signature[5] ^= 1; /* the founder's word for the stewards */
    assert_int_equal(read_again(fixture, charter), ERR_MISMATCH);
    charter->links[0].signatures.items[0].signature[5] ^= 1;
    charter->replicas = 5;
    assert_int_equal(read_again(fixture, charter), ERR_MISMATCH);
    charter->replicas = 3;
    assert_int_equal(read_again(fixture, charter), ERR_OK);
}

static void who_was_replaced_changes_nothing_any_more(void **state) {
    struct fixture *fixture = *state;
    uint64_t now_s = NOW_S + 2 * DAY_S;
    struct charter *before = malloc(sizeof *before);
    assert_non_null(before);
    *before = fixture->charter;
    assert_true(agree(fixture, ACT_STEWARDS, take_over(fixture, 2, 3, 2, now_s), 1 + 2, now_s));
    assert_int_equal(charter_generation(&fixture->charter), 2);
    assert_false(charter_is_steward(&fixture->charter, fixture->keys[0].key));
    assert_false(agree(fixture, ACT_RULES, amendment(fixture, 3, now_s), 1 + 2, now_s));
    assert_true(agree(fixture, ACT_RULES, amendment(fixture, 3, now_s), 4 + 8, now_s));

    /* With rules of their own, of however high a version, on top of what they once were. */
    struct charter *now = malloc(sizeof *now);
    assert_non_null(now);
    *now = fixture->charter;
    fixture->charter = *before;
    assert_true(agree(fixture, ACT_RULES, amendment(fixture, 1, now_s), 1 + 2, now_s));
    assert_int_equal(charter_succeeds(now, &fixture->charter, NULL), ERR_EXISTS);
    fixture->other = *now;
    fixture->other.rules_generation = 1;
    fixture->other.rules_version = 77;
    fixture->other.version = 77;
    assert_int_not_equal(read_again(fixture, &fixture->other), ERR_OK);

    /* Or stewards of their own: what a node knows to have taken over stays. */
    fixture->charter = *before;
    assert_true(agree(fixture, ACT_STEWARDS, take_over(fixture, 0, 3, 2, now_s + 1), 1 + 2, now_s));
    assert_true(agree(fixture, ACT_STEWARDS, take_over(fixture, 0, 2, 2, now_s + 2), 1 + 2, now_s));
    assert_true(charter_generation(&fixture->charter) > charter_generation(now));
    assert_int_equal(charter_succeeds(now, &fixture->charter, NULL), ERR_MISMATCH);
    free(now);
    free(before);
}

/* Those who were replaced sign other rules of their time, and put them beneath the links that all know. */
static void rules_that_nobody_took_over_are_refused(void **state) {
    struct fixture *fixture = *state;
    uint64_t now_s = NOW_S + 2 * DAY_S;
    struct charter *before = malloc(2 * sizeof *before);
    assert_non_null(before);
    *before = fixture->charter;
    assert_true(agree(fixture, ACT_RULES, amendment(fixture, 1, now_s), 1 + 2, now_s));
    struct charter *forged = before + 1;
    *forged = fixture->charter;
    fixture->charter = *before;
    assert_true(agree(fixture, ACT_RULES, amendment(fixture, 3, now_s), 1 + 2, now_s));
    assert_true(agree(fixture, ACT_STEWARDS, take_over(fixture, 2, 3, 2, now_s), 1 + 2, now_s));
    forged->links_count = fixture->charter.links_count;
    forged->links[1] = fixture->charter.links[1];
    forged->version = fixture->charter.version;
    forged->signed_s = fixture->charter.signed_s;
    assert_int_equal(read_again(fixture, &fixture->charter), ERR_OK);
    assert_int_equal(read_again(fixture, forged), ERR_INVALID);
    free(before);
}

static void stewards_follow_each_other_until_there_is_no_room(void **state) {
    struct fixture *fixture = *state;
    uint64_t now_s = NOW_S + 2 * DAY_S;
    for (unsigned i = 1; i < CHARTER_LINKS_MAX; i++) {
        size_t first = i % 2;
        unsigned signers = first == 1 ? 1 + 2 : 2 + 4; /* of those that act */
        assert_true(
            agree(fixture, ACT_STEWARDS, take_over(fixture, first, 3, 2, now_s + i), signers, now_s + i));
    }
    assert_true(encode(fixture, &fixture->charter).size < CHARTER_SIZE_MAX);
    assert_int_equal(charter_generation(&fixture->charter), CHARTER_LINKS_MAX);
    assert_false(agree(fixture, ACT_STEWARDS, take_over(fixture, 0, 3, 2, now_s + 99), 7, now_s + 99));
    assert_true(agree(fixture, ACT_RULES, amendment(fixture, 2, now_s + 99), 2 + 4, now_s + 99));
}

static void the_largest_charter_has_room(void **state) {
    struct fixture *fixture = *state;
    struct charter *charter = &fixture->charter;
    charter->links_count = CHARTER_LINKS_MAX;
    charter->scope_count = CHARTER_SCOPE_COUNT_MAX;
    for (size_t i = 0; i < CHARTER_SCOPE_COUNT_MAX; i++) {
        charter->scope[i].size = CHARTER_PATTERN_SIZE_MAX;
        memset(charter->scope[i].text, 'x', CHARTER_PATTERN_SIZE_MAX);
    }
    for (uint32_t i = 0; i < CHARTER_REMOVED_COUNT_MAX; i++) {
        uint8_t key[PEER_KEY_SIZE] = {(uint8_t)(i >> 8), (uint8_t)i, 1};
        assert_int_equal(charter_remove(charter, key), ERR_OK);
    }
    charter->rules_signatures.count = STEWARDS_MAX;
    for (size_t i = 0; i < CHARTER_LINKS_MAX; i++) {
        charter->links[i].stewards.count = charter->links[i].signatures.count = STEWARDS_MAX;
    }
    struct bytes encoded = encode(fixture, charter);
    assert_true(encoded.size > 0 && encoded.size <= CHARTER_SIZE_MAX - CHARTER_SIGNATURE_SIZE);
    assert_true(charter_write_rules_act(charter, NOW_S, fixture->body).size <= CHARTER_RULES_SIZE_MAX);
    assert_int_not_equal(charter_read(encoded, identity_verify, &fixture->other, NULL), ERR_OK);
}

static void stewards_have_bounds(void **state) {
    struct fixture *fixture = *state;
    struct stewards stewards = make_stewards(fixture, 0, 4, 2);
    assert_int_equal(stewards_check(&stewards, NULL), ERR_INVALID); /* two twos could agree on two charters */
    stewards.needed[STEWARD_AMEND] = 3;
    assert_int_equal(stewards_check(&stewards, NULL), ERR_OK);
    stewards.needed[STEWARD_INVITE] = 5;
    assert_int_equal(stewards_check(&stewards, NULL), ERR_INVALID);
    stewards.needed[STEWARD_INVITE] = 0;
    assert_int_equal(stewards_check(&stewards, NULL), ERR_INVALID);
    assert_int_equal(stewards_add(&stewards, fixture->keys[1].key), ERR_EXISTS);
    for (size_t i = 0; i < STEWARDS_MAX; i++) {
        uint8_t key[PEER_KEY_SIZE] = {(uint8_t)(i + 1)};
        (void)!stewards_add(&stewards, key);
    }
    assert_int_equal(stewards.count, STEWARDS_MAX);
    stewards.count = 0;
    assert_int_equal(stewards_check(&stewards, NULL), ERR_INVALID);
}

/* ---- invitations and decrees ---- */

static struct invitation make_invitation(struct fixture *fixture, uint64_t now_s, unsigned signers) {
    struct invitation invitation = {.generation = charter_generation(&fixture->charter), .from_s = now_s};
    uint8_t body[INVITATION_BODY_SIZE];
    struct act_meaning meaning;
    memcpy(invitation.ring, fixture->ring, CHARTER_ID_SIZE);
    memcpy(invitation.key, fixture->keys[5].key, PEER_KEY_SIZE);
    struct act act = {.kind = ACT_INVITATION, .body = invitation_write_body(&invitation, body)};
    assert_int_equal(understand(fixture, &act, signers, now_s, &meaning), ERR_OK);
    invitation.signatures = act.signatures;
    return invitation;
}

static enum membership_verdict judge(const struct fixture *fixture, const struct invitation *invitation,
                                     const uint8_t *key) {
    struct membership membership = {.is_there = invitation != NULL};
    if (invitation != NULL) {
        membership.invitation = *invitation;
    }
    return membership_judge(&membership, &fixture->charter, fixture->ring, key, NOW_S + 5 * DAY_S,
                            identity_verify);
}

static void enough_stewards_let_a_node_in_and_it_stays_when_they_go(void **state) {
    struct fixture *fixture = *state;
    const uint8_t *key = fixture->keys[5].key;
    uint64_t now_s = NOW_S + 2 * DAY_S;
    struct invitation by_one = make_invitation(fixture, now_s, 2);
    struct invitation by_two = make_invitation(fixture, now_s, 2 + 4);
    struct invitation by_founder = {.from_s = NOW_S};
    memcpy(by_founder.ring, fixture->ring, CHARTER_ID_SIZE);
    memcpy(by_founder.key, key, PEER_KEY_SIZE);
    invitation_sign(&by_founder, sign, &fixture->keys[0]);
    struct invitation late = by_founder;
    late.from_s = now_s; /* it no longer acted alone by then */
    invitation_sign(&late, sign, &fixture->keys[0]);
    assert_int_equal(judge(fixture, &by_one, key), MEMBERSHIP_FOREIGN);
    assert_int_equal(judge(fixture, &late, key), MEMBERSHIP_FOREIGN);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(judge(fixture, &by_two, key), MEMBERSHIP_GOOD);
        assert_int_equal(judge(fixture, &by_founder, key), MEMBERSHIP_GOOD);
        if (round == 0) {
            assert_int_equal(judge(fixture, &by_two, fixture->keys[4].key), MEMBERSHIP_FOREIGN);
            assert_int_equal(judge(fixture, NULL, fixture->keys[0].key), MEMBERSHIP_GOOD);
            assert_true(agree(fixture, ACT_STEWARDS, take_over(fixture, 2, 3, 2, now_s), 1 + 2, now_s));
        }
    }
    assert_int_equal(judge(fixture, NULL, fixture->keys[0].key), MEMBERSHIP_MISSING);
    assert_int_equal(judge(fixture, NULL, fixture->keys[4].key), MEMBERSHIP_GOOD);
    by_two.from_s = now_s + DAY_S; /* those who have gone invite nobody */
    assert_int_equal(judge(fixture, &by_two, key), MEMBERSHIP_FOREIGN);
    by_two.generation = 3; /* of whom nobody has heard */
    assert_int_equal(judge(fixture, &by_two, key), MEMBERSHIP_FOREIGN);
}

static void a_token_of_stewards_comes_back(void **state) {
    struct fixture *fixture = *state;
    char token[INVITATION_TOKEN_SIZE];
    struct sha256 sha256;
    struct invitation read;
    uint8_t seed[INVITATION_SEED_SIZE];
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    for (unsigned signers = 1; signers < 8; signers++) {
        struct invitation invitation = make_invitation(fixture, NOW_S + 2 * DAY_S, signers);
        for (int bearer = 0; bearer < 2; bearer++) {
            invitation.is_bearer = bearer == 1;
            invitation_format(&invitation, bearer == 1 ? fixture->keys[3].secret : NULL, &sha256, token);
            assert_int_equal(invitation_parse(bytes_of_string(token), &sha256, &read, seed, NULL), ERR_OK);
            assert_int_equal(read.generation, 1);
            assert_int_equal(read.signatures.count, invitation.signatures.count);
            assert_memory_equal(&read.signatures.items[0], &invitation.signatures.items[0],
                                sizeof read.signatures.items[0]);
        }
    }
    sha256_done(&sha256);
}

static enum err decree_as(struct fixture *fixture, uint64_t made_s, enum decree_kind kind, unsigned signers) {
    uint8_t *memory = malloc(DECREE_SIZE_MAX);
    struct decree decree = {.kind = kind,
                            .name = BYTES("private"),
                            .version = made_s * 1000000,
                            .text = BYTES("what"),
                            .generation = charter_generation(&fixture->charter)};
    uint8_t digest[SHA256_SIZE];
    assert_non_null(memory);
    memcpy(decree.ring, fixture->ring, CHARTER_ID_SIZE);
    memcpy(decree.author, fixture->charter.founder, PEER_KEY_SIZE);
    decree_digest(&decree, digest);
    for (size_t i = 0; i < KEYS_COUNT; i++) {
        struct steward_signature signature;
        memcpy(signature.key, fixture->keys[i].key, PEER_KEY_SIZE);
        identity_sign(&fixture->keys[i], DECREE_STEWARDS_CONTEXT, bytes_of(digest, sizeof digest),
                      signature.signature);
        if ((signers >> i & 1) != 0) {
            assert_int_equal(steward_signatures_add(&decree.signatures, &signature), ERR_OK);
        }
    }
    struct bytes encoded = decree_write(&decree, NULL, NULL, memory);
    struct decree read;
    assert_int_equal(decree_read(encoded, identity_verify, &read, NULL), ERR_OK);
    assert_int_equal(read.kind, kind);
    enum err err =
        decree_counts(&read, &fixture->charter, fixture->ring, NOW_S + 5 * DAY_S, identity_verify, NULL);
    free(memory);
    return err;
}

static void enough_stewards_decree_and_a_founder_alone_no_longer(void **state) {
    struct fixture *fixture = *state;
    struct decree old = {
        .kind = DECREE_RULES, .name = BYTES("private"), .version = (uint64_t)NOW_S * 1000000};
    memcpy(old.ring, fixture->ring, CHARTER_ID_SIZE);
    memcpy(old.author, fixture->charter.founder, PEER_KEY_SIZE);
    assert_int_equal(decree_counts(&old, &fixture->charter, fixture->ring, NOW_S, NULL, NULL), ERR_OK);
    old.version = (uint64_t)(NOW_S + 2 * DAY_S) * 1000000;
    assert_int_equal(decree_counts(&old, &fixture->charter, fixture->ring, NOW_S, NULL, NULL),
                     ERR_PERMISSION);
    static const enum decree_kind kinds[] = {DECREE_JOB, DECREE_RULES, DECREE_DELETION, DECREE_IMPORTS};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        assert_int_equal(decree_as(fixture, NOW_S + 2 * DAY_S, kinds[i], 1), ERR_PERMISSION);
        assert_int_equal(decree_as(fixture, NOW_S + 2 * DAY_S, kinds[i], 1 + 8), ERR_PERMISSION);
        assert_int_equal(decree_as(fixture, NOW_S + 2 * DAY_S, kinds[i], 1 + 4), ERR_OK);
    }
}

/* ---- acts ---- */

static void an_act_comes_back(void **state) {
    struct fixture *fixture = *state;
    uint8_t *memory = malloc(ACT_SIZE_MAX);
    struct act act = {.kind = ACT_RULES, .body = amendment(fixture, 3, NOW_S + 2 * DAY_S)};
    struct act read;
    struct act_meaning meaning;
    uint8_t id[ACT_ID_SIZE];
    uint8_t id_again[ACT_ID_SIZE];
    assert_non_null(memory);
    assert_int_equal(understand(fixture, &act, 1, NOW_S + 2 * DAY_S, &meaning), ERR_OK);
    struct bytes encoded = act_write(&act, memory);
    assert_int_equal(act_read(encoded, &read, NULL), ERR_OK);
    assert_bytes_equal(read.body, act.body);
    act_id(&act, id);
    act_id(&read, id_again);
    assert_memory_equal(id, id_again, sizeof id);
    for (size_t i = 0; i < encoded.size; i++) {
        assert_int_not_equal(act_read(bytes_of(encoded.data, i), &read, NULL), ERR_OK);
    }
    memory[5] = 9;
    assert_int_equal(act_read(encoded, &read, NULL), ERR_UNSUPPORTED);
    free(memory);
}

static void only_good_signatures_of_stewards_are_kept(void **state) {
    struct fixture *fixture = *state;
    struct act act = {.kind = ACT_RULES, .body = amendment(fixture, 3, NOW_S + 2 * DAY_S)};
    struct act_meaning meaning;
    assert_int_equal(understand(fixture, &act, 7, NOW_S + 2 * DAY_S, &meaning), ERR_OK);
    struct steward_signature stranger = act.signatures.items[0];
    memcpy(stranger.key, fixture->keys[4].key, PEER_KEY_SIZE);
    identity_sign(&fixture->keys[4], meaning.context, bytes_of(meaning.message, meaning.message_size),
                  stranger.signature);
    assert_int_equal(steward_signatures_add(&act.signatures, &stranger), ERR_OK);
    assert_int_equal(act_clean(&act, &meaning, &fixture->charter, identity_verify), 3);
    act.signatures.items[1].signature[0] ^= 1;
    assert_int_equal(act_clean(&act, &meaning, &fixture->charter, identity_verify), 2);
    assert_int_equal(
        act_sign(&act, &meaning, &fixture->charter, fixture->keys[4].key, sign, &fixture->keys[4]),
        ERR_PERMISSION);
}

static void acts_end(void **state) {
    struct fixture *fixture = *state;
    uint64_t made_s = NOW_S + 2 * DAY_S;
    struct act act = {.kind = ACT_RULES, .body = amendment(fixture, 3, made_s)};
    struct act_meaning meaning;
    assert_int_equal(understand(fixture, &act, 0, made_s - ACT_EARLY_S, &meaning), ERR_OK);
    assert_int_equal(understand(fixture, &act, 0, made_s - ACT_EARLY_S - 1, &meaning), ERR_TIMEOUT);
    assert_int_equal(understand(fixture, &act, 0, made_s + ACT_LASTS_S, &meaning), ERR_OK);
    assert_int_equal(understand(fixture, &act, 0, made_s + ACT_LASTS_S + 1, &meaning), ERR_TIMEOUT);
    fixture->ring[0] ^= 1;
    uint8_t body[INVITATION_BODY_SIZE];
    struct invitation invitation = {.generation = 1, .from_s = made_s};
    act = (struct act){.kind = ACT_INVITATION, .body = invitation_write_body(&invitation, body)};
    assert_int_equal(understand(fixture, &act, 0, made_s, &meaning), ERR_MISMATCH);
}

/* The list of the others decides, not the order in which they signed. */
static void what_cannot_change_cannot_be_agreed_on(void **state) {
    struct fixture *fixture = *state;
    uint64_t now_s = NOW_S + 2 * DAY_S;
    fixture->other = fixture->charter;
    fixture->other.mapping = CHARTER_BY_HOST;
    assert_false(
        agree(fixture, ACT_RULES, charter_write_rules_act(&fixture->other, now_s, fixture->body), 7, now_s));
    fixture->other.mapping = fixture->charter.mapping;
    fixture->other.version = 8; /* far ahead: others could not follow */
    assert_false(
        agree(fixture, ACT_RULES, charter_write_rules_act(&fixture->other, now_s, fixture->body), 7, now_s));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_charter_with_stewards_comes_back_and_every_changed_byte_is_seen),
        TEST(programs_without_stewards_find_the_founders_signature_at_the_end),
        TEST(an_old_charter_becomes_one_with_stewards_and_never_goes_back),
        TEST(two_of_three_change_the_rules_and_one_does_not),
        TEST(signatures_that_are_missing_false_or_of_others_do_not_count),
        TEST(who_was_replaced_changes_nothing_any_more),
        TEST(rules_that_nobody_took_over_are_refused),
        TEST(stewards_follow_each_other_until_there_is_no_room),
        TEST(the_largest_charter_has_room),
        TEST(stewards_have_bounds),
        TEST(enough_stewards_let_a_node_in_and_it_stays_when_they_go),
        TEST(a_token_of_stewards_comes_back),
        TEST(enough_stewards_decree_and_a_founder_alone_no_longer),
        TEST(an_act_comes_back),
        TEST(only_good_signatures_of_stewards_are_kept),
        TEST(acts_end),
        TEST(what_cannot_change_cannot_be_agreed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
