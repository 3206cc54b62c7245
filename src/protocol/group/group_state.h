/*
 * group_state - what is inside struct group. One machine in several files, 2,200 lines in all:
 *
 *      group.c           life, commands, messages, and which nodes are members
 *      group_join.c      joining and leaving
 *      group_measure.c   estimates of paths, and reports of them
 *      group_document.c  topologies as signed documents, and how they are flooded in pieces
 *      group_master.c    the master's work, and which member succeeds it
 */
#ifndef MNEMON_PROTOCOL_GROUP_GROUP_STATE_H
#define MNEMON_PROTOCOL_GROUP_GROUP_STATE_H

#include "base/arena.h"
#include "base/bucket.h"
#include "base/prng.h"
#include "base/retry.h"
#include "protocol/group/group.h"

enum {
    GROUP_NOWHERE = GROUP_MEMBERS_MAX, /* the position of a node that is no member */
    GROUP_ECHOES_MAX = 8,
    GROUP_KEYS_MAX = 64,  /* approved, refused */
    GROUP_ASKED_MAX = 16, /* nodes that wait for approval */
    GROUP_SEEN_MAX = 64,  /* join requests */
    GROUP_SENDS_MAX = 64, /* pieces in one step; the others follow */
    GROUP_MISC_MAX = 32,  /* actions of a step that are not to all neighbours */
    GROUP_DOCUMENT_HEAD_SIZE = 8 + GROUP_ID_SIZE + 4 + PEER_KEY_SIZE,
    GROUP_DOCUMENT_SIZE_MAX = GROUP_DOCUMENT_HEAD_SIZE + TOPOLOGY_SIZE_MAX + GROUP_SIGNATURE_SIZE,
    GROUP_MINUTE_US = 60000000,
};
_Static_assert(GROUP_DOCUMENT_SIZE_MAX <= GROUP_PIECES_MAX * GROUP_PIECE_SIZE, "a document in pieces");

/* ---- members (group.c) ---- */

/* What we know of a member, at its position in the topology. */
struct group_member {
    uint64_t heard_at_us;  /* by us; 0: never */
    uint64_t known_at_us;  /* by anybody that told us; for the master only */
    uint64_t bucket_us;    /* limits the messages that we take from it */
    uint64_t pushed_at_us; /* a document, because it was behind */
    struct estimate estimate;
};

/* ---- measuring (group_measure.c) ---- */

struct group_echo {
    uint64_t number; /* 0: free */
    uint64_t sent_at_us;
    struct peer to;
};

struct group_measure {
    uint64_t began_at_us; /* fast, then slower: counted from here */
    uint64_t echo_at_us;
    uint64_t probe_at_us;
    uint64_t report_at_us;
    struct group_echo echoes[GROUP_ECHOES_MAX];
    uint32_t echoes_next;
    uint64_t report_number; /* 0: none is open */
    struct retry report;    /* of the one that is open */
    uint32_t report_first;  /* whose estimate comes first: all of a large group do not fit one message */
};

/* ---- joining and leaving (group_join.c) ---- */

struct group_joining {
    struct peer contact; /* of this try */
    struct peer contact_first;
    uint8_t papers[GROUP_PAPERS_SIZE_MAX];
    size_t papers_size;
    uint64_t number;
    uint64_t token;
    struct retry retry;
    uint8_t master[PEER_KEY_SIZE]; /* as the contact says; believed, because the contact was chosen */
    bool has_master;
    bool is_answered; /* the last try */
    bool is_leaving;
    uint32_t leaves_left; /* LEAVE is sent so often */
    uint64_t leave_at_us;
    uint64_t leave_number;
};

struct group_requests {
    uint64_t seen[GROUP_SEEN_MAX]; /* hashes of requests that were passed on; a circle */
    uint32_t seen_next;
    uint64_t bucket_us;           /* of all that are passed on */
    uint64_t strangers_bucket_us; /* of answers to nodes that are no members */
};

/* ---- documents (group_document.c) ---- */

/* A node that is to get the document that holds. */
struct group_target {
    struct peer peer;
    uint64_t mask; /* pieces that it has */
    uint64_t sent; /* pieces that were sent in this try */
    struct retry retry;
};

struct group_flood {
    uint8_t *document; /* that holds; GROUP_DOCUMENT_SIZE_MAX */
    size_t document_size;
    struct group_target *targets; /* 2 * GROUP_MEMBERS_MAX */
    uint32_t targets_count;
    bool is_saved; /* nothing is passed on before */
    uint64_t save_number;

    /* What comes in, of one sender at a time. */
    uint8_t *arriving;
    size_t arriving_size; /* known with the last piece */
    struct group_version arriving_version;
    struct peer arriving_from;
    uint64_t arriving_mask;
    uint64_t arriving_until_us;
    uint8_t arriving_pieces;
};

/* ---- the master (group_master.c) ---- */

struct group_keys {
    uint8_t keys[GROUP_KEYS_MAX][PEER_KEY_SIZE];
    uint32_t count;
    uint32_t next;
};

struct group_mastership {
    struct costs *costs; /* of the members of the topology that holds */
    struct costs *next_costs;
    struct topology_work *work;
    struct graph *graph;
    bool *is_leaving;      /* [position] */
    struct peer *arrivals; /* nodes of the next topology; GROUP_MEMBERS_MAX */
    uint32_t arrivals_count;
    uint64_t compute_at_us;
    bool has_new_rules;  /* the next topology counts, better or not */
    uint64_t look_at_us; /* for silent members */
    struct group_keys approved;
    struct group_keys refused;
    struct group_keys left; /* by their own wish: they are not let in as lost ones are */
    struct peer asked[GROUP_ASKED_MAX];
    uint32_t asked_next;

    uint64_t pulse_at_us;
    struct group_version beat_version;
    uint64_t beat; /* last sent or believed, of this version */
};

struct group_succession {
    uint64_t heard_at_us;       /* the master, by us; 0: never */
    uint64_t wait_from_us;      /* when we began to expect to hear it */
    uint64_t ask_at_us;         /* the master, because it is silent */
    struct group_version holds; /* as it says itself */
    uint64_t poll_at_us;        /* when the others are asked whether they are there */
    uint64_t polled_at_us;      /* 0: no poll is open */
    uint64_t poll_number;
};

struct group {
    struct arena arena;         /* of everything below and of this */
    struct group_config config; /* defaults filled in */
    struct prng prng;
    uint64_t secret; /* of tokens */
    enum group_mode mode;
    struct group_counters counters;

    struct topology *topology; /* that holds; members_count 0: none */
    struct topology *draft;    /* scratch: the next one, or one that was read */
    struct group_version version;
    uint32_t position; /* ours in it; GROUP_NOWHERE */
    struct group_member *members;
    struct group_member *members_before; /* scratch */
    struct peer *former;                 /* members of topologies before; a circle */
    uint32_t former_count;
    uint32_t former_next;
    bool is_former_changed;      /* since it was saved */
    struct graph_set neighbours; /* ours */

    struct peer fixed[GROUP_NEIGHBOURS_MAX];
    struct estimate fixed_estimates[GROUP_NEIGHBOURS_MAX];

    struct group_measure measure;
    struct group_joining joining;
    struct group_requests requests;
    struct group_flood flood;
    struct group_mastership master;
    struct group_succession succession;
    uint64_t blame_at_us;

    /* During a step. */
    uint64_t now_us;
    struct outbox *out;
    uint32_t sends_left; /* of GROUP_SENDS_MAX */
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
};

/* What is done with a message that came. */
typedef void group_take(struct group *group, const struct event *event, const struct group_message *message);

/* ---- group.c ---- */

void group_send(struct group *group, const struct peer *to, struct group_message *message);
void group_send_neighbours(struct group *group, const struct peer *but, struct group_message *message);
void group_answer(struct group *group, const struct event *event, enum group_message_kind kind,
                  uint64_t number);
void group_notice_peer(struct group *group, enum group_notice notice, const struct peer *peer,
                       struct bytes rest);
void group_blame(struct group *group, const struct event *event, const char *text);

/* The period, plus or minus an eighth. */
uint64_t group_spread(struct group *group, uint64_t period_us);

uint32_t group_find(const struct group *group, const struct peer *peer); /* address and key; GROUP_NOWHERE */
uint32_t group_find_key(const struct topology *topology, const uint8_t key[PEER_KEY_SIZE]);
bool group_is_former(const struct group *group, const uint8_t key[PEER_KEY_SIZE]);
void group_save_former(struct group *group); /* if it has changed */

/* `draft` is what holds from now on: what is known of members goes with them to their new positions. */
void group_members_follow(struct group *group);

/* A random member or one of former times; NULL if there is none but us. */
const struct peer *group_pick_member(struct group *group);
const struct peer *group_pick_former(struct group *group);

bool group_keys_has(const struct group_keys *keys, const uint8_t key[PEER_KEY_SIZE]);
void group_keys_add(struct group_keys *keys, const uint8_t key[PEER_KEY_SIZE]);
void group_keys_remove(struct group_keys *keys, const uint8_t key[PEER_KEY_SIZE]);

/* ---- group_measure.c ---- */

void group_measure_begin(struct group *group);
void group_measure_tick(struct group *group);
void group_measure_report_soon(struct group *group);
void group_measure_ask(struct group *group, const struct peer *whom);
void group_measure_probed(struct group *group, struct bytes bytes);
group_take group_measure_on_echoed;
group_take group_measure_on_reported;

/* Did we ask it, and is this number of that question? It is answered then. */
bool group_measure_is_asked(struct group *group, const struct peer *who, uint64_t number);

/* ---- group_join.c ---- */

void group_join_begin(struct group *group, struct bytes bytes);
void group_join_through(struct group *group, const struct peer *contact);
void group_join_leave(struct group *group);
void group_join_tick(struct group *group);
group_take group_join_on_join;
group_take group_join_on_challenge;
group_take group_join_on_taken;
group_take group_join_on_refused;
group_take group_join_on_request;
group_take group_join_on_left;
group_take group_join_on_stranger;

/* ---- group_document.c ---- */

/* `draft` becomes a document of this version, signed by us, and holds. */
void group_document_publish(struct group *group, uint32_t term, uint64_t sequence);

void group_document_restore(struct group *group, struct bytes document);

/* No topology holds any more. */
void group_document_drop(struct group *group);

void group_flood_to(struct group *group, const struct peer *peer);
void group_flood_begin(struct group *group);
void group_flood_tick(struct group *group);
group_take group_flood_on_piece;
group_take group_flood_on_ack;

/* ---- group_master.c ---- */

void group_master_create(struct group *group);
void group_master_begin(struct group *group); /* we are master by what holds now */
void group_master_tick(struct group *group);
void group_master_hand_over(struct group *group);
void group_master_approve(struct group *group, struct bytes bytes);
void group_master_refuse(struct group *group, struct bytes bytes);
void group_master_set_rules(struct group *group, struct bytes bytes);
void group_master_on_request(struct group *group, const struct peer *who, struct bytes papers);
group_take group_master_on_report;
group_take group_master_on_leave;

/* Another topology holds, of a master that has just been heard or not. */
void group_succession_begin(struct group *group, bool is_heard);
void group_succession_heard(struct group *group, struct group_version held);
bool group_succession_is_missed(const struct group *group);
void group_succession_claim(struct group *group);
void group_succession_tick(struct group *group);
group_take group_succession_on_pulse;

#endif
