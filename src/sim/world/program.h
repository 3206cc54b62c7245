/*
 * program - what a simulated node runs: a protocol written to base/step.h, and how to set one up.
 *
 * The table is constant and shared by all nodes that run it. The state is state_size bytes that the
 * simulator allocates and zeroes for each life; it dies in a crash.
 */
#ifndef MNEMON_SIM_WORLD_PROGRAM_H
#define MNEMON_SIM_WORLD_PROGRAM_H

#include "base/err.h"
#include "base/step.h"

/* What a life starts from. Everything else comes as events. */
struct birth {
    uint32_t index; /* of the node in the simulation, from 0 */
    uint32_t life;  /* 1 for the first, one more after each crash */
    struct address address;
    uint64_t seed; /* of this life */
    void *config;  /* as given to sim_add(), borrowed for the whole run */
};

struct program {
    const char *name;
    size_t state_size;
    size_t actions_max;   /* of one step */
    size_t memory_size;   /* bytes of all actions of one step */
    uint32_t slots_count; /* ACTION_SAVE may name the slots below this */
    enum err (*init)(void *state, const struct birth *birth);
    void (*step)(void *state, const struct event *event, struct outbox *out);
    void (*done)(void *state); /* NULL if there is nothing to free */
};

#endif
