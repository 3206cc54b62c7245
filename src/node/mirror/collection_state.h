/* collection_state - what the files of collection*.c share. Private to them. */
#ifndef MNEMON_NODE_MIRROR_COLLECTION_STATE_H
#define MNEMON_NODE_MIRROR_COLLECTION_STATE_H

#include <pthread.h>

#include "node/mirror/collection.h"
#include "node/mirror/collection_pack.h"
#include "node/mirror/collection_path.h"

struct collection {
    char directory[COLLECTION_SETUP_PATH_SIZE_MAX]; /* of the data */
    struct collection_setup setup;
    uint8_t id[VERSION_ID_SIZE];
    int root; /* DIR/collections/NAME */
    struct manifest_files nodes;
    enum err fault;     /* of the version on its way: it cannot be used */
    bool wants_nodes;   /* of the manifest; else chunks: never both at once */
    bool checks_places; /* files here are not what the places say: they are read before they are believed */

    pthread_mutex_t lock; /* of all below */
    bool has_held;
    struct version held;
    struct collection_places *places; /* of the held one; NULL: none */
    int files;                        /* the directory that they are in; -1: none */
    struct collection_path path;      /* in it */
    bool has_staged;
    struct version staged;
    struct collection_pack *pack; /* NULL: a publisher's */
    struct sha256 sha256;
};

/* Of a file in the collection's directory. */
const char *collection_path_of(const struct collection *collection, const char *file,
                               char out[COLLECTION_SETUP_PATH_SIZE_MAX]);

/* Take over the version that is complete on the disk. Under the lock. */
enum err collection_load_held(struct collection *collection, const struct version *version,
                              struct err_detail *detail) MUST_CHECK;

/* collection_give.c, under the lock: the bytes of a chunk from the held files or the pack. is_checked: they
 * are hashed, and what is wrong is passed over; else the caller must do so. */
enum err collection_read_chunk(struct collection *collection, const uint8_t digest[SHA256_SIZE],
                               bool is_checked, uint8_t *memory, size_t *ret_size) MUST_CHECK;

#endif
