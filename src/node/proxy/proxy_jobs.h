/*
 * proxy_jobs - what the proxy does that may wait for the disk or for other nodes, on a few threads.
 *
 *      look   the crowd, then the archive, for an answer in place of the origin's; given back to the loop
 *      keep   a capture of what the origin gave: signed, offered, stored if that is wanted
 *
 * Looks go first: somebody waits for them. There are as many as connections at most; of keeps so many as
 * PROXY_JOBS_KEEPS_MAX, what is beyond is dropped.
 */
#ifndef MNEMON_NODE_PROXY_PROXY_JOBS_H
#define MNEMON_NODE_PROXY_PROXY_JOBS_H

#include <stdatomic.h>

#include "base/scratch.h"
#include "node/proxy/proxy.h"
#include "run/pool.h"
#include "web/url/url.h"

struct proxy_jobs;
struct proxy_worker;

enum {
    PROXY_JOBS_KEEPS_MAX = 64,
    PROXY_JOBS_MEMORY_MAX = 256 << 10, /* of one body; larger ones lie in a file */
    PROXY_JOBS_TRIED_SIZE_MAX = 200,
};

static const uint64_t PROXY_JOBS_BODY_SIZE_MAX = UINT64_C(64) << 20; /* of what is kept: as offers.h has it */

enum proxy_job_kind { PROXY_JOB_LOOK, PROXY_JOB_KEEP };

struct proxy_job {
    struct proxy_jobs *jobs;
    struct pool_job job;
    enum proxy_job_kind kind;
    struct buf url;
    struct buf head;     /* keep: the server's; look: the answer's, without its empty line */
    struct scratch body; /* keep: as received; look: without chunks */

    /* A look only. */
    void *context;            /* the connection that waits; NULL: none any more. The loop's */
    struct buf accepts;       /* Accept-Encoding */
    atomic_bool is_forgotten; /* nobody waits for it any more */
    bool is_found;
    char crowd_said[PROXY_JOBS_TRIED_SIZE_MAX]; /* why not */
    char archive_said[PROXY_JOBS_TRIED_SIZE_MAX];

    /* A keep only. */
    int64_t time_us;
    struct address address; /* of the server */
    bool is_secure;
};

struct proxy_job *proxy_job_new(const struct proxy_config *config, enum proxy_job_kind kind,
                                struct bytes url); /* NULL: out of memory */
void proxy_job_free(struct proxy_job *job);        /* may be NULL */

/* done: on the loop's thread for each look that is over. */
enum err proxy_jobs_start(const struct proxy_config *config, struct loop *loop, void (*done)(void *take_job),
                          struct proxy_jobs **ret_jobs, struct err_detail *detail) MUST_CHECK;

/* Before the loop ends: looks that have not begun find nothing, nor do those that come later. */
void proxy_jobs_stop(struct proxy_jobs *jobs);
void proxy_jobs_free(struct proxy_jobs *jobs); /* when the loop has ended */

void proxy_jobs_put(struct proxy_jobs *jobs, struct proxy_job *take_job);

/* ---- what the threads do ---- */

struct proxy_worker *proxy_worker_new(const struct proxy_config *config); /* NULL: out of memory */
void proxy_worker_free(struct proxy_worker *worker);
void proxy_worker_look(struct proxy_worker *worker, struct proxy_job *job);

#endif
