/*
 * copies_left - how long it will take until what is under way is there, by the pace of late.
 *
 * A count goes up by each capture that came, or was confirmed by another node; the pace is what it grew by in
 * a second, of the last seconds more than of those before. If nothing has come for a while nobody can say
 * when the rest will: a holder may be away for good.
 *
 * Pure, zeroed at the start. Not for several threads at once.
 */
#ifndef MNEMON_NODE_COPIES_COPIES_LEFT_H
#define MNEMON_NODE_COPIES_COPIES_LEFT_H

#include <stdbool.h>
#include <stdint.h>

struct copies_left {
    uint64_t since_us; /* of the measurement that goes on; 0: none does */
    uint64_t since_count;
    uint64_t moved_us;   /* when the count last grew */
    uint64_t per_1000_s; /* 0: not known */
    uint64_t count;
};

/* The count, as often as one likes. has_work: something is under way, so that a pause counts. */
void copies_left_note(struct copies_left *left, uint64_t count, bool has_work, uint64_t now_us);

/* Seconds until so many have come, 1 or more; 0: not known, or none is to come. */
uint64_t copies_left_s(const struct copies_left *left, uint64_t waiting_count, uint64_t now_us);

#endif
