/*
 * frontier_state - what a frontier is made of. Private to its files.
 *
 * One machine in several files, each the work of one thread:
 *      the loop's      frontier.c, frontier_lane.c, frontier_queue.c, frontier_outgoing.c
 *      its own         frontier_task.c, frontier_read.c
 *      any             frontier_find.c; before the others start, frontier_load.c
 *
 * The loop thread alone decides: it gives out sequences, counts, keeps lanes. What it decides it appends to
 * `writes`, with the lock; the thread takes all that is there, writes it as one batch, and then does the
 * requests that came with it, so that a read sees what was decided before it was asked for.
 *
 *      loop     writes, meta, requests  ──(lock)──> thread: write, then read
 *               poll: merge into windows <──(lock)── answers
 */
#ifndef MNEMON_CRAWL_FRONTIER_FRONTIER_STATE_H
#define MNEMON_CRAWL_FRONTIER_FRONTIER_STATE_H

#include <pthread.h>

#include "base/map.h"
#include "crawl/frontier/frontier.h"
#include "crawl/frontier/frontier_code.h"
#include "crawl/frontier/frontier_window.h"
#include "crawl/frontier/seen.h"
#include "run/task.h"
#include "store/kv/kv.h"
#include "web/url/url.h"

enum {
    FRONTIER_BEHIND_SIZE = 4 << 20,    /* unwritten: about 10,000 finished URLs */
    FRONTIER_LANE_TURN_COUNT = 256,    /* URLs of a lane before it makes way for a host that has none */
    FRONTIER_WINDOWS_COUNT = 32 << 10, /* URLs of all windows together, about */
    FRONTIER_WINDOW_COUNT_MIN = 16,
    FRONTIER_WINDOW_COUNT_MAX = 256,
    FRONTIER_SENT_COUNT = 1 << 16, /* outgoing links of late that are not put again */
};

/* ---- frontier_hosts.c ---- */

#define FRONTIER_HOST_NONE UINT32_MAX

struct frontier_host {
    uint64_t hash;
    uint32_t domain; /* number */
    uint32_t known_count;
    uint32_t waiting_count;
    uint32_t next : 30; /* in the line */
    uint32_t is_in_line : 1;
    uint32_t has_kept : 1;      /* the owner keeps something with it, on disk */
    struct frontier_lane *lane; /* NULL: none */
};

struct frontier_domain {
    uint64_t hash;
    uint32_t known_count;
};

/* Numbered things of one size that are found by a hash at their start. */
struct frontier_table {
    uint32_t *slots; /* number + 1, or 0; a power of two of them, at most three quarters used */
    size_t slots_count;
    uint8_t **blocks;
    size_t blocks_count;
    size_t count;
    size_t item_size;
};

struct frontier_hosts {
    struct frontier_table hosts;
    struct frontier_table domains;
    uint32_t line_first; /* FRONTIER_HOST_NONE: nobody waits for a lane */
    uint32_t line_last;
    size_t line_count;
};

void frontier_hosts_init(struct frontier_hosts *hosts);
void frontier_hosts_done(struct frontier_hosts *hosts);

static inline size_t frontier_hosts_count(const struct frontier_hosts *hosts) {
    return hosts->hosts.count;
}

/* The number of the host or of the domain with the hash, or FRONTIER_HOST_NONE. */
uint32_t frontier_hosts_find(const struct frontier_hosts *hosts, uint64_t hash);
uint32_t frontier_hosts_find_domain(const struct frontier_hosts *hosts, uint64_t hash);

/* Enter a host that is not there, with its domain, which may be. ERR_MEMORY; ERR_LIMIT above 2^30 hosts. */
enum err frontier_hosts_put(struct frontier_hosts *hosts, uint64_t hash, uint64_t domain_hash,
                            uint32_t *ret_number) MUST_CHECK;

/* The number must be one that was given. */
struct frontier_host *frontier_hosts_at(const struct frontier_hosts *hosts, uint32_t number);
struct frontier_domain *frontier_hosts_domain_at(const struct frontier_hosts *hosts, uint32_t number);

/* The end of the line, and its head, which is taken out: FRONTIER_HOST_NONE if nobody waits. */
void frontier_hosts_line_up(struct frontier_hosts *hosts, uint32_t number);
uint32_t frontier_hosts_next_in_line(struct frontier_hosts *hosts);

size_t frontier_hosts_memory_size(const struct frontier_hosts *hosts);

/* ---- the frontier ---- */

/* A URL in memory: in a window, or taken. */
struct frontier_item {
    struct frontier_url url; /* first: the owner is given its address */
    uint64_t position;
    uint64_t sequence;          /* of its place; another one than in the position of a retry */
    struct frontier_item *next; /* of the taken ones of the lane */
    struct frontier_item *previous;
    size_t size;
    uint8_t *learned; /* what url's validators borrow after frontier_learn(); else NULL */
    uint8_t text[];   /* what url's slices borrow */
};

struct frontier_lane {
    struct frontier *frontier;
    struct frontier_lane *next; /* of all */
    struct frontier_lane *previous;
    struct frontier_lane *next_notice;
    uint32_t host;
    bool is_noticed;    /* poll shall look at it */
    bool is_told_ready; /* the owner may take */
    bool is_told;       /* the owner has heard of it */
    bool is_resting;    /* the owner lets others go first */
    struct frontier_window window;
    struct frontier_item *taken;
    size_t taken_count;
    size_t turn_count; /* taken since it got the lane */
    void *owner;
    struct bytes name; /* its memory is the lane's; empty until it was read */
    struct bytes kept; /* likewise; until the owner was told of the lane */
};

/* What a visit does with a known URL: it waits again, or it is elsewhere now and goes out to its place. */
struct frontier_move {
    uint32_t host;
    bool is_elsewhere;
    bool is_known; /* of a link that came later */
    uint8_t place[ROUTE_POSITION_SIZE];
};

/* A read that the thread is asked for, and its answer. */
struct frontier_request {
    struct frontier_request *next;
    struct frontier_lane *lane; /* NULL: known URLs for the visit */
    size_t count_max;
    /* of a lane */
    uint32_t host;
    uint64_t from;
    uint64_t low[FRONTIER_PRIORITIES_COUNT];
    bool wants_name;
    bool wants_kept;
    /* of a visit: from the fingerprint `from` on */
    uint32_t visit;
    int64_t due_before_us;
    bool is_recall; /* some may wait already, some may have been stored by others */
    bool is_later;  /* links that did not fit into memory, instead */
    /* the answer */
    struct bytes name; /* taken by the lane */
    struct bytes kept; /* likewise */
    uint64_t end;      /* positions or fingerprints below it were read */
    bool is_last;      /* there are no more fingerprints */
    size_t looked_count;
    size_t count;
    struct frontier_slot *slots; /* count_max of them: struct frontier_item */
    struct frontier_move *moves; /* of a visit: of each slot */
};

struct frontier {
    struct frontier_config config;
    struct kv *kv;
    uint64_t key; /* of fingerprints and hashes */

    /* of the loop thread */
    struct seen seen;
    struct frontier_hosts hosts;
    struct frontier_lane *lanes;
    size_t lanes_count;
    struct frontier_lane *notices_first;
    struct frontier_lane *notices_last;
    uint64_t waiting_count;
    uint64_t taken_count;
    uint64_t over_budget_count;
    uint64_t too_long_count;
    uint64_t items_size; /* memory of lanes and items */
    bool is_in_batch;    /* between frontier_queue_begin() and _end() */
    size_t size_before;  /* of the writes, when it began */
    bool is_poll_wanted; /* frontier_poll() shall be called … */
    bool is_poll_asked;  /* … and the owner was told */
    bool has_stalled;    /* memory was missing: lanes must be looked at */
    bool is_move_asked;  /* known URLs are being read for the visit */
    bool is_move_stale;  /* what is being read is of no use: it begins again */
    bool has_later;      /* links on disk for which there is no room among the fingerprints */
    bool is_later_asked; /* some of them are being read */
    uint64_t later_from; /* the fingerprint from which on */
    uint64_t later_put_count;
    uint64_t later_asked_count; /* of those that were put, when they were asked for */
    uint64_t unseen_count;      /* known URLs whose fingerprints are on the disk alone */
    bool has_outgoing;          /* new ones, of which the owner was not told */
    uint64_t *sent;             /* fingerprints of outgoing links, by their last bits; NULL: none yet */
    uint64_t outgoing_lost_count;
    struct url url; /* work space */
    uint8_t value[FRONTIER_CODE_RECORD_SIZE_MAX];

    /* of both, with the lock; the loop thread reads its own without */
    struct task task;
    struct frontier_work *work; /* the task's */
    pthread_mutex_t lock;
    struct bell has_done;      /* for threads that wait for the disk */
    struct frontier_meta meta; /* as of the newest decision */
    struct kv_batch writes;
    struct map outgoing; /* fingerprints of all outgoing links */
    struct frontier_request *requests_first;
    struct frontier_request *requests_last;
    struct frontier_request *answers_first;
    struct frontier_request *answers_last;
    struct frontier_wait *waits; /* for the disk, the newest first */
    bool is_urgent;              /* somebody waits for what is queued */
    size_t writing_size;         /* taken by the thread and not yet written */
    uint64_t written_serial;
    uint64_t queued_serial; /* of the batch that takes the next writes */
    enum err err;
    struct err_detail detail;
};

/* ---- frontier.c ---- */

extern const struct kv_options frontier_kv_options;

/* With the lock, and frontier_make_room(): known from now on, and waiting or elsewhere. */
enum err frontier_add_known(struct frontier *frontier, const struct frontier_link *link,
                            uint64_t fingerprint) MUST_CHECK;
enum err frontier_make_room(struct frontier *frontier, const struct frontier_link *links,
                            size_t count) MUST_CHECK;

/* ---- frontier_later.c ---- */

void frontier_later_put(struct frontier *frontier, const struct frontier_link *link,
                        uint64_t fingerprint); /* with the lock */
bool frontier_later_load(struct frontier *frontier, enum err *ret_err);
void frontier_later_go_on(struct frontier *frontier);
void frontier_later_answer(struct frontier *frontier, struct frontier_request *request);
enum err frontier_later_read(struct frontier *frontier, struct frontier_request *request,
                             struct err_detail *detail) MUST_CHECK; /* the thread's */

/* ---- frontier_lane.c: items ---- */

/* NULL without memory. The lane and what follows from the frontier are the caller's to set. */
struct frontier_item *frontier_item_new(const struct frontier_waiting *waiting, uint64_t position);
void frontier_item_free(struct frontier_item *item);

/* The item as it is written; slices borrow from it. */
struct frontier_waiting frontier_item_waiting(const struct frontier_item *item);

/* ---- frontier_lane.c: the loop thread's ---- */

/* A URL of the host waits at the position, one more than before, and is among the writes. The name may be
 * empty. */
void frontier_lane_offer(struct frontier *frontier, uint32_t host, struct bytes name, uint64_t position,
                         const struct frontier_waiting *waiting);

/* One that was taken waits again, at the same position. */
void frontier_lane_put_back(struct frontier_lane *lane, struct frontier_item *take_item);

/* One that was taken does not wait at its position any more. Frees it. */
void frontier_lane_finish(struct frontier_lane *lane, struct frontier_item *take_item);

/* What was read for it. */
void frontier_lane_answer(struct frontier_lane *lane, struct frontier_request *request);

/* Lanes for hosts that wait for one, reads for lanes that could not ask for one. */
void frontier_lane_fill(struct frontier *frontier);

/* Tell the owner about lanes that have URLs again or none any more. */
void frontier_lane_notify(struct frontier *frontier);

void frontier_lane_free_all(struct frontier *frontier);

/* ---- frontier_queue.c: what goes to the thread ---- */

/* The loop thread's: between these two what is put is part of one batch. */
void frontier_queue_begin(struct frontier *frontier);
void frontier_queue_end(struct frontier *frontier);

/* Any thread's, without the lock. */
void frontier_queue_put_alone(struct frontier *frontier, struct bytes key, struct bytes value);

/* Have frontier_poll() called. */
void frontier_ask_for_poll(struct frontier *frontier);

/* With the lock. */
void frontier_queue_put(struct frontier *frontier, struct bytes key, struct bytes value);
void frontier_queue_put_meta(struct frontier *frontier); /* is in every batch; this makes sure of one */
void frontier_queue_put_waiting(struct frontier *frontier, uint32_t host, uint64_t position,
                                const struct frontier_waiting *waiting);
void frontier_queue_remove_waiting(struct frontier *frontier, uint32_t host, uint64_t position);
void frontier_queue_put_record(struct frontier *frontier, uint64_t fingerprint,
                               const struct frontier_record *record);

/* Something was put, when so much was queued: the thread learns of the first and of much. With the lock. */
void frontier_queue_note_size(struct frontier *frontier, size_t size_before);

/* So many more URLs of the host wait. */
void frontier_count_waiting(struct frontier *frontier, uint32_t host, int64_t change);

/* Ask for reads. Without the lock. False without memory. */
bool frontier_queue_read_lane(struct frontier *frontier, struct frontier_lane *lane, size_t count_max);
bool frontier_queue_read_visit(struct frontier *frontier, size_t count_max);
bool frontier_queue_read_later(struct frontier *frontier, uint64_t from, size_t count_max);

/* Somebody waits for what was asked for. */
void frontier_queue_hurry(struct frontier *frontier);

void frontier_request_free(struct frontier_request *request); /* and those behind it */

/* To the end of a list. True: it was empty. With the lock. */
bool frontier_request_append(struct frontier_request **first, struct frontier_request **last,
                             struct frontier_request *take_request);

/* Any thread: have frontier_poll() called, if the owner wants to be. */
void frontier_wake(const struct frontier *frontier);

/* Wait until all that is queued is written, or the disk refuses. Any thread but the frontier's own. */
enum err frontier_queue_flush(struct frontier *frontier, struct err_detail *detail);

/* ---- frontier_task.c ---- */

enum err frontier_task_start(struct frontier *frontier, struct err_detail *detail) MUST_CHECK;

/* Writes all that is queued and ends. */
void frontier_task_stop(struct frontier *frontier);

/* ---- frontier_read.c: the thread's ---- */

enum err frontier_read(struct frontier *frontier, struct frontier_request *request,
                       struct err_detail *detail) MUST_CHECK;

/* ---- frontier_load.c ---- */

/* Everything that is in memory, from the disk. */
enum err frontier_load(struct frontier *frontier, struct err_detail *detail) MUST_CHECK;

/* ---- frontier_outgoing.c ---- */

/* With the lock: others are to know it. One that goes out for another reason than that it was found is put
 * even if it went out before. */
/* Was it put of late? */
bool frontier_outgoing_was_sent(const struct frontier *frontier, uint64_t fingerprint);
void frontier_outgoing_put(struct frontier *frontier, const struct frontier_link *link, uint64_t fingerprint,
                           bool is_handed_on);

/* An entry from the disk, when the frontier is opened. */
enum err frontier_outgoing_load(struct frontier *frontier, struct bytes key, struct bytes value) MUST_CHECK;

/* What went out may go out again. */
void frontier_outgoing_forget_sent(struct frontier *frontier);

#endif
