/*
 * transport - the ring on a real node: its socket, its clock, its files.
 *
 *      EVENT_MESSAGE <── tenant <── gate.h <── net/datagram.h <── UDP   on a loop and thread of its own
 *      ACTION_SEND  ──> gate.h ──> net/datagram.h ──> UDP
 *      RING_FIND    <── transport_ask(), any thread
 *      notices      ──> the copy that others read, every second and after each change of an arc
 *      files (ring_files.h) are read and written by transport_beat(), on another thread: the loop never waits
 *
 * The thread is not the crawl's, which gives way to readers: a node whose answers to the ring wait behind
 * pages is taken for dead.
 *
 * A node is in a ring if its data directory has a charter, or if it is told to join one: then it first asks
 * the contact for the charter, checks the founder's signature, and keeps it. From then on it comes back by
 * itself, by the peers it remembers. A charter that changes on the disk ("mnemon ring amend") is taken at
 * once.
 *
 * Leaving is stopping: the ring finds out as it does when a node crashes.
 */
#ifndef MNEMON_NODE_TRANSPORT_TRANSPORT_H
#define MNEMON_NODE_TRANSPORT_TRANSPORT_H

#include "base/buf.h"
#include "base/clock.h"
#include "protocol/ring/charter.h"
#include "protocol/ring/ring.h"
#include "replay/admin/ring_view.h"
#include "run/loop_post.h"

struct datagram_message;
struct dialects;
struct identity;
struct membership;
struct transport;

enum { TRANSPORT_PORT = 7070, TRANSPORT_VNODES_MAX = RING_LIST_MAX + 1, TRANSPORT_QUESTIONS_MAX = 512 };

/* 0 or NULL stands for the default in parentheses. Texts outlive it. */
struct transport_config {
    const char *directory;  /* of the data */
    struct address address; /* to listen at; the wildcard: everywhere; port 0: any */
    struct address public;  /* as others reach it, port 0: the same; (address; if that is the wildcard, the
                               one of the route to others) */
    struct address second; /* likewise, of the other family: only if it listens everywhere, "::"; (none, or if
                              neither is given, that of the route) */
    const char *join;      /* HOST[:PORT]; (nobody) */
    const char *token;     /* of "mnemon ring invite"; (none) */
    uint8_t vnodes_count;  /* (1) */
    uint8_t first_vnode;   /* index; RING_VIRTUAL_MAX: the first that no other node behind our address has */
    bool is_light;         /* it uses the ring and is no part of it (decision 0026): any port, no public */
    const char *nameservers;   /* (those of the system) */
    struct dialects *dialects; /* (no node is told or asked what it speaks) outlives it */
    const struct clock *clock;
    void (*note)(void *context, const char *sentence); /* any thread */
    void (*changed)(void *context); /* the loop: transport_beat() has something to write; may be NULL */
    void *context;
};

/*
 * A tenant of the transport: the ring itself, the crowd, groups, links. Each has a kind of
 * datagrams of its own. All of it is called on the loop, and may be NULL.
 */
struct transport_tenant {
    unsigned kind;       /* net/datagram.h; 0: it hears no datagrams and has no time of its own */
    bool is_for_members; /* only members of the ring are heard, and we show them that we are one */
    void (*receive)(void *context, const struct datagram_message *message);
    void (*wake)(void *context);                          /* the time of transport_wake_at() has come */
    void (*news)(void *context, const struct ring *ring); /* a few times a second, while we are a member */
    void (*charter)(void *context, const struct charter *charter, const uint8_t ring[RING_CHARTER_SIZE]);
    /* This key has shown a membership that is good; after the charter. */
    void (*member)(void *context, const uint8_t key[PEER_KEY_SIZE], const struct membership *membership);
    void *context;
};

/* ERR_INVALID: the token, the name of the contact, or more places than there are; the errors of
 * net/identity.h and ring_files.h. */
enum err transport_new(const struct transport_config *config, struct transport **ret_transport,
                       struct err_detail *detail) MUST_CHECK;

/* After it was stopped, or if it was never started. Writes what is to be kept. */
void transport_free(struct transport *transport);

/* Before it starts: copied. */
void transport_add(struct transport *transport, const struct transport_tenant *tenant);

/* Does nothing if the node is in no ring and shall not join one. ERR_BUSY: the port is taken. */
enum err transport_start(struct transport *transport, struct err_detail *detail) MUST_CHECK;

/* The socket and the loop, also without a ring: groups live there, too. The thread that will
 * stop it, or one that has ended by then. Does nothing if it runs. ERR_BUSY: the port is taken. */
enum err transport_open(struct transport *transport, struct err_detail *detail) MUST_CHECK;

/* Whoever waits for an answer gets ERR_CANCELLED. May be called more than once, by one thread. */
void transport_stop(struct transport *transport);

/* ---- any thread ---- */

/* Every second or so, one thread: files. */
void transport_beat(struct transport *transport);

/* Append what /api/v1/ring says (docs/api.md), as of a second ago at most. */
void transport_put(struct transport *transport, struct buf *out);

/* The part of it that pages show; and what the dashboard shows of neighbours and complaints. */
struct sheet;
void transport_view(struct transport *transport, struct arena *arena, struct ring_view *view);
void transport_show(struct transport *transport, struct sheet *sheet);

/* The address at which others reach it, once started. False: there is none. */
bool transport_address(struct transport *transport, struct address *ret_address);

/* Where streams are to be listened for: at the same address as datagrams. */
struct address transport_listening(const struct transport *transport);

/* If any port would do: the socket that holds its twin for streams (net/held_port.h), until
 * transport_stop(). NULL: the port was named, and nothing is held. */
const int *transport_held(const struct transport *transport);

/* Does it only use the ring? Only if there is one. */
bool transport_is_light(const struct transport *transport);

/* Is it in a ring, or was it told to join one? It stays so. */
bool transport_has_ring(const struct transport *transport);

/* ---- for others of this node. Any thread ---- */

const struct identity *transport_identity(const struct transport *transport);

/* Has this key shown that it is a member's, or need it not? */
bool transport_admits(struct transport *transport, const struct peer *peer);

/* Show the node our membership, so that it admits us. */
void transport_greet(struct transport *transport, const struct peer *peer);

/* What the node did is against the rules: for people to see. */
void transport_blame(struct transport *transport, const struct peer *peer, const char *sentence);

/* It is refused, for this reason: likewise. */
void transport_refuse(struct transport *transport, const struct peer *peer, const char *reason);

/* Run it on the ring's loop soon. False: there is none. */
bool transport_post(struct transport *transport, void (*run)(void *context), void *context);

/* The loop only: a datagram of a tenant's kind. */
void transport_send(struct transport *transport, const struct peer *to, unsigned kind, struct bytes message);

/* The loop only: wake() of the tenant of that kind is called at this time (monotonic), not at the one that it
 * asked for before; STEP_NEVER_US: not at all. */
void transport_wake_at(struct transport *transport, unsigned kind, uint64_t at_us);

/* ---- who is responsible? Any thread ---- */

struct transport_answer {
    enum err err; /* ERR_NOT_FOUND: in no ring; ERR_BUSY: not in it yet; ERR_UNREACHABLE: nobody could say;
                     ERR_CANCELLED */
    uint8_t hops_count;   /* 0: it was known here */
    uint8_t vnodes_count; /* the owner of the key, then its successors; at most what was wanted */
    struct vnode vnodes[TRANSPORT_VNODES_MAX];
};

/* The asker's memory until it is answered. */
struct transport_question {
    struct ring_id key;
    uint8_t vnodes_wanted; /* 1 to TRANSPORT_VNODES_MAX */
    /* Once, from the ring's thread or from within transport_ask(); may ask again. */
    void (*answered)(struct transport_question *question, const struct transport_answer *answer);
    void *context;

    /* The transport's. */
    struct transport *transport;
    struct loop_post post;
    struct transport_question *next;
};

/* At most TRANSPORT_QUESTIONS_MAX are on their way at once; the others wait their turn. */
void transport_ask(struct transport *transport, struct transport_question *question);

/*
 * The position of a URL, by the mapping of the charter: of its SURT, or of its host
 * (store/keyset/position.h). Any text that canon.h takes. ERR_INVALID; ERR_NOT_FOUND: there is no charter
 * yet.
 */
enum err transport_key(struct transport *transport, struct bytes url, struct ring_id *ret_key,
                       struct err_detail *detail) MUST_CHECK;

#endif
