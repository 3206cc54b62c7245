#include "protocol/links/link_relay_state.h"

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

/* Places that follow the last one; any other is no place behind it. */
static void window_add(struct walker *walker, const struct vnode *places, size_t count) {
    for (size_t i = 0; i < count && walker->window_count < LINK_RELAY_WINDOW_MAX; i++) {
        struct ring_id last =
            walker->window_count == 0 ? walker->known_from : walker->window[walker->window_count - 1].id;
        bool is_next = ring_id_is_between(last, places[i].id, walker->known_from);
        if (vnode_is_padding(&places[i]) || !is_next) {
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

static bool send_is_self(const struct link_relay *link_relay, const struct peer *peer) {
    return address_equal(&peer->address, &link_relay->config.self.address);
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
static bool add_target(struct link_relay *link_relay, struct walker *walker, bool is_instead) {
    while (walker->next < walker->window_count && walker->targets_count < LINK_RELAY_TARGETS_MAX) {
        const struct peer *peer = &walker->window[walker->next++].peer;
        if (send_is_self(link_relay, peer) ? walker->is_held || is_instead : is_target(walker, peer)) {
            continue;
        }
        if (send_is_self(link_relay, peer)) {
            walker->is_held = true;
        } else {
            walker->targets[walker->targets_count++] = (struct link_relay_target){.peer = *peer};
        }
        return true;
    }
    return false;
}

static void send_batch(struct link_relay *link_relay, struct walker *walker,
                       struct link_relay_target *target) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    uint8_t index = (uint8_t)(target - walker->targets);
    struct link_relay_message message = {
        .kind = LINK_RELAY_OFFER,
        .flags = index == walker->primary ? LINK_RELAY_AS_PRIMARY : 0,
        .number = target->number,
        .links = bytes_of(walker->message, walker->message_size),
    };
    bool is_ending = count_nodes(walker, 1) <= link_relay->config.holders_count;
    if (is_ending && index + 1 == walker->targets_count) {
        message.flags |= LINK_RELAY_WANTS;
        message.after = walker->window[walker->window_count - 1].id;
    }
    struct bytes bytes = link_relay_message_write(&message, memory);
    retry_sent(&target->retry, &link_relay->rtt, link_relay->now_us);
    link_relay->counters.sent_count++;
    link_relay->counters.sent_size += bytes.size;
    link_relay->counters.repeated_count += target->retry.tries_count > 1;
    link_relay->counters.offered_count += target->retry.tries_count == 1 ? walker->links_count : 0;
    outbox_send_peer(link_relay->out, &target->peer, bytes);
}

static void start_target(struct link_relay *link_relay, struct walker *walker, uint8_t index) {
    walker->targets[index].state = TARGET_ASKED;
    walker->targets[index].number = ++link_relay->number;
    send_batch(link_relay, walker, &walker->targets[index]);
}

/* The first R distinct nodes, ourselves among them. */
static void choose_targets(struct link_relay *link_relay, struct walker *walker) {
    walker->targets_count = 0;
    walker->next = 0;
    walker->is_held = false;
    walker->primary = send_is_self(link_relay, &walker->window[0].peer) ? LINK_RELAY_TARGETS_MAX : 0;
    for (uint8_t i = 0; i < link_relay->config.holders_count && add_target(link_relay, walker, false); i++) {
    }
}

/* ---- batches ---- */

static void send_give_back(struct link_relay *link_relay, uint64_t link, bool is_done) {
    link_relay->config.owner->give_back(link_relay->config.context, link, is_done);
}

/* Without those that were sent before, and those that can never be sent. Returns how many are left. */
static size_t send_sift(struct link_relay *link_relay, struct bytes job, struct links_code_link *links,
                        size_t count) {
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_known =
            link_relay_sent_has(&link_relay->sent, link_relay_sent_hash(&link_relay->sent, job, links[i].url),
                                link_relay->now_us);
        bool is_sendable = links_code_takes(links[i].url);
        link_relay->counters.known_count += is_known;
        if (is_known || !is_sendable) {
            send_give_back(link_relay, links[i].owner, true);
        } else {
            links[left++] = links[i];
        }
    }
    return left;
}

/* Fewer until they fit: those behind go back. */
static size_t send_pack(struct link_relay *link_relay, struct walker *walker,
                        const uint8_t job[LINKS_CODE_JOB_SIZE], struct links_code_link *links, size_t count) {
    const size_t size_max = LINK_RELAY_MESSAGE_SIZE_MAX - LINK_RELAY_OFFER_HEAD_SIZE_MAX;
    enum links_code_way way = link_relay->links_mean >= LINK_RELAY_MEAN_FULL * LINK_RELAY_MEAN_OF
                                  ? LINKS_CODE_BY_TABLE
                                  : LINKS_CODE_BY_MODEL;
    while (count > 0) {
        walker->message_size =
            links_code_write(link_relay->config.code, way, job, links, count, walker->message, size_max);
        if (walker->message_size > 0) {
            link_relay->links_mean += (uint32_t)count - link_relay->links_mean / LINK_RELAY_MEAN_OF;
            link_relay->counters.table_count += way == LINKS_CODE_BY_TABLE;
            break;
        }
        if (count == 1) {
            send_give_back(link_relay, links[0].owner, true);
            return 0;
        }
        for (size_t i = count / 2; i < count; i++) {
            send_give_back(link_relay, links[i].owner, false);
        }
        count /= 2;
    }
    return count;
}

/* The links of the arc of the first place in the window. False: there was nothing to send after all. */
static bool begin_batch(struct link_relay *link_relay, struct walker *walker) {
    struct links_code_link links[LINK_RELAY_LINKS_MAX];
    uint8_t job[LINKS_CODE_JOB_SIZE];
    const struct link_relay_owner *owner = link_relay->config.owner;
    walker->from = walker->at;
    walker->to = walker->window[0].id;
    if (ring_id_is_owned(walker->from, walker->end, walker->to)) {
        walker->to = walker->end;
    }
    size_t count = owner->take(link_relay->config.context, walker->from, walker->to, job, links,
                               link_relay->config.links_max);
    ASSERT(count <= link_relay->config.links_max);
    if (count == 0) {
        walker->at = walker->to; /* gone in between */
    }
    count = send_sift(link_relay, bytes_of(job, sizeof job), links, count);
    count = send_pack(link_relay, walker, job, links, count);
    if (count == 0) {
        return false;
    }
    walker->links_count = (uint8_t)count;
    walker->is_moved = false;
    for (size_t i = 0; i < count; i++) {
        walker->owners[i] = links[i].owner;
        walker->hashes[i] = link_relay_sent_hash(&link_relay->sent, bytes_of(job, sizeof job), links[i].url);
    }
    link_relay->counters.batches_count++;
    link_relay->counters.links_count += count;
    choose_targets(link_relay, walker);
    walker->state = WALKER_SENDING;
    for (uint8_t i = 0; i < walker->targets_count; i++) {
        start_target(link_relay, walker, i);
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

/* The primary, unless it is dead, and a majority of those that shall hold them and are there; others than
 * ourselves, if there are any. */
static bool is_enough(const struct link_relay *link_relay, const struct walker *walker) {
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
    holders = holders < link_relay->config.holders_count ? holders : link_relay->config.holders_count;
    return !is_refused && taken > 0 && 2 * (taken + walker->is_held) > holders;
}

static void send_end_batch(struct link_relay *link_relay, struct walker *walker) {
    bool is_done = is_enough(link_relay, walker);
    for (uint8_t i = 0; i < walker->links_count; i++) {
        send_give_back(link_relay, walker->owners[i], is_done);
        if (is_done) {
            link_relay_sent_add(&link_relay->sent, walker->hashes[i], link_relay->now_us);
        }
    }
    link_relay->counters.done_count += is_done ? walker->links_count : 0;
    if (walker->is_moved && !walker->is_found) {
        link_relay->counters.moved_count++;
        walker->window_count = 0; /* it will be looked up */
    } else if (!is_done) {
        link_relay->counters.kept_count += walker->links_count;
        link_relay->has_left = true;
        walker->at = walker->to;
    }
    walker->is_found = false;
}

/* ---- one walker ---- */

static void send_find(struct link_relay *link_relay, struct walker *walker, struct ring_id place) {
    uint8_t memory[8 + RING_ID_SIZE + 1];
    struct wire_writer writer;
    walker->state = WALKER_FINDING;
    walker->life++;
    walker->timeout_at_us = link_relay->now_us + FIND_US;
    walker->known_from = id_before(place);
    walker->window_count = 0;
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_u64(&writer, (uint64_t)walker->life << 32 | (uint64_t)(walker - link_relay->walkers));
    message_write_id(&writer, place);
    wire_write_u8(&writer, FIND_PLACES);
    link_relay->counters.finds_count++;
    outbox_notice(link_relay->out, LINK_RELAY_FIND, wire_writer_bytes(&writer));
}

/* To the next arc that has links. */
static void send_go_on(struct link_relay *link_relay, struct walker *walker) {
    struct ring_id place;
    walker->state = WALKER_IDLE;
    while (!ring_id_equal(walker->at, walker->end) &&
           link_relay->config.owner->next(link_relay->config.context, walker->at, walker->end, &place)) {
        bool is_known = window_reach(walker, place) &&
                        (walker->is_found || count_nodes(walker, 0) >= link_relay->config.holders_count);
        if (!is_known) {
            send_find(link_relay, walker, place);
            return;
        }
        if (begin_batch(link_relay, walker)) {
            if (is_under_way(walker)) {
                return;
            }
            send_end_batch(link_relay, walker); /* all holders are ourselves */
            walker->state = WALKER_IDLE;
        }
    }
}

static void check_targets(struct link_relay *link_relay, struct walker *walker) {
    for (uint8_t i = 0; i < walker->targets_count; i++) {
        struct link_relay_target *target = &walker->targets[i];
        if (target->state != TARGET_ASKED || !retry_is_due(&target->retry, link_relay->now_us)) {
            continue;
        }
        if (target->retry.tries_count < LINK_RELAY_TRIES_MAX) {
            send_batch(link_relay, walker, target);
            continue;
        }
        target->state = TARGET_SILENT;
        link_relay->counters.silent_count++;
        uint8_t count = walker->targets_count;
        if (add_target(link_relay, walker, true)) {
            start_target(link_relay, walker, count);
        }
    }
}

static void check_walker(struct link_relay *link_relay, struct walker *walker) {
    if (walker->state == WALKER_FINDING && link_relay->now_us >= walker->timeout_at_us) {
        link_relay->has_left = true;
        walker->at = walker->end; /* the rest of its part waits */
        send_go_on(link_relay, walker);
    } else if (walker->state == WALKER_SENDING) {
        check_targets(link_relay, walker);
        if (!is_under_way(walker)) {
            send_end_batch(link_relay, walker);
            send_go_on(link_relay, walker);
        }
    }
}

static void wake_for(struct link_relay *link_relay, const struct walker *walker) {
    if (walker->state == WALKER_FINDING) {
        outbox_wake_at(link_relay->out, walker->timeout_at_us);
    }
    for (uint8_t i = 0; walker->state == WALKER_SENDING && i < walker->targets_count; i++) {
        if (walker->targets[i].state == TARGET_ASKED) {
            outbox_wake_at(link_relay->out, walker->targets[i].retry.due_us);
        }
    }
}

/* ---- rounds ---- */

static void begin_round(struct link_relay *link_relay) {
    uint8_t count = link_relay->config.walkers_count;
    struct ring_id self = ring_id_of_node(&link_relay->sha256, &link_relay->config.self.address, 0);
    link_relay->counters.rounds_count++;
    link_relay->is_walking = true;
    link_relay->has_left = false;
    link_relay->waiting_since_us = 0;
    for (uint8_t i = 0; i < count; i++) {
        struct walker *walker = &link_relay->walkers[i];
        walker->at = (struct ring_id){self.high + UINT64_MAX / count * i, self.low};
        walker->end =
            i + 1 == count ? self : (struct ring_id){self.high + UINT64_MAX / count * (i + 1u), self.low};
        walker->window_count = 0;
        walker->is_found = false;
        send_go_on(link_relay, walker);
    }
}

static void send_end_round(struct link_relay *link_relay) {
    link_relay->is_walking = false;
    link_relay->failures_count = link_relay->has_left ? link_relay->failures_count + 1 : 0;
    link_relay->round_at_us = link_relay->now_us;
    if (link_relay->has_left) {
        link_relay->round_at_us += retry_doubled_us(AGAIN_US, link_relay->failures_count - 1, AGAIN_US_MAX);
    }
}

static bool is_round_over(const struct link_relay *link_relay) {
    for (uint8_t i = 0; i < link_relay->config.walkers_count; i++) {
        if (link_relay->walkers[i].state != WALKER_IDLE) {
            return false;
        }
    }
    return true;
}

/* Enough links, or the first has waited long enough. */
static void consider_round(struct link_relay *link_relay) {
    const struct link_relay_config *config = &link_relay->config;
    uint64_t waiting_count = config->owner->waiting(config->context);
    if (waiting_count == 0) {
        link_relay->waiting_since_us = 0;
        return;
    }
    uint64_t arcs_count = config->owner->arcs(config->context);
    uint64_t flush_us = config->flush_us > 0 ? config->flush_us : FLUSH_US + arcs_count * FLUSH_ARC_US;
    if (link_relay->waiting_since_us == 0) {
        link_relay->waiting_since_us = link_relay->now_us + 1;
    }
    uint64_t at_us = link_relay->waiting_since_us + flush_us;
    if (waiting_count >= arcs_count * config->links_wanted) {
        at_us = 0;
    }
    at_us = at_us > link_relay->round_at_us ? at_us : link_relay->round_at_us;
    if (link_relay->now_us >= at_us) {
        begin_round(link_relay);
    } else {
        outbox_wake_at(link_relay->out, at_us);
    }
}

void link_relay_tick(struct link_relay *link_relay) {
    for (uint8_t i = 0; link_relay->is_walking && i < link_relay->config.walkers_count; i++) {
        check_walker(link_relay, &link_relay->walkers[i]);
    }
    if (link_relay->is_walking && is_round_over(link_relay)) {
        send_end_round(link_relay);
    }
    if (!link_relay->is_walking) {
        consider_round(link_relay);
    }
    for (uint8_t i = 0; link_relay->is_walking && i < link_relay->config.walkers_count; i++) {
        wake_for(link_relay, &link_relay->walkers[i]);
    }
    if (link_relay->is_walking && is_round_over(link_relay)) {
        outbox_wake_at(link_relay->out, link_relay->now_us);
    }
}

/* ---- what comes ---- */

static void send_take_answer(struct link_relay *link_relay, struct walker *walker,
                             struct link_relay_target *target, const struct link_relay_message *answer) {
    bool is_primary = target - walker->targets == walker->primary;
    switch ((enum link_relay_status)answer->status) {
    case LINK_RELAY_TAKEN:
    case LINK_RELAY_REFUSED: /* to send them again would change nothing */
        target->state = TARGET_TAKEN;
        break;
    case LINK_RELAY_BUSY:
        target->retry.due_us =
            link_relay->now_us + retry_doubled_us(BUSY_US, target->retry.tries_count, UINT64_MAX);
        target->state = target->retry.tries_count < LINK_RELAY_TRIES_MAX ? TARGET_ASKED : TARGET_GIVEN_UP;
        break;
    case LINK_RELAY_MOVED:
        walker->is_moved |= is_primary;
        target->state = TARGET_GIVEN_UP;
        break;
    case LINK_RELAY_STATUSES_COUNT:
        break;
    }
}

void link_relay_on_answer(struct link_relay *link_relay, const struct event *event,
                          const struct link_relay_message *answer) {
    for (uint8_t i = 0; i < link_relay->config.walkers_count; i++) {
        struct walker *walker = &link_relay->walkers[i];
        for (uint8_t j = 0; walker->state == WALKER_SENDING && j < walker->targets_count; j++) {
            struct link_relay_target *target = &walker->targets[j];
            if (target->state != TARGET_ASKED || target->number != answer->number ||
                !address_equal(&target->peer.address, &event->from) ||
                memcmp(target->peer.key, event->from_key, PEER_KEY_SIZE) != 0) {
                continue;
            }
            link_relay->counters.answers_size += event->bytes.size;
            retry_measure(&target->retry, &link_relay->rtt, link_relay->now_us);
            if (j + 1 == walker->targets_count) {
                window_add(walker, answer->places, answer->places_count);
            }
            send_take_answer(link_relay, walker, target, answer);
            return;
        }
    }
}

void link_relay_on_found(struct link_relay *link_relay, const struct event *event) {
    uint32_t index = (uint32_t)event->number;
    ASSERT(index < link_relay->config.walkers_count);
    struct walker *walker = &link_relay->walkers[index];
    if (walker->state != WALKER_FINDING || walker->life != (uint32_t)(event->number >> 32)) {
        return;
    }
    struct wire_reader reader;
    wire_reader_init(&reader, event->bytes);
    uint8_t count = wire_read_u8_max(&reader, RING_LIST_MAX);
    for (uint8_t i = 0; i < count; i++) {
        struct vnode place;
        message_read_vnode(&reader, &link_relay->sha256, &place);
        if (reader.err == ERR_OK) {
            window_add(walker, &place, 1);
        }
    }
    if (walker->window_count == 0) {
        walker->timeout_at_us = link_relay->now_us; /* lost */
        return;
    }
    walker->is_found = true;
    send_go_on(link_relay, walker);
}
