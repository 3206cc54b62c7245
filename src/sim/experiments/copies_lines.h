/*
 * copies_lines - the lines of simulated nodes: each carries one transfer at a time in either direction, in
 * the order in which they were asked for.
 *
 * A transfer takes the line of its giver and that of its taker for as long as it lasts. If either of them
 * goes down, what is under way is cut, what waits for the line is dropped, and all others move up.
 */
#ifndef MNEMON_SIM_EXPERIMENTS_COPIES_LINES_H
#define MNEMON_SIM_EXPERIMENTS_COPIES_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct copies_transfer {
    uint32_t tag; /* the caller's name for it; one at a time */
    uint32_t giver;
    uint32_t taker;
    uint64_t begin_us;
    uint64_t end_us;
};

struct copies_lines {
    struct copies_transfer *transfers; /* by begin_us */
    size_t count;
    size_t max;
    uint64_t *send_us; /* [node]: free from then on */
    uint64_t *receive_us;
    uint32_t nodes_count;
};

enum err copies_lines_init(struct copies_lines *lines, uint32_t nodes_count) MUST_CHECK;
void copies_lines_done(struct copies_lines *lines);

/* A transfer of that length, as soon as both lines are free. */
enum err copies_lines_add(struct copies_lines *lines, const struct copies_transfer *transfer,
                          uint64_t length_us, uint64_t now_us, uint64_t *ret_end_us) MUST_CHECK;

/* It is over; nothing if there is no such transfer. */
void copies_lines_remove(struct copies_lines *lines, uint32_t tag);

struct copies_lines_calls {
    void (*cut)(void *context, const struct copies_transfer *transfer, uint64_t done_us);
    void (*moved)(void *context, const struct copies_transfer *transfer); /* it ends at another time */
    void *context;
};

/* The node is down. The calls must not call back. */
void copies_lines_cut(struct copies_lines *lines, uint32_t node, uint64_t now_us,
                      const struct copies_lines_calls *calls);

#endif
