/*
 * copies_code - what nodes say to each other to keep an archive together, as bytes in base/wire.h terms.
 *
 *      COMPARE   question   from[16] to[16] message            protocol/copies/reconcile.h, to the end
 *                answer     message
 *      OFFER     question   count:varint<=4096 { key[40] }
 *                answer     two bits for each key, the first in the lowest of byte 0: enum copies_wish
 *      CONFIRM   question   count:varint<=4096 { key[40] }
 *                answer     one bit for each key: the node has it
 *      PROVE     question   nonce[32] key[40] offset:varint size:varint<=1 MiB
 *                answer     SHA-256 of the nonce and that part of the payload, [32]
 *
 * An offer of no keys says: something has changed here, compare with me. Readers take any bytes; what is left
 * over, unused bits that are set and values above their bounds are refused. Slices borrow. Specified in
 * docs/protocol/copies.md.
 */
#ifndef MNEMON_PROTOCOL_COPIES_COPIES_CODE_H
#define MNEMON_PROTOCOL_COPIES_COPIES_CODE_H

#include "base/ringkey.h"
#include "base/wire.h"
#include "protocol/ring/ring_id.h"

enum {
    COPIES_KEYS_MAX = 4096,
    COPIES_NONCE_SIZE = 32,
    COPIES_PROOF_SIZE = SHA256_SIZE,
    COPIES_PROVE_SIZE_MAX = 1 << 20, /* of the part of a payload */
    COPIES_COMPARE_HEAD_SIZE = 2 * RING_ID_SIZE,
    COPIES_KEYS_SIZE_MAX = WIRE_VARINT_SIZE_MAX + COPIES_KEYS_MAX * RINGKEY_SIZE, /* of an offer */
};

enum copies_wish {
    COPIES_HAS,         /* nothing to do */
    COPIES_WANTS,       /* the node will fetch it */
    COPIES_WANTS_ABOUT, /* likewise, but it has the payload */
    COPIES_NOT_NOW,     /* not for this node, or too much at once */
};

/* The keys of a question, read one by one. */
struct copies_keys {
    size_t count;
    struct bytes bytes;
};

static inline struct ringkey copies_keys_at(const struct copies_keys *keys, size_t index) {
    struct ringkey key;
    memcpy(key.bytes, keys->bytes.data + index * RINGKEY_SIZE, RINGKEY_SIZE);
    return key;
}

void copies_put_arc(struct wire_writer *out, struct ring_id from, struct ring_id to);
enum err copies_read_arc(struct bytes in, struct ring_id *ret_from, struct ring_id *ret_to,
                         struct bytes *ret_message, struct err_detail *detail) MUST_CHECK;

void copies_put_keys(struct wire_writer *out, const struct ringkey *keys, size_t count);
enum err copies_read_keys(struct bytes in, struct copies_keys *ret_keys,
                          struct err_detail *detail) MUST_CHECK;

/* Answers: width 1 or 2 bits for each of count values. */
void copies_put_bits(struct wire_writer *out, const uint8_t *values, size_t count, unsigned width);
enum err copies_read_bits(struct bytes in, size_t count, unsigned width, uint8_t *out,
                          struct err_detail *detail) MUST_CHECK;

struct copies_challenge {
    uint8_t nonce[COPIES_NONCE_SIZE];
    struct ringkey key;
    uint64_t offset;
    uint32_t size;
};

void copies_put_challenge(struct wire_writer *out, const struct copies_challenge *challenge);
enum err copies_read_challenge(struct bytes in, struct copies_challenge *ret_challenge,
                               struct err_detail *detail) MUST_CHECK;

/* What of the payload there is in that part counts. */
void copies_prove(struct sha256 *sha256, const struct copies_challenge *challenge, struct bytes payload,
                  uint8_t out[COPIES_PROOF_SIZE]);

#endif
