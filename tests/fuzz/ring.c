/*
 * Arbitrary messages for a ring in operation, as a hostile peer would send them.
 *
 *      input   mode byte, then times: sender byte, u16 length, message
 *
 * The header (version, charter) is filled in, otherwise nothing would get past it; the number is that of an
 * open question where the sender byte says so. Held to: no answer larger than three times the question
 * without its token, nothing sent to an address that neither asked nor was named by a member that was asked,
 * and the shape of the lists.
 */
#include "fuzz.h"

#include <stdlib.h>

#include "protocol/ring/ring.h"
#include "protocol/ring/ring_state.h"

enum { HEADER_FILLED_SIZE = 18, SENDERS_COUNT = 8 };

static void check(const struct ring *ring) {
    for (unsigned i = 0; i < ring->config.vnodes_count; i++) {
        const struct chord *chord = &ring->vnodes[i];
        ASSERT(chord->predecessor.peer.address.port != 0);
        for (unsigned j = 1; j < ring->config.list_size && chord->is_member; j++) {
            bool is_same = ring_id_equal(chord->list[j].id, chord->list[j - 1].id);
            ASSERT(!is_same);
        }
    }
    ASSERT(ring->queries_count <= ring->queries_max);
    ASSERT(ring->table.count <= ring->table.capacity);
    for (uint32_t i = 1; i < ring->table.count; i++) {
        ASSERT(ring_id_compare(table_at(&ring->table, i - 1)->vnode.id, table_at(&ring->table, i)->vnode.id) <
               0);
    }
}

struct driver {
    struct ring *ring;
    struct outbox out;
    uint64_t now_us;
};

static void step(struct driver *driver, const struct event *event) {
    outbox_clear(&driver->out);
    ring_step(driver->ring, event, &driver->out);
    check(driver->ring);
    for (size_t i = 0; i < driver->out.actions_count; i++) {
        const struct action *action = &driver->out.actions[i];
        if (action->kind != ACTION_SEND) {
            continue;
        }
        ASSERT(action->bytes.size <= STEP_MESSAGE_SIZE_MAX && action->bytes.size >= MESSAGE_HEADER_SIZE);
        bool is_answer =
            !message_is_question(action->bytes.data[1]) && action->bytes.data[1] != MESSAGE_NOTIFY;
        ASSERT(!is_answer || address_equal(&action->to, &event->from));
        uint64_t token = 0;
        if (is_answer && event->bytes.size >= MESSAGE_HEADER_SIZE) {
            memcpy(&token, event->bytes.data + 26, sizeof token);
        }
        ASSERT(!is_answer || token == query_token(driver->ring, &event->from) ||
               action->bytes.size <= 3 * event->bytes.size);
    }
}

static void begin(struct driver *driver, uint8_t mode) {
    struct event event = {.kind = EVENT_START};
    step(driver, &event);
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct peer contacts[] = {{.address = address_ipv4(10, 0, 0, 1, 7070)},
                              {.address = address_ipv4(10, 0, 0, 2, 7070)}};
    struct event join = {.kind = EVENT_COMMAND, .code = RING_JOIN};
    join.bytes = ring_write_contacts(contacts, mode % 3, memory);
    step(driver, &join);
    if (mode >= 128) {
        struct vnode list[3];
        memset(list, 0, sizeof list);
        for (unsigned i = 0; i < 3; i++) {
            list[i].peer.address = address_ipv4(10, 0, 0, (uint8_t)(i + 1), 7070);
            list[i].id = ring_id_of_node(&driver->ring->sha256, &list[i].peer.address, 0);
        }
        ring_install_for_experiment(driver->ring, list, &list[2], list, 3, 1);
    }
}

static void feed(struct driver *driver, uint8_t sender, struct bytes message) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    size_t size = message.size < sizeof memory ? message.size : sizeof memory;
    memcpy(memory, message.data, size);
    struct event event = {.kind = EVENT_MESSAGE, .now_us = driver->now_us, .bytes = bytes_of(memory, size)};
    event.from = address_ipv4(10, 0, 0, (uint8_t)(sender % SENDERS_COUNT), 7070);
    if (size >= MESSAGE_HEADER_SIZE) {
        memory[0] = RING_VERSION;
        memset(memory + 2, 0, RING_CHARTER_SIZE);
        if (sender >= 128 && driver->ring->queries_count > 0) {
            const struct query *query = &driver->ring->queries[sender % driver->ring->queries_count];
            memcpy(memory + HEADER_FILLED_SIZE, &query->number, sizeof query->number);
            event.from = query->to.peer.address;
        } else if (sender >= 64) {
            uint64_t token = query_token(driver->ring, &event.from);
            memcpy(memory + HEADER_FILLED_SIZE + 8, &token, sizeof token);
        }
    }
    step(driver, &event);
    driver->now_us += 1 + ((uint64_t)sender << 14);
    struct event wake = {.kind = EVENT_WAKE, .now_us = driver->now_us};
    step(driver, &wake);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) {
        return 0;
    }
    struct ring_config config = {
        .self = {.address = address_ipv4(10, 0, 0, 100, 7070)},
        .vnodes_count = (uint8_t)(1 + data[0] % 2),
        .list_size = 3,
        .table_capacity = 16,
        .lookups_max = 2,
    };
    struct driver driver = {.now_us = 1};
    enum err err = ring_new(&config, &driver.ring);
    size_t actions_max = ring_actions_max(&config);
    struct action *actions = calloc(actions_max, sizeof *actions);
    uint8_t *memory = malloc(ring_memory_size(&config));
    ASSERT(err == ERR_OK && actions != NULL && memory != NULL);
    outbox_init(&driver.out, actions, actions_max, memory, ring_memory_size(&config));
    begin(&driver, data[0]);
    size_t at = 1;
    while (at + 3 <= size) {
        size_t length = (size_t)(data[at + 1] | data[at + 2] << 8) % (STEP_MESSAGE_SIZE_MAX + 1);
        length = length < size - at - 3 ? length : size - at - 3;
        feed(&driver, data[at], bytes_of(data + at + 3, length));
        at += 3 + length;
    }
    ring_free(driver.ring);
    free(actions);
    free(memory);
    return 0;
}
