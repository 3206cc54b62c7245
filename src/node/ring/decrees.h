/*
 * decrees - the decrees of the ring on this node (protocol/ring/decree.h): kept, obeyed, passed on.
 *
 *      DIR/ring/decrees/ID           each as it was signed; a file that appears there ("mnemon job add
 * --ring") is taken within a second DIR/jobs/ring-NAME/           of a job that counts: run as any other, but
 * shared with the ring DIR/access/ring-NAME.aclj     of rules that count
 *
 * Nodes ask each other now and then (PEER_RPC_DECREES): they say what they have and get what they miss.
 * Everything is checked before it is kept: signature, ring, whether its author may; rules are parsed. Bounds:
 * DECREES_MAX in all, DECREES_PER_AUTHOR_MAX of one author. If two authors give jobs of one name, the
 * founder's counts, else the lower id.
 *
 * Any thread; decrees_beat() belongs to the thread that writes files.
 */
#ifndef MNEMON_NODE_RING_DECREES_H
#define MNEMON_NODE_RING_DECREES_H

#include "base/clock.h"
#include "base/json.h"
#include "net/identity.h"
#include "node/rpc/peer_rpc.h"
#include "protocol/ring/decree.h"
#include "replay/admin/ring_view.h"

enum { DECREES_MAX = 4096, DECREES_PER_AUTHOR_MAX = 1024 };

struct decrees;

struct decrees_config {
    const char *directory;                             /* of the data; outlives it */
    void (*note)(void *context, const char *sentence); /* any thread; may be NULL */
    void (*changed)(void *context); /* jobs or rules on the disk are others now; may be NULL */
    void *context;
};

struct decrees *decrees_new(const struct decrees_config *config); /* NULL: out of memory */
void decrees_free(struct decrees *decrees);

/* Which charter says what counts. */
void decrees_set_charter(struct decrees *decrees, const struct charter *charter,
                         const uint8_t ring[CHARTER_ID_SIZE]);

/* Every second or so: read what is new on the disk, write what is new here, obey. */
void decrees_beat(struct decrees *decrees);

/* ERR_EXISTS: known, or an older version; the errors of decree_read() and decree_counts(). */
enum err decrees_add(struct decrees *decrees, struct bytes encoded, struct err_detail *detail) MUST_CHECK;

/* ---- passing on ---- */

/* PEER_RPC_DECREES. */
peer_rpc_handler decrees_answer;

/* Append the question: what we have. */
void decrees_put_question(struct decrees *decrees, struct buf *out);

/* The answer of a peer: add what is in it. ERR_INVALID: the peer is to be blamed. */
enum err decrees_take_answer(struct decrees *decrees, struct bytes answer,
                             struct err_detail *detail) MUST_CHECK;

/* Append a JSON array: author, kind, name, version, counts, why not. */
void decrees_put_json(struct decrees *decrees, struct json *json);
void decrees_view(struct decrees *decrees, struct arena *arena, struct ring_view *view);

/* ---- for commands, without a node ---- */

/* Sign a decree and leave it in DIR/ring/decrees, where a running node finds it. */
enum err decrees_publish(const char *directory, const struct identity *identity,
                         const struct charter *charter, enum decree_kind kind, struct bytes name,
                         struct bytes text, struct err_detail *detail) MUST_CHECK;

/* The text of a job: job.conf and seeds. */
void decrees_put_job_text(struct buf *out, struct bytes conf, struct bytes seeds);

#endif
