#include "sim/experiments/heal_world.h"

#include <stdlib.h>

#include "base/assert.h"

enum heal_event { HEAL_CUT, HEAL_END, HEAL_LEARN, HEAL_ARCHIVE, HEAL_DISK, HEAL_SILENCE };

static const uint64_t SECOND_US = 1000000;
static const uint64_t QUIET_US = UINT64_C(600) * 1000000; /* before anything happens */

/* ---- where captures belong ---- */

static bool heal_is_silent(const struct heal_world *heal, uint32_t node) {
    return node < heal->config.silent_count;
}

/* In the whole ring, whoever sees how much of it. What silent nodes have is not waited for. */
static bool heal_is_holder(const struct heal_world *heal, uint32_t node, uint32_t capture) {
    uint32_t count = heal->config.nodes_count;
    struct ring_id place = copies_archive_place(&heal->world.archive, capture);
    uint32_t primary = copies_world_position(&heal->world, place);
    return (heal->rank[node] + count - primary) % count < heal->config.copies && !heal_is_silent(heal, node);
}

static void heal_look_at_level(struct heal_world *heal) {
    uint64_t since_us = heal->world.now_us - heal->over_us;
    if (heal->over_us == 0) {
        return;
    }
    if (!heal->has_most && heal->lacking_count * 100 <= heal->lacking_first) {
        heal->has_most = true;
        heal->most_us = since_us;
    }
    if (heal->lacking_count == 0 && heal->coming_count == 0) {
        heal->all_us = since_us;
    }
}

static void heal_on_stored(void *context, uint32_t node, uint32_t capture) {
    struct heal_world *heal = context;
    if (heal_is_holder(heal, node, capture)) {
        heal->lacking_count--;
        heal_look_at_level(heal);
    }
}

static void heal_on_removed(void *context, uint32_t node, uint32_t capture) {
    struct heal_world *heal = context;
    heal->lacking_count += heal_is_holder(heal, node, capture);
}

static void heal_make(struct heal_world *heal, uint32_t capture) {
    heal->is_made[capture] = 1;
    for (uint32_t i = 0; i < heal->config.nodes_count; i++) {
        heal->lacking_count += heal_is_holder(heal, i, capture);
    }
}

static uint32_t heal_draw_new(struct heal_world *heal) {
    uint32_t count = heal->world.archive.count;
    uint32_t capture = (uint32_t)prng_below(&heal->world.prng, count);
    while (heal->is_made[capture]) {
        capture = (capture + 1) % count;
    }
    heal_make(heal, capture);
    return capture;
}

/* ---- what happens ---- */

static void heal_end_trouble(struct heal_world *heal) {
    heal->over_us = heal->world.now_us;
    heal->lacking_first = heal->lacking_count;
    heal_look_at_level(heal);
}

/* Everybody hears of it, at some time. */
static void heal_spread_news(struct heal_world *heal) {
    struct copies_world *world = &heal->world;
    for (uint32_t i = 0; i < heal->config.nodes_count; i++) {
        copies_world_at(world, world->now_us + prng_below(&world->prng, heal->config.learn_us + 1),
                        HEAL_LEARN, i);
    }
}

static void heal_learn(struct heal_world *heal, uint32_t viewer) {
    for (uint32_t i = 0; i < heal->config.nodes_count; i++) {
        copies_world_see(&heal->world, viewer, i,
                         heal->world.nodes[i].group == heal->world.nodes[viewer].group);
    }
    copies_world_look(&heal->world, viewer);
}

static void heal_cut(struct heal_world *heal) {
    struct copies_world *world = &heal->world;
    bool is_at_all_times = heal->config.is_at_all_times;
    uint64_t begin_us = is_at_all_times ? 0 : heal->config.learn_us;
    uint64_t end_us = heal->config.cut_us + (is_at_all_times ? heal->config.learn_us : 0);
    for (uint32_t i = 0; i < heal->config.nodes_count; i++) {
        world->nodes[i].group = (uint32_t)prng_below(&world->prng, 2);
    }
    heal_spread_news(heal);
    heal->coming_count = 2 * heal->config.late_count;
    for (uint32_t i = 0; i < heal->coming_count; i++) {
        uint32_t node = (uint32_t)prng_below(&world->prng, heal->config.nodes_count);
        uint64_t at_us = world->now_us + begin_us + prng_below(&world->prng, end_us - begin_us);
        copies_world_at(world, at_us, HEAL_ARCHIVE, node);
    }
    copies_world_at(world, world->now_us + heal->config.cut_us, HEAL_END, 0);
}

static void heal_end_cut(struct heal_world *heal) {
    for (uint32_t i = 0; i < heal->config.nodes_count; i++) {
        heal->world.nodes[i].group = 0;
    }
    heal_spread_news(heal);
    heal_end_trouble(heal);
}

/* The process starts again, with nothing; it was gone for a moment, and is back. */
static void heal_lose_disk(struct heal_world *heal, uint32_t node) {
    copies_world_fall(&heal->world, node);
    copies_world_wipe(&heal->world, node);
    copies_world_rise(&heal->world, node);
    for (uint32_t i = 0; i < heal->config.nodes_count; i++) {
        if (i != node) {
            copies_world_see(&heal->world, i, node, false);
            copies_world_look(&heal->world, i);
        }
    }
    heal_end_trouble(heal);
    heal_spread_news(heal);
}

/* All are archived in one moment, by nodes drawn by lot, while some say nothing. */
static void heal_begin_silence(struct heal_world *heal) {
    struct copies_world *world = &heal->world;
    uint32_t answering_count = heal->config.nodes_count - heal->config.silent_count;
    for (uint32_t i = 0; i < heal->config.silent_count; i++) {
        world->nodes[i].silent_to_us = heal->config.are_answering ? 0 : UINT64_MAX;
    }
    for (uint32_t i = 0; i < 2 * heal->config.late_count; i++) {
        uint32_t node = heal->config.silent_count + (uint32_t)prng_below(&world->prng, answering_count);
        copies_world_put(world, node, heal_draw_new(heal));
    }
    heal_end_trouble(heal);
}

static void heal_happen(void *context, uint32_t code, uint32_t index) {
    struct heal_world *heal = context;
    switch ((enum heal_event)code) {
    case HEAL_CUT:
        heal_cut(heal);
        break;
    case HEAL_END:
        heal_end_cut(heal);
        break;
    case HEAL_LEARN:
        heal_learn(heal, index);
        break;
    case HEAL_ARCHIVE:
        heal->coming_count--;
        copies_world_put(&heal->world, index, heal_draw_new(heal));
        break;
    case HEAL_DISK:
        heal_lose_disk(heal, index);
        break;
    case HEAL_SILENCE:
        heal_begin_silence(heal);
        break;
    }
}

static bool heal_is_over(const void *context) {
    const struct heal_world *heal = context;
    return heal->over_us > 0 && ((heal->lacking_count == 0 && heal->coming_count == 0) ||
                                 heal->world.now_us > heal->over_us + heal->config.duration_us_max);
}

enum err heal_world_run(struct heal_world *heal) {
    return copies_world_run(&heal->world, UINT64_MAX, heal_is_over, heal);
}

/* ---- the beginning ---- */

static void heal_begin(struct heal_world *heal) {
    const struct heal_config *config = &heal->config;
    struct copies_world *world = &heal->world;
    for (uint32_t i = 0; i < config->nodes_count; i++) {
        heal->rank[world->order[i]] = i;
        for (uint32_t j = 0; j < config->nodes_count; j++) {
            copies_world_see(world, i, j, true);
        }
    }
    for (uint32_t i = 0; i < config->captures_count; i++) {
        uint32_t capture = (uint32_t)((uint64_t)i * world->archive.count / config->captures_count);
        uint32_t holder = copies_world_primary(world, 0, copies_archive_place(&world->archive, capture));
        heal_make(heal, capture);
        for (uint32_t j = 0; j < config->copies; j++, holder = copies_world_next(world, 0, holder)) {
            copies_world_plant(world, holder, capture);
        }
    }
    for (uint32_t i = 0; i < config->nodes_count; i++) {
        copies_world_rise(world, i);
    }
    copies_world_at(world, QUIET_US,
                    config->loses_disk   ? HEAL_DISK
                    : config->cut_us > 0 ? HEAL_CUT
                                         : HEAL_SILENCE,
                    0);
}

enum err heal_world_init(struct heal_world *heal, const struct heal_config *config) {
    *heal = (struct heal_world){.config = *config};
    struct copies_world_config world = {
        .seed = config->seed,
        .nodes_count = config->nodes_count,
        .copies = config->copies,
        .captures_count = config->captures_count + 2 * config->late_count,
        .delay_us = SECOND_US / 20,
        .timeout_us = 10 * SECOND_US,
        .loss_ppm = config->loss_ppm,
        .capture_us = config->fetches_per_s > 0 ? SECOND_US / config->fetches_per_s : 0,
        .capture_size = HEAL_CAPTURE_SIZE,
        .machine = {.arcs_max = 1},
        .stored = heal_on_stored,
        .removed = heal_on_removed,
        .happen = heal_happen,
        .context = heal,
    };
    ASSERT(config->cut_us == 0 || config->cut_us > config->learn_us);
    heal->rank = calloc(config->nodes_count, sizeof *heal->rank);
    heal->is_made = calloc(world.captures_count, 1);
    enum err err = copies_world_init(&heal->world, &world);
    if (heal->rank == NULL || heal->is_made == NULL) {
        err = ERR_MEMORY;
    }
    if (err == ERR_OK) {
        heal_begin(heal);
        err = heal->world.err;
    }
    return err;
}

void heal_world_done(struct heal_world *heal) {
    copies_world_done(&heal->world);
    free(heal->rank);
    free(heal->is_made);
}

struct replicator_counts heal_world_counts(const struct heal_world *heal) {
    struct replicator_counts sum = {0};
    for (uint32_t i = 0; i < heal->config.nodes_count; i++) {
        struct replicator_status status;
        replicator_status(heal->world.nodes[i].replicator, &status);
        sum.compared_count += status.counts.compared_count;
        sum.handed_on_count += status.counts.handed_on_count;
        sum.offered_count += status.counts.offered_count;
        sum.fetched_count += status.counts.fetched_count;
    }
    return sum;
}

void heal_world_digest(const struct heal_world *heal, struct digest *digest) {
    copies_world_digest(&heal->world, digest);
    digest_u64(digest, heal->all_us);
}
