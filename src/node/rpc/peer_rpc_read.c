/* What readers ask: how much of it, and who has too much of it. */
#include "node/rpc/peer_rpc_state.h"

static const uint64_t BURST_US = 100000; /* the rate may be ahead by so much */
static const uint64_t LISTS_US = 2000000;
enum { BUSY_US_MIN = 200000, BUSY_US_MAX = 2000000, LISTS_MAX = 8 };

/* Of him; NULL: out of memory. Within the lock. */
static struct peer_rpc_habit *habit_of(struct peer_rpc *peer_rpc, const struct peer *peer) {
    if (map_reserve(&peer_rpc->habits, peer_rpc->habits.count + 1) != ERR_OK) {
        map_clear(&peer_rpc->habits); /* too many peers for one table: begin anew */
    }
    return map_put(&peer_rpc->habits, peer_key(peer));
}

/* ---- here ---- */

/* Has he been given a listing a moment ago, and read nothing of it yet? */
static bool follows_list(struct peer_rpc_habit *habit, uint64_t now_us) {
    if (habit == NULL || habit->lists_count == 0 || now_us > habit->lists_until_us) {
        return false;
    }
    habit->lists_count--;
    return true;
}

static void note_list(struct peer_rpc_habit *habit, uint64_t now_us) {
    if (habit != NULL) {
        habit->lists_count = now_us > habit->lists_until_us ? 1 : habit->lists_count + 1;
        habit->lists_count = habit->lists_count < LISTS_MAX ? habit->lists_count : LISTS_MAX;
        habit->lists_until_us = now_us + LISTS_US;
    }
}

enum err peer_rpc_begin_read(struct peer_rpc *peer_rpc, const struct peer *from, enum peer_rpc_read read,
                             struct err_detail *detail) {
    struct peer_rpc_meter *reads = &peer_rpc->reads;
    uint64_t now_us = peer_rpc_now_us(peer_rpc);
    bool is_begun = read == PEER_RPC_READ_ON || reads->rate == 0 || reads->free_us < now_us + BURST_US;
    pthread_mutex_lock(&peer_rpc->lock);
    struct peer_rpc_habit *habit = reads->rate > 0 ? habit_of(peer_rpc, from) : NULL;
    is_begun = (read == PEER_RPC_READ_CAPTURE && follows_list(habit, now_us)) || is_begun;
    if (read == PEER_RPC_READ_LIST && is_begun) {
        note_list(habit, now_us);
    }
    peer_rpc->stat.reads_count += is_begun;
    peer_rpc->stat.shed_count += !is_begun;
    pthread_mutex_unlock(&peer_rpc->lock);
    if (!is_begun) {
        return err_set(detail, ERR_BUSY, "more is asked of this node than it may answer");
    }
    if (reads->rate > 0) {
        reads->free_us = (reads->free_us > now_us ? reads->free_us : now_us) + 1000000 / reads->rate;
    }
    return ERR_OK;
}

/* ---- there ---- */

/* Twice as long each time. While it holds, it was asked before we knew: that is not the second time. */
static void learn_busy(struct standing *standing, struct bytes key, bool is_busy, uint64_t now_us) {
    if (!is_busy) {
        standing_clear(standing, STANDING_BUSY, key);
    } else if (!standing_holds(standing, STANDING_BUSY, key, now_us)) {
        uint32_t count = standing_count(standing, STANDING_BUSY, key);
        standing_note(standing, STANDING_BUSY, key, now_us,
                      now_us + retry_doubled_us(BUSY_US_MIN, count, BUSY_US_MAX));
    }
}

void peer_rpc_learn(struct peer_rpc *peer_rpc, const struct peer *peer, enum peer_rpc_service service,
                    enum err err, uint64_t took_us) {
    uint64_t now_us = peer_rpc_now_us(peer_rpc);
    pthread_mutex_lock(&peer_rpc->lock);
    struct peer_rpc_habit *habit = habit_of(peer_rpc, peer);
    if (habit != NULL) {
        rtt_sample(&habit->rtt, took_us);
    }
    if (service == PEER_RPC_WALK || service == PEER_RPC_CAPTURE) {
        learn_busy(&peer_rpc->standing, peer_key(peer), err == ERR_BUSY, now_us);
    }
    pthread_mutex_unlock(&peer_rpc->lock);
}

bool peer_rpc_is_busy(struct peer_rpc *peer_rpc, const struct peer *peer) {
    uint64_t now_us = peer_rpc_now_us(peer_rpc);
    pthread_mutex_lock(&peer_rpc->lock);
    bool is_busy = standing_holds(&peer_rpc->standing, STANDING_BUSY, peer_key(peer), now_us);
    pthread_mutex_unlock(&peer_rpc->lock);
    return is_busy;
}

uint64_t peer_rpc_round_trip_us(struct peer_rpc *peer_rpc, const struct peer *peer) {
    pthread_mutex_lock(&peer_rpc->lock);
    const struct peer_rpc_habit *habit = map_get(&peer_rpc->habits, peer_key(peer));
    uint64_t round_trip_us = habit != NULL ? habit->rtt.smoothed_us : 0;
    pthread_mutex_unlock(&peer_rpc->lock);
    return round_trip_us;
}
