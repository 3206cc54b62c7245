/*
 * crowd - what suddenly everybody wants: a random overlay and scoped, random searches on it. Pure.
 *
 * PROOFS (Stavrou, Rubenstein, Sahu), with what CYCLON added (ages, oldest first, joins by random walks) and
 * with answers to what PROOFS left open: floods, spoofed return addresses, objects that nobody has.
 *
 *      view.h      the nodes that we know: at most C neighbours, with ages
 *      overlay.c   ConstructOverlay: joins, shuffles
 *      locate.c    LocateObject: our searches, and the queries of others that pass through
 *      wish.h      what is searched for, and what is said of what was found; opaque to the other files
 *      crowd_message.h   the bytes. docs/protocol/crowd.md
 *
 *      driver                                        crowd
 *        EVENT_START ---------------------------------->
 *        EVENT_COMMAND CROWD_JOIN, peers -------------->
 *        EVENT_COMMAND CROWD_FIND, number, wish ------->
 *            <---- ACTION_NOTICE CROWD_FOUND, number, holder, finding … CROWD_LOST, number
 *            <---- ACTION_NOTICE CROWD_ASKED, number, wish            does this node have it?
 *        EVENT_COMMAND CROWD_HAVE or CROWD_HAVE_NOT --->              now or later
 *
 * Answers go back the way the query came, never to an address that a query names: nobody can be flooded by
 * asking in its name, and only the first node of a search knows who asked. A holder is then turned to by who
 * wants the object; the crowd itself moves none.
 *
 * Nothing is believed because it came from the crowd: what is out of range, unasked for, of another version
 * or network is counted and dropped. No answer is larger than three times its question unless the asker has
 * proved its address by a token (overlay.c).
 */
#ifndef MNEMON_PROTOCOL_CROWD_CROWD_H
#define MNEMON_PROTOCOL_CROWD_CROWD_H

#include "base/err.h"
#include "base/step.h"
#include "protocol/crowd/crowd_message.h"

struct crowd;

enum crowd_kind {
    CROWD_CYCLON, /* shuffle with the oldest neighbour, join by random walks */
    CROWD_PROOFS, /* shuffle with a random neighbour, join by a list of the contact's */
};

/* How much a node does for others in searches; all of them shuffle. The paper's, section 4.3. */
enum crowd_part {
    CROWD_FULL,
    CROWD_QUERY_ONLY, /* acts as though it had nothing, forwards */
    CROWD_TUNNEL,     /* gives what it has, forwards to one neighbour only */
    CROWD_MUTE,       /* acknowledges and drops every query */
    CROWD_PARTS_COUNT,
};

/* 0 stands for the default in parentheses. */
struct crowd_config {
    struct peer self;                    /* as others reach it */
    uint8_t network[CROWD_NETWORK_SIZE]; /* what all nodes of this crowd share: a digest */
    enum crowd_kind kind;
    enum crowd_part part;
    uint64_t seed; /* secret: tokens and query ids come from it, too */

    /* The overlay. */
    uint8_t view_size;    /* (25) C */
    uint8_t shuffle_size; /* (5) neighbours that are exchanged, with the one that is shuffled with */
    uint64_t shuffle_us;  /* (10 s) mean of the waits: exponentially distributed, CROWD_CYCLON's within a
                             quarter of it */
    uint64_t answer_us;   /* (2 s) a neighbour that has not answered a shuffle by then is dropped */
    uint8_t walk_hops;    /* (2) of a join; longer walks end at dead neighbours (crowd-reach-causes) */

    /* Searches. */
    uint8_t fanout;        /* (5) f */
    uint8_t ttl_first;     /* (1) a query with TTL t goes t hops far */
    uint8_t ttl_last;      /* (6) grows by one with each try */
    uint8_t tries_at_last; /* (1) tries with ttl_last, then it is lost */
    uint8_t ttl_cap;       /* (7) of others' queries: more is cut down to it */
    uint64_t hop_us;       /* (300 ms) T: a try with TTL t is waited for t * T, but see locate.c */
    uint64_t ack_us;       /* (500 ms) a neighbour that has not acknowledged by then is replaced by another */
    uint32_t searches_max; /* (64) our own, at once */
    uint32_t seen_max;     /* (4,096) queries that are remembered: repeats, and the way back */
    uint32_t waiting_max;  /* (256) queries of others that wait for their turn or for CROWD_HAVE */
    uint32_t peer_rate;    /* (50) queries a second of one neighbour, twice as many at once */
    uint32_t
        total_rate;     /* (500) queries of others a second that are served; others wait, wanted ones first */
    uint64_t absent_us; /* (20 s) what was not found is not searched for again */

    /* For experiments: as the paper has it. */
    bool waits_exponentially; /* between shuffles, under CROWD_CYCLON too */
    bool takes_repeats;       /* a query that was seen is served and forwarded again */
    bool is_unlimited;        /* no rates, no memory of what is absent */
    bool keeps_silent;        /* neighbours that do not answer stay in the view (section 4.2) */
};

/* EVENT_COMMAND: event.code, event.number, event.bytes. */
enum crowd_command {
    CROWD_JOIN,     /* bytes: crowd_write_contacts(). At the start, and whenever CROWD_ALONE was said */
    CROWD_FIND,     /* number: the caller's, of no other open search; bytes: the wish */
    CROWD_ENOUGH,   /* number: of CROWD_FIND; nothing more is said of it */
    CROWD_DISCOUNT, /* number: of CROWD_FIND; one CROWD_FOUND of it does not count: the search goes on */
    CROWD_HAVE,     /* number: of CROWD_ASKED; bytes: the finding */
    CROWD_HAVE_NOT, /* number: of CROWD_ASKED */
    CROWD_DROP, /* bytes: a peer (crowd_write_contacts() of one): it lied or is gone, it leaves the view */
};

/* ACTION_NOTICE: action.code. bytes in terms of base/wire.h. */
enum crowd_notice {
    CROWD_ASKED,  /* number (u64), wish to the end. Is not asked twice for one wish at the same time */
    CROWD_FOUND,  /* number (u64), hops (1), holder (PEER_TAGGED), finding to the end; may come more
                     often */
    CROWD_LOST,   /* number (u64), 1 if it was remembered as absent or there was no neighbour: nobody was
                     asked */
    CROWD_ALONE,  /* fewer than C/4 neighbours: bring contacts. Said again every 10 s while it is so */
    CROWD_BLAMED, /* peer, text to the end: what it sent makes no sense */
};

enum err crowd_new(const struct crowd_config *config, struct crowd **ret_crowd) MUST_CHECK;
void crowd_free(struct crowd *crowd);
void crowd_step(struct crowd *crowd, const struct event *event, struct outbox *out);

/* What one step can append. */
size_t crowd_actions_max(const struct crowd_config *config);
size_t crowd_memory_size(const struct crowd_config *config);

/* The bytes of CROWD_JOIN: one peer after the other, into memory of STEP_MESSAGE_SIZE_MAX; at most
 * CROWD_CONTACTS_MAX. A key of zeros: whoever is at that address. */
struct bytes crowd_write_contacts(const struct peer *peers, size_t peers_count, void *memory);

/* ---- for `mnemon crowd status`, read-only ---- */

struct crowd_counters {
    uint64_t received_count;
    uint64_t malformed_count; /* no message at all */
    uint64_t foreign_count;   /* other version or network */
    uint64_t unasked_count;   /* answers nobody waits for: late, replayed or forged */
    uint64_t blamed_count;

    uint64_t shuffles_count; /* begun by us */
    uint64_t shuffled_count; /* of them, answered */
    uint64_t rejected_count; /* of them, refused: it had one open itself */
    uint64_t silent_count;   /* neighbours dropped for their silence */
    uint64_t served_count;   /* shuffles of others */
    uint64_t joins_count;    /* joins of others that we helped with */
    uint64_t flooded_count;  /* shuffles, joins and walks of others that were too many */

    uint64_t searches_count; /* of our own */
    uint64_t found_count;
    uint64_t lost_count;
    uint64_t absent_count; /* of the lost, answered from memory */
    uint64_t tries_count;  /* queries that we began */

    uint64_t queries_count;     /* received from others */
    uint64_t repeats_count;     /* of them, seen before */
    uint64_t limited_count;     /* of them, dropped: too many of one neighbour */
    uint64_t crowded_out_count; /* of them, dropped: too many in all */
    uint64_t fruitless_count;   /* of them, not forwarded: searched for often, found never */
    uint64_t hits_count;        /* of them, that we had */
    uint64_t forwarded_count;   /* queries sent on, each copy */
    uint64_t reselected_count;  /* copies sent to another, because the first was silent */
    uint64_t relayed_count;     /* findings passed back */
};

const struct crowd_counters *crowd_counters(const struct crowd *crowd);
size_t crowd_neighbours(const struct crowd *crowd, struct crowd_neighbour out[CROWD_VIEW_MAX]);
bool crowd_is_searching(const struct crowd *crowd, uint64_t number, uint8_t *ret_ttl);

/* ---- for experiments and tests only ---- */

/* The view is these, as after long shuffling. */
void crowd_install_for_experiment(struct crowd *crowd, const struct peer *peers, size_t peers_count);

#endif
