/*
 * Arbitrary messages for a node of a group in operation, as hostile members and strangers would send them.
 *
 *      input   mode byte (bit 0: joining; bit 1: master; bit 2: open), then times: sender byte, u16 length,
 *              message; a length of 65,535: a minute passes
 *
 * Version and group are filled in, otherwise nothing would get past them. From sender 64 on the token of a
 * join is right; from 128 on the number is that of an echo or report of ours, from its receiver; from 192 on
 * the signature of a pulse or of a document of one piece is good, of who signs it. Held to: what the topology
 * must be; strangers get no more than they sent, unless they proved their address; nobody comes in without a
 * token at a closed group; no message of ours is malformed.
 */
#include "fuzz.h"

#include <stdlib.h>

#include "base/map.h"
#include "protocol/group/group_state.h"

enum {
    MEMBERS_COUNT = 6,
    SENDERS_COUNT = 12,
    NUMBER_OFFSET = 18,
    TOKEN_OFFSET = GROUP_MESSAGE_HEADER_SIZE,
    SELF_JOINING = 9,
    SELF_MEMBER = 2,
    MODE_JOINS = 1,
    MODE_MASTER = 2,
    MODE_OPEN = 4,
    TERM = 511,
};

struct driver {
    struct group *group;
    struct outbox out;
    uint64_t now_us;
    uint64_t token; /* last told */
    struct address token_for;
};

static struct peer peer_of(uint32_t index) {
    struct peer peer = {.address = address_ipv4(10, 0, 0, (uint8_t)(index + 1), 7070)};
    peer.key[0] = (uint8_t)(index + 1);
    return peer;
}

static void make_signature(const uint8_t *key, struct bytes bytes, uint8_t *signature) {
    uint64_t hash = map_hash(bytes, map_hash(bytes_of(key, PEER_KEY_SIZE), 1));
    for (unsigned i = 0; i < GROUP_SIGNATURE_SIZE; i++) {
        signature[i] = (uint8_t)(hash >> i % 8 * 8);
    }
}

static void sign(void *context, struct bytes bytes, uint8_t *signature) {
    make_signature(((const struct peer *)context)->key, bytes, signature);
}

static bool verify(void *context, const uint8_t *key, struct bytes bytes, const uint8_t *signature) {
    uint8_t expected[GROUP_SIGNATURE_SIZE];
    (void)context;
    make_signature(key, bytes, expected);
    return memcmp(expected, signature, GROUP_SIGNATURE_SIZE) == 0;
}

/* ---- what must hold ---- */

static void check_group(const struct group *group) {
    const struct topology *topology = group->topology;
    ASSERT(topology->members_count <= GROUP_MEMBERS_MAX);
    ASSERT(group->mode != GROUP_MEMBER || group->position < topology->members_count);
    ASSERT(group->flood.targets_count <= 2 * GROUP_MEMBERS_MAX);
    ASSERT(group->former_count <= GROUP_MEMBERS_MAX);
    ASSERT(group->master.arrivals_count <= GROUP_MEMBERS_MAX);
    for (uint32_t i = 0; i < topology->members_count; i++) {
        ASSERT(group_find_key(topology, topology->members[i].key) == i);
        ASSERT(topology_find(topology, &topology->members[i].address) == i);
    }
}

static void check_send(struct driver *driver, const struct event *event, const struct action *action,
                       bool is_stranger) {
    struct group_message message;
    enum group_message_verdict verdict =
        group_message_read(action->bytes, driver->group->config.id, &message);
    ASSERT(verdict == GROUP_MESSAGE_GOOD);
    if (message.kind == GROUP_MESSAGE_CHALLENGE) {
        driver->token = message.token;
        driver->token_for = action->to;
    }
    bool is_back = event->kind == EVENT_MESSAGE && address_equal(&action->to, &event->from);
    bool is_proved = message.kind == GROUP_MESSAGE_TAKEN || message.kind == GROUP_MESSAGE_ACK ||
                     message.kind == GROUP_MESSAGE_JOIN || message.kind == GROUP_MESSAGE_REFUSED;
    if (is_stranger && is_back && !is_proved) {
        ASSERT(action->bytes.size <= event->bytes.size);
    }
}

static void step(struct driver *driver, struct event event) {
    struct peer from = event_sender(&event);
    bool is_stranger = group_find(driver->group, &from) == GROUP_NOWHERE;
    event.now_us = driver->now_us;
    outbox_clear(&driver->out);
    group_step(driver->group, &event, &driver->out);
    check_group(driver->group);
    uint64_t save_number = 0;
    for (size_t i = 0; i < driver->out.actions_count; i++) {
        const struct action *action = &driver->out.actions[i];
        if (action->kind == ACTION_SEND) {
            check_send(driver, &event, action, is_stranger);
        } else if (action->kind == ACTION_SAVE) {
            save_number = action->number;
        }
    }
    if (save_number != 0) {
        step(driver, (struct event){.kind = EVENT_SAVED, .code = GROUP_SLOT, .number = save_number});
    }
}

/* ---- what comes in ---- */

/* Members 0 … 5 in a ring; we are one of them, or the first. */
static void restore(struct driver *driver) {
    static uint8_t memory[1024];
    struct peer master = peer_of(0);
    struct topology *topology = calloc(1, sizeof *topology);
    struct wire_writer writer;
    ASSERT(topology != NULL);
    topology->sequence = 3;
    topology->k = 2;
    for (uint16_t i = 0; i < MEMBERS_COUNT; i++) {
        topology->members[topology->members_count++] = peer_of(i);
        if (i + 1 < MEMBERS_COUNT) {
            topology->edges[topology->edges_count++] = (struct topology_edge){i, (uint16_t)(i + 1), 1000};
        }
    }
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_bytes(&writer, BYTES("topology"));
    wire_write_bytes(&writer, bytes_of(driver->group->config.id, GROUP_ID_SIZE));
    wire_write_u32(&writer, TERM);
    wire_write_bytes(&writer, bytes_of(master.key, PEER_KEY_SIZE));
    size_t size = writer.size;
    size += topology_write(topology, memory + size, sizeof memory - size).size;
    make_signature(master.key, bytes_of(memory, size), memory + size);
    free(topology);
    step(driver, (struct event){.kind = EVENT_RESTORED,
                                .code = GROUP_SLOT,
                                .bytes = bytes_of(memory, size + GROUP_SIGNATURE_SIZE)});
    ASSERT(driver->group->mode == GROUP_MEMBER);
}

static void begin(struct driver *driver, uint8_t mode) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct peer contact = peer_of(0);
    if ((mode & MODE_JOINS) == 0) {
        restore(driver);
    }
    step(driver, (struct event){.kind = EVENT_START});
    if ((mode & MODE_JOINS) != 0) {
        step(driver, (struct event){.kind = EVENT_COMMAND,
                                    .code = GROUP_JOIN,
                                    .bytes = group_write_peer(&contact, BYTES("papers"), memory)});
    }
}

/* A pulse, or a document in one piece, is signed by the key that it names or by the master. */
static void sign_message(const struct group *group, uint8_t *memory, size_t size) {
    struct group_message message;
    const struct peer master = peer_of(0);
    if (group_message_read(bytes_of(memory, size), group->config.id, &message) != GROUP_MESSAGE_GOOD) {
        return;
    }
    if (message.kind == GROUP_MESSAGE_PULSE) {
        uint8_t text[GROUP_PULSE_SIZE];
        make_signature(master.key, group_message_pulse(group->config.id, message.version, message.beat, text),
                       memory + size - GROUP_SIGNATURE_SIZE);
    } else if (message.kind == GROUP_MESSAGE_PIECE && message.pieces_count == 1 &&
               message.contents.size >= GROUP_DOCUMENT_HEAD_SIZE + GROUP_SIGNATURE_SIZE) {
        uint8_t *document = memory + (message.contents.data - memory);
        size_t signed_size = message.contents.size - GROUP_SIGNATURE_SIZE;
        memcpy(document, "topology", 8);
        memcpy(document + 8, group->config.id, GROUP_ID_SIZE);
        make_signature(document + GROUP_DOCUMENT_HEAD_SIZE - PEER_KEY_SIZE, bytes_of(document, signed_size),
                       document + signed_size);
    }
}

static void fill_in(struct driver *driver, uint8_t sender, uint8_t *memory, size_t size,
                    struct event *event) {
    const struct group *group = driver->group;
    memory[0] = GROUP_VERSION;
    memcpy(memory + 2, group->config.id, GROUP_ID_SIZE);
    if (sender >= 192) {
        sign_message(group, memory, size);
    } else if (sender >= 128) {
        const struct group_echo *echo = &group->measure.echoes[sender % GROUP_ECHOES_MAX];
        uint64_t number = echo->number != 0 ? echo->number : group->measure.report_number;
        const struct peer *to = echo->number != 0 ? &echo->to : group_master(group);
        memcpy(memory + NUMBER_OFFSET, &number, sizeof number);
        if (to != NULL) {
            event->from = to->address;
            memcpy(event->from_key, to->key, PEER_KEY_SIZE);
        }
    } else if (sender >= 64 && size >= TOKEN_OFFSET + sizeof driver->token &&
               memory[1] == GROUP_MESSAGE_JOIN) {
        event->from = driver->token_for;
        memset(event->from_key, 0, PEER_KEY_SIZE);
        event->from_key[0] = driver->token_for.ip[15];
        memcpy(memory + TOKEN_OFFSET, &driver->token, sizeof driver->token);
    }
}

static void feed(struct driver *driver, uint8_t sender, struct bytes given) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    size_t size = given.size < sizeof memory ? given.size : sizeof memory;
    struct peer from = peer_of(sender % SENDERS_COUNT);
    struct event event = {.kind = EVENT_MESSAGE, .from = from.address};
    memcpy(memory, given.data, size);
    memcpy(event.from_key, from.key, PEER_KEY_SIZE);
    if (size >= GROUP_MESSAGE_HEADER_SIZE) {
        fill_in(driver, sender, memory, size, &event);
    }
    event.bytes = bytes_of(memory, size);
    step(driver, event);
}

static void run(struct driver *driver, struct bytes input) {
    struct fuzz_message message;
    begin(driver, input.data[0]);
    input = bytes_skip(input, 1);
    while (fuzz_next(&input, &message)) {
        if (message.passes_time) {
            driver->now_us += GROUP_MINUTE_US;
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
    uint32_t member = (data[0] & MODE_MASTER) != 0 ? 0 : SELF_MEMBER;
    struct peer self = peer_of((data[0] & MODE_JOINS) != 0 ? SELF_JOINING : member);
    struct group_config config = {.self = self,
                                  .id = "fuzzed group",
                                  .seed = 1,
                                  .is_open = (data[0] & MODE_OPEN) != 0,
                                  .signer = {.context = &self, .sign = sign, .verify = verify}};
    memcpy(config.founder, peer_of(0).key, PEER_KEY_SIZE);
    struct driver driver = {.now_us = GROUP_MINUTE_US};
    struct action *actions = calloc(group_actions_max(&config), sizeof *actions);
    void *memory = malloc(group_memory_size(&config));
    ASSERT(actions != NULL && memory != NULL);
    outbox_init(&driver.out, actions, group_actions_max(&config), memory, group_memory_size(&config));
    enum err err = group_new(&config, &driver.group);
    ASSERT(err == ERR_OK);
    run(&driver, bytes_of(data, size));
    group_free(driver.group);
    free(actions);
    free(memory);
    return 0;
}
