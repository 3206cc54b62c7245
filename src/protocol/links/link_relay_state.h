/*
 * link_relay_state - what is inside struct link_relay. One machine in several files, 820 lines in all:
 * link_relay.c has its life and receives links, link_relay_send.c sends those of the owner.
 */
#ifndef MNEMON_PROTOCOL_LINKS_LINK_RELAY_STATE_H
#define MNEMON_PROTOCOL_LINKS_LINK_RELAY_STATE_H

#include "base/arena.h"
#include "base/retry.h"
#include "protocol/links/link_relay.h"

enum {
    LINK_RELAY_TRIES_MAX = 4,
    LINK_RELAY_TARGETS_MAX = 2 * LINK_RELAY_HOLDERS_MAX,
    LINK_RELAY_WINDOW_MAX = 40,
    LINK_RELAY_BUCKETS_COUNT = 1024,
    LINK_RELAY_MEAN_OF = 16,
    /* So many links in a datagram: what is around them weighs little, and the time to code them more. In
     * large rings, where there are few in most, those that are full make up for it. */
    LINK_RELAY_MEAN_FULL = 32,
};

enum target_state { TARGET_ASKED, TARGET_TAKEN, TARGET_GIVEN_UP, TARGET_SILENT };

/* One node that a batch goes to. */
struct link_relay_target {
    struct peer peer;
    enum target_state state;
    uint16_t number;
    struct retry retry;
};

enum walker_state { WALKER_IDLE, WALKER_FINDING, WALKER_SENDING };

struct walker {
    enum walker_state state;
    uint32_t life;          /* of its lookups */
    uint64_t timeout_at_us; /* of its lookup */
    struct ring_id at;      /* up to and with it, this round is over */
    struct ring_id end;
    struct ring_id known_from; /* the window names all places behind this one */
    struct vnode window[LINK_RELAY_WINDOW_MAX];
    uint8_t window_count;
    bool is_found; /* the arc was looked up for the links that are next: no doubt is left */

    /* the batch under way */
    struct ring_id from; /* its arc */
    struct ring_id to;
    struct link_relay_target targets[LINK_RELAY_TARGETS_MAX];
    uint8_t targets_count;
    uint8_t primary; /* index; LINK_RELAY_TARGETS_MAX: it is us */
    uint8_t next;    /* in the window: the next further target */
    bool is_held;    /* by us, too */
    bool is_moved;
    uint8_t links_count;
    uint64_t owners[LINK_RELAY_LINKS_MAX];
    uint64_t hashes[LINK_RELAY_LINKS_MAX];
    uint8_t message[LINK_RELAY_MESSAGE_SIZE_MAX];
    size_t message_size;
};

struct link_relay_pending {
    bool is_used;
    uint32_t life;
    struct peer from;
    uint16_t number;
    uint8_t flags;
    struct ring_id after;
};

/*
 * Which links were sent a short while ago: most pages of a host link to the same few others.
 *
 * Fingerprints in sets of four, by a hash under a secret; the oldest of a set makes room. A link that is
 * taken for sent wrongly (1 in 2^30 or rarer) is missed until its next visit. Entries count for a time only,
 * so that what got lost where it was sent is sent again.
 */
struct link_relay_sent_entry {
    uint32_t fingerprint;
    uint32_t at_s; /* 0: empty */
};

struct link_relay_sent {
    struct link_relay_sent_entry *entries;
    uint32_t count; /* 0, or a power of two, 4 or more */
    uint64_t seed;
};

struct link_relay {
    struct arena arena; /* everything, itself too */
    struct link_relay_config config;
    struct sha256 sha256;
    struct walker *walkers;
    struct link_relay_pending *pending;
    struct link_relay_sent sent;
    uint64_t *full_at_us; /* [bucket]: when a peer may send at its full burst again */
    struct rtt rtt;
    uint64_t now_us;
    uint64_t waiting_since_us; /* 0: nothing waits */
    uint64_t round_at_us;      /* not before: after a round that left something */
    uint32_t failures_count;   /* such rounds in a row */
    bool is_walking;
    bool has_left;       /* this round left something */
    uint32_t links_mean; /* in a datagram of late, times LINK_RELAY_MEAN_OF */
    uint16_t number;
    struct link_relay_counters counters;
    struct outbox *out; /* of this step */
};

/* link_relay.c */
uint64_t link_relay_sent_hash(const struct link_relay_sent *sent, struct bytes job, struct bytes url);
bool link_relay_sent_has(const struct link_relay_sent *sent, uint64_t hash, uint64_t now_us);
void link_relay_sent_add(struct link_relay_sent *sent, uint64_t hash, uint64_t now_us);

/* link_relay_send.c */
void link_relay_tick(struct link_relay *link_relay);
void link_relay_on_answer(struct link_relay *link_relay, const struct event *event,
                          const struct link_relay_message *answer);
void link_relay_on_found(struct link_relay *link_relay, const struct event *event);

#endif
