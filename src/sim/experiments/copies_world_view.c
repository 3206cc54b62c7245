#include "sim/experiments/copies_world_state.h"

uint32_t copies_world_position(const struct copies_world *world, struct ring_id place) {
    uint32_t low = 0;
    uint32_t high = world->config.nodes_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ring_id_compare(world->nodes[world->order[middle]].place, place) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low % world->config.nodes_count;
}

static uint32_t view_seen_from(const struct copies_world *world, uint32_t viewer, uint32_t position) {
    uint32_t count = world->config.nodes_count;
    for (uint32_t i = 0; i < count; i++, position = (position + 1) % count) {
        if (world->nodes[viewer].sees[world->order[position]]) {
            return world->order[position];
        }
    }
    return viewer;
}

uint32_t copies_world_primary(const struct copies_world *world, uint32_t viewer, struct ring_id place) {
    return view_seen_from(world, viewer, copies_world_position(world, place));
}

uint32_t copies_world_next(const struct copies_world *world, uint32_t viewer, uint32_t node) {
    uint32_t position = copies_world_position(world, world->nodes[node].place);
    return view_seen_from(world, viewer, (position + 1) % world->config.nodes_count);
}

static uint32_t view_before(const struct copies_world *world, uint32_t viewer, uint32_t node) {
    uint32_t count = world->config.nodes_count;
    uint32_t position = copies_world_position(world, world->nodes[node].place);
    for (uint32_t i = 0; i < count; i++) {
        position = (position + count - 1) % count;
        if (world->nodes[viewer].sees[world->order[position]]) {
            return world->order[position];
        }
    }
    return node;
}

/* If all of an arc's holders are of one site, another gives its node (as node/ring/holders.c does it). */
static void view_spread(const struct copies_world_node *viewer, uint32_t primary, struct holders_arc *arc) {
    struct copies_world *world = viewer->world;
    uint32_t count = 0;
    uint32_t node = primary;
    do {
        world->row[count] = node;
        world->row_sites[count++] = world->nodes[node].site;
        node = copies_world_next(world, viewer->index, node);
    } while (node != primary);
    size_t at = holders_arc_other_site(world->row_sites, count, 0);
    if (arc->count < 2 || arc->count < world->config.copies || at == count ||
        holders_arc_has(arc, &world->nodes[world->row[at]].peer)) {
        return;
    }
    int last = (int)arc->count - 1;
    arc->peers[last] = world->nodes[world->row[at]].peer;
    arc->self_rank = world->row[at] == viewer->index ? last : arc->self_rank == last ? -1 : arc->self_rank;
}

bool copies_world_know(void *context, struct ring_id place, struct holders_arc *ret_arc) {
    const struct copies_world_node *viewer = context;
    const struct copies_world *world = viewer->world;
    uint32_t primary = copies_world_primary(world, viewer->index, place);
    uint32_t holder = primary;
    *ret_arc = (struct holders_arc){
        .from = world->nodes[view_before(world, viewer->index, primary)].place,
        .to = world->nodes[primary].place,
        .self_rank = -1,
    };
    do {
        ret_arc->self_rank = holder == viewer->index ? (int)ret_arc->count : ret_arc->self_rank;
        ret_arc->peers[ret_arc->count++] = world->nodes[holder].peer;
        holder = copies_world_next(world, viewer->index, holder);
    } while (holder != primary && ret_arc->count < world->config.copies);
    if (world->config.counts_sites) {
        view_spread(viewer, primary, ret_arc);
    }
    return true;
}

static size_t view_own(void *context, struct holders_arc out[HOLDERS_ARCS_MAX]) {
    const struct copies_world_node *node = context;
    return copies_world_know(context, node->place, out) && out[0].self_rank == 0 ? 1 : 0;
}

static size_t view_copies(void *context) {
    const struct copies_world_node *node = context;
    return node->world->config.copies;
}

static uint64_t view_generation(void *context) {
    const struct copies_world_node *node = context;
    return node->generation;
}

uint32_t copies_world_index_of(const struct peer *peer) {
    return (uint32_t)peer->address.ip[13] << 16 | (uint32_t)peer->address.ip[14] << 8 | peer->address.ip[15];
}

static bool view_locate(void *context, const uint8_t key[PEER_KEY_SIZE], struct peer *ret_peer) {
    const struct copies_world_node *node = context;
    const struct copies_world *world = node->world;
    for (uint32_t i = 0; i < world->config.nodes_count; i++) {
        if (peer_key_equal(world->nodes[i].peer.key, key)) {
            *ret_peer = world->nodes[i].peer;
            return true;
        }
    }
    return false;
}

void copies_world_put_view(struct copies_world_node *node, struct replicator_world *world) {
    world->own = view_own;
    world->know = copies_world_know;
    world->copies = view_copies;
    world->generation = view_generation;
    world->locate = view_locate;
    world->ring = node;
}
