#include "node/crowd/crowd_driver.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/datagram.h"
#include "node/crowd/crowd_driver_state.h"
#include "node/transport/transport.h"

enum {
    ANSWER_HEAD_SIZE = 8 + 2,
    ANSWERS_SIZE_MAX = 1 << 20, /* more than all queries that can wait for one (waiting_max) */
    SENTENCE_SIZE_MAX = 160,
};
static const uint64_t COPY_US = 250000;
static const uint64_t BLAME_US = 1000000;

/* ---- making ---- */

struct crowd_driver *crowd_driver_new(const struct crowd_driver_config *config) {
    struct peer known[CROWD_DRIVER_CONTACTS_MAX];
    uint64_t seed;
    struct crowd_driver *crowd_driver = calloc(1, sizeof *crowd_driver);
    if (crowd_driver == NULL) {
        return NULL;
    }
    crowd_driver->config = *config;
    crowd_driver->config.clock = config->clock != NULL ? config->clock : &clock_system;
    if (config->look != NULL) {
        crowd_driver->looked = calloc(CROWD_DRIVER_LOOKS_MAX, sizeof *crowd_driver->looked);
        if (crowd_driver->looked == NULL) {
            free(crowd_driver);
            return NULL;
        }
    }
    buf_init(&crowd_driver->answers, ANSWERS_SIZE_MAX);
    pthread_mutex_init(&crowd_driver->lock, NULL);
    randombytes_buf(&seed, sizeof seed);
    prng_init(&crowd_driver->prng, seed);
    standing_init(&crowd_driver->standing, crowd_driver->distrusted, CROWD_DRIVER_DISTRUSTED_MAX, seed);
    crowd_driver->contacts_count = crowd_driver_files_read(config->directory, known);
    for (size_t i = 0; i < crowd_driver->contacts_count; i++) {
        crowd_driver->contacts[i].peer = known[i];
    }
    return crowd_driver;
}

void crowd_driver_free(struct crowd_driver *crowd_driver) {
    crowd_driver->is_stopped = true;
    crowd_driver_beat(crowd_driver);
    if (crowd_driver->crowd != NULL) {
        crowd_free(crowd_driver->crowd);
    }
    crowd_driver_done_searches(crowd_driver);
    pthread_mutex_destroy(&crowd_driver->lock);
    buf_done(&crowd_driver->answers);
    free(crowd_driver->looked);
    free(crowd_driver->actions);
    free(crowd_driver->memory);
    free(crowd_driver);
}

static enum err make_crowd(struct crowd_driver *crowd_driver) {
    const struct crowd_config *config = &crowd_driver->crowd_config;
    size_t actions_max = crowd_actions_max(config);
    size_t memory_size = crowd_memory_size(config);
    crowd_driver->actions = calloc(actions_max, sizeof *crowd_driver->actions);
    crowd_driver->memory = malloc(memory_size);
    if (crowd_driver->actions == NULL || crowd_driver->memory == NULL) {
        return ERR_MEMORY;
    }
    outbox_init(&crowd_driver->out, crowd_driver->actions, actions_max, crowd_driver->memory, memory_size);
    return crowd_new(config, &crowd_driver->crowd);
}

void crowd_driver_begin(struct crowd_driver *crowd_driver, const struct peer *self,
                        const uint8_t ring[CROWD_NETWORK_SIZE]) {
    struct crowd_config *config = &crowd_driver->crowd_config;
    if (crowd_driver->actions != NULL || crowd_driver->is_stopped) {
        return; /* it has begun, or could not */
    }
    *config = crowd_driver->config.crowd;
    config->self = *self;
    memcpy(config->network, ring, sizeof config->network);
    randombytes_buf(&config->seed, sizeof config->seed);
    config->view_size = config->view_size > 0 ? config->view_size : CROWD_DRIVER_VIEW_SIZE;
    config->fanout = config->fanout > 0 ? config->fanout : CROWD_DRIVER_FANOUT;
    config->searches_max = CROWD_DRIVER_SEARCHES_MAX;
    if (make_crowd(crowd_driver) != ERR_OK) {
        return;
    }
    crowd_driver_step(crowd_driver, &(struct event){.kind = EVENT_START});
    crowd_driver->is_begun = true;
    crowd_driver_join(crowd_driver);
}

/* ---- what the crowd says ---- */

static void blame(struct crowd_driver *crowd_driver, const struct peer *peer, struct bytes why) {
    char sentence[SENTENCE_SIZE_MAX];
    uint64_t now = crowd_driver_now_us(crowd_driver);
    if (now < crowd_driver->blame_at_us || crowd_driver->config.blame == NULL) {
        return; /* once a second is enough to be seen */
    }
    crowd_driver->blame_at_us = now + BLAME_US;
    snprintf(sentence, sizeof sentence, "sends what makes no sense to the crowd: %.*s", BYTES_ARG(why));
    crowd_driver->config.blame(crowd_driver->config.context, peer, sentence);
}

static void on_blamed(struct crowd_driver *crowd_driver, struct bytes bytes) {
    struct wire_reader reader;
    struct peer peer;
    wire_reader_init(&reader, bytes);
    peer_read(&reader, PEER_TAGGED, &peer);
    struct bytes text = wire_read_bytes(&reader, wire_reader_left(&reader));
    if (reader.err == ERR_OK) {
        blame(crowd_driver, &peer, text);
    }
}

static void put_answer(struct crowd_driver *crowd_driver, uint64_t number, struct bytes finding) {
    uint8_t head[ANSWER_HEAD_SIZE];
    struct wire_writer writer;
    wire_writer_init(&writer, head, sizeof head);
    wire_write_u64(&writer, number);
    wire_write_u16(&writer, (uint16_t)finding.size);
    if (buf_reserve(&crowd_driver->answers, sizeof head + finding.size) == ERR_OK) {
        buf_put(&crowd_driver->answers, bytes_of(head, sizeof head));
        buf_put(&crowd_driver->answers, finding);
    } /* else the query is lost, as on the way */
}

static void on_asked(struct crowd_driver *crowd_driver, struct bytes bytes) {
    const struct crowd_driver_config *config = &crowd_driver->config;
    uint8_t memory[CROWD_FINDING_SIZE_MAX];
    struct wire_reader reader;
    wire_reader_init(&reader, bytes);
    uint64_t number = wire_read_u64(&reader);
    struct bytes wish = wire_read_bytes(&reader, wire_reader_left(&reader));
    size_t size = config->have != NULL ? config->have(config->context, wish, memory) : 0;
    ASSERT(size <= sizeof memory);
    bool is_later = size == 0 && config->look != NULL && config->look(config->context, number, wish);
    if (!is_later) {
        put_answer(crowd_driver, number, bytes_of(memory, size));
    }
}

static void on_notice(struct crowd_driver *crowd_driver, const struct action *action) {
    switch ((enum crowd_notice)action->code) {
    case CROWD_ASKED:
        on_asked(crowd_driver, action->bytes);
        break;
    case CROWD_FOUND:
        crowd_driver_on_found(crowd_driver, action->bytes);
        break;
    case CROWD_LOST:
        crowd_driver_on_lost(crowd_driver, action->bytes);
        break;
    case CROWD_ALONE: /* seen when the step is over */
        break;
    case CROWD_BLAMED:
        on_blamed(crowd_driver, action->bytes);
        break;
    }
}

/* ---- steps ---- */

static void step_once(struct crowd_driver *crowd_driver, struct event *event) {
    struct outbox *out = &crowd_driver->out;
    event->now_us = crowd_driver_now_us(crowd_driver);
    outbox_clear(out);
    crowd_step(crowd_driver->crowd, event, out);
    for (size_t i = 0; i < out->actions_count; i++) {
        const struct action *action = &out->actions[i];
        if (action->kind == ACTION_SEND) {
            struct peer to = {.address = action->to};
            memcpy(to.key, action->to_key, PEER_KEY_SIZE);
            transport_send(crowd_driver->config.transport, &to, DATAGRAM_CROWD, action->bytes);
        } else if (action->kind == ACTION_NOTICE) {
            on_notice(crowd_driver, action);
        }
    }
}

/* Answers that this step's questions brought may bring further ones. */
static void give_answers(struct crowd_driver *crowd_driver) {
    uint8_t finding[CROWD_FINDING_SIZE_MAX];
    for (size_t said = 0; said < crowd_driver->answers.size;) {
        struct wire_reader reader;
        wire_reader_init(&reader, bytes_skip(buf_bytes(&crowd_driver->answers), said));
        struct event event = {.kind = EVENT_COMMAND, .number = wire_read_u64(&reader)};
        size_t size = wire_read_u16(&reader);
        wire_read_array(&reader, finding, size); /* the buffer may move */
        ASSERT(reader.err == ERR_OK);
        said += ANSWER_HEAD_SIZE + size;
        event.code = size > 0 ? CROWD_HAVE : CROWD_HAVE_NOT;
        event.bytes = bytes_of(finding, size);
        step_once(crowd_driver, &event);
    }
    buf_clear(&crowd_driver->answers);
}

/* For other threads. Who is distrusted may be back in the view by the word of others: he leaves it again. */
static void copy(struct crowd_driver *crowd_driver) {
    struct crowd_neighbour view[CROWD_VIEW_MAX];
    uint64_t now = crowd_driver_now_us(crowd_driver);
    if (now < crowd_driver->copy_at_us) {
        return;
    }
    crowd_driver->copy_at_us = now + COPY_US;
    size_t count = crowd_neighbours(crowd_driver->crowd, view);
    pthread_mutex_lock(&crowd_driver->lock);
    crowd_driver->counters = *crowd_counters(crowd_driver->crowd);
    crowd_driver->neighbours_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (crowd_driver->distrusts_some && crowd_driver_distrusts(crowd_driver, &view[i].peer)) {
            crowd_driver_drop(crowd_driver, &view[i].peer);
            crowd_driver->has_wants = true;
        } else {
            crowd_driver->neighbours[crowd_driver->neighbours_count++] = view[i];
        }
    }
    pthread_mutex_unlock(&crowd_driver->lock);
}

void crowd_driver_step(struct crowd_driver *crowd_driver, struct event *event) {
    step_once(crowd_driver, event);
    give_answers(crowd_driver);
    transport_wake_at(crowd_driver->config.transport, DATAGRAM_CROWD, crowd_driver->out.wake_at_us);
    copy(crowd_driver);
}

/* ---- the ring's loop ---- */

void crowd_driver_receive(struct crowd_driver *crowd_driver, const struct datagram_message *message) {
    bool is_heard =
        crowd_driver->crowd != NULL && !crowd_driver->is_stopped &&
        !(crowd_driver->distrusts_some && crowd_driver_is_distrusted(crowd_driver, &message->from));
    if (!is_heard) {
        return;
    }
    struct event event = {.kind = EVENT_MESSAGE, .from = message->from.address, .bytes = message->bytes};
    memcpy(event.from_key, message->from.key, PEER_KEY_SIZE);
    uint64_t blamed_count = crowd_counters(crowd_driver->crowd)->blamed_count;
    crowd_driver_step(crowd_driver, &event);
    if (crowd_driver->has_wants) {
        crowd_driver_take_wants(crowd_driver);
    }
    if (crowd_counters(crowd_driver->crowd)->blamed_count == blamed_count) {
        crowd_driver_hear(crowd_driver, &message->from);
    }
}

void crowd_driver_wake(struct crowd_driver *crowd_driver) {
    if (crowd_driver->crowd != NULL && !crowd_driver->is_stopped) {
        crowd_driver_step(crowd_driver, &(struct event){.kind = EVENT_WAKE});
        crowd_driver_repeat_spoiled(crowd_driver);
        crowd_driver_take_wants(crowd_driver);
        crowd_driver_join(crowd_driver);
    }
}
