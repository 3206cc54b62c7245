/*
 * replicator - a node's part in keeping the archive of the ring (decision 0011, "Who keeps what"), as one
 * pure machine: the daemon and the simulator run the same object files.
 *
 *      events ──replicator_step()──> plan, custody, transfers, watch, full sync
 *         ^                          errands: conversations with other nodes
 *         │                               │
 *         │                        replicator_next()
 *         │                               v
 *      answers, by id <──────────── actions, each with an id: others carry them out
 *
 * It decides which node is told what is new here (protocol/copies/custody.h), which arcs are compared with
 * whom (protocol/copies/copy_plan.h), what is fetched (protocol/copies/transfer.h), challenged, handed on,
 * given up, read again and repaired. Everything that takes time leaves as an action with an id: questions to
 * other nodes, lookups in the ring, reading a payload, removing and repairing a capture. The answer comes
 * back as an event with that id.
 *
 * An errand is one conversation, with at most one action under way. Several are open at once: one comparison
 * or challenge with each node, one offer to each, one release, one stop of the full sync, one repair. So a
 * node that is silent, slow or refuses holds up its own errands and nobody else's. Their number is bounded.
 *
 * What is in memory or cheap is asked for at once (struct replicator_world): the keys that are here, who
 * holds which position. No clock, no I/O, no memory after replicator_init(); randomness comes from the seed
 * and, for what others must not guess, from a secret. Not for several threads at once.
 */
#ifndef MNEMON_PROTOCOL_COPIES_REPLICATOR_H
#define MNEMON_PROTOCOL_COPIES_REPLICATOR_H

#include "base/ringkey.h"
#include "protocol/copies/copies_code.h"
#include "protocol/copies/copy_plan.h"
#include "protocol/copies/custody.h"
#include "protocol/copies/full_sync.h"
#include "protocol/copies/holders_arc.h"
#include "protocol/copies/transfer.h"

struct replicator;

enum {
    REPLICATOR_SECRET_SIZE = 32,
    REPLICATOR_WANTED_BUSY = 1024, /* with more to fetch, no comparison is begun */
    REPLICATOR_FOLLOWERS_MAX = 16,
};

/* What is asked at once. May read the disk; must not call back. */
struct replicator_world {
    /* The ring, as it is known here. */
    size_t (*own)(void *ring, struct holders_arc out[HOLDERS_ARCS_MAX]); /* at most config.arcs_max */
    bool (*know)(void *ring, struct ring_id position, struct holders_arc *ret_arc);
    size_t (*copies)(void *ring); /* R; 0: we are in no ring */
    uint64_t (*generation)(void *ring);
    bool (*locate)(void *ring, const uint8_t key[PEER_KEY_SIZE], struct peer *ret_peer);
    void *ring;

    /* The captures that are here. */
    struct ringkey_set keys;
    enum err (*find_key)(void *disk, const struct ringkey *key);     /* ERR_NOT_FOUND, or of the disk */
    enum err (*find_payload)(void *disk, const struct ringkey *key); /* one with this digest; likewise */
    /* The next one with this digest; NULL: the first. */
    enum err (*find_same)(void *disk, const struct ringkey *key, const struct ringkey *behind,
                          struct ringkey *ret_key);
    uint64_t (*count)(void *disk);
    bool (*is_full)(void *disk);
    bool (*may_take)(void *disk);      /* else nothing is fetched, but stays wanted. NULL: always */
    uint64_t (*deletions)(void *disk); /* counts up when something else is called deleted */
    void *disk;

    bool (*is_busy)(void *line, const struct peer *peer); /* it said a moment ago that it gives to others */
    void *line;
};

/* 0 stands for the default in parentheses. */
struct replicator_config {
    uint64_t grace_us;              /* (1 h) */
    uint64_t compare_interval_us;   /* (5 min) */
    uint64_t challenge_interval_us; /* (10 min) */
    bool keeps_everything;          /* all captures of the ring, not only those of our arcs */
    bool keeps_surplus;             /* what others hold now is handed on to them but stays here too */
    bool has_slow_lines;            /* protocol/copies/transfer_order.h */
    uint64_t bar_us;                /* (half of grace_us) copy_plan_config */
    uint32_t pieces_max;            /* copy_plan_config */
    uint32_t claims_max;            /* copy_plan_config */
    uint32_t arcs_max;              /* (32) own arcs */
    uint32_t custody_max;           /* custody_config.items_max */
    uint32_t wanted_max;            /* transfer_config */
    uint32_t peers_max;             /* (64) nodes that something is offered to, or fetched from, at a time */
    uint32_t comparisons_max;       /* (8) at once */
    uint32_t offers_max;            /* (16) at once */
    uint32_t found_max;             /* (8,192) keys of one comparison; the next one goes on behind them */
    uint32_t message_size;          /* (64 KiB) of one turn of a comparison */
    uint32_t came_count;            /* (16,384) keys that came from their primaries; a power of 2 */
    uint32_t deleted_count;         /* (65,536) keys of captures that came and are deleted; a power of 2 */
    uint64_t seed;                  /* of jitter */
    uint8_t secret[REPLICATOR_SECRET_SIZE]; /* of challenges */
};

size_t replicator_size(const struct replicator_config *config);
struct replicator *replicator_init(void *memory, const struct replicator_config *config,
                                   const struct replicator_world *world, uint64_t now_us);

/* ---- what happens ---- */

enum replicator_event_kind {
    REPLICATOR_ANSWERED, /* to REPLICATOR_ASK: .err, .bytes */
    REPLICATOR_FOUND,    /* to REPLICATOR_LOOK_UP: .err, .arc */
    REPLICATOR_READ,     /* to REPLICATOR_READ_PAYLOAD: .err, .bytes */
    REPLICATOR_REMOVED,  /* to REPLICATOR_REMOVE: .err; ERR_EXISTS: it stays */
    REPLICATOR_REPAIRED, /* to REPLICATOR_REPAIR: .err: it did not come; .is_good: something was damaged, and
                            is no longer; .is_cut: it came, but without its payload */
    REPLICATOR_SCRUBBED, /* to REPLICATOR_SCRUB: .err, .wait_us until more may be read */
    REPLICATOR_CLOSED,   /* to REPLICATOR_FETCH: .line, .bytes.size; its items are settled one by one */
    REPLICATOR_DURABLE, /* a capture that was fetched: .bytes.size of its payload, .is_about: that was here */
    REPLICATOR_SETTLED, /* .item of a fetch: .outcome; if it is stored, it is among the keys now */
    REPLICATOR_DELETED, /* .item of a fetch: the capture came and is deleted here */
    REPLICATOR_FALSE,   /* .peer gave something false in a fetch */
    REPLICATOR_FRESH,   /* .keys are new here; .is_cut: and others, which are not among them */
    REPLICATOR_FED,     /* .is_good: all that is here is among the keys */
    REPLICATOR_DAMAGED, /* the capture of .keys[0] cannot be read */
    REPLICATOR_PERMIT,  /* .is_good: others may be told what is here */
};

struct replicator_event {
    enum replicator_event_kind kind;
    uint64_t now_us;
    uint64_t id;
    enum err err;
    struct bytes bytes;
    const struct holders_arc *arc;
    const struct peer *peer;
    const struct ringkey *keys;
    size_t keys_count;
    uint32_t item;
    enum transfer_outcome outcome;
    enum transfer_line line;
    uint64_t wait_us;
    bool is_good;
    bool is_about;
    bool is_cut;
};

void replicator_step(struct replicator *replicator, const struct replicator_event *event);

/* ---- what to do ---- */

enum replicator_action_kind {
    REPLICATOR_ASK,          /* .peer: .service with .question */
    REPLICATOR_LOOK_UP,      /* who holds .place, surely */
    REPLICATOR_READ_PAYLOAD, /* of the capture .key */
    REPLICATOR_REMOVE,       /* the capture .key, which is surplus, unless its owner wants to keep it */
    REPLICATOR_REPAIR,       /* the document of the capture .key, with the copy of .peer */
    REPLICATOR_SCRUB,        /* read on in what is here; damage comes back as REPLICATOR_DAMAGED */
    REPLICATOR_FETCH,        /* .fetch of .peer: its giver, or another holder in its stead */
    REPLICATOR_BLAME,        /* .peer for .sentence; nothing comes back */
};

enum replicator_service {
    REPLICATOR_COMPARE,
    REPLICATOR_OFFER,
    REPLICATOR_CONFIRM,
    REPLICATOR_PROVE,
    REPLICATOR_FOLLOW,
    REPLICATOR_SERVICES_COUNT,
};

struct replicator_action {
    enum replicator_action_kind kind;
    uint64_t id;
    struct peer peer;
    enum replicator_service service;
    struct bytes question; /* until the next call */
    struct ring_id place;
    struct ringkey key;
    const char *sentence;
    struct transfer_question fetch;
};

/* False: nothing now; look again at replicator_wake_at(), or after an event. */
bool replicator_next(struct replicator *replicator, uint64_t now_us, struct replicator_action *ret_action);
uint64_t replicator_wake_at(struct replicator *replicator, uint64_t now_us); /* UINT64_MAX: never */

/* ---- questions of others ---- */

/* A node compared this arc with us; is_equal: there was nothing that only one of us had. */
void replicator_hear_comparison(struct replicator *replicator, const struct peer *from,
                                struct ring_id arc_from, struct ring_id arc_to, bool is_equal,
                                uint64_t now_us);

/* A node offers keys. *wishes: what the set says of each (replicator_judge()); then what is answered. None:
 * something has changed there. */
void replicator_hear_offer(struct replicator *replicator, const struct peer *from,
                           const struct copies_keys *keys, uint8_t *wishes, uint64_t now_us);

/* And this node is full: nothing of it comes. */
void replicator_refuse_offer(struct replicator *replicator, const struct peer *from,
                             const struct copies_keys *keys);

/* False: too many follow already. */
bool replicator_hear_follower(struct replicator *replicator, const struct peer *from, uint64_t now_us);

/* May the peer be given a copy now? */
bool replicator_may_copy(struct replicator *replicator, const struct peer *peer, uint64_t now_us);

/* What the set of keys alone says: enum copies_wish of an offered key. Errors are the disk's. */
enum err replicator_judge(const struct replicator_world *world, const struct ringkey *key,
                          uint8_t *ret_wish) MUST_CHECK;

/* The answer to a question for comparison, from a set of keys alone; *ret_is_equal as above. ERR_INVALID and
 * such: *ret_sentence says what the asker is blamed for, NULL: nothing. */
enum err replicator_answer_comparison(const struct ringkey_set *keys, struct bytes question, void *memory,
                                      size_t size_max, struct ring_id *ret_from, struct ring_id *ret_to,
                                      bool *ret_is_equal, struct bytes *ret_answer, const char **ret_sentence,
                                      struct err_detail *detail) MUST_CHECK;

/* ---- what the node's other parts say and want to know ---- */

/* The node gave something false. For a while it does not count: neither as a holder of our arcs, nor as the
 * primary before us, nor when it confirms what is surplus here. */
void replicator_distrust(struct replicator *replicator, const struct peer *peer, uint64_t now_us);

/* This key is missing here and the peer has it. False: no room. */
bool replicator_want(struct replicator *replicator, enum transfer_order_lane lane, const struct ringkey *key,
                     const struct peer *peer);

struct replicator_counts {
    uint64_t compared_count;    /* comparisons made as primary */
    uint64_t compared_by_count; /* questions of others answered */
    uint64_t synced_count;      /* comparisons of arcs of others, to keep everything */
    uint64_t offered_count;     /* keys */
    uint64_t confirmed_count;   /* of them, by nodes that are to keep them: they have them */
    uint64_t handed_on_count;   /* captures of arcs that were ours, missing at their new holders */
    uint64_t fetches_count;     /* questions for captures, each for one or many */
    uint64_t fetched_count;
    uint64_t fetched_about_count;
    uint64_t fetched_size;
    uint64_t refused_count;
    uint64_t challenged_count;
    uint64_t caught_count;
    uint64_t released_count;
    uint64_t repaired_count;
    uint64_t questions_count; /* that were asked of others, in errands */
    uint64_t silent_count;    /* of them, without an answer */
};

struct replicator_status {
    struct replicator_counts counts;
    uint32_t wanted_count;
    uint32_t
        unconfirmed_count; /* captures in arcs of others whose primary has not said yet that it has them */
    uint32_t unconfirmed_own_count; /* captures in own arcs, times the holders that have not */
    bool is_checking;               /* there may be more of them */
    bool is_full;
    bool is_fed;
    uint32_t errands_count; /* conversations under way */
    uint32_t damaged_count; /* captures here that are known to be damaged and not repaired yet */
};

void replicator_status(const struct replicator *replicator, struct replicator_status *ret_status);

/* Its parts, to be looked at. */
const struct copy_plan *replicator_plan(const struct replicator *replicator);
const struct custody *replicator_custody(const struct replicator *replicator);
const struct transfer *replicator_transfer(const struct replicator *replicator);
const struct proofs *replicator_proofs(const struct replicator *replicator);
const struct full_sync *replicator_full_sync(const struct replicator *replicator);

#endif
