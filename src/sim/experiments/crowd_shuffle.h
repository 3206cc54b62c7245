/*
 * crowd_shuffle - one shuffle of two views as protocol/crowd/overlay.c does it, of either kind, with chosen
 * neighbours instead of random ones and without messages. For theorem 1; tests/sim/crowd.c holds it to the
 * real thing.
 */
#ifndef MNEMON_SIM_EXPERIMENTS_CROWD_SHUFFLE_H
#define MNEMON_SIM_EXPERIMENTS_CROWD_SHUFFLE_H

#include "protocol/crowd/view.h"

/* The neighbours that the two send to each other, in the order of the messages; without themselves. */
struct crowd_choice {
    struct crowd_neighbour
        sent[CROWD_SHUFFLE_MAX]; /* by the node that begins; in its view, without its partner */
    size_t sent_count;
    struct crowd_neighbour answered[CROWD_SHUFFLE_MAX]; /* by its partner; never the node that began */
    size_t answered_count;
};

/* What to leave out, to see what the theorem rests on. */
enum crowd_breakage {
    CROWD_BREAK_NOTHING,
    CROWD_BREAK_RULE_4, /* whoever is in the view may be overwritten */
    CROWD_BREAK_SIZES,  /* an answer may be shorter than the question, though more are known */
};

/* `partner` is in the view of the node that begins. */
void crowd_shuffle(enum crowd_breakage breakage, struct view *view, struct view *partner,
                   const struct crowd_choice *choice);

#endif
