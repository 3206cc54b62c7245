/*
 * Captures that are wanted of other nodes are fetched and stored. protocol/copies/transfer.h decides what is
 * asked of whom, and how much of it at once; here that is carried out:
 *
 *      the task            REPLICATOR_FETCH ───────────> peer_rpc asks, without anybody waiting
 *      copies-fetch        checks and submits   <─────── answers
 *                          waits, for captures that are asked for alone
 *      committers          durable
 *      the task            finds it among the keys: REPLICATOR_SETTLED
 *
 * Only then another giver of the same capture, or a capture with the same payload, is looked at: the keys say
 * that it is here. An answer counts as under way until it has been taken apart: so no more come than the disk
 * takes.
 */
#include <sys/statvfs.h>

#include "base/wire.h"
#include "node/captures/captures_code.h"
#include "node/copies/copies_state.h"
#include "node/copies/disk_room.h"

enum { FULL_S = 60 };
static const uint64_t SPACE_MIN = UINT64_C(256) << 20;
static const uint64_t SECOND_US = 1000000;
_Static_assert((int)TRANSFER_KEYS_MAX <= (int)CAPTURES_CODE_KEYS_MAX, "a question fits");

/* ---- the disk ---- */

bool copies_is_full(struct copies *copies) {
    struct statvfs space;
    uint64_t least = copies->config.space_min > 0 ? copies->config.space_min : SPACE_MIN;
    bool is_tight =
        statvfs(copies->config.directory, &space) == 0 && (uint64_t)space.f_bavail * space.f_frsize < least;
    is_tight =
        is_tight || quota_permille(instance_quota(copies->config.instance)) >= DISK_ROOM_COPIES_PERMILLE;
    pthread_mutex_lock(&copies->news.lock);
    bool is_full = is_tight || copies_now_us(copies) < copies->news.full_until_us;
    pthread_mutex_unlock(&copies->news.lock);
    return is_full;
}

static void note_disk(struct copies *copies, enum err err) {
    pthread_mutex_lock(&copies->news.lock);
    copies->news.disk_err = err;
    if (err_is_full(err)) {
        copies->news.full_until_us = copies_now_us(copies) + FULL_S * SECOND_US;
    }
    pthread_mutex_unlock(&copies->news.lock);
}

void copies_tell_disk(struct copies *copies) {
    pthread_mutex_lock(&copies->news.lock);
    enum err err = copies->news.disk_err;
    copies->news.disk_err = ERR_OK;
    pthread_mutex_unlock(&copies->news.lock);
    if (err != ERR_OK) {
        copies_note(copies, "captures of the ring were not stored: %s", err_text(err));
    }
}

/* ---- how it went ---- */

static void fetch_settle(struct copies *copies, uint32_t item, enum transfer_outcome outcome) {
    copies_step(copies,
                (struct replicator_event){.kind = REPLICATOR_SETTLED, .item = item, .outcome = outcome});
}

static void fetch_deleted(struct copies *copies, uint32_t item) {
    copies_step(copies, (struct replicator_event){.kind = REPLICATOR_DELETED, .item = item});
}

static void fetch_take_arrival(struct copies *copies, const struct copies_arrival *arrival) {
    if (arrival->err == ERR_OK) {
        copies_step(copies, (struct replicator_event){.kind = REPLICATOR_DURABLE,
                                                      .is_about = arrival->is_about,
                                                      .bytes = {.size = arrival->size}});
        copies->durable[copies->durable_count++] = arrival->item;
    } else if (arrival->err == ERR_DELETED) {
        fetch_deleted(copies, arrival->item);
    } else {
        fetch_settle(copies, arrival->item,
                     arrival->err == ERR_BUSY ? TRANSFER_NO_ORIGINAL : TRANSFER_FAILED);
    }
}

void copies_take_arrivals(struct copies *copies) {
    pthread_mutex_lock(&copies->news.lock);
    struct copies_arrival *arrivals = copies->news.arrivals;
    copies->news.arrivals = NULL;
    copies->news.arrivals_last = &copies->news.arrivals;
    pthread_mutex_unlock(&copies->news.lock);
    while (arrivals != NULL) {
        struct copies_arrival arrival = *arrivals; /* its place is free when it is settled */
        arrivals = arrival.next;
        fetch_take_arrival(copies, &arrival);
    }
}

void copies_settle_durable(struct copies *copies, size_t count) {
    for (size_t i = 0; i < count; i++) {
        fetch_settle(copies, copies->durable[i], TRANSFER_STORED);
    }
    copies->durable_count -= count;
    memmove(copies->durable, copies->durable + count, copies->durable_count * sizeof copies->durable[0]);
}

/* On a thread of the volume. ERR_BUSY: the document that it is a duplicate of was removed meanwhile. */
static void on_stored(void *context, enum err err, const struct stored *stored) {
    struct copies_arrival *arrival = context;
    struct copies *copies = arrival->copies;
    (void)stored;
    if (err != ERR_OK && err != ERR_DELETED && err != ERR_BUSY) {
        note_disk(copies, err);
    }
    arrival->err = err;
    arrival->next = NULL;
    pthread_mutex_lock(&copies->news.lock);
    *copies->news.arrivals_last = arrival;
    copies->news.arrivals_last = &arrival->next;
    pthread_mutex_unlock(&copies->news.lock);
    task_poke(&copies->task); /* before the end of this: nobody stops as long as it is open */
    copies_close(copies);
}

/* Settled when it is durable. What comes without its body is refused if the payload is not here. */
static void fetch_store(struct copies_hand *hand, uint32_t item, const struct captured *captured) {
    struct copies *copies = hand->copies;
    struct err_detail detail = {0};
    struct copies_arrival *arrival = &copies->arrivals[item];
    *arrival = (struct copies_arrival){.copies = copies,
                                       .item = item,
                                       .is_about = captured->document.is_body_left_out,
                                       .size = captured->sum.size};
    copies_open(copies);
    enum err err = instance_submit(hand->reader.session, &captured->document, STORE_REGULAR,
                                   INSTANCE_VOLUME_ANY, on_stored, arrival, &detail);
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
    copies_close(copies); /* done() is not called */
}

static void fetch_refuse(struct copies *copies, const struct peer *giver) {
    copies_step(copies, (struct replicator_event){.kind = REPLICATOR_FALSE, .peer = giver});
}

static bool is_silence(enum err err) {
    return err == ERR_TIMEOUT || err == ERR_UNREACHABLE || err == ERR_CLOSED || err == ERR_REFUSED ||
           err == ERR_CANCELLED;
}

/* ---- an answer with many ---- */

static bool is_of_another(const struct copies_work *pack) {
    return !peer_equal(&pack->action.peer, &pack->action.fetch.giver);
}

static void pack_free(struct copies_work *pack) {
    struct copies *copies = pack->copies;
    task_poke(&copies->task);
    copies_work_free(pack);
}

static void pack_close(struct copies_work *pack, enum transfer_line line) {
    /* What another holder gave says nothing of the giver, which is busy. */
    copies_step(pack->copies, (struct replicator_event){.kind = REPLICATOR_CLOSED,
                                                        .id = pack->action.id,
                                                        .now_us = pack->answered_us,
                                                        .line = is_of_another(pack) ? TRANSFER_BUSY : line,
                                                        .bytes = {.size = pack->answer.size}});
}

static void pack_settle_from(struct copies_work *pack, uint32_t first, enum transfer_outcome outcome) {
    for (uint32_t i = first; i < pack->action.fetch.count; i++) {
        fetch_settle(pack->copies, pack->action.fetch.items[i], outcome);
    }
}

/* There was no answer. */
static void pack_fail(struct copies_work *pack) {
    bool is_old = pack->err == ERR_UNSUPPORTED;
    bool is_busy = pack->err == ERR_BUSY || is_of_another(pack);
    pack_close(pack, is_old ? TRANSFER_UNSUPPORTED : is_busy ? TRANSFER_BUSY : TRANSFER_SILENT);
    pack_settle_from(pack, 0, is_old || is_busy ? TRANSFER_LATER : TRANSFER_NOT_GIVEN);
}

static void pack_accuse(struct copies_work *pack, const char *sentence) {
    char given[ERR_TEXT_SIZE_MAX];
    snprintf(given, sizeof given, "gives %.200s", sentence);
    copies_blame(pack->copies, &pack->action.peer, given);
    fetch_refuse(pack->copies, &pack->action.peer);
}

static void take_capture(struct copies_hand *hand, struct copies_work *pack, uint32_t index,
                         const struct captures_answer *answer) {
    struct captured captured;
    struct err_detail detail = {0};
    uint32_t item = pack->action.fetch.items[index];
    enum err err = captures_take(hand->fetches, &pack->action.peer, &pack->action.fetch.keys[index],
                                 pack->action.fetch.is_about[index], answer, &captured, &detail);
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

static void take_entry(struct copies_hand *hand, struct copies_work *pack, uint32_t index,
                       enum captures_many_status status, const struct captures_answer *answer) {
    uint32_t item = pack->action.fetch.items[index];
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

static void pack_take(struct copies_hand *hand, struct copies_work *pack) {
    struct wire_reader reader;
    uint32_t i = 0;
    wire_reader_init(&reader, buf_bytes(&pack->answer));
    for (; i < pack->action.fetch.count && !copies_is_stopping(pack->copies); i++) {
        enum captures_many_status status;
        struct captures_answer answer = {0};
        if (captures_code_read_entry(&reader, &status, &answer) != ERR_OK) {
            pack_accuse(pack, "captures that are none");
            pack_settle_from(pack, i, TRANSFER_FAILED);
            i = pack->action.fetch.count;
            break;
        }
        take_entry(hand, pack, i, status, &answer);
    }
    pack_settle_from(pack, i, TRANSFER_NOT_GIVEN); /* this node is stopping */
    pack_close(pack, TRANSFER_CAME);
}

static void pack_run(void *context, size_t seat) {
    struct copies_work *pack = context;
    if (pack->err == ERR_OK) {
        pack_take(&pack->copies->hands[seat], pack);
    } else {
        pack_fail(pack);
    }
    pack_free(pack);
}

/* An answer is taken apart by the crew; the thread of peer_rpc only brings it. */
static void pack_hand_over(struct copies_work *pack, enum err err) {
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
    struct copies_work *pack = context;
    err = err == ERR_OK ? buf_put(&pack->answer, answer) : err;
    pack_hand_over(pack, err);
}

static void pack_ask(void *context) {
    struct copies_work *pack = context;
    enum err err = peer_rpc_call(pack->copies->config.peer_rpc, &pack->action.peer, PEER_RPC_CAPTURES,
                                 buf_bytes(&pack->message), COPIES_ASK_MS, pack_on_answer, pack);
    if (err != ERR_OK) {
        pack_hand_over(pack, err);
    }
}

static enum err pack_put_question(struct copies_work *pack) {
    struct captures_many many = {.size_max = pack->action.fetch.size_max, .count = pack->action.fetch.count};
    memcpy(many.keys, pack->action.fetch.keys, many.count * sizeof many.keys[0]);
    memcpy(many.is_about, pack->action.fetch.is_about, many.count * sizeof many.is_about[0]);
    return captures_code_put_many(&pack->message, &many);
}

/* ---- one alone ---- */

static enum transfer_line line_of(enum err err) {
    return err == ERR_BUSY ? TRANSFER_BUSY : is_silence(err) ? TRANSFER_SILENT : TRANSFER_CAME;
}

static enum transfer_outcome outcome_of(struct copies_work *pack, enum err err) {
    if (err == ERR_BUSY || is_of_another(pack)) {
        return TRANSFER_LATER;
    }
    return err == ERR_NOT_FOUND ? TRANSFER_ABSENT : is_silence(err) ? TRANSFER_NOT_GIVEN : TRANSFER_FAILED;
}

/* Waits for the other node; captures_fetch() blames it if need be. */
static void pack_run_alone(void *context, size_t seat) {
    struct copies_work *pack = context;
    struct copies *copies = pack->copies;
    struct copies_hand *hand = &copies->hands[seat];
    struct captured captured;
    struct err_detail detail = {0};
    bool with_payload = !pack->action.fetch.is_about[0];
    enum err err = copies_is_stopping(copies)
                       ? ERR_CANCELLED
                       : captures_fetch(hand->fetches, &pack->action.peer, 1, pack->action.fetch.keys,
                                        with_payload, &captured, &detail);
    pack->answered_us = copies_now_us(copies);
    pack_close(pack, line_of(err));
    if (err == ERR_OK) {
        fetch_store(hand, pack->action.fetch.items[0], &captured);
    } else if (err == ERR_DELETED) {
        fetch_deleted(copies, pack->action.fetch.items[0]);
    } else {
        if (err == ERR_MISMATCH) {
            fetch_refuse(copies, &pack->action.peer);
        } else if (err == ERR_IO || err_is_full(err) || err == ERR_MEMORY) {
            note_disk(copies, err);
        }
        fetch_settle(copies, pack->action.fetch.items[0], outcome_of(pack, err));
    }
    pack_free(pack);
}

/* ---- questions ---- */

static void fetch_cancel(struct copies *copies, const struct replicator_action *action) {
    copies_step(copies, (struct replicator_event){
                            .kind = REPLICATOR_CLOSED, .id = action->id, .line = TRANSFER_BUSY});
    for (uint32_t i = 0; i < action->fetch.count; i++) {
        fetch_settle(copies, action->fetch.items[i], TRANSFER_LATER);
    }
}

void copies_fetch_begin(struct copies *copies, const struct replicator_action *action) {
    struct copies_work *pack = copies_work_new(copies, action);
    enum err err;
    if (pack == NULL) {
        fetch_cancel(copies, action);
        return;
    }
    if (action->fetch.is_alone) {
        pack->job = (struct pool_job){.run = pack_run_alone, .context = pack};
        err = pool_try(&copies->crew, &pack->job) ? ERR_OK : ERR_CANCELLED;
    } else {
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
