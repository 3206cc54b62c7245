#include "node/proxy/proxy_jobs.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { HEAD_SIZE_MAX = 128 << 10, ACCEPTS_SIZE_MAX = 1024 };

struct proxy_jobs {
    struct proxy_config config;
    struct loop *loop;
    void (*done)(void *take_job);
    struct pool pool;
    struct proxy_worker *workers[PROXY_THREADS_COUNT]; /* by seat */
    atomic_size_t keeps_count;                         /* that wait */
};

/* ---- jobs ---- */

struct proxy_job *proxy_job_new(const struct proxy_config *config, enum proxy_job_kind kind,
                                struct bytes url) {
    struct proxy_job *job = calloc(1, sizeof *job);
    if (job == NULL) {
        return NULL;
    }
    job->kind = kind;
    buf_init(&job->url, URL_SIZE_MAX);
    buf_init(&job->head, HEAD_SIZE_MAX);
    buf_init(&job->accepts, ACCEPTS_SIZE_MAX);
    scratch_init(&job->body, config->directory, PROXY_JOBS_MEMORY_MAX,
                 kind == PROXY_JOB_KEEP ? PROXY_JOBS_BODY_SIZE_MAX : VOLUME_DOCUMENT_SIZE_MAX);
    if (buf_put(&job->url, url) != ERR_OK) {
        proxy_job_free(job);
        return NULL;
    }
    return job;
}

void proxy_job_free(struct proxy_job *job) {
    if (job != NULL) {
        buf_done(&job->url);
        buf_done(&job->head);
        buf_done(&job->accepts);
        scratch_done(&job->body);
        free(job);
    }
}

/* ---- the pool ---- */

static void proxy_jobs_look(void *context, size_t seat) {
    struct proxy_job *job = context;
    proxy_worker_look(job->jobs->workers[seat], job);
}

static void proxy_jobs_keep(void *context, size_t seat) {
    struct proxy_job *job = context;
    atomic_fetch_sub(&job->jobs->keeps_count, 1);
    proxy_worker_keep(job->jobs->workers[seat], job);
    proxy_job_free(job);
}

/* It was not even begun. */
static void proxy_jobs_give_up(void *context) {
    struct proxy_job *job = context;
    if (job->kind == PROXY_JOB_KEEP) {
        proxy_job_free(job);
        return;
    }
    job->job.post = (struct loop_post){.run = job->jobs->done, .context = job};
    bool is_posted = loop_post(job->jobs->loop, &job->job.post);
    ASSERT(is_posted);
}

/* ---- for the proxy ---- */

enum err proxy_jobs_start(const struct proxy_config *config, struct loop *loop, void (*done)(void *take_job),
                          struct proxy_jobs **ret_jobs, struct err_detail *detail) {
    struct pool_config pool = {
        .name = "proxy-job", .threads_max = PROXY_THREADS_COUNT, .cancelled = proxy_jobs_give_up};
    struct proxy_jobs *jobs = calloc(1, sizeof *jobs);
    if (jobs == NULL) {
        return ERR_MEMORY;
    }
    *jobs = (struct proxy_jobs){.config = *config, .loop = loop, .done = done};
    enum err err = ERR_OK;
    for (size_t i = 0; i < PROXY_THREADS_COUNT && err == ERR_OK; i++) {
        jobs->workers[i] = proxy_worker_new(&jobs->config);
        err = jobs->workers[i] != NULL ? ERR_OK : ERR_MEMORY;
    }
    err = err == ERR_OK ? pool_start(&jobs->pool, &pool) : err;
    if (err != ERR_OK) {
        proxy_jobs_free(jobs);
        return err_set(detail, err, "no threads for the proxy: %s", err_text(err));
    }
    *ret_jobs = jobs;
    return ERR_OK;
}

void proxy_jobs_stop(struct proxy_jobs *jobs) {
    pool_stop(&jobs->pool);
}

void proxy_jobs_free(struct proxy_jobs *jobs) {
    for (size_t i = 0; i < PROXY_THREADS_COUNT; i++) {
        proxy_worker_free(jobs->workers[i]);
    }
    free(jobs);
}

void proxy_jobs_put(struct proxy_jobs *jobs, struct proxy_job *job) {
    bool is_keep = job->kind == PROXY_JOB_KEEP;
    job->jobs = jobs;
    job->job = (struct pool_job){
        .run = is_keep ? proxy_jobs_keep : proxy_jobs_look,
        .context = job,
        .is_later = is_keep,
        .loop = is_keep ? NULL : jobs->loop,
        .done = jobs->done,
    };
    if (is_keep && atomic_fetch_add(&jobs->keeps_count, 1) >= PROXY_JOBS_KEEPS_MAX) {
        atomic_fetch_sub(&jobs->keeps_count, 1);
        proxy_jobs_give_up(job);
    } else if (!pool_try(&jobs->pool, &job->job)) {
        proxy_jobs_give_up(job);
    }
}
