/*
 * crawler_state - what a crawler is made of. Private to its files.
 *
 * One machine in several files, all of them the loop's:
 *      crawler.c           what is fetched next, and the calls from outside
 *      crawler_robots.c    whether a host allows it
 *      crawler_lease.c     whether its home lends the host to us, and what we lend as a home
 *      crawler_links.c     whose a URL is
 *      crawler_finish.c    what follows from a document that was fetched
 */
#ifndef MNEMON_CRAWL_ENGINE_CRAWLER_STATE_H
#define MNEMON_CRAWL_ENGINE_CRAWLER_STATE_H

#include "crawl/engine/crawler.h"
#include "crawl/engine/host.h"
#include "crawl/engine/host_lender.h"
#include "crawl/engine/trip.h"
#include "crawl/engine/workers.h"
#include "net/dns.h"

enum {
    CRAWLER_TRIES_MAX = 3,
    CRAWLER_ABSENT_TRIES_MAX = 2, /* if nobody listens */
    CRAWLER_REFUSALS_MAX = 4,
    CRAWLER_STORING_MAX = 512,
};

struct crawler {
    struct crawler_config config;
    struct dns *dns;
    struct fetch *fetch;
    struct workers *workers;
    struct hosts hosts;
    struct host_lender host_lender; /* of hosts whose home we are, in a ring */
    struct host_lease *leases;      /* asked for and held */
    struct pace_config pace;
    struct pace_addresses addresses;
    struct campaign *campaigns;
    struct trip *free_trips;
    struct trip *parked; /* documents that the archive did not take for now */
    size_t running_count;
    size_t storing_count;
    uint64_t storing_size; /* of bodies in memory */
    uint64_t done_count;   /* documents that were stored, of all campaigns so far */
    uint64_t received_size;
    uint64_t failed_count;
    enum err disk_err;      /* why they are parked */
    struct url url;         /* work space */
    struct loop_post wake;  /* trips are back, or there is something new */
    uv_timer_t timer;       /* the next host's time */
    uv_timer_t tick;        /* parked documents, limits of time */
    unsigned handles_count; /* of the two that are open */
    bool is_pumping;
};

/* crawler.c */
void crawler_wake(void *crawler); /* any thread: look what there is, soon */
struct trip *crawler_take_trip(struct crawler *crawler, enum trip_kind kind, struct host *host,
                               struct campaign *campaign);
void crawler_return_trip(struct crawler *crawler, struct trip *take_trip);
void crawler_pump(struct crawler *crawler);
bool crawler_may_start(const struct crawler *crawler);
uint64_t crawler_now_us(const struct crawler *crawler);
int64_t crawler_wall_us(const struct crawler *crawler);

/* Give a trip with its result to the workers. */
void crawler_store(struct crawler *crawler, struct trip *take_trip);

/* The request of the trip's host has ended: learn from it, and let the host go on when it may. */
void crawler_end_request(struct crawler *crawler, const struct trip *trip);

/* crawler_robots.c */

/* May the URL be fetched? ROBOTS_MUST_ASK: robots.txt has to be asked for first. */
enum crawler_permission { CRAWLER_ALLOWED, CRAWLER_DENIED, CRAWLER_NO_ROBOTS, CRAWLER_MUST_ASK };
enum crawler_permission crawler_ask_robots(struct crawler *crawler, struct host *host,
                                           const struct campaign *campaign, const struct url *url);

/* Whose job it is decides: must it keep away from private addresses? */
bool crawler_bars_private(const struct crawler *crawler, const struct campaign *campaign);

/*
 * If jobs of the ring may reach less than this node's own, or the other way round: a host that one kind could
 * not reach is barred to that kind for a while, and the other kind neither waits for it nor believes it. Else
 * any member could stop a job of this node by naming its host.
 */
void crawler_bar(struct crawler *crawler, struct host *host, struct host_robots *known);

/* Parse the text; without memory it allows nothing. */
/* ERR_MEMORY: it allows nothing, and is to be read again. */
enum err crawler_read_robots(struct crawler *crawler, struct host_robots *known,
                             struct bytes text) MUST_CHECK;

/* Tell the job of the sitemaps that a robots.txt names. */
enum err crawler_name_sitemaps(struct crawler *crawler, struct campaign *campaign,
                               const struct robots *robots) MUST_CHECK;

/* Fetch the robots.txt of the URL's origin; the host is busy until then. */
void crawler_fetch_robots(struct crawler *crawler, struct host *host, struct campaign *campaign,
                          const struct url *url);

/* crawler_lease.c: a host of a ring is asked only while its home lends it to us (permit.h). */
bool crawler_needs_lease(const struct crawler *crawler, const struct host *host);
bool crawler_has_lease(const struct crawler *crawler, const struct host *host); /* for one request now */

/* Its home was asked, or refused it for now: then it is queued for later. */
bool crawler_wait_for_lease(struct crawler *crawler, struct host *host, uint64_t now_us);

/* It is queued for when the answer is late. One that is held is given back. */
void crawler_ask_lease(struct crawler *crawler, struct host *host, bool is_https);

/* A request was started; one has ended, or time has passed: is the lease over? */
void crawler_use_lease(struct host *host);
void crawler_check_lease(struct crawler *crawler, struct host *host);
void crawler_check_leases(struct crawler *crawler);
void crawler_give_lease_back(struct crawler *crawler, struct host *host);

/* What the home lends. The host may be free, or its robots.txt there; time has passed. */
void crawler_home_serve(struct crawler *crawler, struct host *host);
void crawler_home_tick(struct crawler *crawler);

/* crawler_finish.c: the trip is back from the workers. */
void crawler_drop_trip(struct crawler *crawler, struct trip *trip); /* it is fetched again later */
void crawler_finish_trip(struct crawler *crawler, struct trip *take_trip);

/* The state of a host's traps is kept with it in a frontier, if so many links or more were looked at since
 * the last time, and read back with the first lane of the host. */
enum { CRAWLER_TRAPS_KEPT_AT_END = 16, CRAWLER_TRAPS_KEPT_ON_THE_WAY = 256 };
void crawler_keep_traps(struct host *host, struct frontier_lane *lane, uint32_t unkept_count_min);
void crawler_recall_traps(struct host *host, const struct frontier_lane *lane);

/* crawler_links.c: does another node fetch the URL that was taken, by now? Then it is finished as that. */
bool crawler_hand_on(struct campaign *campaign, struct frontier_url *url);

/* Set the route that a campaign, which is about to be opened, and its frontier ask. */
void crawler_set_route(struct crawler *crawler, struct campaign *campaign, struct frontier_config *config);

/* There may be outgoing links of an earlier run. */
void crawler_tell_outgoing(struct campaign *campaign);

/* The URL will not be stored in this visit, or later. */
void crawler_give_up(struct crawler *crawler, struct campaign *campaign, struct frontier_url *take_url,
                     enum frontier_state state, uint8_t reason);

/*
 * crawler_failure.c: a URL that will not be stored in this visit, for a reason that is counted and told. A
 * failure of the host is kept as a record of its own. why may be NULL.
 */
void crawler_fail_url(struct crawler *crawler, struct host *host, struct campaign *campaign,
                      struct frontier_url *take_url, uint8_t reason, const char *why);

/*
 * Nobody listens there, or somebody that does not speak TLS, and nobody has answered there yet: one more try,
 * a moment later, tells as much as many. Whoever has answered once is given the usual time to come back.
 */
bool crawler_is_absent(const struct trip *trip);

/* Append why the host waits: "the host refused the connection (no connection, 1 in a row)". */
void crawler_put_why(const struct host *host, uint64_t now_us, int64_t local_us, struct buf *out);

/* What the last request to the host says about it. */
void crawler_note_failure(struct host *host, const struct fetch_result *result);

#endif
