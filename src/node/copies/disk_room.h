/*
 * disk_room - makes room on a disk with a quota (store/volume/quota.h), on a thread of its own.
 *
 *   -  80 %: segments in which a quarter is dead are compacted, if that gives back 1 % of the quota;
 *   -  98.5 %: the node takes no copies (copies_is_full()): the next node clockwise takes its part.
 *
 * Without a quota it does nothing.
 */
#ifndef MNEMON_NODE_COPIES_DISK_ROOM_H
#define MNEMON_NODE_COPIES_DISK_ROOM_H

#include "store/instance/instance.h"

struct disk_room;

enum { DISK_ROOM_COPIES_PERMILLE = 985 };

/* 0 or NULL stands for the default in parentheses. Modules outlive it. */
struct disk_room_config {
    struct instance *instance;
    void (*note)(void *context, const char *sentence); /* for the log; its thread */
    void *context;
};

enum err disk_room_start(const struct disk_room_config *config, struct disk_room **ret_room) MUST_CHECK;
void disk_room_stop(struct disk_room *room); /* may be NULL */

#endif
