#include "node/mirror/collection.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "base/whole_file.h"
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
    bool checks_chunks; /* of the tree that is made */
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

enum { NAME_SIZE = 64, DIRECTORY_FLAGS = O_RDONLY | O_DIRECTORY | O_CLOEXEC };

/* ---- bytes for others ---- */

static bool is_right(struct collection *collection, const uint8_t digest[SHA256_SIZE], const uint8_t *memory,
                     size_t size) {
    uint8_t found[SHA256_SIZE];
    sha256_digest(&collection->sha256, bytes_of(memory, size), found);
    return memcmp(found, digest, SHA256_SIZE) == 0;
}

static bool collection_read_place(struct collection *collection, const struct collection_place *place,
                                  uint8_t *memory) {
    int file = collection_path_open(&collection->path, place->path, O_RDONLY | O_NONBLOCK, 0);
    if (file < 0) {
        collection_path_done(&collection->path); /* its directory may be another one by now */
        return false;
    }
    bool is_read = whole_file_read_at(file, place->offset, memory, place->size) == ERR_OK;
    close(file);
    return is_read;
}

static enum err collection_read_chunk(struct collection *collection, const uint8_t digest[SHA256_SIZE],
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
        place.size <= CHUNKER_SIZE_MAX && collection_read_place(collection, &place, memory) &&
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

static const char *collection_path_of(const struct collection *collection, const char *file,
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

static enum err collection_load_held(struct collection *collection, const struct version *version,
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

static enum err collection_load(struct collection *collection, struct err_detail *detail) {
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
        err = collection->nodes.directory >= 0 ? collection_load(collection, detail)
                                               : whole_file_fail(path, detail);
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

enum { TREE_MODE = 0755 };
static const uint64_t PACK_SLACK = 64 << 20;

/* ---- a version on its way, until readers see it ---- */

enum err collection_begin(struct collection *collection, const struct version *version,
                          struct err_detail *detail) {
    enum err err = collection_setup_write_version(collection->directory, collection->setup.name,
                                                  "staging/version", version, detail);
    if (err != ERR_OK) {
        return err;
    }
    pthread_mutex_lock(&collection->lock);
    collection->staged = *version;
    collection->has_staged = true;
    /* Versions that were begun and never finished must not fill the disk. */
    if (collection_pack_size(collection->pack) > 2 * version->totals.content_size + PACK_SLACK) {
        collection_pack_clear(collection->pack);
    }
    pthread_mutex_unlock(&collection->lock);
    collection->fault = ERR_OK;
    return err;
}

/* ---- what is wanted ---- */

bool collection_is_fault(enum err err) {
    return err == ERR_INVALID || err == ERR_TRUNCATED || err == ERR_LIMIT || err == ERR_UNSUPPORTED ||
           err == ERR_MISMATCH;
}

static bool has_chunk(struct collection *collection, const struct manifest_ref *ref, uint8_t *memory) {
    struct collection_place place;
    size_t size;
    if (collection->checks_places) {
        return collection_read_chunk(collection, ref->digest, true, memory, &size) == ERR_OK &&
               size == ref->size;
    }
    return collection_pack_find(collection->pack, ref->digest) == ref->size ||
           (collection->places != NULL && collection_places_find(collection->places, ref->digest, &place) &&
            place.size == ref->size);
}

struct wanting {
    struct collection *collection;
    struct collection_wants *wants;
    struct map seen;
    uint8_t memory[CHUNKER_SIZE_MAX];
};

static enum err want_chunk(struct wanting *wanting, const struct manifest_ref *chunk, uint32_t place) {
    struct collection *collection = wanting->collection;
    struct collection_wants *wants = wanting->wants;
    pthread_mutex_lock(&collection->lock);
    bool is_here = has_chunk(collection, chunk, wanting->memory);
    pthread_mutex_unlock(&collection->lock);
    if (is_here) {
        return ERR_OK;
    }
    if (map_reserve(&wanting->seen, wanting->seen.count + 1) != ERR_OK) {
        return ERR_MEMORY;
    }
    uint8_t *is_seen = map_put(&wanting->seen, bytes_of(chunk->digest, SHA256_SIZE));
    if (*is_seen == 0) {
        *is_seen = 1;
        wants->refs[wants->count] = *chunk;
        wants->places[wants->count++] = place;
    }
    return ERR_OK;
}

static enum err want_file(struct wanting *wanting, struct manifest_reader *reader) {
    struct collection_wants *wants = wanting->wants;
    struct manifest_ref chunk;
    while (wants->count < wants->max) {
        enum err err = manifest_reader_next_chunk(reader, &chunk);
        if (err != ERR_OK || chunk.size == 0) {
            return err;
        }
        err = want_chunk(wanting, &chunk, wants->chunks_count);
        if (err != ERR_OK) {
            return err;
        }
        wants->chunks_count += wants->chunks_count < UINT32_MAX;
    }
    return ERR_OK;
}

static bool totals_equal(const struct manifest_totals *a, const struct manifest_totals *b) {
    return a->directories_count == b->directories_count && a->files_count == b->files_count &&
           a->links_count == b->links_count && a->content_size == b->content_size;
}

static enum err want_content(struct wanting *wanting) {
    struct collection *collection = wanting->collection;
    struct collection_wants *wants = wanting->wants;
    struct manifest_reader *reader;
    struct manifest_entry entry;
    enum err err = manifest_reader_new(&reader);
    if (err != ERR_OK) {
        return err;
    }
    manifest_reader_start(reader, manifest_files_source(&collection->nodes), &collection->staged.root);
    while (wants->count < wants->max) {
        err = manifest_reader_next(reader, &entry);
        if (err != ERR_OK || entry.kind == MANIFEST_END) {
            break;
        }
        err = entry.kind == MANIFEST_FILE ? want_file(wanting, reader) : ERR_OK;
        if (err != ERR_OK) {
            break;
        }
    }
    wants->is_all = err == ERR_OK && wants->count < wants->max;
    if (wants->is_all && !totals_equal(manifest_reader_totals(reader), &collection->staged.totals)) {
        err = ERR_MISMATCH;
    }
    manifest_reader_free(reader);
    return err;
}

static enum err want_chunks(struct collection *collection, struct collection_wants *wants) {
    uint64_t seed;
    struct wanting *wanting = calloc(1, sizeof *wanting);
    if (wanting == NULL) {
        return ERR_MEMORY;
    }
    randombytes_buf(&seed, sizeof seed);
    wanting->collection = collection;
    wanting->wants = wants;
    map_init(&wanting->seen, SHA256_SIZE, 1, wants->max + 1, seed);
    enum err err = want_content(wanting);
    map_done(&wanting->seen);
    free(wanting);
    return err;
}

enum err collection_want(struct collection *collection, struct collection_wants *wants) {
    wants->is_all = wants->is_content = false;
    wants->count = wants->chunks_count = 0;
    enum err err = manifest_files_missing(&collection->nodes, &collection->staged.root, wants->refs,
                                          wants->max, &wants->count);
    collection->wants_nodes = wants->count > 0;
    if (err == ERR_OK && wants->count == 0) {
        wants->is_content = true;
        err = want_chunks(collection, wants);
    }
    if (collection_is_fault(err)) {
        collection->fault = err;
        wants->count = 0;
        wants->is_all = true;
        return ERR_OK;
    }
    return err;
}

/* ---- what comes ---- */

enum err collection_take(struct collection *collection, const struct manifest_ref *ref, struct bytes bytes) {
    uint8_t digest[SHA256_SIZE];
    pthread_mutex_lock(&collection->lock);
    sha256_digest(&collection->sha256, bytes, digest);
    enum err err =
        bytes.size == ref->size && memcmp(digest, ref->digest, SHA256_SIZE) == 0 ? ERR_OK : ERR_MISMATCH;
    if (err == ERR_OK) {
        err = collection->wants_nodes ? manifest_files_put(&collection->nodes, ref, bytes)
                                      : collection_pack_add(collection->pack, ref, bytes);
    }
    pthread_mutex_unlock(&collection->lock);
    return err;
}

/* ---- the switch ---- */

/* All trees and places but those of the version that readers see. */
static enum err remove_others(const struct collection *collection, struct err_detail *detail) {
    char held[NAME_SIZE] = "";
    int copy = openat(collection->root, "trees", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *opened = copy >= 0 ? fdopendir(copy) : NULL;
    const struct dirent *item;
    enum err err = ERR_OK;
    if (opened == NULL) {
        return whole_file_fail("trees", detail);
    }
    if (collection->has_held) {
        snprintf(held, sizeof held, "%ju", (uintmax_t)collection->held.number);
    }
    while (err == ERR_OK && (item = readdir(opened)) != NULL) {
        char places[sizeof item->d_name + 16];
        if (item->d_name[0] != '.' && strcmp(item->d_name, held) != 0) {
            err = collection_path_remove(dirfd(opened), item->d_name);
            snprintf(places, sizeof places, "places.%s", item->d_name);
            unlinkat(collection->root, places, 0);
        }
    }
    closedir(opened);
    return err == ERR_OK ? ERR_OK
                         : err_set(detail, err, "an old version cannot be removed: %s", err_text(err));
}

static enum err get_chunk(void *context, const struct manifest_ref *chunk, uint8_t *memory) {
    struct collection *collection = context;
    size_t size = 0;
    pthread_mutex_lock(&collection->lock);
    enum err err = collection_read_chunk(collection, chunk->digest, collection->checks_chunks, memory, &size);
    pthread_mutex_unlock(&collection->lock);
    return err == ERR_OK && size != chunk->size ? ERR_NOT_FOUND : err;
}

static enum err fill_tree(struct collection *collection, bool is_checked,
                          struct collection_tree_stat *ret_stat, struct err_detail *detail) {
    struct collection_tree tree = {
        .before = collection->files,
        .root_before = &collection->held.root,
        .places_before = collection->places,
        .nodes = manifest_files_source(&collection->nodes),
        .get = get_chunk,
        .context = collection,
    };
    collection->checks_chunks = is_checked;
    enum err err = collection_path_remove(collection->root, "staging/tree");
    if (err != ERR_OK || mkdirat(collection->root, "staging/tree", TREE_MODE) != 0) {
        return whole_file_fail("staging/tree", detail);
    }
    tree.directory =
        openat(collection->root, "staging/tree", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (tree.directory < 0) {
        return whole_file_fail("staging/tree", detail);
    }
    err = collection_tree_make(&tree, &collection->staged.root, ret_stat, detail);
    if (err == ERR_OK && syncfs(tree.directory) != 0) {
        err = whole_file_fail("staging/tree", detail);
    }
    close(tree.directory);
    return err;
}

/* Every file is hashed, so its chunks need not be; unless it is wrong, and one of them may be the reason. */
static enum err make_tree(struct collection *collection, struct collection_tree_stat *ret_stat,
                          struct err_detail *detail) {
    enum err err = fill_tree(collection, false, ret_stat, detail);
    return err == ERR_MISMATCH ? fill_tree(collection, true, ret_stat, detail) : err;
}

/* The tree at its place, before anything says that it is there. */
static enum err move_tree(const struct collection *collection, const char *tree, struct err_detail *detail) {
    int trees = openat(collection->root, "trees", DIRECTORY_FLAGS | O_NOFOLLOW);
    bool is_moved = trees >= 0 && renameat(collection->root, "staging/tree", collection->root, tree) == 0 &&
                    fsync(trees) == 0;
    enum err err = is_moved ? ERR_OK : whole_file_fail(tree, detail);
    if (trees >= 0) {
        close(trees);
    }
    return err;
}

/* From here on `version` says what counts. */
static enum err switch_version(struct collection *collection, struct err_detail *detail) {
    char path[COLLECTION_SETUP_PATH_SIZE_MAX];
    char places[NAME_SIZE];
    char tree[NAME_SIZE];
    const char *name = collection->setup.name;
    struct version version = collection->staged;
    snprintf(tree, sizeof tree, "trees/%ju", (uintmax_t)version.number);
    enum err err = move_tree(collection, tree, detail);
    if (err != ERR_OK) {
        return err;
    }
    snprintf(places, sizeof places, "places.%ju", (uintmax_t)version.number);
    unlinkat(collection->root, "current.new", 0);
    err = collection_places_write(collection_path_of(collection, places, path),
                                  manifest_files_source(&collection->nodes), &version.root, detail);
    if (err == ERR_OK) {
        err = collection_setup_write_version(collection->directory, name, "version", &version, detail);
    }
    if (err == ERR_OK && (symlinkat(tree, collection->root, "current.new") != 0 ||
                          renameat(collection->root, "current.new", collection->root, "current") != 0)) {
        err = whole_file_fail("current", detail);
    }
    if (err == ERR_OK) {
        pthread_mutex_lock(&collection->lock);
        err = collection_load_held(collection, &version, detail);
        pthread_mutex_unlock(&collection->lock);
    }
    return err;
}

/* A new one is begun: some disks take long to free a large one, and others ask for chunks meanwhile. */
static void replace_pack(struct collection *collection) {
    char path[COLLECTION_SETUP_PATH_SIZE_MAX];
    struct collection_pack *old = NULL;
    struct collection_pack *fresh = NULL;
    collection_path_of(collection, "staging/pack", path);
    enum err err = unlinkat(collection->root, "staging/pack", 0) == 0
                       ? collection_pack_open(path, &fresh, NULL)
                       : ERR_SYSTEM;
    pthread_mutex_lock(&collection->lock);
    collection->has_staged = false;
    if (err == ERR_OK) {
        old = collection->pack;
        collection->pack = fresh;
    } else {
        collection_pack_clear(collection->pack);
    }
    pthread_mutex_unlock(&collection->lock);
    collection_pack_close(old);
}

static void clean(struct collection *collection) {
    unlinkat(collection->root, "staging/version", 0);
    replace_pack(collection);
    manifest_files_clean(&collection->nodes, &collection->held.root, 1);
}

enum err collection_apply(struct collection *collection, struct collection_tree_stat *ret_stat,
                          struct err_detail *detail) {
    if (collection->fault != ERR_OK) {
        return err_set(detail, collection->fault, "the manifest cannot be used");
    }
    enum err err = remove_others(collection, detail);
    err = err == ERR_OK ? make_tree(collection, ret_stat, detail) : err;
    if (err == ERR_OK) {
        err = switch_version(collection, detail);
    } else if (err == ERR_NOT_FOUND) {
        collection->checks_places = true; /* something here is not what it was */
    } else if (collection_is_fault(err)) {
        collection->fault = err;
    }
    if (err == ERR_OK) {
        collection->checks_places = false;
        clean(collection);
    }
    return err;
}
