/* copies_find: the captures of a place by their times, few and many, and by their digest. */
#include <stdlib.h>

#include "node/copies/copies_state.h"
#include "scratch.h"
#include "unit.h"

enum { MANY = 500, STEP_US = 1000 };

static const char *const surts[] = {"org,example)/few", "org,example)/many", "org,example)/none"};

static struct copies *open_copies(const char *directory) {
    char path[SCRATCH_PATH_SIZE];
    struct err_detail detail = {0};
    struct copies *copies = calloc(1, sizeof *copies);
    assert_non_null(copies);
    pthread_mutex_init(&copies->keys_lock, NULL);
    scratch_path(directory, "keys", path);
    assert_int_equal(keyset_open(path, POSITION_BY_URL, &copies->keyset, &detail), ERR_OK);
    return copies;
}

static void close_copies(struct copies *copies) {
    keyset_close(copies->keyset);
    pthread_mutex_destroy(&copies->keys_lock);
    free(copies);
}

static void put(struct copies *copies, const char *surt, int64_t time_us, uint8_t mark) {
    struct capture capture = {.surt = bytes_of_string(surt), .time_us = time_us};
    struct err_detail detail = {0};
    memset(capture.digest, mark, sizeof capture.digest);
    assert_int_equal(keyset_put(copies->keyset, &capture, &detail), ERR_OK);
}

static void place_of(const char *surt, uint8_t out[RINGKEY_POSITION_SIZE]) {
    struct sha256 sha256;
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    position_of_surt(&sha256, bytes_of_string(surt), POSITION_BY_URL, out);
    sha256_done(&sha256);
}

static struct copies *fill(const char *directory) {
    struct err_detail detail = {0};
    struct copies *copies = open_copies(directory);
    put(copies, surts[0], 5 * STEP_US, 1);
    put(copies, surts[0], 9 * STEP_US, 2);
    for (int i = 1; i <= MANY; i++) {
        put(copies, surts[1], (int64_t)i * STEP_US, 3);
    }
    assert_int_equal(keyset_commit(copies->keyset, &detail), ERR_OK);
    return copies;
}

static int64_t last_before(struct copies *copies, const char *surt, int64_t before_us) {
    uint8_t place[RINGKEY_POSITION_SIZE];
    struct ringkey key;
    place_of(surt, place);
    enum err err = copies_find_last(copies, place, before_us, &key);
    assert_true(err == ERR_OK || err == ERR_NOT_FOUND);
    return err == ERR_OK ? ringkey_time_us(&key) : -1;
}

static int64_t first_from(struct copies *copies, const char *surt, int64_t from_us) {
    uint8_t place[RINGKEY_POSITION_SIZE];
    struct ringkey key;
    place_of(surt, place);
    enum err err = copies_find_first(copies, place, from_us, &key);
    assert_true(err == ERR_OK || err == ERR_NOT_FOUND);
    return err == ERR_OK ? ringkey_time_us(&key) : -1;
}

static void the_last_before_a_time(void **state) {
    struct copies *copies = fill(*state);
    assert_int_equal(last_before(copies, surts[0], INT64_MAX), 9 * STEP_US);
    assert_int_equal(last_before(copies, surts[0], 9 * STEP_US), 5 * STEP_US);
    assert_int_equal(last_before(copies, surts[0], 5 * STEP_US), -1);
    assert_int_equal(last_before(copies, surts[0], INT64_MIN), -1);
    assert_int_equal(last_before(copies, surts[2], INT64_MAX), -1);
    assert_int_equal(last_before(copies, surts[1], INT64_MAX), MANY * STEP_US);
    for (int i = 2; i <= MANY; i += 7) {
        assert_int_equal(last_before(copies, surts[1], (int64_t)i * STEP_US), (int64_t)(i - 1) * STEP_US);
    }
    close_copies(copies);
}

static void the_first_from_a_time(void **state) {
    struct copies *copies = fill(*state);
    assert_int_equal(first_from(copies, surts[0], INT64_MIN), 5 * STEP_US);
    assert_int_equal(first_from(copies, surts[0], 5 * STEP_US), 5 * STEP_US);
    assert_int_equal(first_from(copies, surts[0], 5 * STEP_US + 1), 9 * STEP_US);
    assert_int_equal(first_from(copies, surts[0], 9 * STEP_US + 1), -1);
    assert_int_equal(first_from(copies, surts[0], INT64_MAX), -1);
    assert_int_equal(first_from(copies, surts[2], 0), -1);
    close_copies(copies);
}

static void by_digest(void **state) {
    struct copies *copies = fill(*state);
    uint8_t digest[RINGKEY_DIGEST_SIZE];
    struct ringkey key;
    memset(digest, 2, sizeof digest);
    assert_int_equal(copies_find_digest(copies, digest, &key), ERR_OK);
    assert_int_equal(ringkey_time_us(&key), 9 * STEP_US);
    memset(digest, 9, sizeof digest);
    assert_int_equal(copies_find_digest(copies, digest, &key), ERR_NOT_FOUND);
    close_copies(copies);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_last_before_a_time, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(the_first_from_a_time, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(by_digest, scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
