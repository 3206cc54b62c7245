/*
 * datagram - the node's UDP socket: sealed messages to and from peers, on the loop.
 *
 *      recvmsg ─ rate of the address ─ plain? (plain.h) ─ sealed: sessions_open() ─ contacts ─> on_message
 *      datagram_send ─ contacts: may it go there? ─ sealed ─> sendmsg, or dropped
 *
 * A message is delivered at most once, comes from the owner of the key it names, and was sent within the
 * clock skew allowed. It may be lost, and come in any order. Nothing ever waits: what the socket does not
 * take is dropped and counted, as the network would.
 *
 * A peer whose key is zeros is "whoever is at that address": it is asked for its key first (WHO), and a few
 * messages wait for the answer. An address that sends authentic messages is asked for a proof (CHALLENGE,
 * answered by PROOF) so that it may get long answers; see contacts.h.
 *
 * A refusal, by either side, is told to the owner for people to see; it changes nothing.
 * All functions belong to the loop's thread. docs/protocol/transport.md.
 */
#ifndef MNEMON_NET_DATAGRAM_H
#define MNEMON_NET_DATAGRAM_H

#include <uv.h>

#include "base/clock.h"
#include "net/contacts.h"
#include "net/plain.h"
#include "net/sessions.h"

enum {
    DATAGRAM_PAYLOAD_SIZE_MAX = 1172, /* with SEAL_OVERHEAD and the headers of IPv6 and UDP (48): 1,280 */
    DATAGRAM_SIZE_MAX = DATAGRAM_PAYLOAD_SIZE_MAX + SEAL_OVERHEAD,
};

/* The low half of a datagram's first byte; the values are on the wire. 0 to 2: plain.h. */
enum datagram_kind {
    DATAGRAM_CHALLENGE = 3, /* contents: a cookie */
    DATAGRAM_PROOF = 4,     /* contents: the cookie that came */
    DATAGRAM_RING = 8,      /* the owner's kinds begin here */
    DATAGRAM_HELLO = 9,     /* docs/protocol/versions.md */
    DATAGRAM_CHARTER = 10,  /* docs/protocol/charter.md */
    DATAGRAM_LINKS = 11,    /* docs/protocol/links.md */
    DATAGRAM_CROWD = 12,    /* docs/protocol/crowd.md */
    DATAGRAM_GROUP = 13, /* docs/protocol/group.md; this one and later ones are of groups, not of the ring */
    DATAGRAM_KINDS_COUNT,
};

struct datagram;

struct datagram_message {
    struct peer from;
    enum datagram_kind kind; /* DATAGRAM_RING or later */
    struct bytes bytes;      /* borrowed for the call */
};

struct datagram_refusal {
    struct peer peer; /* a key of zeros if only the address is known */
    bool is_by_us;    /* we refused what it sent; else it refused what we sent */
    uint8_t reason;   /* plain_reason_name() */
    uint8_t version;  /* of the other side; 0 if it is not known */
    int64_t ahead_us; /* its clock before ours; meaningful for PLAIN_REASON_CLOCK */
};

/* What was dropped unread; the address may be made up. */
enum datagram_noise {
    DATAGRAM_NOISE_LIMITED,   /* too often */
    DATAGRAM_NOISE_MALFORMED, /* no datagram of ours */
    DATAGRAM_NOISE_FORGED,    /* not sealed by the node that it names */
    DATAGRAM_NOISES_COUNT,
};

struct datagram_stats {
    uint64_t received;
    uint64_t received_bytes;
    uint64_t delivered;
    uint64_t sent;
    uint64_t sent_bytes;
    uint64_t dropped;                       /* the socket was full, or the system said no */
    uint64_t unproved;                      /* not sent: the address has not proved itself */
    uint64_t unknown;                       /* not sent: nobody told us the key of that address in time */
    uint64_t limited;                       /* came too often from one address */
    uint64_t malformed;                     /* too long, of an unknown kind, a plain one that is none */
    uint64_t verdicts[SEAL_VERDICTS_COUNT]; /* of the sealed ones: forged, replayed … */
    uint64_t refused_by_us;                 /* REFUSE sent */
    uint64_t refused_by_others;             /* REFUSE that answers something of ours */
    uint64_t challenges;                    /* sent */
    uint64_t proofs;                        /* addresses that proved themselves */
};

/* 0 stands for the default in parentheses. */
struct datagram_config {
    uv_loop_t *loop;
    const struct clock *clock;       /* (clock_system) */
    const struct identity *identity; /* borrowed until datagram_free() */
    struct address address;          /* to bind; port 0: any */
    struct sessions_config sessions;
    struct contacts_config contacts;
    struct bucket_rate
        address_rate; /* (20,000 a second, 20,000 at once) datagrams of one address (IPv6: /64) */
    /* Where a peer with a key is reached now, if not at the address that it is known by. May be NULL. */
    struct address (*route)(void *context, const struct peer *to);
    void (*on_message)(void *context, const struct datagram_message *message);
    void (*on_refusal)(void *context, const struct datagram_refusal *refusal); /* may be NULL */
    /* For people: one a second at most. May be NULL. */
    void (*on_noise)(void *context, const struct address *from, enum datagram_noise noise);
    void *context;
};

enum err datagram_new(const struct datagram_config *config, struct datagram **ret_datagram,
                      struct err_detail *detail) MUST_CHECK;

/* No more callbacks. The memory goes when the loop has run once more. Not from inside a callback. */
void datagram_free(struct datagram *datagram);

/* What it is bound to, with the port that it got. */
struct address datagram_address(const struct datagram *datagram);

/*
 * Seal and send, at most DATAGRAM_PAYLOAD_SIZE_MAX bytes of an owner's kind. ERR_OK: it left, or waits for
 * the key of that address. ERR_LIMIT: the address has not proved itself, try again after a moment. ERR_BUSY:
 * the socket is full. ERR_INVALID: no key, our own, or port 0. ERR_UNREACHABLE: the system says so.
 */
enum err datagram_send(struct datagram *datagram, const struct peer *to, enum datagram_kind kind,
                       struct bytes message);

const struct datagram_stats *datagram_stats(const struct datagram *datagram);

#endif
