/*
 * peerfuzz - a member of a ring that speaks every message between nodes, mostly wrong: for the tests.
 *
 * It has a true identity and a true invitation, proves its address, seals its datagrams and opens encrypted
 * streams with the object files of the node itself (net/, protocol/), so that what it sends gets past all
 * that keeps strangers out. What it says is drawn by lot from a seed:
 *
 *      peerfuzz.c              the bursts, and what they came to, as JSON
 *      peerfuzz_talk.c         datagrams: who it is, sealing, answers to what the node asks
 *      peerfuzz_messages.c     the contents of datagrams, family by family, kind by kind
 *      peerfuzz_stream.c       streams: handshake, frames, questions and answers, and all of these broken
 *      peerfuzz_questions.c    the contents of questions, service by service
 *      mutate.c                what is done to them
 *
 * Some messages go as they were made, with random fields; most are changed in a few places. Each kind is
 * counted: how many the decoder takes and how many it refuses. Of datagrams its own decoder says so, which is
 * the node's; of questions the answer does.
 */
#ifndef MNEMON_TESTS_SYSTEM_PEERFUZZ_H
#define MNEMON_TESTS_SYSTEM_PEERFUZZ_H

#include <stdio.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/ringkey.h"
#include "mutate.h"
#include "net/datagram.h"
#include "node/rpc/peer_rpc.h"
#include "protocol/group/group_message.h"
#include "protocol/mirror/version.h"
#include "protocol/ring/dialect.h"
#include "protocol/ring/greeting.h"

enum {
    PEERFUZZ_KEYS_MAX = 32,
    PEERFUZZ_SURT_SIZE_MAX = 256,
    PEERFUZZ_PEERS_MAX = 16,
    PEERFUZZ_KINDS_MAX = 32, /* of a family, and services */
    PEERFUZZ_POOL_MAX = 16,
};

/* What became of the messages of one kind. */
struct peerfuzz_tally {
    uint64_t sent;
    uint64_t taken;
    uint64_t refused;
};

/* Messages of one family that were sound, to replay and to take parts from. */
struct peerfuzz_pool {
    size_t count;
    size_t sizes[PEERFUZZ_POOL_MAX];
    uint8_t bytes[PEERFUZZ_POOL_MAX][DATAGRAM_PAYLOAD_SIZE_MAX];
};

enum peerfuzz_family_index {
    PEERFUZZ_RING,
    PEERFUZZ_CHARTER,
    PEERFUZZ_LINKS,
    PEERFUZZ_CROWD,
    PEERFUZZ_GROUP,
    PEERFUZZ_HELLO,
    PEERFUZZ_FAMILIES_COUNT,
};

struct peerfuzz {
    struct prng prng; /* of this turn: see peerfuzz_turn() */
    uint64_t seed;
    uint64_t turns_count;
    uint64_t answers_count;
    struct sha256 sha256;
    struct links_code *links;

    /* Who it is. */
    struct identity identity;
    struct charter charter;
    uint8_t charter_memory[CHARTER_SIZE_MAX];
    struct bytes charter_bytes;
    uint8_t ring[CHARTER_ID_SIZE];
    struct membership membership;
    struct peer self;
    struct peer node;

    /* Datagrams. */
    int udp;
    struct seal_keys keys;
    struct seal_life life;
    bool is_greeted; /* the node has taken it for a member */
    uint64_t tokens[PEERFUZZ_FAMILIES_COUNT];
    uint64_t received;
    struct peerfuzz_pool pools[PEERFUZZ_FAMILIES_COUNT]; /* what it said of its own accord */
    struct peerfuzz_pool heard[PEERFUZZ_FAMILIES_COUNT];
    struct peerfuzz_tally datagrams[PEERFUZZ_FAMILIES_COUNT][PEERFUZZ_KINDS_MAX];
    struct peerfuzz_tally replays; /* said before, sealed anew */
    struct peerfuzz_tally seals;   /* replayed, forged, cut: the node must drop them */

    /* What it has learnt of the node. */
    size_t peers_count;
    struct peer peers[PEERFUZZ_PEERS_MAX];
    size_t captures_count;
    struct ringkey ringkeys[PEERFUZZ_KEYS_MAX];
    uint8_t surts[PEERFUZZ_KEYS_MAX][PEERFUZZ_SURT_SIZE_MAX];
    size_t surt_sizes[PEERFUZZ_KEYS_MAX];
    bool has_collection;
    struct version version;
    uint8_t statement[VERSION_SIZE_MAX];
    size_t statement_size;
    struct group_version group_held;
    uint8_t group[GROUP_ID_SIZE];
    const char *group_name;
    const char *collection_name;

    /* Streams. */
    struct peerfuzz_tally questions[PEER_RPC_SERVICES_COUNT + 1]; /* and of a service that is none */
    struct peerfuzz_tally streams;                                /* refused: ended by the node */
    uint64_t unanswered;                                          /* questions on a stream that stayed open */
};

/* A sound hello, of versions that the node speaks, too. Into DIALECT_HELLO_SIZE_MAX. */
struct bytes peerfuzz_make_hello(struct peerfuzz *fuzz, uint8_t *memory);

void peerfuzz_must(bool is_well, const char *what);

/* Each message, or stream, of its own accord is a turn, with a generator of its own: what the node says
 * between two of them, and when, changes neither. */
void peerfuzz_turn(struct peerfuzz *fuzz);

/* ---- peerfuzz_messages.c ---- */

struct peerfuzz_family {
    const char *name;
    enum datagram_kind datagram;
    uint8_t kinds_count;
    const char *kinds[PEERFUZZ_KINDS_MAX];
    /* A sound message. number: of the question that it answers. */
    struct bytes (*make)(struct peerfuzz *fuzz, unsigned kind, uint64_t number,
                         uint8_t memory[STEP_MESSAGE_SIZE_MAX]);
    bool (*takes)(struct peerfuzz *fuzz, struct bytes bytes);
    /* Learn from what the node says; true: answer it with a message of *ret_kind. */
    bool (*hear)(struct peerfuzz *fuzz, struct bytes bytes, unsigned *ret_kind, uint64_t *ret_number);
};

extern const struct peerfuzz_family peerfuzz_families[PEERFUZZ_FAMILIES_COUNT];

struct peer peerfuzz_some_peer(struct peerfuzz *fuzz);

/* ---- peerfuzz_talk.c ---- */

/* Bind, ask for the node's key, show the membership; returns when the node has taken it. */
void peerfuzz_meet(struct peerfuzz *fuzz);

/* One datagram, whatever it is. */
void peerfuzz_send_something(struct peerfuzz *fuzz);

/* Hear what the node says, and answer; waits until it has read what was sent. */
void peerfuzz_listen(struct peerfuzz *fuzz);

/* ---- peerfuzz_questions.c ---- */

/* A sound question to a service. */
void peerfuzz_put_question(struct peerfuzz *fuzz, unsigned service, struct buf *out);

/* ---- peerfuzz_stream.c ---- */

/* Captures and the collection that the node has, by asking for them as any node would. */
void peerfuzz_learn(struct peerfuzz *fuzz);

/* So many questions on one stream, or on as many as it takes. */
void peerfuzz_ask(struct peerfuzz *fuzz, unsigned count);

/* One stream that is none, or that ends badly. */
void peerfuzz_break_stream(struct peerfuzz *fuzz);

/* Thousands of questions at once. */
void peerfuzz_flood(struct peerfuzz *fuzz);

#endif
