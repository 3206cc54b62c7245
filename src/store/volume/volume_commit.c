#include <time.h>

#include "run/thread.h"
#include "store/volume/volume_state.h"

enum {
    TOGETHER_SIZE_MAX = 1 << 20, /* of frames that share a write */
    BUDGET_SIZE = 16 << 20,      /* written between two looks at how much is free */
};

/* The item's block as it is now, all zero where there is none. */
static enum err see_block(struct volume *volume, const struct volume_item *item, bool *ret_is_there,
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
static enum err check_expectation(const struct volume_item *item, bool is_there, const struct block *block) {
    bool is_live = is_there && block->references > 0;
    if (item->look.is_there) {
        return is_live ? ERR_OK : ERR_BUSY;
    }
    bool is_twin = item->accepts_twin && is_live && block->size == item->entries[0].size;
    return !is_there || is_twin ? ERR_OK : ERR_BUSY;
}

static enum err enter_item(struct volume *volume, struct volume_item *item, uint64_t offset) {
    bool is_there;
    struct block block;
    enum err err = see_block(volume, item, &is_there, &block);
    if (err == ERR_OK) {
        err = check_expectation(item, is_there, &block);
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

static void note_recent(struct volume *volume, const struct volume_item *item) {
    for (size_t i = 0; i < item->entries_count; i++) {
        recent_add(&volume->recent, &item->entries[i]);
    }
}

/* For duplicates of it. */
static void note_block(struct volume *volume, const struct volume_item *item) {
    const struct ledger_entry *entry = &item->entries[0];
    if (item->look.is_there && entry->number == 0) {
        block_cache_put(volume->blocks, entry->digest, &item->look.block);
    }
    if (entry->kind == LEDGER_ORIGINAL) {
        origins_add(volume->origins, &entry->location, entry->url);
    }
}

/* The group is in the index. */
static void note_changes(struct volume *volume, const struct volume_item *group) {
    for (const struct volume_item *item = group; item != NULL; item = item->next) {
        if (item->err == ERR_OK) {
            changes_note(&volume->changes, item->entries[0].digest);
            note_block(volume, item);
            note_recent(volume, item);
        }
    }
    changes_advance(&volume->changes);
}

static enum err write_together(struct segment *segment, struct buf *together, uint64_t *written) {
    enum err err = vfs_write(&segment->file, *written, buf_bytes(together));
    *written += together->size;
    buf_clear(together);
    return err;
}

static enum err write_large(struct segment *segment, const struct scratch *frames, struct buf *piece,
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
static enum err write_alone(struct segment *segment, const struct scratch *frames, struct buf *piece,
                            uint64_t *written) {
    if (!scratch_is_in_memory(frames)) {
        return write_large(segment, frames, piece, written);
    }
    enum err err = vfs_write(&segment->file, *written, buf_bytes(&frames->memory));
    *written += frames->size;
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
            err = buf_put(together, buf_bytes(&item->frames.memory));
        } else if (err == ERR_OK) {
            err = write_alone(segment, &item->frames, together, &written);
        }
    }
    if (err == ERR_OK) {
        err = write_together(segment, together, &written);
    }
    *ret_size = written;
    return err;
}

/* The system is asked once for every BUDGET_SIZE that is written, and as long as the disk is full. */
static enum err refuse_when_full(struct volume *volume) {
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

static void spend_budget(struct volume *volume, uint64_t size) {
    volume->free_budget -= size < volume->free_budget ? size : volume->free_budget;
}

/* Append, sync, index. On failure the segment is as before and nothing of the group is in the index. */
static enum err commit_group(struct volume *volume, struct volume_item *group, struct buf *together) {
    struct segment *segment = volume->active;
    uint64_t size = segment->size;
    enum err err = refuse_when_full(volume);
    if (err == ERR_OK) {
        err = index_mend(volume->index, NULL);
    }
    if (err == ERR_OK) {
        err = append_group(volume, group, together, &size);
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
        note_changes(volume, group);
        spend_budget(volume, size - segment->size);
        segment->size = size;
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
    volume_release_group(volume, group);
}

/* ---- the thread ---- */

/* With the lock. */
static void count_group(struct volume *volume, size_t documents_count, uint64_t commit_us, enum err err) {
    struct volume_load *load = &volume->load;
    load->groups_count++;
    load->documents_count += err == ERR_OK ? documents_count : 0;
    load->commit_us += commit_us;
    load->sync_us += volume->sync_us;
    load->err = err;
    volume->sync_us = 0;
}

static size_t count_items(const struct volume_item *group) {
    size_t count = 0;
    for (; group != NULL; group = group->next) {
        count++;
    }
    return count;
}

/* Begin the next segment when this one is large enough, or when there is a dictionary to begin with at last.
 * Where that fails, this one grows on. */
static void roll_if_due(struct volume *volume, bool is_asked) {
    if (volume->encoding != volume->active) {
        return;
    }
    dictionary_take(&volume->dictionary, &volume->dictionary_raw);
    bool has_new_dictionary = volume->dictionary_raw.size > 0 && !volume->active->has_dictionary;
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

/*
 * A sync costs the same for one document as for many, and nobody waits for these. Asleep, not waiting for
 * has_work: what is queued meanwhile then wakes nobody. With the lock, which is given up meanwhile.
 */
static void linger(struct volume *volume) {
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

static void *run_committer(void *context) {
    struct volume *volume = context;
    struct buf together;
    buf_init(&together, TOGETHER_SIZE_MAX);
    pthread_mutex_lock(&volume->lock);
    for (;;) {
        linger(volume);
        struct volume_item *group = volume_take_group(volume);
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
        size_t documents_count = count_items(group);
        uint64_t start_us = clock_monotonic_us(volume->config.clock);
        pthread_mutex_lock(&volume->ledger_lock);
        enum err err = commit_group(volume, group, &together);
        pthread_mutex_unlock(&volume->ledger_lock);
        uint64_t commit_us = clock_monotonic_us(volume->config.clock) - start_us;
        finish_group(volume, group, err);
        roll_if_due(volume, false);
        pthread_mutex_lock(&volume->lock);
        count_group(volume, documents_count, commit_us, err);
    }
    pthread_mutex_unlock(&volume->lock);
    buf_done(&together);
    return NULL;
}

enum err volume_start_committer(struct volume *volume) {
    if (thread_start(&volume->committer, "committer", run_committer, volume) != 0) {
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
    volume_destroy_items(volume);
}
