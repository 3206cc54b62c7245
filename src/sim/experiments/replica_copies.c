#include "sim/experiments/replica_copies.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

static int by_place(const void *a, const void *b) {
    const struct replica_object *first = a;
    const struct replica_object *second = b;
    return ring_id_compare(first->place, second->place);
}

enum err replica_copies_init(struct replica_copies *copies, uint32_t nodes_count, uint32_t objects_count,
                             struct prng *prng) {
    ASSERT(nodes_count > 0 && objects_count > 0);
    *copies = (struct replica_copies){.nodes_count = nodes_count, .objects_count = objects_count};
    copies->objects = calloc(objects_count, sizeof *copies->objects);
    copies->parts = calloc(nodes_count, objects_count);
    copies->held_count = calloc(nodes_count, sizeof *copies->held_count);
    if (copies->objects == NULL || copies->parts == NULL || copies->held_count == NULL) {
        replica_copies_done(copies);
        return ERR_MEMORY;
    }
    for (uint32_t i = 0; i < objects_count; i++) {
        copies->objects[i].place.high = prng_u64(prng);
        copies->objects[i].place.low = prng_u64(prng);
    }
    qsort(copies->objects, objects_count, sizeof *copies->objects, by_place);
    return ERR_OK;
}

void replica_copies_done(struct replica_copies *copies) {
    free(copies->objects);
    free(copies->parts);
    free(copies->held_count);
    *copies = (struct replica_copies){0};
}

/* How many objects lie at or before the place. */
static uint32_t count_up_to(const struct replica_copies *copies, struct ring_id place) {
    uint32_t low = 0;
    uint32_t high = copies->objects_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ring_id_compare(copies->objects[middle].place, place) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void replica_copies_range(const struct replica_copies *copies, struct ring_id from, struct ring_id to,
                          uint32_t *ret_first, uint32_t *ret_count) {
    uint32_t first = count_up_to(copies, from);
    uint32_t end = count_up_to(copies, to);
    bool is_wrapped = ring_id_compare(from, to) >= 0;
    *ret_first = first % copies->objects_count;
    *ret_count = is_wrapped ? copies->objects_count - first + end : end - first;
}

uint32_t replica_copies_next(const struct replica_copies *copies, uint32_t node, uint32_t object,
                             uint32_t end) {
    const uint8_t *parts = replica_copies_of(copies, node);
    while (object < end) {
        uint32_t round = object - object % copies->objects_count;
        uint32_t stop = end - round < copies->objects_count ? end : round + copies->objects_count;
        const uint8_t *found = memchr(parts + (object - round), REPLICA_WHOLE, stop - object);
        if (found != NULL) {
            return round + (uint32_t)(found - parts);
        }
        object = stop;
    }
    return end;
}

static void light(struct replica_copies *copies, struct replica_object *object, uint64_t now_us) {
    if (object->up_count++ == 0 && object->is_born) {
        copies->dark_us += now_us - object->dark_since_us;
    }
}

static void dim(struct replica_object *object, uint64_t now_us) {
    ASSERT(object->up_count > 0);
    if (--object->up_count == 0) {
        object->dark_since_us = now_us;
    }
}

void replica_copies_add(struct replica_copies *copies, uint32_t node, uint32_t object, uint64_t now_us) {
    uint8_t *parts = &replica_copies_of(copies, node)[object];
    struct replica_object *meant = &copies->objects[object];
    ASSERT(*parts < REPLICA_WHOLE && !meant->is_lost);
    *parts = REPLICA_WHOLE;
    copies->held_count[node]++;
    copies->copies_count++;
    meant->copies_count++;
    light(copies, meant, now_us);
    copies->born_count += !meant->is_born;
    meant->is_born = true;
}

static void copies_forget(struct replica_copies *copies, uint32_t node, uint32_t object, bool is_up,
                          uint64_t now_us) {
    struct replica_object *meant = &copies->objects[object];
    copies->held_count[node]--;
    copies->copies_count--;
    if (is_up) {
        dim(meant, now_us);
    }
    if (--meant->copies_count == 0) {
        meant->is_lost = true;
        copies->lost_count++;
        copies->dark_us += now_us - meant->dark_since_us; /* from now on it is lost instead */
    }
}

void replica_copies_drop(struct replica_copies *copies, uint32_t node, uint32_t object, uint64_t now_us) {
    ASSERT(replica_copies_has(copies, node, object));
    replica_copies_of(copies, node)[object] = 0;
    copies_forget(copies, node, object, true, now_us);
}

void replica_copies_turn(struct replica_copies *copies, uint32_t node, bool is_up, uint64_t now_us) {
    uint32_t end = copies->objects_count;
    for (uint32_t i = replica_copies_next(copies, node, 0, end); i < end;
         i = replica_copies_next(copies, node, i + 1, end)) {
        if (is_up) {
            light(copies, &copies->objects[i], now_us);
        } else {
            dim(&copies->objects[i], now_us);
        }
    }
}

void replica_copies_wipe(struct replica_copies *copies, uint32_t node, bool is_up, uint64_t now_us) {
    uint32_t end = copies->objects_count;
    for (uint32_t i = replica_copies_next(copies, node, 0, end); i < end;
         i = replica_copies_next(copies, node, i + 1, end)) {
        copies_forget(copies, node, i, is_up, now_us);
    }
    memset(replica_copies_of(copies, node), 0, copies->objects_count);
}

uint64_t replica_copies_dark_us(const struct replica_copies *copies, uint64_t now_us) {
    uint64_t dark_us = copies->dark_us;
    for (uint32_t i = 0; i < copies->objects_count; i++) {
        const struct replica_object *object = &copies->objects[i];
        if (object->is_born && !object->is_lost && object->up_count == 0) {
            dark_us += now_us - object->dark_since_us;
        }
    }
    return dark_us;
}
