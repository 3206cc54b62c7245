/* attest: what a signature covers, and what one of the first version does not. */
#include "crawl/engine/attest.h"

#include <stdlib.h>

#include "attest-fixture.h"
#include "store/document/attested.h"
#include "store/index/index.h"
#include "unit.h"

#define URL "http://example.org/page"
#define HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
#define REQUEST "GET /page HTTP/1.1\r\nHost: example.org\r\n\r\n"

/* Of the sample, by the seed of 32 bytes 01. The first was made when there was no other version, the second
 * also with other programs. */
#define KEY "rkeohxlubhyzl7ks3mwtzos5olfgocn7dwkbeg7toseadnapn5oa"
#define FIRST                                                               \
    KEY " b7ece5b543d4cee51c10c7bc8e1b9cdf0be0105498d652b199b4fff9b3946c71" \
        "f57ad274f4bea803788fae750aa2fab073e0b8d429c0b9c5c92719edb3f9270d"
#define SECOND                                                              \
    KEY " 419fa4d68c78f22371357cb36d129f76da556be6762fd4ea5b161a647eb10a43" \
        "f1fea3146eeeb4d0b46d39e1c583e395357fbef17310e8b1e975ec92d36d1c09"

/* Its importer's, made with another program. */
#define IMPORTED                                                            \
    KEY " 50a5b3305beb653ede4f192fbeef47f1026c12ecb1a299303a9f7ba2683fc31b" \
        "de1344d72e6d1efa8616cbf5ef795d0a247a85f7bf459efc2d2130b0bcc6a404"

struct fixture {
    struct identity identity;
    struct sha256 sha256;
    struct buf message;
    struct document_sum sum;
    struct document document;
    char text[ATTEST_TEXT_SIZE];
};

static int setup(void **state) {
    static const uint8_t seed[IDENTITY_SEED_SIZE] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                                     1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    assert_int_equal(identity_from_seed(&fixture->identity, seed), ERR_OK);
    assert_int_equal(sha256_init(&fixture->sha256), ERR_OK);
    buf_init(&fixture->message, ATTEST_MESSAGE_SIZE_MAX);
    sha256_digest(&fixture->sha256, BYTES("hello"), fixture->sum.digest);
    fixture->sum.size = 5;
    fixture->document = (struct document){
        .url = BYTES(URL),
        .time_us = 1800000000000000,
        .head = BYTES(HEAD),
        .request = BYTES(REQUEST),
        .ip_address = BYTES("192.0.2.1"),
        .tls = BYTES("verified"),
        .sum = &fixture->sum,
    };
    *state = fixture;
    return 0;
}

static int teardown(void **state) {
    struct fixture *fixture = *state;
    buf_done(&fixture->message);
    sha256_done(&fixture->sha256);
    identity_done(&fixture->identity);
    free(fixture);
    return 0;
}

static void sign(struct fixture *fixture) {
    assert_int_equal(attest_sign(&fixture->identity, &fixture->sha256, &fixture->message, &fixture->document,
                                 fixture->text),
                     ERR_OK);
}

static enum err verify(struct fixture *fixture, const struct document *document, bool *ret_covers_request) {
    uint8_t signer[PEER_KEY_SIZE];
    enum err err =
        attest_verify(&fixture->sha256, &fixture->message, document, signer, ret_covers_request, NULL);
    if (err == ERR_OK) {
        assert_memory_equal(signer, fixture->identity.key, sizeof signer);
    }
    return err;
}

static void signatures_are_made_as_written_down(void **state) {
    struct fixture *fixture = *state;
    bool covers_request = false;
    sign(fixture);
    assert_bytes_equal(fixture->document.signature, BYTES(SECOND));
    assert_int_equal(verify(fixture, &fixture->document, &covers_request), ERR_OK);
    assert_true(covers_request);
    fixture->document.request = bytes_of(NULL, 0); /* nothing is signed as nothing */
    sign(fixture);
    assert_int_equal(verify(fixture, &fixture->document, &covers_request), ERR_OK);
    assert_true(covers_request);
    fixture->document.request = BYTES(REQUEST);
    assert_int_equal(verify(fixture, &fixture->document, &covers_request), ERR_MISMATCH);
}

/* What was signed before still counts, whatever the request. */
static void the_first_version_says_nothing_of_the_request(void **state) {
    struct fixture *fixture = *state;
    struct document *document = &fixture->document;
    static const struct bytes requests[] = {
        {(const uint8_t *)REQUEST, sizeof REQUEST - 1}, {(const uint8_t *)"GET /", 5}, {NULL, 0}};
    attest_fixture_sign_first(&fixture->identity, &fixture->sha256, document, fixture->text);
    assert_bytes_equal(document->signature, BYTES(FIRST));
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        bool covers_request = true;
        document->request = requests[i];
        assert_int_equal(verify(fixture, document, &covers_request), ERR_OK);
        assert_false(covers_request);
    }
    document->head = BYTES("HTTP/1.1 200 Ok\r\n\r\n");
    bool covers_request;
    assert_int_equal(verify(fixture, document, &covers_request), ERR_MISMATCH);
}

/* It proves nothing, and is no lie. */
static void a_later_version_is_not_checked(void **state) {
    struct fixture *fixture = *state;
    struct document *document = &fixture->document;
    uint8_t key[PEER_KEY_SIZE];
    bool covers_request;
    document->signature = BYTES("v3 " KEY " whatever it will be");
    document->imported = BYTES("v12 " KEY " x");
    assert_int_equal(verify(fixture, document, &covers_request), ERR_UNSUPPORTED);
    assert_int_equal(attest_verify_import(&fixture->sha256, &fixture->message, document, key, NULL),
                     ERR_UNSUPPORTED);
}

static void versions_are_told_by_the_text(void **state) {
    static const struct {
        const char *field;
        bool is_any;
        uint32_t later;
    } rows[] = {
        {KEY " 00", true, 0},
        {"v3 " KEY " text", true, 3},
        {"v999 " KEY " a b  c", true, 999},
        {"", false, 0},
        {KEY, false, 0},
        {"v3 " KEY, false, 0},
        {"v2 " KEY " 00", false, 0},
        {"v03 " KEY " 00", false, 0},
        {"v1000 " KEY " 00", false, 0},
        {"v " KEY " 00", false, 0},
        {"v3 " KEY " a\n", false, 0},
        {"v3 " KEY " a ", false, 0},
        {"v20", false, 0},
        {"v3 ", false, 0},
        {"v3 " KEY "  a", false, 0},
        {"v3  " KEY " a", false, 0},
        {"v3 short text", false, 0},
        {"v3 " KEY " \xff", false, 0},
        {"V3 " KEY " text", false, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bytes field = bytes_of_string(rows[i].field);
        struct attested attested;
        bool is_any = attested_read(field, &attested);
        if (is_any != rows[i].is_any || (is_any && attested.later != rows[i].later)) {
            fail_msg("%s", rows[i].field);
        }
        if (is_any) {
            assert_bytes_equal(attested.key, BYTES(KEY));
        }
        assert_int_equal(attested_is_later(field), rows[i].later > 0);
    }
    char longest[ATTESTED_SIZE_MAX + 2] = "v3 " KEY " ";
    memset(longest + strlen(longest), 'x', sizeof longest - 1 - strlen(longest));
    assert_false(attested_is_later(bytes_of(longest, ATTESTED_SIZE_MAX + 1)));
    assert_true(attested_is_later(bytes_of(longest, ATTESTED_SIZE_MAX)));
}

static void nothing_that_is_signed_can_be_changed(void **state) {
    struct fixture *fixture = *state;
    sign(fixture);
    struct document_sum other_size = fixture->sum;
    struct document_sum other_digest = fixture->sum;
    other_size.size++;
    other_digest.digest[31] ^= 1;
    struct document changed[9];
    size_t count = sizeof changed / sizeof *changed;
    for (size_t i = 0; i < count; i++) {
        changed[i] = fixture->document;
    }
    changed[0].url = BYTES("http://example.org/Page");
    changed[1].time_us++;
    changed[2].head = BYTES("HTTP/1.1 200 OK\r\n\r\n");
    changed[3].request = BYTES("GET /page HTTP/1.1\r\nHost: example.com\r\n\r\n");
    changed[4].request = bytes_of(NULL, 0);
    changed[5].sum = &other_size;
    changed[6].sum = &other_digest;
    changed[7].ip_address = BYTES("192.0.2.2");
    changed[8].tls = bytes_of(NULL, 0);
    for (size_t i = 0; i < count; i++) {
        bool covers_request;
        assert_int_equal(verify(fixture, &changed[i], &covers_request), ERR_MISMATCH);
    }
    struct document not_modified = fixture->document;
    bool covers_request;
    not_modified.is_not_modified = true;
    assert_int_equal(verify(fixture, &not_modified, &covers_request), ERR_MISMATCH);
}

static void what_is_no_signature_is_refused(void **state) {
    struct fixture *fixture = *state;
    static const char *const texts[] = {"", " ", KEY, KEY " 00", "0" FIRST, FIRST "0"};
    bool covers_request;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fixture->document.signature = bytes_of_string(texts[i]);
        assert_int_equal(verify(fixture, &fixture->document, &covers_request), ERR_MISMATCH);
    }
    sign(fixture);
    fixture->document.head = bytes_of(NULL, 0); /* resources are not signed */
    assert_int_equal(verify(fixture, &fixture->document, &covers_request), ERR_MISMATCH);
}

static enum err verify_import(struct fixture *fixture, const struct document *document) {
    uint8_t importer[PEER_KEY_SIZE];
    enum err err = attest_verify_import(&fixture->sha256, &fixture->message, document, importer, NULL);
    if (err == ERR_OK) {
        assert_memory_equal(importer, fixture->identity.key, sizeof importer);
    }
    return err;
}

/* To have imported it is another statement than to have fetched it, and neither can be made of the other. */
static void imported_is_not_fetched(void **state) {
    struct fixture *fixture = *state;
    struct document *document = &fixture->document;
    bool covers_request;
    assert_int_equal(
        attest_sign_import(&fixture->identity, &fixture->sha256, &fixture->message, document, fixture->text),
        ERR_OK);
    assert_bytes_equal(document->imported, BYTES(IMPORTED));
    assert_int_equal(document->signature.size, 0);
    assert_int_equal(verify_import(fixture, document), ERR_OK);
    struct document swapped = *document;
    swapped.signature = document->imported;
    assert_int_equal(verify(fixture, &swapped, &covers_request), ERR_MISMATCH);
    swapped.imported = BYTES(SECOND);
    assert_int_equal(verify_import(fixture, &swapped), ERR_MISMATCH);
    swapped.imported = BYTES(FIRST);
    assert_int_equal(verify_import(fixture, &swapped), ERR_MISMATCH);
    struct document changed[4] = {*document, *document, *document, *document};
    changed[0].head = BYTES("HTTP/1.1 200 Ok\r\n\r\n");
    changed[1].request = bytes_of(NULL, 0);
    changed[2].time_us++;
    changed[3].imported = BYTES("nobody");
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
        assert_int_equal(verify_import(fixture, &changed[i]), ERR_MISMATCH);
    }
}

/* Longer than the archive stores: no signature, and none is right. */
static void texts_have_bounds(void **state) {
    struct fixture *fixture = *state;
    static char url[INDEX_URL_SIZE_MAX + 1];
    bool covers_request;
    memset(url, 'a', sizeof url);
    sign(fixture);
    fixture->document.url = bytes_of(url, sizeof url);
    assert_int_equal(verify(fixture, &fixture->document, &covers_request), ERR_MISMATCH);
    assert_int_equal(attest_sign(&fixture->identity, &fixture->sha256, &fixture->message, &fixture->document,
                                 fixture->text),
                     ERR_LIMIT);
    assert_int_equal(fixture->document.signature.size, 0);
    fixture->document.url.size--;
    sign(fixture);
    assert_int_equal(verify(fixture, &fixture->document, &covers_request), ERR_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(signatures_are_made_as_written_down, setup, teardown),
        cmocka_unit_test_setup_teardown(the_first_version_says_nothing_of_the_request, setup, teardown),
        cmocka_unit_test_setup_teardown(a_later_version_is_not_checked, setup, teardown),
        cmocka_unit_test(versions_are_told_by_the_text),
        cmocka_unit_test_setup_teardown(nothing_that_is_signed_can_be_changed, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_signature_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(imported_is_not_fetched, setup, teardown),
        cmocka_unit_test_setup_teardown(texts_have_bounds, setup, teardown),
    };
    return cmocka_run_group_tests_name("attest", tests, NULL, NULL);
}
