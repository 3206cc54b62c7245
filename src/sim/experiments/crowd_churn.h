/*
 * crowd_churn - a crowd whose nodes come and go, and what its nodes can reach meanwhile. Section 4.2 of the
 * paper.
 *
 * Each node that is away comes with rate lambda, each that is there leaves with rate mu; the unit of time is
 * the mean time between two shuffles of a node. Nobody says goodbye. Samples are taken at exponentially
 * distributed distances, so that they show the steady state (PASTA).
 */
#ifndef MNEMON_SIM_EXPERIMENTS_CROWD_CHURN_H
#define MNEMON_SIM_EXPERIMENTS_CROWD_CHURN_H

#include "sim/experiments/crowd_graph.h"

static const uint64_t CROWD_CHURN_UNIT_US = 10 * UINT64_C(1000000); /* crowd_config.shuffle_us */

enum crowd_churn_way {
    CROWD_CHURN_PAPER,  /* plain shuffle; the bootstrap list is the view; the silent stay in it */
    CROWD_CHURN_PROOFS, /* plain shuffle; joins; the silent are dropped; a node that is alone joins again */
    CROWD_CHURN_CYCLON, /* ours: the same with ages and random walks */
    CROWD_CHURN_WAYS_COUNT,
};

struct crowd_churn_config {
    uint64_t seed;
    enum crowd_churn_way way;
    uint32_t nodes_count;
    uint8_t view_size;
    uint32_t come_ppm;          /* lambda, in millionths */
    uint32_t leave_ppm;         /* mu; 0: nodes that are there stay */
    uint32_t shuffles_per_unit; /* of each node; 0: 1 */
    uint8_t walk_hops;          /* 0: as nodes have it */
    bool gives_views;           /* the bootstrap list is the first view, whatever the way */
    uint32_t samples_count;
    uint32_t dropped_count; /* of them, the first, which do not count */
};

/* What the samples that count add up to. */
struct crowd_churn_found {
    uint32_t count;
    double *minimums; /* the least first */
    double *means;    /* the least first */
    double mean;      /* of the means */
    double nodes;     /* members, on average */
    double dangling;  /* edges that led nowhere, of all */
};

/* Returns ERR_MEMORY, or what the simulation says. */
enum err crowd_churn_run(const struct crowd_churn_config *config, struct crowd_churn_found *found,
                         struct digest *digest) MUST_CHECK;
void crowd_churn_done(struct crowd_churn_found *found);

/* What is exceeded, or equalled, in this share of the samples. */
double crowd_churn_level(const double *values, uint32_t count, uint32_t percent);

#endif
