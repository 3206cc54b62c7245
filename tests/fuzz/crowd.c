/*
 * Arbitrary messages for a node of a crowd in operation, as hostile neighbours would send them.
 *
 *      input   mode byte (bit 0: proofs; bit 1: joining; bit 2: searching), then times: sender byte,
 *              u16 length, message; a length of 65,535: half a second passes
 *
 * Version and network are filled in, otherwise nothing would get past them; from sender 64 on the token of a
 * join, from 128 on the number of the open shuffle and who was asked, from 192 on the number of our join.
 * Held to: the rules of the view; no answer larger than three times the question without its token; answers
 * of the overlay to who asked only.
 */
#include "fuzz.h"

#include <stdlib.h>

#include "protocol/crowd/crowd_state.h"

enum {
    NUMBER_OFFSET = 18,
    TOKEN_OFFSET = CROWD_MESSAGE_HEADER_SIZE, /* of a join */
    SENDERS_COUNT = 12,
    HALF_SECOND_US = 500000,
};

struct driver {
    struct crowd *crowd;
    struct outbox out;
    uint64_t now_us;
};

static void check_view(const struct crowd *crowd) {
    const struct view *view = &crowd->view;
    ASSERT(view->count <= view->size_max);
    for (int i = 0; i < view->count; i++) {
        const struct address *address = &view->neighbours[i].peer.address;
        ASSERT(address_is_possible(address));
        ASSERT(view_find(view, address) == i);
        ASSERT(!address_equal(address, &crowd->config.self.address));
    }
    ASSERT(crowd->overlay.join.lent_count <= CROWD_SHUFFLE_MAX + 1);
    ASSERT(crowd->overlay.sent_count <= crowd->config.shuffle_size);
    ASSERT(crowd->overlay.newcomers_count <= crowd->config.view_size);
}

static bool has_token(const struct crowd *crowd, const struct event *event) {
    uint64_t token = 0;
    bool is_join = event->bytes.size == CROWD_MESSAGE_HEADER_SIZE + sizeof token &&
                   event->bytes.data[1] == CROWD_MESSAGE_JOIN;
    if (is_join) {
        memcpy(&token, event->bytes.data + CROWD_MESSAGE_HEADER_SIZE, sizeof token);
    }
    return is_join && token == crowd_token(crowd, &event->from);
}

static void check_send(const struct driver *driver, const struct event *event, const struct action *action) {
    static const uint8_t network[CROWD_NETWORK_SIZE];
    struct crowd_message message;
    ASSERT(crowd_message_read(action->bytes, network, &message) == CROWD_MESSAGE_GOOD);
    bool is_answer = message.kind == CROWD_MESSAGE_SHUFFLED || message.kind == CROWD_MESSAGE_BUSY ||
                     message.kind == CROWD_MESSAGE_CHALLENGE || message.kind == CROWD_MESSAGE_JOINED ||
                     message.kind == CROWD_MESSAGE_ACK;
    if (is_answer) {
        ASSERT(event->kind == EVENT_MESSAGE && address_equal(&action->to, &event->from));
        ASSERT(action->bytes.size <= 3 * event->bytes.size || has_token(driver->crowd, event));
    }
}

static void step(struct driver *driver, struct event event) {
    event.now_us = driver->now_us;
    outbox_clear(&driver->out);
    crowd_step(driver->crowd, &event, &driver->out);
    check_view(driver->crowd);
    for (size_t i = 0; i < driver->out.actions_count; i++) {
        if (driver->out.actions[i].kind == ACTION_SEND) {
            check_send(driver, &event, &driver->out.actions[i]);
        }
    }
}

/* Every other wish is one that we have. */
static void answer_owner(struct driver *driver) {
    uint64_t numbers[8];
    size_t count = 0;
    for (size_t i = 0; i < driver->out.actions_count && count < 8; i++) {
        const struct action *action = &driver->out.actions[i];
        if (action->kind == ACTION_NOTICE && action->code == CROWD_ASKED) {
            memcpy(&numbers[count++], action->bytes.data, sizeof *numbers);
        }
    }
    for (size_t i = 0; i < count; i++) {
        bool has_it = numbers[i] % 2 == 0;
        step(driver, (struct event){.kind = EVENT_COMMAND,
                                    .code = has_it ? CROWD_HAVE : CROWD_HAVE_NOT,
                                    .number = numbers[i],
                                    .bytes = has_it ? BYTES("finding") : bytes_of(NULL, 0)});
    }
}

static void begin(struct driver *driver, uint8_t mode) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct peer peers[4] = {{.address = address_ipv4(10, 0, 0, 1, 7070)},
                            {.address = address_ipv4(10, 0, 0, 2, 7070)},
                            {.address = address_ipv4(10, 0, 0, 3, 7070)},
                            {.address = address_ipv4(10, 0, 0, 4, 7070)}};
    step(driver, (struct event){.kind = EVENT_START});
    crowd_install_for_experiment(driver->crowd, peers, mode >> 4 & 3);
    if ((mode & 2) != 0) {
        step(driver, (struct event){.kind = EVENT_COMMAND,
                                    .code = CROWD_JOIN,
                                    .bytes = crowd_write_contacts(peers, 4, memory)});
    }
    if ((mode & 4) != 0) {
        step(driver, (struct event){.kind = EVENT_COMMAND, .code = CROWD_FIND, .bytes = BYTES("wish")});
    }
}

static void feed(struct driver *driver, uint8_t sender, struct bytes given) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    const struct overlay *overlay = &driver->crowd->overlay;
    size_t size = given.size < sizeof memory ? given.size : sizeof memory;
    memcpy(memory, given.data, size);
    struct event event = {.kind = EVENT_MESSAGE, .bytes = bytes_of(memory, size)};
    event.from = address_ipv4(10, 0, 0, (uint8_t)(sender % SENDERS_COUNT), 7070);
    if (size >= CROWD_MESSAGE_HEADER_SIZE) {
        memory[0] = CROWD_VERSION;
        memset(memory + 2, 0, CROWD_NETWORK_SIZE);
        if (sender >= 192) {
            memcpy(memory + NUMBER_OFFSET, &overlay->join.number, sizeof overlay->join.number);
        } else if (sender >= 128 && overlay->is_open) {
            memcpy(memory + NUMBER_OFFSET, &overlay->number, sizeof overlay->number);
            event.from = overlay->partner.address;
        } else if (sender >= 64 && size == TOKEN_OFFSET + sizeof(uint64_t)) {
            uint64_t token = crowd_token(driver->crowd, &event.from);
            memcpy(memory + TOKEN_OFFSET, &token, sizeof token);
        }
    }
    step(driver, event);
    answer_owner(driver);
}

static void run(struct driver *driver, struct bytes input) {
    struct fuzz_message message;
    begin(driver, input.data[0]);
    input = bytes_skip(input, 1);
    while (fuzz_next(&input, &message)) {
        if (message.passes_time) {
            driver->now_us += HALF_SECOND_US;
            step(driver, (struct event){.kind = EVENT_WAKE});
        } else {
            feed(driver, message.sender, message.bytes);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) {
        return 0;
    }
    struct crowd_config config = {
        .self.address = address_ipv4(10, 0, 0, 5, 7070),
        .kind = (data[0] & 1) != 0 ? CROWD_PROOFS : CROWD_CYCLON,
        .view_size = 4,
        .shuffle_size = 3,
        .shuffle_us = 1000000,
        .searches_max = 2,
        .seen_max = 8,
        .waiting_max = 4,
    };
    struct driver driver = {.now_us = 1000000};
    struct action *actions = calloc(crowd_actions_max(&config), sizeof *actions);
    void *memory = malloc(crowd_memory_size(&config));
    ASSERT(actions != NULL && memory != NULL);
    outbox_init(&driver.out, actions, crowd_actions_max(&config), memory, crowd_memory_size(&config));
    enum err err = crowd_new(&config, &driver.crowd);
    ASSERT(err == ERR_OK);
    run(&driver, bytes_of(data, size));
    crowd_free(driver.crowd);
    free(actions);
    free(memory);
    return 0;
}
