/* Volumes of other people's segments: how they grow. */
#include <stdio.h>
#include <stdlib.h>

#include "store/volume/volume_state.h"

enum { TAIL_SIZE = 16 << 10 };

/* ---- the segments of a directory ---- */

struct file {
    uint32_t number;
    char name[SEGMENT_NAME_SIZE_MAX];
};

struct files {
    struct file *items; /* by number, ascending */
    size_t count;
    enum err err;
};

static void mirrored_visit_name(void *context, const char *name) {
    struct files *files = context;
    struct file file = {0};
    enum pack_framing framing;
    if (files->err != ERR_OK || !segment_parse_name(name, &file.number, &framing)) {
        return;
    }
    if (files->count == VOLUME_MIRRORED_SEGMENTS_MAX) {
        files->err = ERR_LIMIT;
        return;
    }
    snprintf(file.name, sizeof file.name, "%s", name);
    files->items[files->count++] = file;
}

static int mirrored_compare_files(const void *a, const void *b) {
    const struct file *first = a;
    const struct file *second = b;
    int order = (first->number > second->number) - (first->number < second->number);
    return order != 0 ? order : strcmp(first->name, second->name);
}

static enum err mirrored_list_files(struct vfs *vfs, const char *directory, struct files *files) {
    *files = (struct files){.items = malloc(VOLUME_MIRRORED_SEGMENTS_MAX * sizeof(struct file))};
    if (files->items == NULL) {
        return ERR_MEMORY;
    }
    enum err err = vfs_list(vfs, directory, mirrored_visit_name, files);
    err = err == ERR_OK ? files->err : err;
    if (err == ERR_OK) {
        qsort(files->items, files->count, sizeof *files->items, mirrored_compare_files);
    }
    return err;
}

/* ---- has it grown? ---- */

struct comparing {
    struct vfs *vfs;
    const char *directories[2]; /* old, new */
    uint8_t tails[2][TAIL_SIZE];
};

static enum err mirrored_read_tail(struct comparing *comparing, size_t which, const char *name, uint64_t *end,
                                   uint64_t *ret_size, size_t *ret_tail_size) {
    char path[SEGMENT_PATH_SIZE_MAX];
    struct vfs_file file;
    if (snprintf(path, sizeof path, "%s/%s", comparing->directories[which], name) >= (int)sizeof path) {
        return ERR_LIMIT;
    }
    enum err err = vfs_open(comparing->vfs, path, 0, &file);
    if (err != ERR_OK) {
        return err;
    }
    err = vfs_size(&file, ret_size);
    if (err == ERR_OK && *end == UINT64_MAX) {
        *end = *ret_size;
    }
    uint64_t start = *end > TAIL_SIZE ? *end - TAIL_SIZE : 0;
    if (err == ERR_OK) {
        err = vfs_read(&file, start, comparing->tails[which], (size_t)(*end - start), ret_tail_size);
    }
    vfs_close(&file);
    return err;
}

/* Segments only ever grow, and what they end with is never the same twice: it tells one from another. */
static enum err mirrored_compare_file(struct comparing *comparing, const char *name, bool may_grow,
                                      bool *ret_is_same) {
    uint64_t end = UINT64_MAX;
    uint64_t sizes[2];
    size_t tails[2];
    enum err err = mirrored_read_tail(comparing, 0, name, &end, &sizes[0], &tails[0]);
    err = err == ERR_OK ? mirrored_read_tail(comparing, 1, name, &end, &sizes[1], &tails[1]) : err;
    if (err == ERR_OK) {
        *ret_is_same = (sizes[0] == sizes[1] || (may_grow && sizes[1] > sizes[0])) && tails[0] == tails[1] &&
                       memcmp(comparing->tails[0], comparing->tails[1], tails[0]) == 0;
    }
    return err;
}

static enum err mirrored_compare_all(struct comparing *comparing, const struct files *old,
                                     const struct files *new, bool *ret_is_grown) {
    bool is_same = old->count <= new->count;
    enum err err = ERR_OK;
    for (size_t i = 0; i < old->count && is_same && err == ERR_OK; i++) {
        is_same = strcmp(old->items[i].name, new->items[i].name) == 0;
        if (is_same) {
            err = mirrored_compare_file(comparing, old->items[i].name, i + 1 == old->count, &is_same);
        }
    }
    *ret_is_grown = is_same;
    return err;
}

enum err volume_is_grown(struct vfs *vfs, const char *old_directory, const char *new_directory,
                         bool *ret_is_grown) {
    struct files old = {0};
    struct files new = {0};
    struct comparing *comparing = malloc(sizeof *comparing);
    enum err err = comparing != NULL ? mirrored_list_files(vfs, old_directory, &old) : ERR_MEMORY;
    err = err == ERR_OK ? mirrored_list_files(vfs, new_directory, &new) : err;
    if (err == ERR_OK) {
        comparing->vfs = vfs;
        comparing->directories[0] = old_directory;
        comparing->directories[1] = new_directory;
        err = mirrored_compare_all(comparing, &old, &new, ret_is_grown);
    }
    free(old.items);
    free(new.items);
    free(comparing);
    return err;
}

/* ---- growing ---- */

static enum err mirrored_renew(struct volume *volume, const struct files *files,
                               struct volume_recovery *recovery, struct err_detail *detail) {
    size_t count = volume->segments_count;
    uint32_t last = count > 0 ? volume->segments[count - 1]->number : 0;
    for (size_t i = 0; i < files->count; i++) {
        if (files->items[i].number < last) {
            continue;
        }
        enum err err = volume_renew_segment(volume, files->items[i].name, detail);
        if (segment_is_damage(err)) {
            volume_note_damage(recovery, err, detail);
        } else if (err != ERR_OK) {
            return err;
        }
    }
    return ERR_OK;
}

enum err volume_extend(struct volume *volume, const char *directory, struct volume_recovery *ret_recovery,
                       struct err_detail *detail) {
    ASSERT(volume->config.is_mirrored);
    struct volume_recovery recovery = {0};
    struct files files;
    if (strlen(directory) >= sizeof volume->mirrored_directory) {
        return err_set(detail, ERR_LIMIT, "the path of a mirrored archive is too long");
    }
    enum err err = mirrored_list_files(volume->config.vfs, directory, &files);
    if (err == ERR_OK) {
        snprintf(volume->mirrored_directory, sizeof volume->mirrored_directory, "%s", directory);
        volume->config.directory = volume->mirrored_directory;
        err = mirrored_renew(volume, &files, &recovery, detail);
    }
    free(files.items);
    err = err == ERR_OK ? volume_recover(volume, &recovery, detail) : err;
    if (err == ERR_OK) {
        *ret_recovery = recovery;
    }
    return err;
}
