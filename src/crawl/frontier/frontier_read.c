#include <stdlib.h>

#include "crawl/frontier/frontier_state.h"

enum {
    LOOKED_COUNT_MAX = 4096, /* records of a visit in one go: a batch is not kept waiting for long */
    RESEND_VISITS = 8,       /* what stays elsewhere goes out in one visit of so many */
};

/* ---- a lane ---- */

static enum err read_add_waiting(struct frontier_request *request, struct bytes key, struct bytes value) {
    uint32_t host = 0;
    uint64_t position = 0;
    struct frontier_waiting waiting;
    enum err err = frontier_code_read_queue_key(key, &host, &position);
    if (err == ERR_OK) {
        err = frontier_code_read_waiting(value, &waiting);
    }
    if (err != ERR_OK) {
        return err;
    }
    struct frontier_item *item = frontier_item_new(&waiting, position);
    if (item == NULL) {
        return ERR_MEMORY;
    }
    request->slots[request->count++] = (struct frontier_slot){position, item};
    request->end = position + 1;
    return ERR_OK;
}

/* Where the first of the priority can be. */
static uint64_t read_start_of(const struct frontier_request *request, enum frontier_priority priority) {
    uint64_t first = frontier_code_position(priority, 0, 0);
    return request->low[priority] > first ? request->low[priority] : first;
}

/* The priorities from this one on that can be read in one go, since nothing is to be skipped between them. */
static enum frontier_priority read_last_together(const struct frontier_request *request,
                                                 enum frontier_priority priority) {
    while (priority < FRONTIER_GUESS &&
           read_start_of(request, priority + 1) == frontier_code_position(priority + 1, 0, 0)) {
        priority++;
    }
    return priority;
}

/* The waiting ones of some priorities. ERR_NOT_FOUND: that was all of them. */
static enum err read_priorities(struct frontier *frontier, struct frontier_request *request,
                                enum frontier_priority from_priority, enum frontier_priority to_priority,
                                struct err_detail *detail) {
    uint64_t last = frontier_code_position(to_priority, UINT16_MAX, FRONTIER_CODE_SEQUENCE_MAX);
    uint64_t from = read_start_of(request, from_priority);
    uint8_t from_key[FRONTIER_CODE_KEY_SIZE_MAX];
    uint8_t to_key[FRONTIER_CODE_KEY_SIZE_MAX];
    struct kv_iterator iterator;
    from = request->from > from ? request->from : from;
    if (from > last) {
        return ERR_NOT_FOUND;
    }
    enum err err = kv_iterator_init(&iterator, frontier->kv, 0, KV_WALK,
                                    frontier_code_queue_key(from_key, request->host, from),
                                    frontier_code_queue_key(to_key, request->host, last), false);
    if (err != ERR_OK) {
        return err;
    }
    while (err == ERR_OK && request->count < request->count_max) {
        err = kv_iterator_next(&iterator, detail);
        if (err == ERR_OK) {
            err = read_add_waiting(request, iterator.key, iterator.value);
        }
    }
    kv_iterator_done(&iterator);
    return err;
}

static enum err read_name(struct frontier *frontier, struct frontier_request *request,
                          struct err_detail *detail) {
    uint8_t key[FRONTIER_CODE_KEY_SIZE_MAX];
    uint64_t domain = 0;
    struct bytes name;
    struct buf value;
    buf_init(&value, FRONTIER_CODE_RECORD_SIZE_MAX);
    enum err err = kv_copy(frontier->kv, 0, frontier_code_host_key(key, 'h', request->host), &value, detail);
    err = err == ERR_NOT_FOUND ? ERR_CORRUPT : err;
    if (err == ERR_OK) {
        err = frontier_code_read_host(buf_bytes(&value), &domain, &name);
    }
    uint8_t *copy = err == ERR_OK ? malloc(name.size) : NULL;
    if (err == ERR_OK && copy == NULL) {
        err = ERR_MEMORY;
    }
    if (err == ERR_OK) {
        memcpy(copy, name.data, name.size);
        request->name = bytes_of(copy, name.size);
    }
    buf_done(&value);
    return err;
}

/* What the owner keeps with the host. That it is gone, or too large, is no reason to stop. */
static enum err read_kept(struct frontier *frontier, struct frontier_request *request,
                          struct err_detail *detail) {
    uint8_t key[FRONTIER_CODE_KEY_SIZE_MAX];
    struct buf value;
    buf_init(&value, FRONTIER_KEPT_SIZE_MAX);
    enum err err = kv_copy(frontier->kv, 0, frontier_code_host_key(key, 't', request->host), &value, detail);
    if (err == ERR_OK) {
        request->kept = buf_bytes(&value); /* its memory too */
    } else {
        buf_done(&value);
    }
    return err == ERR_NOT_FOUND || err == ERR_LIMIT ? ERR_OK : err;
}

static enum err read_lane(struct frontier *frontier, struct frontier_request *request,
                          struct err_detail *detail) {
    enum err err = ERR_OK;
    if (request->wants_name && request->name.size == 0) {
        err = read_name(frontier, request, detail);
    }
    if (err == ERR_OK && request->wants_kept && request->kept.size == 0) {
        err = read_kept(frontier, request, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    for (enum frontier_priority i = FRONTIER_SEED, last; i <= FRONTIER_GUESS; i = last + 1) {
        last = read_last_together(request, i);
        err = read_priorities(frontier, request, i, last, detail);
        if (err != ERR_NOT_FOUND) {
            return err; /* enough of them, or an error */
        }
    }
    request->end = FRONTIER_CODE_POSITION_END;
    return ERR_OK;
}

/* ---- a visit ---- */

/* Not yet in this visit, and it is time. */
static bool read_is_due(const struct frontier_request *request, const struct frontier_record *record) {
    return record->visit != request->visit &&
           (record->state == FRONTIER_ELSEWHERE || record->due_us < request->due_before_us);
}

/* Does the URL of the record wait already? */
static enum err read_find_waiting(struct frontier *frontier, const struct frontier_record *record,
                                  bool *ret_waits, struct err_detail *detail) {
    uint8_t key[FRONTIER_CODE_KEY_SIZE_MAX];
    struct buf value;
    buf_init(&value, FRONTIER_CODE_RECORD_SIZE_MAX);
    enum err err =
        kv_copy(frontier->kv, 0,
                frontier_code_queue_key(key, record->place.host, frontier_code_record_position(record)),
                &value, detail);
    *ret_waits = err == ERR_OK;
    buf_done(&value);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/* One that is due: what is to be done with it? */
static enum err read_add_due(struct frontier *frontier, struct frontier_request *request,
                             const struct frontier_record *record, uint64_t fingerprint,
                             struct err_detail *detail) {
    const struct frontier_config *config = &frontier->config;
    const struct frontier_position *place = &record->place;
    struct frontier_move move = {.host = place->host};
    bool waits = false;
    move.is_elsewhere =
        config->is_elsewhere != NULL && config->is_elsewhere(config->context, record->url, move.place);
    bool is_resent = !request->is_recall && (fingerprint + request->visit) % RESEND_VISITS == 0;
    if (move.is_elsewhere && record->state == FRONTIER_ELSEWHERE && !is_resent) {
        return ERR_OK; /* as before */
    }
    enum err err = request->is_recall ? read_find_waiting(frontier, record, &waits, detail) : ERR_OK;
    if (err != ERR_OK || waits) {
        return err;
    }
    struct frontier_waiting waiting = {
        .is_doubtful = request->is_recall || record->state == FRONTIER_ELSEWHERE,
        .history = record->history,
        .url = record->url,
    };
    uint64_t position = frontier_code_position(place->priority, place->depth, place->sequence);
    struct frontier_item *item = frontier_item_new(&waiting, position);
    if (item == NULL) {
        return ERR_MEMORY;
    }
    request->moves[request->count] = move;
    request->slots[request->count++] = (struct frontier_slot){position, item};
    return ERR_OK;
}

static enum err read_add_record(struct frontier *frontier, struct frontier_request *request, struct bytes key,
                                struct bytes value, struct err_detail *detail) {
    uint64_t fingerprint = 0;
    struct frontier_record record;
    enum err err = frontier_code_read_url_key(key, 'u', &fingerprint);
    if (err == ERR_OK) {
        err = frontier_code_read_record(value, &record);
    }
    if (err == ERR_OK && read_is_due(request, &record)) {
        err = read_add_due(frontier, request, &record, fingerprint, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    request->looked_count++;
    request->end = fingerprint + 1;
    request->is_last = fingerprint == UINT64_MAX;
    return ERR_OK;
}

static enum err read_visit(struct frontier *frontier, struct frontier_request *request,
                           struct err_detail *detail) {
    uint8_t from_key[FRONTIER_CODE_KEY_SIZE_MAX];
    struct kv_iterator iterator;
    request->looked_count = 0;
    request->end = request->from;
    enum err err = kv_iterator_init(&iterator, frontier->kv, 0, KV_WALK,
                                    frontier_code_url_key(from_key, 'u', request->from), BYTES("v"), false);
    if (err != ERR_OK) {
        return err;
    }
    while (err == ERR_OK && request->count < request->count_max && request->looked_count < LOOKED_COUNT_MAX &&
           !request->is_last) {
        err = kv_iterator_next(&iterator, detail);
        if (err == ERR_OK) {
            err = read_add_record(frontier, request, iterator.key, iterator.value, detail);
        }
    }
    kv_iterator_done(&iterator);
    request->is_last |= err == ERR_NOT_FOUND;
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

enum err frontier_read(struct frontier *frontier, struct frontier_request *request,
                       struct err_detail *detail) {
    enum err err = request->lane != NULL ? read_lane(frontier, request, detail)
                   : request->is_later   ? frontier_later_read(frontier, request, detail)
                                         : read_visit(frontier, request, detail);
    if (err == ERR_OK) {
        return ERR_OK;
    }
    while (request->count > 0) { /* it will be tried again */
        frontier_item_free(request->slots[--request->count].item);
    }
    return err == ERR_CORRUPT ? err_set(detail, err, "the frontier is damaged") : err;
}
