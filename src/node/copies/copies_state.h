/* copies_state - what the files of copies*.c share. Private to them. */
#ifndef MNEMON_NODE_COPIES_COPIES_STATE_H
#define MNEMON_NODE_COPIES_COPIES_STATE_H

#include <pthread.h>

#include "base/json.h"
#include "base/map.h"
#include "base/standing.h"
#include "node/copies/copies.h"
#include "node/copies/copies_code.h"
#include "protocol/copies/copy_plan.h"
#include "protocol/copies/full_sync.h"
#include "protocol/copies/primary_watch.h"
#include "protocol/copies/reconcile.h"
#include "protocol/copies/transfer_order.h"
#include "run/pool.h"
#include "run/task.h"
#include "store/instance/scrub.h"
#include "store/keyset/keyset.h"
#include "store/keyset/keyset_feed.h"

enum {
    COPIES_WANTED_MAX = 16384,
    COPIES_DAMAGED_MAX = 1024,
    COPIES_CREW_COUNT = 4,       /* threads that fetch */
    COPIES_BATCH_COUNT = 256,    /* captures fetched before the thread looks at anything else */
    COPIES_CAME_COUNT = 1 << 14, /* keys of which it is known that they came from others; a power of 2 */
    COPIES_SHUNNED_MAX = 192,    /* up to three reasons each */
    COPIES_FOLLOWERS_MAX = 16,
    COPIES_WANTED_BUSY = 1024, /* with more to fetch, nothing else is begun */
    COPIES_WAITING_SIZE = RINGKEY_SIZE + PEER_KEY_SIZE,
    COPIES_ASK_MS = 10000,
};

struct copies_wanted {
    struct ringkey key;
    struct peer peer; /* who has it */
    enum transfer_order_lane lane;
    uint8_t silences_count; /* how often he did not give it */
};

/* What is wanted, a circle. */
struct copies_lane {
    struct copies_wanted *wanted; /* COPIES_WANTED_MAX */
    size_t first;
    size_t count;
};

/* To find captures of this node by their keys, and to read their payloads; of one thread. */
struct copies_reader {
    struct instance_session *session;
    struct sha256 sha256;
    struct buf surt;
    struct buf url;
    struct buf bounds;
};

/* One of the crew. */
struct copies_hand {
    struct copies *copies;
    struct captures_session *fetches;
    struct instance_session *session;
    struct pool_job job;
};

/* Somebody who keeps everything: what is new in our arcs is offered to him. */
struct copies_follower {
    struct peer peer;
    uint64_t until_us;
};

struct copies {
    struct copies_config config;
    struct captures *captures;
    struct task task;
    struct pool crew; /* fetches beside the task */

    /* The set of keys and its feed; locked for short times, before `lock` where both are. */
    pthread_mutex_t keys_lock;
    struct keyset *keyset;
    struct keyset_feed *feed;

    pthread_mutex_t lock;
    struct copy_plan *copy_plan;                          /* lock */
    struct primary_watch primary_watch;                   /* lock */
    struct full_sync full_sync;                           /* lock: where everything is kept */
    struct copies_lane lanes[TRANSFER_ORDER_LANES_COUNT]; /* lock */
    size_t wanted_count;                                  /* lock: in both */
    struct transfer_order_queue queue;                    /* lock: which of them is next */
    struct transfer_order_giving giving;                  /* lock */
    struct map waiting;                                   /* lock: what is wanted */
    struct ringkey damaged[COPIES_DAMAGED_MAX];           /* lock */
    size_t damaged_count;                                 /* lock */
    struct standing standing;                             /* lock: who did not answer or gave what is false */
    struct standing_entry shunned[COPIES_SHUNNED_MAX];    /* lock */
    struct copies_follower followers[COPIES_FOLLOWERS_MAX]; /* lock */
    uint64_t full_until_us;                                 /* lock */
    uint64_t busy_until_us;                                 /* lock: nothing is fetched before */
    struct copies_stat stat;                                /* lock */

    struct copies_reader answering; /* the bulk thread's */

    /* The task's. */
    struct copies_reader reading;
    struct copies_hand hands[COPIES_CREW_COUNT];
    struct copies_work *work; /* copies_fetch.c */
    struct ringkey *fresh;    /* COPIES_KEYS_MAX: new here, to be offered */
    size_t fresh_count;
    bool has_lost_fresh;   /* there were more: the arcs are compared instead */
    struct ringkey *again; /* COPIES_KEYS_MAX: to be offered once more, later */
    size_t again_count;
    uint64_t again_us;
    uint64_t came[COPIES_CAME_COUNT]; /* keys, shortened */
    uint64_t generation;              /* of the ring, as the keeper knows it */
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

/* ---- copies.c ---- */

uint64_t copies_now_us(const struct copies *copies);
bool copies_is_stopping(struct copies *copies);
void copies_blame(struct copies *copies, const struct peer *peer, const char *sentence);
void copies_note(struct copies *copies, const char *format, ...) __attribute__((format(printf, 2, 3)));
struct ring_id copies_place_of(const struct ringkey *key);

/* Take in what is new in the volumes. */
void copies_feed(struct copies *copies);

/* ---- copies_read.c ---- */

enum err copies_reader_init(struct copies_reader *reader, struct instance *instance) MUST_CHECK;
void copies_reader_done(struct copies_reader *reader);

/* The capture of a key; SURT and URL last until the next call, it has no media type. ERR_NOT_FOUND. */
enum err copies_find_capture(struct copies *copies, struct copies_reader *reader, const struct ringkey *key,
                             struct capture *ret_capture, struct err_detail *detail) MUST_CHECK;

/* Its payload, until the next call. */
enum err copies_read_payload(struct copies *copies, struct copies_reader *reader, const struct ringkey *key,
                             struct bytes *ret_payload, struct err_detail *detail) MUST_CHECK;

/* Keys of the set in (from, to], behind *behind where it is not NULL; at most count_max. */
enum err copies_list(struct copies *copies, struct ring_id from, struct ring_id to,
                     const struct ringkey *behind, struct ringkey *out, size_t count_max,
                     size_t *ret_count) MUST_CHECK;

/* ---- copies_answer.c: on the bulk thread ---- */

peer_rpc_handler copies_answer_compare;
peer_rpc_handler copies_answer_offer;
peer_rpc_handler copies_answer_confirm;
peer_rpc_handler copies_answer_prove;
peer_rpc_handler copies_answer_follow; /* copies_follow.c */

/* ---- copies_want.c ---- */

enum err copies_want_init(struct copies *copies) MUST_CHECK;
void copies_want_done(struct copies *copies);

/* False: there is no room. The lock is held. */
bool copies_want(struct copies *copies, enum transfer_order_lane lane, const struct ringkey *key,
                 const struct peer *peer);
bool copies_want_again(struct copies *copies, const struct copies_wanted *wanted);

/* The next ones, at most count_max: where the lines are slow, of one lane and giver. The lock is held. */
size_t copies_take_wanted(struct copies *copies, struct copies_wanted *out, size_t count_max);

/* ---- copies_fetch.c ---- */

enum err copies_crew_init(struct copies *copies) MUST_CHECK;
void copies_crew_done(struct copies *copies);
void copies_fetch(struct copies *copies); /* a batch of what is wanted */
bool copies_is_full(struct copies *copies);
bool copies_came(const struct copies *copies, const struct ringkey *key);

/* ---- copies_repair.c ---- */

void copies_repair(struct copies *copies); /* what was reported as damaged */

/* ---- copies_scrub.c ---- */

enum err copies_scrub_init(struct copies *copies, struct err_detail *detail) MUST_CHECK;
void copies_scrub(struct copies *copies); /* a step, when it is time for one */

/* ---- copies_offer.c ---- */

void copies_take_fresh(void *context, const struct ringkey *key); /* keyset_feed_added */
void copies_offer_fresh(struct copies *copies);

/* At most COPIES_KEYS_MAX keys to one node; his wishes are in keeping->wishes. */
enum err copies_offer(struct copies *copies, const struct peer *peer, const struct ringkey *keys,
                      size_t count) MUST_CHECK;

/* Any thread. */
void copies_shun(struct copies *copies, const struct peer *peer, bool is_false);
bool copies_is_shunned(struct copies *copies, const struct peer *peer);
bool copies_take_falsehood(struct copies *copies, const struct peer *peer); /* once for each time */

/* Something of his was found false: for half the grace time nobody relies on what he says that he has. */
void copies_note_false(struct copies *copies, const struct peer *peer);
bool copies_is_false(struct copies *copies, const struct peer *peer);

/* ---- copies_primary_watch.c ---- */

uint64_t copies_grace_us(const struct copies *copies);
void copies_primary_watch_init(struct copies *copies);

/* Who is watched, while the arcs are described. */
struct copies_watch {
    struct primary_watch_arc arcs[PRIMARY_WATCH_WATCHED_MAX];
    size_t count;
};

/* An own arc, with who is before it: he is watched, and where he fails, his arc is ours too, and so on. */
void copies_primary_watch_reach(struct copies *copies, const struct peer *self, struct copy_plan_arc *arc,
                                struct copies_watch *watch);
uint64_t copies_primary_watch_failing(struct copies *copies);
void copies_primary_watch_run(struct copies *copies); /* a challenge, when it is time for one */

/* ---- copies_challenge.c: ERR_OK: he holds it, or we cannot know; ERR_MISMATCH: he does not, and is blamed;
 * ERR_NOT_FOUND, ERR_CORRUPT: he says so himself; else there was no answer ---- */

enum err copies_challenge_key(struct copies *copies, const struct peer *peer,
                              const struct ringkey *key) MUST_CHECK;

/* With a key of ours in (from, to], drawn by lot. */
enum err copies_challenge_arc(struct copies *copies, const struct peer *peer, struct ring_id from,
                              struct ring_id to) MUST_CHECK;

/* Whatever error the other side chose to answer with is no proof of anything. */
enum err copies_err_of_others(enum err err);

/* ---- copies_task.c, copies_release.c ---- */

void copies_run_task(struct copies *copies, const struct copy_plan_task *task);

/* What follows from a comparison: what is missing here is wanted, what is missing there is offered. */
enum copies_aim { COPIES_FETCH = 1, COPIES_GIVE = 2, COPIES_BOTH = 3 };

/* The arc of the task with its peer. Only what is aimed at counts as missing. */
struct copy_plan_outcome copies_compare(struct copies *copies, const struct copy_plan_task *task,
                                        enum copies_aim aim);
void copies_release(struct copies *copies, const struct copy_plan_task *task,
                    struct copy_plan_outcome *ret_outcome);

/* ---- copies_follow.c ---- */

/* Ask to be told; and who wants to be told. */
enum err copies_follow(struct copies *copies, const struct peer *primary) MUST_CHECK;
size_t copies_followers(struct copies *copies, struct peer out[COPIES_FOLLOWERS_MAX]);
void copies_unfollow(struct copies *copies, const struct peer *peer); /* until he asks again */

/* ---- copies_full_sync.c ---- */

void copies_full_sync_init(struct copies *copies);
bool copies_full_sync(struct copies *copies);              /* a stop; false: none is due */
uint64_t copies_full_sync_at(const struct copies *copies); /* when; UINT64_MAX: never. The lock is held */
void copies_full_sync_put_json(const struct copies *copies, struct json *json); /* the lock is held */

#endif
