/* Decrees between nodes: what one has and the other lacks, and whether they are in force there. */
#include <stdlib.h>

#include "base/address.h"
#include "base/wire.h"
#include "node/ring/decrees_state.h"

enum {
    VERSION_SIZE = 8,
    LISTED_SIZE = DECREE_ID_SIZE + VERSION_SIZE, /* of one decree in a question */
    ANSWER_SIZE_MAX = PEER_RPC_PIECE_SIZE_MAX,
    ASK_AGAIN_US = 2000000,  /* a node that has not confirmed */
    ASK_LATER_US = 30000000, /* one that cannot, or does not answer */
    UNCONFIRMED_SHOWN_MAX = 100,
};

/* ---- passing on ---- */

static void decrees_put_listed(struct buf *out, const uint8_t id[DECREE_ID_SIZE], uint64_t version) {
    uint8_t number[VERSION_SIZE];
    struct wire_writer writer;
    wire_writer_init(&writer, number, sizeof number);
    wire_write_u64(&writer, version);
    buf_put(out, bytes_of(id, DECREE_ID_SIZE));
    buf_put(out, bytes_of(number, sizeof number));
}

static uint64_t decrees_listed_version(const uint8_t *listed) {
    struct wire_reader reader;
    wire_reader_init(&reader, bytes_of(listed + DECREE_ID_SIZE, VERSION_SIZE));
    return wire_read_u64(&reader);
}

void decrees_put_question(struct decrees *decrees, struct buf *out) {
    pthread_mutex_lock(&decrees->lock);
    for (size_t i = 0; i < decrees->count; i++) {
        decrees_put_listed(out, decrees->entries[i].id, decrees->entries[i].decree.version);
    }
    pthread_mutex_unlock(&decrees->lock);
}

/* Does the asker, whose list is in the order of ids, have this one? The lock is held. */
static bool decrees_asker_has(struct bytes list, const struct decrees_entry *entry) {
    size_t from = 0;
    size_t to = list.size / LISTED_SIZE;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        const uint8_t *at = list.data + middle * LISTED_SIZE;
        int order = memcmp(at, entry->id, DECREE_ID_SIZE);
        if (order == 0) {
            return decrees_listed_version(at) >= entry->decree.version;
        }
        if (order < 0) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return false;
}

/* Does this node understand it, or at least keep it? */
static bool decrees_is_for(const struct decrees *decrees, const struct peer *peer,
                           const struct decrees_entry *entry) {
    struct dialects *dialects = decrees->config.dialects;
    enum decree_kind kind = entry->decree.kind;
    bool is_signed = entry->decree.generation > 0 || entry->decree.membership.invitation.generation > 0;
    if (dialects != NULL && is_signed && !dialects_has(dialects, peer, DIALECT_STEWARDS)) {
        return false;
    }
    bool is_new = kind == DECREE_DELETION || kind == DECREE_IMPORTS || decree_kind_is_later(kind);
    enum dialect_feature feature = kind == DECREE_DELETION ? DIALECT_DELETIONS : DIALECT_KEEPS_LATER;
    return dialects == NULL || !is_new || dialects_has(dialects, peer, feature);
}

static void decrees_give(const struct decrees_entry *entry, struct bytes question, struct buf *answer) {
    uint8_t head[WIRE_VARINT_SIZE_MAX];
    struct wire_writer writer;
    bool is_wanted = entry->counts && !decrees_asker_has(question, entry);
    if (!is_wanted || answer->size + sizeof head + entry->size > ANSWER_SIZE_MAX) {
        return;
    }
    wire_writer_init(&writer, head, sizeof head);
    wire_write_varint(&writer, entry->size);
    buf_put(answer, bytes_of(head, writer.size));
    buf_put(answer, bytes_of(entry->encoded, entry->size));
}

/* What an asker misses that it may be given again and again, in vain, since it has no room for it, must not
 * fill every answer. */
enum { GOSSIP_FIRST, GOSSIP_DELETIONS, GOSSIP_MEMBERS, GOSSIP_TURNS };

static int decrees_turn(const struct decrees *decrees, const struct decrees_entry *entry) {
    return !decree_is_founders(&entry->decree, &decrees->charter) ? GOSSIP_MEMBERS
           : entry->decree.kind == DECREE_DELETION                ? GOSSIP_DELETIONS
                                                                  : GOSSIP_FIRST;
}

enum err decrees_answer(void *context, const struct peer *from, struct bytes question, struct buf *answer,
                        struct err_detail *detail) {
    struct decrees *decrees = context;
    if (question.size % LISTED_SIZE != 0) {
        return err_set(detail, ERR_INVALID, "no list of decrees");
    }
    pthread_mutex_lock(&decrees->lock);
    for (int turn = 0; turn < GOSSIP_TURNS; turn++) {
        for (size_t i = 0; i < decrees->count; i++) {
            const struct decrees_entry *entry = &decrees->entries[i];
            if (decrees_turn(decrees, entry) == turn && decrees_is_for(decrees, from, entry)) {
                decrees_give(entry, question, answer);
            }
        }
    }
    pthread_mutex_unlock(&decrees->lock);
    return ERR_OK;
}

/* Of an honest node too: its charter may be another version, its table have more room, and so on. */
static bool decrees_is_pardoned(enum err err) {
    return err == ERR_OK || err == ERR_EXISTS || err == ERR_UNSUPPORTED || err == ERR_PERMISSION ||
           err == ERR_NOT_FOUND || err == ERR_LIMIT || err == ERR_BUSY;
}

enum err decrees_take_answer(struct decrees *decrees, struct bytes answer, struct err_detail *detail) {
    struct wire_reader reader;
    wire_reader_init(&reader, answer);
    while (wire_reader_left(&reader) > 0) {
        struct bytes encoded = wire_read_string(&reader, DECREE_SIZE_MAX);
        if (reader.err != ERR_OK) {
            break;
        }
        struct decree unread;
        enum err err = decrees_add(decrees, encoded, detail);
        if (err == ERR_LIMIT && decree_parse(encoded, &unread, NULL) != ERR_OK) {
            return err; /* no decree at all: beyond the bounds of the format */
        }
        if (!decrees_is_pardoned(err)) {
            return err;
        }
    }
    return wire_reader_finish(&reader, detail);
}

/* ---- confirming ---- */

enum err decrees_answer_in_force(void *context, const struct peer *from, struct bytes question,
                                 struct buf *answer, struct err_detail *detail) {
    struct decrees *decrees = context;
    (void)from;
    if (question.size % LISTED_SIZE != 0 || question.size > DECREES_WATCHED_MAX * LISTED_SIZE) {
        return err_set(detail, ERR_INVALID, "no list of decrees");
    }
    for (size_t at = 0; at < question.size; at += LISTED_SIZE) {
        const uint8_t *listed = question.data + at;
        buf_put_byte(answer, decrees_are_in_force(decrees, listed, decrees_listed_version(listed), NULL));
    }
    return answer->err;
}

void decrees_watch(struct decrees *decrees, const struct decrees_entry *entry) {
    struct decrees_watch *oldest = &decrees->watches[0];
    for (size_t i = 0; i < DECREES_WATCHED_MAX; i++) {
        struct decrees_watch *watch = &decrees->watches[i];
        if (watch->version != 0 && memcmp(watch->id, entry->id, DECREE_ID_SIZE) == 0) {
            oldest = watch;
            break;
        }
        oldest = watch->version < oldest->version ? watch : oldest;
    }
    if (oldest->version >= entry->decree.version) {
        return;
    }
    memcpy(oldest->id, entry->id, DECREE_ID_SIZE);
    oldest->version = entry->decree.version;
    decrees->has_nodes = false; /* "all have confirmed" counts those that are there now */
    for (size_t i = 0; i < decrees->nodes_count; i++) {
        decrees->nodes[i].confirmed &= ~(UINT32_C(1) << (oldest - decrees->watches));
        decrees->nodes[i].ask_at_us = 0;
    }
}

/* The watches that are in use. The lock is held. */
static uint32_t decrees_watched(const struct decrees *decrees) {
    uint32_t watched = 0;
    for (size_t i = 0; i < DECREES_WATCHED_MAX; i++) {
        watched |= decrees->watches[i].version != 0 ? UINT32_C(1) << i : 0;
    }
    return watched;
}

static struct decrees_node *decrees_find_node(struct decrees *decrees, const struct peer *peer) {
    for (size_t i = 0; i < decrees->nodes_count; i++) {
        if (peer_same_key(&decrees->nodes[i].peer, peer)) {
            return &decrees->nodes[i];
        }
    }
    return NULL;
}

/* A place for another node: a new one, or that of the node that has been away longest. NULL: none. */
static struct decrees_node *decrees_make_node(struct decrees *decrees) {
    if (decrees->nodes_count < DECREES_NODES_MAX) {
        return &decrees->nodes[decrees->nodes_count++];
    }
    struct decrees_node *longest = NULL;
    for (size_t i = 0; i < decrees->nodes_count; i++) {
        struct decrees_node *node = &decrees->nodes[i];
        if (!node->is_known && (longest == NULL || node->seen_at_us < longest->seen_at_us)) {
            longest = node;
        }
    }
    return longest;
}

/* A node that is away keeps its place for a day: it has copies, and does not know what was decreed since. */
static void decrees_forget_nodes(struct decrees *decrees, uint64_t now_us) {
    for (size_t i = decrees->nodes_count; i-- > 0;) {
        const struct decrees_node *node = &decrees->nodes[i];
        if (now_us > node->seen_at_us + DECREES_AWAY_US ||
            charter_is_removed(&decrees->charter, node->peer.key)) {
            decrees->nodes[i] = decrees->nodes[--decrees->nodes_count];
        }
    }
}

void decrees_set_nodes(struct decrees *decrees, const struct peer *nodes, size_t count) {
    uint64_t now_us = decrees_now_us(decrees);
    pthread_mutex_lock(&decrees->lock);
    if (decrees->nodes == NULL) {
        decrees->nodes = calloc(DECREES_NODES_MAX, sizeof *decrees->nodes);
    }
    decrees->has_nodes = decrees->nodes != NULL && decrees->self != NULL && decrees->has_charter;
    for (size_t i = 0; i < decrees->nodes_count; i++) {
        decrees->nodes[i].is_known = false;
    }
    for (size_t i = 0; decrees->has_nodes && i < count; i++) {
        if (memcmp(nodes[i].key, decrees->self->key, PEER_KEY_SIZE) == 0) {
            continue;
        }
        struct decrees_node *node = decrees_find_node(decrees, &nodes[i]);
        if (node == NULL) {
            node = decrees_make_node(decrees);
            if (node != NULL) {
                *node = (struct decrees_node){.confirmed = 0};
            }
        }
        if (node != NULL) {
            node->peer = nodes[i];
            node->is_known = true;
            node->seen_at_us = now_us;
        }
    }
    decrees_forget_nodes(decrees, now_us);
    pthread_mutex_unlock(&decrees->lock);
}

bool decrees_next_in_force(struct decrees *decrees, struct peer *ret_node, struct buf *question) {
    uint64_t now_us = decrees_now_us(decrees);
    bool is_found = false;
    pthread_mutex_lock(&decrees->lock);
    uint32_t watched = decrees_watched(decrees);
    for (size_t i = 0; i < decrees->nodes_count && !is_found; i++) {
        struct decrees_node *node = &decrees->nodes[i];
        if (!node->is_known || (node->confirmed & watched) == watched || now_us < node->ask_at_us) {
            continue;
        }
        is_found = true;
        node->ask_at_us = now_us + ASK_LATER_US; /* unless it answers */
        *ret_node = node->peer;
    }
    for (size_t i = 0; is_found && i < DECREES_WATCHED_MAX; i++) {
        if (decrees->watches[i].version != 0) {
            decrees_put_listed(question, decrees->watches[i].id, decrees->watches[i].version);
        }
    }
    pthread_mutex_unlock(&decrees->lock);
    return is_found && question->err == ERR_OK;
}

/* The bit of the watch that asked so; 0: it watches something else meanwhile. */
static uint32_t decrees_bit_of(const struct decrees *decrees, const uint8_t *listed) {
    for (size_t i = 0; i < DECREES_WATCHED_MAX; i++) {
        const struct decrees_watch *watch = &decrees->watches[i];
        if (watch->version != 0 && watch->version == decrees_listed_version(listed) &&
            memcmp(watch->id, listed, DECREE_ID_SIZE) == 0) {
            return UINT32_C(1) << i;
        }
    }
    return 0;
}

void decrees_take_in_force(struct decrees *decrees, const struct peer *peer, struct bytes question,
                           enum err err, struct bytes answer) {
    uint64_t now_us = decrees_now_us(decrees);
    pthread_mutex_lock(&decrees->lock);
    struct decrees_node *node = decrees_find_node(decrees, peer);
    bool is_whole = err == ERR_OK && answer.size == question.size / LISTED_SIZE;
    if (node != NULL) {
        node->is_asked = true;
        node->said = is_whole ? ERR_OK : err != ERR_OK ? err : ERR_INVALID;
        node->ask_at_us = now_us + (err == ERR_UNSUPPORTED ? ASK_LATER_US : ASK_AGAIN_US);
    }
    for (size_t i = 0; node != NULL && is_whole && i < answer.size; i++) {
        uint32_t bit = decrees_bit_of(decrees, question.data + i * LISTED_SIZE);
        node->confirmed |= answer.data[i] == 1 ? bit : 0;
    }
    pthread_mutex_unlock(&decrees->lock);
}

static const char *decrees_why_unconfirmed(const struct decrees_node *node) {
    return !node->is_known                 ? "it is away"
           : !node->is_asked               ? "it has not been asked yet"
           : node->said == ERR_OK          ? "it is not in force there yet"
           : node->said == ERR_UNSUPPORTED ? "it runs a version that cannot confirm"
                                           : "it does not answer";
}

void decrees_put_confirmations(const struct decrees *decrees, const struct decrees_entry *entry,
                               struct json *json) {
    char text[ADDRESS_TEXT_SIZE_MAX];
    char key[IDENTITY_TEXT_SIZE];
    uint32_t bit = 0;
    for (size_t i = 0; i < DECREES_WATCHED_MAX; i++) {
        const struct decrees_watch *watch = &decrees->watches[i];
        bool is_it =
            watch->version == entry->decree.version && memcmp(watch->id, entry->id, DECREE_ID_SIZE) == 0;
        bit = is_it ? UINT32_C(1) << i : bit;
    }
    if (bit == 0 || !decrees->has_nodes) {
        return;
    }
    uint64_t confirmed_count = entry->is_in_force ? 1 : 0; /* this node */
    for (size_t i = 0; i < decrees->nodes_count; i++) {
        confirmed_count += (decrees->nodes[i].confirmed & bit) != 0;
    }
    json_count(json, "nodes", decrees->nodes_count + 1);
    json_count(json, "confirmed", confirmed_count);
    json_open_list(json, "unconfirmed");
    for (size_t i = 0, shown = 0; i < decrees->nodes_count && shown < UNCONFIRMED_SHOWN_MAX; i++) {
        const struct decrees_node *node = &decrees->nodes[i];
        if ((node->confirmed & bit) == 0) {
            json_open(json, NULL);
            json_text(json, "address", address_format(&node->peer.address, text));
            json_text(json, "key", identity_key_format(node->peer.key, key));
            json_text(json, "why", decrees_why_unconfirmed(node));
            json_close(json);
            shown++;
        }
    }
    json_close(json);
}
