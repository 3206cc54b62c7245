/* Of collection: what others may have of it. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "node/mirror/collection_state.h"

static bool is_right(struct collection *collection, const uint8_t digest[SHA256_SIZE], const uint8_t *memory,
                     size_t size) {
    uint8_t found[SHA256_SIZE];
    sha256_digest(&collection->sha256, bytes_of(memory, size), found);
    return memcmp(found, digest, SHA256_SIZE) == 0;
}

static bool read_place(struct collection *collection, const struct collection_place *place, uint8_t *memory) {
    size_t done = 0;
    int file = collection_path_open(&collection->path, place->path, O_RDONLY | O_NONBLOCK, 0);
    if (file < 0) {
        collection_path_done(&collection->path); /* its directory may be another one by now */
        return false;
    }
    while (done < place->size) {
        ssize_t size = pread(file, memory + done, place->size - done, (off_t)(place->offset + done));
        if (size <= 0 && !(size < 0 && errno == EINTR)) {
            break;
        }
        done += size > 0 ? (size_t)size : 0;
    }
    close(file);
    return done == place->size;
}

enum err collection_read_chunk(struct collection *collection, const uint8_t digest[SHA256_SIZE],
                               bool is_checked, uint8_t *memory, size_t *ret_size) {
    struct collection_place place;
    if (collection->pack != NULL &&
        collection_pack_read(collection->pack, digest, memory, ret_size) == ERR_OK) {
        if (!is_checked || is_right(collection, digest, memory, *ret_size)) {
            return ERR_OK;
        }
        collection_pack_forget(collection->pack, digest);
    }
    if (collection->places != NULL && collection_places_find(collection->places, digest, &place) &&
        place.size <= CHUNKER_SIZE_MAX && read_place(collection, &place, memory) &&
        (!is_checked || is_right(collection, digest, memory, place.size))) {
        *ret_size = place.size;
        return ERR_OK;
    }
    return ERR_NOT_FOUND;
}

enum err collection_give(struct collection *collection, const uint8_t digest[SHA256_SIZE], uint8_t *memory,
                         size_t *ret_size) {
    pthread_mutex_lock(&collection->lock);
    enum err err = collection_read_chunk(collection, digest, true, memory, ret_size);
    if (err != ERR_OK) {
        err = manifest_files_read(&collection->nodes, digest, memory, ret_size);
        err = err == ERR_OK && !is_right(collection, digest, memory, *ret_size) ? ERR_NOT_FOUND : err;
    }
    if (err != ERR_OK) {
        err = collection->has_staged ? ERR_BUSY : ERR_NOT_FOUND;
    }
    pthread_mutex_unlock(&collection->lock);
    return err;
}

bool collection_lists(struct collection *collection, const uint8_t digest[SHA256_SIZE]) {
    struct collection_place place;
    pthread_mutex_lock(&collection->lock);
    bool is_listed = collection->places != NULL && collection_places_find(collection->places, digest, &place);
    pthread_mutex_unlock(&collection->lock);
    return is_listed;
}

bool collection_stages(struct collection *collection, const uint8_t root[SHA256_SIZE]) {
    pthread_mutex_lock(&collection->lock);
    bool is_staged = collection->has_staged && memcmp(collection->staged.root.digest, root, SHA256_SIZE) == 0;
    pthread_mutex_unlock(&collection->lock);
    return is_staged;
}

struct bytes collection_statement(struct collection *collection, uint8_t memory[VERSION_SIZE_MAX]) {
    struct bytes statement = bytes_of(memory, 0);
    pthread_mutex_lock(&collection->lock);
    bool is_staged = collection->has_staged &&
                     (!collection->has_held || version_compare(&collection->staged, &collection->held) > 0);
    if (is_staged || collection->has_held) {
        statement = version_write(is_staged ? &collection->staged : &collection->held, memory);
    }
    pthread_mutex_unlock(&collection->lock);
    return statement;
}
