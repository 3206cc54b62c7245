/*
 * gate - which nodes this one talks to: it shows its membership to others, judges theirs, and learns new
 * charters.
 *
 *      message of the ring ─ gate_admits() ─ a member ──────────────────────────────> the ring
 *                                          └ unknown: HELLO, "and who are you?"       dropped, asked again
 *      HELLO ─ judged by the charter ─ good: remembered; else REFUSE                  both sides are told
 *            └ its version is higher ─ ASK, PIECE, ASK, PIECE … ─ signature ────────> learned()
 *
 * In an open ring every node is admitted that has not been removed, and none need show anything. Under a new
 * charter every node is judged again. Memory is bounded: strangers push out strangers only.
 * docs/protocol/charter.md. All functions belong to the loop's thread; no disk.
 */
#ifndef MNEMON_NODE_TRANSPORT_GATE_H
#define MNEMON_NODE_TRANSPORT_GATE_H

#include "base/clock.h"
#include "base/lru.h"
#include "net/datagram.h"
#include "protocol/ring/greeting.h"

struct gate;

struct gate_config {
    const struct identity *identity;
    struct datagram *datagram;
    const struct clock *clock;
    struct membership membership; /* ours */

    /* A charter came, signed by its founder: the first one, or one that succeeds ours. */
    void (*learned)(void *context, const struct peer *from, const struct charter *charter,
                    struct bytes encoded);
    /* The ring has a charter of a later layout, which can only be passed on. */
    void (*learned_later)(void *context, uint32_t version, struct bytes encoded);
    /* Does this node keep such charters? NULL: no. */
    bool (*keeps_later)(void *context, const struct peer *peer);
    /* Can this node read a charter of layout 2? And has it said what it can, or is known to say nothing?
     * NULL: it can. */
    bool (*reads_stewards)(void *context, const struct peer *peer);
    bool (*is_known)(void *context, const struct peer *peer);
    /* A node has shown a membership that is good. NULL: nobody wants to know. */
    void (*admitted)(void *context, const uint8_t key[PEER_KEY_SIZE], const struct membership *membership);
    /* A node spoke: its address now has a key. */
    void (*met)(void *context, const struct peer *peer);
    /* May something be said to this node, in a version that both speak? NULL: always. */
    bool (*speaks)(void *context, const struct peer *to);
    /* For people: which node was refused by which, and why. */
    void (*complain)(void *context, const char *sentence);
    void *context;
};

struct gate_stat {
    uint64_t hellos_count;      /* received */
    uint64_t refused_count;     /* by us */
    uint64_t refusals_count;    /* by others */
    uint64_t malformed_count;   /* greetings that are none */
    uint64_t turned_away_count; /* messages of the ring from nodes that have not shown a membership yet */
};

enum err gate_new(const struct gate_config *config, struct gate **ret_gate) MUST_CHECK;
void gate_free(struct gate *gate);

/* From now on this is the charter; encoded as charter_write() gave it. */
void gate_set_charter(struct gate *gate, const struct charter *charter, struct bytes encoded);
/* A charter of a later layout that was kept: it is passed on to nodes that keep such ones. Returns its
 * version; 0: it is none of this ring, or not newer than what there is. */
uint32_t gate_set_later(struct gate *gate, struct bytes encoded);

/* The last charter of layout 1, for nodes that cannot read the one that counts. It must be of this ring, with
 * the founder's signature; otherwise nothing happens. */
void gate_set_plain(struct gate *gate, struct bytes encoded);

void gate_set_membership(struct gate *gate, const struct membership *membership);

/* A message of kind DATAGRAM_CHARTER. */
void gate_receive(struct gate *gate, const struct datagram_message *message);

/* May this one talk to the ring? If not, what follows from it has been done. */
bool gate_admits(struct gate *gate, const struct peer *from);

/* Before a message of the ring goes there: a node that needs to see our membership first is shown it. */
void gate_introduce(struct gate *gate, const struct peer *to);

/* "This is me, and who are you?" */
void gate_greet(struct gate *gate, const struct peer *to);

/* Tell the node, and people here, that there is no version of the protocol that both speak. */
void gate_refuse_version(struct gate *gate, const struct peer *to, const char *sentence);

/*
 * Fetch a charter. wanted: the id of the ring that it must be of, or NULL for any. A fetch that is under way
 * is given up. A key of zeros stands for whoever is at the address.
 */
void gate_fetch(struct gate *gate, const struct peer *from, const uint8_t *wanted);

bool gate_is_fetching(const struct gate *gate);

/* Now and then, some times a second: what got no answer is asked again. */
void gate_tick(struct gate *gate);

const struct gate_stat *gate_stat(const struct gate *gate);

#endif
