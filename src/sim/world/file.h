/*
 * file - the contents of one file on the virtual disk, with what a crash could still take away.
 *
 *      data      [ what a reader sees now                          ]
 *      changes   [ write | write | cut | write ]   since the last sync, oldest first
 *
 * A change keeps the bytes that it replaced. A crash swaps the changes out again, newest first, which leaves
 * the durable contents in data and the new bytes in the changes; then it lets each change happen, happen in
 * part, or not, sector by sector. So a file costs its size plus its unsynced changes, and a sync is cheap.
 *
 * As under a real kernel, the oldest changes become durable by themselves when too many are waiting.
 */
#ifndef MNEMON_SIM_WORLD_FILE_H
#define MNEMON_SIM_WORLD_FILE_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/prng.h"

enum {
    FILE_SECTOR_SIZE = 512,          /* written whole or not at all */
    FILE_CHANGES_MAX = 256,          /* unsynced, per file */
    FILE_CHANGES_SIZE_MAX = 4 << 20, /* bytes in them, per file */
};

struct file_change {
    uint64_t offset;
    uint64_t size_before; /* of the file */
    uint64_t size_after;
    uint8_t *bytes; /* what was there before; during a crash what shall be there */
    size_t bytes_size;
};

struct file {
    uint8_t *data; /* zero from size to capacity */
    size_t size;
    size_t capacity;
    struct file_change *changes;
    uint32_t changes_count;
    uint32_t changes_max;
    size_t changes_size;
};

void file_done(struct file *file);

/* Past the end the gap reads as zeros. ERR_MEMORY changes nothing. */
enum err file_write(struct file *file, uint64_t offset, struct bytes bytes) MUST_CHECK;

/* Shorter, or longer with zeros. */
enum err file_resize(struct file *file, uint64_t size) MUST_CHECK;

/* Everything so far survives a crash. */
void file_sync(struct file *file);

/*
 * The machine stops: each unsynced change is lost with the first chance, torn (half of its sectors, in any
 * order) with the second, and survives otherwise. If a change that made the file longer is lost, the
 * length may survive alone, with zeros, as on file systems that log only metadata.
 */
void file_crash(struct file *file, struct prng *prng, uint32_t lost_ppm, uint32_t torn_ppm);

/* Bit rot: flip one bit in each sector with the given chance. Returns how many. */
size_t file_rot(struct file *file, struct prng *prng, uint32_t sector_ppm);

#endif
