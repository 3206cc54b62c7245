/*
 * jobs - the jobs of a data directory, run by one crawler for as long as the node lives.
 *
 * DIR/jobs is looked at every second: `mnemon job add`, `pause` and `remove` only change files there. A new
 * job begins; one whose file says paused rests; one whose job.conf is gone ends, and its directory goes with
 * it. When a visit is over the next one begins a period after its start.
 *
 * All functions are the loop thread's, but for those that say otherwise.
 */
#ifndef MNEMON_CRAWL_ENGINE_JOBS_H
#define MNEMON_CRAWL_ENGINE_JOBS_H

#include "crawl/engine/crawler.h"

struct jobs;

struct jobs_config {
    const char *directory;         /* DIR/jobs; need not exist */
    struct crawler_config crawler; /* ended and context are filled here */
    void (*tell)(void *context, const char *name,
                 const char *sentence); /* what a log should have; may be NULL */
    void (*stopped)(void *context);     /* after jobs_stop(): nothing is under way */
    void *context;
};

enum err jobs_new(const struct jobs_config *config, struct jobs **ret_jobs,
                  struct err_detail *detail) MUST_CHECK;

/* End what is under way and close all jobs; stopped() is called from the loop. Then jobs_free(). */
void jobs_stop(struct jobs *jobs);

/* What is still under way is dropped at once. */
void jobs_hurry(struct jobs *jobs);

/* Once stopped. The memory goes when the loop has run once more. */
void jobs_free(struct jobs *jobs);

/* Look at the directory now, not when the second is over. */
void jobs_look(struct jobs *jobs);

/* The engine that runs them: for its stat. */
const struct crawler *jobs_crawler(const struct jobs *jobs);
struct crawler *jobs_engine(struct jobs *jobs); /* and to lend hosts to (permit.h) */

/* ---- jobs that a ring shares: crawl/rules/route.h ---- */

/* Other nodes came or went, and the route knows it. */
void jobs_recall(struct jobs *jobs);

/* Links that another node found; see crawler_take_links(). ERR_NOT_FOUND if no such job is shared and runs
 * here, ERR_BUSY if it takes nothing for now. */
enum err jobs_take_links(struct jobs *jobs, const char *name, const struct frontier_outgoing *links,
                         size_t count, struct crawler_links *ret_outcome) MUST_CHECK;

/* Then: frontier_when_durable() of that job, so that nobody is told of links that a power failure can take.
 */
void jobs_when_durable(struct jobs *jobs, const char *name, struct frontier_wait *wait);

/* Any thread, while the jobs are not freed: frontier_read_outgoing() and frontier_drop_outgoing() of a job.
 * ERR_NOT_FOUND as above. */
enum err jobs_read_outgoing(struct jobs *jobs, const char *name,
                            const uint8_t after_position[ROUTE_POSITION_SIZE], struct bytes after_url,
                            struct buf *work, struct frontier_outgoing *ret_links, size_t count_max,
                            size_t *ret_count) MUST_CHECK;
enum err jobs_drop_outgoing(struct jobs *jobs, const char *name, const struct frontier_outgoing *links,
                            size_t count) MUST_CHECK;

/* How far a job is that is open. */
struct job_progress {
    char name[JOB_NAME_SIZE_MAX];
    enum campaign_state state;
    uint64_t known_count;
    uint64_t waiting_count;
    uint64_t stored_count;
    uint64_t failed_count;
    uint64_t received_size;
    uint8_t failure_reason; /* of the first URL that failed; TALLY_NONE: none has */
    struct bytes text;      /* as a JSON object: state.json without "job" and "state" */
};

/* "running" …, by enum campaign_state. */
extern const char *const jobs_states[];

/* Append one struct for each, and their texts, one behind the other; text.data is not yet set. */
void jobs_progress(const struct jobs *jobs, struct buf *items, struct buf *texts);

/*
 * For one job, from any process: what a running or past crawl left in DIR/jobs/NAME/state.json. Written by
 * the loop every few seconds and at the end.
 */
enum err jobs_write_state(const struct campaign *campaign) MUST_CHECK;

/* Remove the directory of a job that nobody runs. ERR_OK if it is not there. */
enum err jobs_remove_directory(const char *directory, struct err_detail *detail) MUST_CHECK;

#endif
