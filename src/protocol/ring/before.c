/*
 * before - the places before one of ours: its predecessor, that one's predecessor, and so on.
 *
 * Chord itself needs only the predecessor; a holder of copies of others' keys must know how far back they
 * reach. So each place keeps a chain, learnt like the successor list from the other side: [p] + p's chain,
 * replaced whole from one answer of the predecessor p. It ends before our own place comes round again, or at
 * before_size().
 *
 *      p --- notify, with a digest of p's chain ---> us     ours differs: we ask p for it
 *      us -- ask-before, with a digest of our list --> p    its differs: it stabilizes soon
 *
 * At rest nothing is asked. A change runs along the ring as fast as messages do, the chain forwards and the
 * list backwards, instead of one place a round. The digests are hints and nothing more: a wrong one costs a
 * question. The chain decides nothing in Chord; it is as true as the predecessors' words (holders.c).
 */
#include "protocol/ring/ring_state.h"

enum {
    SLACK_COUNT = 4,       /* places of nodes that are in the chain already */
    ASK_US_LEAST = 200000, /* between two questions, whatever changes */
    HINT_US = 50000,       /* several changes come together */
};

unsigned before_size(const struct ring *ring) {
    unsigned size = ring->config.copies + (unsigned)SLACK_COUNT;
    return size < RING_LIST_MAX ? size : RING_LIST_MAX;
}

static uint64_t before_mix(uint64_t digest, struct ring_id id) {
    return prng_mix(prng_mix(digest ^ id.high) ^ id.low);
}

uint64_t before_digest(const struct ring *ring, const struct chord *chord) {
    uint64_t digest = before_mix(0, chord->predecessor.id);
    unsigned count = 1;
    for (unsigned i = 0; i < chord->before_count && count + 1 < before_size(ring); i++, count++) {
        digest = before_mix(digest, chord->before[i].id);
    }
    return digest;
}

/* What before_digest() of our predecessor gives if our chain is up to date. */
static uint64_t expected_digest(const struct chord *chord) {
    uint64_t digest = 0;
    for (unsigned i = 0; i < chord->before_count; i++) {
        digest = before_mix(digest, chord->before[i].id);
    }
    return chord->is_before_whole ? before_mix(digest, chord->self.id) : digest;
}

/* The digest of the entries of a list that its predecessor takes over. */
static uint64_t list_digest(const struct vnode *vnodes, unsigned count) {
    uint64_t digest = 0;
    for (unsigned i = 0; i < count; i++) {
        digest = before_mix(digest, vnodes[i].id);
    }
    return digest;
}

void before_follow(struct ring *ring, struct chord *chord, const struct vnode *old) {
    unsigned known = 0;
    while (known < chord->before_count && !vnode_equal(&chord->before[known], &chord->predecessor)) {
        known++;
    }
    if (known < chord->before_count) { /* the old one died: this one was before it */
        chord->before_count = (uint8_t)(chord->before_count - known - 1);
        memmove(&chord->before[0], &chord->before[known + 1], chord->before_count * sizeof chord->before[0]);
    } else if (ring_id_is_between(old->id, chord->predecessor.id, chord->self.id)) { /* came in between */
        unsigned kept =
            chord->before_count + 1u < before_size(ring) ? chord->before_count : before_size(ring) - 2;
        memmove(&chord->before[1], &chord->before[0], kept * sizeof chord->before[0]);
        chord->before[0] = *old;
        chord->is_before_whole = chord->is_before_whole && kept == chord->before_count;
        chord->before_count = (uint8_t)(kept + 1);
    } else {
        chord->before_count = 0;
        chord->is_before_whole = false;
    }
    chord->is_held_stale = true;
}

void before_hurry(struct ring *ring, struct chord *chord) {
    uint64_t at_us = ring->now_us + HINT_US;
    at_us =
        at_us > chord->before_asked_at_us + ASK_US_LEAST ? at_us : chord->before_asked_at_us + ASK_US_LEAST;
    chord->before_at_us = at_us < chord->before_at_us ? at_us : chord->before_at_us;
}

void before_tick(struct ring *ring, struct chord *chord) {
    if (chord->is_before_open || chord->before_at_us == STEP_NEVER_US) {
        return;
    }
    if (ring->now_us < chord->before_at_us) {
        outbox_wake_at(ring->out, chord->before_at_us);
        return;
    }
    chord->before_at_us = STEP_NEVER_US;
    chord->before_asked_at_us = ring->now_us;
    if (ring_id_equal(chord->predecessor.id, chord->self.id)) {
        return;
    }
    struct query query = {
        .purpose = QUERY_BEFORE,
        .owner = (uint32_t)(chord - ring->vnodes),
        .kind = MESSAGE_ASK_BEFORE,
        .to = chord->predecessor,
        .from = chord->self.index,
        .wanted = (uint8_t)(before_size(ring) - 1),
        .digest = list_digest(chord->list, ring->config.list_size - 1u),
        .tries_max = QUERY_TRIES_DEAD,
    };
    chord->is_before_open = query_open(ring, &query);
}

void before_answered(struct ring *ring, struct chord *chord, const struct query *query,
                     const struct message *answer) {
    chord->is_before_open = false;
    bool is_wanted = ring->mode == MODE_CHORD && chord->is_member && answer != NULL &&
                     answer->status == MESSAGE_MEMBER && vnode_equal(&query->to, &chord->predecessor);
    if (!is_wanted) {
        return;
    }
    struct ring_id last = ring_id_distance(chord->predecessor.id, chord->self.id);
    unsigned count = 0;
    bool is_whole = false;
    struct vnode before[RING_LIST_MAX];
    for (unsigned i = 0; i < answer->vnodes_count && i + 1 < before_size(ring) && !is_whole; i++) {
        const struct vnode *vnode = &answer->vnodes[i];
        struct ring_id distance = ring_id_distance(vnode->id, chord->self.id);
        is_whole = ring_id_equal(vnode->id, chord->self.id);
        if (!is_whole && ring_id_compare(distance, last) <= 0) {
            break; /* out of order: it and its own predecessor do not agree yet */
        }
        if (!is_whole) {
            ring_heard_of(ring, vnode);
            before[count++] = *vnode;
            last = distance;
        }
    }
    bool is_same = count == chord->before_count && is_whole == chord->is_before_whole;
    for (unsigned i = 0; i < count; i++) {
        is_same = is_same && vnode_equal(&before[i], &chord->before[i]);
        chord->before[i] = before[i];
    }
    chord->before_count = (uint8_t)count;
    chord->is_before_whole = is_whole;
    if (!is_same) {
        chord->is_held_stale = true;
        chord_tell_successor(ring, chord);
    }
}

void before_on_notify(struct ring *ring, struct chord *chord, uint64_t digest) {
    if (digest != expected_digest(chord)) {
        before_hurry(ring, chord);
    }
}

void before_on_ask(struct ring *ring, struct chord *chord, const struct vnode *from,
                   const struct message *question, struct message *answer) {
    answer->status = chord->is_member ? MESSAGE_MEMBER : MESSAGE_NONE;
    if (!chord->is_member) {
        return;
    }
    unsigned wanted = question->wanted < before_size(ring) ? question->wanted : before_size(ring);
    for (unsigned i = 0; i < wanted && i <= chord->before_count; i++) {
        answer->vnodes[answer->vnodes_count++] = i == 0 ? chord->predecessor : chord->before[i - 1];
    }
    bool is_head = ring->mode == MODE_CHORD && vnode_equal(from, &chord->list[0]);
    if (is_head && question->digest != list_digest(&chord->list[1], ring->config.list_size - 1u)) {
        chord_hurry(ring, chord);
    }
}
