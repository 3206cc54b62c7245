#include "base/clock.h"
#include "node/reading/ring_shelf_state.h"

enum { AT_ONCE_MAX = 64 };
static const uint64_t SILENCE_US = 10 * 1000000;

/* ---- who did not answer ---- */

bool ring_shelf_is_silent(struct ring_shelf *shelf, const struct peer *peer) {
    uint64_t now_us = clock_monotonic_us(&clock_system);
    bool is_silent = false;
    pthread_mutex_lock(&shelf->lock);
    for (size_t i = 0; i < RING_SHELF_SILENT_MAX && !is_silent; i++) {
        const struct ring_shelf_silent *silent = &shelf->silent[i];
        is_silent = silent->until_us > now_us && memcmp(silent->key, peer->key, PEER_KEY_SIZE) == 0;
    }
    pthread_mutex_unlock(&shelf->lock);
    return is_silent;
}

static void note_silent(struct ring_shelf *shelf, const struct peer *peer) {
    uint64_t now_us = clock_monotonic_us(&clock_system);
    pthread_mutex_lock(&shelf->lock);
    struct ring_shelf_silent *slot = &shelf->silent[0];
    for (size_t i = 0; i < RING_SHELF_SILENT_MAX; i++) {
        struct ring_shelf_silent *other = &shelf->silent[i];
        if (memcmp(other->key, peer->key, PEER_KEY_SIZE) == 0) {
            slot = other;
            break;
        }
        slot = other->until_us < slot->until_us ? other : slot;
    }
    memcpy(slot->key, peer->key, PEER_KEY_SIZE);
    slot->until_us = now_us + SILENCE_US;
    pthread_mutex_unlock(&shelf->lock);
}

/* ---- who waits ---- */

/* Within the lock; count may be NULL. */
static void begin_use(struct ring_shelf *shelf, uint32_t *count) {
    shelf->users_count++;
    if (count != NULL) {
        ++*count;
    }
}

static void end_use(struct ring_shelf *shelf, uint32_t *count) {
    pthread_mutex_lock(&shelf->lock);
    shelf->users_count--;
    if (count != NULL) {
        --*count;
    }
    if (shelf->users_count == 0) {
        pthread_cond_broadcast(&shelf->idle);
    }
    pthread_mutex_unlock(&shelf->lock);
}

enum err ring_shelf_enter(struct ring_shelf *shelf) {
    pthread_mutex_lock(&shelf->lock);
    enum err err = !shelf->is_active                                  ? ERR_NOT_FOUND
                   : shelf->waiters_count < shelf->config.waiters_max ? ERR_OK
                                                                      : ERR_UNREACHABLE;
    if (err == ERR_OK) {
        begin_use(shelf, &shelf->waiters_count);
    }
    pthread_mutex_unlock(&shelf->lock);
    return err;
}

void ring_shelf_leave(struct ring_shelf *shelf) {
    end_use(shelf, &shelf->waiters_count);
}

bool ring_shelf_use(struct ring_shelf *shelf) {
    pthread_mutex_lock(&shelf->lock);
    bool is_active = shelf->is_active;
    if (is_active) {
        begin_use(shelf, NULL);
    }
    pthread_mutex_unlock(&shelf->lock);
    return is_active;
}

void ring_shelf_unuse(struct ring_shelf *shelf) {
    end_use(shelf, NULL);
}

/* Those that were left behind are there beside those that are waited for. */
bool ring_shelf_enter_aside(struct ring_shelf *shelf) {
    pthread_mutex_lock(&shelf->lock);
    bool may_enter = shelf->is_active && shelf->asides_count < 2 * shelf->config.waiters_max;
    if (may_enter) {
        begin_use(shelf, &shelf->asides_count);
    }
    pthread_mutex_unlock(&shelf->lock);
    return may_enter;
}

void ring_shelf_leave_aside(struct ring_shelf *shelf) {
    end_use(shelf, &shelf->asides_count);
}

void ring_shelf_end(struct shelf *generic) {
    struct ring_shelf *shelf = (struct ring_shelf *)generic;
    pthread_mutex_lock(&shelf->lock);
    shelf->is_active = false;
    while (shelf->users_count > 0) {
        pthread_cond_wait(&shelf->idle, &shelf->lock);
    }
    pthread_mutex_unlock(&shelf->lock);
}

void ring_shelf_blame(struct ring_shelf *shelf, const struct peer *peer, const char *sentence) {
    if (ring_shelf_use(shelf)) {
        if (shelf->config.blame != NULL) {
            shelf->config.blame(shelf->config.context, peer, sentence);
        }
        ring_shelf_unuse(shelf);
    }
}

/* ---- asking ---- */

/* The caller's thread waits until none is left. */
struct batch {
    struct ring_shelf *shelf;
    struct ring_shelf_question **questions;
    size_t count;
    pthread_mutex_t lock;
    pthread_cond_t over;
    size_t left; /* lock */
};

struct asked {
    struct batch *batch;
    struct ring_shelf_question *question;
};

/* From here on the batch may be gone. */
static void count_down(struct batch *batch) {
    pthread_mutex_lock(&batch->lock);
    batch->left--;
    if (batch->left == 0) {
        pthread_cond_signal(&batch->over);
    }
    pthread_mutex_unlock(&batch->lock);
}

static void on_answer(void *context, enum err err, struct bytes answer) {
    struct asked *asked = context;
    struct ring_shelf_question *question = asked->question;
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
    const struct ring_shelf_config *config = &batch->shelf->config;
    size_t count = batch->count; /* the last one to end lets the batch go */
    for (size_t i = 0; i < count; i++) {
        struct asked *asked = &start->asked[i];
        struct ring_shelf_question *question = asked->question;
        enum err err = bulk_call(config->bulk, &question->peer, BULK_WALK, buf_bytes(&question->question),
                                 config->timeout_ms, on_answer, asked);
        if (err != ERR_OK) {
            question->err = err;
            count_down(batch);
        }
    }
}

static void ask_batch(struct ring_shelf *shelf, struct ring_shelf_question **questions, size_t count) {
    struct batch batch = {.shelf = shelf, .questions = questions, .count = count, .left = count};
    struct asked asked[AT_ONCE_MAX];
    struct start start = {.batch = &batch, .asked = asked};
    for (size_t i = 0; i < count; i++) {
        asked[i] = (struct asked){.batch = &batch, .question = questions[i]};
    }
    pthread_mutex_init(&batch.lock, NULL);
    pthread_cond_init(&batch.over, NULL);
    enum err err = bulk_post(shelf->config.bulk, start_batch, &start);
    pthread_mutex_lock(&batch.lock);
    while (err == ERR_OK && batch.left > 0) {
        pthread_cond_wait(&batch.over, &batch.lock);
    }
    pthread_mutex_unlock(&batch.lock);
    pthread_cond_destroy(&batch.over);
    pthread_mutex_destroy(&batch.lock);
    for (size_t i = 0; i < count; i++) {
        enum err ended = err != ERR_OK ? err : questions[i]->err;
        questions[i]->err = ended;
        if (ended == ERR_TIMEOUT || ended == ERR_UNREACHABLE || ended == ERR_REFUSED || ended == ERR_CLOSED) {
            note_silent(shelf, &questions[i]->peer);
        }
    }
}

void ring_shelf_ask(struct ring_shelf *shelf, struct ring_shelf_question **questions, size_t count) {
    for (size_t i = 0; i < count; i += AT_ONCE_MAX) {
        size_t left = count - i;
        ask_batch(shelf, questions + i, left < AT_ONCE_MAX ? left : AT_ONCE_MAX);
    }
}
