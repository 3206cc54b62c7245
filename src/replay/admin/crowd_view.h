/*
 * crowd_view - what the dashboard shows of what nodes hand on to each other. The node fills it, in the arena
 * of whoever asks; programs get more from /api/v1/crowd (docs/api.md).
 */
#ifndef MNEMON_REPLAY_ADMIN_CROWD_VIEW_H
#define MNEMON_REPLAY_ADMIN_CROWD_VIEW_H

#include "base/arena.h"

/* A capture that others ask for. */
struct crowd_view_hot {
    struct bytes url;
    struct bytes title;
    int64_t time_us;
    uint64_t size;
    uint64_t asked_count;
    uint64_t given_count;
};

/* What this node hands on. */
struct crowd_view_offers {
    uint32_t count;
    uint64_t size;
    uint64_t given_count; /* captures given whole */
    uint64_t given_size;
    uint64_t referred_count;
};

/* What it got from others. */
struct crowd_view_obtained {
    uint64_t wanted_count;
    uint64_t own_count;
    uint64_t obtained_count;
    uint64_t obtained_size;
    uint64_t lost_count;
    uint64_t false_count; /* holders that gave something false */
};

struct crowd_view {
    const char *overlay; /* NULL: this node takes no part */
    const char *part;
    uint32_t view_size;
    const char **neighbours; /* their addresses */
    size_t neighbours_count;

    uint64_t searches_count;
    uint64_t found_count;
    uint64_t lost_count;
    uint64_t queries_count;
    uint64_t hits_count;
    uint64_t forwarded_count;
    uint64_t limited_count;
    uint64_t shuffled_count;
    uint64_t served_count;
    uint64_t silent_count;

    struct crowd_view_offers offers;
    struct crowd_view_obtained obtained;
    const struct crowd_view_hot *hot; /* the most wanted first */
    size_t hot_count;
};

#endif
