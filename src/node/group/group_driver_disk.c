/* What a group must not forget, on a thread of its own: a topology is passed on when it is durable, and no
 * loop waits for that. */
#include <stdlib.h>
#include <time.h>

#include "node/group/group_driver_state.h"

enum { RETRY_S = 1 };

static void put(struct group_driver *group_driver, struct group_driver_save *save) {
    pthread_mutex_lock(&group_driver->lock);
    *group_driver->saves_end = save;
    group_driver->saves_end = &save->next;
    pthread_cond_signal(&group_driver->work);
    pthread_mutex_unlock(&group_driver->lock);
}

static struct group_driver_save *make(const struct group_driver_slot *slot) {
    struct group_driver_save *save = calloc(1, sizeof *save);
    if (save != NULL) {
        memcpy(save->name, slot->wish.name, sizeof save->name);
        save->life = slot->life;
    }
    return save;
}

/* Without memory it is not saved, and so not passed on: as a disk that does not answer. */
void group_driver_save(struct group_driver *group_driver, const struct group_driver_slot *slot,
                       const uint64_t *number, struct bytes document) {
    struct group_driver_save *save = make(slot);
    ASSERT(document.size <= GROUP_FILES_DOCUMENT_SIZE_MAX);
    if (save == NULL) {
        return;
    }
    save->has_number = number != NULL;
    save->number = number != NULL ? *number : 0;
    save->state.rules = slot->rules;
    save->state.document_size = document.size;
    if (document.size > 0) {
        memcpy(save->state.document, document.data, document.size);
    }
    put(group_driver, save);
}

void group_driver_save_removal(struct group_driver *group_driver, const struct group_driver_slot *slot) {
    struct group_driver_save *save = make(slot);
    if (save != NULL) {
        save->is_removal = true;
        put(group_driver, save);
    }
}

static enum err write_one(struct group_driver *group_driver, const struct group_driver_save *save) {
    struct err_detail detail = {0};
    const char *directory = group_driver->config.directory;
    enum err err = save->is_removal ? group_files_remove(directory, save->name, &detail)
                                    : group_files_write_state(directory, save->name, &save->state, &detail);
    if (err != ERR_OK) {
        group_driver_note(group_driver, "group \"%s\": %s", save->name, err_detail_text(&detail, err));
    }
    return err;
}

/* The lock is held. */
static void wait(struct group_driver *group_driver, bool is_retry) {
    struct timespec until;
    if (!is_retry) {
        pthread_cond_wait(&group_driver->work, &group_driver->lock);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += RETRY_S;
    pthread_cond_timedwait(&group_driver->work, &group_driver->lock, &until);
}

/* The lock is held. */
static void finish(struct group_driver *group_driver, struct group_driver_save *save) {
    group_driver->saves = save->next;
    if (group_driver->saves == NULL) {
        group_driver->saves_end = &group_driver->saves;
    }
    save->next = group_driver->saved;
    group_driver->saved = save;
}

/* In order. What cannot be written is tried again: nothing later may overtake it. */
void *group_driver_run_disk(void *context) {
    struct group_driver *group_driver = context;
    bool is_retry = false;
    pthread_mutex_lock(&group_driver->lock);
    for (;;) {
        struct group_driver_save *save = group_driver->saves;
        if (save == NULL || is_retry) {
            if (group_driver->is_stopped) {
                break;
            }
            wait(group_driver, is_retry);
            is_retry = false;
            continue;
        }
        pthread_mutex_unlock(&group_driver->lock);
        bool is_written = write_one(group_driver, save) == ERR_OK;
        pthread_mutex_lock(&group_driver->lock);
        is_retry = !is_written;
        if (is_written) {
            finish(group_driver, save);
            pthread_mutex_unlock(&group_driver->lock);
            group_driver_hurry(group_driver);
            pthread_mutex_lock(&group_driver->lock);
        }
    }
    pthread_mutex_unlock(&group_driver->lock);
    return NULL;
}
