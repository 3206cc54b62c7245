/*
 * group_view - what the dashboard shows of the groups of this node, and of the collections that it publishes
 * or keeps. The node fills it; programs get more from /api/v1/groups and /api/v1/mirrors (docs/api.md).
 */
#ifndef MNEMON_REPLAY_ADMIN_GROUP_VIEW_H
#define MNEMON_REPLAY_ADMIN_GROUP_VIEW_H

#include "base/arena.h"

struct group_view_edge {
    const char *from; /* addresses */
    const char *to;
    uint32_t cost_us; /* 0: not measured */
};

struct group_view_neighbour {
    const char *address;
    uint32_t round_trip_us; /* 0: not measured, as the bandwidth */
    uint64_t bandwidth;
    bool is_heard;
    uint64_t heard_s; /* ago */
};

struct group_view_asked {
    const char *address;
    const char *key;
};

/* In the arena of whoever asks. */
struct group_view {
    const char *name; /* letters, digits, '.', '_' and '-' */
    const char *state;
    const char *admission;
    const char *generator;
    uint32_t k;

    size_t members_count; /* 0: there is no topology yet */
    uint32_t term;
    uint32_t sequence;
    uint32_t hops;
    uint32_t bridges;
    const char *master;
    bool is_master;
    const struct group_view_edge *edges;
    size_t edges_count;

    const struct group_view_neighbour *neighbours;
    size_t neighbours_count;
    const struct group_view_asked *asked; /* those that want to join */
    size_t asked_count;
};

enum { MIRROR_VIEW_TEXT_SIZE_MAX = 256 };

struct mirror_view {
    char name[MIRROR_VIEW_TEXT_SIZE_MAX];
    const char *role; /* static */
    char state[MIRROR_VIEW_TEXT_SIZE_MAX];
    uint64_t held_number; /* versions; 0: none */
    uint64_t newest_number;
    uint64_t files_count;
    uint64_t size;
    char sources[MIRROR_VIEW_TEXT_SIZE_MAX]; /* "from 10.0.0.1:7000", "3 known" */
};

#endif
