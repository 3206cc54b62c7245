/*
 * mirror_view - what the dashboard shows of the collections that this node publishes or keeps. The node fills
 * it; programs get more from /api/v1/mirrors (docs/api.md).
 */
#ifndef MNEMON_REPLAY_ADMIN_MIRROR_VIEW_H
#define MNEMON_REPLAY_ADMIN_MIRROR_VIEW_H

#include "base/arena.h"

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
