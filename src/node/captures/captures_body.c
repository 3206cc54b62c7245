/* The body of a capture that is being fetched: pieces go in, in their order; at the end it is checked. */
#include <inttypes.h>
#include <stdio.h>

#include "base/map.h"
#include "node/captures/captures_state.h"

enum { CHUNK_HEAD_SIZE_MAX = 24 };

static bool is_chunked(const struct captures_fetching *fetching) {
    const struct http_head *head = &fetching->session->head.head;
    return fetching->captured->document.head.size > 0 && !fetching->captured->document.is_not_modified &&
           http_head_is_chunked(head);
}

/* What the head announces in chunks becomes one. */
enum err captures_body_begin(struct captures_fetching *fetching) {
    struct captures_session *session = fetching->session;
    char head[CHUNK_HEAD_SIZE_MAX];
    scratch_clear(&session->body);
    fetching->chunk_head_size = 0;
    fetching->givers_count = 0;
    buf_clear(&fetching->marks);
    if (!is_chunked(fetching) || fetching->captured->sum.size == 0) {
        return ERR_OK;
    }
    fetching->chunk_head_size =
        (size_t)snprintf(head, sizeof head, "%" PRIx64 "\r\n", fetching->captured->sum.size);
    return scratch_put(&session->body, bytes_of(head, fetching->chunk_head_size));
}

uint64_t captures_body_size(const struct captures_fetching *fetching) {
    return fetching->session->body.size - fetching->chunk_head_size;
}

enum err captures_unpack(struct captures_session *session, const struct captures_answer *answer,
                         uint32_t size_max, struct bytes *ret_piece) {
    struct bytes piece = answer->piece;
    if (answer->is_packed) {
        scratch_clear(&session->piece);
        enum err err = pack_payload_unpack(&session->pack_payload, piece, size_max, &session->piece, NULL);
        if (err == ERR_OK) {
            err = scratch_bytes(&session->piece, &piece);
        }
        if (err != ERR_OK) {
            return captures_err_is_ours(err) ? err : ERR_INVALID;
        }
    }
    if (piece.size > size_max) {
        return ERR_INVALID;
    }
    *ret_piece = piece;
    return ERR_OK;
}

static void note_giver(struct captures_fetching *fetching, const struct peer *giver, uint64_t size) {
    size_t i = 0;
    while (i < fetching->givers_count && !peer_equal(&fetching->givers[i].peer, giver)) {
        i++;
    }
    if (i == CAPTURES_PEERS_MAX) {
        return;
    }
    if (i == fetching->givers_count) {
        fetching->givers[i].peer = *giver;
        fetching->givers[i].size = 0;
        fetching->givers_count++;
    }
    fetching->givers[i].size += size;
}

enum err captures_body_put(struct captures_fetching *fetching, const struct peer *giver, struct bytes piece) {
    uint64_t left = fetching->captured->sum.size - captures_body_size(fetching);
    if (piece.size > left || (piece.size == 0 && left > 0)) {
        return ERR_INVALID;
    }
    note_giver(fetching, giver, piece.size);
    struct captures_mark mark = {
        .giver = *giver, .size = piece.size, .hash = map_hash(piece, fetching->session->seed)};
    buf_put(&fetching->marks, bytes_of(&mark, sizeof mark)); /* where they are too many, they are not used */
    return scratch_put(&fetching->session->body, piece);
}

void captures_body_doubt(struct captures_fetching *fetching) {
    struct buf swapped = fetching->doubted;
    fetching->doubted = fetching->marks;
    fetching->marks = swapped;
}

void captures_body_settle(struct captures_fetching *fetching) {
    const struct buf *doubted = &fetching->doubted;
    struct bytes payload = fetching->captured->payload;
    struct captures_mark mark;
    struct peer accused = {0};
    size_t offset = 0;
    for (size_t i = 0; doubted->err == ERR_OK && i < doubted->size / sizeof mark; i++) {
        memcpy(&mark, doubted->data + i * sizeof mark, sizeof mark);
        if (mark.size > payload.size - offset) {
            return; /* it was a description that was false */
        }
        struct bytes piece = bytes_slice(payload, offset, offset + mark.size);
        offset += mark.size;
        if (map_hash(piece, fetching->session->seed) != mark.hash && !peer_equal(&mark.giver, &accused)) {
            accused = mark.giver;
            captures_accuse(fetching, &accused, "a false piece of a capture");
        }
    }
}

/* Who gave most is named. */
static void name_givers(const struct captures_fetching *fetching) {
    uint64_t most = 0;
    fetching->captured->holders_count = (uint8_t)fetching->givers_count;
    for (size_t i = 0; i < fetching->givers_count; i++) {
        if (fetching->givers[i].size > most) {
            most = fetching->givers[i].size;
            fetching->captured->from = fetching->givers[i].peer;
        }
    }
}

enum err captures_body_end(struct captures_fetching *fetching) {
    struct captures_session *session = fetching->session;
    struct captured *captured = fetching->captured;
    struct document_sum sum = {.size = captured->sum.size};
    struct bytes body;
    size_t size = (size_t)captures_body_size(fetching);
    if (is_chunked(fetching)) {
        scratch_put(&session->body,
                    fetching->chunk_head_size > 0 ? BYTES("\r\n0\r\n\r\n") : BYTES("0\r\n\r\n"));
    }
    enum err err = scratch_bytes(&session->body, &body);
    if (err != ERR_OK) {
        return err;
    }
    captured->payload = bytes_slice(body, fetching->chunk_head_size, fetching->chunk_head_size + size);
    if (captured->document.is_not_modified) {
        sha256_digest(&session->hasher.sha256, captured->payload, sum.digest);
    } else {
        captured->document.body = body;
        captured->document.is_body_left_out = false;
        document_hasher_run(&session->hasher, &captured->document, &sum);
    }
    name_givers(fetching);
    bool is_equal =
        sum.size == captured->sum.size && memcmp(sum.digest, captured->sum.digest, sizeof sum.digest) == 0;
    return is_equal ? ERR_OK : ERR_MISMATCH;
}
