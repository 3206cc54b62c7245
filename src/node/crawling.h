/*
 * crawling - the node's event loop: a thread that runs the jobs of the data directory.
 *
 * The one loop of the node; the ring's protocols will live on it too. It never waits for the disk.
 */
#ifndef MNEMON_NODE_CRAWLING_H
#define MNEMON_NODE_CRAWLING_H

#include "base/clock.h"
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
    void *context;
};

enum err crawling_start(const struct crawling_config *config, struct crawling **ret_crawling,
                        struct err_detail *detail) MUST_CHECK;

/* Requests that are under way end, at the latest after a few seconds; what is known of each job is on disk.
 */
void crawling_stop(struct crawling *take_crawling);

#endif
