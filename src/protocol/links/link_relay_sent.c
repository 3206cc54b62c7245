#include "protocol/links/link_relay_sent.h"

#include "base/map.h"
#include "base/prng.h"

enum { WAYS = 4, US_PER_S = 1000000, KEPT_S = 24 * 3600 };

uint64_t link_relay_sent_hash(const struct link_relay_sent *sent, struct bytes job, struct bytes url) {
    return map_hash(url, map_hash(job, sent->seed));
}

static struct link_relay_sent_entry *sent_set_of(const struct link_relay_sent *sent, uint64_t hash) {
    return &sent->entries[(hash >> 32 & (sent->count - 1)) / WAYS * WAYS];
}

static uint32_t seconds(uint64_t now_us) {
    return (uint32_t)(now_us / US_PER_S) + 1;
}

bool link_relay_sent_has(const struct link_relay_sent *sent, uint64_t hash, uint64_t now_us) {
    if (sent->count == 0) {
        return false;
    }
    const struct link_relay_sent_entry *set = sent_set_of(sent, hash);
    for (unsigned i = 0; i < WAYS; i++) {
        if (set[i].at_s > 0 && set[i].fingerprint == (uint32_t)hash &&
            seconds(now_us) - set[i].at_s < KEPT_S) {
            return true;
        }
    }
    return false;
}

void link_relay_sent_add(struct link_relay_sent *sent, uint64_t hash, uint64_t now_us) {
    if (sent->count == 0) {
        return;
    }
    struct link_relay_sent_entry *set = sent_set_of(sent, hash);
    struct link_relay_sent_entry *oldest = set;
    for (unsigned i = 0; i < WAYS; i++) {
        oldest = set[i].at_s < oldest->at_s ? &set[i] : oldest;
        if (set[i].fingerprint == (uint32_t)hash) {
            oldest = &set[i];
            break;
        }
    }
    *oldest = (struct link_relay_sent_entry){.fingerprint = (uint32_t)hash, .at_s = seconds(now_us)};
}
