/* charter: what is signed, what is refused, what follows from it; with real keys (net/identity.h). */
#include "protocol/ring/charter.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/hex.h"
#include "net/identity.h"
#include "protocol/ring/membership.h"
#include "unit.h"

enum { DOCUMENT_SIZE_MAX = 1 << 16, NOW_S = 1800000000, DAY_S = 86400 };

struct fixture {
    struct sha256 sha256;
    struct identity founder; /* seed 01 01 … */
    struct identity node;    /* seed 02 02 … */
    struct identity bearer;  /* seed 03 03 … */
    struct charter charter;
    struct charter other;
    uint8_t ring[CHARTER_ID_SIZE];
    uint8_t encoded[CHARTER_SIZE_MAX];
    uint8_t changed[CHARTER_SIZE_MAX + 1];
};

static void sign(const void *signer, const char *context, struct bytes message,
                 uint8_t out[CHARTER_SIGNATURE_SIZE]) {
    identity_sign(signer, context, message, out);
}

static void make_identity(struct identity *identity, uint8_t byte) {
    uint8_t seed[IDENTITY_SEED_SIZE];
    memset(seed, byte, sizeof seed);
    assert_int_equal(identity_from_seed(identity, seed), ERR_OK);
}

/* As docs/formats/charter.md describes the first vector. */
static void make_plain(struct fixture *fixture) {
    struct charter *charter = &fixture->charter;
    charter_init(charter);
    memcpy(charter->founder, fixture->founder.key, PEER_KEY_SIZE);
    snprintf(charter->name, sizeof charter->name, "films");
    charter->created_s = NOW_S;
    charter->signed_s = NOW_S;
}

static void add_pattern(struct charter *charter, const char *text) {
    struct charter_pattern *pattern = &charter->scope[charter->scope_count++];
    pattern->size = (uint8_t)strlen(text);
    memcpy(pattern->text, text, pattern->size);
}

/* And the second. */
static void make_full(struct fixture *fixture) {
    struct charter *charter = &fixture->charter;
    make_plain(fixture);
    charter->version = 2;
    charter->signed_s = NOW_S + DAY_S;
    charter->replicas = 3;
    charter->witnesses = 2;
    charter->period_s = 6 * 3600;
    charter->is_open = true;
    charter->members_may_add_jobs = false;
    add_pattern(charter, "example.org/*");
    add_pattern(charter, "*.pdf");
    assert_int_equal(charter_remove(charter, fixture->node.key), ERR_OK);
    assert_int_equal(charter_remove(charter, fixture->bearer.key), ERR_OK);
}

static struct bytes encode(struct fixture *fixture) {
    return charter_write(&fixture->charter, sign, &fixture->founder, fixture->encoded);
}

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    assert_int_equal(sha256_init(&fixture->sha256), ERR_OK);
    make_identity(&fixture->founder, 1);
    make_identity(&fixture->node, 2);
    make_identity(&fixture->bearer, 3);
    make_plain(fixture);
    charter_id(&fixture->charter, &fixture->sha256, fixture->ring);
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    sha256_done(&fixture->sha256);
    free(fixture);
    return 0;
}

/* ---- the vectors of docs/formats/charter.md ---- */

static char *read_document(void) {
    char *text = calloc(1, DOCUMENT_SIZE_MAX);
    FILE *file = fopen(MNEMON_SOURCE_ROOT "/docs/formats/charter.md", "rb");
    assert_non_null(text);
    assert_non_null(file);
    size_t size = fread(text, 1, DOCUMENT_SIZE_MAX - 1, file);
    assert_true(size > 0 && size < DOCUMENT_SIZE_MAX - 1);
    fclose(file);
    return text;
}

/* "name = value", at the beginning of a line. */
static void check_vector(const char *document, const char *name, const char *value) {
    char line[64];
    snprintf(line, sizeof line, "\n%s = ", name);
    const char *found = strstr(document, line);
    if (found == NULL) {
        fail_msg("no vector \"%s\"; it should be %s", name, value);
        return;
    }
    found += strlen(line);
    struct bytes stated = bytes_of(found, strcspn(found, "\n"));
    if (!bytes_equal(stated, bytes_of_string(value))) {
        fail_msg("%s = %s", name, value);
    }
}

static void check_bytes(const char *document, const char *name, struct bytes bytes) {
    char *digits = malloc(2 * bytes.size + 1);
    assert_non_null(digits);
    hex_encode(bytes, digits);
    check_vector(document, name, digits);
    free(digits);
}

static struct invitation make_invitation(struct fixture *fixture, bool is_bearer) {
    struct invitation invitation = {
        .is_bearer = is_bearer, .from_s = NOW_S, .until_s = is_bearer ? NOW_S + 7 * DAY_S : 0};
    memcpy(invitation.ring, fixture->ring, CHARTER_ID_SIZE);
    memcpy(invitation.key, is_bearer ? fixture->bearer.key : fixture->node.key, PEER_KEY_SIZE);
    invitation_sign(&invitation, sign, &fixture->founder);
    return invitation;
}

static struct membership make_membership(struct fixture *fixture, bool is_bearer) {
    struct membership membership = {.is_there = true};
    membership.invitation = make_invitation(fixture, is_bearer);
    if (is_bearer) {
        membership_bind(&membership, &membership.invitation, fixture->node.key, NOW_S + 60, sign,
                        &fixture->bearer);
    }
    return membership;
}

static void is_written_as_documented(void **state) {
    struct fixture *fixture = *state;
    char *document = read_document();
    uint8_t memory[MEMBERSHIP_SIZE_MAX];
    char token[INVITATION_TOKEN_SIZE];
    check_bytes(document, "plain", encode(fixture));
    check_bytes(document, "id", bytes_of(fixture->ring, CHARTER_ID_SIZE));
    make_full(fixture);
    check_bytes(document, "full", encode(fixture));
    struct membership by_key = make_membership(fixture, false);
    struct membership by_token = make_membership(fixture, true);
    check_bytes(document, "membership by key", membership_write(&by_key, memory));
    check_bytes(document, "membership by token", membership_write(&by_token, memory));
    check_vector(document, "token for a key",
                 invitation_format(&by_key.invitation, NULL, &fixture->sha256, token));
    check_vector(document, "token for a bearer",
                 invitation_format(&by_token.invitation, fixture->bearer.secret, &fixture->sha256, token));
    free(document);
}

/* ---- the charter ---- */

static void comes_back_as_it_was(void **state) {
    struct fixture *fixture = *state;
    make_full(fixture);
    struct err_detail detail = {0};
    assert_int_equal(charter_read(encode(fixture), identity_verify, &fixture->other, &detail), ERR_OK);
    assert_memory_equal(&fixture->other, &fixture->charter, sizeof fixture->charter);
}

static void the_largest_fits(void **state) {
    struct fixture *fixture = *state;
    struct charter *charter = &fixture->charter;
    memset(charter->name, 'n', CHARTER_NAME_SIZE_MAX);
    charter->scope_count = CHARTER_SCOPE_COUNT_MAX;
    for (size_t i = 0; i < CHARTER_SCOPE_COUNT_MAX; i++) {
        charter->scope[i].size = CHARTER_PATTERN_SIZE_MAX;
        memset(charter->scope[i].text, '*', CHARTER_PATTERN_SIZE_MAX);
    }
    for (unsigned i = 0; i < CHARTER_REMOVED_COUNT_MAX; i++) {
        uint8_t key[PEER_KEY_SIZE] = {(uint8_t)(i * 7), (uint8_t)(i >> 8), (uint8_t)i};
        assert_int_equal(charter_remove(charter, key), ERR_OK);
    }
    uint8_t one_more[PEER_KEY_SIZE] = {255, 255, 255, 255};
    assert_int_equal(charter_remove(charter, one_more), ERR_LIMIT);
    assert_int_equal(charter_read(encode(fixture), identity_verify, &fixture->other, NULL), ERR_OK);
    assert_memory_equal(&fixture->other, charter, sizeof *charter);
}

static void every_changed_bit_is_seen(void **state) {
    struct fixture *fixture = *state;
    make_full(fixture);
    struct bytes encoded = encode(fixture);
    for (size_t bit = 0; bit < 8 * encoded.size; bit++) {
        memcpy(fixture->changed, encoded.data, encoded.size);
        fixture->changed[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_not_equal(
            charter_read(bytes_of(fixture->changed, encoded.size), identity_verify, &fixture->other, NULL),
            ERR_OK);
    }
}

static void every_shorter_and_longer_one_is_refused(void **state) {
    struct fixture *fixture = *state;
    make_full(fixture);
    struct bytes encoded = encode(fixture);
    for (size_t size = 0; size < encoded.size; size++) {
        assert_int_equal(charter_read(bytes_slice(encoded, 0, size), identity_verify, &fixture->other, NULL),
                         ERR_TRUNCATED);
    }
    memcpy(fixture->changed, encoded.data, encoded.size);
    fixture->changed[encoded.size] = 0;
    assert_int_equal(
        charter_read(bytes_of(fixture->changed, encoded.size + 1), identity_verify, &fixture->other, NULL),
        ERR_INVALID);
}

static void another_s_signature_is_refused(void **state) {
    struct fixture *fixture = *state;
    struct err_detail detail = {0};
    struct bytes encoded = charter_write(&fixture->charter, sign, &fixture->node, fixture->encoded);
    assert_int_equal(charter_read(encoded, identity_verify, &fixture->other, &detail), ERR_MISMATCH);
    assert_string_equal(detail.text, "the signature is not the founder's");
}

static void values_out_of_bounds_are_named(void **state) {
    struct fixture *fixture = *state;
    struct charter *charter = &fixture->charter;
    struct err_detail detail = {0};
    charter->witnesses = charter->replicas + 1;
    assert_int_equal(charter_check(charter, &detail), ERR_INVALID);
    assert_non_null(strstr(detail.text, "witness"));
    make_plain(fixture);
    charter->list_size = CHARTER_LIST_SIZE_MAX + 1;
    assert_int_equal(charter_check(charter, &detail), ERR_INVALID);
    assert_non_null(strstr(detail.text, "lists"));
    make_plain(fixture);
    charter->name[2] = '\n';
    assert_int_equal(charter_check(charter, &detail), ERR_INVALID);
    make_plain(fixture);
    add_pattern(charter, "\x1b[31m");
    assert_int_equal(charter_check(charter, &detail), ERR_INVALID);
    assert_non_null(strstr(detail.text, "pattern"));
}

static void only_a_newer_one_of_the_same_ring_follows(void **state) {
    struct fixture *fixture = *state;
    struct charter *next = &fixture->other;
    struct err_detail detail = {0};
    *next = fixture->charter;
    assert_int_equal(charter_succeeds(&fixture->charter, next, &detail), ERR_EXISTS);
    next->version = 2;
    next->replicas = 2;
    assert_int_equal(charter_succeeds(&fixture->charter, next, &detail), ERR_OK);
    assert_int_equal(charter_succeeds(next, &fixture->charter, &detail), ERR_EXISTS);
    next->mapping = CHARTER_BY_HOST;
    assert_int_equal(charter_succeeds(&fixture->charter, next, &detail), ERR_MISMATCH);
    next->mapping = CHARTER_BY_URL;
    next->created_s++;
    assert_int_equal(charter_succeeds(&fixture->charter, next, &detail), ERR_MISMATCH);
}

static void a_new_version_has_the_same_id(void **state) {
    struct fixture *fixture = *state;
    uint8_t id[CHARTER_ID_SIZE];
    make_full(fixture);
    charter_id(&fixture->charter, &fixture->sha256, id);
    assert_memory_equal(id, fixture->ring, sizeof id);
    fixture->charter.created_s++;
    charter_id(&fixture->charter, &fixture->sha256, id);
    assert_memory_not_equal(id, fixture->ring, sizeof id);
}

/* ---- tokens ---- */

static void a_token_comes_back_as_it_was(void **state) {
    struct fixture *fixture = *state;
    for (int is_bearer = 0; is_bearer < 2; is_bearer++) {
        struct invitation invitation = make_invitation(fixture, is_bearer == 1);
        struct invitation back;
        char token[INVITATION_TOKEN_SIZE];
        uint8_t seed[INVITATION_SEED_SIZE];
        struct err_detail detail = {0};
        invitation_format(&invitation, is_bearer == 1 ? fixture->bearer.secret : NULL, &fixture->sha256,
                          token);
        assert_true(strlen(token) < sizeof token);
        assert_int_equal(invitation_parse(bytes_of_string(token), &fixture->sha256, &back, seed, &detail),
                         ERR_OK);
        assert_memory_equal(back.key, invitation.key, PEER_KEY_SIZE);
        assert_memory_equal(back.signature, invitation.signature, CHARTER_SIGNATURE_SIZE);
        assert_int_equal(back.until_s, invitation.until_s);
        assert_int_equal(memcmp(seed, fixture->bearer.secret, sizeof seed) == 0, is_bearer);
        assert_true(invitation_verify(&back, fixture->founder.key, identity_verify));
    }
}

static void a_mistyped_token_is_refused(void **state) {
    struct fixture *fixture = *state;
    struct invitation invitation = make_invitation(fixture, true);
    struct invitation back;
    char token[INVITATION_TOKEN_SIZE];
    uint8_t seed[INVITATION_SEED_SIZE];
    invitation_format(&invitation, fixture->bearer.secret, &fixture->sha256, token);
    size_t size = strlen(token);
    for (size_t i = 0; i < size; i++) {
        char right = token[i];
        token[i] = right == 'a' ? 'b' : 'a';
        assert_int_equal(invitation_parse(bytes_of_string(token), &fixture->sha256, &back, seed, NULL),
                         ERR_INVALID);
        token[i] = right;
        assert_int_equal(invitation_parse(bytes_of(token, i), &fixture->sha256, &back, seed, NULL),
                         ERR_INVALID);
    }
}

/* ---- membership ---- */

static enum membership_verdict judge(struct fixture *fixture, const struct membership *membership,
                                     const uint8_t key[PEER_KEY_SIZE], uint64_t now_s) {
    return membership_judge(membership, &fixture->charter, fixture->ring, key, now_s, identity_verify);
}

static void who_is_invited_is_a_member(void **state) {
    struct fixture *fixture = *state;
    const uint8_t *key = fixture->node.key;
    const struct membership none = {0};
    struct membership by_key = make_membership(fixture, false);
    struct membership by_token = make_membership(fixture, true);
    assert_int_equal(judge(fixture, &none, key, NOW_S), MEMBERSHIP_MISSING);
    assert_int_equal(judge(fixture, &none, fixture->founder.key, NOW_S), MEMBERSHIP_GOOD);
    assert_int_equal(judge(fixture, &by_key, key, NOW_S), MEMBERSHIP_GOOD);
    assert_int_equal(judge(fixture, &by_token, key, NOW_S + 60), MEMBERSHIP_GOOD);
    assert_int_equal(judge(fixture, &by_token, key, NOW_S + 400 * DAY_S), MEMBERSHIP_GOOD);
    fixture->charter.is_open = true;
    assert_int_equal(judge(fixture, &none, key, NOW_S), MEMBERSHIP_GOOD);
}

static void another_s_invitation_is_worth_nothing(void **state) {
    struct fixture *fixture = *state;
    const uint8_t *thief = fixture->bearer.key;
    struct membership by_key = make_membership(fixture, false);
    struct membership by_token = make_membership(fixture, true);
    assert_int_equal(judge(fixture, &by_key, thief, NOW_S), MEMBERSHIP_FOREIGN);
    assert_int_equal(judge(fixture, &by_token, thief, NOW_S), MEMBERSHIP_FOREIGN);
    by_token.joined_s++;
    assert_int_equal(judge(fixture, &by_token, fixture->node.key, NOW_S), MEMBERSHIP_FOREIGN);
    by_key.invitation.until_s = NOW_S + 1;
    assert_int_equal(judge(fixture, &by_key, fixture->node.key, NOW_S), MEMBERSHIP_FOREIGN);
    by_key = make_membership(fixture, false);
    invitation_sign(&by_key.invitation, sign, &fixture->node);
    assert_int_equal(judge(fixture, &by_key, fixture->node.key, NOW_S), MEMBERSHIP_FOREIGN);
    by_key = make_membership(fixture, false);
    fixture->ring[0] ^= 1;
    assert_int_equal(judge(fixture, &by_key, fixture->node.key, NOW_S), MEMBERSHIP_FOREIGN);
}

static void times_are_kept(void **state) {
    struct fixture *fixture = *state;
    const uint8_t *key = fixture->node.key;
    struct membership membership = make_membership(fixture, true);
    membership_bind(&membership, &membership.invitation, key, NOW_S + 8 * DAY_S, sign, &fixture->bearer);
    assert_int_equal(judge(fixture, &membership, key, NOW_S + 8 * DAY_S), MEMBERSHIP_EXPIRED);
    assert_int_equal(judge(fixture, &membership, key, NOW_S), MEMBERSHIP_EARLY);
    membership = make_membership(fixture, false);
    assert_int_equal(judge(fixture, &membership, key, NOW_S - DAY_S), MEMBERSHIP_EARLY);
    membership.invitation.until_s = NOW_S + DAY_S;
    invitation_sign(&membership.invitation, sign, &fixture->founder);
    assert_int_equal(judge(fixture, &membership, key, NOW_S + DAY_S), MEMBERSHIP_GOOD);
    assert_int_equal(judge(fixture, &membership, key, NOW_S + DAY_S + 1), MEMBERSHIP_EXPIRED);
}

static void who_is_removed_is_no_member(void **state) {
    struct fixture *fixture = *state;
    const uint8_t *key = fixture->node.key;
    struct membership by_token = make_membership(fixture, true);
    assert_int_equal(charter_remove(&fixture->charter, fixture->bearer.key), ERR_OK);
    assert_int_equal(judge(fixture, &by_token, key, NOW_S + 60), MEMBERSHIP_REMOVED);
    assert_int_equal(charter_remove(&fixture->charter, key), ERR_OK);
    assert_int_equal(charter_remove(&fixture->charter, key), ERR_EXISTS);
    struct membership by_key = make_membership(fixture, false);
    assert_int_equal(judge(fixture, &by_key, key, NOW_S), MEMBERSHIP_REMOVED);
    fixture->charter.is_open = true;
    assert_int_equal(judge(fixture, &by_key, key, NOW_S), MEMBERSHIP_REMOVED);
}

static void a_membership_comes_back_as_it_was(void **state) {
    struct fixture *fixture = *state;
    const struct membership all[] = {{0}, make_membership(fixture, false), make_membership(fixture, true)};
    for (size_t i = 0; i < 3; i++) {
        uint8_t memory[MEMBERSHIP_SIZE_MAX];
        uint8_t again[MEMBERSHIP_SIZE_MAX];
        struct membership back;
        struct bytes bytes = membership_write(&all[i], memory);
        assert_int_equal(membership_read(bytes, &back, NULL), ERR_OK);
        struct bytes rewritten = membership_write(&back, again);
        assert_int_equal(rewritten.size, bytes.size);
        assert_memory_equal(rewritten.data, bytes.data, bytes.size);
        for (size_t size = 1; size < bytes.size; size++) {
            assert_int_equal(membership_read(bytes_slice(bytes, 0, size), &back, NULL), ERR_TRUNCATED);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(is_written_as_documented),
        TEST(comes_back_as_it_was),
        TEST(the_largest_fits),
        TEST(every_changed_bit_is_seen),
        TEST(every_shorter_and_longer_one_is_refused),
        TEST(another_s_signature_is_refused),
        TEST(values_out_of_bounds_are_named),
        TEST(only_a_newer_one_of_the_same_ring_follows),
        TEST(a_new_version_has_the_same_id),
        TEST(a_token_comes_back_as_it_was),
        TEST(a_mistyped_token_is_refused),
        TEST(who_is_invited_is_a_member),
        TEST(another_s_invitation_is_worth_nothing),
        TEST(times_are_kept),
        TEST(who_is_removed_is_no_member),
        TEST(a_membership_comes_back_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
