#include "node/crawl/crawling.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "run/priority.h"
#include "run/thread.h"

enum {
    PATH_SIZE_MAX = 4096,
    GRACE_MS = 3000,
    COPY_MS = 1000,
    JOBS_SIZE_MAX = 64 << 20,
    WAITING_SIZE_MAX = 4096,
    WAITING_HOSTS_MAX = 8,
};

/* What another thread wants done on the loop. */
struct errand {
    struct errand *next;
    void (*run)(void *context, struct jobs *jobs);
    void *context;
};

struct crawling {
    struct crawling_config config;
    char jobs_directory[PATH_SIZE_MAX];
    uv_loop_t loop;
    uv_async_t stop;
    uv_async_t look;
    uv_async_t errand;
    uv_timer_t grace;
    uv_timer_t copy;
    uv_check_t turn;
    struct jobs *jobs; /* NULL once they are stopped */
    bool is_changed;   /* since the last copy */
    pthread_t thread;

    pthread_mutex_t lock;
    struct errand *errands; /* lock; in order */
    struct errand **errands_end;
    struct crawler_stat stat; /* lock: the copy */
    struct buf jobs_text;     /* lock: likewise */
    struct buf waiting_text;  /* lock: likewise */
    bool is_closed;           /* lock: the handles are */
};

/* ---- the copy ---- */

static void copy(struct crawling *crawling) {
    if (crawling->jobs == NULL) {
        return;
    }
    const struct crawler *crawler = jobs_crawler(crawling->jobs);
    pthread_mutex_lock(&crawling->lock);
    crawler_stat(crawler, &crawling->stat);
    buf_clear(&crawling->jobs_text);
    jobs_put_json(crawling->jobs, &crawling->jobs_text);
    buf_clear(&crawling->waiting_text);
    crawler_put_waiting(crawler, WAITING_HOSTS_MAX, &crawling->waiting_text);
    pthread_mutex_unlock(&crawling->lock);
}

static void on_copy(uv_timer_t *timer) {
    struct crawling *crawling = timer->data;
    copy(crawling);
    if (crawling->is_changed && crawling->config.changed != NULL) {
        crawling->config.changed(crawling->config.context);
    }
    crawling->is_changed = false;
}

void crawling_stat(struct crawling *crawling, struct crawler_stat *ret_stat) {
    pthread_mutex_lock(&crawling->lock);
    *ret_stat = crawling->stat;
    pthread_mutex_unlock(&crawling->lock);
}

void crawling_put_jobs(struct crawling *crawling, struct buf *out) {
    pthread_mutex_lock(&crawling->lock);
    bool is_whole = crawling->jobs_text.err == ERR_OK && crawling->jobs_text.size > 0;
    buf_put(out, is_whole ? buf_bytes(&crawling->jobs_text) : BYTES("[]"));
    pthread_mutex_unlock(&crawling->lock);
}

void crawling_put_waiting(struct crawling *crawling, struct buf *out) {
    pthread_mutex_lock(&crawling->lock);
    buf_put(out, buf_bytes(&crawling->waiting_text));
    pthread_mutex_unlock(&crawling->lock);
}

/* ---- the loop ---- */

static void on_look(uv_async_t *async) {
    struct crawling *crawling = async->data;
    if (crawling->jobs != NULL) {
        jobs_look(crawling->jobs);
    }
}

void crawling_look(struct crawling *crawling) {
    uv_async_send(&crawling->look);
}

static void run_errands(struct crawling *crawling) {
    pthread_mutex_lock(&crawling->lock);
    struct errand *errands = crawling->errands;
    crawling->errands = NULL;
    crawling->errands_end = &crawling->errands;
    pthread_mutex_unlock(&crawling->lock);
    while (errands != NULL) {
        struct errand *next = errands->next;
        errands->run(errands->context, crawling->jobs);
        free(errands);
        errands = next;
    }
}

static void on_errand(uv_async_t *async) {
    run_errands(async->data);
}

void crawling_post(struct crawling *crawling, void (*run)(void *context, struct jobs *jobs), void *context) {
    struct errand *errand = malloc(sizeof *errand);
    ASSERT(errand != NULL); /* what waits for it would wait for ever */
    *errand = (struct errand){.run = run, .context = context};
    pthread_mutex_lock(&crawling->lock);
    *crawling->errands_end = errand;
    crawling->errands_end = &errand->next;
    if (!crawling->is_closed) {
        uv_async_send(&crawling->errand);
    }
    pthread_mutex_unlock(&crawling->lock);
}

enum err crawling_read_outgoing(struct crawling *crawling, const char *job,
                                const uint8_t after_place[ROUTE_PLACE_SIZE], struct bytes after_url,
                                struct buf *work, struct frontier_outgoing *ret_links, size_t count_max,
                                size_t *ret_count) {
    return jobs_read_outgoing(crawling->jobs, job, after_place, after_url, work, ret_links, count_max,
                              ret_count);
}

void crawling_drop_outgoing(struct crawling *crawling, const char *job, const struct frontier_outgoing *links,
                            size_t count) {
    enum err err = jobs_drop_outgoing(crawling->jobs, job, links, count);
    (void)err; /* a job that is gone has none */
}

static void close_handles(struct crawling *crawling) {
    pthread_mutex_lock(&crawling->lock);
    crawling->is_closed = true;
    pthread_mutex_unlock(&crawling->lock);
    uv_close((uv_handle_t *)&crawling->errand, NULL);
    uv_close((uv_handle_t *)&crawling->stop, NULL);
    uv_close((uv_handle_t *)&crawling->look, NULL);
    uv_close((uv_handle_t *)&crawling->grace, NULL);
    uv_close((uv_handle_t *)&crawling->copy, NULL);
    uv_close((uv_handle_t *)&crawling->turn, NULL);
}

static void on_stopped(void *context) {
    struct crawling *crawling = context;
    if (crawling->config.detach != NULL) {
        crawling->config.detach(crawling->config.shared);
    }
    jobs_free(crawling->jobs);
    crawling->jobs = NULL;
    run_errands(crawling);
    close_handles(crawling);
}

/* From within the jobs, which may be half changed: the copy is made when the loop is back. */
static void on_tell(void *context, const char *name, const char *sentence) {
    struct crawling *crawling = context;
    crawling->is_changed = true;
    if (!uv_is_closing((uv_handle_t *)&crawling->copy)) {
        uv_timer_start(&crawling->copy, on_copy, 0, COPY_MS);
    }
    if (crawling->config.tell != NULL) {
        crawling->config.tell(crawling->config.context, name, sentence);
    }
}

static void on_grace(uv_timer_t *timer) {
    struct crawling *crawling = timer->data;
    jobs_hurry(crawling->jobs);
}

static void on_stop(uv_async_t *async) {
    struct crawling *crawling = async->data;
    if (uv_is_active((uv_handle_t *)&crawling->grace)) {
        return;
    }
    uv_timer_start(&crawling->grace, on_grace, GRACE_MS, GRACE_MS);
    jobs_stop(crawling->jobs);
}

static void on_turn(uv_check_t *check) {
    (void)check;
    priority_yield();
}

static void *run(void *context) {
    struct crawling *crawling = context;
    priority_lower(PRIORITY_LATER); /* and with it the threads of frontiers, which it starts */
    uv_run(&crawling->loop, UV_RUN_DEFAULT);
    return NULL;
}

static enum err open_jobs(struct crawling *crawling, struct err_detail *detail) {
    const struct crawling_config *config = &crawling->config;
    struct jobs_config jobs = {
        .directory = crawling->jobs_directory,
        .crawler =
            {
                .loop = &crawling->loop,
                .instance = config->instance,
                .clock = config->clock,
                .nameserver = config->nameservers,
                .transfers_max = config->connections_max,
                .gives_way = true,
                .route = config->route,
                .permits = config->permits,
                .identity = config->identity,
                .fetch =
                    {
                        .scratch_directory = config->directory,
                        .user_agent = config->user_agent,
                        .allows_private = config->allows_private,
                    },
            },
        .tell = on_tell,
        .stopped = on_stopped,
        .context = crawling,
    };
    return jobs_new(&jobs, &crawling->jobs, detail);
}

/* Nothing but the handles is there yet, or not any more. */
static void close_loop(struct crawling *crawling) {
    uv_run(&crawling->loop, UV_RUN_DEFAULT);
    run_errands(crawling);
    int result = uv_loop_close(&crawling->loop);
    ASSERT(result == 0);
    pthread_mutex_destroy(&crawling->lock);
    buf_done(&crawling->jobs_text);
    buf_done(&crawling->waiting_text);
    free(crawling);
}

enum err crawling_start(const struct crawling_config *config, struct crawling **ret_crawling,
                        struct err_detail *detail) {
    struct crawling *crawling = calloc(1, sizeof *crawling);
    if (crawling == NULL || uv_loop_init(&crawling->loop) != 0) {
        free(crawling);
        return ERR_MEMORY;
    }
    crawling->config = *config;
    snprintf(crawling->jobs_directory, sizeof crawling->jobs_directory, "%s/jobs", config->directory);
    buf_init(&crawling->jobs_text, JOBS_SIZE_MAX);
    buf_init(&crawling->waiting_text, WAITING_SIZE_MAX);
    pthread_mutex_init(&crawling->lock, NULL);
    uv_async_init(&crawling->loop, &crawling->stop, on_stop);
    uv_async_init(&crawling->loop, &crawling->look, on_look);
    uv_async_init(&crawling->loop, &crawling->errand, on_errand);
    crawling->errands_end = &crawling->errands;
    uv_timer_init(&crawling->loop, &crawling->grace);
    uv_timer_init(&crawling->loop, &crawling->copy);
    crawling->stop.data = crawling->look.data = crawling->errand.data = crawling->grace.data =
        crawling->copy.data = crawling;
    uv_timer_start(&crawling->copy, on_copy, COPY_MS, COPY_MS);
    uv_check_init(&crawling->loop, &crawling->turn);
    uv_check_start(&crawling->turn, on_turn);
    enum err err = open_jobs(crawling, detail);
    if (err != ERR_OK) {
        close_handles(crawling);
        close_loop(crawling);
        return err;
    }
    if (config->attach != NULL) {
        config->attach(config->shared, &crawling->loop, jobs_engine(crawling->jobs));
    }
    if (thread_start(&crawling->thread, "crawl-loop", run, crawling) != 0) {
        on_stopped(crawling);
        close_loop(crawling);
        return err_set(detail, ERR_SYSTEM, "no thread for the crawl");
    }
    *ret_crawling = crawling;
    return ERR_OK;
}

void crawling_stop(struct crawling *crawling) {
    uv_async_send(&crawling->stop);
    pthread_join(crawling->thread, NULL);
    close_loop(crawling);
}
