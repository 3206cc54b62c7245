#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/prng.h"
#include "node/transport/ringing_state.h"

enum { CONTACTS_MAX = 16 /* of RING_JOIN */, US_PER_S = 1000000 };
static const uint64_t TRY_US = 1000000;          /* to ask a contact that is silent */
static const uint64_t TRY_US_MAX = 30 * 1000000; /* with back-off */
static const uint64_t SILENT_US = 5 * 1000000;   /* before people are told */
static const uint64_t FOUND_US = 30 * 1000000;   /* a founder whom nobody answers begins alone */
static const uint64_t GREET_US = 60 * 1000000;   /* to one neighbour: has he a newer charter? */
static const uint64_t HEAL_US = 30 * 1000000;    /* parts of a ring look for each other: 0.3 kbit/s */
static const uint64_t COPY_US = 1000000;
static const uint64_t KEEP_US = 5 * 1000000; /* between two writes of the peers, where they change */

void ringing_note(struct ringing *ringing, const char *format, ...) {
    char sentence[RINGING_SENTENCE_SIZE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (ringing->config.note != NULL) {
        ringing->config.note(ringing->config.context, sentence);
    }
}

void ringing_on_complaint(void *context, const struct address *address, const char *sentence) {
    struct ringing *ringing = context;
    (void)address;
    if (complaints_add(&ringing->complaints, sentence, clock_wall_us(ringing->config.clock))) {
        ringing_note(ringing, "ring: %s", sentence);
    }
    ringing->copy_at_us = 0;
}

/* None: a new ring. */
static void join(struct ringing *ringing, const struct peer *peers, size_t count) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct event event = {.kind = EVENT_COMMAND, .code = RING_JOIN};
    event.bytes = ring_write_contacts(peers, count < CONTACTS_MAX ? count : CONTACTS_MAX, memory);
    ringing_step(ringing, &event);
}

/* ---- joining ---- */

static bool is_founder(const struct ringing *ringing) {
    return memcmp(ringing->charter.founder, ringing->identity.key, PEER_KEY_SIZE) == 0;
}

static enum err make_ring(struct ringing *ringing) {
    struct ring_config config = {
        .self = ringing->self,
        .places_count = ringing->config.places_count,
        .first_index = ringing->config.first_place % RING_VIRTUAL_MAX,
        .is_first_fixed = ringing->config.first_place < RING_VIRTUAL_MAX,
        .list_size = ringing->charter.list_size,
        .copies = ringing->charter.replicas,
        .heal_us = HEAL_US,
        .seed = ringing->seed,
    };
    memcpy(config.charter, ringing->id, sizeof config.charter);
    size_t actions_max = ring_actions_max(&config);
    size_t memory_size = ring_memory_size(&config);
    ringing->actions = calloc(actions_max, sizeof *ringing->actions);
    ringing->memory = malloc(memory_size);
    if (ringing->actions == NULL || ringing->memory == NULL) {
        return ERR_MEMORY;
    }
    outbox_init(&ringing->out, ringing->actions, actions_max, ringing->memory, memory_size);
    return ring_new(&config, &ringing->ring);
}

/* There is a charter. */
static void begin(struct ringing *ringing) {
    ringing->state = RINGING_JOINING;
    ringing->joined_at_us = ringing_now_us(ringing);
    if (charter_is_removed(&ringing->charter, ringing->identity.key)) {
        ringing->state = RINGING_REMOVED;
        ringing_note(ringing, "ring: the founder of \"%s\" has removed this node", ringing->charter.name);
        return;
    }
    enum err err = make_ring(ringing);
    if (err != ERR_OK) {
        ringing_note(ringing, "ring: %s", err_text(err));
        return;
    }
    ringing_step(ringing, &(struct event){.kind = EVENT_START});
    if (is_founder(ringing) && ringing->remembered_count == 0 && ringing->contact.host[0] == '\0') {
        join(ringing, NULL, 0);
    }
}

/* Whom we know: the contact, those of last time. */
static void try_to_join(struct ringing *ringing) {
    struct peer peers[CONTACTS_MAX];
    size_t count = 0;
    uint64_t now = ringing_now_us(ringing);
    if (ringing->contact.has_spoken) {
        peers[count++] = ringing->contact.peer;
    }
    for (size_t i = 0; i < ringing->remembered_count && count < CONTACTS_MAX; i++) {
        peers[count++] = ringing->remembered[i];
    }
    ringing->join_at_us = now + RINGING_JOIN_US;
    if (count > 0) {
        join(ringing, peers, count);
    }
    if (is_founder(ringing) && ringing->state == RINGING_JOINING && now - ringing->joined_at_us >= FOUND_US) {
        join(ringing, NULL, 0);
    }
}

/* ---- the contact ---- */

/* One socket, one family. */
static void take_addresses(struct ringing *ringing, const struct dns_answer *answer) {
    struct ringing_contact *contact = &ringing->contact;
    bool is_ipv4 = address_is_ipv4(&ringing->self.address);
    contact->addresses_count = 0;
    for (size_t i = 0; i < answer->count; i++) {
        if (address_is_ipv4(&answer->addresses[i]) == is_ipv4) {
            struct address *address = &contact->addresses[contact->addresses_count++];
            *address = answer->addresses[i];
            address->port = contact->port;
        }
    }
}

static void on_found(void *context, const struct dns_answer *answer) {
    struct ringing *ringing = context;
    struct ringing_contact *contact = &ringing->contact;
    if (answer->err == ERR_OK) {
        take_addresses(ringing, answer);
    }
    if (contact->addresses_count == 0) {
        char sentence[COMPLAINT_SIZE_MAX];
        snprintf(sentence, sizeof sentence, "%.200s: %s", contact->host,
                 answer->err != ERR_OK ? err_text(answer->err)
                                       : "it has no address that this node can reach");
        ringing_on_complaint(ringing, NULL, sentence);
        contact->try_at_us = ringing_now_us(ringing) + TRY_US_MAX;
        return;
    }
    contact->peer = (struct peer){.address = contact->addresses[0]};
    contact->is_found = true;
    contact->try_at_us = 0;
    ringing->state = ringing->state == RINGING_LOOKING ? RINGING_ASKING : ringing->state;
}

static void look_up(struct ringing *ringing) {
    struct ringing_contact *contact = &ringing->contact;
    if (contact->question.entry != NULL) {
        return; /* still waiting */
    }
    const struct dns_answer *answer =
        dns_ask(ringing->dns, bytes_of_string(contact->host), &contact->question, on_found, ringing);
    if (answer != NULL) {
        on_found(ringing, answer);
    }
}

static void tell_silence(struct ringing *ringing) {
    struct ringing_contact *contact = &ringing->contact;
    char address[ADDRESS_TEXT_SIZE_MAX];
    char sentence[COMPLAINT_SIZE_MAX];
    if (contact->is_told || contact->since_us == 0 ||
        ringing_now_us(ringing) - contact->since_us < SILENT_US) {
        return;
    }
    contact->is_told = true;
    snprintf(sentence, sizeof sentence, "no answer from %s yet",
             address_format(&contact->peer.address, address));
    ringing_on_complaint(ringing, &contact->peer.address, sentence);
}

/* The charter where there is none yet; else only a word, since its key must be known before one can join. */
static void try_contact(struct ringing *ringing) {
    struct ringing_contact *contact = &ringing->contact;
    uint64_t now = ringing_now_us(ringing);
    if (contact->host[0] == '\0' || contact->has_spoken) {
        return;
    }
    tell_silence(ringing);
    if (now < contact->try_at_us || gate_is_fetching(ringing->gate)) {
        return;
    }
    if (!contact->is_found) {
        look_up(ringing);
        return;
    }
    if (contact->addresses_count > 0) { /* of several, perhaps the next one answers */
        contact->peer.address = contact->addresses[contact->tries % contact->addresses_count];
    }
    uint64_t wait_us = TRY_US << (contact->tries < 5 ? contact->tries : 5);
    contact->tries++;
    contact->try_at_us = now + (wait_us < TRY_US_MAX ? wait_us : TRY_US_MAX);
    contact->since_us = contact->since_us == 0 ? now : contact->since_us;
    if (ringing->has_charter) {
        gate_greet(ringing->gate, &contact->peer);
    } else {
        gate_fetch(ringing->gate, &contact->peer, ringing->has_token ? ringing->token.ring : NULL);
    }
}

/* Whom a restart will turn to. */
static void remember(struct ringing *ringing) {
    pthread_mutex_lock(&ringing->lock);
    memcpy(ringing->kept, ringing->remembered, ringing->remembered_count * sizeof *ringing->kept);
    ringing->kept_count = ringing->remembered_count;
    pthread_mutex_unlock(&ringing->lock);
}

static void note_contact(struct ringing *ringing, const struct peer *peer) {
    struct ringing_contact *contact = &ringing->contact;
    if (contact->is_found && !contact->has_spoken && address_equal(&contact->peer.address, &peer->address)) {
        contact->peer = *peer;
        contact->has_spoken = true;
        ringing->join_at_us = 0;
        if (ringing->remembered_count == 0) {
            ringing->remembered[ringing->remembered_count++] = *peer;
            remember(ringing);
        }
    }
}

void ringing_on_met(void *context, const struct peer *peer) {
    note_contact(context, peer);
}

/* ---- charters ---- */

static void sign(const void *signer, const char *context, struct bytes message,
                 uint8_t out[CHARTER_SIGNATURE_SIZE]) {
    identity_sign(signer, context, message, out);
}

/* A token becomes a membership of this node, once. */
static void use_token(struct ringing *ringing) {
    struct identity bearer;
    struct membership *membership = &ringing->membership;
    if (!ringing->has_token) {
        return;
    }
    ringing->has_token = false;
    if (memcmp(ringing->token.ring, ringing->id, CHARTER_ID_SIZE) != 0) {
        ringing_note(ringing, "ring: the token is for another ring than \"%s\" and is not used",
                     ringing->charter.name);
        return;
    }
    if (!ringing->token.is_bearer) {
        *membership = (struct membership){.is_there = true, .invitation = ringing->token};
    } else if (identity_from_seed(&bearer, ringing->token_seed) == ERR_OK) {
        uint64_t now_s = (uint64_t)(clock_wall_us(ringing->config.clock) / US_PER_S);
        membership_bind(membership, &ringing->token, ringing->identity.key, now_s, sign, &bearer);
        identity_done(&bearer);
    }
    gate_set_membership(ringing->gate, membership);
    pthread_mutex_lock(&ringing->lock);
    ringing->has_membership_to_write = true;
    pthread_mutex_unlock(&ringing->lock);
}

static void keep_charter(struct ringing *ringing, struct bytes encoded) {
    struct ringing_post *post = &ringing->to_disk;
    pthread_mutex_lock(&ringing->lock);
    post->has_charter = true;
    memcpy(post->encoded, encoded.data, encoded.size);
    post->encoded_size = encoded.size;
    pthread_mutex_unlock(&ringing->lock);
}

/* What the ring is made of does not change between versions, only who is in it and what it shall do. */
void ringing_take_charter(struct ringing *ringing, const struct charter *charter, struct bytes encoded) {
    struct peer peers[RING_FILES_PEERS_MAX];
    if (ringing->has_charter && charter_succeeds(&ringing->charter, charter, NULL) != ERR_OK) {
        return;
    }
    ringing->charter = *charter;
    charter_id(charter, &ringing->sha256, ringing->id);
    gate_set_charter(ringing->gate, charter, encoded);
    ringing_note(ringing, "ring: charter of \"%s\", version %u", charter->name, charter->version);
    if (ringing->has_charter && charter_is_removed(charter, ringing->identity.key)) {
        ringing->state = RINGING_REMOVED;
        ringing_note(ringing, "ring: the founder of \"%s\" has removed this node", charter->name);
    }
    ringing->has_charter = true;
    pthread_mutex_lock(&ringing->lock);
    ringing->mapping = (int)charter->mapping;
    pthread_mutex_unlock(&ringing->lock);
    ringing_share_charter(ringing);
    size_t count = ringing->ring != NULL ? ringing_peers(ringing, peers) : 0;
    for (size_t i = 0; i < count; i++) {
        gate_greet(ringing->gate, &peers[i]); /* so it spreads at once */
    }
    ringing->copy_at_us = 0;
}

void ringing_on_learned(void *context, const struct peer *from, const struct charter *charter,
                        struct bytes encoded) {
    struct ringing *ringing = context;
    bool is_first = !ringing->has_charter;
    ringing_take_charter(ringing, charter, encoded);
    keep_charter(ringing, encoded);
    if (is_first) {
        use_token(ringing);
        note_contact(ringing, from);
        begin(ringing);
    }
}

void ringing_begin(struct ringing *ringing) {
    bool is_found = ringing->contact.is_found;
    ringing->greet_at_us = ringing_now_us(ringing) + GREET_US;
    if (!ringing->has_ring) {
        return; /* the loop is there for others */
    }
    if (!ringing->has_charter) {
        ringing->state = is_found ? RINGING_ASKING : RINGING_LOOKING;
        return;
    }
    gate_set_charter(ringing->gate, &ringing->charter, bytes_of(ringing->encoded, ringing->encoded_size));
    ringing_share_charter(ringing);
    use_token(ringing);
    begin(ringing);
}

/* ---- what comes ---- */

/* Without the port, which whoever floods us may change at will. */
static void blame_address(struct ringing *ringing, const struct address *address, const char *what) {
    char text[ADDRESS_TEXT_SIZE_MAX];
    char sentence[COMPLAINT_SIZE_MAX];
    address_format(address, text);
    *strrchr(text, ':') = '\0';
    snprintf(sentence, sizeof sentence, "%s is blamed: it sends %s", text, what);
    ringing_on_complaint(ringing, address, sentence);
}

/* Once a second is enough to be seen. */
static void blame(struct ringing *ringing, const struct address *address, const char *not_this) {
    char what[COMPLAINT_SIZE_MAX / 2];
    uint64_t now = ringing_now_us(ringing);
    if (now >= ringing->blame_at_us) {
        ringing->blame_at_us = now + US_PER_S;
        snprintf(what, sizeof what, "what is %s", not_this);
        blame_address(ringing, address, what);
    }
}

void ringing_on_message(void *context, const struct datagram_message *message) {
    struct ringing *ringing = context;
    if (message->kind == DATAGRAM_CHARTER) {
        uint64_t malformed_count = gate_stat(ringing->gate)->malformed_count;
        gate_receive(ringing->gate, message);
        if (gate_stat(ringing->gate)->malformed_count > malformed_count) {
            blame(ringing, &message->from.address, "no greeting");
        }
        return;
    }
    if (message->kind >= DATAGRAM_GROUP) {
        if (ringing->config.group != NULL) {
            ringing->config.group(ringing->config.shared, message);
        }
        return;
    }
    bool is_heard = ringing->ring != NULL && ringing->state != RINGING_REMOVED &&
                    gate_admits(ringing->gate, &message->from);
    if (!is_heard) {
        return;
    }
    ringing_share_admitted(ringing, &message->from);
    if (message->kind != DATAGRAM_RING) {
        if (ringing->config.datagram != NULL) {
            ringing->config.datagram(ringing->config.shared, message);
        }
        return;
    }
    struct event event = {.kind = EVENT_MESSAGE, .from = message->from.address, .bytes = message->bytes};
    memcpy(event.from_key, message->from.key, PEER_KEY_SIZE);
    uint64_t malformed_count = ring_counters(ringing->ring)->malformed_count;
    ringing_step(ringing, &event);
    if (ring_counters(ringing->ring)->malformed_count > malformed_count) {
        blame(ringing, &message->from.address, "no message of the ring");
    }
}

void ringing_on_refusal(void *context, const struct datagram_refusal *refusal) {
    struct ringing *ringing = context;
    char address[ADDRESS_TEXT_SIZE_MAX];
    char reason[COMPLAINT_SIZE_MAX / 2];
    char sentence[COMPLAINT_SIZE_MAX];
    if (refusal->reason == PLAIN_REASON_CLOCK) {
        bool is_ahead = refusal->ahead_us > 0;
        int64_t off_s = (is_ahead ? refusal->ahead_us : -refusal->ahead_us) / US_PER_S;
        snprintf(reason, sizeof reason, "its clock is %jd minutes %s ours", (intmax_t)((off_s + 30) / 60),
                 is_ahead ? "ahead of" : "behind");
    } else if (refusal->reason == PLAIN_REASON_VERSION) {
        snprintf(reason, sizeof reason, "it speaks version %u of the transport, this node %d",
                 refusal->version, SEAL_VERSION);
    } else {
        snprintf(reason, sizeof reason, "it does not say why");
    }
    snprintf(sentence, sizeof sentence, refusal->is_by_us ? "%s is refused: %s" : "%s refuses this node: %s",
             address_format(&refusal->peer.address, address), reason);
    ringing_on_complaint(ringing, &refusal->peer.address, sentence);
}

void ringing_on_noise(void *context, const struct address *from, enum datagram_noise noise) {
    static const char *const texts[DATAGRAM_NOISES_COUNT] = {
        [DATAGRAM_NOISE_LIMITED] = "more than it may",
        [DATAGRAM_NOISE_MALFORMED] = "what is no datagram of a node",
        [DATAGRAM_NOISE_FORGED] = "what was not sealed by whom it names",
    };
    blame_address(context, from, texts[noise]);
}

/* ---- the tick ---- */

/* One neighbour, at random: so that a version reaches also who was away when it was signed. */
static void greet_somebody(struct ringing *ringing) {
    struct peer peers[RING_FILES_PEERS_MAX];
    size_t count = ringing_peers(ringing, peers);
    if (count > 0) {
        gate_greet(ringing->gate, &peers[prng_mix(ringing->seed++) % count]);
    }
}

/* Those of now, where they are others than those that were written last. */
static void keep_peers(struct ringing *ringing) {
    struct peer peers[RING_FILES_PEERS_MAX];
    size_t count = ringing_peers(ringing, peers);
    bool is_same =
        count == ringing->remembered_count && memcmp(peers, ringing->remembered, count * sizeof *peers) == 0;
    if (count == 0 || is_same) {
        return;
    }
    memcpy(ringing->remembered, peers, count * sizeof *peers);
    ringing->remembered_count = count;
    remember(ringing);
    ringing->keep_at_us = ringing_now_us(ringing) + KEEP_US;
}

void ringing_on_tick(uv_timer_t *timer) {
    struct ringing *ringing = timer->data;
    uint64_t now = ringing_now_us(ringing);
    gate_tick(ringing->gate);
    if (ringing->has_ring && ringing->state != RINGING_MEMBER && ringing->state != RINGING_REMOVED) {
        try_contact(ringing);
    }
    if (ringing->state == RINGING_JOINING && ringing->ring != NULL && now >= ringing->join_at_us) {
        try_to_join(ringing);
    }
    if (ringing->state == RINGING_MEMBER && now >= ringing->greet_at_us) {
        ringing->greet_at_us = now + GREET_US / 2 + prng_mix(ringing->seed++) % GREET_US;
        greet_somebody(ringing);
    }
    if (ringing->state == RINGING_MEMBER && ringing->config.news != NULL) {
        ringing->config.news(ringing->config.shared, ringing->ring);
    }
    if (now >= ringing->copy_at_us) {
        ringing->copy_at_us = now + COPY_US;
        if (ringing->state == RINGING_MEMBER && now >= ringing->keep_at_us) {
            keep_peers(ringing);
        }
        ringing_copy(ringing);
    }
}
