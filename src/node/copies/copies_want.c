/* What is wanted of others and waits to be fetched; and whom we give copies to
 * (protocol/copies/transfer_order.h). */
#include <stdlib.h>

#include "base/assert.h"
#include "node/copies/copies_state.h"

/* A key of one giver: another one may have to give it after all. */
struct waiting {
    struct ringkey key;
    uint8_t giver[PEER_KEY_SIZE];
};
_Static_assert(sizeof(struct waiting) == COPIES_WAITING_SIZE, "compared as bytes");

enum err copies_want_init(struct copies *copies) {
    size_t count_max = (size_t)TRANSFER_ORDER_LANES_COUNT * COPIES_WANTED_MAX;
    map_init(&copies->waiting, COPIES_WAITING_SIZE, 1, count_max, copies->config.seed);
    for (size_t i = 0; i < TRANSFER_ORDER_LANES_COUNT; i++) {
        struct copies_lane *lane = &copies->lanes[i];
        lane->wanted = malloc(COPIES_WANTED_MAX * sizeof *lane->wanted);
        if (lane->wanted == NULL) {
            return ERR_MEMORY;
        }
    }
    return map_reserve(&copies->waiting, count_max);
}

void copies_want_done(struct copies *copies) {
    for (size_t i = 0; i < TRANSFER_ORDER_LANES_COUNT; i++) {
        free(copies->lanes[i].wanted);
    }
    map_done(&copies->waiting);
}

static struct waiting waiting_of(const struct ringkey *key, const struct peer *peer) {
    struct waiting waiting = {.key = *key};
    memcpy(waiting.giver, peer->key, sizeof waiting.giver);
    return waiting;
}

static void append(struct copies_lane *lane, const struct copies_wanted *wanted) {
    lane->wanted[(lane->first + lane->count++) % COPIES_WANTED_MAX] = *wanted;
}

bool copies_want(struct copies *copies, enum transfer_order_lane lane, const struct ringkey *key,
                 const struct peer *peer) {
    return copies_want_again(copies, &(struct copies_wanted){.key = *key, .peer = *peer, .lane = lane});
}

/* Once from each giver, however often he offers it. */
bool copies_want_again(struct copies *copies, const struct copies_wanted *wanted) {
    struct waiting waiting = waiting_of(&wanted->key, &wanted->peer);
    if (map_get(&copies->waiting, bytes_of(&waiting, sizeof waiting)) != NULL) {
        return true;
    }
    if (copies->lanes[wanted->lane].count == COPIES_WANTED_MAX) {
        return false;
    }
    append(&copies->lanes[wanted->lane], wanted);
    copies->wanted_count++;
    void *place = map_put(&copies->waiting, bytes_of(&waiting, sizeof waiting));
    ASSERT(place != NULL); /* there is room for as many */
    return true;
}

static struct copies_wanted take_first(struct copies_lane *lane) {
    struct copies_wanted wanted = lane->wanted[lane->first];
    lane->first = (lane->first + 1) % COPIES_WANTED_MAX;
    lane->count--;
    return wanted;
}

/* Those of other givers go to the end, in their order: their turn is next. */
static size_t take_of_lane(struct copies *copies, enum transfer_order_lane index, struct copies_wanted *out,
                           size_t count_max) {
    struct copies_lane *lane = &copies->lanes[index];
    struct peer giver = lane->wanted[lane->first].peer;
    size_t count = 0;
    for (size_t left = lane->count; left > 0 && count < count_max; left--) {
        struct copies_wanted wanted = take_first(lane);
        if (copies->config.has_slow_lines && !peer_equal(&wanted.peer, &giver)) {
            append(lane, &wanted);
            continue;
        }
        struct waiting waiting = waiting_of(&wanted.key, &wanted.peer);
        map_remove(&copies->waiting, bytes_of(&waiting, sizeof waiting));
        copies->wanted_count--;
        out[count++] = wanted;
    }
    return count;
}

size_t copies_take_wanted(struct copies *copies, struct copies_wanted *out, size_t count_max) {
    bool has_own = copies->lanes[TRANSFER_ORDER_OWN].count > 0;
    bool has_offered = copies->lanes[TRANSFER_ORDER_OFFERED].count > 0;
    if (!has_own && !has_offered) {
        return 0;
    }
    enum transfer_order_lane lane = transfer_order_next(&copies->queue, has_own, has_offered);
    enum transfer_order_lane other = lane == TRANSFER_ORDER_OWN ? TRANSFER_ORDER_OFFERED : TRANSFER_ORDER_OWN;
    transfer_order_took(&copies->queue, lane);
    size_t count = take_of_lane(copies, lane, out, count_max);
    if (!copies->config.has_slow_lines && copies->lanes[other].count > 0) {
        count += take_of_lane(copies, other, out + count, count_max - count);
    }
    return count;
}

bool copies_may_copy(struct copies *copies, const struct peer *peer) {
    if (!copies->config.has_slow_lines) {
        return true;
    }
    pthread_mutex_lock(&copies->lock);
    bool may_copy = transfer_order_may_take(&copies->giving, peer, copies_now_us(copies));
    pthread_mutex_unlock(&copies->lock);
    return may_copy;
}
