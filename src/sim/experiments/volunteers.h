/*
 * volunteers - nodes as one finds them in a network of volunteers, hour by hour (thesis 6.3, figures 6-1 and
 * 6-2).
 *
 * Each has a share of its time in which it is up; its sessions are those of sessions.h, its absences as long
 * as the share wants it. Of how the shares are spread two things are known: 3 % of the nodes that were found
 * were up for more than 80 % of ten days (the thesis), and the best 20 % of another sample for 45 % or more
 * (Saroiu, Gummadi and Gribble 2002). The curve goes through these two, straight between them. As in both
 * studies, a node is found because it is up: hour 0 is one of its sessions.
 */
#ifndef MNEMON_SIM_EXPERIMENTS_VOLUNTEERS_H
#define MNEMON_SIM_EXPERIMENTS_VOLUNTEERS_H

#include "base/err.h"
#include "base/prng.h"

enum { VOLUNTEERS_HOURS = 24 * 28 };

struct volunteers {
    uint32_t count;
    uint8_t *was_up; /* [node][hour]: it answered then */
};

enum err volunteers_init(struct volunteers *volunteers, uint32_t count, struct prng *prng) MUST_CHECK;
void volunteers_done(struct volunteers *volunteers);

/* Of so many hours from one on, the share in which it answered, in parts per million. */
uint32_t volunteers_uptime_ppm(const struct volunteers *volunteers, uint32_t node, uint32_t from,
                               uint32_t count);

#endif
