/*
 * ring_reader_aside - work that waits for other nodes, on a pool's thread, so that the thread that wants its
 * result can look elsewhere meanwhile, and leave it behind.
 *
 * Its context belongs to the pool's thread while it runs, then to the thread that waits for it; left behind,
 * it is freed by the last of them.
 */
#ifndef MNEMON_NODE_READING_RING_READER_ASIDE_H
#define MNEMON_NODE_READING_RING_READER_ASIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "run/pool.h"

struct ring_reader_aside;

/* release: frees the context. NULL: the pool takes nothing, or there is no memory, and nothing was done with
 * the context.
 */
struct ring_reader_aside *ring_reader_aside_start(struct pool *pool, void (*run)(void *context),
                                                  void (*release)(void *context), void *context);

/* Is it over, now or within this time? UINT64_MAX: as long as it takes. */
bool ring_reader_aside_wait(struct ring_reader_aside *aside, uint64_t wait_us);

/* The thread that started it is done with it, with or without its result: the context is released. */
void ring_reader_aside_leave(struct ring_reader_aside *aside);

#endif
