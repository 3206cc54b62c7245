#include "node/captures/captures.h"

#include <sodium.h>
#include <stdlib.h>

#include "crawl/engine/attest.h"
#include "node/captures/captures_state.h"
#include "web/url/url.h"

enum { TIMEOUT_MS = 2000, PIECE_SIZE_FIRST = 256 << 10 };

struct captures *captures_new(const struct captures_config *config) {
    struct captures *captures = calloc(1, sizeof *captures);
    if (captures == NULL) {
        return NULL;
    }
    captures->config = *config;
    captures->config.timeout_ms = config->timeout_ms > 0 ? config->timeout_ms : TIMEOUT_MS;
    if (config->peer_rpc != NULL) {
        peer_rpc_serve(config->peer_rpc, PEER_RPC_CAPTURE, captures_give, captures);
    }
    return captures;
}

void captures_free(struct captures *captures) {
    captures_give_done(captures);
    free(captures);
}

struct captures_session *captures_session_new(struct captures *captures) {
    struct captures_session *session = calloc(1, sizeof *session);
    if (session == NULL) {
        return NULL;
    }
    session->captures = captures;
    session->piece_size = PIECE_SIZE_FIRST;
    randombytes_buf(&session->seed, sizeof session->seed);
    canon_init(&session->canon);
    buf_init(&session->surt, URL_SIZE_MAX + 16);
    buf_init(&session->question, PEER_RPC_QUESTION_SIZE_MAX);
    buf_init(&session->answer, PEER_RPC_ANSWER_SIZE_MAX);
    buf_init(&session->kept, PEER_RPC_ANSWER_SIZE_MAX);
    buf_init(&session->message, ATTEST_MESSAGE_SIZE_MAX);
    buf_init(&session->description, CAPTURES_CODE_DESCRIPTION_SIZE_MAX);
    const char *directory = captures->config.scratch_directory;
    scratch_init(&session->body, directory, SCRATCH_MEMORY_MAX, UINT64_MAX);
    scratch_init(&session->piece, directory, 2 * PEER_RPC_PIECE_SIZE_MAX, 2 * PEER_RPC_PIECE_SIZE_MAX);
    bool is_ready = document_hasher_init(&session->hasher) == ERR_OK;
    if (pack_payload_init(&session->pack_payload) != ERR_OK) {
        session->pack_payload = (struct pack_payload){0};
        is_ready = false;
    }
    is_ready = payload_init(&session->head) == ERR_OK && is_ready;
    if (!is_ready) {
        captures_session_free(session);
        return NULL;
    }
    return session;
}

void captures_session_free(struct captures_session *session) {
    document_hasher_done(&session->hasher);
    pack_payload_done(&session->pack_payload);
    payload_done(&session->head);
    canon_done(&session->canon);
    buf_done(&session->surt);
    buf_done(&session->question);
    buf_done(&session->answer);
    buf_done(&session->kept);
    buf_done(&session->message);
    buf_done(&session->description);
    scratch_done(&session->body);
    scratch_done(&session->piece);
    free(session);
}
