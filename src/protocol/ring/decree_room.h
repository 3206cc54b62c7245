/*
 * decree_room - which decrees a node keeps if there are more than it has room for. Pure.
 *
 *      the founder     DECREE_FOUNDER_COUNT_MAX of its own, which nobody else can take
 *      members         a share of their own, bounded for each and for all of them together
 *
 *                      by invitation       open to all
 *      each                 32                  8
 *      all                1024                256        fewer, since keys cost nothing there
 *
 * If the members' share is full, what matters least goes first: decrees that do not count, then withdrawn
 * ones, then one of the member with the most. So a member that floods the ring crowds out itself, many keys
 * of an open ring crowd out each other, and none of them the founder. docs/formats/decree.md.
 */
#ifndef MNEMON_PROTOCOL_RING_DECREE_ROOM_H
#define MNEMON_PROTOCOL_RING_DECREE_ROOM_H

#include "protocol/ring/charter.h"

enum {
    DECREE_FOUNDER_COUNT_MAX = 3072,
    DECREE_MEMBERS_COUNT_MAX = 1024,
    DECREE_MEMBER_COUNT_MAX = 32,
    DECREE_OPEN_MEMBERS_COUNT_MAX = 256,
    DECREE_OPEN_MEMBER_COUNT_MAX = 8,
};

/* What matters least first. */
enum decree_rank { DECREE_IDLE, DECREE_WITHDRAWN, DECREE_LIVE };

/* A decree that is kept, or is to be. */
struct decree_seat {
    const uint8_t *author; /* a key, borrowed */
    uint64_t version;
    enum decree_rank rank;
};

enum { DECREE_ROOM_FREE = -1 };

/*
 * Room for one more beside these? *ret_evicted: the index of the one that must go for it, or
 * DECREE_ROOM_FREE. ERR_LIMIT with the reason.
 */
enum err decree_room_find(const struct decree_seat *seats, size_t count, const struct charter *charter,
                          const struct decree_seat *wanted, int *ret_evicted,
                          struct err_detail *detail) MUST_CHECK;

#endif
