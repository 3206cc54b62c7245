/*
 * collection_tree - makes the files of a version in an empty directory: unchanged and renamed ones are hard
 * links to those of the version before, the others are written from their chunks.
 *
 * So two versions take the disk of one, and of what differs. Files of a tree must not be changed in place:
 * they belong to both. A file whose size, mode or time is not that of its entry any more is not linked to.
 *
 * Modes and times are those of the manifest, but the owner may always read files, and enter directories:
 * whoever cannot read a collection cannot hand it on.
 */
#ifndef MNEMON_NODE_MIRROR_COLLECTION_TREE_H
#define MNEMON_NODE_MIRROR_COLLECTION_TREE_H

#include "node/mirror/collection_places.h"
#include "protocol/mirror/manifest_reader.h"

struct collection_tree {
    int directory; /* empty */
    int before;    /* the tree of the version before; -1: none */
    const struct manifest_ref *root_before;
    const struct collection_places *places_before; /* NULL: nothing is known to be renamed */
    struct manifest_source nodes;
    /* The bytes of a chunk to memory. ERR_NOT_FOUND: nobody here has it. Files are checked as a whole. */
    enum err (*get)(void *context, const struct manifest_ref *chunk, uint8_t *memory);
    void *context;
};

struct collection_tree_stat {
    uint64_t linked_count;
    uint64_t written_count;
};

/*
 * ERR_NOT_FOUND: a chunk is missing. ERR_INVALID, ERR_MISMATCH, ERR_LIMIT and
 * others of a bad manifest: whoever signed it has signed what cannot be. (A file that is not what it should
 * be is ERR_MISMATCH, too: that counts only where get() gives what is right.) The rest are errors of this
 * machine.
 */
enum err collection_tree_make(const struct collection_tree *tree, const struct manifest_ref *root,
                              struct collection_tree_stat *ret_stat, struct err_detail *detail) MUST_CHECK;

#endif
