#include "node/mirror/mirrored_archives.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "node/mirror/mirrored_archives_state.h"

enum { LINK_SIZE_MAX = 64, LOOK_US = 1000000 };

const char *const mirrored_archives_phases[] = {
    [MIRRORED_ARCHIVES_NONE] = "none",
    [MIRRORED_ARCHIVES_INDEXING] = "indexing",
    [MIRRORED_ARCHIVES_READY] = "ready",
    [MIRRORED_ARCHIVES_REFUSED] = "refused",
};

/* ---- which there are ---- */

static struct mirrored *find(const struct mirrored_archives *mirrored_archives, const char *name) {
    for (size_t i = 0; i < mirrored_archives->mirrored_count; i++) {
        if (strcmp(mirrored_archives->mirrored[i]->name, name) == 0) {
            return mirrored_archives->mirrored[i];
        }
    }
    return NULL;
}

/* The numbers that it had before are its again, unless another has them: somebody has copied a directory. */
static void read_file(struct mirrored_archives *mirrored_archives, struct mirrored *mirrored,
                      const struct collection_setup *setup) {
    struct mirrored_archives_file file;
    bool is_sound =
        mirrored_archives_file_read(mirrored_archives->config.directory, mirrored->name, &file) == ERR_OK &&
        memcmp(file.publisher, setup->publisher, PEER_KEY_SIZE) == 0;
    for (size_t i = 0; is_sound && i < file.volumes_count; i++) {
        is_sound = !mirrored_archives->is_used[file.volumes[i].number - INSTANCE_MIRRORED_NUMBER];
    }
    for (size_t i = 0; is_sound && i < file.volumes_count; i++) {
        mirrored_archives->is_used[file.volumes[i].number - INSTANCE_MIRRORED_NUMBER] = true;
    }
    mirrored->file = is_sound ? file : (struct mirrored_archives_file){0};
    memcpy(mirrored->file.publisher, setup->publisher, PEER_KEY_SIZE);
    mirrored->is_dropped = false;
    mirrored->seen_number = 0;
}

/* 0: there is none of that publisher that is an archive; or it is just being switched to. */
static uint64_t number_of_tree(const struct mirrored_archives *mirrored_archives, const char *name,
                               const uint8_t publisher[PEER_KEY_SIZE]) {
    static const struct bytes trees = {(const uint8_t *)"trees/", sizeof "trees/" - 1};
    char path[COLLECTION_SETUP_PATH_SIZE_MAX];
    char link[LINK_SIZE_MAX];
    uint64_t number = 0;
    const char *directory = mirrored_archives->config.directory;
    ssize_t size = readlink(collection_setup_path(directory, name, "current", path), link, sizeof link);
    struct bytes text = bytes_of(link, size > 0 ? (size_t)size : 0);
    if (!bytes_starts_with(text, trees) || !bytes_to_u64(bytes_skip(text, trees.size), INT64_MAX, &number) ||
        access(collection_setup_path(directory, name, "current/volumes", path), X_OK) != 0) {
        return 0;
    }
    struct version version;
    enum err err = collection_setup_read_version(directory, name, "version", &version, NULL);
    bool is_his =
        err == ERR_OK && version.number == number && memcmp(version.publisher, publisher, PEER_KEY_SIZE) == 0;
    return is_his ? number : 0;
}

static void look_at(struct mirrored_archives *mirrored_archives, const char *name) {
    struct collection_setup setup;
    struct mirrored *mirrored = find(mirrored_archives, name);
    if (collection_setup_read(mirrored_archives->config.directory, name, &setup, NULL) != ERR_OK ||
        collection_setup_publishes(&setup) || !setup.has_publisher) {
        return;
    }
    if (mirrored == NULL) {
        bool is_full = mirrored_archives->mirrored_count == INSTANCE_MIRRORED_MAX;
        bool is_wanted = !is_full && number_of_tree(mirrored_archives, name, setup.publisher) != 0;
        mirrored = is_wanted ? calloc(1, sizeof *mirrored) : NULL;
        if (mirrored == NULL) {
            return;
        }
        memcpy(mirrored->name, setup.name, sizeof mirrored->name);
        read_file(mirrored_archives, mirrored, &setup);
        pthread_mutex_lock(&mirrored_archives->lock);
        mirrored_archives->mirrored[mirrored_archives->mirrored_count++] = mirrored;
        pthread_mutex_unlock(&mirrored_archives->lock);
    } else if (mirrored->is_dropped) {
        read_file(mirrored_archives, mirrored, &setup);
    }
    mirrored->is_listed = memcmp(mirrored->file.publisher, setup.publisher, PEER_KEY_SIZE) == 0;
}

/* Those that nobody subscribes to any more. */
static void drop_unlisted(struct mirrored_archives *mirrored_archives) {
    for (size_t i = mirrored_archives->mirrored_count; i-- > 0;) {
        struct mirrored *mirrored = mirrored_archives->mirrored[i];
        if (mirrored->is_listed) {
            continue;
        }
        if (!mirrored->is_dropped) {
            mirrored_archives_drop(mirrored_archives, mirrored);
        }
        if (mirrored_archives_clean(mirrored_archives, mirrored)) {
            pthread_mutex_lock(&mirrored_archives->lock);
            mirrored_archives->mirrored[i] = mirrored_archives->mirrored[--mirrored_archives->mirrored_count];
            pthread_mutex_unlock(&mirrored_archives->lock);
            free(mirrored);
        }
    }
}

static void bring_up_to_date(struct mirrored_archives *mirrored_archives, struct mirrored *mirrored) {
    uint64_t number = number_of_tree(mirrored_archives, mirrored->name, mirrored->file.publisher);
    bool is_due = mirrored->seen_number != number ||
                  (mirrored->retry_at_us != 0 &&
                   clock_monotonic_us(mirrored_archives->config.clock) >= mirrored->retry_at_us);
    if (number != 0 && is_due) {
        mirrored_archives_update(mirrored_archives, mirrored, number);
    }
    mirrored_archives_file_clean(mirrored_archives->config.directory, mirrored->name, &mirrored->file);
}

/* All files are read before the first new number is given away. */
static uint64_t mirrored_archives_look(void *context) {
    struct mirrored_archives *mirrored_archives = context;
    char(*names)[VERSION_NAME_SIZE_MAX + 1] = malloc(COLLECTION_SETUP_NAMES_MAX * sizeof *names);
    if (names == NULL) {
        return LOOK_US;
    }
    size_t count = collection_setup_names(mirrored_archives->config.directory, names);
    for (size_t i = 0; i < mirrored_archives->mirrored_count; i++) {
        mirrored_archives->mirrored[i]->is_listed = false;
    }
    for (size_t i = 0; i < count; i++) {
        look_at(mirrored_archives, names[i]);
    }
    free(names);
    drop_unlisted(mirrored_archives);
    for (size_t i = 0; i < mirrored_archives->mirrored_count && !task_is_stopping(&mirrored_archives->task);
         i++) {
        if (mirrored_archives->mirrored[i]->is_listed) {
            bring_up_to_date(mirrored_archives, mirrored_archives->mirrored[i]);
        }
    }
    return LOOK_US;
}

enum err mirrored_archives_start(const struct mirrored_archives_config *config,
                                 struct mirrored_archives **ret_mirrored_archives,
                                 struct err_detail *detail) {
    struct mirrored_archives *mirrored_archives = calloc(1, sizeof *mirrored_archives);
    if (mirrored_archives == NULL) {
        return ERR_MEMORY;
    }
    pthread_mutex_init(&mirrored_archives->lock, NULL);
    mirrored_archives->config = *config;
    mirrored_archives->config.clock = config->clock != NULL ? config->clock : &clock_system;
    enum err err = task_start(&mirrored_archives->task, "mirrored-arch", PRIORITY_BEHIND,
                              mirrored_archives_look, mirrored_archives);
    if (err != ERR_OK) {
        pthread_mutex_destroy(&mirrored_archives->lock);
        free(mirrored_archives);
        return err_set(detail, err, "archives of others are not served: %s", err_text(err));
    }
    *ret_mirrored_archives = mirrored_archives;
    return ERR_OK;
}

void mirrored_archives_stop(struct mirrored_archives *mirrored_archives) {
    task_stop(&mirrored_archives->task);
    for (size_t i = 0; i < mirrored_archives->mirrored_count; i++) {
        free(mirrored_archives->mirrored[i]);
    }
    pthread_mutex_destroy(&mirrored_archives->lock);
    free(mirrored_archives);
}

/* ---- what people see ---- */

void mirrored_archives_put(struct mirrored_archives *mirrored_archives, const char *name, struct json *json) {
    pthread_mutex_lock(&mirrored_archives->lock);
    const struct mirrored *mirrored = find(mirrored_archives, name);
    if (mirrored != NULL && mirrored->phase != MIRRORED_ARCHIVES_NONE) {
        bool is_indexing = mirrored->phase == MIRRORED_ARCHIVES_INDEXING;
        json_open(json, "archive");
        json_text(json, "state", mirrored_archives_phases[mirrored->phase]);
        JSON_COUNTS(json, {"number", mirrored->number}, {"captures", mirrored->captures_count},
                    {"records", mirrored->records_count}, {"damaged", mirrored->damaged_count},
                    {"took_us", mirrored->took_us}, {"done_size", is_indexing ? mirrored->done_size : 0},
                    {"all_size", is_indexing ? mirrored->all_size : 0});
        json_text(json, "reason", mirrored->reason);
        json_close(json);
    }
    pthread_mutex_unlock(&mirrored_archives->lock);
}
