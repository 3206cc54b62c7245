/*
 * captures - any bytes as questions and answers about one capture and about many, and as pages of a walk. The
 * first byte says what they claim to be; whatever is read must be written as the same bytes again.
 */
#include "fuzz.h"

#include "crawl/engine/attest.h"
#include "node/captures/captures_code.h"
#include "node/captures/captures_state.h"
#include "node/reading/ring_reader_scope.h"
#include "store/remote/backend_code.h"

enum { KINDS_COUNT = 4, MANY_FROM = 250, WRITTEN_SIZE_MAX = 4 << 20 };

static void check_question(struct bytes input, struct buf *out) {
    struct captures_question question;
    if (captures_code_read_question(input, &question, NULL) == ERR_OK) {
        enum err err = captures_code_put_question(out, &question);
        ASSERT(err == ERR_OK && bytes_equal(buf_bytes(out), input));
    }
}

static void check_answer(struct bytes input, struct buf *out) {
    struct captures_answer answer;
    if (captures_code_read_answer(input, &answer, NULL) == ERR_OK) {
        enum err err = captures_code_put_answer(out, &answer);
        ASSERT(err == ERR_OK && bytes_equal(buf_bytes(out), input));
    }
}

static void check_many(struct bytes input, struct buf *out) {
    struct captures_many many;
    if (captures_code_read_many(input, &many, NULL) == ERR_OK) {
        enum err err = captures_code_put_many(out, &many);
        ASSERT(err == ERR_OK && bytes_equal(buf_bytes(out), input));
    }
}

/* Entries up to the first that is none; what was read is what is written. */
static void check_entries(struct bytes input, struct buf *out) {
    struct wire_reader reader;
    enum captures_many_status status;
    struct captures_answer answer = {0};
    wire_reader_init(&reader, input);
    while (wire_reader_left(&reader) > 0 && captures_code_read_entry(&reader, &status, &answer) == ERR_OK) {
        enum err err = captures_code_put_entry(out, status, &answer);
        ASSERT(err == ERR_OK && out->size <= input.size);
        ASSERT(bytes_equal(buf_bytes(out), bytes_slice(input, 0, out->size)));
    }
}

/* Signed by us, it is ours; the same text for another document is not. */
static void check_signing(struct bytes text) {
    struct sha256 sha256;
    static const uint8_t seed[IDENTITY_SEED_SIZE] = {1};
    struct identity identity;
    struct buf message;
    struct document_sum sum = {.size = text.size};
    struct document document = {
        .url = text, .head = text, .request = text, .sum = &sum, .is_body_left_out = true};
    char signature[ATTEST_TEXT_SIZE];
    uint8_t signer[PEER_KEY_SIZE];
    bool covers_request;
    buf_init(&message, WRITTEN_SIZE_MAX);
    enum err err = identity_from_seed(&identity, seed);
    ASSERT(err == ERR_OK && sha256_init(&sha256) == ERR_OK);
    if (attest_sign(&identity, &sha256, &message, &document, signature) == ERR_OK) {
        err = attest_verify(&sha256, &message, &document, signer, &covers_request, NULL);
        ASSERT(err == ERR_OK && covers_request && memcmp(signer, identity.key, sizeof signer) == 0);
        document.time_us = 1;
        ASSERT(attest_verify(&sha256, &message, &document, signer, &covers_request, NULL) != ERR_OK);
    }
    sha256_done(&sha256);
    buf_done(&message);
}

/* A key, then what is said of it. It is never believed by accident: the key's digest is of other bytes. */
static void check_description(struct bytes input, struct buf *out) {
    struct peer_rpc *no_peer_rpc = NULL;
    struct captures captures = {.config = {.peer_rpc = no_peer_rpc, .scratch_directory = "/nonexistent"}};
    struct captured captured;
    struct ringkey key;
    (void)out;
    if (input.size < RINGKEY_SIZE) {
        return;
    }
    struct captures_session *session = captures_session_new(&captures);
    ASSERT(session != NULL);
    memcpy(key.bytes, input.data, RINGKEY_SIZE);
    enum err err = captures_check(session, &key, bytes_skip(input, RINGKEY_SIZE), &captured, NULL);
    ASSERT(err == ERR_OK || err == ERR_MISMATCH || err == ERR_LIMIT);
    check_signing(bytes_slice(input, 0, input.size < 100 ? input.size : 100));
    captures_session_free(session);
}

/* Two bounds, as long as each other. */
static void check_scope(struct bytes input, struct buf *out) {
    struct sha256 sha256;
    uint8_t place[RINGKEY_POSITION_SIZE];
    (void)out;
    enum err err = sha256_init(&sha256);
    ASSERT(err == ERR_OK);
    struct bytes from = bytes_slice(input, 0, input.size / 2);
    struct bytes to = bytes_skip(input, input.size / 2);
    bool by_url = ring_reader_scope(&sha256, from, to, POSITION_BY_URL, place);
    bool by_host = ring_reader_scope(&sha256, from, to, POSITION_BY_HOST, place);
    ASSERT(by_host || !by_url);
    sha256_done(&sha256);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static void (*const checks[KINDS_COUNT])(struct bytes input, struct buf * out) = {
        check_question, check_answer, check_description, check_scope};
    if (size == 0) {
        return 0;
    }
    struct buf out;
    buf_init(&out, WRITTEN_SIZE_MAX);
    struct bytes input = bytes_of(data + 1, size - 1);
    if (data[0] >= MANY_FROM) {
        (data[0] % 2 == 0 ? check_many : check_entries)(input, &out);
    } else {
        checks[data[0] % KINDS_COUNT](input, &out);
    }
    buf_done(&out);
    return 0;
}
