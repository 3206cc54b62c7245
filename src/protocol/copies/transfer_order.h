/*
 * transfer_order - in which order copies go over the lines of a node, if these are what repair waits for.
 *
 * A refill takes as long as the line needs for it. Ten at a time all end late, and until then none of them
 * is a copy; one after the other, each but the last ends sooner. So a node gives copies to one taker at a
 * time, and takes from one giver at a time.
 *
 * What it lacks of its own arcs comes first: their other holders get from it what they lack
 * (protocol/copies/copy_plan.h), and cannot before it is here. What others offer gets every fourth turn at
 * least, so that what is new comes while a disk is being filled for weeks.
 *
 * Pure, of one size. Not for several threads at once.
 */
#ifndef MNEMON_PROTOCOL_COPIES_TRANSFER_ORDER_H
#define MNEMON_PROTOCOL_COPIES_TRANSFER_ORDER_H

#include "base/peer.h"

/* ---- what comes next ---- */

enum transfer_order_lane { TRANSFER_ORDER_OWN, TRANSFER_ORDER_OFFERED, TRANSFER_ORDER_LANES_COUNT };

struct transfer_order_queue {
    uint32_t own_row; /* turns that own arcs had since others had one */
};

/* The lane of the next transfer; if only one has something, that one. */
enum transfer_order_lane transfer_order_next(const struct transfer_order_queue *queue, bool has_own,
                                             bool has_offered);
void transfer_order_took(struct transfer_order_queue *queue, enum transfer_order_lane lane);

/* ---- who is given something ---- */

/* Zeroed: nobody is. */
struct transfer_order_giving {
    bool has_taker;
    struct peer taker;
    uint64_t since_us; /* of its turn */
    uint64_t last_us;  /* that it asked */
    bool is_awaited;   /* by another one */
    struct peer past;  /* the node that had the turn before, and … */
    uint64_t past_us;  /* … leaves it to others until then */
};

/*
 * The peer asks for a copy: may it have it now? One that may goes on until it has not asked for a while, or a
 * minute has passed and another one waits. The others are told that we are busy, and ask again.
 */
bool transfer_order_may_take(struct transfer_order_giving *giving, const struct peer *taker, uint64_t now_us);

#endif
