#include "node/reading/ring_reader_aside.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct ring_reader_aside {
    void (*run)(void *context);
    void (*release)(void *context);
    void *context;
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool is_over;           /* lock */
    unsigned holders_count; /* lock: the thread, and who started it */
};

static void drop(struct ring_reader_aside *aside) {
    pthread_mutex_lock(&aside->lock);
    bool is_last = --aside->holders_count == 0;
    pthread_mutex_unlock(&aside->lock);
    if (is_last) {
        aside->release(aside->context);
        pthread_cond_destroy(&aside->over);
        pthread_mutex_destroy(&aside->lock);
        free(aside);
    }
}

static void *run(void *context) {
    struct ring_reader_aside *aside = context;
    aside->run(aside->context);
    pthread_mutex_lock(&aside->lock);
    aside->is_over = true;
    pthread_cond_signal(&aside->over);
    pthread_mutex_unlock(&aside->lock);
    drop(aside);
    return NULL;
}

static void init_lock(struct ring_reader_aside *aside) {
    pthread_condattr_t attributes;
    pthread_mutex_init(&aside->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&aside->over, &attributes);
    pthread_condattr_destroy(&attributes);
}

struct ring_reader_aside *ring_reader_aside_start(void (*run_work)(void *context),
                                                  void (*release)(void *context), void *context) {
    struct ring_reader_aside *aside = calloc(1, sizeof *aside);
    pthread_attr_t attributes;
    pthread_t thread;
    if (aside == NULL) {
        return NULL;
    }
    *aside = (struct ring_reader_aside){
        .run = run_work, .release = release, .context = context, .holders_count = 2};
    init_lock(aside);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    bool is_started = pthread_create(&thread, &attributes, run, aside) == 0;
    pthread_attr_destroy(&attributes);
    if (!is_started) {
        pthread_cond_destroy(&aside->over);
        pthread_mutex_destroy(&aside->lock);
        free(aside);
        return NULL;
    }
    return aside;
}

bool ring_reader_aside_wait(struct ring_reader_aside *aside, uint64_t wait_us) {
    struct timespec until = {0};
    bool has_end = wait_us != UINT64_MAX;
    if (has_end) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        uint64_t nanoseconds = (uint64_t)until.tv_nsec + wait_us * 1000;
        until.tv_sec += (time_t)(nanoseconds / 1000000000);
        until.tv_nsec = (long)(nanoseconds % 1000000000);
    }
    int result = 0;
    pthread_mutex_lock(&aside->lock);
    while (!aside->is_over && result == 0) {
        result = has_end ? pthread_cond_timedwait(&aside->over, &aside->lock, &until)
                         : pthread_cond_wait(&aside->over, &aside->lock);
    }
    bool is_over = aside->is_over;
    pthread_mutex_unlock(&aside->lock);
    return is_over;
}

void ring_reader_aside_leave(struct ring_reader_aside *aside) {
    drop(aside);
}
