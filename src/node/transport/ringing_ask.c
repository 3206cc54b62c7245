#include "base/wire.h"
#include "node/transport/ringing_state.h"
#include "protocol/ring/message.h"
#include "store/keyset/place.h"
#include "web/url/surt.h"

enum { SLOT_BITS = 16 }; /* of a lookup's number; the rest is the life of its slot */

/* ---- queues ---- */

static void queue_put(struct ringing_queue *queue, struct ringing_question *question) {
    if (queue->first == NULL) {
        queue->end = &queue->first;
    }
    question->next = NULL;
    *queue->end = question;
    queue->end = &question->next;
}

static struct ringing_question *queue_take(struct ringing_queue *queue) {
    struct ringing_question *question = queue->first;
    if (question != NULL) {
        queue->first = question->next;
    }
    return question;
}

static void fail(struct ringing_question *question, enum err err) {
    question->answered(question, &(struct ringing_answer){.err = err});
}

/* ---- any thread ---- */

void ringing_ask(struct ringing *ringing, struct ringing_question *question) {
    ASSERT(question->places_wanted > 0 && question->places_wanted <= RINGING_PLACES_MAX);
    pthread_mutex_lock(&ringing->lock);
    bool is_running = ringing->is_running;
    if (is_running) {
        bool is_first = ringing->questions.first == NULL;
        queue_put(&ringing->questions, question);
        if (is_first) {
            uv_async_send(&ringing->asked);
        }
    }
    pthread_mutex_unlock(&ringing->lock);
    if (!is_running) {
        fail(question, ERR_NOT_FOUND);
    }
}

enum err ringing_key(struct ringing *ringing, struct bytes url, struct ring_id *ret_key,
                     struct err_detail *detail) {
    struct canon canon;
    struct sha256 sha256;
    pthread_mutex_lock(&ringing->lock);
    int mapping = ringing->mapping;
    pthread_mutex_unlock(&ringing->lock);
    if (mapping < 0) {
        return err_set(detail, ERR_NOT_FOUND, "this node is in no ring");
    }
    enum err err = sha256_init(&sha256);
    if (err != ERR_OK) {
        return err;
    }
    struct buf surt;
    canon_init(&canon);
    buf_init(&surt, INDEX_SURT_SIZE_MAX);
    err = canon_run(&canon, url, detail);
    err = err == ERR_OK ? surt_put(&surt, &canon) : err;
    if (err == ERR_OK) {
        uint8_t place[RINGKEY_PLACE_SIZE];
        place_of_surt(&sha256, buf_bytes(&surt), (enum place_mapping)mapping, place);
        *ret_key = ring_id_read(place);
    }
    buf_done(&surt);
    canon_done(&canon);
    sha256_done(&sha256);
    return err;
}

/* ---- the loop ---- */

void ringing_ask_init(struct ringing *ringing) {
    for (uint32_t i = 0; i < RINGING_QUESTIONS_MAX; i++) {
        ringing->free_slots[i] = RINGING_QUESTIONS_MAX - 1 - i;
    }
    ringing->free_slots_count = RINGING_QUESTIONS_MAX;
}

/* The answer may come from within the step. */
static void start(struct ringing *ringing, struct ringing_question *question) {
    uint8_t memory[RING_ID_SIZE + 1];
    struct wire_writer writer;
    if (ringing->state != RINGING_MEMBER) {
        fail(question, ERR_BUSY);
        return;
    }
    uint32_t index = ringing->free_slots[--ringing->free_slots_count];
    struct ringing_slot *slot = &ringing->slots[index];
    slot->question = question;
    slot->life++;
    wire_writer_init(&writer, memory, sizeof memory);
    message_write_id(&writer, question->key);
    wire_write_u8(&writer, question->places_wanted);
    struct event event = {
        .kind = EVENT_COMMAND,
        .code = RING_FIND,
        .number = (uint64_t)slot->life << SLOT_BITS | index,
        .bytes = bytes_of(memory, sizeof memory),
    };
    ringing_step(ringing, &event);
}

/* What is new behind what waits: everybody has his turn. */
static void take_new(struct ringing *ringing) {
    struct ringing_question *question;
    pthread_mutex_lock(&ringing->lock);
    while ((question = queue_take(&ringing->questions)) != NULL) {
        queue_put(&ringing->waiting, question);
    }
    pthread_mutex_unlock(&ringing->lock);
}

void ringing_on_asked(uv_async_t *async) {
    struct ringing *ringing = async->data;
    ringing_share_errands(ringing);
    take_new(ringing);
    while (ringing->free_slots_count > 0) {
        struct ringing_question *question = queue_take(&ringing->waiting);
        if (question == NULL) {
            return;
        }
        start(ringing, question);
    }
}

static void read_answer(const struct ringing *ringing, struct wire_reader *reader,
                        struct ringing_answer *answer) {
    answer->hops_count = wire_read_u8(reader);
    answer->places_count = wire_read_u8_max(reader, RINGING_PLACES_MAX);
    for (uint8_t i = 0; i < answer->places_count; i++) {
        ring_read_place(ringing->ring, reader, &answer->places[i]);
    }
    answer->err = answer->places_count > 0 ? ERR_OK : ERR_UNREACHABLE;
}

void ringing_on_answer(struct ringing *ringing, struct bytes bytes) {
    struct wire_reader reader;
    struct ringing_answer answer;
    wire_reader_init(&reader, bytes);
    uint64_t number = wire_read_u64(&reader);
    read_answer(ringing, &reader, &answer);
    size_t index = number & (((size_t)1 << SLOT_BITS) - 1);
    ASSERT(reader.err == ERR_OK && index < RINGING_QUESTIONS_MAX);
    struct ringing_slot *slot = &ringing->slots[index];
    struct ringing_question *question = slot->question;
    ASSERT(question != NULL && (uint32_t)(number >> SLOT_BITS) == slot->life);
    slot->question = NULL;
    ringing->free_slots[ringing->free_slots_count++] = (uint32_t)index;
    if (ringing->waiting.first != NULL) {
        uv_async_send(&ringing->asked); /* not from here: the ring is in the middle of a step */
    }
    question->answered(question, &answer);
}

void ringing_ask_cancel(struct ringing *ringing) {
    struct ringing_question *question;
    take_new(ringing);
    for (size_t i = 0; i < RINGING_QUESTIONS_MAX; i++) {
        question = ringing->slots[i].question;
        ringing->slots[i].question = NULL;
        if (question != NULL) {
            fail(question, ERR_CANCELLED);
        }
    }
    while ((question = queue_take(&ringing->waiting)) != NULL) {
        fail(question, ERR_CANCELLED);
    }
}
