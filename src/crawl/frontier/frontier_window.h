/*
 * frontier_window - the next few URLs of a lane in memory, while the others are on disk only.
 *
 *      positions  ──0────────────────bound────────────ceiling───────────>
 *                   all that wait are    those added     on disk only
 *                   in the window        since reading
 *                                        began are too
 *
 * What comes below the bound goes into the window, whatever came before it; a full window lets its last one
 * go and lowers the bound, for it is on disk as well. When the window runs low, the part of the disk from the
 * bound on is read by somebody else; ceiling, and what is finished meanwhile, keep apart what such a read,
 * which is older than the window, may tell: frontier_window_merge(). While nothing is read, ceiling is bound.
 *
 * Items are the owner's; the window hands back those that it lets go (trim).
 */
#ifndef MNEMON_CRAWL_FRONTIER_FRONTIER_WINDOW_H
#define MNEMON_CRAWL_FRONTIER_FRONTIER_WINDOW_H

#include "base/bytes.h"
#include "crawl/frontier/frontier_code.h"

enum { FRONTIER_PRIORITIES_COUNT = 4 };

struct frontier_slot {
    uint64_t position;
    void *item;
};

struct frontier_window {
    struct frontier_slot *slots; /* ascending, from `first` on */
    size_t first;
    size_t count;
    size_t slots_max;
    uint64_t bound;
    uint64_t ceiling;
    bool is_reading;
    uint64_t reading_from;
    bool is_spoiled;    /* something finished could not be noted: what is being read is of no use */
    uint64_t *finished; /* positions from reading_from on that were finished while reading */
    size_t finished_count;
    size_t finished_max;
    uint64_t low[FRONTIER_PRIORITIES_COUNT]; /* nothing of the priority waits below: spares the reader those
                                                that are gone and not yet cleared away on disk */
};

/* With all that waits (there is nothing on disk), or with nothing of it yet. */
void frontier_window_init(struct frontier_window *window, bool is_whole);

/* The items are the caller's to free before. */
void frontier_window_done(struct frontier_window *window);

/* Does a URL that now waits at the position belong into the window of count_max? Then put it, at once. */
bool frontier_window_admits(struct frontier_window *window, uint64_t position, size_t count_max);

/* True if the item is in the window now; false if one was there already. Trim afterwards. */
bool frontier_window_put(struct frontier_window *window, uint64_t position, void *item, size_t count_max);

/* What waits at the position could not be put: from there on the disk knows better. Trim afterwards. */
void frontier_window_leave_out(struct frontier_window *window, uint64_t position);

/* An item that the window lets go, or NULL: ask until there is none, after each put and merge. */
void *frontier_window_trim(struct frontier_window *window);

/* The first, or NULL. */
void *frontier_window_take(struct frontier_window *window);

bool frontier_window_has_any(const struct frontier_window *window);

/* Neither in memory nor on disk is there any. */
bool frontier_window_is_over(const struct frontier_window *window);

/* One that was taken is no longer on disk at this position. */
void frontier_window_finish(struct frontier_window *window, uint64_t position);

/* Is it time to read on from the bound? Then begin. */
bool frontier_window_needs_more(const struct frontier_window *window, size_t count_max);
void frontier_window_begin_reading(struct frontier_window *window);

/*
 * What was on disk from reading_from to end, without those that are taken, ascending. Items that are left
 * in the slots are the caller's again. Trim afterwards.
 */
void frontier_window_merge(struct frontier_window *window, struct frontier_slot *slots, size_t count,
                           uint64_t end, size_t count_max);

/* The last item, taken out, or NULL: to empty the window for good. */
void *frontier_window_drop_last(struct frontier_window *window);

#endif
