#include "crawl/engine/jobs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "run/pool.h"

enum {
    LOOK_MS = 1000,
    STATE_TICKS = 5,
    PATH_SIZE_MAX = CAMPAIGN_PATH_SIZE_MAX + 64,
    STATE_SIZE_MAX = 1 << 20
};

/* One directory that was seen. */
struct entry {
    struct entry *next;
    char name[JOB_NAME_SIZE_MAX];
    struct timespec changed; /* of job.conf, as it was when it was read */
    bool is_open;            /* campaign is set up and added */
    bool is_seen;            /* by the last look */
    bool is_leaving;         /* its file is gone, or has changed: close it when it is idle */
    bool is_removed;         /* and its directory goes with it */
    enum err err;            /* why it could not be opened */
    struct campaign campaign;
};

/* What is done to the disk, once a second, by a pool of one thread: the loop does not wait for it. */
struct errand {
    struct errand *next;
    char path[PATH_SIZE_MAX]; /* of a state.json to write, or of a directory to remove */
    struct buf text;          /* empty: remove it */
    enum err err;
};

/* What a look at the directory found. */
struct sight {
    struct sight *next;
    char name[JOB_NAME_SIZE_MAX];
    struct timespec changed;
};

struct jobs {
    struct jobs_config config;
    struct crawler *crawler;
    struct entry *entries;
    pthread_rwlock_t lock; /* of the list, and of which of them are open: the loop thread writes */
    uv_timer_t timer;
    struct pool pool;
    struct pool_job work;
    struct errand *errands; /* the loop's while the work does not run */
    struct sight *sights;   /* the same */
    unsigned ticks_count;
    bool is_working;
    bool is_stopping;
    bool is_stopped;
};

static void jobs_tell(const struct jobs *jobs, const char *name, const char *sentence) {
    if (jobs->config.tell != NULL) {
        jobs->config.tell(jobs->config.context, name, sentence);
    }
}

/* ---- state.json ---- */

const char *const jobs_states[] = {"running", "paused", "limited", "complete"};

static void put_progress(const struct campaign *campaign, const struct frontier_stat *stat,
                         struct json *json) {
    json_count(json, "visit", stat->visit);
    json_signed(json, "visit_start", stat->visit_start_us / 1000000);
    JSON_COUNTS(json, {"known", stat->known_count}, {"waiting", stat->waiting_count},
                {"hosts", stat->hosts_count});
    if (campaign->job.is_shared) {
        json_count(json, "outgoing", stat->outgoing_count);
    }
    tally_put_json(&campaign->tally, json);
}

/* state.json. */
static void put_state(const struct campaign *campaign, struct buf *out) {
    struct frontier_stat stat;
    struct json json;
    frontier_stat(campaign->frontier, &stat);
    json_begin(&json, out);
    json_text(&json, "job", campaign->name);
    json_text(&json, "state", jobs_states[campaign->state]);
    put_progress(campaign, &stat, &json);
    json_end(&json);
    buf_put_byte(out, '\n');
}

static enum err jobs_write_file(const char *path, struct bytes text) {
    char part[PATH_SIZE_MAX + 8];
    snprintf(part, sizeof part, "%s.part", path);
    FILE *file = fopen(part, "we");
    bool is_good = file != NULL && fwrite(text.data, 1, text.size, file) == text.size;
    if (file != NULL && fclose(file) != 0) {
        is_good = false;
    }
    is_good = is_good && rename(part, path) == 0;
    return is_good ? ERR_OK : err_from_errno(errno);
}

enum err jobs_write_state(const struct campaign *campaign) {
    char path[PATH_SIZE_MAX];
    struct buf text;
    buf_init(&text, STATE_SIZE_MAX);
    put_state(campaign, &text);
    snprintf(path, sizeof path, "%s/state.json", campaign->directory);
    enum err err = jobs_write_file(path, buf_bytes(&text));
    buf_done(&text);
    return err;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place) {
    (void)status;
    (void)type;
    (void)place;
    return remove(path);
}

enum err jobs_remove_directory(const char *directory, struct err_detail *detail) {
    if (nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT) {
        return ERR_OK;
    }
    return err_set(detail, err_from_errno(errno), "%s: %s", directory, strerror(errno));
}

/* ---- errands ---- */

/* state.json of the campaign, or, without one, the directory to be removed. Without memory it is not done. */
static void add_errand(struct jobs *jobs, const struct campaign *campaign, const char *name) {
    struct errand *errand = calloc(1, sizeof *errand);
    if (errand == NULL) {
        return;
    }
    buf_init(&errand->text, STATE_SIZE_MAX);
    if (campaign != NULL) {
        snprintf(errand->path, sizeof errand->path, "%s/state.json", campaign->directory);
        put_state(campaign, &errand->text);
    } else {
        snprintf(errand->path, sizeof errand->path, "%s/%s", jobs->config.directory, name);
    }
    struct errand **end = &jobs->errands; /* in order: what is removed stays removed */
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = errand;
}

static void look_at(struct jobs *jobs, const char *name) {
    char path[PATH_SIZE_MAX];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s/job.conf", jobs->config.directory, name);
    if (!job_name_is_valid(bytes_of_string(name)) || stat(path, &status) != 0) {
        return;
    }
    struct sight *sight = calloc(1, sizeof *sight);
    if (sight != NULL) {
        snprintf(sight->name, sizeof sight->name, "%s", name);
        sight->changed = status.st_mtim;
        sight->next = jobs->sights;
        jobs->sights = sight;
    }
}

/* In the thread of the pool. */
static void jobs_run_errands(void *context, size_t seat) {
    struct jobs *jobs = context;
    (void)seat;
    for (struct errand *errand = jobs->errands; errand != NULL; errand = errand->next) {
        errand->err = errand->text.size > 0 ? jobs_write_file(errand->path, buf_bytes(&errand->text))
                                            : jobs_remove_directory(errand->path, NULL);
    }
    DIR *directory = opendir(jobs->config.directory);
    const struct dirent *item;
    while (directory != NULL && (item = readdir(directory)) != NULL) {
        look_at(jobs, item->d_name);
    }
    if (directory != NULL) {
        closedir(directory);
    }
}

/* ---- opening and closing ---- */

static void set_open(struct jobs *jobs, struct entry *entry, bool is_open) {
    pthread_rwlock_wrlock(&jobs->lock);
    entry->is_open = is_open;
    pthread_rwlock_unlock(&jobs->lock);
}

/* Trouble of this machine, which may pass; not of the job, which has to be changed. */
static bool may_pass(enum err err) {
    return err == ERR_MEMORY || err == ERR_IO || err_is_full(err) || err == ERR_FILES || err == ERR_THREADS ||
           err == ERR_BUSY || err == ERR_SYSTEM;
}

static void open_entry(struct jobs *jobs, struct entry *entry) {
    char directory[PATH_SIZE_MAX];
    struct err_detail detail = {0};
    snprintf(directory, sizeof directory, "%s/%s", jobs->config.directory, entry->name);
    enum err err = campaign_open(&entry->campaign, directory, entry->name, &detail);
    if (err == ERR_OK && entry->campaign.job.is_paused) {
        campaign_close(&entry->campaign); /* it costs nothing while it rests */
        return;
    }
    if (err == ERR_OK) {
        err = crawler_add(jobs->crawler, &entry->campaign, &detail);
        if (err != ERR_OK) {
            campaign_close(&entry->campaign);
        }
    }
    set_open(jobs, entry, err == ERR_OK);
    if (may_pass(err)) {
        entry->changed = (struct timespec){0}; /* it is tried again with the next look at the directory */
    }
    if (err == ERR_OK || err != entry->err) {
        jobs_tell(jobs, entry->name, err == ERR_OK ? "begins" : err_detail_text(&detail, err));
    }
    entry->err = err;
}

static void close_entry(struct jobs *jobs, struct entry *entry) {
    if (!entry->is_removed) {
        add_errand(jobs, &entry->campaign, entry->name);
    }
    set_open(jobs, entry, false); /* nobody reads it when it closes */
    crawler_remove(jobs->crawler, &entry->campaign);
    campaign_close(&entry->campaign);
    jobs_tell(jobs, entry->name, "ends");
}

/* ---- looking at the directory ---- */

static struct entry *find_entry(struct jobs *jobs, const char *name) {
    for (struct entry *entry = jobs->entries; entry != NULL; entry = entry->next) {
        if (strcmp(entry->name, name) == 0) {
            return entry;
        }
    }
    struct entry *entry = calloc(1, sizeof *entry);
    if (entry != NULL) {
        snprintf(entry->name, sizeof entry->name, "%s", name);
        entry->next = jobs->entries;
        pthread_rwlock_wrlock(&jobs->lock);
        jobs->entries = entry;
        pthread_rwlock_unlock(&jobs->lock);
    }
    return entry;
}

static void see(struct jobs *jobs, const struct sight *sight) {
    struct entry *entry = find_entry(jobs, sight->name);
    if (entry == NULL) {
        return;
    }
    entry->is_seen = true;
    bool is_changed =
        sight->changed.tv_sec != entry->changed.tv_sec || sight->changed.tv_nsec != entry->changed.tv_nsec;
    if (entry->is_leaving || !is_changed) {
        return;
    }
    if (entry->is_open) {
        entry->is_leaving = true; /* and begins again with what the file says now */
        crawler_pause(jobs->crawler, &entry->campaign);
        return;
    }
    entry->changed = sight->changed;
    open_entry(jobs, entry);
}

static void see_all(struct jobs *jobs) {
    for (struct entry *entry = jobs->entries; entry != NULL; entry = entry->next) {
        entry->is_seen = false;
    }
    for (const struct sight *sight = jobs->sights; sight != NULL; sight = sight->next) {
        see(jobs, sight);
    }
    for (struct entry *entry = jobs->entries; entry != NULL; entry = entry->next) {
        if (!entry->is_seen && !entry->is_removed) {
            entry->is_leaving = entry->is_removed = true;
            if (entry->is_open) {
                crawler_pause(jobs->crawler, &entry->campaign);
            }
        }
    }
}

/* Close what shall leave and is idle; forget what is removed. */
static void sweep(struct jobs *jobs) {
    struct entry **link = &jobs->entries;
    while (*link != NULL) {
        struct entry *entry = *link;
        if (entry->is_leaving && entry->is_open && crawler_is_idle(jobs->crawler, &entry->campaign)) {
            close_entry(jobs, entry);
        }
        if (!entry->is_leaving || entry->is_open) {
            link = &entry->next;
            continue;
        }
        if (entry->is_removed) {
            add_errand(jobs, NULL, entry->name);
        }
        pthread_rwlock_wrlock(&jobs->lock);
        *link = entry->next; /* a changed one is found again by the next look */
        pthread_rwlock_unlock(&jobs->lock);
        free(entry);
    }
}

/* ---- the next visit ---- */

static void start_due_visits(struct jobs *jobs) {
    int64_t now_us = clock_wall_us(jobs->config.crawler.clock);
    for (struct entry *entry = jobs->entries; entry != NULL; entry = entry->next) {
        struct campaign *campaign = &entry->campaign;
        if (!entry->is_open || entry->is_leaving) {
            continue;
        }
        bool is_due = campaign->state == CAMPAIGN_ENDED &&
                      now_us - campaign->visit_start_us >= (int64_t)campaign->job.period_us;
        bool is_limit_over = campaign->state == CAMPAIGN_LIMITED &&
                             now_us - campaign->visit_start_us >= (int64_t)campaign->job.period_us;
        if (is_due) {
            crawler_start_visit(jobs->crawler, campaign);
            jobs_tell(jobs, entry->name, "begins its next visit");
        } else if (is_limit_over) {
            crawler_resume(jobs->crawler, campaign);
        }
    }
}

static void check_stopped(struct jobs *jobs) {
    for (const struct entry *entry = jobs->entries; entry != NULL; entry = entry->next) {
        if (entry->is_open) {
            return;
        }
    }
    if (!jobs->is_stopped && jobs->errands == NULL) {
        jobs->is_stopped = true;
        jobs->config.stopped(jobs->config.context);
    }
}

/* Back on the loop. */
static void jobs_on_worked(void *context) {
    struct jobs *jobs = context;
    jobs->is_working = false;
    while (jobs->errands != NULL) {
        struct errand *errand = jobs->errands;
        jobs->errands = errand->next;
        if (errand->err != ERR_OK) {
            jobs_tell(jobs, errand->path, err_text(errand->err));
        }
        buf_done(&errand->text);
        free(errand);
    }
    if (!jobs->is_stopping) {
        see_all(jobs);
        start_due_visits(jobs);
    }
    while (jobs->sights != NULL) {
        struct sight *sight = jobs->sights;
        jobs->sights = sight->next;
        free(sight);
    }
}

static void jobs_on_timer(uv_timer_t *timer) {
    struct jobs *jobs = timer->data;
    if (jobs->is_working || jobs->is_stopped) {
        return;
    }
    sweep(jobs);
    bool writes_states = !jobs->is_stopping && ++jobs->ticks_count % STATE_TICKS == 0;
    for (struct entry *entry = jobs->entries; entry != NULL && writes_states; entry = entry->next) {
        if (entry->is_open) {
            add_errand(jobs, &entry->campaign, entry->name);
        }
    }
    if (jobs->is_stopping) {
        check_stopped(jobs);
    }
    if (!jobs->is_stopped) {
        jobs->is_working = pool_try(&jobs->pool, &jobs->work);
    }
}

void jobs_look(struct jobs *jobs) {
    jobs_on_timer(&jobs->timer); /* if one is under way already, the next second sees the rest */
}

const struct crawler *jobs_crawler(const struct jobs *jobs) {
    return jobs->crawler;
}

struct crawler *jobs_engine(struct jobs *jobs) {
    return jobs->crawler;
}

static void on_ended(void *context, struct campaign *campaign) {
    struct jobs *jobs = context;
    if (campaign->tally.patterns_limited_count > 0) {
        jobs_tell(jobs, campaign->name, "a pattern takes too long for some URLs, which then do not match it");
    }
    jobs_tell(jobs, campaign->name, campaign->state == CAMPAIGN_ENDED ? "visit complete" : "limit reached");
}

/* ---- its own life ---- */

enum err jobs_new(const struct jobs_config *config, struct jobs **ret_jobs, struct err_detail *detail) {
    struct jobs *jobs = calloc(1, sizeof *jobs);
    if (jobs == NULL) {
        return ERR_MEMORY;
    }
    jobs->config = *config;
    jobs->config.crawler.ended = on_ended;
    jobs->config.crawler.context = jobs;
    if (jobs->config.crawler.clock == NULL) {
        jobs->config.crawler.clock = &clock_system;
    }
    struct pool_config pool = {
        .name = "jobs-disk",
        .threads_max = 1,
        .priority = config->crawler.gives_way ? PRIORITY_LATER : PRIORITY_USUAL,
    };
    enum err err = pool_start(&jobs->pool, &pool);
    err = err == ERR_OK ? crawler_new(&jobs->config.crawler, &jobs->crawler, detail) : err;
    if (err != ERR_OK) {
        pool_stop(&jobs->pool);
        free(jobs);
        return err;
    }
    pthread_rwlock_init(&jobs->lock, NULL);
    uv_timer_init(&config->crawler.loop->uv, &jobs->timer);
    jobs->timer.data = jobs;
    jobs->work = (struct pool_job){
        .run = jobs_run_errands, .context = jobs, .loop = config->crawler.loop, .done = jobs_on_worked};
    uv_timer_start(&jobs->timer, jobs_on_timer, 0, LOOK_MS);
    *ret_jobs = jobs;
    return ERR_OK;
}

void jobs_stop(struct jobs *jobs) {
    jobs->is_stopping = true;
    for (struct entry *entry = jobs->entries; entry != NULL; entry = entry->next) {
        if (entry->is_open) {
            entry->is_leaving = true;
            crawler_pause(jobs->crawler, &entry->campaign);
        }
    }
    uv_timer_start(&jobs->timer, jobs_on_timer, 0, LOOK_MS / 10);
}

void jobs_hurry(struct jobs *jobs) {
    crawler_cancel(jobs->crawler);
}

static void jobs_on_closed(uv_handle_t *handle) {
    struct jobs *jobs = handle->data;
    while (jobs->entries != NULL) {
        struct entry *entry = jobs->entries;
        jobs->entries = entry->next;
        free(entry);
    }
    pthread_rwlock_destroy(&jobs->lock);
    free(jobs);
}

void jobs_free(struct jobs *jobs) {
    ASSERT(!jobs->is_working);
    pool_stop(&jobs->pool);
    crawler_free(jobs->crawler);
    uv_close((uv_handle_t *)&jobs->timer, jobs_on_closed);
}

/* ---- jobs that a ring shares ---- */

/* The campaign that runs it, or NULL. The loop thread's, or with the lock. */
static struct campaign *find_shared(struct jobs *jobs, const char *name) {
    for (struct entry *entry = jobs->entries; entry != NULL; entry = entry->next) {
        if (entry->is_open && entry->campaign.route != NULL && strcmp(entry->name, name) == 0) {
            return &entry->campaign;
        }
    }
    return NULL;
}

void jobs_recall(struct jobs *jobs) {
    crawler_recall(jobs->crawler);
}

enum err jobs_take_links(struct jobs *jobs, const char *name, const struct frontier_outgoing *links,
                         size_t count, struct crawler_links *ret_outcome) {
    struct campaign *campaign = find_shared(jobs, name);
    if (campaign == NULL) {
        return ERR_NOT_FOUND;
    }
    return crawler_take_links(jobs->crawler, campaign, links, count, ret_outcome);
}

void jobs_when_durable(struct jobs *jobs, const char *name, struct frontier_wait *wait) {
    struct campaign *campaign = find_shared(jobs, name);
    if (campaign == NULL) {
        wait->done(wait, false);
        return;
    }
    frontier_when_durable(campaign->frontier, wait);
}

enum err jobs_read_outgoing(struct jobs *jobs, const char *name,
                            const uint8_t after_position[ROUTE_POSITION_SIZE], struct bytes after_url,
                            struct buf *work, struct frontier_outgoing *ret_links, size_t count_max,
                            size_t *ret_count) {
    pthread_rwlock_rdlock(&jobs->lock);
    struct campaign *campaign = find_shared(jobs, name);
    enum err err = campaign == NULL ? ERR_NOT_FOUND
                                    : frontier_read_outgoing(campaign->frontier, after_position, after_url,
                                                             work, ret_links, count_max, ret_count);
    pthread_rwlock_unlock(&jobs->lock);
    return err;
}

enum err jobs_drop_outgoing(struct jobs *jobs, const char *name, const struct frontier_outgoing *links,
                            size_t count) {
    pthread_rwlock_rdlock(&jobs->lock);
    struct campaign *campaign = find_shared(jobs, name);
    if (campaign != NULL) {
        frontier_drop_outgoing(campaign->frontier, links, count);
    }
    pthread_rwlock_unlock(&jobs->lock);
    return campaign != NULL ? ERR_OK : ERR_NOT_FOUND;
}

static void add_progress(const struct campaign *campaign, struct buf *items, struct buf *texts) {
    const struct tally *tally = &campaign->tally;
    struct frontier_stat stat;
    struct json json;
    size_t from = texts->size;
    frontier_stat(campaign->frontier, &stat);
    json_begin(&json, texts);
    put_progress(campaign, &stat, &json);
    json_end(&json);
    struct job_progress progress = {
        .state = campaign->state,
        .known_count = stat.known_count,
        .waiting_count = stat.waiting_count,
        .stored_count = tally->done_count,
        .failed_count = tally->failed_count,
        .received_size = tally->received_size,
        .text = {.size = texts->size - from},
    };
    snprintf(progress.name, sizeof progress.name, "%s", campaign->name);
    progress.failure_reason = tally->failures_count > 0 ? tally->failures[0].reason : TALLY_NONE;
    buf_put(items, bytes_of(&progress, sizeof progress));
}

void jobs_progress(const struct jobs *jobs, struct buf *items, struct buf *texts) {
    for (const struct entry *entry = jobs->entries; entry != NULL; entry = entry->next) {
        if (entry->is_open) {
            add_progress(&entry->campaign, items, texts);
        }
    }
}
