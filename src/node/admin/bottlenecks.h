/*
 * bottlenecks - what holds the node up, in sentences, from what was measured.
 *
 * Nothing is guessed: each sentence names the numbers that it rests on. Where nothing is held up there are
 * none.
 */
#ifndef MNEMON_NODE_ADMIN_BOTTLENECKS_H
#define MNEMON_NODE_ADMIN_BOTTLENECKS_H

#include "node/admin/sample.h"

/* What was measured: two samples some seconds apart, the volumes, and the hosts that wait, as text. */
struct bottlenecks_facts {
    const struct sample *now;
    const struct sample *before;
    const struct sample_volumes *volumes;
    struct bytes waiting; /* "example.org: delay between requests; …"; may be empty */
    unsigned processors_count;
};

/* The sentences, the worst first, and how many there are; none without memory. */
size_t bottlenecks_find(const struct bottlenecks_facts *facts, struct arena *arena,
                        struct node_status_sentence **ret_sentences);

#endif
