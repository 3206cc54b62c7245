#include "warc/warc_digest.h"

#include "unit.h"
#include "warc-fixture.h"

/* Of "abc", from FIPS 180-4 and RFC 1321. */
static const struct {
    const char *text;
    enum warc_digest_algorithm algorithm;
} abc[] = {
    {"md5:900150983cd24fb0d6963f7d28e17f72", WARC_DIGEST_MD5},
    {"sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5", WARC_DIGEST_SHA1},
    {"sha1:a9993e364706816aba3e25717850c26c9cd0d89d", WARC_DIGEST_SHA1},
    {"SHA1:vgmt4nsha2awvor6evyxqugcnsonbwe5", WARC_DIGEST_SHA1},
    {"sha-1:A9993E364706816ABA3E25717850C26C9CD0D89D", WARC_DIGEST_SHA1},
    {"sha1:qZk+NkcGgWq6PiVxeFDCbJzQ2J0=", WARC_DIGEST_SHA1},
    {"sha1:qZk-NkcGgWq6PiVxeFDCbJzQ2J0", WARC_DIGEST_SHA1},
    {"sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", WARC_DIGEST_SHA256},
    {"SHA-256: BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD", WARC_DIGEST_SHA256},
    {"sha256:XJ4BNP4PAHH6UQKBIDPF3LRCEOYAGYNDSYLXVHFUCD7WD4QACWWQ====", WARC_DIGEST_SHA256},
    {"sha512:ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
     "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
     WARC_DIGEST_SHA512},
};

static void reads_every_spelling_and_computes_the_same(void **state) {
    (void)state;
    struct warc_hash hash;
    assert_int_equal(warc_hash_init(&hash), ERR_OK);
    for (size_t i = 0; i < sizeof abc / sizeof abc[0]; i++) {
        struct warc_digest stated;
        struct warc_digest computed;
        assert_int_equal(warc_digest_parse(&stated, bytes_of_string(abc[i].text), NULL), ERR_OK);
        assert_int_equal(stated.algorithm, abc[i].algorithm);
        warc_hash_start(&hash, stated.algorithm);
        warc_hash_update(&hash, BYTES("a"));
        warc_hash_update(&hash, BYTES("bc"));
        warc_hash_finish(&hash, &computed);
        assert_true(warc_digest_equal(&stated, &computed));
    }
    warc_hash_done(&hash);
}

static void tells_unknown_algorithms_from_nonsense(void **state) {
    (void)state;
    struct warc_digest digest;
    struct err_detail detail;
    assert_int_equal(warc_digest_parse(&digest, BYTES("blake3:abcd"), &detail), ERR_UNSUPPORTED);
    assert_string_equal(detail.text, "digests by \"blake3\" cannot be checked");
    assert_int_equal(warc_digest_parse(&digest, BYTES(":abcd"), NULL), ERR_UNSUPPORTED);
    assert_int_equal(warc_digest_parse(&digest, BYTES("a-very-long-name-of-an-algorithm:x"), NULL),
                     ERR_UNSUPPORTED);
    assert_int_equal(warc_digest_parse(&digest, BYTES("sha1:1112H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"), NULL),
                     ERR_INVALID);
    assert_int_equal(warc_digest_parse(&digest, BYTES("sha1:"), NULL), ERR_INVALID);
    assert_int_equal(warc_digest_parse(&digest, BYTES("VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5"), NULL),
                     ERR_INVALID);
    assert_int_equal(warc_digest_parse(&digest, BYTES(""), NULL), ERR_INVALID);
}

#define RESPONSE(fields, length, block)                                                                      \
    "WARC/1.1\r\nWARC-Type: response\r\nContent-Type: application/http\r\n" fields "Content-Length: " length \
    "\r\n\r\n" block "\r\n\r\n"
#define HEAD "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

/* The body is "3\r\nabc\r\n0\r\n\r\n": a payload of "abc". */
static void checks_block_and_payload(void **state) {
    (void)state;
    fixture_expect(BYTES(RESPONSE("WARC-Payload-Digest: sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5\r\n", "60",
                                  HEAD "3\r\nabc\r\n0\r\n\r\n")),
                   "0+209 response -=\n");
    fixture_expect(BYTES(RESPONSE("WARC-Payload-Digest: sha1:AAAT4NSHA2AWVOR6EVYXQUGCNSONBWE5\r\n", "60",
                                  HEAD "3\r\nabc\r\n0\r\n\r\n")),
                   "0+209 response -!\n");
    fixture_expect(BYTES(RESPONSE("WARC-Block-Digest: blake3:00\r\nWARC-Payload-Digest: x\r\n", "60",
                                  HEAD "3\r\nabc\r\n0\r\n\r\n")),
                   "0+203 response ?~\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_spelling_and_computes_the_same),
        cmocka_unit_test(tells_unknown_algorithms_from_nonsense),
        cmocka_unit_test(checks_block_and_payload),
    };
    return cmocka_run_group_tests_name("warc-digest", tests, NULL, NULL);
}
