/*
 * names - a directory: names in the order of their bytes, each leading to an inode.
 *
 * A name is copied; a path such as "volumes/0/a.warc" is one name. Finding costs O(log n), binding and
 * unbinding move what stands behind: made for hundreds of files, not for millions.
 */
#ifndef MNEMON_SIM_WORLD_NAMES_H
#define MNEMON_SIM_WORLD_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { NAMES_NAME_SIZE_MAX = 255 };

struct names_entry {
    char *name;
    uint32_t inode;
};

struct names {
    struct names_entry *entries;
    uint32_t count;
    uint32_t capacity;
};

void names_init(struct names *names);
void names_done(struct names *names);

/* The entry, or NULL; valid until the next change. */
const struct names_entry *names_find(const struct names *names, const char *name);

/* The name leads to the inode from now on, whatever it led to before. */
enum err names_bind(struct names *names, const char *name, uint32_t inode) MUST_CHECK;

/* Nothing happens if there is no such name. */
void names_unbind(struct names *names, const char *name);

#endif
