/*
 * decrees - the decrees of the ring on this node (protocol/ring/decree.h): kept, obeyed, passed on,
 * confirmed.
 *
 *      DIR/ring/decrees/ID           each as it was signed; a file that appears there ("mnemon job add
 * --ring") is taken within a second DIR/jobs/ring-NAME/           of a job that counts: run as any other, but
 * shared with the ring DIR/access/ring-NAME.aclj     of rules that count
 *      deletions.h                   does what deletions that count say
 *
 * Nodes ask each other now and then (PEER_RPC_DECREES): they say what they have and get what they miss.
 * Everything is checked before it is kept: signature, ring, whether its author is a member and may; rules are
 * parsed. How many are kept, and which go first, is decree_room.h; new ones of members are taken at a bounded
 * rate. If two authors give jobs of one name, the founder's counts, else the lower id.
 *
 * A decree is in force here if the files above are as it says and the node has read them. The author's node
 * asks all others whether its newest decrees are in force there (PEER_RPC_IN_FORCE).
 *
 * Any thread; decrees_beat() belongs to the thread that writes files.
 */
#ifndef MNEMON_NODE_RING_DECREES_H
#define MNEMON_NODE_RING_DECREES_H

#include "base/clock.h"
#include "base/json.h"
#include "net/identity.h"
#include "node/rpc/peer_rpc.h"
#include "node/versions/dialects.h"
#include "protocol/ring/decree.h"
#include "protocol/ring/decree_room.h"
#include "protocol/ring/import_rule.h"
#include "replay/admin/ring_view.h"

enum {
    DECREES_MAX = DECREE_FOUNDER_COUNT_MAX + DECREE_MEMBERS_COUNT_MAX,
    DECREES_WATCHED_MAX = 16, /* of its own, whose confirmations a node asks for */
    DECREES_NODES_MAX = 1000, /* that are asked */
    /* New decrees and versions of members that a node takes from others: at once, then one a second. */
    DECREES_BURST_MAX = 256,
    DECREES_VERSION_GAP_US = 10000000, /* between two versions of a member's decree, likewise */
};

/* The author of a decree that stewards have signed, for people and in JSON. */
#define DECREES_STEWARDS "the stewards"

/* For so long a node that has gone counts as one that has not confirmed. */
#define DECREES_AWAY_US UINT64_C(86400000000)

struct decrees;
struct deletions;
struct instance;

struct decrees_config {
    const char *directory;                             /* of the data; outlives it */
    const struct clock *clock;                         /* NULL: the system's */
    void (*note)(void *context, const char *sentence); /* any thread; may be NULL */
    void (*changed)(void *context); /* jobs or rules on the disk are others now; may be NULL */
    /* Read the rules of access now: none is in force before that. NULL: it is enough that they can be read.
     */
    enum err (*reload)(void *context, struct err_detail *detail);
    struct dialects *dialects; /* NULL: every node is given all that it lacks; outlives it */
    struct deletions
        *deletions; /* does what decrees delete; outlives it; NULL: nobody, so none is in force */
    void *context;
};

struct decrees *decrees_new(const struct decrees_config *config); /* NULL: out of memory */
void decrees_free(struct decrees *decrees);

/* Whose node this is: outlives it. Its decrees are watched; those that an older version signed are renewed.
 */
void decrees_set_self(struct decrees *decrees, const struct identity *identity);

/* It is a light member's: jobs of the ring are not run here. Before the first beat. */
void decrees_set_light(struct decrees *decrees);

/* Which charter says what counts. Before that nothing is read nor taken. */
void decrees_set_charter(struct decrees *decrees, const struct charter *charter,
                         const uint8_t ring[CHARTER_ID_SIZE]);

/* Every second or so: read what is new on the disk, write what is new here, obey. */
void decrees_beat(struct decrees *decrees);

/* ERR_EXISTS: known, or an older version; ERR_BUSY: too many at once, try later; ERR_LIMIT: no room for it;
 * the errors of decree_read() and decree_counts(). */
enum err decrees_add(struct decrees *decrees, struct bytes encoded, struct err_detail *detail) MUST_CHECK;

/* Look with the next beat whether all are in force now. */
void decrees_look_again(struct decrees *decrees);

/* Is this version of it, or a later one, in force here? If not, the reason is in *detail if it is known. */
bool decrees_are_in_force(struct decrees *decrees, const uint8_t id[DECREE_ID_SIZE], uint64_t version,
                          struct err_detail *detail);

/* Who may import into the ring, by the decree that counts (protocol/ring/import_rule.h). */
enum import_rule decrees_import_rule(struct decrees *decrees);

/* ---- passing on ---- */

/* PEER_RPC_DECREES. */
peer_rpc_handler decrees_answer;

/* Append the question: what we have. */
void decrees_put_question(struct decrees *decrees, struct buf *out);

/* The answer of a peer: add what is in it. ERR_INVALID: the peer is to be blamed. */
enum err decrees_take_answer(struct decrees *decrees, struct bytes answer,
                             struct err_detail *detail) MUST_CHECK;

/* ---- confirming ---- */

/* PEER_RPC_IN_FORCE. */
peer_rpc_handler decrees_answer_in_force;

/* These are the other nodes of the ring, as far as they are known; DECREES_NODES_MAX of them are asked. */
void decrees_set_nodes(struct decrees *decrees, const struct peer *nodes, size_t count);

/* A node that should be asked now, and what. False: none. */
bool decrees_next_in_force(struct decrees *decrees, struct peer *ret_node, struct buf *question);

/* What it said; err: it said nothing. */
void decrees_take_in_force(struct decrees *decrees, const struct peer *node, struct bytes question,
                           enum err err, struct bytes answer);

/* ---- for people ---- */

/* Append a JSON array: author, kind, name, version, counts, why not, in force and by whom it is confirmed.
 * And how many of others were refused. */
void decrees_put_json(struct decrees *decrees, struct json *json);
void decrees_view(struct decrees *decrees, struct arena *arena, struct ring_view *view);

/* ---- for commands, without a node ---- */

struct decrees_receipt {
    uint8_t id[DECREE_ID_SIZE];
    uint64_t version;
};

/* Sign a decree and leave it in DIR/ring/decrees, where a running node finds it. */
enum err decrees_publish(const char *directory, const struct identity *identity,
                         const struct charter *charter, enum decree_kind kind, struct bytes name,
                         struct bytes text, struct decrees_receipt *ret_receipt,
                         struct err_detail *detail) MUST_CHECK;

/* As a file, where a running node finds it; and the version that is there, 0: none. */
enum err decrees_put_on_disk(const char *directory, const uint8_t id[DECREE_ID_SIZE], struct bytes encoded,
                             struct err_detail *detail) MUST_CHECK;
uint64_t decrees_version_on_disk(const char *directory, const uint8_t id[DECREE_ID_SIZE]);

/* Read those of a data directory, to look at them; of what they do only deletions are ordered. */
enum err decrees_open(const char *directory, struct deletions *deletions, struct decrees **ret_decrees,
                      struct err_detail *detail) MUST_CHECK;

/* The instance of a data directory knows what the decrees there delete, without a node. ERR_OK: also if it is
 * in no ring. */
enum err decrees_load_deletions(const char *directory, struct instance *instance,
                                struct err_detail *detail) MUST_CHECK;

/* The text of a job: job.conf and seeds. */
void decrees_put_job_text(struct buf *out, struct bytes conf, struct bytes seeds);

#endif
