#include "sim/ring_lookups.h"

#include <stdlib.h>

#include "base/wire.h"

static void on_notice(void *context, struct sim *sim, uint32_t node, uint32_t code, struct bytes bytes) {
    struct ring_lookups *lookups = context;
    if (code != RING_FOUND && code != RING_LOST) {
        return;
    }
    struct wire_reader reader;
    wire_reader_init(&reader, bytes);
    uint64_t number = wire_read_u64(&reader);
    uint8_t hops = wire_read_u8(&reader);
    uint8_t count = wire_read_u8(&reader);
    if (number >= lookups->asked_count || count == 0) {
        lookups->lost_count++;
        return;
    }
    struct ring_place place;
    ring_read_place(ring_world_ring(lookups->world, node), &reader, &place);
    if (lookups->is_ring_changing) {
        ring_world_list_members(lookups->world);
    }
    uint32_t owner = ring_world_owner(lookups->world, lookups->keys[number]);
    uint32_t found = owner;
    bool is_right = ring_id_equal(place.id, lookups->world->places[owner].id);
    bool is_down = sim_node_of(sim, &place.peer.address, &found) && sim_status(sim, found) != SIM_UP;
    bool is_stale = !is_right && is_down && hops == 0;
    lookups->stale_count += is_stale;
    lookups->wrong_count += !is_right && !is_stale;
    lookups->found_count++;
    lookups->hops_sum += hops;
    lookups->hops[hops < RING_LOOKUPS_HOPS_MAX ? hops : RING_LOOKUPS_HOPS_MAX - 1]++;
}

enum err ring_lookups_init(struct ring_lookups *lookups, struct ring_world *world, uint32_t asked_max) {
    *lookups = (struct ring_lookups){.world = world, .asked_max = asked_max};
    lookups->keys = calloc(asked_max, sizeof *lookups->keys);
    if (lookups->keys == NULL) {
        return ERR_MEMORY;
    }
    sim_observe(world->sim, &(struct sim_observer){.context = lookups, .notice = on_notice});
    return ERR_OK;
}

void ring_lookups_done(struct ring_lookups *lookups) {
    free(lookups->keys);
    lookups->keys = NULL;
}

enum err ring_lookups_ask(struct ring_lookups *lookups, uint32_t node, struct prng *prng, uint64_t at_us) {
    ASSERT(lookups->asked_count < lookups->asked_max);
    uint32_t number = lookups->asked_count++;
    lookups->keys[number] = (struct ring_id){prng_u64(prng), prng_u64(prng)};
    return ring_world_find(lookups->world, node, lookups->keys[number], number, at_us);
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
