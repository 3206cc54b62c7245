/*
 * trap - cuts off what has no end: URLs that a server makes up for ever.
 *
 *      url-length    longer than any page needs
 *      segments      a path of too many segments
 *      repetition    the same segments again and again: /a/b/a/b/a/b, or the same argument in a query
 *      depth         too many links away from the seeds
 *      calendar      a date years ahead; in a calendar also before 1970, or too many dates
 *      query         too many combinations of arguments for one path. Many arguments weigh more: a million
 *                    ?title=… are a wiki, a thousand ?color=…&size=…&sort=…&view=…&page=… a filter
 *      session       the same URL again but for a session id
 *      soft-404      identical content in many directories: what is linked there leads nowhere new
 *
 * All are guesses, chosen so that honest sites pass (tests/unit/trap.c has lists of those). Each can be
 * changed or switched off; each cut has a reason that is counted and explained.
 *
 * What is known of one host is a struct of fixed size without pointers, at most 4 KB. It counts with tables
 * of bounded size that keep the most frequent (space saving), and never counts more than there was. Pure:
 * time is passed in. One thread at a time for a host.
 */
#ifndef MNEMON_CRAWL_RULES_TRAP_H
#define MNEMON_CRAWL_RULES_TRAP_H

#include "base/buf.h"
#include "web/url/url.h"

enum trap_reason {
    TRAP_NONE,
    TRAP_URL_LENGTH,
    TRAP_SEGMENTS,
    TRAP_REPETITION,
    TRAP_DEPTH,
    TRAP_CALENDAR,
    TRAP_QUERY,
    TRAP_SESSION,
    TRAP_SOFT_404,
};
enum { TRAP_REASONS_COUNT = TRAP_SOFT_404 + 1 };

/* 0 switches a rule off. */
struct trap_config {
    uint32_t url_size_max;         /* bytes of the href */
    uint32_t segments_max;         /* of the path */
    uint32_t repetitions_max;      /* of a sequence of segments in a row; more are cut */
    uint32_t occurrences_max;      /* of one segment anywhere in the path, of one argument in the query */
    uint32_t depth_max;            /* page links from a seed */
    uint32_t years_ahead_max;      /* of a date */
    uint32_t calendar_urls_max;    /* dates of calendars, per host */
    uint32_t query_weight_max;     /* per path: trap_query_weight() of all its queries together */
    uint32_t sessions_max;         /* session ids for one URL */
    uint32_t soft_404_directories; /* with the same content; from so many on it is one */
};

extern const struct trap_config trap_defaults;

enum { TRAP_PATHS_MAX = 80, TRAP_SESSIONS_MAX = 64, TRAP_CONTENTS_MAX = 192, TRAP_HOST_SIZE_MAX = 4096 };

struct trap_path {
    uint32_t tag;    /* of the path; 0: free */
    uint32_t weight; /* of its queries, at most */
    uint32_t error;  /* by how much that may be too much */
};

struct trap_session {
    uint32_t tag; /* of the URL without the id; 0: free */
    uint32_t last_id;
    uint32_t ids_count; /* different from the one before */
};

struct trap_content {
    uint32_t tag;         /* of the signature; 0: free */
    uint32_t directories; /* one bit of 32 for each directory that had it */
};

struct trap_host {
    struct trap_path paths[TRAP_PATHS_MAX];
    struct trap_session sessions[TRAP_SESSIONS_MAX];
    struct trap_content contents[TRAP_CONTENTS_MAX];
    uint32_t calendar_urls_count;
    uint32_t contents_next; /* which one gives way among equals */
};

_Static_assert(sizeof(struct trap_host) <= TRAP_HOST_SIZE_MAX, "thousands of hosts are in memory at once");

void trap_host_init(struct trap_host *host);

/*
 * Shall the URL be cut? For web URLs that are about to become known, once each: so after frontier_knows()
 * said no. It is counted where it passes. pages: scope_depth_pages() of it. now_us: wall clock.
 */
enum trap_reason trap_check(const struct trap_config *config, struct trap_host *host, const struct url *url,
                            unsigned pages, int64_t now_us);

/*
 * The rules that need no host: lengths, segments, repetition, depth, dates ahead. For URLs of anywhere, and
 * for --explain; counts nothing.
 */
enum trap_reason trap_check_url(const struct trap_config *config, const struct url *url, unsigned pages,
                                int64_t now_us);

/*
 * A page (status 200, with links) has arrived with this payload signature (at least 8 bytes, well mixed).
 * True if it is a soft 404: its links are not to be followed, and are counted as TRAP_SOFT_404.
 */
bool trap_is_soft_404(const struct trap_config *config, struct trap_host *host, const struct url *url,
                      struct bytes signature);

/* Append the state, and read it back; ERR_INVALID if the bytes are not of trap_host_put(). */
enum err trap_host_put(const struct trap_host *host, struct buf *out);
enum err trap_host_read(struct trap_host *ret_host, struct bytes bytes) MUST_CHECK;

/* "url-length"; for counters, JSON and the list above. */
const char *trap_reason_name(enum trap_reason reason);

/* A sentence without its stop: "its path repeats itself". */
const char *trap_reason_text(enum trap_reason reason);

#endif
