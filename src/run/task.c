#include "run/task.h"

#include "base/assert.h"
#include "base/clock.h"
#include "run/thread.h"

bool task_is_stopping(struct task *task) {
    return atomic_load(&task->is_stopping);
}

/* Until the time has passed, or the task is stopped, or poked if that counts. */
static void task_wait(struct task *task, uint64_t time_us, bool heeds_pokes) {
    bool is_endless = time_us == TASK_FOR_EVER_US;
    uint64_t until_us = is_endless ? BELL_NEVER_US : clock_monotonic_us(&clock_system) + time_us;
    bool has_time = time_us > 0;
    while (has_time) {
        unsigned heard = bell_listen(&task->bell);
        bool is_awake = task_is_stopping(task) || (heeds_pokes && atomic_load(&task->is_poked));
        has_time = !is_awake && bell_wait_until(&task->bell, heard, until_us);
    }
}

static void *task_run(void *context) {
    struct task *task = context;
    priority_lower(task->priority);
    while (!task_is_stopping(task)) {
        atomic_exchange(&task->is_poked, false);
        task_wait(task, task->run(task->context), true);
    }
    return NULL;
}

enum err task_start(struct task *task, const char *name, enum priority priority,
                    uint64_t (*run)(void *context), void *context) {
    ASSERT(!task->has_thread);
    task->run = run; /* the rest stays: it may have been poked before */
    task->context = context;
    task->priority = priority;
    enum err err = thread_start(&task->thread, name, task_run, task);
    task->has_thread = err == ERR_OK;
    return err;
}

void task_poke(struct task *task) {
    if (!atomic_exchange(&task->is_poked, true)) {
        bell_ring(&task->bell);
    }
}

void task_stop(struct task *task) {
    atomic_store(&task->is_stopping, true);
    bell_ring(&task->bell);
    if (task->has_thread) {
        pthread_join(task->thread, NULL);
        task->has_thread = false;
    }
}

bool task_rest(struct task *task, uint64_t time_us) {
    task_wait(task, time_us, false);
    return !task_is_stopping(task);
}
