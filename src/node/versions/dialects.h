/*
 * dialects - what the nodes that this one has met speak (protocol/ring/dialect.h), and what follows from it.
 *
 *      a hello came, by datagram or stream ──> dialects_hear()
 *      a stream said that it knows no hello ─> dialects_hear_none()
 *      before something goes to a node ──────> dialects_judge(): may we talk, and in which version?
 *                                              dialects_has(): does it understand this?
 *
 * A node that has said nothing yet counts as one of version 1 without features. If this node does not speak
 * version 1, it waits for the other's hello before it says anything else. Memory is bounded: the node that
 * was not dealt with for longest is forgotten, and says hello again when it is met. Any thread; never waits.
 */
#ifndef MNEMON_NODE_VERSIONS_DIALECTS_H
#define MNEMON_NODE_VERSIONS_DIALECTS_H

#include "base/clock.h"
#include "base/peer.h"
#include "protocol/ring/dialect.h"

struct dialects;

enum { DIALECTS_MAX = 20000, DIALECTS_TEXT_SIZE_MAX = 160, DIALECTS_SITE_SIZE_MAX = 48 };

enum dialects_verdict {
    DIALECTS_SPEAK,
    DIALECTS_WAIT,   /* for its hello: until then there is nothing to say but ours */
    DIALECTS_REFUSE, /* there is no version that both speak */
};

/* What is known of a node. */
struct dialects_known {
    bool is_known; /* else it has said nothing yet */
    bool is_said;  /* by itself; else it does not know hellos */
    struct dialect dialect;
    uint16_t version; /* that is spoken with it; 0: none */
};

/* own: copied. clock: NULL: the system's. NULL: out of memory. */
struct dialects *dialects_new(const struct dialect *own, const struct clock *clock);
void dialects_free(struct dialects *dialects);

const struct dialect *dialects_own(const struct dialects *dialects);

/*
 * Two addresses. A node that is reached by IPv4 and by IPv6 tells both; its places follow from the main one.
 * Before anything else: which families this node can send to, and its own second address (port 0: none).
 */
void dialects_set_ways(struct dialects *dialects, bool has_ipv4, bool has_ipv6, const struct address *main,
                       const struct address *second);
bool dialects_has_way(const struct dialects *dialects, const struct address *address);

/* Where to send to a node: its second address if it told one and there is no way to the main one. */
struct address dialects_route(struct dialects *dialects, const struct peer *to);

/*
 * Whose word is this: that of the node at *ret_main, though it may have come from the second address. The
 * place on the ring follows from the main one and is not to be chosen: so the node must have said both from
 * there, if there is a way from there to here. False: it has not yet; ask it at *ret_main.
 */
bool dialects_find_main(struct dialects *dialects, const struct peer *from, struct address *ret_main);

/* The version that is spoken with it from now on; 0: none, the node is to be refused. */
uint16_t dialects_hear(struct dialects *dialects, const struct peer *peer, const struct dialect *dialect);
uint16_t dialects_hear_none(struct dialects *dialects, const struct peer *peer);

/* It said something else. A node that goes on so after several of our hellos does not know them. */
void dialects_hear_other(struct dialects *dialects, const struct peer *peer);

/* A key of zeros: whoever is at that address, as far as it has said hello lately. */
enum dialects_verdict dialects_judge(struct dialects *dialects, const struct peer *peer);
struct dialects_known dialects_find(struct dialects *dialects, const struct peer *peer);

/* Does the node understand it? One that has said nothing does not. */
bool dialects_has(struct dialects *dialects, const struct peer *peer, enum dialect_feature feature);

/* At which site it stands: the name that it says, else its network, "192.0.0.0/16" or "2001:db8::/48". self:
 * this node. Returns out. */
const char *dialects_site(struct dialects *dialects, const struct peer *peer, bool is_self,
                          char out[DIALECTS_SITE_SIZE_MAX]);

/*
 * Should this node be told now what we speak? True at the first time; if it does not say in turn what it
 * speaks, again after a second, two, four … up to ten minutes. Whoever asks and hears yes, does it.
 */
bool dialects_take_turn(struct dialects *dialects, const struct peer *peer);

/* May its question be answered? Once a second. */
bool dialects_may_answer(struct dialects *dialects, const struct peer *peer);

/* Why it is refused: "it speaks version 3 of the protocol, this node 1 to 2". Returns out. */
const char *dialects_explain(struct dialects *dialects, const struct peer *peer,
                             char out[DIALECTS_TEXT_SIZE_MAX]);

/* "0.3.0, protocol 1 to 2"; "0.2 or earlier, protocol 1"; "not known yet". Returns out. */
const char *dialects_describe(const struct dialects_known *known, char out[DIALECTS_TEXT_SIZE_MAX]);

#endif
