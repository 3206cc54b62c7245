/*
 * collection_pack - the chunks of a version that have come before it is complete: one file, appended to.
 *
 *      size:u32 digest[32] bytes[size]   …
 *
 * Only checked chunks are added, without syncing each: after a crash the file is read from its start, every
 * chunk is checked again, and what follows the last sound one is cut off. So what was received is
 * not fetched twice. In memory: 48 bytes a chunk. One owner at a time.
 */
#ifndef MNEMON_NODE_MIRROR_COLLECTION_PACK_H
#define MNEMON_NODE_MIRROR_COLLECTION_PACK_H

#include "protocol/mirror/manifest.h"

struct collection_pack;

/* Made if there is none. */
enum err collection_pack_open(const char *path, struct collection_pack **ret_pack,
                              struct err_detail *detail) MUST_CHECK;
void collection_pack_close(struct collection_pack *pack); /* NULL: nothing happens */

/* The bytes are those of the digest. One that is there already is not added again. ERR_LIMIT, ERR_NO_SPACE.
 */
enum err collection_pack_add(struct collection_pack *pack, const struct manifest_ref *ref,
                             struct bytes bytes) MUST_CHECK;

/* Its size; 0: it is not there. */
uint32_t collection_pack_find(const struct collection_pack *pack, const uint8_t digest[SHA256_SIZE]);

/* CHUNKER_SIZE_MAX bytes of memory are enough; unchecked. ERR_NOT_FOUND. */
enum err collection_pack_read(const struct collection_pack *pack, const uint8_t digest[SHA256_SIZE],
                              uint8_t *memory, size_t *ret_size) MUST_CHECK;

/* It is not what it was: as if it had not come. */
void collection_pack_forget(struct collection_pack *pack, const uint8_t digest[SHA256_SIZE]);

/* The size of the file. */
uint64_t collection_pack_size(const struct collection_pack *pack);

/* Nothing has come. Where the file cannot be cut now, what is new is written over it. */
void collection_pack_clear(struct collection_pack *pack);

#endif
