/*
 * manifest_compare - what has to be done to make the new version of a collection from the old one: both
 * manifests merged, in the order of their paths. Pure.
 *
 * Equal content is the same kind, size and digest (target, of links). A renamed file is one that went and one
 * that came; its chunks are known by their digests, so nothing of it travels. What turns into another
 * kind is CHANGED; if a directory became a file, what was in it is REMOVED by the entries that follow,
 * so a program that changes a tree in place removes from the end to the start.
 */
#ifndef MNEMON_PROTOCOL_MIRROR_MANIFEST_COMPARE_H
#define MNEMON_PROTOCOL_MIRROR_MANIFEST_COMPARE_H

#include "protocol/mirror/manifest_reader.h"

enum manifest_change_kind {
    MANIFEST_FINISHED, /* there is nothing more */
    MANIFEST_SAME,
    MANIFEST_TOUCHED, /* mode or time only */
    MANIFEST_CHANGED,
    MANIFEST_ADDED,   /* only in the new one */
    MANIFEST_REMOVED, /* only in the old one */
};

struct manifest_change {
    enum manifest_change_kind kind;
    const struct manifest_entry *before; /* NULL if it was not there */
    const struct manifest_entry *after;
};

/* Both readers have just been started, and are the comparison's until it ends. */
struct manifest_compare {
    struct manifest_reader *readers[2]; /* old, new; old NULL: there is no old version */
    struct manifest_entry entries[2];
    bool is_wanted[2]; /* the entry has been used: the next one first */
};

void manifest_compare_init(struct manifest_compare *compare, struct manifest_reader *before,
                           struct manifest_reader *after);

/*
 * The next path of either. The entries last until the next call; so long, manifest_reader_next_chunk()
 * of either reader gives the chunks of its file. Errors as of manifest_reader_next(); *ret_reader (may be
 * NULL) which reader's it is.
 */
enum err manifest_compare_next(struct manifest_compare *compare, struct manifest_change *ret_change,
                               struct manifest_reader **ret_reader) MUST_CHECK;

#endif
