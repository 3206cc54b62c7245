/*
 * standing - what is held against others, for which reason, and until when.
 *
 * Every protocol and driver that stays away from a peer for a while keeps that here: a peer that did not
 * answer, one that said it is busy, one whose word is doubted, one that was refused. The subject is any
 * bytes: mostly a peer's key, but also an address, the name of a server, the hash of a wish. It is kept as a
 * keyed hash of 64 bits, so that an entry has one size and nobody can make two subjects share one.
 *
 *      entries   [ 32 entries | 32 entries | … ]    a subject belongs to one group, by its hash
 *
 * Bounded: the caller gives the memory and thereby the limit. In a full group the entry that was noted least
 * recently makes room, and of these one that is over goes before one that still holds. Pure: the time is
 * passed in, nothing is allocated. Each user has a table of its own, under its own lock if it has several
 * threads: a node that is too slow for readers may well be offered copies.
 *
 * A list that exists for another reason (places of a ring, copies of an arc, sources of a mirror) keeps the
 * silence of its members in its own entries, so that both come and go together.
 */
#ifndef MNEMON_BASE_STANDING_H
#define MNEMON_BASE_STANDING_H

#include "base/bytes.h"

enum { STANDING_GROUP_SIZE = 32 };

enum standing_reason {
    STANDING_SILENT,  /* gave no answer, or nobody answered for it */
    STANDING_BUSY,    /* said that it has too much to do */
    STANDING_DOUBTED, /* promised what it did not give, or gave something false */
    STANDING_REFUSED, /* was turned away, or has to be reported */
};

struct standing_entry {
    uint64_t subject; /* hash of reason and subject; 0: free */
    uint64_t noted_at_us;
    uint64_t until_us;
    uint32_t count; /* how often it was noted since it was last cleared */
};

struct standing {
    struct standing_entry *entries;
    uint32_t groups_count;
    uint32_t group_size;
    uint32_t used_count;
    uint64_t seed;
};

/*
 * entries: zeroed, the caller's, and as long-lived. What is left over above a multiple of
 * STANDING_GROUP_SIZE is not used. The seed is secret if strangers choose the subjects.
 */
void standing_init(struct standing *standing, struct standing_entry *entries, uint32_t entries_count,
                   uint64_t seed);

/* Note it once more, until then. Returns how often it was noted by now. */
uint32_t standing_note(struct standing *standing, enum standing_reason reason, struct bytes subject,
                       uint64_t now_us, uint64_t until_us);

bool standing_holds(const struct standing *standing, enum standing_reason reason, struct bytes subject,
                    uint64_t now_us);

/* How often it was noted since it was last cleared, whether it still holds or not. */
uint32_t standing_count(const struct standing *standing, enum standing_reason reason, struct bytes subject);

/* Nothing is held against it any more. False if nothing was. */
bool standing_clear(struct standing *standing, enum standing_reason reason, struct bytes subject);

#endif
