/*
 * ringing - the ring on a real node: its socket, its clock, its files.
 *
 *      EVENT_MESSAGE <── gate.h <── net/datagram.h <── UDP          on the ring's own loop and thread
 *      ACTION_SEND  ──> gate.h ──> net/datagram.h ──> UDP
 *      RING_FIND    <── ringing_ask(), any thread
 *      notices      ──> the copy that others read, every second and after each change of an arc
 *      files (ring_files.h) are read and written by ringing_beat(), on another thread: the loop never waits
 *
 * The thread is not the crawl's, which gives way to people who read: a question of the ring that waits behind
 * pages is a node that others take for dead.
 *
 * A node is in a ring where its data directory has a charter, or where it is told to join: then it asks the
 * contact for the charter first, checks the founder's signature, and keeps it. From then on it comes back by
 * itself, by the peers it remembers. A charter that changes on the disk ("mnemon ring amend") is taken at
 * once.
 *
 * Leaving is stopping: the ring finds out as it does when a node crashes.
 */
#ifndef MNEMON_NODE_TRANSPORT_RINGING_H
#define MNEMON_NODE_TRANSPORT_RINGING_H

#include "base/buf.h"
#include "base/clock.h"
#include "protocol/ring/charter.h"
#include "protocol/ring/ring.h"

struct datagram_message;
struct identity;
struct ringing;

/* Who may ask to be woken on the loop. */
enum ringing_user { RINGING_CROWD, RINGING_GROUPS, RINGING_USERS_COUNT };

enum { RINGING_PORT = 7070, RINGING_PLACES_MAX = RING_LIST_MAX + 1, RINGING_QUESTIONS_MAX = 512 };

/* 0 or NULL stands for the default in parentheses. Texts outlive it. */
struct ringing_config {
    const char *directory; /* of the data */
    struct address
        address;          /* as others reach it; the wildcard: the one of the route to others; port 0: any */
    const char *join;     /* HOST[:PORT]; (nobody) */
    const char *token;    /* of "mnemon ring invite"; (none) */
    uint8_t places_count; /* (1) */
    uint8_t first_place;  /* index; RING_VIRTUAL_MAX: the first that no other node behind our address has */
    const char *nameservers; /* (those of the system) */
    const struct clock *clock;
    void (*note)(void *context, const char *sentence); /* any thread */
    void *context;

    /* Others of this node who live by the ring; all on its loop, and each may be NULL. */
    void (*news)(void *shared, const struct ring *ring); /* as it is now: a few times a second, as a member */
    void (*charter)(void *shared, const struct charter *charter, const uint8_t ring[RING_CHARTER_SIZE]);
    void (*datagram)(void *shared, const struct datagram_message *message); /* of a kind that is not ours */
    /* Of a kind that is the groups' (DATAGRAM_GROUP and later): of anybody, member of the ring or not. */
    void (*group)(void *shared, const struct datagram_message *message);
    void (*wake)(void *shared, enum ringing_user user); /* the time of ringing_wake_at() has come */
    void *shared;
};

/* ERR_INVALID: the token, the name of the contact, or more places than there are; the errors of
 * net/identity.h and ring_files.h. */
enum err ringing_new(const struct ringing_config *config, struct ringing **ret_ringing,
                     struct err_detail *detail) MUST_CHECK;

/* Where it is stopped, or was never started. What is to be kept is written. */
void ringing_free(struct ringing *ringing);

/* Nothing happens where the node is in no ring and shall not join one. ERR_BUSY where the port is taken. */
enum err ringing_start(struct ringing *ringing, struct err_detail *detail) MUST_CHECK;

/* The socket and the loop also where the node is in no ring: groups live there, too. The thread that will
 * stop it, or one that has ended by then. Nothing happens where it runs. ERR_BUSY where the port is taken. */
enum err ringing_open(struct ringing *ringing, struct err_detail *detail) MUST_CHECK;

/* Whoever waits for an answer gets ERR_CANCELLED. May be called more than once, by one thread. */
void ringing_stop(struct ringing *ringing);

/* ---- any thread ---- */

/* Every second or so, one thread: files. */
void ringing_beat(struct ringing *ringing);

/* Append what /api/v1/ring says (docs/api.md), as of a second ago at most. */
void ringing_put(struct ringing *ringing, struct buf *out);

/* Where its socket is bound, once started. False: there is none. */
bool ringing_address(struct ringing *ringing, struct address *ret_address);

/* Where any port would do: the socket that holds its twin for streams (net/held_port.h), until
 * ringing_stop(). NULL: the port was named, and nothing is held. */
const int *ringing_held(const struct ringing *ringing);

/* Is it in a ring, or was it told to join one? It stays so. */
bool ringing_has_ring(const struct ringing *ringing);

/* ---- for others of this node. Any thread ---- */

const struct identity *ringing_identity(const struct ringing *ringing);

/* Has this key shown that it is a member's, or need it not? */
bool ringing_admits(struct ringing *ringing, const struct peer *peer);

/* Show him our membership, so that he admits us. */
void ringing_greet(struct ringing *ringing, const struct peer *peer);

/* What he did is against the rules: for people to see. */
void ringing_blame(struct ringing *ringing, const struct peer *peer, const char *sentence);

/* Run it on the ring's loop soon. False: there is none. */
bool ringing_post(struct ringing *ringing, void (*run)(void *context), void *context);

/* The loop only: a datagram of an owner's kind (net/datagram.h). */
void ringing_send(struct ringing *ringing, const struct peer *to, unsigned kind, struct bytes message);

/* The loop only: config.wake is called at that time (monotonic), not at the one that this user asked for
 * before; STEP_NEVER_US: not at all. */
void ringing_wake_at(struct ringing *ringing, enum ringing_user user, uint64_t at_us);

/* ---- who is responsible? Any thread ---- */

struct ringing_answer {
    enum err err; /* ERR_NOT_FOUND: in no ring; ERR_BUSY: not in it yet; ERR_UNREACHABLE: nobody could say;
                     ERR_CANCELLED */
    uint8_t hops_count;   /* 0: it was known here */
    uint8_t places_count; /* the owner of the key, then its successors; at most what was wanted */
    struct ring_place places[RINGING_PLACES_MAX];
};

/* The asker's memory until it is answered. */
struct ringing_question {
    struct ring_id key;
    uint8_t places_wanted; /* 1 to RINGING_PLACES_MAX */
    /* Once, from the ring's thread or from within ringing_ask(); may ask again. */
    void (*answered)(struct ringing_question *question, const struct ringing_answer *answer);
    void *context;
    struct ringing_question *next; /* ringing's */
};

/* At most RINGING_QUESTIONS_MAX are on their way at once; the others wait their turn. */
void ringing_ask(struct ringing *ringing, struct ringing_question *question);

/*
 * The place of a URL, by the mapping of the charter: of its SURT, or of its host (store/keyset/place.h). Any
 * text that canon.h takes. ERR_INVALID; ERR_NOT_FOUND where there is no charter yet.
 */
enum err ringing_key(struct ringing *ringing, struct bytes url, struct ring_id *ret_key,
                     struct err_detail *detail) MUST_CHECK;

#endif
