/*
 * manifest_files - the nodes of a collection's manifests, each a file named by its digest.
 *
 * Versions share the nodes in which nothing has changed. A node is written beside its place and renamed; it
 * is checked whenever it is read, so that a damaged one is only a missing one: it is removed, and fetched
 * again. Any thread; the directory is the only state.
 */
#ifndef MNEMON_NODE_MIRROR_MANIFEST_FILES_H
#define MNEMON_NODE_MIRROR_MANIFEST_FILES_H

#include "protocol/mirror/manifest_reader.h"
#include "protocol/mirror/manifest_writer.h"

struct manifest_files {
    int directory; /* DIR/collections/NAME/nodes; the owner's to close */
};

/* The source of readers and the sink of writers; the struct is borrowed as long as they use it. */
struct manifest_source manifest_files_source(const struct manifest_files *nodes);
struct manifest_sink manifest_files_sink(const struct manifest_files *nodes);

/* Its bytes must be those of the digest. One that is there and damaged is replaced. */
enum err manifest_files_put(const struct manifest_files *nodes, const struct manifest_ref *ref,
                            struct bytes node) MUST_CHECK;

/* Up to MANIFEST_NODE_SIZE_MAX bytes to memory, unchecked. ERR_NOT_FOUND. */
enum err manifest_files_read(const struct manifest_files *nodes, const uint8_t digest[SHA256_SIZE],
                             uint8_t *memory, size_t *ret_size) MUST_CHECK;

/*
 * From the root down: appends to `missing` what is not there, as struct manifest_ref, at most `max` of them.
 * Nodes that are not what their digest says are removed and count as missing. ERR_INVALID and others:
 * the publisher has signed what is no manifest.
 */
enum err manifest_files_missing(const struct manifest_files *nodes, const struct manifest_ref *root,
                                struct manifest_ref *missing, size_t max, size_t *ret_count) MUST_CHECK;

/* Remove all nodes but those of these manifests, as far as that is possible now. */
void manifest_files_clean(const struct manifest_files *nodes, const struct manifest_ref *roots,
                          size_t roots_count);

#endif
