/*
 * host_lender - the home's side of permits: which node may ask a host next.
 *
 *      host_lender_ask()         a borrower gets in line
 *      host_lender_next()        whose turn is it, if the host is free and rested: a lease, or why not
 *      host_lender_take_back()   the lease is over
 *      host_lender_expire()      leases that were not given back
 *
 * One lease at a time for each host, first come, first served; a node that has had one goes to the end of the
 * line. The pace and the robots.txt are those of the crawler's table of hosts (host.h). A host is lent up to
 * HOST_LENDER_AHEAD_US before its pace allows the next request: the borrower waits for the rest, so no time
 * is lost on the way.
 *
 * A lease is for one request if the host wants long rests, else for some requests within a short time. One
 * that is not given back ends HOST_LENDER_GRACE_US after its time, and the host counts as just asked. A new
 * home lends nothing for HOST_LENDER_NEW_US: leases of the one before it have run out by then
 * (HOST_LENDER_AHEAD_US + HOST_LENDER_TIME_US after they were given, at the latest).
 *
 * Bounded: hosts, borrowers per host and in all. Pure, times are passed in; the crawl's loop.
 */
#ifndef MNEMON_CRAWL_ENGINE_HOST_LENDER_H
#define MNEMON_CRAWL_ENGINE_HOST_LENDER_H

#include "crawl/engine/host.h"

enum {
    HOST_LENDER_BOOKS_MAX = 1 << 16,
    HOST_LENDER_BORROWERS_MAX = 256,     /* of one host */
    HOST_LENDER_BORROWERS_ALL = 1 << 18, /* of all hosts */
    HOST_LENDER_REQUESTS_MAX = 50,       /* of a host that wants no rests: some 50 ms */
};

static const uint64_t HOST_LENDER_TIME_US = UINT64_C(2) * 1000000;
static const uint64_t HOST_LENDER_AHEAD_US = UINT64_C(2) * 1000000;
static const uint64_t HOST_LENDER_NEW_US = UINT64_C(5) * 1000000;
static const uint64_t HOST_LENDER_GRACE_US = UINT64_C(30) * 1000000;
static const uint64_t HOST_LENDER_STALE_US = UINT64_C(30) * 1000000; /* a node that waits asks again sooner */

struct host_lender_borrower {
    struct peer peer;
    bool is_https;
    uint8_t digest[PERMIT_DIGEST_SIZE]; /* of the robots.txt that it has */
    uint64_t seen_us;
    struct host_lender_borrower *next; /* in line */
};

/* A host that somebody has or wants. */
struct host_lender_book {
    struct host *host;
    bool is_lent;
    struct peer holder;
    uint64_t number;  /* of the lease */
    uint64_t from_us; /* the first request of the lease, at the earliest */
    uint64_t until_us;
    uint32_t requests_max;
    uint64_t open_at_us; /* we are too new as its home before */
    struct host_lender_borrower *first;
    size_t borrowers_count;
    struct host_lender_book *next; /* of all */
    struct host_lender_book *previous;
};

struct host_lender {
    struct hosts *hosts;
    struct host_lender_book *books;
    size_t books_count;
    size_t borrowers_count;
    uint64_t number; /* of the last lease */
};

/* first_number: numbers of leases begin behind it; a time, so that those of an earlier run do not return. */
void host_lender_init(struct host_lender *host_lender, struct hosts *hosts, uint64_t first_number);
void host_lender_done(struct host_lender *host_lender);

/*
 * Get in line, or keep the place in it. home_since_us: since when we are the host's home. ERR_LIMIT: too many
 * wait; ERR_MEMORY.
 */
enum err host_lender_ask(struct host_lender *host_lender, struct host *host,
                         const struct host_lender_borrower *borrower, uint64_t home_since_us,
                         uint64_t now_us) MUST_CHECK;

enum host_lender_verdict {
    HOST_LENDER_NOBODY,  /* waits */
    HOST_LENDER_LENT,    /* somebody has it */
    HOST_LENDER_BUSY,    /* a request of our own is under way */
    HOST_LENDER_LATER,   /* wait_us says when */
    HOST_LENDER_ROBOTS,  /* its robots.txt has to be asked for now; is_https says which */
    HOST_LENDER_GRANTED, /* borrower and lease are set; the lease's text is the host's */
};

struct host_lender_grant {
    uint64_t wait_us;
    bool is_https;
    struct peer borrower;
    struct permit_lease lease;
};

enum host_lender_verdict host_lender_next(struct host_lender *host_lender, struct host *host,
                                          const struct pace_config *config, uint64_t now_us, int64_t wall_us,
                                          struct host_lender_grant *ret_grant);

/*
 * The borrower has made so many requests. From somebody else, or of another lease, only a longer wait counts.
 */
void host_lender_take_back(struct host *host, const struct peer *borrower, uint64_t number,
                           const struct pace *pace, uint32_t requests_count, const struct pace_config *config,
                           uint64_t now_us);

/* End the host's lease if it was not given back in time. */
void host_lender_expire(struct host *host, const struct pace_config *config, uint64_t now_us);

#endif
