#include "protocol/ring/ring.h"

#include "base/bucket.h"
#include "protocol/ring/ring_state.h"

/* A machine has at most 32 places, and each of them notifies five times a second when all is in motion. */
enum {
    PEER_BURST = 160,
    PEER_US = 20000,
    STRANGERS_BURST = 8, /* a node that asked us for our state, as all do first, is none any more */
    STRANGERS_US = 250000,
};

enum {
    HEAL_SPEED_ALONE = 16,
    STALL_US = 30000000, /* longer asleep than this: others took us for dead */
    MEMORY_SIZE_MAX = 1 << 30,
    OWN_LOOKUPS_COUNT = 2, /* beside those of the user */
};

/* ---- life ---- */

static void fill_defaults(struct ring_config *config) {
    config->vnodes_count = config->vnodes_count == 0 ? 1 : config->vnodes_count;
    config->list_size = config->list_size == 0 ? RING_LIST_DEFAULT : config->list_size;
    config->copies = config->copies == 0 ? 3 : config->copies;
    config->table_capacity = config->table_capacity == 0 ? 20000 : config->table_capacity;
    config->lookups_max = config->lookups_max == 0 ? 1024 : config->lookups_max;
    config->stabilize_us = config->stabilize_us == 0 ? 10000000 : config->stabilize_us;
    config->heal_us = config->heal_us == 0 ? 120000000 : config->heal_us;
    ASSERT(config->list_size <= RING_LIST_MAX && config->copies <= RING_LIST_MAX);
    ASSERT(config->first_index + config->vnodes_count <= RING_VIRTUAL_MAX);
    ASSERT(config->self.address.port != 0);
}

static uint32_t queries_max(const struct ring_config *config) {
    uint32_t lookups = config->lookups_max + OWN_LOOKUPS_COUNT + config->vnodes_count;
    uint32_t of_vnode = 2 + config->list_size + 1; /* a round, the chain, doubts */
    return config->vnodes_count * of_vnode + lookups * LOOKUP_FLIGHT_MAX + SMALL_NODES_MAX +
           SMALL_CANDIDATES_MAX;
}

static bool is_needed(const void *context, struct ring_id id) {
    const struct ring *ring = context;
    for (unsigned i = 0; i < ring->config.vnodes_count; i++) {
        if (chord_needs(ring, &ring->vnodes[i], id)) {
            return true;
        }
    }
    return false;
}

static enum err ring_init(struct ring *ring, const struct ring_config *config) {
    ring->config = *config;
    ring->queries_max = queries_max(config);
    ring->lookups_count = config->lookups_max + OWN_LOOKUPS_COUNT + config->vnodes_count;
    ring->vnodes = arena_take_array(&ring->arena, config->vnodes_count, sizeof *ring->vnodes);
    ring->lookups = arena_take_array(&ring->arena, ring->lookups_count, sizeof *ring->lookups);
    ring->queries = arena_take_array(&ring->arena, ring->queries_max, sizeof *ring->queries);
    if (ring->arena.is_short) {
        return ERR_MEMORY;
    }
    prng_init(&ring->prng, config->seed);
    ring->secret = prng_u64(&ring->prng);
    standing_init(&ring->standing, ring->silences, QUERY_SILENCES_MAX, ring->secret);
    taken_init(&ring->taken);
    enum err err = table_init(&ring->table, &ring->arena, config->table_capacity, prng_u64(&ring->prng),
                              is_needed, ring);
    err = err != ERR_OK ? err : sha256_init(&ring->sha256);
    for (unsigned i = 0; i < config->vnodes_count && err == ERR_OK; i++) {
        struct vnode self = {.peer = config->self, .index = (uint8_t)(config->first_index + i)};
        self.id = ring_id_of_node(&ring->sha256, &self.peer.address, self.index);
        chord_init(&ring->vnodes[i], &self);
    }
    return err;
}

enum err ring_new(const struct ring_config *given, struct ring **ret_ring) {
    struct ring_config config = *given;
    fill_defaults(&config);
    struct ring *ring = arena_new(sizeof *ring, MEMORY_SIZE_MAX);
    enum err err = ring == NULL ? ERR_MEMORY : ring_init(ring, &config);
    if (err != ERR_OK) {
        ring_free(ring);
        return err;
    }
    *ret_ring = ring;
    return ERR_OK;
}

void ring_free(struct ring *ring) {
    if (ring != NULL) {
        sha256_done(&ring->sha256);
    }
    arena_free(ring);
}

/* Every open question repeated, one answer, per place two notifies and three notices, lookups started. */
size_t ring_actions_max(const struct ring_config *given) {
    struct ring_config config = *given;
    fill_defaults(&config);
    return 2 * (size_t)queries_max(&config) + 6 * (size_t)config.vnodes_count + 16;
}

size_t ring_memory_size(const struct ring_config *config) {
    return ring_actions_max(config) * (size_t)STEP_MESSAGE_SIZE_MAX;
}

/* ---- for the other files ---- */

uint64_t ring_jitter(struct ring *ring, uint64_t us) {
    return us / 2 + prng_below(&ring->prng, us + 1);
}

bool ring_is_own(const struct ring *ring, const struct vnode *vnode) {
    return address_equal(&ring->config.self.address, &vnode->peer.address);
}

bool vnodes_have_node(const struct vnode *vnodes, unsigned count, const struct vnode *vnode) {
    unsigned i = 0;
    while (i < count && !address_equal(&vnodes[i].peer.address, &vnode->peer.address)) {
        i++;
    }
    return i < count;
}

void ring_heard_of(struct ring *ring, const struct vnode *vnode) {
    if (!ring_is_own(ring, vnode)) {
        table_enter(&ring->table, vnode);
    }
}

void ring_send(struct ring *ring, const struct vnode *to, struct message *message) {
    message->version = RING_VERSION;
    memcpy(message->charter, ring->config.charter, RING_CHARTER_SIZE);
    if (message_is_question(message->kind) || message->kind == MESSAGE_NOTIFY) {
        const struct table_entry *entry = table_find(&ring->table, to->id);
        message->token = entry != NULL ? entry->token : 0;
        message->is_padded = message->token == 0;
    }
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    outbox_send_peer(ring->out, &to->peer, message_write(message, memory));
}

void ring_blame(struct ring *ring, const struct vnode *who, const char *text) {
    uint32_t index = 0;
    while (index < ring->blames_count && !vnode_equal(&ring->blames[index].who, who)) {
        index++;
    }
    if (index == RING_BLAMES_MAX) {
        index = (uint32_t)prng_below(&ring->prng, RING_BLAMES_MAX);
        ring->blames[index].count = 0;
    } else if (index == ring->blames_count) {
        ring->blames_count++;
    }
    struct ring_blame *blame = &ring->blames[index];
    bool is_news = blame->count == 0;
    blame->who = *who;
    blame->at_us = ring->now_us;
    blame->count++;
    size_t size = strlen(text) < sizeof blame->text ? strlen(text) : sizeof blame->text - 1;
    memcpy(blame->text, text, size);
    blame->text[size] = '\0';
    ring->counters.blamed_count++;
    if (is_news) {
        uint8_t memory[2 * MESSAGE_VNODE_SIZE_MAX];
        struct wire_writer writer;
        wire_writer_init(&writer, memory, sizeof memory);
        message_write_vnode(&writer, who);
        wire_write_bytes(&writer, bytes_of(blame->text, size));
        outbox_notice(ring->out, RING_BLAMED, bytes_of(memory, writer.size));
    }
}

/* ---- messages ---- */

static struct vnode sender_of(struct ring *ring, const struct event *event, uint8_t index) {
    return (struct vnode){
        .id = ring_id_of_node(&ring->sha256, &event->from, index),
        .peer = event_sender(event),
        .index = index,
    };
}

/* Or, if it would be too long for a node that has not proved its address, the way to prove it. */
static void answer(struct ring *ring, const struct event *event, uint64_t token, struct message *answer) {
    answer->version = RING_VERSION;
    memcpy(answer->charter, ring->config.charter, RING_CHARTER_SIZE);
    answer->token = query_token(ring, &event->from);
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct bytes bytes = message_write(answer, memory);
    if (!query_may_answer(ring, event, token, bytes.size)) {
        ring->counters.challenged_count++;
        answer->kind = MESSAGE_CHALLENGE;
        bytes = message_write(answer, memory);
    }
    struct peer to = event_sender(event);
    outbox_send_peer(ring->out, &to, bytes);
}

static struct chord *vnode_of(struct ring *ring, uint8_t index) {
    unsigned offset = (unsigned)index - ring->config.first_index;
    return index >= ring->config.first_index && offset < ring->config.vnodes_count ? &ring->vnodes[offset]
                                                                                   : NULL;
}

/* Nobody asked for it, so it is bounded: nothing that one peer sends keeps us busy. */
static bool is_notify_admitted(struct ring *ring, const struct event *event, const struct message *message) {
    uint64_t token = query_token(ring, &event->from);
    bool is_proved = message->token == token;
    struct throttle *throttle = &ring->throttle;
    bool is_admitted = is_proved ? bucket_take_one(&throttle->full_at_us[token % THROTTLE_BUCKETS_COUNT],
                                                   ring->now_us, PEER_US, PEER_BURST)
                                 : bucket_take_one(&throttle->strangers_full_at_us, ring->now_us,
                                                   STRANGERS_US, STRANGERS_BURST);
    if (!is_admitted) {
        ring->counters.flood_count++;
    }
    if (!is_admitted && is_proved) { /* a stranger's address may be made up */
        struct vnode from = sender_of(ring, event, message->from);
        ring_blame(ring, &from, "a flood of notifies");
    }
    return is_admitted;
}

static void on_notify(struct ring *ring, const struct event *event, const struct message *message) {
    struct chord *chord = vnode_of(ring, message->to);
    if (!is_notify_admitted(ring, event, message)) {
        return;
    }
    if (message->token != query_token(ring, &event->from)) { /* it may be elsewhere: let it prove it */
        struct message challenge = {.kind = MESSAGE_CHALLENGE, .number = message->number};
        answer(ring, event, message->token, &challenge);
        return;
    }
    struct vnode from = sender_of(ring, event, message->from);
    if (chord != NULL) {
        chord_on_notify(ring, chord, &from);
    }
    if (chord != NULL && ring->mode == MODE_CHORD && vnode_equal(&from, &chord->predecessor)) {
        before_on_notify(ring, chord, message->digest);
    }
    if (!ring_is_own(ring, &from)) {
        small_meet(ring, &from);
    }
}

static void on_question(struct ring *ring, const struct event *event, const struct message *message) {
    struct message reply = {.number = message->number, .to = message->to};
    struct chord *chord = vnode_of(ring, message->to);
    switch ((enum message_kind)message->kind) {
    case MESSAGE_ASK_STATE:
        reply.kind = MESSAGE_STATE;
        reply.status = MESSAGE_NONE;
        if (chord != NULL) {
            chord_on_ask_state(ring, chord, &reply);
        }
        break;
    case MESSAGE_PING:
        reply.kind = MESSAGE_PONG;
        reply.status = chord != NULL && chord->is_member ? MESSAGE_MEMBER : MESSAGE_NONE;
        break;
    case MESSAGE_FIND:
        local_on_find(ring, message, &reply);
        break;
    case MESSAGE_ASK_BEFORE:
        reply.kind = MESSAGE_BEFORE;
        reply.status = MESSAGE_NONE;
        if (chord != NULL) {
            struct vnode from = sender_of(ring, event, message->from);
            before_on_ask(ring, chord, &from, message, &reply);
        }
        break;
    default:
        reply.kind = MESSAGE_NODES;
        small_describe(ring, &reply);
        break;
    }
    answer(ring, event, message->token, &reply);
    /* Whoever has not proved its address is not asked in return. */
    if (message->kind == MESSAGE_ASK_NODES && message->token == query_token(ring, &event->from)) {
        small_on_ask_nodes(ring, event, message);
    }
}

static void note_refusal(struct ring *ring, const struct event *event, enum ring_reason reason, bool is_his) {
    struct vnode who = sender_of(ring, event, 0);
    uint8_t memory[2 * MESSAGE_VNODE_SIZE_MAX];
    struct wire_writer writer;
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_u8(&writer, (uint8_t)reason);
    wire_write_bool(&writer, is_his);
    message_write_vnode(&writer, &who);
    outbox_notice(ring->out, RING_REFUSED, bytes_of(memory, writer.size));
}

static void on_foreign(struct ring *ring, const struct event *event, const struct message *message) {
    ring->counters.foreign_count++;
    if (!message_is_question(message->kind)) {
        return;
    }
    enum ring_reason reason = message->version != RING_VERSION ? RING_OTHER_VERSION : RING_OTHER_CHARTER;
    struct message refusal = {.kind = MESSAGE_REFUSED, .number = message->number, .status = (uint8_t)reason};
    answer(ring, event, 0, &refusal);
    note_refusal(ring, event, reason, false);
}

static void ring_on_message(struct ring *ring, const struct event *event) {
    struct message message;
    ring->counters.received_count++;
    if (event->from.port == 0 || !message_read(event->bytes, ring->config.charter, &ring->sha256, &message)) {
        ring->counters.malformed_count++;
        return;
    }
    bool is_ours = message.version == RING_VERSION &&
                   memcmp(message.charter, ring->config.charter, RING_CHARTER_SIZE) == 0;
    if (!is_ours && message.kind != MESSAGE_REFUSED) {
        on_foreign(ring, event, &message);
    } else if (message.kind == MESSAGE_NOTIFY) {
        on_notify(ring, event, &message);
    } else if (message_is_question(message.kind)) {
        on_question(ring, event, &message);
    } else if (!query_answer(ring, event, &message)) {
        ring->counters.unasked_count++;
    } else if (message.kind == MESSAGE_REFUSED) {
        note_refusal(ring, event, message.status, true);
    }
}

/* ---- commands ---- */

static void on_join(struct ring *ring, struct bytes bytes) {
    struct vnode contacts[SMALL_CANDIDATES_MAX];
    uint32_t count = 0;
    struct wire_reader reader;
    wire_reader_init(&reader, bytes);
    while (wire_reader_left(&reader) > 0 && count < SMALL_CANDIDATES_MAX) {
        message_read_vnode(&reader, &ring->sha256, &contacts[count]);
        count += reader.err == ERR_OK && !vnode_is_padding(&contacts[count]);
    }
    if (ring->config.is_light) {
        light_join(ring, contacts, count);
        return;
    }
    if (ring->mode == MODE_IDLE) {
        standing_init(&ring->standing, ring->silences, QUERY_SILENCES_MAX, ring->secret);
        taken_init(&ring->taken);
    }
    small_join(ring, contacts, count);
}

static void ring_on_find(struct ring *ring, const struct event *event) {
    struct wire_reader reader;
    wire_reader_init(&reader, event->bytes);
    struct ring_id key = message_read_id(&reader);
    uint8_t wanted = wire_read_u8_max(&reader, MESSAGE_VNODES_MAX);
    enum err err = wire_reader_finish(&reader, NULL);
    ASSERT(err == ERR_OK);
    wanted = wanted < RING_LIST_MAX ? wanted : RING_LIST_MAX;
    lookup_command(ring, event->number, key, wanted == 0 ? 1 : wanted);
}

struct bytes ring_write_contacts(const struct peer *peers, size_t peers_count, void *memory) {
    struct wire_writer writer;
    wire_writer_init(&writer, memory, STEP_MESSAGE_SIZE_MAX);
    for (size_t i = 0; i < peers_count && i < SMALL_CANDIDATES_MAX; i++) {
        struct vnode vnode = {.peer = peers[i]};
        message_write_vnode(&writer, &vnode);
    }
    return bytes_of(memory, writer.size);
}

void ring_read_vnode(const struct ring *ring, struct wire_reader *reader, struct vnode *ret_vnode) {
    struct sha256 sha256 = ring->sha256;
    message_read_vnode(reader, &sha256, ret_vnode);
}

/* ---- steps ---- */

/* In Chord one remembered place is asked which node owns our ID, in a small ring several are asked for their
 * table.
 */
static void ask_remembered(struct ring *ring) {
    uint32_t count = ring->table.count;
    if (count == 0) {
        return;
    }
    uint32_t position = (uint32_t)prng_below(&ring->prng, count);
    if (ring->mode == MODE_CHORD) {
        struct vnode asked = table_at(&ring->table, position)->vnode;
        uint32_t vnode = (uint32_t)prng_below(&ring->prng, ring->config.vnodes_count);
        lookup_start(ring, LOOKUP_HEAL, vnode, 0, ring->vnodes[vnode].self.id, 1, &asked);
        return;
    }
    for (uint32_t i = 0; i < count && i < SMALL_CANDIDATES_MAX; i++) {
        small_meet(ring, &table_at(&ring->table, position + i)->vnode);
    }
}

/* Does a node that we remember know us? If its ring is another one, they become one. */
static void ring_heal(struct ring *ring) {
    if (ring->mode != MODE_CHORD && ring->mode != MODE_SMALL) {
        return;
    }
    if (ring->now_us >= ring->heal_at_us) {
        bool is_alone = ring->mode == MODE_SMALL && ring->small.nodes_count == 0;
        uint64_t heal_us = is_alone ? ring->config.heal_us / HEAL_SPEED_ALONE : ring->config.heal_us;
        ring->heal_at_us = ring->now_us + ring_jitter(ring, heal_us);
        ask_remembered(ring);
    }
    outbox_wake_at(ring->out, ring->heal_at_us);
}

/*
 * The machine slept, or the process did: what we hold is old, and the others have gone on without us. Then we
 * are as good as dead, and join again.
 */
static void check_stall(struct ring *ring) {
    uint64_t slept_us = ring->now_us - ring->stepped_at_us;
    if (ring->mode == MODE_CHORD && slept_us > STALL_US + 2 * ring->config.stabilize_us) {
        mode_rejoin(ring);
    }
    ring->stepped_at_us = ring->now_us;
}

void ring_step(struct ring *ring, const struct event *event, struct outbox *out) {
    ring->now_us = event->now_us;
    ring->out = out;
    switch (event->kind) {
    case EVENT_START:
        ring->stepped_at_us = ring->now_us;
        ring->heal_at_us = ring->now_us + ring_jitter(ring, ring->config.heal_us);
        break;
    case EVENT_MESSAGE:
        check_stall(ring);
        ring_on_message(ring, event);
        break;
    case EVENT_COMMAND:
        if (event->code == RING_JOIN) {
            on_join(ring, event->bytes);
        } else if (event->code == RING_FIND) {
            ring_on_find(ring, event);
        }
        break;
    case EVENT_WAKE:
        check_stall(ring);
        break;
    case EVENT_RESTORED:
    case EVENT_SAVED:
        break;
    }
    query_tick(ring);
    for (unsigned i = 0; i < ring->config.vnodes_count; i++) {
        chord_tick(ring, &ring->vnodes[i]);
    }
    ring_heal(ring);
    taken_settle(ring);
    small_tick(ring); /* after what may have named somebody to it */
    light_tick(ring);
    for (uint32_t i = 0; i < ring->queries_count; i++) {
        outbox_wake_at(out, ring->queries[i].retry.due_us);
    }
    holders_announce(ring);
    ring->out = NULL;
}

/* The read-only side of ring.h, and what experiments need. */

_Static_assert((int)RING_CHORD == (int)MODE_CHORD && (int)RING_SMALL == (int)MODE_SMALL &&
                   (int)RING_LIGHT == (int)MODE_LIGHT,
               "one order");

enum ring_mode ring_mode(const struct ring *ring) {
    return (enum ring_mode)ring->mode;
}

const struct ring_counters *ring_counters(const struct ring *ring) {
    return &ring->counters;
}

const struct ring_blame *ring_blames(const struct ring *ring, uint32_t *ret_count) {
    *ret_count = ring->blames_count;
    return ring->blames;
}

uint8_t ring_vnodes_count(const struct ring *ring) {
    return ring->config.vnodes_count;
}

uint8_t ring_list_size(const struct ring *ring) {
    return ring->config.list_size;
}

static const struct chord *at(const struct ring *ring, uint8_t vnode) {
    ASSERT(vnode < ring->config.vnodes_count);
    return &ring->vnodes[vnode];
}

const struct vnode *ring_vnode_at(const struct ring *ring, uint8_t vnode) {
    return &at(ring, vnode)->self;
}

bool ring_is_member(const struct ring *ring, uint8_t vnode) {
    return at(ring, vnode)->is_member;
}

const struct vnode *ring_predecessor(const struct ring *ring, uint8_t vnode) {
    return &at(ring, vnode)->predecessor;
}

const struct vnode *ring_successor(const struct ring *ring, uint8_t vnode, uint8_t position) {
    ASSERT(position < ring->config.list_size);
    return &at(ring, vnode)->list[position];
}

static struct ring_known known_of(const struct table_entry *entry) {
    return (struct ring_known){entry->vnode, entry->heard_at_us, entry->rtt.smoothed_us, entry->misses_count};
}

bool ring_know(const struct ring *ring, struct ring_id id, struct ring_known *ret_known) {
    const struct table_entry *entry = table_find(&ring->table, id);
    if (entry != NULL) {
        *ret_known = known_of(entry);
    }
    return entry != NULL;
}

bool ring_next_finger(const struct ring *ring, uint8_t vnode, uint32_t *cursor,
                      struct ring_known *ret_known) {
    const struct chord *chord = at(ring, vnode);
    while (*cursor < CHORD_FINGERS_MAX) {
        if (ring_know(ring, chord->fingers[(*cursor)++], ret_known)) {
            return true;
        }
    }
    return false;
}

uint32_t ring_known_count(const struct ring *ring) {
    return ring->table.count;
}

struct ring_known ring_known_at(const struct ring *ring, uint32_t position) {
    ASSERT(position < ring->table.count);
    return known_of(table_at(&ring->table, position));
}

void ring_install_for_experiment(struct ring *ring, const struct vnode *list, const struct vnode *predecessor,
                                 const struct vnode *known, size_t known_count, uint64_t now_us) {
    struct chord *chord = &ring->vnodes[0];
    ring->mode = MODE_CHORD;
    ring->now_us = now_us;
    ring->stepped_at_us = now_us;
    memcpy(chord->list, list, ring->config.list_size * sizeof chord->list[0]);
    chord->predecessor = *predecessor;
    chord->is_member = true;
    chord->stabilize_at_us = now_us + ring_jitter(ring, ring->config.stabilize_us);
    chord->finger_at_us = now_us + ring_jitter(ring, 4 * ring->config.stabilize_us);
    ring->heal_at_us = now_us + ring_jitter(ring, ring->config.heal_us);
    chord->finger_next = CHORD_FINGERS_MAX;
    for (unsigned i = 0; i < ring->config.list_size; i++) {
        ring_heard_of(ring, &chord->list[i]);
    }
    ring_heard_of(ring, predecessor);
    for (size_t i = 0; i < known_count; i++) {
        struct table_entry *entry = table_enter(&ring->table, &known[i]);
        if (entry == NULL) {
            continue;
        }
        entry->heard_at_us = now_us == 0 ? 1 : now_us;
        if (i < CHORD_FINGERS_MAX) {
            chord->fingers[i] = known[i].id;
        }
    }
}

bool ring_is_asking_for_experiment(const struct ring *ring, struct address *ret_whom) {
    for (uint32_t i = 0; i < ring->queries_count; i++) {
        if (ring->queries[i].kind == MESSAGE_ASK_STATE) {
            *ret_whom = ring->queries[i].to.peer.address;
            return true;
        }
    }
    return false;
}

/*
 * How many there are, from how dense they are where we look: ring_estimated_size() of ring.h.
 *
 * A place knows a stretch of the circle: its chain, itself, its list. If the stretch meets itself the
 * number is exact. Else each finger adds the stretch of the list that its owner named with it: with eight
 * places a finger and a finger for each power of two, some sixty places of a thousand, and an error of an
 * eighth.
 */

static const double CIRCLE = 18446744073709551616.0; /* 2^64: the high half of an ID */

struct stretch {
    double vnodes_count; /* gaps between neighbours */
    double length;       /* of them together */
};

static double length_of(struct ring_id from, struct ring_id to) {
    return (double)ring_id_distance(from, to).high / CIRCLE;
}

/* True if it goes round: then vnodes_count is exact. */
static bool own_stretch(const struct ring *ring, const struct chord *chord, struct stretch *ret_stretch) {
    const struct vnode *first =
        chord->before_count > 0 ? &chord->before[chord->before_count - 1] : &chord->predecessor;
    struct stretch stretch = {.vnodes_count = chord->before_count + 1};
    stretch.length = length_of(first->id, chord->self.id);
    struct ring_id last = chord->self.id;
    for (unsigned i = 0; i < ring->config.list_size && !vnode_is_padding(&chord->list[i]); i++) {
        bool is_round = ring_id_equal(chord->list[i].id, first->id);
        stretch.length += length_of(last, chord->list[i].id);
        stretch.vnodes_count++;
        last = chord->list[i].id;
        if (is_round) {
            *ret_stretch = stretch;
            return true;
        }
    }
    *ret_stretch = stretch;
    return chord->is_before_whole;
}

static uint64_t small_size(const struct ring *ring) {
    uint64_t count = ring->vnodes[0].is_member ? ring->config.vnodes_count : 0;
    for (uint32_t i = 0; i < ring->small.nodes_count && count > 0; i++) {
        count += ring->small.nodes[i].vnodes_count;
    }
    return count;
}

uint64_t ring_estimated_size(const struct ring *ring) {
    if (ring->mode != MODE_CHORD) {
        return small_size(ring);
    }
    struct stretch sum = {0};
    for (unsigned i = 0; i < ring->config.vnodes_count; i++) {
        const struct chord *chord = &ring->vnodes[i];
        struct stretch own;
        if (!chord->is_member) {
            continue;
        }
        if (own_stretch(ring, chord, &own)) {
            return chord->is_before_whole ? chord->before_count + 2u : (uint64_t)own.vnodes_count;
        }
        sum.vnodes_count += own.vnodes_count;
        sum.length += own.length;
        for (unsigned j = 0; j < CHORD_FINGERS_MAX; j++) {
            bool is_again = j > 0 && ring_id_equal(chord->fingers[j], chord->fingers[j - 1]);
            if (chord->finger_counts[j] > 0 && !is_again) {
                sum.vnodes_count += chord->finger_counts[j];
                sum.length += (double)chord->finger_spans[j] / CIRCLE;
            }
        }
    }
    return sum.length > 0 ? (uint64_t)(sum.vnodes_count / sum.length + 0.5) : 1;
}
