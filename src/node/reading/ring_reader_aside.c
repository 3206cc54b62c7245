#include "node/reading/ring_reader_aside.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "run/bell.h"

struct ring_reader_aside {
    struct pool_job job;
    void (*run)(void *context);
    void (*release)(void *context);
    void *context;
    struct bell over;
    atomic_bool is_over;
    atomic_uint holders_count; /* the pool's thread, and whoever started it */
};

void ring_reader_aside_leave(struct ring_reader_aside *aside) {
    if (atomic_fetch_sub(&aside->holders_count, 1) == 1) {
        aside->release(aside->context);
        free(aside);
    }
}

static void ring_reader_aside_run(void *context, size_t seat) {
    struct ring_reader_aside *aside = context;
    (void)seat;
    aside->run(aside->context);
    atomic_store(&aside->is_over, true);
    bell_ring(&aside->over);
    ring_reader_aside_leave(aside);
}

struct ring_reader_aside *ring_reader_aside_start(struct pool *pool, void (*run)(void *context),
                                                  void (*release)(void *context), void *context) {
    struct ring_reader_aside *aside = calloc(1, sizeof *aside);
    if (aside == NULL) {
        return NULL;
    }
    *aside = (struct ring_reader_aside){.job = {.run = ring_reader_aside_run, .context = aside},
                                        .run = run,
                                        .release = release,
                                        .context = context,
                                        .holders_count = 2};
    if (!pool_try(pool, &aside->job)) {
        free(aside);
        return NULL;
    }
    return aside;
}

bool ring_reader_aside_wait(struct ring_reader_aside *aside, uint64_t wait_us) {
    uint64_t now_us = clock_monotonic_us(&clock_system);
    uint64_t until_us = wait_us < BELL_NEVER_US - now_us ? now_us + wait_us : BELL_NEVER_US;
    bool has_time = true;
    while (has_time && !atomic_load(&aside->is_over)) {
        unsigned heard = bell_listen(&aside->over);
        has_time = atomic_load(&aside->is_over) || bell_wait_until(&aside->over, heard, until_us);
    }
    return atomic_load(&aside->is_over);
}
