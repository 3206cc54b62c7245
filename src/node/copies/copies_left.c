#include "node/copies/copies_left.h"

static const uint64_t SECOND_US = 1000000;
static const uint64_t STALE_US = 20 * 1000000; /* asked again and again, a node that is there has answered */

void copies_left_note(struct copies_left *left, uint64_t count, bool has_work, uint64_t now_us) {
    if (count != left->count) {
        left->moved_us = now_us;
        left->count = count;
    }
    if (!has_work && left->since_count == count) {
        left->since_us = 0; /* what comes next is measured from its beginning */
        return;
    }
    if (left->since_us == 0) {
        left->since_us = now_us;
        left->since_count = count;
        return;
    }
    uint64_t passed_us = now_us - left->since_us;
    if (passed_us < SECOND_US) {
        return;
    }
    uint64_t pace = (count - left->since_count) * 1000 * SECOND_US / passed_us;
    left->per_1000_s = left->per_1000_s == 0 ? pace : (3 * left->per_1000_s + pace) / 4;
    left->since_us = now_us;
    left->since_count = count;
}

uint64_t copies_left_s(const struct copies_left *left, uint64_t waiting_count, uint64_t now_us) {
    bool is_known = left->per_1000_s > 0 && now_us < left->moved_us + STALE_US;
    return is_known ? (waiting_count * 1000 + left->per_1000_s - 1) / left->per_1000_s : 0;
}
