#include <errno.h>
#include <stdlib.h>

#include "store/volume_state.h"

enum { TOGETHER_SIZE_MAX = 1 << 20 }; /* of frames that share a write */

/* ---- items ---- */

/* A free item or a new one; NULL where the limit is reached. With the lock. */
static struct volume_item *find_item(struct volume *volume) {
    struct volume_item *item = volume->free_items;
    if (item != NULL) {
        volume->free_items = item->next;
        return item;
    }
    if (volume->items_count == VOLUME_QUEUE_COUNT_MAX) {
        return NULL;
    }
    item = calloc(1, sizeof *item);
    if (item != NULL) {
        buf_init(&item->frames, (size_t)VOLUME_DOCUMENT_SIZE_MAX + (1 << 20));
        buf_init(&item->text, 1 << 20);
        sem_init(&item->is_done, 0, 0);
        volume->items_count++;
    }
    return item;
}

/* How many items are compressed for the segment and not yet committed. With the lock. */
static size_t *taken_count(struct volume *volume, const struct segment *segment) {
    return segment == volume->active ? &volume->active_taken_count : &volume->next_taken_count;
}

struct volume_item *volume_take_item(struct volume *volume) {
    pthread_mutex_lock(&volume->lock);
    struct volume_item *item = NULL;
    while (volume->queue_size > VOLUME_QUEUE_SIZE_MAX || (item = find_item(volume)) == NULL) {
        pthread_cond_wait(&volume->has_room, &volume->lock);
    }
    item->next = NULL;
    item->segment = volume->encoding;
    item->entries_count = 0;
    item->err = ERR_OK;
    item->done = NULL;
    volume->items_taken_count++;
    *taken_count(volume, item->segment) += 1;
    pthread_mutex_unlock(&volume->lock);
    buf_clear(&item->frames);
    buf_clear(&item->text);
    return item;
}

/* With the lock. */
static void put_back(struct volume *volume, struct volume_item *item) {
    item->next = volume->free_items;
    volume->free_items = item;
    volume->items_taken_count--;
    pthread_cond_signal(&volume->has_room);
    if (volume->items_taken_count == 0) {
        pthread_cond_broadcast(&volume->has_done);
    }
}

/* The item no longer keeps its segment from being followed by the next. With the lock. */
static void leave_segment(struct volume *volume, struct volume_item *item) {
    *taken_count(volume, item->segment) -= 1;
    item->segment = NULL;
    pthread_cond_signal(&volume->has_work); /* it may have been the last of the old segment */
}

void volume_free_item(struct volume *volume, struct volume_item *item) {
    /* One huge document must not make the item keep its memory for ever. */
    if (item->frames.capacity > 1 << 20) {
        buf_done(&item->frames);
    }
    pthread_mutex_lock(&volume->lock);
    if (item->segment != NULL) {
        leave_segment(volume, item);
    }
    put_back(volume, item);
    pthread_mutex_unlock(&volume->lock);
}

void volume_queue_item(struct volume *volume, struct volume_item *item) {
    pthread_mutex_lock(&volume->lock);
    item->next = NULL;
    if (volume->queue_last == NULL) {
        volume->queue_first = item;
    } else {
        volume->queue_last->next = item;
    }
    volume->queue_last = item;
    volume->queue_size += item->frames.size;
    pthread_cond_signal(&volume->has_work);
    pthread_mutex_unlock(&volume->lock);
}

void volume_await_item(struct volume *volume, struct volume_item *item) {
    (void)volume;
    while (sem_wait(&item->is_done) != 0) {
        ASSERT(errno == EINTR);
    }
}

void volume_drain(struct volume *volume) {
    pthread_mutex_lock(&volume->lock);
    while (volume->items_taken_count > 0) {
        pthread_cond_wait(&volume->has_done, &volume->lock);
    }
    pthread_mutex_unlock(&volume->lock);
}

/* ---- one group ---- */

/* All queued items of the active segment, in their order. With the lock. */
static struct volume_item *take_group(struct volume *volume) {
    struct volume_item *group = NULL;
    struct volume_item **group_end = &group;
    struct volume_item **link = &volume->queue_first;
    volume->queue_last = NULL;
    while (*link != NULL) {
        struct volume_item *item = *link;
        if (item->segment == volume->active) {
            *link = item->next;
            item->next = NULL;
            *group_end = item;
            group_end = &item->next;
            volume->queue_size -= item->frames.size;
        } else {
            volume->queue_last = item;
            link = &item->next;
        }
    }
    return group;
}

/*
 * Is what the writer found still so? Between its look and now another document may have become durable or
 * been removed. ERR_BUSY: look again. Where two writers brought the same document at once, both records stay;
 * the later one counts, as it does when the index is rebuilt.
 */
static enum err check_expectation(struct volume *volume, const struct volume_item *item) {
    const struct ledger_entry *entry = &item->entries[0];
    struct block block;
    enum err err = ledger_find(&volume->ledger, entry->signature, entry->number, &block);
    if (err != ERR_OK && err != ERR_NOT_FOUND) {
        return err;
    }
    bool is_live = err == ERR_OK && block.references > 0;
    if (!item->expects_new) {
        return is_live ? ERR_OK : ERR_BUSY;
    }
    bool is_twin = item->accepts_twin && is_live && block.size == entry->size;
    return err == ERR_NOT_FOUND || is_twin ? ERR_OK : ERR_BUSY;
}

static enum err enter_item(struct volume *volume, struct volume_item *item, uint64_t offset) {
    enum err err = check_expectation(volume, item);
    for (size_t i = 0; i < item->entries_count && err == ERR_OK; i++) {
        item->entries[i].location.segment = volume->active->number;
        item->entries[i].location.offset += offset;
        err = ledger_apply(&volume->ledger, &item->entries[i]);
    }
    return err;
}

static enum err write_together(struct segment *segment, struct buf *together, uint64_t *written) {
    enum err err = vfs_write(&segment->file, *written, buf_bytes(together));
    *written += together->size;
    buf_clear(together);
    return err;
}

/*
 * Append the frames of all items that are still good, one after the other, and enter them into the ledger.
 * Small frames travel together, large ones need not be copied for it. *ret_size is the size of the segment
 * then.
 */
static enum err append_group(struct volume *volume, struct volume_item *group, struct buf *together,
                             uint64_t *ret_size) {
    struct segment *segment = volume->active;
    buf_clear(together);
    uint64_t written = segment->size; /* up to here it is in the file */
    enum err err = ERR_OK;
    for (struct volume_item *item = group; item != NULL && err == ERR_OK; item = item->next) {
        item->err = enter_item(volume, item, written + together->size);
        if (item->err != ERR_OK) {
            err = item->err == ERR_BUSY ? ERR_OK : item->err;
            continue;
        }
        item->stored.location = item->entries[0].location;
        if (together->size + item->frames.size > TOGETHER_SIZE_MAX) {
            err = write_together(segment, together, &written);
        }
        if (err == ERR_OK && item->frames.size <= TOGETHER_SIZE_MAX) {
            err = buf_put(together, buf_bytes(&item->frames));
        } else if (err == ERR_OK) {
            err = vfs_write(&segment->file, written, buf_bytes(&item->frames));
            written += item->frames.size;
        }
    }
    if (err == ERR_OK) {
        err = write_together(segment, together, &written);
    }
    *ret_size = written;
    return err;
}

static enum err refuse_when_full(struct volume *volume) {
    uint64_t free_size;
    enum err err = vfs_free_size(volume->config.vfs, volume->config.directory, &free_size);
    if (err != ERR_OK) {
        return err;
    }
    return free_size < volume->config.free_size_min ? ERR_NO_SPACE : ERR_OK;
}

/* Append, sync, index. On failure the segment is as before and nothing of the group is in the index. */
static enum err commit_group(struct volume *volume, struct volume_item *group, struct buf *together) {
    struct segment *segment = volume->active;
    uint64_t size = segment->size;
    enum err err = refuse_when_full(volume);
    if (err == ERR_OK) {
        err = append_group(volume, group, together, &size);
    }
    if (err == ERR_OK && size > segment->size) {
        err = vfs_sync(&segment->file);
    }
    if (err == ERR_OK) {
        struct index_position position = {.segment = segment->number, .offset = size};
        err = ledger_commit(&volume->ledger, &position, NULL);
    }
    if (err == ERR_OK) {
        segment->size = size;
        return ERR_OK;
    }
    ledger_abort(&volume->ledger);
    /* Should the cut fail too, the next group overwrites the rest from the same place. */
    enum err cut = vfs_truncate(&segment->file, segment->size);
    (void)cut;
    return err;
}

/* Tell the writers. Items with a callback are free afterwards, the others when their writer has looked. */
static void finish_group(struct volume *volume, struct volume_item *group, enum err err) {
    for (struct volume_item *item = group; item != NULL; item = item->next) {
        if (item->err == ERR_OK) {
            item->err = err;
        }
        if (item->done != NULL) {
            item->done(item->context, item->err, &item->stored);
        }
    }
    pthread_mutex_lock(&volume->lock);
    for (struct volume_item *item = group; item != NULL; item = item->next) {
        leave_segment(volume, item);
    }
    pthread_mutex_unlock(&volume->lock);
    /* Each writer is woken on its own: woken all at once, they would only queue up for the lock. */
    while (group != NULL) {
        struct volume_item *item = group;
        group = item->next;
        if (item->done == NULL) {
            sem_post(&item->is_done); /* from here on it may be another's */
        } else {
            volume_free_item(volume, item);
        }
    }
}

/* ---- the thread ---- */

/* Begin the next segment when this one is large enough, or when there is a dictionary to begin with at last.
 * Where that fails, this one grows on. */
static void roll_if_due(struct volume *volume, bool is_asked) {
    if (volume->encoding != volume->active) {
        return;
    }
    bool has_new_dictionary = dictionary_train(&volume->dictionary, &volume->dictionary_raw);
    bool is_due = has_new_dictionary || is_asked || volume->active->size >= volume->config.segment_size_max;
    if (!is_due) {
        return;
    }
    struct segment *next;
    if (volume_add_segment(volume, buf_bytes(&volume->dictionary_raw), &next, NULL) != ERR_OK) {
        return;
    }
    pthread_mutex_lock(&volume->lock);
    volume->encoding = next;
    pthread_mutex_unlock(&volume->lock);
}

/* The old segment has no more items to come: go on with the new one. With the lock. */
static bool switch_segment(struct volume *volume) {
    if (volume->encoding == volume->active || volume->active_taken_count > 0) {
        return false;
    }
    volume->active = volume->encoding;
    pthread_cond_broadcast(&volume->has_done);
    volume->active_taken_count = volume->next_taken_count;
    volume->next_taken_count = 0;
    return true;
}

/* Somebody waits in volume_roll(). With the lock, which is given up meanwhile. */
static bool roll_as_asked(struct volume *volume) {
    if (!volume->is_roll_asked) {
        return false;
    }
    pthread_mutex_unlock(&volume->lock);
    roll_if_due(volume, true);
    pthread_mutex_lock(&volume->lock);
    volume->is_roll_asked = false;
    pthread_cond_broadcast(&volume->has_done);
    return true;
}

void volume_roll(struct volume *volume) {
    pthread_mutex_lock(&volume->lock);
    const struct segment *before = volume->active;
    volume->is_roll_asked = true;
    pthread_cond_signal(&volume->has_work);
    while (volume->is_roll_asked || (volume->encoding != volume->active && volume->active == before)) {
        pthread_cond_wait(&volume->has_done, &volume->lock);
    }
    pthread_mutex_unlock(&volume->lock);
}

static void *run_committer(void *context) {
    struct volume *volume = context;
    struct buf together;
    buf_init(&together, TOGETHER_SIZE_MAX);
    pthread_mutex_lock(&volume->lock);
    for (;;) {
        struct volume_item *group = take_group(volume);
        if (group == NULL) {
            if (switch_segment(volume) || roll_as_asked(volume)) {
                continue;
            }
            if (volume->is_stopping && volume->queue_first == NULL) {
                break;
            }
            pthread_cond_wait(&volume->has_work, &volume->lock);
            continue;
        }
        pthread_mutex_unlock(&volume->lock);
        pthread_mutex_lock(&volume->ledger_lock);
        enum err err = commit_group(volume, group, &together);
        pthread_mutex_unlock(&volume->ledger_lock);
        finish_group(volume, group, err);
        roll_if_due(volume, false);
        pthread_mutex_lock(&volume->lock);
    }
    pthread_mutex_unlock(&volume->lock);
    buf_done(&together);
    return NULL;
}

enum err volume_start_committer(struct volume *volume) {
    if (pthread_create(&volume->committer, NULL, run_committer, volume) != 0) {
        return ERR_SYSTEM;
    }
    volume->has_committer = true;
    return ERR_OK;
}

void volume_stop_committer(struct volume *volume) {
    if (volume->has_committer) {
        pthread_mutex_lock(&volume->lock);
        volume->is_stopping = true;
        pthread_cond_signal(&volume->has_work);
        pthread_mutex_unlock(&volume->lock);
        pthread_join(volume->committer, NULL);
        volume->has_committer = false;
    }
    while (volume->free_items != NULL) {
        struct volume_item *item = volume->free_items;
        volume->free_items = item->next;
        buf_done(&item->frames);
        buf_done(&item->text);
        sem_destroy(&item->is_done);
        free(item);
    }
}
