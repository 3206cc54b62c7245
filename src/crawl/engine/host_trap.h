/*
 * host_trap - the state of a host's traps outlives the run: it is kept with the host in a job's frontier,
 * when so many links or more were looked at since the last time, and read back with the first lane of the
 * host.
 *
 * Apart from host.h, which does no I/O.
 */
#ifndef MNEMON_CRAWL_ENGINE_HOST_TRAP_H
#define MNEMON_CRAWL_ENGINE_HOST_TRAP_H

#include "crawl/engine/host.h"

enum { HOST_TRAP_KEPT_AT_END = 16, HOST_TRAP_KEPT_ON_THE_WAY = 256 };

void host_trap_keep(struct host *host, struct frontier_lane *lane, uint32_t unkept_count_min);
void host_trap_recall(struct host *host, const struct frontier_lane *lane);

#endif
