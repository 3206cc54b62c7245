/*
 * manifest_reader - the entries of a manifest, one after the other, from nodes that its source brings. Pure.
 *
 * The manifest is hostile: every node is checked against the digest under which it was asked for, every
 * record against its bounds, every path against path_rule.h and its place in the order. The reader
 * holds one node of each level: 1 MiB, whatever the number of entries.
 *
 *      manifest_reader_start(root)
 *      manifest_reader_next() until MANIFEST_END
 *          manifest_reader_next_chunk() of a file, as far as wanted
 */
#ifndef MNEMON_PROTOCOL_MIRROR_MANIFEST_READER_H
#define MNEMON_PROTOCOL_MIRROR_MANIFEST_READER_H

#include "protocol/mirror/manifest.h"

struct manifest_reader;

struct manifest_source {
    void *context;
    /* Write the ref->size bytes of the node to memory. ERR_NOT_FOUND and other errors are handed on. */
    enum err (*get)(void *context, const struct manifest_ref *ref, uint8_t *memory);
};

/* ERR_MEMORY. */
enum err manifest_reader_new(struct manifest_reader **ret_reader) MUST_CHECK;
void manifest_reader_free(struct manifest_reader *reader);

/* At the first entry of that manifest. Nodes are asked for later. */
void manifest_reader_start(struct manifest_reader *reader, struct manifest_source source,
                           const struct manifest_ref *root);

/*
 * The next entry, or MANIFEST_END. Its slices last until the next call of this. Chunks of the last
 * file that were not asked for are passed over. ERR_CORRUPT: a node is not what its digest says. ERR_INVALID,
 * ERR_TRUNCATED, ERR_LIMIT, ERR_UNSUPPORTED: whoever signed it has signed what nobody may use. Or an error of
 * the source. All of them stay.
 */
enum err manifest_reader_next(struct manifest_reader *reader, struct manifest_entry *ret_entry) MUST_CHECK;

/* The next chunk of that file, whatever its size; behind the last one of size 0. */
enum err manifest_reader_next_chunk(struct manifest_reader *reader,
                                    struct manifest_ref *ret_chunk) MUST_CHECK;

/* The sums of what was read so far; behind the last entry that is all. */
const struct manifest_totals *manifest_reader_totals(const struct manifest_reader *reader);

#endif
