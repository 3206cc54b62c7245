#include "node/mirror/collection_setup.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "base/utf8.h"
#include "base/whole_file.h"
#include "net/identity.h"

enum { FILE_SIZE_MAX = 64 << 10, MODE = 0600 };

const char *collection_setup_path(const char *directory, const char *name, const char *file,
                                  char out[COLLECTION_SETUP_PATH_SIZE_MAX]) {
    int size = snprintf(out, COLLECTION_SETUP_PATH_SIZE_MAX, "%s/collections/%s%s%s", directory, name,
                        file != NULL ? "/" : "", file != NULL ? file : "");
    if (size < 0 || size >= COLLECTION_SETUP_PATH_SIZE_MAX) {
        out[0] = '\0'; /* a path that leads nowhere: whoever opens it is told so */
    }
    return out;
}

/* ---- readers ---- */

static bool has_key(const struct collection_readers *readers, const uint8_t key[PEER_KEY_SIZE]) {
    for (size_t i = 0; i < readers->count; i++) {
        if (memcmp(readers->keys[i], key, PEER_KEY_SIZE) == 0) {
            return true;
        }
    }
    return false;
}

bool collection_readers_have(const struct collection_readers *readers, const uint8_t key[PEER_KEY_SIZE]) {
    return readers->is_public || has_key(readers, key);
}

bool collection_readers_equal(const struct collection_readers *a, const struct collection_readers *b) {
    return a->is_public == b->is_public && a->count == b->count &&
           memcmp(a->keys, b->keys, a->count * sizeof *a->keys) == 0;
}

enum err collection_readers_add(struct collection_readers *readers, const uint8_t key[PEER_KEY_SIZE]) {
    if (has_key(readers, key)) {
        return ERR_OK;
    }
    if (readers->count == COLLECTION_SETUP_READERS_MAX) {
        return ERR_LIMIT;
    }
    memcpy(readers->keys[readers->count++], key, PEER_KEY_SIZE);
    return ERR_OK;
}

/* ---- writing ---- */

enum err collection_setup_put(const struct collection_setup *setup, struct buf *out,
                              struct err_detail *detail) {
    struct json json;
    char key[IDENTITY_TEXT_SIZE];
    char place[ADDRESS_TEXT_SIZE_MAX];
    if (collection_setup_publishes(setup) && !utf8_is_valid(bytes_of_string(setup->directory))) {
        return err_set(detail, ERR_INVALID, "the path is not UTF-8");
    }
    json_begin_spaced(&json, out);
    if (setup->has_publisher) {
        json_text(&json, "publisher", identity_key_format(setup->publisher, key));
    }
    if (collection_setup_publishes(setup)) {
        json_text(&json, "directory", setup->directory);
        json_bool(&json, "archive", setup->is_archive);
    }
    json_open_list(&json, "sources");
    for (size_t i = 0; i < setup->sources_count; i++) {
        json_text(&json, NULL, address_format(&setup->sources[i], place));
    }
    json_close(&json);
    json_bool(&json, "public", setup->readers.is_public);
    json_open_list(&json, "readers");
    for (size_t i = 0; i < setup->readers.count; i++) {
        json_text(&json, NULL, identity_key_format(setup->readers.keys[i], key));
    }
    json_end(&json);
    return out->err;
}

static enum err make_directories(const char *directory, const char *name, struct err_detail *detail) {
    static const char *const files[] = {NULL, "nodes", "staging", "trees"};
    char path[COLLECTION_SETUP_PATH_SIZE_MAX];
    enum err err = whole_file_make_directory(directory, detail);
    if (err == ERR_OK) {
        snprintf(path, sizeof path, "%s/collections", directory);
        err = whole_file_make_directory(path, detail);
    }
    for (size_t i = 0; i < sizeof files / sizeof *files && err == ERR_OK; i++) {
        err = whole_file_make_directory(collection_setup_path(directory, name, files[i], path), detail);
    }
    return err;
}

enum err collection_setup_write(const char *directory, const struct collection_setup *setup,
                                struct err_detail *detail) {
    char path[COLLECTION_SETUP_PATH_SIZE_MAX];
    struct buf text;
    buf_init(&text, FILE_SIZE_MAX);
    enum err err = collection_setup_put(setup, &text, detail);
    err = err == ERR_OK ? make_directories(directory, setup->name, detail) : err;
    if (err == ERR_OK) {
        err = whole_file_replace(collection_setup_path(directory, setup->name, "setup.json", path),
                                 buf_bytes(&text), MODE, detail);
    }
    buf_done(&text);
    return err;
}

/* ---- reading ---- */

static bool readers_from_json(const json_t *object, struct collection_readers *readers) {
    const json_t *keys = json_object_get(object, "readers");
    uint8_t key[PEER_KEY_SIZE];
    readers->is_public = json_is_true(json_object_get(object, "public"));
    for (size_t i = 0; i < json_array_size(keys); i++) {
        const char *text = json_string_value(json_array_get(keys, i));
        if (text == NULL || !identity_key_parse(bytes_of_string(text), key) ||
            collection_readers_add(readers, key) != ERR_OK) {
            return false;
        }
    }
    return true;
}

static bool from_json(const json_t *object, struct collection_setup *setup) {
    const json_t *publisher = json_object_get(object, "publisher");
    const char *directory = json_string_value(json_object_get(object, "directory"));
    const json_t *sources = json_object_get(object, "sources");
    if (publisher != NULL) {
        const char *text = json_string_value(publisher);
        setup->has_publisher = true;
        if (text == NULL || !identity_key_parse(bytes_of_string(text), setup->publisher)) {
            return false;
        }
    }
    if (directory != NULL) {
        if (directory[0] != '/' || strlen(directory) >= sizeof setup->directory) {
            return false;
        }
        snprintf(setup->directory, sizeof setup->directory, "%s", directory);
    }
    setup->is_archive = json_is_true(json_object_get(object, "archive"));
    setup->sources_count = json_array_size(sources);
    if (setup->sources_count > COLLECTION_SETUP_SOURCES_MAX) {
        return false;
    }
    for (size_t i = 0; i < setup->sources_count; i++) {
        const char *text = json_string_value(json_array_get(sources, i));
        if (text == NULL || !address_parse(bytes_of_string(text), 0, &setup->sources[i]) ||
            setup->sources[i].port == 0) {
            return false;
        }
    }
    return readers_from_json(object, &setup->readers);
}

bool collection_setup_parse(struct bytes text, const char *name, struct collection_setup *ret_setup) {
    struct collection_setup setup = {0};
    json_t *object = json_loadb((const char *)text.data, text.size, 0, NULL);
    bool is_sound = json_is_object(object) && from_json(object, &setup);
    json_decref(object);
    if (is_sound) {
        snprintf(setup.name, sizeof setup.name, "%s", name);
        *ret_setup = setup;
    }
    return is_sound;
}

static enum err setup_read_file(const char *path, struct buf *out, const char *name,
                                struct err_detail *detail) {
    buf_init(out, FILE_SIZE_MAX);
    enum err err = whole_file_read(path, out, detail);
    return err == ERR_NOT_FOUND ? err_set(detail, err, "there is no collection \"%.63s\" here", name) : err;
}

enum err collection_setup_read(const char *directory, const char *name, struct collection_setup *ret_setup,
                               struct err_detail *detail) {
    char path[COLLECTION_SETUP_PATH_SIZE_MAX];
    struct buf text;
    if (!version_name_is_valid(bytes_of_string(name))) {
        return err_set(detail, ERR_INVALID,
                       "names of collections are 1 to 63 of a-z 0-9 . _ -, without a dot in front");
    }
    enum err err =
        setup_read_file(collection_setup_path(directory, name, "setup.json", path), &text, name, detail);
    if (err == ERR_OK && !collection_setup_parse(buf_bytes(&text), name, ret_setup)) {
        err = err_set(detail, ERR_CORRUPT, "%.200s is damaged", path);
    }
    buf_done(&text);
    return err;
}

enum err collection_setup_remove(const char *directory, const char *name, struct err_detail *detail) {
    struct collection_setup setup;
    char path[COLLECTION_SETUP_PATH_SIZE_MAX];
    enum err err = collection_setup_read(directory, name, &setup, detail);
    if (err != ERR_OK && err != ERR_CORRUPT) {
        return err;
    }
    collection_setup_path(directory, name, "setup.json", path);
    return whole_file_remove(path, detail);
}

static int setup_compare_names(const void *a, const void *b) {
    return strcmp(a, b);
}

size_t collection_setup_names(const char *directory,
                              char names[COLLECTION_SETUP_NAMES_MAX][VERSION_NAME_SIZE_MAX + 1]) {
    char path[COLLECTION_SETUP_PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/collections", directory);
    DIR *opened = opendir(path);
    size_t count = 0;
    const struct dirent *item;
    while (opened != NULL && count < COLLECTION_SETUP_NAMES_MAX && (item = readdir(opened)) != NULL) {
        if (version_name_is_valid(bytes_of_string(item->d_name)) &&
            access(collection_setup_path(directory, item->d_name, "setup.json", path), F_OK) == 0) {
            snprintf(names[count++], VERSION_NAME_SIZE_MAX + 1, "%.*s", VERSION_NAME_SIZE_MAX, item->d_name);
        }
    }
    if (opened != NULL) {
        closedir(opened);
    }
    qsort(names, count, sizeof *names, setup_compare_names);
    return count;
}

bool collection_setup_any_needs_no_group(const char *directory) {
    char(*names)[VERSION_NAME_SIZE_MAX + 1] = malloc(COLLECTION_SETUP_NAMES_MAX * sizeof *names);
    size_t count = names != NULL ? collection_setup_names(directory, names) : 0;
    struct collection_setup setup;
    bool is_any = false;
    for (size_t i = 0; i < count && !is_any; i++) {
        is_any = collection_setup_read(directory, names[i], &setup, NULL) == ERR_OK &&
                 collection_setup_needs_no_group(&setup);
    }
    free(names);
    return is_any;
}

/* ---- versions ---- */

enum err collection_setup_read_version(const char *directory, const char *name, const char *file,
                                       struct version *ret_version, struct err_detail *detail) {
    char path[COLLECTION_SETUP_PATH_SIZE_MAX];
    struct buf text;
    struct err_detail reason = {0};
    enum err err = setup_read_file(collection_setup_path(directory, name, file, path), &text, name, detail);
    if (err == ERR_OK) {
        err = version_read(buf_bytes(&text), identity_verify, ret_version, &reason);
        if (err != ERR_OK) {
            err = err_set(detail, ERR_CORRUPT, "%.120s is damaged: %.100s", path,
                          err_detail_text(&reason, err));
        }
    }
    buf_done(&text);
    return err;
}

enum err collection_setup_write_version(const char *directory, const char *name, const char *file,
                                        const struct version *version, struct err_detail *detail) {
    char path[COLLECTION_SETUP_PATH_SIZE_MAX];
    uint8_t memory[VERSION_SIZE_MAX];
    return whole_file_replace(collection_setup_path(directory, name, file, path),
                              version_write(version, memory), MODE, detail);
}
