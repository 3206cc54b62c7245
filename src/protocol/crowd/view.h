/*
 * view - the nodes that a node of the crowd knows: at most C neighbours, each once, never itself.
 *
 * The paper's four rules for what a shuffle brings in:
 *      1. no neighbour twice;  2. never oneself;
 *      3. free places are filled before anything is overwritten;
 *      4. only those are overwritten that were sent to the other side in this shuffle.
 */
#ifndef MNEMON_PROTOCOL_CROWD_VIEW_H
#define MNEMON_PROTOCOL_CROWD_VIEW_H

#include "base/prng.h"
#include "protocol/crowd/crowd_message.h"

struct view {
    struct peer self;
    uint8_t size_max;
    uint8_t count;
    struct crowd_neighbour neighbours[CROWD_VIEW_MAX];
};

void view_init(struct view *view, const struct peer *self, uint8_t size_max);

/* Position of the one at this address, or -1: an address is one node, whatever its key. */
int view_find(const struct view *view, const struct address *address);
void view_remove(struct view *view, size_t position);

/* If there is room, and by rules 1 and 2. False: it is not there now. */
bool view_add(struct view *view, const struct crowd_neighbour *neighbour);

/* `count` different ones at random into out, as positions; not the one at `without` (-1: all may be). Returns
 * how many there are. */
size_t view_pick(const struct view *view, struct prng *prng, int without, size_t count,
                 uint8_t out[CROWD_VIEW_MAX]);

/* By all four rules; sent: those that went to the other side. */
void view_merge(struct view *view, const struct crowd_neighbour *received, size_t received_count,
                const struct address *sent, size_t sent_count);

int view_oldest(const struct view *view); /* -1: nobody */
void view_age(struct view *view);         /* everybody by one */

#endif
