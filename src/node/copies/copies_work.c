/*
 * Actions of the machine that take time. None of them is waited for by anybody:
 *
 *      the task            copies_act() ──────────> peer_rpc asks; copies-fetch reads, looks up, removes,
 * repairs others              done: into the list <─────────┘ the task            copies_take_works(): events
 * for the machine
 */
#include <stdlib.h>

#include "node/copies/copies_state.h"

/* ---- what is under way ---- */

void copies_open(struct copies *copies) {
    pthread_mutex_lock(&copies->news.lock);
    copies->news.open_count++;
    pthread_mutex_unlock(&copies->news.lock);
}

void copies_close(struct copies *copies) {
    pthread_mutex_lock(&copies->news.lock);
    if (--copies->news.open_count == 0) {
        bell_ring(&copies->news.is_idle);
    }
    pthread_mutex_unlock(&copies->news.lock);
}

struct copies_work *copies_work_new(struct copies *copies, const struct replicator_action *action) {
    struct copies_work *work = calloc(1, sizeof *work);
    if (work == NULL) {
        return NULL;
    }
    work->copies = copies;
    work->action = *action;
    buf_init(&work->message, PEER_RPC_QUESTION_SIZE_MAX);
    buf_init(&work->answer, PEER_RPC_ANSWER_SIZE_MAX);
    copies_open(copies);
    return work;
}

void copies_work_free(struct copies_work *work) {
    struct copies *copies = work->copies;
    buf_done(&work->message);
    buf_done(&work->answer);
    free(work);
    copies_close(copies);
}

static void work_finish(struct copies_work *work, enum err err) {
    struct copies *copies = work->copies;
    work->err = err;
    work->next = NULL;
    pthread_mutex_lock(&copies->news.lock);
    *copies->news.works_last = work;
    copies->news.works_last = &work->next;
    pthread_mutex_unlock(&copies->news.lock);
    task_poke(&copies->task);
}

/* ---- questions ---- */

static void work_on_answer(void *context, enum err err, struct bytes answer) {
    struct copies_work *work = context;
    work_finish(work, err == ERR_OK ? buf_put(&work->answer, answer) : err);
}

static void work_ask(void *context) {
    static const enum peer_rpc_service services[] = {
        [REPLICATOR_COMPARE] = PEER_RPC_COMPARE, [REPLICATOR_OFFER] = PEER_RPC_OFFER,
        [REPLICATOR_CONFIRM] = PEER_RPC_CONFIRM, [REPLICATOR_PROVE] = PEER_RPC_PROVE,
        [REPLICATOR_FOLLOW] = PEER_RPC_FOLLOW,
    };
    struct copies_work *work = context;
    enum err err =
        peer_rpc_call(work->copies->config.peer_rpc, &work->action.peer, services[work->action.service],
                      buf_bytes(&work->message), COPIES_ASK_MS, work_on_answer, work);
    if (err != ERR_OK) {
        work_finish(work, err);
    }
}

/* ---- what the crew does ---- */

/* The payload lasts until this thread reads another. */
static enum err work_read(struct copies_hand *hand, const struct copies_work *work) {
    struct bytes payload = {0};
    enum err err = copies_read_payload(work->copies, &hand->reader, &work->action.key, &payload, NULL);
    copies_step(work->copies,
                (struct replicator_event){.kind = REPLICATOR_READ,
                                          .id = work->action.id,
                                          .err = err,
                                          .bytes = err == ERR_OK ? payload : bytes_of(NULL, 0)});
    return err;
}

static void work_run(void *context, size_t seat) {
    struct copies_work *work = context;
    struct copies *copies = work->copies;
    struct copies_hand *hand = &copies->hands[seat];
    const struct holders_source *ring = &copies->config.ring;
    enum err err = ERR_CANCELLED;
    if (copies_is_stopping(copies)) {
        work_finish(work, err);
        return;
    }
    switch (work->action.kind) {
    case REPLICATOR_LOOK_UP:
        err = ring->find(ring->context, work->action.place, &work->arc);
        break;
    case REPLICATOR_READ_PAYLOAD:
        err = work_read(hand, work);
        break;
    case REPLICATOR_REMOVE:
        err = copies_remove(copies, &hand->reader, &work->action.key);
        break;
    case REPLICATOR_SCRUB:
        err = copies_scrub(copies, &work->wait_us);
        break;
    default:
        err = copies_repair(hand, &work->action.key, &work->action.peer, &work->is_good, &work->is_cut);
        break;
    }
    work_finish(work, err);
}

void copies_work_begin(struct copies *copies, const struct replicator_action *action) {
    struct copies_work *work = copies_work_new(copies, action);
    enum err err;
    if (work == NULL) { /* the machine hears of it at once */
        copies_step(copies, (struct replicator_event){
                                .kind = REPLICATOR_ANSWERED, .id = action->id, .err = ERR_MEMORY});
        return;
    }
    if (action->kind == REPLICATOR_ASK) {
        err = buf_put(&work->message, action->question);
        err = err == ERR_OK ? peer_rpc_post(copies->config.peer_rpc, work_ask, work) : err;
    } else {
        work->job = (struct pool_job){.run = work_run, .context = work};
        err = pool_try(&copies->crew, &work->job) ? ERR_OK : ERR_CANCELLED;
    }
    if (err != ERR_OK) { /* else it is with others, and may be gone */
        work_finish(work, err);
    }
}

/* ---- what came of it ---- */

static void work_tell(struct copies *copies, const struct copies_work *work) {
    static const enum replicator_event_kind kinds[] = {
        [REPLICATOR_ASK] = REPLICATOR_ANSWERED,      [REPLICATOR_LOOK_UP] = REPLICATOR_FOUND,
        [REPLICATOR_READ_PAYLOAD] = REPLICATOR_READ, [REPLICATOR_REMOVE] = REPLICATOR_REMOVED,
        [REPLICATOR_REPAIR] = REPLICATOR_REPAIRED,   [REPLICATOR_SCRUB] = REPLICATOR_SCRUBBED,
    };
    copies_step(copies, (struct replicator_event){.kind = kinds[work->action.kind],
                                                  .id = work->action.id,
                                                  .err = work->err,
                                                  .bytes = buf_bytes(&work->answer),
                                                  .arc = &work->arc,
                                                  .is_good = work->is_good,
                                                  .is_cut = work->is_cut,
                                                  .wait_us = work->wait_us});
}

static struct copies_work *take_works(struct copies *copies) {
    pthread_mutex_lock(&copies->news.lock);
    struct copies_work *works = copies->news.works;
    copies->news.works = NULL;
    copies->news.works_last = &copies->news.works;
    pthread_mutex_unlock(&copies->news.lock);
    return works;
}

void copies_take_works(struct copies *copies) {
    struct copies_work *works = take_works(copies);
    while (works != NULL) {
        struct copies_work *work = works;
        works = work->next;
        work_tell(copies, work);
        copies_work_free(work);
    }
}

/* ---- begin and end ---- */

enum err copies_crew_init(struct copies *copies) {
    for (size_t i = 0; i < COPIES_CREW_COUNT; i++) {
        struct copies_hand *hand = &copies->hands[i];
        hand->copies = copies;
        hand->fetches = captures_session_new(copies->captures);
        enum err err = copies_reader_init(&hand->reader, copies->config.instance);
        if (hand->fetches == NULL || err != ERR_OK) {
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
    struct copies_work *works = take_works(copies);
    while (works != NULL) {
        struct copies_work *next = works->next;
        copies_work_free(works);
        works = next;
    }
    pthread_mutex_lock(&copies->news.lock);
    while (copies->news.open_count > 0) {
        (void)bell_await(&copies->news.is_idle, &copies->news.lock, BELL_NEVER_US);
    }
    pthread_mutex_unlock(&copies->news.lock);
    for (size_t i = 0; i < COPIES_CREW_COUNT; i++) {
        captures_session_free(copies->hands[i].fetches);
        copies_reader_done(&copies->hands[i].reader);
    }
}
