/*
 * transport_state - one machine in several files, which share struct transport. Private to them:
 *
 *      transport.c       begin and end, the beat, what tenants may ask for
 *      transport_loop.c  the loop: datagrams, charters, and what the ring makes of them
 *      transport_ask.c   questions to the ring
 *      transport_hello.c which version is spoken with whom
 *      transport_text.c  the state, as JSON and for pages
 */
#ifndef MNEMON_NODE_TRANSPORT_TRANSPORT_STATE_H
#define MNEMON_NODE_TRANSPORT_TRANSPORT_STATE_H

#include <pthread.h>
#include <sys/stat.h>
#include <uv.h>

#include "base/map.h"
#include "base/retry.h"
#include "net/dns.h"
#include "net/identity.h"
#include "node/transport/complaints.h"
#include "node/transport/gate.h"
#include "node/transport/ring_files.h"
#include "node/transport/transport.h"
#include "node/versions/dialects.h"
#include "run/loop.h"

enum {
    TRANSPORT_HOST_SIZE_MAX = 256,
    TRANSPORT_TICK_US = 250000,
    TRANSPORT_TEXT_SIZE_MAX = 8 << 20,
    TRANSPORT_SENTENCE_SIZE_MAX = 512,
    TRANSPORT_OWN_SIZE_MAX = 64 << 10,
};
static const uint64_t TRANSPORT_JOIN_US =
    10 * 1000000; /* while nobody lets us in; the ring tries by itself, too */

enum transport_state {
    TRANSPORT_NONE,    /* in no ring, and not told to join one */
    TRANSPORT_LOOKING, /* for the address of the contact */
    TRANSPORT_ASKING,  /* for the charter */
    TRANSPORT_JOINING,
    TRANSPORT_MEMBER,
    TRANSPORT_REMOVED, /* by the founder */
    TRANSPORT_STATES_COUNT,
};

/* --join. */
struct transport_contact {
    char host[TRANSPORT_HOST_SIZE_MAX]; /* empty: there is none */
    uint16_t port;
    struct dns_question question;
    struct address addresses[DNS_ADDRESSES_MAX]; /* of the name, as far as this node can send there */
    size_t addresses_count;
    bool is_found; /* peer.address is known; its key is zeros until it has spoken */
    struct peer peer;
    bool has_spoken;
    uint64_t since_us; /* when it was first asked; 0: not yet */
    struct retry retry;
    bool is_told; /* that it is silent */
};

/* What travels between the loop and the thread of the beat. */
struct transport_post {
    bool has_charter; /* to write, or, from the disk, to take */
    struct charter charter;
    uint8_t encoded[CHARTER_SIZE_MAX];
    size_t encoded_size;
};

/* A charter of a later layout. */
struct transport_later {
    size_t size; /* 0: there is none */
    uint8_t encoded[CHARTER_SIZE_MAX];
};

enum { TRANSPORT_ADMITTED_MAX = 1 << 16, TRANSPORT_ERRANDS_MAX = 1024, TRANSPORT_TENANTS_MAX = 8 };

/* A question that the ring is at work on. */
struct transport_slot {
    struct transport_question *question; /* NULL: free */
    uint32_t life;                       /* tells the answers of one user from those of the next */
};

enum { TRANSPORT_NEIGHBOURS_MAX = 256, TRANSPORT_ROLE_SIZE_MAX = 16 };

struct transport_neighbour {
    struct vnode vnode;
    char role[TRANSPORT_ROLE_SIZE_MAX]; /* "successor 2" */
    uint32_t round_trip_us;
};

/* What pages show of it. */
struct transport_shown {
    bool is_there; /* this node is in a ring, or on its way */
    char text[TRANSPORT_SENTENCE_SIZE_MAX];
    uint32_t replicas;
    double share; /* that its places see to */
    struct ring_view_traffic traffic;
    struct transport_neighbour neighbours[TRANSPORT_NEIGHBOURS_MAX];
    size_t neighbours_count;
    struct complaints complaints;
};

struct transport_queue {
    struct transport_question *first;
    struct transport_question **end; /* NULL while it was never used */
};

struct transport {
    struct transport_config config;
    struct identity identity;
    struct sha256 sha256;
    bool has_token;
    struct invitation token;
    uint8_t token_seed[INVITATION_SEED_SIZE];
    struct membership membership;
    uint64_t seed;

    /* The loop's. */
    bool has_loop; /* the owner's: started, and not stopped yet */
    bool has_ring; /* from the start on: in a ring, or told to join one */
    struct loop loop;
    enum transport_state state;
    bool has_charter;
    bool is_to_begin; /* with the first charter, when it is on the disk */
    struct charter charter;
    uint8_t id[CHARTER_ID_SIZE];
    uint8_t encoded[CHARTER_SIZE_MAX]; /* as it was found at the start */
    size_t encoded_size;
    struct transport_later later;    /* as it was found at the start */
    uint8_t plain[CHARTER_SIZE_MAX]; /* likewise: the last charter of layout 1 */
    size_t plain_size;               /* 0: there is none */
    struct peer self;
    struct datagram *datagram;
    int held; /* HELD_PORT_NONE: the port was named */
    struct gate *gate;
    struct dns *dns;
    struct ring *ring; /* NULL until there is a charter */
    struct outbox out;
    struct buf own; /* messages to this node itself: size in two bytes, bytes */
    struct action *actions;
    uint8_t *memory;
    struct loop_timer tick;
    struct transport_tenant tenants[TRANSPORT_TENANTS_MAX];
    struct loop_timer wakes[TRANSPORT_TENANTS_MAX]; /* of each */
    size_t tenants_count;
    struct loop_post news; /* the beat has read a charter */
    struct transport_contact contact;
    struct peer remembered[RING_FILES_PEERS_MAX];
    size_t remembered_count;
    uint64_t joined_at_us; /* when we began to join */
    bool is_long_told;     /* that it takes long */
    uint64_t join_at_us;   /* next try */
    uint64_t greet_at_us;  /* next look for a newer charter */
    uint64_t copy_at_us;
    uint32_t met_index;   /* of the known virtual nodes: the next whose node is told what we speak */
    uint64_t keep_at_us;  /* peers */
    uint64_t blame_at_us; /* not before, for what makes no sense */
    struct complaints complaints;
    struct peer blamed;       /* the last one, as the ring knows it; port 0: it does not */
    uint64_t blamed_until_us; /* then it is looked up again */
    struct loop_post asked;   /* there is room for questions that wait */
    struct transport_queue waiting;
    struct transport_slot slots[TRANSPORT_QUESTIONS_MAX];
    uint32_t free_slots[TRANSPORT_QUESTIONS_MAX];
    size_t free_slots_count;

    pthread_mutex_t lock;
    bool is_running;                        /* lock: the handles of the loop are open */
    struct map admitted;                    /* lock: keys of admitted nodes */
    bool admits_all;                        /* lock: the ring is open; admitted are then those removed */
    int mapping;                            /* lock: of the charter; -1: there is none */
    struct buf text;                        /* lock: the copy, as JSON */
    struct transport_shown shown;           /* lock: likewise, for pages */
    struct address address;                 /* lock */
    struct address listening;               /* before the loop runs; then it stays, as the next */
    struct address second;                  /* where others reach it, too; port 0: nowhere */
    struct transport_post from_disk;        /* lock */
    struct transport_post to_disk;          /* lock */
    struct transport_later later_to_disk;   /* lock */
    bool has_membership_to_write;           /* lock; the membership itself is then fixed */
    bool is_kept;                           /* lock: the first charter is on the disk; see is_to_begin */
    struct peer kept[RING_FILES_PEERS_MAX]; /* lock: peers to write */
    size_t kept_count;                      /* lock; 0: nothing to write */

    /* The beat's. */
    bool has_write_failed; /* the last time */
    struct stat seen;      /* of the charter's file */
    struct transport_post post;
    struct transport_later later_post;
};

static inline uint64_t transport_now_us(const struct transport *transport) {
    return clock_monotonic_us(transport->config.clock);
}

/* transport_loop.c: the time is set, and what follows from it is done. */
void transport_step(struct transport *transport, struct event *event);
void transport_on_wake(void *context);

void transport_begin(struct transport *transport);
void transport_note(struct transport *transport, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void transport_on_message(void *context, const struct datagram_message *message);
void transport_receive_greeting(void *context, const struct datagram_message *message);
void transport_receive_ring(void *context, const struct datagram_message *message);
void transport_on_refusal(void *context, const struct datagram_refusal *refusal);
void transport_on_noise(void *context, const struct address *from, enum datagram_noise noise);
void transport_on_learned(void *context, const struct peer *from, const struct charter *charter,
                          struct bytes encoded);
void transport_on_learned_later(void *context, uint32_t version, struct bytes encoded);
bool transport_keeps_later(void *context, const struct peer *peer);
bool transport_reads_stewards(void *context, const struct peer *peer);
bool transport_is_known(void *context, const struct peer *peer);
void transport_on_admitted(void *context, const uint8_t key[PEER_KEY_SIZE],
                           const struct membership *membership);
void transport_on_met(void *context, const struct peer *peer);
void transport_on_complaint(void *context, const char *sentence);
void transport_complain(struct transport *transport, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void transport_take_charter(struct transport *transport, const struct charter *charter, struct bytes encoded);
void transport_on_kept(struct transport *transport); /* what was learned first is on the disk */
void transport_on_tick(void *transport);

/* transport_ask.c, on the loop: start the questions that there is room for; RING_FOUND or RING_LOST; the end.
 */
void transport_ask_init(struct transport *transport);
void transport_start_questions(void *transport);
void transport_on_answer(struct transport *transport, struct bytes bytes);
void transport_ask_cancel(struct transport *transport);

/* transport.c, on the loop. */
void transport_share_charter(struct transport *transport);

/* Tenants are told of a membership that was found good, also of our own. */
void transport_share_membership(struct transport *transport, const uint8_t key[PEER_KEY_SIZE],
                                const struct membership *membership);
void transport_share_admitted(struct transport *transport, const struct peer *peer);

/* transport_loop.c: without the port, once a second: it sends what is not this. */
void transport_blame_noise(struct transport *transport, const struct address *address, const char *not_this);

/*
 * transport_hello.c, on the loop. DATAGRAM_HELLO came. May something else be said to this node? It is told
 * what we speak if it does not know. May something else that came from it be heard? And now and then: those
 * that the ring knows.
 */
void transport_receive_hello(void *context, const struct datagram_message *message);
bool transport_speaks(void *context, const struct peer *to);
struct address transport_route(void *context, const struct peer *to); /* of two addresses, the one to use */

/* What we send there comes from our second address, if it is of the other family. Does the node know that? */
bool transport_is_recognized(struct transport *transport, const struct peer *to);

/* Of two addresses, the one of its places. False: it has not shown yet that it is there, and is asked. */
bool transport_find_main(struct transport *transport, const struct peer *from, struct peer *ret_main);
bool transport_hears(struct transport *transport, const struct peer *from);
void transport_meet_others(struct transport *transport);

/* Any thread: what the node speaks, in words. Returns out. */
const char *transport_describe(struct transport *transport, const struct peer *peer,
                               char out[DIALECTS_TEXT_SIZE_MAX]);

/* The nodes of the ring, and what each speaks. */
void transport_put_nodes(struct transport *transport, struct json *json);

/* transport_text.c: make the copy. */
void transport_copy(struct transport *transport);

/* The places of others that the ring leans on: neighbours first, then fingers; no two of one node. */
size_t transport_peers(const struct transport *transport, struct peer out[RING_FILES_PEERS_MAX]);

#endif
