#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/map.h"
#include "node/captures/captures_state.h"
#include "run/bell.h"

/* The body of a capture that is being fetched: pieces go in, in their order; at the end it is checked. */

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
    buf_put(&fetching->marks, bytes_of(&mark, sizeof mark)); /* if they are too many, they are not used */
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

/* The holder that gave most is named. */
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

/*
 * A large payload from several holders at once.
 *
 *      body        | 0 | 1 | 2 |                       what has come without a gap, in the session's scratch
 *      window                  | . | 4 | . | 6 | . |   pieces that came before their turn wait here
 *      lanes                     A       B       C     each asks one holder for one piece at a time
 *
 * The fetching thread chooses pieces, takes answers apart and appends; the thread of peer_rpc only asks and
 * wakes it up. A lane whose holder fails goes on with another one that is not in use; its piece is free
 * again. A piece that is late is asked of a second holder. The lanes are left behind when the fetch ends
 * before their answers: so they live on the heap, and the last to let go frees them.
 */

enum {
    LANES_COUNT = 4,
    WINDOW_COUNT = 2 * LANES_COUNT,
    PIECE_SIZE = 256 << 10,
    LOOK_MS = 50, /* at lanes that are late */
    LATE_FACTOR = 4,
};
static const uint64_t LATE_US_MIN = 200000;

struct lane {
    struct gathering *gathering;
    struct peer peer;
    bool has_peer;
    bool is_over;     /* its holder is too slow for pieces of this size */
    bool is_asking;   /* until its answer is taken */
    bool is_answered; /* lock */
    uint64_t piece;   /* that it asks for */
    uint64_t asked_at_us;
    uint32_t timeout_ms;
    struct buf question;
    struct buf answer; /* lock, while it asks */
    enum err err;      /* likewise */
};

struct gathering {
    struct peer_rpc *peer_rpc;
    enum peer_rpc_service service;
    pthread_mutex_t lock;
    struct bell answered;
    unsigned users_count; /* lock: the fetching thread, and each lane that asks */
    struct lane lanes[LANES_COUNT];

    /* The fetching thread's. */
    uint64_t start; /* in the payload, of piece 0 */
    uint64_t pieces_count;
    uint64_t next;     /* piece that the body lacks */
    uint64_t usual_us; /* of a piece */
    struct {
        bool is_there;
        struct buf bytes;
        struct peer giver;
    } window[WINDOW_COUNT]; /* piece modulo WINDOW_COUNT */
};

/* ---- life ---- */

static struct gathering *gathering_new(const struct captures_fetching *fetching) {
    struct gathering *gathering = calloc(1, sizeof *gathering);
    if (gathering == NULL) {
        return NULL;
    }
    gathering->peer_rpc = fetching->session->captures->config.peer_rpc;
    gathering->service = fetching->request->service;
    gathering->users_count = 1;
    gathering->start = captures_body_size(fetching);
    gathering->pieces_count = (fetching->captured->sum.size - gathering->start + PIECE_SIZE - 1) / PIECE_SIZE;
    pthread_mutex_init(&gathering->lock, NULL);
    for (size_t i = 0; i < LANES_COUNT; i++) {
        gathering->lanes[i].gathering = gathering;
        buf_init(&gathering->lanes[i].question, PEER_RPC_QUESTION_SIZE_MAX);
        buf_init(&gathering->lanes[i].answer, PEER_RPC_ANSWER_SIZE_MAX);
    }
    for (size_t i = 0; i < WINDOW_COUNT; i++) {
        buf_init(&gathering->window[i].bytes, PIECE_SIZE);
    }
    return gathering;
}

static void gathering_free(struct gathering *gathering) {
    for (size_t i = 0; i < LANES_COUNT; i++) {
        buf_done(&gathering->lanes[i].question);
        buf_done(&gathering->lanes[i].answer);
    }
    for (size_t i = 0; i < WINDOW_COUNT; i++) {
        buf_done(&gathering->window[i].bytes);
    }
    pthread_mutex_destroy(&gathering->lock);
    free(gathering);
}

/* One user less; the lock is held, and given back. */
static void pieces_let_go(struct gathering *gathering) {
    ASSERT(gathering->users_count > 0);
    bool is_last = --gathering->users_count == 0;
    pthread_mutex_unlock(&gathering->lock);
    if (is_last) {
        gathering_free(gathering);
    }
}

/* ---- the thread of peer_rpc ---- */

static void pieces_on_done(void *context, enum err err, struct bytes answer) {
    struct lane *lane = context;
    struct gathering *gathering = lane->gathering;
    pthread_mutex_lock(&gathering->lock);
    buf_clear(&lane->answer);
    lane->err = err == ERR_OK ? buf_put(&lane->answer, answer) : captures_err_of_others(err);
    lane->is_answered = true;
    bell_ring(&gathering->answered);
    pieces_let_go(gathering);
}

static void pieces_ask(void *context) {
    struct lane *lane = context;
    struct gathering *gathering = lane->gathering;
    enum err err = peer_rpc_call(gathering->peer_rpc, &lane->peer, gathering->service,
                                 buf_bytes(&lane->question), lane->timeout_ms, pieces_on_done, lane);
    if (err != ERR_OK) {
        pieces_on_done(lane, err, bytes_of(NULL, 0));
    }
}

/* ---- which piece ---- */

static uint32_t piece_size(const struct captures_fetching *fetching, const struct gathering *gathering,
                           uint64_t piece) {
    uint64_t left = fetching->captured->sum.size - gathering->start - piece * PIECE_SIZE;
    return left < PIECE_SIZE ? (uint32_t)left : PIECE_SIZE;
}

static unsigned count_askers(const struct gathering *gathering, uint64_t piece, uint64_t *ret_asked_at_us) {
    unsigned count = 0;
    for (size_t i = 0; i < LANES_COUNT; i++) {
        const struct lane *lane = &gathering->lanes[i];
        if (lane->is_asking && lane->piece == piece) {
            *ret_asked_at_us = lane->asked_at_us;
            count++;
        }
    }
    return count;
}

/* The first that nobody gives; else the first that is late. False: there is none to ask for now. */
static bool choose_piece(const struct gathering *gathering, uint64_t now_us, uint64_t *ret_piece) {
    uint64_t usual_us = gathering->usual_us * LATE_FACTOR;
    uint64_t late_us = usual_us > LATE_US_MIN ? usual_us : LATE_US_MIN;
    for (int pass = 0; pass < 2; pass++) {
        for (uint64_t i = gathering->next; i < gathering->pieces_count && i < gathering->next + WINDOW_COUNT;
             i++) {
            uint64_t asked_at_us = 0;
            if (gathering->window[i % WINDOW_COUNT].is_there) {
                continue;
            }
            unsigned askers_count = count_askers(gathering, i, &asked_at_us);
            bool is_late = askers_count == 1 && now_us - asked_at_us > late_us;
            if (askers_count == 0 || (pass == 1 && is_late)) {
                *ret_piece = i;
                return true;
            }
        }
    }
    return false;
}

/* ---- which holder to ask ---- */

static bool is_in_use(const struct gathering *gathering, const struct peer *peer) {
    for (size_t i = 0; i < LANES_COUNT; i++) {
        if (gathering->lanes[i].has_peer && peer_equal(&gathering->lanes[i].peer, peer)) {
            return true;
        }
    }
    return false;
}

/* A holder of the list that no lane has or had. */
static bool choose_peer(const struct captures_fetching *fetching, const struct gathering *gathering,
                        struct lane *lane) {
    for (size_t i = 0; i < fetching->peers_count && !lane->has_peer; i++) {
        if (!is_in_use(gathering, &fetching->peers[i])) {
            lane->peer = fetching->peers[i];
            lane->has_peer = true;
        }
    }
    return lane->has_peer;
}

static size_t find_peer(const struct captures_fetching *fetching, const struct peer *peer) {
    size_t index = 0;
    while (index < fetching->peers_count && !peer_equal(&fetching->peers[index], peer)) {
        index++;
    }
    return index;
}

/* ---- the fetching thread ---- */

static enum err start_lane(struct captures_fetching *fetching, struct gathering *gathering, struct lane *lane,
                           uint64_t piece) {
    uint64_t offset = gathering->start + piece * PIECE_SIZE;
    enum err err = captures_put_question(fetching, &lane->question, false, offset,
                                         piece_size(fetching, gathering, piece));
    lane->timeout_ms = captures_time_left_ms(fetching);
    if (err != ERR_OK || lane->timeout_ms == 0) {
        return err == ERR_OK ? ERR_TIMEOUT : err;
    }
    lane->piece = piece;
    lane->asked_at_us = clock_monotonic_us(&clock_system);
    lane->is_asking = true;
    pthread_mutex_lock(&gathering->lock);
    lane->is_answered = false;
    gathering->users_count++;
    pthread_mutex_unlock(&gathering->lock);
    err = peer_rpc_post(gathering->peer_rpc, pieces_ask, lane);
    if (err != ERR_OK) {
        lane->is_asking = false;
        pthread_mutex_lock(&gathering->lock);
        gathering->users_count--;
        pthread_mutex_unlock(&gathering->lock);
    }
    return err;
}

/* Work for all lanes that have none. *ret_asking_count: how many ask now. */
static enum err start_lanes(struct captures_fetching *fetching, struct gathering *gathering,
                            size_t *ret_asking_count) {
    enum err err = ERR_OK;
    size_t asking_count = 0;
    for (size_t i = 0; i < LANES_COUNT && err == ERR_OK; i++) {
        struct lane *lane = &gathering->lanes[i];
        uint64_t now_us = clock_monotonic_us(&clock_system);
        uint64_t piece;
        if (!lane->is_over && !lane->is_asking && choose_piece(gathering, now_us, &piece) &&
            choose_peer(fetching, gathering, lane)) {
            err = start_lane(fetching, gathering, lane, piece);
        }
        asking_count += lane->is_asking;
    }
    *ret_asking_count = asking_count;
    return err;
}

/* The holder of this lane gives nothing: why? */
static void end_lane(struct captures_fetching *fetching, struct lane *lane, enum err err, bool is_false) {
    size_t index = find_peer(fetching, &lane->peer);
    ASSERT(index < fetching->peers_count);
    if (err == ERR_TIMEOUT) {
        lane->is_over = true; /* smaller pieces may come */
        return;
    }
    lane->has_peer = false;
    if (is_false) {
        captures_blame(fetching, index, "a piece of a capture that is none");
    } else {
        captures_drop(fetching, index);
    }
    captures_adopt(fetching);
}

/* The answer of a lane, into the window. ERR_INVALID: it is no piece. */
static enum err pieces_take_answer(struct captures_fetching *fetching, struct gathering *gathering,
                                   struct lane *lane) {
    struct captures_answer answer;
    struct bytes piece;
    uint32_t size = piece_size(fetching, gathering, lane->piece);
    size_t slot = (size_t)(lane->piece % WINDOW_COUNT);
    enum err err = captures_code_read_answer(buf_bytes(&lane->answer), &answer, NULL);
    if (err != ERR_OK) {
        return ERR_INVALID;
    }
    if (answer.is_referral) {
        captures_note_referral(fetching, find_peer(fetching, &lane->peer), &answer);
        return ERR_BUSY;
    }
    if (!answer.is_there) {
        return ERR_NOT_FOUND;
    }
    err = captures_unpack(fetching->session, &answer, size, &piece);
    if (err != ERR_OK || answer.size != fetching->captured->sum.size || piece.size != size) {
        return captures_err_is_ours(err) ? err : ERR_INVALID;
    }
    if (lane->piece < gathering->next || gathering->window[slot].is_there) {
        return ERR_OK; /* it was late, and has come from another */
    }
    buf_clear(&gathering->window[slot].bytes);
    err = buf_put(&gathering->window[slot].bytes, piece);
    gathering->window[slot].is_there = err == ERR_OK;
    gathering->window[slot].giver = lane->peer;
    uint64_t took_us = clock_monotonic_us(&clock_system) - lane->asked_at_us;
    gathering->usual_us = gathering->usual_us == 0 ? took_us : (7 * gathering->usual_us + took_us) / 8;
    return err;
}

/* What comes next in the window goes to the body. */
static enum err pieces_append(struct captures_fetching *fetching, struct gathering *gathering) {
    enum err err = ERR_OK;
    size_t slot;
    while (err == ERR_OK && gathering->next < gathering->pieces_count &&
           gathering->window[slot = (size_t)(gathering->next % WINDOW_COUNT)].is_there) {
        err = captures_body_put(fetching, &gathering->window[slot].giver,
                                buf_bytes(&gathering->window[slot].bytes));
        gathering->window[slot].is_there = false;
        gathering->next++;
    }
    return err;
}

static bool has_answer(const struct lane *lane) {
    return lane->is_asking && lane->is_answered;
}

/* Wait for an answer, but not for long: a lane may be late. */
static void wait_for_answer(struct gathering *gathering) {
    pthread_mutex_lock(&gathering->lock);
    bool has_any = false;
    for (size_t i = 0; i < LANES_COUNT; i++) {
        has_any = has_any || has_answer(&gathering->lanes[i]);
    }
    if (!has_any) {
        uint64_t until_us = clock_monotonic_us(&clock_system) + LOOK_MS * UINT64_C(1000);
        (void)bell_await(&gathering->answered, &gathering->lock, until_us);
    }
    pthread_mutex_unlock(&gathering->lock);
}

static enum err take_answers(struct captures_fetching *fetching, struct gathering *gathering) {
    for (size_t i = 0; i < LANES_COUNT; i++) {
        struct lane *lane = &gathering->lanes[i];
        pthread_mutex_lock(&gathering->lock);
        bool is_answered = has_answer(lane);
        pthread_mutex_unlock(&gathering->lock);
        if (!is_answered) {
            continue;
        }
        enum err err = lane->err == ERR_OK ? pieces_take_answer(fetching, gathering, lane) : lane->err;
        lane->is_asking = false;
        if (captures_err_is_ours(err)) {
            return err;
        }
        if (err != ERR_OK) {
            end_lane(fetching, lane, err, lane->err == ERR_OK && err == ERR_INVALID);
        }
    }
    return pieces_append(fetching, gathering);
}

enum err captures_pieces_run(struct captures_fetching *fetching) {
    struct gathering *gathering = gathering_new(fetching);
    if (gathering == NULL) {
        return ERR_MEMORY;
    }
    enum err err = ERR_OK;
    size_t asking_count = 1;
    while (err == ERR_OK && gathering->next < gathering->pieces_count && asking_count > 0) {
        err = start_lanes(fetching, gathering, &asking_count);
        if (err == ERR_OK && asking_count > 0) {
            wait_for_answer(gathering);
            err = take_answers(fetching, gathering);
        }
    }
    pthread_mutex_lock(&gathering->lock);
    pieces_let_go(gathering);
    return err;
}
