/*
 * node_status - what a node does, in numbers and sentences, at one moment. The dashboard, /metrics and
 * /api/v1/status (docs/api.md) all show this one struct.
 *
 * The node fills it, in the arena of whoever asks; replay only reads it.
 */
#ifndef MNEMON_REPLAY_ADMIN_NODE_STATUS_H
#define MNEMON_REPLAY_ADMIN_NODE_STATUS_H

#include "base/arena.h"
#include "base/json.h"
#include "http/server/http_server.h"
#include "store/instance/instance.h"

enum { NODE_STATUS_NUMBERS_MAX = 96, NODE_STATUS_PAGES_MAX = 32 };

struct node_status_number {
    const char *path; /* its place in the JSON: "crawl.documents_per_second" */
    double value;
    int decimals; /* that are shown; 0 for counts */
};

struct node_status_sentence {
    const char *about; /* what kind of thing is slow; which host is waited for */
    const char *text;
};

struct node_status_volume {
    struct instance_volume volume;
    bool has_stat;
    struct volume_stat stat;
    bool has_disk;
    uint64_t free_size;
    uint64_t disk_size;
};

/* All routes of a kind. */
struct node_status_page {
    struct bytes name; /* "web", "cdx" … */
    struct http_route_stat stat;
};

struct node_status {
    const char *title;
    int64_t time_us;
    struct node_status_number numbers[NODE_STATUS_NUMBERS_MAX];
    size_t numbers_count;
    const char *hold; /* of the crawl: "flowing" … */
    struct node_status_sentence *waiting;
    size_t waiting_count;
    struct node_status_volume *volumes;
    size_t volumes_count;
    struct node_status_page pages[NODE_STATUS_PAGES_MAX];
    size_t pages_count;
    bool has_search;
    const char *search_error;          /* empty without one */
    struct node_status_sentence *slow; /* the worst first */
    size_t slow_count;
};

/* NULL: it has no such number. */
const struct node_status_number *node_status_find(const struct node_status *status, const char *path);

/* "up", "full" or "down". */
const char *node_status_volume_state(const struct node_status_volume *volume);

void node_status_put(const struct node_status *status, struct buf *out);

#endif
