/* version: only the publisher makes one, and the newer one is known. */
#include "protocol/mirror/version.h"

#include "net/identity.h"
#include "unit.h"

static struct identity identity_of(uint8_t number) {
    struct identity identity;
    uint8_t seed[IDENTITY_SEED_SIZE];
    memset(seed, number, sizeof seed);
    assert_int_equal(identity_from_seed(&identity, seed), ERR_OK);
    return identity;
}

static void sign(const void *signer, const char *context, struct bytes message,
                 uint8_t out[VERSION_SIGNATURE_SIZE]) {
    identity_sign(signer, context, message, out);
}

static struct version make(const struct identity *publisher, const char *name, uint64_t number) {
    struct version version = {
        .number = number,
        .time_us = 1800000000000000,
        .totals = {12, 1000000, 3, UINT64_C(1) << 40, 65 << 20},
        .root = {.size = 40000, .digest = {1, 2, 3}},
    };
    memcpy(version.publisher, publisher->key, PEER_KEY_SIZE);
    memcpy(version.name, name, strlen(name) + 1);
    version_sign(&version, sign, publisher);
    return version;
}

static void a_version_comes_back(void **state) {
    (void)state;
    struct identity publisher = identity_of(1);
    struct version version = make(&publisher, "national-library", 7);
    struct version read;
    uint8_t memory[VERSION_SIZE_MAX];
    uint8_t again[VERSION_SIZE_MAX];
    struct bytes bytes = version_write(&version, memory);
    assert_int_equal(version_read(bytes, identity_verify, &read, NULL), ERR_OK);
    assert_bytes_equal(version_write(&read, again), bytes);
    assert_int_equal(version_compare(&version, &read), 0);
    assert_string_equal(read.name, "national-library");
    assert_int_equal(read.totals.files_count, 1000000);
    assert_true(manifest_ref_equal(&read.root, &version.root));
    assert_true(bytes.size < 200); /* what a check for changes costs at most */
}

/* As docs/formats/collection.md has it. */
static void bytes_are_as_drawn(void **state) {
    (void)state;
    struct identity publisher = identity_of(1);
    struct version version = make(&publisher, "films", 7);
    uint8_t memory[VERSION_SIZE_MAX];
    static const uint8_t middle[] = {
        5,    'f',  'i',  'l',  'm',  's',  7,    0,    0,    0,    0,    0,    0,    0,    /* name, number */
        0x00, 0x80, 0x98, 0x28, 0x17, 0x65, 0x06, 0x00,                                     /* time */
        12,   0xc0, 0x84, 0x3d, 3,    0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 0x80, 0x80, 0xc0, /* totals */
        0x20, 0xc0, 0xb8, 0x02, /* size of the root */
    };
    struct bytes bytes = version_write(&version, memory);
    assert_int_equal(bytes.size, 5 + 32 + sizeof middle + 32 + 64);
    assert_memory_equal(memory, "mncv\1", 5);
    assert_memory_equal(memory + 5, publisher.key, 32);
    assert_memory_equal(memory + 37, middle, sizeof middle);
    assert_memory_equal(memory + 37 + sizeof middle, version.root.digest, 32);
    assert_memory_equal(memory + 69 + sizeof middle, version.signature, 64);
}

static void the_largest_one_fits(void **state) {
    (void)state;
    struct identity publisher = identity_of(1);
    struct version version = make(&publisher, "x", 1);
    struct version read;
    uint8_t memory[VERSION_SIZE_MAX];
    memset(version.name, 'n', VERSION_NAME_SIZE_MAX);
    version.number = VERSION_NUMBER_MAX;
    version.time_us = INT64_MIN;
    version.totals = (struct manifest_totals){INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
    version.root.size = MANIFEST_NODE_SIZE_MAX;
    version_sign(&version, sign, &publisher);
    assert_int_equal(version_read(version_write(&version, memory), identity_verify, &read, NULL), ERR_OK);
}

static void every_changed_or_missing_byte_is_seen(void **state) {
    (void)state;
    struct identity publisher = identity_of(1);
    struct version version = make(&publisher, "films", 7);
    struct version read;
    uint8_t memory[VERSION_SIZE_MAX + 1] = {0};
    struct bytes bytes = version_write(&version, memory);
    for (size_t i = 0; i < bytes.size; i++) {
        memory[i] ^= 1;
        assert_int_not_equal(version_read(bytes, identity_verify, &read, NULL), ERR_OK);
        memory[i] ^= 1;
        assert_int_not_equal(version_read(bytes_of(memory, i), identity_verify, &read, NULL), ERR_OK);
    }
    assert_int_equal(version_read(bytes_of(memory, bytes.size + 1), identity_verify, &read, NULL),
                     ERR_INVALID);
}

static void nobody_else_makes_one(void **state) {
    (void)state;
    struct identity publisher = identity_of(1);
    struct identity other = identity_of(2);
    struct version version = make(&publisher, "films", 7);
    struct version read;
    uint8_t memory[VERSION_SIZE_MAX];
    version.number = 8;
    version_sign(&version, sign, &other);
    assert_int_equal(version_read(version_write(&version, memory), identity_verify, &read, NULL),
                     ERR_MISMATCH);
}

static enum err read_changed(size_t offset, uint8_t value) {
    struct identity publisher = identity_of(1);
    struct version version = make(&publisher, "films", 7);
    struct version read;
    uint8_t memory[VERSION_SIZE_MAX];
    struct bytes bytes = version_write(&version, memory);
    memory[offset] = value;
    return version_read(bytes, identity_verify, &read, NULL);
}

static void what_is_wrong_is_told(void **state) {
    (void)state;
    enum { NAME = 37, NUMBER = NAME + 1 + 5 };
    assert_int_equal(read_changed(0, 'x'), ERR_INVALID);
    assert_int_equal(read_changed(4, 2), ERR_UNSUPPORTED);
    assert_int_equal(read_changed(NAME, 64), ERR_LIMIT);
    assert_int_equal(read_changed(NAME + 1, '/'), ERR_INVALID);
    assert_int_equal(read_changed(NAME + 1, '.'), ERR_INVALID);
    assert_int_equal(read_changed(NUMBER, 0), ERR_INVALID);
    assert_int_equal(read_changed(NUMBER + 7, 0x80), ERR_INVALID);
    assert_int_equal(read_changed(NUMBER, 8), ERR_MISMATCH);
}

static void the_id_is_of_publisher_and_name(void **state) {
    (void)state;
    struct sha256 sha256;
    uint8_t key[PEER_KEY_SIZE] = {1};
    uint8_t ids[3][VERSION_ID_SIZE];
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    version_id(key, BYTES("films"), &sha256, ids[0]);
    version_id(key, BYTES("film"), &sha256, ids[1]);
    key[0] = 2;
    version_id(key, BYTES("films"), &sha256, ids[2]);
    sha256_done(&sha256);
    assert_memory_not_equal(ids[0], ids[1], VERSION_ID_SIZE);
    assert_memory_not_equal(ids[0], ids[2], VERSION_ID_SIZE);
}

static void the_newer_one_counts(void **state) {
    (void)state;
    struct identity publisher = identity_of(1);
    struct version one = make(&publisher, "films", 7);
    struct version other = make(&publisher, "films", 8);
    assert_true(version_compare(&one, &other) < 0 && version_compare(&other, &one) > 0);
    other.number = 7;
    assert_int_equal(version_compare(&one, &other), 0);
    other.root.digest[31] = 1; /* two of one number: all replicas choose alike */
    assert_true(version_compare(&one, &other) < 0);
    one.time_us++;
    assert_true(version_compare(&one, &other) > 0);
}

static void names_are_plain(void **state) {
    (void)state;
    static const char *const bad[] = {"", ".", "..", ".a", "A", "a/b", "a b", "\xc3\xbc", "a\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(version_name_is_valid(bytes_of_string(bad[i])));
    }
    assert_true(version_name_is_valid(BYTES("web-2026.eu_1")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_version_comes_back),
        cmocka_unit_test(bytes_are_as_drawn),
        cmocka_unit_test(the_largest_one_fits),
        cmocka_unit_test(every_changed_or_missing_byte_is_seen),
        cmocka_unit_test(nobody_else_makes_one),
        cmocka_unit_test(what_is_wrong_is_told),
        cmocka_unit_test(the_id_is_of_publisher_and_name),
        cmocka_unit_test(the_newer_one_counts),
        cmocka_unit_test(names_are_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
