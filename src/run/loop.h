/*
 * loop - an event loop (libuv) on a thread of its own, with a name and a priority.
 *
 *      owner                                       the loop's thread
 *        loop_init(), handles on loop->uv
 *        loop_start()              ─────────────>    runs callbacks of handles, timers and posts
 *        loop_post(), any thread   ── in order ─>    post->run()
 *        loop_stop(end)            ─────────────>    the posts that wait, then end(); the thread ends
 *
 * Posts (loop_post.h) are structs of whoever posts, so posting cannot fail for want of memory. loop_call()
 * allocates one, up to a bound. What was taken is run, always; from loop_stop() on nothing is taken any more.
 *
 * The handles are the owner's. At the end it closes streams, sockets and whatever has memory of its own; the
 * timers, checks, prepares and idles that are still open then are closed here.
 */
#ifndef MNEMON_RUN_LOOP_H
#define MNEMON_RUN_LOOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "run/loop_post.h"
#include "run/priority.h"

/*
 * What wakes a loop from another thread, as uv_async_t does. With that, the loop spins until the thread that
 * woke it has come back from doing so. Where that thread has a lower priority, as the one that keeps copies
 * has, it loses its processor to the very loop that it wakes, which then spins until the other gets a turn
 * again: on a busy machine 6 % of all that the nodes of a ring did. Here nobody waits; the first nudge of a
 * run costs a system call.
 */
struct loop_nudge {
    uv_poll_t poll;
    int fd;
    atomic_bool is_sent; /* the loop has not seen it yet */
};

struct loop {
    uv_loop_t uv;
    struct loop_nudge nudge;
    pthread_t thread;
    bool has_thread; /* the owner's */
    enum priority priority;
    atomic_int id; /* of the thread, for the kernel; 0: none runs */
    void (*end)(void *context);
    void *end_context;
    bool is_closed; /* the thread's: its own handles are */

    pthread_mutex_t lock;
    struct loop_post *first; /* lock */
    struct loop_post **last; /* lock */
    size_t posts_count;      /* lock */
    size_t calls_count;      /* lock: of the posts, those of loop_call() */
    size_t calls_max;
    bool is_stopping; /* lock: nothing is taken any more */
};

/* The caller makes its handles on loop->uv between this and loop_start(). */
enum err loop_init(struct loop *loop, size_t calls_max) MUST_CHECK;

/* Where this fails, or was never called, loop_stop() does its work in the caller. */
enum err loop_start(struct loop *loop, const char *name, enum priority priority) MUST_CHECK;

/* Any thread: run() is called once. ERR_CLOSED: not taken; ERR_BUSY: calls_max of them wait; ERR_MEMORY. */
enum err loop_call(struct loop *loop, void (*run)(void *context), void *context) MUST_CHECK;

/* Is this the loop's thread? True for everybody while the loop has none. For assertions. */
bool loop_is_here(struct loop *loop);

/*
 * Another thread: take no more posts, run those that wait, call end() on the loop, which closes the owner's
 * handles, and wait until the thread has ended. Posts are refused until the loop's memory is freed. end may
 * be NULL.
 */
void loop_stop(struct loop *loop, void (*end)(void *context), void *context);

/*
 * The two halves of it, for an owner whose end takes several turns of the loop. On the loop: take no more
 * posts, run those that wait, close. From another thread: wait until that has happened.
 */
void loop_close(struct loop *loop);
void loop_join(struct loop *loop);

/* ---- timers ---- */

/* On the loop, or before it starts. Closed with the loop. */
struct loop_timer {
    uv_timer_t uv;
    void (*run)(void *context);
    void *context;
};

void loop_timer_init(struct loop *loop, struct loop_timer *timer, void (*run)(void *context), void *context);

/*
 * Once after this time, or 0: in the next turn; then again every repeat_us, if that is not 0. Milliseconds,
 * rounded up. Nothing happens once the loop is closed.
 */
void loop_timer_set(struct loop_timer *timer, uint64_t after_us, uint64_t repeat_us);
void loop_timer_stop(struct loop_timer *timer);
bool loop_timer_is_set(const struct loop_timer *timer);

#endif
