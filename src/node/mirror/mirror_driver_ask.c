/* Of mirroring: questions on their way, and the queue of what happened. */
#include <stdio.h>
#include <stdlib.h>

#include "node/mirror/mirror_driver_state.h"

struct mirror_driver_event *mirror_driver_event_new(struct mirror_driver *mirror_driver,
                                                    enum mirror_driver_event_kind kind, const char *name,
                                                    const struct peer *peer) {
    struct mirror_driver_event *event = calloc(1, sizeof *event);
    if (event != NULL) {
        event->mirror_driver = mirror_driver;
        event->kind = kind;
        event->peer = *peer;
        event->named_index = SIZE_MAX;
        event->timeout_ms = MIRROR_DRIVER_ASK_MS;
        snprintf(event->name, sizeof event->name, "%s", name);
        buf_init(&event->question, PEER_RPC_QUESTION_SIZE_MAX);
        buf_init(&event->answer, PEER_RPC_ANSWER_SIZE_MAX);
    }
    return event;
}

void mirror_driver_event_free(struct mirror_driver_event *event) {
    buf_done(&event->question);
    buf_done(&event->answer);
    free(event);
}

void mirror_driver_queue(struct mirror_driver_event *event) {
    struct mirror_driver *mirror_driver = event->mirror_driver;
    pthread_mutex_lock(&mirror_driver->lock);
    event->next = NULL;
    *mirror_driver->events_end = event;
    mirror_driver->events_end = &event->next;
    mirror_driver->heard_count += event->kind == MIRROR_DRIVER_HEARD;
    pthread_mutex_unlock(&mirror_driver->lock);
    task_poke(&mirror_driver->task);
}

static void forget_asked(struct mirror_driver_event *event) {
    struct mirror_driver *mirror_driver = event->mirror_driver;
    pthread_mutex_lock(&mirror_driver->lock);
    if (event->next_asked != NULL) {
        event->next_asked->previous_asked = event->previous_asked;
    }
    if (event->previous_asked != NULL) {
        event->previous_asked->next_asked = event->next_asked;
    } else {
        mirror_driver->asked = event->next_asked;
    }
    pthread_mutex_unlock(&mirror_driver->lock);
}

static void on_answer(void *context, enum err err, struct bytes answer) {
    struct mirror_driver_event *event = context;
    event->err = err;
    buf_put(&event->answer, answer);
    event->err = event->err == ERR_OK ? event->answer.err : event->err;
    forget_asked(event);
    mirror_driver_queue(event);
}

/* The bulk thread. */
static void run(void *context) {
    struct mirror_driver_event *event = context;
    enum err err = peer_rpc_call(event->mirror_driver->config.peer_rpc, &event->peer, PEER_RPC_MIRROR,
                                 buf_bytes(&event->question), event->timeout_ms, on_answer, event);
    if (err != ERR_OK) {
        on_answer(event, err, bytes_of(NULL, 0));
    }
}

void mirror_driver_ask(struct mirror_driver_event *event) {
    struct mirror_driver *mirror_driver = event->mirror_driver;
    pthread_mutex_lock(&mirror_driver->lock);
    event->next_asked = mirror_driver->asked;
    if (mirror_driver->asked != NULL) {
        mirror_driver->asked->previous_asked = event;
    }
    mirror_driver->asked = event;
    pthread_mutex_unlock(&mirror_driver->lock);
    enum err err = event->question.err;
    err = err == ERR_OK ? peer_rpc_post(mirror_driver->config.peer_rpc, run, event) : err;
    if (err != ERR_OK) {
        on_answer(event, err, bytes_of(NULL, 0));
    }
}
