/* What a group must not forget, by a task: a topology is passed on when it is durable, and no
 * loop waits for that. */
#include <stdlib.h>

#include "node/group/group_driver_state.h"

enum { RETRY_US = 1000000 };

static void put(struct group_driver *group_driver, struct group_driver_save *save) {
    pthread_mutex_lock(&group_driver->lock);
    *group_driver->saves_end = save;
    group_driver->saves_end = &save->next;
    pthread_mutex_unlock(&group_driver->lock);
    task_poke(&group_driver->disk);
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

static struct group_driver_save *first_save(struct group_driver *group_driver) {
    pthread_mutex_lock(&group_driver->lock);
    struct group_driver_save *save = group_driver->saves;
    pthread_mutex_unlock(&group_driver->lock);
    return save;
}

static void finish(struct group_driver *group_driver, struct group_driver_save *save) {
    pthread_mutex_lock(&group_driver->lock);
    group_driver->saves = save->next;
    if (group_driver->saves == NULL) {
        group_driver->saves_end = &group_driver->saves;
    }
    save->next = group_driver->saved;
    group_driver->saved = save;
    pthread_mutex_unlock(&group_driver->lock);
    group_driver_hurry(group_driver);
}

/* In order. What cannot be written is tried again: nothing later may overtake it. */
uint64_t group_driver_run_disk(void *context) {
    struct group_driver *group_driver = context;
    struct group_driver_save *save;
    while ((save = first_save(group_driver)) != NULL) {
        if (write_one(group_driver, save) != ERR_OK) {
            return RETRY_US;
        }
        finish(group_driver, save);
    }
    return TASK_FOR_EVER_US;
}
