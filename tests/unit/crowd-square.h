/* Crowds in one process, each with a view that the test gives it, and a network with one latency for all. */
#ifndef MNEMON_TESTS_CROWD_SQUARE_H
#define MNEMON_TESTS_CROWD_SQUARE_H

#include <stdlib.h>

#include "base/prng.h"
#include "protocol/crowd/crowd.h"
#include "unit.h"

enum { SQUARE_NODES_MAX = 256, SQUARE_LATENCY_US = 10000 };
static const uint64_t SQUARE_SECOND_US = 1000000;
static const uint64_t SQUARE_NEVER_US = 1000000000000000; /* no shuffles: views stay as they are given */
static const uint8_t SQUARE_NETWORK[CROWD_NETWORK_SIZE] = {'s', 'q', 'u', 'a', 'r', 'e'};

static const struct bytes SQUARE_WISH = {(const uint8_t *)"a wish", 6};

struct square_node {
    struct crowd *crowd;
    struct action *actions;
    uint8_t *memory;
    struct outbox out;
    struct peer self;
    uint64_t wake_at_us;
    bool is_dead;       /* hears nothing */
    bool is_slow;       /* its owner answers only when the test does */
    struct bytes holds; /* the wish that it has something for; empty: nothing */

    /* What the owner was told. */
    uint32_t asked_count;
    uint64_t asked_last;
    uint32_t found_count;
    uint8_t found_hops; /* of the last */
    struct peer found_holder;
    uint64_t found_at_us; /* the first */
    uint32_t lost_count;
    bool lost_unasked;
    uint64_t lost_at_us;
    /* What left it. */
    uint32_t sent[CROWD_MESSAGE_KINDS_END];
    uint8_t sent_ttl; /* of the last query */
    uint8_t sent_fanout;
};

struct square_letter {
    uint64_t at_us;
    uint32_t from;
    uint32_t to;
    uint32_t size;
    uint8_t *bytes;
};

struct square {
    struct square_node nodes[SQUARE_NODES_MAX];
    uint32_t count;
    uint64_t now_us;
    struct square_letter *letters; /* a circle, in the order of their time */
    uint32_t letters_max;
    uint32_t first;
    uint32_t letters_count;
};

static inline void square_step(struct square *square, uint32_t index, struct event event);

static inline struct peer square_peer(uint32_t index) {
    struct peer peer = {.address = address_ipv4(10, 0, (uint8_t)(index >> 8), (uint8_t)index, 7000)};
    peer.key[0] = (uint8_t)(index + 1);
    peer.key[1] = 1;
    return peer;
}

static inline void square_init(struct square *square, uint32_t count, const struct crowd_config *config) {
    assert_true(count <= SQUARE_NODES_MAX);
    *square = (struct square){.count = count, .now_us = SQUARE_SECOND_US, .letters_max = 1 << 12};
    square->letters = malloc(square->letters_max * sizeof *square->letters);
    for (uint32_t i = 0; i < count; i++) {
        struct square_node *node = &square->nodes[i];
        struct crowd_config own = *config;
        node->self = square_peer(i);
        own.self = node->self;
        own.seed = prng_mix(i + 1) ^ config->seed;
        own.shuffle_us = SQUARE_NEVER_US;
        memcpy(own.network, SQUARE_NETWORK, sizeof own.network);
        assert_int_equal(crowd_new(&own, &node->crowd), ERR_OK);
        size_t actions_max = crowd_actions_max(&own);
        node->actions = calloc(actions_max, sizeof *node->actions);
        node->memory = malloc(crowd_memory_size(&own));
        outbox_init(&node->out, node->actions, actions_max, node->memory, crowd_memory_size(&own));
        square_step(square, i, (struct event){.kind = EVENT_START});
    }
}

static inline void square_done(struct square *square) {
    for (uint32_t i = 0; i < square->letters_count; i++) {
        free(square->letters[(square->first + i) % square->letters_max].bytes);
    }
    for (uint32_t i = 0; i < square->count; i++) {
        crowd_free(square->nodes[i].crowd);
        free(square->nodes[i].actions);
        free(square->nodes[i].memory);
    }
    free(square->letters);
}

/* Its view: these nodes. */
static inline void square_knows(struct square *square, uint32_t index, const uint32_t *known, size_t count) {
    struct peer peers[CROWD_VIEW_MAX];
    for (size_t i = 0; i < count; i++) {
        peers[i] = square_peer(known[i]);
    }
    crowd_install_for_experiment(square->nodes[index].crowd, peers, count);
}

static inline void square_post(struct square *square, uint32_t from, uint32_t to, struct bytes bytes) {
    if (square->letters_count == square->letters_max) {
        struct square_letter *letters = malloc(2 * square->letters_max * sizeof *letters);
        for (uint32_t i = 0; i < square->letters_count; i++) {
            letters[i] = square->letters[(square->first + i) % square->letters_max];
        }
        free(square->letters);
        square->letters = letters;
        square->letters_max *= 2;
        square->first = 0;
    }
    uint32_t at = (square->first + square->letters_count++) % square->letters_max;
    struct square_letter letter = {square->now_us + SQUARE_LATENCY_US, from, to, (uint32_t)bytes.size,
                                   malloc(bytes.size)};
    memcpy(letter.bytes, bytes.data, bytes.size);
    square->letters[at] = letter;
}

static inline uint32_t square_index(const struct address *address) {
    return (uint32_t)address->ip[14] << 8 | address->ip[15];
}

static inline void square_hear(struct square *square, struct square_node *node, const struct action *action) {
    struct wire_reader reader;
    wire_reader_init(&reader, action->bytes);
    if (action->code == CROWD_FOUND) {
        wire_read_u64(&reader);
        node->found_hops = wire_read_u8(&reader);
        peer_read(&reader, PEER_TAGGED, &node->found_holder);
        assert_int_equal(reader.err, ERR_OK);
        node->found_at_us = node->found_count == 0 ? square->now_us : node->found_at_us;
        node->found_count++;
    } else if (action->code == CROWD_LOST) {
        wire_read_u64(&reader);
        node->lost_unasked = wire_read_bool(&reader);
        assert_int_equal(wire_reader_finish(&reader, NULL), ERR_OK);
        node->lost_at_us = square->now_us;
        node->lost_count++;
    } else if (action->code == CROWD_ASKED) {
        node->asked_last = wire_read_u64(&reader);
        node->asked_count++;
    }
}

static inline void square_answer(struct square *square, uint32_t index, uint64_t number, bool has) {
    struct event event = {.kind = EVENT_COMMAND, .code = CROWD_HAVE_NOT, .number = number};
    if (has) {
        event.code = CROWD_HAVE;
        event.bytes = BYTES("a finding");
    }
    square_step(square, index, event);
}

static inline void square_step(struct square *square, uint32_t index, struct event event) {
    struct square_node *node = &square->nodes[index];
    uint64_t asked[16];
    bool has[16];
    size_t asked_count = 0;
    event.now_us = square->now_us;
    outbox_clear(&node->out);
    crowd_step(node->crowd, &event, &node->out);
    node->wake_at_us = node->out.wake_at_us;
    for (size_t i = 0; i < node->out.actions_count; i++) {
        const struct action *action = &node->out.actions[i];
        if (action->kind == ACTION_NOTICE) {
            square_hear(square, node, action);
            if (action->code == CROWD_ASKED && !node->is_slow) {
                assert_true(asked_count < 16);
                asked[asked_count] = node->asked_last;
                has[asked_count++] =
                    node->holds.size > 0 && bytes_equal(bytes_skip(action->bytes, 8), node->holds);
            }
            continue;
        }
        static struct crowd_message message; /* large, and only looked at here */
        assert_int_equal(crowd_message_read(action->bytes, SQUARE_NETWORK, &message), CROWD_MESSAGE_GOOD);
        node->sent[message.kind]++;
        if (message.kind == CROWD_MESSAGE_QUERY) {
            node->sent_ttl = message.ttl;
            node->sent_fanout = message.fanout;
        }
        square_post(square, index, square_index(&action->to), action->bytes);
    }
    for (size_t i = 0; i < asked_count; i++) {
        square_answer(square, index, asked[i], has[i]);
    }
}

static inline void square_deliver(struct square *square) {
    struct square_letter letter = square->letters[square->first];
    square->first = (square->first + 1) % square->letters_max;
    square->letters_count--;
    if (letter.to < square->count && !square->nodes[letter.to].is_dead) {
        struct peer from = square_peer(letter.from);
        struct event event = {.kind = EVENT_MESSAGE, .from = from.address};
        event.bytes = bytes_of(letter.bytes, letter.size);
        memcpy(event.from_key, from.key, PEER_KEY_SIZE);
        square_step(square, letter.to, event);
    }
    free(letter.bytes);
}

static inline void square_run(struct square *square, uint64_t us) {
    uint64_t end_us = square->now_us + us;
    for (;;) {
        uint64_t next_us = square->letters_count > 0 ? square->letters[square->first].at_us : UINT64_MAX;
        uint32_t waker = UINT32_MAX;
        for (uint32_t i = 0; i < square->count; i++) {
            if (!square->nodes[i].is_dead && square->nodes[i].wake_at_us < next_us) {
                next_us = square->nodes[i].wake_at_us;
                waker = i;
            }
        }
        if (next_us > end_us) {
            square->now_us = end_us;
            return;
        }
        square->now_us = next_us > square->now_us ? next_us : square->now_us;
        if (waker == UINT32_MAX) {
            square_deliver(square);
        } else {
            square_step(square, waker, (struct event){.kind = EVENT_WAKE});
        }
    }
}

static inline void square_find(struct square *square, uint32_t index, uint64_t number, struct bytes wish) {
    square_step(square, index,
                (struct event){.kind = EVENT_COMMAND, .code = CROWD_FIND, .number = number, .bytes = wish});
}

/* A message made by hand, as though it came from that node. */
static inline void square_send(struct square *square, uint32_t from, uint32_t to,
                               struct crowd_message message) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    square_post(square, from, to, crowd_message_write(&message, SQUARE_NETWORK, memory));
}

static inline const struct crowd_counters *square_counters(const struct square *square, uint32_t index) {
    return crowd_counters(square->nodes[index].crowd);
}

/* ---- what several tests need ---- */

/* The first knows all others, they know nobody. */
static inline void square_make_star(struct square *square, uint32_t count,
                                    const struct crowd_config *config) {
    uint32_t known[SQUARE_NODES_MAX];
    square_init(square, count, config);
    for (uint32_t i = 1; i < count; i++) {
        known[i - 1] = i;
    }
    square_knows(square, 0, known, count - 1);
}

static inline struct crowd_message square_query(uint64_t id, uint8_t ttl) {
    return (struct crowd_message){.kind = CROWD_MESSAGE_QUERY,
                                  .number = id,
                                  .ttl = ttl,
                                  .hops = 1,
                                  .fanout = 5,
                                  .contents = SQUARE_WISH};
}

static inline void square_make_random(struct square *square, uint32_t count,
                                      const struct crowd_config *config) {
    struct prng prng;
    prng_init(&prng, 11);
    square_init(square, count, config);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t known[25];
        for (uint32_t k = 0; k < 25; k++) {
            known[k] = (uint32_t)prng_below(&prng, count);
        }
        square_knows(square, i, known, 25);
    }
}

#endif
