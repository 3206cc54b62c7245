#include "base/clock.h"
#include "node/reading/ring_reader_state.h"

enum { AT_ONCE_MAX = 64 };

/* ---- who waits ---- */

/* Within the lock; count may be NULL. */
static void begin_use(struct ring_reader *backend, uint32_t *count) {
    backend->users_count++;
    if (count != NULL) {
        ++*count;
    }
}

static void end_use(struct ring_reader *backend, uint32_t *count) {
    pthread_mutex_lock(&backend->lock);
    backend->users_count--;
    if (count != NULL) {
        --*count;
    }
    if (backend->users_count == 0) {
        bell_ring(&backend->idle);
    }
    pthread_mutex_unlock(&backend->lock);
}

enum err ring_reader_enter(struct ring_reader *backend) {
    pthread_mutex_lock(&backend->lock);
    enum err err = !backend->is_active                                    ? ERR_NOT_FOUND
                   : backend->waiters_count < backend->config.waiters_max ? ERR_OK
                                                                          : ERR_UNREACHABLE;
    if (err == ERR_OK) {
        begin_use(backend, &backend->waiters_count);
    }
    pthread_mutex_unlock(&backend->lock);
    return err;
}

void ring_reader_leave(struct ring_reader *backend) {
    end_use(backend, &backend->waiters_count);
}

bool ring_reader_use(struct ring_reader *backend) {
    pthread_mutex_lock(&backend->lock);
    bool is_active = backend->is_active;
    if (is_active) {
        begin_use(backend, NULL);
    }
    pthread_mutex_unlock(&backend->lock);
    return is_active;
}

void ring_reader_unuse(struct ring_reader *backend) {
    end_use(backend, NULL);
}

/* Those that were left behind are there beside those that are waited for. */
bool ring_reader_enter_aside(struct ring_reader *backend) {
    pthread_mutex_lock(&backend->lock);
    bool may_enter = backend->is_active && backend->asides_count < 2 * backend->config.waiters_max;
    if (may_enter) {
        begin_use(backend, &backend->asides_count);
    }
    pthread_mutex_unlock(&backend->lock);
    return may_enter;
}

void ring_reader_leave_aside(struct ring_reader *backend) {
    end_use(backend, &backend->asides_count);
}

void ring_reader_end(struct backend *generic) {
    struct ring_reader *backend = (struct ring_reader *)generic;
    pthread_mutex_lock(&backend->lock);
    backend->is_active = false;
    while (backend->users_count > 0) {
        (void)bell_await(&backend->idle, &backend->lock, BELL_NEVER_US);
    }
    pthread_mutex_unlock(&backend->lock);
    pool_stop(&backend->asides);
}

void ring_reader_blame(struct ring_reader *backend, const struct peer *peer, const char *sentence) {
    if (ring_reader_use(backend)) {
        if (backend->config.blame != NULL) {
            backend->config.blame(backend->config.context, peer, sentence);
        }
        ring_reader_unuse(backend);
    }
}

/* ---- asking ---- */

/* The caller's thread waits until none is left. */
struct batch {
    struct ring_reader *backend;
    struct ring_reader_question **questions;
    size_t count;
    pthread_mutex_t lock;
    struct bell over;
    size_t left; /* lock */
};

struct asked {
    struct batch *batch;
    struct ring_reader_question *question;
};

/* From here on the batch may be gone. */
static void count_down(struct batch *batch) {
    pthread_mutex_lock(&batch->lock);
    batch->left--;
    if (batch->left == 0) {
        bell_ring(&batch->over);
    }
    pthread_mutex_unlock(&batch->lock);
}

static void on_answer(void *context, enum err err, struct bytes answer) {
    struct asked *asked = context;
    struct ring_reader_question *question = asked->question;
    question->err = err;
    buf_clear(&question->answer);
    if (err == ERR_OK) {
        question->err = buf_put(&question->answer, answer);
    }
    count_down(asked->batch);
}

struct start {
    struct batch *batch;
    struct asked *asked;
};

static void start_batch(void *context) {
    struct start *start = context;
    struct batch *batch = start->batch;
    const struct ring_reader_config *config = &batch->backend->config;
    size_t count = batch->count; /* the last one to end lets the batch go */
    for (size_t i = 0; i < count; i++) {
        struct asked *asked = &start->asked[i];
        struct ring_reader_question *question = asked->question;
        enum err err = peer_rpc_call(config->peer_rpc, &question->peer, PEER_RPC_WALK,
                                     buf_bytes(&question->question), config->timeout_ms, on_answer, asked);
        if (err != ERR_OK) {
            question->err = err;
            count_down(batch);
        }
    }
}

static void ask_batch(struct ring_reader *backend, struct ring_reader_question **questions, size_t count) {
    struct batch batch = {.backend = backend, .questions = questions, .count = count, .left = count};
    struct asked asked[AT_ONCE_MAX];
    struct start start = {.batch = &batch, .asked = asked};
    for (size_t i = 0; i < count; i++) {
        asked[i] = (struct asked){.batch = &batch, .question = questions[i]};
    }
    pthread_mutex_init(&batch.lock, NULL);
    enum err err = peer_rpc_post(backend->config.peer_rpc, start_batch, &start);
    pthread_mutex_lock(&batch.lock);
    while (err == ERR_OK && batch.left > 0) {
        (void)bell_await(&batch.over, &batch.lock, BELL_NEVER_US);
    }
    pthread_mutex_unlock(&batch.lock);
    pthread_mutex_destroy(&batch.lock);
    for (size_t i = 0; i < count; i++) {
        enum err ended = err != ERR_OK ? err : questions[i]->err;
        questions[i]->err = ended;
        if (ended == ERR_TIMEOUT || ended == ERR_UNREACHABLE || ended == ERR_REFUSED || ended == ERR_CLOSED) {
            ring_reader_doubts_note_silent(&backend->doubts, &questions[i]->peer,
                                           clock_monotonic_us(&clock_system));
        }
    }
}

void ring_reader_ask(struct ring_reader *backend, struct ring_reader_question **questions, size_t count) {
    for (size_t i = 0; i < count; i += AT_ONCE_MAX) {
        size_t left = count - i;
        ask_batch(backend, questions + i, left < AT_ONCE_MAX ? left : AT_ONCE_MAX);
    }
}
