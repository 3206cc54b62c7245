/*
 * group_spread - one update on its way through a union of groups: every replica runs the daemon's own policy
 * (protocol/mirror/mirror.h), with the daemon's periods.
 *
 * What is made up is the network. A batch takes as long as its path needs, and waits in the line of the
 * replica that sends it and of the one that gets it: a line carries one byte after the other, to or from all
 * neighbours together. Paths share nothing else. An update is one piece of content: no manifest, nothing that
 * was there before. Batches that are cancelled count as if they had come whole. Whoever is dead has been so
 * from the start and answers nobody.
 */
#ifndef MNEMON_SIM_EXPERIMENTS_GROUP_SPREAD_H
#define MNEMON_SIM_EXPERIMENTS_GROUP_SPREAD_H

#include "sim/experiments/group_union.h"
#include "sim/world/digest.h"

struct group_spread_result {
    uint32_t alive_count;
    uint32_t reached_count; /* of those */

    /* Since it was published; of those who live, UINT64_MAX if so many do not get it. */
    uint64_t half_us;
    uint64_t most_us; /* 99 % */

    /* Until the last replica had it that gets it at all. */
    uint64_t no_modem_us; /* without those with modems */
    uint64_t all_us;

    /* Of content and statements, by one replica. */
    uint64_t received_size; /* all together */
    uint64_t received_size_max;
    uint64_t sent_size_max;
    uint64_t origin_sent_size;
};

/*
 * gather_us as in struct mirror_config. Runs until every replica has it that a path of living ones leads to.
 * ERR_MISMATCH if somebody of those has it not after weeks, ERR_MEMORY.
 */
enum err group_spread_run(struct group_union *whole, uint64_t update_size, uint64_t gather_us,
                          struct digest *digest, struct group_spread_result *ret_result) MUST_CHECK;

#endif
