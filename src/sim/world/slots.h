/*
 * slots - carries out ACTION_SAVE on a virtual disk, as node/ does on a real one.
 *
 * A slot is a file "slots/N": old contents or new ones, whenever the crash comes, because a save is
 *
 *      write slots/N.new  ->  sync it  ->  rename to slots/N  ->  sync the directory  ->  EVENT_SAVED
 *
 *      slot file   u64 SipHash of the rest | u32 slot | bytes
 *
 * Saves are grouped: while one group is on its way to the disk, the next gathers, the newest contents of a
 * slot replacing older ones that wait. All of a group is durable before the first EVENT_SAVED of it. So a
 * node has at most two contents per slot in memory, however fast it saves. A group that fails (full disk,
 * injected error) is tried again later.
 *
 * The caller owns the time: slots_begin(), then after disk_latency_us() slots_commit(). A crash in between
 * stops at a random one of the calls above.
 */
#ifndef MNEMON_SIM_WORLD_SLOTS_H
#define MNEMON_SIM_WORLD_SLOTS_H

#include "base/buf.h"
#include "sim/world/disk.h"

enum { SLOTS_COUNT_MAX = 64, SLOTS_SIZE_MAX = 16 << 20 };

struct slots_save {
    struct buf file; /* as written, with its header */
    uint64_t number;
    uint64_t order; /* of the action among all; 0: none */
};

struct slots {
    struct disk disk;
    struct slots_save *waiting; /* one per slot */
    struct slots_save *running;
    uint32_t count;
    bool is_busy; /* between begin and a commit that succeeded */
    uint64_t order_last;
    uint64_t corrupt_count; /* slot files found damaged at a restart */
};

/* Returns NULL when out of memory. */
struct slots *slots_new(uint32_t count, const struct disk_dials *dials, uint64_t seed);
void slots_free(struct slots *slots);

/* Keep for the next group. slot < count. ERR_MEMORY, ERR_LIMIT above SLOTS_SIZE_MAX. */
enum err slots_put(struct slots *slots, uint32_t slot, uint64_t number, struct bytes bytes) MUST_CHECK;

/* Start the next group. False if nothing waits or a group is on its way. */
bool slots_begin(struct slots *slots);

/* Bring the group to the disk. After an error it may be called again. */
enum err slots_commit(struct slots *slots) MUST_CHECK;

/* After a commit: what is durable now, in the order of the actions; false at the end. */
bool slots_next_saved(struct slots *slots, uint32_t *ret_slot, uint64_t *ret_number);

/* The machine stops. */
enum err slots_crash(struct slots *slots) MUST_CHECK;

/* The machine is gone with its disk. */
void slots_wipe(struct slots *slots);

/*
 * The contents of a slot, appended to *out. ERR_NOT_FOUND if it was never saved, ERR_CORRUPT if the
 * disk damaged it.
 */
enum err slots_restore(struct slots *slots, uint32_t slot, struct buf *out) MUST_CHECK;

#endif
