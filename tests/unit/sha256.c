#include "base/sha256.h"

#include <stdlib.h>

#include "base/hex.h"
#include "base/prng.h"
#include "unit.h"

static int make(void **state) {
    struct sha256 *sha256 = malloc(sizeof *sha256);
    *state = sha256;
    return sha256 == NULL || sha256_init(sha256) != ERR_OK ? -1 : 0;
}

static int destroy(void **state) {
    sha256_done(*state);
    free(*state);
    return 0;
}

/* FIPS 180-4 examples of NIST; the empty message from its CAVP set. */
static const char *const vectors[][2] = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrs"
     "t"
     "nopqrstu",
     "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
};

static void assert_digest(const uint8_t digest[SHA256_SIZE], const char *expected) {
    char text[2 * SHA256_SIZE + 1];
    assert_string_equal(hex_encode(bytes_of(digest, SHA256_SIZE), text), expected);
}

static void digests_the_vectors_of_nist_with_one_context(void **state) {
    for (unsigned round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
            uint8_t digest[SHA256_SIZE];
            sha256_digest(*state, bytes_of_string(vectors[i][0]), digest);
            assert_digest(digest, vectors[i][1]);
        }
    }
}

static void digests_a_million_letters_in_pieces(void **state) {
    char letters[1000];
    memset(letters, 'a', sizeof letters);
    sha256_start(*state);
    for (unsigned i = 0; i < 1000; i++) {
        sha256_update(*state, bytes_of(letters, sizeof letters));
    }
    uint8_t digest[SHA256_SIZE];
    sha256_finish(*state, digest);
    assert_digest(digest, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void pieces_of_any_size_give_the_digest_of_the_whole(void **state) {
    struct prng prng;
    prng_init(&prng, 1);
    for (unsigned round = 0; round < 500; round++) {
        uint8_t message[1000];
        size_t size = prng_below(&prng, sizeof message + 1);
        prng_fill(&prng, message, size);
        uint8_t whole[SHA256_SIZE];
        uint8_t pieces[SHA256_SIZE];
        sha256_digest(*state, bytes_of(message, size), whole);
        sha256_start(*state);
        struct bytes rest = bytes_of(message, size);
        while (rest.size > 0) {
            size_t count = prng_below(&prng, (rest.size < 150 ? rest.size : 150) + 1);
            sha256_update(*state, bytes_slice(rest, 0, count));
            rest = bytes_skip(rest, count);
        }
        sha256_finish(*state, pieces);
        assert_memory_equal(pieces, whole, SHA256_SIZE);
    }
}

static void starting_again_forgets_what_was_fed(void **state) {
    sha256_start(*state);
    sha256_update(*state, BYTES("abandoned"));
    uint8_t digest[SHA256_SIZE];
    sha256_digest(*state, BYTES("abc"), digest);
    assert_digest(digest, vectors[1][1]);
}

static void nothing_has_the_digest_of_nothing(void **state) {
    uint8_t digest[SHA256_SIZE];
    sha256_digest(*state, bytes_of(NULL, 0), digest);
    assert_digest(digest, vectors[0][1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(digests_the_vectors_of_nist_with_one_context, make, destroy),
        cmocka_unit_test_setup_teardown(digests_a_million_letters_in_pieces, make, destroy),
        cmocka_unit_test_setup_teardown(pieces_of_any_size_give_the_digest_of_the_whole, make, destroy),
        cmocka_unit_test_setup_teardown(starting_again_forgets_what_was_fed, make, destroy),
        cmocka_unit_test_setup_teardown(nothing_has_the_digest_of_nothing, make, destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
