#include "node/mirror/collection_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/whole_file.h"
#include "node/mirror/collection_path.h"
#include "protocol/mirror/manifest_compare.h"

enum { USED_FILE_MODE = S_IRUSR, USED_DIRECTORY_MODE = S_IRUSR | S_IXUSR };

struct making {
    const struct collection_tree *tree;
    struct collection_path after;
    struct collection_path before;
    struct manifest_reader *readers[2]; /* old (NULL: none), new */
    struct sha256 sha256;
    struct collection_tree_stat stat;
    struct err_detail *detail;
    uint8_t chunk[CHUNKER_SIZE_MAX];
};

static enum err tree_fail(struct making *making, struct bytes path) {
    int reason = errno;
    return err_set(making->detail, err_from_errno(reason), "%.*s: %s", path.size < 150 ? (int)path.size : 150,
                   (const char *)path.data, strerror(reason));
}

static void times_of(const struct manifest_entry *entry, struct timespec out[2]) {
    int64_t seconds = entry->time_us / 1000000;
    int64_t rest_us = entry->time_us % 1000000;
    if (rest_us < 0) {
        seconds--;
        rest_us += 1000000;
    }
    out[0] = (struct timespec){.tv_nsec = UTIME_OMIT};
    out[1] = (struct timespec){.tv_sec = (time_t)seconds, .tv_nsec = (long)(rest_us * 1000)};
}

/* ---- files ---- */

static bool is_as_it_was(const struct stat *stat, const struct manifest_entry *entry) {
    struct timespec times[2];
    times_of(entry, times);
    return S_ISREG(stat->st_mode) && stat->st_size == (off_t)entry->size &&
           (stat->st_mode & MANIFEST_MODE_MAX) == (entry->mode | USED_FILE_MODE) &&
           stat->st_mtim.tv_sec == times[1].tv_sec && stat->st_mtim.tv_nsec == times[1].tv_nsec;
}

/* A file of the version before becomes this one too. False: it must be written. */
static bool link_file(struct making *making, struct bytes old_path, const struct manifest_entry *entry) {
    char old_name[PATH_RULE_COMPONENT_SIZE_MAX + 1];
    char name[PATH_RULE_COMPONENT_SIZE_MAX + 1];
    struct stat stat;
    if (making->tree->before < 0) {
        return false;
    }
    int old_parent = collection_path_parent(&making->before, old_path, old_name);
    int parent = collection_path_parent(&making->after, entry->path, name);
    bool is_linked = old_parent >= 0 && parent >= 0 &&
                     fstatat(old_parent, old_name, &stat, AT_SYMLINK_NOFOLLOW) == 0 &&
                     is_as_it_was(&stat, entry) && linkat(old_parent, old_name, parent, name, 0) == 0;
    making->stat.linked_count += is_linked;
    return is_linked;
}

/* Was there a file with the same content, mode and time under another name? */
static bool link_renamed(struct making *making, const struct manifest_entry *entry) {
    struct collection_place place;
    return making->tree->places_before != NULL && entry->size > 0 &&
           collection_places_find(making->tree->places_before, entry->digest, &place) && place.offset == 0 &&
           place.size == entry->size && link_file(making, place.path, entry);
}

static enum err write_chunks(struct making *making, int file, const struct manifest_entry *entry) {
    const struct collection_tree *tree = making->tree;
    struct manifest_ref chunk;
    uint8_t digest[SHA256_SIZE];
    sha256_start(&making->sha256);
    for (;;) {
        enum err err = manifest_reader_next_chunk(making->readers[1], &chunk);
        if (err != ERR_OK || chunk.size == 0) {
            sha256_finish(&making->sha256, digest);
            bool is_same = entry->size == 0 || memcmp(digest, entry->digest, SHA256_SIZE) == 0;
            return err == ERR_OK && !is_same
                       ? err_set(making->detail, ERR_MISMATCH, "a file is not what its chunks are")
                       : err;
        }
        err = tree->get(tree->context, &chunk, making->chunk);
        if (err != ERR_OK) {
            return err;
        }
        sha256_update(&making->sha256, bytes_of(making->chunk, chunk.size));
        if (!whole_file_write_all(file, bytes_of(making->chunk, chunk.size))) {
            return tree_fail(making, entry->path);
        }
    }
}

static enum err tree_write_file(struct making *making, const struct manifest_entry *entry) {
    struct timespec times[2];
    int file =
        collection_path_open(&making->after, entry->path, O_WRONLY | O_CREAT | O_EXCL, S_IRUSR | S_IWUSR);
    if (file < 0) {
        return tree_fail(making, entry->path);
    }
    enum err err = write_chunks(making, file, entry);
    times_of(entry, times);
    if (err == ERR_OK && (fchmod(file, entry->mode | USED_FILE_MODE) != 0 || futimens(file, times) != 0)) {
        err = tree_fail(making, entry->path);
    }
    close(file);
    making->stat.written_count++;
    return err;
}

/* ---- the others ---- */

static enum err make_link(struct making *making, const struct manifest_entry *entry) {
    char name[PATH_RULE_COMPONENT_SIZE_MAX + 1];
    char target[PATH_RULE_SIZE_MAX + 1];
    struct timespec times[2];
    ASSERT(entry->target.size <= PATH_RULE_SIZE_MAX);
    memcpy(target, entry->target.data, entry->target.size);
    target[entry->target.size] = '\0';
    times_of(entry, times);
    int parent = collection_path_parent(&making->after, entry->path, name);
    if (parent < 0 || symlinkat(target, parent, name) != 0 ||
        utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW) != 0) {
        return tree_fail(making, entry->path);
    }
    return ERR_OK;
}

static enum err make_directory(struct making *making, const struct manifest_entry *entry) {
    char name[PATH_RULE_COMPONENT_SIZE_MAX + 1];
    int parent = collection_path_parent(&making->after, entry->path, name);
    return parent < 0 || mkdirat(parent, name, S_IRWXU) != 0 ? tree_fail(making, entry->path) : ERR_OK;
}

static enum err make_entry(struct making *making, const struct manifest_change *change) {
    const struct manifest_entry *entry = change->after;
    switch (change->kind == MANIFEST_REMOVED ? MANIFEST_END : entry->kind) {
    case MANIFEST_DIRECTORY:
        return make_directory(making, entry);
    case MANIFEST_LINK:
        return make_link(making, entry);
    case MANIFEST_FILE: {
        bool is_linked = change->kind == MANIFEST_SAME
                             ? link_file(making, entry->path, entry)
                             : change->kind != MANIFEST_TOUCHED && link_renamed(making, entry);
        return is_linked ? ERR_OK : tree_write_file(making, entry);
    }
    default:
        return ERR_OK;
    }
}

static enum err make_all(struct making *making, const struct manifest_ref *root) {
    struct manifest_compare compare;
    struct manifest_change change;
    if (making->readers[0] != NULL) {
        manifest_reader_start(making->readers[0], making->tree->nodes, making->tree->root_before);
    }
    manifest_reader_start(making->readers[1], making->tree->nodes, root);
    manifest_compare_init(&compare, making->readers[0], making->readers[1]);
    for (;;) {
        enum err err = manifest_compare_next(&compare, &change, NULL);
        if (err != ERR_OK || change.kind == MANIFEST_FINISHED) {
            return err;
        }
        err = make_entry(making, &change);
        if (err != ERR_OK) {
            return err;
        }
    }
}

/* Last of all: whatever is made in a directory changes its time, and not all modes let us do so. */
static enum err finish_directories(struct making *making, const struct manifest_ref *root) {
    struct manifest_entry entry;
    struct timespec times[2];
    enum err err;
    manifest_reader_start(making->readers[1], making->tree->nodes, root);
    while ((err = manifest_reader_next(making->readers[1], &entry)) == ERR_OK && entry.kind != MANIFEST_END) {
        if (entry.kind != MANIFEST_DIRECTORY) {
            continue;
        }
        int directory = collection_path_open(&making->after, entry.path, O_RDONLY | O_DIRECTORY, 0);
        times_of(&entry, times);
        bool is_done = directory >= 0 && futimens(directory, times) == 0 &&
                       fchmod(directory, entry.mode | USED_DIRECTORY_MODE) == 0;
        err = is_done ? ERR_OK : tree_fail(making, entry.path);
        if (directory >= 0) {
            close(directory);
        }
        if (err != ERR_OK) {
            break;
        }
    }
    return err;
}

static enum err tree_prepare(struct making *making) {
    enum err err = sha256_init(&making->sha256);
    err = err == ERR_OK ? manifest_reader_new(&making->readers[1]) : err;
    if (err == ERR_OK && making->tree->before >= 0) {
        err = manifest_reader_new(&making->readers[0]);
    }
    return err;
}

enum err collection_tree_make(const struct collection_tree *tree, const struct manifest_ref *root,
                              struct collection_tree_stat *ret_stat, struct err_detail *detail) {
    struct making *making = calloc(1, sizeof *making);
    if (making == NULL) {
        return ERR_MEMORY;
    }
    making->tree = tree;
    making->detail = detail;
    collection_path_init(&making->after, tree->directory);
    collection_path_init(&making->before, tree->before);
    enum err err = tree_prepare(making);
    err = err == ERR_OK ? make_all(making, root) : err;
    err = err == ERR_OK ? finish_directories(making, root) : err;
    *ret_stat = making->stat;
    collection_path_done(&making->after);
    collection_path_done(&making->before);
    manifest_reader_free(making->readers[0]);
    manifest_reader_free(making->readers[1]);
    sha256_done(&making->sha256);
    free(making);
    return err;
}
