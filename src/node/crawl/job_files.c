#include "node/crawl/job_files.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "node/crawl/job_wish.h"

enum { PATH_SIZE_MAX = 4096 + JOB_NAME_SIZE_MAX + 64, ARENA_SIZE_MAX = 256 << 20 };

/* ---- one job by its name ---- */

/* DIR/jobs/NAME, where there is a job. */
static enum err find(const char *directory, struct bytes name, char ret_path[PATH_SIZE_MAX],
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
    enum err err = find(directory, name, path, detail);
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
    enum err err = find(directory, name, path, detail);
    if (err != ERR_OK) {
        return err;
    }
    snprintf(file, sizeof file, "%s/job.conf", path);
    return unlink(file) == 0 ? ERR_OK
                             : err_set(detail, err_from_errno(errno), "%.100s: %s", file, strerror(errno));
}

enum err job_files_add(const char *directory, struct bytes wish, char ret_name[JOB_NAME_SIZE_MAX],
                       struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    struct arena arena;
    struct job job;
    arena_init(&arena, ARENA_SIZE_MAX);
    enum err err = job_wish_read(wish, &arena, &job, detail);
    snprintf(path, sizeof path, "%s/jobs", directory);
    if (err == ERR_OK && mkdir(path, 0777) != 0 && errno != EEXIST) {
        err = err_set(detail, err_from_errno(errno), "%.100s: %s", path, strerror(errno));
    }
    if (err == ERR_OK) {
        job_name(&job, ret_name);
        snprintf(path, sizeof path, "%s/jobs/%s", directory, ret_name);
        err = job_write(&job, path, detail);
    }
    arena_done(&arena);
    return err;
}

/* ---- the list ---- */

/* What the crawl says of it now, or what it said when it was last open. A new reference, or NULL. */
static json_t *find_state(const char *path, const char *name, const json_t *live) {
    for (size_t i = 0; i < json_array_size(live); i++) {
        json_t *state = json_array_get(live, i);
        const char *other = json_string_value(json_object_get(state, "job"));
        if (other != NULL && strcmp(other, name) == 0) {
            return json_incref(state);
        }
    }
    char file[PATH_SIZE_MAX + 16];
    snprintf(file, sizeof file, "%s/state.json", path);
    return json_load_file(file, 0, NULL);
}

static json_t *seeds_of(const struct job *job) {
    json_t *seeds = json_array();
    size_t count =
        job->seeds.count < JOB_FILES_SEEDS_SHOWN_MAX ? job->seeds.count : JOB_FILES_SEEDS_SHOWN_MAX;
    for (size_t i = 0; i < count; i++) {
        struct bytes seed = job->seeds.items[i];
        json_array_append_new(seeds, json_stringn((const char *)seed.data, seed.size));
    }
    return seeds;
}

/* NULL where the job cannot be read. */
static json_t *describe(const char *path, const char *name, const json_t *live, struct err_detail *detail) {
    struct arena arena;
    struct job job;
    arena_init(&arena, ARENA_SIZE_MAX);
    if (job_read(&job, path, &arena, detail) != ERR_OK) {
        arena_done(&arena);
        return NULL;
    }
    json_t *state = find_state(path, name, live);
    json_t *object = json_is_object(state) ? json_incref(state) : json_object();
    json_decref(state);
    const char *word = json_string_value(json_object_get(object, "state"));
    json_object_set_new(object, "job", json_string(name));
    json_object_set_new(object, "state", json_string(job.is_paused ? "paused" : word != NULL ? word : "new"));
    json_object_set_new(object, "seeds", seeds_of(&job));
    json_object_set_new(object, "seeds_count", json_integer((json_int_t)job.seeds.count));
    json_object_set_new(object, "scope", json_string(job_scopes[job.scope]));
    json_object_set_new(object, "depth", json_integer((json_int_t)job.depth));
    json_object_set_new(object, "paused", json_boolean(job.is_paused));
    json_object_set_new(object, "period_seconds", json_integer((json_int_t)(job.period_us / 1000000)));
    arena_done(&arena);
    return object;
}

static void put_json(const json_t *value, struct json *json) {
    char *text = json_dumps(value, JSON_COMPACT);
    json_raw(json, NULL, bytes_of_string(text != NULL ? text : "{}"));
    free(text);
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

size_t job_files_names(const char *directory, char *names[JOB_FILES_MAX]) {
    char path[PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/jobs", directory);
    DIR *opened = opendir(path);
    size_t count = 0;
    const struct dirent *item;
    while (opened != NULL && count < JOB_FILES_MAX && (item = readdir(opened)) != NULL) {
        if (find(directory, bytes_of_string(item->d_name), path, NULL) == ERR_OK) {
            names[count] = strdup(item->d_name);
            count += names[count] != NULL;
        }
    }
    if (opened != NULL) {
        closedir(opened);
    }
    qsort(names, count, sizeof *names, compare_names);
    return count;
}

void job_files_put_all(const char *directory, struct bytes live_text, struct buf *out) {
    char **names = calloc(JOB_FILES_MAX, sizeof *names);
    size_t count = names != NULL ? job_files_names(directory, names) : 0;
    json_t *live = json_loadb((const char *)live_text.data, live_text.size, 0, NULL);
    struct json json;
    json_begin(&json, out);
    json_open_list(&json, "jobs");
    for (size_t i = 0; i < count; i++) {
        char path[PATH_SIZE_MAX];
        snprintf(path, sizeof path, "%s/jobs/%s", directory, names[i]);
        json_t *job = describe(path, names[i], live, NULL);
        if (job != NULL) {
            put_json(job, &json);
        }
        json_decref(job);
        free(names[i]);
    }
    json_end(&json);
    json_decref(live);
    free(names);
}

enum err job_files_put(const char *directory, struct bytes name, struct bytes live_text, struct buf *out,
                       struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    char text[JOB_NAME_SIZE_MAX];
    enum err err = find(directory, name, path, detail);
    if (err != ERR_OK) {
        return err;
    }
    snprintf(text, sizeof text, "%.*s", BYTES_ARG(name));
    json_t *live = json_loadb((const char *)live_text.data, live_text.size, 0, NULL);
    struct err_detail reason = {.err = ERR_IO};
    json_t *job = describe(path, text, live, &reason);
    json_decref(live);
    if (job == NULL) {
        return err_set(detail, reason.err, "%s", err_detail_text(&reason, reason.err));
    }
    struct json json;
    json_init(&json, out);
    put_json(job, &json);
    json_decref(job);
    return ERR_OK;
}
