#include "node/mirror/collection.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/mirror/collection_state.h"

enum { NAME_SIZE = 64, DIRECTORY_FLAGS = O_RDONLY | O_DIRECTORY | O_CLOEXEC };

const char *collection_path_of(const struct collection *collection, const char *file,
                               char out[COLLECTION_SETUP_PATH_SIZE_MAX]) {
    return collection_setup_path(collection->directory, collection->setup.name, file, out);
}

const uint8_t *collection_id(const struct collection *collection) {
    return collection->id;
}

const struct version *collection_held(const struct collection *collection) {
    return collection->has_held ? &collection->held : NULL;
}

const struct version *collection_staged(const struct collection *collection) {
    return collection->has_staged ? &collection->staged : NULL;
}

/* ---- what is complete ---- */

static enum err open_places(const struct collection *collection, const struct version *version,
                            struct collection_places **ret_places, struct err_detail *detail) {
    char path[COLLECTION_SETUP_PATH_SIZE_MAX];
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "places.%ju", (uintmax_t)version->number);
    collection_path_of(collection, name, path);
    enum err err = collection_places_open(path, ret_places, detail);
    if (err == ERR_NOT_FOUND || err == ERR_CORRUPT) {
        err =
            collection_places_write(path, manifest_files_source(&collection->nodes), &version->root, detail);
        err = err == ERR_OK ? collection_places_open(path, ret_places, detail) : err;
    }
    return err;
}

static int open_files(const struct collection *collection, const struct version *version) {
    char name[NAME_SIZE];
    if (collection_setup_publishes(&collection->setup)) {
        return open(collection->setup.directory, DIRECTORY_FLAGS);
    }
    snprintf(name, sizeof name, "trees/%ju", (uintmax_t)version->number);
    return openat(collection->root, name, DIRECTORY_FLAGS | O_NOFOLLOW);
}

enum err collection_load_held(struct collection *collection, const struct version *version,
                              struct err_detail *detail) {
    struct collection_places *places;
    enum err err = open_places(collection, version, &places, detail);
    if (err != ERR_OK) {
        return err;
    }
    int files = open_files(collection, version);
    if (files < 0) {
        int reason = errno;
        collection_places_close(places);
        return err_set(detail, err_from_errno(reason), "the files of \"%s\": %s", collection->setup.name,
                       strerror(reason));
    }
    collection_path_done(&collection->path);
    if (collection->files >= 0) {
        close(collection->files);
    }
    collection_places_close(collection->places);
    collection->places = places;
    collection->files = files;
    collection_path_init(&collection->path, files);
    collection->held = *version;
    collection->has_held = true;
    return ERR_OK;
}

bool collection_look(struct collection *collection, struct err_detail *detail) {
    struct version version;
    enum err err = collection_setup_read_version(collection->directory, collection->setup.name, "version",
                                                 &version, detail);
    if (err != ERR_OK || (collection->has_held && version_compare(&version, &collection->held) <= 0)) {
        return false;
    }
    pthread_mutex_lock(&collection->lock);
    err = collection_load_held(collection, &version, detail);
    pthread_mutex_unlock(&collection->lock);
    return err == ERR_OK;
}

/* ---- opening ---- */

static bool is_of_this(const struct collection *collection, const struct version *version) {
    return strcmp(version->name, collection->setup.name) == 0 &&
           memcmp(version->publisher, collection->setup.publisher, PEER_KEY_SIZE) == 0;
}

/* The link that readers follow may be one version behind after a crash. */
static void mend_current(const struct collection *collection) {
    char target[NAME_SIZE];
    char found[NAME_SIZE] = "";
    snprintf(target, sizeof target, "trees/%ju", (uintmax_t)collection->held.number);
    ssize_t size = readlinkat(collection->root, "current", found, sizeof found - 1);
    if (size < 0 || strcmp(found, target) != 0) {
        unlinkat(collection->root, "current.new", 0);
        if (symlinkat(target, collection->root, "current.new") == 0) {
            (void)renameat(collection->root, "current.new", collection->root, "current");
        }
    }
}

static enum err load(struct collection *collection, struct err_detail *detail) {
    char path[COLLECTION_SETUP_PATH_SIZE_MAX];
    struct version version;
    const char *name = collection->setup.name;
    enum err err = collection_setup_read_version(collection->directory, name, "version", &version, detail);
    if (err == ERR_OK && is_of_this(collection, &version)) {
        err = collection_load_held(collection, &version, detail);
    }
    if ((err != ERR_OK && err != ERR_NOT_FOUND) || collection_setup_publishes(&collection->setup)) {
        return err == ERR_NOT_FOUND ? ERR_OK : err;
    }
    if (collection->has_held) {
        mend_current(collection);
    }
    err = collection_setup_read_version(collection->directory, name, "staging/version", &version, NULL);
    collection->has_staged = err == ERR_OK && is_of_this(collection, &version);
    if (collection->has_staged) {
        collection->staged = version;
    }
    return collection_pack_open(collection_path_of(collection, "staging/pack", path), &collection->pack,
                                detail);
}

enum err collection_open(const char *directory, const struct collection_setup *setup,
                         struct collection **ret_collection, struct err_detail *detail) {
    char path[COLLECTION_SETUP_PATH_SIZE_MAX];
    struct collection *collection = calloc(1, sizeof *collection);
    if (collection == NULL) {
        return ERR_MEMORY;
    }
    snprintf(collection->directory, sizeof collection->directory, "%s", directory);
    collection->setup = *setup;
    collection->files = -1;
    collection->nodes.directory = -1;
    collection_path_init(&collection->path, -1);
    pthread_mutex_init(&collection->lock, NULL);
    enum err err = sha256_init(&collection->sha256);
    collection->root = open(collection_path_of(collection, NULL, path), DIRECTORY_FLAGS | O_NOFOLLOW);
    if (err == ERR_OK) {
        version_id(setup->publisher, bytes_of_string(setup->name), &collection->sha256, collection->id);
        collection->nodes.directory =
            collection->root >= 0 ? openat(collection->root, "nodes", DIRECTORY_FLAGS | O_NOFOLLOW) : -1;
        err = collection->nodes.directory >= 0
                  ? load(collection, detail)
                  : err_set(detail, err_from_errno(errno), "%.180s: %s", path, strerror(errno));
    }
    if (err != ERR_OK) {
        collection_close(collection);
        return err;
    }
    *ret_collection = collection;
    return ERR_OK;
}

void collection_close(struct collection *collection) {
    if (collection == NULL) {
        return;
    }
    int files[] = {collection->root, collection->nodes.directory, collection->files};
    collection_path_done(&collection->path);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (files[i] >= 0) {
            close(files[i]);
        }
    }
    collection_places_close(collection->places);
    collection_pack_close(collection->pack);
    sha256_done(&collection->sha256);
    pthread_mutex_destroy(&collection->lock);
    free(collection);
}
