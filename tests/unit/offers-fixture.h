/*
 * offers-fixture - captures as a node offers them: signed, with their keys; and a directory for the files.
 */
#ifndef MNEMON_TESTS_OFFERS_FIXTURE_H
#define MNEMON_TESTS_OFFERS_FIXTURE_H

#include <sys/stat.h>

#include "base/hex.h"
#include "crawl/engine/attest.h"
#include "net/identity.h"
#include "node/captures/captures_state.h"
#include "node/crowd/offers_state.h"
#include "scratch.h"
#include "store/keyset/position.h"
#include "unit.h"
#include "web/url/surt.h"

#define OFFERS_HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"

enum { OFFERS_SECOND_US = 1000000 };

/* A capture with all that it borrows. */
struct offers_sample {
    struct captured captured;
    struct ringkey key;
    uint8_t hash[SHA256_SIZE]; /* of the SURT */
    struct buf surt;
    char signature[ATTEST_TEXT_SIZE];
};

static inline void sample_sign(struct offers_sample *sample, struct sha256 *sha256,
                               const struct identity *signer) {
    struct buf message;
    struct captured *captured = &sample->captured;
    buf_init(&message, ATTEST_MESSAGE_SIZE_MAX);
    assert_int_equal(attest_sign(signer, sha256, &message, &captured->document, sample->signature), ERR_OK);
    captured->is_signed = true;
    memcpy(captured->signer, signer->key, PEER_KEY_SIZE);
    buf_done(&message);
}

/* Of what nobody is known to have fetched. */
static inline void sample_sign_import(struct offers_sample *sample, const struct identity *importer) {
    struct buf message;
    struct sha256 sha256;
    struct captured *captured = &sample->captured;
    buf_init(&message, ATTEST_MESSAGE_SIZE_MAX);
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    assert_int_equal(attest_sign_import(importer, &sha256, &message, &captured->document, sample->signature),
                     ERR_OK);
    sha256_done(&sha256);
    buf_done(&message);
}

/* signer NULL: nobody's. The body is borrowed. */
static inline void sample_init(struct offers_sample *sample, const struct identity *signer, const char *url,
                               int64_t seconds, struct bytes body) {
    uint8_t place[RINGKEY_POSITION_SIZE];
    struct sha256 sha256;
    struct canon canon;
    *sample = (struct offers_sample){0};
    struct captured *captured = &sample->captured;
    captured->document = (struct document){
        .url = bytes_of_string(url),
        .time_us = seconds * OFFERS_SECOND_US,
        .head = BYTES(OFFERS_HEAD),
        .body = body,
        .request = BYTES("GET / HTTP/1.1\r\n\r\n"),
        .ip_address = BYTES("192.0.2.1"),
        .tls = BYTES("verified"),
        .sum = &captured->sum,
    };
    captured->payload = body;
    captured->sum.size = body.size;
    canon_init(&canon);
    buf_init(&sample->surt, INDEX_SURT_SIZE_MAX);
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    sha256_digest(&sha256, body, captured->sum.digest);
    assert_int_equal(canon_run(&canon, captured->document.url, NULL), ERR_OK);
    assert_int_equal(surt_put(&sample->surt, &canon), ERR_OK);
    sha256_digest(&sha256, buf_bytes(&sample->surt), sample->hash);
    position_of_surt(&sha256, buf_bytes(&sample->surt), POSITION_BY_URL, place);
    sample->key = ringkey_make(place, captured->document.time_us, captured->sum.digest);
    if (signer != NULL) {
        sample_sign(sample, &sha256, signer);
    }
    canon_done(&canon);
    sha256_done(&sha256);
}

static inline void sample_done(struct offers_sample *sample) {
    buf_done(&sample->surt);
}

static inline void sample_put(struct offers *offers, const struct offers_sample *sample) {
    offers_put(offers, &sample->key, &sample->captured, bytes_of(NULL, 0), bytes_of(NULL, 0));
}

static inline struct wish sample_wish(const struct offers_sample *sample, enum wish_kind kind) {
    struct wish wish = {.kind = kind, .time = WISH_NEWEST};
    memcpy(wish.hash, sample->hash, WISH_HASH_SIZE);
    memcpy(wish.digest, sample->captured.sum.digest, WISH_DIGEST_SIZE);
    return wish;
}

/* The file of a capture. */
static inline char *sample_path(const char *root, const struct ringkey *key, char out[SCRATCH_PATH_SIZE]) {
    char name[OFFERS_FILE_NAME_SIZE + 8] = "crowd/";
    hex_encode(bytes_of(key->bytes, RINGKEY_SIZE), name + 6);
    return scratch_path(root, name, out);
}

#endif
