#include "sim/experiments/ring_lookups.h"

#include <stdlib.h>

#include "base/wire.h"

static void lookups_on_notice(void *context, struct sim *sim, uint32_t node, uint32_t code,
                              struct bytes bytes) {
    struct ring_lookups *lookups = context;
    if (code != RING_FOUND && code != RING_LOST) {
        return;
    }
    struct wire_reader reader;
    wire_reader_init(&reader, bytes);
    uint64_t number = wire_read_u64(&reader);
    uint8_t hops = wire_read_u8(&reader);
    uint8_t count = wire_read_u8(&reader);
    ASSERT(number < lookups->asked_count); /* notices are of our own making */
    lookups->asked[number].is_over = true;
    if (count == 0) {
        return;
    }
    struct vnode vnode;
    ring_read_vnode(ring_world_ring(lookups->world, node), &reader, &vnode);
    if (lookups->is_ring_changing) {
        ring_world_list_members(lookups->world);
    }
    uint32_t owner = ring_world_owner(lookups->world, lookups->asked[number].key);
    uint32_t found = owner;
    bool is_right = ring_id_equal(vnode.id, lookups->world->vnodes[owner].id);
    bool is_down = sim_node_of(sim, &vnode.peer.address, &found) && sim_status(sim, found) != SIM_UP;
    bool is_stale = !is_right && is_down && hops == 0;
    lookups->stale_count += is_stale;
    lookups->wrong_count += !is_right && !is_stale;
    uint64_t took_us = sim_now_us(sim) - lookups->asked[number].at_us;
    lookups->took_us_sum += took_us;
    lookups->took_us_max = took_us > lookups->took_us_max ? took_us : lookups->took_us_max;
    lookups->found_count++;
    lookups->hops_sum += hops;
    lookups->hops[hops < RING_LOOKUPS_HOPS_MAX ? hops : RING_LOOKUPS_HOPS_MAX - 1]++;
}

enum err ring_lookups_init(struct ring_lookups *lookups, struct ring_world *world, uint32_t asked_max) {
    *lookups = (struct ring_lookups){.world = world, .asked_max = asked_max};
    lookups->asked = calloc(asked_max, sizeof *lookups->asked);
    if (lookups->asked == NULL) {
        return ERR_MEMORY;
    }
    sim_observe(world->sim, &(struct sim_observer){.context = lookups, .notice = lookups_on_notice});
    return ERR_OK;
}

void ring_lookups_done(struct ring_lookups *lookups) {
    free(lookups->asked);
    lookups->asked = NULL;
}

enum err ring_lookups_ask(struct ring_lookups *lookups, uint32_t node, struct prng *prng, uint64_t at_us) {
    ASSERT(lookups->asked_count < lookups->asked_max);
    uint32_t number = lookups->asked_count++;
    struct ring_lookup *asked = &lookups->asked[number];
    asked->key.high = prng_u64(prng);
    asked->key.low = prng_u64(prng);
    asked->node = node;
    asked->at_us = at_us;
    asked->life = sim_life(lookups->world->sim, node);
    return ring_world_find(lookups->world, node, asked->key, number, at_us);
}

void ring_lookups_restart(struct ring_lookups *lookups) {
    struct ring_lookup *asked = lookups->asked;
    struct ring_world *world = lookups->world;
    uint32_t asked_max = lookups->asked_max;
    *lookups = (struct ring_lookups){.world = world, .asked = asked, .asked_max = asked_max};
    memset(asked, 0, asked_max * sizeof *asked);
}

uint64_t ring_lookups_count_orphans(const struct ring_lookups *lookups) {
    const struct sim *sim = lookups->world->sim;
    uint64_t count = 0;
    for (uint32_t i = 0; i < lookups->asked_count; i++) {
        const struct ring_lookup *asked = &lookups->asked[i];
        bool is_gone = sim_status(sim, asked->node) != SIM_UP || sim_life(sim, asked->node) != asked->life;
        count += !asked->is_over && is_gone;
    }
    return count;
}

unsigned ring_lookups_percentile(const struct ring_lookups *lookups, unsigned percent) {
    uint64_t count = 0;
    for (unsigned hops = 0; hops < RING_LOOKUPS_HOPS_MAX; hops++) {
        count += lookups->hops[hops];
        if (100 * count >= percent * lookups->found_count) {
            return hops;
        }
    }
    return RING_LOOKUPS_HOPS_MAX;
}

double ring_lookups_mean_hops(const struct ring_lookups *lookups) {
    return lookups->found_count == 0 ? 0 : (double)lookups->hops_sum / (double)lookups->found_count;
}
