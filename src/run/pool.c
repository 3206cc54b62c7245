#include "run/pool.h"

#include <stdlib.h>

#include "base/assert.h"
#include "run/thread.h"

/* ---- the queue, with the lock ---- */

static void pool_put(struct pool *pool, struct pool_job *job) {
    struct pool_queue *queue = &pool->queues[job->is_later ? 1 : 0];
    ASSERT(!job->is_waiting);
    job->is_waiting = true;
    job->next = NULL;
    *queue->last = job;
    queue->last = &job->next;
    pool->jobs_count++;
    pthread_cond_signal(&pool->has_work);
}

static struct pool_job *pool_take(struct pool *pool) {
    struct pool_queue *queue = &pool->queues[pool->queues[0].first != NULL ? 0 : 1];
    struct pool_job *job = queue->first;
    if (job != NULL) {
        queue->first = job->next;
        queue->last = job->next == NULL ? &queue->first : queue->last;
        job->is_waiting = false;
        pool->jobs_count--;
    }
    return job;
}

/* ---- the threads ---- */

static void *pool_run(void *context);

/* With the lock. */
static enum err pool_add_thread(struct pool *pool) {
    enum err err = thread_start(&pool->threads[pool->threads_count], pool->config.name, pool_run, pool);
    pool->threads_count += err == ERR_OK;
    return err;
}

static void pool_run_job(struct pool_job *job, size_t seat) {
    struct loop *loop = job->loop; /* without one the job may be gone when it has run */
    job->run(job->context, seat);
    if (loop != NULL) {
        job->post = (struct loop_post){.run = job->done, .context = job->context};
        bool is_posted = loop_post(loop, &job->post);
        ASSERT(is_posted); /* pools are stopped before their loops */
    }
}

static void *pool_run(void *context) {
    struct pool *pool = context;
    pthread_mutex_lock(&pool->lock);
    size_t seat = pool->seats_count++;
    pthread_mutex_unlock(&pool->lock);
    priority_lower(pool->config.priority);
    bool has_run = false; /* since rest() */
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        struct pool_job *job = pool_take(pool);
        if (job == NULL && has_run && pool->config.rest != NULL) {
            pthread_mutex_unlock(&pool->lock);
            pool->config.rest(pool->config.context, seat);
            has_run = false;
            pthread_mutex_lock(&pool->lock);
            continue;
        }
        if (job == NULL && pool->is_stopping) {
            break;
        }
        if (job == NULL) {
            pthread_cond_wait(&pool->has_work, &pool->lock);
            continue;
        }
        bool is_last_idle = ++pool->busy_count == pool->threads_count;
        if (is_last_idle && pool->threads_count < pool->config.threads_max && !pool->is_stopping) {
            (void)pool_add_thread(pool); /* then those that there are do it */
        }
        pthread_mutex_unlock(&pool->lock);
        pool_run_job(job, seat);
        has_run = true;
        if (pool->config.priority != PRIORITY_USUAL) {
            priority_yield();
        }
        pthread_mutex_lock(&pool->lock);
        pool->busy_count--;
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* ---- life ---- */

enum err pool_start(struct pool *pool, const struct pool_config *config) {
    ASSERT(config->threads_max > 0);
    *pool = (struct pool){.config = *config};
    pthread_t *threads = calloc(config->threads_max, sizeof *threads);
    if (threads == NULL) {
        return ERR_MEMORY;
    }
    pool->threads = threads;
    pool->queues[0].last = &pool->queues[0].first;
    pool->queues[1].last = &pool->queues[1].first;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->has_work, NULL);
    pthread_mutex_lock(&pool->lock);
    enum err err = pool_add_thread(pool);
    pthread_mutex_unlock(&pool->lock);
    if (err != ERR_OK) {
        pool_stop(pool);
    }
    return err;
}

/* The lock stays: those who submit from other threads may still come, in vain. */
void pool_stop(struct pool *pool) {
    struct pool_job *cancelled = NULL;
    struct pool_job **end = &cancelled;
    pthread_mutex_lock(&pool->lock);
    pool->is_stopping = true;
    while (pool->config.cancelled != NULL && (*end = pool_take(pool)) != NULL) {
        end = &(*end)->next;
    }
    pthread_cond_broadcast(&pool->has_work);
    pthread_mutex_unlock(&pool->lock);
    for (size_t i = 0; i < pool->threads_count; i++) { /* no more of them from here on */
        pthread_join(pool->threads[i], NULL);
    }
    while (cancelled != NULL) {
        struct pool_job *next = cancelled->next;
        pool->config.cancelled(cancelled->context);
        cancelled = next;
    }
    pthread_mutex_lock(&pool->lock);
    free(pool->threads);
    pool->threads = NULL;
    pool->threads_count = 0;
    pthread_mutex_unlock(&pool->lock);
}

/* ---- jobs ---- */

bool pool_try(struct pool *pool, struct pool_job *job) {
    ASSERT(job->loop == NULL || job->done != NULL);
    pthread_mutex_lock(&pool->lock);
    bool is_full = pool->config.jobs_max > 0 && pool->jobs_count >= pool->config.jobs_max;
    bool is_taken = pool->threads != NULL && !pool->is_stopping && !is_full;
    if (is_taken) {
        pool_put(pool, job);
    }
    pthread_mutex_unlock(&pool->lock);
    return is_taken;
}
