#include "protocol/copies/copies_code.h"

#include "base/assert.h"

void copies_put_arc(struct wire_writer *out, struct ring_id from, struct ring_id to) {
    uint8_t bytes[COPIES_COMPARE_HEAD_SIZE];
    ring_id_write(from, bytes);
    ring_id_write(to, bytes + RING_ID_SIZE);
    wire_write_bytes(out, bytes_of(bytes, sizeof bytes));
}

enum err copies_read_arc(struct bytes in, struct ring_id *ret_from, struct ring_id *ret_to,
                         struct bytes *ret_message, struct err_detail *detail) {
    uint8_t bytes[COPIES_COMPARE_HEAD_SIZE];
    struct wire_reader reader;
    wire_reader_init(&reader, in);
    wire_read_array(&reader, bytes, sizeof bytes);
    struct bytes message = wire_read_bytes(&reader, wire_reader_left(&reader));
    enum err err = wire_reader_finish(&reader, detail);
    if (err == ERR_OK) {
        *ret_from = ring_id_read(bytes);
        *ret_to = ring_id_read(bytes + RING_ID_SIZE);
        *ret_message = message;
    }
    return err;
}

void copies_put_keys(struct wire_writer *out, const struct ringkey *keys, size_t count) {
    ASSERT(count <= COPIES_KEYS_MAX);
    wire_write_varint(out, count);
    for (size_t i = 0; i < count; i++) {
        wire_write_bytes(out, bytes_of(keys[i].bytes, RINGKEY_SIZE));
    }
}

enum err copies_read_keys(struct bytes in, struct copies_keys *ret_keys, struct err_detail *detail) {
    struct wire_reader reader;
    wire_reader_init(&reader, in);
    struct copies_keys keys = {.count = (size_t)wire_read_varint(&reader, COPIES_KEYS_MAX)};
    keys.bytes = wire_read_bytes(&reader, keys.count * RINGKEY_SIZE);
    enum err err = wire_reader_finish(&reader, detail);
    if (err == ERR_OK) {
        *ret_keys = keys;
    }
    return err;
}

void copies_put_bits(struct wire_writer *out, const uint8_t *values, size_t count, unsigned width) {
    unsigned per_byte = 8 / width;
    for (size_t i = 0; i < count; i += per_byte) {
        unsigned byte = 0;
        for (size_t j = 0; j < per_byte && i + j < count; j++) {
            byte |= (unsigned)values[i + j] << (j * width);
        }
        wire_write_u8(out, (uint8_t)byte);
    }
}

enum err copies_read_bits(struct bytes in, size_t count, unsigned width, uint8_t *out,
                          struct err_detail *detail) {
    unsigned per_byte = 8 / width;
    if (in.size != (count + per_byte - 1) / per_byte) {
        return err_set(detail, ERR_INVALID, "an answer of %zu bytes to %zu keys", in.size, count);
    }
    for (size_t i = 0; i < in.size * per_byte; i++) {
        unsigned value = (unsigned)in.data[i / per_byte] >> (i % per_byte * width) & ((1U << width) - 1);
        if (i < count) {
            out[i] = (uint8_t)value;
        } else if (value != 0) {
            return err_set(detail, ERR_INVALID, "bits that belong to no key are set");
        }
    }
    return ERR_OK;
}

void copies_put_challenge(struct wire_writer *out, const struct copies_challenge *challenge) {
    ASSERT(challenge->size <= COPIES_PROVE_SIZE_MAX);
    wire_write_bytes(out, bytes_of(challenge->nonce, COPIES_NONCE_SIZE));
    wire_write_bytes(out, bytes_of(challenge->key.bytes, RINGKEY_SIZE));
    wire_write_varint(out, challenge->offset);
    wire_write_varint(out, challenge->size);
}

enum err copies_read_challenge(struct bytes in, struct copies_challenge *ret_challenge,
                               struct err_detail *detail) {
    struct copies_challenge challenge;
    struct wire_reader reader;
    wire_reader_init(&reader, in);
    wire_read_array(&reader, challenge.nonce, COPIES_NONCE_SIZE);
    wire_read_array(&reader, challenge.key.bytes, RINGKEY_SIZE);
    challenge.offset = wire_read_varint(&reader, UINT64_MAX);
    challenge.size = (uint32_t)wire_read_varint(&reader, COPIES_PROVE_SIZE_MAX);
    enum err err = wire_reader_finish(&reader, detail);
    if (err == ERR_OK) {
        *ret_challenge = challenge;
    }
    return err;
}

void copies_prove(struct sha256 *sha256, const struct copies_challenge *challenge, struct bytes payload,
                  uint8_t out[COPIES_PROOF_SIZE]) {
    size_t offset = challenge->offset < payload.size ? (size_t)challenge->offset : payload.size;
    size_t left = payload.size - offset;
    sha256_start(sha256);
    sha256_update(sha256, bytes_of(challenge->nonce, COPIES_NONCE_SIZE));
    sha256_update(sha256, bytes_of(payload.data + offset, left < challenge->size ? left : challenge->size));
    sha256_finish(sha256, out);
}
