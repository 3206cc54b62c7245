#include "sim/experiments/replica_world.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "sim/experiments/replica_transfer.h"

static struct replica_node *world_node_at(struct replica_world *world, uint32_t index) {
    return &world->nodes[index];
}

static void report(struct replica_world *world, uint32_t owner, const struct copy_plan_task *task,
                   enum err err, uint64_t missing_there_count) {
    struct copy_plan_outcome outcome = {.err = err, .missing_there_count = missing_there_count};
    world->counts.full_count += err == ERR_NO_SPACE;
    copy_plan_done(world_node_at(world, owner)->copy_plan, task, &outcome, world->now_us);
}

static void take_up(struct replica_world *world, const struct replica_exchange *meant) {
    if (!replica_transfer_open(world, meant)) {
        report(world, meant->owner, &meant->task, ERR_BUSY, 0);
    }
}

/* ---- comparisons ---- */

static void claim(struct replica_world *world, const struct replica_exchange *exchange) {
    copy_plan_claim(world_node_at(world, exchange->peer)->copy_plan,
                    &world_node_at(world, exchange->owner)->peer, exchange->task.from, exchange->task.to,
                    false, world->now_us);
}

/* What is missing, and is there room for it? Else the keeper is told, and the exchange is over. */
static bool world_is_over(struct replica_world *world, const struct replica_exchange *exchange) {
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

static void world_compare(struct replica_world *world, const struct replica_exchange *exchange) {
    world->counts.compared_count++;
    claim(world, exchange);
    if (!world_is_over(world, exchange)) {
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

/* What its primary lacks goes there first. Then surplus is given up if all holders have it; what is only
 * handed on stays. */
static void world_release(struct replica_world *world, struct replica_exchange *exchange) {
    struct replica_copies *copies = &world->copies;
    bool has_room = copies->held_count[exchange->owner] < world_node_at(world, exchange->owner)->held_max / 2;
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

/* A transfer has ended. */
static void replica_exchange_arrive(struct replica_world *world, uint32_t index) {
    struct replica_exchange exchange = world->exchanges[index];
    ASSERT(exchange.is_open);
    replica_transfer_pause(world, index);
    bool is_comparison = exchange.task.kind == COPY_PLAN_COMPARE || exchange.task.kind == COPY_PLAN_ASK;
    if (!is_comparison) { /* the next object may have another primary */
        replica_transfer_close(world, index);
        world_release(world, &exchange);
        replica_world_wake(world, exchange.owner);
    } else {
        claim(world, &exchange);
        if (world_is_over(world, &exchange)) {
            replica_transfer_close(world, index);
            replica_world_wake(world, exchange.owner);
        }
    }
    replica_transfer_go_on(world, exchange.receiver);
    replica_transfer_go_on(world, exchange.sender);
}

static void world_cut(struct replica_world *world, uint32_t index, uint32_t node) {
    struct replica_exchange exchange = world->exchanges[index];
    if (exchange.owner != node && exchange.peer != node) { /* it sends for another one */
        replica_transfer_pause(world, index);
        return;
    }
    replica_transfer_close(world, index);
    report(world, exchange.owner, &exchange.task, ERR_CLOSED, 0);
    replica_world_wake(world, exchange.owner);
}

/* The node goes down, or loses its disk: its exchanges end. What arrived of an object stays. */
static void replica_exchange_cut(struct replica_world *world, uint32_t node) {
    uint32_t freed[2 * REPLICA_EXCHANGES_MAX];
    uint32_t freed_count = 0;
    struct replica_node *own = world_node_at(world, node);
    own->is_cut = true;
    while (own->exchanges_count > 0) {
        const struct replica_exchange *exchange = &world->exchanges[own->exchanges[0]];
        if (!exchange->is_waiting) {
            freed[freed_count++] = exchange->sender == node ? exchange->receiver : exchange->sender;
        }
        world_cut(world, own->exchanges[0], node);
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

/* Do what the node's keeper asks for. What takes time is reported to the keeper at its end. */
static void replica_exchange_begin(struct replica_world *world, uint32_t owner,
                                   const struct copy_plan_task *task) {
    struct replica_exchange exchange = {.task = *task, .owner = owner};
    switch (task->kind) {
    case COPY_PLAN_COMPARE:
    case COPY_PLAN_ASK:
        exchange.peer = replica_index_of(&task->peer);
        world_compare(world, &exchange);
        break;
    case COPY_PLAN_CHALLENGE:
        exchange.peer = replica_index_of(&task->peer);
        challenge(world, &exchange);
        break;
    case COPY_PLAN_HAND_ON:
    case COPY_PLAN_RELEASE:
        world_release(world, &exchange);
        break;
    }
}

enum {
    PIECES_MAX = 12,
    CLAIMS_MAX = 64,
    EXCHANGES_PER_NODE = 24,
    EVENT_SHIFT = 32,
    SMALL_DISK_PERCENT = 50, /* of what a node holds on average */
    LARGE_DISK_PERCENT = 400,
};
static const uint64_t DAY_US = UINT64_C(86400) * 1000000;

/* ---- events ---- */

static bool world_counts(const void *context, const struct heap_item *item) {
    const struct replica_world *world = context;
    uint32_t index = (uint32_t)item->value;
    switch ((enum replica_event)(item->value >> EVENT_SHIFT)) {
    case REPLICA_CHANGE:
        return world->nodes[index].change_sequence == item->tie;
    case REPLICA_WAKE:
        return world->nodes[index].wake_sequence == item->tie;
    case REPLICA_ARRIVAL:
        return world->exchanges[index].is_open && !world->exchanges[index].is_waiting &&
               world->exchanges[index].sequence == item->tie;
    default:
        return true;
    }
}

uint64_t replica_world_push(struct replica_world *world, uint64_t at_us, enum replica_event event,
                            uint32_t index) {
    uint64_t sequence = 0;
    enum err err = queue_push(&world->queue, at_us, (uint64_t)event << EVENT_SHIFT | index, &sequence);
    world->err = world->err != ERR_OK ? world->err : err;
    return sequence;
}

void replica_world_wake(struct replica_world *world, uint32_t node) {
    struct replica_node *sleeper = &world->nodes[node];
    if (sleeper->wake_sequence == 0 || sleeper->wake_at_us > world->now_us) {
        sleeper->wake_at_us = world->now_us;
        sleeper->wake_sequence = replica_world_push(world, world->now_us, REPLICA_WAKE, node);
    }
}

/* ---- the ring ---- */

uint32_t replica_world_find(const struct replica_world *world, struct ring_id place) {
    uint32_t low = 0;
    uint32_t high = world->up_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ring_id_compare(world->nodes[world->up[middle]].place, place) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < world->up_count ? low : 0;
}

static void tell_arc(struct replica_world *world, uint32_t position) {
    const struct replica_node *node = &world->nodes[world->up[position]];
    const struct replica_node *before =
        &world->nodes[world->up[(position + world->up_count - 1) % world->up_count]];
    struct copy_plan_arc arc = {
        .from = before->place,
        .to = node->place,
        .has_predecessor = before != node,
        .predecessor = before->peer,
    };
    uint32_t wanted = world->config.copies + COPY_PLAN_SPARES_MAX;
    while (arc.count < wanted && arc.count + 1 < world->up_count) {
        uint32_t next = world->up[(position + arc.count + 1) % world->up_count];
        arc.peers[arc.count++] = world->nodes[next].peer;
    }
    copy_plan_set_arcs(node->copy_plan, &arc, 1, world->now_us);
    replica_world_wake(world, world->up[position]);
}

/* All whose arc or followers have changed by one that came to this position, or went from before it. */
static void tell_arcs(struct replica_world *world, uint32_t position) {
    uint32_t told = world->config.copies + COPY_PLAN_SPARES_MAX + 2;
    told = told < world->up_count ? told : world->up_count;
    for (uint32_t i = 0; i < told; i++) {
        tell_arc(world, (position + 1 + world->up_count - i) % world->up_count);
    }
}

static void rise(struct replica_world *world, uint32_t index) {
    struct replica_node *node = &world->nodes[index];
    struct copy_plan_config config = {
        .copies = world->config.copies,
        .pieces_max = PIECES_MAX,
        .claims_max = CLAIMS_MAX,
        .compare_interval_us = world->config.compare_us,
        .challenge_interval_us = 30 * DAY_US,
        .grace_us = world->config.grace_us,
        .bar_us = 7 * DAY_US,
        .seed = prng_u64(&world->prng),
    };
    node->memory = node->memory != NULL ? node->memory : malloc(copy_plan_size(&config));
    if (node->memory == NULL) {
        world->err = ERR_MEMORY;
        return;
    }
    node->copy_plan = copy_plan_init(node->memory, &config, world->now_us);
    uint32_t position = 0;
    while (position < world->up_count &&
           ring_id_compare(world->nodes[world->up[position]].place, node->place) < 0) {
        position++;
    }
    memmove(&world->up[position + 1], &world->up[position], (world->up_count - position) * sizeof *world->up);
    world->up[position] = index;
    world->up_count++;
    node->is_up = true;
    replica_copies_turn(&world->copies, index, true, world->now_us);
}

static void fall(struct replica_world *world, uint32_t index) {
    struct replica_node *node = &world->nodes[index];
    uint32_t position = replica_world_find(world, node->place);
    ASSERT(world->up[position] == index);
    replica_exchange_cut(world, index);
    replica_copies_turn(&world->copies, index, false, world->now_us);
    world->up_count--;
    memmove(&world->up[position], &world->up[position + 1], (world->up_count - position) * sizeof *world->up);
    node->copy_plan = NULL;
    node->is_up = false;
    node->wake_sequence = 0;
    if (world->up_count > 0) {
        tell_arcs(world, position % world->up_count);
    }
}

static void rise_and_tell(struct replica_world *world, uint32_t index) {
    rise(world, index);
    if (world->err == ERR_OK) {
        tell_arcs(world, replica_world_find(world, world->nodes[index].place));
    }
}

/* ---- lives ---- */

static uint64_t draw_outage_us(struct replica_world *world) {
    bool is_long = prng_chance_ppm(&world->prng, world->config.long_ppm);
    return prng_exponential(&world->prng, is_long ? world->config.long_us : world->config.outage_us) + 1;
}

/* A new node at a new place; the row of the one before is its own. */
static void be_new(struct replica_world *world, uint32_t index) {
    struct replica_node *node = &world->nodes[index];
    const struct replica_config *config = &world->config;
    uint64_t life = ++world->lives_count;
    uint64_t mean = (uint64_t)config->objects_count * config->copies / config->nodes_count + 1;
    bool is_small = prng_below(&world->prng, 100) < config->small_percent;
    *node = (struct replica_node){.memory = node->memory};
    node->place = (struct ring_id){prng_u64(&world->prng), prng_u64(&world->prng)};
    node->peer.address.ip[0] = (uint8_t)(index >> 16);
    node->peer.address.ip[1] = (uint8_t)(index >> 8);
    node->peer.address.ip[2] = (uint8_t)index;
    memcpy(node->peer.key, &life, sizeof life);
    node->held_max = (uint32_t)(mean * (is_small ? SMALL_DISK_PERCENT : LARGE_DISK_PERCENT) / 100);
    node->leaves_at_us = world->now_us + prng_exponential(&world->prng, config->lifetime_us) + 1;
}

static void change_at(struct replica_world *world, uint32_t index, uint64_t at_us) {
    struct replica_node *node = &world->nodes[index];
    uint64_t next_us = at_us < node->leaves_at_us ? at_us : node->leaves_at_us;
    node->change_sequence = replica_world_push(world, next_us, REPLICA_CHANGE, index);
}

static void stay_up(struct replica_world *world, uint32_t index) {
    change_at(world, index, world->now_us + prng_exponential(&world->prng, world->config.up_us) + 1);
}

static void go_down(struct replica_world *world, uint32_t index, uint64_t outage_us) {
    if (world->nodes[index].is_up) {
        fall(world, index);
    }
    world->counts.outages_count++;
    change_at(world, index, world->now_us + outage_us);
}

/* For good. The new one comes after a while, elsewhere. */
static void world_leave(struct replica_world *world, uint32_t index, uint64_t pause_us) {
    if (world->nodes[index].is_up) {
        fall(world, index);
    }
    replica_copies_wipe(&world->copies, index, false, world->now_us);
    world->counts.leaves_count++;
    be_new(world, index);
    world->nodes[index].leaves_at_us += pause_us;
    change_at(world, index, world->now_us + pause_us);
}

static void world_change(struct replica_world *world, uint32_t index) {
    struct replica_node *node = &world->nodes[index];
    if (world->now_us >= node->leaves_at_us) {
        world_leave(world, index, 1);
    } else if (node->is_up) {
        go_down(world, index, draw_outage_us(world));
    } else {
        rise_and_tell(world, index);
        stay_up(world, index);
    }
}

static void blow(struct replica_world *world) {
    for (uint32_t i = 0; i < world->config.nodes_count; i++) {
        if (prng_below(&world->prng, 3) > 0) {
            continue;
        }
        uint64_t pause_us = DAY_US + prng_below(&world->prng, 29 * DAY_US);
        if (world->config.blow == REPLICA_GONE) {
            world_leave(world, i, pause_us);
        } else {
            go_down(world, i, pause_us);
        }
    }
}

/* A new and empty disk in the node that goes on; the comparisons find what is missing. */
static void lose_disk(struct replica_world *world) {
    uint32_t index = (uint32_t)prng_below(&world->prng, world->config.nodes_count);
    if (world->nodes[index].is_up) {
        replica_exchange_cut(world, index);
    }
    replica_copies_wipe(&world->copies, index, world->nodes[index].is_up, world->now_us);
    world->counts.disks_count++;
    uint64_t mean_us = world->config.disk_us / world->config.nodes_count;
    replica_world_push(world, world->now_us + prng_exponential(&world->prng, mean_us) + 1, REPLICA_DISK, 0);
}

/* ---- objects ---- */

/* With all its holders that are up at once, as a new capture is. */
static void world_store(struct replica_world *world, uint32_t object) {
    uint32_t primary = replica_world_find(world, world->copies.objects[object].place);
    uint32_t stored_count = 0;
    for (uint32_t i = 0; i < world->up_count && stored_count < world->config.copies; i++) {
        uint32_t node = world->up[(primary + i) % world->up_count];
        if (world->copies.held_count[node] < world->nodes[node].held_max) {
            replica_copies_add(&world->copies, node, object, world->now_us);
            stored_count++;
        }
    }
}

/* The next one that is not there yet, behind a place drawn by lot. */
static void bear(struct replica_world *world) {
    const struct replica_copies *copies = &world->copies;
    uint32_t late_count = copies->objects_count * world->config.born_percent / 100;
    uint32_t object = (uint32_t)prng_below(&world->prng, copies->objects_count);
    if (copies->born_count == copies->objects_count || world->up_count == 0) {
        return;
    }
    while (copies->objects[object].is_born) {
        object = (object + 1) % copies->objects_count;
    }
    world_store(world, object);
    replica_world_push(world, world->now_us + world->config.duration_us / (late_count + 1), REPLICA_BIRTH, 0);
}

static void sample(struct replica_world *world) {
    world->counts.copies_sum += world->copies.copies_count;
    world->counts.kept_sum += world->copies.born_count - world->copies.lost_count;
    world->counts.days_count++;
    replica_world_push(world, world->now_us + DAY_US, REPLICA_DAY, 0);
}

/* ---- a run ---- */

static void world_wake(struct replica_world *world, uint32_t index) {
    struct replica_node *node = &world->nodes[index];
    struct copy_plan_task task;
    while (copy_plan_next(node->copy_plan, world->now_us, &task)) {
        replica_exchange_begin(world, index, &task);
    }
    uint64_t at_us = copy_plan_wake_at(node->copy_plan, world->now_us);
    node->wake_sequence = 0;
    if (at_us < world->config.duration_us) {
        at_us = at_us > world->now_us ? at_us : world->now_us + 1;
        node->wake_at_us = at_us;
        node->wake_sequence = replica_world_push(world, at_us, REPLICA_WAKE, index);
    }
}

static void world_happen(struct replica_world *world, enum replica_event event, uint32_t index) {
    switch (event) {
    case REPLICA_CHANGE:
        world_change(world, index);
        break;
    case REPLICA_WAKE:
        world_wake(world, index);
        break;
    case REPLICA_ARRIVAL:
        replica_exchange_arrive(world, index);
        break;
    case REPLICA_BIRTH:
        bear(world);
        break;
    case REPLICA_DISK:
        lose_disk(world);
        break;
    case REPLICA_BLOW:
        blow(world);
        break;
    case REPLICA_DAY:
        sample(world);
        break;
    }
}

enum err replica_world_run(struct replica_world *world) {
    struct heap_item item;
    while (world->err == ERR_OK && queue_pop(&world->queue, &item) && item.key < world->config.duration_us) {
        if (world_counts(world, &item)) {
            world->now_us = item.key;
            world_happen(world, (enum replica_event)(item.value >> EVENT_SHIFT), (uint32_t)item.value);
        }
    }
    world->now_us = world->config.duration_us;
    return world->err;
}

/* ---- the beginning ---- */

static void world_begin(struct replica_world *world) {
    const struct replica_config *config = &world->config;
    for (uint32_t i = 0; i < config->nodes_count; i++) {
        be_new(world, i);
        rise(world, i);
    }
    for (uint32_t i = 0; i < config->nodes_count && world->err == ERR_OK; i++) {
        tell_arc(world, i);
        stay_up(world, i);
    }
    for (uint32_t i = 0; i < config->objects_count; i++) {
        if (i % 100 >= config->born_percent) {
            world_store(world, i);
        }
    }
    sample(world);
    if (config->born_percent > 0) {
        replica_world_push(world, 1, REPLICA_BIRTH, 0);
    }
    if (config->disk_us > 0) {
        replica_world_push(world, config->disk_us / config->nodes_count, REPLICA_DISK, 0);
    }
    if (config->blow != REPLICA_NO_BLOW) {
        replica_world_push(world, config->duration_us / 2, REPLICA_BLOW, 0);
    }
}

enum err replica_world_init(struct replica_world *world, const struct replica_config *config) {
    ASSERT(config->nodes_count < 1 << 24 && config->copies <= CHARTER_REPLICAS_MAX);
    *world = (struct replica_world){.config = *config};
    prng_init_stream(&world->prng, config->seed, 29);
    uint32_t exchanges_max = config->nodes_count * EXCHANGES_PER_NODE;
    queue_init(&world->queue, 4 * (size_t)exchanges_max + 1024, world_counts, world);
    world->nodes = calloc(config->nodes_count, sizeof *world->nodes);
    world->up = calloc(config->nodes_count, sizeof *world->up);
    world->exchanges = calloc(exchanges_max, sizeof *world->exchanges);
    world->free_exchanges = calloc(exchanges_max, sizeof *world->free_exchanges);
    bool has_memory = world->nodes != NULL && world->up != NULL && world->exchanges != NULL &&
                      world->free_exchanges != NULL;
    while (has_memory && world->free_count < exchanges_max) {
        world->free_exchanges[world->free_count] = exchanges_max - 1 - world->free_count;
        world->free_count++;
    }
    world->err = has_memory ? replica_copies_init(&world->copies, config->nodes_count, config->objects_count,
                                                  &world->prng)
                            : ERR_MEMORY;
    if (world->err == ERR_OK) {
        world_begin(world);
    }
    return world->err;
}

void replica_world_done(struct replica_world *world) {
    for (uint32_t i = 0; world->nodes != NULL && i < world->config.nodes_count; i++) {
        free(world->nodes[i].memory);
    }
    replica_copies_done(&world->copies);
    queue_done(&world->queue);
    free(world->nodes);
    free(world->up);
    free(world->exchanges);
    free(world->free_exchanges);
    *world = (struct replica_world){0};
}

void replica_world_digest(const struct replica_world *world, struct digest *digest) {
    const struct replica_counts *counted = &world->counts;
    digest_u64(digest, counted->leaves_count);
    digest_u64(digest, counted->outages_count);
    digest_u64(digest, counted->compared_count);
    digest_u64(digest, counted->received_parts);
    digest_u64(digest, counted->released_count);
    digest_u64(digest, counted->copies_sum);
    digest_u64(digest, world->copies.lost_count);
    digest_u64(digest, replica_copies_dark_us(&world->copies, world->now_us));
    digest_u64(digest, world->queue.sequence_last);
}
