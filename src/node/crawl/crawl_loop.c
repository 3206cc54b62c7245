#include "node/crawl/crawl_loop.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "run/loop.h"

enum {
    PATH_SIZE_MAX = 4096,
    GRACE_US = 300000,
    COPY_US = 1000000,
    JOBS_SIZE_MAX = 64 << 20,
    WAITING_SIZE_MAX = 4096,
    WAITING_HOSTS_MAX = 8,
};

/* What another thread wants done on the loop. */
struct errand {
    struct loop_post post;
    struct crawl_loop *crawl_loop;
    void (*run)(void *context, struct jobs *jobs);
    void *context;
};

struct crawl_loop {
    struct crawl_loop_config config;
    char jobs_directory[PATH_SIZE_MAX];
    struct loop loop;
    bool is_ending; /* the owner's */
    struct loop_post stop;
    struct loop_post look;
    struct loop_timer grace;
    struct loop_timer copy;
    uv_check_t turn;
    struct jobs *jobs; /* NULL once they are stopped */
    bool is_changed;   /* since the last copy */

    pthread_mutex_t lock;
    struct crawler_stat stat; /* lock: the copy */
    struct buf jobs_items;    /* lock: likewise, struct job_progress */
    struct buf jobs_texts;    /* lock: likewise */
    struct buf waiting_text;  /* lock: likewise */
};

/* ---- the copy ---- */

static void copy(struct crawl_loop *crawl_loop) {
    if (crawl_loop->jobs == NULL) {
        return;
    }
    const struct crawler *crawler = jobs_crawler(crawl_loop->jobs);
    pthread_mutex_lock(&crawl_loop->lock);
    crawler_stat(crawler, &crawl_loop->stat);
    buf_clear(&crawl_loop->jobs_items);
    buf_clear(&crawl_loop->jobs_texts);
    jobs_progress(crawl_loop->jobs, &crawl_loop->jobs_items, &crawl_loop->jobs_texts);
    buf_clear(&crawl_loop->waiting_text);
    crawler_put_waiting(crawler, WAITING_HOSTS_MAX, &crawl_loop->waiting_text);
    pthread_mutex_unlock(&crawl_loop->lock);
}

static void crawl_loop_on_copy(void *context) {
    struct crawl_loop *crawl_loop = context;
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

size_t crawl_loop_jobs(struct crawl_loop *crawl_loop, struct arena *arena, struct job_progress **ret_jobs) {
    pthread_mutex_lock(&crawl_loop->lock);
    bool is_whole = crawl_loop->jobs_items.err == ERR_OK && crawl_loop->jobs_texts.err == ERR_OK;
    struct job_progress *jobs = arena_take(arena, crawl_loop->jobs_items.size);
    struct bytes texts = arena_copy(arena, buf_bytes(&crawl_loop->jobs_texts));
    size_t count = 0;
    if (is_whole && jobs != NULL && texts.data != NULL) {
        count = crawl_loop->jobs_items.size / sizeof *jobs;
    }
    for (size_t i = 0; i < count; i++) {
        memcpy(&jobs[i], crawl_loop->jobs_items.data + i * sizeof *jobs, sizeof *jobs);
        jobs[i].text.data = texts.data;
        texts = bytes_skip(texts, jobs[i].text.size);
    }
    pthread_mutex_unlock(&crawl_loop->lock);
    *ret_jobs = jobs;
    return count;
}

void crawl_loop_put_waiting(struct crawl_loop *crawl_loop, struct buf *out) {
    pthread_mutex_lock(&crawl_loop->lock);
    buf_put(out, buf_bytes(&crawl_loop->waiting_text));
    pthread_mutex_unlock(&crawl_loop->lock);
}

/* ---- the loop ---- */

static void crawl_loop_on_look(void *context) {
    struct crawl_loop *crawl_loop = context;
    if (crawl_loop->jobs != NULL) {
        jobs_look(crawl_loop->jobs);
    }
}

void crawl_loop_look(struct crawl_loop *crawl_loop) {
    (void)loop_post(&crawl_loop->loop, &crawl_loop->look);
}

static void crawl_loop_run_errand(void *context) {
    struct errand *errand = context;
    errand->run(errand->context, errand->crawl_loop->jobs);
    free(errand);
}

void crawl_loop_post(struct crawl_loop *crawl_loop, void (*run)(void *context, struct jobs *jobs),
                     void *context) {
    struct errand *errand = malloc(sizeof *errand);
    ASSERT(errand != NULL); /* what waits for it would wait for ever */
    *errand = (struct errand){.post = {.run = crawl_loop_run_errand, .context = errand},
                              .crawl_loop = crawl_loop,
                              .run = run,
                              .context = context};
    if (!loop_post(&crawl_loop->loop, &errand->post)) {
        run(context, NULL);
        free(errand);
    }
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

static void on_stopped(void *context) {
    struct crawl_loop *crawl_loop = context;
    if (crawl_loop->config.detach != NULL) {
        crawl_loop->config.detach(crawl_loop->config.shared);
    }
    jobs_free(crawl_loop->jobs);
    crawl_loop->jobs = NULL;
    loop_close(&crawl_loop->loop);
}

/* From within the jobs, which may be half changed: the copy is made when the loop is back. */
static void on_tell(void *context, const char *name, const char *sentence) {
    struct crawl_loop *crawl_loop = context;
    crawl_loop->is_changed = true;
    loop_timer_set(&crawl_loop->copy, 0, COPY_US);
    if (crawl_loop->config.tell != NULL) {
        crawl_loop->config.tell(crawl_loop->config.context, name, sentence);
    }
}

static void crawl_loop_on_grace(void *context) {
    struct crawl_loop *crawl_loop = context;
    jobs_hurry(crawl_loop->jobs);
}

static void crawl_loop_on_stop(void *context) {
    struct crawl_loop *crawl_loop = context;
    loop_timer_set(&crawl_loop->grace, GRACE_US, GRACE_US);
    jobs_stop(crawl_loop->jobs);
}

static void on_turn(uv_check_t *check) {
    (void)check;
    priority_yield();
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
                .frontier_memory_max = config->frontier_memory_max,
                .gives_way = true,
                .route = config->route,
                .permits = config->permits,
                .identity = config->identity,
                .parsers = config->parsers,
                .allows_private_shared = config->allows_private_shared,
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

static void crawl_loop_free(struct crawl_loop *crawl_loop) {
    loop_join(&crawl_loop->loop);
    pthread_mutex_destroy(&crawl_loop->lock);
    buf_done(&crawl_loop->jobs_items);
    buf_done(&crawl_loop->jobs_texts);
    buf_done(&crawl_loop->waiting_text);
    free(crawl_loop);
}

enum err crawl_loop_start(const struct crawl_loop_config *config, struct crawl_loop **ret_crawl_loop,
                          struct err_detail *detail) {
    struct crawl_loop *crawl_loop = calloc(1, sizeof *crawl_loop);
    enum err err = crawl_loop != NULL ? loop_init(&crawl_loop->loop, 0) : ERR_MEMORY;
    if (err != ERR_OK) {
        free(crawl_loop);
        return err;
    }
    crawl_loop->config = *config;
    snprintf(crawl_loop->jobs_directory, sizeof crawl_loop->jobs_directory, "%s/jobs", config->directory);
    buf_init(&crawl_loop->jobs_items, JOBS_SIZE_MAX);
    buf_init(&crawl_loop->jobs_texts, JOBS_SIZE_MAX);
    buf_init(&crawl_loop->waiting_text, WAITING_SIZE_MAX);
    pthread_mutex_init(&crawl_loop->lock, NULL);
    crawl_loop->stop = (struct loop_post){.run = crawl_loop_on_stop, .context = crawl_loop};
    crawl_loop->look = (struct loop_post){.run = crawl_loop_on_look, .context = crawl_loop};
    loop_timer_init(&crawl_loop->loop, &crawl_loop->grace, crawl_loop_on_grace, crawl_loop);
    loop_timer_init(&crawl_loop->loop, &crawl_loop->copy, crawl_loop_on_copy, crawl_loop);
    loop_timer_set(&crawl_loop->copy, COPY_US, COPY_US);
    uv_check_init(&crawl_loop->loop.uv, &crawl_loop->turn);
    uv_check_start(&crawl_loop->turn, on_turn);
    err = open_jobs(crawl_loop, detail);
    if (err != ERR_OK) {
        crawl_loop_free(crawl_loop);
        return err;
    }
    if (config->attach != NULL) {
        config->attach(config->shared, &crawl_loop->loop, jobs_engine(crawl_loop->jobs));
    }
    /* And with it the threads of frontiers, which it starts. */
    if (loop_start(&crawl_loop->loop, "crawl-loop", PRIORITY_LATER) != ERR_OK) {
        on_stopped(crawl_loop);
        crawl_loop_free(crawl_loop);
        return err_set(detail, ERR_SYSTEM, "no thread for the crawl");
    }
    *ret_crawl_loop = crawl_loop;
    return ERR_OK;
}

void crawl_loop_end(struct crawl_loop *crawl_loop) {
    if (!crawl_loop->is_ending) {
        crawl_loop->is_ending = true;
        (void)loop_post(&crawl_loop->loop, &crawl_loop->stop);
    }
}

void crawl_loop_stop(struct crawl_loop *crawl_loop) {
    crawl_loop_end(crawl_loop);
    crawl_loop_free(crawl_loop);
}
