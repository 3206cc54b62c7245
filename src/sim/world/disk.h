/*
 * disk - one node's virtual disk: POSIX files as far as a store needs them, with every way to lose data.
 *
 * What the calls promise is what POSIX promises and no more:
 *   - written bytes survive a crash only after disk_sync() of the file;
 *   - a created, renamed or removed name survives only after disk_sync_directory();
 *   - a rename is atomic: after a crash the name leads to the old file or to the new one.
 * Everything else is chance, by the dials. Names are paths such as "volumes/0/a.warc"; a directory is the
 * part before the last slash and needs no making.
 *
 * Two tables of names, `now` and `durable`, lead to the same inodes; entry changes between them wait for
 * their directory's sync. A disk without files costs about 250 bytes.
 *
 * Calls take no virtual time; whoever models it asks disk_latency_us(). One thread.
 */
#ifndef MNEMON_SIM_WORLD_DISK_H
#define MNEMON_SIM_WORLD_DISK_H

#include "sim/world/file.h"

enum {
    DISK_NAME_SIZE_MAX = 255,
    DISK_FILES_MAX = 4096,         /* inodes */
    DISK_OPEN_MAX = 256,           /* handles */
    DISK_ENTRY_CHANGES_MAX = 1024, /* unsynced; the oldest then become durable by themselves */
};

/* Shared by all disks of a simulation. All zero: endless, instant, and a crash loses nothing. */
struct disk_dials {
    uint64_t capacity_size;  /* bytes; 0: no limit */
    uint32_t write_lost_ppm; /* chance of an unsynced write to be lost in a crash … */
    uint32_t write_torn_ppm; /* … or to reach the disk in part */
    uint32_t entry_lost_ppm; /* chance of an unsynced create, rename or unlink to be lost in a crash */
    uint32_t error_ppm;      /* chance of any changing call to fail with ERR_IO and do nothing */
    uint32_t latency_us;     /* of one group of writes and syncs */
    uint32_t jitter_us;      /* 0 … this, uniform, added */
};

struct disk_counters {
    uint64_t changes_count; /* calls that would change something, failed ones too */
    uint64_t failed_count;
    uint64_t crashes_count;
    uint64_t flips_count; /* rotten bits */
};

/* A directory. Finding costs O(log n), changes move what stands behind: for hundreds of files, not millions.
 */
struct names_entry {
    char *name;
    uint32_t inode;
};

struct names {
    struct names_entry *entries;
    uint32_t count;
    uint32_t capacity;
};

struct disk_inode {
    struct file file;
    uint32_t holders_count; /* names, unsynced entry changes, handles; 0: free */
};

/* A create has no old name, an unlink no new one, a rename both. */
struct disk_entry_change {
    char *old_name;
    char *new_name;
    uint32_t inode; /* of new_name */
};

struct disk {
    const struct disk_dials *dials;
    struct disk_counters counters;
    struct names now;
    struct names durable;
    struct disk_entry_change *entry_changes; /* oldest first */
    uint32_t entry_changes_count;
    uint32_t entry_changes_max;
    struct disk_inode *inodes;
    uint32_t inodes_count;
    uint32_t *handles; /* inode + 1, or 0 */
    uint32_t handles_count;
    uint32_t generation; /* of handles: those from before a crash are refused */
    uint64_t used_size;  /* of all files */
    uint64_t fail_at;    /* counters.changes_count of the call that fails with fail_err; 0: none */
    enum err fail_err;
    bool is_full; /* injected: nothing may grow or be created */
    struct prng prng;
};

/* The dials stay the caller's and may change at any time. */
void disk_init(struct disk *disk, const struct disk_dials *dials, uint64_t seed);
void disk_done(struct disk *disk);

enum disk_open_flag {
    DISK_CREATE = 1,    /* if it is not there */
    DISK_EXCLUSIVE = 2, /* ERR_EXISTS if it is; with DISK_CREATE */
    DISK_TRUNCATE = 4,
};

/*
 * Errors of all calls: ERR_NOT_FOUND, ERR_EXISTS, ERR_NO_SPACE, ERR_IO (injected), ERR_LIMIT, ERR_MEMORY,
 * ERR_CLOSED (a handle from before a crash). A call that fails has done nothing.
 */
enum err disk_open(struct disk *disk, const char *name, unsigned flags, uint32_t *ret_handle) MUST_CHECK;
void disk_close(struct disk *disk, uint32_t handle);

enum err disk_write(struct disk *disk, uint32_t handle, uint64_t offset, struct bytes bytes) MUST_CHECK;
enum err disk_append(struct disk *disk, uint32_t handle, struct bytes bytes) MUST_CHECK;
enum err disk_truncate(struct disk *disk, uint32_t handle, uint64_t size) MUST_CHECK;
enum err disk_sync(struct disk *disk, uint32_t handle) MUST_CHECK;

/* *ret_size is less than size only at the end of the file. */
enum err disk_read(struct disk *disk, uint32_t handle, uint64_t offset, void *out, size_t size,
                   size_t *ret_size) MUST_CHECK;
enum err disk_size(struct disk *disk, uint32_t handle, uint64_t *ret_size) MUST_CHECK;

enum err disk_rename(struct disk *disk, const char *old_name, const char *new_name) MUST_CHECK;
enum err disk_unlink(struct disk *disk, const char *name) MUST_CHECK;
enum err disk_sync_directory(struct disk *disk, const char *directory) MUST_CHECK;

/* Walk the names of a directory ("" is the top) in order: *cursor starts at 0; false at the end. */
bool disk_list(const struct disk *disk, const char *directory, uint32_t *cursor, const char **ret_name);

/* How long the next group of calls takes, drawn anew each time. */
uint64_t disk_latency_us(struct disk *disk);

/* The machine stops. What is left is what a restart finds. ERR_MEMORY is the simulator's, not the node's. */
enum err disk_crash(struct disk *disk) MUST_CHECK;

/* The medium is gone with everything on it. */
void disk_wipe(struct disk *disk);

/* Bit rot: one flipped bit per sector with the given chance. Returns how many. */
size_t disk_rot(struct disk *disk, uint32_t sector_ppm);

/* The count-th changing call from now (1: the next) fails with err and does nothing; 0: none does. */
void disk_fail_after(struct disk *disk, uint64_t count, enum err err);

#endif
