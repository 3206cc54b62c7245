/*
 * table - the location table: every place that was heard of, by its ID, for lookups of one hop.
 *
 *      order    [ 4 0 7 2 … ]      indexes of entries, by ascending ID: binary search, moved on insertion
 *      entries  [ a b c d … ]      fixed, 128 bytes each
 *
 * What others say (hearsay) enters a place but never makes it fresher: only its own answers do. When the
 * table is full, the stalest of a few random entries goes, unless the owner needs it (lists, fingers);
 * entries that never answered go first. At most a share of the table (an eighth, 512 at least) has one
 * network prefix (/24, /48), so that whoever has one network cannot fill it; what the owner needs is not
 * counted out, for a ring may be all in one network. Networks are counted by their hash; if two fall
 * together, which is rare, they share the bound.
 *
 * Questions that a place did not answer are counted in its entry and not in base/standing.h: lookups need
 * them beside its round trip, and a place that is forgotten takes them along.
 */
#ifndef MNEMON_PROTOCOL_RING_TABLE_H
#define MNEMON_PROTOCOL_RING_TABLE_H

#include "base/arena.h"
#include "base/prng.h"
#include "base/rtt.h"
#include "protocol/ring/message.h"

enum { TABLE_MISSES_MAX = 2, TABLE_BLOCKED_US = 10000000 };

struct table_entry {
    struct vnode vnode;
    struct ring_id predecessor; /* as the place itself said at arc_at_us; its own ID if it never did */
    uint64_t heard_at_us;       /* its own last answer; 0: hearsay */
    uint64_t token;             /* that it gave us; 0: none */
    uint64_t arc_at_us;         /* when it named its predecessor; other answers make it no fresher */
    uint64_t missed_at_us;      /* the last question without an answer */
    struct rtt rtt;
    uint8_t misses_count; /* questions without an answer since */
    bool has_arc;         /* predecessor is known */
};

struct table {
    struct table_entry *entries;
    uint32_t *order;
    uint32_t *free; /* indexes of unused entries */
    uint32_t count;
    uint32_t capacity;
    uint32_t prefix_max;     /* entries of one network */
    uint32_t *prefix_counts; /* by hash of the network: entries; NULL if the table is too small for it */
    uint64_t prefix_mask;
    uint64_t prefix_seed;
    struct prng prng;
    /* May this place not be thrown out? */
    bool (*is_needed)(const void *context, struct ring_id id);
    const void *context;
};

/* The memory is the arena's. ERR_MEMORY. */
enum err table_init(struct table *table, struct arena *arena, uint32_t capacity, uint64_t seed,
                    bool (*is_needed)(const void *context, struct ring_id id),
                    const void *context) MUST_CHECK;

/* The entry, or NULL. Valid until the next change. */
struct table_entry *table_find(const struct table *table, struct ring_id id);

/* The entry, entered if it was not there; NULL if there is no room for it. */
struct table_entry *table_enter(struct table *table, const struct vnode *vnode);

/* Silent lately: not worth a question. Not for ever, because it may be back and others may say so. */
static inline bool table_is_blocked(const struct table_entry *entry, uint64_t now_us) {
    return entry->misses_count >= TABLE_MISSES_MAX && now_us - entry->missed_at_us < TABLE_BLOCKED_US;
}

void table_remove(struct table *table, struct ring_id id);

/* In the circle: position of the first entry at or after id, 0 where the circle begins again. */
uint32_t table_at_or_after(const struct table *table, struct ring_id id);

/* The entry at a position, counted on in the circle. */
static inline struct table_entry *table_at(const struct table *table, uint32_t position) {
    return &table->entries[table->order[position % table->count]];
}

#endif
