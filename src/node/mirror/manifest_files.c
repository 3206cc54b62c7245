#include "node/mirror/manifest_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/map.h"
#include "base/whole_file.h"

enum { NAME_SIZE = 2 * SHA256_SIZE + 1, NODES_MAX = 4 << 20, MODE = 0600, PART_SIZE = 16 << 10 };

static const char *manifest_name_of(const uint8_t digest[SHA256_SIZE], char out[NAME_SIZE]) {
    return hex_encode(bytes_of(digest, SHA256_SIZE), out);
}

/* Already there, and whole by its size? Its digest is checked when it is read. */
static bool manifest_files_have(const struct manifest_files *nodes, const struct manifest_ref *ref) {
    char name[NAME_SIZE];
    struct stat stat;
    return fstatat(nodes->directory, manifest_name_of(ref->digest, name), &stat, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(stat.st_mode) && stat.st_size == (off_t)ref->size;
}

enum err manifest_files_read(const struct manifest_files *nodes, const uint8_t digest[SHA256_SIZE],
                             uint8_t *memory, size_t *ret_size) {
    char name[NAME_SIZE];
    int file = openat(nodes->directory, manifest_name_of(digest, name), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) {
        return err_from_errno(errno);
    }
    ssize_t size = pread(file, memory, MANIFEST_NODE_SIZE_MAX, 0);
    enum err err = size < 0 ? err_from_errno(errno) : ERR_OK;
    close(file);
    if (err == ERR_OK) {
        *ret_size = (size_t)size;
    }
    return err;
}

static void manifest_files_remove(const struct manifest_files *nodes, const uint8_t digest[SHA256_SIZE]) {
    char name[NAME_SIZE];
    unlinkat(nodes->directory, manifest_name_of(digest, name), 0);
}

/* Byte for byte: after a power failure the size alone says nothing. */
static bool manifest_is_there(const struct manifest_files *nodes, const char *name, struct bytes node) {
    uint8_t part[PART_SIZE];
    int file = openat(nodes->directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct stat stat;
    bool is_same = file >= 0 && fstat(file, &stat) == 0 && stat.st_size == (off_t)node.size;
    for (size_t at = 0; is_same && at < node.size; at += sizeof part) {
        size_t size = node.size - at < sizeof part ? node.size - at : sizeof part;
        is_same =
            whole_file_read_at(file, at, part, size) == ERR_OK && memcmp(part, node.data + at, size) == 0;
    }
    if (file >= 0) {
        close(file);
    }
    return is_same;
}

enum err manifest_files_put(const struct manifest_files *nodes, const struct manifest_ref *ref,
                            struct bytes node) {
    char name[NAME_SIZE];
    char beside[NAME_SIZE + 8];
    if (manifest_is_there(nodes, manifest_name_of(ref->digest, name), node)) {
        return ERR_OK;
    }
    snprintf(beside, sizeof beside, "%s.new", name);
    int file = openat(nodes->directory, beside, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, MODE);
    if (file < 0) {
        return err_from_errno(errno);
    }
    enum err err = whole_file_write_all(file, node) ? ERR_OK : err_from_errno(errno);
    close(file);
    if (err == ERR_OK && renameat(nodes->directory, beside, nodes->directory, name) != 0) {
        err = err_from_errno(errno);
    }
    return err;
}

/* ---- for readers and writers ---- */

static enum err manifest_get(void *context, const struct manifest_ref *ref, uint8_t *memory) {
    const struct manifest_files *nodes = context;
    size_t size;
    if (!manifest_files_have(nodes, ref)) {
        return ERR_NOT_FOUND;
    }
    enum err err = manifest_files_read(nodes, ref->digest, memory, &size);
    return err == ERR_OK && size != ref->size ? ERR_NOT_FOUND : err;
}

static enum err manifest_put(void *context, const struct manifest_ref *ref, struct bytes node) {
    return manifest_files_put(context, ref, node);
}

struct manifest_source manifest_files_source(const struct manifest_files *nodes) {
    return (struct manifest_source){.context = (void *)nodes, .get = manifest_get};
}

struct manifest_sink manifest_files_sink(const struct manifest_files *nodes) {
    return (struct manifest_sink){.context = (void *)nodes, .put = manifest_put};
}

/* ---- the tree of them ---- */

struct walk {
    const struct manifest_files *nodes;
    struct sha256 sha256;
    struct map *seen;             /* digests; NULL: not wanted */
    struct manifest_ref *missing; /* NULL: not wanted */
    size_t missing_max;
    size_t missing_count;
};

/* A node that is there and sound, into memory. Otherwise it is noted as missing, and *ret_size is 0. */
static enum err manifest_look(struct walk *walk, const struct manifest_ref *ref, uint8_t *memory,
                              size_t *ret_size) {
    uint8_t digest[SHA256_SIZE];
    *ret_size = 0;
    if (manifest_get((void *)walk->nodes, ref, memory) == ERR_OK) {
        sha256_digest(&walk->sha256, bytes_of(memory, ref->size), digest);
        if (memcmp(digest, ref->digest, SHA256_SIZE) == 0) {
            *ret_size = ref->size;
            return ERR_OK;
        }
        manifest_files_remove(walk->nodes, ref->digest);
    }
    if (walk->missing != NULL && walk->missing_count < walk->missing_max) {
        walk->missing[walk->missing_count++] = *ref;
    }
    return ERR_OK;
}

static enum err note_seen(struct walk *walk, const struct manifest_ref *ref) {
    if (walk->seen == NULL) {
        return ERR_OK;
    }
    enum err err = map_reserve(walk->seen, walk->seen->count + 1);
    if (err == ERR_OK) {
        (void)map_put(walk->seen, bytes_of(ref->digest, SHA256_SIZE));
    }
    return err;
}

/* level: of the node above, so that nothing goes round in circles. */
static enum err walk_node(struct walk *walk, const struct manifest_ref *ref, unsigned level_max) {
    struct wire_reader reader;
    struct manifest_ref below;
    size_t size;
    if (ref->size > MANIFEST_NODE_SIZE_MAX) {
        return ERR_LIMIT;
    }
    uint8_t *memory = malloc(MANIFEST_NODE_SIZE_MAX);
    enum err err = memory != NULL ? note_seen(walk, ref) : ERR_MEMORY;
    err = err == ERR_OK ? manifest_look(walk, ref, memory, &size) : err;
    if (err == ERR_OK && size > 0) {
        wire_reader_init(&reader, bytes_of(memory, size));
        unsigned level = manifest_read_header(&reader);
        if (reader.err == ERR_OK && level > level_max) {
            err = ERR_INVALID;
        }
        while (err == ERR_OK && level > 0 && wire_reader_left(&reader) > 0 &&
               (walk->missing == NULL || walk->missing_count < walk->missing_max)) {
            manifest_read_ref(&reader, &below);
            err = reader.err == ERR_OK ? walk_node(walk, &below, level - 1) : reader.err;
        }
        err = err == ERR_OK ? reader.err : err;
    }
    free(memory);
    return err;
}

static enum err walk_root(struct walk *walk, const struct manifest_ref *root) {
    enum err err = sha256_init(&walk->sha256);
    if (err != ERR_OK) {
        return err;
    }
    err = walk_node(walk, root, MANIFEST_LEVELS_MAX - 1);
    sha256_done(&walk->sha256);
    return err;
}

enum err manifest_files_missing(const struct manifest_files *nodes, const struct manifest_ref *root,
                                struct manifest_ref *missing, size_t max, size_t *ret_count) {
    struct walk walk = {.nodes = nodes, .missing = missing, .missing_max = max};
    enum err err = walk_root(&walk, root);
    *ret_count = walk.missing_count;
    return err;
}

/* ---- cleaning ---- */

static void remove_unseen(const struct manifest_files *nodes, const struct map *seen) {
    uint8_t digest[SHA256_SIZE];
    int copy = openat(nodes->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *opened = copy >= 0 ? fdopendir(copy) : NULL;
    const struct dirent *item;
    while (opened != NULL && (item = readdir(opened)) != NULL) {
        bool is_node = hex_decode(bytes_of_string(item->d_name), digest, sizeof digest);
        if (item->d_name[0] != '.' && (!is_node || map_get(seen, bytes_of(digest, sizeof digest)) == NULL)) {
            unlinkat(nodes->directory, item->d_name, 0);
        }
    }
    if (opened != NULL) {
        closedir(opened);
    } else if (copy >= 0) {
        close(copy);
    }
}

void manifest_files_clean(const struct manifest_files *nodes, const struct manifest_ref *roots,
                          size_t roots_count) {
    struct map seen;
    enum err err = ERR_OK;
    map_init(&seen, SHA256_SIZE, 1, NODES_MAX, 0);
    for (size_t i = 0; i < roots_count && err == ERR_OK; i++) {
        struct walk walk = {.nodes = nodes, .seen = &seen};
        err = walk_root(&walk, &roots[i]);
    }
    if (err == ERR_OK) {
        remove_unseen(nodes, &seen);
    }
    map_done(&seen);
}
