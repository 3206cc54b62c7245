/*
 * nudge - wakes a loop from another thread, as uv_async_t does.
 *
 * With that, the loop spins until the thread that woke it has come back from doing so. Where that thread has
 * a lower priority, as the one that keeps copies has, it loses its processor to the very loop that it wakes,
 * which then spins until the other gets a turn again: on a busy machine 6 % of all that the nodes of a ring
 * did. Here nobody waits; the first nudge of a run costs a system call.
 */
#ifndef MNEMON_RUN_NUDGE_H
#define MNEMON_RUN_NUDGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

#include "base/err.h"

struct nudge {
    uv_poll_t poll;
    int fd;
    atomic_bool is_sent; /* the loop has not seen it yet */
    void (*woken)(void *context);
    void *context;
};

/* woken() is called from the loop, once or more often for each run of nudges. */
enum err nudge_init(struct nudge *nudge, uv_loop_t *loop, void (*woken)(void *context),
                    void *context) MUST_CHECK;

/* From the loop, when nobody nudges any more. Its memory must last until the loop has run once more. */
void nudge_close(struct nudge *nudge);

/* Any thread. */
void nudge_send(struct nudge *nudge);

#endif
