/*
 * collection_setup - the collections of a data directory as files, and what people said about each.
 *
 *      DIR/collections/NAME/
 *          setup.json             whose it is, and where it comes from or goes to
 *          version                the newest version that is complete here, signed
 * (protocol/mirror/version.h) nodes/HEX              the nodes of its manifest, by their digests
 *          places.NUMBER          where the bytes of each digest are in it (collection_places.h)
 *          trees/NUMBER           of a subscriber: the files of a version
 *          current -> trees/NUMBER
 *          staging/               the version that is on its way: survives a crash, and is gone on with
 *              version  pack  tree
 *
 * A publisher has no tree here: its directory is the collection, and is read in place. What was changed there
 * since is noticed by its digest and not given. A snapshot by hard links would not be safe against changes in
 * place, and a copy would double the disk of every publisher.
 *
 * "mnemon mirror" writes setup.json, and for a publisher version, nodes and places; the running node looks
 * every second whether they have changed.
 */
#ifndef MNEMON_NODE_MIRROR_COLLECTION_SETUP_H
#define MNEMON_NODE_MIRROR_COLLECTION_SETUP_H

#include "base/address.h"
#include "base/buf.h"
#include "base/err.h"
#include "protocol/mirror/version.h"

enum {
    COLLECTION_SETUP_PATH_SIZE_MAX = 4096,
    COLLECTION_SETUP_SOURCES_MAX = 16,
    COLLECTION_SETUP_READERS_MAX = 64,
    COLLECTION_SETUP_NAMES_MAX = 256, /* collections of one data directory */
};

/* Nodes that may read it, beside the members of our groups and of our ring. */
struct collection_readers {
    bool is_public; /* whoever asks */
    size_t count;
    uint8_t keys[COLLECTION_SETUP_READERS_MAX][PEER_KEY_SIZE];
};

struct collection_setup {
    char name[VERSION_NAME_SIZE_MAX + 1];
    bool has_publisher; /* else whoever is first to offer one of that name */
    uint8_t publisher[PEER_KEY_SIZE];
    char directory[COLLECTION_SETUP_PATH_SIZE_MAX]; /* absolute; of the publisher; empty: we subscribe */
    bool is_archive; /* of that directory, a data directory, only what an archive is made of */
    struct address sources[COLLECTION_SETUP_SOURCES_MAX]; /* neighbours that people named */
    size_t sources_count;
    struct collection_readers readers;
};

static inline bool collection_setup_publishes(const struct collection_setup *setup) {
    return setup->directory[0] != '\0';
}

/* ERR_LIMIT: there are too many; one that is there already is not added again. */
enum err collection_readers_add(struct collection_readers *readers,
                                const uint8_t key[PEER_KEY_SIZE]) MUST_CHECK;
bool collection_readers_have(const struct collection_readers *readers, const uint8_t key[PEER_KEY_SIZE]);

bool collection_readers_equal(const struct collection_readers *a, const struct collection_readers *b);

static inline bool collection_readers_are_any(const struct collection_readers *readers) {
    return readers->is_public || readers->count > 0;
}

/* Does it come from, or go to, nodes that need share no group or ring with us? */
static inline bool collection_setup_needs_no_group(const struct collection_setup *setup) {
    return setup->sources_count > 0 || collection_readers_are_any(&setup->readers);
}

/* DIR/collections/NAME, or a file in it (file NULL: itself). Returns out. */
const char *collection_setup_path(const char *directory, const char *name, const char *file,
                                  char out[COLLECTION_SETUP_PATH_SIZE_MAX]);

/* The directories are made. */
enum err collection_setup_write(const char *directory, const struct collection_setup *setup,
                                struct err_detail *detail) MUST_CHECK;

/* The contents of setup.json. False: it is damaged. And the other way round; ERR_INVALID: the path of the
 * directory is not UTF-8. */
bool collection_setup_parse(struct bytes text, const char *name, struct collection_setup *ret_setup);
enum err collection_setup_put(const struct collection_setup *setup, struct buf *out,
                              struct err_detail *detail) MUST_CHECK;

/* ERR_NOT_FOUND: there is no such collection. */
enum err collection_setup_read(const char *directory, const char *name, struct collection_setup *ret_setup,
                               struct err_detail *detail) MUST_CHECK;

/* No longer a collection: its node forgets it. Its files stay, for the owner to remove. ERR_NOT_FOUND. */
enum err collection_setup_remove(const char *directory, const char *name,
                                 struct err_detail *detail) MUST_CHECK;

/* Sorted; how many. */
size_t collection_setup_names(const char *directory,
                              char names[COLLECTION_SETUP_NAMES_MAX][VERSION_NAME_SIZE_MAX + 1]);

/* Is there one that needs no group? */
bool collection_setup_any_needs_no_group(const char *directory);

/* The version that is complete here; file: "version" or "staging/version". ERR_NOT_FOUND; ERR_CORRUPT. */
enum err collection_setup_read_version(const char *directory, const char *name, const char *file,
                                       struct version *ret_version, struct err_detail *detail) MUST_CHECK;
enum err collection_setup_write_version(const char *directory, const char *name, const char *file,
                                        const struct version *version, struct err_detail *detail) MUST_CHECK;

#endif
