#include "base/wire.h"
#include "node/transport/transport_state.h"
#include "protocol/ring/ring.h"
#include "store/keyset/position.h"
#include "web/url/surt.h"

enum { SLOT_BITS = 16 }; /* of a lookup's number; the rest is the life of its slot */

/* ---- queues ---- */

static void queue_put(struct transport_queue *queue, struct transport_question *question) {
    if (queue->first == NULL) {
        queue->end = &queue->first;
    }
    question->next = NULL;
    *queue->end = question;
    queue->end = &question->next;
}

static struct transport_question *queue_take(struct transport_queue *queue) {
    struct transport_question *question = queue->first;
    if (question != NULL) {
        queue->first = question->next;
    }
    return question;
}

static void ask_fail(struct transport_question *question, enum err err) {
    question->answered(question, &(struct transport_answer){.err = err});
}

/* ---- any thread ---- */

/* Behind what waits: everybody has a turn. */
static void transport_take_question(void *context) {
    struct transport_question *question = context;
    struct transport *transport = question->transport;
    queue_put(&transport->waiting, question);
    transport_start_questions(transport);
}

void transport_ask(struct transport *transport, struct transport_question *question) {
    ASSERT(question->vnodes_wanted > 0 && question->vnodes_wanted <= TRANSPORT_VNODES_MAX);
    question->transport = transport;
    question->post = (struct loop_post){.run = transport_take_question, .context = question};
    pthread_mutex_lock(&transport->lock);
    bool is_taken = transport->is_running && loop_post(&transport->loop, &question->post);
    pthread_mutex_unlock(&transport->lock);
    if (!is_taken) {
        ask_fail(question, ERR_NOT_FOUND);
    }
}

enum err transport_key(struct transport *transport, struct bytes url, struct ring_id *ret_key,
                       struct err_detail *detail) {
    struct canon canon;
    struct sha256 sha256;
    pthread_mutex_lock(&transport->lock);
    int mapping = transport->mapping;
    pthread_mutex_unlock(&transport->lock);
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
        uint8_t vnode[RINGKEY_POSITION_SIZE];
        position_of_surt(&sha256, buf_bytes(&surt), (enum position_mapping)mapping, vnode);
        *ret_key = ring_id_read(vnode);
    }
    buf_done(&surt);
    canon_done(&canon);
    sha256_done(&sha256);
    return err;
}

/* ---- the loop ---- */

void transport_ask_init(struct transport *transport) {
    for (uint32_t i = 0; i < TRANSPORT_QUESTIONS_MAX; i++) {
        transport->free_slots[i] = TRANSPORT_QUESTIONS_MAX - 1 - i;
    }
    transport->free_slots_count = TRANSPORT_QUESTIONS_MAX;
}

/* The answer may come from within the step. */
static void ask_start(struct transport *transport, struct transport_question *question) {
    uint8_t memory[RING_ID_SIZE + 1];
    struct wire_writer writer;
    if (transport->state != TRANSPORT_MEMBER) {
        ask_fail(question, ERR_BUSY);
        return;
    }
    uint32_t index = transport->free_slots[--transport->free_slots_count];
    struct transport_slot *slot = &transport->slots[index];
    slot->question = question;
    slot->life++;
    wire_writer_init(&writer, memory, sizeof memory);
    message_write_id(&writer, question->key);
    wire_write_u8(&writer, question->vnodes_wanted);
    struct event event = {
        .kind = EVENT_COMMAND,
        .code = RING_FIND,
        .number = (uint64_t)slot->life << SLOT_BITS | index,
        .bytes = bytes_of(memory, sizeof memory),
    };
    transport_step(transport, &event);
}

void transport_start_questions(void *context) {
    struct transport *transport = context;
    while (transport->free_slots_count > 0) {
        struct transport_question *question = queue_take(&transport->waiting);
        if (question == NULL) {
            return;
        }
        ask_start(transport, question);
    }
}

static void ask_read_answer(const struct transport *transport, struct wire_reader *reader,
                            struct transport_answer *answer) {
    answer->hops_count = wire_read_u8(reader);
    answer->vnodes_count = wire_read_u8_max(reader, TRANSPORT_VNODES_MAX);
    for (uint8_t i = 0; i < answer->vnodes_count; i++) {
        ring_read_vnode(transport->ring, reader, &answer->vnodes[i]);
    }
    answer->err = answer->vnodes_count > 0 ? ERR_OK : ERR_UNREACHABLE;
}

void transport_on_answer(struct transport *transport, struct bytes bytes) {
    struct wire_reader reader;
    struct transport_answer answer;
    wire_reader_init(&reader, bytes);
    uint64_t number = wire_read_u64(&reader);
    ask_read_answer(transport, &reader, &answer);
    size_t index = number & (((size_t)1 << SLOT_BITS) - 1);
    ASSERT(reader.err == ERR_OK && index < TRANSPORT_QUESTIONS_MAX);
    struct transport_slot *slot = &transport->slots[index];
    struct transport_question *question = slot->question;
    ASSERT(question != NULL && (uint32_t)(number >> SLOT_BITS) == slot->life);
    slot->question = NULL;
    transport->free_slots[transport->free_slots_count++] = (uint32_t)index;
    if (transport->waiting.first != NULL) {
        /* Not from here: the ring is in the middle of a step. */
        (void)loop_post(&transport->loop, &transport->asked);
    }
    question->answered(question, &answer);
}

void transport_ask_cancel(struct transport *transport) {
    struct transport_question *question;
    for (size_t i = 0; i < TRANSPORT_QUESTIONS_MAX; i++) {
        question = transport->slots[i].question;
        transport->slots[i].question = NULL;
        if (question != NULL) {
            ask_fail(question, ERR_CANCELLED);
        }
    }
    while ((question = queue_take(&transport->waiting)) != NULL) {
        ask_fail(question, ERR_CANCELLED);
    }
}
