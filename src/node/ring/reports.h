/*
 * reports - what all nodes of the ring say of themselves (protocol/ring/node_report.h), at every node.
 *
 *      the beat ──every few seconds──> collect(): this node's own report, signed
 *               ──every second───────> one other node, in turn: "I have these"; its answer: its clock, its
 * own report, and those of others that are newer
 *
 * So news is everywhere after some log2 of the number of nodes, a node that has gone is remembered for a day
 * with its last word, and the clock of each is compared whenever it is asked. Only nodes that the ring knows,
 * or knew, are listed, 1,024 at most. A node without the feature (protocol/ring/dialect.h) is listed as one
 * that says nothing.
 */
#ifndef MNEMON_NODE_RING_REPORTS_H
#define MNEMON_NODE_RING_REPORTS_H

#include "node/rpc/peer_rpc.h"
#include "protocol/ring/node_report.h"

struct reports;

enum { REPORTS_NODES_MAX = 1024 };

/* 0 or NULL stands for the default in parentheses. */
struct reports_config {
    struct peer_rpc *peer_rpc; /* (nothing is served, and nobody asked) */
    const struct identity *identity;
    struct dialects *dialects; /* (nobody is asked) */
    uint8_t ring[NODE_REPORT_RING_SIZE];
    const char *program;       /* (none) */
    uint64_t period_us;        /* (5 s, and 50 ms more for each node) between two reports of this node */
    const struct clock *clock; /* (clock_system) */
    /* Fill values, jobs and proofs; the beat's thread. */
    void (*collect)(void *context, struct node_report *report);
    void (*blame)(void *context, const struct peer *peer, const char *sentence); /* any thread */
    void *context;
};

/* Serves PEER_RPC_REPORTS: before the question can come. NULL: out of memory. */
struct reports *reports_new(const struct reports_config *config);
void reports_free(struct reports *reports); /* after peer_rpc_stop(); may be NULL */

/* Every second or so, one thread: these are the nodes of the ring now, this one may be among them. */
void reports_beat(struct reports *reports, const struct peer *nodes, size_t count);

/* ---- any thread ---- */

struct reports_node {
    struct peer peer;
    bool is_self;
    bool is_here;          /* the ring knows it now */
    bool has_feature;      /* it sends reports, or may: it has not said yet what it knows */
    bool has_report;       /* the next three: */
    uint64_t number;       /* of it */
    uint64_t heard_ago_us; /* since its node made it, about */
    struct node_report report;
    bool has_clock;          /* it was asked itself */
    int64_t clock_offset_us; /* how far its clock was ahead of ours, then */
};

/* This node first, then the others by address: how many. each is called with the lock held: no calls back. */
size_t reports_each(struct reports *reports, void (*each)(void *context, const struct reports_node *node),
                    void *context);

/* For tests: as the handler and the asker do. */
enum err reports_answer(void *reports, const struct peer *from, struct bytes question, struct buf *answer,
                        struct err_detail *detail);
void reports_put_question(struct reports *reports, struct buf *out);
enum err reports_take_answer(struct reports *reports, const struct peer *from, uint64_t took_us,
                             struct bytes answer, struct err_detail *detail) MUST_CHECK;

#endif
