#include <string.h>

#include "crawl/frontier/frontier_state.h"

enum { NOTE_NAME_SIZE_MAX = 32, NOTE_SIZE_MAX = 1 << 20 };

static enum err find_get(struct frontier *frontier, struct bytes key, struct buf *value) {
    return kv_copy(frontier->kv, 0, key, value, NULL);
}

/* What waits at the position, borrowed from work. */
static enum err find_get_waiting(struct frontier *frontier, uint32_t host, uint64_t position,
                                 struct buf *work, struct frontier_waiting *ret_waiting) {
    uint8_t key[FRONTIER_CODE_KEY_SIZE_MAX];
    enum err err = find_get(frontier, frontier_code_queue_key(key, host, position), work);
    return err == ERR_OK ? frontier_code_read_waiting(buf_bytes(work), ret_waiting) : err;
}

static struct frontier_meta find_copy_meta(struct frontier *frontier) {
    pthread_mutex_lock(&frontier->lock);
    struct frontier_meta meta = frontier->meta;
    pthread_mutex_unlock(&frontier->lock);
    return meta;
}

/* One of which nothing is known yet but where it waits. */
static enum err find_new(struct frontier *frontier, uint64_t fingerprint, struct buf *work,
                         struct frontier_entry *entry) {
    uint8_t key[FRONTIER_CODE_KEY_SIZE_MAX];
    struct frontier_position place;
    struct frontier_waiting waiting;
    enum err err = find_get(frontier, frontier_code_url_key(key, 'k', fingerprint), work);
    if (err == ERR_OK) {
        err = frontier_code_read_place(buf_bytes(work), &place);
    }
    if (err != ERR_OK) {
        return err;
    }
    uint64_t position = frontier_code_position(place.priority, place.depth, place.sequence);
    err = find_get_waiting(frontier, place.host, position, work, &waiting);
    if (err != ERR_OK) {
        return err;
    }
    entry->state = FRONTIER_AGAIN;
    entry->is_waiting = true;
    entry->url.url = waiting.url;
    entry->url.depth = place.depth;
    entry->url.priority = place.priority;
    entry->url.is_doubtful = place.sequence < find_copy_meta(frontier).doubtful_below;
    return ERR_OK;
}

/* The visit has not come to it yet, but it will. */
static bool find_is_coming(const struct frontier_meta *meta, const struct frontier_record *record,
                           uint64_t fingerprint) {
    return meta->is_moving && fingerprint >= meta->moved_below && record->visit != meta->visit &&
           record->state != FRONTIER_ELSEWHERE && record->due_us < meta->due_before_us;
}

/* Does the URL of the record wait? The record borrows from another buffer than the one used here. */
static enum err find_waiting(struct frontier *frontier, const struct frontier_record *record,
                             uint64_t fingerprint, struct frontier_entry *entry) {
    struct frontier_meta meta = find_copy_meta(frontier);
    struct buf work;
    struct frontier_waiting waiting;
    uint64_t position = frontier_code_record_position(record);
    buf_init(&work, FRONTIER_CODE_RECORD_SIZE_MAX);
    enum err err = find_get_waiting(frontier, record->place.host, position, &work, &waiting);
    if (err == ERR_OK) {
        entry->is_waiting = true;
        entry->url.is_doubtful =
            waiting.is_doubtful || frontier_code_sequence(position) < meta.doubtful_below;
    }
    entry->is_waiting |= find_is_coming(&meta, record, fingerprint);
    buf_done(&work);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

static enum err find_record(struct frontier *frontier, uint64_t fingerprint, struct buf *work,
                            struct frontier_entry *entry) {
    struct frontier_record record;
    enum err err = frontier_code_read_record(buf_bytes(work), &record);
    if (err != ERR_OK) {
        return err;
    }
    entry->state = record.state;
    entry->reason = record.reason;
    entry->due_us = record.due_us;
    entry->url.url = record.url;
    entry->url.depth = record.place.depth;
    entry->url.priority = record.place.priority;
    entry->url.tries = record.tries;
    entry->url.history = record.history;
    return find_waiting(frontier, &record, fingerprint, entry);
}

enum err frontier_find(struct frontier *frontier, struct bytes url, struct buf *work,
                       struct frontier_entry *ret_entry) {
    uint8_t key[FRONTIER_CODE_KEY_SIZE_MAX];
    uint64_t fingerprint = seen_fingerprint(url, frontier->key);
    struct frontier_entry entry = {0};
    (void)frontier_queue_flush(frontier, NULL); /* what cannot be written now is not found */
    enum err err = find_get(frontier, frontier_code_url_key(key, 'u', fingerprint), work);
    if (err == ERR_OK) {
        err = find_record(frontier, fingerprint, work, &entry);
    } else if (err == ERR_NOT_FOUND) {
        err = find_new(frontier, fingerprint, work, &entry);
    }
    if (err == ERR_OK && !bytes_equal(entry.url.url, url)) {
        err = ERR_NOT_FOUND; /* another of the same fingerprint */
    }
    if (err == ERR_OK) {
        *ret_entry = entry;
    }
    return err;
}

/* ---- notes ---- */

enum err frontier_put_note(struct frontier *frontier, const char *name, struct bytes value) {
    uint8_t key[FRONTIER_CODE_KEY_SIZE_MAX];
    ASSERT(strlen(name) <= NOTE_NAME_SIZE_MAX);
    if (value.size > NOTE_SIZE_MAX) {
        return ERR_LIMIT;
    }
    frontier_queue_put_alone(frontier, frontier_code_name_key(key, 'n', name), value);
    return frontier_queue_flush(frontier, NULL);
}

enum err frontier_get_note(struct frontier *frontier, const char *name, struct buf *value) {
    uint8_t key[FRONTIER_CODE_KEY_SIZE_MAX];
    ASSERT(strlen(name) <= NOTE_NAME_SIZE_MAX);
    (void)frontier_queue_flush(frontier, NULL);
    return find_get(frontier, frontier_code_name_key(key, 'n', name), value);
}
