#include "node/proxy/proxy_jobs.h"

#include <pthread.h>
#include <stdlib.h>

#include "run/thread.h"

enum { HEAD_SIZE_MAX = 128 << 10, ACCEPTS_SIZE_MAX = 1024 };

struct queue {
    struct proxy_job *first;
    struct proxy_job **end;
    size_t count;
};

struct proxy_jobs {
    struct proxy_config config;
    void (*done)(struct proxy_job *take_job);
    uv_async_t news; /* looks that are over */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct queue looks; /* lock */
    struct queue keeps; /* lock */
    struct queue over;  /* lock */
    bool is_stopping;   /* lock */
    bool is_closed;     /* lock: the loop wants no more news */
    struct proxy_worker *workers[PROXY_THREADS_COUNT];
    pthread_t threads[PROXY_THREADS_COUNT];
    size_t threads_count;
    size_t next_worker; /* lock: of a thread that begins */
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

/* ---- queues ---- */

static void queue_init(struct queue *queue) {
    *queue = (struct queue){.end = &queue->first};
}

static void queue_put(struct queue *queue, struct proxy_job *job) {
    job->next = NULL;
    *queue->end = job;
    queue->end = &job->next;
    queue->count++;
}

static struct proxy_job *queue_take(struct queue *queue) {
    struct proxy_job *job = queue->first;
    if (job != NULL) {
        queue->first = job->next;
        queue->end = queue->first == NULL ? &queue->first : queue->end;
        queue->count--;
    }
    return job;
}

static void queue_done(struct queue *queue) {
    for (struct proxy_job *job = queue_take(queue); job != NULL; job = queue_take(queue)) {
        proxy_job_free(job);
    }
}

/* ---- threads ---- */

static struct proxy_job *await_job(struct proxy_jobs *jobs) {
    pthread_mutex_lock(&jobs->lock);
    struct proxy_job *job = NULL;
    while (!jobs->is_stopping && job == NULL) {
        job = queue_take(&jobs->looks);
        job = job != NULL ? job : queue_take(&jobs->keeps);
        if (job == NULL) {
            pthread_cond_wait(&jobs->wake, &jobs->lock);
        }
    }
    pthread_mutex_unlock(&jobs->lock);
    return job;
}

static void give_back(struct proxy_jobs *jobs, struct proxy_job *job) {
    pthread_mutex_lock(&jobs->lock);
    queue_put(&jobs->over, job);
    if (!jobs->is_closed) {
        uv_async_send(&jobs->news);
    }
    pthread_mutex_unlock(&jobs->lock);
}

static void *work(void *context) {
    struct proxy_jobs *jobs = context;
    pthread_mutex_lock(&jobs->lock);
    struct proxy_worker *worker = jobs->workers[jobs->next_worker++];
    pthread_mutex_unlock(&jobs->lock);
    for (struct proxy_job *job = await_job(jobs); job != NULL; job = await_job(jobs)) {
        if (job->kind == PROXY_JOB_LOOK) {
            proxy_worker_look(worker, job);
            give_back(jobs, job);
        } else {
            proxy_worker_keep(worker, job);
            proxy_job_free(job);
        }
    }
    return NULL;
}

static void on_news(uv_async_t *async) {
    struct proxy_jobs *jobs = async->data;
    for (;;) {
        pthread_mutex_lock(&jobs->lock);
        struct proxy_job *job = queue_take(&jobs->over);
        pthread_mutex_unlock(&jobs->lock);
        if (job == NULL) {
            return;
        }
        jobs->done(job);
    }
}

/* ---- for the proxy ---- */

static enum err start_threads(struct proxy_jobs *jobs, struct err_detail *detail) {
    for (size_t i = 0; i < PROXY_THREADS_COUNT; i++) {
        jobs->workers[i] = proxy_worker_new(&jobs->config);
        if (jobs->workers[i] == NULL) {
            return ERR_MEMORY;
        }
        if (thread_start(&jobs->threads[i], "proxy-job", work, jobs) != 0) {
            return err_set(detail, ERR_SYSTEM, "no thread for the proxy");
        }
        jobs->threads_count++;
    }
    return ERR_OK;
}

enum err proxy_jobs_start(const struct proxy_config *config, uv_loop_t *loop,
                          void (*done)(struct proxy_job *take_job), struct proxy_jobs **ret_jobs,
                          struct err_detail *detail) {
    struct proxy_jobs *jobs = calloc(1, sizeof *jobs);
    if (jobs == NULL || uv_async_init(loop, &jobs->news, on_news) != 0) {
        free(jobs);
        return ERR_MEMORY;
    }
    jobs->config = *config;
    jobs->done = done;
    jobs->news.data = jobs;
    queue_init(&jobs->looks);
    queue_init(&jobs->keeps);
    queue_init(&jobs->over);
    pthread_mutex_init(&jobs->lock, NULL);
    pthread_cond_init(&jobs->wake, NULL);
    *ret_jobs = jobs; /* also where it fails: its handle is on the loop */
    return start_threads(jobs, detail);
}

void proxy_jobs_close(struct proxy_jobs *jobs) {
    pthread_mutex_lock(&jobs->lock);
    jobs->is_closed = true;
    pthread_mutex_unlock(&jobs->lock);
    uv_close((uv_handle_t *)&jobs->news, NULL);
}

void proxy_jobs_free(struct proxy_jobs *jobs) {
    pthread_mutex_lock(&jobs->lock);
    ASSERT(jobs->is_closed);
    jobs->is_stopping = true;
    pthread_cond_broadcast(&jobs->wake);
    pthread_mutex_unlock(&jobs->lock);
    for (size_t i = 0; i < jobs->threads_count; i++) {
        pthread_join(jobs->threads[i], NULL);
    }
    for (size_t i = 0; i < PROXY_THREADS_COUNT; i++) {
        proxy_worker_free(jobs->workers[i]);
    }
    queue_done(&jobs->looks);
    queue_done(&jobs->keeps);
    queue_done(&jobs->over);
    pthread_mutex_destroy(&jobs->lock);
    pthread_cond_destroy(&jobs->wake);
    free(jobs);
}

void proxy_jobs_put(struct proxy_jobs *jobs, struct proxy_job *job) {
    pthread_mutex_lock(&jobs->lock);
    bool is_full = job->kind == PROXY_JOB_KEEP && jobs->keeps.count >= PROXY_JOBS_KEEPS_MAX;
    if (!is_full) {
        queue_put(job->kind == PROXY_JOB_LOOK ? &jobs->looks : &jobs->keeps, job);
        pthread_cond_signal(&jobs->wake);
    }
    pthread_mutex_unlock(&jobs->lock);
    if (is_full) {
        proxy_job_free(job);
    }
}
