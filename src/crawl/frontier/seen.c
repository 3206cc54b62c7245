#include "crawl/frontier/seen.h"

#include <stdlib.h>

#include "base/map.h"

enum { TABLE_BITS = 10, SLOTS_MIN = 8 };

void seen_init(struct seen *seen) {
    *seen = (struct seen){0};
}

void seen_done(struct seen *seen) {
    for (size_t i = 0; i < SEEN_TABLES_COUNT; i++) {
        free(seen->tables[i].slots);
    }
    *seen = (struct seen){0};
}

uint64_t seen_fingerprint(struct bytes url, uint64_t key) {
    uint64_t fingerprint = map_hash(url, key);
    return fingerprint == 0 ? 1 : fingerprint; /* 0 is a free slot */
}

static size_t seen_table_index(uint64_t fingerprint) {
    return (size_t)(fingerprint >> (64 - TABLE_BITS));
}

/*
 * The last 32 bits, stretched over the slots: any number of slots will do. Not the bits behind the table's:
 * when a set is read from disk its fingerprints come in order, and would fill a table from its start, in one
 * clump.
 */
static size_t seen_home_slot(const struct seen_table *table, uint64_t fingerprint) {
    return (size_t)((fingerprint & UINT32_MAX) * table->slots_count >> 32);
}

/* The slot of the fingerprint, or the free one where it belongs. There is a free slot. */
static uint64_t *seen_find_slot(const struct seen_table *table, uint64_t fingerprint) {
    size_t slot = seen_home_slot(table, fingerprint);
    while (table->slots[slot] != 0 && table->slots[slot] != fingerprint) {
        slot = slot + 1 == table->slots_count ? 0 : slot + 1;
    }
    return &table->slots[slot];
}

bool seen_has(const struct seen *seen, uint64_t fingerprint) {
    ASSERT(fingerprint != 0);
    const struct seen_table *table = &seen->tables[seen_table_index(fingerprint)];
    return table->count > 0 && *seen_find_slot(table, fingerprint) != 0;
}

void seen_prefetch(const struct seen *seen, uint64_t fingerprint) {
    const struct seen_table *table = &seen->tables[seen_table_index(fingerprint)];
    if (table->count > 0) {
        __builtin_prefetch(&table->slots[seen_home_slot(table, fingerprint)]);
    }
}

static enum err seen_grow(struct seen *seen, struct seen_table *table) {
    struct seen_table grown = {.count = table->count};
    ASSERT(table->slots_count < UINT32_MAX / 2);
    grown.slots_count = table->slots_count < SLOTS_MIN ? SLOTS_MIN : table->slots_count / 4 * 5 + 4;
    grown.slots = calloc(grown.slots_count, sizeof *grown.slots);
    if (grown.slots == NULL) {
        return ERR_MEMORY;
    }
    for (size_t i = 0; i < table->slots_count; i++) {
        if (table->slots[i] != 0) {
            *seen_find_slot(&grown, table->slots[i]) = table->slots[i];
        }
    }
    seen->memory_size += grown.slots_count * sizeof *grown.slots;
    seen->memory_peak = seen->memory_size > seen->memory_peak ? seen->memory_size : seen->memory_peak;
    seen->memory_size -= table->slots_count * sizeof *table->slots;
    free(table->slots);
    *table = grown;
    return ERR_OK;
}

enum err seen_put(struct seen *seen, uint64_t fingerprint) {
    ASSERT(fingerprint != 0);
    struct seen_table *table = &seen->tables[seen_table_index(fingerprint)];
    if (table->count > 0 && *seen_find_slot(table, fingerprint) != 0) {
        return ERR_EXISTS;
    }
    if (table->count >= table->slots_count / 5 * 4) {
        enum err err = seen_grow(seen, table);
        if (err != ERR_OK) {
            return err;
        }
    }
    *seen_find_slot(table, fingerprint) = fingerprint;
    table->count++;
    seen->count++;
    return ERR_OK;
}
