/*
 * disk_room - makes room on a disk with a quota (store/volume/quota.h), on a thread of its own.
 *
 *   -  80 %: segments in which a quarter is dead are compacted, if that gives back 1 % of the quota;
 *   -  90 %: in a ring, the node takes fewer virtual nodes: others take its part over, and what it held for
 * it is surplus, which is given up when they have it (copies_release.c);
 *   -  98.5 %: the node takes no copies (copies_is_full());
 *   -  below 60 % it takes more virtual nodes again, up to those of its capacity.
 *
 * So the part of the ring that a node has follows from its quota, without anybody comparing disks: a small
 * one fills up earlier and gives up more. After each step it waits until the step can have had an effect.
 * Without a quota it does nothing.
 */
#ifndef MNEMON_NODE_COPIES_DISK_ROOM_H
#define MNEMON_NODE_COPIES_DISK_ROOM_H

#include "base/clock.h"
#include "node/transport/transport.h"
#include "store/instance/instance.h"

struct disk_room;

enum { DISK_ROOM_COPIES_PERMILLE = 985 };

/* 0 or NULL stands for the default in parentheses. Modules outlive it. */
struct disk_room_config {
    struct instance *instance;
    struct transport *transport;                       /* (the node is in no ring) */
    uint64_t grace_us;                                 /* (1 h) surplus is given up after that */
    bool keeps_everything;                             /* then fewer virtual nodes make no room */
    const struct clock *clock;                         /* (clock_system) */
    void (*note)(void *context, const char *sentence); /* for the log; its thread */
    void *context;
};

enum err disk_room_start(const struct disk_room_config *config, struct disk_room **ret_room) MUST_CHECK;
void disk_room_stop(struct disk_room *room); /* may be NULL */

/*
 * How many virtual nodes a node that has vnodes_count of vnodes_max should have. Pure.
 */
uint8_t disk_room_vnodes(uint64_t used_permille, uint8_t vnodes_count, uint8_t vnodes_max);

/*
 * How many it may take again, if full_vnodes of them needed full_size: so many that 85 % of the quota would
 * be used. So each time that it was too much leads to less, and it does not swing. full_size 0: it never was.
 */
uint8_t disk_room_vnodes_max(uint64_t quota_size, uint64_t full_size, uint8_t full_vnodes,
                             uint8_t vnodes_max);

#endif
