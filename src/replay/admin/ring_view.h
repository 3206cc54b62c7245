/*
 * ring_view - what the dashboard shows of the ring: what the nodes do together.
 *
 * The node fills it, in the arena of whoever asks. Texts hold names and reasons that other nodes have chosen.
 * Programs get more than that from /api/v1/ring (docs/api.md).
 */
#ifndef MNEMON_REPLAY_ADMIN_RING_VIEW_H
#define MNEMON_REPLAY_ADMIN_RING_VIEW_H

#include "base/arena.h"

/* Fresh: enough copies of everything but new captures, of which that is not known yet. */
enum ring_view_level {
    RING_VIEW_WHOLE,
    RING_VIEW_FRESH,
    RING_VIEW_AWAY,
    RING_VIEW_LOW,
    RING_VIEW_LEVELS_COUNT,
};

/* A node that keeps copies of an arc too. */
struct ring_view_member {
    const char *address;
    bool is_false;
    bool is_away;
    bool is_full;
    bool is_spare;
    bool is_complete;
    bool is_compared;
};

struct ring_view_arc {
    const char *to; /* its ID */
    double share;   /* of the ring */
    enum ring_view_level level;
    uint32_t copies_count;
    uint64_t keys_count;      /* captures */
    uint64_t enough_count;    /* at least so many of them have as many live copies as are wanted */
    const uint64_t *at_least; /* so many have 1, 2, 3 … live copies, at least */
    size_t at_least_count;
    uint64_t
        missing_count; /* when last compared: captures, for each member that lacked them, and this node */
    bool is_doubted;   /* this node may lack a capture until the arc is compared again */
    bool is_repairing;
    uint64_t repairing_s;
    uint64_t left_s; /* 0: not known */
    const struct ring_view_member *members;
    size_t members_count;
};

struct ring_view_decree {
    const char *author;
    struct bytes name;
    bool is_job;
    bool is_deletion;
    bool is_unknown;   /* of a later version; if none of the three, a takedown rule */
    const char *about; /* of a deletion: what, why, how many captures have gone; else "" or NULL */
    uint64_t version;
    bool is_withdrawn;
    bool counts;
    const char *why_not;
};

/* What copying has done so far. */
struct ring_view_stored {
    uint64_t keys_count;
    uint64_t compared_count;      /* comparisons made as primary */
    uint64_t compared_by_count;   /* questions of others answered */
    uint64_t toured_count;        /* comparisons of arcs of others, to keep everything */
    uint64_t offered_count;       /* keys */
    uint64_t handed_on_count;     /* captures of arcs that were ours, missing at their new holders */
    uint64_t fetches_count;       /* questions for captures */
    uint64_t fetched_count;       /* captures stored that others gave */
    uint64_t fetched_about_count; /* of them, without their payload */
    uint64_t fetched_size;        /* of payloads */
    uint64_t refused_count;       /* captures that were not what they should be */
    uint64_t challenged_count;
    uint64_t caught_count;   /* challenges that failed */
    uint64_t released_count; /* surplus captures given up */
    uint64_t repaired_count;
    uint64_t wanted_count; /* waiting to be fetched */
    uint64_t
        unconfirmed_count; /* captures in arcs of others whose primary has not said yet that it has them */
    uint64_t unconfirmed_own_count; /* captures in own arcs, times the holders that have not said so yet */
    uint64_t damaged_count;         /* captures here that cannot be read, and are not repaired yet */
    bool is_checking; /* there may be more of them: of before this start, or too many for the list */
    bool is_full;
    bool is_fed; /* all that is in the volumes is in the keys */
};

/* Questions between nodes, over streams (docs/protocol/ring-services.md). */
struct ring_view_rpc {
    uint64_t questions_count; /* asked by us */
    uint64_t failed_count;    /* of them */
    uint64_t answers_count;   /* given by us */
    uint64_t refused_count;   /* questions of others that were not answered: strangers, bounds */
    uint64_t reads_count;     /* what readers asked and was begun */
    uint64_t shed_count;      /* and what was too much */
    uint64_t sent_size;
    uint64_t received_size;
    uint64_t first_count; /* streams opened in the way of programs up to 0.2 */
    uint64_t weak_count;  /* of them, with a node that has TLS, too: given up */
    uint32_t streams_count;
};

/* Hosts that are lent between nodes. */
struct ring_view_leases {
    uint64_t lent_count;     /* leases that we gave to others */
    uint64_t borrowed_count; /* that we got from others */
    uint64_t refused_count;  /* that we did not get */
    uint64_t lost_count;     /* messages that could not be sent */
};

/* Copies of this node. */
struct ring_view_copies {
    struct ring_view_stored stored;
    bool keeps_everything; /* then of the last round over the ring: */
    uint64_t rounds_count;
    uint64_t stops_count;
    uint64_t missing_count;
    uint64_t silent_count;
    uint64_t left_s; /* until what is under way is there, in either direction; 0: nothing is, or not known */
    const struct ring_view_arc *arcs;
    size_t arcs_count;
};

/* The ring's own messages, which are datagrams. */
struct ring_view_traffic {
    bool is_member;
    uint64_t vnodes_count;           /* of this node */
    uint64_t known_vnodes_count;     /* that it has heard of */
    uint64_t estimated_vnodes_count; /* of the whole ring */
    uint64_t received_count;         /* datagrams, as the next three; those of crowd, groups and links too */
    uint64_t received_size;
    uint64_t sent_count;
    uint64_t sent_size;
    uint64_t unsent_count;    /* the socket was full, or the address had not proved itself */
    uint64_t discarded_count; /* unread: malformed, forged, replayed, too many … */
    uint64_t refused_count;   /* nodes: greetings that this node refused */
    uint64_t refusals_count;  /* of this node, by others */
    uint64_t lookups_count;
    uint64_t lost_count; /* of them, without an answer */
    uint64_t hops_count; /* of all of them */
    uint64_t silent_count;
    uint64_t malformed_count;
    uint64_t blamed_count;
};

/* Where nodes stand. */
struct ring_view_site {
    const char *name;
    uint64_t nodes_count;
    uint64_t captures_count; /* of the arcs that are this node's own: with a copy there */
};

/* What a node says of itself; sizes are bytes. */
struct ring_view_node {
    const char *address;
    const char *key;
    bool is_self;
    bool is_here;     /* the ring knows it now; else it is away */
    bool has_feature; /* it sends reports; else it says nothing of itself, ever */
    bool has_report;  /* all that follows, but for the clock */
    uint64_t heard_s; /* since it made the report */
    uint64_t time_us; /* of its clock, then */
    const char *program;
    uint64_t uptime_s;
    uint64_t load_permille; /* 1000: all its processors were busy */
    uint64_t used_size;
    uint64_t free_size;
    uint64_t quota_size; /* 0: there is none */
    uint64_t captures_count;
    uint64_t arc_captures_count; /* of them, in arcs that it looks after */
    uint64_t arcs_counts[RING_VIEW_LEVELS_COUNT];
    uint64_t wanted_count;
    uint64_t unconfirmed_count;
    uint64_t damaged_count;
    uint64_t sent_size; /* to other nodes, since it was started */
    uint64_t
        proved_s; /* that it was up, by challenges of another node that it met; known without a report, too */
    uint64_t met_count; /* challenges of all nodes */
    uint64_t failed_count;
    uint64_t provers_count; /* nodes that have challenged it */
    bool has_clock;
    int64_t clock_offset_ms; /* how far it was ahead of ours when it was asked last */
};

/* A job that the ring shares: the sum of what nodes say of it. */
struct ring_view_job {
    const char *name;
    uint64_t nodes_count;   /* that have said something of it */
    uint64_t running_count; /* of them, those that are at it */
    uint64_t known_count;
    uint64_t waiting_count;
    uint64_t stored_count;
    uint64_t failed_count;
    uint64_t received_size;
};

struct ring_view {
    const char *text; /* NULL: this node is in no ring */
    uint32_t replicas;
    double share; /* that it sees to */
    struct ring_view_traffic traffic;
    uint64_t nodes_count; /* that are known, this one included */

    const struct ring_view_decree *decrees;
    size_t decrees_count;
    struct ring_view_rpc rpc;

    bool is_light;          /* it uses the ring and is no part of it: there is no rest */
    const char *relay;      /* a light member's for the crowd; NULL: none, and why */
    int64_t relay_since_us; /* wall time */
    const char *relay_why_none;
    uint64_t relay_members_count; /* light members that this node is the relay of */
    uint64_t relay_members_max;   /* 0: it is the relay of none */
    bool is_begun;                /* the rest is there */
    struct ring_view_copies copies;
    uint64_t links_sent_count;
    uint64_t links_sent_size;
    uint64_t links_accepted_count; /* their senders are rid of them */
    uint64_t links_new_count;      /* of them, those that were not known here and are wanted */
    uint64_t links_silent_count;
    uint64_t links_malformed_count;
    uint64_t links_flood_count;
    struct ring_view_leases leases;
    const struct ring_view_node *reports; /* this node first */
    size_t reports_count;
    size_t unreported_count; /* of them, those that are here and of which there is no report */
    const struct ring_view_job *jobs;
    size_t jobs_count;

    const struct ring_view_site *sites;
    size_t sites_count;
    bool sites_are_used;           /* holders are chosen by them */
    const char *sites_why_not;     /* "" if there is but one; NULL: they are not known yet */
    uint64_t sites_captures_count; /* of the arcs that are this node's own */
    uint64_t sites_alone_count;    /* of them, known to have copies at one site only */
};

#endif
