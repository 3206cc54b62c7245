#include <stdlib.h>

#include "crawl/frontier/frontier_state.h"

enum { URGENT_SIZE = 1 << 20 }; /* so much is written at once, less may wait for more */

/* ---- what is to be written ---- */

void frontier_queue_begin(struct frontier *frontier) {
    pthread_mutex_lock(&frontier->lock);
    frontier->is_in_batch = true;
    frontier->size_before = kv_batch_size(&frontier->writes);
}

void frontier_queue_note_size(struct frontier *frontier, size_t size_before) {
    size_t size = kv_batch_size(&frontier->writes);
    bool is_first = size_before == 0 && size > 0;
    bool is_large = size_before < URGENT_SIZE && size >= URGENT_SIZE;
    frontier->is_urgent |= is_large;
    if (is_first || is_large) {
        task_poke(&frontier->task);
    }
}

void frontier_queue_end(struct frontier *frontier) {
    frontier_queue_note_size(frontier, frontier->size_before);
    frontier->is_in_batch = false;
    pthread_mutex_unlock(&frontier->lock);
    if (frontier->has_outgoing) {
        frontier->has_outgoing = false;
        if (frontier->config.outgoing != NULL) {
            frontier->config.outgoing(frontier->config.context);
        }
    }
    if (frontier->is_poll_wanted) {
        frontier_ask_for_poll(frontier);
    }
}

void frontier_queue_put_alone(struct frontier *frontier, struct bytes key, struct bytes value) {
    pthread_mutex_lock(&frontier->lock);
    size_t size_before = kv_batch_size(&frontier->writes);
    frontier_queue_put(frontier, key, value);
    frontier_queue_note_size(frontier, size_before);
    pthread_mutex_unlock(&frontier->lock);
}

void frontier_ask_for_poll(struct frontier *frontier) {
    frontier->is_poll_wanted = frontier->is_in_batch; /* then when the lock is free again */
    if (!frontier->is_in_batch && !frontier->is_poll_asked && frontier->config.wake != NULL) {
        frontier->is_poll_asked = true;
        frontier_wake(frontier);
    }
}

void frontier_queue_put(struct frontier *frontier, struct bytes key, struct bytes value) {
    kv_batch_put(&frontier->writes, 0, key, value);
}

void frontier_queue_put_meta(struct frontier *frontier) {
    uint8_t key[FRONTIER_CODE_KEY_SIZE_MAX];
    uint8_t value[FRONTIER_CODE_SMALL_SIZE_MAX];
    frontier_queue_put(frontier, frontier_code_name_key(key, 'm', "state"),
                       frontier_code_meta(value, &frontier->meta));
}

void frontier_queue_put_waiting(struct frontier *frontier, uint32_t host, uint64_t position,
                                const struct frontier_waiting *waiting) {
    uint8_t key[FRONTIER_CODE_KEY_SIZE_MAX];
    frontier_queue_put(frontier, frontier_code_queue_key(key, host, position),
                       frontier_code_waiting(frontier->value, waiting));
}

void frontier_queue_remove_waiting(struct frontier *frontier, uint32_t host, uint64_t position) {
    uint8_t key[FRONTIER_CODE_KEY_SIZE_MAX];
    kv_batch_remove_once(&frontier->writes, 0, frontier_code_queue_key(key, host, position));
}

void frontier_queue_put_record(struct frontier *frontier, uint64_t fingerprint,
                               const struct frontier_record *record) {
    uint8_t key[FRONTIER_CODE_KEY_SIZE_MAX];
    frontier_queue_put(frontier, frontier_code_url_key(key, 'u', fingerprint),
                       frontier_code_record(frontier->value, record));
}

void frontier_count_waiting(struct frontier *frontier, uint32_t number, int64_t change) {
    struct frontier_host *host = frontier_hosts_at(&frontier->hosts, number);
    ASSERT((int64_t)host->waiting_count + change >= 0);
    host->waiting_count = (uint32_t)((int64_t)host->waiting_count + change);
    frontier->waiting_count = (uint64_t)((int64_t)frontier->waiting_count + change);
}

/* ---- what is to be read ---- */

void frontier_request_free(struct frontier_request *request) {
    while (request != NULL) {
        struct frontier_request *next = request->next;
        for (size_t i = 0; i < request->count; i++) {
            frontier_item_free(request->slots[i].item); /* NULL: it was taken */
        }
        free(request->slots);
        free(request->moves);
        free((uint8_t *)request->name.data);
        free((uint8_t *)request->kept.data);
        free(request);
        request = next;
    }
}

bool frontier_request_append(struct frontier_request **first, struct frontier_request **last,
                             struct frontier_request *take_request) {
    bool is_first = *first == NULL;
    take_request->next = NULL;
    *(is_first ? first : &(*last)->next) = take_request;
    *last = take_request;
    return is_first;
}

void frontier_wake(const struct frontier *frontier) {
    if (frontier->config.wake != NULL) {
        frontier->config.wake(frontier->config.context);
    }
}

static struct frontier_request *queue_new_request(size_t count_max) {
    struct frontier_request *request = calloc(1, sizeof *request);
    if (request == NULL) {
        return NULL;
    }
    request->count_max = count_max;
    request->slots = calloc(count_max, sizeof *request->slots);
    if (request->slots == NULL) {
        frontier_request_free(request);
        return NULL;
    }
    return request;
}

/* What is urgent does not wait for more to write. */
static void queue_ask(struct frontier *frontier, struct frontier_request *take_request, bool is_urgent) {
    pthread_mutex_lock(&frontier->lock);
    bool is_first =
        frontier_request_append(&frontier->requests_first, &frontier->requests_last, take_request);
    if (is_first || (is_urgent && !frontier->is_urgent)) {
        task_poke(&frontier->task);
    }
    frontier->is_urgent |= is_urgent;
    pthread_mutex_unlock(&frontier->lock);
}

void frontier_queue_hurry(struct frontier *frontier) {
    pthread_mutex_lock(&frontier->lock);
    bool is_news = !frontier->is_urgent;
    frontier->is_urgent = true;
    if (is_news) {
        task_poke(&frontier->task);
    }
    pthread_mutex_unlock(&frontier->lock);
}

void frontier_when_durable(struct frontier *frontier, struct frontier_wait *wait) {
    pthread_mutex_lock(&frontier->lock);
    if (frontier->waits == NULL) {
        task_poke(&frontier->task);
    }
    wait->next = frontier->waits;
    frontier->waits = wait;
    pthread_mutex_unlock(&frontier->lock);
}

bool frontier_queue_read_lane(struct frontier *frontier, struct frontier_lane *lane, size_t count_max) {
    ASSERT(lane->window.count < count_max);
    struct frontier_request *request = queue_new_request(count_max - lane->window.count);
    if (request == NULL) {
        return false;
    }
    frontier_window_begin_reading(&lane->window);
    request->lane = lane;
    request->host = lane->host;
    request->from = lane->window.reading_from;
    request->wants_name = lane->name.size == 0;
    request->wants_kept =
        request->wants_name && frontier_hosts_at(&frontier->hosts, lane->host)->has_kept != 0;
    memcpy(request->low, lane->window.low, sizeof request->low);
    queue_ask(frontier, request, !frontier_window_has_any(&lane->window));
    return true;
}

/* Of known URLs, or of links that came later. */
static struct frontier_request *queue_new_moves(size_t count_max) {
    struct frontier_request *request = queue_new_request(count_max);
    if (request == NULL) {
        return NULL;
    }
    request->moves = calloc(count_max, sizeof *request->moves);
    if (request->moves == NULL) {
        frontier_request_free(request);
        return NULL;
    }
    return request;
}

bool frontier_queue_read_visit(struct frontier *frontier, size_t count_max) {
    struct frontier_request *request = queue_new_moves(count_max);
    if (request == NULL) {
        return false;
    }
    request->from = frontier->meta.moved_below;
    request->visit = frontier->meta.visit;
    request->due_before_us = frontier->meta.due_before_us;
    request->is_recall = frontier->meta.is_recalling;
    queue_ask(frontier, request, true);
    return true;
}

bool frontier_queue_read_later(struct frontier *frontier, uint64_t from, size_t count_max) {
    struct frontier_request *request = queue_new_moves(count_max);
    if (request == NULL) {
        return false;
    }
    request->is_later = true;
    request->from = from;
    queue_ask(frontier, request, true);
    return true;
}

/* ---- waiting for the disk ---- */

enum err frontier_queue_flush(struct frontier *frontier, struct err_detail *detail) {
    pthread_mutex_lock(&frontier->lock);
    bool is_any_queued = kv_batch_size(&frontier->writes) > 0;
    uint64_t serial = is_any_queued ? frontier->queued_serial : frontier->queued_serial - 1;
    frontier->is_urgent = true;
    task_poke(&frontier->task);
    while (frontier->written_serial < serial && frontier->err == ERR_OK) {
        (void)bell_await(&frontier->has_done, &frontier->lock, BELL_NEVER_US);
    }
    enum err err = frontier->written_serial < serial ? frontier->err : ERR_OK;
    if (err != ERR_OK && detail != NULL) {
        *detail = frontier->detail;
    }
    pthread_mutex_unlock(&frontier->lock);
    return err;
}

static bool queue_is_behind(const struct frontier *frontier, size_t outgoing_max) {
    struct frontier *shared = (struct frontier *)frontier; /* only for the lock */
    pthread_mutex_lock(&shared->lock);
    bool is_so = kv_batch_size(&frontier->writes) + frontier->writing_size > FRONTIER_BEHIND_SIZE ||
                 frontier->outgoing.count > outgoing_max;
    pthread_mutex_unlock(&shared->lock);
    return is_so;
}

bool frontier_is_behind(const struct frontier *frontier) {
    return queue_is_behind(frontier, FRONTIER_OUTGOING_MANY);
}

bool frontier_is_disk_behind(const struct frontier *frontier) {
    return queue_is_behind(frontier, FRONTIER_OUTGOING_MAX);
}
