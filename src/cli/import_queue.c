#include <stdlib.h>

#include "cli/import.h"
#include "run/priority.h"

/* ---- tasks ---- */

enum err import_queue_init(struct import_queue *queue, const char *directory) {
    *queue = (struct import_queue){0};
    queue->tasks = calloc(IMPORT_TASKS_MAX, sizeof *queue->tasks);
    for (size_t i = 0; i < IMPORT_TASKS_MAX && queue->tasks != NULL; i++) {
        import_record_init(&queue->tasks[i].capture, directory, VOLUME_DOCUMENT_SIZE_MAX);
        import_record_init(&queue->tasks[i].request, directory, IMPORT_REQUEST_SIZE_MAX);
    }
    return queue->tasks == NULL ? ERR_MEMORY : ERR_OK;
}

void import_queue_done(struct import_queue *queue) {
    for (size_t i = 0; i < IMPORT_TASKS_MAX && queue->tasks != NULL; i++) {
        import_record_done(&queue->tasks[i].capture);
        import_record_done(&queue->tasks[i].request);
    }
    free(queue->tasks);
}

/* Headers borrow memory that does not move, so records can be exchanged as they are. */
static void swap_records(struct import_record *a, struct import_record *b) {
    struct import_record kept = *a;
    *a = *b;
    *b = kept;
}

/* ---- readers ---- */

/* What the record waits for, beside room. */
struct order {
    bool is_behind_file; /* all captures before it in its file: it may mean any of them */
    bool has_digest;
    struct warc_digest digest; /* the captures before it that state the same */
};

static struct order order_of(const struct warc_record *header) {
    struct order order = {0};
    struct bytes digest = fields_get(&header->fields, BYTES("WARC-Payload-Digest"));
    order.has_digest = digest.size > 0 && warc_digest_parse(&order.digest, digest, NULL) == ERR_OK;
    order.is_behind_file =
        header->type == WARC_TYPE_REVISIT && (!order.has_digest || record_is_not_modified(header));
    return order;
}

/* With the lock: a free task, or NULL while the record must wait. */
static struct import_task *find_room(const struct import_job *job, const struct order *order) {
    const struct import_queue *queue = &job->import->queue;
    struct import_task *room = NULL;
    if (queue->size > 0 && queue->size + job->capture.block.size > IMPORT_TASKS_SIZE_MAX) {
        return NULL;
    }
    for (size_t i = 0; i < IMPORT_TASKS_MAX; i++) {
        struct import_task *task = &queue->tasks[i];
        if (task->state == IMPORT_TASK_FREE) {
            room = task;
            continue;
        }
        bool is_before = order->is_behind_file && task->file == job->file;
        bool is_same =
            order->has_digest && task->has_digest && warc_digest_equal(&order->digest, &task->digest);
        if (is_before || is_same) {
            return NULL;
        }
    }
    return room;
}

static void fill(struct import_queue *queue, struct import_task *task, struct import_job *job,
                 const struct order *order) {
    swap_records(&task->capture, &job->capture);
    if (job->is_request_attached) {
        swap_records(&task->request, &job->request);
        job->request.is_there = false;
    }
    task->file = job->file;
    task->is_request_attached = job->is_request_attached;
    task->has_digest = order->has_digest;
    task->digest = order->digest;
    task->number = queue->put_count++;
    task->state = IMPORT_TASK_WAITING;
    queue->size += task->capture.block.size;
}

void import_dispatch(struct import_job *job) {
    struct import *import = job->import;
    struct order order = order_of(&job->capture.header);
    struct import_task *task = NULL;
    pthread_mutex_lock(&import->lock);
    while (import->err == ERR_OK && (task = find_room(job, &order)) == NULL) {
        (void)bell_await(&import->queue.has_done, &import->lock, BELL_NEVER_US);
    }
    if (import->err == ERR_OK) {
        fill(&import->queue, task, job, &order);
        bell_ring(&import->queue.has_task);
    }
    pthread_mutex_unlock(&import->lock);
}

void import_queue_close(struct import *import) {
    pthread_mutex_lock(&import->lock);
    import->queue.is_closed = true;
    bell_ring(&import->queue.has_task);
    pthread_mutex_unlock(&import->lock);
}

/* ---- workers ---- */

static void check_digests(struct import_job *job) {
    warc_check_start(&job->check, &job->capture.header);
    warc_check_feed(&job->check, job->capture.bytes);
    warc_check_finish(&job->check);
    if (!warc_check_is_good(&job->check)) {
        import_count(job, &job->import->tally.mismatched_count);
        import_report(job, job->capture.offset, "%.*s does not match its digest; imported as it is",
                      BYTES_ARG(job->capture.header.target_uri));
    }
}

void import_store(struct import_job *job) {
    enum err err = scratch_bytes(&job->capture.block, &job->capture.bytes);
    if (err == ERR_OK && job->is_request_attached) {
        err = scratch_bytes(&job->request.block, &job->request.bytes);
    }
    if (err != ERR_OK) {
        import_report(job, job->capture.offset, "%s", err_text(err));
        import_stop(job->import, err);
        return;
    }
    if (!job->is_second_pass) {
        check_digests(job);
    }
    import_store_capture(job);
}

/* The task that has waited longest; NULL when there will be none. */
static struct import_task *take_task(struct import *import) {
    struct import_queue *queue = &import->queue;
    struct import_task *found = NULL;
    pthread_mutex_lock(&import->lock);
    for (;;) {
        for (size_t i = 0; i < IMPORT_TASKS_MAX; i++) {
            struct import_task *task = &queue->tasks[i];
            bool is_next =
                task->state == IMPORT_TASK_WAITING && (found == NULL || task->number < found->number);
            found = is_next ? task : found;
        }
        if (found != NULL || queue->is_closed) {
            break;
        }
        (void)bell_await(&queue->has_task, &import->lock, BELL_NEVER_US);
    }
    if (found != NULL) {
        found->state = IMPORT_TASK_TAKEN;
    }
    pthread_mutex_unlock(&import->lock);
    return found;
}

static void run_task(struct import_job *job, struct import_task *task) {
    struct import *import = job->import;
    uint64_t size = task->capture.block.size;
    swap_records(&job->capture, &task->capture);
    swap_records(&job->request, &task->request);
    job->file = task->file;
    job->is_request_attached = task->is_request_attached;
    if (!import_is_stopped(import)) {
        import_store(job);
    }
    pthread_mutex_lock(&import->lock);
    task->state = IMPORT_TASK_FREE;
    import->queue.size -= size;
    bell_ring(&import->queue.has_done);
    pthread_mutex_unlock(&import->lock);
}

void import_work(struct import_job *job) {
    struct import_task *task;
    while ((task = take_task(job->import)) != NULL) {
        run_task(job, task);
        priority_yield(); /* to a running node, whose readers are first */
    }
}
