/*
 * captures_code - what is said about one capture over a stream, as bytes in base/wire.h terms:
 * PEER_RPC_CAPTURE, and PEER_RPC_HAND, which alone has what is marked with *.
 *
 *      question   key[40] surt:string wants_description:bool offset:varint size_max:varint [*address]
 *      answer     0:u8                                               the node does not have it
 *                 1:u8 description:string size:varint is_packed:bool piece          the piece to the end
 *               * 2:u8 count:u8 { address key[32] }           it gives it to no more nodes now; these took it
 *      address    ip[16] port:u16
 *
 * The address is that of the asking node, so that it can be named to others; it may be left out. The SURT may
 * be empty: then the giver looks it up by the key. The description is the meta part of a document in
 * store/remote/backend_code.h, its body left out; empty if it was not wanted. The size is that of the
 * whole payload. The piece begins at the offset and has at most size_max bytes, packed in one zstd frame if
 * that helps.
 *
 * PEER_RPC_CAPTURES, many captures at once:
 *
 *      question   size_max:varint count:varint<=64 { key[40] is_about:bool }
 *      answer     for each key, in their order:
 *                 0:u8                          the node does not have it
 *                 1:u8 size:u32 capture         as the answer above, the payload whole; left out if is_about
 *                 2:u8                          there was no room any more: ask again
 *                 3:u8                          too large for this: ask for it alone
 *
 * An answer has size_max bytes, or little more, unless its first capture alone is longer.
 *
 * Readers take any bytes. Slices borrow from them.
 */
#ifndef MNEMON_NODE_CAPTURES_CAPTURES_CODE_H
#define MNEMON_NODE_CAPTURES_CAPTURES_CODE_H

#include "base/buf.h"
#include "base/ringkey.h"
#include "base/wire.h"
#include "node/rpc/peer_rpc.h"

enum {
    CAPTURES_CODE_DESCRIPTION_SIZE_MAX = PEER_RPC_PIECE_SIZE_MAX,
    CAPTURES_CODE_PEERS_MAX = 8,
    CAPTURES_CODE_KEYS_MAX = 64,
};

struct captures_question {
    struct ringkey key;
    struct bytes surt;
    bool wants_description;
    uint64_t offset;
    uint32_t size_max;      /* 0: nothing of the payload */
    struct address address; /* of the asking node; port 0: not said */
};

struct captures_answer {
    bool is_there;
    bool is_referral; /* only peers count; not is_there */
    uint8_t peers_count;
    struct peer peers[CAPTURES_CODE_PEERS_MAX];
    struct bytes description;
    uint64_t size;
    bool is_packed;
    struct bytes piece;
};

enum err captures_code_put_question(struct buf *out, const struct captures_question *question) MUST_CHECK;
enum err captures_code_read_question(struct bytes in, struct captures_question *ret_question,
                                     struct err_detail *detail) MUST_CHECK;
enum err captures_code_put_answer(struct buf *out, const struct captures_answer *answer) MUST_CHECK;
enum err captures_code_read_answer(struct bytes in, struct captures_answer *ret_answer,
                                   struct err_detail *detail) MUST_CHECK;

/* ---- many at once ---- */

struct captures_many {
    uint32_t size_max;
    uint32_t count;
    struct ringkey keys[CAPTURES_CODE_KEYS_MAX];
    bool is_about[CAPTURES_CODE_KEYS_MAX];
};

enum captures_many_status { CAPTURES_ABSENT, CAPTURES_THERE, CAPTURES_LATER, CAPTURES_ALONE };

enum err captures_code_put_many(struct buf *out, const struct captures_many *many) MUST_CHECK;
enum err captures_code_read_many(struct bytes in, struct captures_many *ret_many,
                                 struct err_detail *detail) MUST_CHECK;

/* One entry of an answer; there: its capture, which is an answer of its own. */
enum err captures_code_put_entry(struct buf *out, enum captures_many_status status,
                                 const struct captures_answer *answer) MUST_CHECK;

/* The next entry; the reader is over all of the answer. ret_answer is set if it is there. */
enum err captures_code_read_entry(struct wire_reader *reader, enum captures_many_status *ret_status,
                                  struct captures_answer *ret_answer) MUST_CHECK;

#endif
