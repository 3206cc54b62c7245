/* A few rings at any addresses, joined by a network that neither loses nor reorders: for tests of places. */
#ifndef MNEMON_TESTS_RING_STREET_H
#define MNEMON_TESTS_RING_STREET_H

#include <stdlib.h>

#include "base/prng.h"
#include "protocol/ring/ring.h"
#include "unit.h"

enum { STREET_HOUSES_MAX = 48, STREET_LETTERS_MAX = 1 << 14, STREET_LATENCY_US = 2000 };
static const uint64_t STREET_SECOND_US = 1000000;

struct street_house {
    struct ring_config config;
    struct ring *ring; /* NULL: down */
    struct action *actions;
    uint8_t *memory;
    struct outbox out;
    uint64_t wake_at_us;
    bool is_asleep;        /* neither hears nor wakes */
    uint32_t taken_count;  /* RING_TAKEN */
    uint8_t taken_next;    /* as the last said */
    bool has_said_member;  /* RING_MEMBER, as the last said */
    uint64_t found_number; /* RING_FOUND: of the last, as the next two */
    uint8_t found_hops;
    struct ring_id found; /* the owner */
};

struct street_letter {
    uint64_t at_us;
    struct peer from;
    struct address to;
    size_t size;
    uint8_t bytes[STEP_MESSAGE_SIZE_MAX];
};

struct street {
    struct street_house houses[STREET_HOUSES_MAX];
    uint32_t count;
    uint64_t now_us;
    uint64_t seed;
    struct street_letter *letters; /* a circle, in the order of their time */
    uint32_t first;
    uint32_t letters_count;
};

static inline void street_init(struct street *street, uint64_t seed) {
    *street = (struct street){.now_us = 1, .seed = seed};
    street->letters = malloc(STREET_LETTERS_MAX * sizeof *street->letters);
    assert_non_null(street->letters);
}

static inline void street_stop(struct street *street, uint32_t house) {
    struct street_house *stopped = &street->houses[house];
    ring_free(stopped->ring);
    free(stopped->actions);
    free(stopped->memory);
    stopped->ring = NULL;
    stopped->actions = NULL;
    stopped->memory = NULL;
}

static inline void street_done(struct street *street) {
    for (uint32_t i = 0; i < street->count; i++) {
        street_stop(street, i);
    }
    free(street->letters);
}

static inline uint32_t street_build(struct street *street, struct address address,
                                    struct ring_config config) {
    assert_true(street->count < STREET_HOUSES_MAX);
    config.self = (struct peer){.address = address};
    config.self.key[0] = (uint8_t)(street->count + 1);
    config.table_capacity = 1024;
    config.lookups_max = 16;
    config.stabilize_us = STREET_SECOND_US;
    config.heal_us = 2 * STREET_SECOND_US;
    street->houses[street->count].config = config;
    return street->count++;
}

static inline void street_post(struct street *street, const struct street_house *from,
                               const struct action *action) {
    assert_true(street->letters_count < STREET_LETTERS_MAX);
    uint32_t at = (street->first + street->letters_count++) % STREET_LETTERS_MAX;
    struct street_letter *letter = &street->letters[at];
    letter->at_us = street->now_us + STREET_LATENCY_US;
    letter->from = from->config.self;
    letter->to = action->to;
    letter->size = action->bytes.size;
    memcpy(letter->bytes, action->bytes.data, action->bytes.size);
}

static inline void street_note(struct street_house *house, const struct action *action) {
    struct wire_reader reader;
    struct vnode owner;
    wire_reader_init(&reader, action->bytes);
    switch ((enum ring_notice)action->code) {
    case RING_TAKEN:
        house->taken_count++;
        house->taken_next = action->bytes.data[1];
        break;
    case RING_MEMBER:
        house->has_said_member = action->bytes.data[0] != 0;
        break;
    case RING_FOUND:
        house->found_number = wire_read_u64(&reader);
        house->found_hops = wire_read_u8(&reader);
        (void)wire_read_u8(&reader);
        ring_read_vnode(house->ring, &reader, &owner);
        house->found = owner.id;
        break;
    default:
        break;
    }
}

static inline void street_step(struct street *street, uint32_t house, struct event event) {
    struct street_house *one = &street->houses[house];
    event.now_us = street->now_us;
    outbox_clear(&one->out);
    ring_step(one->ring, &event, &one->out);
    one->wake_at_us = one->out.wake_at_us;
    for (size_t i = 0; i < one->out.actions_count; i++) {
        const struct action *action = &one->out.actions[i];
        if (action->kind == ACTION_SEND) {
            street_post(street, one, action);
        } else if (action->kind == ACTION_NOTICE) {
            street_note(one, action);
        }
    }
}

/* Through the contact; itself: a ring of its own. */
static inline void street_join(struct street *street, uint32_t house, uint32_t contact) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct event event = {.kind = EVENT_COMMAND, .code = RING_JOIN};
    event.bytes = ring_write_contacts(&street->houses[contact].config.self, contact == house ? 0 : 1, memory);
    street_step(street, house, event);
}

static inline void street_start(struct street *street, uint32_t house, uint32_t contact) {
    struct street_house *one = &street->houses[house];
    one->config.seed = ++street->seed;
    size_t actions_max = ring_actions_max(&one->config);
    assert_int_equal(ring_new(&one->config, &one->ring), ERR_OK);
    one->actions = calloc(actions_max, sizeof *one->actions);
    one->memory = malloc(ring_memory_size(&one->config));
    outbox_init(&one->out, one->actions, actions_max, one->memory, ring_memory_size(&one->config));
    one->taken_count = 0;
    street_step(street, house, (struct event){.kind = EVENT_START});
    street_join(street, house, contact);
}

static inline void street_deliver(struct street *street) {
    struct street_letter letter = street->letters[street->first];
    street->first = (street->first + 1) % STREET_LETTERS_MAX;
    street->letters_count--;
    for (uint32_t i = 0; i < street->count; i++) {
        const struct street_house *house = &street->houses[i];
        if (house->ring != NULL && !house->is_asleep &&
            address_equal(&house->config.self.address, &letter.to)) {
            struct event event = {.kind = EVENT_MESSAGE, .from = letter.from.address};
            event.bytes = bytes_of(letter.bytes, letter.size);
            memcpy(event.from_key, letter.from.key, PEER_KEY_SIZE);
            street_step(street, i, event);
            return;
        }
    }
}

static inline void street_run(struct street *street, uint64_t us) {
    uint64_t end_us = street->now_us + us;
    for (;;) {
        uint64_t next_us = street->letters_count > 0 ? street->letters[street->first].at_us : UINT64_MAX;
        uint32_t waking = UINT32_MAX;
        for (uint32_t i = 0; i < street->count; i++) {
            const struct street_house *house = &street->houses[i];
            if (house->ring != NULL && !house->is_asleep && house->wake_at_us < next_us) {
                next_us = house->wake_at_us;
                waking = i;
            }
        }
        if (next_us > end_us) {
            street->now_us = end_us;
            return;
        }
        street->now_us = next_us > street->now_us ? next_us : street->now_us;
        if (waking == UINT32_MAX) {
            street_deliver(street);
        } else {
            street_step(street, waking, (struct event){.kind = EVENT_WAKE});
        }
    }
}

/* ---- what must hold ---- */

struct street_vnode {
    const struct vnode *vnode;
    const struct ring *ring;
    uint32_t house;
    uint8_t number; /* of the ring's places */
};

struct street_map {
    struct street_vnode vnodes[STREET_HOUSES_MAX * RING_VIRTUAL_MAX];
    uint32_t count;
};

static inline int street_compare(const void *a, const void *b) {
    return ring_id_compare(((const struct street_vnode *)a)->vnode->id,
                           ((const struct street_vnode *)b)->vnode->id);
}

/* All places that say they are members, by ID. False where some of a house that is up do not. */
static inline bool street_draw(const struct street *street, struct street_map *map) {
    map->count = 0;
    for (uint32_t i = 0; i < street->count; i++) {
        const struct ring *ring = street->houses[i].ring;
        for (uint8_t j = 0; ring != NULL && j < ring_vnodes_count(ring); j++) {
            if (!ring_is_member(ring, j)) {
                return false;
            }
            map->vnodes[map->count++] = (struct street_vnode){ring_vnode_at(ring, j), ring, i, j};
        }
    }
    qsort(map->vnodes, map->count, sizeof *map->vnodes, street_compare);
    return true;
}

static inline bool street_is_same(const struct vnode *a, const struct vnode *b) {
    return ring_id_equal(a->id, b->id) && address_equal(&a->peer.address, &b->peer.address);
}

/* Each place once, each predecessor the one before it, each list those behind it. */
static inline bool street_is_ideal(const struct street *street) {
    static struct street_map map;
    if (!street_draw(street, &map)) {
        return false;
    }
    for (uint32_t i = 0; i < map.count; i++) {
        const struct street_vnode *here = &map.vnodes[i];
        const struct street_vnode *before = &map.vnodes[(i + map.count - 1) % map.count];
        if ((map.count > 1 && ring_id_equal(before->vnode->id, here->vnode->id)) ||
            !street_is_same(ring_predecessor(here->ring, here->number), before->vnode)) {
            return false;
        }
        for (uint8_t j = 0; j < ring_list_size(here->ring) && j + 1u < map.count; j++) {
            const struct street_vnode *behind = &map.vnodes[(i + 1 + j) % map.count];
            if (!street_is_same(ring_successor(here->ring, here->number, j), behind->vnode)) {
                return false;
            }
        }
    }
    return true;
}

static inline bool street_settles(struct street *street, unsigned seconds) {
    for (unsigned i = 0; i < 4 * seconds && !street_is_ideal(street); i++) {
        street_run(street, STREET_SECOND_US / 4);
    }
    return street_is_ideal(street);
}

#endif
