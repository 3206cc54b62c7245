#include "sim/experiments/replica_transfer.h"

#include "base/assert.h"

static struct replica_node *transfer_node_at(struct replica_world *world, uint32_t index) {
    return &world->nodes[index];
}

bool replica_transfer_is_full(const struct replica_world *world, uint32_t node) {
    return world->copies.held_count[node] >= world->nodes[node].held_max;
}

/* ---- what is missing ---- */

bool replica_transfer_is_coming(const struct replica_world *world, uint32_t node, uint32_t object) {
    const struct replica_node *receiver = &world->nodes[node];
    for (uint32_t i = 0; i < receiver->exchanges_count && receiver->is_receiving; i++) {
        const struct replica_exchange *exchange = &world->exchanges[receiver->exchanges[i]];
        if (!exchange->is_waiting && exchange->receiver == node && exchange->object == object) {
            return true;
        }
    }
    return false;
}

/* What is before it is not looked at. */
static struct ring_id transfer_start_of(const struct copy_plan_task *task) {
    struct ring_id rest = ring_id_read(task->rest.bytes);
    return task->has_rest ? (struct ring_id){rest.high - (rest.low == 0), rest.low - 1} : task->from;
}

static uint32_t next_object(const struct replica_world *world, uint32_t object) {
    return object + 1 < world->copies.objects_count ? object + 1 : 0;
}

uint64_t replica_transfer_missing(const struct replica_world *world, const struct replica_exchange *exchange,
                                  bool *ret_takes) {
    const struct replica_copies *copies = &world->copies;
    const uint8_t *here = replica_copies_of(copies, exchange->owner);
    const uint8_t *there = replica_copies_of(copies, exchange->peer);
    bool takes = !replica_transfer_is_full(world, exchange->owner);
    bool gives = exchange->task.kind == COPY_PLAN_COMPARE;
    uint64_t missing_count = 0;
    uint32_t object;
    uint32_t count;
    replica_copies_range(copies, transfer_start_of(&exchange->task), exchange->task.to, &object, &count);
    for (; count > 0; count--, object = next_object(world, object)) {
        bool is_here = here[object] == REPLICA_WHOLE;
        bool is_there = there[object] == REPLICA_WHOLE;
        if (is_here == is_there || (is_there ? !takes : !gives) ||
            replica_transfer_is_coming(world, is_there ? exchange->owner : exchange->peer, object)) {
            continue;
        }
        if (missing_count++ == 0) {
            *ret_takes = is_there;
        }
    }
    return missing_count;
}

/* ---- which node sends it ---- */

static bool may_send(const struct replica_world *world, uint32_t node, uint32_t object) {
    const struct replica_node *sender = &world->nodes[node];
    return sender->is_up && !sender->is_cut && !sender->is_sending &&
           sender->exchanges_count < REPLICA_EXCHANGES_MAX &&
           replica_copies_has(&world->copies, node, object);
}

static uint32_t other_of(const struct replica_exchange *exchange, uint32_t receiver) {
    return receiver == exchange->owner ? exchange->peer : exchange->owner;
}

static bool find_sender(const struct replica_world *world, const struct replica_exchange *exchange,
                        uint32_t receiver, uint32_t object, uint32_t *ret_sender) {
    *ret_sender = other_of(exchange, receiver);
    if (may_send(world, *ret_sender, object)) {
        return true;
    }
    uint32_t primary = replica_world_find(world, world->copies.objects[object].place);
    for (uint32_t i = 0; i < world->config.copies && i < world->up_count; i++) {
        *ret_sender = world->up[(primary + i) % world->up_count];
        if (*ret_sender != receiver && may_send(world, *ret_sender, object)) {
            return true;
        }
    }
    return false;
}

/* ---- what can begin ---- */

struct start {
    uint32_t exchange;
    uint32_t object;
    uint32_t sender;
};

/* The first object of the exchange that the receiver lacks and somebody can send now. */
static bool find_start(const struct replica_world *world, uint32_t index, uint32_t receiver,
                       struct start *ret_start) {
    const struct replica_exchange *exchange = &world->exchanges[index];
    const uint8_t *parts = replica_copies_of(&world->copies, receiver);
    const uint8_t *others = replica_copies_of(&world->copies, other_of(exchange, receiver));
    uint32_t object = exchange->object;
    uint32_t count = 1;
    if (exchange->task.kind == COPY_PLAN_COMPARE || exchange->task.kind == COPY_PLAN_ASK) {
        replica_copies_range(&world->copies, transfer_start_of(&exchange->task), exchange->task.to, &object,
                             &count);
    }
    for (; count > 0; count--, object = next_object(world, object)) {
        if (others[object] == REPLICA_WHOLE && parts[object] != REPLICA_WHOLE &&
            !replica_transfer_is_coming(world, receiver, object) &&
            find_sender(world, exchange, receiver, object, &ret_start->sender)) {
            ret_start->exchange = index;
            ret_start->object = object;
            return true;
        }
    }
    return false;
}

static bool may_receive(const struct replica_exchange *exchange, uint32_t receiver) {
    bool is_meant = exchange->task.kind == COPY_PLAN_COMPARE ||
                    (exchange->task.kind == COPY_PLAN_ASK ? exchange->owner : exchange->peer) == receiver;
    return exchange->is_waiting && is_meant;
}

/* The exchange of each lane that has waited for the longest time. */
static void find_starts(const struct replica_world *world, uint32_t receiver,
                        struct start starts[TRANSFER_ORDER_LANES_COUNT],
                        bool has[TRANSFER_ORDER_LANES_COUNT]) {
    const struct replica_node *node = &world->nodes[receiver];
    uint64_t best[TRANSFER_ORDER_LANES_COUNT] = {UINT64_MAX, UINT64_MAX};
    for (uint32_t i = 0; i < node->exchanges_count; i++) {
        const struct replica_exchange *exchange = &world->exchanges[node->exchanges[i]];
        enum transfer_order_lane lane =
            exchange->owner == receiver ? TRANSFER_ORDER_OWN : TRANSFER_ORDER_OFFERED;
        struct start start;
        if (may_receive(exchange, receiver) && exchange->waits_since < best[lane] &&
            find_start(world, node->exchanges[i], receiver, &start)) {
            best[lane] = exchange->waits_since;
            starts[lane] = start;
            has[lane] = true;
        }
    }
}

static void transfer_begin(struct replica_world *world, uint32_t receiver, const struct start *start) {
    struct replica_exchange *exchange = &world->exchanges[start->exchange];
    struct replica_node *sender = transfer_node_at(world, start->sender);
    uint8_t parts = replica_copies_of(&world->copies, receiver)[start->object];
    exchange->is_waiting = false;
    exchange->object = start->object;
    exchange->receiver = receiver;
    exchange->sender = start->sender;
    exchange->since_us = world->now_us;
    exchange->work_us = world->config.object_us * (REPLICA_WHOLE - parts) / REPLICA_WHOLE + 1;
    exchange->sequence =
        replica_world_push(world, world->now_us + exchange->work_us, REPLICA_ARRIVAL, start->exchange);
    if (start->sender != exchange->owner && start->sender != exchange->peer) {
        sender->exchanges[sender->exchanges_count++] = start->exchange;
    }
    sender->is_sending = true;
    transfer_node_at(world, receiver)->is_receiving = true;
}

static void feed(struct replica_world *world, uint32_t receiver) {
    struct replica_node *node = transfer_node_at(world, receiver);
    struct start starts[TRANSFER_ORDER_LANES_COUNT];
    bool has[TRANSFER_ORDER_LANES_COUNT] = {false, false};
    if (node->is_receiving || node->is_cut || replica_transfer_is_full(world, receiver)) {
        return;
    }
    find_starts(world, receiver, starts, has);
    if (has[TRANSFER_ORDER_OWN] || has[TRANSFER_ORDER_OFFERED]) {
        enum transfer_order_lane lane =
            transfer_order_next(&node->queue, has[TRANSFER_ORDER_OWN], has[TRANSFER_ORDER_OFFERED]);
        transfer_order_took(&node->queue, lane);
        transfer_begin(world, receiver, &starts[lane]);
    }
}

/* Whoever gets something from this node is near it. */
void replica_transfer_go_on(struct replica_world *world, uint32_t node) {
    const struct replica_node *own = transfer_node_at(world, node);
    uint32_t reach = world->config.copies + COPY_PLAN_SPARES_MAX;
    uint32_t position = replica_world_find(world, own->place);
    feed(world, node);
    for (uint32_t i = 0; i <= 2 * reach && i < world->up_count && !own->is_sending; i++) {
        feed(world, world->up[(position + i + world->up_count - reach % world->up_count) % world->up_count]);
    }
}

/* ---- exchanges ---- */

bool replica_transfer_open(struct replica_world *world, const struct replica_exchange *meant) {
    struct replica_node *owner = transfer_node_at(world, meant->owner);
    struct replica_node *peer = transfer_node_at(world, meant->peer);
    if (world->free_count == 0 || owner->exchanges_count == REPLICA_EXCHANGES_MAX ||
        peer->exchanges_count == REPLICA_EXCHANGES_MAX) {
        return false;
    }
    uint32_t index = world->free_exchanges[--world->free_count];
    world->exchanges[index] = *meant;
    world->exchanges[index].is_open = true;
    world->exchanges[index].is_waiting = true;
    world->exchanges[index].waits_since = ++world->waits_last;
    owner->exchanges[owner->exchanges_count++] = index;
    peer->exchanges[peer->exchanges_count++] = index;
    feed(world, meant->peer);
    feed(world, meant->owner);
    return true;
}

static void take_out(struct replica_node *node, uint32_t index) {
    uint32_t i = 0;
    while (node->exchanges[i] != index) {
        i++;
        ASSERT(i < node->exchanges_count);
    }
    node->exchanges[i] = node->exchanges[--node->exchanges_count];
}

static void receive(struct replica_world *world, const struct replica_exchange *exchange) {
    uint8_t *parts = &replica_copies_of(&world->copies, exchange->receiver)[exchange->object];
    uint64_t passed_us = world->now_us - exchange->since_us;
    uint64_t left_us = passed_us < exchange->work_us ? exchange->work_us - passed_us : 0;
    uint64_t left = (left_us * REPLICA_WHOLE + world->config.object_us - 1) / world->config.object_us;
    uint64_t reached = left < REPLICA_WHOLE ? REPLICA_WHOLE - left : 0;
    if (reached <= *parts || world->copies.objects[exchange->object].is_lost) {
        return;
    }
    world->counts.received_parts += reached - *parts;
    if (reached == REPLICA_WHOLE) {
        replica_copies_add(&world->copies, exchange->receiver, exchange->object, world->now_us);
    } else {
        *parts = (uint8_t)reached;
    }
}

void replica_transfer_pause(struct replica_world *world, uint32_t index) {
    struct replica_exchange *exchange = &world->exchanges[index];
    if (exchange->is_waiting) {
        return;
    }
    receive(world, exchange);
    exchange->is_waiting = true;
    exchange->waits_since = ++world->waits_last;
    transfer_node_at(world, exchange->sender)->is_sending = false;
    transfer_node_at(world, exchange->receiver)->is_receiving = false;
    if (exchange->sender != exchange->owner && exchange->sender != exchange->peer) {
        take_out(transfer_node_at(world, exchange->sender), index);
    }
}

void replica_transfer_close(struct replica_world *world, uint32_t index) {
    struct replica_exchange *exchange = &world->exchanges[index];
    replica_transfer_pause(world, index);
    exchange->is_open = false;
    world->free_exchanges[world->free_count++] = index;
    take_out(transfer_node_at(world, exchange->owner), index);
    take_out(transfer_node_at(world, exchange->peer), index);
}
