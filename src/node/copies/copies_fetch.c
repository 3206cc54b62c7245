/*
 * Captures that are wanted of other nodes are fetched and stored. protocol/copies/transfer.h decides what is
 * asked of whom, and how much of it at once; here that is carried out:
 *
 *      the task            chooses questions ──────────> peer_rpc asks, without anybody waiting
 *      copies-fetch        checks and submits   <─────── answers
 *                          waits, for captures that are asked for alone
 *      committers          durable
 *      the task            finds it among the keys: settled
 *
 * Only then another giver of the same capture, or a capture with the same payload, is looked at: the keys say
 * that it is here. An answer counts as under way until it has been taken apart: so no more come than the disk
 * takes.
 */
#include <stdlib.h>
#include <sys/statvfs.h>

#include "base/assert.h"
#include "base/wire.h"
#include "node/captures/captures_code.h"
#include "node/copies/copies_state.h"
#include "node/copies/disk_room.h"

enum { FULL_S = 60 };
static const uint64_t SPACE_MIN = UINT64_C(256) << 20;
static const uint64_t SECOND_US = 1000000;
_Static_assert((int)TRANSFER_KEYS_MAX <= (int)CAPTURES_CODE_KEYS_MAX, "a question fits");

/* One question, from when it is chosen to when all that it brought is with the disk. */
struct copies_pack {
    struct copies *copies;
    struct pool_job job;
    struct transfer_question question;
    struct peer asked; /* the giver, or another holder in its stead */
    struct buf message;
    struct buf answer;
    enum err err;
    uint64_t answered_us;
};

/* What becomes of one item of a question. */
struct copies_arrival {
    struct copies *copies;
    uint32_t item;
    bool is_about;
    uint64_t size;
};

/* ---- what is wanted ---- */

enum err copies_want_init(struct copies *copies) {
    struct transfer_config config = {
        .wanted_max = 2 * COPIES_WANTED_MAX,
        .has_slow_lines = copies->config.has_slow_lines,
        .seed = copies->config.seed,
    };
    pthread_mutex_init(&copies->fetch.lock, NULL);
    void *memory = malloc(transfer_size(&config));
    copies->fetch.transfer = memory != NULL ? transfer_init(memory, &config) : NULL;
    copies->fetch.arrivals = calloc(config.wanted_max, sizeof *copies->fetch.arrivals);
    copies->fetch.durable = calloc(config.wanted_max, sizeof *copies->fetch.durable);
    bool is_made = memory != NULL && copies->fetch.arrivals != NULL && copies->fetch.durable != NULL;
    return is_made ? ERR_OK : ERR_MEMORY;
}

void copies_want_done(struct copies *copies) {
    free(copies->fetch.transfer);
    free(copies->fetch.arrivals);
    free(copies->fetch.durable);
    pthread_mutex_destroy(&copies->fetch.lock);
}

bool copies_want(struct copies *copies, enum transfer_order_lane lane, const struct ringkey *key,
                 const struct peer *peer) {
    if (copies_is_deleted(copies, key)) {
        return false;
    }
    pthread_mutex_lock(&copies->fetch.lock);
    bool has_room = transfer_want(copies->fetch.transfer, lane, key, peer);
    pthread_mutex_unlock(&copies->fetch.lock);
    return has_room;
}

size_t copies_wanted_count(struct copies *copies) {
    pthread_mutex_lock(&copies->fetch.lock);
    size_t count = transfer_status(copies->fetch.transfer).wanted_count;
    pthread_mutex_unlock(&copies->fetch.lock);
    return count;
}

uint64_t copies_fetch_at(struct copies *copies) {
    pthread_mutex_lock(&copies->fetch.lock);
    uint64_t at_us = transfer_wake_at(copies->fetch.transfer, copies_now_us(copies));
    pthread_mutex_unlock(&copies->fetch.lock);
    return at_us;
}

/* ---- what came ---- */

static uint64_t shortened(const struct ringkey *key) {
    uint64_t value;
    uint64_t other;
    memcpy(&value, ringkey_digest(key), sizeof value);
    memcpy(&other, key->bytes + RINGKEY_POSITION_SIZE - sizeof other, sizeof other);
    return (value ^ other) | 1;
}

bool copies_came(const struct copies *copies, const struct ringkey *key) {
    uint64_t value = shortened(key);
    return copies->came[value / 2 % COPIES_CAME_COUNT] == value;
}

static void note_came(struct copies *copies, const struct ringkey *key) {
    uint64_t value = shortened(key);
    copies->came[value / 2 % COPIES_CAME_COUNT] = value;
}

bool copies_is_full(struct copies *copies) {
    struct statvfs space;
    uint64_t least = copies->config.space_min > 0 ? copies->config.space_min : SPACE_MIN;
    bool is_tight =
        statvfs(copies->config.directory, &space) == 0 && (uint64_t)space.f_bavail * space.f_frsize < least;
    is_tight =
        is_tight || quota_permille(instance_quota(copies->config.instance)) >= DISK_ROOM_COPIES_PERMILLE;
    uint64_t now_us = copies_now_us(copies);
    pthread_mutex_lock(&copies->lock);
    copies->stat.is_full = is_tight || now_us < copies->full_until_us;
    bool is_full = copies->stat.is_full;
    pthread_mutex_unlock(&copies->lock);
    return is_full;
}

bool copies_may_copy(struct copies *copies, const struct peer *peer) {
    if (!copies->config.has_slow_lines) {
        return true;
    }
    pthread_mutex_lock(&copies->lock);
    bool may_copy = transfer_order_may_take(&copies->giving, peer, copies_now_us(copies));
    pthread_mutex_unlock(&copies->lock);
    return may_copy;
}

/* ---- how it went ---- */

/* What did not come must be read from other nodes until a comparison finds it. */
static void fetch_doubt(struct copies *copies, const struct ringkey *key, const struct peer *giver) {
    pthread_mutex_lock(&copies->lock);
    copy_plan_doubt(copies->copy_plan, copies_place_of(key), giver);
    full_sync_doubt(&copies->full_sync);
    pthread_mutex_unlock(&copies->lock);
}

static void fetch_settle(struct copies *copies, uint32_t item, enum transfer_outcome outcome) {
    pthread_mutex_lock(&copies->fetch.lock);
    struct ringkey key = *transfer_key(copies->fetch.transfer, item);
    struct peer giver = *transfer_giver(copies->fetch.transfer, item);
    (void)transfer_settle(copies->fetch.transfer, item, outcome, copies_now_us(copies));
    pthread_mutex_unlock(&copies->fetch.lock);
    if (outcome != TRANSFER_STORED && outcome != TRANSFER_LATER && outcome != TRANSFER_TOO_LARGE) {
        fetch_doubt(copies, &key, &giver);
    }
}

/* It need not come any more, from anybody. */
static void fetch_deleted(struct copies *copies, uint32_t item) {
    pthread_mutex_lock(&copies->fetch.lock);
    struct ringkey key = *transfer_key(copies->fetch.transfer, item);
    pthread_mutex_unlock(&copies->fetch.lock);
    pthread_mutex_lock(&copies->lock);
    copies_note_deleted(copies, &key);
    pthread_mutex_unlock(&copies->lock);
    fetch_settle(copies, item, TRANSFER_STORED);
}

static void note_disk(struct copies *copies, enum err err) {
    pthread_mutex_lock(&copies->lock);
    copies->fetch.disk_err = err;
    if (err_is_full(err)) {
        copies->full_until_us = copies_now_us(copies) + FULL_S * SECOND_US;
    }
    pthread_mutex_unlock(&copies->lock);
}

static void note_stored(const struct copies_arrival *arrival) {
    struct copies *copies = arrival->copies;
    pthread_mutex_lock(&copies->lock);
    copies->stat.fetched_count++;
    copies->stat.fetched_about_count += arrival->is_about;
    copies->stat.fetched_size += arrival->is_about ? 0 : arrival->size;
    copy_plan_moved(copies->copy_plan, 1, copies_now_us(copies));
    pthread_mutex_unlock(&copies->lock);
    pthread_mutex_lock(&copies->fetch.lock);
    copies->fetch.durable[copies->fetch.durable_count++] = arrival->item;
    pthread_mutex_unlock(&copies->fetch.lock);
}

size_t copies_durable_count(struct copies *copies) {
    pthread_mutex_lock(&copies->fetch.lock);
    size_t count = copies->fetch.durable_count;
    pthread_mutex_unlock(&copies->fetch.lock);
    return count;
}

void copies_settle_durable(struct copies *copies, size_t count) {
    pthread_mutex_lock(&copies->fetch.lock);
    for (size_t i = 0; i < count; i++) {
        (void)transfer_settle(copies->fetch.transfer, copies->fetch.durable[i], TRANSFER_STORED,
                              copies_now_us(copies));
    }
    copies->fetch.durable_count -= count;
    memmove(copies->fetch.durable, copies->fetch.durable + count,
            copies->fetch.durable_count * sizeof copies->fetch.durable[0]);
    pthread_mutex_unlock(&copies->fetch.lock);
}

static void fetch_end(struct copies *copies) {
    pthread_mutex_lock(&copies->fetch.lock);
    if (--copies->fetch.open_count == 0) {
        bell_ring(&copies->fetch.is_idle);
    }
    pthread_mutex_unlock(&copies->fetch.lock);
}

static void fetch_begin(struct copies *copies) {
    pthread_mutex_lock(&copies->fetch.lock);
    copies->fetch.open_count++;
    pthread_mutex_unlock(&copies->fetch.lock);
}

/* On a thread of the volume. ERR_BUSY: the document that it is a duplicate of was removed meanwhile. */
static void on_stored(void *context, enum err err, const struct stored *stored) {
    const struct copies_arrival *arrival = context;
    struct copies *copies = arrival->copies;
    (void)stored;
    if (err == ERR_OK) {
        note_stored(arrival);
    } else if (err == ERR_DELETED) {
        fetch_deleted(copies, arrival->item);
    } else {
        if (err != ERR_BUSY) {
            note_disk(copies, err);
        }
        fetch_settle(copies, arrival->item, err == ERR_BUSY ? TRANSFER_NO_ORIGINAL : TRANSFER_FAILED);
    }
    task_poke(&copies->task); /* before the end of this: nobody stops as long as it is open */
    fetch_end(copies);
}

/* Settled when it is durable. What comes without its body is refused if the payload is not here. */
static void fetch_store(struct copies_hand *hand, uint32_t item, const struct captured *captured) {
    struct copies *copies = hand->copies;
    struct err_detail detail = {0};
    struct copies_arrival *arrival = &copies->fetch.arrivals[item];
    *arrival = (struct copies_arrival){.copies = copies,
                                       .item = item,
                                       .is_about = captured->document.is_body_left_out,
                                       .size = captured->sum.size};
    fetch_begin(copies);
    enum err err = instance_submit(hand->session, &captured->document, STORE_REGULAR, INSTANCE_VOLUME_ANY,
                                   on_stored, arrival, &detail);
    if (err == ERR_OK) {
        return;
    }
    if (err == ERR_DELETED) {
        fetch_deleted(copies, item);
    } else if (err == ERR_NOT_FOUND) {
        fetch_settle(copies, item, TRANSFER_NO_ORIGINAL);
    } else {
        note_disk(copies, err);
        copies_note(copies, "a capture of the ring cannot be stored: %s", err_detail_text(&detail, err));
        fetch_settle(copies, item, TRANSFER_FAILED);
    }
    fetch_end(copies); /* done() is not called */
}

static void fetch_refuse(struct copies *copies, const struct peer *giver) {
    copies_count(copies, &copies->stat.refused_count, 1);
    copies_distrust(copies, giver);
}

static bool is_silence(enum err err) {
    return err == ERR_TIMEOUT || err == ERR_UNREACHABLE || err == ERR_CLOSED || err == ERR_REFUSED ||
           err == ERR_CANCELLED;
}

/* ---- an answer with many ---- */

static bool is_of_another(const struct copies_pack *pack) {
    return !peer_equal(&pack->asked, &pack->question.giver);
}

static void pack_free(struct copies_pack *pack) {
    struct copies *copies = pack->copies;
    buf_done(&pack->message);
    buf_done(&pack->answer);
    free(pack);
    task_poke(&copies->task);
    fetch_end(copies);
}

static void pack_close(struct copies_pack *pack, enum transfer_line line) {
    struct copies *copies = pack->copies;
    pthread_mutex_lock(&copies->fetch.lock);
    /* What another holder gave says nothing of the giver, which is busy. */
    transfer_answered(copies->fetch.transfer, pack->question.id, is_of_another(pack) ? TRANSFER_BUSY : line,
                      pack->answer.size, pack->answered_us);
    pthread_mutex_unlock(&copies->fetch.lock);
}

static void pack_settle_from(struct copies_pack *pack, uint32_t first, enum transfer_outcome outcome) {
    for (uint32_t i = first; i < pack->question.count; i++) {
        fetch_settle(pack->copies, pack->question.items[i], outcome);
    }
}

/* There was no answer. */
static void pack_fail(struct copies_pack *pack) {
    bool is_old = pack->err == ERR_UNSUPPORTED;
    bool is_busy = pack->err == ERR_BUSY || is_of_another(pack);
    pack_close(pack, is_old ? TRANSFER_UNSUPPORTED : is_busy ? TRANSFER_BUSY : TRANSFER_SILENT);
    pack_settle_from(pack, 0, is_old || is_busy ? TRANSFER_LATER : TRANSFER_NOT_GIVEN);
}

static void pack_accuse(struct copies_pack *pack, const char *sentence) {
    char given[ERR_TEXT_SIZE_MAX];
    snprintf(given, sizeof given, "gives %.200s", sentence);
    copies_blame(pack->copies, &pack->asked, given);
    fetch_refuse(pack->copies, &pack->asked);
}

static void take_capture(struct copies_hand *hand, struct copies_pack *pack, uint32_t index,
                         const struct captures_answer *answer) {
    struct captured captured;
    struct err_detail detail = {0};
    uint32_t item = pack->question.items[index];
    enum err err = captures_take(hand->fetches, &pack->asked, &pack->question.keys[index],
                                 pack->question.is_about[index], answer, &captured, &detail);
    if (err == ERR_OK) {
        fetch_store(hand, item, &captured);
        return;
    }
    if (err == ERR_DELETED) {
        fetch_deleted(pack->copies, item);
        return;
    }
    if (err == ERR_MISMATCH) {
        pack_accuse(pack, err_detail_text(&detail, err));
    } else {
        note_disk(pack->copies, err);
    }
    fetch_settle(pack->copies, item, TRANSFER_FAILED);
}

static void take_entry(struct copies_hand *hand, struct copies_pack *pack, uint32_t index,
                       enum captures_many_status status, const struct captures_answer *answer) {
    uint32_t item = pack->question.items[index];
    switch (status) {
    case CAPTURES_THERE:
        take_capture(hand, pack, index, answer);
        break;
    case CAPTURES_ABSENT:
        fetch_settle(pack->copies, item, is_of_another(pack) ? TRANSFER_LATER : TRANSFER_ABSENT);
        break;
    case CAPTURES_LATER:
        fetch_settle(pack->copies, item, TRANSFER_LATER);
        break;
    case CAPTURES_ALONE:
        fetch_settle(pack->copies, item, TRANSFER_TOO_LARGE);
        break;
    }
}

static void pack_take(struct copies_hand *hand, struct copies_pack *pack) {
    struct wire_reader reader;
    uint32_t i = 0;
    wire_reader_init(&reader, buf_bytes(&pack->answer));
    for (; i < pack->question.count && !copies_is_stopping(pack->copies); i++) {
        enum captures_many_status status;
        struct captures_answer answer = {0};
        if (captures_code_read_entry(&reader, &status, &answer) != ERR_OK) {
            pack_accuse(pack, "captures that are none");
            pack_settle_from(pack, i, TRANSFER_FAILED);
            i = pack->question.count;
            break;
        }
        take_entry(hand, pack, i, status, &answer);
    }
    pack_settle_from(pack, i, TRANSFER_NOT_GIVEN); /* this node is stopping */
    pack_close(pack, TRANSFER_CAME);
}

static void pack_run(void *context, size_t seat) {
    struct copies_pack *pack = context;
    if (pack->err == ERR_OK) {
        pack_take(&pack->copies->hands[seat], pack);
    } else {
        pack_fail(pack);
    }
    pack_free(pack);
}

/* An answer is taken apart by the crew; the thread of peer_rpc only brings it. */
static void pack_hand_over(struct copies_pack *pack, enum err err) {
    pack->err = err;
    pack->answered_us = copies_now_us(pack->copies);
    pack->job = (struct pool_job){.run = pack_run, .context = pack};
    if (!pool_try(&pack->copies->crew, &pack->job)) {
        pack->err = err == ERR_OK ? ERR_CANCELLED : err;
        pack_fail(pack);
        pack_free(pack);
    }
}

static void pack_on_answer(void *context, enum err err, struct bytes answer) {
    struct copies_pack *pack = context;
    err = err == ERR_OK ? buf_put(&pack->answer, answer) : err;
    pack_hand_over(pack, err);
}

static void pack_ask(void *context) {
    struct copies_pack *pack = context;
    enum err err = peer_rpc_call(pack->copies->config.peer_rpc, &pack->asked, PEER_RPC_CAPTURES,
                                 buf_bytes(&pack->message), COPIES_ASK_MS, pack_on_answer, pack);
    if (err != ERR_OK) {
        pack_hand_over(pack, err);
    }
}

static enum err pack_put_question(struct copies_pack *pack) {
    struct captures_many many = {.size_max = pack->question.size_max, .count = pack->question.count};
    memcpy(many.keys, pack->question.keys, many.count * sizeof many.keys[0]);
    memcpy(many.is_about, pack->question.is_about, many.count * sizeof many.is_about[0]);
    return captures_code_put_many(&pack->message, &many);
}

/* ---- one alone ---- */

static enum transfer_line line_of(enum err err) {
    return err == ERR_BUSY ? TRANSFER_BUSY : is_silence(err) ? TRANSFER_SILENT : TRANSFER_CAME;
}

static enum transfer_outcome outcome_of(struct copies_pack *pack, enum err err) {
    if (err == ERR_BUSY || is_of_another(pack)) {
        return TRANSFER_LATER;
    }
    return err == ERR_NOT_FOUND ? TRANSFER_ABSENT : is_silence(err) ? TRANSFER_NOT_GIVEN : TRANSFER_FAILED;
}

/* Waits for the other node; captures_fetch() blames it if need be. */
static void pack_run_alone(void *context, size_t seat) {
    struct copies_pack *pack = context;
    struct copies *copies = pack->copies;
    struct copies_hand *hand = &copies->hands[seat];
    struct captured captured;
    struct err_detail detail = {0};
    bool with_payload = !pack->question.is_about[0];
    enum err err = copies_is_stopping(copies)
                       ? ERR_CANCELLED
                       : captures_fetch(hand->fetches, &pack->asked, 1, pack->question.keys, with_payload,
                                        &captured, &detail);
    pack->answered_us = copies_now_us(copies);
    pack_close(pack, line_of(err));
    if (err == ERR_OK) {
        fetch_store(hand, pack->question.items[0], &captured);
    } else if (err == ERR_DELETED) {
        fetch_deleted(copies, pack->question.items[0]);
    } else {
        if (err == ERR_MISMATCH) {
            fetch_refuse(copies, &pack->asked);
        } else if (err == ERR_IO || err_is_full(err) || err == ERR_MEMORY) {
            note_disk(copies, err);
        }
        fetch_settle(copies, pack->question.items[0], outcome_of(pack, err));
    }
    pack_free(pack);
}

/* ---- questions ---- */

/* Another holder of the position, which may have it by now. */
static bool find_other(struct copies *copies, const struct transfer_question *question,
                       struct peer *ret_peer) {
    const struct holders_source *ring = &copies->config.ring;
    struct holders_arc arc;
    if (!ring->know(ring->context, copies_place_of(&question->keys[0]), &arc)) {
        return false;
    }
    for (size_t i = 0; i < arc.count; i++) {
        bool is_other = (int)i != arc.self_rank && !peer_equal(&arc.peers[i], &question->giver);
        if (is_other && !peer_rpc_is_busy(copies->config.peer_rpc, &arc.peers[i])) {
            *ret_peer = arc.peers[i];
            return true;
        }
    }
    return false;
}

/* If the node that has it is busy giving to another one, which takes long on slow lines, other holders are
 * asked; what they lack waits for the first. */
static enum err choose_giver(struct copies *copies, struct copies_pack *pack) {
    pack->asked = pack->question.giver;
    if (!peer_rpc_is_busy(copies->config.peer_rpc, &pack->asked)) {
        return ERR_OK; /* asked once: it may become busy at any time */
    }
    bool is_worth_it = copies->config.has_slow_lines && find_other(copies, &pack->question, &pack->asked);
    return is_worth_it ? ERR_OK : ERR_BUSY;
}

static void fetch_ask(struct copies *copies, struct copies_pack *pack) {
    for (uint32_t i = 0; i < pack->question.count; i++) {
        note_came(copies, &pack->question.keys[i]);
    }
    fetch_begin(copies);
    enum err err = choose_giver(copies, pack);
    if (err == ERR_OK && pack->question.is_alone) {
        pack->job = (struct pool_job){.run = pack_run_alone, .context = pack};
        err = pool_try(&copies->crew, &pack->job) ? ERR_OK : ERR_CANCELLED;
    } else if (err == ERR_OK) {
        err = pack_put_question(pack);
        err = err == ERR_OK ? peer_rpc_post(copies->config.peer_rpc, pack_ask, pack) : err;
    }
    if (err != ERR_OK) { /* else it is with others, and may be gone */
        pack->err = err;
        pack->answered_us = copies_now_us(copies);
        pack_fail(pack);
        pack_free(pack);
    }
}

static bool set_has_key(void *context, const struct ringkey *key) {
    struct copies *copies = context;
    bool has_it = false;
    return keyset_contains(copies->keyset, key, &has_it) == ERR_OK && has_it;
}

static bool set_has_payload(void *context, const struct ringkey *key) {
    struct copies *copies = context;
    struct ringkey same;
    return keyset_find_digest(copies->keyset, ringkey_digest(key), NULL, &same) == ERR_OK;
}

static struct copies_pack *pack_new(struct copies *copies) {
    struct copies_pack *pack = calloc(1, sizeof *pack);
    struct transfer_set set = {set_has_key, set_has_payload, copies};
    if (pack == NULL) {
        return NULL;
    }
    pack->copies = copies;
    buf_init(&pack->message, PEER_RPC_QUESTION_SIZE_MAX);
    buf_init(&pack->answer, PEER_RPC_ANSWER_SIZE_MAX);
    pthread_mutex_lock(&copies->keys_lock);
    pthread_mutex_lock(&copies->fetch.lock);
    bool has_one = transfer_next(copies->fetch.transfer, &set, copies_now_us(copies), &pack->question);
    pthread_mutex_unlock(&copies->fetch.lock);
    pthread_mutex_unlock(&copies->keys_lock);
    if (!has_one) {
        free(pack);
    }
    return has_one ? pack : NULL;
}

/* There is no room: what was offered stays with the others, and is read from them. */
static void fetch_give_up(struct copies *copies, struct copies_pack *pack) {
    fetch_begin(copies);
    pack->answered_us = copies_now_us(copies);
    pack->asked = pack->question.giver;
    pack_close(pack, TRANSFER_CAME);
    pack_settle_from(pack, 0, TRANSFER_FAILED);
    pack_free(pack);
}

void copies_fetch(struct copies *copies) {
    struct copies_pack *pack;
    bool is_full = copies_wanted_count(copies) > 0 && copies_is_full(copies);
    while (!copies_is_stopping(copies) && (pack = pack_new(copies)) != NULL) {
        if (is_full) {
            fetch_give_up(copies, pack);
        } else {
            fetch_ask(copies, pack);
        }
    }
    pthread_mutex_lock(&copies->lock);
    enum err err = copies->fetch.disk_err;
    copies->fetch.disk_err = ERR_OK;
    pthread_mutex_unlock(&copies->lock);
    if (err != ERR_OK) {
        copies_note(copies, "captures of the ring were not stored: %s", err_text(err));
    }
}

/* ---- begin and end ---- */

enum err copies_crew_init(struct copies *copies) {
    for (size_t i = 0; i < COPIES_HANDS_COUNT; i++) {
        struct copies_hand *hand = &copies->hands[i];
        hand->copies = copies;
        hand->fetches = captures_session_new(copies->captures);
        hand->session = instance_session_new(copies->config.instance);
        if (hand->fetches == NULL || hand->session == NULL) {
            return ERR_MEMORY;
        }
    }
    struct pool_config crew = {
        .name = "copies-fetch", .threads_max = COPIES_CREW_COUNT, .priority = PRIORITY_BEHIND};
    return pool_start(&copies->crew, &crew);
}

/* Questions have ended with peer_rpc; what is with the disk becomes durable first. */
void copies_crew_done(struct copies *copies) {
    pool_stop(&copies->crew);
    pthread_mutex_lock(&copies->fetch.lock);
    while (copies->fetch.open_count > 0) {
        (void)bell_await(&copies->fetch.is_idle, &copies->fetch.lock, BELL_NEVER_US);
    }
    pthread_mutex_unlock(&copies->fetch.lock);
    for (size_t i = 0; i < COPIES_HANDS_COUNT; i++) {
        captures_session_free(copies->hands[i].fetches);
        instance_session_free(copies->hands[i].session);
    }
}
