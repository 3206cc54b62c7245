#include "replay/search/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "replay/search/search_state.h"
#include "store/volume/follow.h"

void search_job_init(struct search_job *job) {
    *job = (struct search_job){0};
}

void search_job_done(struct search_job *job) {
    arena_done(&job->arena);
}

/* ---- askers ---- */

/* A connection to the database as it is now: it may have been made again since the last question. */
static enum err refresh(struct search_asker *asker, struct err_detail *detail) {
    struct search *search = asker->search;
    struct err_detail reason = {0};
    pthread_mutex_lock(&search->lock);
    uint64_t generation = search->is_open ? search->generation : 0;
    memcpy(reason.text, search->error, sizeof reason.text);
    pthread_mutex_unlock(&search->lock);
    if (asker->generation != 0 && asker->generation != generation) {
        search_reader_close(&asker->reader);
        asker->generation = 0;
    }
    if (generation == 0) {
        return err_set(detail, ERR_BUSY, "the full-text index is not open: %.200s",
                       reason.text[0] != '\0' ? reason.text : "it is being opened");
    }
    if (asker->generation != 0) {
        return ERR_OK;
    }
    enum err err = search_reader_open(&asker->reader, search->path, search->config.clock, detail);
    asker->generation = err == ERR_OK ? generation : 0;
    return err;
}

static void hand_over_stale(struct search *search, const struct key *stale, size_t stale_count) {
    pthread_mutex_lock(&search->lock);
    for (size_t i = 0; i < stale_count && search->stale_count < SEARCH_STALE_MAX; i++) {
        search->stale[search->stale_count++] = stale[i];
    }
    pthread_mutex_unlock(&search->lock);
}

static enum err answer(struct search_asker *asker, struct search_job *job) {
    struct key stale[SEARCH_STALE_MAX];
    size_t stale_count = 0;
    enum err err = refresh(asker, &job->detail);
    if (err != ERR_OK) {
        return err;
    }
    struct archive_reader *archive = archive_reader_begin_here(job->archive);
    if (archive == NULL) {
        return ERR_MEMORY;
    }
    err = search_reader_run(&asker->reader, archive, job, stale, &stale_count);
    archive_reader_end(archive);
    hand_over_stale(asker->search, stale, stale_count);
    if (err == ERR_CORRUPT) {
        pthread_mutex_lock(&asker->search->lock);
        asker->search->is_damaged = asker->generation == asker->search->generation;
        pthread_mutex_unlock(&asker->search->lock);
        err = err_set(&job->detail, ERR_BUSY, "the full-text index is damaged and is made again");
    }
    return err;
}

static void search_run(void *context, size_t seat) {
    struct search_job *job = context;
    job->err = answer(&job->search->seats[seat], job);
    job->done(job->context);
}

enum err search_ask(struct search *search, struct search_job *job) {
    ASSERT(job->done != NULL && job->archive != NULL);
    job->search = search;
    job->job = (struct pool_job){.run = search_run, .context = job};
    return pool_try(&search->askers, &job->job) ? ERR_OK : ERR_BUSY;
}

/* ---- start and stop ---- */

static enum err find_volumes(struct search *search) {
    struct instance *instance = search->config.instance;
    size_t count = instance_volumes_count(instance);
    search->volumes = calloc(count + 1, sizeof *search->volumes);
    if (search->volumes == NULL) {
        return ERR_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        struct instance_volume volume;
        instance_volume(instance, i, &volume);
        if (volume.volume != NULL) {
            search->volumes[search->volumes_count++] =
                (struct search_volume){.number = volume.number, .volume = volume.volume};
        }
    }
    return ERR_OK;
}

static enum err start_threads(struct search *search) {
    struct pool_config askers = {
        .name = "search", .threads_max = SEARCH_ASKERS_COUNT, .jobs_max = SEARCH_JOBS_MAX};
    for (size_t i = 0; i < SEARCH_ASKERS_COUNT; i++) {
        search->seats[i].search = search;
    }
    enum err err = pool_start(&search->askers, &askers);
    return err == ERR_OK ? search_feed_start(search) : err;
}

static enum err fill(struct search *search) {
    const char *directory = search->config.directory;
    int size = snprintf(search->directory, sizeof search->directory, "%s/search", directory);
    int path_size = snprintf(search->path, sizeof search->path, "%s/search/text.db", directory);
    if (size >= (int)sizeof search->directory || path_size >= (int)sizeof search->path) {
        return ERR_LIMIT;
    }
    struct archive_config archive = {.instance = search->config.instance, .scratch_directory = directory};
    search->archive = archive_new(&archive);
    return search->archive == NULL ? ERR_MEMORY : find_volumes(search);
}

enum err search_start(const struct search_config *config, struct search **ret_search,
                      struct err_detail *detail) {
    if (!config->is_enabled) {
        *ret_search = NULL;
        return ERR_OK;
    }
    struct search *search = calloc(1, sizeof *search);
    if (search == NULL) {
        return ERR_MEMORY;
    }
    pthread_mutex_init(&search->lock, NULL);
    search->config = *config;
    search->config.clock = config->clock != NULL ? config->clock : &clock_system;
    enum err err = fill(search);
    err = err == ERR_OK ? start_threads(search) : err;
    if (err != ERR_OK) {
        search_stop(search);
        return err_set(detail, err, "full-text search cannot be started: %s", err_text(err));
    }
    *ret_search = search;
    return ERR_OK;
}

void search_stop(struct search *search) {
    if (search == NULL) {
        return;
    }
    pool_stop(&search->askers); /* those who wait are answered first */
    for (size_t i = 0; i < SEARCH_ASKERS_COUNT; i++) {
        if (search->seats[i].generation != 0) {
            search_reader_close(&search->seats[i].reader);
        }
    }
    search_feed_stop(search);
    if (search->archive != NULL) {
        archive_free(search->archive);
    }
    pthread_mutex_destroy(&search->lock);
    free(search->volumes);
    free(search);
}

/* ---- how far it is ---- */

static uint64_t file_size(const char *path, const char *ending) {
    char file[SEARCH_PATH_SIZE_MAX + 8];
    struct stat status;
    snprintf(file, sizeof file, "%s%s", path, ending);
    return stat(file, &status) == 0 ? (uint64_t)status.st_size : 0;
}

/* Captures are as many as their share of the bytes: nobody counts those behind a position. */
static void add_volume(const struct search_volume *volume, const struct index_position *position,
                       struct search_stat *stat) {
    struct index_counts counts;
    uint64_t left_size = 0;
    uint64_t all_size = 0;
    index_counts(volume_index(volume->volume), &counts);
    if (follow_left(volume->volume, position, &left_size, &all_size) != ERR_OK || all_size == 0) {
        return;
    }
    double share = (double)left_size / (double)all_size;
    uint64_t left_count = (uint64_t)(share * (double)counts.captures_count);
    stat->captures_count += counts.captures_count;
    stat->left_size += left_size;
    stat->left_count += left_size > 0 && left_count == 0 ? 1 : left_count;
}

void search_stat(struct search *search, struct search_stat *ret_stat) {
    struct search_stat stat = {0};
    pthread_mutex_lock(&search->lock);
    stat.documents_count = search->documents_count;
    stat.is_open = search->is_open;
    stat.left_count = search->mirrored_left;
    memcpy(stat.error, search->error, sizeof stat.error);
    pthread_mutex_unlock(&search->lock);
    for (size_t i = 0; i < search->volumes_count; i++) {
        pthread_mutex_lock(&search->lock);
        struct index_position position = search->volumes[i].position;
        pthread_mutex_unlock(&search->lock);
        add_volume(&search->volumes[i], &position, &stat);
    }
    stat.size = file_size(search->path, "") + file_size(search->path, "-wal");
    *ret_stat = stat;
}
