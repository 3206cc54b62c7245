/*
 * replicator_state - what is inside struct replicator. One machine in several files:
 *
 *      replicator.c          begin, events, actions, when it wakes; nodes that are silent or lie; followers
 *      replicator_ring.c     own arcs and the primaries before them, as the plan wants to know them
 *      replicator_compare.c  errands: comparisons, handing on, the full sync, challenges
 *      replicator_release.c  the errand that hands over surplus and gives it up
 *      replicator_offers.c   errands: what is new is offered until the other holders have it; the sweep
 *      replicator_fetch.c    what is wanted of others, and what came of it
 *      replicator_answer.c   questions of other nodes
 */
#ifndef MNEMON_PROTOCOL_COPIES_REPLICATOR_STATE_H
#define MNEMON_PROTOCOL_COPIES_REPLICATOR_STATE_H

#include "base/standing.h"
#include "protocol/copies/comparison.h"
#include "protocol/copies/primary_watch.h"
#include "protocol/copies/proofs.h"
#include "protocol/copies/replicator.h"

enum {
    REPLICATOR_CHALLENGES_MAX = 4,
    REPLICATOR_LIST_COUNT = 256, /* surplus keys that are looked at together */
    REPLICATOR_SHUNNED_MAX = 192,
    REPLICATOR_DAMAGED_MAX = 1024,
    REPLICATOR_NUDGES_MAX = 64,
    REPLICATOR_BLAMES_MAX = 16,
};
static const uint64_t REPLICATOR_SECOND_US = 1000000;

/* ---- errands ---- */

/* What it does next, or waits for. */
enum errand_state {
    ERRAND_FREE,
    ERRAND_LOOK_UP,
    ERRAND_FOLLOW,
    ERRAND_COMPARE,
    ERRAND_OFFER,
    ERRAND_CONFIRM,
    ERRAND_READ,
    ERRAND_PROVE,
    ERRAND_REMOVE,
    ERRAND_REPAIR,
    ERRAND_SCRUB,
};

struct errand {
    enum errand_state state;
    bool is_out; /* its action has left, and the answer is awaited */
    uint64_t id; /* of that action */
    struct peer peer;
};

enum errand_purpose { ERRAND_PLAN, ERRAND_HAND_ON, ERRAND_SYNC, ERRAND_WATCH };

struct errand_comparison {
    struct errand errand;
    enum errand_purpose purpose;
    struct copy_plan_task task;
    struct comparison comparison;

    /* Handing on. */
    bool is_partial;

    /* The full sync. */
    struct full_sync_stop stop;
    struct peer stop_peer;
    bool is_deaf;
};

/* A hash that only a node with the payload can know. */
struct challenge {
    struct copies_challenge asked;
    uint8_t expected[COPIES_PROOF_SIZE];
};

struct errand_challenge {
    struct errand errand;
    enum errand_purpose purpose; /* plan or watch */
    struct copy_plan_task task;
    struct challenge challenge;
};

struct errand_offer {
    struct errand errand;
    uint32_t *items; /* in custody */
    uint32_t count;  /* 0: something has changed here, compare with me */
};

struct errand_release {
    struct errand errand;
    struct copy_plan_task task;
    uint32_t lists_count;
    struct ringkey keys[REPLICATOR_LIST_COUNT];
    size_t count;
    size_t at;          /* the first of those that are looked at: keys of one arc, in a row */
    size_t group_count; /* of them */
    struct holders_arc arc;
    size_t holder;    /* which one is asked */
    bool is_complete; /* all holders that were asked answered, and are believed */
    uint8_t has[REPLICATOR_LIST_COUNT];
    uint8_t confirmed[REPLICATOR_LIST_COUNT]; /* by how many holders */
    size_t removing;                          /* of the group */
    struct challenge challenge;
};

struct errand_repair {
    struct errand errand; /* with the holder that is asked */
    struct ringkey damaged;
    struct ringkey key; /* the same, or another with its payload */
    struct holders_arc arc;
    size_t holder;
    unsigned keys_count;   /* others that were looked at … */
    struct ringkey behind; /* … up to this one */
    bool is_repaired;
};

struct errand_scrub {
    struct errand errand;
    uint64_t due_us;
};

/* ---- the rest ---- */

/* A node that keeps everything: what is new in our arcs is offered to it. */
struct replicator_follower {
    struct peer peer;
    uint64_t until_us;
};

/* Over the keys in arcs of others, which only this node may have (replicator_offers.c). */
struct replicator_sweep {
    bool is_on;
    uint64_t since_us;     /* comparisons since then count */
    uint64_t due_us;       /* when it goes on */
    struct ring_id at;     /* the arc that it has got to */
    bool has_asked;        /* its primary to compare it */
    bool has_behind;       /* within it, … */
    struct ringkey behind; /* … up to this key */
};

struct replicator_damage {
    struct ringkey key;
    uint64_t due_us; /* not tried before */
};

struct replicator_blame {
    struct peer peer;
    const char *sentence;
};

struct replicator {
    struct replicator_config config;
    struct replicator_world world;
    struct sha256 sha256;
    uint64_t draws_count;
    uint64_t ids_count;

    struct copy_plan *copy_plan;
    struct custody *custody;
    struct transfer *transfer;
    struct primary_watch primary_watch;
    struct proofs proofs;
    struct full_sync full_sync;
    struct transfer_order_giving giving;
    struct standing standing; /* nodes that did not answer or gave something false */
    struct standing_entry shunned[REPLICATOR_SHUNNED_MAX];
    struct replicator_follower followers[REPLICATOR_FOLLOWERS_MAX];
    struct replicator_sweep sweep;
    struct replicator_counts counts;
    bool is_full;
    bool is_fed;
    bool may_offer;

    struct errand_comparison *comparisons; /* comparisons_max */
    struct errand_challenge challenges[REPLICATOR_CHALLENGES_MAX];
    struct errand_offer *offers; /* offers_max */
    struct errand_release release;
    struct errand_repair repair;
    struct errand_scrub scrub;
    bool is_syncing; /* one of the comparisons is a stop of the full sync */
    bool is_watching;

    struct replicator_blame blames[REPLICATOR_BLAMES_MAX];
    size_t blames_count;
    struct peer nudges[REPLICATOR_NUDGES_MAX]; /* to be told that something has changed here */
    size_t nudges_count;
    struct replicator_damage damaged[REPLICATOR_DAMAGED_MAX];
    size_t damaged_count;

    uint64_t *came;    /* from their primaries: keys, shortened */
    uint64_t *deleted; /* likewise */
    uint64_t deleted_generation;

    /* The ring, as it was looked at last. */
    bool has_ring;
    uint64_t generation;
    uint64_t failing;           /* primary_watch_failing(), likewise */
    struct holders_arc *own;    /* arcs_max */
    struct copy_plan_arc *arcs; /* arcs_max */

    /* For one call. */
    struct custody_item *due; /* COPIES_KEYS_MAX */
    struct ringkey *offered;  /* COPIES_KEYS_MAX */
    uint8_t *wishes;          /* COPIES_KEYS_MAX */
    uint8_t *message;         /* COPIES_KEYS_SIZE_MAX */
};

static inline struct ring_id replicator_place(const struct ringkey *key) {
    return ring_id_read(key->bytes);
}

/* ---- replicator.c ---- */

void replicator_blame(struct replicator *replicator, const struct peer *peer, const char *sentence);
uint64_t replicator_grace_us(const struct replicator *replicator);

/* Bytes that nobody else can guess. */
void replicator_draw(struct replicator *replicator, uint8_t out[SHA256_SIZE]);
uint64_t replicator_draw_below(struct replicator *replicator, uint64_t bound);

/* Keys that are here in (from, to], those after *behind if it is not NULL; at most count_max. */
enum err replicator_list(const struct replicator *replicator, struct ring_id from, struct ring_id to,
                         const struct ringkey *behind, struct ringkey *out, size_t count_max,
                         size_t *ret_count) MUST_CHECK;

void errand_begin(struct errand *errand, enum errand_state state);
void errand_end(struct errand *errand);

/* It gave no answer, for a while it is not offered anything. */
void replicator_shun(struct replicator *replicator, const struct peer *peer, uint64_t now_us);
bool replicator_is_shunned(const struct replicator *replicator, const struct peer *peer, uint64_t now_us);

/* It gave something false: for half the grace time, what it says it has does not count. */
void replicator_note_false(struct replicator *replicator, const struct peer *peer, uint64_t now_us);
bool replicator_is_false(const struct replicator *replicator, const struct peer *peer, uint64_t now_us);
bool replicator_take_falsehood(struct replicator *replicator,
                               const struct peer *peer); /* once for each time */

/* Whatever error the other side chose to answer with is no proof of anything. */
enum err replicator_err_of_others(enum err err);

/* Take the answer to an offer of so many keys; the wishes are in replicator->wishes then. */
enum err replicator_take_wishes(struct replicator *replicator, const struct peer *peer, size_t count,
                                const struct replicator_event *event) MUST_CHECK;

/* ---- replicator_ring.c ---- */

void replicator_look_at_ring(struct replicator *replicator, uint64_t now_us);

/* ---- replicator_compare.c ---- */

enum comparison_want replicator_compare_want(void *context, const struct ringkey *key,
                                             const struct peer *peer);
void replicator_begin_task(struct replicator *replicator, const struct copy_plan_task *task, uint64_t now_us);
void replicator_begin_sync(struct replicator *replicator, uint64_t now_us);
void replicator_begin_watch(struct replicator *replicator, uint64_t now_us);
bool replicator_may_begin_task(const struct replicator *replicator);
bool replicator_may_begin_sync(const struct replicator *replicator);
bool replicator_may_begin_watch(const struct replicator *replicator);

void replicator_compare_action(struct replicator *replicator, struct errand_comparison *errand,
                               struct replicator_action *action);
void replicator_compare_take(struct replicator *replicator, struct errand_comparison *errand,
                             const struct replicator_event *event);
void replicator_challenge_action(struct replicator *replicator, struct errand_challenge *errand,
                                 struct replicator_action *action);
void replicator_challenge_take(struct replicator *replicator, struct errand_challenge *errand,
                               const struct replicator_event *event);

/* A challenge in two steps: with the payload, a question; with the answer, a judgement. */
void challenge_put(const struct challenge *challenge, struct replicator *replicator,
                   struct replicator_action *action);
bool challenge_make(struct replicator *replicator, struct challenge *challenge,
                    const struct replicator_event *event); /* false: there is nothing to ask */
enum err challenge_judge(struct replicator *replicator, const struct challenge *challenge,
                         const struct peer *peer, const struct replicator_event *event) MUST_CHECK;

/* Our arcs are compared soon, with this peer or, for NULL, with all holders. */
void replicator_touch_all(struct replicator *replicator, const struct peer *peer, uint64_t now_us);

/* ---- replicator_release.c ---- */

void replicator_release_begin(struct replicator *replicator, const struct copy_plan_task *task,
                              uint64_t now_us);
void replicator_release_action(struct replicator *replicator, struct errand_release *errand,
                               struct replicator_action *action);
void replicator_release_take(struct replicator *replicator, struct errand_release *errand,
                             const struct replicator_event *event);

/* ---- replicator_repair.c ---- */

void replicator_report_damage(struct replicator *replicator, const struct ringkey *key);
void replicator_begin_repair(struct replicator *replicator, uint64_t now_us);
void replicator_begin_scrub(struct replicator *replicator, uint64_t now_us);
uint64_t replicator_repair_at(const struct replicator *replicator);
void replicator_repair_action(const struct errand_repair *errand, struct replicator_action *action);
void replicator_repair_take(struct replicator *replicator, struct errand_repair *errand,
                            const struct replicator_event *event);
void replicator_scrub_take(struct replicator *replicator, const struct replicator_event *event);

/* ---- replicator_offers.c ---- */

void replicator_take_fresh(struct replicator *replicator, const struct ringkey *keys, size_t count,
                           uint64_t now_us);
void replicator_lose_fresh(struct replicator *replicator, uint64_t now_us); /* any may be new */
void replicator_begin_offers(struct replicator *replicator, uint64_t now_us);
uint64_t replicator_offers_at(const struct replicator *replicator);
void replicator_offer_action(struct replicator *replicator, struct errand_offer *errand,
                             struct replicator_action *action);
void replicator_offer_take(struct replicator *replicator, struct errand_offer *errand,
                           const struct replicator_event *event);
void replicator_sweep_begin(struct replicator *replicator, uint64_t now_us);

/* ---- replicator_fetch.c ---- */

bool replicator_came(const struct replicator *replicator, const struct ringkey *key);
bool replicator_is_deleted(struct replicator *replicator, const struct ringkey *key);
bool replicator_next_fetch(struct replicator *replicator, uint64_t now_us, struct replicator_action *action);
void replicator_fetch_take(struct replicator *replicator, const struct replicator_event *event);
bool replicator_look_at_disk(struct replicator *replicator); /* is it full? */
size_t replicator_wanted_count(const struct replicator *replicator);
bool replicator_may_take(const struct replicator *replicator);

/* A question with these keys into the action. */
void replicator_put_keys(struct replicator *replicator, const struct ringkey *keys, size_t count,
                         struct replicator_action *action);

#endif
