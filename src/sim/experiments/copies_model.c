#include "sim/experiments/copies_model.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

enum { EVENT_SHIFT = 32 };
static const uint64_t SECOND_US = 1000000;
static const uint64_t QUIET_US = UINT64_C(600) * 1000000; /* before anything happens */

enum event { EVENT_TURN, EVENT_CUT, EVENT_HEAL, EVENT_LEARN, EVENT_ARCHIVE, EVENT_DISK };

/* ---- events ---- */

static bool counts(const void *context, const struct heap_item *item) {
    const struct copies_model *world = context;
    bool is_turn = (enum event)(item->value >> EVENT_SHIFT) == EVENT_TURN;
    return !is_turn || world->nodes[(uint32_t)item->value].wake_sequence == item->tie;
}

static uint64_t push(struct copies_model *world, uint64_t at_us, enum event event, uint32_t index) {
    uint64_t sequence = 0;
    enum err err = queue_push(&world->queue, at_us, (uint64_t)event << EVENT_SHIFT | index, &sequence);
    world->err = world->err != ERR_OK ? world->err : err;
    return sequence;
}

static bool is_at_work(const struct copies_model_node *node) {
    return node->has_task || node->batch_count > 0;
}

void copies_model_wake(struct copies_model *world, uint32_t node, uint64_t at_us) {
    struct copies_model_node *sleeper = &world->nodes[node];
    bool is_awake = sleeper->wake_sequence > 0 && sleeper->wake_at_us <= at_us;
    if (!is_awake && !is_at_work(sleeper)) { /* else it looks by itself */
        sleeper->wake_at_us = at_us;
        sleeper->wake_sequence = push(world, at_us, EVENT_TURN, node);
    }
}

/* ---- the ring as a node sees it ---- */

bool copies_model_reaches(const struct copies_model *world, uint32_t node, uint32_t other) {
    return !world->is_cut || world->nodes[node].half == world->nodes[other].half;
}

static bool sees(const struct copies_model *world, uint32_t viewer, uint32_t node) {
    return (world->nodes[viewer].seen >> node & 1) != 0;
}

uint32_t copies_model_next(const struct copies_model *world, uint32_t viewer, uint32_t node) {
    do {
        node = (node + 1) % world->config.nodes_count;
    } while (!sees(world, viewer, node));
    return node;
}

uint32_t copies_model_primary(const struct copies_model *world, uint32_t viewer, struct ring_id place) {
    uint32_t node = 0;
    while (node < world->config.nodes_count && ring_id_compare(world->nodes[node].place, place) < 0) {
        node++;
    }
    ASSERT(world->config.nodes_count > 0);
    node %= world->config.nodes_count;
    return sees(world, viewer, node) ? node : copies_model_next(world, viewer, node);
}

bool copies_model_holds(const struct copies_model *world, uint32_t viewer, uint32_t node,
                        struct ring_id place) {
    uint32_t holder = copies_model_primary(world, viewer, place);
    for (uint32_t i = 0; i < world->config.copies; i++, holder = copies_model_next(world, viewer, holder)) {
        if (holder == node) {
            return true;
        }
    }
    return false;
}

static void tell_copy_plan(struct copies_model *world, uint32_t node) {
    struct copies_model_node *own = &world->nodes[node];
    uint32_t before = node;
    do {
        before = (before + world->config.nodes_count - 1) % world->config.nodes_count;
    } while (!sees(world, node, before));
    struct copy_plan_arc arc = {
        .from = world->nodes[before].place,
        .to = own->place,
        .has_predecessor = before != node,
        .predecessor = world->nodes[before].peer,
    };
    size_t count_max = world->config.copies + COPY_PLAN_SPARES_MAX - 1;
    uint32_t next = copies_model_next(world, node, node);
    for (; next != node && arc.count < count_max; next = copies_model_next(world, node, next)) {
        arc.peers[arc.count++] = world->nodes[next].peer;
    }
    copy_plan_set_arcs(own->copy_plan, &arc, 1, world->now_us);
    copies_model_wake(world, node, world->now_us);
}

/* Everybody hears of it, at some time. */
static void spread_news(struct copies_model *world) {
    for (uint32_t i = 0; i < world->config.nodes_count; i++) {
        push(world, world->now_us + prng_below(&world->prng, world->config.learn_us + 1), EVENT_LEARN, i);
    }
}

static void model_learn(struct copies_model *world, uint32_t node) {
    uint64_t seen = 0;
    for (uint32_t i = 0; i < world->config.nodes_count; i++) {
        seen |= (uint64_t)copies_model_reaches(world, node, i) << i;
    }
    world->nodes[node].seen = seen;
    tell_copy_plan(world, node);
}

/* ---- captures ---- */

uint32_t copies_model_behind(const struct copies_model *world, struct ring_id place) {
    uint32_t low = 0;
    uint32_t high = world->captures_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ring_id_compare(world->places[middle], place) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    ASSERT(world->captures_count > 0);
    return low % world->captures_count;
}

/* In the whole ring, whoever sees how much of it. */
static bool is_holder(const struct copies_model *world, uint32_t node, uint32_t capture) {
    uint32_t primary = 0;
    while (primary < world->config.nodes_count &&
           ring_id_compare(world->nodes[primary].place, world->places[capture]) < 0) {
        primary++;
    }
    primary %= world->config.nodes_count;
    return (node + world->config.nodes_count - primary) % world->config.nodes_count < world->config.copies;
}

static void look_at_level(struct copies_model *world) {
    uint64_t since_us = world->now_us - world->over_us;
    if (world->over_us == 0) {
        return;
    }
    if (!world->has_most && world->lacking_count * 100 <= world->lacking_first) {
        world->has_most = true;
        world->most_us = since_us;
    }
    if (world->lacking_count == 0) {
        world->all_us = since_us;
    }
}

void copies_model_store(struct copies_model *world, uint32_t node, uint32_t capture) {
    ASSERT(!world->nodes[node].has[capture]);
    world->nodes[node].has[capture] = 1;
    if (is_holder(world, node, capture)) {
        world->lacking_count--;
        look_at_level(world);
    }
}

/* A new capture, with the holders that the node knows of, at once. */
static void archive(struct copies_model *world, uint32_t node, uint32_t capture) {
    uint32_t holder = copies_model_primary(world, node, world->places[capture]);
    world->is_made[capture] = 1;
    world->lacking_count += world->config.copies;
    for (uint32_t i = 0; i < world->config.copies; i++, holder = copies_model_next(world, node, holder)) {
        if (!world->nodes[holder].has[capture]) { /* a half may have fewer nodes than there are copies */
            copies_model_store(world, holder, capture);
        }
    }
}

/* Somebody of either half archives one that was not there. */
static void archive_late(struct copies_model *world, uint32_t node) {
    uint32_t capture = (uint32_t)prng_below(&world->prng, world->captures_count);
    while (world->is_made[capture]) {
        capture = (capture + 1) % world->captures_count;
    }
    archive(world, node, capture);
}

/* ---- a node's thread ---- */

static void begin_batch(struct copies_model *world, uint32_t index) {
    struct copies_model_node *node = &world->nodes[index];
    while (node->wanted_count > 0 && node->batch_count < KEEP_BATCH_COUNT) {
        struct copies_model_wanted wanted = node->wanted[node->wanted_first];
        node->wanted_first = (node->wanted_first + 1) % COPIES_MODEL_WANTED_MAX;
        node->wanted_count--;
        node->waits[wanted.capture] = 0;
        if (node->has[wanted.capture] || !copies_model_reaches(world, index, wanted.source)) {
            world->counts.vain_count++;
        } else {
            node->batch[node->batch_count++] = wanted;
        }
    }
}

/* The primary offers what is new to the other holders. */
static void offer_fresh(struct copies_model *world, uint32_t node, uint32_t capture) {
    uint32_t holder = copies_model_primary(world, node, world->places[capture]);
    if (holder != node) {
        return;
    }
    for (uint32_t i = 1; i < world->config.copies; i++) {
        holder = copies_model_next(world, node, holder);
        if (copies_model_reaches(world, node, holder) && !world->nodes[holder].has[capture]) {
            (void)copies_model_task_want(world, holder, capture, node);
        }
    }
}

static void end_batch(struct copies_model *world, uint32_t index) {
    struct copies_model_node *node = &world->nodes[index];
    for (uint32_t i = 0; i < node->batch_count; i++) {
        const struct copies_model_wanted *wanted = &node->batch[i];
        bool is_there = copies_model_reaches(world, index, wanted->source) &&
                        world->nodes[wanted->source].has[wanted->capture];
        if (is_there && !node->has[wanted->capture]) {
            copies_model_store(world, index, wanted->capture);
            offer_fresh(world, index, wanted->capture);
            world->counts.fetched_count++;
        }
    }
    copy_plan_moved(node->copy_plan, node->batch_count, world->now_us);
    node->batch_count = 0;
}

/* One thing after the other: a batch, then a task, unless there is much to fetch. */
static void take_turn(struct copies_model *world, uint32_t index) {
    struct copies_model_node *node = &world->nodes[index];
    bool was_fetching = node->batch_count > 0;
    node->wake_sequence = 0;
    if (node->has_task) {
        node->has_task = false;
        copies_model_task_finish(world, index);
    } else if (was_fetching) {
        end_batch(world, index);
    }
    bool may_work =
        node->wanted_count < COPIES_MODEL_WANTED_BUSY && (was_fetching || node->wanted_count == 0);
    uint64_t at_us;
    if (may_work && copy_plan_next(node->copy_plan, world->now_us, &node->task)) {
        node->has_task = true;
        at_us = world->now_us + copies_model_task_cost_us(world, index, &node->task);
    } else if (node->wanted_count > 0) {
        begin_batch(world, index);
        at_us = world->now_us + node->batch_count * SECOND_US / world->config.fetches_per_s + 1;
    } else {
        at_us = copy_plan_wake_at(node->copy_plan, world->now_us);
        at_us = at_us > world->now_us ? at_us : world->now_us + 1;
    }
    node->wake_at_us = at_us;
    node->wake_sequence = push(world, at_us, EVENT_TURN, index);
}

/* ---- what happens ---- */

static void end_trouble(struct copies_model *world) {
    world->over_us = world->now_us;
    world->lacking_first = world->lacking_count;
    look_at_level(world);
}

static void begin_copy_plan(struct copies_model *world, uint32_t node) {
    struct copy_plan_config config = {.copies = world->config.copies, .seed = prng_u64(&world->prng)};
    world->nodes[node].copy_plan = copy_plan_init(world->nodes[node].memory, &config, world->now_us);
}

/* The process starts again, with nothing; what it was doing is not done. */
static void lose_disk(struct copies_model *world, uint32_t index) {
    struct copies_model_node *node = &world->nodes[index];
    for (uint32_t i = 0; i < world->captures_count; i++) {
        world->lacking_count += node->has[i] && is_holder(world, index, i);
        node->has[i] = 0;
    }
    node->batch_count = 0;
    node->has_task = false;
    node->wanted_count = 0;
    memset(node->waits, 0, world->captures_count);
    begin_copy_plan(world, index);
    tell_copy_plan(world, index);
    for (uint32_t i = 0; i < world->config.nodes_count; i++) { /* gone for a moment, and back */
        if (i != index) {
            world->nodes[i].seen &= ~(UINT64_C(1) << index);
            tell_copy_plan(world, i);
        }
    }
    end_trouble(world);
    spread_news(world);
}

static void set_cut(struct copies_model *world, bool is_cut) {
    world->is_cut = is_cut;
    spread_news(world);
    if (!is_cut) {
        end_trouble(world);
        return;
    }
    uint64_t apart_us = world->config.cut_us - world->config.learn_us;
    for (uint32_t i = 0; i < 2 * world->config.late_count; i++) {
        uint32_t node = (uint32_t)prng_below(&world->prng, world->config.nodes_count);
        uint64_t at_us = world->now_us + world->config.learn_us + prng_below(&world->prng, apart_us);
        push(world, at_us, EVENT_ARCHIVE, node);
    }
    push(world, world->now_us + world->config.cut_us, EVENT_HEAL, 0);
}

static void happen(struct copies_model *world, enum event event, uint32_t index) {
    switch (event) {
    case EVENT_TURN:
        take_turn(world, index);
        break;
    case EVENT_CUT:
        set_cut(world, true);
        break;
    case EVENT_HEAL:
        set_cut(world, false);
        break;
    case EVENT_LEARN:
        model_learn(world, index);
        break;
    case EVENT_ARCHIVE:
        archive_late(world, index);
        break;
    case EVENT_DISK:
        lose_disk(world, index);
        break;
    }
}

static bool is_over(const struct copies_model *world) {
    return world->over_us > 0 &&
           (world->lacking_count == 0 || world->now_us > world->over_us + world->config.duration_us_max);
}

enum err copies_model_run(struct copies_model *world) {
    struct heap_item item;
    while (world->err == ERR_OK && !is_over(world) && queue_pop(&world->queue, &item)) {
        if (counts(world, &item)) {
            world->now_us = item.key;
            happen(world, (enum event)(item.value >> EVENT_SHIFT), (uint32_t)item.value);
        }
    }
    return world->err;
}

/* ---- the beginning ---- */

static int compare_places(const void *a, const void *b) {
    const struct ring_id *first = a;
    const struct ring_id *second = b;
    return ring_id_compare(*first, *second);
}

static void draw_places(struct copies_model *world, struct ring_id *out, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        out[i] = (struct ring_id){prng_u64(&world->prng), prng_u64(&world->prng)};
    }
    qsort(out, count, sizeof *out, compare_places);
}

static bool make_node(struct copies_model *world, uint32_t index, struct ring_id place) {
    struct copies_model_node *node = &world->nodes[index];
    struct copy_plan_config config = {.copies = world->config.copies};
    node->place = place;
    node->peer.address = address_ipv4(10, 0, 0, (uint8_t)index, 7070);
    memset(node->peer.key, (int)index + 1, PEER_KEY_SIZE);
    node->half = prng_below(&world->prng, 2) == 0;
    node->memory = malloc(copy_plan_size(&config));
    node->has = calloc(world->captures_count, 1);
    node->waits = calloc(world->captures_count, 1);
    node->wanted = malloc(COPIES_MODEL_WANTED_MAX * sizeof *node->wanted);
    return node->memory != NULL && node->has != NULL && node->waits != NULL && node->wanted != NULL;
}

static void model_begin(struct copies_model *world) {
    const struct copies_model_config *config = &world->config;
    uint64_t all = config->nodes_count < 64 ? (UINT64_C(1) << config->nodes_count) - 1 : UINT64_MAX;
    for (uint32_t i = 0; i < config->nodes_count; i++) {
        world->nodes[i].seen = all;
        begin_copy_plan(world, i);
    }
    for (uint32_t i = 0; i < config->captures_count; i++) {
        uint32_t capture = (uint32_t)((uint64_t)i * world->captures_count / config->captures_count);
        archive(world, 0, capture);
    }
    for (uint32_t i = 0; i < config->nodes_count; i++) {
        tell_copy_plan(world, i);
    }
    push(world, QUIET_US, config->loses_disk ? EVENT_DISK : EVENT_CUT, 0);
}

enum err copies_model_init(struct copies_model *world, const struct copies_model_config *config) {
    ASSERT(config->nodes_count <= COPIES_MODEL_NODES_MAX && config->copies < config->nodes_count);
    ASSERT(config->loses_disk || config->cut_us > config->learn_us);
    struct ring_id places[COPIES_MODEL_NODES_MAX];
    *world = (struct copies_model){.config = *config};
    world->captures_count = config->captures_count + 2 * config->late_count;
    prng_init_stream(&world->prng, config->seed, 31);
    queue_init(&world->queue, (size_t)4 * config->late_count + 4096, counts, world);
    world->places = calloc(world->captures_count, sizeof *world->places);
    world->is_made = calloc(world->captures_count, 1);
    bool has_memory = world->places != NULL && world->is_made != NULL;
    draw_places(world, places, config->nodes_count);
    for (uint32_t i = 0; i < config->nodes_count && has_memory; i++) {
        has_memory = make_node(world, i, places[i]);
    }
    if (!has_memory) {
        return ERR_MEMORY;
    }
    draw_places(world, world->places, world->captures_count);
    model_begin(world);
    return world->err;
}

void copies_model_done(struct copies_model *world) {
    for (uint32_t i = 0; i < world->config.nodes_count; i++) {
        free(world->nodes[i].memory);
        free(world->nodes[i].has);
        free(world->nodes[i].waits);
        free(world->nodes[i].wanted);
    }
    queue_done(&world->queue);
    free(world->places);
    free(world->is_made);
}

void copies_model_digest(const struct copies_model *world, struct digest *digest) {
    const struct keep_counts *counted = &world->counts;
    digest_u64(digest, counted->compared_count);
    digest_u64(digest, counted->capped_count);
    digest_u64(digest, counted->offered_count);
    digest_u64(digest, counted->fetched_count);
    digest_u64(digest, counted->vain_count);
    digest_u64(digest, counted->handed_count);
    digest_u64(digest, world->all_us);
    digest_u64(digest, world->queue.sequence_last);
}
