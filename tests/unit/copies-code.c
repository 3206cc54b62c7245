/* copies_code: every message comes back as it was written; everything else is refused. */
#include "../copies-put.h"

#include <stdlib.h>

#include "unit.h"

enum { MESSAGE_SIZE_MAX = 256 << 10 };

static struct ringkey key_of(uint8_t n) {
    struct ringkey key;
    memset(key.bytes, n, sizeof key.bytes);
    return key;
}

static void arcs_come_back(void **state) {
    struct buf out;
    struct ring_id from;
    struct ring_id to;
    struct bytes message;
    (void)state;
    buf_init(&out, MESSAGE_SIZE_MAX);
    buf_put_copies_arc(&out, (struct ring_id){1, 2}, (struct ring_id){3, UINT64_MAX});
    buf_put_string(&out, "message");
    assert_int_equal(out.size, COPIES_COMPARE_HEAD_SIZE + 7);
    assert_int_equal(copies_read_arc(buf_bytes(&out), &from, &to, &message, NULL), ERR_OK);
    assert_true(from.high == 1 && from.low == 2 && to.high == 3 && to.low == UINT64_MAX);
    assert_bytes_equal(message, BYTES("message"));
    for (size_t size = 0; size < COPIES_COMPARE_HEAD_SIZE; size++) {
        assert_int_equal(copies_read_arc(bytes_of(out.data, size), &from, &to, &message, NULL),
                         ERR_TRUNCATED);
    }
    buf_done(&out);
}

static void keys_come_back(void **state) {
    static const size_t counts[] = {0, 1, 127, 128, COPIES_KEYS_MAX};
    struct ringkey *keys = calloc(COPIES_KEYS_MAX, sizeof *keys);
    struct copies_keys read;
    struct buf out;
    (void)state;
    buf_init(&out, MESSAGE_SIZE_MAX);
    for (size_t i = 0; i < COPIES_KEYS_MAX; i++) {
        keys[i] = key_of((uint8_t)i);
    }
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        buf_clear(&out);
        buf_put_copies_keys(&out, keys, counts[i]);
        assert_int_equal(copies_read_keys(buf_bytes(&out), &read, NULL), ERR_OK);
        assert_int_equal(read.count, counts[i]);
        for (size_t j = 0; j < read.count; j++) {
            struct ringkey key = copies_keys_at(&read, j);
            assert_int_equal(ringkey_compare(&key, &keys[j]), 0);
        }
        assert_int_not_equal(copies_read_keys(bytes_of(out.data, out.size - 1), &read, NULL), ERR_OK);
        buf_put_byte(&out, 0);
        assert_int_equal(copies_read_keys(buf_bytes(&out), &read, NULL), ERR_INVALID);
    }
    assert_int_not_equal(copies_read_keys(BYTES("\x81\x20"), &read, NULL), ERR_OK); /* 4,097 */
    buf_done(&out);
    free(keys);
}

static void bits_come_back(void **state) {
    static const uint8_t wishes[] = {3, 0, 1, 2, 2};
    static const uint8_t flags[] = {1, 0, 0, 1, 1, 1, 0, 0, 1};
    uint8_t read[sizeof flags];
    struct buf out;
    (void)state;
    buf_init(&out, 16);
    buf_put_copies_bits(&out, wishes, sizeof wishes, 2);
    assert_bytes_equal(buf_bytes(&out), BYTES("\x93\x02"));
    assert_int_equal(copies_read_bits(buf_bytes(&out), sizeof wishes, 2, read, NULL), ERR_OK);
    assert_memory_equal(read, wishes, sizeof wishes);
    assert_int_equal(copies_read_bits(buf_bytes(&out), 4, 2, read, NULL), ERR_INVALID);
    assert_int_equal(copies_read_bits(BYTES("\x93\x12"), sizeof wishes, 2, read, NULL), ERR_INVALID);
    buf_clear(&out);
    buf_put_copies_bits(&out, flags, sizeof flags, 1);
    assert_bytes_equal(buf_bytes(&out), BYTES("\x39\x01"));
    assert_int_equal(copies_read_bits(buf_bytes(&out), sizeof flags, 1, read, NULL), ERR_OK);
    assert_memory_equal(read, flags, sizeof flags);
    assert_int_equal(copies_read_bits(BYTES("\x39\x03"), sizeof flags, 1, read, NULL), ERR_INVALID);
    assert_int_equal(copies_read_bits(BYTES(""), 0, 1, read, NULL), ERR_OK);
    buf_done(&out);
}

static void challenges_come_back(void **state) {
    struct copies_challenge challenge = {.key = key_of(7), .offset = UINT64_MAX, .size = 1 << 20};
    struct copies_challenge read;
    struct buf out;
    (void)state;
    buf_init(&out, 256);
    memset(challenge.nonce, 9, sizeof challenge.nonce);
    buf_put_copies_challenge(&out, &challenge);
    assert_int_equal(copies_read_challenge(buf_bytes(&out), &read, NULL), ERR_OK);
    assert_memory_equal(read.nonce, challenge.nonce, sizeof read.nonce);
    assert_int_equal(ringkey_compare(&read.key, &challenge.key), 0);
    assert_true(read.offset == challenge.offset && read.size == challenge.size);
    for (size_t size = 0; size < out.size; size++) {
        assert_int_not_equal(copies_read_challenge(bytes_of(out.data, size), &read, NULL), ERR_OK);
    }
    buf_truncate(&out, out.size - 3);
    buf_put(&out, BYTES("\x81\x80\x40")); /* 1 MiB + 1 */
    assert_int_not_equal(copies_read_challenge(buf_bytes(&out), &read, NULL), ERR_OK);
    buf_done(&out);
}

static void a_proof_needs_nonce_and_payload(void **state) {
    struct copies_challenge challenge = {.size = COPIES_PROVE_SIZE_MAX};
    struct sha256 sha256;
    uint8_t proof[COPIES_PROOF_SIZE];
    uint8_t other[COPIES_PROOF_SIZE];
    uint8_t expected[COPIES_PROOF_SIZE];
    uint8_t whole[COPIES_NONCE_SIZE + 7] = {0};
    (void)state;
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    memcpy(whole + COPIES_NONCE_SIZE, "payload", 7);
    sha256_digest(&sha256, bytes_of(whole, sizeof whole), expected);
    copies_prove(&sha256, &challenge, BYTES("payload"), proof);
    assert_memory_equal(proof, expected, sizeof proof);
    copies_prove(&sha256, &challenge, BYTES("paylaod"), other);
    assert_memory_not_equal(proof, other, sizeof proof);
    challenge.offset = 3;
    challenge.size = 2;
    copies_prove(&sha256, &challenge, BYTES("payload"), proof);
    copies_prove(&sha256, &challenge, BYTES("xyzloxx"), other);
    assert_memory_equal(proof, other, sizeof proof); /* only that part counts */
    challenge.offset = UINT64_MAX;
    copies_prove(&sha256, &challenge, BYTES("payload"), proof); /* nothing is there */
    challenge.nonce[0] = 1;
    copies_prove(&sha256, &challenge, BYTES("payload"), other);
    assert_memory_not_equal(proof, other, sizeof proof);
    sha256_done(&sha256);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arcs_come_back),
        cmocka_unit_test(keys_come_back),
        cmocka_unit_test(bits_come_back),
        cmocka_unit_test(challenges_come_back),
        cmocka_unit_test(a_proof_needs_nonce_and_payload),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
