/*
 * copies_state - one machine in several files, which share struct copies and are its only readers:
 *
 *      copies.c          begin and end, the task that runs the rest, captures by their keys
 *      copies_custody.c  new captures are offered to the other holders until these have them
 *      copies_offer.c    offers, nodes that follow this one, nodes that do not answer or lie
 *      copies_fetch.c    captures that are wanted here are fetched and stored
 *      copies_deleted.c  those that came though they are deleted are not wanted again
 *      copies_compare.c  comparisons with other holders, challenges, the primaries before us
 *      copies_release.c  surplus is handed over and given up
 *      copies_repair.c   damage is found and repaired
 *      copies_answer.c   answers to the questions of other nodes
 *      copies_tally.c    how many copies there are, of how many captures
 *      copies_json.c     the state for people
 */
#ifndef MNEMON_NODE_COPIES_COPIES_STATE_H
#define MNEMON_NODE_COPIES_COPIES_STATE_H

#include <pthread.h>

#include "base/json.h"
#include "base/standing.h"
#include "node/copies/copies.h"
#include "node/copies/copies_code.h"
#include "protocol/copies/copy_plan.h"
#include "protocol/copies/custody.h"
#include "protocol/copies/full_sync.h"
#include "protocol/copies/primary_watch.h"
#include "protocol/copies/reconcile.h"
#include "protocol/copies/transfer.h"
#include "protocol/copies/transfer_order.h"
#include "run/bell.h"
#include "run/pool.h"
#include "run/task.h"
#include "store/instance/scrub.h"
#include "store/keyset/keyset.h"
#include "store/keyset/keyset_feed.h"

enum {
    COPIES_WANTED_MAX = 16384, /* of what is missing here, and of what is offered */
    COPIES_DAMAGED_MAX = 1024,
    COPIES_CREW_COUNT = 4, /* threads that take answers apart, or wait for a large capture */
    COPIES_HANDS_COUNT = COPIES_CREW_COUNT + 1, /* the task repairs by itself */
    COPIES_CAME_COUNT = 1 << 14,    /* keys that are known to have come from others; a power of 2 */
    COPIES_DELETED_COUNT = 1 << 16, /* keys of captures that came and are deleted; a power of 2 */
    COPIES_SHUNNED_MAX = 192,       /* up to three reasons each */
    COPIES_FOLLOWERS_MAX = 16,
    COPIES_WANTED_BUSY = 1024, /* with more to fetch, nothing else is begun */
    COPIES_ASK_MS = 10000,
};

/* To find captures of this node by their keys, and to read their payloads; of one thread. */
struct copies_reader {
    struct instance_session *session;
    struct sha256 sha256;
    struct buf surt;
    struct buf url;
    struct buf bounds;
};

/* Of one thread of the crew, by its seat; the last one is the task's. */
struct copies_hand {
    struct copies *copies;
    struct captures_session *fetches;
    struct instance_session *session;
};

/* What is wanted of others, and is under way (copies_fetch.c). */
struct copies_fetching {
    pthread_mutex_t lock; /* the last one that is taken, if there are several */
    struct transfer *transfer;
    struct copies_arrival *arrivals; /* by item */
    uint32_t *durable;               /* items that are stored, and may not be in the keys yet */
    size_t durable_count;
    size_t open_count;   /* questions, and captures that the disk has */
    struct bell is_idle; /* it is 0 */
    enum err disk_err;   /* of copies->lock: the last one that failed there */
};

/* A node that keeps everything: what is new in our arcs is offered to it. */
struct copies_follower {
    struct peer peer;
    uint64_t until_us;
};

/* Over the keys in arcs of others, which only this node may have (copies_custody.c). */
struct copies_sweep {
    bool is_on;
    uint64_t since_us;     /* comparisons since then count */
    uint64_t due_us;       /* when it goes on */
    struct ring_id at;     /* the arc that it has got to */
    bool has_asked;        /* its primary to compare it */
    bool has_behind;       /* within it, … */
    struct ringkey behind; /* … up to this key */
};

struct copies {
    struct copies_config config;
    struct captures *captures;
    struct task task;
    struct pool crew;
    struct copies_fetching fetch;

    /* The set of keys and its feed; locked for short times, and before `lock` if both are. */
    pthread_mutex_t keys_lock;
    struct keyset *keyset;
    struct keyset_feed *feed;

    pthread_mutex_t lock;
    struct copy_plan *copy_plan;                /* lock */
    struct primary_watch primary_watch;         /* lock */
    struct custody *custody;                    /* lock */
    struct copies_sweep sweep;                  /* lock */
    struct full_sync full_sync;                 /* lock: if everything is kept */
    struct transfer_order_giving giving;        /* lock */
    struct ringkey damaged[COPIES_DAMAGED_MAX]; /* lock */
    size_t damaged_count;                       /* lock */
    struct standing standing;                   /* lock: nodes that did not answer or gave something false */
    struct standing_entry shunned[COPIES_SHUNNED_MAX];      /* lock */
    struct copies_follower followers[COPIES_FOLLOWERS_MAX]; /* lock */
    uint64_t full_until_us;                                 /* lock */
    struct ring_view_stored stat;                           /* lock */
    uint64_t deleted[COPIES_DELETED_COUNT];                 /* lock: keys, shortened */
    uint64_t deleted_generation;                            /* lock: of what the instance calls deleted */

    struct copies_reader answering; /* of the thread of peer_rpc */

    /* The task's. */
    struct copies_reader reading;
    struct copies_hand hands[COPIES_HANDS_COUNT];
    struct ringkey *fresh; /* COPIES_KEYS_MAX: new here, to be offered */
    size_t fresh_count;
    bool has_lost_fresh;              /* there were more: the arcs are compared instead */
    uint64_t came[COPIES_CAME_COUNT]; /* keys, shortened */
    uint64_t generation;              /* of the ring, as it was looked at last */
    uint64_t failing;                 /* primary_watch_failing(), likewise */
    bool has_ring;
    struct buf question;
    struct buf answer;
    uint8_t *message; /* RECONCILE_MESSAGE_SIZE_MAX */
    uint8_t wishes[COPIES_KEYS_MAX];
    bool is_feed_told; /* that the feed fails */
    struct scrub *scrub;
    uint64_t scrub_us; /* when it goes on */
    uint64_t list_us;  /* when a list of damaged captures is looked for */
};

/* ---- copies.c: begin and end, the task, captures of this node by their keys ---- */

uint64_t copies_now_us(const struct copies *copies);
bool copies_is_stopping(struct copies *copies);
void copies_blame(struct copies *copies, const struct peer *peer, const char *sentence);
void copies_note(struct copies *copies, const char *format, ...) __attribute__((format(printf, 2, 3)));
void copies_count(struct copies *copies, uint64_t *counter, uint64_t more); /* one of copies->stat */
struct ring_id copies_place_of(const struct ringkey *key);

/* Take in what is new in the volumes. */
void copies_feed(struct copies *copies);

enum err copies_reader_init(struct copies_reader *reader, struct instance *instance) MUST_CHECK;
void copies_reader_done(struct copies_reader *reader);

/* The capture of a key, without its media type; SURT and URL last until the next call. ERR_NOT_FOUND. */
enum err copies_find_capture(struct copies *copies, struct copies_reader *reader, const struct ringkey *key,
                             struct capture *ret_capture, struct err_detail *detail) MUST_CHECK;

/* Its payload, until the next call. */
enum err copies_read_payload(struct copies *copies, struct copies_reader *reader, const struct ringkey *key,
                             struct bytes *ret_payload, struct err_detail *detail) MUST_CHECK;

/* Keys of the set in (from, to], those after *behind if it is not NULL; at most count_max. */
enum err copies_list(struct copies *copies, struct ring_id from, struct ring_id to,
                     const struct ringkey *behind, struct ringkey *out, size_t count_max,
                     size_t *ret_count) MUST_CHECK;

/* ---- copies_answer.c: on the thread of peer_rpc ---- */

void copies_serve(struct copies *copies);

/* ---- copies_fetch.c ---- */

enum err copies_want_init(struct copies *copies) MUST_CHECK;
void copies_want_done(struct copies *copies);

/* False: there is no room. */
bool copies_want(struct copies *copies, enum transfer_order_lane lane, const struct ringkey *key,
                 const struct peer *peer);

enum err copies_crew_init(struct copies *copies) MUST_CHECK;
void copies_crew_done(struct copies *copies);
void copies_fetch(struct copies *copies); /* ask for as much as may be under way */
size_t copies_durable_count(struct copies *copies);
void copies_settle_durable(struct copies *copies, size_t count); /* as many of them are in the keys now */
uint64_t copies_fetch_at(struct copies *copies); /* when it is to be called again, unless something comes */
size_t copies_wanted_count(struct copies *copies);
bool copies_is_full(struct copies *copies);
bool copies_came(const struct copies *copies, const struct ringkey *key);

/* ---- copies_deleted.c: the lock is held ---- */

/* A capture of this key came lately and is deleted: it need not come again. */
bool copies_is_deleted(struct copies *copies, const struct ringkey *key);
void copies_note_deleted(struct copies *copies, const struct ringkey *key);

/* ---- copies_repair.c ---- */

enum err copies_scrub_init(struct copies *copies, struct err_detail *detail) MUST_CHECK;
void copies_scrub(struct copies *copies);  /* a step, when it is time for one */
void copies_repair(struct copies *copies); /* what was reported as damaged */

/* ---- copies_offer.c ---- */

/* Offer one node at most COPIES_KEYS_MAX keys; its wishes are in copies->wishes then. */
enum err copies_offer(struct copies *copies, const struct peer *peer, const struct ringkey *keys,
                      size_t count) MUST_CHECK;

/* Nodes that want to be told what is new in our arcs. */
size_t copies_followers(struct copies *copies, struct peer out[COPIES_FOLLOWERS_MAX]);

/* Any thread. */
bool copies_is_shunned(struct copies *copies, const struct peer *peer);
bool copies_take_falsehood(struct copies *copies, const struct peer *peer); /* once for each time */

/* The node gave something false: for half the grace time, what it says it has does not count. */
void copies_note_false(struct copies *copies, const struct peer *peer);
bool copies_is_false(struct copies *copies, const struct peer *peer);

/* Ask a primary to be told what is new; and answer a node that asks for it. */
enum err copies_follow(struct copies *copies, const struct peer *primary) MUST_CHECK;
peer_rpc_handler copies_answer_follow;

/* ---- copies_custody.c ---- */

enum err copies_custody_init(struct copies *copies) MUST_CHECK;
void copies_take_fresh(void *context, const struct ringkey *key); /* keyset_feed_added */
void copies_offer_fresh(struct copies *copies);    /* what is new, and what is still in custody */
uint64_t copies_custody_at(struct copies *copies); /* when next; the lock is held */

/* There is no room to remember that the peer (NULL: any) has yet to say that it has the key. */
void copies_custody_lose(struct copies *copies, const struct ringkey *key, const struct peer *peer,
                         bool is_own);

/* ---- copies_tally.c: any thread ---- */

struct copies_tally {
    struct copy_plan_piece_status piece; /* whole: also of what is new */
    uint64_t keys_count;
    uint64_t coming_count; /* captures that were offered to us and are not here yet */
    uint64_t
        unconfirmed_count; /* new captures, times the members that have not said yet that they have them */
    uint64_t at_least[CHARTER_REPLICAS_MAX + 1]; /* captures that have so many live copies, or more */
};

/* Our arcs, in the order of copy_plan_piece(); the caller frees them. Without memory there are none. */
size_t copies_tally(struct copies *copies, struct copies_tally **ret_arcs);

/* ---- copies_compare.c ---- */

void copies_run_task(struct copies *copies, const struct copy_plan_task *task);

/* Our arcs are compared soon, with this peer or, for NULL, with all holders. */
void copies_touch_all(struct copies *copies, const struct peer *peer);

/*
 * ERR_OK: the node holds it, or we cannot know. ERR_MISMATCH: it does not, and is blamed. ERR_NOT_FOUND,
 * ERR_CORRUPT: it says so itself. Otherwise there was no answer.
 */
enum err copies_challenge_key(struct copies *copies, const struct peer *peer,
                              const struct ringkey *key) MUST_CHECK;

uint64_t copies_grace_us(const struct copies *copies);
void copies_primary_watch_init(struct copies *copies);

/* The nodes that are watched, while the arcs are described. */
struct copies_watch {
    struct primary_watch_arc arcs[PRIMARY_WATCH_WATCHED_MAX];
    size_t count;
};

/* An own arc and the primary before it, which is watched: if it fails, its arc is ours too, and so on. */
void copies_primary_watch_reach(struct copies *copies, const struct peer *self, struct copy_plan_arc *arc,
                                struct copies_watch *watch);
uint64_t copies_primary_watch_failing(struct copies *copies);
void copies_primary_watch_run(struct copies *copies); /* a challenge, when it is time for one */

void copies_full_sync_init(struct copies *copies);
bool copies_full_sync(struct copies *copies);              /* a stop; false: none is due */
uint64_t copies_full_sync_at(const struct copies *copies); /* when; UINT64_MAX: never. The lock is held */
void copies_full_sync_put_json(const struct copies *copies, struct json *json); /* the lock is held */

/* ---- copies_release.c ---- */

void copies_release(struct copies *copies, const struct copy_plan_task *task,
                    struct copy_plan_outcome *ret_outcome);

#endif
