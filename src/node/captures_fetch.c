/* A capture from whoever of its holders has it, in pieces, and whole or not at all. */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "node/captures_state.h"
#include "store/shelf_code.h"
#include "store/volume.h"

enum {
    FIRST_SIZE = 128 << 10, /* of the payload, with the description: it is asked for of two holders */
    PIECE_SIZE_MIN = 4 << 10,
    TRIES_MAX = 2, /* of one piece with one holder: the second is smaller */
    CHUNK_HEAD_SIZE_MAX = 24,
};

/* One fetch. */
struct fetching {
    struct captures_session *session;
    const struct ringkey *key;
    struct bytes surt;
    bool with_payload;
    struct peer peers[CAPTURES_PEERS_MAX]; /* that are worth asking still, the next first */
    size_t peers_count;
    bool is_alone;       /* all of it from one holder: what several gave did not fit together */
    bool is_mixed;       /* pieces of several holders are in the body */
    bool was_false;      /* somebody gave something false */
    bool tries_again;    /* what failed may go better with the others */
    size_t absent_count; /* holders that do not have it */
    bool has_kept;       /* session->kept is an answer without a signature */
    size_t kept_index;   /* of who gave it */
    uint32_t first_size;
    size_t chunk_head_size; /* before the payload in the body */
    struct captured *captured;
};

/* The trouble is this machine's; nobody else can help. */
static bool is_ours(enum err err) {
    return err == ERR_MEMORY || err == ERR_IO || err == ERR_NO_SPACE;
}

/* An error that another node gave says nothing of this machine, nor of what we have received. */
static enum err of_others(enum err err) {
    return is_ours(err) || err == ERR_MISMATCH ? ERR_REFUSED : err;
}

static void drop(struct fetching *fetching, size_t index) {
    fetching->peers_count--;
    memmove(&fetching->peers[index], &fetching->peers[index + 1],
            (fetching->peers_count - index) * sizeof fetching->peers[0]);
}

/* What he gave is not what he promised. */
static void blame(struct fetching *fetching, size_t index, const char *sentence) {
    const struct captures_config *config = &fetching->session->captures->config;
    fetching->was_false = true;
    if (config->blame != NULL) {
        config->blame(config->context, &fetching->peers[index], sentence);
    }
    drop(fetching, index);
}

/* The next holder to be asked is the first of the list. */
static void put_first(struct fetching *fetching, size_t index) {
    struct peer peer = fetching->peers[index];
    memmove(&fetching->peers[1], &fetching->peers[0], index * sizeof peer);
    fetching->peers[0] = peer;
}

static enum err write_question(struct fetching *fetching, bool wants_description, uint64_t offset,
                               uint32_t size) {
    struct captures_question question = {
        .key = *fetching->key,
        .surt = fetching->surt,
        .wants_description = wants_description,
        .offset = offset,
        .size_max = size,
    };
    buf_clear(&fetching->session->question);
    return captures_code_put_question(&fetching->session->question, &question);
}

/* ---- which of several answers ---- */

/*
 * Who does not have it loses to who does, and a description without a signature to one with: a single holder
 * that leaves the signature out, so as to change what it covers, is not believed while others answer. Two
 * that say the same without one are. On the bulk thread, while the fetching thread waits.
 */
static bool is_good(void *context, size_t index, struct bytes bytes) {
    struct fetching *fetching = context;
    struct buf *kept = &fetching->session->kept;
    struct captures_answer answer;
    struct captures_answer other;
    struct shelf_code_document received;
    if (captures_code_read_answer(bytes, &answer, NULL) != ERR_OK) {
        return true; /* to be blamed */
    }
    fetching->absent_count += !answer.is_there;
    if (!answer.is_there || fetching->is_alone || fetching->peers_count == 1) {
        return answer.is_there;
    }
    if (shelf_code_read_document(answer.description, &received, NULL) != ERR_OK ||
        received.document.signature.size > 0) {
        return true;
    }
    if (fetching->has_kept) {
        return captures_code_read_answer(buf_bytes(kept), &other, NULL) == ERR_OK &&
               bytes_equal(answer.description, other.description);
    }
    buf_clear(kept);
    fetching->has_kept = buf_put(kept, bytes) == ERR_OK;
    fetching->kept_index = index;
    return false;
}

/* The best answer of those who are asked, in session->answer. */
static enum err ask_first(struct fetching *fetching, uint32_t size, size_t *ret_index,
                          struct err_detail *detail) {
    struct captures_session *session = fetching->session;
    const struct captures_config *config = &session->captures->config;
    size_t count = fetching->is_alone ? 1 : fetching->peers_count;
    fetching->has_kept = false;
    enum err err = write_question(fetching, true, 0, size);
    if (err == ERR_OK) {
        err = bulk_ask_any(config->bulk, fetching->peers, count, BULK_CAPTURE, buf_bytes(&session->question),
                           config->timeout_ms, is_good, fetching, &session->answer, ret_index, detail);
    }
    if (err != ERR_OK && fetching->has_kept) {
        struct buf swapped = session->answer;
        session->answer = session->kept;
        session->kept = swapped;
        *ret_index = fetching->kept_index;
        return ERR_OK;
    }
    return of_others(err);
}

/* ---- the body ---- */

static bool is_chunked(const struct fetching *fetching) {
    const struct http_head *head = &fetching->session->head.head;
    return fetching->captured->document.head.size > 0 && !fetching->captured->document.is_not_modified &&
           http_head_is_chunked(head);
}

/* What the head announces in chunks becomes one. */
static enum err begin_body(struct fetching *fetching) {
    struct captures_session *session = fetching->session;
    char head[CHUNK_HEAD_SIZE_MAX];
    scratch_clear(&session->body);
    fetching->chunk_head_size = 0;
    fetching->is_mixed = false;
    if (!is_chunked(fetching) || fetching->captured->sum.size == 0) {
        return ERR_OK;
    }
    fetching->chunk_head_size =
        (size_t)snprintf(head, sizeof head, "%" PRIx64 "\r\n", fetching->captured->sum.size);
    return scratch_put(&session->body, bytes_of(head, fetching->chunk_head_size));
}

static uint64_t received_size(const struct fetching *fetching) {
    return fetching->session->body.size - fetching->chunk_head_size;
}

/* Append the piece. ERR_INVALID where it cannot be one: empty, or more than was asked for. */
static enum err take_piece(struct fetching *fetching, const struct captures_answer *answer,
                           uint32_t size_max) {
    struct captures_session *session = fetching->session;
    struct bytes piece = answer->piece;
    uint64_t left = fetching->captured->sum.size - received_size(fetching);
    if (answer->is_packed) {
        scratch_clear(&session->piece);
        enum err err = squeeze_unpack(&session->squeeze, piece, size_max, &session->piece, NULL);
        if (err == ERR_OK) {
            err = scratch_bytes(&session->piece, &piece);
        }
        if (err != ERR_OK) {
            return is_ours(err) ? err : ERR_INVALID;
        }
    }
    bool is_sound = piece.size <= size_max && piece.size <= left && (piece.size > 0 || left == 0);
    return is_sound ? scratch_put(&session->body, piece) : ERR_INVALID;
}

/* All has come: is it what the key says? ERR_MISMATCH. */
static enum err end_body(struct fetching *fetching) {
    struct captures_session *session = fetching->session;
    struct captured *captured = fetching->captured;
    struct document_sum sum = {.size = captured->sum.size};
    struct bytes body;
    size_t size = (size_t)received_size(fetching);
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
    bool is_equal =
        sum.size == captured->sum.size && memcmp(sum.digest, captured->sum.digest, sizeof sum.digest) == 0;
    return is_equal ? ERR_OK : ERR_MISMATCH;
}

/* ---- asking ---- */

/*
 * Description and first piece, of the first holders at once. ERR_MISMATCH: it was false, its giver has been
 * blamed and is gone from the list.
 */
static enum err begin(struct fetching *fetching, struct err_detail *detail) {
    struct captures_session *session = fetching->session;
    struct captures_answer answer;
    size_t index;
    uint32_t size = fetching->with_payload ? fetching->first_size : 0;
    enum err err = ask_first(fetching, size, &index, detail);
    if (err != ERR_OK) {
        return err;
    }
    struct err_detail reason = {0};
    err = captures_code_read_answer(buf_bytes(&session->answer), &answer, NULL);
    if (err == ERR_OK) {
        err = captures_check(session, fetching->key, answer.description, fetching->captured, &reason);
    }
    bool is_whole = err == ERR_OK && answer.size == fetching->captured->sum.size;
    if (err == ERR_OK && is_whole) {
        err = begin_body(fetching);
    }
    if (err == ERR_OK && is_whole && answer.piece.size > 0) {
        err = take_piece(fetching, &answer, size);
    }
    if (is_ours(err)) {
        return err_set(detail, err, "%s", err_text(err));
    }
    if (err != ERR_OK || !is_whole) {
        blame(fetching, index, reason.err != ERR_OK ? reason.text : "an answer about a capture that is none");
        return ERR_MISMATCH;
    }
    fetching->captured->from = fetching->peers[index];
    put_first(fetching, index);
    return ERR_OK;
}

/* How large pieces may be: the way may be slow, or its rate limited. */
static void learn(struct captures_session *session, bool is_late, uint64_t took_us) {
    uint64_t usual_us = (uint64_t)session->captures->config.timeout_ms * 1000;
    if (is_late) {
        session->piece_size =
            session->piece_size / 4 < PIECE_SIZE_MIN ? PIECE_SIZE_MIN : session->piece_size / 4;
    } else if (took_us < usual_us / 4 && session->piece_size < BULK_PIECE_SIZE_MAX) {
        session->piece_size *= 2;
    }
}

/* One piece of the first holder. ERR_MISMATCH: another size than he who described it said. */
static enum err ask_piece(struct fetching *fetching, bool *ret_is_false) {
    struct captures_session *session = fetching->session;
    const struct captures_config *config = &session->captures->config;
    struct captures_answer answer;
    enum err err = ERR_TIMEOUT;
    uint32_t size = 0;
    for (size_t i = 0; i < TRIES_MAX && err == ERR_TIMEOUT; i++) {
        uint64_t from_us = clock_monotonic_us(&clock_system);
        size = session->piece_size;
        err = write_question(fetching, false, received_size(fetching), size);
        if (err == ERR_OK) {
            err = bulk_ask(config->bulk, &fetching->peers[0], BULK_CAPTURE, buf_bytes(&session->question),
                           config->timeout_ms, &session->answer, NULL);
            err = of_others(err);
        }
        learn(session, err == ERR_TIMEOUT, clock_monotonic_us(&clock_system) - from_us);
    }
    if (err != ERR_OK) {
        return err;
    }
    err = captures_code_read_answer(buf_bytes(&session->answer), &answer, NULL);
    if (err == ERR_OK && !answer.is_there) {
        return ERR_NOT_FOUND;
    }
    if (err == ERR_OK && answer.size != fetching->captured->sum.size) {
        return ERR_MISMATCH;
    }
    if (err == ERR_OK) {
        err = take_piece(fetching, &answer, size);
    }
    *ret_is_false = err != ERR_OK && !is_ours(err);
    return err;
}

/* The rest of the payload, of one holder after the other. ERR_MISMATCH: it is false. */
static enum err go_on(struct fetching *fetching) {
    enum err err = ERR_OK;
    while (received_size(fetching) < fetching->captured->sum.size) {
        bool is_false = false;
        err = ask_piece(fetching, &is_false);
        if (err == ERR_OK) {
            continue;
        }
        if (is_ours(err) || err == ERR_MISMATCH) {
            break;
        }
        if (is_false) {
            blame(fetching, 0, "a piece of a capture that is none");
        } else {
            drop(fetching, 0);
        }
        if (fetching->peers_count == 0 || fetching->is_alone) {
            break;
        }
        fetching->is_mixed = true;
        err = ERR_OK;
    }
    return err == ERR_OK ? end_body(fetching) : err;
}

/* What came was false. Whose fault it is, is plain only where all of it was of one holder. */
static void judge(struct fetching *fetching) {
    if (fetching->is_alone || !fetching->is_mixed) {
        blame(fetching, 0, "a payload that is not that of its digest");
    }
    fetching->is_alone = true;
}

/* Each attempt but the last drops a holder, or is the first of its kind: so they come to an end. */
static enum err attempt(struct fetching *fetching, struct err_detail *detail) {
    enum err err = begin(fetching, detail);
    bool is_slow = err == ERR_TIMEOUT && fetching->first_size > 0 && fetching->with_payload;
    if (is_slow) { /* the description alone, then small pieces */
        fetching->first_size = 0;
        learn(fetching->session, true, 0);
    } else if (err != ERR_OK && err != ERR_MISMATCH && fetching->is_alone) {
        drop(fetching, 0);
    }
    if (err != ERR_OK) {
        fetching->tries_again = !is_ours(err) && (is_slow || err == ERR_MISMATCH || fetching->is_alone);
        return err;
    }
    if (!fetching->with_payload) {
        return ERR_OK;
    }
    err = go_on(fetching);
    if (err == ERR_MISMATCH) {
        judge(fetching);
    }
    fetching->tries_again = err != ERR_OK && !is_ours(err);
    return err;
}

enum err captures_fetch_at(struct captures_session *session, const struct peer *peers, size_t peers_count,
                           const struct ringkey *key, struct bytes surt, bool with_payload,
                           struct captured *ret_captured, struct err_detail *detail) {
    struct captured captured;
    struct fetching fetching = {
        .session = session,
        .key = key,
        .surt = surt,
        .with_payload = with_payload,
        .peers_count = peers_count < CAPTURES_PEERS_MAX ? peers_count : CAPTURES_PEERS_MAX,
        .first_size = FIRST_SIZE,
        .captured = &captured,
    };
    memcpy(fetching.peers, peers, fetching.peers_count * sizeof peers[0]);
    enum err err = ERR_UNREACHABLE;
    bool tries_again = true;
    while (tries_again && fetching.peers_count > 0) {
        fetching.tries_again = false;
        err = attempt(&fetching, detail);
        tries_again = fetching.tries_again;
    }
    if (err == ERR_OK) {
        *ret_captured = captured;
        ret_captured->document.sum = &ret_captured->sum;
        return ERR_OK;
    }
    if (fetching.was_false) {
        return err_set(detail, ERR_MISMATCH, "what other nodes gave is not the capture");
    }
    if (fetching.absent_count > 0) {
        return err_set(detail, ERR_NOT_FOUND, "no other node has the capture");
    }
    return err_set(detail, err, "no other node gave the capture: %s", err_text(err));
}

enum err captures_fetch(struct captures_session *session, const struct peer *peers, size_t peers_count,
                        const struct ringkey *key, bool with_payload, struct captured *ret_captured,
                        struct err_detail *detail) {
    return captures_fetch_at(session, peers, peers_count, key, bytes_of(NULL, 0), with_payload, ret_captured,
                             detail);
}
