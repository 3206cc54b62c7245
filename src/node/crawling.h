/*
 * crawling - the node's event loop: a thread that runs the jobs of the data directory.
 *
 * The one loop of the node; the ring (ringing.h) lives on it too. It never waits for the disk. What it
 * does, others read from a copy that it makes every second and when something begins or ends.
 */
#ifndef MNEMON_NODE_CRAWLING_H
#define MNEMON_NODE_CRAWLING_H

#include <uv.h>

#include "base/buf.h"
#include "base/clock.h"
#include "crawl/crawler.h"
#include "store/instance.h"

struct crawling;

/* 0 or NULL stands for the default in parentheses. Texts outlive it. */
struct crawling_config {
    const char *directory; /* of the data; jobs are in its folder "jobs" */
    struct instance *instance;
    bool allows_private;
    const char *user_agent;  /* (that of crawl/fetch.h) */
    size_t connections_max;  /* (200) */
    const char *nameservers; /* (those of the system) */
    const struct clock *clock;
    void (*tell)(void *context, const char *name, const char *sentence); /* of a job; from the thread */
    void (*changed)(void *context); /* a job has begun or ended, and the copy says so; likewise */
    /* Others on the loop: attached before it runs, detached when it shall stop. May be NULL, both or none. */
    enum err (*attach)(void *context, uv_loop_t *loop, struct err_detail *detail);
    void (*detach)(void *context);
    void *context;
};

enum err crawling_start(const struct crawling_config *config, struct crawling **ret_crawling,
                        struct err_detail *detail) MUST_CHECK;

/* Requests that are under way end, at the latest after a few seconds; what is known of each job is on disk.
 */
void crawling_stop(struct crawling *take_crawling);

/* ---- any thread ---- */

/* A job's files have changed: do not wait for the next look at them. */
void crawling_look(struct crawling *crawling);

/* How it is, as of a second ago at most. */
void crawling_stat(struct crawling *crawling, struct crawler_stat *ret_stat);

/* Append the same of the jobs that are open, as jobs_put_json(); and the hosts that wait longest, and why. */
void crawling_put_jobs(struct crawling *crawling, struct buf *out);
void crawling_put_waiting(struct crawling *crawling, struct buf *out);

#endif
