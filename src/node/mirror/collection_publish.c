#include "node/mirror/collection_publish.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/whole_file.h"
#include "node/mirror/collection_places.h"
#include "protocol/mirror/case_watch.h"

enum { NAME_SIZE = 64, DIRECTORY_FLAGS = O_RDONLY | O_DIRECTORY | O_CLOEXEC };

struct publishing {
    const struct collection_publish_config *config;
    struct collection_setup setup;
    int root;   /* DIR/collections/NAME, locked */
    int source; /* the directory that is published */
    struct manifest_files nodes;
    bool has_before;
    struct version before;
    struct err_detail *detail;
};

/* ---- what is there ---- */

static enum err set_source(struct publishing *publishing) {
    const char *source = publishing->config->source;
    char path[PATH_MAX];
    if (source == NULL) {
        return collection_setup_publishes(&publishing->setup)
                   ? ERR_OK
                   : err_set(publishing->detail, ERR_INVALID, "which directory is it?");
    }
    if (realpath(source, path) == NULL) {
        return whole_file_fail(source, publishing->detail);
    }
    if (strlen(path) >= sizeof publishing->setup.directory) {
        return err_set(publishing->detail, ERR_LIMIT, "%.100s…: the path is too long", path);
    }
    snprintf(publishing->setup.directory, sizeof publishing->setup.directory, "%s", path);
    publishing->setup.is_archive = publishing->config->is_archive;
    return ERR_OK;
}

static enum err read_setup(struct publishing *publishing) {
    const struct collection_publish_config *config = publishing->config;
    struct collection_setup *setup = &publishing->setup;
    enum err err = collection_setup_read(config->directory, config->name, setup, publishing->detail);
    if (err == ERR_OK && !collection_setup_publishes(setup)) {
        return err_set(publishing->detail, ERR_EXISTS, "this node subscribes to a collection \"%s\"",
                       config->name);
    }
    if (err != ERR_OK && err != ERR_NOT_FOUND) {
        return err;
    }
    snprintf(setup->name, sizeof setup->name, "%s", config->name);
    setup->has_publisher = true;
    memcpy(setup->publisher, config->identity->key, PEER_KEY_SIZE);
    if (config->readers != NULL) {
        setup->readers = *config->readers;
    }
    return set_source(publishing);
}

static enum err open_all(struct publishing *publishing) {
    const struct collection_publish_config *config = publishing->config;
    char path[COLLECTION_SETUP_PATH_SIZE_MAX];
    const char *source = publishing->setup.directory;
    publishing->source = open(source, DIRECTORY_FLAGS);
    if (publishing->source < 0) {
        return whole_file_fail(source, publishing->detail);
    }
    enum err err = collection_setup_write(config->directory, &publishing->setup, publishing->detail);
    if (err != ERR_OK) {
        return err;
    }
    collection_setup_path(config->directory, config->name, NULL, path);
    publishing->root = open(path, DIRECTORY_FLAGS | O_NOFOLLOW);
    if (publishing->root < 0) {
        return whole_file_fail(path, publishing->detail);
    }
    if (flock(publishing->root, LOCK_EX | LOCK_NB) != 0) {
        return err_set(publishing->detail, ERR_BUSY, "\"%s\" is just being published", config->name);
    }
    publishing->nodes.directory = openat(publishing->root, "nodes", DIRECTORY_FLAGS | O_NOFOLLOW);
    return publishing->nodes.directory >= 0 ? ERR_OK : whole_file_fail(path, publishing->detail);
}

static enum err read_before(struct publishing *publishing) {
    const struct collection_publish_config *config = publishing->config;
    enum err err = collection_setup_read_version(config->directory, config->name, "version",
                                                 &publishing->before, publishing->detail);
    publishing->has_before =
        err == ERR_OK && memcmp(publishing->before.publisher, config->identity->key, PEER_KEY_SIZE) == 0;
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/* ---- archives ---- */

static bool is_segment(struct bytes name) {
    return bytes_ends_with(name, BYTES(".warc.zst")) || bytes_ends_with(name, BYTES(".warc.gz"));
}

/* volumes/NUMBER/SEGMENT, access.aclj, access/NAME.aclj: docs/formats/store.md, access.md. */
static bool is_of_archive(struct bytes path) {
    struct bytes rest = path;
    struct bytes first;
    struct bytes second;
    bytes_split(&rest, '/', &first);
    if (rest.data == NULL) {
        return bytes_equal(first, BYTES("volumes")) || bytes_equal(first, BYTES("access")) ||
               bytes_equal(first, BYTES("access.aclj"));
    }
    bytes_split(&rest, '/', &second);
    if (bytes_equal(first, BYTES("access"))) {
        return rest.data == NULL && bytes_ends_with(second, BYTES(".aclj"));
    }
    bool is_file = rest.data != NULL && bytes_find_byte(rest, '/') == rest.size;
    return bytes_equal(first, BYTES("volumes")) && (rest.data == NULL || (is_file && is_segment(rest)));
}

enum {
    PIECE_SIZE = 1 << 20,
    ATTEMPTS_MAX = 3,
    NAMES_SIZE_MAX = 1 << 30,
    CASE_SLOTS = 1 << 20,
    CLOCK_SLACK_US = 2000000, /* file systems keep times as coarse as two seconds */
};
static const size_t CHUNKS_SIZE_MAX = (size_t)1 << 30;

struct scan {
    const struct publishing *publishing;
    const struct version *version_before; /* NULL: everything is read */
    struct collection_publish_stat *stat;
    struct manifest_writer *writer;
    struct manifest_reader *before; /* NULL: none */
    struct manifest_entry old;      /* the next one there that is not passed yet */
    struct chunker chunker;
    struct sha256 file_hash;
    struct sha256 chunk_hash;
    struct case_watch cases;
    uint64_t *case_slots;
    struct buf chunks; /* of the file at hand: struct manifest_ref */
    uint8_t *piece;
    size_t path_size;
    uint8_t path[PATH_RULE_SIZE_MAX + PATH_RULE_COMPONENT_SIZE_MAX + 2];
    char target[PATH_RULE_SIZE_MAX + 1];
};

static struct bytes scan_path_of(const struct scan *scan) {
    return bytes_of(scan->path, scan->path_size);
}

static enum err scan_fail(struct scan *scan, enum err err, const char *reason) {
    struct bytes path = scan_path_of(scan);
    return err_set(scan->publishing->detail, err, "%.*s: %s", path.size < 150 ? (int)path.size : 150,
                   (const char *)path.data, reason);
}

static enum err fail_errno(struct scan *scan) {
    int number = errno;
    return scan_fail(scan, err_from_errno(number), strerror(number));
}

static void remark(struct scan *scan, const char *text) {
    const struct collection_publish_config *config = scan->publishing->config;
    if (config->remark != NULL) {
        config->remark(config->context, scan_path_of(scan), text);
    }
}

static enum err leave_out(struct scan *scan, const char *reason) {
    remark(scan, reason);
    return ERR_OK;
}

/* ---- reading a file ---- */

static void end_chunk(struct scan *scan, uint32_t size) {
    struct manifest_ref chunk = {.size = size};
    sha256_finish(&scan->chunk_hash, chunk.digest);
    buf_put(&scan->chunks, bytes_of(&chunk, sizeof chunk));
    sha256_start(&scan->chunk_hash);
}

static void take_piece(struct scan *scan, struct bytes piece, uint64_t *chunk_size) {
    sha256_update(&scan->file_hash, piece);
    while (piece.size > 0) {
        bool is_end;
        size_t size = chunker_take(&scan->chunker, piece, &is_end);
        sha256_update(&scan->chunk_hash, bytes_slice(piece, 0, size));
        *chunk_size += size;
        if (is_end) {
            end_chunk(scan, (uint32_t)*chunk_size);
            *chunk_size = 0;
        }
        piece = bytes_skip(piece, size);
    }
}

/* Digest and chunks of the open file, as far as it went when it was opened; *ret_size is what was read. */
static enum err read_contents(struct scan *scan, int file, uint64_t size_max, struct manifest_entry *entry,
                              uint64_t *ret_size) {
    uint64_t size = 0;
    uint64_t chunk_size = 0;
    buf_clear(&scan->chunks);
    chunker_start(&scan->chunker);
    sha256_start(&scan->file_hash);
    sha256_start(&scan->chunk_hash);
    while (size < size_max) {
        uint64_t left = size_max - size;
        ssize_t got = read(file, scan->piece, left < PIECE_SIZE ? (size_t)left : PIECE_SIZE);
        if (got < 0 && errno != EINTR) {
            return fail_errno(scan);
        }
        if (got == 0) {
            break;
        }
        take_piece(scan, bytes_of(scan->piece, got > 0 ? (size_t)got : 0), &chunk_size);
        size += got > 0 ? (uint64_t)got : 0;
    }
    if (chunk_size > 0) {
        end_chunk(scan, (uint32_t)chunk_size);
    }
    sha256_finish(&scan->file_hash, entry->digest);
    if (size == 0) {
        memset(entry->digest, 0, sizeof entry->digest);
    }
    *ret_size = size;
    return scan->chunks.err;
}

static int64_t time_us(struct timespec time) {
    return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

static void scan_describe(const struct stat *stat, struct manifest_entry *entry) {
    entry->mode = (uint16_t)(stat->st_mode & MANIFEST_MODE_MAX);
    entry->time_us = time_us(stat->st_mtim);
    entry->size = S_ISREG(stat->st_mode) ? (uint64_t)stat->st_size : 0;
}

static bool is_still(const struct scan *scan, const struct stat *before, const struct stat *after) {
    if (scan->publishing->setup.is_archive) {
        return before->st_ino == after->st_ino && before->st_size <= after->st_size;
    }
    return before->st_size == after->st_size && before->st_ino == after->st_ino &&
           time_us(before->st_mtim) == time_us(after->st_mtim) &&
           time_us(before->st_ctim) == time_us(after->st_ctim);
}

static enum err scan_read_file(struct scan *scan, int parent, const char *name,
                               struct manifest_entry *entry) {
    for (unsigned attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
        struct stat before;
        struct stat after;
        uint64_t size = 0;
        int file = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (file < 0 || fstat(file, &before) != 0) {
            enum err err = fail_errno(scan);
            if (file >= 0) {
                close(file);
            }
            return err;
        }
        /* What grows is published as far as it is sure to be there after a crash as well. */
        if (scan->publishing->setup.is_archive && fdatasync(file) != 0) {
            enum err err = fail_errno(scan);
            close(file);
            return err;
        }
        enum err err = S_ISREG(before.st_mode)
                           ? read_contents(scan, file, (uint64_t)before.st_size, entry, &size)
                           : ERR_BUSY;
        bool is_whole = err == ERR_OK && fstat(file, &after) == 0 && is_still(scan, &before, &after) &&
                        size == (uint64_t)before.st_size;
        close(file);
        if (err != ERR_OK || is_whole) {
            scan_describe(&before, entry);
            scan->stat->read_count++;
            scan->stat->read_size += size;
            return err;
        }
    }
    return scan_fail(scan, ERR_BUSY, "it does not stop changing while it is read");
}

/* ---- entries ---- */

static enum err scan_add(struct scan *scan, const struct manifest_entry *entry) {
    enum err err = manifest_writer_add(scan->writer, entry);
    if (err == ERR_INVALID) {
        return scan_fail(scan, err, manifest_writer_fault(scan->writer));
    }
    if (err == ERR_OK && case_watch_meets(&scan->cases, entry->path)) {
        remark(scan, "differs only by case from another name: one of them is lost where that is the same");
    }
    return err;
}

static enum err add_read_file(struct scan *scan, const struct manifest_entry *entry) {
    enum err err = scan_add(scan, entry);
    const struct manifest_ref *chunks = (const struct manifest_ref *)(const void *)scan->chunks.data;
    size_t count = manifest_has_chunks(entry) ? scan->chunks.size / sizeof *chunks : 0;
    for (size_t i = 0; i < count && err == ERR_OK; i++) {
        err = manifest_writer_chunk(scan->writer, &chunks[i]);
    }
    return err;
}

/* The old entry at this path, or NULL. */
static const struct manifest_entry *find_old(struct scan *scan, enum err *ret_err) {
    *ret_err = ERR_OK;
    if (scan->before == NULL) {
        return NULL;
    }
    while (scan->old.kind != MANIFEST_END && *ret_err == ERR_OK) {
        int order = path_rule_compare(scan->old.path, scan_path_of(scan));
        if (order >= 0) {
            return order == 0 ? &scan->old : NULL;
        }
        *ret_err = manifest_reader_next(scan->before, &scan->old);
    }
    return NULL;
}

static bool is_unchanged(const struct scan *scan, const struct manifest_entry *old, const struct stat *stat) {
    return old != NULL && old->kind == MANIFEST_FILE && old->size == (uint64_t)stat->st_size &&
           old->time_us == time_us(stat->st_mtim) &&
           time_us(stat->st_ctim) < scan->version_before->time_us - CLOCK_SLACK_US;
}

static enum err add_old_file(struct scan *scan, const struct manifest_entry *entry) {
    struct manifest_ref chunk;
    enum err err = scan_add(scan, entry);
    while (err == ERR_OK && manifest_has_chunks(entry)) {
        err = manifest_reader_next_chunk(scan->before, &chunk);
        if (err != ERR_OK || chunk.size == 0) {
            break;
        }
        err = manifest_writer_chunk(scan->writer, &chunk);
    }
    return err;
}

static enum err scan_file(struct scan *scan, int parent, const char *name, const struct stat *stat,
                          struct manifest_entry *entry) {
    enum err err;
    const struct manifest_entry *old = find_old(scan, &err);
    if (err != ERR_OK) {
        return err;
    }
    if (is_unchanged(scan, old, stat)) {
        memcpy(entry->digest, old->digest, sizeof entry->digest);
        return add_old_file(scan, entry);
    }
    err = scan_read_file(scan, parent, name, entry);
    return err == ERR_OK ? add_read_file(scan, entry) : err;
}

static enum err scan_link(struct scan *scan, int parent, const char *name, struct manifest_entry *entry) {
    ssize_t size = readlinkat(parent, name, scan->target, sizeof scan->target);
    if (size < 0) {
        return fail_errno(scan);
    }
    entry->mode = 0;
    entry->target = bytes_of(scan->target, (size_t)size);
    const char *fault = path_rule_link_fault(entry->path, entry->target);
    if (fault == NULL) {
        fault = manifest_entry_fault(entry);
    }
    return fault != NULL ? leave_out(scan, fault) : scan_add(scan, entry);
}

/* ---- directories ---- */

static int scan_compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in it, sorted, as pointers into *text. */
static enum err list_names(struct scan *scan, int directory, struct buf *text, char ***ret_names,
                           size_t *ret_count) {
    DIR *opened = fdopendir(directory);
    const struct dirent *item;
    size_t count = 0;
    if (opened == NULL) {
        return fail_errno(scan);
    }
    while ((item = readdir(opened)) != NULL) {
        if (strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0) {
            buf_put(text, bytes_of(item->d_name, strlen(item->d_name) + 1));
            count++;
        }
    }
    closedir(opened);
    char **names = malloc((count + 1) * sizeof *names);
    if (names == NULL || text->err != ERR_OK) {
        free(names);
        return ERR_MEMORY;
    }
    char *at = (char *)text->data;
    for (size_t i = 0; i < count; i++) {
        names[i] = at;
        at += strlen(at) + 1;
    }
    qsort(names, count, sizeof *names, scan_compare_names);
    *ret_names = names;
    *ret_count = count;
    return ERR_OK;
}

static enum err scan_directory(struct scan *scan, int directory);

static enum err scan_inside(struct scan *scan, int parent, const char *name) {
    int directory = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return directory >= 0 ? scan_directory(scan, directory) : fail_errno(scan);
}

static enum err scan_entry(struct scan *scan, int parent, const char *name) {
    struct stat stat;
    struct manifest_entry entry = {.path = scan_path_of(scan)};
    const char *fault = path_rule_fault(entry.path);
    if (fault != NULL) {
        return leave_out(scan, fault);
    }
    if (scan->publishing->setup.is_archive && !is_of_archive(entry.path)) {
        return ERR_OK;
    }
    if (fstatat(parent, name, &stat, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? ERR_OK : fail_errno(scan); /* gone since it was listed */
    }
    scan_describe(&stat, &entry);
    if (S_ISREG(stat.st_mode)) {
        entry.kind = MANIFEST_FILE;
        return scan_file(scan, parent, name, &stat, &entry);
    }
    if (S_ISLNK(stat.st_mode)) {
        entry.kind = MANIFEST_LINK;
        return scan_link(scan, parent, name, &entry);
    }
    if (!S_ISDIR(stat.st_mode)) {
        return leave_out(scan, "is neither file, directory nor link");
    }
    entry.kind = MANIFEST_DIRECTORY;
    enum err err = scan_add(scan, &entry);
    return err == ERR_OK ? scan_inside(scan, parent, name) : err;
}

/* Takes over the directory. */
static enum err scan_directory(struct scan *scan, int directory) {
    struct buf text;
    char **names = NULL;
    size_t count = 0;
    size_t path_size = scan->path_size;
    int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* with a position of its own */
    buf_init(&text, NAMES_SIZE_MAX);
    enum err err = copy >= 0 ? list_names(scan, copy, &text, &names, &count) : fail_errno(scan);
    for (size_t i = 0; i < count && err == ERR_OK; i++) {
        size_t name_size = strlen(names[i]);
        size_t start = path_size > 0 ? path_size + 1 : 0;
        if (start + name_size > PATH_RULE_SIZE_MAX || name_size > PATH_RULE_COMPONENT_SIZE_MAX) {
            err = leave_out(scan, "has names in it that are too long");
            continue;
        }
        scan->path[path_size] = '/'; /* at the root, the name is written over it */
        memcpy(scan->path + start, names[i], name_size);
        scan->path_size = start + name_size;
        err = scan_entry(scan, directory, names[i]);
        scan->path_size = path_size;
    }
    free(names);
    buf_done(&text);
    close(directory);
    return err;
}

/* ---- all of it ---- */

static enum err scan_prepare(struct scan *scan) {
    const struct manifest_files *nodes = &scan->publishing->nodes;
    buf_init(&scan->chunks, CHUNKS_SIZE_MAX);
    chunker_init(&scan->chunker);
    scan->piece = malloc(PIECE_SIZE);
    scan->case_slots = calloc(CASE_SLOTS, sizeof *scan->case_slots);
    enum err err = scan->piece != NULL && scan->case_slots != NULL ? ERR_OK : ERR_MEMORY;
    err = err == ERR_OK ? sha256_init(&scan->file_hash) : err;
    err = err == ERR_OK ? sha256_init(&scan->chunk_hash) : err;
    err = err == ERR_OK ? manifest_writer_new(&scan->writer) : err;
    if (err != ERR_OK) {
        return err;
    }
    case_watch_init(&scan->cases, scan->case_slots, CASE_SLOTS, 0);
    manifest_writer_start(scan->writer, manifest_files_sink(nodes));
    if (scan->version_before == NULL) {
        return ERR_OK;
    }
    err = manifest_reader_new(&scan->before);
    if (err == ERR_OK) {
        manifest_reader_start(scan->before, manifest_files_source(nodes), &scan->version_before->root);
        err = manifest_reader_next(scan->before, &scan->old);
    }
    return err;
}

static void scan_end(struct scan *scan) {
    manifest_writer_free(scan->writer);
    manifest_reader_free(scan->before);
    sha256_done(&scan->file_hash);
    sha256_done(&scan->chunk_hash);
    buf_done(&scan->chunks);
    free(scan->case_slots);
    free(scan->piece);
    free(scan);
}

static enum err scan_source(const struct publishing *publishing, const struct version *before,
                            struct collection_publish_result *result) {
    struct scan *scan = calloc(1, sizeof *scan);
    if (scan == NULL) {
        return ERR_MEMORY;
    }
    result->stat = (struct collection_publish_stat){0};
    scan->publishing = publishing;
    scan->version_before = before;
    scan->stat = &result->stat;
    enum err err = scan_prepare(scan);
    int directory = err == ERR_OK ? openat(publishing->source, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (err == ERR_OK) {
        err = directory >= 0 ? scan_directory(scan, directory) : fail_errno(scan);
    }
    err = err == ERR_OK ? manifest_writer_finish(scan->writer, &result->version.root, &result->version.totals)
                        : err;
    scan_end(scan);
    return err;
}

/* ---- the new version ---- */

static enum err scan(struct publishing *publishing, struct collection_publish_result *result) {
    const struct version *before = publishing->has_before ? &publishing->before : NULL;
    enum err err = scan_source(publishing, before, result);
    bool is_damaged = before != NULL && (err == ERR_CORRUPT || err == ERR_NOT_FOUND);
    return is_damaged ? scan_source(publishing, NULL, result) : err; /* without its manifest, all is read */
}

static enum err write_version(struct publishing *publishing, struct version *version) {
    const struct collection_publish_config *config = publishing->config;
    char path[COLLECTION_SETUP_PATH_SIZE_MAX];
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "places.%ju", (uintmax_t)version->number);
    version_sign(version, identity_sign, config->identity);
    enum err err = collection_places_write(collection_setup_path(config->directory, config->name, name, path),
                                           manifest_files_source(&publishing->nodes), &version->root,
                                           publishing->detail);
    if (err == ERR_OK && syncfs(publishing->root) != 0) {
        err = whole_file_fail(path, publishing->detail);
    }
    return err == ERR_OK ? collection_setup_write_version(config->directory, config->name, "version", version,
                                                          publishing->detail)
                         : err;
}

/* Two manifests stay, and the places of the new one. */
static void clean(struct publishing *publishing, const struct version *version) {
    struct manifest_ref roots[2] = {version->root, publishing->before.root};
    char name[NAME_SIZE];
    manifest_files_clean(&publishing->nodes, roots, publishing->has_before ? 2 : 1);
    if (publishing->has_before) {
        snprintf(name, sizeof name, "places.%ju", (uintmax_t)publishing->before.number);
        unlinkat(publishing->root, name, 0);
    }
}

static enum err publish_publish(struct publishing *publishing, struct collection_publish_result *result) {
    struct version *version = &result->version;
    version->time_us = clock_wall_us(publishing->config->clock); /* before anything is looked at */
    enum err err = read_setup(publishing);
    err = err == ERR_OK ? open_all(publishing) : err;
    err = err == ERR_OK ? read_before(publishing) : err;
    err = err == ERR_OK ? scan(publishing, result) : err;
    if (err != ERR_OK) {
        return err;
    }
    if (publishing->has_before && manifest_ref_equal(&version->root, &publishing->before.root)) {
        *version = publishing->before;
        return ERR_OK;
    }
    result->is_new = true;
    version->number = publishing->has_before ? publishing->before.number + 1 : 1;
    memcpy(version->publisher, publishing->config->identity->key, PEER_KEY_SIZE);
    snprintf(version->name, sizeof version->name, "%s", publishing->config->name);
    err = write_version(publishing, version);
    if (err == ERR_OK) {
        clean(publishing, version);
    }
    return err;
}

enum err collection_publish(const struct collection_publish_config *config,
                            struct collection_publish_result *ret_result, struct err_detail *detail) {
    struct publishing *publishing = calloc(1, sizeof *publishing);
    if (publishing == NULL) {
        return ERR_MEMORY;
    }
    *ret_result = (struct collection_publish_result){0};
    publishing->config = config;
    publishing->detail = detail;
    publishing->root = publishing->source = publishing->nodes.directory = -1;
    enum err err = publish_publish(publishing, ret_result);
    int files[] = {publishing->nodes.directory, publishing->source, publishing->root};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (files[i] >= 0) {
            close(files[i]);
        }
    }
    free(publishing);
    return err;
}
