#include "node/crawl/job_files.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/whole_file.h"

enum { PATH_SIZE_MAX = 4096 + JOB_NAME_SIZE_MAX + 64, ARENA_SIZE_MAX = 256 << 20 };

/* ---- one job by its name ---- */

/* DIR/jobs/NAME, if there is a job. */
static enum err job_find(const char *directory, struct bytes name, char ret_path[PATH_SIZE_MAX],
                         struct err_detail *detail) {
    char path[PATH_SIZE_MAX + 16];
    bool is_valid = job_name_is_valid(name);
    if (is_valid) {
        snprintf(ret_path, PATH_SIZE_MAX, "%s/jobs/%.*s", directory, BYTES_ARG(name));
        snprintf(path, sizeof path, "%s/job.conf", ret_path);
    }
    return is_valid && access(path, F_OK) == 0 ? ERR_OK
                                               : err_set(detail, ERR_NOT_FOUND, "there is no such job");
}

enum err job_files_pause(const char *directory, struct bytes name, bool is_paused,
                         struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    struct arena arena;
    struct job job;
    enum err err = job_find(directory, name, path, detail);
    if (err != ERR_OK) {
        return err;
    }
    arena_init(&arena, ARENA_SIZE_MAX);
    err = job_read(&job, path, &arena, detail);
    if (err == ERR_OK && job.is_paused != is_paused) {
        job.is_paused = is_paused;
        err = job_write(&job, path, detail);
    }
    arena_done(&arena);
    return err;
}

enum err job_files_remove(const char *directory, struct bytes name, struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    char file[PATH_SIZE_MAX + 16];
    enum err err = job_find(directory, name, path, detail);
    if (err != ERR_OK) {
        return err;
    }
    snprintf(file, sizeof file, "%s/job.conf", path);
    return whole_file_remove(file, detail);
}

enum err job_files_add(const char *directory, struct bytes wish, char ret_name[JOB_NAME_SIZE_MAX],
                       struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    struct arena arena;
    struct job job;
    arena_init(&arena, ARENA_SIZE_MAX);
    enum err err = job_wish_read(wish, &arena, &job, detail);
    snprintf(path, sizeof path, "%s/jobs", directory);
    err = err == ERR_OK ? whole_file_make_directory(path, detail) : err;
    if (err == ERR_OK) {
        job_name(&job, ret_name);
        snprintf(path, sizeof path, "%s/jobs/%s", directory, ret_name);
        err = job_write(&job, path, detail);
    }
    arena_done(&arena);
    return err;
}

/* ---- the list ---- */

static uint64_t job_count_of(const json_t *state, const char *name) {
    json_int_t count = json_integer_value(json_object_get(state, name));
    return count > 0 ? (uint64_t)count : 0;
}

/* What the crawl said when it was last open. */
static void read_state(const char *path, struct arena *arena, struct job_view *job) {
    char file[PATH_SIZE_MAX + 16];
    snprintf(file, sizeof file, "%s/state.json", path);
    json_t *state = json_load_file(file, 0, NULL);
    job->state = arena_text(arena, json_string_value(json_object_get(state, "state")));
    job->known_count = job_count_of(state, "known");
    job->waiting_count = job_count_of(state, "waiting");
    job->stored_count = job_count_of(state, "stored");
    job->failed_count = job_count_of(state, "failed");
    job->received_size = job_count_of(state, "received_bytes");
    json_object_del(state, "job");
    json_object_del(state, "state");
    char *text = json_is_object(state) ? json_dumps(state, JSON_COMPACT) : NULL;
    job->progress = arena_copy(arena, bytes_of_string(text != NULL ? text : ""));
    free(text);
    json_decref(state);
}

/* What the crawl says of it now. */
static bool find_live(const struct job_files_live *live, struct job_view *job) {
    for (size_t i = 0; i < live->count; i++) {
        const struct job_progress *progress = &live->jobs[i];
        if (strcmp(progress->name, job->name) == 0) {
            job->state = jobs_states[progress->state];
            job->progress = progress->text;
            job->known_count = progress->known_count;
            job->waiting_count = progress->waiting_count;
            job->stored_count = progress->stored_count;
            job->failed_count = progress->failed_count;
            job->received_size = progress->received_size;
            return true;
        }
    }
    return false;
}

/* The texts of a job may be large: only what is shown goes into the arena. */
static bool copy_seeds(const struct job *job, struct arena *arena, struct job_view *view) {
    size_t count =
        job->seeds.count < JOB_FILES_SEEDS_SHOWN_MAX ? job->seeds.count : JOB_FILES_SEEDS_SHOWN_MAX;
    struct bytes *seeds = arena_take_array(arena, count, sizeof *seeds);
    for (size_t i = 0; seeds != NULL && i < count; i++) {
        seeds[i] = arena_copy(arena, job->seeds.items[i]);
    }
    view->seeds = seeds;
    view->seeds_shown_count = seeds != NULL ? count : 0;
    view->seeds_count = job->seeds.count;
    return seeds != NULL;
}

static enum err job_describe(const char *path, const char *name, const struct job_files_live *live,
                             struct arena *arena, struct job_view *ret_view, struct err_detail *detail) {
    struct arena texts;
    struct job job;
    arena_init(&texts, ARENA_SIZE_MAX);
    enum err err = job_read(&job, path, &texts, detail);
    struct job_view view = {.name = arena_text(arena, name)};
    if (err == ERR_OK && !copy_seeds(&job, arena, &view)) {
        err = ERR_MEMORY;
    }
    if (err == ERR_OK) {
        if (!find_live(live, &view)) {
            read_state(path, arena, &view);
        }
        view.state = job.is_paused ? "paused" : view.state != NULL ? view.state : "new";
        view.scope = job_scopes[job.scope];
        view.depth = job.depth;
        view.is_paused = job.is_paused;
        view.period_s = job.period_us / 1000000;
        *ret_view = view;
    }
    arena_done(&texts);
    return err;
}

static int job_compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

size_t job_files_names(const char *directory, char *names[JOB_FILES_MAX]) {
    char path[PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/jobs", directory);
    DIR *opened = opendir(path);
    size_t count = 0;
    const struct dirent *item;
    while (opened != NULL && count < JOB_FILES_MAX && (item = readdir(opened)) != NULL) {
        if (job_find(directory, bytes_of_string(item->d_name), path, NULL) == ERR_OK) {
            names[count] = strdup(item->d_name);
            count += names[count] != NULL;
        }
    }
    if (opened != NULL) {
        closedir(opened);
    }
    qsort(names, count, sizeof *names, job_compare_names);
    return count;
}

size_t job_files_list(const char *directory, const struct job_files_live *live, struct arena *arena,
                      struct job_view **ret_jobs) {
    char **names = calloc(JOB_FILES_MAX, sizeof *names);
    size_t names_count = names != NULL ? job_files_names(directory, names) : 0;
    struct job_view *jobs = arena_take_array(arena, names_count, sizeof *jobs);
    size_t count = 0;
    for (size_t i = 0; i < names_count; i++) {
        char path[PATH_SIZE_MAX];
        snprintf(path, sizeof path, "%s/jobs/%s", directory, names[i]);
        if (jobs != NULL && job_describe(path, names[i], live, arena, &jobs[count], NULL) == ERR_OK) {
            count++;
        }
        free(names[i]);
    }
    free(names);
    *ret_jobs = jobs;
    return count;
}

enum err job_files_get(const char *directory, struct bytes name, const struct job_files_live *live,
                       struct arena *arena, struct job_view *ret_job, struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    char text[JOB_NAME_SIZE_MAX];
    enum err err = job_find(directory, name, path, detail);
    if (err == ERR_OK) {
        snprintf(text, sizeof text, "%.*s", BYTES_ARG(name));
        err = job_describe(path, text, live, arena, ret_job, detail);
    }
    return err;
}
