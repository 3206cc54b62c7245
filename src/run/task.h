/*
 * task - one piece of work that recurs, on a thread of its own: run() does some of it and says how long to
 * rest. Then it is called again when that time has passed, or at once when somebody pokes the task.
 *
 * No poke is lost: one that comes while run() is at work calls it once more. Pokes that come together are
 * one. What was written before a poke is seen by the run that follows it.
 */
#ifndef MNEMON_RUN_TASK_H
#define MNEMON_RUN_TASK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "run/bell.h"
#include "run/priority.h"

static const uint64_t TASK_FOR_EVER_US = UINT64_MAX;

/* All zero to begin with: it may be poked and stopped before it is started. */
struct task {
    uint64_t (*run)(void *context);
    void *context;
    enum priority priority;
    pthread_t thread;
    bool has_thread; /* the owner's */
    struct bell bell;
    atomic_bool is_poked;
    atomic_bool is_stopping;
};

/*
 * Of a struct of zeros. The first run begins at once. run() returns for how long the task rests, 0: not at
 * all, TASK_FOR_EVER_US: until it is poked.
 */
enum err task_start(struct task *task, const char *name, enum priority priority,
                    uint64_t (*run)(void *context), void *context) MUST_CHECK;

/* Any thread. */
void task_poke(struct task *task);

/* Wait until run() has returned, and call it no more. A second time nothing happens. */
void task_stop(struct task *task);

/* Any thread; long runs look at it often. */
bool task_is_stopping(struct task *task);

/* From within run(): rest for this time, whatever pokes come. False: the task is being stopped. */
bool task_rest(struct task *task, uint64_t time_us);

#endif
