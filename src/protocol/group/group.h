/*
 * group - replicas that keep everything, and the topology over which updates travel between them. Pure.
 *
 * flood-d of Obraczka, Danzig, DeLucia and Tsai: members measure delay and bandwidth to each other, one of
 * them, the master, computes a topology of the measurements and floods it; the nodes in it are the members.
 * Several groups of one node are several of these; they know nothing of each other.
 *
 *      estimate.h               what a member measures, and what it tells the master
 *      topology.h               what the master makes of it
 *      group_state.h            what is inside: members, measuring, flooding, mastership, joining
 *      group_message.h          the bytes. docs/protocol/group.md
 *
 *      driver                                        group
 *        EVENT_RESTORED of both slots, EVENT_START ---->
 *        EVENT_COMMAND GROUP_CREATE or GROUP_JOIN ----->
 *            <---- ACTION_NOTICE GROUP_PROBE, peer, size             send it random bytes over a stream
 *        EVENT_COMMAND GROUP_PROBED, peer, size, time ->             also for every real transfer
 *            <---- ACTION_NOTICE GROUP_COMMITTED                     group_topology(), group_neighbours()
 *            <---- ACTION_NOTICE GROUP_ASKED, peer, papers           may it come in? (only at the master)
 *        EVENT_COMMAND GROUP_APPROVE or GROUP_REFUSE -->             now or later
 *            <---- ACTION_SAVE GROUP_SLOT                            the document, before it is passed on
 *
 * A topology is a document with a term and a sequence number, signed by the master. The higher (term,
 * sequence) wins. Within a term only the master's signature counts. A member opens a higher term if the
 * master was silent for master_silence_us, the earlier in the order of the topology the sooner; others
 * believe it if they miss the master, too. A master that meets a higher term of one of its members gives
 * way, and does not come back by itself: after a partition one of the two masters remains. The founder's key
 * is believed always (GROUP_CLAIM).
 *
 * Nothing is believed because it came from the network: what is not of a member, not asked for, too often or
 * out of range is counted and dropped. Nobody is measured, probed or told of before it proved its address.
 */
#ifndef MNEMON_PROTOCOL_GROUP_GROUP_H
#define MNEMON_PROTOCOL_GROUP_GROUP_H

#include "base/err.h"
#include "base/step.h"
#include "protocol/group/estimate.h"
#include "protocol/group/group_message.h"
#include "protocol/group/topology.h"

struct group;

enum {
    GROUP_NEIGHBOURS_MAX = 32, /* that are configured instead of computed */
    GROUP_BLAME_TEXT_SIZE_MAX = 48,
    GROUP_SLOT = 0, /* of ACTION_SAVE: the document */
    GROUP_SLOT_FORMER =
        1, /* and the members of documents before: without them two parts would not meet again */
    GROUP_SLOTS_COUNT = 2,
};

/*
 * Keys are the driver's: Ed25519 on a node, something cheap in the simulator. verify() answers whether the
 * owner of this key signed these bytes.
 */
struct group_signer {
    void *context;
    void (*sign)(void *context, struct bytes bytes, uint8_t signature[GROUP_SIGNATURE_SIZE]);
    bool (*verify)(void *context, const uint8_t key[PEER_KEY_SIZE], struct bytes bytes,
                   const uint8_t signature[GROUP_SIGNATURE_SIZE]);
};

/* 0 stands for the default in parentheses; those marked P are the paper's. */
struct group_config {
    struct peer self;          /* as others reach it */
    uint8_t id[GROUP_ID_SIZE]; /* digest of the name and the founder's key */
    uint8_t founder[PEER_KEY_SIZE];
    struct group_signer signer;
    uint64_t seed;        /* secret: tokens come from it, too */
    uint16_t members_max; /* (256) of a topology that we compute */

    /* Without flood-d: these are the neighbours, for ever; nothing is sent. */
    const struct peer *neighbours; /* copied */
    uint16_t neighbours_count;

    /* Measuring. Each period is what it slows down to, with a random offset of a quarter. */
    uint64_t echo_us;    /* (15 min, P) */
    uint64_t probe_us;   /* (1 h, P) */
    uint32_t probe_size; /* (32 KiB, P) */
    uint64_t report_us;  /* (30 min, P) */
    uint64_t slowing_us; /* (90 min, P) a new member begins fast and has slowed down after so long … */
    uint64_t fast_us;    /* (10 s) … from this, for echoes */

    /* At the master. */
    bool is_open;            /* every join request is granted; else GROUP_ASKED decides */
    enum topology_kind kind; /* (sparse) */
    uint8_t connectivity;    /* (2, P) k */
    uint64_t compute_us;     /* (1 h, P) a better topology is looked for */
    uint64_t gather_us;      /* (5 s) and after a change of membership */
    uint64_t silence_us;     /* (1 h, P) a member that nobody heard for so long is dropped */

    /* The master itself. */
    uint64_t pulse_us;          /* (5 min) the master says that it is there */
    uint64_t master_silence_us; /* (15 min) then the next takes over … */
    uint64_t order_us;          /* (30 s) … each later one so much later */
};

/* EVENT_COMMAND: event.code. bytes in terms of base/wire.h; peers as group_write_peer() has them. */
enum group_command {
    GROUP_CREATE,  /* a new group, of which we are founder, master and only member */
    GROUP_JOIN,    /* bytes: contact, papers to the end. Is repeated until a topology contains us */
    GROUP_LEAVE,   /* the master hands over first */
    GROUP_APPROVE, /* bytes: peer. Also before it asks */
    GROUP_REFUSE,  /* bytes: peer. Also a member, which then is put out; for this life */
    GROUP_PROBED,  /* bytes: group_write_transfer(): so much went to or came from it in so long */
    GROUP_CLAIM,   /* be master from now on; others follow the founder, or if they miss their own */
    GROUP_RULES,   /* bytes: group_write_rules(): from now on; the master computes a topology by them */
};

/* ACTION_NOTICE: action.code. */
enum group_notice {
    GROUP_PROBE,     /* bytes: peer, size (u32): send it so many random bytes, then GROUP_PROBED */
    GROUP_COMMITTED, /* a new topology holds */
    GROUP_ASKED,     /* bytes: peer, papers to the end. At the master; again at each of its requests */
    GROUP_REFUSED,   /* the master does not want us. We ask no more until GROUP_JOIN */
    GROUP_OUT,       /* a topology does not contain us any more, because we left or were not heard; in the
                        second case we ask to join again by ourselves */
    GROUP_MASTER,    /* we are master now */
    GROUP_YIELDED,   /* we were master; there is one of a higher term */
    GROUP_BLAMED,    /* bytes: peer, text to the end: what it sent makes no sense */
};

/* ERR_MEMORY. */
enum err group_new(const struct group_config *config, struct group **ret_group) MUST_CHECK;
void group_free(struct group *group);
void group_step(struct group *group, const struct event *event, struct outbox *out);

/* What one step can append. */
size_t group_actions_max(const struct group_config *config);
size_t group_memory_size(const struct group_config *config);

/* The bytes of commands, into memory of STEP_MESSAGE_SIZE_MAX. papers may be empty. */
struct bytes group_write_peer(const struct peer *peer, struct bytes papers, void *memory);
struct bytes group_write_rules(bool is_open, enum topology_kind kind, uint8_t connectivity, void *memory);
struct bytes group_write_transfer(const struct peer *peer, uint64_t size, uint64_t duration_us, void *memory);

/* ---- for `mnemon group status` and for mirroring, read-only ---- */

enum group_mode {
    GROUP_IDLE,    /* in no topology, and asks nobody */
    GROUP_JOINING, /* asks; may still hold an old topology that does not contain us or may be outdated */
    GROUP_MEMBER,
    GROUP_FIXED, /* neighbours are configured */
};

struct group_counters {
    uint64_t received_count;
    uint64_t malformed_count; /* no message at all */
    uint64_t foreign_count;   /* other version or group */
    uint64_t strange_count;   /* from nodes that may not say this */
    uint64_t unasked_count;   /* answers nobody waits for: late, replayed or forged */
    uint64_t flooded_count;   /* too many of one member, or too many requests */
    uint64_t forged_count;    /* signatures that fail, or of nodes that may not sign */
    uint64_t blamed_count;

    uint64_t echoes_count; /* begun by us */
    uint64_t echoed_count; /* of them, answered */
    uint64_t probes_count;
    uint64_t reports_count; /* sent, whole ones */
    uint64_t reported_count;
    uint64_t requests_count; /* join requests of others, each once */
    uint64_t pieces_count;   /* of documents, sent; with repeats */
    uint64_t repeats_count;  /* of them, sent again */
    uint64_t committed_count;
    uint64_t computed_count; /* topologies that we computed; not all are better than what holds */
    uint64_t dropped_count;  /* members for their silence */
};

struct group_neighbour {
    struct peer peer;
    uint32_t cost_us;       /* of the edge in the topology; COSTS_UNKNOWN_US */
    uint32_t round_trip_us; /* 0: not measured */
    uint64_t bandwidth;     /* bytes a second; 0: not measured */
    uint64_t heard_at_us;   /* 0: never in this life */
};

enum group_mode group_mode(const struct group *group);
bool group_is_master(const struct group *group);
const struct group_counters *group_counters(const struct group *group);

/* What holds; NULL if none does. Members are in the order of succession. */
const struct topology *group_topology(const struct group *group);
uint32_t group_term(const struct group *group);
uint32_t group_sequence(const struct group *group);
const struct peer *group_master(const struct group *group); /* NULL if there is none */

/* Our neighbours in it, or those that are configured. Returns how many, at most count_max. */
size_t group_neighbours(const struct group *group, struct group_neighbour *out, size_t count_max);

#endif
