/* A capture from any of its holders that has it, in pieces, and whole or not at all. */
#include <stdio.h>

#include "base/clock.h"
#include "crawl/engine/attest.h"
#include "node/captures/captures_state.h"
#include "store/document/attested.h"
#include "store/remote/backend_code.h"
#include "store/volume/volume.h"
#include "warc/request_key.h"
#include "web/url/surt.h"

/* ---- is the description of a capture true? ---- */

static enum err captures_refuse(struct err_detail *detail, const char *sentence) {
    return err_set(detail, ERR_MISMATCH, "%s", sentence);
}

/* URL, time and digest must give the key. */
static enum err check_key(struct captures_session *session, const struct ringkey *key,
                          const struct document *document, const struct document_sum *sum,
                          struct err_detail *detail) {
    uint8_t place[RINGKEY_POSITION_SIZE];
    buf_clear(&session->surt);
    buf_clear(&session->url);
    if (document->url.size == 0 ||
        request_key_put_url(&session->url, document->url, document->request) != ERR_OK ||
        canon_run(&session->canon, buf_bytes(&session->url), NULL) != ERR_OK ||
        surt_put(&session->surt, &session->canon) != ERR_OK) {
        return captures_refuse(detail, "a capture of no URL");
    }
    position_of_surt(&session->hasher.sha256, buf_bytes(&session->surt), session->captures->config.mapping,
                     place);
    struct ringkey given = ringkey_make(place, document->time_us, sum->digest);
    return ringkey_compare(&given, key) == 0 ? ERR_OK
                                             : captures_refuse(detail, "another capture than was asked for");
}

/*
 * A request that no signature covers may be anybody's: it is left out. If nobody signed anything, it is
 * believed if the head is (is_good()).
 */
static enum err check_signatures(struct captures_session *session, struct captured *captured,
                                 struct err_detail *detail) {
    struct document *document = &captured->document;
    bool covers_request = true;
    enum err err = ERR_OK;
    /* What this program cannot check says nothing here, and goes on as it came. */
    captured->is_signed = document->signature.size > 0 && !attested_is_later(document->signature);
    captured->is_imported = document->imported.size > 0 && !attested_is_later(document->imported);
    if (captured->is_signed) {
        err = attest_verify(&session->hasher.sha256, &session->message, document, captured->signer,
                            &covers_request, detail);
    }
    if (err == ERR_OK && captured->is_imported) {
        err = attest_verify_import(&session->hasher.sha256, &session->message, document, captured->importer,
                                   detail);
        covers_request = true;
    }
    if (err == ERR_OK && !covers_request) {
        document->request = bytes_of(NULL, 0);
    }
    return err;
}

enum err captures_check(struct captures_session *session, const struct ringkey *key, struct bytes description,
                        struct captured *ret_captured, struct err_detail *detail) {
    struct backend_code_document received;
    buf_clear(&session->description);
    enum err err = buf_put(&session->description, description);
    if (err != ERR_OK) {
        return err;
    }
    if (backend_code_read_document(buf_bytes(&session->description), &received, NULL) != ERR_OK ||
        received.form != BACKEND_CODE_LEFT_OUT) {
        return captures_refuse(detail, "a description of a capture that is none");
    }
    *ret_captured = (struct captured){.document = received.document, .sum = received.sum};
    struct document *document = &ret_captured->document;
    document->sum = &ret_captured->sum;
    bool is_whole_head =
        document->head.size == 0 || record_split(&session->head, document->head) == document->head.size;
    if (!is_whole_head || (document->is_not_modified && document->head.size == 0)) {
        return captures_refuse(detail, "a capture with an HTTP head that is none");
    }
    err = check_key(session, key, document, &ret_captured->sum, detail);
    ret_captured->surt = buf_bytes(&session->surt);
    ret_captured->key_url = buf_bytes(&session->url);
    return err == ERR_OK ? check_signatures(session, ret_captured, detail) : err;
}

enum {
    FIRST_SIZE = 128 << 10, /* of the payload, with the description: it is asked for of two holders */
    PIECE_SIZE_MIN = 4 << 10,
    TRIES_MAX = 2, /* of one piece with one holder: the second is smaller */
    SEVERAL_SIZE_MIN = 512 << 10,
    MARKS_SIZE_MAX = 1 << 20,
};

/* The trouble is this machine's; nobody else can help. */
bool captures_err_is_ours(enum err err) {
    return err == ERR_MEMORY || err == ERR_IO || err_is_full(err) || err == ERR_FILES || err == ERR_DELETED;
}

/* An error that another node gave says nothing of this machine, nor of what we have received. */
enum err captures_err_of_others(enum err err) {
    return captures_err_is_ours(err) || err == ERR_MISMATCH ? ERR_REFUSED : err;
}

/* ---- the list of holders ---- */

void captures_drop(struct captures_fetching *fetching, size_t index) {
    size_t rest_count = --fetching->peers_count - index;
    memmove(&fetching->peers[index], &fetching->peers[index + 1], rest_count * sizeof fetching->peers[0]);
    memmove(&fetching->levels[index], &fetching->levels[index + 1], rest_count);
}

void captures_accuse(struct captures_fetching *fetching, const struct peer *peer, const char *sentence) {
    const struct captures_config *config = &fetching->session->captures->config;
    const struct captures_request *request = fetching->request;
    char given[ERR_TEXT_SIZE_MAX];
    snprintf(given, sizeof given, "gives %.200s", sentence);
    if (request->blame != NULL) {
        request->blame(request->context, peer, given);
    } else if (config->blame != NULL) {
        config->blame(config->context, peer, given);
    }
}

/* What the holder gave is not what it promised. */
void captures_blame(struct captures_fetching *fetching, size_t index, const char *sentence) {
    fetching->was_false = true;
    captures_accuse(fetching, &fetching->peers[index], sentence);
    captures_drop(fetching, index);
}

/* The next holder to be asked is the first of the list. */
static void put_first(struct captures_fetching *fetching, size_t index) {
    struct peer peer = fetching->peers[index];
    uint8_t level = fetching->levels[index];
    memmove(&fetching->peers[1], &fetching->peers[0], index * sizeof peer);
    memmove(&fetching->levels[1], &fetching->levels[0], index);
    fetching->peers[0] = peer;
    fetching->levels[0] = level;
}

/* Whoever was asked already, or is better not asked at all. */
static bool is_left_out(const struct captures_fetching *fetching, const struct peer *peer) {
    const struct captures_request *request = fetching->request;
    for (size_t i = 0; i < fetching->known_count; i++) {
        if (peer_equal(&fetching->known[i], peer)) {
            return true;
        }
    }
    return request->avoids != NULL && request->avoids(request->context, peer);
}

void captures_note_referral(struct captures_fetching *fetching, size_t index,
                            const struct captures_answer *answer) {
    uint8_t level = fetching->levels[index];
    fetching->was_referred = true;
    for (size_t i = 0; i < answer->peers_count && level < CAPTURES_LEVELS_MAX; i++) {
        const struct peer *peer = &answer->peers[i];
        if (fetching->known_count < CAPTURES_HAND_PEERS_MAX && !is_left_out(fetching, peer)) {
            fetching->known[fetching->known_count++] = *peer;
            fetching->named[fetching->named_count] = *peer;
            fetching->named_levels[fetching->named_count++] = (uint8_t)(level + 1);
        }
    }
}

void captures_adopt(struct captures_fetching *fetching) {
    for (size_t i = 0; i < fetching->named_count && fetching->peers_count < CAPTURES_PEERS_MAX; i++) {
        fetching->peers[fetching->peers_count] = fetching->named[i];
        fetching->levels[fetching->peers_count++] = fetching->named_levels[i];
    }
    fetching->named_count = 0;
}

/* ---- questions ---- */

enum err captures_put_question(struct captures_fetching *fetching, struct buf *out, bool wants_description,
                               uint64_t offset, uint32_t size) {
    const struct captures_request *request = fetching->request;
    struct captures_question question = {
        .key = *request->key,
        .surt = request->surt,
        .wants_description = wants_description,
        .offset = offset,
        .size_max = size,
    };
    if (request->service == PEER_RPC_HAND) {
        question.address = peer_rpc_address(fetching->session->captures->config.peer_rpc);
    }
    buf_clear(out);
    return captures_code_put_question(out, &question);
}

uint32_t captures_time_left_ms(const struct captures_fetching *fetching) {
    uint32_t timeout_ms = fetching->session->captures->config.timeout_ms;
    uint64_t deadline_us = fetching->request->deadline_us;
    if (deadline_us == 0) {
        return timeout_ms;
    }
    uint64_t now_us = clock_monotonic_us(&clock_system);
    uint64_t left_ms = deadline_us > now_us ? (deadline_us - now_us) / 1000 : 0;
    return left_ms < timeout_ms ? (uint32_t)left_ms : timeout_ms;
}

/* ---- which of several answers ---- */

/*
 * A holder that does not have it loses to one that does, and a description without a signature to one with: a
 * single holder that leaves the signature out, so as to change what it covers, is not believed while others
 * answer. Two that say the same without one are. On the thread of peer_rpc, while the fetching thread waits.
 */
static bool is_good(void *context, size_t index, struct bytes bytes) {
    struct captures_fetching *fetching = context;
    struct buf *kept = &fetching->session->kept;
    struct captures_answer answer;
    struct captures_answer other;
    struct backend_code_document received;
    if (captures_code_read_answer(bytes, &answer, NULL) != ERR_OK) {
        return true; /* to be blamed */
    }
    if (answer.is_referral && fetching->request->service == PEER_RPC_HAND) {
        captures_note_referral(fetching, index, &answer);
        return false;
    }
    fetching->absent_count += !answer.is_there;
    if (!answer.is_there || fetching->is_alone || fetching->peers_count == 1) {
        return answer.is_there;
    }
    if (backend_code_read_document(answer.description, &received, NULL) != ERR_OK ||
        received.document.signature.size > 0 || received.document.imported.size > 0) {
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

/* The best answer of the peers that are asked, in session->answer. */
static enum err ask_first(struct captures_fetching *fetching, uint32_t size, size_t *ret_index,
                          struct err_detail *detail) {
    struct captures_session *session = fetching->session;
    size_t count = fetching->is_alone ? 1 : fetching->peers_count;
    fetching->has_kept = false;
    enum err err = captures_put_question(fetching, &session->question, true, 0, size);
    if (err == ERR_OK) {
        err = peer_rpc_ask_any(session->captures->config.peer_rpc, fetching->peers, count,
                               fetching->request->service, buf_bytes(&session->question),
                               captures_time_left_ms(fetching), is_good, fetching, &session->answer,
                               ret_index, detail);
    }
    if (err != ERR_OK && fetching->has_kept) {
        struct buf swapped = session->answer;
        session->answer = session->kept;
        session->kept = swapped;
        *ret_index = fetching->kept_index;
        return ERR_OK;
    }
    return captures_err_of_others(err);
}

/* ---- asking ---- */

/*
 * With the description, so much of the payload. It is asked of two holders, which on the ring saves a way
 * there and back; in the crowd what comes twice would be taken from others.
 */
static uint32_t first_size(const struct captures_fetching *fetching) {
    bool comes_once = fetching->is_alone || fetching->peers_count == 1;
    bool is_wanted = !fetching->request->is_about && !fetching->is_slow;
    return is_wanted && (comes_once || fetching->request->service == PEER_RPC_CAPTURE) ? FIRST_SIZE : 0;
}

/* The first piece, if one came with the description. */
static enum err take_first(struct captures_fetching *fetching, const struct captures_answer *answer,
                           size_t index, uint32_t size) {
    struct bytes piece;
    enum err err = captures_body_begin(fetching);
    if (err == ERR_OK && answer->piece.size > 0) {
        err = captures_unpack(fetching->session, answer, size, &piece);
        err = err == ERR_OK ? captures_body_put(fetching, &fetching->peers[index], piece) : err;
    }
    return err;
}

bool captures_is_deleted(const struct captures_session *session, const struct captured *captured) {
    struct instance *instance = session->captures->config.instance;
    const struct captures_config *config = &session->captures->config;
    bool is_refused = config->refuses != NULL && config->refuses(config->context, captured);
    return is_refused || (instance != NULL && instance_is_deleted(instance, captured->surt, captured->key_url,
                                                                  captured->document.time_us));
}

/*
 * Description and first piece, of the first holders at once. ERR_MISMATCH: it was false, its giver has been
 * blamed and is gone from the list. ERR_PERMISSION: it is gone from it since the caller does not want what it
 * described.
 */
static enum err captures_begin(struct captures_fetching *fetching, struct err_detail *detail) {
    struct captures_session *session = fetching->session;
    const struct captures_request *request = fetching->request;
    struct captures_answer answer;
    size_t index;
    uint32_t size = first_size(fetching);
    enum err err = ask_first(fetching, size, &index, detail);
    if (err != ERR_OK) {
        return err;
    }
    struct err_detail reason = {0};
    err = captures_code_read_answer(buf_bytes(&session->answer), &answer, NULL);
    if (err == ERR_OK) {
        err = captures_check(session, request->key, answer.description, fetching->captured, &reason);
    }
    if (err == ERR_OK && request->surt.size > 0 && !bytes_equal(fetching->captured->surt, request->surt)) {
        /* If the position is that of a host, all of its URLs have it. */
        err = err_set(&reason, ERR_MISMATCH, "a capture of another URL than was asked for");
    }
    if (err == ERR_OK && captures_is_deleted(session, fetching->captured)) {
        err = ERR_DELETED; /* here; the other node need not know of it */
    }
    bool is_whole = err == ERR_OK && answer.size == fetching->captured->sum.size;
    bool is_taken =
        !is_whole || request->takes == NULL || request->takes(request->context, fetching->captured);
    if (is_whole && is_taken) {
        err = take_first(fetching, &answer, index, size);
    }
    if (captures_err_is_ours(err)) {
        return err_set(detail, err, "%s", err_text(err));
    }
    if (err != ERR_OK || !is_whole) {
        captures_blame(fetching, index,
                       reason.err != ERR_OK ? reason.text : "an answer about a capture that is none");
        return ERR_MISMATCH;
    }
    if (!is_taken) {
        fetching->was_refused = true;
        captures_drop(fetching, index);
        return ERR_PERMISSION;
    }
    fetching->captured->from = fetching->peers[index];
    fetching->captured->holders_count = 1;
    put_first(fetching, index);
    return ERR_OK;
}

/* How large pieces may be: the way may be slow, or its rate limited. */
static void captures_learn(struct captures_session *session, bool is_late, uint64_t took_us) {
    uint64_t usual_us = (uint64_t)session->captures->config.timeout_ms * 1000;
    if (is_late) {
        session->piece_size =
            session->piece_size / 4 < PIECE_SIZE_MIN ? PIECE_SIZE_MIN : session->piece_size / 4;
    } else if (took_us < usual_us / 4 && session->piece_size < PEER_RPC_PIECE_SIZE_MAX) {
        session->piece_size *= 2;
    }
}

/* The answer about one piece of the first holder. ERR_MISMATCH: another size than the description said.
 */
static enum err take_piece(struct captures_fetching *fetching, uint32_t size, bool *ret_is_false) {
    struct captures_session *session = fetching->session;
    struct captures_answer answer;
    struct bytes piece;
    enum err err = captures_code_read_answer(buf_bytes(&session->answer), &answer, NULL);
    if (err == ERR_OK && answer.is_referral && fetching->request->service == PEER_RPC_HAND) {
        captures_note_referral(fetching, 0, &answer);
        return ERR_BUSY;
    }
    if (err == ERR_OK && !answer.is_there) {
        return ERR_NOT_FOUND;
    }
    if (err == ERR_OK && answer.size != fetching->captured->sum.size) {
        return ERR_MISMATCH;
    }
    if (err == ERR_OK) {
        err = captures_unpack(session, &answer, size, &piece);
    }
    if (err == ERR_OK) {
        err = captures_body_put(fetching, &fetching->peers[0], piece);
    }
    *ret_is_false = err != ERR_OK && !captures_err_is_ours(err);
    return err;
}

static enum err ask_piece(struct captures_fetching *fetching, bool *ret_is_false) {
    struct captures_session *session = fetching->session;
    enum err err = ERR_TIMEOUT;
    uint32_t size = 0;
    for (size_t i = 0; i < TRIES_MAX && err == ERR_TIMEOUT && captures_time_left_ms(fetching) > 0; i++) {
        uint64_t from_us = clock_monotonic_us(&clock_system);
        size = session->piece_size;
        err = captures_put_question(fetching, &session->question, false, captures_body_size(fetching), size);
        if (err == ERR_OK) {
            err = peer_rpc_ask(session->captures->config.peer_rpc, &fetching->peers[0],
                               fetching->request->service, buf_bytes(&session->question),
                               captures_time_left_ms(fetching), &session->answer, NULL);
            err = captures_err_of_others(err);
        }
        captures_learn(session, err == ERR_TIMEOUT, clock_monotonic_us(&clock_system) - from_us);
    }
    return err == ERR_OK ? take_piece(fetching, size, ret_is_false) : err;
}

/* The rest of the payload, of one holder after the other. ERR_MISMATCH: it is false. */
static enum err captures_go_on(struct captures_fetching *fetching) {
    enum err err = ERR_OK;
    while (captures_body_size(fetching) < fetching->captured->sum.size) {
        bool is_false = false;
        if (fetching->peers_count == 0) {
            return ERR_UNREACHABLE;
        }
        err = ask_piece(fetching, &is_false);
        if (err == ERR_OK) {
            continue;
        }
        if (captures_err_is_ours(err) || err == ERR_MISMATCH) {
            break;
        }
        if (is_false) {
            captures_blame(fetching, 0, "a piece of a capture that is none");
        } else {
            captures_drop(fetching, 0);
        }
        captures_adopt(fetching);
        if (fetching->peers_count == 0 || fetching->is_alone) {
            break;
        }
        err = ERR_OK;
    }
    return err == ERR_OK ? captures_body_end(fetching) : err;
}

/* Several holders give a large payload at once; but if many nodes want it, each takes from one. */
static bool is_for_several(const struct captures_fetching *fetching) {
    return fetching->request->service == PEER_RPC_HAND && fetching->peers_count > 1 && !fetching->is_alone &&
           !fetching->was_referred &&
           fetching->captured->sum.size - captures_body_size(fetching) > SEVERAL_SIZE_MIN;
}

/* What came was false. The culprit is plain at once only if all of it came from one holder. */
static void captures_judge(struct captures_fetching *fetching) {
    if (fetching->givers_count > 1 && !fetching->is_alone) {
        captures_body_doubt(fetching);
    } else if (fetching->peers_count > 0) {
        captures_blame(fetching, 0, "a payload that is not that of its digest");
    }
    fetching->is_alone = true;
}

/* The beginning failed. */
static void begin_again(struct captures_fetching *fetching, enum err err) {
    bool is_slow = err == ERR_TIMEOUT && first_size(fetching) > 0;
    bool is_gone =
        err == ERR_MISMATCH || err == ERR_PERMISSION; /* the holder that gave that is dropped already */
    if (is_slow) {                                    /* the description alone, then small pieces */
        fetching->is_slow = true;
        captures_learn(fetching->session, true, 0);
    } else if (!is_gone && fetching->is_alone) {
        captures_drop(fetching, 0);
    } else if (!is_gone && fetching->named_count > 0) {
        fetching->peers_count = 0; /* all of them were asked */
    }
    fetching->tries_again =
        !captures_err_is_ours(err) && (is_slow || is_gone || fetching->is_alone || fetching->named_count > 0);
    captures_adopt(fetching);
}

/* Each attempt but the last drops a holder, or is the first of its kind: so they come to an end. */
static enum err attempt(struct captures_fetching *fetching, struct err_detail *detail) {
    enum err err = captures_begin(fetching, detail);
    if (err != ERR_OK) {
        begin_again(fetching, err);
        return err;
    }
    if (fetching->request->is_about) {
        return ERR_OK;
    }
    err = is_for_several(fetching) ? captures_pieces_run(fetching) : ERR_OK;
    err = err == ERR_OK ? captures_go_on(fetching) : err;
    if (err == ERR_MISMATCH) {
        captures_judge(fetching);
    }
    fetching->tries_again = err != ERR_OK && !captures_err_is_ours(err);
    return err;
}

static enum err captures_explain(const struct captures_fetching *fetching, enum err err,
                                 struct err_detail *detail) {
    if (fetching->was_referred && !captures_err_is_ours(err)) {
        return err_set(detail, ERR_BUSY, "other nodes have the capture and are busy");
    }
    if (fetching->was_false) {
        return err_set(detail, ERR_MISMATCH, "what other nodes gave is not the capture");
    }
    if (fetching->was_refused) {
        return err_set(detail, ERR_PERMISSION, "nobody known vouches for the capture");
    }
    if (fetching->absent_count > 0) {
        return err_set(detail, ERR_NOT_FOUND, "no other node has the capture");
    }
    return err_set(detail, err, "no other node gave the capture: %s", err_text(err));
}

enum err captures_fetch_by(struct captures_session *session, const struct captures_request *request,
                           struct captured *ret_captured, struct err_detail *detail) {
    struct captured captured;
    size_t peers_max = request->service == PEER_RPC_HAND ? CAPTURES_HAND_PEERS_MAX : CAPTURES_PEERS_MAX;
    size_t peers_count = request->peers_count < peers_max ? request->peers_count : peers_max;
    struct captures_fetching fetching = {
        .session = session,
        .request = request,
        .captured = &captured,
        .peers_count = peers_count,
        .known_count = peers_count,
    };
    memcpy(fetching.peers, request->peers, peers_count * sizeof fetching.peers[0]);
    memcpy(fetching.known, request->peers, peers_count * sizeof fetching.known[0]);
    buf_init(&fetching.marks, MARKS_SIZE_MAX);
    buf_init(&fetching.doubted, MARKS_SIZE_MAX);
    enum err err = ERR_UNREACHABLE;
    bool tries_again = true;
    while (tries_again && fetching.peers_count > 0) {
        if (captures_time_left_ms(&fetching) == 0) {
            err = ERR_TIMEOUT;
            break;
        }
        fetching.tries_again = false;
        err = attempt(&fetching, detail);
        tries_again = fetching.tries_again;
    }
    if (err == ERR_OK && !request->is_about) {
        captures_body_settle(&fetching);
    }
    buf_done(&fetching.marks);
    buf_done(&fetching.doubted);
    if (err != ERR_OK) {
        return captures_explain(&fetching, err, detail);
    }
    *ret_captured = captured;
    ret_captured->document.sum = &ret_captured->sum;
    return ERR_OK;
}

enum err captures_fetch_at(struct captures_session *session, const struct peer *peers, size_t peers_count,
                           const struct ringkey *key, struct bytes surt, bool with_payload,
                           struct captured *ret_captured, struct err_detail *detail) {
    struct captures_request request = {
        .peers = peers,
        .peers_count = peers_count,
        .key = key,
        .surt = surt,
        .is_about = !with_payload,
        .service = PEER_RPC_CAPTURE,
    };
    return captures_fetch_by(session, &request, ret_captured, detail);
}

enum err captures_fetch(struct captures_session *session, const struct peer *peers, size_t peers_count,
                        const struct ringkey *key, bool with_payload, struct captured *ret_captured,
                        struct err_detail *detail) {
    return captures_fetch_at(session, peers, peers_count, key, bytes_of(NULL, 0), with_payload, ret_captured,
                             detail);
}

/* ---- what is here already ---- */

enum err captures_open(struct captures_session *session, const struct ringkey *key, struct bytes description,
                       struct bytes payload, struct captured *ret_captured, struct err_detail *detail) {
    struct captured captured;
    struct captures_fetching fetching = {.session = session, .captured = &captured};
    struct peer nobody = {0};
    enum err err = captures_check(session, key, description, &captured, detail);
    if (err == ERR_OK && captured.sum.size != payload.size) {
        err = err_set(detail, ERR_MISMATCH, "a payload of another size");
    }
    if (err == ERR_OK) {
        err = captures_body_begin(&fetching);
    }
    if (err == ERR_OK && payload.size > 0) {
        err = captures_body_put(&fetching, &nobody, payload);
    }
    if (err == ERR_OK) {
        err = captures_body_end(&fetching);
    }
    if (err != ERR_OK) {
        return err;
    }
    *ret_captured = captured;
    ret_captured->document.sum = &ret_captured->sum;
    ret_captured->holders_count = 0;
    return ERR_OK;
}
