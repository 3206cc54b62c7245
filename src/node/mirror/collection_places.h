/*
 * collection_places - where the bytes of each digest are in the files of a version: a file, mapped.
 *
 *      "mnpl" 1 0 0 0   count:u64                      16 bytes
 *      digest[32] size:u64 offset:u64 path:u64 path_size:u64      count times, in the order of the digests
 *      the paths, one behind the other                 path: from their start
 *
 * There is one for each chunk, and for each larger file one for all of it, which finds renamed files. It can
 * be made again from the manifest at any time, and nothing that it says is believed: whoever reads bytes by
 * it checks their digest. If digests are equal, any may be found. 64 bytes a chunk on the disk, and in memory
 * while it is made; only the pages that are looked at otherwise.
 */
#ifndef MNEMON_NODE_MIRROR_COLLECTION_PLACES_H
#define MNEMON_NODE_MIRROR_COLLECTION_PLACES_H

#include "protocol/mirror/manifest_reader.h"

struct collection_places;

struct collection_place {
    struct bytes path; /* sound by path_rule.h; as long as the places are open */
    uint64_t offset;
    uint64_t size;
};

/* Writes the places of the manifest with that root, whose nodes must all be there. The file is replaced as a
 * whole. */
enum err collection_places_write(const char *path, struct manifest_source nodes,
                                 const struct manifest_ref *root, struct err_detail *detail) MUST_CHECK;

/* ERR_NOT_FOUND; ERR_CORRUPT. */
enum err collection_places_open(const char *path, struct collection_places **ret_places,
                                struct err_detail *detail) MUST_CHECK;
void collection_places_close(struct collection_places *places); /* NULL: nothing happens */

/* Any thread. */
bool collection_places_find(const struct collection_places *places, const uint8_t digest[SHA256_SIZE],
                            struct collection_place *ret_place);

#endif
