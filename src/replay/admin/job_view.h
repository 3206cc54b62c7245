/*
 * job_view - a job of the crawl, and a page that somebody saves, as the pages of the operator and
 * /api/v1/jobs show them (docs/api.md).
 *
 * The node fills them, in the arena of whoever asks.
 */
#ifndef MNEMON_REPLAY_ADMIN_JOB_VIEW_H
#define MNEMON_REPLAY_ADMIN_JOB_VIEW_H

#include "base/arena.h"
#include "base/json.h"
#include "replay/admin/ring_view.h"

struct job_view {
    const char *name;  /* letters that need no escaping */
    const char *state; /* "new", "running" … */

    /* How far it is: a JSON object, as its state.json has it, empty before it began; and of it what pages
     * show. */
    struct bytes progress;
    uint64_t known_count;
    uint64_t waiting_count;
    uint64_t stored_count;
    uint64_t failed_count;
    uint64_t received_size;

    const struct bytes *seeds; /* the first ones */
    size_t seeds_shown_count;
    size_t seeds_count;
    const char *scope;
    uint64_t depth;
    bool is_paused;
    uint64_t period_s;

    /* Of a job that the ring shares: all nodes together, and of how many there is no word. */
    const struct ring_view_job *ring; /* NULL: it is this node's alone */
    uint64_t ring_unreported_count;
};

struct save_view {
    const char *id;
    const char *status; /* "pending", "success" or "error" */
    const char *url;
    const char *timestamp; /* of the capture; NULL: there is none */
    const char *message;   /* why not; or NULL */
    uint64_t stored_count;
    uint64_t waiting_count;
    uint64_t failed_count;
};

void job_view_put(const struct job_view *job, struct json *json);

/* The members of that object for the whole ring: of /api/v1/jobs and of /api/v1/ring. */
void job_view_put_ring(const struct ring_view_job *job, uint64_t unreported_count, struct json *json);
void save_view_put(const struct save_view *save, struct json *json);

#endif
