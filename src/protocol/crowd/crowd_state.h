/*
 * crowd_state - what is inside struct crowd, for the files of this folder only. One machine in several files:
 * crowd.c has its life and hands messages to overlay.c (the view is built and kept), locate.c (life of the
 * searches, copies of queries, wishes) and locate_pass.c (our own searches, and the queries of others:
 * waiting, asked, sent on). Configs are those with the defaults filled in.
 */
#ifndef MNEMON_PROTOCOL_CROWD_CROWD_STATE_H
#define MNEMON_PROTOCOL_CROWD_CROWD_STATE_H

#include "base/arena.h"
#include "base/bucket.h"
#include "base/prng.h"
#include "base/standing.h"
#include "protocol/crowd/crowd.h"
#include "protocol/crowd/view.h"

/* ---- overlay.c ---- */

enum { OVERLAY_BUCKETS_COUNT = 64, OVERLAY_ALONE_US = 10000000 };

/* A join of ours, from CROWD_JOIN until a contact has answered; then it waits for WELCOME. */
struct overlay_join {
    struct peer contacts[CROWD_CONTACTS_MAX];
    uint8_t contacts_count; /* 0: nobody is tried */
    uint8_t next;           /* contact */
    uint8_t rounds_count;
    uint64_t number;
    uint64_t try_at_us;
    uint64_t welcome_until_us;
    uint8_t welcomes_left;
    /* What JOINED brought, until WELCOME brings better. */
    struct address lent[CROWD_SHUFFLE_MAX + 1];
    uint8_t lent_count;
};

/* The times at which they are full again. Which is a node's: by a keyed hash of its address. */
struct overlay_buckets {
    uint64_t joins_full_at_us;
    uint64_t shuffles_full_at_us[OVERLAY_BUCKETS_COUNT];
    uint64_t walks_full_at_us[OVERLAY_BUCKETS_COUNT];
};

struct overlay {
    uint64_t shuffle_at_us; /* the next of ours */
    bool is_open;           /* one of ours waits for its answer */
    uint64_t number;        /* of it */
    uint64_t silent_at_us;  /* when it is given up */
    struct peer partner;
    struct address sent[CROWD_SHUFFLE_MAX]; /* with the partner */
    uint8_t sent_count;
    uint64_t alone_at_us; /* CROWD_ALONE is not said before */
    struct overlay_join join;
    struct peer *newcomers; /* view_size: the nodes that joined here last; NULL under CROWD_CYCLON */
    uint8_t newcomers_count;
    uint8_t newcomers_next;
    struct overlay_buckets *buckets; /* NULL: is_unlimited */
};

void overlay_init(struct crowd *crowd);
void overlay_start(struct crowd *crowd);
void overlay_join(struct crowd *crowd, struct bytes contacts);
void overlay_receive(struct crowd *crowd, const struct event *event, const struct crowd_message *message);
void overlay_drop(struct crowd *crowd, const struct address *address);

/* What one step appends at most. */
size_t overlay_actions_max(const struct crowd_config *config);

/* What is due; wakes for the next. */
void overlay_tick(struct crowd *crowd);

/* ---- locate.c and locate_pass.c: all tables are in the crowd's arena and as large as the config says, since
 * 100,000 nodes live in one experiment ---- */

enum { LOCATE_FINDINGS_MAX = 8 };

/* How many actions one step appends at most. */
size_t locate_actions_max(const struct crowd_config *config);
void locate_init(struct crowd *crowd); /* crowd->secret is set */

void locate_find(struct crowd *crowd, uint64_t number, struct bytes wish);
void locate_enough(struct crowd *crowd, uint64_t number);
void locate_discount(struct crowd *crowd, uint64_t number);
void locate_have(struct crowd *crowd, uint64_t number, struct bytes finding); /* empty: no */
void locate_receive(struct crowd *crowd, const struct event *event, const struct crowd_message *message);
bool locate_is_searching(const struct crowd *crowd, uint64_t number, uint8_t *ret_ttl);

/* What is due; wakes for the next. At the end of every step: queries that came are worked on here. */
void locate_tick(struct crowd *crowd);

enum {
    LOCATE_FOUND_MAX = 2 * LOCATE_FINDINGS_MAX, /* holders that one search tells of */
    LOCATE_FINDINGS_OF_ONE_MAX = 3,             /* that one neighbour sends for one query */
    LOCATE_SENDERS_MAX = 8,                     /* neighbours that a wish is counted for */
    LOCATE_SILENT_MAX = 8,                      /* neighbours remembered for one silence */
    LOCATE_WAYS = 4,                            /* places in locate.wanted that a wish may be at */
    LOCATE_BUCKETS_COUNT = 256,                 /* neighbours that meet in one share it */
};

/* A neighbour's address under a keyed hash: 30 bits tell a few dozen apart, and nobody can aim at them. */
struct locate_copy {
    uint32_t peer_hash : 30;
    uint32_t findings_count : 2; /* that came from it */
};

/* Copies of one query that are under way; all of a round were sent at once. */
struct locate_flight {
    uint64_t due_us; /* a neighbour still awaited then is silent; STEP_NEVER_US: nobody is awaited */
    uint32_t awaited[CROWD_FANOUT_MAX]; /* hashes of neighbours */
    uint8_t awaited_count;
    uint8_t rounds_count; /* of choosing others in place of the silent */
};

/* A query that went through here. Its copies are beside it, in locate_seen.copies. */
struct locate_query {
    uint64_t id;
    uint64_t wish_hash;
    uint64_t search_number; /* of ours */
    struct peer from;       /* port 0: it is ours */
    uint8_t copies_count;
    uint8_t findings_count; /* passed back */
};

/* The last ones: a circle, and the slots that an id leads to (open addressing; position + 1, 0: free). */
struct locate_seen {
    struct locate_query *queries;
    struct locate_copy *copies; /* copies_max of each query; none if repeats are taken */
    uint32_t *slots;
    uint64_t secret;
    uint32_t slots_mask;
    uint32_t count_max;
    uint32_t count;
    uint32_t next; /* position of the next one; when all are used, of the oldest */
    uint8_t copies_max;
};

/* A wish of others. */
struct locate_wanted {
    uint64_t wish_hash; /* 0: free */
    uint64_t since_us;  /* all below is counted from then on, for absent_us */
    uint32_t senders[LOCATE_SENDERS_MAX];
    uint8_t senders_count;
    bool is_found;
    uint32_t forwards_count; /* queries that were or would have been sent on */
};

enum locate_task_state {
    LOCATE_TASK_WAITS,   /* for its turn */
    LOCATE_TASK_ASKED,   /* the owner was asked */
    LOCATE_TASK_FORWARD, /* we have it not: to be sent on */
    LOCATE_TASK_FLIES,   /* copies wait for their acknowledgement */
};

/* A query of others that is worked on. */
struct locate_task {
    enum locate_task_state state;
    uint64_t asked; /* number of CROWD_ASKED; several may wait for one answer */
    uint64_t order; /* of arrival */
    uint64_t arrived_us;
    uint64_t id;
    uint64_t wish_hash;
    struct peer from;
    uint8_t ttl; /* hops that are left */
    uint8_t hops;
    uint8_t fanout;
    struct locate_flight flight;
    uint16_t wish_size;
    uint8_t wish[CROWD_WISH_SIZE_MAX];
};

/* One of ours. */
struct locate_search {
    bool is_open;
    bool is_acknowledged; /* somebody was asked */
    uint8_t ttl;
    uint8_t tries_left;       /* with ttl_last */
    uint8_t holders_count;    /* that were told of */
    uint8_t discounted_count; /* of them */
    uint64_t number;
    uint64_t id;        /* of the last try */
    uint64_t end_at_us; /* of the last try */
    uint64_t wish_hash;
    uint64_t holders[LOCATE_FOUND_MAX]; /* hashes */
    struct locate_flight flight;
    uint16_t wish_size;
    uint8_t wish[CROWD_WISH_SIZE_MAX];
};

struct locate {
    struct locate_seen seen;
    struct locate_search *searches; /* searches_max */
    uint32_t searches_open;
    struct locate_task *tasks; /* waiting_max */
    uint32_t *order;           /* positions of the tasks: open_count that are in use, then the free ones */
    uint32_t open_count;
    struct locate_wanted *wanted; /* wanted_count. This and the next two: NULL if is_unlimited */
    uint32_t wanted_count;
    struct standing absent;             /* wishes of ours that nobody had; searches_max */
    uint64_t *peers_full_at_us;         /* buckets of the neighbours */
    uint64_t total_full_at_us;          /* the bucket of all */
    uint32_t silent[LOCATE_SILENT_MAX]; /* hashes of neighbours that were silent once, without a time, in 32
                                           bytes: no table of standing. 0: free */
    uint8_t silent_next;
    uint64_t asked_last;
    uint64_t order_last;
    uint64_t ids_count;
    uint64_t due_us; /* nothing is due before */
};

/* ---- locate.c ---- */

/* Something is due then. */
void locate_due(struct crowd *crowd, uint64_t at_us);
uint32_t locate_peer_hash(const struct crowd *crowd, const struct address *address); /* 30 bits, not 0 */
uint64_t locate_wish_hash(const struct crowd *crowd, struct bytes wish);             /* not 0 */

uint8_t locate_fanout_max(const struct crowd_config *config); /* of any query that is sent from here */

/* NULL: never, or long ago. A query is valid until the next one is added. */
struct locate_query *locate_seen_find(const struct locate_seen *seen, uint64_t id);
struct locate_query *locate_seen_add(struct locate_seen *seen,
                                     uint64_t id); /* of no other; zeroed but for id */

/* The message to `count` random neighbours, but not to that one (NULL: to any). Both return how many were
 * sent. */
size_t locate_flight_start(struct crowd *crowd, struct locate_flight *flight, struct locate_query *query,
                           const struct crowd_message *message, const struct address *not_to, size_t count);

/* Its time has come: others in place of the silent. */
size_t locate_flight_tick(struct crowd *crowd, struct locate_flight *flight, struct locate_query *query,
                          const struct crowd_message *message, const struct address *not_to);
bool locate_flight_acknowledge(struct locate_flight *flight, uint32_t peer_hash); /* false: not awaited */

/* ---- wishes; nothing is remembered if the config is_unlimited ---- */

void locate_wanted_note(struct crowd *crowd, uint64_t wish_hash, uint32_t peer_hash);
unsigned locate_wanted_senders(const struct crowd *crowd, uint64_t wish_hash);
bool locate_wanted_is_fruitless(struct crowd *crowd, uint64_t wish_hash); /* asked for each to be sent on */
void locate_wanted_found(struct crowd *crowd, uint64_t wish_hash);        /* neither fruitless nor absent */

void locate_absent_note(struct crowd *crowd, uint64_t wish_hash);
bool locate_absent_is(const struct crowd *crowd, uint64_t wish_hash);

/* ---- locate_pass.c; units: how much one tick does, each at most CROWD_FANOUT_MAX actions ---- */

void locate_pass_query(struct crowd *crowd, const struct event *event, const struct crowd_message *message);
void locate_pass_acknowledge(struct crowd *crowd, uint64_t id, uint32_t peer_hash);
void locate_pass_tick(struct crowd *crowd, unsigned *units);

void locate_search_hit(struct crowd *crowd, const struct locate_query *query,
                       const struct crowd_message *hit);
void locate_search_acknowledge(struct crowd *crowd, const struct locate_query *query, uint32_t peer_hash);
void locate_search_tick(struct crowd *crowd, unsigned *units);

/* ---- crowd.c ---- */

struct crowd {
    struct arena arena;         /* of everything below and of this */
    struct crowd_config config; /* defaults filled in */
    struct prng prng;
    uint64_t secret; /* of tokens and buckets */
    struct view view;
    struct overlay overlay;
    struct locate locate;
    struct crowd_counters counters;
    uint64_t blame_at_us; /* CROWD_BLAMED is not said before */

    /* During a step. */
    uint64_t now_us;
    struct outbox *out;
    struct crowd_message message; /* that came */
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
};

/* To a neighbour; the message's version and network are filled in. */
void crowd_send(struct crowd *crowd, const struct peer *to, const struct crowd_message *message);

/* A message to whoever sent this one. */
void crowd_answer(struct crowd *crowd, const struct event *event, const struct crowd_message *message);

/* The token that proves this address. */
uint64_t crowd_token(const struct crowd *crowd, const struct address *address);

#endif
