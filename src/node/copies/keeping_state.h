/* keeping_state - what the files of keeping*.c share. Private to them. */
#ifndef MNEMON_NODE_COPIES_KEEPING_STATE_H
#define MNEMON_NODE_COPIES_KEEPING_STATE_H

#include <pthread.h>

#include "base/map.h"
#include "node/copies/keeping.h"
#include "node/copies/keeping_code.h"
#include "protocol/copies/guard.h"
#include "protocol/copies/keeper.h"
#include "protocol/copies/reconcile.h"
#include "protocol/copies/tour.h"
#include "protocol/copies/turns.h"
#include "store/instance/scrub.h"
#include "store/keyset/keyset.h"
#include "store/keyset/keyset_feed.h"

enum {
    KEEPING_WANTED_MAX = 16384,
    KEEPING_DAMAGED_MAX = 1024,
    KEEPING_CREW_COUNT = 4,       /* threads that fetch */
    KEEPING_BATCH_COUNT = 256,    /* captures fetched before the thread looks at anything else */
    KEEPING_CAME_COUNT = 1 << 14, /* keys of which it is known that they came from others; a power of 2 */
    KEEPING_SHUNNED_MAX = 64,
    KEEPING_FOLLOWERS_MAX = 16,
    KEEPING_WANTED_BUSY = 1024, /* with more to fetch, nothing else is begun */
    KEEPING_WAITING_SIZE = RINGKEY_SIZE + PEER_KEY_SIZE,
    KEEPING_ASK_MS = 10000,
};

struct keeping_wanted {
    struct ringkey key;
    struct peer peer; /* who has it */
    enum turns_lane lane;
    uint8_t silences_count; /* how often he did not give it */
};

/* What is wanted, a circle. */
struct keeping_lane {
    struct keeping_wanted *wanted; /* KEEPING_WANTED_MAX */
    size_t first;
    size_t count;
};

/* To find captures of this node by their keys, and to read their payloads; of one thread. */
struct keeping_reader {
    struct instance_session *session;
    struct sha256 sha256;
    struct buf surt;
    struct buf url;
    struct buf bounds;
};

/* One of the crew. */
struct keeping_hand {
    struct keeping *keeping;
    struct captures_session *fetches;
    struct instance_session *session;
    pthread_t thread;
};

/* Somebody who did not answer, or gave something false. */
struct keeping_shunned {
    struct peer peer;
    uint64_t until_us;       /* no offers to him before */
    bool is_false;           /* the keeper shall know */
    uint64_t false_until_us; /* what he says that he has counts for nothing before */
};

/* Somebody who keeps everything: what is new in our arcs is offered to him. */
struct keeping_follower {
    struct peer peer;
    uint64_t until_us;
};

struct keeping {
    struct keeping_config config;
    struct captures *captures;
    pthread_t thread;
    bool is_started;

    /* The set of keys and its feed; locked for short times, before `lock` where both are. */
    pthread_mutex_t keys_lock;
    struct keyset *keyset;
    struct keyset_feed *feed;

    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool is_stopping;                                         /* lock */
    bool is_woken;                                            /* lock */
    struct keeper *keeper;                                    /* lock */
    struct guard guard;                                       /* lock */
    struct tour tour;                                         /* lock: where everything is kept */
    struct keeping_lane lanes[TURNS_LANES_COUNT];             /* lock */
    size_t wanted_count;                                      /* lock: in both */
    struct turns_queue queue;                                 /* lock: which of them is next */
    struct turns_giving giving;                               /* lock */
    struct map waiting;                                       /* lock: what is wanted */
    struct ringkey damaged[KEEPING_DAMAGED_MAX];              /* lock */
    size_t damaged_count;                                     /* lock */
    struct keeping_shunned shunned[KEEPING_SHUNNED_MAX];      /* lock */
    size_t shunned_next;                                      /* lock */
    struct keeping_follower followers[KEEPING_FOLLOWERS_MAX]; /* lock */
    uint64_t full_until_us;                                   /* lock */
    uint64_t busy_until_us;                                   /* lock: nothing is fetched before */
    struct keeping_stat stat;                                 /* lock */

    struct keeping_reader answering; /* the bulk thread's */

    /* The keeping thread's. */
    struct keeping_reader reading;
    struct keeping_hand hands[KEEPING_CREW_COUNT];
    struct keeping_work *work; /* keeping_fetch.c */
    struct ringkey *fresh;     /* KEEPING_KEYS_MAX: new here, to be offered */
    size_t fresh_count;
    bool has_lost_fresh;   /* there were more: the arcs are compared instead */
    struct ringkey *again; /* KEEPING_KEYS_MAX: to be offered once more, later */
    size_t again_count;
    uint64_t again_us;
    uint64_t came[KEEPING_CAME_COUNT]; /* keys, shortened */
    uint64_t generation;               /* of the ring, as the keeper knows it */
    uint64_t failing;                  /* guard_failing(), likewise */
    bool has_ring;
    struct buf question;
    struct buf answer;
    uint8_t *message; /* RECONCILE_MESSAGE_SIZE_MAX */
    uint8_t wishes[KEEPING_KEYS_MAX];
    bool is_feed_told; /* that the feed fails */
    struct scrub *scrub;
    uint64_t scrub_us; /* when it goes on */
    uint64_t list_us;  /* when a list of damaged captures is looked for */
};

/* ---- keeping.c ---- */

uint64_t keeping_now_us(const struct keeping *keeping);
bool keeping_is_stopping(struct keeping *keeping);
void keeping_blame(struct keeping *keeping, const struct peer *peer, const char *sentence);
void keeping_note(struct keeping *keeping, const char *format, ...) __attribute__((format(printf, 2, 3)));
struct ring_id keeping_place_of(const struct ringkey *key);

/* Take in what is new in the volumes. */
void keeping_feed(struct keeping *keeping);

/* ---- keeping_read.c ---- */

enum err keeping_reader_init(struct keeping_reader *reader, struct instance *instance) MUST_CHECK;
void keeping_reader_done(struct keeping_reader *reader);

/* The capture of a key; SURT and URL last until the next call, it has no media type. ERR_NOT_FOUND. */
enum err keeping_find_capture(struct keeping *keeping, struct keeping_reader *reader,
                              const struct ringkey *key, struct capture *ret_capture,
                              struct err_detail *detail) MUST_CHECK;

/* Its payload, until the next call. */
enum err keeping_read_payload(struct keeping *keeping, struct keeping_reader *reader,
                              const struct ringkey *key, struct bytes *ret_payload,
                              struct err_detail *detail) MUST_CHECK;

/* Keys of the set in (from, to], behind *behind where it is not NULL; at most count_max. */
enum err keeping_list(struct keeping *keeping, struct ring_id from, struct ring_id to,
                      const struct ringkey *behind, struct ringkey *out, size_t count_max,
                      size_t *ret_count) MUST_CHECK;

/* ---- keeping_answer.c: on the bulk thread ---- */

bulk_handler keeping_answer_compare;
bulk_handler keeping_answer_offer;
bulk_handler keeping_answer_confirm;
bulk_handler keeping_answer_prove;
bulk_handler keeping_answer_follow; /* keeping_follow.c */

/* ---- keeping_want.c ---- */

enum err keeping_want_init(struct keeping *keeping) MUST_CHECK;
void keeping_want_done(struct keeping *keeping);

/* False: there is no room. The lock is held. */
bool keeping_want(struct keeping *keeping, enum turns_lane lane, const struct ringkey *key,
                  const struct peer *peer);
bool keeping_want_again(struct keeping *keeping, const struct keeping_wanted *wanted);

/* The next ones, at most count_max: where the lines are slow, of one lane and giver. The lock is held. */
size_t keeping_take_wanted(struct keeping *keeping, struct keeping_wanted *out, size_t count_max);

/* ---- keeping_fetch.c ---- */

enum err keeping_crew_init(struct keeping *keeping) MUST_CHECK;
void keeping_crew_done(struct keeping *keeping);
void keeping_fetch(struct keeping *keeping); /* a batch of what is wanted */
bool keeping_is_full(struct keeping *keeping);
bool keeping_came(const struct keeping *keeping, const struct ringkey *key);

/* ---- keeping_repair.c ---- */

void keeping_repair(struct keeping *keeping); /* what was reported as damaged */

/* ---- keeping_scrub.c ---- */

enum err keeping_scrub_init(struct keeping *keeping, struct err_detail *detail) MUST_CHECK;
void keeping_scrub(struct keeping *keeping); /* a step, when it is time for one */

/* ---- keeping_offer.c ---- */

void keeping_take_fresh(void *context, const struct ringkey *key); /* keyset_feed_added */
void keeping_offer_fresh(struct keeping *keeping);

/* At most KEEPING_KEYS_MAX keys to one node; his wishes are in keeping->wishes. */
enum err keeping_offer(struct keeping *keeping, const struct peer *peer, const struct ringkey *keys,
                       size_t count) MUST_CHECK;

/* Any thread. */
void keeping_shun(struct keeping *keeping, const struct peer *peer, bool is_false);
bool keeping_is_shunned(struct keeping *keeping, const struct peer *peer);
bool keeping_take_falsehood(struct keeping *keeping, const struct peer *peer); /* once for each time */

/* Something of his was found false: for half the grace time nobody relies on what he says that he has. */
void keeping_note_false(struct keeping *keeping, const struct peer *peer);
bool keeping_is_false(struct keeping *keeping, const struct peer *peer);

/* ---- keeping_guard.c ---- */

uint64_t keeping_grace_us(const struct keeping *keeping);
void keeping_guard_init(struct keeping *keeping);

/* Who is watched, while the arcs are described. */
struct keeping_watch {
    struct guard_arc arcs[GUARD_WATCHED_MAX];
    size_t count;
};

/* An own arc, with who is before it: he is watched, and where he fails, his arc is ours too, and so on. */
void keeping_guard_reach(struct keeping *keeping, const struct peer *self, struct keeper_arc *arc,
                         struct keeping_watch *watch);
uint64_t keeping_guard_failing(struct keeping *keeping);
void keeping_guard_run(struct keeping *keeping); /* a challenge, when it is time for one */

/* ---- keeping_challenge.c: ERR_OK: he holds it, or we cannot know; ERR_MISMATCH: he does not, and is blamed;
 * ERR_NOT_FOUND, ERR_CORRUPT: he says so himself; else there was no answer ---- */

enum err keeping_challenge_key(struct keeping *keeping, const struct peer *peer,
                               const struct ringkey *key) MUST_CHECK;

/* With a key of ours in (from, to], drawn by lot. */
enum err keeping_challenge_arc(struct keeping *keeping, const struct peer *peer, struct ring_id from,
                               struct ring_id to) MUST_CHECK;

/* Whatever error the other side chose to answer with is no proof of anything. */
enum err keeping_err_of_others(enum err err);

/* ---- keeping_task.c, keeping_release.c ---- */

void keeping_run_task(struct keeping *keeping, const struct keeper_task *task);

/* What follows from a comparison: what is missing here is wanted, what is missing there is offered. */
enum keeping_aim { KEEPING_FETCH = 1, KEEPING_GIVE = 2, KEEPING_BOTH = 3 };

/* The arc of the task with its peer. Only what is aimed at counts as missing. */
struct keeper_outcome keeping_compare(struct keeping *keeping, const struct keeper_task *task,
                                      enum keeping_aim aim);
void keeping_release(struct keeping *keeping, const struct keeper_task *task,
                     struct keeper_outcome *ret_outcome);

/* ---- keeping_follow.c ---- */

/* Ask to be told; and who wants to be told. */
enum err keeping_follow(struct keeping *keeping, const struct peer *primary) MUST_CHECK;
size_t keeping_followers(struct keeping *keeping, struct peer out[KEEPING_FOLLOWERS_MAX]);
void keeping_unfollow(struct keeping *keeping, const struct peer *peer); /* until he asks again */

/* ---- keeping_tour.c ---- */

void keeping_tour_init(struct keeping *keeping);
bool keeping_tour(struct keeping *keeping);              /* a stop; false: none is due */
uint64_t keeping_tour_at(const struct keeping *keeping); /* when; UINT64_MAX: never. The lock is held */
void keeping_tour_put_json(const struct keeping *keeping, struct buf *out); /* the lock is held */

#endif
