/*
 * link_relay_sent - which links were sent a short while ago: most pages of a host link to the same few
 * others.
 *
 * Fingerprints in sets of four, by a hash under a secret; the oldest of a set makes room. A link that is
 * taken for sent wrongly (1 in 2^30 or rarer) is missed until its next visit. Entries count for a time only,
 * so that what got lost where it was sent is sent again.
 */
#ifndef MNEMON_PROTOCOL_LINKS_LINK_RELAY_SENT_H
#define MNEMON_PROTOCOL_LINKS_LINK_RELAY_SENT_H

#include "base/bytes.h"

struct link_relay_sent_entry {
    uint32_t fingerprint;
    uint32_t at_s; /* 0: empty */
};

struct link_relay_sent {
    struct link_relay_sent_entry *entries;
    uint32_t count; /* 0, or a power of two, 4 or more */
    uint64_t seed;
};

uint64_t link_relay_sent_hash(const struct link_relay_sent *sent, struct bytes job, struct bytes url);
bool link_relay_sent_has(const struct link_relay_sent *sent, uint64_t hash, uint64_t now_us);
void link_relay_sent_add(struct link_relay_sent *sent, uint64_t hash, uint64_t now_us);

#endif
