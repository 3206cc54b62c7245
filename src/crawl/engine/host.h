/*
 * host - what all jobs know of a host together: its pace, its robots.txt, its traps, and which lanes have
 * URLs for it.
 *
 * Hosts that may be asked stand in a heap by the time from which on they may. A host without lanes is kept
 * for a while, so that its pace and its robots.txt are not forgotten when the next link to it is found; the
 * ones idle for longest go first.
 */
#ifndef MNEMON_CRAWL_ENGINE_HOST_H
#define MNEMON_CRAWL_ENGINE_HOST_H

#include "base/heap.h"
#include "base/map.h"
#include "crawl/engine/tally.h"
#include "crawl/frontier/frontier.h"
#include "crawl/rules/permit.h"
#include "crawl/rules/trap.h"

struct campaign;
struct host_lender_book; /* host_lender.h */

enum { HOSTS_MAX = 1 << 20, HOSTS_IDLE_MAX = 4096, HOSTS_TEXTS_SIZE_MAX = 64 << 20 };

enum host_robots_state { HOST_ROBOTS_UNKNOWN, HOST_ROBOTS_ASKED, HOST_ROBOTS_KNOWN };

struct host_robots {
    enum host_robots_state state;
    struct robots robots;
    bool is_unreachable; /* all of its tries failed: nothing is allowed for now */
    bool is_barred;      /* so a request found it that may not reach what others may: those ask themselves */
    uint8_t tries_count;
    int64_t until_us;                   /* wall clock: then it is asked again */
    uint8_t digest[PERMIT_DIGEST_SIZE]; /* of its text, in a ring; else zeros */
    bool has_text;                      /* as the host's home in a ring: */
    struct bytes text;                  /* its own memory */
    bool are_sitemaps_named;            /* to the jobs that have it by a lease */
};

/* What its home has lent us of it, in a ring. */
enum host_lease_state { HOST_LEASE_NONE, HOST_LEASE_ASKED, HOST_LEASE_HELD };

struct host_lease {
    struct host *host;
    enum host_lease_state state;
    uint64_t wait_us; /* before that, no further question; ASKED: then it counts as refused */
    struct permit_lender lender;
    uint64_t until_us; /* HELD: no request starts later */
    uint32_t requests_left;
    uint32_t requests_count;
    struct host_lease *next; /* of the crawler, while not NONE */
    struct host_lease *previous;
};

/* The URLs that one job has for a host. */
struct host_lane {
    struct host *host;
    struct campaign *campaign;
    struct frontier_lane *lane;
    struct host_lane *next;
};

struct host {
    struct bytes name; /* "example.org:8080"; its own memory */
    struct pace pace;
    struct host_robots robots[2]; /* of http, of https */
    struct trap_host *trap;       /* NULL until a link is looked at */
    uint32_t trap_unkept_count;   /* looks at links since its state was last kept with a frontier */
    uint8_t ip[16];
    bool has_ip;            /* of the last answer */
    bool has_answered[2];   /* to a request of http, of https */
    bool is_busy;           /* a request is under way */
    uint8_t failure_reason; /* why there was no answer to the last request; TALLY_NONE: there was one */
    char failure_why[TALLY_WHY_SIZE_MAX]; /* in more words */
    uint64_t barred_us;     /* until then, jobs that may not reach private addresses need not try */
    uint64_t tie;           /* of its entry in the heap; 0: it has none */
    uint64_t at_us;         /* of that entry */
    uint32_t entries_count; /* in the heap, stale ones included: it must outlive them */
    struct host_lane *lanes;
    struct host_lease *lease;      /* NULL until it is first asked for */
    struct host_lender_book *book; /* its borrowers, if we are its home; NULL: nobody asks */
    struct host *idle_next;        /* only without lanes, lease and book, and not busy */
    struct host *idle_previous;
    bool is_idle;
};

struct hosts {
    struct map map; /* name -> struct host * */
    struct heap heap;
    struct heap_item *heap_items;
    bool is_short; /* there was no memory to queue one: they are looked through */
    uint64_t sequence;
    struct host *idle_first; /* the longest idle */
    struct host *idle_last;
    size_t idle_count;
    size_t texts_size; /* of robots.txt files that are kept */
};

void hosts_init(struct hosts *hosts, uint64_t hash_seed);
void hosts_done(struct hosts *hosts);

/* All of them, one after the other, then NULL. *cursor starts at 0; as in base/map.h, the one at hand may go.
 */
struct host *hosts_each(const struct hosts *hosts, size_t *cursor);

/* NULL: it is not known. */
struct host *hosts_find(const struct hosts *hosts, struct bytes name);

/* Found or made. NULL: out of memory. */
struct host *hosts_get(struct hosts *hosts, struct bytes name);

/* The host has URLs of this lane; owner of the frontier's lane from now on. ERR_MEMORY. */
enum err hosts_add_lane(struct hosts *hosts, struct host *host, struct campaign *campaign,
                        struct frontier_lane *lane) MUST_CHECK;
void hosts_remove_lane(struct hosts *hosts, struct host_lane *take_lane);

/* All lanes of a campaign that is about to be closed. */
void hosts_remove_campaign(struct hosts *hosts, const struct campaign *campaign);

/* Ask it from that time on; an earlier entry is moved. Nothing happens while it is busy. */
void hosts_queue(struct hosts *hosts, struct host *host, uint64_t at_us);

/* The next host whose time has come; NULL: none. *ret_next_us is the time of the one after, UINT64_MAX: none.
 */
struct host *hosts_next(struct hosts *hosts, uint64_t now_us, uint64_t *ret_next_us);

/* Under way, or not any more. */
void hosts_set_busy(struct hosts *hosts, struct host *host, bool is_busy);

/*
 * Keep it while others need it (lease, book), and no longer: it may be forgotten when nothing holds it.
 */
void hosts_hold(struct hosts *hosts, struct host *host);
void hosts_rest(struct hosts *hosts, struct host *host);

/*
 * Keep the text of a robots.txt, to lend it; hosts that are idle lose theirs first when all of them are too
 * large. False: there is no room.
 */
bool hosts_keep_text(struct hosts *hosts, struct host_robots *robots, struct bytes text);
void hosts_drop_text(struct hosts *hosts, struct host_robots *robots);

/* The state of its traps; NULL: out of memory. */
struct trap_host *host_trap(struct host *host);

#endif
