/* What is wanted of others and waits to be fetched; and whom we give copies to (protocol/copies/turns.h). */
#include <stdlib.h>

#include "base/assert.h"
#include "node/copies/keeping_state.h"

/* A key of one giver: another one may have to give it after all. */
struct waiting {
    struct ringkey key;
    uint8_t giver[PEER_KEY_SIZE];
};
_Static_assert(sizeof(struct waiting) == KEEPING_WAITING_SIZE, "compared as bytes");

enum err keeping_want_init(struct keeping *keeping) {
    size_t count_max = (size_t)TURNS_LANES_COUNT * KEEPING_WANTED_MAX;
    map_init(&keeping->waiting, KEEPING_WAITING_SIZE, 1, count_max, keeping->config.seed);
    for (size_t i = 0; i < TURNS_LANES_COUNT; i++) {
        struct keeping_lane *lane = &keeping->lanes[i];
        lane->wanted = malloc(KEEPING_WANTED_MAX * sizeof *lane->wanted);
        if (lane->wanted == NULL) {
            return ERR_MEMORY;
        }
    }
    return map_reserve(&keeping->waiting, count_max);
}

void keeping_want_done(struct keeping *keeping) {
    for (size_t i = 0; i < TURNS_LANES_COUNT; i++) {
        free(keeping->lanes[i].wanted);
    }
    map_done(&keeping->waiting);
}

static struct waiting waiting_of(const struct ringkey *key, const struct peer *peer) {
    struct waiting waiting = {.key = *key};
    memcpy(waiting.giver, peer->key, sizeof waiting.giver);
    return waiting;
}

static void append(struct keeping_lane *lane, const struct keeping_wanted *wanted) {
    lane->wanted[(lane->first + lane->count++) % KEEPING_WANTED_MAX] = *wanted;
}

bool keeping_want(struct keeping *keeping, enum turns_lane lane, const struct ringkey *key,
                  const struct peer *peer) {
    return keeping_want_again(keeping, &(struct keeping_wanted){.key = *key, .peer = *peer, .lane = lane});
}

/* Once from each giver, however often he offers it. */
bool keeping_want_again(struct keeping *keeping, const struct keeping_wanted *wanted) {
    struct waiting waiting = waiting_of(&wanted->key, &wanted->peer);
    if (map_get(&keeping->waiting, bytes_of(&waiting, sizeof waiting)) != NULL) {
        return true;
    }
    if (keeping->lanes[wanted->lane].count == KEEPING_WANTED_MAX) {
        return false;
    }
    append(&keeping->lanes[wanted->lane], wanted);
    keeping->wanted_count++;
    void *place = map_put(&keeping->waiting, bytes_of(&waiting, sizeof waiting));
    ASSERT(place != NULL); /* there is room for as many */
    return true;
}

static struct keeping_wanted take_first(struct keeping_lane *lane) {
    struct keeping_wanted wanted = lane->wanted[lane->first];
    lane->first = (lane->first + 1) % KEEPING_WANTED_MAX;
    lane->count--;
    return wanted;
}

/* Those of other givers go to the end, in their order: their turn is next. */
static size_t take_of_lane(struct keeping *keeping, enum turns_lane index, struct keeping_wanted *out,
                           size_t count_max) {
    struct keeping_lane *lane = &keeping->lanes[index];
    struct peer giver = lane->wanted[lane->first].peer;
    size_t count = 0;
    for (size_t left = lane->count; left > 0 && count < count_max; left--) {
        struct keeping_wanted wanted = take_first(lane);
        if (keeping->config.has_slow_lines && !peer_equal(&wanted.peer, &giver)) {
            append(lane, &wanted);
            continue;
        }
        struct waiting waiting = waiting_of(&wanted.key, &wanted.peer);
        map_remove(&keeping->waiting, bytes_of(&waiting, sizeof waiting));
        keeping->wanted_count--;
        out[count++] = wanted;
    }
    return count;
}

size_t keeping_take_wanted(struct keeping *keeping, struct keeping_wanted *out, size_t count_max) {
    bool has_own = keeping->lanes[TURNS_OWN].count > 0;
    bool has_offered = keeping->lanes[TURNS_OFFERED].count > 0;
    if (!has_own && !has_offered) {
        return 0;
    }
    enum turns_lane lane = turns_next(&keeping->queue, has_own, has_offered);
    enum turns_lane other = lane == TURNS_OWN ? TURNS_OFFERED : TURNS_OWN;
    turns_took(&keeping->queue, lane);
    size_t count = take_of_lane(keeping, lane, out, count_max);
    if (!keeping->config.has_slow_lines && keeping->lanes[other].count > 0) {
        count += take_of_lane(keeping, other, out + count, count_max - count);
    }
    return count;
}

bool keeping_may_copy(struct keeping *keeping, const struct peer *peer) {
    if (!keeping->config.has_slow_lines) {
        return true;
    }
    pthread_mutex_lock(&keeping->lock);
    bool may_copy = turns_may_take(&keeping->giving, peer, keeping_now_us(keeping));
    pthread_mutex_unlock(&keeping->lock);
    return may_copy;
}
