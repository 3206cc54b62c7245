/* From one version of a mirrored archive to the next. */
#include <dirent.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <unistd.h>

#include "net/identity.h"
#include "node/mirror/mirrored_archives_state.h"
#include "store/access/access_files.h"
#include "store/backend/backend_local.h"
#include "store/backend/backend_mirrored.h"

static const uint64_t RETRY_US = 10000000;
enum { TREE_SIZE_MAX = 64, SENTENCE_SIZE_MAX = ERR_TEXT_SIZE_MAX + 160 };

/* A version that is being looked at. */
struct updating {
    struct mirrored_archives *archives;
    struct mirrored *mirrored;
    uint64_t number;
    char root[COLLECTION_SETUP_PATH_SIZE_MAX]; /* of the collection */
    struct vfs_posix vfs;                      /* likewise */
    struct volume_recovery sum;
    struct err_detail detail;
};

/* "NAME@KEY", as people subscribe to it. */
static void mirrored_archives_origin(const struct mirrored *mirrored, char out[INSTANCE_ORIGIN_SIZE_MAX]) {
    char key[IDENTITY_TEXT_SIZE];
    snprintf(out, INSTANCE_ORIGIN_SIZE_MAX, "%s@%s", mirrored->name,
             identity_key_format(mirrored->file.publisher, key));
}

static const char *tree_of(uint64_t number, const struct mirrored_archives_volume *volume,
                           char out[TREE_SIZE_MAX]) {
    snprintf(out, TREE_SIZE_MAX, "trees/%ju/volumes/%u", (uintmax_t)number, volume->name);
    return out;
}

static void on_progress(void *context, uint64_t records_count, uint64_t done_size, uint64_t all_size) {
    struct updating *updating = context;
    struct mirrored *mirrored = updating->mirrored;
    pthread_mutex_lock(&updating->archives->lock);
    mirrored->records_count = updating->sum.records_count + records_count;
    mirrored->done_size = done_size;
    mirrored->all_size = all_size;
    pthread_mutex_unlock(&updating->archives->lock);
}

static void add_up(struct updating *updating, const struct volume_recovery *recovery) {
    struct volume_recovery *sum = &updating->sum;
    if (sum->damaged_count == 0) {
        memcpy(sum->damage, recovery->damage, sizeof sum->damage);
    }
    sum->records_count += recovery->records_count;
    sum->damaged_count += recovery->damaged_count;
}

/* ---- which volumes there are ---- */

/* "0", "12", but not "01": a number has one name. */
static bool parse_name(const char *name, uint16_t *ret_number) {
    char written[8];
    uint64_t number;
    if (!bytes_to_u64(bytes_of_string(name), KEY_VOLUMES_MAX - 1, &number)) {
        return false;
    }
    snprintf(written, sizeof written, "%u", (unsigned)number);
    *ret_number = (uint16_t)number;
    return strcmp(written, name) == 0;
}

static struct mirrored_archives_volume *find_volume(struct mirrored_archives_file *file, uint16_t name) {
    for (size_t i = 0; i < file->volumes_count; i++) {
        if (file->volumes[i].name == name) {
            return &file->volumes[i];
        }
    }
    if (file->volumes_count == MIRRORED_ARCHIVES_VOLUMES_MAX) {
        return NULL;
    }
    struct mirrored_archives_volume *volume = &file->volumes[file->volumes_count++];
    *volume = (struct mirrored_archives_volume){.name = name};
    return volume;
}

static enum err list_volumes(struct updating *updating) {
    struct mirrored_archives_file *file = &updating->mirrored->file;
    char tree[TREE_SIZE_MAX];
    char path[COLLECTION_SETUP_PATH_SIZE_MAX];
    snprintf(tree, sizeof tree, "trees/%ju/volumes", (uintmax_t)updating->number);
    DIR *opened = opendir(
        collection_setup_path(updating->archives->config.directory, updating->mirrored->name, tree, path));
    const struct dirent *item;
    enum err err = opened != NULL ? ERR_OK : ERR_NOT_FOUND;
    for (size_t i = 0; i < file->volumes_count; i++) {
        file->volumes[i].is_listed = false;
    }
    while (err == ERR_OK && (item = readdir(opened)) != NULL) {
        uint16_t name;
        struct mirrored_archives_volume *volume =
            parse_name(item->d_name, &name) ? find_volume(file, name) : NULL;
        if (volume != NULL) {
            volume->is_listed = true;
        }
    }
    if (opened != NULL) {
        closedir(opened);
    }
    return err;
}

/* ---- numbers and backends ---- */

/* A number that no collection here has, nor had since the start: captures that somebody holds may name it. */
static uint16_t find_number(const struct mirrored_archives *archives) {
    for (uint16_t i = 0; i < INSTANCE_MIRRORED_MAX; i++) {
        uint16_t number = (uint16_t)(INSTANCE_MIRRORED_NUMBER + i);
        if (!archives->is_used[i] && instance_mirrored(archives->config.instance, number) == NULL) {
            return number;
        }
    }
    return 0;
}

/* The same archive again, after it had been dropped, has its old number. */
static uint16_t find_old_number(const struct updating *updating) {
    const struct instance *instance = updating->archives->config.instance;
    char origin[INSTANCE_ORIGIN_SIZE_MAX];
    mirrored_archives_origin(updating->mirrored, origin);
    for (uint16_t i = 0; i < INSTANCE_MIRRORED_MAX; i++) {
        uint16_t number = (uint16_t)(INSTANCE_MIRRORED_NUMBER + i);
        bool is_same = instance_mirrored(instance, number) != NULL && !updating->archives->is_used[i] &&
                       strcmp(instance_mirrored_origin(instance, number), origin) == 0;
        if (is_same) {
            return number;
        }
    }
    return 0;
}

static enum err reach_backend(struct updating *updating, struct mirrored_archives_volume *volume,
                              struct backend **ret_backend) {
    struct mirrored_archives *archives = updating->archives;
    struct instance *instance = archives->config.instance;
    char origin[INSTANCE_ORIGIN_SIZE_MAX];
    if (volume->number == 0) {
        volume->number = find_old_number(updating);
        volume->number = volume->number != 0 ? volume->number : find_number(archives);
    }
    if (volume->number == 0) {
        return err_set(&updating->detail, ERR_LIMIT,
                       "at most %d volumes of archives of others are served between two starts",
                       INSTANCE_MIRRORED_MAX);
    }
    archives->is_used[volume->number - INSTANCE_MIRRORED_NUMBER] = true;
    struct backend *backend = instance_mirrored(instance, volume->number);
    if (backend == NULL) {
        backend = backend_mirrored_new();
        if (backend == NULL) {
            return ERR_MEMORY;
        }
        mirrored_archives_origin(updating->mirrored, origin);
        instance_add_mirrored(instance, volume->number, origin, backend);
    }
    *ret_backend = backend;
    return ERR_OK;
}

static enum err update_set_rules(struct updating *updating, struct backend *backend) {
    char tree[TREE_SIZE_MAX];
    char path[COLLECTION_SETUP_PATH_SIZE_MAX];
    struct access_rules *rules;
    snprintf(tree, sizeof tree, "trees/%ju", (uintmax_t)updating->number);
    collection_setup_path(updating->archives->config.directory, updating->mirrored->name, tree, path);
    enum err err = access_files_load(path, &rules, &updating->detail);
    if (err == ERR_OK) {
        backend_mirrored_set_rules(backend, rules);
    }
    return err;
}

/* ---- one volume ---- */

static enum err open_index(struct updating *updating, struct mirrored_archives_volume *volume,
                           struct backend *backend) {
    char tree[TREE_SIZE_MAX];
    char name[MIRRORED_ARCHIVES_INDEX_NAME_SIZE];
    char index[COLLECTION_SETUP_PATH_SIZE_MAX + MIRRORED_ARCHIVES_INDEX_NAME_SIZE];
    struct volume_recovery recovery = {0};
    struct backend *local;
    snprintf(index, sizeof index, "%s/%s", updating->root, mirrored_archives_index_name(volume, name));
    struct backend_local_config config = {
        .path = updating->root,
        .mirrored = tree_of(updating->number, volume, tree),
        .index = index,
        .volume = {.number = volume->number,
                   .clock = updating->archives->config.clock,
                   .progress = on_progress,
                   .progress_context = updating,
                   .is_cancelled = &updating->archives->task.is_stopping},
    };
    enum err err = backend_local_open(&config, &local, &recovery, &updating->detail);
    if (err != ERR_OK) {
        return err;
    }
    index_set_cache_size(volume_index(backend_local_volume(local)), MIRRORED_ARCHIVES_CACHE_SIZE);
    struct mirrored_holding *holding = mirrored_holding_new(local, volume->mark);
    if (holding == NULL) {
        return ERR_MEMORY;
    }
    add_up(updating, &recovery);
    backend_mirrored_replace(backend, holding);
    return ERR_OK;
}

static enum err is_grown(struct updating *updating, const struct mirrored_archives_volume *volume,
                         bool *ret_is_grown) {
    char before[TREE_SIZE_MAX];
    char after[TREE_SIZE_MAX];
    uint64_t indexed_number = updating->mirrored->file.number;
    if (indexed_number == updating->number) {
        *ret_is_grown = true;
        return ERR_OK;
    }
    enum err err = volume_is_grown(&updating->vfs.vfs, tree_of(indexed_number, volume, before),
                                   tree_of(updating->number, volume, after), ret_is_grown);
    if (err == ERR_NOT_FOUND) { /* the old tree, or this volume of it, has gone */
        *ret_is_grown = false;
        err = ERR_OK;
    }
    return err;
}

static enum err extend(struct updating *updating, struct mirrored_archives_volume *volume,
                       struct mirrored_holding *holding) {
    char tree[TREE_SIZE_MAX];
    struct volume_recovery recovery;
    enum err err = volume_extend(mirrored_volume(holding), tree_of(updating->number, volume, tree), &recovery,
                                 &updating->detail);
    if (err == ERR_OK) {
        add_up(updating, &recovery);
    }
    return err;
}

/* A new index: the first, or the old one is of segments that are not there any more. */
static enum err make_index(struct updating *updating, struct mirrored_archives_volume *volume,
                           struct backend *backend) {
    struct mirrored_archives_volume made = *volume;
    randombytes_buf(&made.mark, sizeof made.mark);
    made.mark = made.mark >> 2 | 1; /* as large as SQLite and JSON take, and never 0 */
    bool is_first = volume->mark == 0;
    if (is_first) { /* written down at once: a crash is gone on from */
        *volume = made;
        updating->mirrored->file.number =
            updating->mirrored->file.number == 0 ? updating->number : updating->mirrored->file.number;
        enum err err =
            mirrored_archives_file_write(updating->archives->config.directory, updating->mirrored->name,
                                         &updating->mirrored->file, &updating->detail);
        if (err != ERR_OK) {
            return err;
        }
    }
    enum err err = open_index(updating, &made, backend);
    if (err == ERR_OK) {
        volume->mark = made.mark;
    }
    return err;
}

static enum err update_volume(struct updating *updating, struct mirrored_archives_volume *volume) {
    struct backend *backend = NULL;
    bool can_go_on = false;
    enum err err = reach_backend(updating, volume, &backend);
    err = err == ERR_OK ? update_set_rules(updating, backend) : err;
    if (err == ERR_OK && volume->mark != 0) {
        err = is_grown(updating, volume, &can_go_on);
    }
    if (err != ERR_OK) {
        return err;
    }
    struct mirrored_holding *holding = backend_mirrored_hold(backend);
    if (can_go_on) {
        err = holding != NULL ? extend(updating, volume, holding) : open_index(updating, volume, backend);
        can_go_on = err != ERR_MISMATCH; /* the index contradicts the segments */
    }
    mirrored_release(holding);
    return can_go_on ? err : make_index(updating, volume, backend);
}

/* ---- all of it ---- */

static void give_up_volume(struct mirrored_archives *archives,
                           const struct mirrored_archives_volume *volume) {
    struct backend *backend = instance_mirrored(archives->config.instance, volume->number);
    if (backend != NULL) {
        backend_mirrored_replace(backend, NULL);
        backend_mirrored_set_rules(backend, NULL);
    }
    if (volume->number != 0) {
        archives->is_used[volume->number - INSTANCE_MIRRORED_NUMBER] = false;
    }
}

/* Volumes that the version does not have any more. */
static void drop_volumes(struct updating *updating) {
    struct mirrored_archives_file *file = &updating->mirrored->file;
    size_t kept = 0;
    for (size_t i = 0; i < file->volumes_count; i++) {
        if (file->volumes[i].is_listed) {
            file->volumes[kept++] = file->volumes[i];
            continue;
        }
        give_up_volume(updating->archives, &file->volumes[i]);
    }
    file->volumes_count = kept;
}

static uint64_t update_count_captures(const struct updating *updating) {
    const struct mirrored_archives_file *file = &updating->mirrored->file;
    uint64_t count = 0;
    for (size_t i = 0; i < file->volumes_count; i++) {
        struct backend *backend =
            instance_mirrored(updating->archives->config.instance, file->volumes[i].number);
        struct mirrored_holding *holding = backend != NULL ? backend_mirrored_hold(backend) : NULL;
        if (holding != NULL) {
            struct index_counts counts;
            index_counts(volume_index(mirrored_volume(holding)), &counts);
            count += counts.captures_count;
        }
        mirrored_release(holding);
    }
    return count;
}

static enum err update(struct updating *updating) {
    struct mirrored *mirrored = updating->mirrored;
    struct mirrored_archives_file *file = &mirrored->file;
    enum err err = list_volumes(updating);
    for (size_t i = 0; i < file->volumes_count && err == ERR_OK; i++) {
        if (file->volumes[i].is_listed) {
            err = update_volume(updating, &file->volumes[i]);
        }
    }
    if (err != ERR_OK) {
        return err;
    }
    drop_volumes(updating);
    file->number = updating->number;
    return mirrored_archives_file_write(updating->archives->config.directory, mirrored->name, file,
                                        &updating->detail);
}

static void update_blame(struct updating *updating, const char *what, const char *reason) {
    const struct mirrored_archives_config *config = &updating->archives->config;
    char sentence[SENTENCE_SIZE_MAX];
    snprintf(sentence, sizeof sentence, "has published an archive as %s, version %ju, %s: %.200s",
             updating->mirrored->name, (uintmax_t)updating->number, what, reason);
    config->blame(config->context, updating->mirrored->file.publisher, sentence);
}

static void update_tell(struct updating *updating, enum err err, uint64_t took_us) {
    const struct mirrored_archives_config *config = &updating->archives->config;
    const struct mirrored *mirrored = updating->mirrored;
    char sentence[SENTENCE_SIZE_MAX];
    if (err == ERR_OK) {
        snprintf(sentence, sizeof sentence,
                 "collection %s: version %ju is indexed, %ju new records in %ju ms; %ju were left out",
                 mirrored->name, (uintmax_t)updating->number, (uintmax_t)updating->sum.records_count,
                 (uintmax_t)took_us / 1000, (uintmax_t)updating->sum.damaged_count);
    } else {
        snprintf(sentence, sizeof sentence, "collection %s: version %ju is not served: %s", mirrored->name,
                 (uintmax_t)updating->number, err_detail_text(&updating->detail, err));
    }
    config->note(config->context, sentence);
}

/* Is it a fault of the version itself, so that another try would end the same? */
static bool is_refusal(enum err err) {
    return err == ERR_INVALID || err == ERR_LIMIT || err == ERR_CORRUPT || err == ERR_TRUNCATED ||
           err == ERR_MISMATCH;
}

static void take_outcome(struct updating *updating, enum err err, uint64_t took_us) {
    struct mirrored *mirrored = updating->mirrored;
    const struct volume_recovery *sum = &updating->sum;
    uint64_t captures_count = err == ERR_OK ? update_count_captures(updating) : 0;
    pthread_mutex_lock(&updating->archives->lock);
    mirrored->took_us = took_us;
    mirrored->records_count = sum->records_count;
    mirrored->damaged_count = sum->damaged_count;
    mirrored->phase = err == ERR_OK ? MIRRORED_ARCHIVES_READY : MIRRORED_ARCHIVES_REFUSED;
    if (err == ERR_OK) {
        mirrored->number = updating->number;
        mirrored->captures_count = captures_count;
        memcpy(mirrored->reason, sum->damage, sizeof mirrored->reason);
    } else {
        snprintf(mirrored->reason, sizeof mirrored->reason, "%s", err_detail_text(&updating->detail, err));
    }
    pthread_mutex_unlock(&updating->archives->lock);
}

void mirrored_archives_update(struct mirrored_archives *archives, struct mirrored *mirrored,
                              uint64_t number) {
    struct updating updating = {.archives = archives, .mirrored = mirrored, .number = number};
    const char *directory = archives->config.directory;
    uint64_t begun_us = clock_monotonic_us(archives->config.clock);
    pthread_mutex_lock(&archives->lock);
    mirrored->phase = MIRRORED_ARCHIVES_INDEXING;
    mirrored->done_size = mirrored->all_size = 0;
    pthread_mutex_unlock(&archives->lock);
    collection_setup_path(directory, mirrored->name, NULL, updating.root);
    enum err err = vfs_posix_init(&updating.vfs, updating.root, &updating.detail);
    if (err == ERR_OK) {
        err = update(&updating);
        vfs_posix_done(&updating.vfs);
    }
    if (err == ERR_CANCELLED) {
        return;
    }
    uint64_t now_us = clock_monotonic_us(archives->config.clock);
    uint64_t took_us = now_us - begun_us;
    mirrored->seen_number = number;
    mirrored->retry_at_us = err == ERR_OK || is_refusal(err) ? 0 : now_us + RETRY_US;
    take_outcome(&updating, err, took_us);
    update_tell(&updating, err, took_us);
    if (is_refusal(err)) {
        update_blame(&updating, "that cannot be used", err_detail_text(&updating.detail, err));
    } else if (err == ERR_OK && updating.sum.damaged_count > 0) {
        update_blame(&updating, "with records that cannot be used", updating.sum.damage);
    }
}

void mirrored_archives_drop(struct mirrored_archives *archives, struct mirrored *mirrored) {
    const char *directory = archives->config.directory;
    char path[COLLECTION_SETUP_PATH_SIZE_MAX];
    for (size_t i = 0; i < mirrored->file.volumes_count; i++) {
        give_up_volume(archives, &mirrored->file.volumes[i]);
    }
    unlink(collection_setup_path(directory, mirrored->name, "deposit/state.json", path));
    mirrored->file = (struct mirrored_archives_file){0};
    mirrored->is_dropped = true;
    pthread_mutex_lock(&archives->lock);
    mirrored->phase = MIRRORED_ARCHIVES_NONE;
    mirrored->number = 0;
    pthread_mutex_unlock(&archives->lock);
}

bool mirrored_archives_clean(const struct mirrored_archives *archives, const struct mirrored *mirrored) {
    const char *directory = archives->config.directory;
    char path[COLLECTION_SETUP_PATH_SIZE_MAX];
    mirrored_archives_file_clean(directory, mirrored->name, &mirrored->file);
    return rmdir(collection_setup_path(directory, mirrored->name, "deposit", path)) == 0 ||
           errno != ENOTEMPTY;
}
