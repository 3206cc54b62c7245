#include "protocol/crowd/state.h"

enum {
    FRUITLESS_FORWARDS = 16,      /* so often in vain: probably nobody has it */
    FRUITLESS_AFTER_US = 2000000, /* findings of the first queries have had time to come back */
    FRUITLESS_ONE_IN = 8,         /* is sent on nevertheless: somebody may have it by now */
};

/* ---- wishes of others ---- */

static bool is_over(const struct crowd *crowd, const struct locate_wanted *wanted) {
    return wanted->wish_hash == 0 || crowd->now_us - wanted->since_us >= crowd->config.absent_us;
}

static struct locate_wanted *ways_of(const struct crowd *crowd, uint64_t wish_hash) {
    return &crowd->locate.wanted[wish_hash % (crowd->locate.wanted_count / LOCATE_WAYS) * LOCATE_WAYS];
}

static struct locate_wanted *find(const struct crowd *crowd, uint64_t wish_hash) {
    if (crowd->locate.wanted == NULL) {
        return NULL;
    }
    struct locate_wanted *ways = ways_of(crowd, wish_hash);
    for (unsigned i = 0; i < LOCATE_WAYS; i++) {
        if (ways[i].wish_hash == wish_hash && !is_over(crowd, &ways[i])) {
            return &ways[i];
        }
    }
    return NULL;
}

/* The place of what is over, or else of what the fewest want, and of these the oldest. */
static struct locate_wanted *make_room(struct crowd *crowd, uint64_t wish_hash) {
    struct locate_wanted *ways = ways_of(crowd, wish_hash);
    struct locate_wanted *least = ways;
    for (unsigned i = 0; i < LOCATE_WAYS; i++) {
        if (is_over(crowd, &ways[i])) {
            return &ways[i];
        }
        if (ways[i].senders_count < least->senders_count ||
            (ways[i].senders_count == least->senders_count && ways[i].since_us < least->since_us)) {
            least = &ways[i];
        }
    }
    return least;
}

void locate_wanted_note(struct crowd *crowd, uint64_t wish_hash, uint32_t peer_hash) {
    if (crowd->locate.wanted == NULL) {
        return;
    }
    struct locate_wanted *wanted = find(crowd, wish_hash);
    if (wanted == NULL) {
        wanted = make_room(crowd, wish_hash);
        *wanted = (struct locate_wanted){.wish_hash = wish_hash, .since_us = crowd->now_us};
    }
    for (unsigned i = 0; i < wanted->senders_count; i++) {
        if (wanted->senders[i] == peer_hash) {
            return;
        }
    }
    if (wanted->senders_count < LOCATE_SENDERS_MAX) {
        wanted->senders[wanted->senders_count++] = peer_hash;
    }
}

unsigned locate_wanted_senders(const struct crowd *crowd, uint64_t wish_hash) {
    const struct locate_wanted *wanted = find(crowd, wish_hash);
    return wanted == NULL ? 0 : wanted->senders_count;
}

bool locate_wanted_is_fruitless(struct crowd *crowd, uint64_t wish_hash) {
    struct locate_wanted *wanted = find(crowd, wish_hash);
    if (wanted == NULL || wanted->is_found) {
        return false;
    }
    wanted->forwards_count++;
    return wanted->forwards_count > FRUITLESS_FORWARDS &&
           crowd->now_us - wanted->since_us >= FRUITLESS_AFTER_US &&
           wanted->forwards_count % FRUITLESS_ONE_IN != 0;
}

void locate_wanted_found(struct crowd *crowd, uint64_t wish_hash) {
    struct locate_wanted *wanted = find(crowd, wish_hash);
    if (wanted != NULL) {
        wanted->is_found = true;
    }
    for (uint32_t i = 0; crowd->locate.absent != NULL && i < crowd->config.searches_max; i++) {
        if (crowd->locate.absent[i].wish_hash == wish_hash) {
            crowd->locate.absent[i] = (struct locate_absent){0};
        }
    }
}

/* ---- wishes of ours ---- */

bool locate_absent_is(const struct crowd *crowd, uint64_t wish_hash) {
    const struct locate_absent *absent = crowd->locate.absent;
    for (uint32_t i = 0; absent != NULL && i < crowd->config.searches_max; i++) {
        if (absent[i].wish_hash == wish_hash && crowd->now_us < absent[i].until_us) {
            return true;
        }
    }
    return false;
}

/* In place of the one that is over first; a free one is over since the beginning. */
void locate_absent_note(struct crowd *crowd, uint64_t wish_hash) {
    struct locate_absent *absent = crowd->locate.absent;
    if (absent == NULL) {
        return;
    }
    struct locate_absent *first = absent;
    for (uint32_t i = 0; i < crowd->config.searches_max; i++) {
        first = absent[i].until_us < first->until_us ? &absent[i] : first;
    }
    *first = (struct locate_absent){wish_hash, crowd->now_us + crowd->config.absent_us};
}
