/* Many captures in one answer: small ones cost a round trip each otherwise. */
#include "node/captures/captures_state.h"

enum {
    ALONE_SIZE_MIN = 256 << 10, /* payloads from here on come in pieces, by PEER_RPC_CAPTURE */
    ENTRY_SIZE_MAX = 512,       /* of all that is not description or payload */
};

/* ---- giving ---- */

struct captures_gift {
    struct captures *captures;
    const struct peer *from;
    struct buf *out;
    uint32_t size_max;
    uint32_t given_count;
};

/* The first one is given however long it is: otherwise a question with a small bound would never end. */
static bool has_room(const struct captures_gift *gift, uint64_t size) {
    bool fits = gift->out->size + size + ENTRY_SIZE_MAX <= PEER_RPC_ANSWER_SIZE_MAX;
    return fits && (gift->given_count == 0 || gift->out->size + size <= gift->size_max);
}

static enum err put_capture(struct captures_gift *gift, struct instance_session *session,
                            const struct capture *capture, const struct key *key, const struct block *block,
                            bool is_about) {
    struct captures *captures = gift->captures;
    struct captures_answer answer = {.is_there = true, .size = block->size};
    struct bytes payload;
    buf_clear(&captures->description);
    scratch_clear(&captures->piece);
    enum err err = captures_describe(captures, gift->from, session, capture, block->size, NULL);
    if (err == ERR_OK && !is_about && block->size > 0) {
        err = instance_get(session, key, &payload, NULL);
        if (err == ERR_OK) {
            answer.size = payload.size;
            err = pack_payload_put(&captures->pack_payload, payload, &captures->piece, &answer.is_packed);
        }
        err = err == ERR_OK ? scratch_bytes(&captures->piece, &answer.piece) : err;
    }
    answer.description = buf_bytes(&captures->description);
    if (err == ERR_OK && !has_room(gift, answer.description.size + answer.piece.size)) {
        enum captures_many_status status = gift->given_count > 0 ? CAPTURES_LATER : CAPTURES_ALONE;
        return captures_code_put_entry(gift->out, status, NULL);
    }
    gift->given_count += err == ERR_OK;
    return err == ERR_OK ? captures_code_put_entry(gift->out, CAPTURES_THERE, &answer) : err;
}

/* What cannot be read has a reason that only an answer of its own can tell. */
static enum err put_key(struct captures_gift *gift, const struct ringkey *key, bool is_about) {
    struct captures *captures = gift->captures;
    struct captures_giver *giver = &captures->givers[0];
    struct capture capture;
    struct block block;
    struct key found;
    if (!has_room(gift, 0)) {
        return captures_code_put_entry(gift->out, CAPTURES_LATER, NULL);
    }
    enum err err = captures_locate(captures, key, bytes_of(NULL, 0), &capture, &found, &block, NULL);
    if (err == ERR_NOT_FOUND) {
        return captures_code_put_entry(gift->out, CAPTURES_ABSENT, NULL);
    }
    giver->is_open = false; /* its session is used */
    if (err == ERR_OK && giver->session == NULL) {
        giver->session = instance_session_new(captures->config.instance);
        err = giver->session != NULL ? ERR_OK : ERR_MEMORY;
    }
    bool is_large = err == ERR_OK && !is_about && block.size >= ALONE_SIZE_MIN;
    if (err == ERR_OK && !is_large) {
        enum peer_rpc_read read = gift->given_count == 0 ? PEER_RPC_READ_CAPTURE : PEER_RPC_READ_ON;
        err = peer_rpc_begin_read(captures->config.peer_rpc, gift->from, read, NULL);
        if (err == ERR_BUSY) {
            return err;
        }
        err = err == ERR_OK ? put_capture(gift, giver->session, &capture, &found, &block, is_about) : err;
    }
    return err == ERR_OK && !is_large ? ERR_OK : captures_code_put_entry(gift->out, CAPTURES_ALONE, NULL);
}

enum err captures_give_many(void *context, const struct peer *from, struct bytes in, struct buf *out,
                            struct err_detail *detail) {
    struct captures *captures = context;
    struct captures_many many;
    enum err err = captures_code_read_many(in, &many, detail);
    if (err == ERR_OK && captures->config.may_copy != NULL &&
        !captures->config.may_copy(captures->config.context, from)) {
        err = err_set(detail, ERR_BUSY, "copies are given to another node now");
    }
    err = err == ERR_OK ? captures_prepare(captures) : err;
    struct captures_gift gift = {.captures = captures, .from = from, .out = out, .size_max = many.size_max};
    for (uint32_t i = 0; err == ERR_OK && i < many.count; i++) {
        err = put_key(&gift, &many.keys[i], many.is_about[i]);
    }
    return err;
}

/* ---- taking ---- */

enum err captures_take(struct captures_session *session, const struct peer *from, const struct ringkey *key,
                       bool is_about, const struct captures_answer *answer, struct captured *ret_captured,
                       struct err_detail *detail) {
    struct bytes payload = {0};
    enum err err = ERR_OK;
    if (!is_about && answer->piece.size > 0) {
        err = captures_unpack(session, answer, PEER_RPC_PIECE_SIZE_MAX, &payload);
    }
    if (err != ERR_OK && !captures_err_is_ours(err)) {
        return err_set(detail, ERR_MISMATCH, "a payload that cannot be unpacked");
    }
    if (err == ERR_OK && is_about) {
        err = captures_check(session, key, answer->description, ret_captured, detail);
        ret_captured->document.sum = &ret_captured->sum;
    } else if (err == ERR_OK) {
        err = captures_open(session, key, answer->description, payload, ret_captured, detail);
    }
    if (err == ERR_OK && answer->size != ret_captured->sum.size) {
        err = err_set(detail, ERR_MISMATCH, "an answer about a capture that is none");
    }
    if (err == ERR_OK && captures_is_deleted(session, ret_captured)) {
        err = ERR_DELETED; /* here; the other node need not know of it */
    }
    ret_captured->from = *from;
    ret_captured->holders_count = 1;
    return err;
}
