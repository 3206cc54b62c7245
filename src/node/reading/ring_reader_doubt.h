/*
 * ring_reader_doubt - captures that were listed and that no node could give, the nodes that listed them, and
 * silent nodes.
 *
 * For a minute such a capture is left out of all walks, so that the next nearest is found in its place; and
 * the node that listed it does not answer for the other holders any more, but is only one of them. A node
 * that listed several is not asked for listings at all. It is no judgement: a holder may have lost what it
 * lists. A lie that can be proved is blamed where it is found (node/captures/captures.h). A node that did not
 * answer is not asked again for ten seconds, so that not every walk waits for it.
 *
 * Bounded, as base/standing.h is. Any thread.
 */
#ifndef MNEMON_NODE_READING_RING_READER_DOUBT_H
#define MNEMON_NODE_READING_RING_READER_DOUBT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/peer.h"
#include "base/standing.h"

enum {
    RING_READER_DOUBT_CAPTURES_MAX = 4096,
    RING_READER_DOUBT_PEERS_MAX = 512,
    RING_READER_DOUBT_LISTED_MAX = 3, /* in vain within the minute; then the node is not asked */
};

enum ring_reader_trust {
    RING_READER_BELIEVED,
    RING_READER_DOUBTED, /* not alone */
    RING_READER_PASSED_OVER,
};

struct ring_reader_doubts {
    pthread_mutex_t lock;
    struct standing captures;        /* lock: by number */
    struct standing peers;           /* lock: by key */
    _Atomic(uint64_t) last_until_us; /* nothing is doubted after it */
    struct standing_entry capture_entries[RING_READER_DOUBT_CAPTURES_MAX];
    struct standing_entry peer_entries[RING_READER_DOUBT_PEERS_MAX];
};

/* In zeroed memory. */
void ring_reader_doubts_init(struct ring_reader_doubts *doubts, uint64_t seed);
void ring_reader_doubts_done(struct ring_reader_doubts *doubts);

/* Nobody could give it. lister: the node that listed it last; NULL: not known. */
void ring_reader_doubts_add(struct ring_reader_doubts *doubts, uint64_t number, const struct peer *lister,
                            uint64_t now_us);

bool ring_reader_doubts_has(struct ring_reader_doubts *doubts, uint64_t number, uint64_t now_us);

enum ring_reader_trust ring_reader_doubts_trust(struct ring_reader_doubts *doubts, const struct peer *peer,
                                                uint64_t now_us);

/* Those that are believed come first, in their order; the rest after them in any. Returns how many they are.
 */
size_t ring_reader_doubts_sort(struct ring_reader_doubts *doubts, struct peer *peers, size_t count,
                               uint64_t now_us);

/* It did not answer; and did it, a short while ago? */
void ring_reader_doubts_note_silent(struct ring_reader_doubts *doubts, const struct peer *peer,
                                    uint64_t now_us);
bool ring_reader_doubts_is_silent(struct ring_reader_doubts *doubts, const struct peer *peer,
                                  uint64_t now_us);

#endif
