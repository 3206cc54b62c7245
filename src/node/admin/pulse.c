#include "node/admin/pulse.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "run/thread.h"

enum {
    REMOTE_SAMPLES = 15, /* volume servers are asked every so many samples */
    WINDOW_SAMPLES = 5,  /* that a rate looks back */
    WAITING_SIZE_MAX = 4096,
    SETTLE_SAMPLES = 30, /* nothing was stored for so many: the index may be put in order */
};

struct pulse {
    struct pulse_config config;
    uint64_t started_us;
    uint64_t samples_count; /* taken so far */
    uint64_t stored_count;  /* documents, when the last one came … */
    uint64_t stored_at;     /* … which was so many samples after the start */
    pthread_t thread;

    pthread_mutex_t lock;
    pthread_cond_t wakes;
    bool has_thread;
    bool is_hurried;                          /* lock */
    bool is_stopping;                         /* lock */
    struct sample samples[PULSE_SAMPLES_MAX]; /* lock: a ring, the newest at (kept_count - 1) */
    uint64_t kept_count;                      /* lock: since the start */
    struct sample_volumes volumes;            /* lock */
    struct sample_volumes work;               /* the thread's */
    char waiting[WAITING_SIZE_MAX];           /* lock */
    size_t waiting_size;                      /* lock */
};

static struct sample *sample_at(struct pulse *pulse, uint64_t number) {
    return &pulse->samples[number % PULSE_SAMPLES_MAX];
}

/* The one that lies so many before the newest, or the oldest. With the lock. */
static struct sample *sample_before(struct pulse *pulse, uint64_t number, uint64_t back) {
    uint64_t oldest = pulse->kept_count > PULSE_SAMPLES_MAX ? pulse->kept_count - PULSE_SAMPLES_MAX : 0;
    return sample_at(pulse, number >= oldest + back ? number - back : oldest);
}

static void settle(struct pulse *pulse, const struct sample *sample) {
    if (sample->load.documents_count != pulse->stored_count) {
        pulse->stored_count = sample->load.documents_count;
        pulse->stored_at = pulse->samples_count;
    }
    uint64_t since = pulse->samples_count - pulse->stored_at;
    if (since > 0 && since % SETTLE_SAMPLES == 0) {
        instance_settle(pulse->config.sources.instance);
    }
}

static void take(struct pulse *pulse) {
    struct sample sample;
    struct buf waiting;
    buf_init(&waiting, WAITING_SIZE_MAX);
    sample_take(&pulse->config.sources, pulse->samples_count++ % REMOTE_SAMPLES == 0, &sample, &pulse->work);
    settle(pulse, &sample);
    crawl_loop_put_waiting(pulse->config.sources.crawl_loop, &waiting);
    pthread_mutex_lock(&pulse->lock);
    *sample_at(pulse, pulse->kept_count++) = sample;
    pulse->volumes = pulse->work;
    pulse->waiting_size = waiting.size;
    memcpy(pulse->waiting, waiting.size > 0 ? (const char *)waiting.data : "", waiting.size);
    pthread_mutex_unlock(&pulse->lock);
    buf_done(&waiting);
}

/* Until it is hurried, stopped, or a second later. With the lock. */
static void await(struct pulse *pulse) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec++;
    int number = 0;
    while (!pulse->is_hurried && !pulse->is_stopping && number == 0) {
        number = pthread_cond_timedwait(&pulse->wakes, &pulse->lock, &until);
    }
    pulse->is_hurried = false;
}

static void *run(void *context) {
    struct pulse *pulse = context;
    uint64_t taken_us = clock_monotonic_us(pulse->config.sources.clock);
    pthread_mutex_lock(&pulse->lock);
    while (!pulse->is_stopping) {
        await(pulse);
        pthread_mutex_unlock(&pulse->lock);
        if (pulse->config.beat != NULL) {
            pulse->config.beat(pulse->config.context);
        }
        uint64_t now_us = clock_monotonic_us(pulse->config.sources.clock);
        if (now_us - taken_us >= PULSE_STEP_S * UINT64_C(1000000)) {
            taken_us = now_us;
            take(pulse);
        }
        pthread_mutex_lock(&pulse->lock);
    }
    pthread_mutex_unlock(&pulse->lock);
    return NULL;
}

struct pulse *pulse_new(const struct pulse_config *config) {
    struct pulse *pulse = calloc(1, sizeof *pulse);
    struct instance_session *session = instance_session_new(config->sources.instance);
    if (pulse == NULL || session == NULL) {
        free(pulse);
        if (session != NULL) {
            instance_session_free(session);
        }
        return NULL;
    }
    pulse->config = *config;
    pulse->config.sources.session = session;
    pulse->started_us = clock_monotonic_us(config->sources.clock);
    pthread_mutex_init(&pulse->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&pulse->wakes, &attributes);
    pthread_condattr_destroy(&attributes);
    take(pulse);
    return pulse;
}

enum err pulse_run(struct pulse *pulse, struct http_server *http) {
    pthread_mutex_lock(&pulse->lock);
    pulse->config.sources.http = http;
    pthread_mutex_unlock(&pulse->lock);
    pulse->has_thread = thread_start(&pulse->thread, "pulse", run, pulse) == 0;
    return pulse->has_thread ? ERR_OK : ERR_SYSTEM;
}

void pulse_rest(struct pulse *pulse) {
    if (!pulse->has_thread) {
        return;
    }
    pthread_mutex_lock(&pulse->lock);
    pulse->is_stopping = true;
    pthread_cond_signal(&pulse->wakes);
    pthread_mutex_unlock(&pulse->lock);
    pthread_join(pulse->thread, NULL);
    pulse->has_thread = false;
}

void pulse_free(struct pulse *pulse) {
    ASSERT(!pulse->has_thread);
    instance_session_free(pulse->config.sources.session);
    pthread_cond_destroy(&pulse->wakes);
    pthread_mutex_destroy(&pulse->lock);
    free(pulse);
}

void pulse_hurry(struct pulse *pulse) {
    pthread_mutex_lock(&pulse->lock);
    pulse->is_hurried = true;
    pthread_cond_signal(&pulse->wakes);
    pthread_mutex_unlock(&pulse->lock);
}

void pulse_put_status(struct pulse *pulse, struct buf *out) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_mutex_lock(&pulse->lock);
    struct status_facts facts = {
        .why =
            {
                .now = sample_at(pulse, pulse->kept_count - 1),
                .before = sample_before(pulse, pulse->kept_count - 1, WINDOW_SAMPLES),
                .volumes = &pulse->volumes,
                .waiting = bytes_of(pulse->waiting, pulse->waiting_size),
                .processors_count = processors > 0 ? (unsigned)processors : 1,
            },
        .title = pulse->config.title,
        .started_us = pulse->started_us,
        .routes = pulse->config.routes,
        .routes_count = pulse->config.sources.routes_count,
        .http = pulse->config.sources.http,
    };
    status_put(&facts, out);
    pthread_mutex_unlock(&pulse->lock);
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

void pulse_put_history(struct pulse *pulse, struct buf *out) {
    buf_put_format(out, "{\"version\":1,\"step_seconds\":%d,\"series\":{", PULSE_STEP_S);
    pthread_mutex_lock(&pulse->lock);
    uint64_t last = pulse->kept_count - 1;
    uint64_t first = pulse->kept_count > PULSE_SAMPLES_MAX ? pulse->kept_count - PULSE_SAMPLES_MAX : 0;
    for (enum series series = 0; series < SERIES_COUNT; series++) {
        buf_put_format(out, "%s\"%s\":[", series > 0 ? "," : "", series_names[series]);
        for (uint64_t number = first + 1; number <= last; number++) {
            double value = value_of(series, sample_at(pulse, number), sample_at(pulse, number - 1));
            buf_put_format(out, "%s%.6g", number > first + 1 ? "," : "", value);
        }
        buf_put_string(out, "]");
    }
    pthread_mutex_unlock(&pulse->lock);
    buf_put_string(out, "}}");
}

bool pulse_is_healthy(struct pulse *pulse, struct err_detail *detail) {
    pthread_mutex_lock(&pulse->lock);
    const struct sample *now = sample_at(pulse, pulse->kept_count - 1);
    bool is_healthy = true;
    if (now->writable_count == 0) {
        is_healthy = false;
        err_set(detail, ERR_UNREACHABLE, "no volume takes documents");
        for (size_t i = 0; i < pulse->volumes.count; i++) {
            const struct instance_volume *volume = &pulse->volumes.items[i].volume;
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
    pthread_mutex_unlock(&pulse->lock);
    return is_healthy;
}
