/*
 * walk_sent - which links were sent a short while ago: most pages of a host link to the same few others.
 *
 * Fingerprints in sets of four, by a hash under a secret; the oldest of a set makes room. A link that is
 * taken for sent wrongly (1 in 2^30 or rarer) is missed until its next visit. Entries count for a time only,
 * so that what got lost where it was sent is sent again.
 */
#ifndef MNEMON_PROTOCOL_LINKS_WALK_SENT_H
#define MNEMON_PROTOCOL_LINKS_WALK_SENT_H

#include "base/bytes.h"

struct walk_sent_entry {
    uint32_t fingerprint;
    uint32_t at_s; /* 0: empty */
};

struct walk_sent {
    struct walk_sent_entry *entries;
    uint32_t count; /* 0, or a power of two, 4 or more */
    uint64_t seed;
};

uint64_t walk_sent_hash(const struct walk_sent *sent, struct bytes job, struct bytes url);
bool walk_sent_has(const struct walk_sent *sent, uint64_t hash, uint64_t now_us);
void walk_sent_add(struct walk_sent *sent, uint64_t hash, uint64_t now_us);

#endif
