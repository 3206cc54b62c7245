#include "node/rpc/bulk.h"

#include <sodium.h>
#include <stdlib.h>

#include "node/rpc/bulk_state.h"
#include "run/thread.h"

enum { STREAMS_MAX_DEFAULT = 256, HABITS_MAX = 4096, STREAMS_PER_ADDRESS_MAX = 64 };

uint64_t bulk_now_us(const struct bulk *bulk) {
    return clock_monotonic_us(bulk->config.clock);
}

/* ---- the thread ---- */

static void end_late_calls(struct bulk *bulk, uint64_t now_us) {
    struct bulk_line *line = bulk->lines;
    while (line != NULL) {
        line = bulk_line_end_late(line, now_us) ? bulk->lines : line->next;
    }
}

static void on_tick(uv_timer_t *timer) {
    struct bulk *bulk = timer->data;
    uint64_t now_us = bulk_now_us(bulk);
    end_late_calls(bulk, now_us);
    bulk_races_tick(bulk, now_us);
    struct bulk_line *line = bulk->lines;
    while (line != NULL) {
        line = bulk_line_go_on(line, now_us) ? bulk->lines : line->next;
    }
}

static bool needs_ticks(const struct bulk *bulk) {
    bool is_needed = bulk->races != NULL;
    for (const struct bulk_line *line = bulk->lines; line != NULL && !is_needed; line = line->next) {
        is_needed = bulk_line_needs_ticks(line);
    }
    return is_needed;
}

/* Before the loop sleeps: it is woken again only where somebody waits for something. */
static void on_prepare(uv_prepare_t *prepare) {
    struct bulk *bulk = prepare->data;
    bool is_ticking = uv_is_active((uv_handle_t *)&bulk->tick);
    bool is_needed = needs_ticks(bulk);
    if (is_needed && !is_ticking) {
        uv_timer_start(&bulk->tick, on_tick, BULK_TICK_MS, BULK_TICK_MS);
    } else if (!is_needed && is_ticking) {
        uv_timer_stop(&bulk->tick);
    }
}

static void end(struct bulk *bulk) {
    bulk->is_ending = true;
    while (bulk->lines != NULL) {
        bulk_line_end(bulk->lines, ERR_CANCELLED);
    }
    bulk_races_tick(bulk, UINT64_MAX);
    if (bulk->server != NULL) {
        stream_server_free(bulk->server);
        bulk->server = NULL;
    }
    uv_close((uv_handle_t *)&bulk->prepare, NULL);
    uv_close((uv_handle_t *)&bulk->tick, NULL);
    nudge_close(&bulk->nudge);
}

static void on_nudge(void *context) {
    struct bulk *bulk = context;
    pthread_mutex_lock(&bulk->lock);
    struct bulk_job *jobs = bulk->jobs;
    bool is_stopped = bulk->is_stopped;
    bulk->jobs = NULL;
    bulk->jobs_end = &bulk->jobs;
    pthread_mutex_unlock(&bulk->lock);
    while (jobs != NULL) {
        struct bulk_job *next = jobs->next;
        jobs->run(jobs->context);
        free(jobs);
        jobs = next;
    }
    if (is_stopped && !bulk->is_ending) {
        end(bulk);
    }
}

static void *run(void *context) {
    struct bulk *bulk = context;
    uv_run(&bulk->loop, UV_RUN_DEFAULT);
    return NULL;
}

enum err bulk_post(struct bulk *bulk, void (*run_job)(void *context), void *context) {
    struct bulk_job *job = malloc(sizeof *job);
    if (job == NULL) {
        return ERR_MEMORY;
    }
    *job = (struct bulk_job){.run = run_job, .context = context};
    pthread_mutex_lock(&bulk->lock);
    bool is_stopped = bulk->is_stopped;
    if (!is_stopped) {
        bool is_first = bulk->jobs == NULL;
        *bulk->jobs_end = job;
        bulk->jobs_end = &job->next;
        if (is_first) {
            nudge_send(&bulk->nudge); /* within the lock: it is closed only after is_stopped is seen */
        }
    }
    pthread_mutex_unlock(&bulk->lock);
    if (is_stopped) {
        free(job);
        return ERR_CLOSED;
    }
    return ERR_OK;
}

/* ---- life ---- */

static enum err listen_at(struct bulk *bulk, struct err_detail *detail) {
    struct stream_server_config config = {
        .stream = {.loop = &bulk->loop, .identity = bulk->config.identity},
        .address = bulk->config.address,
        .held = bulk->config.held,
        .streams_max = bulk->config.streams_max,
        .streams_per_address_max = STREAMS_PER_ADDRESS_MAX,
        .on_stream = bulk_line_accept,
        .context = bulk,
    };
    return stream_server_new(&config, &bulk->server, detail);
}

enum err bulk_new(const struct bulk_config *config, struct bulk **ret_bulk, struct err_detail *detail) {
    struct bulk *bulk = calloc(1, sizeof *bulk);
    if (bulk == NULL || uv_loop_init(&bulk->loop) != 0) {
        free(bulk);
        return ERR_MEMORY;
    }
    enum err err = nudge_init(&bulk->nudge, &bulk->loop, on_nudge, bulk);
    if (err != ERR_OK) {
        uv_loop_close(&bulk->loop);
        free(bulk);
        return err_set(detail, err, "%s", err_text(err));
    }
    bulk->config = *config;
    bulk->config.clock = config->clock != NULL ? config->clock : &clock_system;
    bulk->config.streams_max = config->streams_max > 0 ? config->streams_max : STREAMS_MAX_DEFAULT;
    bulk->upload.rate = config->upload_rate;
    bulk->download.rate = config->download_rate;
    bulk->reads.rate = config->reads_rate;
    bulk->jobs_end = &bulk->jobs;
    buf_init(&bulk->answer, BULK_ANSWER_SIZE_MAX);
    uint64_t seed;
    randombytes_buf(&seed, sizeof seed);
    map_init(&bulk->habits, PEER_KEY_SIZE, sizeof(struct bulk_habit), HABITS_MAX, seed);
    pthread_mutex_init(&bulk->lock, NULL);
    uv_timer_init(&bulk->loop, &bulk->tick);
    uv_prepare_init(&bulk->loop, &bulk->prepare);
    bulk->tick.data = bulk->prepare.data = bulk;
    uv_prepare_start(&bulk->prepare, on_prepare);
    err = listen_at(bulk, detail);
    if (err != ERR_OK) {
        bulk_free(bulk);
        return err;
    }
    bulk->address = stream_server_address(bulk->server);
    *ret_bulk = bulk;
    return ERR_OK;
}

void bulk_serve(struct bulk *bulk, enum bulk_service service, bulk_handler *handler, void *context) {
    ASSERT(service < BULK_SERVICES_COUNT);
    ASSERT(!bulk->is_running || bulk->services[service].handler == NULL);
    bulk->services[service].context = context;
    bulk->services[service].handler = handler;
}

enum err bulk_start(struct bulk *bulk, struct err_detail *detail) {
    if (thread_start(&bulk->thread, "bulk", run, bulk) != 0) {
        return err_set(detail, ERR_SYSTEM, "no thread for transfers between nodes");
    }
    bulk->is_running = true;
    return ERR_OK;
}

void bulk_stop(struct bulk *bulk) {
    pthread_mutex_lock(&bulk->lock);
    bulk->is_stopped = true;
    nudge_send(&bulk->nudge);
    pthread_mutex_unlock(&bulk->lock);
    if (bulk->is_running) {
        pthread_join(bulk->thread, NULL);
        bulk->is_running = false;
    }
}

void bulk_free(struct bulk *bulk) {
    ASSERT(!bulk->is_running);
    if (!bulk->is_ending) {
        end(bulk);
    }
    uv_run(&bulk->loop, UV_RUN_DEFAULT);
    int result = uv_loop_close(&bulk->loop);
    ASSERT(result == 0);
    while (bulk->jobs != NULL) {
        struct bulk_job *next = bulk->jobs->next;
        free(bulk->jobs);
        bulk->jobs = next;
    }
    pthread_mutex_destroy(&bulk->lock);
    map_done(&bulk->habits);
    buf_done(&bulk->answer);
    free(bulk);
}

/* ---- asking, on the thread ---- */

enum err bulk_start_call(struct bulk *bulk, const struct peer *peer, enum bulk_service service,
                         struct bytes question, uint64_t deadline_us, bulk_done *done, void *context,
                         uint32_t *ret_number) {
    ASSERT(question.size <= BULK_QUESTION_SIZE_MAX);
    if (bulk->is_ending) {
        return ERR_CANCELLED;
    }
    if (memcmp(peer->key, bulk->config.identity->key, PEER_KEY_SIZE) == 0) {
        return ERR_INVALID;
    }
    struct bulk_line *line = bulk_line_find(bulk, peer);
    enum err err = line != NULL ? ERR_OK : bulk_line_connect(bulk, peer, &line);
    if (err == ERR_OK) {
        err = bulk_line_ask(line, service, question, deadline_us, done, context, ret_number);
    }
    pthread_mutex_lock(&bulk->lock);
    bulk->stat.questions_count++;
    bulk->stat.failed_count += err != ERR_OK;
    pthread_mutex_unlock(&bulk->lock);
    return err;
}

enum err bulk_call(struct bulk *bulk, const struct peer *peer, enum bulk_service service,
                   struct bytes question, uint32_t timeout_ms, bulk_done *done, void *context) {
    uint32_t number;
    uint64_t deadline_us = bulk_now_us(bulk) + (uint64_t)timeout_ms * 1000;
    return bulk_start_call(bulk, peer, service, question, deadline_us, done, context, &number);
}

uv_loop_t *bulk_loop(struct bulk *bulk) {
    return &bulk->loop;
}

/* ---- any thread ---- */

void bulk_stat(struct bulk *bulk, struct bulk_stat *ret_stat) {
    pthread_mutex_lock(&bulk->lock);
    *ret_stat = bulk->stat;
    pthread_mutex_unlock(&bulk->lock);
}

struct address bulk_address(const struct bulk *bulk) {
    return bulk->address;
}
