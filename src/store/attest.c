#include "store/attest.h"

#include "base/base32.h"
#include "base/hex.h"
#include "base/wire.h"
#include "store/index.h"

enum { KEY_DIGITS = 52, WORD_SIZE_MAX = 64 };

enum err attest_put_message(struct buf *out, struct sha256 *sha256, const struct document *document,
                            const struct document_sum *sum) {
    ASSERT(document->head.size > 0);
    uint8_t head[SHA256_SIZE];
    struct wire_writer writer;
    struct bytes message;
    bool is_bounded = document->url.size <= INDEX_URL_SIZE_MAX &&
                      document->ip_address.size <= WORD_SIZE_MAX && document->tls.size <= WORD_SIZE_MAX;
    if (!is_bounded) {
        return ERR_LIMIT;
    }
    enum err err = buf_reserve(out, ATTEST_MESSAGE_SIZE_MAX);
    if (err != ERR_OK) {
        return err;
    }
    sha256_digest(sha256, document->head, head);
    wire_writer_init(&writer, out->data + out->size, ATTEST_MESSAGE_SIZE_MAX);
    wire_write_string(&writer, document->url);
    wire_write_u64(&writer, (uint64_t)document->time_us);
    wire_write_bytes(&writer, bytes_of(head, sizeof head));
    wire_write_bytes(&writer, bytes_of(sum->digest, KEY_SIGNATURE_SIZE));
    wire_write_varint(&writer, sum->size);
    wire_write_string(&writer, document->ip_address);
    wire_write_string(&writer, document->tls);
    wire_write_bool(&writer, document->is_not_modified);
    err = wire_writer_finish(&writer, &message);
    out->size += err == ERR_OK ? message.size : 0;
    return err;
}

const char *attest_format(const uint8_t key[ATTEST_KEY_SIZE], const uint8_t signature[ATTEST_SIGNATURE_SIZE],
                          char out[ATTEST_TEXT_SIZE]) {
    base32_encode(bytes_of(key, ATTEST_KEY_SIZE), out);
    for (size_t i = 0; i < KEY_DIGITS; i++) {
        out[i] = (char)byte_lower((uint8_t)out[i]);
    }
    out[KEY_DIGITS] = ' ';
    hex_encode(bytes_of(signature, ATTEST_SIGNATURE_SIZE), out + KEY_DIGITS + 1);
    return out;
}

bool attest_parse(struct bytes text, uint8_t ret_key[ATTEST_KEY_SIZE],
                  uint8_t ret_signature[ATTEST_SIGNATURE_SIZE]) {
    return text.size == ATTEST_TEXT_SIZE - 1 && text.data[KEY_DIGITS] == ' ' &&
           base32_decode(bytes_slice(text, 0, KEY_DIGITS), ret_key, ATTEST_KEY_SIZE) &&
           hex_decode(bytes_skip(text, KEY_DIGITS + 1), ret_signature, ATTEST_SIGNATURE_SIZE);
}
