#include "node/admin/monitor.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "run/task.h"

enum {
    REMOTE_SAMPLES = 15, /* volume servers are asked every so many samples */
    WINDOW_SAMPLES = 5,  /* that a rate looks back */
    WAITING_SIZE_MAX = 4096,
    BEAT_US = 1000000,
    SETTLE_SAMPLES = 30, /* nothing was stored for so many: the index may be put in order */
};

struct monitor {
    struct monitor_config config;
    uint64_t started_us;
    uint64_t samples_count; /* taken so far */
    uint64_t stored_count;  /* documents, when the last one came … */
    uint64_t stored_at;     /* … which was so many samples after the start */
    uint64_t taken_us;      /* the last one */
    struct task task;

    pthread_mutex_t lock;
    struct sample samples[MONITOR_SAMPLES_MAX]; /* lock: a ring, the newest at (kept_count - 1) */
    uint64_t kept_count;                        /* lock: since the start */
    struct sample_volumes volumes;              /* lock */
    struct sample_volumes work;                 /* the task's */
    char waiting[WAITING_SIZE_MAX];             /* lock */
    size_t waiting_size;                        /* lock */
};

static struct sample *sample_at(struct monitor *monitor, uint64_t number) {
    return &monitor->samples[number % MONITOR_SAMPLES_MAX];
}

/* The one that lies so many before the newest, or the oldest. With the lock. */
static struct sample *sample_before(struct monitor *monitor, uint64_t number, uint64_t back) {
    uint64_t oldest =
        monitor->kept_count > MONITOR_SAMPLES_MAX ? monitor->kept_count - MONITOR_SAMPLES_MAX : 0;
    return sample_at(monitor, number >= oldest + back ? number - back : oldest);
}

static void settle(struct monitor *monitor, const struct sample *sample) {
    if (sample->load.documents_count != monitor->stored_count) {
        monitor->stored_count = sample->load.documents_count;
        monitor->stored_at = monitor->samples_count;
    }
    uint64_t since = monitor->samples_count - monitor->stored_at;
    if (since > 0 && since % SETTLE_SAMPLES == 0) {
        instance_settle(monitor->config.sources.instance);
    }
}

static void monitor_take(struct monitor *monitor) {
    struct sample sample;
    struct buf waiting;
    buf_init(&waiting, WAITING_SIZE_MAX);
    sample_take(&monitor->config.sources, monitor->samples_count++ % REMOTE_SAMPLES == 0, &sample,
                &monitor->work);
    settle(monitor, &sample);
    crawl_loop_put_waiting(monitor->config.sources.crawl_loop, &waiting);
    pthread_mutex_lock(&monitor->lock);
    *sample_at(monitor, monitor->kept_count++) = sample;
    monitor->volumes = monitor->work;
    monitor->waiting_size = waiting.size;
    memcpy(monitor->waiting, waiting.size > 0 ? (const char *)waiting.data : "", waiting.size);
    pthread_mutex_unlock(&monitor->lock);
    buf_done(&waiting);
}

static uint64_t monitor_beat(void *context) {
    struct monitor *monitor = context;
    if (monitor->config.beat != NULL) {
        monitor->config.beat(monitor->config.context);
    }
    uint64_t now_us = clock_monotonic_us(monitor->config.sources.clock);
    if (now_us - monitor->taken_us >= MONITOR_STEP_S * UINT64_C(1000000)) {
        monitor->taken_us = now_us;
        monitor_take(monitor);
    }
    return BEAT_US;
}

struct monitor *monitor_new(const struct monitor_config *config) {
    struct monitor *monitor = calloc(1, sizeof *monitor);
    struct instance_session *session = instance_session_new(config->sources.instance);
    if (monitor == NULL || session == NULL) {
        free(monitor);
        instance_session_free(session);
        return NULL;
    }
    monitor->config = *config;
    monitor->config.sources.session = session;
    monitor->started_us = clock_monotonic_us(config->sources.clock);
    pthread_mutex_init(&monitor->lock, NULL);
    monitor->taken_us = monitor->started_us;
    monitor_take(monitor);
    return monitor;
}

enum err monitor_run(struct monitor *monitor, struct http_server *http) {
    pthread_mutex_lock(&monitor->lock);
    monitor->config.sources.http = http;
    pthread_mutex_unlock(&monitor->lock);
    return task_start(&monitor->task, "monitor", PRIORITY_USUAL, monitor_beat, monitor);
}

void monitor_rest(struct monitor *monitor) {
    task_stop(&monitor->task);
}

void monitor_free(struct monitor *monitor) {
    instance_session_free(monitor->config.sources.session);
    pthread_mutex_destroy(&monitor->lock);
    free(monitor);
}

void monitor_hurry(struct monitor *monitor) {
    task_poke(&monitor->task);
}

const struct node_status *monitor_status(struct monitor *monitor, struct arena *arena) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_mutex_lock(&monitor->lock);
    struct status_facts facts = {
        .why =
            {
                .now = sample_at(monitor, monitor->kept_count - 1),
                .before = sample_before(monitor, monitor->kept_count - 1, WINDOW_SAMPLES),
                .volumes = &monitor->volumes,
                .waiting = bytes_of(monitor->waiting, monitor->waiting_size),
                .processors_count = processors > 0 ? (unsigned)processors : 1,
            },
        .title = monitor->config.title,
        .started_us = monitor->started_us,
        .routes = monitor->config.routes,
        .routes_count = monitor->config.sources.routes_count,
        .http = monitor->config.sources.http,
    };
    const struct node_status *status = status_fill(&facts, arena);
    pthread_mutex_unlock(&monitor->lock);
    return status;
}

/* ---- history ---- */

enum series {
    CRAWL_DOCUMENTS,
    CRAWL_BYTES,
    CRAWL_WAITING,
    STORE_DOCUMENTS,
    STORE_SYNC,
    STORE_QUEUE,
    HTTP_REQUESTS,
    HTTP_P99,
    HTTP_BYTES,
    SEARCH_LEFT,
    PROCESS_CPU,
    PROCESS_MEMORY,
    SERIES_COUNT,
};

static const char *const series_names[SERIES_COUNT] = {
    "crawl_documents_per_second", "crawl_bytes_per_second",
    "crawl_urls_waiting",         "store_documents_per_second",
    "store_sync_milliseconds",    "store_queue_percent",
    "http_requests_per_second",   "http_p99_milliseconds",
    "http_bytes_per_second",      "search_left",
    "process_cpu_percent",        "process_memory_bytes",
};

static double value_of(enum series series, const struct sample *now, const struct sample *before) {
    uint64_t groups = now->load.groups_count - before->load.groups_count;
    switch (series) {
    case CRAWL_DOCUMENTS:
        return sample_rate(now, before, now->crawl.done_count, before->crawl.done_count);
    case CRAWL_BYTES:
        return sample_rate(now, before, now->crawl.received_size, before->crawl.received_size);
    case CRAWL_WAITING:
        return (double)now->urls_waiting_count;
    case STORE_DOCUMENTS:
        return sample_rate(now, before, now->load.documents_count, before->load.documents_count);
    case STORE_SYNC:
        return groups > 0 ? (double)(now->load.sync_us - before->load.sync_us) / 1000 / (double)groups : 0;
    case STORE_QUEUE:
        return (double)now->queue_percent;
    case HTTP_REQUESTS:
        return sample_rate(now, before, now->http.requests_count, before->http.requests_count);
    case HTTP_P99:
        return sample_delay_ms(now, before, 990);
    case HTTP_BYTES:
        return sample_rate(now, before, now->http.sent_size, before->http.sent_size);
    case SEARCH_LEFT:
        return (double)now->search.left_count;
    case PROCESS_CPU:
        return sample_rate(now, before, now->cpu_us, before->cpu_us) / 10000;
    case PROCESS_MEMORY:
        return (double)now->memory_size;
    case SERIES_COUNT:
        break;
    }
    return 0;
}

void monitor_put_history(struct monitor *monitor, struct buf *out) {
    struct json json;
    json_begin(&json, out);
    JSON_COUNTS(&json, {"version", 1}, {"step_seconds", MONITOR_STEP_S});
    json_open(&json, "series");
    pthread_mutex_lock(&monitor->lock);
    uint64_t last = monitor->kept_count - 1;
    uint64_t first =
        monitor->kept_count > MONITOR_SAMPLES_MAX ? monitor->kept_count - MONITOR_SAMPLES_MAX : 0;
    for (enum series series = 0; series < SERIES_COUNT; series++) {
        json_open_list(&json, series_names[series]);
        for (uint64_t number = first + 1; number <= last; number++) {
            double value = value_of(series, sample_at(monitor, number), sample_at(monitor, number - 1));
            json_digits(&json, NULL, value, 6);
        }
        json_close(&json);
    }
    pthread_mutex_unlock(&monitor->lock);
    json_end(&json);
}

bool monitor_is_healthy(struct monitor *monitor, struct err_detail *detail) {
    pthread_mutex_lock(&monitor->lock);
    const struct sample *now = sample_at(monitor, monitor->kept_count - 1);
    bool is_healthy = true;
    if (now->writable_count == 0) {
        is_healthy = false;
        err_set(detail, ERR_UNREACHABLE, "no volume takes documents");
        for (size_t i = 0; i < monitor->volumes.count; i++) {
            const struct instance_volume *volume = &monitor->volumes.items[i].volume;
            if (volume->err != ERR_OK) {
                err_set(detail, volume->err, "nothing can be stored: volume %u: %.180s", volume->number,
                        volume->reason);
            }
        }
    } else if (now->load.err != ERR_OK) {
        is_healthy = false;
        err_set(detail, now->load.err, "nothing can be stored: the last commit failed: %s",
                err_text(now->load.err));
    }
    pthread_mutex_unlock(&monitor->lock);
    return is_healthy;
}
