#include "cli/serve_confine.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/data.h"
#include "node/mirror/collection_setup.h"
#include "store/disk/vfs.h"
#include "store/instance/connector.h"

enum {
    PLACES_SIZE_MAX = 8 << 20, /* of the texts of all paths */
    LINKS_DEPTH = 3,           /* DIR/volumes/0/index */
};

struct places {
    struct confine confine;
    struct arena arena; /* of its paths */
};

static bool places_make(const char *path, struct err_detail *detail) {
    struct vfs_posix directory;
    if (vfs_posix_init(&directory, path, detail) != ERR_OK) {
        return false;
    }
    vfs_posix_done(&directory);
    return true;
}

static void places_add_written(struct places *places, const char *path) {
    const char *text = arena_text(&places->arena, path);
    if (text != NULL) {
        confine_add_written(&places->confine, text);
    }
}

/* Rules hold for what a link leads to: an archive whose parts lie on other disks is put together by links. */
static void places_add_links(struct places *places, const char *directory, int depth) {
    DIR *opened = opendir(directory);
    for (const struct dirent *entry = opened != NULL ? readdir(opened) : NULL; entry != NULL;
         entry = readdir(opened)) {
        char path[DATA_PATH_SIZE_MAX];
        int size = snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (entry->d_name[0] == '.' || size >= (int)sizeof path) {
            continue;
        }
        if (entry->d_type == DT_LNK) {
            places_add_written(places, path);
        } else if (entry->d_type == DT_DIR && depth > 1) {
            places_add_links(places, path, depth - 1);
        }
    }
    if (opened != NULL) {
        closedir(opened);
    }
}

/* A connector that cannot be read is spoken of by whoever opens the archive. */
static void places_add_volumes(struct places *places, const char *directory) {
    char path[DATA_PATH_SIZE_MAX + 16];
    struct connector connector;
    snprintf(path, sizeof path, "%s/connector", directory);
    if (access(path, F_OK) != 0 || connector_read(&connector, path, NULL) != ERR_OK) {
        return;
    }
    for (size_t i = 0; i < connector.volumes_count; i++) {
        const struct connector_volume *volume = &connector.volumes[i];
        if (volume->path == NULL || access(volume->path, F_OK) != 0) {
            continue;
        }
        places_add_written(places, volume->path);
        places_add_links(places, volume->path, 1);
        if (volume->index != NULL && places_make(volume->index, NULL)) {
            places_add_written(places, volume->index);
        }
    }
    connector_done(&connector);
}

/* The directories that are published now; others need a start of the node, if reading is confined. */
static void places_add_published(struct places *places, const char *directory) {
    char(*names)[VERSION_NAME_SIZE_MAX + 1] = calloc(COLLECTION_SETUP_NAMES_MAX, sizeof *names);
    size_t count = names != NULL ? collection_setup_names(directory, names) : 0;
    for (size_t i = 0; i < count; i++) {
        struct collection_setup setup;
        if (collection_setup_read(directory, names[i], &setup, NULL) == ERR_OK &&
            collection_setup_publishes(&setup)) {
            const char *text = arena_text(&places->arena, setup.directory);
            if (text != NULL) {
                confine_add_read(&places->confine, text);
            }
        }
    }
    free(names);
}

/* OpenSSL is told by them where its authorities are. */
static void places_add_authorities(struct places *places) {
    static const char *const names[] = {"SSL_CERT_FILE", "SSL_CERT_DIR"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *path = getenv(names[i]);
        if (path != NULL) {
            confine_add_read(&places->confine, path);
        }
    }
}

int serve_confine(struct cli *cli, const char *directory, const struct settings *settings,
                  struct confine_state *ret_state) {
    struct err_detail detail = {0};
    *ret_state = (struct confine_state){0};
    if (settings->node_confine == SETTINGS_CONFINE_NO) {
        return CLI_DONE;
    }
    if (!places_make(directory, &detail)) {
        return cli_fail(cli, "cannot open the archive in %s: %s", directory,
                        err_detail_text(&detail, ERR_IO));
    }
    struct places *places = calloc(1, sizeof *places);
    if (places == NULL) {
        return cli_fail(cli, "%s", err_text(ERR_MEMORY));
    }
    arena_init(&places->arena, PLACES_SIZE_MAX);
    places->confine.is_strict = settings->node_confine == SETTINGS_CONFINE_STRICT;
    places_add_written(places, directory);
    places_add_links(places, directory, LINKS_DEPTH);
    places_add_volumes(places, directory);
    places_add_published(places, directory);
    places_add_authorities(places);
    /* A directory that is left out would be refused later, as if its mode were wrong. */
    enum err err =
        places->arena.is_short ? ERR_MEMORY : confine_process(&places->confine, ret_state, &detail);
    arena_done(&places->arena);
    free(places);
    return err == ERR_OK ? CLI_DONE : cli_fail(cli, "%s", err_detail_text(&detail, err));
}
