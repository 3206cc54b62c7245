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
 * Readers take any bytes. Slices borrow from them.
 */
#ifndef MNEMON_NODE_CAPTURES_CAPTURES_CODE_H
#define MNEMON_NODE_CAPTURES_CAPTURES_CODE_H

#include "base/buf.h"
#include "base/ringkey.h"
#include "node/rpc/peer_rpc.h"

enum { CAPTURES_CODE_DESCRIPTION_SIZE_MAX = PEER_RPC_PIECE_SIZE_MAX, CAPTURES_CODE_PEERS_MAX = 8 };

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

#endif
