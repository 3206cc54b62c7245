/*
 * scratch - bytes that may become more than memory should hold: the body of a response, a record on its way.
 *
 *      up to memory_max    a buffer that grows on demand: an empty scratch costs no more than this struct
 *      above               a file without a name in the given directory, so that nothing is left of it
 * however the process ends; read through a mapping, whose pages the kernel may drop
 *
 * Scratches with the same budget may together have so much in files, however many of them there are: ERR_BUSY
 * for the one that wants more. It is given back when the file goes.
 *
 * Bytes are only appended. The first failure (ERR_LIMIT above size_max, ERR_NO_SPACE, ERR_IO …) sticks until
 * scratch_clear(). One thread at a time. Should the disk fail to read the file back, the kernel ends the
 * process (SIGBUS), as it would for a page of the program itself.
 */
#ifndef MNEMON_BASE_SCRATCH_H
#define MNEMON_BASE_SCRATCH_H

#include <stdatomic.h>

#include "base/buf.h"
#include "base/sink.h"

enum {
    SCRATCH_MEMORY_MAX = 1 << 20, /* what most users want as memory_max */
    SCRATCH_KEPT_MAX = 1 << 20,   /* of memory, by scratch_clear() */
};

/* Any thread. */
struct scratch_budget {
    uint64_t size_max;
    _Atomic uint64_t size; /* taken now */
};

void scratch_budget_init(struct scratch_budget *budget, uint64_t size_max);

/* A quarter of what is free now where the directory is, but size_min at least. */
void scratch_budget_init_by_disk(struct scratch_budget *budget, const char *directory, uint64_t size_min);

struct scratch {
    const char *directory; /* borrowed */
    uint64_t size_max;
    uint64_t size;
    struct buf memory; /* its size_max is memory_max */
    int fd;            /* -1: all of it is in memory */
    void *map;         /* of the first map_size bytes of the file, or NULL */
    size_t map_size;
    enum err err;
    struct scratch_budget *budget; /* NULL: none */
    uint64_t taken_size;           /* of it */
};

/* The directory is one of the real file system and is not looked at before it is needed. */
void scratch_init(struct scratch *scratch, const char *directory, size_t memory_max, uint64_t size_max);
void scratch_done(struct scratch *scratch);

/* Of an empty one. The budget outlives it. */
void scratch_set_budget(struct scratch *scratch, struct scratch_budget *budget);

/* Empty again, error forgotten; up to SCRATCH_KEPT_MAX of memory is kept for reuse, no file is. */
void scratch_clear(struct scratch *scratch);

enum err scratch_put(struct scratch *scratch, struct bytes bytes);

/* All of it in one piece, read-only, until the next put, clear or done. */
enum err scratch_bytes(struct scratch *scratch, struct bytes *ret_bytes) MUST_CHECK;

/* A part of it, copied out: for a caller that goes through it once and wants no mapping. It must be there. */
enum err scratch_read(const struct scratch *scratch, uint64_t offset, void *out, size_t size) MUST_CHECK;

static inline bool scratch_is_in_memory(const struct scratch *scratch) {
    return scratch->fd < 0;
}

/* Into a scratch of the caller's. */
struct scratch_sink {
    struct sink sink; /* first: the function finds the rest from here */
    struct scratch *scratch;
};

void scratch_sink_init(struct scratch_sink *sink, struct scratch *scratch);

#endif
