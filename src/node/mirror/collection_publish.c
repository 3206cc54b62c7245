#include "node/mirror/collection_publish.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/whole_file.h"
#include "node/mirror/collection_places.h"

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
static bool is_of_archive(void *context, struct bytes path) {
    struct bytes rest = path;
    struct bytes first;
    struct bytes second;
    (void)context;
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

static void remark(void *context, struct bytes path, const char *text) {
    const struct publishing *publishing = context;
    if (publishing->config->remark != NULL) {
        publishing->config->remark(publishing->config->context, path, text);
    }
}

/* ---- the new version ---- */

static enum err scan(struct publishing *publishing, struct collection_publish_result *result) {
    struct collection_scan_config how = {
        .directory = publishing->source,
        .nodes = &publishing->nodes,
        .before = publishing->has_before ? &publishing->before : NULL,
        .is_append_only = publishing->setup.is_archive,
        .wants = publishing->setup.is_archive ? is_of_archive : NULL,
        .remark = remark,
        .context = publishing,
    };
    struct version *version = &result->version;
    enum err err = collection_scan(&how, &version->root, &version->totals, &result->stat, publishing->detail);
    if (how.before != NULL && (err == ERR_CORRUPT || err == ERR_NOT_FOUND)) {
        how.before = NULL; /* its manifest is damaged: everything is read */
        err = collection_scan(&how, &version->root, &version->totals, &result->stat, publishing->detail);
    }
    return err;
}

static void publish_sign(const void *signer, const char *context, struct bytes message,
                         uint8_t out[VERSION_SIGNATURE_SIZE]) {
    identity_sign(signer, context, message, out);
}

static enum err write_version(struct publishing *publishing, struct version *version) {
    const struct collection_publish_config *config = publishing->config;
    char path[COLLECTION_SETUP_PATH_SIZE_MAX];
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "places.%ju", (uintmax_t)version->number);
    version_sign(version, publish_sign, config->identity);
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
