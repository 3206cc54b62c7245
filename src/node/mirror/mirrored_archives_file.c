/* Of depositing: what it has on disk beside the trees. */
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

enum { FILE_SIZE_MAX = 64 << 10, MODE = 0600 };

const char *mirrored_archives_index_name(const struct mirrored_archives_volume *volume,
                                         char out[MIRRORED_ARCHIVES_INDEX_NAME_SIZE]) {
    snprintf(out, MIRRORED_ARCHIVES_INDEX_NAME_SIZE, "deposit/%u-%016" PRIx64, volume->name, volume->mark);
    return out;
}

/* ---- reading ---- */

static bool read_number(const json_t *object, const char *name, uint64_t max, uint64_t *ret_number) {
    const json_t *value = json_object_get(object, name);
    json_int_t number = json_integer_value(value);
    *ret_number = (uint64_t)number;
    return json_is_integer(value) && number >= 0 && (uint64_t)number <= max;
}

static bool read_volume(const json_t *object, struct mirrored_archives_volume *volume) {
    uint64_t name;
    uint64_t number;
    bool is_sound = read_number(object, "volume", KEY_VOLUMES_MAX - 1, &name) &&
                    read_number(object, "number", UINT16_MAX, &number) &&
                    read_number(object, "mark", INT64_MAX, &volume->mark) &&
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
        !read_number(object, "number", INT64_MAX, &file->number) ||
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

enum err mirrored_archives_file_read(const char *directory, const char *name,
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
