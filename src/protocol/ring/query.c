/*
 * query - questions that wait for their answers: repeated by RFC 6298's timer, given up after some tries.
 *
 * An answer counts only with the number of an open question and from the address (and key) that was asked.
 * The answer to a repeated question is taken, however late, but is no measure of the round trip (Karn). Who
 * gives no answer to all tries is silent, which chord.c and small.c take for dead.
 *
 * Against amplification each answer carries a token, a keyed hash of the asker's address, which the asker
 * sends with its next question and has thereby proved its address. Without one, a question is padded, so that
 * no answer is longer than three times the question.
 */
#include "base/map.h"
#include "protocol/ring/ring_state.h"

enum { SILENCE_US = 10000000 }; /* so long a verdict holds: a node that comes back is asked again */

uint64_t query_token(const struct ring *ring, const struct address *address) {
    uint8_t text[18];
    memcpy(text, address->ip, sizeof address->ip);
    text[16] = (uint8_t)(address->port >> 8);
    text[17] = (uint8_t)address->port;
    return map_hash(bytes_of(text, sizeof text), ring->secret);
}

bool query_may_answer(const struct ring *ring, const struct event *event, uint64_t token, size_t size) {
    return size <= 3 * event->bytes.size || token == query_token(ring, &event->from);
}

/* The round trips of virtual places are those of their node, but only a place has an entry. */
static void send_query(struct ring *ring, struct query *query) {
    struct message message = {
        .kind = query->kind,
        .number = query->number,
        .to = query->to.index,
        .from = query->from,
        .key = query->key,
        .wanted = query->wanted,
        .digest = query->digest,
    };
    if (query->kind == MESSAGE_ASK_NODES && ring->mode != MODE_LIGHT) {
        small_describe(ring, &message);
    }
    const struct table_entry *entry = table_find(&ring->table, query->to.id);
    retry_sent(&query->retry, entry != NULL ? &entry->rtt : NULL, ring->now_us);
    ring_send(ring, &query->to, &message);
}

bool query_open(struct ring *ring, const struct query *query) {
    ASSERT(!vnode_is_padding(&query->to));
    if (ring->queries_count == ring->queries_max) {
        return false;
    }
    struct query *opened = &ring->queries[ring->queries_count++];
    *opened = *query;
    opened->number = prng_u64(&ring->prng);
    opened->retry = (struct retry){0};
    send_query(ring, opened);
    return true;
}

static struct query take_query(struct ring *ring, uint32_t index) {
    struct query query = ring->queries[index];
    ring->queries[index] = ring->queries[--ring->queries_count];
    return query;
}

void query_close(struct ring *ring, enum query_purpose purpose, uint32_t owner) {
    for (uint32_t i = ring->queries_count; i > 0; i--) {
        if (ring->queries[i - 1].purpose == purpose && ring->queries[i - 1].owner == owner) {
            take_query(ring, i - 1);
        }
    }
}

bool query_is_open(const struct ring *ring, enum query_purpose purpose, const struct vnode *to) {
    for (uint32_t i = 0; i < ring->queries_count; i++) {
        if (ring->queries[i].purpose == purpose && vnode_equal(&ring->queries[i].to, to)) {
            return true;
        }
    }
    return false;
}

/* A verdict is about a place at an address: two nodes behind one address may have one ID. */
enum { SUBJECT_SIZE = sizeof(struct ring_id) + sizeof(struct address) };

static struct bytes query_subject(const struct vnode *vnode, uint8_t memory[SUBJECT_SIZE]) {
    memcpy(memory, &vnode->id, sizeof vnode->id);
    memcpy(memory + sizeof vnode->id, &vnode->peer.address, sizeof vnode->peer.address);
    return bytes_of(memory, SUBJECT_SIZE);
}

bool query_is_silent(const struct ring *ring, const struct vnode *vnode) {
    uint8_t memory[SUBJECT_SIZE];
    return standing_holds(&ring->standing, STANDING_SILENT, query_subject(vnode, memory), ring->now_us);
}

static void end_silence(struct ring *ring, const struct vnode *vnode) {
    uint8_t memory[SUBJECT_SIZE];
    standing_clear(&ring->standing, STANDING_SILENT, query_subject(vnode, memory));
}

static void note_silence(struct ring *ring, const struct vnode *vnode) {
    uint8_t memory[SUBJECT_SIZE];
    standing_note(&ring->standing, STANDING_SILENT, query_subject(vnode, memory), ring->now_us,
                  ring->now_us + SILENCE_US);
}

static void tell_owner(struct ring *ring, const struct query *query, const struct message *answer) {
    switch ((enum query_purpose)query->purpose) {
    case QUERY_SUCCESSOR:
    case QUERY_PREDECESSOR:
    case QUERY_RECTIFY:
    case QUERY_JOIN:
    case QUERY_PROBE:
        chord_answered(ring, &ring->vnodes[query->owner], query, answer);
        break;
    case QUERY_LOOKUP:
        lookup_answered(ring, &ring->lookups[query->owner], query, answer);
        break;
    case QUERY_NODES:
        small_answered(ring, query, answer);
        break;
    case QUERY_BEFORE:
        before_answered(ring, &ring->vnodes[query->owner], query, answer);
        break;
    case QUERY_LIGHT:
        light_answered(ring, query, answer);
        break;
    }
}

/* ---- answers ---- */

static bool fits(const struct query *query, const struct message *message) {
    static const struct {
        uint8_t question;
        bool is_of_place; /* then the place that was asked must answer */
    } answers[MESSAGE_KINDS_END] = {
        [MESSAGE_STATE] = {MESSAGE_ASK_STATE, true},   [MESSAGE_PONG] = {MESSAGE_PING, true},
        [MESSAGE_FOUND] = {MESSAGE_FIND, false},       [MESSAGE_NODES] = {MESSAGE_ASK_NODES, false},
        [MESSAGE_BEFORE] = {MESSAGE_ASK_BEFORE, true},
    };
    if (message->kind == MESSAGE_CHALLENGE || message->kind == MESSAGE_REFUSED) {
        return true;
    }
    return answers[message->kind].question == query->kind &&
           (!answers[message->kind].is_of_place || message->to == query->to.index);
}

/* Its own word makes a place fresh, measures it and says where its arc begins. */
static void note_answer(struct ring *ring, const struct query *query, const struct message *message) {
    end_silence(ring, &query->to);
    struct table_entry *entry = table_enter(&ring->table, &query->to);
    if (entry == NULL) {
        return;
    }
    entry->token = message->token;
    if (!address_equal(&entry->vnode.peer.address, &query->to.peer.address)) {
        /* Two nodes behind one address at one ID: the entry is of the one that answers. */
        if (entry->heard_at_us > 0 && entry->misses_count == 0) {
            return;
        }
        *entry =
            (struct table_entry){.vnode = query->to, .predecessor = query->to.id, .token = message->token};
    }
    entry->heard_at_us = ring->now_us == 0 ? 1 : ring->now_us;
    entry->misses_count = 0;
    retry_measure(&query->retry, &entry->rtt, ring->now_us);
    bool is_state = message->kind == MESSAGE_STATE && message->status == MESSAGE_MEMBER;
    bool is_owner = message->kind == MESSAGE_FOUND && message->status == FOUND_OWNER &&
                    message->vnodes_count > 0 && vnode_equal(&message->vnodes[0], &query->to);
    if (is_state || is_owner) {
        entry->predecessor = message->predecessor.id;
        entry->has_arc = true;
        entry->arc_at_us = ring->now_us;
    } else if (message->kind == MESSAGE_STATE && message->status == MESSAGE_NONE) {
        entry->has_arc = false;
    }
}

bool query_answer(struct ring *ring, const struct event *event, const struct message *message) {
    uint32_t index = 0;
    while (index < ring->queries_count && ring->queries[index].number != message->number) {
        index++;
    }
    if (index == ring->queries_count || !event_is_from(event, &ring->queries[index].to.peer) ||
        !fits(&ring->queries[index], message)) {
        return false;
    }
    struct query query = take_query(ring, index);
    memcpy(query.to.peer.key, event->from_key, PEER_KEY_SIZE);
    if (message->kind == MESSAGE_REFUSED) {
        tell_owner(ring, &query, NULL);
        return true;
    }
    note_answer(ring, &query, message);
    if (message->kind == MESSAGE_CHALLENGE) { /* now we have its token: once more, without counting it */
        struct query *again = &ring->queries[ring->queries_count++];
        *again = query;
        if (again->retry.tries_count == query.tries_max) {
            again->retry.tries_count--;
        }
        send_query(ring, again);
        return true;
    }
    tell_owner(ring, &query, message);
    return true;
}

/* ---- silence ---- */

static void query_give_up(struct ring *ring, const struct query *query) {
    struct table_entry *entry = table_find(&ring->table, query->to.id);
    if (entry != NULL && !address_equal(&entry->vnode.peer.address, &query->to.peer.address)) {
        entry = NULL; /* of another node behind its address */
    }
    if (entry != NULL) {
        entry->misses_count = (uint8_t)(entry->misses_count + (entry->misses_count < UINT8_MAX));
        entry->missed_at_us = ring->now_us;
    }
    if (entry != NULL && entry->misses_count >= TABLE_MISSES_MAX) {
        entry->has_arc = false;
        bool is_useless = query->purpose == QUERY_LOOKUP && entry->misses_count > 2 * TABLE_MISSES_MAX;
        if (is_useless || query->tries_max == QUERY_TRIES_DEAD) {
            table_remove(&ring->table, query->to.id);
        }
    }
    ring->counters.silent_count++;
    if (query->tries_max == QUERY_TRIES_DEAD) {
        note_silence(ring, &query->to);
    }
    tell_owner(ring, query, NULL);
}

void query_tick(struct ring *ring) {
    for (uint32_t i = 0; i < ring->queries_count;) {
        struct query *query = &ring->queries[i];
        if (!retry_is_due(&query->retry, ring->now_us)) {
            i++;
        } else if (query->retry.tries_count < query->tries_max) {
            send_query(ring, query);
            bool is_doubt =
                query->purpose == QUERY_SUCCESSOR && query->retry.tries_count == QUERY_TRIES_DOUBT;
            if (is_doubt) {
                chord_doubt(ring, &ring->vnodes[query->owner]);
            }
            i++;
        } else { /* what its owner asks next is appended and is not overdue */
            struct query overdue = take_query(ring, i);
            query_give_up(ring, &overdue);
        }
    }
}
