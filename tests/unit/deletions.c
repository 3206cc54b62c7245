/* deletions, deletion_text, decrees: what the founder deletes goes, once and for good; what others say does
 * not. */
#include "node/ring/deletions.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/whole_file.h"
#include "net/identity.h"
#include "node/ring/decrees.h"
#include "node/ring/deletion_text.h"
#include "scratch.h"
#include "store/instance/query.h"
#include "unit.h"

enum { COUNT = 20, SECOND_US = 1000000 };
static const uint64_t VERSION = 5000 * UINT64_C(1000000);

struct fixture {
    void *root; /* of scratch.h */
    const char *directory;
    struct sha256 sha256;
    struct identity founder;
    struct identity member;
    struct charter charter;
    uint8_t ring[CHARTER_ID_SIZE];
    uint8_t encoded[DECREE_SIZE_MAX];
    struct instance *instance;
    struct instance_session *session;
    struct deletions *deletions;
    struct decrees *decrees;
};

static void sign(const void *signer, const char *context, struct bytes message,
                 uint8_t out[CHARTER_SIGNATURE_SIZE]) {
    identity_sign(signer, context, message, out);
}

static void open_all(struct fixture *fixture) {
    struct instance_config config = {.directory = fixture->directory};
    assert_int_equal(instance_open(&config, &fixture->instance, NULL), ERR_OK);
    fixture->session = instance_session_new(fixture->instance);
    fixture->deletions = deletions_new(
        &(struct deletions_config){.directory = fixture->directory, .instance = fixture->instance});
    fixture->decrees = decrees_new(
        &(struct decrees_config){.directory = fixture->directory, .deletions = fixture->deletions});
    decrees_set_charter(fixture->decrees, &fixture->charter, fixture->ring);
}

static void close_all(struct fixture *fixture) {
    decrees_free(fixture->decrees);
    deletions_free(fixture->deletions);
    instance_session_free(fixture->session);
    instance_close(fixture->instance);
}

static int set_up_deletions(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    uint8_t seed[IDENTITY_SEED_SIZE];
    if (fixture == NULL || scratch_make(&fixture->root) != 0 || sha256_init(&fixture->sha256) != ERR_OK) {
        return -1;
    }
    fixture->directory = fixture->root;
    memset(seed, 1, sizeof seed);
    assert_int_equal(identity_from_seed(&fixture->founder, seed), ERR_OK);
    memset(seed, 2, sizeof seed);
    assert_int_equal(identity_from_seed(&fixture->member, seed), ERR_OK);
    charter_init(&fixture->charter);
    memcpy(fixture->charter.founder, fixture->founder.key, PEER_KEY_SIZE);
    memcpy(fixture->charter.name, "films", sizeof "films");
    fixture->charter.is_open = true;
    fixture->charter.members_may_add_jobs = true;
    charter_id(&fixture->charter, &fixture->sha256, fixture->ring);
    open_all(fixture);
    *state = fixture;
    return 0;
}

static int tear_down_deletions(void **state) {
    struct fixture *fixture = *state;
    close_all(fixture);
    sha256_done(&fixture->sha256);
    int result = scratch_remove(&fixture->root);
    free(fixture);
    return result;
}

static void fill(struct fixture *fixture, const char *host, int64_t seconds) {
    for (int i = 0; i < COUNT; i++) {
        char url[64];
        char body[64];
        struct stored stored;
        snprintf(url, sizeof url, "http://%s/%d", host, i);
        snprintf(body, sizeof body, "page %d of %s at %d", i, host, (int)seconds);
        struct document document = {.url = bytes_of_string(url),
                                    .time_us = seconds * SECOND_US,
                                    .head = BYTES("HTTP/1.1 200 OK\r\n\r\n"),
                                    .body = bytes_of_string(body)};
        assert_int_equal(
            instance_put(fixture->session, &document, STORE_REGULAR, INSTANCE_VOLUME_ANY, &stored, NULL),
            ERR_OK);
    }
}

static size_t listed(struct fixture *fixture, const char *text) {
    struct query query;
    struct capture capture;
    size_t count = 0;
    assert_int_equal(query_init(&query, bytes_of_string(text), QUERY_BY_URL, NULL), ERR_OK);
    query_start(&query, fixture->session);
    while (query_next(&query, &capture) == ERR_OK) {
        count++;
    }
    query_done(&query);
    return count;
}

static void put_text(struct buf *out, const char *reason, const char *url, int64_t to_us) {
    struct deletion parts[DELETION_PARTS_MAX];
    struct buf memory;
    size_t count;
    buf_init(&memory, 4096);
    assert_int_equal(deletion_read_url(bytes_of_string(url), &memory, parts, &count, NULL), ERR_OK);
    for (size_t i = 0; i < count; i++) {
        parts[i].to_us = to_us;
    }
    deletion_text_put_reason(out, bytes_of_string(reason));
    deletion_text_put_url(out, bytes_of_string(url), parts, count);
    buf_done(&memory);
}

/* Sign it and give it to the node, as another one would. */
static enum err add(struct fixture *fixture, const struct identity *author, const char *name,
                    uint64_t version, struct bytes text, uint8_t ret_id[DECREE_ID_SIZE]) {
    struct decree decree = {
        .kind = DECREE_DELETION, .name = bytes_of_string(name), .version = version, .text = text};
    memcpy(decree.ring, fixture->ring, CHARTER_ID_SIZE);
    memcpy(decree.author, author->key, PEER_KEY_SIZE);
    decree_id(&decree, &fixture->sha256, ret_id);
    return decrees_add(fixture->decrees, decree_write(&decree, sign, author, fixture->encoded), NULL);
}

static enum err add_url(struct fixture *fixture, const struct identity *author, const char *url,
                        uint64_t version, uint8_t ret_id[DECREE_ID_SIZE]) {
    struct buf text;
    buf_init(&text, DECREE_TEXT_SIZE_MAX);
    put_text(&text, "because", url, (int64_t)version);
    enum err err = add(fixture, author, "one", version, buf_bytes(&text), ret_id);
    buf_done(&text);
    return err;
}

static bool is_in_force(struct fixture *fixture, const uint8_t id[DECREE_ID_SIZE], uint64_t version) {
    decrees_look_again(fixture->decrees);
    decrees_beat(fixture->decrees);
    return decrees_are_in_force(fixture->decrees, id, version, NULL);
}

static void what_the_founder_deletes_is_hidden_at_once_and_then_gone(void **state) {
    struct fixture *fixture = *state;
    struct err_detail detail = {0};
    uint8_t id[DECREE_ID_SIZE];
    fill(fixture, "example.org", 1);
    fill(fixture, "example.com", 1);
    fill(fixture, "example.org", 6000); /* later than the decree */
    assert_int_equal(add_url(fixture, &fixture->founder, "http://example.org/*", VERSION, id), ERR_OK);
    assert_int_equal(listed(fixture, "*"), 3 * COUNT);
    assert_false(is_in_force(fixture, id, VERSION));
    assert_int_equal(listed(fixture, "*"), 2 * COUNT); /* hidden, and no thread has run yet */
    assert_int_equal(deletions_check(fixture->deletions, id, VERSION, &detail), ERR_BUSY);
    assert_string_equal(detail.text, "its captures are hidden, and being taken out");
    assert_int_equal(deletions_run(fixture->deletions, NULL), ERR_OK);
    assert_true(is_in_force(fixture, id, VERSION));
    assert_int_equal(deletions_removed_count(fixture->deletions, id), COUNT);
    close_all(fixture);
    open_all(fixture);
    decrees_beat(fixture->decrees); /* from the disk: nothing has to be done again */
    assert_true(decrees_are_in_force(fixture->decrees, id, VERSION, NULL));
    assert_int_equal(deletions_removed_count(fixture->deletions, id), COUNT);
    assert_int_equal(listed(fixture, "*"), 2 * COUNT);
}

static void nobody_else_deletes_anything(void **state) {
    struct fixture *fixture = *state;
    uint8_t id[DECREE_ID_SIZE];
    fill(fixture, "example.org", 1);
    assert_int_equal(add_url(fixture, &fixture->member, "http://example.org/*", VERSION, id), ERR_PERMISSION);
    assert_int_equal(add_url(fixture, &fixture->founder, "http://example.org/*", VERSION, id), ERR_OK);
    decrees_free(fixture->decrees); /* once more, with a byte of the signed text changed */
    fixture->decrees = decrees_new(
        &(struct decrees_config){.directory = fixture->directory, .deletions = fixture->deletions});
    decrees_set_charter(fixture->decrees, &fixture->charter, fixture->ring);
    struct buf text;
    buf_init(&text, DECREE_TEXT_SIZE_MAX);
    put_text(&text, "because", "http://example.org/*", 1);
    struct decree decree = {
        .kind = DECREE_DELETION, .name = BYTES("one"), .version = VERSION, .text = buf_bytes(&text)};
    memcpy(decree.ring, fixture->ring, CHARTER_ID_SIZE);
    memcpy(decree.author, fixture->founder.key, PEER_KEY_SIZE);
    struct bytes encoded =
        decree_write(&decree, sign, &fixture->member, fixture->encoded); /* not the author */
    assert_int_equal(decrees_add(fixture->decrees, encoded, NULL), ERR_MISMATCH);
    buf_done(&text);
    decrees_beat(fixture->decrees);
    assert_int_equal(deletions_run(fixture->deletions, NULL), ERR_OK);
    assert_int_equal(listed(fixture, "*"), COUNT);
}

/* DIR/ring/deletions/ID */
static void set_state(struct fixture *fixture, const uint8_t id[DECREE_ID_SIZE], const char *text) {
    char digits[2 * DECREE_ID_SIZE + 1];
    char name[128];
    char path[SCRATCH_PATH_SIZE];
    assert_int_equal(whole_file_make_directory(scratch_path(fixture->root, "ring", path), NULL), ERR_OK);
    assert_int_equal(whole_file_make_directory(scratch_path(fixture->root, "ring/deletions", path), NULL),
                     ERR_OK);
    snprintf(name, sizeof name, "ring/deletions/%s", hex_encode(bytes_of(id, DECREE_ID_SIZE), digits));
    assert_int_equal(
        whole_file_replace(scratch_path(fixture->root, name, path), bytes_of_string(text), 0644, NULL),
        ERR_OK);
}

static void what_a_crash_cut_short_is_counted_once(void **state) {
    struct fixture *fixture = *state;
    uint8_t id[DECREE_ID_SIZE];
    char text[256];
    fill(fixture, "example.org", 1);
    assert_int_equal(add_url(fixture, &fixture->founder, "http://example.org/*", VERSION, id), ERR_OK);
    snprintf(text, sizeof text, "version %ju\nremoved 3\nfound %d\nbegun 7\nfinished 0\n", (uintmax_t)VERSION,
             COUNT + 5); /* five had gone when the machine stopped */
    set_state(fixture, id, text);
    assert_false(is_in_force(fixture, id, VERSION));
    assert_int_equal(deletions_run(fixture->deletions, NULL), ERR_OK);
    assert_true(is_in_force(fixture, id, VERSION));
    assert_int_equal(deletions_removed_count(fixture->deletions, id), 3 + 5 + COUNT);
}

static void a_file_that_makes_no_sense_is_made_again(void **state) {
    struct fixture *fixture = *state;
    uint8_t id[DECREE_ID_SIZE];
    fill(fixture, "example.org", 1);
    assert_int_equal(add_url(fixture, &fixture->founder, "http://example.org/*", VERSION, id), ERR_OK);
    set_state(fixture, id, "version x\nremoved -1\n\xff");
    assert_false(is_in_force(fixture, id, VERSION));
    assert_int_equal(deletions_run(fixture->deletions, NULL), ERR_OK);
    assert_int_equal(deletions_removed_count(fixture->deletions, id), COUNT);
}

static void a_later_version_deletes_more_and_an_empty_one_nothing(void **state) {
    struct fixture *fixture = *state;
    uint8_t id[DECREE_ID_SIZE];
    fill(fixture, "example.org", 1);
    assert_int_equal(add_url(fixture, &fixture->founder, "http://example.org/*", VERSION, id), ERR_OK);
    decrees_beat(fixture->decrees);
    assert_int_equal(deletions_run(fixture->deletions, NULL), ERR_OK);
    fill(fixture, "example.org", 6000);
    uint64_t later = 2 * VERSION;
    assert_int_equal(add_url(fixture, &fixture->founder, "http://example.org/*", later, id), ERR_OK);
    assert_false(is_in_force(fixture, id, later));
    assert_int_equal(deletions_run(fixture->deletions, NULL), ERR_OK);
    assert_true(is_in_force(fixture, id, later));
    assert_int_equal(deletions_removed_count(fixture->deletions, id), 2 * COUNT);
    assert_int_equal(listed(fixture, "*"), 0);
    assert_int_equal(add(fixture, &fixture->founder, "one", later + 1, bytes_of(NULL, 0), id), ERR_OK);
    assert_true(is_in_force(fixture, id, later + 1)); /* withdrawn */
    fill(fixture, "example.org", 1);
    assert_int_equal(listed(fixture, "*"), COUNT);
}

static void what_is_not_understood_deletes_nothing(void **state) {
    struct fixture *fixture = *state;
    struct err_detail detail = {0};
    uint8_t id[DECREE_ID_SIZE];
    fill(fixture, "example.org", 1);
    struct bytes text =
        BYTES("reason x\nurl http://example.org/*\ndelete - 1 org,example)/\nunless it rains\n");
    assert_int_equal(add(fixture, &fixture->founder, "one", VERSION, text, id),
                     ERR_OK); /* kept and passed on */
    assert_false(is_in_force(fixture, id, VERSION));
    assert_false(decrees_are_in_force(fixture->decrees, id, VERSION, &detail));
    assert_string_equal(detail.text, "a deletion that says more than this version understands");
    assert_int_equal(deletions_run(fixture->deletions, NULL), ERR_OK);
    assert_int_equal(listed(fixture, "*"), COUNT);
}

static void the_audit_trail_says_what_and_why(void **state) {
    struct fixture *fixture = *state;
    uint8_t id[DECREE_ID_SIZE];
    struct buf out;
    struct json json;
    fill(fixture, "example.org", 1);
    assert_int_equal(add_url(fixture, &fixture->founder, "http://example.org/*", VERSION, id), ERR_OK);
    decrees_beat(fixture->decrees);
    assert_int_equal(deletions_run(fixture->deletions, NULL), ERR_OK);
    decrees_look_again(fixture->decrees);
    decrees_beat(fixture->decrees);
    buf_init(&out, 1 << 20);
    json_begin(&json, &out);
    decrees_put_json(fixture->decrees, &json);
    json_end(&json);
    buf_put_byte(&out, 0);
    const char *text = (const char *)out.data;
    assert_non_null(strstr(text, "\"kind\":\"deletion\""));
    assert_non_null(strstr(text, "\"reason\":\"because\",\"urls\":[\"http://example.org/*\"],"
                                 "\"to\":\"1970-01-01T01:23:20Z\",\"removed\":20"));
    assert_non_null(strstr(text, "\"in_force\":true"));
    buf_done(&out);
}

/* ---- texts ---- */

static enum err read_text(const char *text, struct deletion_set *set) {
    struct deletion_text *read = malloc(sizeof *read);
    enum err err = deletion_text_read(bytes_of_string(text), VERSION, read, set, NULL);
    free(read);
    return err;
}

static void a_text_comes_back(void **state) {
    struct deletion_text *read = malloc(sizeof *read);
    struct deletion_set *set = deletion_set_new();
    struct buf text;
    (void)state;
    buf_init(&text, 4096);
    put_text(&text, "a reason, with \xc3\xbc", "http://example.org/a/*", 1000);
    assert_bytes_equal(buf_bytes(&text), BYTES("reason a reason, with \xc3\xbc\nurl http://example.org/a/*\n"
                                               "delete - 1000 org,example)/a###\n"
                                               "delete - 1000 org,example)/a/\n"));
    assert_int_equal(deletion_text_read(buf_bytes(&text), VERSION, read, set, NULL), ERR_OK);
    assert_bytes_equal(read->reason, BYTES("a reason, with \xc3\xbc"));
    assert_int_equal(read->urls_count, 1);
    assert_bytes_equal(read->urls[0], BYTES("http://example.org/a/*"));
    assert_true(read->from_us == INT64_MIN && read->to_us == 1000);
    assert_int_equal(deletion_set_count(set), 2);
    assert_true(deletion_set_at(set, 0)->is_exact);
    assert_bytes_equal(deletion_set_at(set, 1)->key, BYTES("org,example)/a/"));
    deletion_set_free(set);
    buf_done(&text);
    free(read);
}

#define GOOD "reason x\nurl http://a/\n"

static void a_text_that_is_none_is_refused(void **state) {
    (void)state;
    assert_int_equal(read_text(GOOD "delete - 1 org,example)/\n", NULL), ERR_OK);
    assert_int_equal(read_text(GOOD "delete -5 -1 org,example)/\n", NULL), ERR_OK);
    assert_int_equal(read_text("", NULL), ERR_INVALID);
    assert_int_equal(read_text(GOOD, NULL), ERR_INVALID);
    assert_int_equal(read_text("url http://a/\ndelete - 1 org,example)/\n", NULL), ERR_INVALID);
    assert_int_equal(read_text("reason x\ndelete - 1 org,example)/\n", NULL), ERR_INVALID);
    assert_int_equal(read_text("reason \nurl http://a/\ndelete - 1 org,example)/\n", NULL), ERR_INVALID);
    assert_int_equal(read_text("reason \x1b[2J\nurl http://a/\ndelete - 1 org,example)/\n", NULL),
                     ERR_INVALID);
    assert_int_equal(read_text(GOOD "delete - 1 \n", NULL), ERR_INVALID); /* everything */
    assert_int_equal(read_text(GOOD "delete - 1 ###\n", NULL), ERR_INVALID);
    assert_int_equal(read_text(GOOD "delete - 1\n", NULL), ERR_INVALID);
    assert_int_equal(read_text(GOOD "delete - x org,example)/\n", NULL), ERR_INVALID);
    assert_int_equal(read_text(GOOD "delete - 1 org,example)/ x\n", NULL), ERR_INVALID);
    assert_int_equal(read_text(GOOD "delete - - org,example)/\n", NULL), ERR_INVALID);
    assert_int_equal(read_text(GOOD "delete - 5000000001 org,example)/\n", NULL),
                     ERR_INVALID); /* the future */
    assert_int_equal(read_text(GOOD "\ndelete - 1 org,example)/\n", NULL), ERR_UNSUPPORTED);
    assert_int_equal(read_text(GOOD "delete - 1 org,example)/\nshred - 1 org\n", NULL), ERR_UNSUPPORTED);
    assert_false(deletion_text_is_reason(BYTES("two\nlines")));
}

#define ON_DISK(test) cmocka_unit_test_setup_teardown(test, set_up_deletions, tear_down_deletions)

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_DISK(what_the_founder_deletes_is_hidden_at_once_and_then_gone),
        ON_DISK(nobody_else_deletes_anything),
        ON_DISK(what_a_crash_cut_short_is_counted_once),
        ON_DISK(a_file_that_makes_no_sense_is_made_again),
        ON_DISK(a_later_version_deletes_more_and_an_empty_one_nothing),
        ON_DISK(what_is_not_understood_deletes_nothing),
        ON_DISK(the_audit_trail_says_what_and_why),
        cmocka_unit_test(a_text_comes_back),
        cmocka_unit_test(a_text_that_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
