/* What a group must not forget, on a thread of its own: a topology is passed on when it is durable, and no
 * loop waits for that. */
#include <stdlib.h>
#include <time.h>

#include "node/group/grouping_state.h"

enum { RETRY_S = 1 };

static void put(struct grouping *grouping, struct grouping_save *save) {
    pthread_mutex_lock(&grouping->lock);
    *grouping->saves_end = save;
    grouping->saves_end = &save->next;
    pthread_cond_signal(&grouping->work);
    pthread_mutex_unlock(&grouping->lock);
}

static struct grouping_save *make(const struct grouping_slot *slot) {
    struct grouping_save *save = calloc(1, sizeof *save);
    if (save != NULL) {
        memcpy(save->name, slot->wish.name, sizeof save->name);
        save->life = slot->life;
    }
    return save;
}

/* Without memory it is not saved, and so not passed on: as a disk that does not answer. */
void grouping_save(struct grouping *grouping, const struct grouping_slot *slot, const uint64_t *number,
                   struct bytes document) {
    struct grouping_save *save = make(slot);
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
    put(grouping, save);
}

void grouping_save_removal(struct grouping *grouping, const struct grouping_slot *slot) {
    struct grouping_save *save = make(slot);
    if (save != NULL) {
        save->is_removal = true;
        put(grouping, save);
    }
}

static enum err write_one(struct grouping *grouping, const struct grouping_save *save) {
    struct err_detail detail = {0};
    const char *directory = grouping->config.directory;
    enum err err = save->is_removal ? group_files_remove(directory, save->name, &detail)
                                    : group_files_write_state(directory, save->name, &save->state, &detail);
    if (err != ERR_OK) {
        grouping_note(grouping, "group \"%s\": %s", save->name, err_detail_text(&detail, err));
    }
    return err;
}

/* The lock is held. */
static void wait(struct grouping *grouping, bool is_retry) {
    struct timespec until;
    if (!is_retry) {
        pthread_cond_wait(&grouping->work, &grouping->lock);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += RETRY_S;
    pthread_cond_timedwait(&grouping->work, &grouping->lock, &until);
}

/* The lock is held. */
static void finish(struct grouping *grouping, struct grouping_save *save) {
    grouping->saves = save->next;
    if (grouping->saves == NULL) {
        grouping->saves_end = &grouping->saves;
    }
    save->next = grouping->saved;
    grouping->saved = save;
}

/* In order. What cannot be written is tried again: nothing later may overtake it. */
void *grouping_run_disk(void *context) {
    struct grouping *grouping = context;
    bool is_retry = false;
    pthread_mutex_lock(&grouping->lock);
    for (;;) {
        struct grouping_save *save = grouping->saves;
        if (save == NULL || is_retry) {
            if (grouping->is_stopped) {
                break;
            }
            wait(grouping, is_retry);
            is_retry = false;
            continue;
        }
        pthread_mutex_unlock(&grouping->lock);
        bool is_written = write_one(grouping, save) == ERR_OK;
        pthread_mutex_lock(&grouping->lock);
        is_retry = !is_written;
        if (is_written) {
            finish(grouping, save);
            pthread_mutex_unlock(&grouping->lock);
            grouping_hurry(grouping);
            pthread_mutex_lock(&grouping->lock);
        }
    }
    pthread_mutex_unlock(&grouping->lock);
    return NULL;
}
