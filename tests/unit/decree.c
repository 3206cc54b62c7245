/* decree, decrees: what is signed and by whom, what counts, how it spreads and what becomes of it on the
 * disk. */
#include "protocol/ring/decree.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/whole_file.h"
#include "node/ring/decrees.h"
#include "scratch.h"
#include "unit.h"

enum { NOW_S = 1800000000 };

struct fixture {
    struct sha256 sha256;
    struct identity founder;
    struct identity member;
    struct charter charter;
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

static void members_add_jobs_where_the_charter_says_so(void **state) {
    struct fixture *fixture = make();
    struct decree decree;
    uint8_t elsewhere[CHARTER_ID_SIZE] = {1};
    (void)state;
    struct bytes encoded = write_decree(fixture, &fixture->member, DECREE_JOB, "films", 1, BYTES("x"));
    assert_int_equal(decree_read(encoded, identity_verify, &decree, NULL), ERR_OK);
    fixture->charter.members_may_add_jobs = false;
    assert_int_equal(decree_counts(&decree, &fixture->charter, fixture->ring, NULL), ERR_PERMISSION);
    fixture->charter.members_may_add_jobs = true;
    assert_int_equal(decree_counts(&decree, &fixture->charter, fixture->ring, NULL), ERR_OK);
    assert_int_equal(decree_counts(&decree, &fixture->charter, elsewhere, NULL), ERR_MISMATCH);
    decree.kind = DECREE_RULES;
    assert_int_equal(decree_counts(&decree, &fixture->charter, fixture->ring, NULL), ERR_PERMISSION);
    decree.kind = DECREE_JOB;
    assert_int_equal(charter_remove(&fixture->charter, fixture->member.key), ERR_OK);
    assert_int_equal(decree_counts(&decree, &fixture->charter, fixture->ring, NULL), ERR_PERMISSION);
    drop(fixture);
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

static void a_job_spreads_from_node_to_node(void **state) {
    struct fixture *fixture = make();
    struct buf text;
    struct buf question;
    struct buf answer;
    char other[SCRATCH_PATH_SIZE];
    fixture->charter.members_may_add_jobs = true;
    scratch_path(*state, "other", other);
    assert_int_equal(whole_file_make_directory(other, NULL), ERR_OK);
    buf_init(&text, DECREE_TEXT_SIZE_MAX);
    buf_init(&question, PEER_RPC_QUESTION_SIZE_MAX);
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    decrees_put_job_text(&text, BYTES("scope = host\n"), BYTES("https://example.org/\n"));
    assert_int_equal(decrees_publish(*state, &fixture->member, &fixture->charter, DECREE_JOB,
                                     BYTES("example"), buf_bytes(&text), NULL),
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
    assert_false(is_there(other, "jobs/ring-example/job.conf"));
    decrees_free(first);
    decrees_free(second);
    buf_done(&text);
    buf_done(&question);
    buf_done(&answer);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_decree_comes_back_and_every_changed_byte_is_seen),
        cmocka_unit_test(a_version_beyond_all_clocks_is_refused),
        cmocka_unit_test(members_add_jobs_where_the_charter_says_so),
        cmocka_unit_test(names_are_those_of_jobs),
        TEST(rules_are_obeyed_withdrawn_and_never_come_back),
        TEST(rules_that_nobody_can_read_have_no_effect),
        TEST(a_job_spreads_from_node_to_node),
        TEST(only_what_has_changed_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
