/*
 * overlay - ConstructOverlay: nodes that join are brought in, neighbours are exchanged, the silent are
 * dropped.
 *
 *      shuffle   wait ─────────────── pick ─ SHUFFLE ──> it: has one open itself: BUSY
 *                                                       else picks, SHUFFLED, merges
 *                ─ SHUFFLED: merge ─ BUSY: nothing ─ silence for answer_us: it is dropped
 *
 * The partner of a shuffle is the first to be overwritten: the edge turns round. If there is room it stays,
 * so that the nodes of a small crowd know each other.
 *
 *      proofs    A random neighbour is shuffled with. JOIN is answered with JOINED: half of the view, half of
 *                the nodes that joined last (a cache of view_size, the paper's bootstrap list).
 *      cyclon    All grow older by one, the oldest is shuffled with; the other side has us with age 0. JOIN:
 *                JOINED with a part of the view comes at once, so that a node is not alone; and to each
 *                neighbour a WALK of walk_hops random steps begins. Where it ends, the newcomer takes a
 * random neighbour's place, which is told of in WELCOME and overwrites what JOINED brought. The edges that
 * pointed away stay as many: nobody is lost by a join.
 *
 * A JOIN from an address that has not proved itself gets a CHALLENGE: a token, the keyed hash of its address.
 * The contacts are tried one after the other, again and again with longer waits, until one has answered.
 *
 * Floods: shuffles and walks of one node are bounded, and the joins of all. A node that shuffles too often is
 * told BUSY; that is small, and a node unlucky enough to share its bucket is not silent to us. Hearsay never
 * changes the key of an address that we know: that would make a node unreachable by a lie about it. A node
 * itself does.
 */
#include "protocol/crowd/crowd_state.h"

/* How a node comes into the crowd: its own side, that of the contact, and the walks between them. */

enum {
    TRY_US = 500000,    /* until the next contact is tried; doubles when all were */
    ROUNDS_DOUBLED = 7, /* to about a minute */
    WELCOME_US = 30000000,
    JOINS_EACH_US = 100000,
    JOINS_BURST = 64,
    WALKS_EACH_US = 10000, /* of one node; in a small crowd it sends us many of one join */
    WALKS_BURST = 256,
};

/* ---- the node that joins ---- */

void overlay_join(struct crowd *crowd, struct bytes contacts) {
    struct overlay_join *join = &crowd->overlay.join;
    struct wire_reader reader;
    wire_reader_init(&reader, contacts);
    join->contacts_count = 0;
    while (wire_reader_left(&reader) > 0 && join->contacts_count < CROWD_CONTACTS_MAX) {
        struct peer *contact = &join->contacts[join->contacts_count];
        peer_read(&reader, PEER_TAGGED, contact);
        bool is_self = address_equal(&contact->address, &crowd->config.self.address);
        join->contacts_count = (uint8_t)(join->contacts_count + !is_self);
    }
    ASSERT(reader.err == ERR_OK);
    join->next = 0;
    join->rounds_count = 0;
    join->number = prng_u64(&crowd->prng);
    join->try_at_us = crowd->now_us;
    join->welcomes_left = CROWD_VIEW_MAX;
    join->lent_count = 0;
    if (join->contacts_count > 0) {
        crowd->overlay.alone_at_us = crowd->now_us + OVERLAY_ALONE_US; /* what is asked for is under way */
    }
}

/* Not zeroed: a message is large, and its kind says which members count. */
static void begin_message(struct crowd_message *message, enum crowd_message_kind kind, uint64_t number) {
    message->kind = (uint8_t)kind;
    message->number = number;
    message->token = 0;
    message->entries_count = 0;
}

static void send_join(struct crowd *crowd, const struct peer *contact, uint64_t token) {
    struct crowd_message message;
    begin_message(&message, CROWD_MESSAGE_JOIN, crowd->overlay.join.number);
    message.token = token;
    crowd->overlay.join.welcome_until_us = crowd->now_us + WELCOME_US;
    crowd_send(crowd, contact, &message);
}

static void overlay_join_tick(struct crowd *crowd) {
    struct overlay_join *join = &crowd->overlay.join;
    if (join->contacts_count == 0) {
        return;
    }
    if (crowd->now_us >= join->try_at_us) {
        send_join(crowd, &join->contacts[join->next], 0);
        uint64_t wait_us = (uint64_t)TRY_US << join->rounds_count;
        join->try_at_us = crowd->now_us + wait_us + prng_below(&crowd->prng, wait_us / 4);
        join->next++;
        if (join->next == join->contacts_count) {
            join->next = 0;
            join->rounds_count = (uint8_t)(join->rounds_count + (join->rounds_count < ROUNDS_DOUBLED));
        }
    }
    outbox_wake_at(crowd->out, join->try_at_us);
}

/* NULL if this is not of a contact that was asked and still is awaited. */
static const struct peer *find_asked(const struct crowd *crowd, const struct event *event,
                                     const struct crowd_message *message) {
    const struct overlay_join *join = &crowd->overlay.join;
    unsigned asked_count = join->rounds_count > 0 ? join->contacts_count : join->next;
    for (unsigned i = 0; i < asked_count && message->number == join->number; i++) {
        if (event_is_from(event, &join->contacts[i])) {
            return &join->contacts[i];
        }
    }
    return NULL;
}

static void on_challenge(struct crowd *crowd, const struct event *event,
                         const struct crowd_message *message) {
    struct overlay_join *join = &crowd->overlay.join;
    const struct peer *contact = find_asked(crowd, event, message);
    if (contact == NULL || message->token == 0) {
        crowd->counters.unasked_count++;
        return;
    }
    uint64_t patient_until_us = crowd->now_us + crowd->config.answer_us;
    join->try_at_us = join->try_at_us > patient_until_us ? join->try_at_us : patient_until_us;
    send_join(crowd, contact, message->token);
}

/* Hearsay: only nodes that are not known yet. What a join by walks brings later may overwrite it. */
static void borrow(struct crowd *crowd, const struct crowd_neighbour *neighbour) {
    struct overlay_join *join = &crowd->overlay.join;
    bool is_known = view_find(&crowd->view, &neighbour->peer.address) >= 0;
    if (!is_known && view_add(&crowd->view, neighbour) && crowd->config.kind == CROWD_CYCLON) {
        join->lent[join->lent_count++] = neighbour->peer.address;
    }
}

static void on_joined(struct crowd *crowd, const struct event *event, const struct crowd_message *message) {
    struct overlay_join *join = &crowd->overlay.join;
    if (find_asked(crowd, event, message) == NULL) {
        crowd->counters.unasked_count++;
        return;
    }
    join->contacts_count = 0;
    struct crowd_neighbour contact = {.peer = event_sender(event)};
    join->lent_count = 0;
    borrow(crowd, &contact);
    for (unsigned i = 0; i < message->entries_count; i++) {
        borrow(crowd, &message->entries[i]);
    }
}

/* It is named in WELCOME now, so it stays. */
static void keep_lent(struct overlay_join *join, const struct address *address) {
    for (unsigned i = 0; i < join->lent_count; i++) {
        if (address_equal(&join->lent[i], address)) {
            join->lent[i] = join->lent[--join->lent_count];
            return;
        }
    }
}

static void on_welcome(struct crowd *crowd, const struct event *event, const struct crowd_message *message) {
    struct overlay_join *join = &crowd->overlay.join;
    if (join->number != message->number || crowd->now_us >= join->welcome_until_us ||
        join->welcomes_left == 0) {
        crowd->counters.unasked_count++;
        return;
    }
    join->welcomes_left--;
    struct crowd_neighbour sender = {.peer = event_sender(event)};
    if (message->entries_count == 0) { /* it had room: the crowd is small, and we may have, too */
        view_add(&crowd->view, &sender);
        return;
    }
    keep_lent(join, &message->entries[0].peer.address);
    view_merge(&crowd->view, message->entries, message->entries_count, join->lent, join->lent_count);
}

/* ---- the contact ---- */

static bool is_join_admitted(struct crowd *crowd) {
    struct overlay_buckets *buckets = crowd->overlay.buckets;
    bool is_admitted = buckets == NULL ||
                       bucket_take_one(&buckets->joins_full_at_us, crowd->now_us, JOINS_EACH_US, JOINS_BURST);
    crowd->counters.flooded_count += !is_admitted;
    return is_admitted;
}

static void note_newcomer(struct crowd *crowd, const struct peer *peer) {
    struct overlay *overlay = &crowd->overlay;
    for (unsigned i = 0; i < overlay->newcomers_count; i++) {
        if (address_equal(&overlay->newcomers[i].address, &peer->address)) {
            overlay->newcomers[i] = *peer;
            return;
        }
    }
    uint8_t size = crowd->config.view_size;
    overlay->newcomers[overlay->newcomers_next] = *peer;
    overlay->newcomers_next = (uint8_t)((overlay->newcomers_next + 1) % size);
    overlay->newcomers_count = (uint8_t)(overlay->newcomers_count + (overlay->newcomers_count < size));
}

/* The nodes that joined last, from a random one of them on. */
static void add_newcomers(struct crowd *crowd, const struct address *without, size_t count_max,
                          struct crowd_message *message) {
    const struct overlay *overlay = &crowd->overlay;
    size_t count = overlay->newcomers_count;
    size_t first = count == 0 ? 0 : (size_t)prng_below(&crowd->prng, count);
    for (size_t i = 0; i < count && message->entries_count < count_max; i++) {
        const struct peer *peer = &overlay->newcomers[(first + i) % count];
        if (!address_equal(&peer->address, without)) {
            message->entries[message->entries_count++] = (struct crowd_neighbour){.peer = *peer};
        }
    }
}

static bool has_entry(const struct crowd_message *message, const struct address *address) {
    unsigned i = 0;
    while (i < message->entries_count && !address_equal(&message->entries[i].peer.address, address)) {
        i++;
    }
    return i < message->entries_count;
}

static void send_joined(struct crowd *crowd, const struct event *event, uint64_t number) {
    const struct view *view = &crowd->view;
    struct crowd_message message;
    begin_message(&message, CROWD_MESSAGE_JOINED, number);
    if (crowd->config.kind == CROWD_PROOFS) {
        size_t share = view->count < CROWD_SHUFFLE_MAX / 2 ? CROWD_SHUFFLE_MAX - (size_t)view->count
                                                           : CROWD_SHUFFLE_MAX / 2;
        add_newcomers(crowd, &event->from, share, &message);
    }
    uint8_t picked[CROWD_VIEW_MAX];
    size_t count = view_pick(view, &crowd->prng, view_find(view, &event->from), CROWD_SHUFFLE_MAX, picked);
    for (size_t i = 0; i < count && message.entries_count < CROWD_SHUFFLE_MAX; i++) {
        const struct crowd_neighbour *neighbour = &view->neighbours[picked[i]];
        if (!has_entry(&message, &neighbour->peer.address)) {
            message.entries[message.entries_count++] = *neighbour;
        }
    }
    crowd_answer(crowd, event, &message);
}

static void send_walk(struct crowd *crowd, const struct peer *to, uint64_t number, const struct peer *who,
                      uint8_t hops) {
    struct crowd_message message;
    begin_message(&message, CROWD_MESSAGE_WALK, number);
    message.hops = hops;
    message.entries[0].peer = *who;
    crowd_send(crowd, to, &message);
}

static void on_join(struct crowd *crowd, const struct event *event, const struct crowd_message *message) {
    uint64_t token = crowd_token(crowd, &event->from);
    if (message->token != token) {
        struct crowd_message challenge;
        begin_message(&challenge, CROWD_MESSAGE_CHALLENGE, message->number);
        challenge.token = token;
        crowd_answer(crowd, event, &challenge);
        return;
    }
    if (!is_join_admitted(crowd)) {
        return;
    }
    crowd->counters.joins_count++;
    struct crowd_neighbour who = {.peer = event_sender(event)};
    send_joined(crowd, event, message->number);
    if (crowd->config.kind == CROWD_PROOFS) {
        note_newcomer(crowd, &who.peer);
    }
    for (unsigned i = 0; i < crowd->view.count && crowd->config.kind == CROWD_CYCLON; i++) {
        const struct peer *neighbour = &crowd->view.neighbours[i].peer;
        if (!address_equal(&neighbour->address, &event->from)) {
            send_walk(crowd, neighbour, message->number, &who.peer, crowd->config.walk_hops - 1);
        }
    }
    view_add(&crowd->view, &who);
}

/* ---- walks ---- */

static bool is_walk_admitted(struct crowd *crowd, const struct event *event) {
    struct overlay_buckets *buckets = crowd->overlay.buckets;
    if (buckets == NULL) {
        return true;
    }
    uint64_t hash = crowd_token(crowd, &event->from);
    bool is_admitted = bucket_take_one(&buckets->walks_full_at_us[hash % OVERLAY_BUCKETS_COUNT],
                                       crowd->now_us, WALKS_EACH_US, WALKS_BURST);
    crowd->counters.flooded_count += !is_admitted;
    return is_admitted;
}

/* It takes a random neighbour's place, and is told whose. */
static void take_in(struct crowd *crowd, const struct peer *who, uint64_t number) {
    struct view *view = &crowd->view;
    struct crowd_neighbour newcomer = {.peer = *who};
    if (view_find(view, &who->address) >= 0) {
        return;
    }
    struct crowd_message welcome;
    begin_message(&welcome, CROWD_MESSAGE_WELCOME, number);
    if (!view_add(view, &newcomer)) {
        uint64_t position = prng_below(&crowd->prng, view->count);
        welcome.entries[welcome.entries_count++] = view->neighbours[position];
        view->neighbours[position] = newcomer;
    }
    crowd_send(crowd, who, &welcome);
}

static void on_walk(struct crowd *crowd, const struct event *event, const struct crowd_message *message) {
    const struct peer *who = &message->entries[0].peer;
    if (address_equal(&who->address, &crowd->config.self.address) || !is_walk_admitted(crowd, event)) {
        return;
    }
    const struct view *view = &crowd->view;
    uint8_t picked[CROWD_VIEW_MAX];
    size_t count = view_pick(view, &crowd->prng, view_find(view, &who->address), 1, picked);
    if (message->hops == 0 || count == 0) {
        take_in(crowd, who, message->number);
    } else {
        send_walk(crowd, &view->neighbours[picked[0]].peer, message->number, who, message->hops - 1);
    }
}

enum {
    SHUFFLES_PER_WAIT = 8, /* of one node that are served within shuffle_us: it begins one in it */
    SHUFFLES_BURST = 16,
    AMPLIFICATION_MAX = 3,
};

void overlay_init(struct crowd *crowd) {
    struct overlay *overlay = &crowd->overlay;
    const struct crowd_config *config = &crowd->config;
    if (config->kind == CROWD_PROOFS) {
        overlay->newcomers = arena_take_array(&crowd->arena, config->view_size, sizeof *overlay->newcomers);
    }
    if (!config->is_unlimited) {
        overlay->buckets = arena_take(&crowd->arena, sizeof *overlay->buckets);
    }
}

size_t overlay_actions_max(const struct crowd_config *config) {
    return config->view_size + 4u; /* the walks of a join, its answer; a shuffle, a join of ours, alone */
}

/* ---- shuffles of ours ---- */

/*
 * Under CROWD_CYCLON a node is known by those it shuffled with lately, so one that waits evenly is as well
 * known as others. With exponential waits, the paper's, the numbers spread more than twice as far
 * (crowd-degrees).
 */
static bool waits_evenly(const struct crowd *crowd) {
    return crowd->config.kind == CROWD_CYCLON && !crowd->config.waits_exponentially;
}

static void draw_shuffle(struct crowd *crowd) {
    uint64_t mean_us = crowd->config.shuffle_us;
    uint64_t wait_us =
        waits_evenly(crowd) ? prng_spread(&crowd->prng, mean_us) : prng_exponential(&crowd->prng, mean_us);
    crowd->overlay.is_open = false;
    crowd->overlay.shuffle_at_us = crowd->now_us + wait_us;
}

void overlay_start(struct crowd *crowd) {
    draw_shuffle(crowd);
    if (waits_evenly(crowd)) { /* nodes that started together shall not shuffle together */
        crowd->overlay.shuffle_at_us = crowd->now_us + prng_below(&crowd->prng, crowd->config.shuffle_us + 1);
    }
    crowd->overlay.alone_at_us = crowd->now_us;
}

static int choose_partner(struct crowd *crowd) {
    struct view *view = &crowd->view;
    if (crowd->config.kind == CROWD_PROOFS) {
        return (int)prng_below(&crowd->prng, view->count);
    }
    view_age(view);
    return view_oldest(view);
}

static void begin_shuffle(struct crowd *crowd) {
    struct overlay *overlay = &crowd->overlay;
    const struct view *view = &crowd->view;
    int position = choose_partner(crowd);
    uint8_t picked[CROWD_VIEW_MAX];
    size_t count = view_pick(view, &crowd->prng, position, (size_t)crowd->config.shuffle_size - 1, picked);
    struct crowd_message message;
    overlay->partner = view->neighbours[position].peer;
    overlay->sent[0] = overlay->partner.address;
    for (size_t i = 0; i < count; i++) {
        message.entries[i] = view->neighbours[picked[i]];
        overlay->sent[i + 1] = message.entries[i].peer.address;
    }
    overlay->sent_count = (uint8_t)(count + 1);
    overlay->is_open = true;
    overlay->number = prng_u64(&crowd->prng);
    overlay->silent_at_us = crowd->now_us + crowd->config.answer_us;
    begin_message(&message, CROWD_MESSAGE_SHUFFLE, overlay->number);
    message.entries_count = (uint8_t)count;
    crowd->counters.shuffles_count++;
    crowd_send(crowd, &overlay->partner, &message);
}

/* Under CROWD_CYCLON the oldest is next; one that is still there after a shuffle must not be the oldest for
 * ever. */
static void renew_partner(struct crowd *crowd) {
    int position = view_find(&crowd->view, &crowd->overlay.partner.address);
    if (position >= 0) {
        crowd->view.neighbours[position].age = 0;
    }
}

static void give_up_shuffle(struct crowd *crowd) {
    if (crowd->config.keeps_silent) {
        renew_partner(crowd);
    } else {
        crowd->counters.silent_count++;
        overlay_drop(crowd, &crowd->overlay.partner.address);
    }
    draw_shuffle(crowd);
}

void overlay_drop(struct crowd *crowd, const struct address *address) {
    int position = view_find(&crowd->view, address);
    if (position >= 0) {
        view_remove(&crowd->view, (size_t)position);
    }
}

/* ---- answers ---- */

static bool is_awaited(struct crowd *crowd, const struct event *event, const struct crowd_message *message) {
    const struct overlay *overlay = &crowd->overlay;
    bool is_so =
        overlay->is_open && message->number == overlay->number && event_is_from(event, &overlay->partner);
    crowd->counters.unasked_count += !is_so;
    return is_so;
}

static void on_shuffled(struct crowd *crowd, const struct event *event, const struct crowd_message *message) {
    const struct overlay *overlay = &crowd->overlay;
    if (!is_awaited(crowd, event, message)) {
        return;
    }
    crowd->counters.shuffled_count++;
    view_merge(&crowd->view, message->entries, message->entries_count, overlay->sent, overlay->sent_count);
    renew_partner(crowd); /* also if there was room for it */
    draw_shuffle(crowd);
}

static void on_busy(struct crowd *crowd, const struct event *event, const struct crowd_message *message) {
    if (!is_awaited(crowd, event, message)) {
        return;
    }
    crowd->counters.rejected_count++;
    renew_partner(crowd);
    draw_shuffle(crowd);
}

/* ---- shuffles of others ---- */

static bool is_shuffle_admitted(struct crowd *crowd, const struct event *event) {
    struct overlay_buckets *buckets = crowd->overlay.buckets;
    if (buckets == NULL) {
        return true;
    }
    uint64_t hash = crowd_token(crowd, &event->from);
    bool is_admitted =
        bucket_take_one(&buckets->shuffles_full_at_us[hash % OVERLAY_BUCKETS_COUNT], crowd->now_us,
                        crowd->config.shuffle_us / SHUFFLES_PER_WAIT, SHUFFLES_BURST);
    crowd->counters.flooded_count += !is_admitted;
    return is_admitted;
}

/*
 * As many of ours as it may get: a shuffle needs no token, so the answer is at most three times as long. One
 * always fits, and it has then a place here. sent gets their addresses.
 */
static void choose_answer(struct crowd *crowd, const struct event *event, struct crowd_message *answer,
                          struct address sent[CROWD_SHUFFLE_MAX]) {
    const struct view *view = &crowd->view;
    uint8_t picked[CROWD_VIEW_MAX];
    size_t count =
        view_pick(view, &crowd->prng, view_find(view, &event->from), crowd->config.shuffle_size, picked);
    size_t size = CROWD_MESSAGE_HEADER_SIZE + 1;
    answer->entries_count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct crowd_neighbour *entry = &view->neighbours[picked[i]];
        size += crowd_message_entry_size(entry);
        if (size > AMPLIFICATION_MAX * event->bytes.size) {
            return;
        }
        sent[i] = entry->peer.address;
        answer->entries[i] = *entry;
        answer->entries_count++;
    }
}

static void on_shuffle(struct crowd *crowd, const struct event *event, const struct crowd_message *message) {
    struct crowd_message answer;
    answer.number = message->number;
    if (crowd->overlay.is_open || !is_shuffle_admitted(crowd, event)) {
        answer.kind = CROWD_MESSAGE_BUSY;
        crowd_answer(crowd, event, &answer);
        return;
    }
    struct crowd_neighbour received[1 + CROWD_SHUFFLE_MAX];
    received[0] = (struct crowd_neighbour){.peer = event_sender(event)};
    memcpy(received + 1, message->entries, message->entries_count * sizeof *received);
    view_add(&crowd->view, &received[0]); /* its own word: if we know another key of it, this one holds now */
    struct address sent[CROWD_SHUFFLE_MAX];
    choose_answer(crowd, event, &answer, sent);
    answer.kind = CROWD_MESSAGE_SHUFFLED;
    crowd_answer(crowd, event, &answer);
    view_merge(&crowd->view, received, 1u + message->entries_count, sent, answer.entries_count);
    crowd->counters.served_count++;
}

/* ---- the whole ---- */

void overlay_receive(struct crowd *crowd, const struct event *event, const struct crowd_message *message) {
    static void (*const receivers[])(struct crowd * crowd, const struct event *event,
                                     const struct crowd_message *message) = {
        [CROWD_MESSAGE_SHUFFLE] = on_shuffle,     [CROWD_MESSAGE_SHUFFLED] = on_shuffled,
        [CROWD_MESSAGE_BUSY] = on_busy,           [CROWD_MESSAGE_JOIN] = on_join,
        [CROWD_MESSAGE_CHALLENGE] = on_challenge, [CROWD_MESSAGE_JOINED] = on_joined,
        [CROWD_MESSAGE_WALK] = on_walk,           [CROWD_MESSAGE_WELCOME] = on_welcome,
    };
    ASSERT(message->kind > 0 && message->kind <= CROWD_MESSAGE_WELCOME);
    receivers[message->kind](crowd, event, message);
}

static void tick_shuffle(struct crowd *crowd) {
    const struct overlay *overlay = &crowd->overlay;
    if (overlay->is_open && crowd->now_us >= overlay->silent_at_us) {
        give_up_shuffle(crowd);
    } else if (!overlay->is_open && crowd->now_us >= overlay->shuffle_at_us) {
        if (crowd->view.count > 0) {
            begin_shuffle(crowd);
        } else {
            draw_shuffle(crowd);
        }
    }
    outbox_wake_at(crowd->out, overlay->is_open ? overlay->silent_at_us : overlay->shuffle_at_us);
}

static void tick_alone(struct crowd *crowd) {
    struct overlay *overlay = &crowd->overlay;
    unsigned enough = crowd->config.view_size / 4u;
    if (crowd->view.count >= (enough > 0 ? enough : 1)) {
        return;
    }
    if (crowd->now_us >= overlay->alone_at_us) {
        overlay->alone_at_us = crowd->now_us + OVERLAY_ALONE_US;
        outbox_notice(crowd->out, CROWD_ALONE, bytes_of(NULL, 0));
    }
    outbox_wake_at(crowd->out, overlay->alone_at_us);
}

void overlay_tick(struct crowd *crowd) {
    tick_shuffle(crowd);
    overlay_join_tick(crowd);
    tick_alone(crowd);
}
