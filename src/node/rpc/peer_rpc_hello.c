/* Which version is spoken on a line: hellos over streams (docs/protocol/versions.md). */
#include "node/rpc/peer_rpc_state.h"

/* We have TLS, and this line is not in it. The peer may have none, or somebody keeps the two from it. */
static bool hello_is_first_kind(const struct peer_rpc_line *line) {
    return line->peer_rpc->tls != NULL && line->is_open && stream_kind(line->stream) != CHANNEL_TLS;
}

/* On a line that the peer opened there is nothing of ours but answers, until we know what it speaks. */
bool peer_rpc_hello_is_free(const struct peer_rpc_line *line) {
    const struct peer_rpc_config *config = &line->peer_rpc->config;
    bool is_our_hello_out = hello_is_first_kind(line) && line->hello_number != 0;
    return config->dialects == NULL || line->is_settled ||
           (dialects_own(config->dialects)->lowest <= DIALECT_VERSION_FIRST && !is_our_hello_out);
}

bool peer_rpc_hello_is_for_us(const struct peer_rpc_line *line) {
    bool is_awaited = hello_is_first_kind(line) && !line->is_settled && line->hello_number == 0;
    return !is_awaited && !line->is_weak;
}

enum channel_kind peer_rpc_hello_channel(struct peer_rpc *peer_rpc, const struct peer *peer) {
    if (peer_rpc->tls == NULL) {
        return CHANNEL_FIRST;
    }
    struct dialects_known known = dialects_find(peer_rpc->config.dialects, peer);
    return known.is_known && !dialect_has(&known.dialect, DIALECT_TLS) ? CHANNEL_FIRST : CHANNEL_TLS;
}

/* Both have TLS, and the hello, which nobody could change, came without it. */
static bool hello_is_weak(struct peer_rpc_line *line, const struct dialect *dialect) {
    struct peer_rpc *peer_rpc = line->peer_rpc;
    line->is_weak = hello_is_first_kind(line) && dialect_has(dialect, DIALECT_TLS);
    pthread_mutex_lock(&peer_rpc->lock);
    peer_rpc->stat.weak_count += line->is_weak;
    pthread_mutex_unlock(&peer_rpc->lock);
    return line->is_weak;
}

void peer_rpc_hello_begin(struct peer_rpc_line *line) {
    struct peer_rpc *peer_rpc = line->peer_rpc;
    uint8_t memory[DIALECT_HELLO_SIZE_MAX];
    if (peer_rpc->config.dialects == NULL) {
        return;
    }
    struct bytes hello = dialect_write_hello(dialects_own(peer_rpc->config.dialects), true, memory);
    /* If there is no memory for it, there is none for the question that follows, and that is told. */
    if (peer_rpc_line_queue(line, peer_rpc->numbers + 1, PEER_RPC_QUESTION, PEER_RPC_HELLO, hello)) {
        line->hello_number = ++peer_rpc->numbers;
        line->hello_end = line->output.size;
    }
}

/* The peer speaks this; version: in common. False: none is, and people are told. */
static bool hello_agree(struct peer_rpc_line *line, uint16_t version) {
    const struct peer_rpc_config *config = &line->peer_rpc->config;
    char reason[DIALECTS_TEXT_SIZE_MAX];
    line->is_settled = true;
    line->is_refused = version == 0;
    if (line->is_refused && config->refuse != NULL) {
        config->refuse(config->context, &line->peer, dialects_explain(config->dialects, &line->peer, reason));
    }
    return !line->is_refused;
}

enum err peer_rpc_hello_take(struct peer_rpc_line *line, struct bytes question, struct buf *answer,
                             struct err_detail *detail) {
    struct dialects *dialects = line->peer_rpc->config.dialects;
    uint8_t memory[DIALECT_HELLO_SIZE_MAX];
    struct dialect dialect;
    bool wants_answer;
    enum err err = dialect_read_hello(question, &dialect, &wants_answer, detail);
    if (err != ERR_OK) {
        return err;
    }
    (void)hello_agree(line, dialects_hear(dialects, &line->peer, &dialect));
    (void)hello_is_weak(line, &dialect);
    return buf_put(answer, dialect_write_hello(dialects_own(dialects), false, memory));
}

bool peer_rpc_hello_settle(struct peer_rpc_line *line, enum err err, struct bytes answer) {
    struct dialects *dialects = line->peer_rpc->config.dialects;
    struct dialect dialect;
    bool wants_answer;
    if (err == ERR_OK && dialect_read_hello(answer, &dialect, &wants_answer, NULL) != ERR_OK) {
        peer_rpc_line_blame(line, "sent a hello that is none");
        return false;
    }
    /* Not that it cannot answer now, or that it does not want to: that it does not know the question. */
    if (err != ERR_OK && err != ERR_UNSUPPORTED) {
        peer_rpc_line_end(line, ERR_CLOSED);
        return false;
    }
    uint16_t version = err == ERR_OK ? dialects_hear(dialects, &line->peer, &dialect)
                                     : dialects_hear_none(dialects, &line->peer);
    if (!hello_agree(line, version)) {
        peer_rpc_line_end(line, ERR_UNSUPPORTED);
        return false;
    }
    if (err == ERR_OK && hello_is_weak(line, &dialect)) {
        peer_rpc_line_retry(line, CHANNEL_TLS, ERR_CLOSED);
        return false;
    }
    return true;
}

void peer_rpc_hello_miss(struct peer_rpc_line *line) {
    struct dialects *dialects = line->peer_rpc->config.dialects;
    /* If we connected, our hello will be answered: the peer asks when it likes. */
    if (dialects != NULL && line->hello_number == 0) {
        (void)hello_agree(line, dialects_hear_none(dialects, &line->peer));
    }
}
