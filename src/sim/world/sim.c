#include "sim/world/sim.h"

#include <stdio.h>
#include <stdlib.h>

#include "sim/world/pool.h"
#include "sim/world/queue.h"
#include "sim/world/slots.h"

enum { SIM_PORT = 7070, MESSAGES_MAX_DEFAULT = 65536, INBOUND_MAX_DEFAULT = 4096 };
static const uint64_t SAVE_RETRY_US = 100000; /* after a failed save: a node tries again ten times a second */

/* Streams of the run's seed. Nodes' lives and disks take theirs from prng_mix of the index. */
enum { STREAM_NETWORK = 1, STREAM_CLOCK = 2, STREAM_LIVES = 3, STREAM_DISKS = 4 };

/* What waits in the queue: the upper half of an entry's value, above a parcel id or a node index. */
enum due_kind {
    DUE_MESSAGE, /* parcel */
    DUE_COMMAND, /* parcel */
    DUE_START,   /* node; counts if it is the node's timer */
    DUE_WAKE,    /* node; counts if it is the node's timer */
    DUE_SAVED,   /* node; counts if it is the node's save */
};

struct node {
    const struct program *program;
    void *state; /* kept between lives */
    enum sim_status status;
    uint32_t inbound_count;  /* messages in flight to it */
    uint64_t clock_ahead_us; /* of this life */
    uint64_t wake_at_us;     /* what the last step asked for; never before timer_at_us */
    uint64_t timer_at_us;    /* when the queued start or wake that counts comes out … */
    uint64_t timer_sequence; /* … and which one it is; 0: none */
    uint64_t save_sequence;  /* of the queued DUE_SAVED; 0: none */
    struct slots *slots;     /* NULL until first used */
    void *config;
    uint32_t life;
};

struct sim {
    struct sim_config config;
    uint64_t now_us;
    uint64_t sequence_now; /* of the event that is carried out */
    struct queue queue;
    struct pool pool;
    struct network network;
    struct disk_dials disk_dials;
    struct node *nodes;
    uint32_t nodes_count;
    struct outbox out;
    struct sim_observer observers[SIM_OBSERVERS_MAX];
    uint32_t observers_count;
    struct buf restored; /* the slot that is being restored */
    struct prng clock_prng;
    struct digest digest;
    struct sim_counters counters;
    struct sim_failure failure;
    bool has_failed;
    enum err err; /* sticks */
};

/* ---- set-up ---- */

static uint64_t sim_pack(uint32_t high, uint32_t low) {
    return (uint64_t)high << 32 | low;
}

static bool is_due(const void *context, const struct heap_item *item) {
    const struct sim *sim = context;
    const struct node *nodes = sim->nodes;
    uint32_t index = (uint32_t)item->value;
    switch ((enum due_kind)(item->value >> 32)) {
    case DUE_MESSAGE:
    case DUE_COMMAND:
        return true;
    case DUE_START:
    case DUE_WAKE:
        return nodes[index].timer_sequence == item->tie;
    case DUE_SAVED:
        return nodes[index].save_sequence == item->tie;
    }
    return false;
}

static void sim_set_defaults(struct sim_config *config) {
    ASSERT(config->nodes_max > 0 && config->nodes_max <= SIM_NODES_MAX);
    if (config->messages_max == 0) {
        config->messages_max = 16 * config->nodes_max;
        config->messages_max =
            config->messages_max > MESSAGES_MAX_DEFAULT ? config->messages_max : MESSAGES_MAX_DEFAULT;
    }
    if (config->inbound_max == 0) {
        config->inbound_max = INBOUND_MAX_DEFAULT;
    }
}

struct sim *sim_new(const struct sim_config *config) {
    struct sim *sim = calloc(1, sizeof *sim);
    if (sim == NULL) {
        return NULL;
    }
    sim->config = *config;
    sim_set_defaults(&sim->config);
    sim->disk_dials = config->disk;
    pool_init(&sim->pool, sim->config.messages_max);
    /* Twice what can count at once: all messages, and a timer and a save of each node. */
    queue_init(&sim->queue, 2 * ((size_t)sim->config.messages_max + 2 * (size_t)config->nodes_max), is_due,
               sim);
    buf_init(&sim->restored, SLOTS_SIZE_MAX);
    digest_init(&sim->digest);
    digest_u64(&sim->digest, config->seed);
    prng_init_stream(&sim->clock_prng, config->seed, STREAM_CLOCK);
    sim->nodes = calloc(config->nodes_max, sizeof *sim->nodes);
    uint64_t network_seed = prng_mix(config->seed) + STREAM_NETWORK;
    if (sim->nodes == NULL || network_init(&sim->network, config->nodes_max, network_seed) != ERR_OK) {
        sim_free(sim);
        return NULL;
    }
    sim->network.dials = config->network;
    return sim;
}

void sim_free(struct sim *sim) {
    if (sim == NULL) {
        return;
    }
    for (uint32_t i = 0; i < sim->nodes_count; i++) {
        sim_leave(sim, i);
    }
    free(sim->nodes);
    free(sim->out.actions);
    free(sim->out.memory);
    buf_done(&sim->restored);
    network_done(&sim->network);
    pool_done(&sim->pool);
    queue_done(&sim->queue);
    free(sim);
}

/* One outbox serves all nodes; it fits the largest step of any program. */
static enum err reserve_outbox(struct sim *sim, const struct program *program) {
    struct outbox *out = &sim->out;
    if (program->actions_max > out->actions_max) {
        struct action *actions = realloc(out->actions, program->actions_max * sizeof *actions);
        if (actions == NULL) {
            return ERR_MEMORY;
        }
        out->actions = actions;
        out->actions_max = program->actions_max;
    }
    if (program->memory_size > out->memory_size) {
        uint8_t *memory = realloc(out->memory, program->memory_size);
        if (memory == NULL) {
            return ERR_MEMORY;
        }
        out->memory = memory;
        out->memory_size = program->memory_size;
    }
    return ERR_OK;
}

enum err sim_add(struct sim *sim, const struct program *program, void *config, uint32_t *ret_node) {
    ASSERT(program->slots_count <= SLOTS_COUNT_MAX);
    if (sim->nodes_count == sim->config.nodes_max) {
        return ERR_LIMIT;
    }
    enum err err = reserve_outbox(sim, program);
    if (err != ERR_OK) {
        return err;
    }
    sim->nodes[sim->nodes_count] = (struct node){.program = program, .config = config};
    *ret_node = sim->nodes_count++;
    return ERR_OK;
}

enum err sim_add_all(struct sim *sim, const struct program *program, void *config) {
    enum err err = ERR_OK;
    while (sim->nodes_count < sim->config.nodes_max && err == ERR_OK) {
        uint32_t node;
        err = sim_add(sim, program, config, &node);
    }
    return err;
}

void sim_observe(struct sim *sim, const struct sim_observer *observer) {
    ASSERT(sim->observers_count < SIM_OBSERVERS_MAX);
    sim->observers[sim->observers_count++] = *observer;
}

static struct node *sim_node_at(const struct sim *sim, uint32_t index) {
    ASSERT(index < sim->nodes_count);
    return &sim->nodes[index];
}

static struct slots *slots_of(struct sim *sim, uint32_t index) {
    struct node *node = sim_node_at(sim, index);
    if (node->slots == NULL) {
        uint64_t seed = prng_mix(sim->config.seed + STREAM_DISKS) ^ prng_mix(index);
        node->slots = slots_new(node->program->slots_count, &sim->disk_dials, seed);
        if (node->slots == NULL) {
            sim->err = ERR_MEMORY;
        }
    }
    return node->slots;
}

/* ---- actions out ---- */

/* The sequence number, or 0 if the run has ended for want of memory. */
static uint64_t enqueue(struct sim *sim, uint64_t at_us, uint64_t value) {
    uint64_t sequence = 0;
    enum err err = queue_push(&sim->queue, at_us, value, &sequence);
    ASSERT(err != ERR_LIMIT); /* the queue has room for all that counts */
    if (err != ERR_OK) {
        sim->err = err;
    }
    return sequence;
}

/* A copy of the bytes on its way to a node. NULL if it was dropped. */
static struct parcel *post(struct sim *sim, enum due_kind kind, uint32_t to, uint64_t at_us,
                           struct bytes bytes) {
    struct node *node = sim_node_at(sim, to);
    uint32_t id;
    enum err err = node->inbound_count < sim->config.inbound_max ? ERR_OK : ERR_LIMIT;
    err = err != ERR_OK ? err : pool_take(&sim->pool, bytes.size, &id);
    if (err == ERR_LIMIT) {
        sim->counters.overflow_count++;
        return NULL;
    }
    if (err != ERR_OK) {
        sim->err = err;
        return NULL;
    }
    node->inbound_count++;
    struct parcel *parcel = pool_at(&sim->pool, id);
    parcel->to = to;
    if (bytes.size > 0) {
        memcpy(parcel->bytes, bytes.data, bytes.size);
    }
    enqueue(sim, at_us, sim_pack(kind, id));
    return parcel;
}

static void send(struct sim *sim, uint32_t from, const struct action *action) {
    uint32_t to;
    if (!sim_node_of(sim, &action->to, &to)) {
        sim->counters.unroutable_count++;
        return;
    }
    uint64_t at_us[NETWORK_COPIES_MAX];
    unsigned copies_count = network_route(&sim->network, sim->now_us, from, to, action->bytes.size, at_us);
    for (unsigned i = 0; i < copies_count; i++) {
        struct parcel *parcel = post(sim, DUE_MESSAGE, to, at_us[i], action->bytes);
        if (parcel != NULL) {
            parcel->from = from;
            network_corrupt(&sim->network, parcel->bytes, parcel->size);
        }
    }
}

static void begin_save(struct sim *sim, uint32_t index) {
    struct node *node = sim_node_at(sim, index);
    if (slots_begin(node->slots)) {
        uint64_t at_us = sim->now_us + disk_latency_us(&node->slots->disk);
        node->save_sequence = enqueue(sim, at_us, sim_pack(DUE_SAVED, index));
    }
}

static void sim_save(struct sim *sim, uint32_t index, const struct action *action) {
    struct slots *slots = slots_of(sim, index);
    if (slots == NULL) {
        return;
    }
    enum err err = slots_put(slots, action->code, action->number, action->bytes);
    if (err != ERR_OK) {
        sim->err = err;
        return;
    }
    begin_save(sim, index);
}

static void notice(struct sim *sim, uint32_t index, const struct action *action) {
    sim->counters.notices_count++;
    digest_u64(&sim->digest, sim_pack(action->code, index));
    digest_bytes(&sim->digest, action->bytes);
    for (uint32_t i = 0; i < sim->observers_count; i++) {
        const struct sim_observer *observer = &sim->observers[i];
        if (observer->notice != NULL) {
            observer->notice(observer->context, sim, index, action->code, action->bytes);
        }
    }
}

/*
 * One entry per node waits in the queue. A later wake leaves it there, and it is put back when it comes out
 * too early; an earlier wake makes it stale. So a program that states the same wake after every message
 * costs nothing.
 */
static void set_wake(struct sim *sim, uint32_t index, uint64_t wake_at_us) {
    struct node *node = &sim->nodes[index];
    node->wake_at_us = wake_at_us;
    if (wake_at_us == STEP_NEVER_US || (node->timer_sequence != 0 && node->timer_at_us <= wake_at_us)) {
        return;
    }
    node->timer_at_us = wake_at_us;
    node->timer_sequence = enqueue(sim, wake_at_us, sim_pack(DUE_WAKE, index));
}

/* From the node's clock to virtual time. Not within the same microsecond, so that time moves on. */
static uint64_t wake_in_sim_us(const struct sim *sim, const struct node *node, uint64_t at_us) {
    if (at_us == STEP_NEVER_US) {
        return STEP_NEVER_US;
    }
    at_us = at_us > node->clock_ahead_us ? at_us - node->clock_ahead_us : 0;
    return at_us > sim->now_us ? at_us : sim->now_us + 1;
}

/* ---- events in ---- */

static void sim_check(struct sim *sim, uint32_t index) {
    for (uint32_t i = 0; i < sim->observers_count && !sim->has_failed; i++) {
        const struct sim_observer *observer = &sim->observers[i];
        const char *reason = observer->check == NULL ? NULL : observer->check(observer->context, sim, index);
        if (reason != NULL) {
            sim_fail(sim, index, reason);
        }
    }
}

static void digest_event(struct sim *sim, uint32_t index, const struct event *event) {
    digest_u64(&sim->digest, sim->now_us);
    digest_u64(&sim->digest, sim->sequence_now);
    digest_u64(&sim->digest, sim_pack(event->kind, index));
    digest_u64(&sim->digest, event->number ^ (uint64_t)event->code << 32);
    digest_bytes(&sim->digest, event->bytes);
}

static void sim_step(struct sim *sim, uint32_t index, struct event *event) {
    if (sim->err != ERR_OK) {
        return;
    }
    struct node *node = &sim->nodes[index];
    sim->counters.events_count++;
    digest_event(sim, index, event);
    event->now_us = sim->now_us + node->clock_ahead_us;
    outbox_clear(&sim->out);
    node->program->step(node->state, event, &sim->out);
    for (size_t i = 0; i < sim->out.actions_count; i++) {
        const struct action *action = &sim->out.actions[i];
        switch (action->kind) {
        case ACTION_SEND:
            send(sim, index, action);
            break;
        case ACTION_SAVE:
            sim_save(sim, index, action);
            break;
        case ACTION_NOTICE:
            notice(sim, index, action);
            break;
        }
    }
    set_wake(sim, index, wake_in_sim_us(sim, node, sim->out.wake_at_us));
    sim_check(sim, index);
}

static void sim_deliver(struct sim *sim, enum due_kind kind, uint32_t id) {
    struct parcel *parcel = pool_at(&sim->pool, id);
    struct node *node = &sim->nodes[parcel->to];
    node->inbound_count--;
    if (node->status != SIM_UP) {
        sim->counters.undelivered_count++;
        pool_give(&sim->pool, id);
        return;
    }
    struct event event = {
        .kind = EVENT_COMMAND,
        .code = parcel->code,
        .number = parcel->number,
        .bytes = bytes_of(parcel->bytes, parcel->size),
    };
    if (kind == DUE_MESSAGE) {
        event.kind = EVENT_MESSAGE;
        event.from = sim_address(parcel->from);
        network_received(&sim->network, parcel->to, parcel->size);
    }
    sim_step(sim, parcel->to, &event);
    pool_give(&sim->pool, id);
}

static void sim_wake(struct sim *sim, uint32_t index, uint64_t sequence) {
    struct node *node = &sim->nodes[index];
    if (node->timer_sequence != sequence) {
        return;
    }
    node->timer_sequence = 0;
    if (node->wake_at_us > sim->now_us) {
        set_wake(sim, index, node->wake_at_us);
        return;
    }
    sim_step(sim, index, &(struct event){.kind = EVENT_WAKE});
}

static void finish_save(struct sim *sim, uint32_t index, uint64_t sequence) {
    struct node *node = &sim->nodes[index];
    if (node->save_sequence != sequence) {
        return;
    }
    node->save_sequence = 0;
    enum err err = slots_commit(node->slots);
    if (err == ERR_MEMORY) {
        sim->err = err;
        return;
    }
    if (err != ERR_OK) {
        sim->counters.failed_saves_count++;
        node->save_sequence = enqueue(sim, sim->now_us + SAVE_RETRY_US, sim_pack(DUE_SAVED, index));
        return;
    }
    struct event event = {.kind = EVENT_SAVED};
    while (slots_next_saved(node->slots, &event.code, &event.number)) {
        sim_step(sim, index, &event);
    }
    begin_save(sim, index);
}

static void restore(struct sim *sim, uint32_t index) {
    struct node *node = &sim->nodes[index];
    for (uint32_t slot = 0; slot < node->program->slots_count; slot++) {
        buf_clear(&sim->restored);
        enum err err = slots_restore(node->slots, slot, &sim->restored);
        if (err == ERR_MEMORY) {
            sim->err = err;
        }
        if (err == ERR_OK) {
            struct event event = {.kind = EVENT_RESTORED, .code = slot, .bytes = buf_bytes(&sim->restored)};
            sim_step(sim, index, &event);
        }
    }
}

static void sim_start(struct sim *sim, uint32_t index, uint64_t sequence) {
    struct node *node = &sim->nodes[index];
    if (node->timer_sequence != sequence) {
        return;
    }
    node->timer_sequence = 0;
    if (node->state == NULL) {
        node->state = malloc(node->program->state_size);
    }
    if (node->state == NULL) {
        sim->err = ERR_MEMORY;
        return;
    }
    memset(node->state, 0, node->program->state_size);
    node->life++;
    node->wake_at_us = STEP_NEVER_US;
    node->clock_ahead_us = sim->config.clock_skew_us_max == 0
                               ? 0
                               : prng_between(&sim->clock_prng, 0, sim->config.clock_skew_us_max);
    struct birth birth = {
        .index = index,
        .life = node->life,
        .address = sim_address(index),
        .seed = prng_mix(sim->config.seed + STREAM_LIVES) ^ prng_mix(sim_pack(node->life, index)),
        .config = node->config,
    };
    enum err err = node->program->init(node->state, &birth);
    if (err != ERR_OK) {
        sim->err = err;
        return;
    }
    node->status = SIM_UP;
    if (node->slots != NULL) {
        restore(sim, index);
    }
    sim_step(sim, index, &(struct event){.kind = EVENT_START});
}

enum err sim_run_until(struct sim *sim, uint64_t until_us) {
    const struct heap_item *first;
    while (sim->err == ERR_OK && (first = queue_peek(&sim->queue)) != NULL && first->key <= until_us) {
        struct heap_item item;
        queue_pop(&sim->queue, &item);
        sim->now_us = item.key;
        sim->sequence_now = item.tie;
        uint32_t index = (uint32_t)item.value;
        enum due_kind kind = (enum due_kind)(item.value >> 32);
        switch (kind) {
        case DUE_MESSAGE:
        case DUE_COMMAND:
            sim_deliver(sim, kind, index);
            break;
        case DUE_START:
            sim_start(sim, index, item.tie);
            break;
        case DUE_WAKE:
            sim_wake(sim, index, item.tie);
            break;
        case DUE_SAVED:
            finish_save(sim, index, item.tie);
            break;
        }
    }
    if (sim->err == ERR_OK && until_us > sim->now_us) {
        sim->now_us = until_us;
    }
    return sim->err;
}

enum err sim_command_at(struct sim *sim, uint32_t node, uint64_t at_us, uint32_t code, uint64_t number,
                        struct bytes bytes) {
    ASSERT(bytes.size <= STEP_MESSAGE_SIZE_MAX);
    struct parcel *parcel = post(sim, DUE_COMMAND, node, at_us > sim->now_us ? at_us : sim->now_us, bytes);
    if (parcel == NULL) {
        return sim->err != ERR_OK ? sim->err : ERR_LIMIT;
    }
    parcel->code = code;
    parcel->number = number;
    return ERR_OK;
}

/* ---- lives ---- */

enum life_change { LIFE_STARTS = 100, LIFE_CRASHES, LIFE_WIPED, LIFE_LEAVES };

static void digest_life(struct sim *sim, uint32_t index, enum life_change change) {
    digest_u64(&sim->digest, sim->now_us);
    digest_u64(&sim->digest, sim_pack(change, index));
}

/* Memory is gone. False if the node was not up. */
static bool stop(struct sim *sim, uint32_t index) {
    struct node *node = sim_node_at(sim, index);
    if (node->status != SIM_UP) {
        return false;
    }
    node->timer_sequence = 0;
    node->save_sequence = 0;
    if (node->program->done != NULL) {
        node->program->done(node->state);
    }
    node->status = SIM_DOWN;
    sim->counters.crashes_count++;
    return true;
}

void sim_start_at(struct sim *sim, uint32_t node, uint64_t at_us) {
    enum sim_status status = sim_status(sim, node);
    if (status == SIM_UP || status == SIM_GONE) {
        return;
    }
    digest_life(sim, node, LIFE_STARTS);
    at_us = at_us > sim->now_us ? at_us : sim->now_us;
    sim->nodes[node].timer_sequence = enqueue(sim, at_us, sim_pack(DUE_START, node));
}

void sim_crash(struct sim *sim, uint32_t node) {
    digest_life(sim, node, LIFE_CRASHES);
    struct slots *slots = sim_node_at(sim, node)->slots;
    if (stop(sim, node) && slots != NULL && slots_crash(slots) != ERR_OK) {
        sim->err = ERR_MEMORY;
    }
}

void sim_wipe(struct sim *sim, uint32_t node) {
    digest_life(sim, node, LIFE_WIPED);
    stop(sim, node);
    if (sim->nodes[node].slots != NULL) {
        slots_wipe(sim->nodes[node].slots);
    }
}

void sim_leave(struct sim *sim, uint32_t node) {
    digest_life(sim, node, LIFE_LEAVES);
    stop(sim, node);
    struct node *leaving = &sim->nodes[node];
    slots_free(leaving->slots);
    free(leaving->state);
    leaving->slots = NULL;
    leaving->state = NULL;
    leaving->timer_sequence = 0; /* a start that was planned */
    leaving->status = SIM_GONE;
}

/* ---- looking ---- */

void sim_fail(struct sim *sim, uint32_t node, const char *reason) {
    if (sim->has_failed) {
        return;
    }
    sim->has_failed = true;
    sim->err = ERR_MISMATCH;
    sim->failure = (struct sim_failure){
        .seed = sim->config.seed,
        .at_us = sim->now_us,
        .event_number = sim->counters.events_count,
        .node = node,
    };
    snprintf(sim->failure.reason, sizeof sim->failure.reason, "%s", reason);
}

const char *sim_failure_format(const struct sim_failure *failure, char out[SIM_FAILURE_TEXT_SIZE_MAX]) {
    snprintf(out, SIM_FAILURE_TEXT_SIZE_MAX, "seed %llu failed at %llu.%06llu s, event %llu, node %u: %s",
             (unsigned long long)failure->seed, (unsigned long long)(failure->at_us / SIM_SECOND_US),
             (unsigned long long)(failure->at_us % SIM_SECOND_US), (unsigned long long)failure->event_number,
             (unsigned)failure->node, failure->reason);
    return out;
}

struct address sim_address(uint32_t node) {
    return address_ipv4(10, (uint8_t)(node >> 16), (uint8_t)(node >> 8), (uint8_t)node, SIM_PORT);
}

bool sim_node_of(const struct sim *sim, const struct address *address, uint32_t *ret_node) {
    const uint8_t *ip = address->ip + 12;
    uint32_t node = (uint32_t)ip[1] << 16 | (uint32_t)ip[2] << 8 | ip[3];
    bool is_node = address_is_ipv4(address) && ip[0] == 10 && address->port == SIM_PORT;
    if (!is_node || node >= sim->nodes_count) {
        return false;
    }
    *ret_node = node;
    return true;
}

uint64_t sim_now_us(const struct sim *sim) {
    return sim->now_us;
}

uint64_t sim_seed(const struct sim *sim) {
    return sim->config.seed;
}

uint32_t sim_nodes_count(const struct sim *sim) {
    return sim->nodes_count;
}

enum sim_status sim_status(const struct sim *sim, uint32_t node) {
    return sim_node_at(sim, node)->status;
}

uint32_t sim_life(const struct sim *sim, uint32_t node) {
    return sim_node_at(sim, node)->life;
}

const void *sim_state(const struct sim *sim, uint32_t node) {
    const struct node *looked_at = sim_node_at(sim, node);
    return looked_at->status == SIM_UP ? looked_at->state : NULL;
}

const struct sim_counters *sim_counters(const struct sim *sim) {
    return &sim->counters;
}

const struct sim_failure *sim_failure(const struct sim *sim) {
    return sim->has_failed ? &sim->failure : NULL;
}

struct digest sim_digest(const struct sim *sim) {
    return sim->digest;
}

void sim_digest_into(const struct sim *sim, struct digest *digest) {
    if (sim != NULL) {
        digest_u64(digest, sim->digest.lanes[0]);
        digest_u64(digest, sim->digest.lanes[1]);
    }
}

struct network *sim_network(struct sim *sim) {
    return &sim->network;
}

struct disk_dials *sim_disk_dials(struct sim *sim) {
    return &sim->disk_dials;
}

struct disk *sim_disk(struct sim *sim, uint32_t node) {
    struct slots *slots = slots_of(sim, node);
    return slots == NULL ? NULL : &slots->disk;
}

struct disk *sim_disk_if_used(struct sim *sim, uint32_t node) {
    struct slots *slots = sim_node_at(sim, node)->slots;
    return slots == NULL ? NULL : &slots->disk;
}
