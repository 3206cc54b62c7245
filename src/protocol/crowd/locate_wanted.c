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
    standing_clear(&crowd->locate.absent, STANDING_SILENT, bytes_of(&wish_hash, sizeof wish_hash));
}

/* ---- wishes of ours ---- */

bool locate_absent_is(const struct crowd *crowd, uint64_t wish_hash) {
    return standing_holds(&crowd->locate.absent, STANDING_SILENT, bytes_of(&wish_hash, sizeof wish_hash),
                          crowd->now_us);
}

void locate_absent_note(struct crowd *crowd, uint64_t wish_hash) {
    if (!crowd->config.is_unlimited) {
        standing_note(&crowd->locate.absent, STANDING_SILENT, bytes_of(&wish_hash, sizeof wish_hash),
                      crowd->now_us, crowd->now_us + crowd->config.absent_us);
    }
}
