/*
 * remote_sender - documents on their way to a volume server, many at a time, by a thread of their own.
 *
 *      sessions (any threads)                     sender (one thread)
 *        fill a job, queue it   ── queue ──>        begin its call; when it is over, tell its done()
 *
 * At most REMOTE_SENDER_JOBS_MAX jobs exist, each with a connection of its own while it is sent: so the
 * server can gather them into one sync. Whoever wants a job waits for one. The thread starts with the first.
 */
#ifndef MNEMON_STORE_REMOTE_REMOTE_SENDER_H
#define MNEMON_STORE_REMOTE_REMOTE_SENDER_H

#include <pthread.h>

#include "run/task.h"
#include "store/backend/backend.h"
#include "store/remote/remote_call.h"

enum { REMOTE_SENDER_JOBS_MAX = 32 };

struct remote_job {
    struct remote_job *next;
    struct remote_call call; /* its request is filled in by the owner */
    bool is_body_left_out;
    backend_done *done;
    void *context;
};

struct remote_sender {
    struct remote_peer *peer;
    uint16_t number; /* the volume of the keys that done() is told */
    CURLM *multi;
    struct task task; /* starts with the first job */

    pthread_mutex_t lock;
    struct bell has_room;         /* a job is free; all are */
    struct remote_job *free_jobs; /* lock */
    struct remote_job *first;     /* lock: of the queue */
    struct remote_job *last;      /* lock */
    size_t jobs_count;            /* lock: made so far */
    size_t taken_count;           /* lock: not free */
    struct remote_job *running;   /* the task's */
};

enum err remote_sender_init(struct remote_sender *sender, struct remote_peer *peer,
                            uint16_t number) MUST_CHECK;

/* Waits for all jobs. */
void remote_sender_done(struct remote_sender *sender);

/* Waits while all are taken. NULL: out of memory, or no thread can be started. */
struct remote_job *remote_sender_take(struct remote_sender *sender);

/* done() is then called, from the sender's thread. */
void remote_sender_queue(struct remote_sender *sender, struct remote_job *job);

/* Without having been queued. */
void remote_sender_give_back(struct remote_sender *sender, struct remote_job *job);

/* Until no job is taken. */
void remote_sender_drain(struct remote_sender *sender);

#endif
