/* ringing_state - what the files of ringing*.c share. Private to them. */
#ifndef MNEMON_NODE_RINGING_STATE_H
#define MNEMON_NODE_RINGING_STATE_H

#include <pthread.h>
#include <sys/stat.h>

#include "net/dns.h"
#include "net/identity.h"
#include "node/complaints.h"
#include "node/gate.h"
#include "node/ring_files.h"
#include "node/ringing.h"
#include "ring/ring.h"

enum {
    RINGING_HOST_SIZE_MAX = 256,
    RINGING_TICK_MS = 250,
    RINGING_TEXT_SIZE_MAX = 8 << 20,
    RINGING_SENTENCE_SIZE_MAX = 512,
};

enum ringing_state {
    RINGING_NONE,    /* in no ring, and not told to join one */
    RINGING_LOOKING, /* for the address of the contact */
    RINGING_ASKING,  /* for the charter */
    RINGING_JOINING,
    RINGING_MEMBER,
    RINGING_REMOVED, /* by the founder */
    RINGING_STATES_COUNT,
};

/* --join. */
struct ringing_contact {
    char host[RINGING_HOST_SIZE_MAX]; /* empty: there is none */
    uint16_t port;
    struct dns_question question;
    bool is_found; /* peer.address is known; its key is zeros until he has spoken */
    struct peer peer;
    bool has_spoken;
    uint64_t since_us; /* when he was first asked; 0: not yet */
    uint64_t try_at_us;
    unsigned tries;
    bool is_told; /* that he is silent */
};

/* What travels between the loop and the thread of the beat. */
struct ringing_post {
    bool has_charter; /* to write, or, from the disk, to take */
    struct charter charter;
    uint8_t encoded[CHARTER_SIZE_MAX];
    size_t encoded_size;
};

struct ringing {
    struct ringing_config config;
    struct identity identity;
    struct sha256 sha256;
    bool has_token;
    struct invitation token;
    uint8_t token_seed[INVITATION_SEED_SIZE];
    struct membership membership;
    uint64_t seed;

    /* The loop's. */
    enum ringing_state state;
    bool is_attached;
    bool has_charter;
    struct charter charter;
    uint8_t id[CHARTER_ID_SIZE];
    uint8_t encoded[CHARTER_SIZE_MAX]; /* as it was found at the start */
    size_t encoded_size;
    struct peer self;
    struct datagram *datagram;
    struct gate *gate;
    struct dns *dns;
    struct ring *ring; /* NULL until there is a charter */
    struct outbox out;
    struct action *actions;
    uint8_t *memory;
    uv_timer_t wake; /* of the ring */
    uv_timer_t tick;
    uv_async_t news; /* the beat has read a charter */
    struct ringing_contact contact;
    struct peer remembered[RING_FILES_PEERS_MAX];
    size_t remembered_count;
    uint64_t joined_at_us; /* when we began to join */
    uint64_t join_at_us;   /* next try */
    uint64_t greet_at_us;  /* next look for a newer charter */
    uint64_t copy_at_us;
    uint64_t keep_at_us; /* peers */
    struct complaints complaints;

    pthread_mutex_t lock;
    struct buf text;                        /* lock: the copy */
    struct address address;                 /* lock */
    struct ringing_post from_disk;          /* lock */
    struct ringing_post to_disk;            /* lock */
    bool has_membership_to_write;           /* lock; the membership itself is then fixed */
    struct peer kept[RING_FILES_PEERS_MAX]; /* lock: peers to write */
    size_t kept_count;                      /* lock; 0: nothing to write */

    /* The beat's. */
    struct stat seen; /* of the charter's file */
    struct ringing_post post;
};

/* ringing_loop.c */
void ringing_start(struct ringing *ringing);
void ringing_note(struct ringing *ringing, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ringing_on_message(void *context, const struct datagram_message *message);
void ringing_on_refusal(void *context, const struct datagram_refusal *refusal);
void ringing_on_learned(void *context, const struct peer *from, const struct charter *charter,
                        struct bytes encoded);
void ringing_on_met(void *context, const struct peer *peer);
void ringing_on_complaint(void *context, const struct address *address, const char *sentence);
void ringing_take_charter(struct ringing *ringing, const struct charter *charter, struct bytes encoded);
void ringing_on_tick(uv_timer_t *timer);
void ringing_on_wake(uv_timer_t *timer);

/* ringing_text.c: make the copy. */
void ringing_copy(struct ringing *ringing);

/* The places of others that the ring leans on: neighbours first, then fingers; no two of one node. */
size_t ringing_peers(const struct ringing *ringing, struct peer out[RING_FILES_PEERS_MAX]);

#endif
