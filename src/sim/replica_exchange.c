#include "sim/replica_exchange.h"

#include "base/assert.h"

static struct replica_node *node_at(struct replica_world *world, uint32_t index) {
    return &world->nodes[index];
}

static bool is_full(const struct replica_world *world, uint32_t node) {
    return world->copies.held_count[node] >= world->nodes[node].held_max;
}

static void report(struct replica_world *world, uint32_t owner, const struct keeper_task *task, enum err err,
                   uint64_t missing_there_count) {
    struct keeper_outcome outcome = {.err = err, .missing_there_count = missing_there_count};
    world->counts.full_count += err == ERR_NO_SPACE;
    keeper_done(node_at(world, owner)->keeper, task, &outcome, world->now_us);
}

/* ---- what is missing ---- */

static uint32_t sender_of(const struct replica_exchange *exchange) {
    return exchange->is_from_peer ? exchange->peer : exchange->owner;
}

static uint32_t receiver_of(const struct replica_exchange *exchange) {
    return exchange->is_from_peer ? exchange->owner : exchange->peer;
}

/* Does somebody send it to the node already? */
static bool is_coming(const struct replica_world *world, uint32_t node, uint32_t object) {
    const struct replica_node *receiver = &world->nodes[node];
    for (uint32_t i = 0; i < receiver->exchanges_count && receiver->receives_count > 0; i++) {
        const struct replica_exchange *exchange = &world->exchanges[receiver->exchanges[i]];
        if (exchange->object == object && receiver_of(exchange) == node) {
            return true;
        }
    }
    return false;
}

/* What is before it is not looked at. */
static struct ring_id start_of(const struct keeper_task *task) {
    struct ring_id rest = ring_id_read(task->rest.bytes);
    return task->has_rest ? (struct ring_id){rest.high - (rest.low == 0), rest.low - 1} : task->from;
}

/*
 * The first object of the arc that one of the two has and the other has not, unless it gets it from somebody
 * else. What the owner's own disk has no room for is no reason to stay: nothing would come of it.
 */
static bool find_missing(const struct replica_world *world, struct replica_exchange *exchange,
                         uint64_t *ret_count) {
    const struct replica_copies *copies = &world->copies;
    const uint8_t *here = replica_copies_of(copies, exchange->owner);
    const uint8_t *there = replica_copies_of(copies, exchange->peer);
    bool takes = !is_full(world, exchange->owner);
    uint32_t object;
    uint32_t count;
    *ret_count = 0;
    replica_copies_range(copies, start_of(&exchange->task), exchange->task.to, &object, &count);
    for (; count > 0; count--, object = object + 1 < copies->objects_count ? object + 1 : 0) {
        bool is_here = here[object] == REPLICA_WHOLE;
        bool is_there = there[object] == REPLICA_WHOLE;
        if (is_here == is_there || (is_there && !takes) ||
            is_coming(world, is_there ? exchange->owner : exchange->peer, object)) {
            continue;
        }
        if ((*ret_count)++ == 0) {
            exchange->object = object;
            exchange->is_from_peer = is_there;
        }
    }
    return *ret_count > 0;
}

/* ---- transfers ---- */

static void settle(const struct replica_world *world, struct replica_exchange *exchange) {
    uint64_t done_us = exchange->share > 0 ? (world->now_us - exchange->since_us) / exchange->share : 0;
    exchange->work_us -= done_us < exchange->work_us ? done_us : exchange->work_us;
    exchange->since_us = world->now_us;
}

static void expect(struct replica_world *world, uint32_t index) {
    struct replica_exchange *exchange = &world->exchanges[index];
    uint64_t at_us = exchange->since_us + exchange->work_us * exchange->share;
    exchange->sequence = replica_world_push(world, at_us, REPLICA_ARRIVAL, index);
}

/* Something began or ended on the lines of the node. */
static void share_lines(struct replica_world *world, uint32_t node) {
    for (uint32_t i = 0; i < node_at(world, node)->exchanges_count; i++) {
        uint32_t index = node_at(world, node)->exchanges[i];
        struct replica_exchange *exchange = &world->exchanges[index];
        uint64_t sends = node_at(world, sender_of(exchange))->sends_count;
        uint64_t receives = node_at(world, receiver_of(exchange))->receives_count;
        uint64_t share = sends > receives ? sends : receives;
        if (share != exchange->share) {
            settle(world, exchange);
            exchange->share = share;
            expect(world, index);
        }
    }
}

static void begin_work(struct replica_world *world, struct replica_exchange *exchange) {
    uint8_t parts = replica_copies_of(&world->copies, receiver_of(exchange))[exchange->object];
    exchange->work_us = world->config.object_us * (REPLICA_WHOLE - parts) / REPLICA_WHOLE + 1;
    exchange->since_us = world->now_us;
}

static void take_out(struct replica_node *node, uint32_t index) {
    uint32_t i = 0;
    while (node->exchanges[i] != index) {
        i++;
        ASSERT(i < node->exchanges_count);
    }
    node->exchanges[i] = node->exchanges[--node->exchanges_count];
}

static void take_up(struct replica_world *world, const struct replica_exchange *meant) {
    struct replica_node *owner = node_at(world, meant->owner);
    struct replica_node *peer = node_at(world, meant->peer);
    if (world->free_count == 0 || owner->exchanges_count == REPLICA_EXCHANGES_MAX ||
        peer->exchanges_count == REPLICA_EXCHANGES_MAX) {
        report(world, meant->owner, &meant->task, ERR_BUSY, 0);
        return;
    }
    uint32_t index = world->free_exchanges[--world->free_count];
    struct replica_exchange *exchange = &world->exchanges[index];
    *exchange = *meant;
    exchange->is_open = true;
    exchange->share = 0;
    begin_work(world, exchange);
    owner->exchanges[owner->exchanges_count++] = index;
    peer->exchanges[peer->exchanges_count++] = index;
    node_at(world, sender_of(exchange))->sends_count++;
    node_at(world, receiver_of(exchange))->receives_count++;
    share_lines(world, exchange->owner);
    share_lines(world, exchange->peer);
}

static void lay_down(struct replica_world *world, uint32_t index) {
    struct replica_exchange *exchange = &world->exchanges[index];
    exchange->is_open = false;
    world->free_exchanges[world->free_count++] = index;
    take_out(node_at(world, exchange->owner), index);
    take_out(node_at(world, exchange->peer), index);
    node_at(world, sender_of(exchange))->sends_count--;
    node_at(world, receiver_of(exchange))->receives_count--;
    share_lines(world, exchange->owner);
    share_lines(world, exchange->peer);
}

/* The next transfer, or the end. */
static void go_on(struct replica_world *world, uint32_t index) {
    struct replica_exchange *exchange = &world->exchanges[index];
    struct replica_exchange next = *exchange;
    uint64_t missing_count = 0;
    bool is_missing = find_missing(world, &next, &missing_count);
    bool is_possible = is_missing && (next.is_from_peer || !is_full(world, next.peer));
    if (is_possible && next.is_from_peer == exchange->is_from_peer) {
        exchange->object = next.object;
        begin_work(world, exchange);
        expect(world, index);
        return;
    }
    lay_down(world, index);
    if (is_possible) {
        take_up(world, &next);
    } else {
        report(world, next.owner, &next.task, is_missing ? ERR_NO_SPACE : ERR_OK, missing_count);
    }
    replica_world_wake(world, next.owner);
}

/* ---- releases ---- */

/* Do all nodes that should have a copy by the ring have one, and the owner is none of them? */
static bool is_surplus(const struct replica_world *world, uint32_t owner, uint32_t object, uint32_t primary) {
    if (world->up_count <= world->config.copies) {
        return false;
    }
    for (uint32_t i = 0; i < world->config.copies; i++) {
        uint32_t holder = world->up[(primary + i) % world->up_count];
        if (holder == owner || !replica_copies_has(&world->copies, holder, object)) {
            return false;
        }
    }
    return true;
}

/* What its primary lacks goes there first. Then surplus is given up where all holders have it; what is only
 * handed on stays. */
static void release(struct replica_world *world, struct replica_exchange *exchange) {
    struct replica_copies *copies = &world->copies;
    bool has_room = copies->held_count[exchange->owner] < node_at(world, exchange->owner)->held_max / 2;
    bool is_kept = exchange->task.kind == KEEPER_HAND_ON || (world->config.keeps_surplus && has_room);
    bool is_lacking = false;
    uint32_t first;
    uint32_t count;
    replica_copies_range(copies, exchange->task.from, exchange->task.to, &first, &count);
    for (uint32_t i = replica_copies_next(copies, exchange->owner, first, first + count); i < first + count;
         i = replica_copies_next(copies, exchange->owner, i + 1, first + count)) {
        uint32_t object = i % copies->objects_count;
        uint32_t primary = replica_world_find(world, copies->objects[object].place);
        bool lacks = !replica_copies_has(copies, world->up[primary], object);
        if (lacks && !is_lacking && !is_full(world, world->up[primary]) &&
            !is_coming(world, world->up[primary], object)) {
            is_lacking = true;
            exchange->object = object;
            exchange->peer = world->up[primary];
        } else if (!lacks && !is_kept && is_surplus(world, exchange->owner, object, primary)) {
            replica_copies_drop(copies, exchange->owner, object, world->now_us);
            world->counts.released_count++;
        }
    }
    if (is_lacking && !world->config.is_idle) {
        take_up(world, exchange);
    } else {
        report(world, exchange->owner, &exchange->task, ERR_OK, 0);
    }
}

/* ---- the end of a transfer ---- */

static void receive_parts(struct replica_world *world, uint32_t node, uint32_t object, uint64_t parts) {
    uint8_t *own = &replica_copies_of(&world->copies, node)[object];
    if (*own == REPLICA_WHOLE || world->copies.objects[object].is_lost) {
        return;
    }
    uint64_t sum = *own + parts;
    world->counts.received_parts += sum < REPLICA_WHOLE ? parts : (uint64_t)REPLICA_WHOLE - *own;
    if (sum >= REPLICA_WHOLE) {
        replica_copies_add(&world->copies, node, object, world->now_us);
    } else {
        *own = (uint8_t)sum;
    }
}

static void claim(struct replica_world *world, const struct replica_exchange *exchange) {
    keeper_claim(node_at(world, exchange->peer)->keeper, &node_at(world, exchange->owner)->peer,
                 exchange->task.from, exchange->task.to, false, world->now_us);
}

void replica_exchange_arrive(struct replica_world *world, uint32_t index) {
    struct replica_exchange exchange = world->exchanges[index];
    ASSERT(exchange.is_open);
    receive_parts(world, receiver_of(&exchange), exchange.object, REPLICA_WHOLE);
    if (exchange.task.kind != KEEPER_COMPARE) { /* the next object may have another primary */
        lay_down(world, index);
        release(world, &exchange);
        replica_world_wake(world, exchange.owner);
        return;
    }
    claim(world, &exchange);
    go_on(world, index);
}

static void cut(struct replica_world *world, uint32_t index) {
    settle(world, &world->exchanges[index]);
    struct replica_exchange exchange = world->exchanges[index];
    uint32_t receiver = receiver_of(&exchange);
    uint64_t left = exchange.work_us * REPLICA_WHOLE / world->config.object_us + 1;
    uint8_t parts = replica_copies_of(&world->copies, receiver)[exchange.object];
    uint64_t reached = left < REPLICA_WHOLE ? REPLICA_WHOLE - left : 0;
    if (reached > parts) {
        receive_parts(world, receiver, exchange.object, reached - parts);
    }
    lay_down(world, index);
    report(world, exchange.owner, &exchange.task, ERR_CLOSED, 0);
    replica_world_wake(world, exchange.owner);
}

void replica_exchange_cut(struct replica_world *world, uint32_t node) {
    while (node_at(world, node)->exchanges_count > 0) {
        cut(world, node_at(world, node)->exchanges[0]);
    }
}

/* ---- tasks ---- */

static void compare(struct replica_world *world, struct replica_exchange *exchange) {
    uint64_t missing_count = 0;
    world->counts.compared_count++;
    claim(world, exchange);
    bool is_missing = find_missing(world, exchange, &missing_count) && !world->config.is_idle;
    if (is_missing && !exchange->is_from_peer && is_full(world, exchange->peer)) {
        report(world, exchange->owner, &exchange->task, ERR_NO_SPACE, missing_count);
    } else if (is_missing) {
        take_up(world, exchange);
    } else {
        report(world, exchange->owner, &exchange->task, ERR_OK, 0);
    }
}

static void challenge(struct replica_world *world, const struct replica_exchange *exchange) {
    uint32_t first;
    uint32_t count;
    replica_copies_range(&world->copies, exchange->task.from, exchange->task.to, &first, &count);
    uint32_t drawn = count > 0 ? (uint32_t)prng_below(&world->prng, count) : 0;
    uint32_t object = (first + drawn) % world->copies.objects_count;
    bool is_known = count > 0 && replica_copies_has(&world->copies, exchange->owner, object);
    bool is_held = replica_copies_has(&world->copies, exchange->peer, object);
    report(world, exchange->owner, &exchange->task, is_known && !is_held ? ERR_NOT_FOUND : ERR_OK, 0);
}

void replica_exchange_begin(struct replica_world *world, uint32_t owner, const struct keeper_task *task) {
    struct replica_exchange exchange = {.task = *task, .owner = owner};
    switch (task->kind) {
    case KEEPER_COMPARE:
        exchange.peer = replica_index_of(&task->peer);
        compare(world, &exchange);
        break;
    case KEEPER_CHALLENGE:
        exchange.peer = replica_index_of(&task->peer);
        challenge(world, &exchange);
        break;
    case KEEPER_HAND_ON:
    case KEEPER_RELEASE:
        release(world, &exchange);
        break;
    }
}
