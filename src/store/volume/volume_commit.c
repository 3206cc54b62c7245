#include <stdlib.h>
#include <time.h>

#include "run/thread.h"
#include "store/volume/quota.h"
#include "store/volume/volume_state.h"

enum {
    TOGETHER_SIZE_MAX = 1 << 20, /* of frames that share a write */
    BUDGET_SIZE = 16 << 20,      /* written between two looks at how much is free */
    MEASURE_US = 1000000,        /* between two looks whether room was made */
};

/* The item's block as it is now, all zero if there is none. */
static enum err commit_see_block(struct volume *volume, const struct volume_item *item, bool *ret_is_there,
                                 struct block *ret_block) {
    const struct ledger_entry *entry = &item->entries[0];
    *ret_is_there = true;
    if (ledger_find_change(&volume->ledger, entry->digest, entry->number, ret_block)) {
        return ERR_OK; /* by another item of this group */
    }
    if (changes_has_none(&volume->changes, entry->digest, item->look.generation)) {
        *ret_is_there = item->look.is_there;
        *ret_block = item->look.block;
        return ERR_OK;
    }
    enum err err = index_probe_block(volume->index, entry->digest, entry->number, ret_block);
    if (err == ERR_NOT_FOUND) {
        *ret_is_there = false;
        *ret_block = (struct block){0};
        err = ERR_OK;
    }
    return err;
}

/*
 * Is what the writer found still so? Between its look and now another document may have become durable or
 * been removed. ERR_BUSY: look again. Where two writers brought the same document at once, both records stay;
 * the later one counts, as it does when the index is rebuilt.
 */
static enum err commit_check_expectation(const struct volume_item *item, bool is_there,
                                         const struct block *block) {
    bool is_live = is_there && block->references > 0;
    if (item->look.is_there) {
        return is_live ? ERR_OK : ERR_BUSY;
    }
    bool is_twin = item->accepts_twin && is_live && block->size == item->entries[0].size;
    return !is_there || is_twin ? ERR_OK : ERR_BUSY;
}

static enum err commit_enter_item(struct volume *volume, struct volume_item *item, uint64_t offset) {
    bool is_there;
    struct block block;
    enum err err = commit_see_block(volume, item, &is_there, &block);
    if (err == ERR_OK) {
        err = commit_check_expectation(item, is_there, &block);
    }
    if (err == ERR_OK) {
        err = ledger_check(&volume->ledger, &item->entries[0], &block);
    }
    for (size_t i = 0; i < item->entries_count && err == ERR_OK; i++) {
        item->entries[i].location.segment = volume->active->number;
        item->entries[i].location.offset += offset;
        err = ledger_apply_to(&volume->ledger, &item->entries[i], &block); /* only the first has a block */
    }
    if (err == ERR_OK) {
        /* What it made of its block; a removal may have found nothing to remove. */
        item->look.is_there = ledger_find_change(&volume->ledger, item->entries[0].digest,
                                                 item->entries[0].number, &item->look.block);
    }
    return err;
}

static void commit_note_recent(struct volume *volume, const struct volume_item *item) {
    for (size_t i = 0; i < item->entries_count; i++) {
        recent_add(&volume->recent, &item->entries[i]);
    }
}

/* For duplicates of it. */
static void commit_note_block(struct volume *volume, const struct volume_item *item) {
    const struct ledger_entry *entry = &item->entries[0];
    if (item->look.is_there && entry->number == 0) {
        block_cache_put(volume->blocks, entry->digest, &item->look.block);
    }
    if (entry->kind == LEDGER_ORIGINAL) {
        origins_add(volume->origins, &entry->location, entry->url);
    }
}

/* The group is in the index. */
static void commit_note_changes(struct volume *volume, const struct volume_item *group) {
    for (const struct volume_item *item = group; item != NULL; item = item->next) {
        if (item->err == ERR_OK) {
            changes_note(&volume->changes, item->entries[0].digest);
            commit_note_block(volume, item);
            commit_note_recent(volume, item);
        }
    }
    changes_advance(&volume->changes);
}

static enum err commit_write_together(struct segment *segment, struct buf *together, uint64_t *written) {
    enum err err = vfs_write(&segment->file, *written, buf_bytes(together));
    *written += together->size;
    buf_clear(together);
    return err;
}

static enum err commit_write_large(struct segment *segment, const struct scratch *frames, struct buf *piece,
                                   uint64_t *written) {
    enum err err = buf_reserve(piece, TOGETHER_SIZE_MAX);
    for (uint64_t done = 0; done < frames->size && err == ERR_OK;) {
        uint64_t left = frames->size - done;
        size_t size = left < TOGETHER_SIZE_MAX ? (size_t)left : TOGETHER_SIZE_MAX;
        err = scratch_read(frames, done, piece->data, size);
        if (err == ERR_OK) {
            err = vfs_write(&segment->file, *written, bytes_of(piece->data, size));
        }
        *written += size;
        done += size;
    }
    return err;
}

/* Frames that share no write with others; *written is where they begin, then where they end. */
static enum err commit_write_alone(struct segment *segment, const struct scratch *frames, struct buf *piece,
                                   uint64_t *written) {
    if (!scratch_is_in_memory(frames)) {
        return commit_write_large(segment, frames, piece, written);
    }
    enum err err = vfs_write(&segment->file, *written, buf_bytes(&frames->memory));
    *written += frames->size;
    return err;
}

/* ---- the quota ---- */

/* With the ledger_lock. */
static void commit_measure(struct volume *volume) {
    uint64_t size = quota_measure(volume->config.index_directory);
    pthread_rwlock_rdlock(&volume->segments_lock);
    for (size_t i = 0; i < volume->segments_count; i++) {
        size += volume->segments[i]->size;
    }
    pthread_rwlock_unlock(&volume->segments_lock);
    quota_count(volume->config.quota, &volume->quota_part, size);
    volume->quota_grown_size = 0;
    volume->quota_measured_us = clock_monotonic_us(volume->config.clock);
}

void volume_measure(struct volume *volume) {
    if (quota_is_set(volume->config.quota) && !volume->config.is_mirrored) {
        pthread_mutex_lock(&volume->ledger_lock);
        commit_measure(volume);
        pthread_mutex_unlock(&volume->ledger_lock);
    }
}

/* After what the group appends already? Before one is refused it is looked whether room was made. */
static bool commit_fits(struct volume *volume, const struct volume_item *item, uint64_t appended_size) {
    const struct quota *quota = volume->config.quota;
    enum ledger_kind kind = item->entries[0].kind;
    bool makes_room = kind == LEDGER_DELETION || kind == LEDGER_REMOVAL;
    uint64_t size = appended_size + item->frames.size;
    if (!quota_is_set(quota) || quota_admits(quota, size, makes_room)) {
        return true;
    }
    if (clock_monotonic_us(volume->config.clock) - volume->quota_measured_us > MEASURE_US) {
        commit_measure(volume);
    }
    return quota_admits(quota, size, makes_room);
}

static void commit_count_quota(struct volume *volume, uint64_t size) {
    struct quota *quota = volume->config.quota;
    if (!quota_is_set(quota)) {
        return;
    }
    quota_count(quota, &volume->quota_part, volume->quota_part + size);
    volume->quota_grown_size += size;
    if (volume->quota_grown_size > quota->size_max / QUOTA_STEP) {
        commit_measure(volume);
    }
}

/* ---- a group ---- */

/*
 * Append the frames of all items that are still good, one after the other, and enter them into the ledger.
 * Small frames travel together, large ones need not be copied for it. *ret_size is the size of the segment
 * then.
 */
static enum err commit_append_group(struct volume *volume, struct volume_item *group, struct buf *together,
                                    uint64_t *ret_size) {
    struct segment *segment = volume->active;
    buf_clear(together);
    uint64_t written = segment->size; /* up to here it is in the file */
    enum err err = ERR_OK;
    for (struct volume_item *item = group; item != NULL && err == ERR_OK; item = item->next) {
        if (!commit_fits(volume, item, written + together->size - segment->size)) {
            item->err = ERR_QUOTA;
            continue;
        }
        item->err = commit_enter_item(volume, item, written + together->size);
        if (item->err != ERR_OK) {
            err = item->err == ERR_BUSY ? ERR_OK : item->err;
            continue;
        }
        item->stored.location = item->entries[0].location;
        if (together->size + item->frames.size > TOGETHER_SIZE_MAX) {
            err = commit_write_together(segment, together, &written);
        }
        if (err == ERR_OK && item->frames.size <= TOGETHER_SIZE_MAX) {
            err = buf_put(together, buf_bytes(&item->frames.memory));
        } else if (err == ERR_OK) {
            err = commit_write_alone(segment, &item->frames, together, &written);
        }
    }
    if (err == ERR_OK) {
        err = commit_write_together(segment, together, &written);
    }
    *ret_size = written;
    return err;
}

/* The system is asked once for every BUDGET_SIZE that is written, and as long as the disk is full. */
static enum err commit_refuse_when_full(struct volume *volume) {
    if (volume->free_budget > 0) {
        return ERR_OK;
    }
    uint64_t free_size;
    enum err err = vfs_free_size(volume->config.vfs, volume->config.directory, &free_size);
    if (err != ERR_OK) {
        return err;
    }
    if (free_size < volume->config.free_size_min) {
        return ERR_NO_SPACE;
    }
    uint64_t budget = (free_size - volume->config.free_size_min) / 2;
    volume->free_budget = budget < BUDGET_SIZE ? budget : BUDGET_SIZE;
    return ERR_OK;
}

static void commit_spend_budget(struct volume *volume, uint64_t size) {
    volume->free_budget -= size < volume->free_budget ? size : volume->free_budget;
}

/* Append, sync, index. On failure the segment is as before and nothing of the group is in the index. */
static enum err commit_group(struct volume *volume, struct volume_item *group, struct buf *together) {
    struct segment *segment = volume->active;
    uint64_t size = segment->size;
    enum err err = commit_refuse_when_full(volume);
    if (err == ERR_OK) {
        err = index_mend(volume->index, NULL);
    }
    if (err == ERR_OK) {
        err = commit_append_group(volume, group, together, &size);
    }
    if (err == ERR_OK && size > segment->size) {
        uint64_t start_us = clock_monotonic_us(volume->config.clock);
        err = vfs_sync(&segment->file);
        volume->sync_us = clock_monotonic_us(volume->config.clock) - start_us;
    }
    if (err == ERR_OK) {
        struct index_position position = {.segment = segment->number, .offset = size};
        err = ledger_commit(&volume->ledger, &position, NULL);
    }
    if (err == ERR_OK) {
        commit_note_changes(volume, group);
        uint64_t grown_size = size - segment->size;
        commit_spend_budget(volume, grown_size);
        segment->size = size;
        commit_count_quota(volume, grown_size);
        return ERR_OK;
    }
    ledger_abort(&volume->ledger);
    block_cache_clear(volume->blocks); /* a database that failed may know more when it is mended */
    volume->free_budget = 0;
    /* Should the cut fail too, the next group overwrites the rest from the same place. */
    enum err cut = vfs_truncate(&segment->file, segment->size);
    (void)cut;
    return err;
}

/* ---- the queue ---- */

/* A free item or a new one. With the lock. */
static struct volume_item *commit_find_item(struct volume *volume) {
    struct volume_item *item = volume->free_items;
    if (item != NULL) {
        volume->free_items = item->next;
        return item;
    }
    item = calloc(1, sizeof *item);
    if (item != NULL) {
        scratch_init(&item->frames, volume->config.index_directory, VOLUME_FRAMES_MEMORY_MAX, UINT32_MAX);
        buf_init(&item->text, 1 << 20);
        volume->items_count++;
    }
    return item;
}

/* With the lock. */
static bool commit_has_room(const struct volume *volume) {
    return volume->queue_size <= VOLUME_QUEUE_SIZE_MAX &&
           (volume->free_items != NULL || volume->items_count < VOLUME_QUEUE_COUNT_MAX);
}

/* How many items are compressed for the segment and not yet committed. With the lock. */
static size_t *commit_taken_count(struct volume *volume, const struct segment *segment) {
    return segment == volume->active ? &volume->active_taken_count : &volume->next_taken_count;
}

enum err volume_refuses(const struct volume *volume, struct err_detail *detail) {
    enum err err = volume->refuses;
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "%s", err_text(err));
}

enum err volume_take_item(struct volume *volume, struct volume_item **ret_item, struct err_detail *detail) {
    pthread_mutex_lock(&volume->lock);
    while (!commit_has_room(volume)) {
        pthread_cond_wait(&volume->has_room, &volume->lock);
    }
    struct volume_item *item = commit_find_item(volume);
    if (item == NULL) {
        pthread_mutex_unlock(&volume->lock); /* not to be waited for: there may be no item that comes back */
        return err_set(detail, ERR_MEMORY, "%s", err_text(ERR_MEMORY));
    }
    item->next = NULL;
    item->segment = volume->encoding;
    item->entries_count = 0;
    item->err = ERR_OK;
    item->done = NULL;
    volume->items_taken_count++;
    *commit_taken_count(volume, item->segment) += 1;
    pthread_mutex_unlock(&volume->lock);
    *ret_item = item;
    return ERR_OK;
}

static void commit_destroy_items(struct volume_item *items) {
    while (items != NULL) {
        struct volume_item *item = items;
        items = item->next;
        scratch_done(&item->frames);
        buf_done(&item->text);
        free(item);
    }
}

/* If there are enough it comes to *surplus, to be destroyed without the lock. With the lock. */
static void commit_put_back(struct volume *volume, struct volume_item *item, struct volume_item **surplus) {
    bool is_kept = volume->items_count <= VOLUME_ITEMS_KEPT_MAX;
    struct volume_item **list = is_kept ? &volume->free_items : surplus;
    item->next = *list;
    *list = item;
    volume->items_count -= !is_kept;
    volume->items_taken_count--;
    pthread_cond_signal(&volume->has_room);
    if (volume->items_taken_count == 0) {
        pthread_cond_broadcast(&volume->has_done);
    }
}

/* The item no longer keeps its segment from being followed by the next. With the lock. */
static void commit_leave_segment(struct volume *volume, struct volume_item *item) {
    *commit_taken_count(volume, item->segment) -= 1;
    item->segment = NULL;
}

/* One huge document must not make the item keep its memory for ever. */
static void commit_empty_item(struct volume_item *item) {
    scratch_clear(&item->frames);
    buf_clear(&item->text);
}

void volume_free_item(struct volume *volume, struct volume_item *item) {
    struct volume_item *surplus = NULL;
    commit_empty_item(item);
    pthread_mutex_lock(&volume->lock);
    if (item->segment != NULL) {
        commit_leave_segment(volume, item);
        pthread_cond_signal(&volume->has_work); /* it may have been the last of the old segment */
    }
    commit_put_back(volume, item, &surplus);
    pthread_mutex_unlock(&volume->lock);
    commit_destroy_items(surplus);
}

void volume_queue_item(struct volume *volume, struct volume_item *item) {
    pthread_mutex_lock(&volume->lock);
    item->next = NULL;
    item->bell = &volume->bells[volume->bell_index];
    atomic_store(&item->is_done, false);
    if (volume->queue_last == NULL) {
        volume->queue_first = item;
    } else {
        volume->queue_last->next = item;
    }
    volume->queue_last = item;
    volume->queue_size += item->frames.size;
    volume->queue_awaited_count += item->done == NULL;
    pthread_cond_signal(&volume->has_work);
    pthread_mutex_unlock(&volume->lock);
}

static void commit_await_item(struct volume_item *item) {
    for (;;) {
        unsigned heard = bell_listen(item->bell);
        if (atomic_load(&item->is_done)) {
            return;
        }
        bell_wait(item->bell, heard);
    }
}

enum err volume_run_item(struct volume *volume, struct volume_item *item, struct stored *ret_stored) {
    volume_queue_item(volume, item);
    commit_await_item(item);
    enum err err = item->err;
    if (err == ERR_OK && ret_stored != NULL) {
        *ret_stored = item->stored;
    }
    volume_free_item(volume, item);
    return err;
}

void volume_drain(struct volume *volume) {
    pthread_mutex_lock(&volume->lock);
    while (volume->items_taken_count > 0) {
        pthread_cond_wait(&volume->has_done, &volume->lock);
    }
    pthread_mutex_unlock(&volume->lock);
}

/* All queued items of the active segment, in their order. With the lock. */
static struct volume_item *commit_take_group(struct volume *volume) {
    struct volume_item *group = NULL;
    struct volume_item **group_end = &group;
    struct volume_item **link = &volume->queue_first;
    volume->queue_last = NULL;
    volume->bell_index ^= 1; /* a writer that comes from now on is not woken for this group */
    while (*link != NULL) {
        struct volume_item *item = *link;
        if (item->segment == volume->active) {
            *link = item->next;
            item->next = NULL;
            *group_end = item;
            group_end = &item->next;
            volume->queue_size -= item->frames.size;
            volume->queue_awaited_count -= item->done == NULL;
        } else {
            volume->queue_last = item;
            link = &item->next;
        }
    }
    return group;
}

/* Writers that wait, by their items; a bell rings once for all of its own. */
static void commit_wake_all(struct volume *volume, struct volume_item *waiting) {
    bool rings[2] = {false, false};
    while (waiting != NULL) {
        struct volume_item *item = waiting;
        waiting = item->next;
        rings[item->bell - volume->bells] = true;
        atomic_store(&item->is_done, true);
    }
    for (size_t i = 0; i < 2; i++) {
        if (rings[i]) {
            bell_ring(&volume->bells[i]);
        }
    }
}

/* They have an outcome: wake writers that wait, free the other items. */
static void commit_release_group(struct volume *volume, struct volume_item *group) {
    for (struct volume_item *item = group; item != NULL; item = item->next) {
        if (item->done != NULL) {
            commit_empty_item(item);
        }
    }
    struct volume_item *waiting = NULL; /* those that somebody waits for */
    struct volume_item *surplus = NULL;
    pthread_mutex_lock(&volume->lock);
    for (struct volume_item *item = group, *next; item != NULL; item = next) {
        next = item->next;
        commit_leave_segment(volume, item);
        if (item->done != NULL) {
            commit_put_back(volume, item, &surplus);
        } else {
            item->next = waiting;
            waiting = item;
        }
    }
    pthread_mutex_unlock(&volume->lock);
    commit_wake_all(volume, waiting);
    commit_destroy_items(surplus);
}

/* Tell the writers. Items with a callback are free afterwards, the others when their writer has looked. */
static void commit_finish_group(struct volume *volume, struct volume_item *group, enum err err) {
    for (struct volume_item *item = group; item != NULL; item = item->next) {
        if (item->err == ERR_OK) {
            item->err = err;
        }
        if (item->done != NULL) {
            item->done(item->context, item->err, &item->stored);
        }
    }
    commit_release_group(volume, group);
}

/* ---- the thread ---- */

/* With the lock. */
static void commit_count_group(struct volume *volume, size_t documents_count, uint64_t commit_us,
                               enum err err) {
    struct volume_load *load = &volume->load;
    load->groups_count++;
    load->documents_count += err == ERR_OK ? documents_count : 0;
    load->commit_us += commit_us;
    load->sync_us += volume->sync_us;
    load->err = err;
    volume->sync_us = 0;
}

static size_t commit_count_items(const struct volume_item *group) {
    size_t count = 0;
    for (; group != NULL; group = group->next) {
        count++;
    }
    return count;
}

/* Begin the next segment when this one is large enough, or when there is a dictionary to begin with at last.
 * If that fails, this one grows on. */
static void commit_roll_if_due(struct volume *volume, bool is_asked) {
    if (volume->encoding != volume->active) {
        return;
    }
    if (dictionary_take(&volume->dictionary, &volume->dictionary_raw)) {
        volume->is_dictionary_new = true;
    }
    bool is_due =
        volume->is_dictionary_new || is_asked || volume->active->size >= volume->config.segment_size_max;
    if (!is_due) {
        return;
    }
    struct segment *next;
    if (volume_add_segment(volume, buf_bytes(&volume->dictionary_raw), &next, NULL) != ERR_OK) {
        return;
    }
    volume->is_dictionary_new = false;
    pthread_mutex_lock(&volume->lock);
    volume->encoding = next;
    pthread_mutex_unlock(&volume->lock);
}

/* The old segment has no more items to come: go on with the new one. With the lock. */
static bool commit_switch_segment(struct volume *volume) {
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
static bool commit_roll_as_asked(struct volume *volume) {
    if (!volume->is_roll_asked) {
        return false;
    }
    pthread_mutex_unlock(&volume->lock);
    commit_roll_if_due(volume, true);
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

/*
 * A sync costs the same for one document as for many, and nobody waits for these. Asleep, not waiting for
 * has_work: what is queued meanwhile then wakes nobody. With the lock, which is given up meanwhile.
 */
static void commit_linger(struct volume *volume) {
    if (volume->config.linger_us == 0 || volume->queue_first == NULL || volume->queue_awaited_count > 0 ||
        volume->is_stopping) {
        return;
    }
    struct timespec pause = {.tv_sec = volume->config.linger_us / 1000000,
                             .tv_nsec = (long)(volume->config.linger_us % 1000000) * 1000};
    pthread_mutex_unlock(&volume->lock);
    nanosleep(&pause, NULL); /* cut short by a signal, the group is smaller */
    pthread_mutex_lock(&volume->lock);
}

static void *commit_run_committer(void *context) {
    struct volume *volume = context;
    struct buf together;
    buf_init(&together, TOGETHER_SIZE_MAX);
    pthread_mutex_lock(&volume->lock);
    for (;;) {
        commit_linger(volume);
        struct volume_item *group = commit_take_group(volume);
        if (group == NULL) {
            if (commit_switch_segment(volume) || commit_roll_as_asked(volume)) {
                continue;
            }
            if (volume->is_stopping && volume->queue_first == NULL) {
                break;
            }
            pthread_cond_wait(&volume->has_work, &volume->lock);
            continue;
        }
        pthread_mutex_unlock(&volume->lock);
        size_t documents_count = commit_count_items(group);
        uint64_t start_us = clock_monotonic_us(volume->config.clock);
        pthread_mutex_lock(&volume->ledger_lock);
        enum err err = commit_group(volume, group, &together);
        pthread_mutex_unlock(&volume->ledger_lock);
        uint64_t commit_us = clock_monotonic_us(volume->config.clock) - start_us;
        commit_finish_group(volume, group, err);
        commit_roll_if_due(volume, false);
        pthread_mutex_lock(&volume->lock);
        commit_count_group(volume, documents_count, commit_us, err);
    }
    pthread_mutex_unlock(&volume->lock);
    buf_done(&together);
    return NULL;
}

enum err volume_start_committer(struct volume *volume) {
    enum err err = thread_start(&volume->committer, "committer", commit_run_committer, volume);
    volume->has_committer = err == ERR_OK;
    return err;
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
    commit_destroy_items(volume->free_items);
    volume->free_items = NULL;
}
