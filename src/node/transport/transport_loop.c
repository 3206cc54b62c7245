#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/prng.h"
#include "base/wire.h"
#include "node/transport/transport_state.h"

/* ---- what the ring says ---- */

static const char *const reason_texts[RING_REASONS_END] = {
    [RING_OTHER_VERSION] = "it speaks another version of the ring's protocol",
    [RING_OTHER_CHARTER] = "it belongs to another ring",
};

static void on_ring_refused(struct transport *transport, struct bytes bytes) {
    struct wire_reader reader;
    struct vnode vnode;
    char address[ADDRESS_TEXT_SIZE_MAX];
    wire_reader_init(&reader, bytes);
    uint8_t reason = wire_read_u8_max(&reader, RING_REASONS_END - 1);
    bool is_by_him = wire_read_bool(&reader);
    ring_read_vnode(transport->ring, &reader, &vnode);
    if (reader.err != ERR_OK) {
        return;
    }
    transport_complain(transport, is_by_him ? "%s refuses this node: %s" : "%s is refused: %s",
                       address_format(&vnode.peer.address, address), reason_texts[reason]);
}

static void on_ring_blamed(struct transport *transport, struct bytes bytes) {
    struct wire_reader reader;
    struct vnode vnode;
    char address[ADDRESS_TEXT_SIZE_MAX];
    wire_reader_init(&reader, bytes);
    ring_read_vnode(transport->ring, &reader, &vnode);
    struct bytes text = wire_read_bytes(&reader, wire_reader_left(&reader));
    if (reader.err != ERR_OK) {
        return;
    }
    transport_complain(transport, "%s is blamed: %.*s", address_format(&vnode.peer.address, address),
                       BYTES_ARG(text));
}

/* A founder that finds its position taken is not alone: it does not begin anew. */
static void on_ring_taken(struct transport *transport, struct bytes bytes) {
    struct wire_reader reader;
    struct vnode holder;
    char own[ADDRESS_TEXT_SIZE_MAX];
    char holder_text[ADDRESS_TEXT_SIZE_MAX];
    char advice[64] = "set ring.first_place";
    wire_reader_init(&reader, bytes);
    uint8_t index = wire_read_u8(&reader);
    uint8_t next = wire_read_u8(&reader);
    ring_read_vnode(transport->ring, &reader, &holder);
    if (reader.err != ERR_OK) {
        return;
    }
    if (next < RING_VIRTUAL_MAX) {
        snprintf(advice, sizeof advice, "this node tries place %u", next);
    } else if (transport->config.first_vnode == RING_VIRTUAL_MAX) {
        snprintf(advice, sizeof advice, "no others are free; set ring.capacity");
    }
    address_format(&transport->self.address, own);
    *strrchr(own, ':') = '\0';
    transport->joined_at_us = transport_now_us(transport);
    transport_complain(transport, "place %u of %s is taken by %s; %s", index, own,
                       address_format(&holder.peer.address, holder_text), advice);
}

static void on_member(struct transport *transport, bool is_member) {
    char address[ADDRESS_TEXT_SIZE_MAX];
    transport->state = is_member ? TRANSPORT_MEMBER : TRANSPORT_JOINING;
    transport->joined_at_us = transport_now_us(transport);
    transport->join_at_us = transport_now_us(transport) + TRANSPORT_JOIN_US;
    if (transport->config.is_light) {
        transport_note(transport,
                       is_member ? "ring: a light member of \"%s\"" : "ring: nobody of \"%s\" answers",
                       transport->charter.name);
        return;
    }
    transport_note(transport, "ring: %s \"%s\" as %s", is_member ? "in" : "no longer in",
                   transport->charter.name, address_format(&transport->self.address, address));
}

static void transport_on_notice(struct transport *transport, const struct action *action) {
    switch ((enum ring_notice)action->code) {
    case RING_MEMBER:
        on_member(transport, action->bytes.size > 0 && action->bytes.data[0] != 0);
        break;
    case RING_REFUSED:
        on_ring_refused(transport, action->bytes);
        break;
    case RING_BLAMED:
        on_ring_blamed(transport, action->bytes);
        break;
    case RING_TAKEN:
        on_ring_taken(transport, action->bytes);
        break;
    case RING_ARC: /* seen in the copy */
    case RING_HELD:
    case RING_GONE:
        break;
    case RING_FOUND:
    case RING_LOST:
        transport_on_answer(transport, action->bytes);
        return;
    }
    transport->copy_at_us = 0;
}

/* ---- the ring's steps ---- */

/* What one place of this node says to another leaves no socket; it is heard when this step is over. */
static void say_to_self(struct transport *transport, struct bytes message) {
    uint8_t size[2] = {(uint8_t)message.size, (uint8_t)(message.size >> 8)};
    if (transport->own.size + sizeof size + message.size <=
        TRANSPORT_OWN_SIZE_MAX) { /* else lost, as on the way */
        buf_put(&transport->own, bytes_of(size, sizeof size));
        buf_put(&transport->own, message);
    }
}

static void send_to(struct transport *transport, const struct action *action) {
    struct peer to = {.address = action->to};
    memcpy(to.key, action->to_key, PEER_KEY_SIZE);
    if (address_equal(&to.address, &transport->self.address)) {
        say_to_self(transport, action->bytes);
        return;
    }
    transport_send(transport, &to, DATAGRAM_RING, action->bytes);
}

static void transport_step_once(struct transport *transport, struct event *event) {
    struct outbox *out = &transport->out;
    event->now_us = transport_now_us(transport);
    outbox_clear(out);
    ring_step(transport->ring, event, out);
    for (size_t i = 0; i < out->actions_count; i++) {
        if (out->actions[i].kind == ACTION_SEND) {
            send_to(transport, &out->actions[i]);
        } else if (out->actions[i].kind == ACTION_NOTICE) {
            transport_on_notice(transport, &out->actions[i]);
        }
    }
}

void transport_step(struct transport *transport, struct event *event) {
    size_t heard = 0;
    transport_step_once(transport, event);
    while (heard < transport->own.size) {
        uint8_t memory[STEP_MESSAGE_SIZE_MAX];
        const uint8_t *said = transport->own.data + heard;
        struct event message = {.kind = EVENT_MESSAGE, .from = transport->self.address};
        message.bytes = bytes_of(memory, (size_t)said[0] | (size_t)said[1] << 8);
        memcpy(memory, said + 2, message.bytes.size); /* the buffer may move */
        memcpy(message.from_key, transport->self.key, PEER_KEY_SIZE);
        heard += 2 + message.bytes.size;
        transport_step_once(transport, &message);
    }
    buf_clear(&transport->own);
    transport_wake_at(transport, DATAGRAM_RING, transport->out.wake_at_us);
}

void transport_on_wake(void *context) {
    struct transport *transport = context;
    if (transport->ring != NULL && transport->state != TRANSPORT_REMOVED) {
        transport_step(transport, &(struct event){.kind = EVENT_WAKE});
    }
}

enum { CONTACTS_MAX = 16 /* of RING_JOIN */, US_PER_S = 1000000 };
static const uint64_t TRY_US = 1000000;          /* to ask a contact that is silent */
static const uint64_t TRY_US_MAX = 30 * 1000000; /* with back-off */
static const uint64_t SILENT_US = 5 * 1000000;   /* before people are told */
static const uint64_t FOUND_US = 30 * 1000000;   /* a founder that gets no answer begins alone */
static const uint64_t LONG_US = 12 * 1000000;    /* joins take 2 or 3 s */
static const uint64_t GREET_US = 60 * 1000000;   /* to one neighbour: has it a newer charter? */
static const uint64_t HEAL_US = 30 * 1000000;    /* parts of a ring look for each other: 0.3 kbit/s */
static const uint64_t COPY_US = 1000000;
static const uint64_t KEEP_US = 5 * 1000000; /* between two writes of the peers, if they change */

void transport_note(struct transport *transport, const char *format, ...) {
    char sentence[TRANSPORT_SENTENCE_SIZE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (transport->config.note != NULL) {
        transport->config.note(transport->config.context, sentence);
    }
}

void transport_on_complaint(void *context, const char *sentence) {
    struct transport *transport = context;
    if (complaints_add(&transport->complaints, sentence, clock_wall_us(transport->config.clock))) {
        transport_note(transport, "ring: %s", sentence);
    }
    transport->copy_at_us = 0;
}

void transport_complain(struct transport *transport, const char *format, ...) {
    char sentence[COMPLAINT_SIZE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    transport_on_complaint(transport, sentence);
}

/* None: a new ring. */
static void transport_join(struct transport *transport, const struct peer *peers, size_t count) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct event event = {.kind = EVENT_COMMAND, .code = RING_JOIN};
    event.bytes = ring_write_contacts(peers, count < CONTACTS_MAX ? count : CONTACTS_MAX, memory);
    transport_step(transport, &event);
}

/* ---- joining ---- */

/* Who begins a ring in which nobody else is there: its founder, or, if it has stewards, they. */
static bool is_founder(const struct transport *transport) {
    return !transport->config.is_light && /* it founds nothing */
           charter_is_steward(&transport->charter, transport->identity.key);
}

static enum err make_ring(struct transport *transport) {
    struct ring_config config = {
        .self = transport->self,
        .vnodes_count = transport->config.vnodes_count,
        .first_index = transport->config.first_vnode % RING_VIRTUAL_MAX,
        .is_first_fixed = transport->config.first_vnode < RING_VIRTUAL_MAX,
        .is_light = transport->config.is_light,
        .list_size = transport->charter.list_size,
        .copies = transport->charter.replicas,
        .heal_us = HEAL_US,
        .seed = transport->seed,
    };
    memcpy(config.charter, transport->id, sizeof config.charter);
    size_t actions_max = ring_actions_max(&config);
    size_t memory_size = ring_memory_size(&config);
    transport->actions = calloc(actions_max, sizeof *transport->actions);
    transport->memory = malloc(memory_size);
    if (transport->actions == NULL || transport->memory == NULL) {
        return ERR_MEMORY;
    }
    outbox_init(&transport->out, transport->actions, actions_max, transport->memory, memory_size);
    return ring_new(&config, &transport->ring);
}

/* There is a charter. */
static void loop_begin(struct transport *transport) {
    transport->state = TRANSPORT_JOINING;
    transport->joined_at_us = transport_now_us(transport);
    if (charter_is_removed(&transport->charter, transport->identity.key)) {
        transport->state = TRANSPORT_REMOVED;
        transport_note(transport, "ring: this node has been removed from \"%s\"", transport->charter.name);
        return;
    }
    enum err err = make_ring(transport);
    if (err != ERR_OK) {
        transport_note(transport, "ring: %s", err_text(err));
        return;
    }
    transport_step(transport, &(struct event){.kind = EVENT_START});
    if (is_founder(transport) && transport->remembered_count == 0 && transport->contact.host[0] == '\0') {
        transport_join(transport, NULL, 0);
    }
}

/* Somebody has answered, and still nobody takes us in: members ask a newcomer at the address that it names.
 */
static void tell_long_join(struct transport *transport) {
    char address[ADDRESS_TEXT_SIZE_MAX];
    if (transport->is_long_told || !transport->contact.has_spoken || transport->config.is_light ||
        transport_now_us(transport) - transport->joined_at_us < LONG_US) {
        return;
    }
    transport->is_long_told = true;
    transport_complain(transport, "not taken in yet; other nodes must reach this one at %s (--public)",
                       address_format(&transport->self.address, address));
}

/* Whom we know: the contact, those of last time. */
static void try_to_join(struct transport *transport) {
    struct peer peers[CONTACTS_MAX];
    size_t count = 0;
    uint64_t now = transport_now_us(transport);
    if (transport->contact.has_spoken) {
        peers[count++] = transport->contact.peer;
    }
    for (size_t i = 0; i < transport->remembered_count && count < CONTACTS_MAX; i++) {
        peers[count++] = transport->remembered[i];
    }
    transport->join_at_us = now + TRANSPORT_JOIN_US;
    if (count > 0) {
        transport_join(transport, peers, count);
    }
    if (is_founder(transport) && transport->state == TRANSPORT_JOINING &&
        now - transport->joined_at_us >= FOUND_US) {
        transport_join(transport, NULL, 0);
    }
}

/* ---- the contact ---- */

/* Those that this node can send to. */
static bool is_within_reach(const struct transport *transport, const struct address *address) {
    const struct dialects *dialects = transport->config.dialects;
    return dialects != NULL ? dialects_has_way(dialects, address)
                            : address_is_ipv4(address) == address_is_ipv4(&transport->self.address);
}

static void take_addresses(struct transport *transport, const struct dns_answer *answer) {
    struct transport_contact *contact = &transport->contact;
    contact->addresses_count = 0;
    for (size_t i = 0; i < answer->count; i++) {
        if (is_within_reach(transport, &answer->addresses[i])) {
            struct address *address = &contact->addresses[contact->addresses_count++];
            *address = answer->addresses[i];
            address->port = contact->port;
        }
    }
}

static void on_found(void *context, const struct dns_answer *answer) {
    struct transport *transport = context;
    struct transport_contact *contact = &transport->contact;
    if (answer->err == ERR_OK) {
        take_addresses(transport, answer);
    }
    if (contact->addresses_count == 0) {
        transport_complain(transport, "%.200s: %s", contact->host,
                           answer->err != ERR_OK ? err_text(answer->err)
                                                 : "it has no address that this node can reach");
        contact->retry.due_us = transport_now_us(transport) + TRY_US_MAX;
        return;
    }
    contact->peer = (struct peer){.address = contact->addresses[0]};
    contact->is_found = true;
    contact->retry.due_us = 0;
    transport->state = transport->state == TRANSPORT_LOOKING ? TRANSPORT_ASKING : transport->state;
}

static void transport_look_up(struct transport *transport) {
    struct transport_contact *contact = &transport->contact;
    if (contact->question.entry != NULL) {
        return; /* still waiting */
    }
    const struct dns_answer *answer =
        dns_ask(transport->dns, bytes_of_string(contact->host), &contact->question, on_found, transport);
    if (answer != NULL) {
        on_found(transport, answer);
    }
}

static void tell_silence(struct transport *transport) {
    struct transport_contact *contact = &transport->contact;
    char address[ADDRESS_TEXT_SIZE_MAX];
    if (contact->is_told || contact->since_us == 0 ||
        transport_now_us(transport) - contact->since_us < SILENT_US) {
        return;
    }
    contact->is_told = true;
    transport_complain(transport, "no answer from %s yet", address_format(&contact->peer.address, address));
}

/* Ask for the charter if there is none yet; else say only a word, since its key must be known before one can
 * join. */
static void try_contact(struct transport *transport) {
    struct transport_contact *contact = &transport->contact;
    uint64_t now = transport_now_us(transport);
    if (contact->host[0] == '\0' || contact->has_spoken) {
        return;
    }
    tell_silence(transport);
    if (!retry_is_due(&contact->retry, now) || gate_is_fetching(transport->gate)) {
        return;
    }
    if (!contact->is_found) {
        transport_look_up(transport);
        return;
    }
    if (contact->addresses_count > 0) { /* of several, perhaps the next one answers */
        contact->peer.address = contact->addresses[contact->retry.tries_count % contact->addresses_count];
    }
    retry_sent_doubling(&contact->retry, TRY_US, TRY_US_MAX, now);
    contact->since_us = contact->since_us == 0 ? now : contact->since_us;
    if (transport->has_charter) {
        gate_greet(transport->gate, &contact->peer);
    } else {
        gate_fetch(transport->gate, &contact->peer, transport->has_token ? transport->token.ring : NULL);
    }
}

/* Whom a restart will turn to. */
static void transport_remember(struct transport *transport) {
    pthread_mutex_lock(&transport->lock);
    memcpy(transport->kept, transport->remembered, transport->remembered_count * sizeof *transport->kept);
    transport->kept_count = transport->remembered_count;
    pthread_mutex_unlock(&transport->lock);
}

static void note_contact(struct transport *transport, const struct peer *peer) {
    struct transport_contact *contact = &transport->contact;
    if (contact->is_found && !contact->has_spoken && address_equal(&contact->peer.address, &peer->address)) {
        (void)transport_find_main(transport, peer, &contact->peer);
        contact->has_spoken = true;
        transport->join_at_us = 0;
        if (transport->remembered_count == 0) {
            transport->remembered[transport->remembered_count++] = contact->peer;
            transport_remember(transport);
        }
    }
}

void transport_on_admitted(void *context, const uint8_t key[PEER_KEY_SIZE],
                           const struct membership *membership) {
    transport_share_membership(context, key, membership);
}

void transport_on_met(void *context, const struct peer *peer) {
    note_contact(context, peer);
}

/* ---- charters ---- */

/* A token becomes a membership of this node, once. */
static void use_token(struct transport *transport) {
    struct identity bearer;
    struct membership *membership = &transport->membership;
    if (!transport->has_token) {
        return;
    }
    transport->has_token = false;
    if (memcmp(transport->token.ring, transport->id, CHARTER_ID_SIZE) != 0) {
        transport_note(transport, "ring: the token is for another ring than \"%s\" and is not used",
                       transport->charter.name);
        return;
    }
    if (!transport->token.is_bearer) {
        *membership = (struct membership){.is_there = true, .invitation = transport->token};
    } else if (identity_from_seed(&bearer, transport->token_seed) == ERR_OK) {
        uint64_t now_s = (uint64_t)(clock_wall_us(transport->config.clock) / US_PER_S);
        membership_bind(membership, &transport->token, transport->identity.key, now_s, identity_sign,
                        &bearer);
        identity_done(&bearer);
    }
    gate_set_membership(transport->gate, membership);
    transport_share_membership(transport, transport->identity.key, membership);
    pthread_mutex_lock(&transport->lock);
    transport->has_membership_to_write = true;
    pthread_mutex_unlock(&transport->lock);
}

static void keep_charter(struct transport *transport, struct bytes encoded) {
    struct transport_post *post = &transport->to_disk;
    pthread_mutex_lock(&transport->lock);
    post->has_charter = true;
    memcpy(post->encoded, encoded.data, encoded.size);
    post->encoded_size = encoded.size;
    pthread_mutex_unlock(&transport->lock);
    if (transport->config.changed != NULL) {
        transport->config.changed(transport->config.context);
    }
}

/* So that a new version spreads at once. */
static void greet_all(struct transport *transport) {
    struct peer peers[RING_FILES_PEERS_MAX];
    size_t count = transport->ring != NULL ? transport_peers(transport, peers) : 0;
    for (size_t i = 0; i < count; i++) {
        gate_greet(transport->gate, &peers[i]);
    }
}

/* The ring's parameters do not change between versions, only its members and what it shall do. */
void transport_take_charter(struct transport *transport, const struct charter *charter,
                            struct bytes encoded) {
    if (transport->has_charter && charter_succeeds(&transport->charter, charter, NULL) != ERR_OK) {
        return;
    }
    transport->charter = *charter;
    charter_id(charter, &transport->sha256, transport->id);
    gate_set_charter(transport->gate, charter, encoded);
    transport_note(transport, "ring: charter of \"%s\", version %u", charter->name, charter->version);
    if (transport->has_charter && charter_is_removed(charter, transport->identity.key)) {
        transport->state = TRANSPORT_REMOVED;
        transport_note(transport, "ring: this node has been removed from \"%s\"", charter->name);
    }
    transport->has_charter = true;
    pthread_mutex_lock(&transport->lock);
    transport->mapping = (int)charter->mapping;
    pthread_mutex_unlock(&transport->lock);
    transport_share_charter(transport);
    greet_all(transport);
    transport->copy_at_us = 0;
}

/*
 * What others gave us counts when it is on the disk: no power failure leads back to the charter before, or
 * out of a ring that we have joined. A new version comes in from there, by the beat, like one of this node's
 * own.
 */
void transport_on_learned(void *context, const struct peer *from, const struct charter *charter,
                          struct bytes encoded) {
    struct transport *transport = context;
    if (transport->has_charter) {
        if (charter_succeeds(&transport->charter, charter, NULL) == ERR_OK) {
            keep_charter(transport, encoded);
        }
        return;
    }
    transport_take_charter(transport, charter, encoded);
    use_token(transport);
    note_contact(transport, from);
    transport->is_to_begin = true;
    keep_charter(transport, encoded);
}

static void tell_later(struct transport *transport, uint32_t version) {
    transport_complain(transport,
                       "version %u of the charter has the form of a later program: this node goes on with "
                       "version %u, and must be upgraded",
                       version, transport->charter.version);
}

void transport_on_learned_later(void *context, uint32_t version, struct bytes encoded) {
    struct transport *transport = context;
    pthread_mutex_lock(&transport->lock);
    memcpy(transport->later_to_disk.encoded, encoded.data, encoded.size);
    transport->later_to_disk.size = encoded.size;
    pthread_mutex_unlock(&transport->lock);
    tell_later(transport, version);
    greet_all(transport);
}

bool transport_keeps_later(void *context, const struct peer *peer) {
    struct transport *transport = context;
    struct dialects *dialects = transport->config.dialects;
    return dialects != NULL && dialects_has(dialects, peer, DIALECT_KEEPS_LATER);
}

bool transport_reads_stewards(void *context, const struct peer *peer) {
    struct transport *transport = context;
    struct dialects *dialects = transport->config.dialects;
    return dialects == NULL || dialects_has(dialects, peer, DIALECT_STEWARDS);
}

bool transport_is_known(void *context, const struct peer *peer) {
    struct transport *transport = context;
    struct dialects *dialects = transport->config.dialects;
    return dialects != NULL && dialects_find(dialects, peer).is_known;
}

/* From the disk. */
static void take_later(struct transport *transport) {
    struct bytes later = bytes_of(transport->later.encoded, transport->later.size);
    uint32_t version = later.size > 0 ? gate_set_later(transport->gate, later) : 0;
    if (version > 0) {
        tell_later(transport, version);
    }
}

void transport_on_kept(struct transport *transport) {
    if (transport->is_to_begin) {
        transport->is_to_begin = false;
        loop_begin(transport);
    }
}

void transport_begin(struct transport *transport) {
    bool is_found = transport->contact.is_found;
    transport->greet_at_us = transport_now_us(transport) + GREET_US;
    if (!transport->has_ring) {
        return; /* the loop is there for others */
    }
    if (!transport->has_charter) {
        transport->state = is_found ? TRANSPORT_ASKING : TRANSPORT_LOOKING;
        return;
    }
    gate_set_charter(transport->gate, &transport->charter,
                     bytes_of(transport->encoded, transport->encoded_size));
    if (transport->plain_size > 0) {
        gate_set_plain(transport->gate, bytes_of(transport->plain, transport->plain_size));
    }
    take_later(transport);
    transport_share_charter(transport);
    use_token(transport);
    loop_begin(transport);
}

/* ---- what comes ---- */

/* Without the port, which whoever floods us may change at will. */
static void blame_address(struct transport *transport, const struct address *address, const char *what) {
    char text[ADDRESS_TEXT_SIZE_MAX];
    address_format(address, text);
    *strrchr(text, ':') = '\0';
    transport_complain(transport, "%s is blamed: it sends %s", text, what);
}

/* Once a second is enough to be seen. */
void transport_blame_noise(struct transport *transport, const struct address *address, const char *not_this) {
    char what[COMPLAINT_SIZE_MAX / 2];
    uint64_t now = transport_now_us(transport);
    if (now >= transport->blame_at_us) {
        transport->blame_at_us = now + US_PER_S;
        snprintf(what, sizeof what, "what is %s", not_this);
        blame_address(transport, address, what);
    }
}

void transport_receive_greeting(void *context, const struct datagram_message *message) {
    struct transport *transport = context;
    uint64_t malformed_count = gate_stat(transport->gate)->malformed_count;
    gate_receive(transport->gate, message);
    if (gate_stat(transport->gate)->malformed_count > malformed_count) {
        transport_blame_noise(transport, &message->from.address, "no greeting");
    }
}

void transport_receive_ring(void *context, const struct datagram_message *message) {
    struct transport *transport = context;
    struct event event = {.kind = EVENT_MESSAGE, .from = message->from.address, .bytes = message->bytes};
    memcpy(event.from_key, message->from.key, PEER_KEY_SIZE);
    uint64_t malformed_count = ring_counters(transport->ring)->malformed_count;
    transport_step(transport, &event);
    if (ring_counters(transport->ring)->malformed_count > malformed_count) {
        transport_blame_noise(transport, &message->from.address, "no message of the ring");
    }
}

static bool is_heard(struct transport *transport, const struct peer *peer) {
    bool is_member = transport->ring != NULL && transport->state != TRANSPORT_REMOVED &&
                     gate_admits(transport->gate, peer);
    if (is_member) {
        transport_share_admitted(transport, peer);
    }
    return is_member;
}

/* Hellos and charters are of a node, whatever its address; the rest is of its places. */
void transport_on_message(void *context, const struct datagram_message *came) {
    struct transport *transport = context;
    struct datagram_message of_place = *came;
    const struct datagram_message *message = &of_place;
    bool is_of_node = came->kind == DATAGRAM_HELLO || came->kind == DATAGRAM_CHARTER;
    if ((came->kind != DATAGRAM_HELLO && !transport_hears(transport, &came->from)) ||
        (!is_of_node && !transport_find_main(transport, &came->from, &of_place.from))) {
        return;
    }
    for (size_t i = 0; i < transport->tenants_count; i++) {
        const struct transport_tenant *tenant = &transport->tenants[i];
        if (tenant->kind == message->kind &&
            (!tenant->is_for_members || is_heard(transport, &message->from))) {
            tenant->receive(tenant->context, message);
        }
    }
}

void transport_on_refusal(void *context, const struct datagram_refusal *refusal) {
    struct transport *transport = context;
    char address[ADDRESS_TEXT_SIZE_MAX];
    char reason[COMPLAINT_SIZE_MAX / 2];
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
    transport_complain(transport, refusal->is_by_us ? "%s is refused: %s" : "%s refuses this node: %s",
                       address_format(&refusal->peer.address, address), reason);
}

void transport_on_noise(void *context, const struct address *from, enum datagram_noise noise) {
    static const char *const texts[DATAGRAM_NOISES_COUNT] = {
        [DATAGRAM_NOISE_LIMITED] = "more than it may",
        [DATAGRAM_NOISE_MALFORMED] = "what is no datagram of a node",
        [DATAGRAM_NOISE_FORGED] = "what was not sealed by whom it names",
    };
    blame_address(context, from, texts[noise]);
}

/* ---- the tick ---- */

/* One neighbour, at random, so that a version also reaches nodes that were away when it was signed. */
static void greet_somebody(struct transport *transport) {
    struct peer peers[RING_FILES_PEERS_MAX];
    size_t count = transport_peers(transport, peers);
    if (count > 0) {
        gate_greet(transport->gate, &peers[prng_mix(transport->seed++) % count]);
    }
}

/* Those of now, if they differ from those that were written last. */
static void keep_peers(struct transport *transport) {
    struct peer peers[RING_FILES_PEERS_MAX];
    size_t count = transport_peers(transport, peers);
    bool is_same = count == transport->remembered_count &&
                   memcmp(peers, transport->remembered, count * sizeof *peers) == 0;
    if (count == 0 || is_same) {
        return;
    }
    memcpy(transport->remembered, peers, count * sizeof *peers);
    transport->remembered_count = count;
    transport_remember(transport);
    transport->keep_at_us = transport_now_us(transport) + KEEP_US;
}

void transport_on_tick(void *context) {
    struct transport *transport = context;
    uint64_t now = transport_now_us(transport);
    gate_tick(transport->gate);
    if (transport->has_ring && transport->state != TRANSPORT_MEMBER &&
        transport->state != TRANSPORT_REMOVED) {
        try_contact(transport);
    }
    if (transport->state == TRANSPORT_JOINING && transport->ring != NULL && now >= transport->join_at_us) {
        tell_long_join(transport);
        try_to_join(transport);
    }
    if (transport->state == TRANSPORT_MEMBER && now >= transport->greet_at_us) {
        transport->greet_at_us = now + GREET_US / 2 + prng_mix(transport->seed++) % GREET_US;
        greet_somebody(transport);
    }
    for (size_t i = 0; i < transport->tenants_count && transport->state == TRANSPORT_MEMBER; i++) {
        const struct transport_tenant *tenant = &transport->tenants[i];
        if (tenant->news != NULL) {
            tenant->news(tenant->context, transport->ring);
        }
    }
    if (transport->state == TRANSPORT_MEMBER) {
        transport_meet_others(transport);
    }
    if (now >= transport->copy_at_us) {
        transport->copy_at_us = now + COPY_US;
        if (transport->state == TRANSPORT_MEMBER && now >= transport->keep_at_us) {
            keep_peers(transport);
        }
        transport_copy(transport);
    }
}
