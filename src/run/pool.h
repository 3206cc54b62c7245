/*
 * pool - a few threads that take jobs from a queue, in order.
 *
 *      submitters (any threads)                  the pool's threads
 *        pool_try()                 ── queue ──>   job->run(context, seat)
 *                                                        │ job->loop set
 *      a loop's thread              <── post ────  job->done(context)
 *
 * Jobs are structs of whoever submits, so a submission needs no memory. The queue may have a
 * bound: pool_try() refuses what is beyond it. A job that can wait (is_later) is taken when no other is
 * there.
 *
 * The first thread starts with the pool. Each starts the next one when no idle one would be left, up to
 * threads_max: so an unused pool costs one thread, and priorities are inherited within the pool, whoever
 * submits. A thread keeps its seat, a number from 0 on, so what one thread needs at a time can lie in an
 * array.
 */
#ifndef MNEMON_RUN_POOL_H
#define MNEMON_RUN_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "run/loop_post.h"
#include "run/priority.h"

/* Zeros but for what is needed. The pool's until run() returns, or done() where there is a loop. */
struct pool_job {
    void (*run)(void *context, size_t seat);
    void *context;
    bool is_later;
    struct loop *loop; /* must outlive the pool; NULL: run() is all */
    void (*done)(void *context);

    /* The pool's. */
    struct pool_job *next;
    struct loop_post post;
    bool is_waiting;
};

struct pool_config {
    const char *name; /* of the threads, borrowed */
    size_t threads_max;
    size_t jobs_max; /* that may wait; 0: any number */
    enum priority priority;
    /* pool_stop() hands over what has not begun; NULL: that is run first. */
    void (*cancelled)(void *context);
    /* Called by a thread that has run jobs, before it waits for others or ends; may be NULL. */
    void (*rest)(void *context, size_t seat);
    void *context; /* of rest() */
};

struct pool_queue {
    struct pool_job *first;
    struct pool_job **last;
};

/* All zero: a pool that was never started; it takes nothing and may be stopped. */
struct pool {
    struct pool_config config;
    pthread_mutex_t lock;
    pthread_cond_t has_work;
    pthread_t *threads; /* lock, as all below; NULL: not started, or stopped */
    size_t threads_count;
    size_t seats_count;
    size_t busy_count;
    struct pool_queue queues[2]; /* second: is_later */
    size_t jobs_count;           /* that wait */
    bool is_stopping;
};

/* No thread: an error. Fewer than threads_max later on: it works with those that there are. */
enum err pool_start(struct pool *pool, const struct pool_config *config) MUST_CHECK;

/* Any thread, also those of the pool. False: full, or being stopped; the job is the caller's still. */
bool pool_try(struct pool *pool, struct pool_job *job) MUST_CHECK;

/*
 * Take no more jobs, deal with those that wait, wait for those that run. A second time nothing happens. Until
 * its memory is freed the pool refuses jobs, from any thread.
 */
void pool_stop(struct pool *pool);

#endif
