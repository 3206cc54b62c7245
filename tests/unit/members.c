/* members, roll, import_rule: whose signature counts and when, what is remembered and asked for, what is
 * refused. */
#include "node/ring/members.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "clock-manual.h"
#include "scratch.h"
#include "unit.h"

enum { FOUNDED_S = 1700000000, INVITED_S = FOUNDED_S + 86400, REMOVED_S = INVITED_S + 30 * 86400 };

static const int64_t SECOND_US = 1000000;

struct fixture {
    struct sha256 sha256;
    struct identity founder;
    struct identity member;
    struct identity stranger;
    struct charter charter;
    struct membership membership;
    uint8_t ring[CHARTER_ID_SIZE];
    struct clock_manual clock;
    void *directory;
    struct members *members;
};

static void sign(const void *signer, const char *context, struct bytes message,
                 uint8_t out[CHARTER_SIGNATURE_SIZE]) {
    identity_sign(signer, context, message, out);
}

static struct members *open_members(struct fixture *fixture) {
    struct members *members = members_new(fixture->directory, &fixture->clock.clock);
    assert_non_null(members);
    return members;
}

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    char path[SCRATCH_PATH_SIZE];
    assert_non_null(fixture);
    assert_int_equal(scratch_make(&fixture->directory), 0);
    scratch_path(fixture->directory, "ring", path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(sha256_init(&fixture->sha256), ERR_OK);
    assert_int_equal(identity_random(&fixture->founder), ERR_OK);
    assert_int_equal(identity_random(&fixture->member), ERR_OK);
    assert_int_equal(identity_random(&fixture->stranger), ERR_OK);
    charter_init(&fixture->charter);
    memcpy(fixture->charter.founder, fixture->founder.key, PEER_KEY_SIZE);
    memcpy(fixture->charter.name, "films", sizeof "films");
    fixture->charter.created_s = fixture->charter.signed_s = FOUNDED_S;
    charter_id(&fixture->charter, &fixture->sha256, fixture->ring);
    struct invitation *invitation = &fixture->membership.invitation;
    fixture->membership.is_there = true;
    invitation->from_s = INVITED_S;
    memcpy(invitation->ring, fixture->ring, CHARTER_ID_SIZE);
    memcpy(invitation->key, fixture->member.key, PEER_KEY_SIZE);
    invitation_sign(invitation, sign, &fixture->founder);
    clock_manual_init(&fixture->clock, REMOVED_S * SECOND_US);
    fixture->members = open_members(fixture);
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    members_free(fixture->members);
    sha256_done(&fixture->sha256);
    int result = scratch_remove(&fixture->directory);
    free(fixture);
    return result;
}

static enum members_verdict judge(struct fixture *fixture, const struct identity *identity, int64_t time_s) {
    return members_judge(fixture->members, roll_start(identity->key), time_s * SECOND_US);
}

static void begin(struct fixture *fixture) {
    members_set_charter(fixture->members, &fixture->charter, fixture->ring);
}

static void a_signature_counts_from_when_its_key_was_a_member_on(void **state) {
    struct fixture *fixture = *state;
    assert_int_equal(judge(fixture, &fixture->founder, FOUNDED_S), MEMBERS_NO_RING);
    begin(fixture);
    assert_int_equal(judge(fixture, &fixture->founder, FOUNDED_S), MEMBERS_MEMBER);
    assert_int_equal(judge(fixture, &fixture->founder, 1262401445), MEMBERS_STRANGER); /* 2010 */
    assert_int_equal(judge(fixture, &fixture->member, INVITED_S), MEMBERS_STRANGER); /* nobody has shown it */
    members_note(fixture->members, fixture->member.key, &fixture->membership);
    assert_int_equal(judge(fixture, &fixture->member, INVITED_S), MEMBERS_MEMBER);
    assert_int_equal(judge(fixture, &fixture->member, INVITED_S - 2 * MEMBERSHIP_CLOCK_SLACK_S),
                     MEMBERS_STRANGER);
    assert_int_equal(judge(fixture, &fixture->stranger, INVITED_S), MEMBERS_STRANGER);
    members_note(fixture->members, fixture->stranger.key, &fixture->membership); /* of another */
    assert_int_equal(judge(fixture, &fixture->stranger, INVITED_S), MEMBERS_STRANGER);
    assert_int_equal(members_count(fixture->members), 1);
}

static void a_removal_ends_what_counts_and_is_remembered(void **state) {
    struct fixture *fixture = *state;
    begin(fixture);
    members_note(fixture->members, fixture->member.key, &fixture->membership);
    fixture->charter.version = 2;
    fixture->charter.signed_s = REMOVED_S;
    assert_int_equal(charter_remove(&fixture->charter, fixture->member.key), ERR_OK);
    begin(fixture);
    fixture->charter.version = 3; /* says it again, later */
    fixture->charter.signed_s = REMOVED_S + 86400;
    for (int round = 0; round < 2; round++) {
        begin(fixture);
        assert_int_equal(judge(fixture, &fixture->member, REMOVED_S - 1), MEMBERS_MEMBER);
        assert_int_equal(judge(fixture, &fixture->member, REMOVED_S + 1), MEMBERS_STRANGER);
        assert_int_equal(members_judge_ever(fixture->members, roll_start(fixture->member.key)),
                         MEMBERS_MEMBER);
        members_beat(fixture->members);
        members_free(fixture->members);
        fixture->members = open_members(fixture);
    }
}

static void in_an_open_ring_every_key_counts(void **state) {
    struct fixture *fixture = *state;
    fixture->charter.is_open = true;
    begin(fixture);
    assert_int_equal(judge(fixture, &fixture->stranger, INVITED_S), MEMBERS_MEMBER);
    assert_int_equal(judge(fixture, &fixture->stranger, FOUNDED_S - 86400), MEMBERS_STRANGER);
}

/* b asks a for what it does not know, and no more often than it helps. */
static void an_unknown_key_is_asked_for(void **state) {
    struct fixture *fixture = *state;
    struct members *other = open_members(fixture);
    struct buf question;
    struct buf answer;
    buf_init(&question, PEER_RPC_QUESTION_SIZE_MAX);
    buf_init(&answer, PEER_RPC_QUESTION_SIZE_MAX);
    begin(fixture);
    members_set_charter(other, &fixture->charter, fixture->ring);
    members_note(other, fixture->member.key, &fixture->membership);
    assert_false(members_next_question(fixture->members, &question));
    assert_int_equal(judge(fixture, &fixture->member, INVITED_S), MEMBERS_STRANGER);
    assert_int_equal(judge(fixture, &fixture->stranger, INVITED_S), MEMBERS_STRANGER);
    uint64_t generation = members_generation(fixture->members);
    assert_true(members_next_question(fixture->members, &question));
    assert_int_equal(members_answer(other, NULL, buf_bytes(&question), &answer, NULL), ERR_OK);
    for (size_t cut = 0; cut < answer.size; cut++) {
        assert_int_not_equal(
            members_take_answer(fixture->members, bytes_slice(buf_bytes(&answer), 0, cut), NULL), ERR_OK);
    }
    assert_int_equal(judge(fixture, &fixture->member, INVITED_S), MEMBERS_STRANGER);
    assert_int_equal(members_take_answer(fixture->members, buf_bytes(&answer), NULL), ERR_OK);
    assert_int_equal(judge(fixture, &fixture->member, INVITED_S), MEMBERS_MEMBER);
    assert_true(members_generation(fixture->members) > generation);
    assert_false(members_next_question(fixture->members, &question)); /* not at once again */
    clock_manual_advance(&fixture->clock, 2000000);
    assert_true(members_next_question(fixture->members, &question)); /* for the stranger */
    assert_int_not_equal(members_answer(other, NULL, BYTES("\xff\xff"), &answer, NULL), ERR_OK);
    members_free(other);
    buf_done(&question);
    buf_done(&answer);
}

static void what_the_ring_does_not_take_is_refused(void **state) {
    struct fixture *fixture = *state;
    begin(fixture);
    members_note(fixture->members, fixture->member.key, &fixture->membership);
    struct members_claim fetched = {.time_us = (INVITED_S + 1) * SECOND_US,
                                    .is_signed = true,
                                    .signer = roll_start(fixture->member.key),
                                    .is_in_scope = false};
    struct members_claim imported = {.time_us = INT64_C(1262401445000000),
                                     .is_imported = true,
                                     .importer = roll_start(fixture->member.key),
                                     .is_in_scope = true};
    struct members_claim by_founder = imported;
    by_founder.importer = roll_start(fixture->founder.key);
    struct members_claim by_stranger = imported;
    by_stranger.importer = roll_start(fixture->stranger.key);
    struct members_claim bare = {.time_us = imported.time_us, .is_in_scope = true};
    struct members_claim late = fetched;
    late.time_us = (REMOVED_S + MEMBERSHIP_CLOCK_SLACK_S + 1) * SECOND_US;
    struct members_claim outside = imported;
    outside.is_in_scope = false;
    const struct {
        enum import_rule rule;
        bool takes_imported;
        bool takes_founders;
        bool takes_strangers;
        bool takes_bare;
    } rules[] = {{IMPORT_RULE_NONE, true, true, true, true},
                 {IMPORT_RULE_NOBODY, false, false, false, false},
                 {IMPORT_RULE_STEWARDS, false, true, false, false},
                 {IMPORT_RULE_MEMBERS, true, true, false, false}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        members_set_rule(fixture->members, rules[i].rule);
        assert_null(members_refuse(fixture->members, &fetched)); /* also out of scope: it was in it then */
        assert_int_equal(members_refuse(fixture->members, &imported) == NULL, rules[i].takes_imported);
        assert_int_equal(members_refuse(fixture->members, &by_founder) == NULL, rules[i].takes_founders);
        assert_int_equal(members_refuse(fixture->members, &by_stranger) == NULL, rules[i].takes_strangers);
        assert_int_equal(members_refuse(fixture->members, &bare) == NULL, rules[i].takes_bare);
        assert_non_null(members_refuse(fixture->members, &late));
        assert_non_null(members_refuse(fixture->members, &outside));
    }
    members_await_rule(fixture->members, true);
    assert_false(members_knows_rule(fixture->members));
    members_await_rule(fixture->members, false);
    assert_true(members_knows_rule(fixture->members));
}

static void rules_are_one_line(void **state) {
    (void)state;
    enum import_rule rule;
    for (int i = IMPORT_RULE_NOBODY; i < IMPORT_RULES_COUNT; i++) {
        struct bytes text = bytes_of_string(import_rule_text((enum import_rule)i));
        assert_int_equal(import_rule_read(text, &rule, NULL), ERR_OK);
        assert_int_equal(rule, i);
        assert_int_equal(import_rule_read(bytes_slice(text, 0, text.size - 1), &rule, NULL), ERR_UNSUPPORTED);
    }
    assert_int_equal(import_rule_read(BYTES("import some\n"), &rule, NULL), ERR_UNSUPPORTED);
    assert_int_equal(import_rule_read(BYTES(""), &rule, NULL), ERR_UNSUPPORTED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_signature_counts_from_when_its_key_was_a_member_on, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_removal_ends_what_counts_and_is_remembered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(in_an_open_ring_every_key_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_unknown_key_is_asked_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_the_ring_does_not_take_is_refused, set_up, tear_down),
        cmocka_unit_test(rules_are_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
