/*
 * link_relay - links on their way round the ring: to the primary and the other holders of each, many in one
 * datagram. Pure.
 *
 *      the owner's links, by place     ○ ○○  ○ | ○○○ ○ | ○  ○○ | …
 *      arcs of the ring                ────────┼───────┼───────┼──
 *                                              ▲
 *      one of several walkers: a batch ────────┘ ──> the primary, its successor, … (R distinct nodes)
 *      goes on to the next arc  <── "taken", and the places behind it: no lookup is needed
 *
 * A round begins when there are enough links for an arc's datagram, or when the first has waited long enough.
 * Links leave the owner only when the primary and a majority of the holders have them; a node that is silent
 * to all tries is passed over and the next distinct node takes its part. A primary that says that it is none
 * is looked up again. What was not taken stays with the owner for the next round, which begins later and
 * later.
 *
 * A node that receives links hands them to the owner (LINK_RELAY_TAKE) and answers when it has said what
 * became of them (LINK_RELAY_TOOK): durable before acknowledged is the owner's. One peer's links a second are
 * bounded.
 *
 * docs/protocol/links.md.
 */
#ifndef MNEMON_PROTOCOL_LINKS_LINK_RELAY_H
#define MNEMON_PROTOCOL_LINKS_LINK_RELAY_H

#include "protocol/links/link_relay_message.h"

struct link_relay;

enum {
    LINK_RELAY_HOLDERS_MAX = 20,
    LINK_RELAY_WALKERS_MAX = 64,
    LINK_RELAY_LINKS_MAX = 64 /* in one datagram */
};

/* The owner's side, called from link_relay_step() only. */
struct link_relay_owner {
    /* The place of the first link in (from, to] that is not in hand. */
    bool (*next)(void *context, struct ring_id from, struct ring_id to, struct ring_id *ret_place);

    /*
     * Links in (from, to] of one job, in the order of the ring, at most links_max. They are in hand, and
     * their URLs stay where they are, until they are returned.
     */
    size_t (*take)(void *context, struct ring_id from, struct ring_id to,
                   uint8_t ret_job[LINKS_CODE_JOB_SIZE], struct links_code_link *links, size_t links_max);

    /* Their link.owner. Done with: forget it; else it waits for the next round. */
    void (*give_back)(void *context, uint64_t link, bool is_done);

    /* How many are not in hand. */
    uint64_t (*waiting)(void *context);

    /* The places behind an ID as far as they are surely known, clockwise; for other nodes that ask. */
    size_t (*after)(void *context, struct ring_id id, struct vnode *out, size_t places_max);

    /* How many places there are in the ring, about. */
    uint64_t (*arcs)(void *context);
};

/* 0 stands for the default in parentheses. */
struct link_relay_config {
    struct peer self;
    uint8_t holders_count;   /* R of the charter */
    uint8_t walkers_count;   /* (16) */
    uint8_t links_max;       /* (64) in one datagram */
    uint8_t links_wanted;    /* (16) for each arc, to begin a round at once */
    uint32_t sent_count;     /* of the cache, a power of two; 0: none */
    uint32_t takes_max;      /* (64) waiting for LINK_RELAY_TOOK at once */
    uint64_t flush_us;       /* (0.5 s and 20 ms for each arc) the first link waits so long */
    uint32_t rate;           /* (5,000) links a second of one peer, and ten seconds' at once */
    uint64_t seed;           /* secret */
    struct links_code *code; /* borrowed; may be shared within a thread */
    const struct link_relay_owner *owner;
    void *context;
};

/* EVENT_COMMAND: event.code. */
enum link_relay_command {
    LINK_RELAY_WAITING, /* there are links */
    LINK_RELAY_FOUND,   /* number as in LINK_RELAY_FIND; bytes: count (1), places clockwise from the one that
                     owns the key,   0: lost */
    LINK_RELAY_TOOK,    /* number as in LINK_RELAY_TAKE; bytes: enum link_relay_status (1), accepted (u16), of
                         them new (u16) */
};

/* ACTION_NOTICE: action.code. */
enum link_relay_notice {
    LINK_RELAY_FIND,   /* bytes: number (u64), key (16), places wanted (1): look it up */
    LINK_RELAY_TAKE,   /* bytes: link_relay_take_read() */
    LINK_RELAY_BLAMED, /* bytes: key (32) and text: what it sent makes no sense */
};

struct link_relay_take {
    uint64_t number;
    struct peer from;
    bool is_primary; /* the sender takes us for it */
    uint8_t job[LINKS_CODE_JOB_SIZE];
    size_t links_count; /* then link_relay_take_next() as often */
    struct wire_reader reader;
};

struct link_relay_counters {
    uint64_t sent_count;     /* datagrams with links, repeated ones too */
    uint64_t sent_size;      /* their bytes, without what is around them */
    uint64_t repeated_count; /* of them */
    uint64_t batches_count;
    uint64_t table_count;   /* of them: coded by the table (links_code.h) */
    uint64_t links_count;   /* in batches, each once */
    uint64_t offered_count; /* links times nodes they were sent to */
    uint64_t done_count;    /* links that left the owner because they were taken */
    uint64_t known_count;   /* and because they were sent before */
    uint64_t kept_count;    /* links that stay for another round */
    uint64_t silent_count;  /* nodes passed over */
    uint64_t moved_count;   /* batches looked up again */
    uint64_t finds_count;
    uint64_t rounds_count;
    uint64_t answers_size;   /* received */
    uint64_t received_count; /* offers */
    uint64_t accepted_count; /* links that their senders are rid of, as the owner said */
    uint64_t new_count;      /* of them, those that the owner did not know and wants */
    uint64_t busy_count;
    uint64_t malformed_count;
    uint64_t flood_count; /* offers above the rate */
};

enum err link_relay_new(const struct link_relay_config *config, struct link_relay **ret_walk) MUST_CHECK;
void link_relay_free(struct link_relay *link_relay);
void link_relay_step(struct link_relay *link_relay, const struct event *event, struct outbox *out);

/* What one step can append. */
size_t link_relay_actions_max(const struct link_relay_config *config);
size_t link_relay_memory_size(const struct link_relay_config *config);

const struct link_relay_counters *link_relay_counters(const struct link_relay *link_relay);

/* Was it sent a short while ago? Such links need not be kept for sending. */
bool link_relay_knows(const struct link_relay *link_relay, struct bytes job, struct bytes url,
                      uint64_t now_us);

/* Is nobody under way? */
bool link_relay_is_idle(const struct link_relay *link_relay);

/* Bytes of our own making: a failure is a programmer's. */
void link_relay_take_read(struct bytes notice, struct link_relay_take *ret_take);
void link_relay_take_next(struct link_relay_take *take, struct links_code_link *ret_link);

/* The bytes of LINK_RELAY_FOUND and LINK_RELAY_TOOK; memory of STEP_MESSAGE_SIZE_MAX. */
struct bytes link_relay_write_found(const struct vnode *places, size_t count, void *memory);
struct bytes link_relay_write_took(enum link_relay_status status, uint16_t accepted_count, uint16_t new_count,
                                   void *memory);

#endif
