/*
 * trip - one URL on its way: taken from the frontier, fetched, read, stored, finished.
 *
 *      loop          takes the URL, fetches it                   crawler.c
 *      a worker      hashes, finds links, submits the document   harvest.h
 *      committer     makes it durable, hands the trip back
 *      loop          tells the frontier what was found           crawler.c
 *
 * A trip belongs to one thread at a time; it is handed on, never shared.
 */
#ifndef MNEMON_CRAWL_ENGINE_TRIP_H
#define MNEMON_CRAWL_ENGINE_TRIP_H

#include "base/arena.h"
#include "base/utc.h"
#include "crawl/engine/attest.h"
#include "crawl/fetch/fetch.h"
#include "crawl/frontier/frontier.h"
#include "run/pool.h"
#include "store/document/document.h"

struct campaign;
struct host;

enum { TRIP_MIME_SIZE_MAX = 64, TRIP_FAILURE_SIZE_MAX = 1024, TRIP_LINKS_SIZE_MAX = 8 << 20 };

/* What the trip is for. */
enum trip_kind {
    TRIP_PAGE,    /* a URL of the frontier */
    TRIP_ROBOTS,  /* a robots.txt; url is NULL */
    TRIP_FAILURE, /* that a URL could not be fetched is kept; url and result are NULL */
    TRIP_LOOK,    /* was a doubtful URL stored before a crash, or by another node? nothing is fetched, unless
                     it was not */
};

struct trip {
    struct trip *next; /* in whatever queue it is */
    struct crawler *crawler;
    struct workers *workers;
    struct pool_job job;                  /* of the workers */
    void (*done)(struct trip *take_trip); /* any thread: it is the loop's again */
    struct campaign *campaign;
    struct host *host;
    enum trip_kind kind;
    struct frontier_url *url;
    struct buf address; /* the URL that is fetched, of any kind of trip */
    struct buf failure; /* of TRIP_FAILURE: the block of its record */
    int64_t failed_us;
    bool is_https;
    uint8_t redirects_count;     /* of a robots.txt */
    struct fetch_result *result; /* NULL before */
    struct bytes body;           /* of the result, while a worker has it */

    /* What the worker found. */
    struct arena arena; /* holds links and validators */
    struct frontier_link *links;
    size_t links_count;
    size_t links_max;
    uint32_t links_found_count; /* all of them, in scope or not */
    uint32_t links_out_count;   /* of them: out of scope */
    struct frontier_outcome outcome;
    struct bytes redirect; /* of a seed, that widens the scope; may be empty */
    char mime[TRIP_MIME_SIZE_MAX];
    bool was_stored_before; /* of TRIP_LOOK */
    bool has_learned;       /* of TRIP_LOOK: others have visited it since this node did */
    struct frontier_history learned;
    int64_t unread_since_us; /* as frontier_learn() has it */
    bool is_not_modified;
    char attest[ATTEST_TEXT_SIZE]; /* the node's signature, until the document is durable */
    char visit[UTC_RFC3339_SIZE];  /* when the visit began, if several nodes fetch each URL */

    /* What became of the document. */
    enum err err;
    struct stored stored;
};

struct trip *trip_new(void); /* NULL: out of memory */
void trip_free(struct trip *trip);

/* Empty again, memory kept. */
void trip_clear(struct trip *trip);

#endif
