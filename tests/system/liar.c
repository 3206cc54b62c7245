/*
 * liar - mnemon as it should not be: a member of the crowd that lies about objects, for the tests.
 *
 * The linker puts these in the place of offers_have() and offers_give() (--wrap). It claims to have the
 * newest capture of whatever is asked for; what it really has it gives with a byte changed, and what it has
 * not, it makes up.
 */
#include <string.h>

#include "base/clock.h"
#include "base/wire.h"
#include "node/captures/captures_code.h"
#include "node/crowd/offers.h"
#include "protocol/crowd/wish.h"

enum { SIZE = 300000 };

size_t __real_offers_have(void *offers, struct bytes wish, uint8_t *memory);
size_t __wrap_offers_have(void *offers, struct bytes wish, uint8_t *memory);
peer_rpc_handler __real_offers_give;
peer_rpc_handler __wrap_offers_give;

size_t __wrap_offers_have(void *offers, struct bytes bytes, uint8_t *memory) {
    size_t size = __real_offers_have(offers, bytes, memory);
    struct wish wish;
    uint8_t digest[RINGKEY_DIGEST_SIZE];
    if (size > 0 || !wish_read(bytes, &wish)) {
        return size;
    }
    int64_t now_us = clock_wall_us(&clock_system);
    memset(digest, (int)(now_us & 0xff), sizeof digest);
    struct wish_finding finding = {.key = ringkey_make(wish.hash, now_us, digest), .size = SIZE};
    return wish_write_findings(&finding, 1, memory).size;
}

enum err __wrap_offers_give(void *context, const struct peer *from, struct bytes question, struct buf *answer,
                            struct err_detail *detail) {
    enum err err = __real_offers_give(context, from, question, answer, detail);
    struct captures_answer said;
    if (err == ERR_OK && captures_code_read_answer(buf_bytes(answer), &said, NULL) == ERR_OK &&
        said.is_there) {
        answer->data[answer->size - 1] ^= 1; /* of the payload, or of what it was packed to */
        return ERR_OK;
    }
    said = (struct captures_answer){.is_there = true,
                                    .description = BYTES("this is no capture"),
                                    .size = SIZE,
                                    .piece = BYTES("nor is this one of its pieces")};
    buf_clear(answer);
    return captures_code_put_answer(answer, &said);
}
