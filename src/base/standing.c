#include "base/standing.h"

#include "base/map.h"
#include "base/prng.h"

void standing_init(struct standing *standing, struct standing_entry *entries, uint32_t entries_count,
                   uint64_t seed) {
    ASSERT(entries_count > 0);
    bool is_one = entries_count < STANDING_GROUP_SIZE;
    *standing = (struct standing){
        .entries = entries,
        .groups_count = is_one ? 1 : entries_count / STANDING_GROUP_SIZE,
        .group_size = is_one ? entries_count : STANDING_GROUP_SIZE,
        .seed = seed,
    };
}

static uint64_t standing_hash(const struct standing *standing, enum standing_reason reason,
                              struct bytes subject) {
    uint64_t hash = prng_mix(map_hash(subject, standing->seed) + (uint64_t)reason);
    return hash == 0 ? 1 : hash;
}

static struct standing_entry *standing_group(const struct standing *standing, uint64_t hash) {
    return &standing->entries[hash % standing->groups_count * standing->group_size];
}

static struct standing_entry *standing_find(const struct standing *standing, enum standing_reason reason,
                                            struct bytes subject) {
    if (standing->used_count == 0) {
        return NULL; /* the usual case, and nothing need be hashed */
    }
    uint64_t hash = standing_hash(standing, reason, subject);
    struct standing_entry *group = standing_group(standing, hash);
    for (uint32_t i = 0; i < standing->group_size; i++) {
        if (group[i].subject == hash) {
            return &group[i];
        }
    }
    return NULL;
}

static bool standing_goes_before(const struct standing_entry *a, const struct standing_entry *b,
                                 uint64_t now_us) {
    bool holds_a = a->until_us > now_us;
    bool holds_b = b->until_us > now_us;
    return holds_a == holds_b ? a->noted_at_us < b->noted_at_us : holds_b;
}

static struct standing_entry *standing_make_room(struct standing *standing, uint64_t hash, uint64_t now_us) {
    struct standing_entry *group = standing_group(standing, hash);
    struct standing_entry *room = group;
    for (uint32_t i = 0; i < standing->group_size && room->subject != 0; i++) {
        bool goes = group[i].subject == 0 || standing_goes_before(&group[i], room, now_us);
        room = goes ? &group[i] : room;
    }
    standing->used_count += room->subject == 0;
    *room = (struct standing_entry){.subject = hash};
    return room;
}

uint32_t standing_note(struct standing *standing, enum standing_reason reason, struct bytes subject,
                       uint64_t now_us, uint64_t until_us) {
    struct standing_entry *entry = standing_find(standing, reason, subject);
    if (entry == NULL) {
        entry = standing_make_room(standing, standing_hash(standing, reason, subject), now_us);
    }
    entry->noted_at_us = now_us;
    entry->until_us = until_us;
    entry->count += entry->count < UINT32_MAX;
    return entry->count;
}

bool standing_holds(const struct standing *standing, enum standing_reason reason, struct bytes subject,
                    uint64_t now_us) {
    const struct standing_entry *entry = standing_find(standing, reason, subject);
    return entry != NULL && now_us < entry->until_us;
}

uint32_t standing_count(const struct standing *standing, enum standing_reason reason, struct bytes subject) {
    const struct standing_entry *entry = standing_find(standing, reason, subject);
    return entry == NULL ? 0 : entry->count;
}

bool standing_clear(struct standing *standing, enum standing_reason reason, struct bytes subject) {
    struct standing_entry *entry = standing_find(standing, reason, subject);
    if (entry == NULL) {
        return false;
    }
    *entry = (struct standing_entry){0};
    standing->used_count--;
    return true;
}
