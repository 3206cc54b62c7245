/* ring_files and complaints: what is kept comes back, what is damaged is named, what is left stays readable.
 */
#include "node/transport/ring_files.h"

#include <stdlib.h>
#include <unistd.h>

#include "net/identity.h"
#include "node/transport/complaints.h"
#include "scratch.h"
#include "unit.h"

struct files {
    struct identity identity;
    struct charter charter;
    struct charter other;
    uint8_t memory[CHARTER_SIZE_MAX];
    uint8_t again[CHARTER_SIZE_MAX];
};

static void sign(const void *signer, const char *context, struct bytes message,
                 uint8_t out[CHARTER_SIGNATURE_SIZE]) {
    identity_sign(signer, context, message, out);
}

static struct files *make_files(void) {
    struct files *files = calloc(1, sizeof *files);
    assert_non_null(files);
    assert_int_equal(identity_random(&files->identity), ERR_OK);
    charter_init(&files->charter);
    memcpy(files->charter.founder, files->identity.key, PEER_KEY_SIZE);
    memcpy(files->charter.name, "films", sizeof "films");
    return files;
}

static void write_bytes(const char *directory, const char *name, const void *data, size_t size) {
    char path[SCRATCH_PATH_SIZE];
    FILE *file = fopen(scratch_path(directory, name, path), "w");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    fclose(file);
}

static void a_charter_comes_back(void **state) {
    struct files *files = make_files();
    struct bytes read;
    struct err_detail detail = {0};
    assert_int_equal(ring_files_read_charter(*state, &files->other, files->again, &read, &detail),
                     ERR_NOT_FOUND);
    assert_non_null(strstr(detail.text, "in no ring"));
    struct bytes encoded = charter_write(&files->charter, sign, &files->identity, files->memory);
    assert_int_equal(ring_files_write_charter(*state, encoded, &detail), ERR_OK);
    assert_int_equal(ring_files_read_charter(*state, &files->other, files->again, &read, &detail), ERR_OK);
    assert_memory_equal(&files->other, &files->charter, sizeof files->charter);
    assert_int_equal(read.size, encoded.size);
    assert_memory_equal(read.data, encoded.data, read.size);
    free(files);
}

/* A program that can read it takes it, once. */
static void a_later_charter_is_kept_until_it_can_be_read(void **state) {
    struct files *files = make_files();
    struct bytes read;
    struct bytes encoded = charter_write(&files->charter, sign, &files->identity, files->memory);
    assert_int_equal(ring_files_read_later(*state, files->again), 0);
    assert_int_equal(ring_files_write_charter(*state, encoded, NULL), ERR_OK);
    assert_int_equal(ring_files_write_later(*state, BYTES("mnch\2 of a later program"), NULL), ERR_OK);
    assert_int_equal(ring_files_read_later(*state, files->again), 24);
    assert_memory_equal(files->again, "mnch\2 of a later program", 24);
    files->charter.version = 2;
    encoded = charter_write(&files->charter, sign, &files->identity, files->memory);
    assert_int_equal(ring_files_write_later(*state, encoded, NULL), ERR_OK);
    assert_int_equal(ring_files_read_later(*state, files->again), 0);
    assert_int_equal(ring_files_read_charter(*state, &files->other, files->again, &read, NULL), ERR_OK);
    assert_int_equal(files->other.version, 2);
    assert_int_equal(ring_files_read_later(*state, files->again), 0);
    free(files);
}

static void a_damaged_charter_is_named(void **state) {
    struct files *files = make_files();
    struct bytes read;
    struct err_detail detail = {0};
    struct bytes encoded = charter_write(&files->charter, sign, &files->identity, files->memory);
    assert_int_equal(ring_files_write_charter(*state, encoded, &detail), ERR_OK);
    files->memory[60] ^= 1;
    write_bytes(*state, "ring/charter", files->memory, encoded.size);
    assert_int_equal(ring_files_read_charter(*state, &files->other, files->again, &read, &detail),
                     ERR_CORRUPT);
    assert_non_null(strstr(detail.text, "ring/charter is damaged"));
    static const uint8_t large[CHARTER_SIZE_MAX + 1];
    write_bytes(*state, "ring/charter", large, sizeof large);
    assert_int_equal(ring_files_read_charter(*state, &files->other, files->again, &read, &detail), ERR_LIMIT);
    free(files);
}

static void no_membership_is_none(void **state) {
    struct membership membership = {.is_there = true};
    struct err_detail detail = {0};
    assert_int_equal(ring_files_read_membership(*state, &membership, &detail), ERR_OK);
    assert_false(membership.is_there);
    membership = (struct membership){.is_there = true, .invitation = {.key = {7}, .from_s = 9}};
    assert_int_equal(ring_files_write_membership(*state, &membership, &detail), ERR_OK);
    struct membership back;
    assert_int_equal(ring_files_read_membership(*state, &back, &detail), ERR_OK);
    assert_true(back.is_there);
    assert_int_equal(back.invitation.key[0], 7);
    write_bytes(*state, "ring/membership", "mniv", 4);
    assert_int_equal(ring_files_read_membership(*state, &back, &detail), ERR_CORRUPT);
}

static void peers_come_back_or_count_as_none(void **state) {
    struct peer peers[RING_FILES_PEERS_MAX];
    struct peer back[RING_FILES_PEERS_MAX];
    assert_int_equal(ring_files_read_peers(*state, back), 0);
    for (size_t i = 0; i < RING_FILES_PEERS_MAX; i++) {
        peers[i] = (struct peer){.address = address_ipv4(192, 0, 2, (uint8_t)i, 7070), .key = {(uint8_t)i}};
    }
    assert_int_equal(ring_files_write_peers(*state, peers, RING_FILES_PEERS_MAX, NULL), ERR_OK);
    assert_int_equal(ring_files_read_peers(*state, back), RING_FILES_PEERS_MAX);
    assert_memory_equal(back, peers, sizeof peers);
    assert_int_equal(ring_files_write_peers(*state, peers, 3, NULL), ERR_OK);
    assert_int_equal(ring_files_read_peers(*state, back), 3);
    write_bytes(*state, "ring/peers", "mnpe\x01\x02garbage", 13);
    assert_int_equal(ring_files_read_peers(*state, back), 0);
}

static void leaving_keeps_what_was(void **state) {
    struct files *files = make_files();
    char path[SCRATCH_PATH_SIZE];
    struct err_detail detail = {0};
    assert_int_equal(ring_files_leave(*state, &detail), ERR_NOT_FOUND);
    struct bytes encoded = charter_write(&files->charter, sign, &files->identity, files->memory);
    assert_int_equal(ring_files_write_charter(*state, encoded, &detail), ERR_OK);
    assert_int_equal(ring_files_leave(*state, &detail), ERR_OK);
    assert_int_equal(access(scratch_path(*state, "ring/charter.left", path), F_OK), 0);
    assert_int_equal(ring_files_leave(*state, &detail), ERR_NOT_FOUND);
    free(files);
}

/* ---- complaints ---- */

static void a_complaint_is_told_once_a_minute(void **state) {
    (void)state;
    struct complaints complaints = {0};
    struct buf out;
    assert_true(complaints_add(&complaints, "a \"quoted\" one", 1000000));
    assert_false(complaints_add(&complaints, "a \"quoted\" one", 2000000));
    assert_true(complaints_add(&complaints, "another", 3000000));
    assert_true(complaints_add(&complaints, "a \"quoted\" one", 61 * 1000000));
    buf_init(&out, 1 << 16);
    struct json json;
    json_init(&json, &out);
    complaints_put(&complaints, &json, NULL);
    assert_string_equal(buf_string(&out),
                        "[{\"first\":\"1970-01-01T00:00:01Z\",\"last\":\"1970-01-01T00:01:01Z\",\"count\":3,"
                        "\"text\":\"a \\\"quoted\\\" one\"},{\"first\":\"1970-01-01T00:00:03Z\",\"last\":"
                        "\"1970-01-01T00:00:03Z\",\"count\":1,\"text\":\"another\"}]");
    buf_done(&out);
}

static void a_flood_of_complaints_is_bounded(void **state) {
    (void)state;
    struct complaints complaints = {0};
    struct buf out;
    for (int i = 0; i < 10 * COMPLAINTS_MAX; i++) {
        char sentence[COMPLAINT_SIZE_MAX * 2];
        memset(sentence, 'a' + i % 26, sizeof sentence);
        sentence[sizeof sentence - 1] = '\0';
        snprintf(sentence, 16, "%d", i);
        sentence[strlen(sentence)] = ' ';
        complaints_add(&complaints, sentence, 1000000 + i);
    }
    assert_int_equal(complaints.count, COMPLAINTS_MAX);
    buf_init(&out, 1 << 16);
    struct json json;
    json_init(&json, &out);
    complaints_put(&complaints, &json, NULL);
    assert_int_equal(out.err, ERR_OK);
    assert_non_null(strstr(buf_string(&out), "\"319 "));
    buf_done(&out);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_charter_comes_back),
        TEST(a_later_charter_is_kept_until_it_can_be_read),
        TEST(a_damaged_charter_is_named),
        TEST(no_membership_is_none),
        TEST(peers_come_back_or_count_as_none),
        TEST(leaving_keeps_what_was),
        cmocka_unit_test(a_complaint_is_told_once_a_minute),
        cmocka_unit_test(a_flood_of_complaints_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
