#include "protocol/ring/table.h"

#include "base/map.h"

enum { EVICTION_SAMPLES_COUNT = 8, PREFIX_SHARE = 8, PREFIX_MAX_LEAST = 512, IPV6_PREFIX_SIZE = 6 };

enum err table_init(struct table *table, struct arena *arena, uint32_t capacity, uint64_t seed,
                    bool (*is_needed)(const void *context, struct ring_id id), const void *context) {
    *table = (struct table){.capacity = capacity, .is_needed = is_needed, .context = context};
    uint32_t share = capacity / PREFIX_SHARE;
    table->prefix_max = share > PREFIX_MAX_LEAST ? share : PREFIX_MAX_LEAST;
    prng_init(&table->prng, seed);
    table->prefix_seed = prng_u64(&table->prng);
    if (capacity > table->prefix_max) {
        uint64_t buckets_count = 1;
        while (buckets_count < 2 * (uint64_t)capacity) {
            buckets_count *= 2;
        }
        table->prefix_mask = buckets_count - 1;
        table->prefix_counts = arena_take_array(arena, buckets_count, sizeof *table->prefix_counts);
    }
    table->entries = arena_take_array(arena, capacity, sizeof *table->entries);
    table->order = arena_take_array(arena, capacity, sizeof *table->order);
    table->free = arena_take_array(arena, capacity, sizeof *table->free);
    if (arena->is_short) {
        return ERR_MEMORY;
    }
    for (uint32_t i = 0; i < capacity; i++) {
        table->free[i] = capacity - 1 - i;
    }
    return ERR_OK;
}

/* The number of entries with a smaller ID. */
static uint32_t find_position(const struct table *table, struct ring_id id) {
    uint32_t low = 0;
    uint32_t high = table->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ring_id_compare(table->entries[table->order[middle]].vnode.id, id) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

uint32_t table_at_or_after(const struct table *table, struct ring_id id) {
    uint32_t position = find_position(table, id);
    return position == table->count ? 0 : position;
}

struct table_entry *table_find(const struct table *table, struct ring_id id) {
    uint32_t position = find_position(table, id);
    if (position == table->count) {
        return NULL;
    }
    struct table_entry *entry = &table->entries[table->order[position]];
    return ring_id_equal(entry->vnode.id, id) ? entry : NULL;
}

/* The counter of an address's network; only if there are any. */
static uint32_t *prefix_count_of(const struct table *table, const struct address *address) {
    size_t size = address_is_ipv4(address) ? sizeof address->ip - 1 : IPV6_PREFIX_SIZE;
    return &table->prefix_counts[map_hash(bytes_of(address->ip, size), table->prefix_seed) &
                                 table->prefix_mask];
}

static void remove_at(struct table *table, uint32_t position) {
    if (table->prefix_counts != NULL) {
        --*prefix_count_of(table, &table_at(table, position)->vnode.peer.address);
    }
    table->count--;
    table->free[table->capacity - table->count - 1] = table->order[position];
    memmove(&table->order[position], &table->order[position + 1],
            (table->count - position) * sizeof *table->order);
}

void table_remove(struct table *table, struct ring_id id) {
    uint32_t position = find_position(table, id);
    if (position < table->count && ring_id_equal(table_at(table, position)->vnode.id, id)) {
        remove_at(table, position);
    }
}

/* The stalest of some; false if the owner needs all of them. */
static bool evict(struct table *table) {
    uint32_t victim = UINT32_MAX;
    uint64_t victim_heard_at_us = UINT64_MAX;
    for (unsigned i = 0; i < EVICTION_SAMPLES_COUNT; i++) {
        uint32_t position = (uint32_t)prng_below(&table->prng, table->count);
        const struct table_entry *entry = table_at(table, position);
        if (entry->heard_at_us < victim_heard_at_us && !table->is_needed(table->context, entry->vnode.id)) {
            victim = position;
            victim_heard_at_us = entry->heard_at_us;
        }
    }
    if (victim != UINT32_MAX) {
        remove_at(table, victim);
    }
    return victim != UINT32_MAX;
}

static bool is_prefix_full(const struct table *table, const struct address *address) {
    return table->prefix_counts != NULL && *prefix_count_of(table, address) >= table->prefix_max;
}

struct table_entry *table_enter(struct table *table, const struct vnode *vnode) {
    ASSERT(vnode->peer.address.port != 0);
    struct table_entry *entry = table_find(table, vnode->id);
    if (entry != NULL) {
        return entry;
    }
    bool is_left_out =
        is_prefix_full(table, &vnode->peer.address) && !table->is_needed(table->context, vnode->id);
    if (is_left_out || (table->count == table->capacity && !evict(table))) {
        return NULL;
    }
    uint32_t position = find_position(table, vnode->id);
    memmove(&table->order[position + 1], &table->order[position],
            (table->count - position) * sizeof *table->order);
    uint32_t index = table->free[table->capacity - table->count - 1];
    table->order[position] = index;
    table->count++;
    entry = &table->entries[index];
    *entry = (struct table_entry){.vnode = *vnode, .predecessor = vnode->id};
    if (table->prefix_counts != NULL) {
        ++*prefix_count_of(table, &vnode->peer.address);
    }
    return entry;
}
