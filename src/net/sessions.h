/*
 * sessions - the peers whose keys we have computed, and what of theirs has come before.
 *
 * A datagram is opened in this order; each step is cheaper to pass than to attack:
 *
 *      version     another one: told so
 *      keys        cached, else computed (X25519), of strangers only so many a second
 *      tag         nothing below happens for a forger
 *      clock       its time is at most skew_us_max from ours
 *      life        the same salt as before: its counter must be new (arrivals.h)
 *                  another one: a restart, believed if its counter is above all that came before; else
 *                  "stale": it may be a replay, and only a proof (contacts.h) makes it the peer's life
 *
 * So that forgetting is safe too, whatever came before our own start or from a session that was thrown out
 * lies below `floor`, and a life that is not above it is stale. A salt that was given up never returns while
 * its session is remembered.
 *
 * Guests are sessions of strangers. They have a table of their own, so that whoever makes up keys throws out
 * other strangers, not the peers that have proved an address. Owned by one thread; no I/O, the time is given.
 */
#ifndef MNEMON_NET_SESSIONS_H
#define MNEMON_NET_SESSIONS_H

#include "base/bucket.h"
#include "base/lru.h"
#include "net/arrivals.h"
#include "net/seal.h"

enum { SESSION_RETIRED_COUNT = 4 };

struct session {
    uint8_t key[PEER_KEY_SIZE];
    struct seal_keys keys;
    struct bucket bucket;
    bool is_known; /* has proved an address */
    bool has_life; /* salt and arrivals mean something */
    uint32_t salt;
    uint32_t retired[SESSION_RETIRED_COUNT]; /* salts of former lives, a ring */
    uint32_t retired_count;                  /* ever */
    struct arrivals arrivals;
};

/* 0 stands for the default in parentheses. */
struct sessions_config {
    uint32_t known_max;           /* (1,024) */
    uint32_t guests_max;          /* (256) */
    uint64_t skew_us_max;         /* (10 minutes) */
    struct bucket_rate strangers; /* (1,000 a second, at most 500 at once) keys to compute */
    struct bucket_rate peer_rate; /* (20,000 a second, 20,000 at once) datagrams of one peer */
};

struct sessions {
    const struct identity *identity;
    struct sessions_config config;
    struct seal_life life; /* ours */
    struct lru known;      /* key: struct session */
    struct lru guests;
    struct bucket strangers;
    uint64_t floor;
};

/* Why a datagram was, or was not, opened. */
enum seal_verdict {
    SEAL_FRESH,
    SEAL_SHORT,    /* no room for a head and a tag */
    SEAL_OTHER,    /* of another version */
    SEAL_STRANGE,  /* too many unknown keys at the moment */
    SEAL_FORGED,   /* the tag does not fit, or the key is none */
    SEAL_CLOCK,    /* authentic, but its time is too far from ours */
    SEAL_REPLAYED, /* authentic, but it came before, or may have */
    SEAL_STALE,    /* authentic, of a life that must be proved */
    SEAL_FLOOD,    /* authentic, but too many of this peer */
    SEAL_VERDICTS_COUNT,
};

struct sessions_opened {
    struct seal_head head;
    struct session *session; /* NULL unless fresh or stale; until the next call of any function here */
    struct bytes payload;    /* in out */
};

struct sessions_now {
    uint64_t monotonic_us;
    int64_t wall_us;
};

/* The identity is borrowed. */
enum err sessions_init(struct sessions *sessions, const struct identity *identity,
                       const struct sessions_config *config, int64_t wall_us) MUST_CHECK;
void sessions_done(struct sessions *sessions);

/* Open a datagram into out, which has room for datagram.size. */
enum seal_verdict sessions_open(struct sessions *sessions, struct bytes datagram, struct sessions_now now,
                                uint8_t *out, struct sessions_opened *ret_opened);

/* A stale life was proved by the datagram with this head: from now on it is the peer's. */
void session_adopt(struct session *session, const struct seal_head *head);

/* The session with this key; made if there is none. NULL if the key is none, or our own. */
struct session *sessions_with(struct sessions *sessions, const uint8_t key[PEER_KEY_SIZE]);

/* It has proved an address: strangers cannot push it out. */
void sessions_know(struct sessions *sessions, const uint8_t key[PEER_KEY_SIZE]);

/* Seal for the peer; returns the size, payload.size + SEAL_OVERHEAD. */
size_t sessions_seal(struct sessions *sessions, const struct session *session, uint8_t kind,
                     struct bytes payload, int64_t wall_us, uint8_t *out);

#endif
