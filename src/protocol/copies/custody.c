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
    bool is_out; /* an offer of it is under way */
    uint8_t kind;
    uint8_t asked_count;
    uint32_t peer;
    uint32_t next_free;
    uint64_t due_us;
};

struct custody_peer {
    struct peer peer;
    uint32_t entries_count; /* 0: its place is free */
    uint32_t out_count;     /* of them, with an offer that is under way */
    uint64_t due_us;        /* nothing of it is due before */
};

struct custody {
    struct custody_config config;
    struct custody_entry *entries; /* items_max */
    struct custody_peer *peers;    /* peers_max */
    uint32_t used_count;           /* entries from here on were never used */
    uint32_t free;                 /* list */
    uint32_t counts[CUSTODY_KINDS_COUNT];
    uint32_t turn; /* the node that is looked at first */
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
    *custody = (struct custody){.config = custody_complete(config), .free = NOBODY};
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
        custody->peers[free] = (struct custody_peer){.peer = *peer, .due_us = UINT64_MAX};
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

static void custody_set_due(struct custody *custody, struct custody_entry *entry, uint64_t due_us) {
    struct custody_peer *peer = &custody->peers[entry->peer];
    entry->due_us = due_us;
    peer->due_us = due_us < peer->due_us ? due_us : peer->due_us;
}

bool custody_add(struct custody *custody, const struct ringkey *key, const struct peer *peer,
                 enum custody_kind kind, uint64_t now_us) {
    uint32_t peer_index = custody_peer_index(custody, peer);
    uint32_t index = peer_index != NOBODY ? custody_take_entry(custody) : NOBODY;
    if (index == NOBODY) {
        return false;
    }
    struct custody_entry *entry = &custody->entries[index];
    *entry = (struct custody_entry){.key = *key, .is_used = true, .kind = (uint8_t)kind, .peer = peer_index};
    custody->peers[peer_index].entries_count++;
    custody->counts[kind]++;
    custody_set_due(custody, entry, now_us);
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

static size_t custody_take_due(struct custody *custody, uint32_t peer_index, uint64_t now_us,
                               struct custody_item *out, size_t count_max) {
    struct custody_peer *peer = &custody->peers[peer_index];
    size_t count = 0;
    peer->due_us = UINT64_MAX;
    for (uint32_t i = 0; i < custody->used_count; i++) {
        struct custody_entry *entry = &custody->entries[i];
        if (!entry->is_used || entry->peer != peer_index) {
            continue;
        }
        if (entry->due_us > now_us || count == count_max) {
            peer->due_us = entry->due_us < peer->due_us ? entry->due_us : peer->due_us;
            continue;
        }
        out[count++] = (struct custody_item){
            .index = i, .key = entry->key, .peer = peer->peer, .kind = (enum custody_kind)entry->kind};
        entry->is_out = true;
        peer->out_count++;
    }
    return count;
}

static bool custody_may_ask(const struct custody_peer *peer) {
    return peer->entries_count > 0 && peer->out_count == 0;
}

size_t custody_due(struct custody *custody, uint64_t now_us, struct custody_item *out, size_t count_max) {
    size_t count = 0;
    for (uint32_t i = 0; i < custody->config.peers_max && count == 0; i++) {
        uint32_t index = (custody->turn + i) % custody->config.peers_max;
        if (custody_may_ask(&custody->peers[index]) && custody->peers[index].due_us <= now_us) {
            count = custody_take_due(custody, index, now_us, out, count_max);
            custody->turn = count > 0 ? index + 1 : custody->turn;
        }
    }
    return count;
}

uint64_t custody_wake_at(const struct custody *custody) {
    uint64_t at_us = UINT64_MAX;
    for (uint32_t i = 0; i < custody->config.peers_max; i++) {
        const struct custody_peer *peer = &custody->peers[i];
        at_us = custody_may_ask(peer) && peer->due_us < at_us ? peer->due_us : at_us;
    }
    return at_us;
}

static struct custody_entry *custody_entry_at(const struct custody *custody, uint32_t index) {
    ASSERT(index < custody->used_count && custody->entries[index].is_used);
    return &custody->entries[index];
}

const struct ringkey *custody_key(const struct custody *custody, uint32_t index) {
    return &custody_entry_at(custody, index)->key;
}

enum custody_kind custody_kind(const struct custody *custody, uint32_t index) {
    return (enum custody_kind)custody_entry_at(custody, index)->kind;
}

static void custody_take_back(struct custody *custody, struct custody_entry *entry) {
    ASSERT(entry->is_out);
    entry->is_out = false;
    custody->peers[entry->peer].out_count--;
}

void custody_settle(struct custody *custody, uint32_t index, bool is_there, uint64_t now_us) {
    struct custody_entry *entry = custody_entry_at(custody, index);
    custody_take_back(custody, entry);
    if (!is_there && entry->kind != CUSTODY_TOLD) {
        custody_set_due(custody, entry, custody_later(now_us, entry->asked_count));
        entry->asked_count = entry->asked_count < UINT8_MAX ? (uint8_t)(entry->asked_count + 1) : UINT8_MAX;
        return;
    }
    custody->peers[entry->peer].entries_count--;
    custody->counts[entry->kind]--;
    entry->is_used = false;
    entry->next_free = custody->free;
    custody->free = index;
}

void custody_hurry(struct custody *custody, const struct peer *peer, uint64_t now_us) {
    for (uint32_t i = 0; i < custody->used_count; i++) {
        struct custody_entry *entry = &custody->entries[i];
        bool is_waiting = entry->is_used && !entry->is_out && entry->due_us > now_us;
        if (is_waiting && peer_equal(&custody->peers[entry->peer].peer, peer)) {
            custody_set_due(custody, entry, now_us);
        }
    }
}

bool custody_move(struct custody *custody, uint32_t index, const struct peer *peer, uint64_t now_us) {
    struct custody_entry *entry = custody_entry_at(custody, index);
    uint32_t peer_index = custody_peer_index(custody, peer);
    if (peer_index == NOBODY) {
        return false;
    }
    custody_take_back(custody, entry);
    custody->peers[entry->peer].entries_count--;
    custody->peers[peer_index].entries_count++;
    entry->peer = peer_index;
    custody_set_due(custody, entry, now_us);
    return true;
}

uint32_t custody_count(const struct custody *custody, enum custody_kind kind) {
    return custody->counts[kind];
}

void custody_each_own(const struct custody *custody, custody_visit *visit, void *context) {
    for (uint32_t i = 0; i < custody->used_count; i++) {
        const struct custody_entry *entry = &custody->entries[i];
        if (entry->is_used && entry->kind == CUSTODY_OWN) {
            visit(context, &entry->key, &custody->peers[entry->peer].peer);
        }
    }
}
