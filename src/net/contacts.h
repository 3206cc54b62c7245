/*
 * contacts - which addresses have proved themselves, and how much may be sent to those that have not.
 *
 * The source of a datagram can be made up. An address has proved itself when it returned a cookie that we
 * sent there; until then it gets at most CONTACT_FACTOR times the bytes that came from it, so that nobody can
 * use us to flood a third. An address that we turn to ourselves, from which nothing came yet, gets a few
 * datagrams, and all such addresses together a bounded number a second.
 *
 * Cookies cost no memory: a keyed hash of the address, the peer's key and the time in slices of
 * CONTACT_SLICE_US, of which this and the one before count. A proof lasts for proof_us.
 *
 * No table of standing (base/standing.h): an entry holds a proof and counts bytes, it holds nothing against
 * anybody. As in sessions.h, addresses without a proof are guests and have a table of their own. Owned by one
 * thread; no I/O, the time is given.
 */
#ifndef MNEMON_NET_CONTACTS_H
#define MNEMON_NET_CONTACTS_H

#include "base/bucket.h"
#include "base/lru.h"
#include "base/peer.h"

enum { CONTACT_COOKIE_SIZE = 16, CONTACT_FACTOR = 3, CONTACT_SECRET_SIZE = 32 };
static const uint64_t CONTACT_SLICE_US = 10000000;
static const uint64_t CONTACT_CHALLENGE_US = 1000000; /* between two challenges to one address */

struct contact {
    struct address address;
    uint8_t key[PEER_KEY_SIZE]; /* who proved it last */
    uint64_t proved_until_us;   /* 0: never proved */
    uint64_t heard_at_us;       /* something authentic, or a proof, came last */
    uint64_t challenge_at_us;   /* not before */
    uint64_t received_bytes;    /* since the last proof ended; counts only while unproved */
    uint64_t sent_bytes;
    struct bucket first; /* while nothing came */
};

/* 0 stands for the default in parentheses. */
struct contacts_config {
    uint32_t proved_max;            /* (4,096) */
    uint32_t guests_max;            /* (4,096) */
    uint64_t proof_us;              /* (1 hour) */
    struct bucket_rate first;       /* (2 a second, at most 8 at once) datagrams to one silent address */
    struct bucket_rate first_total; /* (2,000 a second, 2,000 at once) to all of them together */
};

struct contacts {
    struct contacts_config config;
    struct lru proved; /* address: struct contact */
    struct lru guests;
    struct bucket first_total;
    uint8_t secret[CONTACT_SECRET_SIZE];
};

enum err contacts_init(struct contacts *contacts, const struct contacts_config *config) MUST_CHECK;
void contacts_done(struct contacts *contacts);

bool contact_is_proved(const struct contact *contact, uint64_t now_us);

/* The contact, or NULL. Contacts stay valid until the next call that may add or prove one. */
struct contact *contacts_find(struct contacts *contacts, const struct address *address);

/* That many authentic bytes came from there. */
void contacts_received(struct contacts *contacts, const struct address *address, size_t size,
                       uint64_t now_us);

/* May that many bytes go there? They count as sent if the answer is yes. */
bool contacts_may_send(struct contacts *contacts, const struct address *address, size_t size,
                       uint64_t now_us);

/* Should the address be asked for a proof now? Yes at most once in CONTACT_CHALLENGE_US. */
bool contacts_need_proof(struct contacts *contacts, const struct address *address, uint64_t now_us);

/* A key of zeros: for whoever is there. */
void contacts_cookie(const struct contacts *contacts, const struct address *address,
                     const uint8_t key[PEER_KEY_SIZE], uint64_t now_us, uint8_t out[CONTACT_COOKIE_SIZE]);
bool contacts_is_cookie(const struct contacts *contacts, const struct address *address,
                        const uint8_t key[PEER_KEY_SIZE], uint64_t now_us,
                        const uint8_t cookie[CONTACT_COOKIE_SIZE]);

/* The address has returned a cookie; the key is the one found there. */
void contacts_prove(struct contacts *contacts, const struct address *address,
                    const uint8_t key[PEER_KEY_SIZE], uint64_t now_us);

#endif
