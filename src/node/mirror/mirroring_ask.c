/* Of mirroring: questions on their way, and the queue of what happened. */
#include <stdio.h>
#include <stdlib.h>

#include "node/mirror/mirroring_state.h"

struct mirroring_event *mirroring_event_new(struct mirroring *mirroring, enum mirroring_event_kind kind,
                                            const char *name, const struct peer *peer) {
    struct mirroring_event *event = calloc(1, sizeof *event);
    if (event != NULL) {
        event->mirroring = mirroring;
        event->kind = kind;
        event->peer = *peer;
        event->named_index = SIZE_MAX;
        event->timeout_ms = MIRRORING_ASK_MS;
        snprintf(event->name, sizeof event->name, "%s", name);
        buf_init(&event->question, BULK_QUESTION_SIZE_MAX);
        buf_init(&event->answer, BULK_ANSWER_SIZE_MAX);
    }
    return event;
}

void mirroring_event_free(struct mirroring_event *event) {
    buf_done(&event->question);
    buf_done(&event->answer);
    free(event);
}

void mirroring_queue(struct mirroring_event *event) {
    struct mirroring *mirroring = event->mirroring;
    pthread_mutex_lock(&mirroring->lock);
    event->next = NULL;
    *mirroring->events_end = event;
    mirroring->events_end = &event->next;
    mirroring->heard_count += event->kind == MIRRORING_HEARD;
    pthread_cond_signal(&mirroring->woken);
    pthread_mutex_unlock(&mirroring->lock);
}

static void forget_asked(struct mirroring_event *event) {
    struct mirroring *mirroring = event->mirroring;
    pthread_mutex_lock(&mirroring->lock);
    if (event->next_asked != NULL) {
        event->next_asked->previous_asked = event->previous_asked;
    }
    if (event->previous_asked != NULL) {
        event->previous_asked->next_asked = event->next_asked;
    } else {
        mirroring->asked = event->next_asked;
    }
    pthread_mutex_unlock(&mirroring->lock);
}

static void on_answer(void *context, enum err err, struct bytes answer) {
    struct mirroring_event *event = context;
    event->err = err;
    buf_put(&event->answer, answer);
    event->err = event->err == ERR_OK ? event->answer.err : event->err;
    forget_asked(event);
    mirroring_queue(event);
}

/* The bulk thread. */
static void run(void *context) {
    struct mirroring_event *event = context;
    enum err err = bulk_call(event->mirroring->config.bulk, &event->peer, BULK_MIRROR,
                             buf_bytes(&event->question), event->timeout_ms, on_answer, event);
    if (err != ERR_OK) {
        on_answer(event, err, bytes_of(NULL, 0));
    }
}

void mirroring_ask(struct mirroring_event *event) {
    struct mirroring *mirroring = event->mirroring;
    pthread_mutex_lock(&mirroring->lock);
    event->next_asked = mirroring->asked;
    if (mirroring->asked != NULL) {
        mirroring->asked->previous_asked = event;
    }
    mirroring->asked = event;
    pthread_mutex_unlock(&mirroring->lock);
    enum err err = event->question.err;
    err = err == ERR_OK ? bulk_post(mirroring->config.bulk, run, event) : err;
    if (err != ERR_OK) {
        on_answer(event, err, bytes_of(NULL, 0));
    }
}
