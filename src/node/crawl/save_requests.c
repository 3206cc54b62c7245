#include "node/crawl/save_requests.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/json.h"
#include "base/utc.h"
#include "base/whole_file.h"
#include "crawl/engine/jobs.h"

enum {
    PATH_SIZE_MAX = 4096 + 128,
    ID_RANDOM_SIZE = 8,
    ID_SIZE = 5 + 2 * ID_RANDOM_SIZE, /* "save-" and its digits */
    SAVE_URL_SIZE_MAX = 64 << 10,
    ARENA_SIZE_MAX = 1 << 20,
    JOBS_SIZE_MAX = 64 << 20,
    RESULT_SIZE_MAX = 256 << 10,
    RESULT_MODE = 0666,
    TIME_MAX_S = 300,
    GONE_S = 2, /* a job without its file that is not open after so long will not be */
    KEPT_S = 24 * 3600,
    SWEEP_S = 600,
    BODY_SIZE_MAX = 100 << 20,
    URLS_MAX = 2000,
};

struct save {
    char id[ID_SIZE + 1]; /* empty: free */
    char *url;
    int64_t begun_us;    /* wall clock */
    uint64_t seen_at_us; /* monotonic: its job was open, or it began, then */
    uint64_t stored_count;
    uint64_t waiting_count;
    uint64_t failed_count;
};

struct save_requests {
    struct save_requests_config config;
    uint64_t swept_at_us;
    pthread_mutex_t lock;
    struct save running[SAVE_REQUESTS_RUNNING_MAX]; /* lock */
};

static uint64_t save_now_us(const struct save_requests *saves) {
    return clock_monotonic_us(saves->config.clock);
}

bool save_requests_is_name(struct bytes name) {
    bool is_name = name.size == ID_SIZE && bytes_starts_with(name, BYTES("save-"));
    for (size_t i = 5; i < name.size && is_name; i++) {
        is_name = hex_digit(name.data[i]) >= 0;
    }
    return is_name;
}

static void job_directory(const struct save_requests *saves, const char *id, char out[PATH_SIZE_MAX]) {
    snprintf(out, PATH_SIZE_MAX, "%s/jobs/%s", saves->config.directory, id);
}

static void job_file(const struct save_requests *saves, const char *id, char out[PATH_SIZE_MAX]) {
    snprintf(out, PATH_SIZE_MAX, "%s/jobs/%s/job.conf", saves->config.directory, id);
}

/* With the lock. */
static struct save *find_running(struct save_requests *saves, struct bytes id) {
    for (size_t i = 0; i < SAVE_REQUESTS_RUNNING_MAX; i++) {
        if (saves->running[i].url != NULL && bytes_equal(bytes_of_string(saves->running[i].id), id)) {
            return &saves->running[i];
        }
    }
    return NULL;
}

static struct save *find_url(struct save_requests *saves, const char *url) {
    for (size_t i = 0; i < SAVE_REQUESTS_RUNNING_MAX; i++) {
        if (saves->running[i].url != NULL && strcmp(saves->running[i].url, url) == 0) {
            return &saves->running[i];
        }
    }
    return NULL;
}

static struct save *find_free(struct save_requests *saves) {
    for (size_t i = 0; i < SAVE_REQUESTS_RUNNING_MAX; i++) {
        if (saves->running[i].url == NULL) {
            return &saves->running[i];
        }
    }
    return NULL;
}

static void save_forget(struct save *save) {
    free(save->url);
    *save = (struct save){0};
}

/* ---- beginning ---- */

static enum err make_directory(const struct save_requests *saves, const char *name,
                               struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/%s", saves->config.directory, name);
    return whole_file_make_directory(path, detail);
}

/* One page, and what belongs to it. */
static enum err make_job(struct bytes url, struct arena *arena, struct job *job, struct err_detail *detail) {
    *job = (struct job){
        .scope = SCOPE_PAGE,
        .depth = JOB_DEPTH_ANY,
        .skips_sitemaps = true,
        .urls_max = URLS_MAX,
        .time_max_us = TIME_MAX_S * UINT64_C(1000000),
        .body_size_max = BODY_SIZE_MAX,
        .period_us = UINT64_C(3650) * 24 * 3600 * 1000000, /* it is removed long before */
    };
    struct err_detail reason = {0};
    enum err err = job_add_seeds_of_person(job, url, NULL, arena, &reason);
    if (err == ERR_OK && job->seeds.count != 1) {
        return err_set(detail, ERR_INVALID, "that is not one URL");
    }
    /* "line 1: " means nothing to a person who typed one URL. */
    const char *text = err_detail_text(&reason, err);
    const char *colon = strstr(text, ": ");
    bool has_line = strncmp(text, "line ", 5) == 0 && colon != NULL;
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "%s", has_line ? colon + 2 : text);
}

static enum err make_id(char id[ID_SIZE + 1]) {
    uint8_t random[ID_RANDOM_SIZE];
    if (getrandom(random, sizeof random, 0) != sizeof random) {
        return ERR_SYSTEM;
    }
    memcpy(id, "save-", 5);
    hex_encode(bytes_of(random, sizeof random), id + 5);
    return ERR_OK;
}

/* With the lock. */
static enum err save_begin(struct save_requests *saves, const struct job *job,
                           char ret_id[ADMIN_PAGES_NAME_SIZE_MAX], struct err_detail *detail) {
    char directory[PATH_SIZE_MAX];
    char *url = strndup((const char *)job->seeds.items[0].data, job->seeds.items[0].size);
    struct save *save = url != NULL ? find_url(saves, url) : NULL;
    if (save != NULL) {
        snprintf(ret_id, ADMIN_PAGES_NAME_SIZE_MAX, "%s", save->id);
        free(url);
        return ERR_OK;
    }
    save = find_free(saves);
    if (url == NULL || save == NULL) {
        free(url);
        return save == NULL ? err_set(detail, ERR_BUSY, "%d pages are being saved: try again soon",
                                      SAVE_REQUESTS_RUNNING_MAX)
                            : ERR_MEMORY;
    }
    struct save made = {
        .url = url, .begun_us = clock_wall_us(saves->config.clock), .seen_at_us = save_now_us(saves)};
    enum err err = make_id(made.id);
    if (err == ERR_OK) {
        job_directory(saves, made.id, directory);
        err = job_write(job, directory, detail);
    }
    if (err != ERR_OK) {
        free(url);
        return err;
    }
    *save = made;
    snprintf(ret_id, ADMIN_PAGES_NAME_SIZE_MAX, "%s", made.id);
    return ERR_OK;
}

enum err save_requests_begin(struct save_requests *saves, struct bytes url,
                             char ret_id[ADMIN_PAGES_NAME_SIZE_MAX], struct err_detail *detail) {
    struct arena arena;
    struct job job;
    arena_init(&arena, ARENA_SIZE_MAX);
    enum err err = url.size > SAVE_URL_SIZE_MAX ? err_set(detail, ERR_INVALID, "the URL is too long")
                                                : make_job(url, &arena, &job, detail);
    if (err == ERR_OK) {
        err = make_directory(saves, "jobs", detail);
    }
    if (err == ERR_OK) {
        pthread_mutex_lock(&saves->lock);
        err = save_begin(saves, &job, ret_id, detail);
        pthread_mutex_unlock(&saves->lock);
    }
    arena_done(&arena);
    if (err == ERR_OK) {
        crawl_loop_look(saves->config.crawl_loop);
    }
    return err;
}

/* ---- how it goes ---- */

static struct save_view view_of(const struct save *save, const char *status) {
    return (struct save_view){
        .id = save->id,
        .status = status,
        .url = save->url,
        .stored_count = save->stored_count,
        .waiting_count = save->waiting_count,
        .failed_count = save->failed_count,
    };
}

static uint64_t save_count_of(const json_t *object, const char *name) {
    json_int_t count = json_integer_value(json_object_get(object, name));
    return count > 0 ? (uint64_t)count : 0;
}

static const char *text_of(const json_t *object, const char *name, struct arena *arena) {
    return arena_text(arena, json_string_value(json_object_get(object, name)));
}

static enum err read_result(const struct save_requests *saves, struct bytes id, struct arena *arena,
                            struct save_view *ret_save) {
    char path[PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/saves/%.*s", saves->config.directory, BYTES_ARG(id));
    json_t *result = json_load_file(path, 0, NULL);
    struct save_view save = {
        .id = text_of(result, "job_id", arena),
        .status = text_of(result, "status", arena),
        .url = text_of(result, "original_url", arena),
        .timestamp = text_of(result, "timestamp", arena),
        .message = text_of(result, "message", arena),
        .stored_count = save_count_of(result, "stored"),
        .waiting_count = save_count_of(result, "waiting"),
        .failed_count = save_count_of(result, "failed"),
    };
    json_decref(result);
    bool is_whole = save.id != NULL && save.status != NULL && save.url != NULL;
    *ret_save = is_whole ? save : *ret_save;
    return is_whole ? ERR_OK : ERR_NOT_FOUND;
}

enum err save_requests_get(struct save_requests *saves, struct bytes id, struct arena *arena,
                           struct save_view *ret_save, struct err_detail *detail) {
    if (!save_requests_is_name(id)) {
        return err_set(detail, ERR_NOT_FOUND, "there is no such save");
    }
    pthread_mutex_lock(&saves->lock);
    const struct save *save = find_running(saves, id);
    if (save != NULL) {
        *ret_save = view_of(save, "pending");
        ret_save->id = arena_text(arena, save->id);
        ret_save->url = arena_text(arena, save->url);
    }
    pthread_mutex_unlock(&saves->lock);
    if (save != NULL) {
        return ERR_OK;
    }
    enum err err = read_result(saves, id, arena, ret_save);
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "there is no such save: results are kept for a day");
}

/* ---- the end ---- */

/* Is there a capture of it since it began? Times of captures may be whole seconds. */
static bool find_capture(const struct save_requests *saves, const struct save *save,
                         char timestamp[UTC_DIGITS_SIZE]) {
    struct archive_reader *reader = archive_reader_begin_own(saves->config.archive);
    struct bytes surt;
    struct capture capture;
    if (reader == NULL) {
        return false;
    }
    enum err err = archive_key(reader, bytes_of_string(save->url), &surt, NULL);
    if (err == ERR_OK) {
        err = archive_find(reader, surt, bytes_of_string(save->url), clock_wall_us(saves->config.clock),
                           ARCHIVE_CLOSEST, &capture, NULL);
    }
    bool is_there = err == ERR_OK && capture.time_us / 1000000 >= save->begun_us / 1000000;
    if (is_there) {
        utc_format_digits(capture.time_us, timestamp);
    }
    archive_reader_end(reader);
    return is_there;
}

/* The answer for a visit that stored nothing. */
static const char *reason_of(const struct job_progress *job) {
    if (job->failure_reason != TALLY_NONE) {
        return tally_reason_text(job->failure_reason);
    }
    return job->state == CAMPAIGN_LIMITED ? "it took too long" : "nothing came back";
}

/* Its result first, then its job: a crash between the two finishes it once more. */
static void save_finish(struct save_requests *saves, const struct save *save,
                        const struct job_progress *job) {
    char timestamp[UTC_DIGITS_SIZE];
    char path[PATH_SIZE_MAX];
    struct buf text;
    struct json json;
    struct save_view view = view_of(save, "success");
    buf_init(&text, RESULT_SIZE_MAX);
    json_init(&json, &text);
    if (find_capture(saves, save, timestamp)) {
        view.timestamp = timestamp;
    } else {
        view.status = "error";
        view.message = job != NULL ? reason_of(job) : "its job was removed";
    }
    save_view_put(&view, &json);
    if (text.err == ERR_OK && make_directory(saves, "saves", NULL) == ERR_OK) {
        snprintf(path, sizeof path, "%s/saves/%s", saves->config.directory, save->id);
        enum err err = whole_file_replace(path, buf_bytes(&text), RESULT_MODE, NULL);
        (void)err; /* the save itself is in the archive */
    }
    buf_done(&text);
    job_file(saves, save->id, path);
    unlink(path);
    crawl_loop_look(saves->config.crawl_loop);
}

static bool has_job(const struct save_requests *saves, const char *id) {
    char path[PATH_SIZE_MAX];
    job_file(saves, id, path);
    return access(path, F_OK) == 0;
}

/* True if it is over; *ret_save is then a copy. */
static bool step_one(struct save_requests *saves, size_t index, const struct job_progress *jobs,
                     size_t jobs_count, struct save *ret_save, const struct job_progress **ret_job) {
    pthread_mutex_lock(&saves->lock);
    struct save *save = &saves->running[index];
    bool is_over = false;
    *ret_job = NULL;
    for (size_t i = 0; i < jobs_count && save->url != NULL; i++) {
        const struct job_progress *job = &jobs[i];
        if (strcmp(job->name, save->id) == 0) {
            save->stored_count = job->stored_count;
            save->waiting_count = job->waiting_count;
            save->failed_count = job->failed_count;
            save->seen_at_us = save_now_us(saves);
            is_over = job->state == CAMPAIGN_ENDED || job->state == CAMPAIGN_LIMITED;
            *ret_job = job;
        }
    }
    uint64_t unseen_us = save_now_us(saves) - save->seen_at_us;
    bool is_gone =
        save->url != NULL && ((unseen_us > GONE_S * UINT64_C(1000000) && !has_job(saves, save->id)) ||
                              unseen_us > 2 * TIME_MAX_S * UINT64_C(1000000));
    *ret_save = *save;
    pthread_mutex_unlock(&saves->lock);
    return is_over || is_gone;
}

/* Results that nobody will ask for any more. */
static void sweep(struct save_requests *saves) {
    char path[PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/saves", saves->config.directory);
    DIR *directory = opendir(path);
    const struct dirent *item;
    int64_t oldest_s = clock_wall_us(saves->config.clock) / 1000000 - KEPT_S;
    while (directory != NULL && (item = readdir(directory)) != NULL) {
        struct stat status;
        bool is_old = item->d_name[0] != '.' && fstatat(dirfd(directory), item->d_name, &status, 0) == 0 &&
                      status.st_mtim.tv_sec < oldest_s;
        if (is_old) {
            unlinkat(dirfd(directory), item->d_name, 0);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
}

void save_requests_step(struct save_requests *saves) {
    struct arena arena;
    struct job_progress *jobs;
    arena_init(&arena, JOBS_SIZE_MAX);
    size_t jobs_count = crawl_loop_jobs(saves->config.crawl_loop, &arena, &jobs);
    for (size_t i = 0; i < SAVE_REQUESTS_RUNNING_MAX; i++) {
        struct save save;
        const struct job_progress *job;
        if (step_one(saves, i, jobs, jobs_count, &save, &job)) {
            save_finish(saves, &save, job);
            pthread_mutex_lock(&saves->lock);
            save_forget(&saves->running[i]);
            pthread_mutex_unlock(&saves->lock);
        }
    }
    arena_done(&arena);
    if (save_now_us(saves) - saves->swept_at_us > SWEEP_S * UINT64_C(1000000)) {
        saves->swept_at_us = save_now_us(saves);
        sweep(saves);
    }
}

/* ---- its own life ---- */

/* One that was running when the node was stopped. */
static void take_up(struct save_requests *saves, const char *name) {
    char directory[PATH_SIZE_MAX];
    char path[PATH_SIZE_MAX];
    struct arena arena;
    struct job job;
    struct stat status;
    struct save *save = find_free(saves);
    job_directory(saves, name, directory);
    job_file(saves, name, path);
    arena_init(&arena, ARENA_SIZE_MAX);
    if (save != NULL && stat(path, &status) == 0 && job_read(&job, directory, &arena, NULL) == ERR_OK &&
        job.seeds.count == 1) {
        *save = (struct save){
            .url = strndup((const char *)job.seeds.items[0].data, job.seeds.items[0].size),
            .begun_us = (int64_t)status.st_mtim.tv_sec * 1000000,
            .seen_at_us = save_now_us(saves),
        };
        snprintf(save->id, sizeof save->id, "%s", name);
    }
    arena_done(&arena);
}

enum err save_requests_new(const struct save_requests_config *config, struct save_requests **ret_saves,
                           struct err_detail *detail) {
    struct save_requests *saves = calloc(1, sizeof *saves);
    char path[PATH_SIZE_MAX];
    if (saves == NULL) {
        return err_set(detail, ERR_MEMORY, "%s", err_text(ERR_MEMORY));
    }
    saves->config = *config;
    saves->swept_at_us = save_now_us(saves);
    pthread_mutex_init(&saves->lock, NULL);
    snprintf(path, sizeof path, "%s/jobs", config->directory);
    DIR *directory = opendir(path);
    const struct dirent *item;
    while (directory != NULL && (item = readdir(directory)) != NULL) {
        if (save_requests_is_name(bytes_of_string(item->d_name))) {
            take_up(saves, item->d_name);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
    sweep(saves);
    *ret_saves = saves;
    return ERR_OK;
}

void save_requests_free(struct save_requests *saves) {
    for (size_t i = 0; i < SAVE_REQUESTS_RUNNING_MAX; i++) {
        save_forget(&saves->running[i]);
    }
    pthread_mutex_destroy(&saves->lock);
    free(saves);
}
