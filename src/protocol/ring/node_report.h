/*
 * node_report - what a node says of itself to all others: how much it has, how it is, how far its jobs are,
 * and which other nodes have proved to it what they hold. Signed by it, so that any node can pass it on.
 * Pure.
 *
 *      u8 layout, 1
 *      bytes[16] ring, bytes[32] key, u64 number, u64 time_us, string<=32 program
 *      u8 count, so many varints        in the order of enum node_report_value; those behind the last are 0
 *      u8<=16 count of                  bytes[16] job, u8 state, 5 varints: enum node_report_job_value
 *      u8<=32 count of                  bytes[32] key, 3 varints: enum node_report_proof_value
 *      any number of                    u8 tag, string<=255: of later programs, passed over
 *      bytes[64] signature              of the key over all before it, context "report"
 *
 * The number grows with every report, also over restarts: of two the higher one counts, whoever gives it. A
 * later program may add values behind those that this one knows; it passes over them. It is the word of that
 * node, no proof. Specification: docs/protocol/ring-services.md.
 */
#ifndef MNEMON_PROTOCOL_RING_NODE_REPORT_H
#define MNEMON_PROTOCOL_RING_NODE_REPORT_H

#include "protocol/ring/charter.h"
#include "protocol/ring/dialect.h"

enum {
    NODE_REPORT_LAYOUT = 1,
    NODE_REPORT_RING_SIZE = 16,
    NODE_REPORT_JOB_SIZE = 16,
    NODE_REPORT_JOBS_MAX = 16,
    NODE_REPORT_PROOFS_MAX = 32,
    NODE_REPORT_VALUES_MAX = 64, /* of a later program */
    NODE_REPORT_SIZE_MAX = 8192,
};

#define NODE_REPORT_VALUE_MAX (UINT64_C(1) << 56) /* so that sums over all nodes fit */

/* The order is on the wire; new ones come last. Sizes are bytes. */
enum node_report_value {
    NODE_REPORT_UPTIME_S,
    NODE_REPORT_LOAD_PERMILLE, /* 1000: all processors of its machine were busy in the last minute */
    NODE_REPORT_USED_SIZE,     /* of disk by its volumes */
    NODE_REPORT_FREE_SIZE,     /* on the fullest disk of them */
    NODE_REPORT_QUOTA_SIZE,    /* 0: there is none */
    NODE_REPORT_CAPTURES,      /* that count for the ring */
    NODE_REPORT_ARC_CAPTURES,  /* of them, in arcs that it looks after */
    NODE_REPORT_ARCS_WHOLE,    /* arcs, by how well they are kept */
    NODE_REPORT_ARCS_FRESH,
    NODE_REPORT_ARCS_AWAY,
    NODE_REPORT_ARCS_LOW,
    NODE_REPORT_WANTED,
    NODE_REPORT_UNCONFIRMED,
    NODE_REPORT_DAMAGED,
    NODE_REPORT_SENT_SIZE, /* to other nodes, since it was started */
    NODE_REPORT_VALUES_COUNT,
};

enum node_report_job_value {
    NODE_REPORT_JOB_KNOWN,
    NODE_REPORT_JOB_WAITING,
    NODE_REPORT_JOB_STORED,
    NODE_REPORT_JOB_FAILED,
    NODE_REPORT_JOB_RECEIVED_SIZE,
    NODE_REPORT_JOB_VALUES_COUNT,
};

enum node_report_proof_value {
    NODE_REPORT_PROVED_S, /* between challenges that the node met, if there was never a long time between two
                           */
    NODE_REPORT_PROOFS_PASSED,
    NODE_REPORT_PROOFS_FAILED,
    NODE_REPORT_PROOF_VALUES_COUNT,
};

struct node_report_job {
    uint8_t id[NODE_REPORT_JOB_SIZE];
    uint8_t state; /* enum campaign_state; a later program may have more */
    uint64_t values[NODE_REPORT_JOB_VALUES_COUNT];
};

struct node_report_proof {
    uint8_t key[PEER_KEY_SIZE];
    uint64_t values[NODE_REPORT_PROOF_VALUES_COUNT];
};

struct node_report {
    uint8_t ring[NODE_REPORT_RING_SIZE];
    uint8_t key[PEER_KEY_SIZE];
    uint64_t number;
    uint64_t time_us; /* of its clock, since 1970 */
    char program[DIALECT_PROGRAM_SIZE_MAX + 1];
    uint64_t values[NODE_REPORT_VALUES_COUNT];
    struct node_report_job jobs[NODE_REPORT_JOBS_MAX];
    size_t jobs_count;
    struct node_report_proof proofs[NODE_REPORT_PROOFS_MAX];
    size_t proofs_count;
};

/* Values that are too large are written as the largest. Returns what was written. */
struct bytes node_report_write(const struct node_report *report, charter_sign *sign, const void *signer,
                               uint8_t out[NODE_REPORT_SIZE_MAX]);

/* ERR_UNSUPPORTED: of another layout. ERR_MISMATCH: the signature is not that of its key; *ret_report then
 * holds what nobody may use. verify: NULL if the signature is known to be right. */
enum err node_report_read(struct bytes input, charter_verify *verify, struct node_report *ret_report,
                          struct err_detail *detail) MUST_CHECK;

#endif
