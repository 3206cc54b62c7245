/*
 * counter - a small complete protocol against base/step.h: a counter that grows at every node.
 *
 * Each node counts its own increments and keeps the highest count it has heard of every other node; the
 * total is the sum. Every period it sends its vector to one random peer, which merges by maximum. An
 * increment is acknowledged once it is durable, and only durable counts of its own leave a node.
 *
 *      message   u64 SipHash of the rest | varint entries | entries times: varint node | varint count
 *      slot 0    varint own count
 *
 * It is the example of how a pure protocol looks, and the proof that the simulator finds bugs: each
 * counter_bug is a mistake that somebody could make, switched on by the configuration.
 */
#ifndef MNEMON_TESTS_SIM_COUNTER_H
#define MNEMON_TESTS_SIM_COUNTER_H

#include "base/prng.h"
#include "base/step.h"

enum {
    COUNTER_NODES_MAX = 64,
    COUNTER_SLOT = 0,
    COUNTER_ACTIONS_MAX = 2, /* of one step */
    COUNTER_MEMORY_SIZE = STEP_MESSAGE_SIZE_MAX + 64,
};

/* A sane peer never claims more; it keeps the sum of all within 64 bits. */
static const uint64_t COUNTER_COUNT_MAX = UINT64_C(1) << 48;

enum counter_command { COUNTER_INCREMENT = 1 };
enum counter_notice { COUNTER_ACKNOWLEDGED = 1 }; /* .bytes: the own count as varint */

enum counter_bug {
    COUNTER_CORRECT,
    COUNTER_ACKNOWLEDGES_EARLY,  /* beside the save instead of after it */
    COUNTER_ACKNOWLEDGES_NEWEST, /* an older save is durable, the newest count is acknowledged */
    COUNTER_MERGES_BY_ADDING,    /* instead of by the maximum */
    COUNTER_TRUSTS_ORDER,        /* takes what a node says of itself for newer than what it said before */
    COUNTER_TRUSTS_MESSAGES,     /* without looking at the checksum */
    COUNTER_FORGETS_SAVED,       /* starts from zero after a crash */
    COUNTER_STAYS_SILENT,        /* after a restart it never gossips again */
    COUNTER_BUGS_COUNT,
};

/* Shared by all nodes, constant, and alive as long as they. */
struct counter_config {
    struct address peers[COUNTER_NODES_MAX]; /* by node */
    uint32_t peers_count;
    uint64_t period_us;
    enum counter_bug bug;
};

struct counter {
    const struct counter_config *config;
    uint32_t self;
    bool was_restored;
    uint64_t counts[COUNTER_NODES_MAX]; /* [self]: durable; others: heard of */
    uint64_t counted;                   /* own increments, durable or not */
    uint64_t gossip_at_us;
    uint64_t bad_messages_count;
    struct prng prng; /* which peer next */
};

void counter_init(struct counter *counter, const struct counter_config *config, uint32_t self, uint64_t seed);

/* Apply one event. Appends at most one send or one save and one notice. */
void counter_step(struct counter *counter, const struct event *event, struct outbox *out);

/* What this node would tell a user. */
uint64_t counter_total(const struct counter *counter);

#endif
