/* loop_post - what another thread wants done on a loop; see loop.h. Apart, so that posting needs no libuv. */
#ifndef MNEMON_RUN_LOOP_POST_H
#define MNEMON_RUN_LOOP_POST_H

#include <stdbool.h>

struct loop;

/* Zeros but for the first two. It may be posted again, or freed, from within run(). */
struct loop_post {
    void (*run)(void *context);
    void *context;
    struct loop_post *next;
    bool is_waiting;   /* lock of the loop */
    bool is_allocated; /* by loop_call() */
};

/*
 * Any thread. A post that still waits stays where it is, and is run once. False: the loop takes nothing any
 * more.
 */
bool loop_post(struct loop *loop, struct loop_post *post);

/* On the loop: if it still waits, it is not run. Before its memory goes. */
void loop_drop(struct loop *loop, struct loop_post *post);

#endif
