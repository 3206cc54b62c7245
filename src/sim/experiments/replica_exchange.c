#include "sim/experiments/replica_exchange.h"

#include "base/assert.h"
#include "sim/experiments/replica_transfer.h"

static struct replica_node *node_at(struct replica_world *world, uint32_t index) {
    return &world->nodes[index];
}

static void report(struct replica_world *world, uint32_t owner, const struct copy_plan_task *task,
                   enum err err, uint64_t missing_there_count) {
    struct copy_plan_outcome outcome = {.err = err, .missing_there_count = missing_there_count};
    world->counts.full_count += err == ERR_NO_SPACE;
    copy_plan_done(node_at(world, owner)->copy_plan, task, &outcome, world->now_us);
}

static void take_up(struct replica_world *world, const struct replica_exchange *meant) {
    if (!replica_transfer_open(world, meant)) {
        report(world, meant->owner, &meant->task, ERR_BUSY, 0);
    }
}

/* ---- comparisons ---- */

static void claim(struct replica_world *world, const struct replica_exchange *exchange) {
    copy_plan_claim(node_at(world, exchange->peer)->copy_plan, &node_at(world, exchange->owner)->peer,
                    exchange->task.from, exchange->task.to, false, world->now_us);
}

/* What is missing, and is there room for it? Else the keeper is told, and the exchange is over. */
static bool is_over(struct replica_world *world, const struct replica_exchange *exchange) {
    bool takes = false;
    uint64_t missing_count = replica_transfer_missing(world, exchange, &takes);
    bool is_missing = missing_count > 0 && !world->config.is_idle;
    if (is_missing && (takes || !replica_transfer_is_full(world, exchange->peer))) {
        return false;
    }
    report(world, exchange->owner, &exchange->task, is_missing ? ERR_NO_SPACE : ERR_OK,
           is_missing ? missing_count : 0);
    return true;
}

static void compare(struct replica_world *world, const struct replica_exchange *exchange) {
    world->counts.compared_count++;
    claim(world, exchange);
    if (!is_over(world, exchange)) {
        take_up(world, exchange);
    }
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
    bool is_kept = exchange->task.kind == COPY_PLAN_HAND_ON || (world->config.keeps_surplus && has_room);
    bool is_lacking = false;
    uint32_t first;
    uint32_t count;
    replica_copies_range(copies, exchange->task.from, exchange->task.to, &first, &count);
    for (uint32_t i = replica_copies_next(copies, exchange->owner, first, first + count); i < first + count;
         i = replica_copies_next(copies, exchange->owner, i + 1, first + count)) {
        uint32_t object = i % copies->objects_count;
        uint32_t primary = replica_world_find(world, copies->objects[object].place);
        bool lacks = !replica_copies_has(copies, world->up[primary], object);
        if (lacks && !is_lacking && !replica_transfer_is_full(world, world->up[primary]) &&
            !replica_transfer_is_coming(world, world->up[primary], object)) {
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

void replica_exchange_arrive(struct replica_world *world, uint32_t index) {
    struct replica_exchange exchange = world->exchanges[index];
    ASSERT(exchange.is_open);
    replica_transfer_pause(world, index);
    bool is_comparison = exchange.task.kind == COPY_PLAN_COMPARE || exchange.task.kind == COPY_PLAN_ASK;
    if (!is_comparison) { /* the next object may have another primary */
        replica_transfer_close(world, index);
        release(world, &exchange);
        replica_world_wake(world, exchange.owner);
    } else {
        claim(world, &exchange);
        if (is_over(world, &exchange)) {
            replica_transfer_close(world, index);
            replica_world_wake(world, exchange.owner);
        }
    }
    replica_transfer_go_on(world, exchange.receiver);
    replica_transfer_go_on(world, exchange.sender);
}

static void cut(struct replica_world *world, uint32_t index, uint32_t node) {
    struct replica_exchange exchange = world->exchanges[index];
    if (exchange.owner != node && exchange.peer != node) { /* it sends for another one */
        replica_transfer_pause(world, index);
        return;
    }
    replica_transfer_close(world, index);
    report(world, exchange.owner, &exchange.task, ERR_CLOSED, 0);
    replica_world_wake(world, exchange.owner);
}

void replica_exchange_cut(struct replica_world *world, uint32_t node) {
    uint32_t freed[2 * REPLICA_EXCHANGES_MAX];
    uint32_t freed_count = 0;
    struct replica_node *own = node_at(world, node);
    own->is_cut = true;
    while (own->exchanges_count > 0) {
        const struct replica_exchange *exchange = &world->exchanges[own->exchanges[0]];
        if (!exchange->is_waiting) {
            freed[freed_count++] = exchange->sender == node ? exchange->receiver : exchange->sender;
        }
        cut(world, own->exchanges[0], node);
    }
    for (uint32_t i = 0; i < freed_count; i++) {
        replica_transfer_go_on(world, freed[i]);
    }
    own->is_cut = false;
}

/* ---- tasks ---- */

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

void replica_exchange_begin(struct replica_world *world, uint32_t owner, const struct copy_plan_task *task) {
    struct replica_exchange exchange = {.task = *task, .owner = owner};
    switch (task->kind) {
    case COPY_PLAN_COMPARE:
    case COPY_PLAN_ASK:
        exchange.peer = replica_index_of(&task->peer);
        compare(world, &exchange);
        break;
    case COPY_PLAN_CHALLENGE:
        exchange.peer = replica_index_of(&task->peer);
        challenge(world, &exchange);
        break;
    case COPY_PLAN_HAND_ON:
    case COPY_PLAN_RELEASE:
        release(world, &exchange);
        break;
    }
}
