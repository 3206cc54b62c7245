#include "protocol/copies/custody.h"

#include <string.h>

#include "base/assert.h"
#include "base/retry.h"

enum { NOBODY = UINT32_MAX };
static const uint64_t ASK_US = 1000000; /* until it is asked about, the first time */
static const uint64_t ASK_US_MAX = 15 * 1000000;
static const uint64_t TICK_US = 250000; /* many are due together, so that all are looked through seldom */

struct custody_entry {
    struct ringkey key;
    bool is_used;
    bool is_own;
    uint8_t asked_count;
    uint32_t peer;
    uint32_t next_free;
    uint64_t due_us;
};

struct custody_peer {
    struct peer peer;
    uint32_t entries_count; /* 0: its place is free */
};

struct custody {
    struct custody_config config;
    struct custody_entry *entries; /* items_max */
    struct custody_peer *peers;    /* peers_max */
    uint32_t used_count;           /* entries from here on were never used */
    uint32_t free;                 /* list */
    uint32_t counts[2];            /* by is_own */
    uint64_t wake_us;              /* nothing is due before */
};

static struct custody_config custody_complete(const struct custody_config *config) {
    return (struct custody_config){
        .items_max = config->items_max > 0 ? config->items_max : 1 << 16,
        .peers_max = config->peers_max > 0 ? config->peers_max : 64,
    };
}

size_t custody_size(const struct custody_config *config) {
    struct custody_config full = custody_complete(config);
    return sizeof(struct custody) + full.items_max * sizeof(struct custody_entry) +
           full.peers_max * sizeof(struct custody_peer);
}

struct custody *custody_init(void *memory, const struct custody_config *config) {
    struct custody *custody = memory;
    *custody = (struct custody){.config = custody_complete(config), .free = NOBODY, .wake_us = UINT64_MAX};
    custody->entries = (struct custody_entry *)(custody + 1);
    custody->peers = (struct custody_peer *)(custody->entries + custody->config.items_max);
    memset(custody->peers, 0, custody->config.peers_max * sizeof custody->peers[0]);
    return custody;
}

static uint32_t custody_peer_index(struct custody *custody, const struct peer *peer) {
    uint32_t free = NOBODY;
    for (uint32_t i = 0; i < custody->config.peers_max; i++) {
        if (custody->peers[i].entries_count == 0) {
            free = free == NOBODY ? i : free;
        } else if (peer_equal(&custody->peers[i].peer, peer)) {
            return i;
        }
    }
    if (free != NOBODY) {
        custody->peers[free].peer = *peer;
    }
    return free;
}

static uint32_t custody_take_entry(struct custody *custody) {
    uint32_t index = custody->free;
    if (index != NOBODY) {
        custody->free = custody->entries[index].next_free;
    } else if (custody->used_count < custody->config.items_max) {
        index = custody->used_count++;
    }
    return index;
}

static uint64_t custody_later(uint64_t now_us, uint32_t asked_count) {
    uint64_t at_us = now_us + retry_doubled_us(ASK_US, asked_count, ASK_US_MAX);
    return (at_us + TICK_US - 1) / TICK_US * TICK_US;
}

static void custody_note_due(struct custody *custody, uint64_t due_us) {
    custody->wake_us = due_us < custody->wake_us ? due_us : custody->wake_us;
}

bool custody_add(struct custody *custody, const struct ringkey *key, const struct peer *peer, bool is_own,
                 uint64_t now_us) {
    uint32_t peer_index = custody_peer_index(custody, peer);
    uint32_t index = peer_index != NOBODY ? custody_take_entry(custody) : NOBODY;
    if (index == NOBODY) {
        return false;
    }
    custody->entries[index] = (struct custody_entry){.key = *key,
                                                     .is_used = true,
                                                     .is_own = is_own,
                                                     .peer = peer_index,
                                                     .due_us = custody_later(now_us, 0)};
    custody->peers[peer_index].entries_count++;
    custody->counts[is_own]++;
    custody_note_due(custody, custody->entries[index].due_us);
    return true;
}

bool custody_has(const struct custody *custody, const struct ringkey *key) {
    for (uint32_t i = 0; i < custody->used_count; i++) {
        if (custody->entries[i].is_used && ringkey_compare(&custody->entries[i].key, key) == 0) {
            return true;
        }
    }
    return false;
}

size_t custody_due(struct custody *custody, uint64_t now_us, struct custody_item *out, size_t count_max) {
    size_t count = 0;
    if (now_us < custody->wake_us) {
        return 0;
    }
    custody->wake_us = UINT64_MAX;
    for (uint32_t i = 0; i < custody->used_count; i++) {
        struct custody_entry *entry = &custody->entries[i];
        if (entry->is_used && entry->due_us <= now_us && count < count_max) {
            out[count++] = (struct custody_item){.index = i,
                                                 .key = entry->key,
                                                 .peer = custody->peers[entry->peer].peer,
                                                 .is_own = entry->is_own};
            entry->asked_count =
                entry->asked_count < UINT8_MAX ? (uint8_t)(entry->asked_count + 1) : UINT8_MAX;
            entry->due_us = custody_later(now_us, entry->asked_count);
        }
        if (entry->is_used) {
            custody_note_due(custody, entry->due_us);
        }
    }
    return count;
}

uint64_t custody_wake_at(const struct custody *custody) {
    return custody->wake_us;
}

void custody_settle(struct custody *custody, uint32_t index, bool is_there) {
    struct custody_entry *entry = &custody->entries[index];
    ASSERT(index < custody->used_count && entry->is_used);
    if (!is_there) {
        return;
    }
    custody->peers[entry->peer].entries_count--;
    custody->counts[entry->is_own]--;
    entry->is_used = false;
    entry->next_free = custody->free;
    custody->free = index;
}

bool custody_move(struct custody *custody, uint32_t index, const struct peer *peer) {
    struct custody_entry *entry = &custody->entries[index];
    ASSERT(index < custody->used_count && entry->is_used);
    uint32_t peer_index = custody_peer_index(custody, peer);
    if (peer_index == NOBODY) {
        return false;
    }
    custody->peers[entry->peer].entries_count--;
    custody->peers[peer_index].entries_count++;
    entry->peer = peer_index;
    return true;
}

uint32_t custody_count(const struct custody *custody, bool is_own) {
    return custody->counts[is_own];
}

void custody_each_own(const struct custody *custody, custody_visit *visit, void *context) {
    for (uint32_t i = 0; i < custody->used_count; i++) {
        const struct custody_entry *entry = &custody->entries[i];
        if (entry->is_used && entry->is_own) {
            visit(context, &entry->key, &custody->peers[entry->peer].peer);
        }
    }
}
