#include "node/crawling.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "crawl/jobs.h"

enum { PATH_SIZE_MAX = 4096, GRACE_MS = 3000 };

struct crawling {
    struct crawling_config config;
    char jobs_directory[PATH_SIZE_MAX];
    uv_loop_t loop;
    uv_async_t stop;
    uv_timer_t grace;
    struct jobs *jobs;
    pthread_t thread;
};

static void on_stopped(void *context) {
    struct crawling *crawling = context;
    jobs_free(crawling->jobs);
    uv_close((uv_handle_t *)&crawling->stop, NULL);
    uv_close((uv_handle_t *)&crawling->grace, NULL);
}

static void on_tell(void *context, const char *name, const char *sentence) {
    const struct crawling *crawling = context;
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

static void *run(void *context) {
    struct crawling *crawling = context;
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
    int result = uv_loop_close(&crawling->loop);
    ASSERT(result == 0);
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
    uv_async_init(&crawling->loop, &crawling->stop, on_stop);
    uv_timer_init(&crawling->loop, &crawling->grace);
    crawling->stop.data = crawling->grace.data = crawling;
    enum err err = open_jobs(crawling, detail);
    if (err != ERR_OK) {
        uv_close((uv_handle_t *)&crawling->stop, NULL);
        uv_close((uv_handle_t *)&crawling->grace, NULL);
        close_loop(crawling);
        return err;
    }
    if (pthread_create(&crawling->thread, NULL, run, crawling) != 0) {
        on_stopped(crawling); /* no job has been opened yet */
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
