#include "node/mirror/mirrored_archives.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "base/whole_file.h"
#include "net/identity.h"
#include "node/mirror/collection_path.h"
#include "node/mirror/mirrored_archives_state.h"

/* ---- what is on disk beside the trees ---- */

enum { FILE_SIZE_MAX = 64 << 10, MODE = 0600 };

const char *mirrored_archives_index_name(const struct mirrored_archives_volume *volume,
                                         char out[MIRRORED_ARCHIVES_INDEX_NAME_SIZE]) {
    snprintf(out, MIRRORED_ARCHIVES_INDEX_NAME_SIZE, "deposit/%u-%016" PRIx64, volume->name, volume->mark);
    return out;
}

/* ---- reading ---- */

static bool mirrored_read_number(const json_t *object, const char *name, uint64_t max, uint64_t *ret_number) {
    const json_t *value = json_object_get(object, name);
    json_int_t number = json_integer_value(value);
    *ret_number = (uint64_t)number;
    return json_is_integer(value) && number >= 0 && (uint64_t)number <= max;
}

static bool read_volume(const json_t *object, struct mirrored_archives_volume *volume) {
    uint64_t name;
    uint64_t number;
    bool is_sound = mirrored_read_number(object, "volume", KEY_VOLUMES_MAX - 1, &name) &&
                    mirrored_read_number(object, "number", UINT16_MAX, &number) &&
                    mirrored_read_number(object, "mark", INT64_MAX, &volume->mark) &&
                    instance_is_mirrored((uint16_t)number) && volume->mark > 0;
    if (is_sound) {
        volume->name = (uint16_t)name;
        volume->number = (uint16_t)number;
    }
    return is_sound;
}

static bool from_json(const json_t *object, struct mirrored_archives_file *file) {
    const json_t *volumes = json_object_get(object, "volumes");
    const char *publisher = json_string_value(json_object_get(object, "publisher"));
    if (publisher == NULL || !identity_key_parse(bytes_of_string(publisher), file->publisher) ||
        !mirrored_read_number(object, "number", INT64_MAX, &file->number) ||
        json_array_size(volumes) > MIRRORED_ARCHIVES_VOLUMES_MAX) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(volumes); i++) {
        if (!read_volume(json_array_get(volumes, i), &file->volumes[file->volumes_count++])) {
            return false;
        }
    }
    return true;
}

static enum err mirrored_archives_file_read(const char *directory, const char *name,
                                            struct mirrored_archives_file *ret_file) {
    char path[COLLECTION_SETUP_PATH_SIZE_MAX];
    struct mirrored_archives_file file = {0};
    struct buf text;
    buf_init(&text, FILE_SIZE_MAX);
    enum err err =
        whole_file_read(collection_setup_path(directory, name, "deposit/state.json", path), &text, NULL);
    json_t *object = err == ERR_OK ? json_loadb((const char *)text.data, text.size, 0, NULL) : NULL;
    bool is_sound = object != NULL && from_json(object, &file);
    json_decref(object);
    buf_done(&text);
    if (is_sound) {
        *ret_file = file;
    }
    return is_sound ? ERR_OK : ERR_NOT_FOUND;
}

/* ---- writing ---- */

enum err mirrored_archives_file_write(const char *directory, const char *name,
                                      const struct mirrored_archives_file *file, struct err_detail *detail) {
    char path[COLLECTION_SETUP_PATH_SIZE_MAX];
    char key[IDENTITY_TEXT_SIZE];
    struct buf text;
    struct json json;
    buf_init(&text, FILE_SIZE_MAX);
    json_begin(&json, &text);
    json_text(&json, "publisher", identity_key_format(file->publisher, key));
    json_count(&json, "number", file->number);
    json_open_list(&json, "volumes");
    for (size_t i = 0; i < file->volumes_count; i++) {
        const struct mirrored_archives_volume *volume = &file->volumes[i];
        json_open(&json, NULL);
        JSON_COUNTS(&json, {"volume", volume->name}, {"number", volume->number}, {"mark", volume->mark});
        json_close(&json);
    }
    json_end(&json);
    buf_put_byte(&text, '\n');
    enum err err = text.err;
    err = err == ERR_OK
              ? whole_file_make_directory(collection_setup_path(directory, name, "deposit", path), detail)
              : err;
    err = err == ERR_OK
              ? whole_file_replace(collection_setup_path(directory, name, "deposit/state.json", path),
                                   buf_bytes(&text), MODE, detail)
              : err;
    buf_done(&text);
    return err;
}

/* ---- cleaning ---- */

static bool is_named(const struct mirrored_archives_file *file, const char *name) {
    char named[MIRRORED_ARCHIVES_INDEX_NAME_SIZE];
    for (size_t i = 0; i < file->volumes_count; i++) {
        if (strcmp(mirrored_archives_index_name(&file->volumes[i], named) + sizeof "deposit", name) == 0) {
            return true;
        }
    }
    return false;
}

void mirrored_archives_file_clean(const char *directory, const char *name,
                                  const struct mirrored_archives_file *file) {
    char path[COLLECTION_SETUP_PATH_SIZE_MAX];
    char index[COLLECTION_SETUP_PATH_SIZE_MAX + sizeof((struct dirent *)NULL)->d_name];
    DIR *opened = opendir(collection_setup_path(directory, name, "deposit", path));
    const struct dirent *item;
    while (opened != NULL && (item = readdir(opened)) != NULL) {
        if (item->d_name[0] == '.' || strcmp(item->d_name, "state.json") == 0 ||
            is_named(file, item->d_name)) {
            continue;
        }
        snprintf(index, sizeof index, "%s/%s", path, item->d_name);
        if (index_destroy(index, NULL) == ERR_OK) { /* else it is still being read from */
            enum err removed = collection_path_remove(dirfd(opened), item->d_name);
            (void)removed; /* the next time */
        }
    }
    if (opened != NULL) {
        closedir(opened);
    }
}

enum { LINK_SIZE_MAX = 64, LOOK_US = 1000000 };

static const char *const mirrored_phases[] = {
    [MIRRORED_ARCHIVES_NONE] = "none",
    [MIRRORED_ARCHIVES_INDEXING] = "indexing",
    [MIRRORED_ARCHIVES_READY] = "ready",
    [MIRRORED_ARCHIVES_REFUSED] = "refused",
};

/* ---- which there are ---- */

static struct mirrored *mirrored_find(const struct mirrored_archives *archives, const char *name) {
    for (size_t i = 0; i < archives->mirrored_count; i++) {
        if (strcmp(archives->mirrored[i]->name, name) == 0) {
            return archives->mirrored[i];
        }
    }
    return NULL;
}

/* The numbers that it had before are its again, unless another has them: somebody has copied a directory. */
static void mirrored_read_file(struct mirrored_archives *archives, struct mirrored *mirrored,
                               const struct collection_setup *setup) {
    struct mirrored_archives_file file;
    bool is_sound =
        mirrored_archives_file_read(archives->config.directory, mirrored->name, &file) == ERR_OK &&
        memcmp(file.publisher, setup->publisher, PEER_KEY_SIZE) == 0;
    for (size_t i = 0; is_sound && i < file.volumes_count; i++) {
        is_sound = !archives->is_used[file.volumes[i].number - INSTANCE_MIRRORED_NUMBER];
    }
    for (size_t i = 0; is_sound && i < file.volumes_count; i++) {
        archives->is_used[file.volumes[i].number - INSTANCE_MIRRORED_NUMBER] = true;
    }
    mirrored->file = is_sound ? file : (struct mirrored_archives_file){0};
    memcpy(mirrored->file.publisher, setup->publisher, PEER_KEY_SIZE);
    mirrored->is_dropped = false;
    mirrored->seen_number = 0;
}

/* 0: there is none of that publisher that is an archive; or it is just being switched to. */
static uint64_t number_of_tree(const struct mirrored_archives *archives, const char *name,
                               const uint8_t publisher[PEER_KEY_SIZE]) {
    static const struct bytes trees = {(const uint8_t *)"trees/", sizeof "trees/" - 1};
    char path[COLLECTION_SETUP_PATH_SIZE_MAX];
    char link[LINK_SIZE_MAX];
    uint64_t number = 0;
    const char *directory = archives->config.directory;
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

static void mirrored_look_at(struct mirrored_archives *archives, const char *name) {
    struct collection_setup setup;
    struct mirrored *mirrored = mirrored_find(archives, name);
    if (collection_setup_read(archives->config.directory, name, &setup, NULL) != ERR_OK ||
        collection_setup_publishes(&setup) || !setup.has_publisher) {
        return;
    }
    if (mirrored == NULL) {
        bool is_full = archives->mirrored_count == INSTANCE_MIRRORED_MAX;
        bool is_wanted = !is_full && number_of_tree(archives, name, setup.publisher) != 0;
        mirrored = is_wanted ? calloc(1, sizeof *mirrored) : NULL;
        if (mirrored == NULL) {
            return;
        }
        memcpy(mirrored->name, setup.name, sizeof mirrored->name);
        mirrored_read_file(archives, mirrored, &setup);
        pthread_mutex_lock(&archives->lock);
        archives->mirrored[archives->mirrored_count++] = mirrored;
        pthread_mutex_unlock(&archives->lock);
    } else if (mirrored->is_dropped) {
        mirrored_read_file(archives, mirrored, &setup);
    }
    mirrored->is_listed = memcmp(mirrored->file.publisher, setup.publisher, PEER_KEY_SIZE) == 0;
}

/* Those that nobody subscribes to any more. */
static void drop_unlisted(struct mirrored_archives *archives) {
    for (size_t i = archives->mirrored_count; i-- > 0;) {
        struct mirrored *mirrored = archives->mirrored[i];
        if (mirrored->is_listed) {
            continue;
        }
        if (!mirrored->is_dropped) {
            mirrored_archives_drop(archives, mirrored);
        }
        if (mirrored_archives_clean(archives, mirrored)) {
            pthread_mutex_lock(&archives->lock);
            archives->mirrored[i] = archives->mirrored[--archives->mirrored_count];
            pthread_mutex_unlock(&archives->lock);
            free(mirrored);
        }
    }
}

static void bring_up_to_date(struct mirrored_archives *archives, struct mirrored *mirrored) {
    uint64_t number = number_of_tree(archives, mirrored->name, mirrored->file.publisher);
    bool is_due =
        mirrored->seen_number != number ||
        (mirrored->retry_at_us != 0 && clock_monotonic_us(archives->config.clock) >= mirrored->retry_at_us);
    if (number != 0 && is_due) {
        mirrored_archives_update(archives, mirrored, number);
    }
    mirrored_archives_file_clean(archives->config.directory, mirrored->name, &mirrored->file);
}

/* All files are read before the first new number is given away. */
static uint64_t mirrored_archives_look(void *context) {
    struct mirrored_archives *archives = context;
    char(*names)[VERSION_NAME_SIZE_MAX + 1] = malloc(COLLECTION_SETUP_NAMES_MAX * sizeof *names);
    if (names == NULL) {
        return LOOK_US;
    }
    size_t count = collection_setup_names(archives->config.directory, names);
    for (size_t i = 0; i < archives->mirrored_count; i++) {
        archives->mirrored[i]->is_listed = false;
    }
    for (size_t i = 0; i < count; i++) {
        mirrored_look_at(archives, names[i]);
    }
    free(names);
    drop_unlisted(archives);
    for (size_t i = 0; i < archives->mirrored_count && !task_is_stopping(&archives->task); i++) {
        if (archives->mirrored[i]->is_listed) {
            bring_up_to_date(archives, archives->mirrored[i]);
        }
    }
    return LOOK_US;
}

enum err mirrored_archives_start(const struct mirrored_archives_config *config,
                                 struct mirrored_archives **ret_mirrored_archives,
                                 struct err_detail *detail) {
    struct mirrored_archives *archives = calloc(1, sizeof *archives);
    if (archives == NULL) {
        return ERR_MEMORY;
    }
    pthread_mutex_init(&archives->lock, NULL);
    archives->config = *config;
    archives->config.clock = config->clock != NULL ? config->clock : &clock_system;
    enum err err =
        task_start(&archives->task, "mirrored-arch", PRIORITY_BEHIND, mirrored_archives_look, archives);
    if (err != ERR_OK) {
        pthread_mutex_destroy(&archives->lock);
        free(archives);
        return err_set(detail, err, "archives of others are not served: %s", err_text(err));
    }
    *ret_mirrored_archives = archives;
    return ERR_OK;
}

void mirrored_archives_stop(struct mirrored_archives *archives) {
    task_stop(&archives->task);
    for (size_t i = 0; i < archives->mirrored_count; i++) {
        free(archives->mirrored[i]);
    }
    pthread_mutex_destroy(&archives->lock);
    free(archives);
}

/* ---- what people see ---- */

void mirrored_archives_put(struct mirrored_archives *archives, const char *name, struct json *json) {
    pthread_mutex_lock(&archives->lock);
    const struct mirrored *mirrored = mirrored_find(archives, name);
    if (mirrored != NULL && mirrored->phase != MIRRORED_ARCHIVES_NONE) {
        bool is_indexing = mirrored->phase == MIRRORED_ARCHIVES_INDEXING;
        json_open(json, "archive");
        json_text(json, "state", mirrored_phases[mirrored->phase]);
        JSON_COUNTS(json, {"number", mirrored->number}, {"captures", mirrored->captures_count},
                    {"records", mirrored->records_count}, {"damaged", mirrored->damaged_count},
                    {"took_us", mirrored->took_us}, {"done_size", is_indexing ? mirrored->done_size : 0},
                    {"all_size", is_indexing ? mirrored->all_size : 0});
        json_text(json, "reason", mirrored->reason);
        json_close(json);
    }
    pthread_mutex_unlock(&archives->lock);
}
