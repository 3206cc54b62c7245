/* decree, decrees: what is signed and by whom, what counts, how it spreads and what becomes of it on the
 * disk. */
#include "protocol/ring/decree.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/whole_file.h"
#include "node/ring/decrees.h"
#include "node/transport/ring_files.h"
#include "scratch.h"
#include "unit.h"

enum { NOW_S = 1700000000 }; /* before any clock of a test */

struct fixture {
    struct sha256 sha256;
    struct identity founder;
    struct identity member;
    struct charter charter;
    struct membership membership; /* the member's: invited by key */
    uint8_t ring[CHARTER_ID_SIZE];
    uint8_t encoded[DECREE_SIZE_MAX];
};

static void sign(const void *signer, const char *context, struct bytes message,
                 uint8_t out[CHARTER_SIGNATURE_SIZE]) {
    identity_sign(signer, context, message, out);
}

static struct fixture *make(void) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    uint8_t seed[IDENTITY_SEED_SIZE];
    assert_non_null(fixture);
    assert_int_equal(sha256_init(&fixture->sha256), ERR_OK);
    memset(seed, 1, sizeof seed);
    assert_int_equal(identity_from_seed(&fixture->founder, seed), ERR_OK);
    memset(seed, 2, sizeof seed);
    assert_int_equal(identity_from_seed(&fixture->member, seed), ERR_OK);
    charter_init(&fixture->charter);
    memcpy(fixture->charter.founder, fixture->founder.key, PEER_KEY_SIZE);
    memcpy(fixture->charter.name, "films", sizeof "films");
    fixture->charter.created_s = NOW_S;
    charter_id(&fixture->charter, &fixture->sha256, fixture->ring);
    fixture->membership = (struct membership){.is_there = true, .invitation = {.from_s = NOW_S}};
    memcpy(fixture->membership.invitation.ring, fixture->ring, CHARTER_ID_SIZE);
    memcpy(fixture->membership.invitation.key, fixture->member.key, PEER_KEY_SIZE);
    invitation_sign(&fixture->membership.invitation, sign, &fixture->founder);
    return fixture;
}

static void drop(struct fixture *fixture) {
    sha256_done(&fixture->sha256);
    free(fixture);
}

static struct bytes write_decree(struct fixture *fixture, const struct identity *author,
                                 enum decree_kind kind, const char *name, uint64_t version,
                                 struct bytes text) {
    struct decree decree = {.kind = kind, .name = bytes_of_string(name), .version = version, .text = text};
    memcpy(decree.ring, fixture->ring, CHARTER_ID_SIZE);
    memcpy(decree.author, author->key, PEER_KEY_SIZE);
    return decree_write(&decree, sign, author, fixture->encoded);
}

/* In a ring by invitation. */
static struct bytes write_as_member(struct fixture *fixture, const char *name, uint64_t version,
                                    struct bytes text) {
    struct decree decree = {.kind = DECREE_JOB,
                            .name = bytes_of_string(name),
                            .version = version,
                            .text = text,
                            .membership = fixture->membership};
    memcpy(decree.ring, fixture->ring, CHARTER_ID_SIZE);
    memcpy(decree.author, fixture->member.key, PEER_KEY_SIZE);
    return decree_write(&decree, sign, &fixture->member, fixture->encoded);
}

static const char rule[] = "org,example)/private - {\"access\": \"exclude\"}\n";

static void a_decree_comes_back_and_every_changed_byte_is_seen(void **state) {
    struct fixture *fixture = make();
    struct decree decree;
    (void)state;
    struct bytes encoded =
        write_decree(fixture, &fixture->founder, DECREE_RULES, "private", 7, BYTES("a - {}"));
    assert_int_equal(decree_read(encoded, identity_verify, &decree, NULL), ERR_OK);
    assert_int_equal(decree.kind, DECREE_RULES);
    assert_int_equal(decree.version, 7);
    assert_bytes_equal(decree.name, BYTES("private"));
    assert_bytes_equal(decree.text, BYTES("a - {}"));
    for (size_t i = 0; i < encoded.size; i++) {
        fixture->encoded[i] ^= 1;
        assert_int_not_equal(decree_read(encoded, identity_verify, &decree, NULL), ERR_OK);
        fixture->encoded[i] ^= 1;
        assert_int_not_equal(decree_read(bytes_of(encoded.data, i), identity_verify, &decree, NULL), ERR_OK);
    }
    drop(fixture);
}

static void a_version_beyond_all_clocks_is_refused(void **state) {
    struct fixture *fixture = make();
    struct decree decree;
    (void)state;
    struct bytes encoded =
        write_decree(fixture, &fixture->founder, DECREE_JOB, "films", UINT64_C(1) << 63, BYTES("x"));
    assert_int_equal(decree_read(encoded, identity_verify, &decree, NULL), ERR_INVALID);
    drop(fixture);
}

static enum err judge(const struct fixture *fixture, const struct decree *decree) {
    return decree_counts(decree, &fixture->charter, fixture->ring, NOW_S, identity_verify, NULL);
}

static void members_add_jobs_where_the_charter_says_so(void **state) {
    struct fixture *fixture = make();
    struct decree decree;
    uint8_t elsewhere[CHARTER_ID_SIZE] = {1};
    (void)state;
    struct bytes encoded = write_decree(fixture, &fixture->member, DECREE_JOB, "films", 1, BYTES("x"));
    assert_int_equal(decree_read(encoded, identity_verify, &decree, NULL), ERR_OK);
    fixture->charter.is_open = true;
    fixture->charter.members_may_add_jobs = false;
    assert_int_equal(judge(fixture, &decree), ERR_PERMISSION);
    fixture->charter.members_may_add_jobs = true;
    assert_int_equal(judge(fixture, &decree), ERR_OK);
    assert_int_equal(decree_counts(&decree, &fixture->charter, elsewhere, NOW_S, identity_verify, NULL),
                     ERR_MISMATCH);
    decree.kind = DECREE_RULES;
    assert_int_equal(judge(fixture, &decree), ERR_PERMISSION);
    decree.kind = DECREE_JOB;
    assert_int_equal(charter_remove(&fixture->charter, fixture->member.key), ERR_OK);
    assert_int_equal(judge(fixture, &decree), ERR_NOT_FOUND);
    drop(fixture);
}

static void by_invitation_a_decree_shows_that_its_author_is_invited(void **state) {
    struct fixture *fixture = make();
    struct identity stranger;
    uint8_t seed[IDENTITY_SEED_SIZE] = {9};
    struct decree decree = {.kind = DECREE_JOB, .name = BYTES("films"), .version = 1, .text = BYTES("x")};
    (void)state;
    assert_int_equal(identity_from_seed(&stranger, seed), ERR_OK);
    memcpy(decree.ring, fixture->ring, CHARTER_ID_SIZE);
    memcpy(decree.author, fixture->member.key, PEER_KEY_SIZE);
    assert_int_equal(judge(fixture, &decree), ERR_PERMISSION);
    decree.membership = fixture->membership;
    assert_int_equal(judge(fixture, &decree), ERR_OK);

    /* Nobody can show what another was given, nor make one. */
    memcpy(decree.author, stranger.key, PEER_KEY_SIZE);
    assert_int_equal(judge(fixture, &decree), ERR_PERMISSION);
    memcpy(decree.membership.invitation.key, stranger.key, PEER_KEY_SIZE);
    assert_int_equal(judge(fixture, &decree), ERR_PERMISSION);
    invitation_sign(&decree.membership.invitation, sign, &stranger);
    assert_int_equal(judge(fixture, &decree), ERR_PERMISSION);
    assert_int_equal(decree_counts(&decree, &fixture->charter, fixture->ring, NOW_S, NULL, NULL), ERR_OK);

    /* It ends with the membership. */
    memcpy(decree.author, fixture->member.key, PEER_KEY_SIZE);
    decree.membership = fixture->membership;
    decree.membership.invitation.until_s = NOW_S - 1;
    invitation_sign(&decree.membership.invitation, sign, &fixture->founder);
    assert_int_equal(judge(fixture, &decree), ERR_PERMISSION);
    identity_done(&stranger);
    drop(fixture);
}

static void a_membership_travels_with_its_decree(void **state) {
    struct fixture *fixture = make();
    struct decree decree;
    uint8_t shown[MEMBERSHIP_SIZE_MAX];
    uint8_t shown_again[MEMBERSHIP_SIZE_MAX];
    (void)state;
    struct bytes encoded = write_as_member(fixture, "films", 3, BYTES("text"));
    assert_int_equal(encoded.data[4], 2);
    assert_int_equal(decree_read(encoded, identity_verify, &decree, NULL), ERR_OK);
    assert_bytes_equal(membership_write(&decree.membership, shown),
                       membership_write(&fixture->membership, shown_again));
    assert_int_equal(judge(fixture, &decree), ERR_OK);
    for (size_t i = 0; i < encoded.size; i++) {
        fixture->encoded[i] ^= 1;
        assert_int_not_equal(decree_read(encoded, identity_verify, &decree, NULL), ERR_OK);
        fixture->encoded[i] ^= 1;
        assert_int_not_equal(decree_read(bytes_of(encoded.data, i), identity_verify, &decree, NULL), ERR_OK);
    }
    fixture->encoded[4] = 4;
    assert_int_equal(decree_read(encoded, identity_verify, &decree, NULL), ERR_UNSUPPORTED);
    drop(fixture);
}

static void a_clock_that_goes_back_makes_no_lower_version(void **state) {
    (void)state;
    assert_int_equal(decree_next_version(0, 1000), 1000);
    assert_int_equal(decree_next_version(999, 1000), 1000);
    assert_int_equal(decree_next_version(1000, 1000), 1001);
    assert_int_equal(decree_next_version(5000, 1000), 5001);
    assert_int_equal(decree_next_version(0, -5), 1);
    assert_int_equal(decree_next_version(INT64_MAX - 1, 0), INT64_MAX);
    assert_int_equal(decree_next_version(INT64_MAX, 0), 0);
}

static void names_are_those_of_jobs(void **state) {
    (void)state;
    assert_true(decree_name_is_valid(BYTES("example.org-1f3a_2")));
    assert_false(decree_name_is_valid(BYTES("")));
    assert_false(decree_name_is_valid(BYTES(".")));
    assert_false(decree_name_is_valid(BYTES("../etc")));
    assert_false(decree_name_is_valid(BYTES("a/b")));
    assert_false(decree_name_is_valid(BYTES("A")));
}

/* ---- on the disk ---- */

static struct decrees *open_decrees(struct fixture *fixture, const char *directory) {
    struct decrees_config config = {.directory = directory};
    struct decrees *decrees = decrees_new(&config);
    assert_non_null(decrees);
    decrees_set_charter(decrees, &fixture->charter, fixture->ring);
    decrees_beat(decrees);
    return decrees;
}

static bool is_there(const char *directory, const char *name) {
    char path[SCRATCH_PATH_SIZE];
    return access(scratch_path(directory, name, path), F_OK) == 0;
}

static void rules_are_obeyed_withdrawn_and_never_come_back(void **state) {
    struct fixture *fixture = make();
    struct decrees *decrees = open_decrees(fixture, *state);
    struct bytes old =
        write_decree(fixture, &fixture->founder, DECREE_RULES, "private", 1, bytes_of_string(rule));
    assert_int_equal(decrees_add(decrees, old, NULL), ERR_OK);
    assert_int_equal(decrees_add(decrees, old, NULL), ERR_EXISTS);
    decrees_beat(decrees);
    assert_true(is_there(*state, "access/ring-private.aclj"));
    decrees_free(decrees);

    decrees = open_decrees(fixture, *state);
    assert_true(is_there(*state, "access/ring-private.aclj"));
    struct bytes none = write_decree(fixture, &fixture->founder, DECREE_RULES, "private", 2, BYTES(""));
    assert_int_equal(decrees_add(decrees, none, NULL), ERR_OK);
    decrees_beat(decrees);
    assert_false(is_there(*state, "access/ring-private.aclj"));
    old = write_decree(fixture, &fixture->founder, DECREE_RULES, "private", 1, bytes_of_string(rule));
    assert_int_equal(decrees_add(decrees, old, NULL), ERR_EXISTS);
    decrees_free(decrees);
    drop(fixture);
}

/* Its rules alone would be taken away at the next start, as nobody's order. */
static void a_decree_is_in_force_when_it_is_on_the_disk(void **state) {
    struct fixture *fixture = make();
    struct decrees *decrees = open_decrees(fixture, *state);
    struct decree decree;
    uint8_t id[DECREE_ID_SIZE];
    char path[SCRATCH_PATH_SIZE];
    struct bytes bytes =
        write_decree(fixture, &fixture->founder, DECREE_RULES, "private", 1, bytes_of_string(rule));
    assert_int_equal(decree_read(bytes, identity_verify, &decree, NULL), ERR_OK);
    decree_id(&decree, &fixture->sha256, id);
    assert_int_equal(whole_file_make_directory(scratch_path(*state, "ring", path), NULL), ERR_OK);
    scratch_path(*state, "ring/decrees", path);
    assert_int_equal(whole_file_replace(path, BYTES("in the way"), 0644, NULL), ERR_OK);
    assert_int_equal(decrees_add(decrees, bytes, NULL), ERR_OK);
    decrees_beat(decrees);
    assert_true(is_there(*state, "access/ring-private.aclj"));
    assert_false(decrees_are_in_force(decrees, id, 1, NULL));
    assert_int_equal(whole_file_remove(path, NULL), ERR_OK);
    for (unsigned i = 0; i < 10; i++) {
        decrees_beat(decrees);
    }
    assert_true(decrees_are_in_force(decrees, id, 1, NULL));
    decrees_free(decrees);
    decrees = open_decrees(fixture, *state);
    assert_true(decrees_are_in_force(decrees, id, 1, NULL));
    decrees_free(decrees);
    drop(fixture);
}

/* One file that cannot be read would stop every change of rules. */
static void rules_that_nobody_can_read_have_no_effect(void **state) {
    struct fixture *fixture = make();
    struct decrees *decrees = open_decrees(fixture, *state);
    struct bytes wrong =
        write_decree(fixture, &fixture->founder, DECREE_RULES, "wrong", 1, BYTES("nonsense\n"));
    assert_int_equal(decrees_add(decrees, wrong, NULL), ERR_OK);
    decrees_beat(decrees);
    assert_false(is_there(*state, "access/ring-wrong.aclj"));
    decrees_free(decrees);
    drop(fixture);
}

static bool has_decree(const char *directory, const struct decrees_receipt *receipt) {
    char digits[2 * DECREE_ID_SIZE + 1];
    char name[64];
    snprintf(name, sizeof name, "ring/decrees/%s", hex_encode(bytes_of(receipt->id, DECREE_ID_SIZE), digits));
    return is_there(directory, name);
}

static void a_job_spreads_from_node_to_node(void **state) {
    struct fixture *fixture = make();
    struct buf text;
    struct buf question;
    struct buf answer;
    struct decrees_receipt receipt;
    char other[SCRATCH_PATH_SIZE];
    fixture->charter.members_may_add_jobs = true;
    assert_int_equal(ring_files_write_membership(*state, &fixture->membership, NULL), ERR_OK);
    scratch_path(*state, "other", other);
    assert_int_equal(whole_file_make_directory(other, NULL), ERR_OK);
    buf_init(&text, DECREE_TEXT_SIZE_MAX);
    buf_init(&question, PEER_RPC_QUESTION_SIZE_MAX);
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    decrees_put_job_text(&text, BYTES("scope = host\n"), BYTES("https://example.org/\n"));
    assert_int_equal(decrees_publish(*state, &fixture->member, &fixture->charter, DECREE_JOB,
                                     BYTES("example"), buf_bytes(&text), &receipt, NULL),
                     ERR_OK);
    struct decrees *first = open_decrees(fixture, *state);
    struct decrees *second = open_decrees(fixture, other);
    assert_true(is_there(*state, "jobs/ring-example/job.conf"));
    assert_false(is_there(other, "jobs/ring-example/job.conf"));
    decrees_put_question(second, &question);
    assert_int_equal(decrees_answer(first, NULL, buf_bytes(&question), &answer, NULL), ERR_OK);
    assert_int_equal(decrees_take_answer(second, buf_bytes(&answer), NULL), ERR_OK);
    decrees_beat(second);
    assert_true(is_there(other, "jobs/ring-example/job.conf"));
    assert_true(is_there(other, "jobs/ring-example/seeds"));
    buf_clear(&question);
    buf_clear(&answer);
    decrees_put_question(second, &question);
    assert_int_equal(decrees_answer(first, NULL, buf_bytes(&question), &answer, NULL), ERR_OK);
    assert_int_equal(answer.size, 0);
    assert_int_equal(decrees_answer(first, NULL, BYTES("x"), &answer, NULL), ERR_INVALID);
    assert_int_not_equal(decrees_take_answer(second, BYTES("\x05hello"), NULL), ERR_OK);

    /* The founder removes the member: its job ends. */
    assert_int_equal(charter_remove(&fixture->charter, fixture->member.key), ERR_OK);
    decrees_set_charter(second, &fixture->charter, fixture->ring);
    decrees_beat(second);
    decrees_beat(second);
    assert_false(is_there(other, "jobs/ring-example/job.conf"));
    assert_false(has_decree(other, &receipt));
    decrees_free(first);
    decrees_free(second);
    buf_done(&text);
    buf_done(&question);
    buf_done(&answer);
    drop(fixture);
}

/* Of a program that is not written yet: only the founder's, and only to nodes that will keep it. */
static void a_kind_of_a_later_version_is_kept_and_passed_on(void **state) {
    enum { LATER = 200 };
    struct fixture *fixture = make();
    struct dialects *dialects = dialects_new(&dialect_of_program, NULL);
    struct decrees_config config = {.directory = *state, .dialects = dialects};
    struct peer now = {.key = {1}};
    struct peer old = {.key = {2}};
    struct err_detail detail = {.err = ERR_OK};
    struct decree decree;
    uint8_t id[DECREE_ID_SIZE];
    struct buf answer;
    fixture->charter.is_open = fixture->charter.members_may_add_jobs = true;
    assert_int_equal(dialects_hear(dialects, &now, &dialect_of_program), 2);
    assert_int_equal(dialects_hear_none(dialects, &old), 1);
    struct decrees *decrees = decrees_new(&config);
    decrees_set_charter(decrees, &fixture->charter, fixture->ring);
    struct bytes encoded =
        write_decree(fixture, &fixture->member, (enum decree_kind)LATER, "new", 7, BYTES("?"));
    assert_int_equal(decrees_add(decrees, encoded, NULL), ERR_PERMISSION);
    encoded = write_decree(fixture, &fixture->founder, (enum decree_kind)LATER, "new", 7, BYTES("?"));
    assert_int_equal(decree_parse(encoded, &decree, NULL), ERR_OK);
    assert_string_equal(decree_kind_name(decree.kind), "unknown");
    decree_id(&decree, &fixture->sha256, id);
    assert_int_equal(decrees_add(decrees, encoded, NULL), ERR_OK);
    decrees_beat(decrees);
    decrees_free(decrees);

    decrees = decrees_new(&config); /* after a restart */
    decrees_set_charter(decrees, &fixture->charter, fixture->ring);
    decrees_beat(decrees);
    assert_false(decrees_are_in_force(decrees, id, 7, &detail));
    assert_string_equal(detail.text, "this version does not know its kind: it is kept and passed on");
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    assert_int_equal(decrees_answer(decrees, &old, BYTES(""), &answer, NULL), ERR_OK);
    assert_int_equal(answer.size, 0);
    assert_int_equal(decrees_answer(decrees, &now, BYTES(""), &answer, NULL), ERR_OK);
    assert_true(answer.size > encoded.size);
    assert_true(bytes_ends_with(buf_bytes(&answer), encoded));
    buf_done(&answer);
    decrees_free(decrees);
    dialects_free(dialects);
    drop(fixture);
}

static void deletions_are_given_to_nodes_that_know_them(void **state) {
    struct fixture *fixture = make();
    struct dialects *dialects = dialects_new(&dialect_of_program, NULL);
    struct decrees_config config = {.directory = *state, .dialects = dialects};
    struct peer now = {.key = {1}};
    struct peer old = {.key = {2}};
    struct buf answer;
    assert_int_equal(dialects_hear(dialects, &now, &dialect_of_program), 2);
    struct decrees *decrees = decrees_new(&config);
    decrees_set_charter(decrees, &fixture->charter, fixture->ring);
    struct bytes encoded =
        write_decree(fixture, &fixture->founder, DECREE_DELETION, "gone", 7, BYTES("reason x\n"));
    assert_int_equal(decrees_add(decrees, encoded, NULL), ERR_OK);
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    assert_int_equal(decrees_answer(decrees, &old, BYTES(""), &answer, NULL), ERR_OK);
    assert_int_equal(answer.size, 0);
    assert_int_equal(decrees_answer(decrees, &now, BYTES(""), &answer, NULL), ERR_OK);
    assert_true(bytes_ends_with(buf_bytes(&answer), encoded));
    buf_done(&answer);
    decrees_free(decrees);
    dialects_free(dialects);
    drop(fixture);
}

static struct stat look_at(const char *directory, const char *name) {
    char path[SCRATCH_PATH_SIZE];
    struct stat seen;
    assert_int_equal(stat(scratch_path(directory, name, path), &seen), 0);
    return seen;
}

/* A file that is replaced is another file. */
static bool is_untouched(const char *directory, const char *name, const struct stat *before) {
    struct stat now = look_at(directory, name);
    return now.st_ino == before->st_ino && now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == before->st_mtim.tv_nsec;
}

static void on_changed(void *context) {
    ++*(unsigned *)context;
}

static void add_job(struct fixture *fixture, struct decrees *decrees, const char *name, uint64_t version,
                    const char *seeds) {
    struct buf text;
    buf_init(&text, DECREE_TEXT_SIZE_MAX);
    decrees_put_job_text(&text, BYTES("scope = host\n"), bytes_of_string(seeds));
    struct bytes decree =
        write_decree(fixture, &fixture->founder, DECREE_JOB, name, version, buf_bytes(&text));
    assert_int_equal(decrees_add(decrees, decree, NULL), ERR_OK);
    decrees_beat(decrees);
    buf_done(&text);
}

/* A crawl ends and begins again with every job.conf that is written anew. */
static void only_what_has_changed_is_written(void **state) {
    static const char first_conf[] = "jobs/ring-first/job.conf";
    struct fixture *fixture = make();
    unsigned changes_count = 0;
    char path[SCRATCH_PATH_SIZE];
    struct decrees_config config = {.directory = *state, .changed = on_changed, .context = &changes_count};
    struct decrees *decrees = decrees_new(&config);
    decrees_set_charter(decrees, &fixture->charter, fixture->ring);
    decrees_beat(decrees);
    assert_int_equal(changes_count, 0);
    add_job(fixture, decrees, "first", 1, "https://example.org/\n");
    struct bytes rules =
        write_decree(fixture, &fixture->founder, DECREE_RULES, "private", 1, bytes_of_string(rule));
    assert_int_equal(decrees_add(decrees, rules, NULL), ERR_OK);
    decrees_beat(decrees);
    assert_int_equal(changes_count, 2);
    struct stat conf = look_at(*state, first_conf);
    struct stat seeds = look_at(*state, "jobs/ring-first/seeds");
    struct stat access_file = look_at(*state, "access/ring-private.aclj");

    add_job(fixture, decrees, "second", 1, "https://example.net/\n");
    assert_int_equal(changes_count, 3);
    assert_true(is_there(*state, "jobs/ring-second/job.conf"));
    assert_true(is_untouched(*state, first_conf, &conf));
    assert_true(is_untouched(*state, "jobs/ring-first/seeds", &seeds));
    assert_true(is_untouched(*state, "access/ring-private.aclj", &access_file));

    /* Nor at the next start, nor with a charter that says the same. */
    decrees_free(decrees);
    decrees = decrees_new(&config);
    decrees_set_charter(decrees, &fixture->charter, fixture->ring);
    decrees_beat(decrees);
    decrees_set_charter(decrees, &fixture->charter, fixture->ring);
    decrees_beat(decrees);
    assert_int_equal(changes_count, 3);
    assert_true(is_untouched(*state, first_conf, &conf));

    /* What has changed is written; what is missing, too. */
    struct stat second = look_at(*state, "jobs/ring-second/job.conf");
    add_job(fixture, decrees, "first", 2, "https://example.com/\n");
    assert_false(is_untouched(*state, first_conf, &conf));
    assert_true(is_untouched(*state, "jobs/ring-second/job.conf", &second));
    assert_int_equal(unlink(scratch_path(*state, first_conf, path)), 0);
    assert_int_equal(unlink(scratch_path(*state, "access/ring-private.aclj", path)), 0);
    decrees_set_charter(decrees, &fixture->charter, fixture->ring);
    decrees_beat(decrees);
    assert_true(is_there(*state, first_conf));
    assert_true(is_there(*state, "access/ring-private.aclj"));
    assert_int_equal(changes_count, 5);
    decrees_free(decrees);
    drop(fixture);
}

/* ---- strangers, floods and clocks ---- */

static struct bytes write_as_stranger(struct fixture *fixture, unsigned number, struct bytes text) {
    uint8_t seed[IDENTITY_SEED_SIZE] = {7};
    struct identity stranger;
    memcpy(seed + 1, &number, sizeof number);
    assert_int_equal(identity_from_seed(&stranger, seed), ERR_OK);
    struct bytes encoded = write_decree(fixture, &stranger, DECREE_JOB, "x", 1, text);
    identity_done(&stranger);
    return encoded;
}

static bool takes_down(struct fixture *fixture, const char *directory, struct decrees *decrees,
                       struct err_detail *detail) {
    struct decrees_receipt receipt;
    assert_int_equal(decrees_publish(directory, &fixture->founder, &fixture->charter, DECREE_RULES,
                                     BYTES("private"), bytes_of_string(rule), &receipt, NULL),
                     ERR_OK);
    decrees_beat(decrees);
    return decrees_are_in_force(decrees, receipt.id, receipt.version, detail);
}

static void strangers_cannot_fill_a_ring_by_invitation(void **state) {
    struct fixture *fixture = make();
    struct decrees *decrees = open_decrees(fixture, *state);
    for (unsigned i = 0; i < 200; i++) {
        assert_int_equal(decrees_add(decrees, write_as_stranger(fixture, i, BYTES("")), NULL),
                         ERR_PERMISSION);
    }
    assert_true(takes_down(fixture, *state, decrees, NULL));
    assert_true(is_there(*state, "access/ring-private.aclj"));
    decrees_free(decrees);
    drop(fixture);
}

/* Where keys cost nothing: a burst, then a few; and never what is the founder's. */
static void strangers_cannot_fill_an_open_ring(void **state) {
    struct fixture *fixture = make();
    unsigned taken_count = 0;
    fixture->charter.is_open = true;
    struct decrees *decrees = open_decrees(fixture, *state);
    for (unsigned i = 0; i < 2 * DECREES_BURST_MAX; i++) {
        enum err err = decrees_add(decrees, write_as_stranger(fixture, i, BYTES("")), NULL);
        assert_true(err == ERR_OK || err == ERR_BUSY || err == ERR_LIMIT);
        taken_count += err == ERR_OK;
    }
    assert_in_range(taken_count, 1, DECREES_BURST_MAX);
    assert_true(takes_down(fixture, *state, decrees, NULL));
    decrees_free(decrees);
    drop(fixture);
}

/* As a node of an earlier version has kept them. */
static void what_strangers_left_on_the_disk_goes(void **state) {
    enum { LEFT = DECREE_OPEN_MEMBERS_COUNT_MAX + 20 };
    struct fixture *fixture = make();
    char path[SCRATCH_PATH_SIZE];
    char name[64];
    fixture->charter.is_open = true;
    fixture->charter.members_may_add_jobs = false;
    assert_int_equal(whole_file_make_directory(scratch_path(*state, "ring", path), NULL), ERR_OK);
    assert_int_equal(whole_file_make_directory(scratch_path(*state, "ring/decrees", path), NULL), ERR_OK);
    for (unsigned i = 0; i < LEFT; i++) {
        snprintf(name, sizeof name, "ring/decrees/%032x", i);
        scratch_path(*state, name, path);
        assert_int_equal(whole_file_replace(path, write_as_stranger(fixture, i, BYTES("")), 0644, NULL),
                         ERR_OK);
    }
    struct decrees *decrees = open_decrees(fixture, *state);
    unsigned left_count = 0;
    for (unsigned i = 0; i < LEFT; i++) {
        snprintf(name, sizeof name, "ring/decrees/%032x", i);
        left_count += is_there(*state, name);
    }
    assert_int_equal(left_count, DECREE_OPEN_MEMBERS_COUNT_MAX);
    assert_true(takes_down(fixture, *state, decrees, NULL));
    decrees_free(decrees);
    drop(fixture);
}

static void a_takedown_is_higher_than_what_the_clock_said_before(void **state) {
    struct fixture *fixture = make();
    struct decrees *decrees = open_decrees(fixture, *state);
    /* Restored when the clock was a year ahead; the clock has been set right since. */
    uint64_t ahead = (uint64_t)clock_wall_us(&clock_system) + UINT64_C(31536000000000);
    struct bytes restored =
        write_decree(fixture, &fixture->founder, DECREE_RULES, "private", ahead, BYTES(""));
    assert_int_equal(decrees_add(decrees, restored, NULL), ERR_OK);
    decrees_beat(decrees);
    assert_true(takes_down(fixture, *state, decrees, NULL));
    assert_true(is_there(*state, "access/ring-private.aclj"));
    decrees_free(decrees);
    drop(fixture);
}

/* The operator's own file is wrong: all rules stay as they were, so no decree is in force. */
static void rules_that_the_node_cannot_load_are_not_in_force(void **state) {
    struct fixture *fixture = make();
    struct err_detail detail = {.err = ERR_OK};
    char path[SCRATCH_PATH_SIZE];
    struct decrees *decrees = open_decrees(fixture, *state);
    scratch_path(*state, "access.aclj", path);
    assert_int_equal(whole_file_replace(path, BYTES("nonsense\n"), 0644, NULL), ERR_OK);
    assert_false(takes_down(fixture, *state, decrees, &detail));
    assert_non_null(strstr(detail.text, "access.aclj"));
    assert_int_equal(unlink(path), 0);
    assert_true(takes_down(fixture, *state, decrees, NULL));
    decrees_free(decrees);
    drop(fixture);
}

static void only_the_founder_lets_jobs_ignore_robots(void **state) {
    struct fixture *fixture = make();
    struct err_detail detail = {.err = ERR_OK};
    struct buf text;
    buf_init(&text, DECREE_TEXT_SIZE_MAX);
    decrees_put_job_text(&text, BYTES("ignore_robots = yes\n"), BYTES("https://example.org/\n"));
    struct decrees *decrees = open_decrees(fixture, *state);
    struct bytes job = write_as_member(fixture, "rude", 1, buf_bytes(&text));
    assert_int_equal(decrees_add(decrees, job, &detail), ERR_PERMISSION);
    assert_non_null(strstr(detail.text, "robots.txt"));
    job = write_decree(fixture, &fixture->founder, DECREE_JOB, "rude", 1, buf_bytes(&text));
    assert_int_equal(decrees_add(decrees, job, NULL), ERR_OK);
    buf_clear(&text);
    decrees_put_job_text(&text, BYTES("scope = host\n"), BYTES("https://example.org/\n"));
    assert_int_equal(decrees_add(decrees, write_as_member(fixture, "polite", 1, buf_bytes(&text)), NULL),
                     ERR_OK);
    decrees_beat(decrees);
    assert_true(is_there(*state, "jobs/ring-rude/job.conf"));
    assert_true(is_there(*state, "jobs/ring-polite/job.conf"));
    decrees_free(decrees);
    buf_done(&text);
    drop(fixture);
}

/* A member's job from before decrees carried memberships: its own node signs it again. */
static void old_decrees_are_renewed_by_their_author(void **state) {
    struct fixture *fixture = make();
    struct buf text;
    char path[SCRATCH_PATH_SIZE];
    buf_init(&text, DECREE_TEXT_SIZE_MAX);
    decrees_put_job_text(&text, BYTES("scope = host\n"), BYTES("https://example.org/\n"));
    struct bytes old = write_decree(fixture, &fixture->member, DECREE_JOB, "old", 5, buf_bytes(&text));
    assert_int_equal(ring_files_write_membership(*state, &fixture->membership, NULL), ERR_OK);
    assert_int_equal(whole_file_make_directory(scratch_path(*state, "ring/decrees", path), NULL), ERR_OK);
    uint8_t id[DECREE_ID_SIZE];
    char digits[2 * DECREE_ID_SIZE + 1];
    char name[64];
    struct decree decree;
    assert_int_equal(decree_read(old, identity_verify, &decree, NULL), ERR_OK);
    decree_id(&decree, &fixture->sha256, id);
    snprintf(name, sizeof name, "ring/decrees/%s", hex_encode(bytes_of(id, DECREE_ID_SIZE), digits));
    assert_int_equal(whole_file_replace(scratch_path(*state, name, path), old, 0644, NULL), ERR_OK);

    struct decrees *elsewhere = open_decrees(fixture, *state);
    assert_false(decrees_are_in_force(elsewhere, id, 5, NULL));
    assert_false(is_there(*state, "jobs/ring-old/job.conf"));
    decrees_free(elsewhere);

    struct decrees_config config = {.directory = *state};
    struct decrees *own = decrees_new(&config);
    decrees_set_self(own, &fixture->member);
    decrees_set_charter(own, &fixture->charter, fixture->ring);
    decrees_beat(own);
    assert_true(decrees_are_in_force(own, id, 6, NULL));
    assert_true(is_there(*state, "jobs/ring-old/job.conf"));
    decrees_free(own);
    elsewhere = open_decrees(fixture, *state); /* what is on the disk */
    assert_true(decrees_are_in_force(elsewhere, id, 6, NULL));
    decrees_free(elsewhere);
    buf_done(&text);
    drop(fixture);
}

/* Of the first decree that says it: how many nodes have confirmed it, or there are; UINT64_MAX: none does. */
static uint64_t said_count(struct decrees *decrees, const char *field) {
    struct buf out;
    struct json json;
    buf_init(&out, 1 << 20);
    json_init(&json, &out);
    json_open(&json, NULL);
    decrees_put_json(decrees, &json);
    json_close(&json);
    buf_put_byte(&out, '\0');
    const char *at = strstr((const char *)out.data, field);
    uint64_t count = at != NULL ? strtoull(at + strlen(field), NULL, 10) : UINT64_MAX;
    buf_done(&out);
    return count;
}

static uint64_t confirmed_count(struct decrees *decrees) {
    return said_count(decrees, "\"confirmed\":");
}

/* A list of the nodes from before the decree would say "1 of 1" in a ring that has just grown. */
static void all_are_counted_after_the_decree(void **state) {
    struct fixture *fixture = make();
    struct decrees_receipt receipt;
    struct decrees_config config = {.directory = *state};
    struct decrees *decrees = decrees_new(&config);
    struct peer nodes[2] = {{.address = address_ipv4(127, 0, 0, 1, 1)},
                            {.address = address_ipv4(127, 0, 0, 2, 1)}};
    memcpy(nodes[0].key, fixture->founder.key, PEER_KEY_SIZE);
    memcpy(nodes[1].key, fixture->member.key, PEER_KEY_SIZE);
    decrees_set_self(decrees, &fixture->founder);
    decrees_set_charter(decrees, &fixture->charter, fixture->ring);
    decrees_set_nodes(decrees, nodes, 1);
    assert_int_equal(decrees_publish(*state, &fixture->founder, &fixture->charter, DECREE_RULES,
                                     BYTES("private"), bytes_of_string(rule), &receipt, NULL),
                     ERR_OK);
    decrees_beat(decrees);
    assert_true(decrees_are_in_force(decrees, receipt.id, receipt.version, NULL));
    assert_int_equal(said_count(decrees, "\"nodes\":"), UINT64_MAX);
    decrees_set_nodes(decrees, nodes, 2);
    assert_int_equal(said_count(decrees, "\"nodes\":"), 2);
    assert_int_equal(confirmed_count(decrees), 1);
    decrees_free(decrees);
    drop(fixture);
}

static void a_decree_is_confirmed_by_those_that_obey_it(void **state) {
    struct fixture *fixture = make();
    struct decrees_receipt receipt;
    struct buf question;
    struct buf answer;
    struct peer asked;
    char other[SCRATCH_PATH_SIZE];
    scratch_path(*state, "other", other);
    assert_int_equal(whole_file_make_directory(other, NULL), ERR_OK);
    buf_init(&question, PEER_RPC_QUESTION_SIZE_MAX);
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    struct decrees_config config = {.directory = *state};
    struct decrees *first = decrees_new(&config);
    struct decrees *second = open_decrees(fixture, other);
    decrees_set_self(first, &fixture->founder);
    decrees_set_charter(first, &fixture->charter, fixture->ring);
    assert_int_equal(decrees_publish(*state, &fixture->founder, &fixture->charter, DECREE_RULES,
                                     BYTES("private"), bytes_of_string(rule), &receipt, NULL),
                     ERR_OK);
    decrees_beat(first);
    struct peer nodes[2] = {{.address = address_ipv4(127, 0, 0, 1, 1)},
                            {.address = address_ipv4(127, 0, 0, 2, 1)}};
    memcpy(nodes[0].key, fixture->founder.key, PEER_KEY_SIZE);
    memcpy(nodes[1].key, fixture->member.key, PEER_KEY_SIZE);
    decrees_set_nodes(first, nodes, 2);
    assert_int_equal(confirmed_count(first), 1); /* here */
    assert_true(decrees_next_in_force(first, &asked, &question));
    assert_true(peer_same_key(&asked, &nodes[1]));
    assert_int_equal(decrees_answer_in_force(second, NULL, buf_bytes(&question), &answer, NULL), ERR_OK);
    decrees_take_in_force(first, &asked, buf_bytes(&question), ERR_OK, buf_bytes(&answer));
    assert_int_equal(confirmed_count(first), 1);

    struct buf listed;
    buf_init(&listed, PEER_RPC_QUESTION_SIZE_MAX);
    decrees_put_question(second, &listed);
    buf_clear(&answer);
    assert_int_equal(decrees_answer(first, NULL, buf_bytes(&listed), &answer, NULL), ERR_OK);
    assert_int_equal(decrees_take_answer(second, buf_bytes(&answer), NULL), ERR_OK);
    buf_clear(&answer);
    assert_int_equal(decrees_answer_in_force(second, NULL, buf_bytes(&question), &answer, NULL), ERR_OK);
    assert_int_equal(answer.data[0], 0); /* it has it, but has not obeyed yet */
    decrees_beat(second);
    buf_clear(&answer);
    assert_int_equal(decrees_answer_in_force(second, NULL, buf_bytes(&question), &answer, NULL), ERR_OK);
    decrees_take_in_force(first, &asked, buf_bytes(&question), ERR_OK, buf_bytes(&answer));
    assert_int_equal(confirmed_count(first), 2);
    buf_clear(&question);
    assert_false(decrees_next_in_force(first, &asked, &question));
    buf_done(&listed);
    buf_done(&question);
    buf_done(&answer);
    decrees_free(first);
    decrees_free(second);
    drop(fixture);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_decree_comes_back_and_every_changed_byte_is_seen),
        cmocka_unit_test(a_version_beyond_all_clocks_is_refused),
        cmocka_unit_test(members_add_jobs_where_the_charter_says_so),
        cmocka_unit_test(by_invitation_a_decree_shows_that_its_author_is_invited),
        cmocka_unit_test(a_membership_travels_with_its_decree),
        cmocka_unit_test(a_clock_that_goes_back_makes_no_lower_version),
        cmocka_unit_test(names_are_those_of_jobs),
        TEST(rules_are_obeyed_withdrawn_and_never_come_back),
        TEST(a_decree_is_in_force_when_it_is_on_the_disk),
        TEST(rules_that_nobody_can_read_have_no_effect),
        TEST(a_job_spreads_from_node_to_node),
        TEST(a_kind_of_a_later_version_is_kept_and_passed_on),
        TEST(deletions_are_given_to_nodes_that_know_them),
        TEST(only_what_has_changed_is_written),
        TEST(strangers_cannot_fill_a_ring_by_invitation),
        TEST(strangers_cannot_fill_an_open_ring),
        TEST(what_strangers_left_on_the_disk_goes),
        TEST(a_takedown_is_higher_than_what_the_clock_said_before),
        TEST(rules_that_the_node_cannot_load_are_not_in_force),
        TEST(only_the_founder_lets_jobs_ignore_robots),
        TEST(old_decrees_are_renewed_by_their_author),
        TEST(a_decree_is_confirmed_by_those_that_obey_it),
        TEST(all_are_counted_after_the_decree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
