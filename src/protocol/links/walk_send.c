#include "protocol/links/walk_state.h"

enum { FIND_PLACES = RING_LIST_MAX };
static const uint64_t FIND_US = 10 * 1000000;
static const uint64_t BUSY_US = 500000;     /* doubled with each try */
static const uint64_t FLUSH_US = 500000;    /* and … */
static const uint64_t FLUSH_ARC_US = 20000; /* … for each arc */
static const uint64_t AGAIN_US = 1000000;   /* after a round that left something, doubled each time … */
static const uint64_t AGAIN_US_MAX = 60 * 1000000; /* … up to this */

/* ---- what is known of the ring ahead ---- */

static struct ring_id id_before(struct ring_id id) {
    return (struct ring_id){id.high - (id.low == 0), id.low - 1};
}

/* Places that follow the last one; who does not is no place behind it. */
static void window_add(struct walker *walker, const struct ring_place *places, size_t count) {
    for (size_t i = 0; i < count && walker->window_count < WALK_WINDOW_MAX; i++) {
        struct ring_id last =
            walker->window_count == 0 ? walker->known_from : walker->window[walker->window_count - 1].id;
        bool is_next = ring_id_is_between(last, places[i].id, walker->known_from);
        if (ring_place_is_padding(&places[i]) || !is_next) {
            return; /* nothing, or once round */
        }
        walker->window[walker->window_count++] = places[i];
    }
}

/* Forget places before this one. True: the first of the window is then responsible for it. */
static bool window_reach(struct walker *walker, struct ring_id place) {
    uint8_t passed = 0;
    while (passed < walker->window_count &&
           !ring_id_is_owned(walker->known_from, place, walker->window[passed].id)) {
        walker->known_from = walker->window[passed++].id;
    }
    walker->window_count -= passed;
    memmove(walker->window, walker->window + passed, walker->window_count * sizeof walker->window[0]);
    return walker->window_count > 0;
}

/* How many nodes there are in the window from an index on; places of one node count once. */
static uint8_t count_nodes(const struct walker *walker, uint8_t from) {
    uint8_t count = 0;
    for (uint8_t i = from; i < walker->window_count; i++) {
        bool is_new = true;
        for (uint8_t j = from; j < i && is_new; j++) {
            is_new = !address_equal(&walker->window[j].peer.address, &walker->window[i].peer.address);
        }
        count += is_new;
    }
    return count;
}

/* ---- targets ---- */

static bool is_self(const struct walk *walk, const struct peer *peer) {
    return address_equal(&peer->address, &walk->config.self.address);
}

static bool is_target(const struct walker *walker, const struct peer *peer) {
    for (uint8_t i = 0; i < walker->targets_count; i++) {
        if (address_equal(&walker->targets[i].peer.address, &peer->address)) {
            return true;
        }
    }
    return false;
}

/* The next distinct node of the window. False: there is none. In place of another (`is_instead`) never
 * ourselves: what is not ours was not kept here. */
static bool add_target(struct walk *walk, struct walker *walker, bool is_instead) {
    while (walker->next < walker->window_count && walker->targets_count < WALK_TARGETS_MAX) {
        const struct peer *peer = &walker->window[walker->next++].peer;
        if (is_self(walk, peer) ? walker->is_held || is_instead : is_target(walker, peer)) {
            continue;
        }
        if (is_self(walk, peer)) {
            walker->is_held = true;
        } else {
            walker->targets[walker->targets_count++] = (struct walk_target){.peer = *peer};
        }
        return true;
    }
    return false;
}

static void send_batch(struct walk *walk, struct walker *walker, struct walk_target *target) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    uint8_t index = (uint8_t)(target - walker->targets);
    struct walk_message message = {
        .kind = WALK_OFFER,
        .flags = index == walker->primary ? WALK_AS_PRIMARY : 0,
        .number = target->number,
        .links = bytes_of(walker->message, walker->message_size),
    };
    bool is_ending = count_nodes(walker, 1) <= walk->config.holders_count;
    if (is_ending && index + 1 == walker->targets_count) {
        message.flags |= WALK_WANTS;
        message.after = walker->window[walker->window_count - 1].id;
    }
    struct bytes bytes = walk_message_write(&message, memory);
    target->tries_count++;
    target->sent_at_us = walk->now_us;
    target->timeout_at_us = walk->now_us + rtt_timeout_us(&walk->rtt, target->tries_count);
    walk->counters.sent_count++;
    walk->counters.sent_size += bytes.size;
    walk->counters.repeated_count += target->tries_count > 1;
    walk->counters.offered_count += target->tries_count == 1 ? walker->links_count : 0;
    outbox_send_peer(walk->out, &target->peer, bytes);
}

static void start_target(struct walk *walk, struct walker *walker, uint8_t index) {
    walker->targets[index].state = TARGET_ASKED;
    walker->targets[index].number = ++walk->number;
    send_batch(walk, walker, &walker->targets[index]);
}

/* The first R distinct nodes, ourselves among them. */
static void choose_targets(struct walk *walk, struct walker *walker) {
    walker->targets_count = 0;
    walker->next = 0;
    walker->is_held = false;
    walker->primary = is_self(walk, &walker->window[0].peer) ? WALK_TARGETS_MAX : 0;
    for (uint8_t i = 0; i < walk->config.holders_count && add_target(walk, walker, false); i++) {
    }
}

/* ---- batches ---- */

static void give_back(struct walk *walk, uint64_t link, bool is_done) {
    walk->config.owner->give_back(walk->config.context, link, is_done);
}

/* Without those that were sent before, and those that can never be sent. Returns how many are left. */
static size_t sift(struct walk *walk, struct bytes job, struct links_code_link *links, size_t count) {
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_known =
            walk_sent_has(&walk->sent, walk_sent_hash(&walk->sent, job, links[i].url), walk->now_us);
        bool is_sendable = links_code_takes(links[i].url);
        walk->counters.known_count += is_known;
        walk->counters.unsendable_count += !is_known && !is_sendable;
        if (is_known || !is_sendable) {
            give_back(walk, links[i].owner, true);
        } else {
            links[left++] = links[i];
        }
    }
    return left;
}

/* Fewer until they fit: those behind go back. */
static size_t pack(struct walk *walk, struct walker *walker, const uint8_t job[LINKS_CODE_JOB_SIZE],
                   struct links_code_link *links, size_t count) {
    const size_t size_max = WALK_MESSAGE_SIZE_MAX - WALK_OFFER_HEAD_SIZE_MAX;
    enum links_code_way way =
        walk->links_mean >= WALK_MEAN_FULL * WALK_MEAN_OF ? LINKS_CODE_BY_TABLE : LINKS_CODE_BY_MODEL;
    while (count > 0) {
        walker->message_size =
            links_code_write(walk->config.code, way, job, links, count, walker->message, size_max);
        if (walker->message_size > 0) {
            walk->links_mean += (uint32_t)count - walk->links_mean / WALK_MEAN_OF;
            walk->counters.table_count += way == LINKS_CODE_BY_TABLE;
            break;
        }
        if (count == 1) {
            walk->counters.unsendable_count++;
            give_back(walk, links[0].owner, true);
            return 0;
        }
        for (size_t i = count / 2; i < count; i++) {
            give_back(walk, links[i].owner, false);
        }
        count /= 2;
    }
    return count;
}

/* The links of the arc of the first place in the window. False: there was nothing to send after all. */
static bool begin_batch(struct walk *walk, struct walker *walker) {
    struct links_code_link links[WALK_LINKS_MAX];
    uint8_t job[LINKS_CODE_JOB_SIZE];
    const struct walk_owner *owner = walk->config.owner;
    walker->from = walker->at;
    walker->to = walker->window[0].id;
    if (ring_id_is_owned(walker->from, walker->end, walker->to)) {
        walker->to = walker->end;
    }
    size_t count =
        owner->take(walk->config.context, walker->from, walker->to, job, links, walk->config.links_max);
    ASSERT(count <= walk->config.links_max);
    if (count == 0) {
        walker->at = walker->to; /* gone in between */
    }
    count = sift(walk, bytes_of(job, sizeof job), links, count);
    count = pack(walk, walker, job, links, count);
    if (count == 0) {
        return false;
    }
    walker->links_count = (uint8_t)count;
    walker->is_moved = false;
    for (size_t i = 0; i < count; i++) {
        walker->owners[i] = links[i].owner;
        walker->hashes[i] = walk_sent_hash(&walk->sent, bytes_of(job, sizeof job), links[i].url);
    }
    walk->counters.batches_count++;
    walk->counters.links_count += count;
    choose_targets(walk, walker);
    walker->state = WALKER_SENDING;
    for (uint8_t i = 0; i < walker->targets_count; i++) {
        start_target(walk, walker, i);
    }
    return true;
}

static bool is_under_way(const struct walker *walker) {
    for (uint8_t i = 0; i < walker->targets_count; i++) {
        if (walker->targets[i].state == TARGET_ASKED) {
            return true;
        }
    }
    return false;
}

/* The primary, unless it is dead, and a majority of those who shall hold them and are there; others than
 * ourselves, if there are any. */
static bool is_enough(const struct walk *walk, const struct walker *walker) {
    unsigned taken = 0;
    unsigned present = 0;
    for (uint8_t i = 0; i < walker->targets_count; i++) {
        taken += walker->targets[i].state == TARGET_TAKEN;
        present += walker->targets[i].state != TARGET_SILENT;
    }
    if (walker->targets_count == 0) {
        return walker->is_held;
    }
    bool is_refused =
        walker->primary < walker->targets_count && walker->targets[walker->primary].state == TARGET_GIVEN_UP;
    unsigned holders = present + walker->is_held;
    holders = holders < walk->config.holders_count ? holders : walk->config.holders_count;
    return !is_refused && taken > 0 && 2 * (taken + walker->is_held) > holders;
}

static void end_batch(struct walk *walk, struct walker *walker) {
    bool is_done = is_enough(walk, walker);
    for (uint8_t i = 0; i < walker->links_count; i++) {
        give_back(walk, walker->owners[i], is_done);
        if (is_done) {
            walk_sent_add(&walk->sent, walker->hashes[i], walk->now_us);
        }
    }
    walk->counters.done_count += is_done ? walker->links_count : 0;
    if (walker->is_moved && !walker->is_found) {
        walk->counters.moved_count++;
        walker->window_count = 0; /* it will be looked up */
    } else if (!is_done) {
        walk->counters.kept_count += walker->links_count;
        walk->has_left = true;
        walker->at = walker->to;
    }
    walker->is_found = false;
}

/* ---- one walker ---- */

static void find(struct walk *walk, struct walker *walker, struct ring_id place) {
    uint8_t memory[8 + RING_ID_SIZE + 1];
    struct wire_writer writer;
    struct bytes bytes;
    walker->state = WALKER_FINDING;
    walker->life++;
    walker->timeout_at_us = walk->now_us + FIND_US;
    walker->known_from = id_before(place);
    walker->window_count = 0;
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_u64(&writer, (uint64_t)walker->life << 32 | (uint64_t)(walker - walk->walkers));
    message_write_id(&writer, place);
    wire_write_u8(&writer, FIND_PLACES);
    enum err err = wire_writer_finish(&writer, &bytes);
    ASSERT(err == ERR_OK);
    walk->counters.finds_count++;
    outbox_notice(walk->out, WALK_FIND, bytes);
}

/* To the next arc that has links. */
static void go_on(struct walk *walk, struct walker *walker) {
    struct ring_id place;
    walker->state = WALKER_IDLE;
    while (!ring_id_equal(walker->at, walker->end) &&
           walk->config.owner->next(walk->config.context, walker->at, walker->end, &place)) {
        bool is_known = window_reach(walker, place) &&
                        (walker->is_found || count_nodes(walker, 0) >= walk->config.holders_count);
        if (!is_known) {
            find(walk, walker, place);
            return;
        }
        if (begin_batch(walk, walker)) {
            if (is_under_way(walker)) {
                return;
            }
            end_batch(walk, walker); /* all holders are ourselves */
            walker->state = WALKER_IDLE;
        }
    }
}

static void check_targets(struct walk *walk, struct walker *walker) {
    for (uint8_t i = 0; i < walker->targets_count; i++) {
        struct walk_target *target = &walker->targets[i];
        if (target->state != TARGET_ASKED || walk->now_us < target->timeout_at_us) {
            continue;
        }
        if (target->tries_count < WALK_TRIES_MAX) {
            send_batch(walk, walker, target);
            continue;
        }
        target->state = TARGET_SILENT;
        walk->counters.silent_count++;
        uint8_t count = walker->targets_count;
        if (add_target(walk, walker, true)) {
            start_target(walk, walker, count);
        }
    }
}

static void check_walker(struct walk *walk, struct walker *walker) {
    if (walker->state == WALKER_FINDING && walk->now_us >= walker->timeout_at_us) {
        walk->has_left = true;
        walker->at = walker->end; /* the rest of its part waits */
        go_on(walk, walker);
    } else if (walker->state == WALKER_SENDING) {
        check_targets(walk, walker);
        if (!is_under_way(walker)) {
            end_batch(walk, walker);
            go_on(walk, walker);
        }
    }
}

static void wake_for(struct walk *walk, const struct walker *walker) {
    if (walker->state == WALKER_FINDING) {
        outbox_wake_at(walk->out, walker->timeout_at_us);
    }
    for (uint8_t i = 0; walker->state == WALKER_SENDING && i < walker->targets_count; i++) {
        if (walker->targets[i].state == TARGET_ASKED) {
            outbox_wake_at(walk->out, walker->targets[i].timeout_at_us);
        }
    }
}

/* ---- rounds ---- */

static void begin_round(struct walk *walk) {
    uint8_t count = walk->config.walkers_count;
    struct ring_id self = ring_id_of_node(&walk->sha256, &walk->config.self.address, 0);
    walk->counters.rounds_count++;
    walk->is_walking = true;
    walk->has_left = false;
    walk->waiting_since_us = 0;
    for (uint8_t i = 0; i < count; i++) {
        struct walker *walker = &walk->walkers[i];
        walker->at = (struct ring_id){self.high + UINT64_MAX / count * i, self.low};
        walker->end =
            i + 1 == count ? self : (struct ring_id){self.high + UINT64_MAX / count * (i + 1u), self.low};
        walker->window_count = 0;
        walker->is_found = false;
        go_on(walk, walker);
    }
}

static void end_round(struct walk *walk) {
    walk->is_walking = false;
    walk->failures_count = walk->has_left ? walk->failures_count + 1 : 0;
    uint32_t doublings = walk->failures_count < 7 ? walk->failures_count : 7;
    uint64_t wait_us = walk->has_left ? AGAIN_US << (doublings - 1) : 0;
    walk->round_at_us = walk->now_us + (wait_us < AGAIN_US_MAX ? wait_us : AGAIN_US_MAX);
}

static bool is_round_over(const struct walk *walk) {
    for (uint8_t i = 0; i < walk->config.walkers_count; i++) {
        if (walk->walkers[i].state != WALKER_IDLE) {
            return false;
        }
    }
    return true;
}

/* Enough links, or the first has waited long enough. */
static void consider_round(struct walk *walk) {
    const struct walk_config *config = &walk->config;
    uint64_t waiting_count = config->owner->waiting(config->context);
    if (waiting_count == 0) {
        walk->waiting_since_us = 0;
        return;
    }
    uint64_t arcs_count = config->owner->arcs(config->context);
    uint64_t flush_us = config->flush_us > 0 ? config->flush_us : FLUSH_US + arcs_count * FLUSH_ARC_US;
    if (walk->waiting_since_us == 0) {
        walk->waiting_since_us = walk->now_us + 1;
    }
    uint64_t at_us = walk->waiting_since_us + flush_us;
    if (waiting_count >= arcs_count * config->links_wanted) {
        at_us = 0;
    }
    at_us = at_us > walk->round_at_us ? at_us : walk->round_at_us;
    if (walk->now_us >= at_us) {
        begin_round(walk);
    } else {
        outbox_wake_at(walk->out, at_us);
    }
}

void walk_tick(struct walk *walk) {
    for (uint8_t i = 0; walk->is_walking && i < walk->config.walkers_count; i++) {
        check_walker(walk, &walk->walkers[i]);
    }
    if (walk->is_walking && is_round_over(walk)) {
        end_round(walk);
    }
    if (!walk->is_walking) {
        consider_round(walk);
    }
    for (uint8_t i = 0; walk->is_walking && i < walk->config.walkers_count; i++) {
        wake_for(walk, &walk->walkers[i]);
    }
    if (walk->is_walking && is_round_over(walk)) {
        outbox_wake_at(walk->out, walk->now_us);
    }
}

/* ---- what comes ---- */

static void take_answer(struct walk *walk, struct walker *walker, struct walk_target *target,
                        const struct walk_message *answer) {
    bool is_primary = target - walker->targets == walker->primary;
    switch ((enum walk_status)answer->status) {
    case WALK_TAKEN:
    case WALK_REFUSED: /* to send them again would change nothing */
        target->state = TARGET_TAKEN;
        break;
    case WALK_BUSY:
        target->timeout_at_us = walk->now_us + (BUSY_US << target->tries_count);
        target->state = target->tries_count < WALK_TRIES_MAX ? TARGET_ASKED : TARGET_GIVEN_UP;
        break;
    case WALK_MOVED:
        walker->is_moved |= is_primary;
        target->state = TARGET_GIVEN_UP;
        break;
    case WALK_STATUSES_COUNT:
        break;
    }
}

void walk_on_answer(struct walk *walk, const struct event *event, const struct walk_message *answer) {
    for (uint8_t i = 0; i < walk->config.walkers_count; i++) {
        struct walker *walker = &walk->walkers[i];
        for (uint8_t j = 0; walker->state == WALKER_SENDING && j < walker->targets_count; j++) {
            struct walk_target *target = &walker->targets[j];
            if (target->state != TARGET_ASKED || target->number != answer->number ||
                !address_equal(&target->peer.address, &event->from) ||
                memcmp(target->peer.key, event->from_key, PEER_KEY_SIZE) != 0) {
                continue;
            }
            walk->counters.answers_size += event->bytes.size;
            if (target->tries_count == 1) {
                rtt_sample(&walk->rtt, walk->now_us - target->sent_at_us);
            }
            if (j + 1 == walker->targets_count) {
                window_add(walker, answer->places, answer->places_count);
            }
            take_answer(walk, walker, target, answer);
            return;
        }
    }
}

void walk_on_found(struct walk *walk, const struct event *event) {
    uint32_t index = (uint32_t)event->number;
    ASSERT(index < walk->config.walkers_count);
    struct walker *walker = &walk->walkers[index];
    if (walker->state != WALKER_FINDING || walker->life != (uint32_t)(event->number >> 32)) {
        return;
    }
    struct wire_reader reader;
    wire_reader_init(&reader, event->bytes);
    uint8_t count = wire_read_u8_max(&reader, RING_LIST_MAX);
    for (uint8_t i = 0; i < count; i++) {
        struct ring_place place;
        message_read_place(&reader, &walk->sha256, &place);
        if (reader.err == ERR_OK) {
            window_add(walker, &place, 1);
        }
    }
    if (walker->window_count == 0) {
        walker->timeout_at_us = walk->now_us; /* lost */
        return;
    }
    walker->is_found = true;
    go_on(walk, walker);
}
