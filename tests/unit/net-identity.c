/* identity: made once, kept for its owner alone, refused when damaged; signatures mean one purpose. */
#include "net/identity.h"

#include <sys/stat.h>

#include "net-vectors.h"
#include "scratch.h"

static void write_identity(const char *directory, const char *text, mode_t mode) {
    char path[SCRATCH_PATH_SIZE];
    FILE *file = fopen(scratch_path(directory, "identity", path), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
}

static size_t read_identity(const char *directory, char out[512]) {
    char path[SCRATCH_PATH_SIZE];
    FILE *file = fopen(scratch_path(directory, "identity", path), "r");
    assert_non_null(file);
    size_t size = fread(out, 1, 511, file);
    out[size] = '\0';
    fclose(file);
    return size;
}

static void check_identity(const struct vector *vector) {
    struct identity identity;
    char text[IDENTITY_TEXT_SIZE];
    uint8_t seed[VECTOR_SIZE_MAX];
    uint8_t exchange[VECTOR_SIZE_MAX];
    uint8_t key[PEER_KEY_SIZE];
    assert_int_equal(vector_bytes(vector, "seed", seed).size, IDENTITY_SEED_SIZE);
    assert_int_equal(identity_from_seed(&identity, seed), ERR_OK);
    assert_bytes_equal(bytes_of(identity.key, PEER_KEY_SIZE), vector_expected(vector));
    assert_bytes_equal(bytes_of(identity.exchange_key, PEER_KEY_SIZE),
                       vector_bytes(vector, "exchange", exchange));
    assert_bytes_equal(bytes_of_string(identity_key_format(identity.key, text)), vector_text(vector, "text"));
    assert_true(identity_key_parse(bytes_of_string(text), key));
    assert_memory_equal(key, identity.key, sizeof key);
}

static void check_signature(const struct vector *vector) {
    struct identity identity;
    uint8_t seed[VECTOR_SIZE_MAX];
    uint8_t message[VECTOR_SIZE_MAX];
    uint8_t signature[IDENTITY_SIGNATURE_SIZE];
    char context[64];
    vector_bytes(vector, "seed", seed);
    struct bytes content = vector_bytes(vector, "message", message);
    snprintf(context, sizeof context, "%.*s", BYTES_ARG(vector_text(vector, "context")));
    assert_int_equal(identity_from_seed(&identity, seed), ERR_OK);
    identity_sign(&identity, context, content, signature);
    assert_bytes_equal(bytes_of(signature, sizeof signature), vector_expected(vector));
    assert_true(identity_verify(identity.key, context, content, signature));
}

static void agrees_with_the_golden_vectors(void **state) {
    (void)state;
    vectors_check("identity", 2, check_identity);
    vectors_check("sign", 3, check_signature);
}

static void is_made_once_for_its_owner_alone(void **state) {
    struct identity first;
    struct identity second;
    struct stat status;
    char path[SCRATCH_PATH_SIZE];
    struct err_detail detail = {0};
    assert_int_equal(identity_load(&first, *state, &detail), ERR_OK);
    assert_int_equal(identity_load(&second, *state, &detail), ERR_OK);
    assert_memory_equal(&first, &second, sizeof first);
    assert_int_equal(stat(scratch_path(*state, "identity", path), &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(stat(scratch_path(*state, "identity.tmp", path), &status), -1);
}

static void one_that_others_may_read_is_refused(void **state) {
    struct identity identity;
    struct err_detail detail = {0};
    char path[SCRATCH_PATH_SIZE];
    assert_int_equal(identity_load(&identity, *state, NULL), ERR_OK);
    static const mode_t modes[] = {0640, 0604, 0660, 0601};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(chmod(scratch_path(*state, "identity", path), modes[i]), 0);
        assert_int_equal(identity_load(&identity, *state, &detail), ERR_PERMISSION);
        assert_non_null(strstr(detail.text, "can be read by others"));
    }
}

/* Each byte of the file changed, each prefix that lacks more than the last line's end. */
static void a_damaged_one_is_refused_and_kept(void **state) {
    struct identity whole;
    struct identity found;
    char text[512];
    char damaged[512];
    assert_int_equal(identity_load(&whole, *state, NULL), ERR_OK);
    size_t size = read_identity(*state, text);
    for (size_t i = 0; i < size - 1; i++) {
        memcpy(damaged, text, size + 1);
        damaged[i] = damaged[i] == 'A' ? 'B' : 'A';
        write_identity(*state, damaged, 0600);
        assert_int_equal(identity_load(&found, *state, NULL), ERR_CORRUPT);
        damaged[i] = '\0';
        write_identity(*state, damaged, 0600);
        struct err_detail detail = {0};
        assert_int_equal(identity_load(&found, *state, &detail), ERR_CORRUPT);
        assert_non_null(strstr(detail.text, "damaged"));
    }
    char kept[512];
    size_t kept_size = read_identity(*state, kept);
    assert_int_equal(kept_size, size - 2);
}

static void what_cannot_be_a_file_of_ours_is_refused(void **state) {
    struct identity identity;
    struct err_detail detail = {0};
    char path[SCRATCH_PATH_SIZE];
    assert_int_equal(mkdir(scratch_path(*state, "identity", path), 0700), 0);
    assert_int_equal(identity_load(&identity, *state, &detail), ERR_INVALID);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(identity_load(&identity, *state, &detail), ERR_INVALID);
    assert_int_equal(identity_load(&identity, "/nowhere/at/all", &detail), ERR_NOT_FOUND);
}

static void a_signature_is_good_for_one_key_context_and_message(void **state) {
    struct identity identity;
    struct identity other;
    uint8_t signature[IDENTITY_SIGNATURE_SIZE];
    (void)state;
    assert_int_equal(identity_random(&identity), ERR_OK);
    assert_int_equal(identity_random(&other), ERR_OK);
    identity_sign(&identity, "charter", BYTES("text"), signature);
    assert_true(identity_verify(identity.key, "charter", BYTES("text"), signature));
    assert_false(identity_verify(other.key, "charter", BYTES("text"), signature));
    assert_false(identity_verify(identity.key, "capture", BYTES("text"), signature));
    assert_false(identity_verify(identity.key, "charter", BYTES("texts"), signature));
    for (size_t bit = 0; bit < sizeof signature * 8; bit++) {
        signature[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(identity_verify(identity.key, "charter", BYTES("text"), signature));
        signature[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

static void what_is_no_key_is_not_read(void **state) {
    uint8_t key[PEER_KEY_SIZE];
    struct identity identity;
    char text[IDENTITY_TEXT_SIZE];
    (void)state;
    assert_int_equal(identity_random(&identity), ERR_OK);
    identity_key_format(identity.key, text);
    assert_false(identity_key_parse(bytes_of(text, 51), key));
    assert_false(identity_key_parse(BYTES(""), key));
    text[3] = '1';
    assert_false(identity_key_parse(bytes_of_string(text), key));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_golden_vectors),
        cmocka_unit_test_setup_teardown(is_made_once_for_its_owner_alone, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(one_that_others_may_read_is_refused, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(a_damaged_one_is_refused_and_kept, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(what_cannot_be_a_file_of_ours_is_refused, scratch_make,
                                        scratch_remove),
        cmocka_unit_test(a_signature_is_good_for_one_key_context_and_message),
        cmocka_unit_test(what_is_no_key_is_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
