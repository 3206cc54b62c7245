#include "store/remote/remote_sender.h"

#include <stdlib.h>

#include "store/remote/backend_code.h"

enum { WAIT_MS_MAX = 1000 };

enum err remote_sender_init(struct remote_sender *sender, struct remote_peer *peer, uint16_t number) {
    *sender = (struct remote_sender){.peer = peer, .number = number, .multi = curl_multi_init()};
    if (sender->multi == NULL) {
        return ERR_MEMORY;
    }
    curl_multi_setopt(sender->multi, CURLMOPT_MAXCONNECTS, (long)REMOTE_SENDER_JOBS_MAX);
    pthread_mutex_init(&sender->lock, NULL);
    return ERR_OK;
}

static void free_job(struct remote_job *job) {
    remote_call_done(&job->call);
    free(job);
}

void remote_sender_done(struct remote_sender *sender) {
    remote_sender_drain(sender);
    task_stop(&sender->task);
    while (sender->free_jobs != NULL) {
        struct remote_job *job = sender->free_jobs;
        sender->free_jobs = job->next;
        free_job(job);
    }
    curl_multi_cleanup(sender->multi);
    pthread_mutex_destroy(&sender->lock);
}

/* ---- the thread ---- */

/* What done() of the backend's submit() is to be told. */
static enum err read_end(struct remote_sender *sender, struct remote_job *job, enum err err,
                         struct stored *stored) {
    struct bytes answer;
    if (err == ERR_OK) {
        err = scratch_bytes(&job->call.answer, &answer);
    }
    if (err == ERR_OK && backend_code_read_stored(answer, stored, NULL) != ERR_OK) {
        err = ERR_MISMATCH;
    }
    stored->key.volume = sender->number;
    /* It was a duplicate when it was asked for: to be submitted again, with its body. */
    return err == ERR_NOT_FOUND && job->is_body_left_out ? ERR_BUSY : err;
}

static void sender_tell(struct remote_sender *sender, struct remote_job *job, enum err err) {
    struct stored stored = {0};
    err = read_end(sender, job, err, &stored);
    job->done(job->context, err, &stored);
    remote_sender_give_back(sender, job);
}

static void begin_jobs(struct remote_sender *sender, struct remote_job *jobs) {
    while (jobs != NULL) {
        struct remote_job *job = jobs;
        jobs = job->next;
        enum err err = remote_call_begin(&job->call, sender->multi, "POST", "documents",
                                         BACKEND_CODE_SMALL_SIZE_MAX, NULL);
        if (err != ERR_OK) {
            sender_tell(sender, job, err);
            continue;
        }
        job->next = sender->running;
        sender->running = job;
    }
}

static void end_jobs(struct remote_sender *sender) {
    struct remote_job **place = &sender->running;
    while (*place != NULL) {
        struct remote_job *job = *place;
        if (!remote_call_is_over(&job->call)) {
            place = &job->next;
            continue;
        }
        *place = job->next;
        sender_tell(sender, job, remote_call_end(&job->call, sender->multi, NULL));
    }
}

static struct remote_job *take_queue(struct remote_sender *sender) {
    pthread_mutex_lock(&sender->lock);
    struct remote_job *jobs = sender->first;
    sender->first = sender->last = NULL;
    pthread_mutex_unlock(&sender->lock);
    return jobs;
}

/* The queue wakes it from the poll while something is sent, else by a poke. */
static uint64_t remote_sender_run(void *context) {
    struct remote_sender *sender = context;
    int running;
    begin_jobs(sender, take_queue(sender));
    curl_multi_perform(sender->multi, &running);
    remote_call_collect(sender->multi);
    end_jobs(sender);
    if (sender->running == NULL) {
        return TASK_FOR_EVER_US;
    }
    curl_multi_poll(sender->multi, NULL, 0, WAIT_MS_MAX, NULL);
    return 0;
}

/* ---- jobs ---- */

static struct remote_job *make_job(struct remote_sender *sender) {
    struct remote_job *job = calloc(1, sizeof *job);
    if (job == NULL || remote_call_init(&job->call, sender->peer) != ERR_OK) {
        free(job);
        return NULL;
    }
    return job;
}

/* With the lock. NULL: out of memory. */
static struct remote_job *find_job(struct remote_sender *sender) {
    struct remote_job *job = sender->free_jobs;
    if (job != NULL) {
        sender->free_jobs = job->next;
        return job;
    }
    job = make_job(sender);
    sender->jobs_count += job == NULL ? 0 : 1;
    return job;
}

struct remote_job *remote_sender_take(struct remote_sender *sender) {
    pthread_mutex_lock(&sender->lock);
    while (sender->free_jobs == NULL && sender->jobs_count == REMOTE_SENDER_JOBS_MAX) {
        (void)bell_await(&sender->has_room, &sender->lock, BELL_NEVER_US);
    }
    enum err err = ERR_OK;
    if (!sender->task.has_thread) {
        err = task_start(&sender->task, "remote-sender", PRIORITY_USUAL, remote_sender_run, sender);
    }
    struct remote_job *job = err == ERR_OK ? find_job(sender) : NULL;
    sender->taken_count += job == NULL ? 0 : 1;
    pthread_mutex_unlock(&sender->lock);
    return job;
}

void remote_sender_queue(struct remote_sender *sender, struct remote_job *job) {
    job->next = NULL;
    pthread_mutex_lock(&sender->lock);
    if (sender->last == NULL) {
        sender->first = job;
    } else {
        sender->last->next = job;
    }
    sender->last = job;
    pthread_mutex_unlock(&sender->lock);
    task_poke(&sender->task);
    curl_multi_wakeup(sender->multi);
}

void remote_sender_give_back(struct remote_sender *sender, struct remote_job *job) {
    remote_call_clear(&job->call);
    pthread_mutex_lock(&sender->lock);
    job->next = sender->free_jobs;
    sender->free_jobs = job;
    sender->taken_count--;
    bell_ring(&sender->has_room);
    pthread_mutex_unlock(&sender->lock);
}

void remote_sender_drain(struct remote_sender *sender) {
    pthread_mutex_lock(&sender->lock);
    while (sender->taken_count > 0) {
        (void)bell_await(&sender->has_room, &sender->lock, BELL_NEVER_US);
    }
    pthread_mutex_unlock(&sender->lock);
}
