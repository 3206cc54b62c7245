/*
 * disk_vfs - the virtual disk as a file system of the store: store/disk/vfs.h over sim/world/disk.h.
 *
 * So that the real store can be stopped at any point and be shown what a crash left. The store has threads of
 * its own, therefore the lock; a simulation that must repeat bit for bit uses it from one thread at a time.
 */
#ifndef MNEMON_TESTS_SIM_DISK_VFS_H
#define MNEMON_TESTS_SIM_DISK_VFS_H

#include <pthread.h>

#include "sim/world/disk.h"
#include "store/disk/vfs.h"

struct disk_vfs {
    struct vfs vfs; /* first */
    struct disk *disk;
    pthread_mutex_t lock;
    uint64_t changes_left; /* then the machine stops: every call fails; UINT64_MAX: never */
    bool is_locked;        /* somebody holds vfs_lock() */
};

/* The disk is borrowed. */
void disk_vfs_init(struct disk_vfs *disk_vfs, struct disk *disk);
void disk_vfs_done(struct disk_vfs *disk_vfs);

/* The machine stops after so many further changes. Nothing works until disk_vfs_restart(). */
void disk_vfs_stop_after(struct disk_vfs *disk_vfs, uint64_t changes_count);

/* The disk crashes, if it was stopped or not, and works again. ERR_MEMORY is the simulator's. */
enum err disk_vfs_restart(struct disk_vfs *disk_vfs) MUST_CHECK;

#endif
