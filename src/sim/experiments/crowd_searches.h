/*
 * crowd_searches - searches for one object in a crowd, as section 4.3 of the PROOFS paper has them.
 *
 * A run begins with one node that has the object, a full participant; all others search for it, and a node
 * that has found it has it from then on. Isolated arrivals: one search after the other, in random order.
 * Joined arrivals: enum crowd_arrivals.
 *
 * A world is made once and used for all runs: between two of them it shuffles so long that views, and with
 * them the places of the nodes that limit their participation, are as good as new. During a run it hardly
 * does.
 *
 * Time is in hops. In the paper the object is sent directly to the node that asks; here a finding goes back
 * the way of the query. So a search is told twice: in the paper's hops (t for each try with TTL t before, and
 * the hops of the query that reached a holder), and from its start to the moment when it was found, with the
 * way back and with tries that are waited for 2 t hops.
 */
#ifndef MNEMON_SIM_EXPERIMENTS_CROWD_SEARCHES_H
#define MNEMON_SIM_EXPERIMENTS_CROWD_SEARCHES_H

#include "sim/experiments/crowd_world.h"

enum crowd_rules {
    CROWD_RULES_PAPER, /* `proofs`; repeats are served again, nothing is limited; tunnels give nothing */
    CROWD_RULES_OURS,  /* `cyclon`; repeats are dropped, rates and the memory of what is absent */
};

/*
 * In each hop a node that has not begun begins with a chance. The paper prints it as p + q^n for n that have
 * begun, and describes something else: one begins by oneself with p, or is told by each of the n,
 * independently, with q, which is 1 - (1-p)(1-q)^n. As printed, the chance falls to p at once, and about one
 * node begins in each hop; as described, all begin within some ten hops. p = 0.001, q = 0.01; the holder is
 * one of the n.
 */
enum crowd_arrivals { CROWD_ISOLATED, CROWD_JOINED_AS_PRINTED, CROWD_JOINED_AS_DESCRIBED };

struct crowd_searches {
    uint64_t seed;
    enum crowd_rules rules;
    enum crowd_arrivals arrivals;
    uint32_t nodes_count;
    uint32_t runs_count;
    uint8_t view_size;
    uint8_t fanout;
    uint8_t ttl_last; /* 0: by the fan-out, crowd_searches_ttl_last() */
    enum crowd_part part;
    unsigned part_percent;     /* of the nodes are of that part, the others are full participants */
    unsigned drop_percent;     /* of the queries are dropped by chance … */
    bool is_drop_acknowledged; /* … as mute nodes do it; otherwise another neighbour is chosen */
};

struct crowd_searches_result {
    uint64_t asked_count;
    uint64_t found_count;
    uint64_t queries_count;   /* received by all */
    uint64_t lost_room_count; /* of them, dropped because a table was full or a rate reached */
    uint64_t hops_sum;        /* the paper's; of those that found it */
    uint64_t time_us_sum;     /* with the way back; of those that found it */
    uint64_t nodes_count;     /* times runs */
};

/*
 * The TTL of the last try before a search is given up, which the paper does not say: 6 for a fan-out of 5, 13
 * for 2. docs/experiments.md has the calibration.
 */
uint8_t crowd_searches_ttl_last(uint8_t fanout);

/* Rules as a config; the rest of it is the caller's. */
void crowd_searches_set_rules(struct crowd_config *config, enum crowd_rules rules);

enum err crowd_searches_run(const struct crowd_searches *searches, struct digest *digest,
                            struct crowd_searches_result *ret_result) MUST_CHECK;

/* In percent; queries a node and run; hops. The last two are 0 if nothing was found. */
double crowd_searches_success(const struct crowd_searches_result *result);
double crowd_searches_messages(const struct crowd_searches_result *result);
double crowd_searches_hops(const struct crowd_searches_result *result);
double crowd_searches_hops_with_way_back(const struct crowd_searches_result *result);

#endif
