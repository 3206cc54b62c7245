/*
 * copy_plan - what a node does next to keep the archive whole: whom it compares its arcs with, whom it
 * challenges, what it hands on, which keys it may give up.
 *
 *      own arc      (predecessor, self]     we are its primary and see to it, piece by piece
 *      piece        a part of an own arc whose places have the same copies; usually the whole arc
 *      member       another node that has, should have or had a copy of a piece
 *      claim        an arc that another node compared with us as its primary, and when
 *      left         a part of the ring that was ours until the ring changed
 *
 * The caller brings the ring (copy_plan_set_arcs), what others claim, and how each task went; it asks for the
 * next task. All policy is here, no I/O: the node and the simulator run the same object file. The rules are
 * those of docs/decisions/0011-one-archive-on-the-ring.md:
 *
 * - Copies of a piece are ours and those of the next nodes clockwise, R in all. One that is full, or failed a
 *   challenge, is passed over for a while, and the next one takes its part.
 * - One that had a copy and is silent counts as a copy, away, for the grace time: nobody is filled in its
 *   place. So does the former primary of what our arc grew by. At most a third of R may be away like that;
 *   of more, those that went first are replaced at once.
 * - A member is compared at once when it is new, back, or somebody says that something changed; again soon
 *   while something is missing on either side; else at the interval, with jitter. Whoever does not answer is
 *   asked less and less often, until we hear of it.
 * - If more is missing than can be taken at once, the next comparison follows within a second and begins
 *   where the last one ended, as long as each gets further than the one before.
 * - With a node that is new or back, the first comparison begins inside of the arc, at a place of its own;
 * all of it comes second. So each of several nodes that are filled at the same time gets another part first,
 * and there is nothing that all of them lack.
 * - If the repair of a piece takes long (an eighth of the interval), the nodes that follow its holders are
 * asked, too. They were holders before others came between, and may be the only ones that have something;
 * while they are asked, it is not surplus there.
 * - An arc that we left is handed on to its primary of now, unless that one has compared it with us since.
 * Mostly it has: a node that came before us has us among its holders. After a cut heals, many come at once,
 * and then it may be that none of them was there when we stored something.
 * - Places that neither we nor, within the grace time, another primary saw to are surplus, unless this node
 *   keeps everything (protocol/copies/full_sync.h).
 *
 * No memory is taken; what does not fit the bounds is left out (a claim that is left out
 * is a surplus that the holders must confirm, so nothing is lost). Not for several threads at once.
 */
#ifndef MNEMON_PROTOCOL_COPIES_COPY_PLAN_H
#define MNEMON_PROTOCOL_COPIES_COPY_PLAN_H

#include "base/err.h"
#include "base/peer.h"
#include "base/ringkey.h"
#include "protocol/ring/charter.h"
#include "protocol/ring/ring_id.h"

struct copy_plan;

enum {
    COPY_PLAN_SPARES_MAX = 4,                                                /* nodes behind the R holders */
    COPY_PLAN_CANDIDATES_MAX = CHARTER_REPLICAS_MAX + COPY_PLAN_SPARES_MAX,  /* of one arc */
    COPY_PLAN_MEMBERS_MAX = COPY_PLAN_CANDIDATES_MAX + CHARTER_REPLICAS_MAX, /* with those that are away */
};

/* 0 stands for the default in parentheses. */
struct copy_plan_config {
    uint32_t copies;                /* (6) R of the charter, ours included */
    uint32_t pieces_max;            /* (64) */
    uint32_t claims_max;            /* (512) */
    uint64_t compare_interval_us;   /* (5 min) */
    uint64_t challenge_interval_us; /* (10 min) of each member and piece */
    uint64_t grace_us;              /* (1 h) */
    uint64_t bar_us;                /* (30 min) for how long one that is full or false is passed over */
    bool keeps_everything;          /* nothing is surplus: there is no COPY_PLAN_RELEASE */
    uint64_t seed;                  /* of the jitter */
};

/* How much memory it needs, aligned as malloc() does; and a plan in it, which lasts as long. */
size_t copy_plan_size(const struct copy_plan_config *config);
struct copy_plan *copy_plan_init(void *memory, const struct copy_plan_config *config, uint64_t now_us);

/* ---- what is ---- */

/* An arc of ours, and the nodes that follow us: distinct other nodes in the order of the ring. */
struct copy_plan_arc {
    struct ring_id from;
    struct ring_id to; /* our place */
    bool has_predecessor;
    struct peer predecessor;
    bool is_guarding; /* it reaches over one before us that is not relied on
                         (protocol/copies/primary_watch.h): what it has is no copy */
    size_t count;
    struct peer peers[COPY_PLAN_CANDIDATES_MAX];
};

/* All own arcs, whenever they or the nodes that follow have changed. None: we are in no ring. */
void copy_plan_set_arcs(struct copy_plan *copy_plan, const struct copy_plan_arc *arcs, size_t count,
                        uint64_t now_us);

void copy_plan_set_copies(struct copy_plan *copy_plan, uint32_t copies, uint64_t now_us);

/* That node compared this arc with us, and is its primary as far as we can tell. is_equal: there was nothing
 * that only one of us had. */
void copy_plan_claim(struct copy_plan *copy_plan, const struct peer *primary, struct ring_id from,
                     struct ring_id to, bool is_equal, uint64_t now_us);

/* That node has something of this place that did not come to us: until the next comparison we do not know all
 * of it (copy_plan_is_compared). */
void copy_plan_doubt(struct copy_plan *copy_plan, struct ring_id place, const struct peer *peer);

/* A question of that node came: if it was silent, it may answer now. */
void copy_plan_hear(struct copy_plan *copy_plan, const struct peer *peer, uint64_t now_us);

/* Something changed at a place of ours: compare it soon with that node; NULL: with all of them. */
void copy_plan_touch(struct copy_plan *copy_plan, struct ring_id place, const struct peer *peer,
                     uint64_t now_us);

/*
 * There are captures here at this place of which it is not known, and will not be heard, whether the peer
 * (NULL: any member) has them: they count as missing there until a comparison that begins later finds nothing
 * missing.
 */
void copy_plan_unproven(struct copy_plan *copy_plan, struct ring_id place, const struct peer *peer,
                        uint64_t now_us);

/* So many keys came or went: for the estimate of how long it will take. */
void copy_plan_moved(struct copy_plan *copy_plan, uint64_t keys_count, uint64_t now_us);

/* ---- what to do ---- */

enum copy_plan_task_kind {
    COPY_PLAN_COMPARE, /* (from, to] with the peer */
    COPY_PLAN_ASK,     /* (from, to] with the peer, which is no holder: only what it has and we lack counts */
    COPY_PLAN_CHALLENGE, /* the peer, with a key of (from, to] */
    COPY_PLAN_HAND_ON,   /* (from, to] we left: its primary, which is to be looked up, gets what it lacks */
    COPY_PLAN_RELEASE,   /* keys in (from, to] are surplus: hand them on, then give them up */
};

struct copy_plan_task {
    enum copy_plan_task_kind kind;
    struct ring_id from;
    struct ring_id to;
    struct peer peer;
    bool has_rest; /* comparisons: only from the key `rest` on, the last one got that far */
    struct ringkey rest;
};

/* False: nothing now; look again at copy_plan_wake_at(). The task is open until copy_plan_done(); several may
 * be, one with each peer, one that hands on and one that releases. */
bool copy_plan_next(struct copy_plan *copy_plan, uint64_t now_us, struct copy_plan_task *ret_task);
uint64_t copy_plan_wake_at(struct copy_plan *copy_plan, uint64_t now_us);

/*
 * ERR_OK, or: ERR_NO_SPACE: it is full. ERR_MISMATCH, ERR_INVALID, ERR_TRUNCATED, ERR_LIMIT: what it says is
 * false. ERR_CORRUPT, ERR_NOT_FOUND of a challenge: it has lost it and says so; after some in a row that is
 * the same. Else: there was no answer.
 */
struct copy_plan_outcome {
    enum err err;
    uint64_t missing_here_count; /* a comparison: what it has and we do not */
    uint64_t missing_there_count;
    uint64_t coming_count;  /* of both, what now waits to be fetched */
    bool is_capped;         /* there is more missing, at or behind the key `rest`, than could be taken */
    struct ringkey rest;    /* in (from, to] */
    bool is_partial;        /* handed on or released: only up to `reached` */
    struct ring_id reached; /* in (from, to) */
};

void copy_plan_done(struct copy_plan *copy_plan, const struct copy_plan_task *task,
                    const struct copy_plan_outcome *outcome, uint64_t now_us);

/* ---- what people and the node's other parts want to know ---- */

enum copy_plan_level {
    COPY_PLAN_WHOLE, /* R copies, compared, of every capture */
    COPY_PLAN_FRESH, /* the same but for new captures, of which that is not known yet */
    COPY_PLAN_AWAY,  /* R copies, one or more of them on nodes that are away */
    COPY_PLAN_LOW,   /* fewer, or not known yet */
};
extern const char *const copy_plan_levels[]; /* "whole", "fresh", "away", "low" */

struct copy_plan_piece_status {
    struct ring_id from;
    struct ring_id to;
    enum copy_plan_level level;
    uint32_t copies_count; /* ours, and those that were compared and complete */
    uint32_t away_count;
    uint64_t missing_count;      /* keys that members lacked at the last comparisons, and we */
    bool is_doubted;             /* since then something may not have come here */
    uint64_t repairing_since_us; /* 0: nothing is being repaired */
    uint64_t estimate_s;         /* until it is repaired; 0: not known */
    size_t members_count;
};

struct copy_plan_member_status {
    struct peer peer;
    bool is_away;
    bool is_full;
    bool is_false; /* failed a challenge */
    bool is_spare; /* not needed now */
    bool is_complete;
    bool is_unproven;        /* it may lack captures of which nothing else is known */
    uint64_t compared_at_us; /* 0: never */
    uint64_t missing_here_count;
    uint64_t missing_there_count;
    bool is_doubted;       /* since the comparison something that it has may not have come here */
    uint32_t silent_count; /* tasks in a row without an answer */
    uint32_t failed_count; /* challenges */
};

size_t copy_plan_pieces_count(const struct copy_plan *copy_plan);
bool copy_plan_find(const struct copy_plan *copy_plan, struct ring_id place, size_t *ret_index);
void copy_plan_piece(const struct copy_plan *copy_plan, size_t index,
                     struct copy_plan_piece_status *ret_status);
void copy_plan_member(const struct copy_plan *copy_plan, size_t index, size_t member_index,
                      struct copy_plan_member_status *ret_status);
size_t copy_plan_claims_count(const struct copy_plan *copy_plan);

/* Has a primary that has the place among its own compared it with us since then, and had nothing else than
 * we? */
bool copy_plan_was_equal(const struct copy_plan *copy_plan, struct ring_id place, uint64_t since_us);

/*
 * Is the place one of which we surely have everything: ours and compared with all members that are here, or
 * found equal by its primary within two intervals? primary, from: of its arc, as the ring is now. What was
 * claimed by another one, or for an arc that began earlier, was before the ring changed, or a lie.
 */
bool copy_plan_is_compared(const struct copy_plan *copy_plan, struct ring_id place,
                           const struct peer *primary, struct ring_id from, uint64_t now_us);

#endif
