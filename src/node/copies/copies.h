/*
 * copies - this node's part in keeping the archive of the ring (decision 0011, "Who keeps what").
 *
 *      volumes ──feed──> keyset ──new keys──> offers to the other holders
 *                           ^                 comparisons of our arcs, as protocol/copies/copy_plan.h plans
 *                           └── what others offered or we found missing is fetched, checked, stored
 *
 * A node that keeps everything compares the arcs of others, too, with one of their holders at a time, and
 * fetches what it lacks; and it follows their primaries (PEER_RPC_FOLLOW), which offer it what is new. It
 * does not count as a holder of those arcs: nobody relies on its copies.
 *
 * One task on a thread of its own does all the waiting: it follows the volumes, offers, compares, fetches,
 * challenges, hands on and gives up surplus, repairs. Questions of others (PEER_RPC_COMPARE, PEER_RPC_OFFER,
 * PEER_RPC_CONFIRM, PEER_RPC_PROVE, PEER_RPC_FOLLOW) are answered on the thread of peer_rpc. The next
 * comparison finds what did not come, so nothing else needs to be resumed.
 */
#ifndef MNEMON_NODE_COPIES_COPIES_H
#define MNEMON_NODE_COPIES_COPIES_H

#include "base/json.h"
#include "node/captures/captures.h"
#include "node/ring/holders.h"
#include "node/rpc/peer_rpc.h"
#include "protocol/copies/proofs.h"
#include "replay/admin/ring_view.h"

struct copies;

/* 0 or NULL stands for the default in parentheses. Texts and modules outlive it. */
struct copies_config {
    const char *directory; /* of the data: the keys are in DIR/ring/keys */
    struct instance *instance;
    struct peer_rpc *peer_rpc;
    struct holders_source ring;
    uint8_t mapping;                /* enum charter_mapping */
    uint64_t grace_us;              /* (1 h) */
    uint64_t compare_interval_us;   /* (5 min) */
    uint64_t challenge_interval_us; /* (10 min) */
    uint64_t space_min;             /* (256 MiB) below that much free on the disk, the node is full */
    bool keeps_everything;          /* all captures of the ring, not only those of our arcs
                                       (protocol/copies/full_sync.h) */
    bool keeps_surplus;             /* what others hold now is handed on to them but stays here too */
    const uint8_t *keeps_but_of;    /* (none) of surplus, give up only what others vouch for: not this key's,
                                       and nothing without a signature, which was imported here; unless room
                                       is needed */
    bool keeps_own;                 /* not even then */
    bool has_slow_lines;            /* they are what copies wait for: one giver, one taker at a time
                                       (protocol/copies/transfer_order.h) */
    uint64_t scrub_period_us;       /* (30 days) in which everything is read again once */
    uint64_t seed;                  /* of jitter */
    const struct clock *clock;      /* (clock_system) */
    bool (*may_offer)(void *context); /* (yes) may others be told what is here? Its thread; asked often */
    /* (yes) Is it known which captures may be taken? If not, they wait until copies_wake(). Likewise. */
    bool (*may_take)(void *context);
    /* (0) Counts up when captures that were refused (captures_config.refuses) may be taken now. Its thread.
     */
    uint64_t (*verdicts)(void *context);
    void (*blame)(void *context, const struct peer *peer, const char *sentence); /* any thread; (nobody) */
    void (*note)(void *context, const char *sentence); /* for the log; any thread; (nobody) */
    void *context;
};

/* Opens the keys and serves its questions: before peer_rpc_start(). */
enum err copies_new(const struct copies_config *config, struct copies **ret_copies,
                    struct err_detail *detail) MUST_CHECK;

/* Then, with what it fetches by; and start. */
enum err copies_start(struct copies *copies, struct captures *captures, struct err_detail *detail) MUST_CHECK;

/* After peer_rpc_stop(), which ends what it waits for. */
void copies_stop(struct copies *copies);

/* After copies_stop(), and before the instance, captures and peer RPC are freed. */
void copies_free(struct copies *copies);

/* ---- any thread ---- */

/* Append the SURT of a capture that this node has: for captures_config.find_surt. ERR_NOT_FOUND. */
enum err copies_find_surt(struct copies *copies, const struct ringkey *key, struct buf *out) MUST_CHECK;

/* May the node be given copies now? For captures_config.may_copy. */
bool copies_may_copy(struct copies *copies, const struct peer *peer);

/*
 * Keys of captures that this node has: the first of a place from a time on, the last before it, one with this
 * digest. Wait for the disk. ERR_NOT_FOUND.
 */
enum err copies_find_first(struct copies *copies, const uint8_t place[RINGKEY_POSITION_SIZE], int64_t from_us,
                           struct ringkey *ret_key) MUST_CHECK;
enum err copies_find_last(struct copies *copies, const uint8_t place[RINGKEY_POSITION_SIZE],
                          int64_t before_us, struct ringkey *ret_key) MUST_CHECK;
enum err copies_find_digest(struct copies *copies, const uint8_t digest[RINGKEY_DIGEST_SIZE],
                            struct ringkey *ret_key) MUST_CHECK;

/* A document could not be read: ERR_CORRUPT. It is fetched from another holder and stored again. */
void copies_report_damage(struct copies *copies, const struct ringkey *key);

/* The node gave something false. For a while it does not count: neither as a holder of our arcs, nor as the
 * primary before us (protocol/copies/primary_watch.h), nor when it confirms what is surplus here. */
void copies_distrust(struct copies *copies, const struct peer *peer);

/* Look now for what is new in the volumes and in the ring. */
void copies_wake(struct copies *copies);

/* Is the node a holder of the place, and had it all captures of it when it was compared? */
bool copies_is_compared(struct copies *copies, struct ring_id place);

/* Are there captures of the place that were offered to this node, or missed by it, and have not come yet? May
 * be true if there are none. */
bool copies_expects(struct copies *copies, struct ring_id place);

/* And those of all places: it keeps everything, a short while ago nothing was missing, and what is new is
 * offered to it? */
bool copies_has_everything(struct copies *copies);

void copies_stat(struct copies *copies, struct ring_view_stored *ret_stat);

/*
 * How many captures the ring has, about: by those in our own arcs and the share of the ring that these are.
 * At least what is here. False: there is nothing to go by yet.
 */
bool copies_estimate(struct copies *copies, uint64_t *ret_count);

/* Which nodes have proved to this one what they hold; at most proofs_max. */
size_t copies_proofs(struct copies *copies, struct proof *out, size_t proofs_max);

/* Append an object: what /api/v1/ring/together says of keeping (docs/api.md). */
void copies_put_json(struct copies *copies, struct json *json, const char *name);

/* The part of it that pages show, in the arena. */
void copies_view(struct copies *copies, struct arena *arena, struct ring_view_copies *ret_view);

#endif
