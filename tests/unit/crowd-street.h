/*
 * crowd-street - a few nodes of a crowd, 10.0.0.1 to 10.0.0.N, driven by hand: steps, messages, and what came
 * out of the last step. After each step the view must be one.
 */
#ifndef MNEMON_TESTS_CROWD_STREET_H
#define MNEMON_TESTS_CROWD_STREET_H

#include "protocol/crowd/crowd_state.h"
#include "unit.h"

enum { STREET_MAX = 40, STREET_QUEUE_MAX = 4096, STREET_ACTIONS_MAX = 4096 };

struct street_letter {
    uint8_t from;
    uint8_t to;
    size_t size;
    uint8_t bytes[STEP_MESSAGE_SIZE_MAX];
};

struct street {
    struct crowd *crowds[STREET_MAX + 1]; /* by name, from 1 */
    uint64_t now_us;
    struct outbox out; /* of the last step */
    struct action actions[STREET_ACTIONS_MAX];
    uint8_t memory[STREET_ACTIONS_MAX * 256];
    struct street_letter queue[STREET_QUEUE_MAX];
    size_t queue_first;
    size_t queue_count;
};

static inline struct address street_address(uint8_t name) {
    return address_ipv4(10, 0, 0, name, 7070);
}

static inline struct peer street_peer(uint8_t name) {
    return (struct peer){.address = street_address(name)};
}

static inline void street_check_view(const struct crowd *crowd) {
    const struct view *view = &crowd->view;
    assert_true(view->count <= view->size_max);
    for (int i = 0; i < view->count; i++) {
        const struct address *address = &view->neighbours[i].peer.address;
        assert_int_equal(view_find(view, address), i);
        assert_true(address->port != 0 && !address_equal(address, &crowd->config.self.address));
    }
}

static inline void street_step(struct street *street, uint8_t name, struct event event) {
    event.now_us = street->now_us;
    outbox_clear(&street->out);
    crowd_step(street->crowds[name], &event, &street->out);
    street_check_view(street->crowds[name]);
}

static inline struct crowd *street_add(struct street *street, uint8_t name, struct crowd_config config) {
    outbox_init(&street->out, street->actions, STREET_ACTIONS_MAX, street->memory, sizeof street->memory);
    config.self = street_peer(name);
    config.seed = config.seed == 0 ? name : config.seed;
    config.searches_max = config.seen_max = config.waiting_max = 4;
    assert_int_equal(crowd_new(&config, &street->crowds[name]), ERR_OK);
    assert_true(crowd_actions_max(&config) <= STREET_ACTIONS_MAX);
    street_step(street, name, (struct event){.kind = EVENT_START});
    return street->crowds[name];
}

static inline void street_done(struct street *street) {
    for (unsigned i = 0; i <= STREET_MAX; i++) {
        crowd_free(street->crowds[i]);
        street->crowds[i] = NULL;
    }
}

static inline void street_install(struct street *street, uint8_t name, const char *names) {
    struct peer peers[CROWD_VIEW_MAX];
    size_t count = strlen(names);
    for (size_t i = 0; i < count; i++) {
        peers[i] = street_peer((uint8_t)names[i]);
    }
    crowd_install_for_experiment(street->crowds[name], peers, count);
}

static inline bool street_knows(const struct street *street, uint8_t name, uint8_t other) {
    struct address address = street_address(other);
    return view_find(&street->crowds[name]->view, &address) >= 0;
}

static inline void street_wake(struct street *street, uint8_t name) {
    street_step(street, name, (struct event){.kind = EVENT_WAKE});
}

/* The next shuffle is due now. */
static inline void street_shuffle(struct street *street, uint8_t name) {
    street->crowds[name]->overlay.shuffle_at_us = street->now_us;
    street_wake(street, name);
}

static inline void street_tell_bytes(struct street *street, uint8_t from, uint8_t to, struct bytes bytes) {
    street_step(street, to,
                (struct event){.kind = EVENT_MESSAGE, .from = street_address(from), .bytes = bytes});
}

static inline void street_tell(struct street *street, uint8_t from, uint8_t to,
                               const struct crowd_message *message) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    street_tell_bytes(street, from, to,
                      crowd_message_write(message, street->crowds[to]->config.network, memory));
}

static inline size_t street_count(const struct street *street, enum action_kind kind, uint32_t code) {
    size_t count = 0;
    for (size_t i = 0; i < street->out.actions_count; i++) {
        const struct action *action = &street->out.actions[i];
        uint32_t its_code = action->kind == ACTION_SEND ? action->bytes.data[1] : action->code;
        count += action->kind == kind && its_code == code;
    }
    return count;
}

/* The only message of the last step, of that kind and to it. */
static inline struct crowd_message street_sent(const struct street *street, uint8_t kind, uint8_t to) {
    static const uint8_t network[CROWD_NETWORK_SIZE];
    const struct action *found = NULL;
    for (size_t i = 0; i < street->out.actions_count; i++) {
        if (street->out.actions[i].kind == ACTION_SEND) {
            assert_null(found);
            found = &street->out.actions[i];
        }
    }
    assert_non_null(found);
    struct address address = street_address(to);
    struct crowd_message message = {0};
    assert_true(address_equal(&found->to, &address));
    assert_int_equal(crowd_message_read(found->bytes, network, &message), CROWD_MESSAGE_GOOD);
    assert_int_equal(message.kind, kind);
    return message;
}

/* What the last step of `from` sent is put into the queue. */
static inline void street_post(struct street *street, uint8_t from) {
    for (size_t i = 0; i < street->out.actions_count; i++) {
        const struct action *action = &street->out.actions[i];
        if (action->kind != ACTION_SEND) {
            continue;
        }
        assert_true(street->queue_count < STREET_QUEUE_MAX);
        struct street_letter *letter =
            &street->queue[(street->queue_first + street->queue_count++) % STREET_QUEUE_MAX];
        letter->from = from;
        letter->to = action->to.ip[15];
        letter->size = action->bytes.size;
        memcpy(letter->bytes, action->bytes.data, action->bytes.size);
    }
}

/* Until nothing is on its way; what goes to who is not there is lost. */
static inline void street_deliver(struct street *street) {
    while (street->queue_count > 0) {
        static struct street_letter letter;
        letter = street->queue[street->queue_first];
        street->queue_first = (street->queue_first + 1) % STREET_QUEUE_MAX;
        street->queue_count--;
        if (letter.to <= STREET_MAX && street->crowds[letter.to] != NULL) {
            street_tell_bytes(street, letter.from, letter.to, bytes_of(letter.bytes, letter.size));
            street_post(street, letter.to);
        }
    }
}

static inline void street_join(struct street *street, uint8_t name, const char *contacts) {
    struct peer peers[CROWD_CONTACTS_MAX];
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    size_t count = strlen(contacts);
    for (size_t i = 0; i < count; i++) {
        peers[i] = street_peer((uint8_t)contacts[i]);
    }
    street_step(street, name,
                (struct event){.kind = EVENT_COMMAND,
                               .code = CROWD_JOIN,
                               .bytes = crowd_write_contacts(peers, count, memory)});
}

#endif
