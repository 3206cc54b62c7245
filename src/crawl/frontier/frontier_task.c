#include <stdlib.h>

#include "base/clock.h"
#include "crawl/frontier/frontier_state.h"

static const uint64_t GATHER_US = 100 * 1000; /* a batch waits so long for more: one write for many pages */
static const uint64_t GATHER_WAITED_US = 50 * 1000; /* if somebody waits: well below RTT_TIMEOUT_US_MIN */
static const uint64_t SYNC_US = 1000 * 1000;        /* what a crash of the machine may take */
static const uint64_t TRY_AGAIN_US = 1000 * 1000;

/* What the thread has in hand. */
struct frontier_work {
    struct frontier *frontier;
    struct kv_batch batch;
    bool has_meta; /* it is in the batch */
    bool has_writes;
    struct frontier_meta meta;
    struct frontier_request *requests;
    struct frontier_wait *waits;
    bool is_last;         /* the frontier is being closed */
    bool has_failed;      /* the disk refuses to the end */
    uint64_t write_at_us; /* 0: there is nothing to write */
    uint64_t sync_at_us;  /* 0: all is synced */
};

static uint64_t writer_now_us(void) {
    return clock_monotonic_us(&clock_system);
}

/* ---- errors ---- */

static void writer_set_error(struct frontier *frontier, enum err err, const struct err_detail *detail) {
    pthread_mutex_lock(&frontier->lock);
    bool is_news = frontier->err != err;
    frontier->err = err;
    frontier->detail = *detail;
    bell_ring(&frontier->has_done);
    pthread_mutex_unlock(&frontier->lock);
    if (is_news) {
        frontier_wake(frontier);
    }
}

static void writer_clear_error(struct frontier *frontier) {
    static const struct err_detail none;
    if (frontier->err != ERR_OK) { /* nobody else writes it */
        writer_set_error(frontier, ERR_OK, &none);
    }
}

/* The serial of the newest batch on disk. */
static enum err writer_read_serial(struct frontier *frontier, uint64_t *ret_serial,
                                   struct err_detail *detail) {
    uint8_t key[FRONTIER_CODE_KEY_SIZE_MAX];
    struct frontier_meta meta;
    struct buf value;
    buf_init(&value, FRONTIER_CODE_SMALL_SIZE_MAX);
    enum err err = kv_copy(frontier->kv, 0, frontier_code_name_key(key, 'm', "state"), &value, detail);
    if (err == ERR_OK) {
        err = frontier_code_read_meta(buf_bytes(&value), &meta);
    }
    if (err == ERR_OK) {
        *ret_serial = meta.serial;
    }
    buf_done(&value);
    return err;
}

/* Have the database open. *ret_serial tells how far it has come. */
static enum err writer_reopen(struct frontier *frontier, uint64_t *ret_serial, struct err_detail *detail) {
    enum err err = kv_open(frontier->kv, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = writer_read_serial(frontier, ret_serial, detail);
    if (err == ERR_OK && *ret_serial < frontier->written_serial) {
        err = err_set(detail, ERR_IO, "the disk has lost what it had taken; close the frontier and open it");
    }
    if (err != ERR_OK) {
        kv_close(frontier->kv);
    }
    return err;
}

/*
 * Do the step until it succeeds, opening the database anew in between: it takes nothing more after a
 * write that failed. A batch is not written twice: its serial tells whether it was written after all. When
 * the frontier is being closed, a second failure is the end.
 */
static void writer_persist(struct frontier_work *work,
                           enum err (*step)(struct frontier_work *work, struct err_detail *detail)) {
    struct frontier *frontier = work->frontier;
    for (bool is_again = false; !work->has_failed; is_again = true) {
        struct err_detail detail = {0};
        uint64_t serial = 0;
        bool is_final = is_again && task_is_stopping(&frontier->task);
        enum err err = !kv_is_open(frontier->kv) ? writer_reopen(frontier, &serial, &detail) : ERR_OK;
        if (err == ERR_OK && work->has_writes && serial >= work->meta.serial) {
            work->has_writes = false;
        }
        if (err == ERR_OK) {
            err = step(work, &detail);
        }
        if (err == ERR_OK) {
            writer_clear_error(frontier);
            return;
        }
        err_set(detail.text[0] == '\0' ? &detail : NULL, err, "%s", err_text(err));
        kv_close(frontier->kv);
        writer_set_error(frontier, err, &detail);
        work->has_failed = is_final;
        (void)task_rest(&frontier->task, TRY_AGAIN_US);
    }
}

/* ---- writing ---- */

/* Once for a batch. */
static enum err writer_append_meta(struct frontier_work *work) {
    uint8_t key[FRONTIER_CODE_KEY_SIZE_MAX];
    uint8_t value[FRONTIER_CODE_SMALL_SIZE_MAX];
    if (work->has_meta) {
        return ERR_OK;
    }
    enum err err = kv_batch_reserve(&work->batch, 1, sizeof key + sizeof value);
    if (err == ERR_OK) {
        kv_batch_put(&work->batch, 0, frontier_code_name_key(key, 'm', "state"),
                     frontier_code_meta(value, &work->meta));
        work->has_meta = true;
    }
    return err;
}

static enum err writer_write_step(struct frontier_work *work, struct err_detail *detail) {
    if (!work->has_writes) {
        return ERR_OK; /* it was written after all */
    }
    enum err err = writer_append_meta(work);
    return err == ERR_OK ? kv_write(work->frontier->kv, &work->batch, detail) : err;
}

static void writer_write_batch(struct frontier_work *work) {
    struct frontier *frontier = work->frontier;
    if (!work->has_writes) {
        return;
    }
    work->has_meta = false;
    writer_persist(work, writer_write_step);
    kv_batch_clear(&work->batch);
    work->has_writes = false;
    if (work->has_failed) {
        return;
    }
    work->sync_at_us = work->sync_at_us == 0 ? writer_now_us() + SYNC_US : work->sync_at_us;
    pthread_mutex_lock(&frontier->lock);
    frontier->written_serial = work->meta.serial;
    frontier->writing_size = 0;
    bell_ring(&frontier->has_done);
    pthread_mutex_unlock(&frontier->lock);
    frontier_wake(frontier); /* it may be empty now, or no longer behind */
}

static enum err writer_sync_step(struct frontier_work *work, struct err_detail *detail) {
    return kv_sync(work->frontier->kv, detail);
}

static void writer_sync_if_due(struct frontier_work *work) {
    bool is_now = work->is_last || work->waits != NULL || writer_now_us() >= work->sync_at_us;
    if (work->sync_at_us > 0 && is_now) {
        writer_persist(work, writer_sync_step);
        work->sync_at_us = 0;
    }
}

static void writer_tell(struct frontier_wait *waits, bool is_durable) {
    while (waits != NULL) {
        struct frontier_wait *wait = waits;
        waits = wait->next; /* its memory is its owner's again */
        wait->done(wait, is_durable);
    }
}

static void writer_tell_waits(struct frontier_work *work) {
    struct frontier_wait *waits = work->waits;
    work->waits = NULL;
    writer_tell(waits, !work->has_failed);
}

/* How many URLs of each host wait. */
static enum err writer_append_counts(struct frontier_work *work) {
    struct frontier *frontier = work->frontier;
    uint32_t hosts_count = (uint32_t)frontier_hosts_count(&frontier->hosts);
    uint8_t key[FRONTIER_CODE_KEY_SIZE_MAX];
    uint8_t number[FRONTIER_CODE_SMALL_SIZE_MAX];
    struct buf value;
    buf_init(&value, FRONTIER_CODE_COUNTS_SIZE_MAX);
    for (uint32_t i = 0; i < hosts_count; i++) {
        buf_put(&value, frontier_code_count(number, frontier_hosts_at(&frontier->hosts, i)->waiting_count));
        if ((i + 1) % FRONTIER_CODE_COUNTS_MAX == 0 || i + 1 == hosts_count) {
            if (value.err != ERR_OK) {
                break;
            }
            uint32_t first = i / FRONTIER_CODE_COUNTS_MAX * FRONTIER_CODE_COUNTS_MAX;
            kv_batch_put(&work->batch, 0, frontier_code_host_key(key, 'c', first), buf_bytes(&value));
            buf_clear(&value);
        }
    }
    enum err err = value.err;
    buf_done(&value);
    return err;
}

/* The last word of an orderly end. Without it, what waits is counted when it is opened. */
static enum err writer_mark_clean(struct frontier_work *work, struct err_detail *detail) {
    uint8_t key[FRONTIER_CODE_KEY_SIZE_MAX];
    kv_batch_clear(&work->batch);
    enum err err = writer_append_counts(work);
    kv_batch_put(&work->batch, 0, frontier_code_name_key(key, 'm', "clean"), BYTES("\1"));
    err = err == ERR_OK ? kv_write(work->frontier->kv, &work->batch, detail) : err;
    return err == ERR_OK ? kv_sync(work->frontier->kv, detail) : err;
}

/* ---- reading ---- */

static enum err writer_read_step(struct frontier_work *work, struct err_detail *detail) {
    return frontier_read(work->frontier, work->requests, detail);
}

static void writer_answer(struct frontier *frontier, struct frontier_request *take_request) {
    pthread_mutex_lock(&frontier->lock);
    bool is_first = frontier_request_append(&frontier->answers_first, &frontier->answers_last, take_request);
    pthread_mutex_unlock(&frontier->lock);
    if (is_first) {
        frontier_wake(frontier);
    }
}

static void writer_do_requests(struct frontier_work *work) {
    while (work->requests != NULL) {
        if (!work->is_last) {
            writer_persist(work, writer_read_step);
        }
        struct frontier_request *request = work->requests;
        work->requests = request->next;
        request->next = NULL;
        if (work->is_last || work->has_failed) {
            frontier_request_free(request);
        } else {
            writer_answer(work->frontier, request);
        }
    }
}

/* ---- the task ---- */

/* For how long it waits until there is enough to do. With the lock. */
static uint64_t writer_wait_us(struct frontier_work *work) {
    const struct frontier *frontier = work->frontier;
    uint64_t time_us = writer_now_us();
    bool has_waits = frontier->waits != NULL;
    bool has_work = frontier->writes.count > 0 || frontier->requests_first != NULL || has_waits;
    uint64_t gathered_us = time_us + (has_waits ? GATHER_WAITED_US : GATHER_US);
    if (frontier->is_urgent) {
        return 0;
    }
    if (has_work && (work->write_at_us == 0 || work->write_at_us > gathered_us)) {
        work->write_at_us = gathered_us;
    }
    uint64_t until_us = work->write_at_us > 0 ? work->write_at_us : work->sync_at_us;
    if (until_us == 0) {
        return TASK_FOR_EVER_US;
    }
    return until_us > time_us ? until_us - time_us : 0;
}

/* All that is queued. With the lock. */
static enum err writer_take(struct frontier_work *work) {
    struct frontier *frontier = work->frontier;
    if (frontier->writes.err != ERR_OK) {
        return frontier->writes.err;
    }
    if (frontier->writes.count > 0) {
        struct kv_batch empty = work->batch;
        work->batch = frontier->writes;
        work->has_writes = true;
        work->meta = frontier->meta;
        work->meta.serial = frontier->queued_serial++;
        frontier->writes = empty;
        frontier->writing_size = kv_batch_size(&work->batch);
    }
    work->requests = frontier->requests_first;
    frontier->requests_first = NULL;
    work->waits = frontier->waits;
    frontier->waits = NULL;
    frontier->is_urgent = false;
    work->write_at_us = 0;
    return ERR_OK;
}

static void writer_do_all(struct frontier_work *work) {
    struct frontier *frontier = work->frontier;
    pthread_mutex_lock(&frontier->lock);
    enum err err = writer_take(work);
    pthread_mutex_unlock(&frontier->lock);
    if (err != ERR_OK) {
        /* A change was forgotten for lack of memory. What is on the disk does not contradict itself: as after
         * a crash, the next run goes on from there. */
        work->has_failed = true;
        writer_set_error(frontier, err, &(struct err_detail){0});
        return;
    }
    writer_write_batch(work);
    writer_do_requests(work);
    writer_sync_if_due(work);
    writer_tell_waits(work);
}

static uint64_t writer_run(void *context) {
    struct frontier_work *work = context;
    struct frontier *frontier = work->frontier;
    pthread_mutex_lock(&frontier->lock);
    uint64_t wait_us = work->has_failed ? TASK_FOR_EVER_US : writer_wait_us(work);
    pthread_mutex_unlock(&frontier->lock);
    if (wait_us == 0) {
        writer_do_all(work);
    }
    return wait_us;
}

static void writer_free_work(struct frontier_work *work) {
    kv_batch_done(&work->batch);
    free(work);
}

enum err frontier_task_start(struct frontier *frontier, struct err_detail *detail) {
    struct frontier_work *work = calloc(1, sizeof *work);
    if (work == NULL) {
        return ERR_MEMORY;
    }
    work->frontier = frontier;
    kv_batch_init(&work->batch);
    enum err err = task_start(&frontier->task, "frontier", PRIORITY_USUAL, writer_run, work);
    if (err != ERR_OK) {
        writer_free_work(work);
        return err_set(detail, err, "cannot start a thread: %s", err_text(err));
    }
    frontier->work = work;
    return ERR_OK;
}

/* What is left is done here. */
void frontier_task_stop(struct frontier *frontier) {
    struct frontier_work *work = frontier->work;
    if (work == NULL) {
        return;
    }
    task_stop(&frontier->task);
    work->is_last = true;
    if (!work->has_failed) {
        writer_do_all(work);
    }
    if (!work->has_failed) {
        writer_persist(work, writer_mark_clean);
    }
    writer_tell(frontier->waits, false); /* whom the thread has not taken any more */
    frontier->waits = NULL;
    writer_free_work(work);
    frontier->work = NULL;
}
