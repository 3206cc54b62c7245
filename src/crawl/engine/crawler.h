/*
 * crawler - many jobs, one polite engine: which host is asked next, and what is done with the answer.
 *
 *      frontier   which URLs wait, by host           (one per job)
 *      host       when a host may be asked again     (shared by all jobs)
 *      fetch      the transfers                      (on the loop)
 *      workers    links, hashes, compression         (threads)
 *      instance   the archive                        (its own committer)
 *
 * Each host is asked by one request at a time, robots.txt first. An answer goes to a worker; when its
 * document is durable, its outcome and links go to the frontier in one batch. Nothing here waits for the
 * disk; when the disk is slow or full, no further requests are started.
 *
 * All functions are the loop thread's.
 */
#ifndef MNEMON_CRAWL_ENGINE_CRAWLER_H
#define MNEMON_CRAWL_ENGINE_CRAWLER_H

#include "base/clock.h"
#include "crawl/engine/campaign.h"
#include "crawl/engine/host_lender.h"
#include "crawl/fetch/fetch.h"
#include "crawl/rules/pace.h"
#include "crawl/rules/permit.h"
#include "net/identity.h"
#include "run/loop.h"
#include "store/instance/instance.h"

struct crawler;

/* 0 or NULL stands for the default in parentheses. */
struct crawler_config {
    struct loop *loop;
    struct instance *instance;
    const struct clock *clock;
    struct fetch_config fetch; /* loop, dns and limits of size are filled here; allows_private: of own jobs */
    bool allows_private_shared; /* private addresses for jobs that a ring shares, which others have chosen */
    const char *nameserver;     /* (those of the system) "127.0.0.1:5353": for tests */
    size_t transfers_max;       /* (200) at once, over all hosts */
    size_t workers_count;       /* (one per processor) */
    bool gives_way;             /* its workers run when other threads do not: in a node that is also read */
    uint64_t frontier_memory_max;    /* (none) for the fingerprints of known URLs, of each job */
    uint64_t memory_max;             /* (64 MiB) of bodies that wait for the disk */
    const struct permits *permits;   /* (every host may be asked) lend the hosts of shared jobs */
    const struct route *route;       /* (everything is ours) of jobs that a ring shares */
    const struct identity *identity; /* (nobody) signs what is stored */
    struct parsers *parsers;         /* (its workers) look for links; outlive the crawler */
    void (*ended)(void *context, struct campaign *campaign); /* its visit is over, or a limit reached */
    void *context;
};

enum err crawler_new(const struct crawler_config *config, struct crawler **ret_crawler,
                     struct err_detail *detail) MUST_CHECK;

/* All campaigns must have been removed. */
void crawler_free(struct crawler *crawler);

/* Open its frontier and begin. The campaign stays the caller's, and in place. */
enum err crawler_add(struct crawler *crawler, struct campaign *campaign,
                     struct err_detail *detail) MUST_CHECK;

/* Start nothing more for it. What is under way ends; crawler_is_idle() then. */
void crawler_pause(struct crawler *crawler, struct campaign *campaign);
void crawler_resume(struct crawler *crawler, struct campaign *campaign);

/* All known URLs are due again; those of an adaptive job that may have changed. Only when its visit is over.
 */
void crawler_start_visit(struct crawler *crawler, struct campaign *campaign);

/*
 * Other nodes came or went, and the route knows it: URLs of shared jobs that are ours now wait, those that
 * are no longer ours go to others (frontier_recall()).
 */
void crawler_recall(struct crawler *crawler);

/* What became of links that another node sent. */
struct crawler_links {
    size_t taken_count;
    size_t known_count;   /* already */
    size_t refused_count; /* no URL, out of scope, a trap, over budget */
    size_t away_count;    /* in scope, but not ours */
};

/*
 * Links that another node found; url, depth and priority of each count. A visit that was over goes on.
 * ERR_BUSY if the disk is behind: nothing was taken, try later.
 */
enum err crawler_take_links(struct crawler *crawler, struct campaign *campaign,
                            const struct frontier_outgoing *links, size_t count,
                            struct crawler_links *ret_outcome) MUST_CHECK;

/* Nothing of it is under way. */
bool crawler_is_idle(const struct crawler *crawler, const struct campaign *campaign);

/* Once it is idle; its frontier is closed. */
void crawler_remove(struct crawler *crawler, struct campaign *campaign);

/* End all transfers now; their URLs wait again. */
void crawler_cancel(struct crawler *crawler);

/* ---- permits ---- */

/* An answer to permits->ask(), or a late one. A lease that is of no use is given back at once. */
void crawler_lend(struct crawler *crawler, struct bytes host, const struct permit_lease *lease);
void crawler_refuse_lease(struct crawler *crawler, struct bytes host, uint64_t wait_us);

/*
 * As the host's home, since home_since_us (monotonic): somebody wants to borrow it, has done with it.
 * permits->host_lender() or refuse() answer, also from inside. The name is checked.
 */
void crawler_home_ask(struct crawler *crawler, struct bytes host, const struct host_lender_borrower *borrower,
                      uint64_t home_since_us);
void crawler_home_take_back(struct crawler *crawler, struct bytes host, const struct peer *borrower,
                            uint64_t number, const struct pace *pace, uint32_t requests_count);

/* What holds it up. */
enum crawler_hold { CRAWLER_FLOWING, CRAWLER_DISK_FULL, CRAWLER_DISK_SLOW };

struct crawler_stat {
    uint64_t running_count; /* transfers */
    uint64_t storing_count; /* trips with workers and committer */
    uint64_t connections_count;
    uint64_t hosts_count;         /* with URLs in memory */
    uint64_t hosts_waiting_count; /* of them: for their pace */
    uint64_t done_count;          /* documents stored since the crawler was made */
    uint64_t received_size;       /* heads and bodies of them */
    uint64_t failed_count;        /* URLs that were given up after errors */
    enum crawler_hold hold;
    enum err hold_err; /* of CRAWLER_DISK_FULL: why */
};

void crawler_stat(const struct crawler *crawler, struct crawler_stat *ret_stat);

/* Append the hosts that wait longest, with their reasons: "example.org: Retry-After until 12:03; …". */
void crawler_put_waiting(const struct crawler *crawler, size_t hosts_max, struct buf *out);

#endif
