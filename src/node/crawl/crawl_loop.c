#include "node/crawl/crawl_loop.h"

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

struct crawl_loop {
    struct crawl_loop_config config;
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

static void copy(struct crawl_loop *crawl_loop) {
    if (crawl_loop->jobs == NULL) {
        return;
    }
    const struct crawler *crawler = jobs_crawler(crawl_loop->jobs);
    pthread_mutex_lock(&crawl_loop->lock);
    crawler_stat(crawler, &crawl_loop->stat);
    buf_clear(&crawl_loop->jobs_text);
    jobs_put_json(crawl_loop->jobs, &crawl_loop->jobs_text);
    buf_clear(&crawl_loop->waiting_text);
    crawler_put_waiting(crawler, WAITING_HOSTS_MAX, &crawl_loop->waiting_text);
    pthread_mutex_unlock(&crawl_loop->lock);
}

static void on_copy(uv_timer_t *timer) {
    struct crawl_loop *crawl_loop = timer->data;
    copy(crawl_loop);
    if (crawl_loop->is_changed && crawl_loop->config.changed != NULL) {
        crawl_loop->config.changed(crawl_loop->config.context);
    }
    crawl_loop->is_changed = false;
}

void crawl_loop_stat(struct crawl_loop *crawl_loop, struct crawler_stat *ret_stat) {
    pthread_mutex_lock(&crawl_loop->lock);
    *ret_stat = crawl_loop->stat;
    pthread_mutex_unlock(&crawl_loop->lock);
}

void crawl_loop_put_jobs(struct crawl_loop *crawl_loop, struct buf *out) {
    pthread_mutex_lock(&crawl_loop->lock);
    bool is_whole = crawl_loop->jobs_text.err == ERR_OK && crawl_loop->jobs_text.size > 0;
    buf_put(out, is_whole ? buf_bytes(&crawl_loop->jobs_text) : BYTES("[]"));
    pthread_mutex_unlock(&crawl_loop->lock);
}

void crawl_loop_put_waiting(struct crawl_loop *crawl_loop, struct buf *out) {
    pthread_mutex_lock(&crawl_loop->lock);
    buf_put(out, buf_bytes(&crawl_loop->waiting_text));
    pthread_mutex_unlock(&crawl_loop->lock);
}

/* ---- the loop ---- */

static void on_look(uv_async_t *async) {
    struct crawl_loop *crawl_loop = async->data;
    if (crawl_loop->jobs != NULL) {
        jobs_look(crawl_loop->jobs);
    }
}

void crawl_loop_look(struct crawl_loop *crawl_loop) {
    uv_async_send(&crawl_loop->look);
}

static void run_errands(struct crawl_loop *crawl_loop) {
    pthread_mutex_lock(&crawl_loop->lock);
    struct errand *errands = crawl_loop->errands;
    crawl_loop->errands = NULL;
    crawl_loop->errands_end = &crawl_loop->errands;
    pthread_mutex_unlock(&crawl_loop->lock);
    while (errands != NULL) {
        struct errand *next = errands->next;
        errands->run(errands->context, crawl_loop->jobs);
        free(errands);
        errands = next;
    }
}

static void on_errand(uv_async_t *async) {
    run_errands(async->data);
}

void crawl_loop_post(struct crawl_loop *crawl_loop, void (*run)(void *context, struct jobs *jobs),
                     void *context) {
    struct errand *errand = malloc(sizeof *errand);
    ASSERT(errand != NULL); /* what waits for it would wait for ever */
    *errand = (struct errand){.run = run, .context = context};
    pthread_mutex_lock(&crawl_loop->lock);
    *crawl_loop->errands_end = errand;
    crawl_loop->errands_end = &errand->next;
    if (!crawl_loop->is_closed) {
        uv_async_send(&crawl_loop->errand);
    }
    pthread_mutex_unlock(&crawl_loop->lock);
}

enum err crawl_loop_read_outgoing(struct crawl_loop *crawl_loop, const char *job,
                                  const uint8_t after_position[ROUTE_POSITION_SIZE], struct bytes after_url,
                                  struct buf *work, struct frontier_outgoing *ret_links, size_t count_max,
                                  size_t *ret_count) {
    return jobs_read_outgoing(crawl_loop->jobs, job, after_position, after_url, work, ret_links, count_max,
                              ret_count);
}

void crawl_loop_drop_outgoing(struct crawl_loop *crawl_loop, const char *job,
                              const struct frontier_outgoing *links, size_t count) {
    enum err err = jobs_drop_outgoing(crawl_loop->jobs, job, links, count);
    (void)err; /* a job that is gone has none */
}

static void close_handles(struct crawl_loop *crawl_loop) {
    pthread_mutex_lock(&crawl_loop->lock);
    crawl_loop->is_closed = true;
    pthread_mutex_unlock(&crawl_loop->lock);
    uv_close((uv_handle_t *)&crawl_loop->errand, NULL);
    uv_close((uv_handle_t *)&crawl_loop->stop, NULL);
    uv_close((uv_handle_t *)&crawl_loop->look, NULL);
    uv_close((uv_handle_t *)&crawl_loop->grace, NULL);
    uv_close((uv_handle_t *)&crawl_loop->copy, NULL);
    uv_close((uv_handle_t *)&crawl_loop->turn, NULL);
}

static void on_stopped(void *context) {
    struct crawl_loop *crawl_loop = context;
    if (crawl_loop->config.detach != NULL) {
        crawl_loop->config.detach(crawl_loop->config.shared);
    }
    jobs_free(crawl_loop->jobs);
    crawl_loop->jobs = NULL;
    run_errands(crawl_loop);
    close_handles(crawl_loop);
}

/* From within the jobs, which may be half changed: the copy is made when the loop is back. */
static void on_tell(void *context, const char *name, const char *sentence) {
    struct crawl_loop *crawl_loop = context;
    crawl_loop->is_changed = true;
    if (!uv_is_closing((uv_handle_t *)&crawl_loop->copy)) {
        uv_timer_start(&crawl_loop->copy, on_copy, 0, COPY_MS);
    }
    if (crawl_loop->config.tell != NULL) {
        crawl_loop->config.tell(crawl_loop->config.context, name, sentence);
    }
}

static void on_grace(uv_timer_t *timer) {
    struct crawl_loop *crawl_loop = timer->data;
    jobs_hurry(crawl_loop->jobs);
}

static void on_stop(uv_async_t *async) {
    struct crawl_loop *crawl_loop = async->data;
    if (uv_is_active((uv_handle_t *)&crawl_loop->grace)) {
        return;
    }
    uv_timer_start(&crawl_loop->grace, on_grace, GRACE_MS, GRACE_MS);
    jobs_stop(crawl_loop->jobs);
}

static void on_turn(uv_check_t *check) {
    (void)check;
    priority_yield();
}

static void *run(void *context) {
    struct crawl_loop *crawl_loop = context;
    priority_lower(PRIORITY_LATER); /* and with it the threads of frontiers, which it starts */
    uv_run(&crawl_loop->loop, UV_RUN_DEFAULT);
    return NULL;
}

static enum err open_jobs(struct crawl_loop *crawl_loop, struct err_detail *detail) {
    const struct crawl_loop_config *config = &crawl_loop->config;
    struct jobs_config jobs = {
        .directory = crawl_loop->jobs_directory,
        .crawler =
            {
                .loop = &crawl_loop->loop,
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
        .context = crawl_loop,
    };
    return jobs_new(&jobs, &crawl_loop->jobs, detail);
}

/* Nothing but the handles is there yet, or not any more. */
static void close_loop(struct crawl_loop *crawl_loop) {
    uv_run(&crawl_loop->loop, UV_RUN_DEFAULT);
    run_errands(crawl_loop);
    int result = uv_loop_close(&crawl_loop->loop);
    ASSERT(result == 0);
    pthread_mutex_destroy(&crawl_loop->lock);
    buf_done(&crawl_loop->jobs_text);
    buf_done(&crawl_loop->waiting_text);
    free(crawl_loop);
}

enum err crawl_loop_start(const struct crawl_loop_config *config, struct crawl_loop **ret_crawl_loop,
                          struct err_detail *detail) {
    struct crawl_loop *crawl_loop = calloc(1, sizeof *crawl_loop);
    if (crawl_loop == NULL || uv_loop_init(&crawl_loop->loop) != 0) {
        free(crawl_loop);
        return ERR_MEMORY;
    }
    crawl_loop->config = *config;
    snprintf(crawl_loop->jobs_directory, sizeof crawl_loop->jobs_directory, "%s/jobs", config->directory);
    buf_init(&crawl_loop->jobs_text, JOBS_SIZE_MAX);
    buf_init(&crawl_loop->waiting_text, WAITING_SIZE_MAX);
    pthread_mutex_init(&crawl_loop->lock, NULL);
    uv_async_init(&crawl_loop->loop, &crawl_loop->stop, on_stop);
    uv_async_init(&crawl_loop->loop, &crawl_loop->look, on_look);
    uv_async_init(&crawl_loop->loop, &crawl_loop->errand, on_errand);
    crawl_loop->errands_end = &crawl_loop->errands;
    uv_timer_init(&crawl_loop->loop, &crawl_loop->grace);
    uv_timer_init(&crawl_loop->loop, &crawl_loop->copy);
    crawl_loop->stop.data = crawl_loop->look.data = crawl_loop->errand.data = crawl_loop->grace.data =
        crawl_loop->copy.data = crawl_loop;
    uv_timer_start(&crawl_loop->copy, on_copy, COPY_MS, COPY_MS);
    uv_check_init(&crawl_loop->loop, &crawl_loop->turn);
    uv_check_start(&crawl_loop->turn, on_turn);
    enum err err = open_jobs(crawl_loop, detail);
    if (err != ERR_OK) {
        close_handles(crawl_loop);
        close_loop(crawl_loop);
        return err;
    }
    if (config->attach != NULL) {
        config->attach(config->shared, &crawl_loop->loop, jobs_engine(crawl_loop->jobs));
    }
    if (thread_start(&crawl_loop->thread, "crawl-loop", run, crawl_loop) != 0) {
        on_stopped(crawl_loop);
        close_loop(crawl_loop);
        return err_set(detail, ERR_SYSTEM, "no thread for the crawl");
    }
    *ret_crawl_loop = crawl_loop;
    return ERR_OK;
}

void crawl_loop_stop(struct crawl_loop *crawl_loop) {
    uv_async_send(&crawl_loop->stop);
    pthread_join(crawl_loop->thread, NULL);
    close_loop(crawl_loop);
}
