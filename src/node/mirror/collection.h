/*
 * collection - one collection of a running node: what it holds, what is on its way, and the switch from one
 * version to the next. Files: collection_setup.h.
 *
 *      collection_begin(version)         nodes that are missing, then chunks that are missing, are wanted
 *      collection_want()   ──>  wanted
 *      collection_take()   <──  what came, checked by its digest: nodes to their files, chunks to the pack
 *      collection_apply()                staging/tree is made, renamed to trees/NUMBER, `current` switched
 *
 * Readers that follow `current` once, and then work below what they found, see one version and no mixture;
 * that one stays until the next but one is put together. So the disk holds at most two versions, of which
 * unchanged files are shared, and while one is put together once more what has changed.
 *
 * After a crash everything is as it was or as it became: `version` says which tree counts, and what had come
 * of another is in staging/.
 *
 * collection_give() and collection_statement() may be called by any thread, the rest by one.
 */
#ifndef MNEMON_NODE_MIRROR_COLLECTION_H
#define MNEMON_NODE_MIRROR_COLLECTION_H

#include "node/mirror/collection_setup.h"
#include "node/mirror/collection_tree.h"
#include "node/mirror/manifest_files.h"

struct collection;

/* What a crash left is mended. */
enum err collection_open(const char *directory, const struct collection_setup *setup,
                         struct collection **ret_collection, struct err_detail *detail) MUST_CHECK;
void collection_close(struct collection *collection); /* NULL: nothing happens */

const uint8_t *collection_id(const struct collection *collection);            /* VERSION_ID_SIZE bytes */
const struct version *collection_held(const struct collection *collection);   /* NULL: none */
const struct version *collection_staged(const struct collection *collection); /* NULL: none */

/* A publisher's: is there a newer version on the disk than we know? Then it is taken over. */
bool collection_look(struct collection *collection, struct err_detail *detail);

/* ---- a version on its way ---- */

/* What had come of another stays, as far as it is of use. */
enum err collection_begin(struct collection *collection, const struct version *version,
                          struct err_detail *detail) MUST_CHECK;

/* What is missing: nodes of the manifest, or when they are here, chunks of files. Each digest is there once.
 */
struct collection_wants {
    struct manifest_ref *refs;
    uint32_t *places; /* chunks: which one of the version each is, in the order of the manifest */
    size_t max;       /* of both arrays, which are the caller's */
    size_t count;
    uint32_t chunks_count; /* of the version, as far as it was looked at */
    bool is_content;       /* chunks */
    bool is_all;           /* when these are here, all is */
};

/* A manifest that cannot be is no error here: nothing more is wanted, and collection_apply() says so. */
enum err collection_want(struct collection *collection, struct collection_wants *wants) MUST_CHECK;

/* ERR_MISMATCH: these are not its bytes. */
enum err collection_take(struct collection *collection, const struct manifest_ref *ref,
                         struct bytes bytes) MUST_CHECK;

/*
 * Let readers see it. ERR_NOT_FOUND: something is missing after all, want again. ERR_INVALID, ERR_MISMATCH,
 * ERR_TRUNCATED, ERR_LIMIT, ERR_UNSUPPORTED: it cannot be used.
 */
enum err collection_apply(struct collection *collection, struct collection_tree_stat *ret_stat,
                          struct err_detail *detail) MUST_CHECK;

/* Bytes that nobody can read as a manifest: is this error the publisher's fault? */
bool collection_is_fault(enum err err);

/* ---- any thread ---- */

/* The newest version of which there is something here, as signed; empty: none. */
struct bytes collection_statement(struct collection *collection, uint8_t memory[VERSION_SIZE_MAX]);

/* Is it a chunk of the version that is complete here? */
bool collection_lists(struct collection *collection, const uint8_t digest[SHA256_SIZE]);

/* Is the version with that manifest on its way here? */
bool collection_stages(struct collection *collection, const uint8_t root[SHA256_SIZE]);

/*
 * The checked bytes of a node or chunk, at most CHUNKER_SIZE_MAX. ERR_NOT_FOUND; ERR_BUSY: not yet, it is on
 * its way.
 */
enum err collection_give(struct collection *collection, const uint8_t digest[SHA256_SIZE], uint8_t *memory,
                         size_t *ret_size) MUST_CHECK;

#endif
