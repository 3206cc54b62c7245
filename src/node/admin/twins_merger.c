#include "node/admin/twins_merger.h"

#include <stdio.h>
#include <stdlib.h>

#include "run/task.h"
#include "store/instance/twins.h"

static const uint64_t LOOK_US = UINT64_C(10) * 1000000;
static const uint64_t AGAIN_US = UINT64_C(600) * 1000000; /* after a failure */

struct twins_merger {
    struct instance *instance;
    void (*note)(void *context, const char *sentence);
    void *context;
    struct task task;
};

static bool merger_goes_on(void *context) {
    struct twins_merger *merger = context;
    return !task_is_stopping(&merger->task);
}

static uint64_t merger_look(void *context) {
    struct twins_merger *merger = context;
    struct err_detail detail = {0};
    char text[ERR_TEXT_SIZE_MAX + 96];
    uint64_t moved_count;
    if (!twins_are_due(merger->instance)) {
        return LOOK_US;
    }
    enum err err = twins_merge(merger->instance, merger_goes_on, merger, &moved_count, &detail);
    if (moved_count > 0) {
        snprintf(text, sizeof text,
                 "a volume was down: %ju captures that were stored elsewhere meanwhile are merged with their "
                 "documents there",
                 (uintmax_t)moved_count);
        merger->note(merger->context, text);
    }
    if (err != ERR_OK && err != ERR_CANCELLED) {
        snprintf(text, sizeof text, "documents that lie on two volumes cannot be merged now: %s",
                 err_detail_text(&detail, err));
        merger->note(merger->context, text);
        return AGAIN_US;
    }
    return LOOK_US;
}

enum err twins_merger_start(struct instance *instance, void (*note)(void *context, const char *sentence),
                            void *context, struct twins_merger **ret_merger) {
    struct twins_merger *merger = calloc(1, sizeof *merger);
    if (merger == NULL) {
        return ERR_MEMORY;
    }
    merger->instance = instance;
    merger->note = note;
    merger->context = context;
    enum err err = task_start(&merger->task, "twins-merger", PRIORITY_BEHIND, merger_look, merger);
    if (err != ERR_OK) {
        free(merger);
        return err;
    }
    *ret_merger = merger;
    return ERR_OK;
}

void twins_merger_stop(struct twins_merger *merger) {
    if (merger != NULL) {
        task_stop(&merger->task);
        free(merger);
    }
}
