#include "node/transport/gate.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/retry.h"

enum {
    MEMBERS_MAX = 20000,
    STRANGERS_MAX = 1024,
    REASON_SIZE_MAX = 256,
    SENTENCE_SIZE_MAX = REASON_SIZE_MAX + ADDRESS_TEXT_SIZE_MAX + 32,
    FETCH_TRIES_MAX = 10,
    US_PER_S = 1000000,
};
static const uint64_t RETRY_US = 500000; /* a piece of a charter that did not come */
static const uint64_t FETCH_US = 120 * UINT64_C(1000000);
static const uint64_t STRANGER_US = 1000000; /* between two greetings, or refusals, of a stranger */
static const uint64_t FAILED_US =
    60 * UINT64_C(1000000); /* before somebody is believed again to have a newer charter */
static const uint64_t INTRODUCE_US = 600 * UINT64_C(1000000); /* the node may have been started again since */

static const uint8_t no_id[CHARTER_ID_SIZE];
static const uint8_t no_key[PEER_KEY_SIZE];

/* No table of standing (base/standing.h): how long a time counts depends on whether its owner is a member by
 * then, and strangers that become members keep theirs. */
struct acquaintance {
    uint64_t introduced_at_us; /* our membership was shown; 0: never */
    uint64_t refused_at_us;    /* 0: never */
    uint64_t failed_at_us;     /* a fetch from it came to nothing; 0: never */
    uint64_t until_s;          /* of a member: 0: no end */
    uint32_t version;          /* of a member: of the charter that it was judged by */
};

/* A charter that is being fetched, piece by piece. */
struct fetch {
    bool is_running;
    struct peer from;
    uint8_t wanted[CHARTER_ID_SIZE]; /* zeros: any */
    uint32_t version;                /* of what has come so far; 0: nothing */
    uint32_t size;
    uint32_t offset;
    bool is_strangers; /* of a node that we do not know as a member: a member's goes first */
    struct retry retry;
    uint64_t ends_at_us; /* however lively the node is */
    uint8_t bytes[CHARTER_SIZE_MAX];
};

struct gate {
    struct gate_config config;
    struct sha256 sha256;
    uint8_t ring[CHARTER_ID_SIZE]; /* zeros: no charter yet */
    struct charter charter;
    uint8_t encoded[CHARTER_SIZE_MAX];
    uint32_t encoded_size; /* 0: no charter yet */
    struct charter arrived;
    uint8_t later[CHARTER_SIZE_MAX]; /* a charter of a later layout, of this ring */
    uint32_t later_size;             /* 0: there is none */
    uint32_t later_version;
    uint8_t plain[CHARTER_SIZE_MAX]; /* the last one of layout 1, if ours is of layout 2 */
    uint32_t plain_size;             /* 0: there is none */
    uint32_t plain_version;
    struct lru members;   /* key: struct acquaintance */
    struct lru strangers; /* likewise */
    struct fetch fetch;
    struct gate_stat stat;
};

/* ---- helpers ---- */

static uint64_t gate_now_us(const struct gate *gate) {
    return clock_monotonic_us(gate->config.clock);
}

static uint64_t wall_s(const struct gate *gate) {
    return (uint64_t)(clock_wall_us(gate->config.clock) / US_PER_S);
}

static bool has_charter(const struct gate *gate) {
    return gate->encoded_size > 0;
}

/* Is this node told of the later one? */
static bool gate_has_later_for(const struct gate *gate, const struct peer *peer) {
    const struct gate_config *config = &gate->config;
    return gate->later_size > 0 && config->keeps_later != NULL && config->keeps_later(config->context, peer);
}

/* Which charter a node is told of and given. */
struct gate_given {
    struct bytes encoded; /* empty: none */
    uint32_t version;
};

/* A program that reads layout 1 only keeps one of layout 2 for others, and says so, if the founder signed it.
 */
static bool gate_may_be_kept(const struct gate *gate, const struct peer *peer) {
    static const uint8_t none[CHARTER_SIGNATURE_SIZE];
    const struct gate_config *config = &gate->config;
    return config->keeps_later != NULL && config->keeps_later(config->context, peer) &&
           memcmp(gate->charter.founder_signature, none, sizeof none) != 0;
}

/* is_first: the node has none yet, and first needs one that it can surely read. */
static struct gate_given gate_choose(const struct gate *gate, const struct peer *peer, bool is_first) {
    const struct gate_config *config = &gate->config;
    struct gate_given current = {bytes_of(gate->encoded, gate->encoded_size), gate->charter.version};
    if (!is_first && gate_has_later_for(gate, peer)) {
        return (struct gate_given){bytes_of(gate->later, gate->later_size), gate->later_version};
    }
    bool is_readable = gate->charter.links_count == 0 || config->reads_stewards == NULL ||
                       config->reads_stewards(config->context, peer);
    bool is_unknown = is_first && (config->is_known == NULL || !config->is_known(config->context, peer));
    if (is_readable || is_unknown || (!is_first && gate_may_be_kept(gate, peer))) {
        return current;
    }
    return (struct gate_given){bytes_of(gate->plain, gate->plain_size),
                               gate->plain_size > 0 ? gate->plain_version : 1};
}

/* What does not leave, or not arrive, is said again when it is needed. */
static void gate_say(struct gate *gate, const struct peer *to, struct greeting *greeting) {
    uint8_t memory[GREETING_SIZE_MAX];
    bool is_refusal = greeting->kind == GREETING_REFUSE;
    if (!is_refusal && gate->config.speaks != NULL && !gate->config.speaks(gate->config.context, to)) {
        return;
    }
    memcpy(greeting->ring, gate->ring, CHARTER_ID_SIZE);
    if (greeting->kind != GREETING_PIECE) { /* which has the version of what it is a piece of */
        greeting->version = has_charter(gate) ? gate_choose(gate, to, false).version : 0;
    }
    (void)datagram_send(gate->config.datagram, to, DATAGRAM_CHARTER, greeting_write(greeting, memory));
}

static void send_hello(struct gate *gate, const struct peer *to, bool wants_answer) {
    uint8_t memory[MEMBERSHIP_SIZE_MAX];
    struct greeting greeting = {
        .kind = GREETING_HELLO,
        .membership = membership_write(&gate->config.membership, memory),
        .wants_answer = wants_answer,
    };
    gate_say(gate, to, &greeting);
}

static void complain(struct gate *gate, const struct address *address, bool is_by_us, const char *reason) {
    char text[ADDRESS_TEXT_SIZE_MAX];
    char sentence[SENTENCE_SIZE_MAX];
    address_format(address, text);
    if (is_by_us) {
        snprintf(sentence, sizeof sentence, "%s is refused: %s", text, reason);
    } else {
        snprintf(sentence, sizeof sentence, "%s refuses this node: %s", text, reason);
    }
    gate->config.complain(gate->config.context, sentence);
}

/* ---- known nodes ---- */

static struct acquaintance *gate_find(struct gate *gate, const uint8_t key[PEER_KEY_SIZE]) {
    struct acquaintance *member = lru_find(&gate->members, key);
    return member != NULL ? member : lru_find(&gate->strangers, key);
}

static struct acquaintance *find_or_add(struct gate *gate, const uint8_t key[PEER_KEY_SIZE]) {
    struct acquaintance *known = gate_find(gate, key);
    return known != NULL ? known : lru_add(&gate->strangers, key);
}

static bool gate_is_member(struct gate *gate, const uint8_t key[PEER_KEY_SIZE]) {
    const struct acquaintance *member = lru_find(&gate->members, key);
    return member != NULL && member->version == gate->charter.version &&
           (member->until_s == 0 || wall_s(gate) <= member->until_s);
}

static void admit(struct gate *gate, const uint8_t key[PEER_KEY_SIZE], const struct membership *membership) {
    struct acquaintance known = {0};
    const struct acquaintance *before = gate_find(gate, key);
    if (before != NULL) {
        known = *before;
    }
    bool has_end = membership->is_there && !membership->invitation.is_bearer && !gate->charter.is_open;
    known.until_s = has_end ? membership->invitation.until_s : 0;
    known.version = gate->charter.version;
    lru_remove(&gate->strangers, key);
    struct acquaintance *member = lru_find(&gate->members, key);
    member = member != NULL ? member : lru_add(&gate->members, key);
    *member = known;
}

/* At most once in a while to each, so that nobody can make us talk. */
static void gate_refuse_so(struct gate *gate, const struct peer *to, uint8_t reason, const char *sentence) {
    struct acquaintance *stranger = find_or_add(gate, to->key);
    uint64_t now = gate_now_us(gate);
    if (stranger->refused_at_us != 0 && now - stranger->refused_at_us < STRANGER_US) {
        return;
    }
    stranger->refused_at_us = now;
    struct greeting greeting = {.kind = GREETING_REFUSE, .reason = reason};
    if (has_charter(gate)) { /* it has the ring's name */
        memcpy(greeting.name, gate->charter.name, sizeof greeting.name);
        gate_say(gate, to, &greeting);
    }
    gate->stat.refused_count++;
    complain(gate, &to->address, true, sentence);
}

static void gate_refuse(struct gate *gate, const struct peer *to, uint8_t reason) {
    gate_refuse_so(gate, to, reason, greeting_reason_text(reason));
}

void gate_refuse_version(struct gate *gate, const struct peer *to, const char *sentence) {
    gate_refuse_so(gate, to, GREETING_OTHER_VERSION, sentence);
}

static bool is_muted(struct gate *gate, const uint8_t key[PEER_KEY_SIZE]) {
    const struct acquaintance *known = gate_find(gate, key);
    return known != NULL && known->refused_at_us != 0 &&
           gate_now_us(gate) - known->refused_at_us < STRANGER_US;
}

bool gate_admits(struct gate *gate, const struct peer *from) {
    if (!has_charter(gate)) {
        return false;
    }
    if (charter_is_removed(&gate->charter, from->key)) {
        gate_refuse(gate, from, GREETING_NO_MEMBER + MEMBERSHIP_REMOVED);
        return false;
    }
    if (gate->charter.is_open || gate_is_member(gate, from->key)) {
        return true;
    }
    gate->stat.turned_away_count++;
    struct acquaintance *stranger = find_or_add(gate, from->key);
    uint64_t now = gate_now_us(gate);
    if (stranger->introduced_at_us == 0 || now - stranger->introduced_at_us >= STRANGER_US) {
        stranger->introduced_at_us = now;
        send_hello(gate, from, true);
    }
    return false;
}

void gate_introduce(struct gate *gate, const struct peer *to) {
    if (!has_charter(gate) || gate->charter.is_open) {
        return;
    }
    struct acquaintance *known = find_or_add(gate, to->key);
    uint64_t now = gate_now_us(gate);
    uint64_t pause_us = gate_is_member(gate, to->key) ? INTRODUCE_US : STRANGER_US;
    if (known->introduced_at_us == 0 || now - known->introduced_at_us >= pause_us) {
        known->introduced_at_us = now;
        send_hello(gate, to, !gate_is_member(gate, to->key));
    }
}

void gate_greet(struct gate *gate, const struct peer *to) {
    send_hello(gate, to, true);
}

/* ---- charters of others ---- */

/* A node that boasts of a version it does not have must not keep us from nodes that have it. */
static void note_failure(struct gate *gate, const struct peer *from) {
    if (memcmp(from->key, no_key, PEER_KEY_SIZE) != 0) {
        find_or_add(gate, from->key)->failed_at_us = gate_now_us(gate);
    }
}

static bool has_failed(struct gate *gate, const uint8_t key[PEER_KEY_SIZE]) {
    const struct acquaintance *known = gate_find(gate, key);
    return known != NULL && known->failed_at_us != 0 && gate_now_us(gate) - known->failed_at_us < FAILED_US;
}

static void ask_piece(struct gate *gate) {
    struct fetch *fetch = &gate->fetch;
    struct greeting greeting = {.kind = GREETING_ASK, .offset = fetch->offset};
    retry_sent_doubling(&fetch->retry, RETRY_US, RETRY_US, gate_now_us(gate));
    gate_say(gate, &fetch->from, &greeting);
}

static void ask_first_piece(struct gate *gate, const struct peer *from) {
    struct fetch *fetch = &gate->fetch;
    fetch->from = *from;
    fetch->version = fetch->size = fetch->offset = 0;
    fetch->retry.tries_count = 0;
    ask_piece(gate);
}

void gate_fetch(struct gate *gate, const struct peer *from, const uint8_t *wanted) {
    struct fetch *fetch = &gate->fetch;
    fetch->is_running = true;
    fetch->is_strangers = false;
    memcpy(fetch->wanted, wanted != NULL ? wanted : no_id, CHARTER_ID_SIZE);
    fetch->ends_at_us = gate_now_us(gate) + FETCH_US;
    ask_first_piece(gate, from);
}

bool gate_is_fetching(const struct gate *gate) {
    return gate->fetch.is_running;
}

void gate_tick(struct gate *gate) {
    struct fetch *fetch = &gate->fetch;
    bool is_over = fetch->is_running && gate_now_us(gate) >= fetch->ends_at_us;
    if (!fetch->is_running || (!is_over && !retry_is_due(&fetch->retry, gate_now_us(gate)))) {
        return;
    }
    if (is_over || fetch->retry.tries_count >= FETCH_TRIES_MAX) {
        fetch->is_running = false;
        note_failure(gate, &fetch->from);
        return;
    }
    ask_piece(gate);
}

static enum err judge_charter(struct gate *gate, const uint8_t claimed[CHARTER_ID_SIZE],
                              struct err_detail *detail) {
    uint8_t id[CHARTER_ID_SIZE];
    struct fetch *fetch = &gate->fetch;
    enum err err = charter_read(bytes_of(fetch->bytes, fetch->size), identity_verify, &gate->arrived, detail);
    if (err != ERR_OK) {
        return err;
    }
    charter_id(&gate->arrived, &gate->sha256, id);
    bool is_wanted =
        memcmp(fetch->wanted, no_id, CHARTER_ID_SIZE) == 0 || memcmp(fetch->wanted, id, CHARTER_ID_SIZE) == 0;
    if (memcmp(id, claimed, CHARTER_ID_SIZE) != 0 || !is_wanted) {
        return err_set(detail, ERR_MISMATCH, "it is the charter of another ring, \"%s\"", gate->arrived.name);
    }
    return has_charter(gate) ? charter_succeeds(&gate->charter, &gate->arrived, detail) : ERR_OK;
}

/* What came cannot be read: can it be kept? Whoever gave it is not to be blamed then. */
static bool gate_take_later(struct gate *gate, struct bytes encoded) {
    bool is_newer =
        has_charter(gate) && charter_read_later(encoded, identity_verify, &gate->arrived, NULL) == ERR_OK &&
        charter_is_same_ring(&gate->charter, &gate->arrived) &&
        gate->arrived.version > gate->charter.version && gate->arrived.version > gate->later_version;
    if (is_newer) {
        memmove(gate->later, encoded.data, encoded.size);
        gate->later_size = (uint32_t)encoded.size;
        gate->later_version = gate->arrived.version;
    }
    return is_newer;
}

static void finish_fetch(struct gate *gate, const struct peer *from, const uint8_t claimed[CHARTER_ID_SIZE]) {
    struct err_detail detail = {0};
    struct fetch *fetch = &gate->fetch;
    fetch->is_running = false;
    enum err err = judge_charter(gate, claimed, &detail);
    if (err == ERR_UNSUPPORTED && gate_take_later(gate, bytes_of(fetch->bytes, fetch->size))) {
        if (gate->config.learned_later != NULL) {
            gate->config.learned_later(gate->config.context, gate->later_version,
                                       bytes_of(gate->later, gate->later_size));
        }
        return;
    }
    if (err != ERR_OK) {
        note_failure(gate, from);
    }
    if (err == ERR_OK) {
        gate->config.learned(gate->config.context, from, &gate->arrived, bytes_of(fetch->bytes, fetch->size));
    } else if (err != ERR_EXISTS) {
        complain(gate, &from->address, true, err_detail_text(&detail, err));
    }
}

/* Pieces come in order, since the next is asked for when one is there. */
static void on_piece(struct gate *gate, const struct peer *from, const struct greeting *greeting) {
    struct fetch *fetch = &gate->fetch;
    bool is_asked = fetch->is_running && address_equal(&fetch->from.address, &from->address) &&
                    (memcmp(fetch->from.key, no_key, PEER_KEY_SIZE) == 0 ||
                     memcmp(fetch->from.key, from->key, PEER_KEY_SIZE) == 0);
    if (!is_asked || greeting->offset != fetch->offset) {
        return;
    }
    if (fetch->offset > 0 && (greeting->version != fetch->version || greeting->size != fetch->size)) {
        ask_first_piece(gate, from); /* the node has a newer one meanwhile */
        return;
    }
    fetch->from = *from;
    fetch->version = greeting->version;
    fetch->size = greeting->size;
    memcpy(fetch->bytes + fetch->offset, greeting->piece.data, greeting->piece.size);
    fetch->offset += (uint32_t)greeting->piece.size;
    fetch->retry.tries_count = 0;
    if (fetch->offset == fetch->size) {
        finish_fetch(gate, from, greeting->ring);
    } else {
        ask_piece(gate);
    }
}

/* A newcomer that may or may not read stewards, and there is a charter for either: it is told what we speak,
 * asks again in half a second, and has said by then what it can read, or will be known to say nothing. */
static bool gate_must_know_first(const struct gate *gate, const struct peer *from) {
    const struct gate_config *config = &gate->config;
    bool is_open = gate->charter.links_count > 0 && gate->plain_size > 0 && config->is_known != NULL &&
                   !config->is_known(config->context, from);
    if (is_open && config->speaks != NULL) {
        (void)config->speaks(config->context, from);
    }
    return is_open;
}

static void on_ask(struct gate *gate, const struct peer *from, const struct greeting *greeting) {
    bool is_any = memcmp(greeting->ring, no_id, CHARTER_ID_SIZE) == 0;
    if (!has_charter(gate)) {
        return;
    }
    if (!is_any && memcmp(greeting->ring, gate->ring, CHARTER_ID_SIZE) != 0) {
        gate_refuse(gate, from, GREETING_OTHER_RING);
        return;
    }
    if (is_any && gate_must_know_first(gate, from)) {
        return;
    }
    struct gate_given chosen = gate_choose(gate, from, is_any);
    struct bytes given = chosen.encoded;
    if (greeting->offset >= given.size) {
        return;
    }
    struct bytes rest = bytes_skip(given, greeting->offset);
    struct greeting answer = {
        .kind = GREETING_PIECE,
        .version = chosen.version,
        .size = (uint32_t)given.size,
        .offset = greeting->offset,
        .piece =
            bytes_slice(rest, 0, rest.size < GREETING_PIECE_SIZE_MAX ? rest.size : GREETING_PIECE_SIZE_MAX),
    };
    gate_say(gate, from, &answer);
}

/* ---- greetings ---- */

/* It was invited by stewards of whom this node has not heard, as it says. Whose charter that is, the
 * signatures in it say. */
static void gate_follow_stranger(struct gate *gate, const struct peer *from, const struct greeting *greeting,
                                 const struct membership *membership) {
    bool is_of_later_stewards =
        membership->is_there && membership->invitation.generation > charter_generation(&gate->charter);
    if (is_of_later_stewards && greeting->version > gate->charter.version && !gate->fetch.is_running &&
        !has_failed(gate, from->key)) {
        gate_fetch(gate, from, gate->ring);
        gate->fetch.is_strangers = true;
    }
}

static void on_hello(struct gate *gate, const struct peer *from, const struct greeting *greeting) {
    struct membership membership;
    gate->stat.hellos_count++;
    if (!has_charter(gate) || is_muted(gate, from->key)) {
        return;
    }
    if (memcmp(greeting->ring, gate->ring, CHARTER_ID_SIZE) != 0) {
        gate_refuse(gate, from, GREETING_OTHER_RING);
        return;
    }
    if (membership_read(greeting->membership, &membership, NULL) != ERR_OK) {
        gate->stat.malformed_count++;
        return;
    }
    if (!gate_is_member(gate, from->key)) {
        enum membership_verdict verdict = membership_judge(&membership, &gate->charter, gate->ring, from->key,
                                                           wall_s(gate), identity_verify);
        if (verdict != MEMBERSHIP_GOOD) {
            gate_follow_stranger(gate, from, greeting, &membership);
            gate_refuse(gate, from, (uint8_t)(GREETING_NO_MEMBER + verdict));
            return;
        }
        admit(gate, from->key, &membership);
        if (gate->config.admitted != NULL) {
            gate->config.admitted(gate->config.context, from->key, &membership);
        }
    }
    if (greeting->wants_answer) {
        send_hello(gate, from, false);
    }
    bool is_newer = greeting->version > gate->charter.version && greeting->version > gate->later_version;
    bool is_free = !gate->fetch.is_running || gate->fetch.is_strangers;
    if (is_newer && is_free && !has_failed(gate, from->key)) {
        gate_fetch(gate, from, gate->ring);
    }
    gate->config.met(gate->config.context, from);
}

static void on_refuse(struct gate *gate, const struct peer *from, const struct greeting *greeting) {
    char reason[REASON_SIZE_MAX];
    gate->stat.refusals_count++;
    snprintf(reason, sizeof reason, "ring \"%s\": %s", greeting->name,
             greeting_reason_text(greeting->reason));
    complain(gate, &from->address, false, reason);
}

void gate_receive(struct gate *gate, const struct datagram_message *message) {
    struct greeting greeting;
    if (greeting_read(message->bytes, &greeting, NULL) != ERR_OK) {
        gate->stat.malformed_count++;
        return;
    }
    switch (greeting.kind) {
    case GREETING_HELLO:
        on_hello(gate, &message->from, &greeting);
        break;
    case GREETING_REFUSE:
        on_refuse(gate, &message->from, &greeting);
        break;
    case GREETING_ASK:
        on_ask(gate, &message->from, &greeting);
        break;
    default:
        on_piece(gate, &message->from, &greeting);
    }
}

/* ---- life ---- */

void gate_set_charter(struct gate *gate, const struct charter *charter, struct bytes encoded) {
    ASSERT(encoded.size > 0 && encoded.size <= CHARTER_SIZE_MAX);
    if (has_charter(gate) && gate->charter.links_count == 0 && charter->links_count > 0) {
        memcpy(gate->plain, gate->encoded, gate->encoded_size);
        gate->plain_size = gate->encoded_size;
        gate->plain_version = gate->charter.version;
    }
    gate->charter = *charter;
    memmove(gate->encoded, encoded.data, encoded.size);
    gate->encoded_size = (uint32_t)encoded.size;
    charter_id(charter, &gate->sha256, gate->ring);
    if (gate->later_version <= charter->version) {
        gate->later_size = gate->later_version = 0;
    }
}

uint32_t gate_set_later(struct gate *gate, struct bytes encoded) {
    bool is_taken = encoded.size <= CHARTER_SIZE_MAX && gate_take_later(gate, encoded);
    return is_taken ? gate->later_version : 0;
}

void gate_set_plain(struct gate *gate, struct bytes encoded) {
    bool is_good = has_charter(gate) && encoded.size <= CHARTER_SIZE_MAX &&
                   charter_read(encoded, identity_verify, &gate->arrived, NULL) == ERR_OK &&
                   gate->arrived.links_count == 0 && charter_is_same_ring(&gate->charter, &gate->arrived);
    if (is_good) {
        memcpy(gate->plain, encoded.data, encoded.size);
        gate->plain_size = (uint32_t)encoded.size;
        gate->plain_version = gate->arrived.version;
    }
}

void gate_set_membership(struct gate *gate, const struct membership *membership) {
    gate->config.membership = *membership;
}

enum err gate_new(const struct gate_config *config, struct gate **ret_gate) {
    struct gate *gate = calloc(1, sizeof *gate);
    if (gate == NULL) {
        return ERR_MEMORY;
    }
    gate->config = *config;
    enum err err = sha256_init(&gate->sha256);
    if (err == ERR_OK) {
        err = lru_init(&gate->members, PEER_KEY_SIZE, sizeof(struct acquaintance), MEMBERS_MAX);
    }
    if (err == ERR_OK) {
        err = lru_init(&gate->strangers, PEER_KEY_SIZE, sizeof(struct acquaintance), STRANGERS_MAX);
    }
    if (err != ERR_OK) {
        gate_free(gate);
        return err;
    }
    *ret_gate = gate;
    return ERR_OK;
}

void gate_free(struct gate *gate) {
    lru_done(&gate->members);
    lru_done(&gate->strangers);
    sha256_done(&gate->sha256);
    free(gate);
}

const struct gate_stat *gate_stat(const struct gate *gate) {
    return &gate->stat;
}
