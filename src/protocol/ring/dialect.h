/*
 * dialect - what a node speaks: a range of versions of the protocol, and features beyond them. Pure.
 *
 *      node A   1 ── 2                    A and B speak 2, A and C cannot talk to each other
 *      node B   1 ── 2 ── 3               a node that says nothing of this speaks version 1 and has no
 *      node C             3 ── 4          features: program 0.2 and earlier
 *
 * A feature is a bit that says "I understand this", never "I want this": whoever does not know a bit ignores
 * it, and nothing that needs a feature is sent to a node without it. Which bits and versions there are, and
 * how to add one: docs/protocol/versions.md.
 *
 * The hello that carries it has the same form in every version, so that nodes with nothing else in common can
 * still tell each other why. Later programs append fields; a reader passes over those that it does not know.
 */
#ifndef MNEMON_PROTOCOL_RING_DIALECT_H
#define MNEMON_PROTOCOL_RING_DIALECT_H

#include "base/address.h"
#include "base/bytes.h"
#include "base/err.h"

/* Versions of the protocol that this program knows. */
enum {
    DIALECT_VERSION_FIRST = 1, /* of all that say nothing */
    DIALECT_VERSION_HELLO = 2, /* a stream begins with a hello */
    DIALECT_VERSION_LOWEST = DIALECT_VERSION_FIRST,
    DIALECT_VERSION_HIGHEST = DIALECT_VERSION_HELLO,
};

enum {
    DIALECT_PROGRAM_SIZE_MAX = 32,
    DIALECT_SITE_SIZE_MAX = 32,
    DIALECT_FIELD_SIZE_MAX = 255,
    DIALECT_HELLO_SIZE_MAX = 512, /* of one that is read, with fields of later programs */
};

/* The numbers of the bits are on the wire. */
enum dialect_feature {
    DIALECT_CAPTURES,    /* service 15: many captures in one answer */
    DIALECT_DELETIONS,   /* decrees of kind 3 */
    DIALECT_KEEPS_LATER, /* passes on what it cannot read: signatures, decrees and charters of later programs
                          */
    DIALECT_SITES,     /* chooses holders so that not all copies are at one site, if all members have this */
    DIALECT_TLS,       /* streams in TLS (net/tls.h); what is encrypted otherwise carries hellos only */
    DIALECT_WITNESSES, /* lists of captures that say which are of one visit of several nodes */
    DIALECT_STEWARDS =
        7, /* charters, invitations and decrees that several stewards have signed; service 21 */
    DIALECT_TWO_ADDRESSES = 8, /* a node is also who it is at the second address that it told */
    DIALECT_RELAY = 9,         /* the crowd's relay of light members, if they want it: services 17 and 18 */
    DIALECT_PROVENANCE =
        10, /* lists of captures that say which node vouches for them; service 20; decrees of kind 10 */
    DIALECT_REPORTS = 11, /* service 22: what all nodes say of themselves */
    DIALECT_SEARCH = 12,  /* service 19: full text */
    DIALECT_FEATURES_COUNT,
};

struct dialect {
    uint16_t lowest; /* at least 1 */
    uint16_t highest;
    uint64_t features;                          /* bits of enum dialect_feature, and others */
    char program[DIALECT_PROGRAM_SIZE_MAX + 1]; /* its version, for people: letters, digits, . - + ~ _ */
    char site[DIALECT_SITE_SIZE_MAX + 1];       /* where it stands, likewise; empty: its network */
    bool has_two;                               /* it is reached by IPv4 and by IPv6: */
    struct address main;                        /* of its places on the ring */
    struct address second;                      /* of the other family */
};

/* What this program speaks; its version is the caller's to add. */
extern const struct dialect dialect_of_program;

/* What a node speaks that says nothing of it. */
extern const struct dialect dialect_of_silence;

/* What a site may be called: 1 to 32 letters, digits, . - + ~ _ */
bool dialect_site_is_valid(struct bytes name);

/* May a program call its version so? At most 32 letters, digits, . - + ~ _; it may be empty. */
bool dialect_program_is_valid(struct bytes program);

/* "deletions"; NULL: a feature that this program does not know. */
const char *dialect_feature_name(unsigned feature);

static inline bool dialect_has(const struct dialect *dialect, enum dialect_feature feature) {
    return (dialect->features >> feature & 1) != 0;
}

/* The highest version that both speak; 0: there is none. */
uint16_t dialect_common(const struct dialect *a, const struct dialect *b);

/* wants_answer: the other should say hello, too. Returns what was written. */
struct bytes dialect_write_hello(const struct dialect *dialect, bool wants_answer,
                                 uint8_t out[DIALECT_HELLO_SIZE_MAX]);

enum err dialect_read_hello(struct bytes input, struct dialect *ret_dialect, bool *ret_wants_answer,
                            struct err_detail *detail) MUST_CHECK;

#endif
