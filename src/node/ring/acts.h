/*
 * acts - what the stewards of the ring have not agreed on yet (protocol/ring/act.h): kept, passed on, and
 * done when enough have signed.
 *
 *      DIR/ring/acts/ID          an act as this node has it
 *      DIR/ring/acts/ID.KEY      one that a command has signed here ("mnemon ring sign"), taken within a
 * second DIR/ring/acts/ID.seed     of a token that waits for signatures; it never leaves this machine
 *
 * An amendment that is done becomes DIR/ring/charter, a decree DIR/ring/decrees/ID, from where the node takes
 * them; an invitation stays until its token has been printed here or it is too old. Nodes with the feature
 * "stewards" ask each other (PEER_RPC_ACTS): they say which charter and which signatures they have, and get
 * what they lack.
 *
 * Everything that peers send waits in a bounded inbox for the beat, which checks it and alone touches the
 * disk. Any thread; acts_beat() belongs to the thread that writes files.
 */
#ifndef MNEMON_NODE_RING_ACTS_H
#define MNEMON_NODE_RING_ACTS_H

#include "base/clock.h"
#include "base/json.h"
#include "net/identity.h"
#include "node/rpc/peer_rpc.h"
#include "protocol/ring/act.h"

enum { ACTS_ID_TEXT_SIZE = 2 * ACT_ID_SIZE + 1 };

struct acts;

struct acts_config {
    const char *directory;                             /* of the data; outlives it */
    const struct clock *clock;                         /* NULL: the system's */
    void (*note)(void *context, const char *sentence); /* by the beat; may be NULL */
    void (*changed)(void *context);                    /* a charter or decree is on the disk; may be NULL */
    void *context;
};

struct acts *acts_new(const struct acts_config *config); /* NULL: out of memory */
void acts_free(struct acts *acts);

/* Which stewards count. Before that nothing is read nor taken. */
void acts_set_charter(struct acts *acts, const struct charter *charter, const uint8_t ring[CHARTER_ID_SIZE]);

/* Every second or so: take what has come, do what is agreed on, forget what is over. */
void acts_beat(struct acts *acts);

/* Append a JSON array, "acts": id, kind, who has signed and how many must. */
void acts_put_json(struct acts *acts, struct json *json);

/* ---- passing on ---- */

/* PEER_RPC_ACTS. */
peer_rpc_handler acts_answer;

/* Append the question: what we have. */
void acts_put_question(struct acts *acts, struct buf *out);

/* The answer of a peer. ERR_INVALID: the peer is to be blamed. */
enum err acts_take_answer(struct acts *acts, struct bytes answer, struct err_detail *detail) MUST_CHECK;

/* ---- for commands ---- */

/* One that is pending, or an invitation that is done; valid until the next call. */
struct acts_shown {
    char id[ACTS_ID_TEXT_SIZE];
    const struct act *act;
    const struct act_meaning *meaning;
    bool is_done;
    unsigned needed;
};

/* Read those of a data directory. */
enum err acts_open(const char *directory, const struct clock *clock, const struct charter *charter,
                   struct acts **ret_acts, struct err_detail *detail) MUST_CHECK;
size_t acts_count(struct acts *acts);
void acts_show(struct acts *acts, size_t index, struct acts_shown *ret_shown);

/*
 * Sign an act, new or known, and leave it where a running node finds it; if enough have signed by now, it is
 * done here at once. ERR_PERMISSION: this is no steward's key; ERR_EXISTS: it has signed this act, or another
 * one of which only one can count; the errors of act_understand(). *ret_is_done may be NULL.
 */
enum err acts_sign(struct acts *acts, const struct act *act, const struct identity *identity,
                   char ret_id[ACTS_ID_TEXT_SIZE], bool *ret_is_done, struct err_detail *detail) MUST_CHECK;

/* The seed of a token whose invitation waits. */
enum err acts_keep_seed(struct acts *acts, const char *id, const uint8_t seed[INVITATION_SEED_SIZE],
                        struct err_detail *detail) MUST_CHECK;
enum err acts_find_seed(struct acts *acts, const char *id, uint8_t ret_seed[INVITATION_SEED_SIZE],
                        struct err_detail *detail) MUST_CHECK;

#endif
