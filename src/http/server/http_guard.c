#include "http/server/http_guard.h"

#include <sys/socket.h>
#include <time.h>

#include "run/thread.h"

enum { LOOK_PERIOD_S = 1 };

/* All that the client sent has been read, and there will be no more. */
static bool has_ended(const struct http_guarded *guarded) {
    uint8_t byte;
    return guarded->is_resting && recv(guarded->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void cut_those_due(struct http_guard *guard) {
    uint64_t now_us = clock_monotonic_us(guard->clock);
    for (struct http_guarded *guarded = guard->all.next; guarded != &guard->all; guarded = guarded->next) {
        if (has_ended(guarded)) {
            shutdown(guarded->fd, SHUT_RDWR);
            guarded->is_resting = false;
        } else if (guarded->due_us <= now_us) {
            shutdown(guarded->fd, SHUT_RDWR);
            guarded->due_us = HTTP_GUARD_NEVER;
            guard->cut_count++;
        }
    }
}

static void *guard_watch(void *context) {
    struct http_guard *guard = context;
    pthread_mutex_lock(&guard->lock);
    while (!guard->is_stopping) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += LOOK_PERIOD_S;
        pthread_cond_timedwait(&guard->wakes, &guard->lock, &until);
        cut_those_due(guard);
    }
    pthread_mutex_unlock(&guard->lock);
    return NULL;
}

enum err http_guard_init(struct http_guard *guard, const struct clock *clock) {
    *guard = (struct http_guard){.clock = clock};
    guard->all.next = guard->all.previous = &guard->all;
    pthread_mutex_init(&guard->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&guard->wakes, &attributes);
    pthread_condattr_destroy(&attributes);
    int number = thread_start(&guard->thread, "http-guard", guard_watch, guard);
    if (number != 0) {
        pthread_cond_destroy(&guard->wakes);
        pthread_mutex_destroy(&guard->lock);
    }
    return err_from_errno(number);
}

void http_guard_done(struct http_guard *guard) {
    pthread_mutex_lock(&guard->lock);
    ASSERT(guard->all.next == &guard->all);
    guard->is_stopping = true;
    pthread_cond_signal(&guard->wakes);
    pthread_mutex_unlock(&guard->lock);
    pthread_join(guard->thread, NULL);
    pthread_cond_destroy(&guard->wakes);
    pthread_mutex_destroy(&guard->lock);
}

static uint64_t due_after(const struct http_guard *guard, uint64_t within_us) {
    return within_us == HTTP_GUARD_NEVER ? within_us : clock_monotonic_us(guard->clock) + within_us;
}

void http_guard_add(struct http_guard *guard, struct http_guarded *guarded, int fd, uint64_t within_us) {
    uint64_t due_us = due_after(guard, within_us);
    pthread_mutex_lock(&guard->lock);
    *guarded = (struct http_guarded){
        .next = &guard->all, .previous = guard->all.previous, .fd = fd, .due_us = due_us};
    guarded->previous->next = guarded;
    guard->all.previous = guarded;
    pthread_mutex_unlock(&guard->lock);
}

void http_guard_remove(struct http_guard *guard, struct http_guarded *guarded) {
    pthread_mutex_lock(&guard->lock);
    guarded->previous->next = guarded->next;
    guarded->next->previous = guarded->previous;
    pthread_mutex_unlock(&guard->lock);
}

void http_guard_expect(struct http_guard *guard, struct http_guarded *guarded, uint64_t within_us,
                       bool is_resting) {
    uint64_t due_us = due_after(guard, within_us);
    pthread_mutex_lock(&guard->lock);
    guarded->due_us = due_us;
    guarded->is_resting = is_resting;
    pthread_mutex_unlock(&guard->lock);
}

uint64_t http_guard_cut_count(struct http_guard *guard) {
    pthread_mutex_lock(&guard->lock);
    uint64_t cut_count = guard->cut_count;
    pthread_mutex_unlock(&guard->lock);
    return cut_count;
}
