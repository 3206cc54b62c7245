/* frontier-fixture - a frontier in a directory of its own with an owner that takes whatever is ready. */
#ifndef MNEMON_TESTS_FRONTIER_FIXTURE_H
#define MNEMON_TESTS_FRONTIER_FIXTURE_H

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "crawl/frontier/frontier.h"
#include "scratch.h"
#include "unit.h"

enum { LANES_MAX = 4096, TEXT_SIZE = 256 };

struct fixture {
    char *parent;
    char directory[SCRATCH_PATH_SIZE];
    struct frontier_config config;
    struct frontier *frontier;
    struct frontier_lane *ready[LANES_MAX]; /* may be taken from */
    size_t ready_count;
    size_t gone_count;
    size_t told_count;    /* calls of ready() */
    char kept[TEXT_SIZE]; /* of the lane that was ready last */
    bool is_polling;
    _Atomic bool is_awake;
};

static inline void fixture_wake(void *context) {
    struct fixture *fixture = context;
    atomic_store(&fixture->is_awake, true);
}

static inline void fixture_drop(struct fixture *fixture, struct frontier_lane *lane) {
    for (size_t i = 0; i < fixture->ready_count; i++) {
        if (fixture->ready[i] == lane) {
            memmove(fixture->ready + i, fixture->ready + i + 1,
                    (--fixture->ready_count - i) * sizeof *fixture->ready);
            return;
        }
    }
}

static inline void fixture_ready(void *context, struct frontier_lane *lane) {
    struct fixture *fixture = context;
    assert_true(fixture->is_polling && fixture->ready_count < LANES_MAX);
    assert_true(frontier_lane_host(lane).size > 0);
    fixture->ready[fixture->ready_count++] = lane;
    fixture->told_count++;
    struct bytes kept = frontier_lane_kept(lane);
    snprintf(fixture->kept, sizeof fixture->kept, "%.*s", BYTES_ARG(kept));
}

static inline void fixture_gone(void *context, struct frontier_lane *lane) {
    struct fixture *fixture = context;
    assert_true(fixture->is_polling);
    fixture_drop(fixture, lane);
    fixture->gone_count++;
}

static inline void open_frontier(struct fixture *fixture) {
    struct err_detail detail = {0};
    fixture->config.directory = fixture->directory;
    fixture->config.wake = fixture_wake;
    fixture->config.ready = fixture_ready;
    fixture->config.gone = fixture_gone;
    fixture->config.context = fixture;
    fixture->ready_count = 0;
    if (frontier_open(&fixture->config, &fixture->frontier, &detail) != ERR_OK) {
        fail_msg("frontier_open: %s", detail.text);
    }
    assert_true(atomic_load(&fixture->is_awake));
}

static inline void close_frontier(struct fixture *fixture) {
    frontier_close(fixture->frontier);
    fixture->frontier = NULL;
}

static inline void reopen(struct fixture *fixture) {
    close_frontier(fixture);
    open_frontier(fixture);
}

static inline void poll_frontier(struct fixture *fixture) {
    if (!atomic_exchange(&fixture->is_awake, false)) {
        nanosleep(&(struct timespec){.tv_nsec = 200 * 1000}, NULL);
        return;
    }
    fixture->is_polling = true;
    frontier_poll(fixture->frontier);
    fixture->is_polling = false;
}

/* The next URL of any lane, the lanes in turn; NULL where no lane has any in memory. */
static inline struct frontier_url *try_take(struct fixture *fixture) {
    while (fixture->ready_count > 0) {
        struct frontier_lane *lane = fixture->ready[0];
        struct frontier_url *url = frontier_take(lane);
        fixture_drop(fixture, lane);
        if (url != NULL) {
            fixture->ready[fixture->ready_count++] = lane;
            return url;
        }
    }
    return NULL;
}

/* The same, waiting for the disk; NULL once the frontier is empty. */
static inline struct frontier_url *take(struct fixture *fixture) {
    struct frontier_url *url;
    while ((url = try_take(fixture)) == NULL && !frontier_is_empty(fixture->frontier)) {
        poll_frontier(fixture);
    }
    return url;
}

static inline void wait_until_empty(struct fixture *fixture) {
    while (!frontier_is_empty(fixture->frontier)) {
        assert_null(try_take(fixture));
        poll_frontier(fixture);
    }
}

static inline void wait_until_gone(struct fixture *fixture, size_t count) {
    while (fixture->gone_count < count) {
        poll_frontier(fixture);
    }
    assert_int_equal(fixture->gone_count, count);
}

static inline void finish(struct fixture *fixture, struct frontier_url *url, enum frontier_state state) {
    struct frontier_outcome outcome = {.state = state, .status = 200, .time_us = 5};
    frontier_finish(fixture->frontier, url, &outcome, NULL, 0);
}

/* "http://host/path" as a link; the text is in `text`. */
static inline struct frontier_link link_of(char text[TEXT_SIZE], const char *host, const char *path,
                                           enum frontier_priority priority, uint16_t depth) {
    int size = snprintf(text, TEXT_SIZE, "http://%s/%s", host, path);
    assert_true(size > 0 && size < TEXT_SIZE);
    return (struct frontier_link){
        .url = bytes_of_string(text),
        .host = bytes_of(text + 7, strlen(host)),
        .depth = depth,
        .priority = priority,
    };
}

static inline size_t add(struct fixture *fixture, const char *host, const char *path,
                         enum frontier_priority priority, uint16_t depth) {
    char text[TEXT_SIZE];
    size_t added_count = 77;
    struct frontier_link link = link_of(text, host, path, priority, depth);
    assert_int_equal(frontier_add(fixture->frontier, &link, 1, &added_count), ERR_OK);
    return added_count;
}

static inline struct frontier_stat stat_of(struct fixture *fixture) {
    struct frontier_stat stat;
    frontier_stat(fixture->frontier, &stat);
    return stat;
}

static inline int make(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    void *parent = NULL;
    if (fixture == NULL || scratch_make(&parent) != 0) {
        return -1;
    }
    fixture->parent = parent;
    scratch_path(fixture->parent, "frontier", fixture->directory);
    *state = fixture;
    return 0;
}

static inline int destroy(void **state) {
    struct fixture *fixture = *state;
    void *parent = fixture->parent;
    if (fixture->frontier != NULL) {
        close_frontier(fixture);
    }
    free(fixture);
    return scratch_remove(&parent);
}

#endif
