/*
 * crawl_loop - the event loop of the crawl: a thread that runs the jobs of the data directory.
 *
 * It never waits for the disk, and gives way to people who read; the ring, which must not, has a loop of its
 * own (transport.h). What it does, others read from a copy that it makes every second and when something
 * begins or ends.
 */
#ifndef MNEMON_NODE_CRAWL_CRAWL_LOOP_H
#define MNEMON_NODE_CRAWL_CRAWL_LOOP_H

#include "base/buf.h"
#include "base/clock.h"
#include "crawl/engine/jobs.h"
#include "store/instance/instance.h"

struct crawl_loop;

/* 0 or NULL stands for the default in parentheses. Texts outlive it. */
struct crawl_loop_config {
    const char *directory; /* of the data; jobs are in its folder "jobs" */
    struct instance *instance;
    bool allows_private;          /* for this node's own jobs */
    bool allows_private_shared;   /* for jobs that a ring shares */
    const char *user_agent;       /* (that of crawl/fetch/fetch.h) */
    size_t connections_max;       /* (200) */
    uint64_t frontier_memory_max; /* (none) as struct crawler_config has it */
    const char *nameservers;      /* (those of the system) */
    const struct clock *clock;
    void (*tell)(void *context, const char *name, const char *sentence); /* of a job; from the thread */
    void (*changed)(void *context); /* a job has begun or ended, and the copy says so; likewise */
    void *context;

    /* Of jobs that a ring shares; all may be NULL. */
    const struct route *route;
    const struct permits *permits;
    const struct identity *identity; /* signs what is fetched */
    struct parsers *parsers;         /* look for links; NULL: the workers do */
    void (*attach)(void *shared, struct loop *loop, struct crawler *crawler); /* before the loop runs */
    void (*detach)(void *shared); /* on the loop, before the crawler is freed */
    void *shared;
};

enum err crawl_loop_start(const struct crawl_loop_config *config, struct crawl_loop **ret_crawl_loop,
                          struct err_detail *detail) MUST_CHECK;

/*
 * Requests that are under way may end, for a third of a second; what is known of each job is on disk. The
 * first half of it does not wait, so that others can end meanwhile.
 */
void crawl_loop_end(struct crawl_loop *crawl_loop);
void crawl_loop_stop(struct crawl_loop *take_crawl_loop);

/* ---- any thread ---- */

/* A job's files have changed: do not wait for the next look at them. */
void crawl_loop_look(struct crawl_loop *crawl_loop);

/* Run it on the loop soon; jobs is NULL if they have been stopped meanwhile. Until crawl_loop_stop(). */
void crawl_loop_post(struct crawl_loop *crawl_loop, void (*run)(void *context, struct jobs *jobs),
                     void *context);

/* jobs_read_outgoing() and jobs_drop_outgoing() of crawl/engine/jobs.h. Until crawl_loop_end(). */
enum err crawl_loop_read_outgoing(struct crawl_loop *crawl_loop, const char *job,
                                  const uint8_t after_position[ROUTE_POSITION_SIZE], struct bytes after_url,
                                  struct buf *work, struct frontier_outgoing *ret_links, size_t count_max,
                                  size_t *ret_count) MUST_CHECK;
void crawl_loop_drop_outgoing(struct crawl_loop *crawl_loop, const char *job,
                              const struct frontier_outgoing *links, size_t count);

/* How it is, as of a second ago at most. */
void crawl_loop_stat(struct crawl_loop *crawl_loop, struct crawler_stat *ret_stat);

/* The same of the jobs that are open, in the arena: how many. None without memory. */
size_t crawl_loop_jobs(struct crawl_loop *crawl_loop, struct arena *arena, struct job_progress **ret_jobs);

/* Append the hosts that wait longest, and why. */
void crawl_loop_put_waiting(struct crawl_loop *crawl_loop, struct buf *out);

#endif
