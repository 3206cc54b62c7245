#include "node/crowd/crowding.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/datagram.h"
#include "node/crowd/crowding_state.h"
#include "node/transport/ringing.h"

enum {
    ANSWER_HEAD_SIZE = 8 + 2,
    ANSWERS_SIZE_MAX = 1 << 20, /* more than all queries that can wait for one (waiting_max) */
    SENTENCE_SIZE_MAX = 160,
};
static const uint64_t COPY_US = 250000;
static const uint64_t BLAME_US = 1000000;

/* ---- making ---- */

struct crowding *crowding_new(const struct crowding_config *config) {
    struct peer known[CROWDING_CONTACTS_MAX];
    uint64_t seed;
    struct crowding *crowding = calloc(1, sizeof *crowding);
    if (crowding == NULL) {
        return NULL;
    }
    crowding->config = *config;
    crowding->config.clock = config->clock != NULL ? config->clock : &clock_system;
    if (config->look != NULL) {
        crowding->looked = calloc(CROWDING_LOOKS_MAX, sizeof *crowding->looked);
        if (crowding->looked == NULL) {
            free(crowding);
            return NULL;
        }
    }
    buf_init(&crowding->answers, ANSWERS_SIZE_MAX);
    pthread_mutex_init(&crowding->lock, NULL);
    crowding_init_searches(crowding);
    randombytes_buf(&seed, sizeof seed);
    prng_init(&crowding->prng, seed);
    crowding->contacts_count = crowding_files_read(config->directory, known);
    for (size_t i = 0; i < crowding->contacts_count; i++) {
        crowding->contacts[i].peer = known[i];
    }
    return crowding;
}

void crowding_free(struct crowding *crowding) {
    crowding->is_stopped = true;
    crowding_beat(crowding);
    if (crowding->crowd != NULL) {
        crowd_free(crowding->crowd);
    }
    crowding_done_searches(crowding);
    pthread_mutex_destroy(&crowding->lock);
    buf_done(&crowding->answers);
    free(crowding->looked);
    free(crowding->actions);
    free(crowding->memory);
    free(crowding);
}

static enum err make_crowd(struct crowding *crowding) {
    const struct crowd_config *config = &crowding->crowd_config;
    size_t actions_max = crowd_actions_max(config);
    size_t memory_size = crowd_memory_size(config);
    crowding->actions = calloc(actions_max, sizeof *crowding->actions);
    crowding->memory = malloc(memory_size);
    if (crowding->actions == NULL || crowding->memory == NULL) {
        return ERR_MEMORY;
    }
    outbox_init(&crowding->out, crowding->actions, actions_max, crowding->memory, memory_size);
    return crowd_new(config, &crowding->crowd);
}

void crowding_begin(struct crowding *crowding, const struct peer *self,
                    const uint8_t ring[CROWD_NETWORK_SIZE]) {
    struct crowd_config *config = &crowding->crowd_config;
    if (crowding->actions != NULL || crowding->is_stopped) {
        return; /* it has begun, or could not */
    }
    *config = crowding->config.crowd;
    config->self = *self;
    memcpy(config->network, ring, sizeof config->network);
    randombytes_buf(&config->seed, sizeof config->seed);
    config->view_size = config->view_size > 0 ? config->view_size : CROWDING_VIEW_SIZE;
    config->fanout = config->fanout > 0 ? config->fanout : CROWDING_FANOUT;
    config->searches_max = CROWDING_SEARCHES_MAX;
    if (make_crowd(crowding) != ERR_OK) {
        return;
    }
    crowding_step(crowding, &(struct event){.kind = EVENT_START});
    crowding->is_begun = true;
    crowding_join(crowding);
}

/* ---- what the crowd says ---- */

static void blame(struct crowding *crowding, const struct peer *peer, struct bytes why) {
    char sentence[SENTENCE_SIZE_MAX];
    uint64_t now = crowding_now_us(crowding);
    if (now < crowding->blame_at_us || crowding->config.blame == NULL) {
        return; /* once a second is enough to be seen */
    }
    crowding->blame_at_us = now + BLAME_US;
    snprintf(sentence, sizeof sentence, "sends what makes no sense to the crowd: %.*s", BYTES_ARG(why));
    crowding->config.blame(crowding->config.context, peer, sentence);
}

static void on_blamed(struct crowding *crowding, struct bytes bytes) {
    struct wire_reader reader;
    struct peer peer;
    wire_reader_init(&reader, bytes);
    crowd_read_peer(&reader, &peer);
    struct bytes text = wire_read_bytes(&reader, wire_reader_left(&reader));
    if (reader.err == ERR_OK) {
        blame(crowding, &peer, text);
    }
}

static void put_answer(struct crowding *crowding, uint64_t number, struct bytes finding) {
    uint8_t head[ANSWER_HEAD_SIZE];
    struct wire_writer writer;
    wire_writer_init(&writer, head, sizeof head);
    wire_write_u64(&writer, number);
    wire_write_u16(&writer, (uint16_t)finding.size);
    if (buf_reserve(&crowding->answers, sizeof head + finding.size) == ERR_OK) {
        buf_put(&crowding->answers, bytes_of(head, sizeof head));
        buf_put(&crowding->answers, finding);
    } /* else the query is lost, as on the way */
}

static void on_asked(struct crowding *crowding, struct bytes bytes) {
    const struct crowding_config *config = &crowding->config;
    uint8_t memory[CROWD_FINDING_SIZE_MAX];
    struct wire_reader reader;
    wire_reader_init(&reader, bytes);
    uint64_t number = wire_read_u64(&reader);
    struct bytes wish = wire_read_bytes(&reader, wire_reader_left(&reader));
    size_t size = config->have != NULL ? config->have(config->context, wish, memory) : 0;
    ASSERT(size <= sizeof memory);
    bool is_later = size == 0 && config->look != NULL && config->look(config->context, number, wish);
    if (!is_later) {
        put_answer(crowding, number, bytes_of(memory, size));
    }
}

static void on_notice(struct crowding *crowding, const struct action *action) {
    switch ((enum crowd_notice)action->code) {
    case CROWD_ASKED:
        on_asked(crowding, action->bytes);
        break;
    case CROWD_FOUND:
        crowding_on_found(crowding, action->bytes);
        break;
    case CROWD_LOST:
        crowding_on_lost(crowding, action->bytes);
        break;
    case CROWD_ALONE: /* seen when the step is over */
        break;
    case CROWD_BLAMED:
        on_blamed(crowding, action->bytes);
        break;
    }
}

/* ---- steps ---- */

static void step_once(struct crowding *crowding, struct event *event) {
    struct outbox *out = &crowding->out;
    event->now_us = crowding_now_us(crowding);
    outbox_clear(out);
    crowd_step(crowding->crowd, event, out);
    for (size_t i = 0; i < out->actions_count; i++) {
        const struct action *action = &out->actions[i];
        if (action->kind == ACTION_SEND) {
            struct peer to = {.address = action->to};
            memcpy(to.key, action->to_key, PEER_KEY_SIZE);
            ringing_send(crowding->config.ringing, &to, DATAGRAM_CROWD, action->bytes);
        } else if (action->kind == ACTION_NOTICE) {
            on_notice(crowding, action);
        }
    }
}

/* Answers that this step's questions brought may bring further ones. */
static void give_answers(struct crowding *crowding) {
    uint8_t finding[CROWD_FINDING_SIZE_MAX];
    for (size_t said = 0; said < crowding->answers.size;) {
        struct wire_reader reader;
        wire_reader_init(&reader, bytes_skip(buf_bytes(&crowding->answers), said));
        struct event event = {.kind = EVENT_COMMAND, .number = wire_read_u64(&reader)};
        size_t size = wire_read_u16(&reader);
        wire_read_array(&reader, finding, size); /* the buffer may move */
        ASSERT(reader.err == ERR_OK);
        said += ANSWER_HEAD_SIZE + size;
        event.code = size > 0 ? CROWD_HAVE : CROWD_HAVE_NOT;
        event.bytes = bytes_of(finding, size);
        step_once(crowding, &event);
    }
    buf_clear(&crowding->answers);
}

/* For other threads. Who is distrusted may be back in the view by the word of others: he leaves it again. */
static void copy(struct crowding *crowding) {
    struct crowd_neighbour view[CROWD_VIEW_MAX];
    uint64_t now = crowding_now_us(crowding);
    if (now < crowding->copy_at_us) {
        return;
    }
    crowding->copy_at_us = now + COPY_US;
    size_t count = crowd_neighbours(crowding->crowd, view);
    pthread_mutex_lock(&crowding->lock);
    crowding->counters = *crowd_counters(crowding->crowd);
    crowding->neighbours_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (crowding->distrusts_some && crowding_distrusts(crowding, &view[i].peer)) {
            crowding_drop(crowding, &view[i].peer);
            crowding->has_wants = true;
        } else {
            crowding->neighbours[crowding->neighbours_count++] = view[i];
        }
    }
    pthread_mutex_unlock(&crowding->lock);
}

void crowding_step(struct crowding *crowding, struct event *event) {
    step_once(crowding, event);
    give_answers(crowding);
    ringing_wake_at(crowding->config.ringing, RINGING_CROWD, crowding->out.wake_at_us);
    copy(crowding);
}

/* ---- the ring's loop ---- */

void crowding_receive(struct crowding *crowding, const struct datagram_message *message) {
    bool is_heard = crowding->crowd != NULL && !crowding->is_stopped &&
                    !(crowding->distrusts_some && crowding_is_distrusted(crowding, &message->from));
    if (!is_heard) {
        return;
    }
    struct event event = {.kind = EVENT_MESSAGE, .from = message->from.address, .bytes = message->bytes};
    memcpy(event.from_key, message->from.key, PEER_KEY_SIZE);
    uint64_t blamed_count = crowd_counters(crowding->crowd)->blamed_count;
    crowding_step(crowding, &event);
    if (crowding->has_wants) {
        crowding_take_wants(crowding);
    }
    if (crowd_counters(crowding->crowd)->blamed_count == blamed_count) {
        crowding_hear(crowding, &message->from);
    }
}

void crowding_wake(struct crowding *crowding) {
    if (crowding->crowd != NULL && !crowding->is_stopped) {
        crowding_step(crowding, &(struct event){.kind = EVENT_WAKE});
        crowding_repeat_spoiled(crowding);
        crowding_take_wants(crowding);
        crowding_join(crowding);
    }
}
