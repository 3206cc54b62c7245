/*
 * crowd_state - what is inside struct crowd, for the files of this folder only. One machine in several files:
 * crowd.c has its life and hands messages to overlay.c (the view is built and kept) and locate.c (searches).
 */
#ifndef MNEMON_PROTOCOL_CROWD_CROWD_STATE_H
#define MNEMON_PROTOCOL_CROWD_CROWD_STATE_H

#include "base/arena.h"
#include "base/bucket.h"
#include "base/prng.h"
#include "protocol/crowd/locate.h"
#include "protocol/crowd/locate_state.h"
#include "protocol/crowd/overlay.h"
#include "protocol/crowd/view.h"

struct crowd {
    struct arena arena;         /* of everything below and of this */
    struct crowd_config config; /* defaults filled in */
    struct prng prng;
    uint64_t secret; /* of tokens and buckets */
    struct view view;
    struct overlay overlay;
    struct locate locate;
    struct crowd_counters counters;
    uint64_t blame_at_us; /* CROWD_BLAMED is not said before */

    /* During a step. */
    uint64_t now_us;
    struct outbox *out;
    struct crowd_message message; /* that came */
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
};

/* crowd.c: to a neighbour; the message's version and network are filled in. */
void crowd_send(struct crowd *crowd, const struct peer *to, const struct crowd_message *message);

/* A message to whoever sent this one. */
void crowd_answer(struct crowd *crowd, const struct event *event, const struct crowd_message *message);

/* The token that proves this address. */
uint64_t crowd_token(const struct crowd *crowd, const struct address *address);

#endif
