/*
 * copies_disk - the captures of a simulated node, for protocol/copies/replicator.h: which of all captures of
 * its world it has, as a set of keys with sums.
 *
 *      archive   the keys of all captures that there ever are in a world, in their order, each with its sum
 *      disk      a byte for each of them, and the sum of every 256
 *
 * So a capture is a number, a change costs nothing, and a sum reads a few hundred bytes and the blocks
 * between.
 */
#ifndef MNEMON_SIM_EXPERIMENTS_COPIES_DISK_H
#define MNEMON_SIM_EXPERIMENTS_COPIES_DISK_H

#include "base/prng.h"
#include "base/ringkey.h"
#include "protocol/ring/ring_id.h"

struct copies_archive {
    uint32_t count;
    struct ringkey *keys;
    struct ringkey_sum *sums;
};

enum err copies_archive_init(struct copies_archive *archive, uint32_t count, struct prng *prng) MUST_CHECK;
void copies_archive_done(struct copies_archive *archive);

/* The first capture that is not below the key; the count: none. */
uint32_t copies_archive_find(const struct copies_archive *archive, const struct ringkey *key);
bool copies_archive_has(const struct copies_archive *archive, const struct ringkey *key,
                        uint32_t *ret_capture);

static inline struct ring_id copies_archive_place(const struct copies_archive *archive, uint32_t capture) {
    return ring_id_read(archive->keys[capture].bytes);
}

struct copies_disk {
    const struct copies_archive *archive;
    uint8_t *has;               /* [capture] */
    struct ringkey_sum *blocks; /* of every 256 */
    uint32_t count;
};

enum err copies_disk_init(struct copies_disk *disk, const struct copies_archive *archive) MUST_CHECK;
void copies_disk_done(struct copies_disk *disk);

void copies_disk_add(struct copies_disk *disk, uint32_t capture);    /* which it has not */
void copies_disk_remove(struct copies_disk *disk, uint32_t capture); /* which it has */

struct ringkey_set copies_disk_set(struct copies_disk *disk);

#endif
