#include <stdlib.h>

#include "store/volume/volume_state.h"

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
        scratch_init(&item->frames, volume->config.scratch_directory, VOLUME_FRAMES_MEMORY_MAX, UINT32_MAX);
        buf_init(&item->text, 1 << 20);
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
    return item;
}

static void destroy_items(struct volume_item *items) {
    while (items != NULL) {
        struct volume_item *item = items;
        items = item->next;
        scratch_done(&item->frames);
        buf_done(&item->text);
        free(item);
    }
}

/* Where there are enough it comes to *surplus, to be destroyed without the lock. With the lock. */
static void put_back(struct volume *volume, struct volume_item *item, struct volume_item **surplus) {
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
static void leave_segment(struct volume *volume, struct volume_item *item) {
    *taken_count(volume, item->segment) -= 1;
    item->segment = NULL;
}

/* One huge document must not make the item keep its memory for ever. */
static void empty_item(struct volume_item *item) {
    scratch_clear(&item->frames);
    buf_clear(&item->text);
}

void volume_free_item(struct volume *volume, struct volume_item *item) {
    struct volume_item *surplus = NULL;
    empty_item(item);
    pthread_mutex_lock(&volume->lock);
    if (item->segment != NULL) {
        leave_segment(volume, item);
        pthread_cond_signal(&volume->has_work); /* it may have been the last of the old segment */
    }
    put_back(volume, item, &surplus);
    pthread_mutex_unlock(&volume->lock);
    destroy_items(surplus);
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

void volume_await_item(struct volume_item *item) {
    for (;;) {
        unsigned heard = bell_listen(item->bell);
        if (atomic_load(&item->is_done)) {
            return;
        }
        bell_wait(item->bell, heard);
    }
}

void volume_drain(struct volume *volume) {
    pthread_mutex_lock(&volume->lock);
    while (volume->items_taken_count > 0) {
        pthread_cond_wait(&volume->has_done, &volume->lock);
    }
    pthread_mutex_unlock(&volume->lock);
}

struct volume_item *volume_take_group(struct volume *volume) {
    struct volume_item *group = NULL;
    struct volume_item **group_end = &group;
    struct volume_item **link = &volume->queue_first;
    volume->queue_last = NULL;
    volume->bell_index ^= 1; /* who comes from now on is not woken for this group */
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
static void wake_all(struct volume *volume, struct volume_item *waiting) {
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

void volume_release_group(struct volume *volume, struct volume_item *group) {
    for (struct volume_item *item = group; item != NULL; item = item->next) {
        if (item->done != NULL) {
            empty_item(item);
        }
    }
    struct volume_item *waiting = NULL; /* those that somebody waits for */
    struct volume_item *surplus = NULL;
    pthread_mutex_lock(&volume->lock);
    for (struct volume_item *item = group, *next; item != NULL; item = next) {
        next = item->next;
        leave_segment(volume, item);
        if (item->done != NULL) {
            put_back(volume, item, &surplus);
        } else {
            item->next = waiting;
            waiting = item;
        }
    }
    pthread_mutex_unlock(&volume->lock);
    wake_all(volume, waiting);
    destroy_items(surplus);
}

void volume_destroy_items(struct volume *volume) {
    destroy_items(volume->free_items);
    volume->free_items = NULL;
}
