#include "base/map.h"

#include <stdalign.h>
#include <stdlib.h>

#include "base/prng.h"

enum { MAP_COUNT_MIN = 8 };

/* Followed by the key (or the struct bytes that borrows it) and, at value_offset, the value. */
struct map_entry {
    uint32_t hash;
    uint32_t is_live;
    alignas(8) uint8_t key[];
};

static size_t round_up_8(size_t size) {
    return (size + 7) / 8 * 8;
}

void map_init(struct map *map, size_t key_size, size_t value_size, size_t count_max, uint64_t seed) {
    ASSERT(count_max > 0 && count_max < UINT32_MAX / 4);
    size_t key_space = key_size > 0 ? round_up_8(key_size) : sizeof(struct bytes);
    size_t value_offset = sizeof(struct map_entry) + key_space;
    *map = (struct map){
        .count_max = count_max,
        .key_size = key_size,
        .value_offset = value_offset,
        .entry_size = value_offset + round_up_8(value_size),
        .seed = seed,
    };
}

void map_done(struct map *map) {
    free(map->slots);
    free(map->entries);
    map->slots = NULL;
    map->entries = NULL;
    map->slots_count = map->entries_count = map->entries_max = map->count = 0;
}

static struct map_entry *entry_at(const struct map *map, size_t index) {
    return (struct map_entry *)(void *)(map->entries + index * map->entry_size);
}

static struct bytes entry_key(const struct map *map, const struct map_entry *entry) {
    if (map->key_size > 0) {
        return bytes_of(entry->key, map->key_size);
    }
    struct bytes key;
    memcpy(&key, entry->key, sizeof key);
    return key;
}

static void *entry_value(const struct map *map, struct map_entry *entry) {
    return (uint8_t *)entry + map->value_offset;
}

static void link_entry(struct map *map, size_t index) {
    size_t mask = map->slots_count - 1;
    size_t slot = entry_at(map, index)->hash & mask;
    while (map->slots[slot] != 0) {
        slot = (slot + 1) & mask;
    }
    map->slots[slot] = (uint32_t)index + 1;
}

/* Close the gaps and build the slots anew. */
static void map_pack(struct map *map) {
    size_t kept = 0;
    for (size_t i = 0; i < map->entries_count; i++) {
        if (!entry_at(map, i)->is_live) {
            continue;
        }
        if (kept != i) {
            memcpy(entry_at(map, kept), entry_at(map, i), map->entry_size);
        }
        kept++;
    }
    map->entries_count = kept;
    memset(map->slots, 0, map->slots_count * sizeof map->slots[0]);
    for (size_t i = 0; i < kept; i++) {
        link_entry(map, i);
    }
}

enum err map_reserve(struct map *map, size_t count) {
    if (count > map->count_max) {
        return ERR_LIMIT;
    }
    /* Half as many gaps again, so that packing happens once in many removals. */
    if (count + count / 2 <= map->entries_max) {
        return ERR_OK;
    }
    size_t grown = map->count * 2 < map->count_max ? map->count * 2 : map->count_max;
    count = count > grown ? count : grown;
    count = count > MAP_COUNT_MIN ? count : MAP_COUNT_MIN;
    size_t entries_max = count + count / 2 + 1;
    size_t slots_count = 16;
    while (slots_count < entries_max * 2) {
        slots_count *= 2;
    }
    uint32_t *slots = calloc(slots_count, sizeof *slots);
    uint8_t *entries = slots == NULL ? NULL : reallocarray(map->entries, entries_max, map->entry_size);
    if (entries == NULL) {
        free(slots);
        return ERR_MEMORY;
    }
    free(map->slots);
    map->slots = slots;
    map->slots_count = slots_count;
    map->entries = entries;
    map->entries_max = entries_max;
    map_pack(map);
    return ERR_OK;
}

/* The slot that leads to the key, or slots_count if none does. */
static size_t map_find_slot(const struct map *map, struct bytes key, uint32_t hash) {
    ASSERT(map->key_size == 0 || key.size == map->key_size);
    if (map->count == 0) {
        return map->slots_count;
    }
    size_t mask = map->slots_count - 1;
    for (size_t slot = hash & mask; map->slots[slot] != 0; slot = (slot + 1) & mask) {
        const struct map_entry *entry = entry_at(map, map->slots[slot] - 1);
        if (entry->hash == hash && bytes_equal(entry_key(map, entry), key)) {
            return slot;
        }
    }
    return map->slots_count;
}

void *map_get(const struct map *map, struct bytes key) {
    size_t slot = map_find_slot(map, key, (uint32_t)map_hash(key, map->seed));
    return slot == map->slots_count ? NULL : entry_value(map, entry_at(map, map->slots[slot] - 1));
}

void *map_put(struct map *map, struct bytes key) {
    uint32_t hash = (uint32_t)map_hash(key, map->seed);
    size_t slot = map_find_slot(map, key, hash);
    if (slot < map->slots_count) {
        return entry_value(map, entry_at(map, map->slots[slot] - 1));
    }
    if (map->count == map->count_max) {
        return NULL;
    }
    if (map->entries_count == map->entries_max) {
        if (map->count == map->entries_max) {
            return NULL;
        }
        map_pack(map);
    }
    size_t index = map->entries_count++;
    struct map_entry *entry = entry_at(map, index);
    memset(entry, 0, map->entry_size);
    entry->hash = hash;
    entry->is_live = 1;
    if (map->key_size > 0) {
        memcpy(entry->key, key.data, key.size);
    } else {
        memcpy(entry->key, &key, sizeof key);
    }
    link_entry(map, index);
    map->count++;
    return entry_value(map, entry);
}

/* Empty a slot and move back those that were pushed past it, so that no search stops early. */
static void unlink_slot(struct map *map, size_t slot) {
    size_t mask = map->slots_count - 1;
    size_t hole = slot;
    for (size_t next = (hole + 1) & mask; map->slots[next] != 0; next = (next + 1) & mask) {
        size_t home = entry_at(map, map->slots[next] - 1)->hash & mask;
        if (((next - home) & mask) >= ((next - hole) & mask)) {
            map->slots[hole] = map->slots[next];
            hole = next;
        }
    }
    map->slots[hole] = 0;
}

bool map_remove(struct map *map, struct bytes key) {
    size_t slot = map_find_slot(map, key, (uint32_t)map_hash(key, map->seed));
    if (slot == map->slots_count) {
        return false;
    }
    entry_at(map, map->slots[slot] - 1)->is_live = 0;
    unlink_slot(map, slot);
    map->count--;
    return true;
}

void map_clear(struct map *map) {
    map->count = 0;
    map->entries_count = 0;
    if (map->slots != NULL) {
        memset(map->slots, 0, map->slots_count * sizeof map->slots[0]);
    }
}

bool map_next(const struct map *map, size_t *cursor, struct bytes *ret_key, void **ret_value) {
    while (*cursor < map->entries_count) {
        struct map_entry *entry = entry_at(map, (*cursor)++);
        if (entry->is_live) {
            *ret_key = entry_key(map, entry);
            *ret_value = entry_value(map, entry);
            return true;
        }
    }
    return false;
}

static uint64_t rotate_left(uint64_t word, unsigned count) {
    return word << count | word >> (64 - count);
}

static void sip_round(uint64_t v[4]) {
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate_left(v[1], 13) ^ v[0];
    v[3] = rotate_left(v[3], 16) ^ v[2];
    v[0] = rotate_left(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate_left(v[1], 17) ^ v[2];
    v[3] = rotate_left(v[3], 21) ^ v[0];
    v[2] = rotate_left(v[2], 32);
}

/* Eight bytes, least significant first, on any machine. */
static uint64_t load_word(const uint8_t *data) {
    uint64_t word = 0;
    for (unsigned i = 0; i < 8; i++) {
        word |= (uint64_t)data[i] << (8 * i);
    }
    return word;
}

uint64_t map_hash(struct bytes bytes, uint64_t seed) {
    uint64_t key[2] = {prng_mix(seed + 1), prng_mix(seed + 2)};
    uint64_t v[4] = {key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                     key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)};
    size_t whole = bytes.size / 8 * 8;
    for (size_t i = 0; i < whole; i += 8) {
        uint64_t word = load_word(bytes.data + i);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    uint64_t last = (uint64_t)bytes.size << 56;
    for (size_t i = whole; i < bytes.size; i++) {
        last |= (uint64_t)bytes.data[i] << (8 * (i - whole));
    }
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (unsigned i = 0; i < 3; i++) {
        sip_round(v);
    }
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
