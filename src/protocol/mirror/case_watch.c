#include "protocol/mirror/case_watch.h"

#include "base/map.h"
#include "protocol/mirror/path_rule.h"

void case_watch_init(struct case_watch *watch, uint64_t *slots, size_t slots_count, uint64_t seed) {
    ASSERT(slots_count >= 4 && (slots_count & (slots_count - 1)) == 0);
    memset(slots, 0, slots_count * sizeof *slots);
    *watch = (struct case_watch){.slots = slots, .slots_count = slots_count, .seed = seed};
}

bool case_watch_meets(struct case_watch *watch, struct bytes path) {
    uint8_t lower[PATH_RULE_SIZE_MAX];
    ASSERT(path.size <= sizeof lower);
    for (size_t i = 0; i < path.size; i++) {
        lower[i] = byte_lower(path.data[i]);
    }
    uint64_t hash = map_hash(bytes_of(lower, path.size), watch->seed);
    hash += hash == 0;
    size_t mask = watch->slots_count - 1;
    size_t slot = (size_t)hash & mask;
    while (watch->slots[slot] != 0) {
        if (watch->slots[slot] == hash) {
            return true;
        }
        slot = (slot + 1) & mask;
    }
    if (watch->used_count >= watch->slots_count / 4 * 3) {
        watch->unwatched_count++;
        return false;
    }
    watch->slots[slot] = hash;
    watch->used_count++;
    return false;
}
