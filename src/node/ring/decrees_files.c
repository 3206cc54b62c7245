/* Decrees as files: DIR/ring/decrees/ID, each as it was signed. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/whole_file.h"
#include "node/ring/decrees_state.h"

enum {
    FILE_MODE = 0644,
    ID_DIGITS = 2 * DECREE_ID_SIZE,
    FILES_MAX = 4 * DECREES_MAX, /* that are looked at: an earlier version kept other ones */
};

static void decrees_path_of(const char *directory, const char *name, char out[DECREES_PATH_SIZE_MAX]) {
    snprintf(out, DECREES_PATH_SIZE_MAX, "%s/ring/decrees/%s", directory, name);
}

static void decrees_file_of(const char *directory, const uint8_t id[DECREE_ID_SIZE],
                            char out[DECREES_PATH_SIZE_MAX]) {
    char digits[ID_DIGITS + 1];
    decrees_path_of(directory, hex_encode(bytes_of(id, DECREE_ID_SIZE), digits), out);
}

/* What there is no room for, or nobody will ever obey again, need not lie there. What cannot be read stays: a
 * later version may have written it. */
static void decrees_take_file(struct decrees *decrees, const char *name) {
    char path[DECREES_PATH_SIZE_MAX];
    char sentence[ERR_TEXT_SIZE_MAX + 64];
    struct err_detail detail = {.err = ERR_OK};
    struct buf text;
    decrees_path_of(decrees->config.directory, name, path);
    buf_init(&text, DECREE_SIZE_MAX);
    enum err err = whole_file_read(path, &text, &detail);
    bool is_read = err == ERR_OK;
    err = is_read ? decrees_add_file(decrees, buf_bytes(&text), &detail) : err;
    bool is_gone = is_read && !decrees->is_reader && (err == ERR_NOT_FOUND || err == ERR_LIMIT);
    if (is_gone) {
        unlink(path);
    }
    if (err != ERR_OK && err != ERR_EXISTS) {
        snprintf(sentence, sizeof sentence, "decree %.32s%s: %s", name, is_gone ? " is removed" : "",
                 err_detail_text(&detail, err));
        decrees_say(decrees, sentence);
    }
    buf_done(&text);
}

void decrees_files_read(struct decrees *decrees) {
    char path[DECREES_PATH_SIZE_MAX];
    struct stat stat_;
    snprintf(path, sizeof path, "%s/ring/decrees", decrees->config.directory);
    if (stat(path, &stat_) != 0 ||
        (stat_.st_mtim.tv_sec == decrees->seen.tv_sec && stat_.st_mtim.tv_nsec == decrees->seen.tv_nsec)) {
        return;
    }
    decrees->seen = stat_.st_mtim;
    DIR *directory = opendir(path);
    if (directory == NULL) {
        return;
    }
    const struct dirent *entry;
    size_t count = 0;
    while ((entry = readdir(directory)) != NULL && count < FILES_MAX) {
        if (strlen(entry->d_name) == ID_DIGITS) {
            decrees_take_file(decrees, entry->d_name);
            count++;
        }
    }
    closedir(directory);
}

enum err decrees_put_on_disk(const char *directory, const uint8_t id[DECREE_ID_SIZE], struct bytes encoded,
                             struct err_detail *detail) {
    char path[DECREES_PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/ring", directory);
    enum err err = whole_file_make_directory(path, detail);
    snprintf(path, sizeof path, "%s/ring/decrees", directory);
    err = err == ERR_OK ? whole_file_make_directory(path, detail) : err;
    decrees_file_of(directory, id, path);
    return err == ERR_OK ? whole_file_replace(path, encoded, FILE_MODE, detail) : err;
}

uint64_t decrees_version_on_disk(const char *directory, const uint8_t id[DECREE_ID_SIZE]) {
    char path[DECREES_PATH_SIZE_MAX];
    struct decree decree;
    struct buf text;
    uint64_t version = 0;
    decrees_file_of(directory, id, path);
    buf_init(&text, DECREE_SIZE_MAX);
    if (whole_file_read(path, &text, NULL) == ERR_OK &&
        decree_read(buf_bytes(&text), identity_verify, &decree, NULL) == ERR_OK) {
        version = decree.version;
    }
    buf_done(&text);
    return version;
}

/* It is tried again with the next beat; said once. */
static void decrees_note_written(struct decrees *decrees, const uint8_t id[DECREE_ID_SIZE], uint64_t version,
                                 enum err err, const struct err_detail *detail) {
    if (err != ERR_OK) {
        pthread_mutex_lock(&decrees->lock);
        struct decrees_entry *entry = decrees_find(decrees, id);
        if (entry != NULL && entry->decree.version == version) {
            entry->is_on_disk = false;
        }
        pthread_mutex_unlock(&decrees->lock);
    }
    if (err != ERR_OK && !decrees->has_write_failed) {
        decrees_say(decrees, err_detail_text(detail, err));
    }
    decrees->has_write_failed = err != ERR_OK;
}

/* One decree that is not on the disk yet; false: there is none, or the disk does not take it. */
static bool decrees_write_next(struct decrees *decrees) {
    struct err_detail detail = {.err = ERR_OK};
    uint8_t id[DECREE_ID_SIZE];
    struct buf encoded;
    bool is_found = false;
    uint64_t version = 0;
    buf_init(&encoded, DECREE_SIZE_MAX);
    pthread_mutex_lock(&decrees->lock);
    for (size_t i = 0; i < decrees->count && !is_found; i++) {
        struct decrees_entry *entry = &decrees->entries[i];
        if (!entry->is_on_disk) {
            memcpy(id, entry->id, sizeof id);
            version = entry->decree.version;
            is_found = buf_put(&encoded, bytes_of(entry->encoded, entry->size)) == ERR_OK;
            entry->is_on_disk = true;
        }
    }
    pthread_mutex_unlock(&decrees->lock);
    if (is_found) {
        enum err err = decrees_put_on_disk(decrees->config.directory, id, buf_bytes(&encoded), &detail);
        decrees_note_written(decrees, id, version, err, &detail);
        is_found = err == ERR_OK;
    }
    buf_done(&encoded);
    return is_found;
}

void decrees_files_write(struct decrees *decrees) {
    while (decrees_write_next(decrees)) {
    }
}

void decrees_files_remove_gone(struct decrees *decrees) {
    char path[DECREES_PATH_SIZE_MAX];
    pthread_mutex_lock(&decrees->lock);
    for (size_t i = 0; i + DECREE_ID_SIZE <= decrees->gone.size; i += DECREE_ID_SIZE) {
        const uint8_t *id = decrees->gone.data + i;
        if (decrees_find(decrees, id) == NULL) { /* else it has come back meanwhile */
            decrees_file_of(decrees->config.directory, id, path);
            unlink(path);
        }
    }
    buf_clear(&decrees->gone);
    pthread_mutex_unlock(&decrees->lock);
}
