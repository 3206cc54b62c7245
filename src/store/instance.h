/*
 * instance - an archive in a data directory: what commands and the node open.
 *
 *      DIR/volumes/0/     the segments
 *      DIR/index/0/       their index, which can always be rebuilt
 *
 * One process at a time: a second one is told so. Thread rules are those of volume.h.
 */
#ifndef MNEMON_STORE_INSTANCE_H
#define MNEMON_STORE_INSTANCE_H

#include "store/volume.h"

/* 0 or NULL stands for the volume's own defaults. */
struct instance_config {
    const char *directory; /* required; made where it is missing, unless must_exist */
    bool must_exist;
    bool is_rebuilding; /* throw the index away first */
    bool uses_gzip;     /* for new segments; else zstd */
    int level;
    uint64_t segment_size_max;
};

struct instance {
    struct vfs_posix vfs;
    struct volume *volume;
    struct volume_recovery recovery; /* what opening mended */
};

/* ERR_NOT_FOUND where it must exist and does not; ERR_BUSY where another process has it. */
enum err instance_open(struct instance *instance, const struct instance_config *config,
                       struct err_detail *detail) MUST_CHECK;
void instance_close(struct instance *instance);

#endif
