#include "protocol/copies/transfer_order.h"

enum { OWN_ROW_MAX = 3 };
static const uint64_t IDLE_US = 1000000;      /* without a question: it has what it wanted */
static const uint64_t TURN_US = 60 * 1000000; /* at most, if others wait */
static const uint64_t PAST_US =
    3 * 1000000; /* longer than a node stays away that was told that we are busy */

enum transfer_order_lane transfer_order_next(const struct transfer_order_queue *queue, bool has_own,
                                             bool has_offered) {
    bool is_own = has_own && (!has_offered || queue->own_row < OWN_ROW_MAX);
    return is_own ? TRANSFER_ORDER_OWN : TRANSFER_ORDER_OFFERED;
}

void transfer_order_took(struct transfer_order_queue *queue, enum transfer_order_lane lane) {
    queue->own_row = lane == TRANSFER_ORDER_OWN ? queue->own_row + (queue->own_row < OWN_ROW_MAX) : 0;
}

static void end_turn(struct transfer_order_giving *giving, uint64_t now_us) {
    giving->has_taker = false;
    giving->past = giving->taker;
    giving->past_us = now_us + PAST_US;
}

bool transfer_order_may_take(struct transfer_order_giving *giving, const struct peer *taker,
                             uint64_t now_us) {
    if (giving->has_taker && now_us >= giving->last_us + IDLE_US) {
        giving->has_taker = false;
    }
    if (giving->has_taker && peer_same_key(&giving->taker, taker)) {
        giving->last_us = now_us;
        if (giving->is_awaited && now_us >= giving->since_us + TURN_US) {
            end_turn(giving, now_us);
        }
        return giving->has_taker;
    }
    if (giving->has_taker || (now_us < giving->past_us && peer_same_key(&giving->past, taker))) {
        giving->is_awaited = true;
        return false;
    }
    giving->has_taker = true;
    giving->taker = *taker;
    giving->since_us = now_us;
    giving->last_us = now_us;
    giving->is_awaited = false;
    return true;
}
