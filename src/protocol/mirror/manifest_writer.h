/*
 * manifest_writer - makes the nodes of a manifest from entries, one after the other. Pure.
 *
 *      manifest_writer_add(directory), manifest_writer_add(file),
 *          manifest_writer_chunk() for each chunk of it, if manifest_has_chunks()
 *      manifest_writer_finish() -> the root
 *
 * Nodes leave through the sink as they are full, those below before those above, in memory of the writer's
 * own that the sink may use during the call. The same entries give the same nodes. Memory: 1 MiB, whatever
 * the number of entries.
 */
#ifndef MNEMON_PROTOCOL_MIRROR_MANIFEST_WRITER_H
#define MNEMON_PROTOCOL_MIRROR_MANIFEST_WRITER_H

#include "protocol/mirror/manifest.h"

struct manifest_writer;

struct manifest_sink {
    void *context;
    /* Keep the node. An error ends the writing and is handed on. */
    enum err (*put)(void *context, const struct manifest_ref *ref, struct bytes node);
};

/* ERR_MEMORY. */
enum err manifest_writer_new(struct manifest_writer **ret_writer) MUST_CHECK;
void manifest_writer_free(struct manifest_writer *writer);

/* A new manifest; what was begun is forgotten. */
void manifest_writer_start(struct manifest_writer *writer, struct manifest_sink sink);

/*
 * ERR_INVALID: it cannot be there, manifest_writer_fault() says why; nothing was added, and another entry may
 * be. Errors of the sink, and ERR_LIMIT, stay until the next start.
 */
enum err manifest_writer_add(struct manifest_writer *writer, const struct manifest_entry *entry) MUST_CHECK;

/* The chunks of the file that was added last, in their order. Their sizes together must become that of the
 * file. */
enum err manifest_writer_chunk(struct manifest_writer *writer, const struct manifest_ref *chunk) MUST_CHECK;

/* ERR_INVALID: the last file lacks chunks. The totals are those of all nodes, the root included. */
enum err manifest_writer_finish(struct manifest_writer *writer, struct manifest_ref *ret_root,
                                struct manifest_totals *ret_totals) MUST_CHECK;

/* Static text for people; NULL: none. */
const char *manifest_writer_fault(const struct manifest_writer *writer);

#endif
