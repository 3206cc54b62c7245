/*
 * frontier - the URLs of one job: which are known, which are waiting, and what the last visit found.
 *
 * It lies on disk (RocksDB, in the job's directory) and may be larger than memory. In memory are only the
 * fingerprints of all known URLs (seen.h) and, for each host that is being worked on, the next few URLs of
 * its lane.
 *
 *      loop thread                                        the frontier's own thread
 *        frontier_add, _take, _finish: never wait           writes what was added and finished, in batches,
 *        for the disk                    ── queue ──>       in that order; reads on for lanes that run low
 *        frontier_poll()                 <── wake() ──      hands in what it read
 *
 * A page's outcome and its links are one atomic batch. Batches survive the end of the process; a crash of the
 * machine may take the newest ones, never one without those after it: their pages are then fetched again.
 * After a crash some waiting URLs may have been fetched and stored already: url.is_doubtful says which ones
 * to look for in the archive first.
 *
 * In a ring (route.h) a frontier also holds URLs that another node fetches, *elsewhere*: known, not waiting;
 * and *outgoing links*, which other nodes have to know, until they do. When others come or go,
 * frontier_recall() looks through all of them again, little by little.
 *
 * All functions are the loop thread's, but for those that say otherwise.
 */
#ifndef MNEMON_CRAWL_FRONTIER_FRONTIER_H
#define MNEMON_CRAWL_FRONTIER_FRONTIER_H

#include "base/err.h"
#include "crawl/frontier/frontier_entry.h"
#include "store/document/key.h"

struct buf;
struct frontier;
struct frontier_lane; /* the waiting URLs of one host */

enum {
    FRONTIER_LANES_MAX = 4096,        /* in memory at once; the others wait on disk for their turn */
    FRONTIER_KEPT_SIZE_MAX = 8 << 10, /* of what the owner keeps with a host */
    FRONTIER_OUTGOING_MANY = 1 << 20, /* outgoing links: then frontier_is_behind() */
    FRONTIER_OUTGOING_MAX = 1 << 22,  /* further ones are lost, and counted */
};

struct frontier_config {
    const char *directory;       /* created if it is missing */
    size_t lanes_max;            /* (FRONTIER_LANES_MAX) */
    int64_t now_us;              /* when the first visit of a new one begins */
    uint32_t host_urls_max;      /* budget: URLs known per host (0: no limit) */
    uint32_t domain_urls_max;    /* and per registrable domain (0: no limit) */
    uint64_t seen_size_max;      /* memory for fingerprints (0: no limit); above it, see frontier_is_full() */
    size_t window_max;           /* URLs of a lane in memory (0: 16 to 256, by the number of lanes) */
    void (*wake)(void *context); /* any thread, also in calls of the owner: call frontier_poll() soon */
    /*
     * Any thread, without waiting: does another node fetch the URL? Its place then, so that others learn of
     * it. NULL: never.
     */
    bool (*is_elsewhere)(void *context, struct bytes url, uint8_t ret_place[ROUTE_POSITION_SIZE]);
    void (*outgoing)(void *context); /* the loop thread: there are new outgoing links; may be NULL */
    /* From frontier_poll() only. Any of the three may be NULL. */
    void (*ready)(void *context,
                  struct frontier_lane *lane); /* it has URLs again; or frontier_lane_refuse() */
    void (*gone)(void *context, struct frontier_lane *lane); /* it has none left and is about to be freed */
    void *context;
};

/* A URL to be known. */
struct frontier_link {
    struct bytes url;  /* normalised, http or https, without fragment */
    struct bytes host; /* "example.org", "example.org:8080": of the lane */
    uint16_t depth;
    enum frontier_priority priority;
    enum route_verdict verdict;         /* ROUTE_AWAY: it is not to be known here */
    bool is_doubtful;                   /* it may have been stored in this visit: see frontier_url */
    bool is_outgoing;                   /* and others are to know it, whether it is known here or not */
    uint8_t place[ROUTE_POSITION_SIZE]; /* of an outgoing one */
};

/* A URL that was taken. Valid until frontier_finish() or frontier_close(). */
struct frontier_url {
    struct bytes url;
    struct frontier_lane *lane;
    uint16_t depth;
    enum frontier_priority priority;
    uint16_t tries;   /* failed ones in this visit */
    bool is_doubtful; /* it may have been stored in this visit before a crash */
    struct frontier_history history;
    int64_t unread_since_us; /* frontier_learn() */
};

struct frontier_outcome {
    enum frontier_state state;
    uint8_t reason; /* the crawler's own code, kept for --explain and statistics */
    int64_t time_us;
    int64_t due_us; /* when it is due again; 0: with the next visit */
    uint16_t status;
    bool is_changed;   /* against the last visit */
    struct bytes etag; /* with status 304, what is empty or missing stays as it was */
    struct bytes last_modified;
    bool has_digest;
    uint8_t digest[KEY_DIGEST_SIZE];
};

struct frontier_stat {
    uint64_t known_count;
    uint64_t waiting_count; /* not yet finished in this visit, taken ones included */
    uint64_t taken_count;
    uint64_t done_count; /* in this visit */
    uint64_t failed_count;
    uint64_t cut_count;
    uint64_t coming_count;      /* known URLs that were not yet looked at for this visit: some may be due */
    uint64_t over_budget_count; /* links that were refused for it, since the frontier was opened */
    uint64_t too_long_count;    /* and for their length */
    uint64_t outgoing_count;
    uint64_t outgoing_lost_count; /* since the frontier was opened: there were too many */
    uint64_t hosts_count;
    uint32_t visit; /* from 1 */
    int64_t visit_start_us;
    uint64_t lanes_count; /* in memory */
    uint64_t memory_size; /* of fingerprints, hosts, lanes and what is queued; RocksDB's 18 MiB come on top */
};

/* What is kept of one known URL. Slices borrow from the buffer that was passed. */
struct frontier_entry {
    struct frontier_url url;   /* lane is NULL */
    enum frontier_state state; /* of the last outcome; FRONTIER_AGAIN: there was none yet */
    bool is_waiting;
    uint8_t reason;
    int64_t due_us;
};

/* Somebody who waits for the disk. Its memory is lent until done() is called: from the frontier's thread, or
 * from frontier_close(). False: the disk refused to the end. */
struct frontier_wait {
    void (*done)(struct frontier_wait *wait, bool is_durable);
    struct frontier_wait *next; /* the frontier's */
};

/* Reads all fingerprints. ERR_BUSY if another process has it, ERR_CORRUPT if it is damaged. */
enum err frontier_open(const struct frontier_config *config, struct frontier **ret_frontier,
                       struct err_detail *detail) MUST_CHECK;

/*
 * All that was added and finished is written. Taken URLs are waiting again; lanes are freed, gone() is not
 * called any more. A disk that still refuses is not waited for: the end is then that of a crash.
 */
void frontier_close(struct frontier *frontier);

/*
 * Links that are known already, or over budget, are dropped. *ret_added_count may be NULL. ERR_MEMORY: some
 * were not taken, and may be added again.
 */
enum err frontier_add(struct frontier *frontier, const struct frontier_link *links, size_t count,
                      size_t *ret_added_count) MUST_CHECK;

/* Known since when it was added, waiting or not? From memory; false positives are 1 in 2^40 or rarer. */
bool frontier_knows(const struct frontier *frontier, struct bytes url);

/* Is nothing left to be done for it? It is known, or one of some ten thousand that went out to others of
 * late: menus are on every page of a site. From memory. */
bool frontier_is_settled(const struct frontier *frontier, struct bytes url);

/* The next URL of the lane that is in memory, or NULL: then ready() follows when there is one, or gone(). A
 * lane that had its turn while other hosts have none is gone too; its host comes back in its turn. */
struct frontier_url *frontier_take(struct frontier_lane *lane);

/*
 * Others have visited a URL that was taken: from now on this is what is kept of earlier visits. The
 * validators are copied; without memory for them they are left out. Links of its versions since
 * unread_since_us may be unknown to all nodes (0: none are): that is not written to the disk.
 */
void frontier_learn(struct frontier_url *url, const struct frontier_history *history,
                    int64_t unread_since_us);

/*
 * With the links that were found in it; one batch. Frees the URL. Without memory for them the outcome is
 * FRONTIER_AGAIN: no link is lost.
 */
void frontier_finish(struct frontier *frontier, struct frontier_url *take_url,
                     const struct frontier_outcome *outcome, const struct frontier_link *links, size_t count);

/* Hand in what the thread has read; calls ready() and gone(). */
void frontier_poll(struct frontier *frontier);

/* More is queued for the disk than it takes, or for other nodes: add and take nothing for a while. */
bool frontier_is_behind(const struct frontier *frontier);

/* The disk alone: links of other nodes are taken while ours cannot be sent, or two would wait for each other.
 */
bool frontier_is_disk_behind(const struct frontier *frontier);

/*
 * Are there more known URLs than fingerprints fit into memory? Then links wait on the disk until it has been
 * looked up there which of them are new, and frontier_knows() does not know all that are known.
 */
bool frontier_is_full(const struct frontier *frontier);

/* Nothing waits, nothing is taken, all is written. */
bool frontier_is_empty(const struct frontier *frontier);

/*
 * Begin the next visit: all known URLs that are due before the time wait again (INT64_MAX: all). Cut ones
 * too, since rules change. Only when the frontier is empty. The URLs come over from the disk little by
 * little. Those that are elsewhere now go out; those that were before do so in every eighth visit, lest
 * whoever should fetch them has never heard of them.
 */
void frontier_start_visit(struct frontier *frontier, int64_t now_us, int64_t due_before_us);

/*
 * Other nodes came or went. Known URLs that were not visited in this visit are looked at again, little by
 * little: those that are no longer elsewhere wait, as doubtful ones; those that are elsewhere now become so
 * and are outgoing, since whoever fetches them may never have heard of them. Waiting ones stay; the owner
 * finishes them as FRONTIER_ELSEWHERE when it takes them. The visit does not end before.
 */
void frontier_recall(struct frontier *frontier);

/*
 * The outgoing links that follow (place, url) in the order of places, then URLs, and behind the last place
 * those from the first on. Slices borrow from work, which is cleared. Fewer than count_max: no more are on
 * disk, or work is full. ERR_BUSY: there are some, but none is on disk yet. Any thread; waits for the disk.
 */
enum err frontier_read_outgoing(struct frontier *frontier, const uint8_t after_position[ROUTE_POSITION_SIZE],
                                struct bytes after_url, struct buf *work, struct frontier_outgoing *ret_links,
                                size_t count_max, size_t *ret_count) MUST_CHECK;

/* Others have them. Place and url count; what is not there is not missed. Any thread. */
void frontier_drop_outgoing(struct frontier *frontier, const struct frontier_outgoing *links, size_t count);

void frontier_stat(const struct frontier *frontier, struct frontier_stat *ret_stat);

/* In ready(): the owner has no memory for it and is to be told again. */
void frontier_lane_refuse(struct frontier_lane *lane);

/* The host of the lane, and a word for the owner to keep with it. */
struct bytes frontier_lane_host(const struct frontier_lane *lane);
void frontier_lane_set_owner(struct frontier_lane *lane, void *owner);
void *frontier_lane_owner(const struct frontier_lane *lane);

/* Keep something with the host of the lane; what was kept before is replaced. */
void frontier_lane_keep(struct frontier_lane *lane, struct bytes bytes);

/* What was kept before the lane was made, maybe in an earlier run; only in its first ready(). May be empty.
 */
struct bytes frontier_lane_kept(const struct frontier_lane *lane);

/* Nothing can be taken from it for long: where other hosts wait for a lane it is gone() and comes back later.
 */
void frontier_lane_rest(struct frontier_lane *lane);

/* Any thread, also of a frontier that is not open elsewhere; waits for the disk. ERR_NOT_FOUND. */
enum err frontier_find(struct frontier *frontier, struct bytes url, struct buf *work,
                       struct frontier_entry *ret_entry) MUST_CHECK;

/* done() is called when all that was added, finished and dropped before survives a crash of the machine. */
void frontier_when_durable(struct frontier *frontier, struct frontier_wait *wait);

/* Small notes of the owner, kept with the frontier: name up to 32 bytes, value up to 1 MiB. Any thread; waits
 * for the disk. What could not be put because the disk refuses stays queued like everything else. */
enum err frontier_put_note(struct frontier *frontier, const char *name, struct bytes value) MUST_CHECK;
enum err frontier_get_note(struct frontier *frontier, const char *name, struct buf *value) MUST_CHECK;

#endif
