/*
 * frontier_hosts - all hosts and registrable domains of a frontier: how many URLs each has, and which hosts
 * wait for a lane.
 *
 *      slots   [ . 2 . 0 . . 1 ]     which number a hash leads to, open addressing
 *      blocks  [ 0 1 2 … ][ … ]      hosts by number, 4,096 to a block: they never move
 *
 * Hosts are known by the keyed hash of their name and by a number that is given in the order of their
 * appearance; names are on disk. A host takes about 40 bytes, a domain about 24. Hosts that have waiting
 * URLs but no lane stand in one line, first come, first served. One thread.
 */
#include <stdlib.h>

#include "crawl/frontier/frontier_state.h"

enum { BLOCK_COUNT = 1 << 12, SLOTS_MIN = 64, NUMBERS_MAX = 1 << 30 };

/* ---- tables ---- */

static void hosts_table_init(struct frontier_table *table, size_t item_size) {
    *table = (struct frontier_table){.item_size = item_size};
}

static void hosts_table_done(struct frontier_table *table) {
    for (size_t i = 0; i < table->blocks_count; i++) {
        free(table->blocks[i]);
    }
    free(table->blocks);
    free(table->slots);
}

static void *hosts_table_at(const struct frontier_table *table, size_t number) {
    ASSERT(number < table->count);
    return table->blocks[number / BLOCK_COUNT] + number % BLOCK_COUNT * table->item_size;
}

static uint64_t hosts_hash_at(const struct frontier_table *table, size_t number) {
    uint64_t hash;
    memcpy(&hash, hosts_table_at(table, number), sizeof hash);
    return hash;
}

/* The slot of the hash, or the free one where it belongs. */
static uint32_t *hosts_find_slot(const struct frontier_table *table, uint64_t hash) {
    size_t mask = table->slots_count - 1;
    size_t slot = hash & mask;
    while (table->slots[slot] != 0 && hosts_hash_at(table, table->slots[slot] - 1) != hash) {
        slot = (slot + 1) & mask;
    }
    return &table->slots[slot];
}

static uint32_t hosts_table_find(const struct frontier_table *table, uint64_t hash) {
    uint32_t slot = table->count == 0 ? 0 : *hosts_find_slot(table, hash);
    return slot == 0 ? FRONTIER_HOST_NONE : slot - 1;
}

static enum err hosts_grow_slots(struct frontier_table *table) {
    struct frontier_table grown = *table;
    grown.slots_count = table->slots_count == 0 ? SLOTS_MIN : table->slots_count * 2;
    grown.slots = calloc(grown.slots_count, sizeof *grown.slots);
    if (grown.slots == NULL) {
        return ERR_MEMORY;
    }
    for (size_t i = 0; i < table->count; i++) {
        *hosts_find_slot(&grown, hosts_hash_at(table, i)) = (uint32_t)i + 1;
    }
    free(table->slots);
    *table = grown;
    return ERR_OK;
}

static enum err hosts_grow_blocks(struct frontier_table *table) {
    uint8_t **blocks = reallocarray(table->blocks, table->blocks_count + 1, sizeof *blocks);
    if (blocks == NULL) {
        return ERR_MEMORY;
    }
    table->blocks = blocks;
    blocks[table->blocks_count] = calloc(BLOCK_COUNT, table->item_size);
    if (blocks[table->blocks_count] == NULL) {
        return ERR_MEMORY;
    }
    table->blocks_count++;
    return ERR_OK;
}

/* A zeroed item for a hash that is not there. */
static enum err hosts_table_put(struct frontier_table *table, uint64_t hash, uint32_t *ret_number) {
    enum err err = table->count < NUMBERS_MAX ? ERR_OK : ERR_LIMIT;
    if (err == ERR_OK && table->count == table->blocks_count * BLOCK_COUNT) {
        err = hosts_grow_blocks(table);
    }
    if (err == ERR_OK && table->count >= table->slots_count / 4 * 3) {
        err = hosts_grow_slots(table);
    }
    if (err != ERR_OK) {
        return err;
    }
    uint32_t *slot = hosts_find_slot(table, hash);
    ASSERT(*slot == 0);
    *ret_number = (uint32_t)table->count++;
    *slot = *ret_number + 1;
    memcpy(hosts_table_at(table, *ret_number), &hash, sizeof hash);
    return ERR_OK;
}

static size_t hosts_table_memory_size(const struct frontier_table *table) {
    return table->slots_count * sizeof *table->slots +
           table->blocks_count * (BLOCK_COUNT * table->item_size + sizeof *table->blocks);
}

/* ---- hosts ---- */

void frontier_hosts_init(struct frontier_hosts *hosts) {
    *hosts = (struct frontier_hosts){.line_first = FRONTIER_HOST_NONE};
    hosts_table_init(&hosts->hosts, sizeof(struct frontier_host));
    hosts_table_init(&hosts->domains, sizeof(struct frontier_domain));
}

void frontier_hosts_done(struct frontier_hosts *hosts) {
    hosts_table_done(&hosts->hosts);
    hosts_table_done(&hosts->domains);
}

uint32_t frontier_hosts_find(const struct frontier_hosts *hosts, uint64_t hash) {
    return hosts_table_find(&hosts->hosts, hash);
}

uint32_t frontier_hosts_find_domain(const struct frontier_hosts *hosts, uint64_t hash) {
    return hosts_table_find(&hosts->domains, hash);
}

struct frontier_host *frontier_hosts_at(const struct frontier_hosts *hosts, uint32_t number) {
    return hosts_table_at(&hosts->hosts, number);
}

struct frontier_domain *frontier_hosts_domain_at(const struct frontier_hosts *hosts, uint32_t number) {
    return hosts_table_at(&hosts->domains, number);
}

enum err frontier_hosts_put(struct frontier_hosts *hosts, uint64_t hash, uint64_t domain_hash,
                            uint32_t *ret_number) {
    enum err err = ERR_OK;
    uint32_t domain = hosts_table_find(&hosts->domains, domain_hash);
    if (domain == FRONTIER_HOST_NONE) {
        err = hosts_table_put(&hosts->domains, domain_hash, &domain);
    }
    if (err == ERR_OK) {
        err = hosts_table_put(&hosts->hosts, hash, ret_number);
    }
    if (err == ERR_OK) {
        frontier_hosts_at(hosts, *ret_number)->domain = domain;
    }
    return err;
}

/* ---- the line ---- */

void frontier_hosts_line_up(struct frontier_hosts *hosts, uint32_t number) {
    struct frontier_host *host = frontier_hosts_at(hosts, number);
    ASSERT(!host->is_in_line && host->lane == NULL);
    host->is_in_line = 1;
    if (hosts->line_first == FRONTIER_HOST_NONE) {
        hosts->line_first = number;
    } else {
        frontier_hosts_at(hosts, hosts->line_last)->next = number & (NUMBERS_MAX - 1);
    }
    hosts->line_last = number;
    hosts->line_count++;
}

uint32_t frontier_hosts_next_in_line(struct frontier_hosts *hosts) {
    uint32_t number = hosts->line_first;
    if (number == FRONTIER_HOST_NONE) {
        return number;
    }
    struct frontier_host *host = frontier_hosts_at(hosts, number);
    host->is_in_line = 0;
    hosts->line_first = number == hosts->line_last ? FRONTIER_HOST_NONE : host->next;
    hosts->line_count--;
    return number;
}

size_t frontier_hosts_memory_size(const struct frontier_hosts *hosts) {
    return hosts_table_memory_size(&hosts->hosts) + hosts_table_memory_size(&hosts->domains);
}
