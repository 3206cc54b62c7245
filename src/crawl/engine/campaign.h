/*
 * campaign - a job that is running: its rules, ready to be asked, its frontier, and what has become of it so
 * far.
 *
 * The loop thread owns it. Workers ask campaign_check() and read the job's settings; nothing else.
 */
#ifndef MNEMON_CRAWL_ENGINE_CAMPAIGN_H
#define MNEMON_CRAWL_ENGINE_CAMPAIGN_H

#include <pthread.h>
#include <stdatomic.h>

#include "crawl/engine/job.h"
#include "crawl/engine/tally.h"
#include "crawl/frontier/frontier.h"
#include "crawl/rules/pattern.h"
#include "crawl/rules/route.h"
#include "crawl/rules/scope.h"

enum { CAMPAIGN_PATH_SIZE_MAX = 4096, CAMPAIGN_SITEMAPS_MAX = 100000 };

enum campaign_state {
    CAMPAIGN_RUNNING,
    CAMPAIGN_PAUSED,  /* by the user */
    CAMPAIGN_LIMITED, /* a limit of the run is reached */
    CAMPAIGN_ENDED,   /* the visit is over */
};

struct campaign {
    struct job job; /* texts in arena */
    struct arena arena;
    char name[JOB_NAME_SIZE_MAX];
    char directory[CAMPAIGN_PATH_SIZE_MAX];
    struct pattern_list include;
    struct pattern_list exclude;
    struct scope scope;
    pthread_rwlock_t scope_lock; /* seeds that redirect widen the scope while workers ask */
    struct map sitemaps;         /* fingerprints of URLs that somebody called a sitemap; scope_lock */
    uint64_t hash_seed;
    struct frontier *frontier; /* NULL until campaign_open_frontier() */
    const struct route *route; /* of a job that a ring shares; else NULL */
    struct tally tally;
    enum campaign_state state;
    uint32_t visit; /* from 1 */
    _Atomic int64_t visit_start_us;
    _Atomic int64_t doubts_since_us; /* an earlier run, begun then, did not end well: what it stored may not
                                be known; 0: none */
    uint64_t started_us;             /* monotonic; of this run */
    uint64_t trips_count;            /* under way */
    uint64_t fetches_count;          /* started in this run, for the limit */
    bool is_told;                    /* the owner knows that it is over */
    bool has_recalled;               /* in this visit: what is new here may have been stored by others */
    struct crawler *crawler;
    struct campaign *next;
};

/* The job in the directory; ERR_INVALID if a pattern is wrong. */
enum err campaign_open(struct campaign *campaign, const char *directory, const char *name,
                       struct err_detail *detail) MUST_CHECK;
void campaign_close(struct campaign *campaign);

/* config: its callbacks and context; the rest is filled here. Adds the seeds. route: set before. */
enum err campaign_open_frontier(struct campaign *campaign, const struct frontier_config *config,
                                int64_t now_us, struct err_detail *detail) MUST_CHECK;

/* This run ends well: nothing that it stored is unknown to the frontier. Before the frontier is closed. */
void campaign_end_run(struct campaign *campaign);

/* Add the seeds that are ours and not yet known. All nodes have the seeds of a shared job: none is sent to
 * others. ERR_MEMORY. */
enum err campaign_add_seeds(struct campaign *campaign) MUST_CHECK;

/*
 * All known URLs wait again, or those that are due. Only when the frontier is empty. Visits of a shared job
 * begin at multiples of its period since 1970, so that "since the visit began" means the same to all nodes.
 */
void campaign_start_visit(struct campaign *campaign, int64_t now_us);

/* What becomes of a link that another node sent. */
enum campaign_taking { CAMPAIGN_TAKEN, CAMPAIGN_KNOWN, CAMPAIGN_REFUSED, CAMPAIGN_AWAY, CAMPAIGN_NOT_NOW };

/*
 * A URL that another node found, at that depth: checked as if it had been found here, which cannot be known.
 * Without a scope to be in it is refused. *ret_link: what to add to the frontier, borrowing from url.
 */
enum campaign_taking campaign_take_link(struct campaign *campaign, const struct url *url, uint16_t depth,
                                        enum frontier_priority priority, struct frontier_link *ret_link);

/* A URL that somebody named outside of a page, such as a sitemap; others are told too. ERR_MEMORY. */
enum err campaign_add_url(struct campaign *campaign, const struct url *url,
                          enum frontier_priority priority) MUST_CHECK;

/* Which node fetches the link of a shared job? */
/* Do several nodes fetch each URL, so that only what this node has fetched counts? Any thread. */
bool campaign_wants_own(const struct campaign *campaign);

void campaign_route(const struct campaign *campaign, struct frontier_link *link);

/* Any thread: is a URL that was found so, in a document of that depth, the job's? */
bool campaign_check(struct campaign *campaign, const struct url *url, enum scope_via via, uint16_t from_depth,
                    struct scope_verdict *ret_verdict);

/* A seed led there: what lies there is in scope from now on. */
void campaign_add_seed(struct campaign *campaign, struct bytes url);

/* Is it one of the job's own seeds? Sitemaps come with them, and are none. */
bool campaign_is_seed(struct campaign *campaign, const struct frontier_url *url);

/* Any thread: this URL is a sitemap, whatever it looks like; and was it called so? */
void campaign_name_sitemap(struct campaign *campaign, struct bytes url);
bool campaign_is_sitemap(struct campaign *campaign, struct bytes url);

/* Captures from then on are of this visit: its own start, or that of a run whose visit was lost in a crash.
 */
int64_t campaign_look_since_us(const struct campaign *campaign);

#endif
