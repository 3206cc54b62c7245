#include "run/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "run/thread.h"

/* ---- posts ---- */

static struct loop_post *loop_take(struct loop *loop) {
    pthread_mutex_lock(&loop->lock);
    struct loop_post *post = loop->first;
    if (post != NULL) {
        loop->first = post->next;
        loop->last = loop->first == NULL ? &loop->first : loop->last;
        loop->posts_count--;
        loop->calls_count -= post->is_allocated;
        post->is_waiting = false;
    }
    pthread_mutex_unlock(&loop->lock);
    return post;
}

/* At most so many. False: there was none left. */
static bool loop_run_posts(struct loop *loop, size_t count) {
    for (; count > 0; count--) {
        struct loop_post *post = loop_take(loop);
        if (post == NULL) {
            return false;
        }
        void (*run)(void *context) = post->run; /* from here on the post may be gone */
        void *context = post->context;
        if (post->is_allocated) {
            free(post);
        }
        run(context);
    }
    return true;
}

static void loop_send_nudge(struct loop *loop) {
    if (!atomic_exchange(&loop->nudge.is_sent, true)) {
        (void)eventfd_write(loop->nudge.fd, 1); /* it fails only where 2^64 are unread */
    }
}

/* Those that are there now: what they post in their turn waits until handles have had theirs. */
static void loop_on_nudge(uv_poll_t *poll, int status, int events) {
    struct loop *loop = poll->data;
    (void)status;
    (void)events;
    eventfd_t unread;
    (void)eventfd_read(loop->nudge.fd, &unread); /* where there is nothing to read, the look is for nothing */
    atomic_store(&loop->nudge.is_sent, false);   /* before the look: what comes during it nudges again */
    pthread_mutex_lock(&loop->lock);
    size_t count = loop->posts_count;
    bool is_stopping = loop->is_stopping;
    pthread_mutex_unlock(&loop->lock);
    (void)loop_run_posts(loop, count);
    if (loop->is_closed) {
        return; /* by one of them */
    }
    if (is_stopping) {
        loop_close(loop);
        return;
    }
    pthread_mutex_lock(&loop->lock);
    bool has_more = loop->posts_count > 0;
    pthread_mutex_unlock(&loop->lock);
    if (has_more) {
        loop_send_nudge(loop);
    }
}

/* False: not taken. */
static bool loop_put(struct loop *loop, struct loop_post *post) {
    pthread_mutex_lock(&loop->lock);
    bool is_taken = !loop->is_stopping && (!post->is_allocated || loop->calls_count < loop->calls_max);
    if (is_taken && !post->is_waiting) {
        post->is_waiting = true;
        post->next = NULL;
        *loop->last = post;
        loop->last = &post->next;
        loop->calls_count += post->is_allocated;
        if (loop->posts_count++ == 0) {
            loop_send_nudge(loop); /* with the lock: it is closed only after is_stopping is seen */
        }
    }
    pthread_mutex_unlock(&loop->lock);
    return is_taken;
}

bool loop_post(struct loop *loop, struct loop_post *post) {
    return loop_put(loop, post);
}

void loop_drop(struct loop *loop, struct loop_post *post) {
    pthread_mutex_lock(&loop->lock);
    struct loop_post **place = &loop->first;
    while (post->is_waiting && *place != post) {
        place = &(*place)->next;
    }
    if (post->is_waiting) {
        *place = post->next;
        loop->last = post->next == NULL ? place : loop->last;
        loop->posts_count--;
        post->is_waiting = false;
    }
    pthread_mutex_unlock(&loop->lock);
}

enum err loop_call(struct loop *loop, void (*run)(void *context), void *context) {
    struct loop_post *post = malloc(sizeof *post);
    if (post == NULL) {
        return ERR_MEMORY;
    }
    *post = (struct loop_post){.run = run, .context = context, .is_allocated = true};
    if (loop_put(loop, post)) {
        return ERR_OK;
    }
    free(post);
    pthread_mutex_lock(&loop->lock);
    bool is_stopping = loop->is_stopping;
    pthread_mutex_unlock(&loop->lock);
    return is_stopping ? ERR_CLOSED : ERR_BUSY;
}

/* ---- life ---- */

enum err loop_init(struct loop *loop, size_t calls_max) {
    *loop = (struct loop){.calls_max = calls_max};
    if (uv_loop_init(&loop->uv) != 0) {
        return ERR_MEMORY;
    }
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0 || uv_poll_init(&loop->uv, &loop->nudge.poll, fd) != 0) {
        enum err err = fd < 0 ? err_from_errno(errno) : ERR_SYSTEM;
        if (fd >= 0) {
            close(fd);
        }
        int result = uv_loop_close(&loop->uv);
        ASSERT(result == 0);
        return err;
    }
    loop->nudge.fd = fd;
    loop->nudge.poll.data = loop;
    uv_poll_start(&loop->nudge.poll, UV_READABLE, loop_on_nudge);
    loop->last = &loop->first;
    pthread_mutex_init(&loop->lock, NULL);
    return ERR_OK;
}

static void *loop_run(void *context) {
    struct loop *loop = context;
    atomic_store(&loop->id, gettid());
    priority_lower(loop->priority);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    atomic_store(&loop->id, 0);
    return NULL;
}

enum err loop_start(struct loop *loop, const char *name, enum priority priority) {
    ASSERT(!loop->has_thread);
    loop->priority = priority;
    enum err err = thread_start(&loop->thread, name, loop_run, loop);
    loop->has_thread = err == ERR_OK;
    return err;
}

bool loop_is_here(struct loop *loop) {
    int id = atomic_load(&loop->id);
    return id == 0 || id == gettid();
}

static void loop_on_nudge_closed(uv_handle_t *handle) {
    const struct loop *loop = handle->data;
    close(loop->nudge.fd);
}

static void loop_close_handle(uv_handle_t *handle, void *context) {
    (void)context;
    bool is_plain = handle->type == UV_TIMER || handle->type == UV_CHECK || handle->type == UV_PREPARE ||
                    handle->type == UV_IDLE;
    if (is_plain && !uv_is_closing(handle)) {
        uv_close(handle, NULL);
    }
}

void loop_close(struct loop *loop) {
    ASSERT(loop_is_here(loop) && !loop->is_closed);
    pthread_mutex_lock(&loop->lock);
    loop->is_stopping = true;
    pthread_mutex_unlock(&loop->lock);
    loop->is_closed = true;
    while (loop_run_posts(loop, SIZE_MAX)) {
    }
    if (loop->end != NULL) {
        loop->end(loop->end_context);
    }
    uv_walk(&loop->uv, loop_close_handle, NULL);
    uv_close((uv_handle_t *)&loop->nudge.poll, loop_on_nudge_closed);
}

/* The lock stays: other threads may still want to post, in vain. */
void loop_join(struct loop *loop) {
    if (loop->has_thread) {
        pthread_join(loop->thread, NULL);
        loop->has_thread = false;
    }
    if (!loop->is_closed) {
        loop_close(loop); /* there was no thread */
    }
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    int result = uv_loop_close(&loop->uv);
    ASSERT(result == 0 && loop->is_closed);
}

void loop_stop(struct loop *loop, void (*end)(void *context), void *context) {
    ASSERT(atomic_load(&loop->id) != gettid());
    pthread_mutex_lock(&loop->lock);
    if (!loop->is_stopping) { /* else it ends by itself */
        loop->end = end;
        loop->end_context = context;
        loop->is_stopping = true;
        loop_send_nudge(loop);
    }
    pthread_mutex_unlock(&loop->lock);
    loop_join(loop);
}

/* ---- timers ---- */

static void loop_on_timer(uv_timer_t *uv) {
    struct loop_timer *timer = uv->data;
    timer->run(timer->context);
}

void loop_timer_init(struct loop *loop, struct loop_timer *timer, void (*run)(void *context), void *context) {
    *timer = (struct loop_timer){.run = run, .context = context};
    uv_timer_init(&loop->uv, &timer->uv);
    timer->uv.data = timer;
}

static uint64_t loop_to_ms(uint64_t time_us) {
    return time_us / 1000 + (time_us % 1000 > 0);
}

void loop_timer_set(struct loop_timer *timer, uint64_t after_us, uint64_t repeat_us) {
    if (!uv_is_closing((uv_handle_t *)&timer->uv)) {
        uv_timer_start(&timer->uv, loop_on_timer, loop_to_ms(after_us), loop_to_ms(repeat_us));
    }
}

void loop_timer_stop(struct loop_timer *timer) {
    uv_timer_stop(&timer->uv);
}

bool loop_timer_is_set(const struct loop_timer *timer) {
    return uv_is_active((const uv_handle_t *)&timer->uv) != 0;
}
