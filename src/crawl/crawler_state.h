/* crawler_state - what the files of crawler*.c share. Private to them. */
#ifndef MNEMON_CRAWL_CRAWLER_STATE_H
#define MNEMON_CRAWL_CRAWLER_STATE_H

#include "crawl/crawler.h"
#include "crawl/host.h"
#include "crawl/trip.h"
#include "crawl/workers.h"
#include "net/dns.h"

enum { CRAWLER_TRIES_MAX = 3, CRAWLER_REFUSALS_MAX = 4, CRAWLER_STORING_MAX = 512 };

struct crawler {
    struct crawler_config config;
    struct dns *dns;
    struct fetch *fetch;
    struct workers *workers;
    struct hosts hosts;
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
    enum err disk_err; /* why they are parked */
    struct url url;    /* work space */
    uv_async_t async;
    uv_timer_t timer;       /* the next host's time */
    uv_timer_t tick;        /* parked documents, limits of time */
    unsigned handles_count; /* of the three that are open */
    bool is_pumping;
};

/* crawler.c */
struct trip *crawler_take_trip(struct crawler *crawler, enum trip_kind kind, struct host *host,
                               struct campaign *campaign);
void crawler_return_trip(struct crawler *crawler, struct trip *take_trip);
void crawler_pump(struct crawler *crawler);
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

/* Fetch the robots.txt of the URL's origin; the host is busy until then. */
void crawler_fetch_robots(struct crawler *crawler, struct host *host, struct campaign *campaign,
                          const struct url *url);

/* crawler_finish.c: the trip is back from the workers. */
void crawler_finish_trip(struct crawler *crawler, struct trip *take_trip);

/* The URL will not be stored in this visit, or later. */
void crawler_give_up(struct crawler *crawler, struct campaign *campaign, struct frontier_url *take_url,
                     enum frontier_state state, uint8_t reason);

#endif
