#include "crawl/engine/attest.h"

#include "base/hex.h"
#include "base/wire.h"
#include "store/document/attested.h"
#include "store/index/index.h"

enum { KEY_DIGITS = IDENTITY_TEXT_SIZE - 1, WORD_SIZE_MAX = 64 };

/* A signature says by its context alone of which version it is: no field of the record has to. */
static const char CONTEXT[] = "mnemon capture 2";
static const char CONTEXT_FIRST[] = "mnemon capture 1";   /* the same message without its end, the request */
static const char CONTEXT_IMPORTED[] = "mnemon import 1"; /* the same message; neither passes for the other */

static enum err write_message(struct buf *out, struct sha256 *sha256, const struct document *document) {
    ASSERT(document->head.size > 0 && document->sum != NULL);
    uint8_t head[SHA256_SIZE];
    uint8_t request[SHA256_SIZE];
    struct wire_writer writer;
    struct bytes message;
    bool is_bounded = document->url.size <= INDEX_URL_SIZE_MAX &&
                      document->ip_address.size <= WORD_SIZE_MAX && document->tls.size <= WORD_SIZE_MAX;
    if (!is_bounded) {
        return ERR_LIMIT;
    }
    buf_clear(out);
    enum err err = buf_reserve(out, ATTEST_MESSAGE_SIZE_MAX);
    if (err != ERR_OK) {
        return err;
    }
    sha256_digest(sha256, document->head, head);
    sha256_digest(sha256, document->request, request);
    wire_writer_init(&writer, out->data, ATTEST_MESSAGE_SIZE_MAX);
    wire_write_string(&writer, document->url);
    wire_write_u64(&writer, (uint64_t)document->time_us);
    wire_write_bytes(&writer, bytes_of(head, sizeof head));
    wire_write_bytes(&writer, bytes_of(document->sum->digest, KEY_DIGEST_SIZE));
    wire_write_varint(&writer, document->sum->size);
    wire_write_string(&writer, document->ip_address);
    wire_write_string(&writer, document->tls);
    wire_write_bool(&writer, document->is_not_modified);
    wire_write_bytes(&writer, bytes_of(request, sizeof request));
    err = wire_writer_finish(&writer, &message);
    out->size = err == ERR_OK ? message.size : 0;
    return err;
}

static enum err attest_state(const struct identity *identity, const char *context, struct sha256 *sha256,
                             struct buf *message, const struct document *document, struct bytes *ret_field,
                             char text[ATTEST_TEXT_SIZE]) {
    uint8_t signature[IDENTITY_SIGNATURE_SIZE];
    *ret_field = bytes_of(NULL, 0);
    enum err err = write_message(message, sha256, document);
    if (err != ERR_OK) {
        return err;
    }
    identity_sign(identity, context, buf_bytes(message), signature);
    *ret_field = bytes_of_string(attest_format(identity->key, signature, text));
    return ERR_OK;
}

enum err attest_sign(const struct identity *identity, struct sha256 *sha256, struct buf *message,
                     struct document *document, char text[ATTEST_TEXT_SIZE]) {
    return attest_state(identity, CONTEXT, sha256, message, document, &document->signature, text);
}

enum err attest_sign_import(const struct identity *identity, struct sha256 *sha256, struct buf *message,
                            struct document *document, char text[ATTEST_TEXT_SIZE]) {
    return attest_state(identity, CONTEXT_IMPORTED, sha256, message, document, &document->imported, text);
}

/* Key and signature of the field, and what they must be of. */
static enum err attest_begin(struct sha256 *sha256, struct buf *message, const struct document *document,
                             struct bytes field, uint8_t ret_key[PEER_KEY_SIZE],
                             uint8_t ret_signature[IDENTITY_SIGNATURE_SIZE], struct err_detail *detail) {
    if (document->head.size > 0 && attested_is_later(field)) {
        return err_set(detail, ERR_UNSUPPORTED, "a signature of a later version, which cannot be checked");
    }
    if (document->head.size == 0 || !attest_parse(field, ret_key, ret_signature)) {
        return err_set(detail, ERR_MISMATCH, "a capture with a signature that is none");
    }
    enum err err = write_message(message, sha256, document);
    return err == ERR_LIMIT ? err_set(detail, ERR_MISMATCH, "a capture with texts that are too long") : err;
}

enum err attest_verify_import(struct sha256 *sha256, struct buf *message, const struct document *document,
                              uint8_t ret_importer[PEER_KEY_SIZE], struct err_detail *detail) {
    uint8_t key[PEER_KEY_SIZE];
    uint8_t signature[IDENTITY_SIGNATURE_SIZE];
    enum err err = attest_begin(sha256, message, document, document->imported, key, signature, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (!identity_verify(key, CONTEXT_IMPORTED, buf_bytes(message), signature)) {
        return err_set(detail, ERR_MISMATCH, "a capture whose importer has not signed it");
    }
    memcpy(ret_importer, key, sizeof key);
    return ERR_OK;
}

enum err attest_verify(struct sha256 *sha256, struct buf *message, const struct document *document,
                       uint8_t ret_signer[PEER_KEY_SIZE], bool *ret_covers_request,
                       struct err_detail *detail) {
    uint8_t key[PEER_KEY_SIZE];
    uint8_t signature[IDENTITY_SIGNATURE_SIZE];
    enum err err = attest_begin(sha256, message, document, document->signature, key, signature, detail);
    if (err != ERR_OK) {
        return err;
    }
    struct bytes whole = buf_bytes(message);
    struct bytes first = bytes_slice(whole, 0, whole.size - SHA256_SIZE);
    bool covers_request = identity_verify(key, CONTEXT, whole, signature);
    if (!covers_request && !identity_verify(key, CONTEXT_FIRST, first, signature)) {
        return err_set(detail, ERR_MISMATCH, "a capture whose signature is false");
    }
    memcpy(ret_signer, key, sizeof key);
    *ret_covers_request = covers_request;
    return ERR_OK;
}

const char *attest_format(const uint8_t key[PEER_KEY_SIZE], const uint8_t signature[IDENTITY_SIGNATURE_SIZE],
                          char out[ATTEST_TEXT_SIZE]) {
    identity_key_format(key, out);
    out[KEY_DIGITS] = ' ';
    hex_encode(bytes_of(signature, IDENTITY_SIGNATURE_SIZE), out + KEY_DIGITS + 1);
    return out;
}

bool attest_parse(struct bytes text, uint8_t ret_key[PEER_KEY_SIZE],
                  uint8_t ret_signature[IDENTITY_SIGNATURE_SIZE]) {
    return text.size == ATTEST_TEXT_SIZE - 1 && text.data[KEY_DIGITS] == ' ' &&
           identity_key_parse(bytes_slice(text, 0, KEY_DIGITS), ret_key) &&
           hex_decode(bytes_skip(text, KEY_DIGITS + 1), ret_signature, IDENTITY_SIGNATURE_SIZE);
}
