#include "sim/experiments/years_world.h"

#include <stdlib.h>

#include "sim/experiments/copies_world_state.h"

enum years_event { YEARS_CHANGE, YEARS_BIRTH, YEARS_DISK, YEARS_BLOW, YEARS_DAY };

enum {
    SMALL_DISK_PERCENT = 50, /* of what a node holds on average */
    LARGE_DISK_PERCENT = 400,
    PPM = 1000000,
    BLOW_DAYS = 30, /* in which those that were away come back */
};

/* ---- who has what ---- */

static void years_light(struct years_world *years, struct years_object *object) {
    if (object->up_count++ == 0 && object->is_born) {
        years->dark_us += years->world.now_us - object->dark_since_us;
    }
}

static void years_dim(struct years_world *years, struct years_object *object) {
    if (--object->up_count == 0) {
        object->dark_since_us = years->world.now_us;
    }
}

static void years_on_stored(void *context, uint32_t node, uint32_t capture) {
    struct years_world *years = context;
    struct years_object *object = &years->objects[capture];
    object->copies_count++;
    years->copies_count++;
    if (years->world.nodes[node].is_up) {
        years_light(years, object);
    }
}

static void years_on_removed(void *context, uint32_t node, uint32_t capture) {
    struct years_world *years = context;
    struct years_object *object = &years->objects[capture];
    if (years->world.nodes[node].is_up) {
        years_dim(years, object);
    }
    years->copies_count--;
    if (--object->copies_count == 0) {
        object->is_lost = true;
        years->lost_count++;
    }
}

/* Surplus is kept while there is room for it. */
static bool years_keeps(void *context, uint32_t node) {
    const struct years_world *years = context;
    const struct copies_world_node *holder = &years->world.nodes[node];
    return years->config.keeps_surplus && holder->disk.count < holder->held_max / 2;
}

static void years_turn(struct years_world *years, uint32_t node, bool is_up) {
    const uint8_t *has = years->world.nodes[node].disk.has;
    for (uint32_t i = 0; i < years->config.objects_count; i++) {
        if (has[i] && is_up) {
            years_light(years, &years->objects[i]);
        } else if (has[i]) {
            years_dim(years, &years->objects[i]);
        }
    }
}

uint64_t years_world_dark_us(const struct years_world *years) {
    uint64_t dark_us = years->dark_us;
    for (uint32_t i = 0; i < years->config.objects_count; i++) {
        const struct years_object *object = &years->objects[i];
        if (object->is_born && !object->is_lost && object->up_count == 0) {
            dark_us += years->world.now_us - object->dark_since_us;
        }
    }
    return dark_us;
}

/* ---- the ring ---- */

/* All whose arc or followers have changed by one that came or went. */
static void years_tell(struct years_world *years, uint32_t node) {
    struct copies_world *world = &years->world;
    uint32_t count = years->config.nodes_count;
    uint32_t near_max =
        years->config.counts_sites ? count : 2 * (years->config.copies + COPY_PLAN_SPARES_MAX + 2);
    uint32_t position = copies_world_position(world, world->nodes[node].place);
    uint32_t told_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        copies_world_see(world, i, node, world->nodes[node].is_up);
        copies_world_see(world, node, i, world->nodes[i].is_up);
    }
    for (uint32_t i = 0; i < count && told_count < near_max; i++) {
        uint32_t other = world->order[(position + near_max / 2 + count - i) % count];
        if (world->nodes[other].is_up) {
            copies_world_look(world, other);
            told_count++;
        }
    }
}

static void years_count_life(struct years_world *years, uint32_t node) {
    struct replicator_status status;
    replicator_status(years->world.nodes[node].replicator, &status);
    years->counts.compared_count += status.counts.compared_count;
    years->counts.received_count += status.counts.fetched_count;
}

static void years_rise(struct years_world *years, uint32_t node) {
    copies_world_rise(&years->world, node);
    years->world.nodes[node].is_idle = years->config.is_idle;
    years_turn(years, node, true);
    years_tell(years, node);
}

static void years_fall(struct years_world *years, uint32_t node) {
    if (years->world.nodes[node].is_up) {
        years_count_life(years, node);
        years_turn(years, node, false);
        copies_world_fall(&years->world, node);
        years_tell(years, node);
    }
}

/* ---- lives ---- */

static void years_change_at(struct years_world *years, uint32_t node, uint64_t at_us) {
    struct years_life *life = &years->lives[node];
    life->change_at_us = at_us < life->leaves_at_us ? at_us : life->leaves_at_us;
    copies_world_at(&years->world, life->change_at_us, YEARS_CHANGE, node);
}

static void years_stay_up(struct years_world *years, uint32_t node) {
    uint64_t up_us = prng_exponential(&years->world.prng, years->config.up_us) + 1;
    years_change_at(years, node, years->world.now_us + up_us);
}

/* So long that the node is up for its share of the time. */
static uint64_t years_scale_us(const struct years_world *years, uint32_t node, uint64_t outage_us) {
    const struct years_config *config = &years->config;
    uint64_t uptime_ppm = years->lives[node].uptime_ppm;
    if (config->uptimes_ppm == NULL) {
        return outage_us;
    }
    uint64_t mean_us =
        (config->outage_us * (PPM - config->long_ppm) + config->long_us * config->long_ppm) / PPM;
    uint64_t down_us = config->up_us * (PPM - uptime_ppm) / uptime_ppm;
    return outage_us * (down_us / 1000) / (mean_us / 1000);
}

static uint64_t years_draw_outage_us(struct years_world *years, uint32_t node) {
    struct prng *prng = &years->world.prng;
    bool is_long = prng_chance_ppm(prng, years->config.long_ppm);
    uint64_t outage_us = prng_exponential(prng, is_long ? years->config.long_us : years->config.outage_us);
    return years_scale_us(years, node, outage_us) + 1;
}

static void years_be_new(struct years_world *years, uint32_t node) {
    const struct years_config *config = &years->config;
    struct prng *prng = &years->world.prng;
    uint64_t mean = (uint64_t)config->objects_count * config->copies / config->nodes_count + 1;
    uint32_t large_percent = config->large_percent > 0 ? config->large_percent : LARGE_DISK_PERCENT;
    bool is_small = prng_below(prng, 100) < config->small_percent;
    years->world.nodes[node].held_max =
        (uint32_t)(mean * (is_small ? SMALL_DISK_PERCENT : large_percent) / 100);
    if (config->uptimes_ppm != NULL) {
        years->lives[node].uptime_ppm = config->uptimes_ppm[prng_below(prng, config->uptimes_count)];
    }
    years->lives[node].leaves_at_us = years->world.now_us + prng_exponential(prng, config->lifetime_us) + 1;
}

static void years_go_down(struct years_world *years, uint32_t node, uint64_t outage_us) {
    years_fall(years, node);
    years->counts.outages_count++;
    years_change_at(years, node, years->world.now_us + outage_us);
}

/* For good. The new one comes after a while, elsewhere. */
static void years_leave(struct years_world *years, uint32_t node, uint64_t pause_us) {
    years_fall(years, node);
    copies_world_wipe(&years->world, node);
    years->counts.leaves_count++;
    copies_world_replace(&years->world, node);
    years_be_new(years, node);
    years->lives[node].leaves_at_us += pause_us;
    years_change_at(years, node, years->world.now_us + pause_us);
}

static void years_change(struct years_world *years, uint32_t node) {
    if (years->world.now_us != years->lives[node].change_at_us) {
        return; /* another one was set since */
    }
    if (years->world.now_us >= years->lives[node].leaves_at_us) {
        years_leave(years, node, 1);
    } else if (years->world.nodes[node].is_up) {
        years_go_down(years, node, years_draw_outage_us(years, node));
    } else {
        years_rise(years, node);
        years_stay_up(years, node);
    }
}

static bool years_is_struck(struct years_world *years, uint32_t node) {
    return years->config.sites_count > 0 ? years->world.nodes[node].site == 0
                                         : prng_below(&years->world.prng, 3) == 0;
}

static void years_strike(struct years_world *years) {
    struct prng *prng = &years->world.prng;
    uint64_t lost_before = years->lost_count;
    for (uint32_t i = 0; i < years->config.nodes_count; i++) {
        if (!years_is_struck(years, i)) {
            continue;
        }
        uint64_t pause_us = YEARS_DAY_US + prng_below(prng, (BLOW_DAYS - 1) * YEARS_DAY_US);
        if (years->config.blow == YEARS_GONE) {
            years_leave(years, i, pause_us);
        } else {
            years_go_down(years, i, pause_us);
        }
    }
    years->counts.struck_count = years->lost_count - lost_before;
}

/* A new and empty disk in a node that starts again and goes on. */
static void years_lose_disk(struct years_world *years) {
    struct copies_world *world = &years->world;
    uint32_t node = (uint32_t)prng_below(&world->prng, years->config.nodes_count);
    bool was_up = world->nodes[node].is_up;
    years_fall(years, node);
    copies_world_wipe(world, node);
    if (was_up) {
        years_rise(years, node);
    }
    years->counts.disks_count++;
    uint64_t mean_us = years->config.disk_us / years->config.nodes_count;
    copies_world_at(world, world->now_us + prng_exponential(&world->prng, mean_us) + 1, YEARS_DISK, 0);
}

/* ---- objects ---- */

/* Its holders as any node that is up sees them. */
static void years_store_by_sites(struct years_world *years, uint32_t object) {
    struct copies_world *world = &years->world;
    struct ring_id place = copies_archive_place(&world->archive, object);
    uint32_t viewer = 0;
    while (viewer < years->config.nodes_count && !world->nodes[viewer].is_up) {
        viewer++;
    }
    struct holders_arc arc = {.count = 0};
    if (viewer < years->config.nodes_count) {
        (void)copies_world_know(&world->nodes[viewer], place, &arc);
    }
    for (size_t i = 0; i < arc.count; i++) {
        struct copies_world_node *node = &world->nodes[copies_world_index_of(&arc.peers[i])];
        if (node->is_up && node->disk.count < node->held_max) {
            copies_world_plant(world, node->index, object);
        }
    }
}

/* With all its holders that are up at once, as a new capture is soon. */
static void years_store(struct years_world *years, uint32_t object) {
    struct copies_world *world = &years->world;
    uint32_t count = years->config.nodes_count;
    uint32_t primary = copies_world_position(world, copies_archive_place(&world->archive, object));
    uint32_t stored_count = 0;
    years->objects[object].is_born = true;
    years->objects[object].dark_since_us = world->now_us;
    years->born_count++;
    if (years->config.counts_sites) {
        years_store_by_sites(years, object);
        return;
    }
    for (uint32_t i = 0; i < count && stored_count < years->config.copies; i++) {
        struct copies_world_node *node = &world->nodes[world->order[(primary + i) % count]];
        if (node->is_up && node->disk.count < node->held_max) {
            copies_world_plant(world, node->index, object);
            stored_count++;
        }
    }
}

/* The next one that is not there yet, behind a place drawn by lot. */
static void years_bear(struct years_world *years) {
    uint32_t objects_count = years->config.objects_count;
    uint32_t late_count = objects_count * years->config.born_percent / 100;
    uint32_t object = (uint32_t)prng_below(&years->world.prng, objects_count);
    if (years->born_count == objects_count) {
        return;
    }
    while (years->objects[object].is_born) {
        object = (object + 1) % objects_count;
    }
    years_store(years, object);
    copies_world_at(&years->world, years->world.now_us + years->config.duration_us / (late_count + 1),
                    YEARS_BIRTH, 0);
}

static void years_count_day(struct years_world *years) {
    const struct copies_world *world = &years->world;
    uint64_t half_us = years->config.duration_us / 2;
    for (uint32_t i = 0; i < years->config.nodes_count; i++) {
        years->counts.full_sum += world->nodes[i].disk.count >= world->nodes[i].held_max;
    }
    bool is_after_blow = world->now_us > half_us && world->now_us <= half_us + BLOW_DAYS * YEARS_DAY_US;
    for (uint32_t i = 0; i < years->config.objects_count && is_after_blow; i++) {
        const struct years_object *object = &years->objects[i];
        years->counts.dark_sum += object->is_born && !object->is_lost && object->up_count == 0;
    }
}

static void years_sample(struct years_world *years) {
    years_count_day(years);
    years->counts.copies_sum += years->copies_count;
    years->counts.kept_sum += years->born_count - years->lost_count;
    years->counts.days_count++;
    copies_world_at(&years->world, years->world.now_us + YEARS_DAY_US, YEARS_DAY, 0);
}

/* ---- a run ---- */

static void years_happen(void *context, uint32_t code, uint32_t index) {
    struct years_world *years = context;
    switch ((enum years_event)code) {
    case YEARS_CHANGE:
        years_change(years, index);
        break;
    case YEARS_BIRTH:
        years_bear(years);
        break;
    case YEARS_DISK:
        years_lose_disk(years);
        break;
    case YEARS_BLOW:
        years_strike(years);
        break;
    case YEARS_DAY:
        years_sample(years);
        break;
    }
}

enum err years_world_run(struct years_world *years) {
    enum err err = copies_world_run(&years->world, years->config.duration_us, NULL, NULL);
    for (uint32_t i = 0; i < years->config.nodes_count && err == ERR_OK; i++) {
        if (years->world.nodes[i].is_up) {
            years_count_life(years, i);
        }
    }
    return err;
}

static void years_begin(struct years_world *years) {
    const struct years_config *config = &years->config;
    for (uint32_t i = 0; i < config->nodes_count; i++) {
        bool is_first = config->sites_count == 0 || i < config->nodes_count / 2;
        years->world.nodes[i].site = is_first ? 0 : 1 + i % (config->sites_count - 1);
        years_be_new(years, i);
        years_rise(years, i);
        years_stay_up(years, i);
    }
    for (uint32_t i = 0; i < config->objects_count; i++) {
        if (i % 100 >= config->born_percent) {
            years_store(years, i);
        }
    }
    years_sample(years);
    if (config->born_percent > 0) {
        copies_world_at(&years->world, 1, YEARS_BIRTH, 0);
    }
    if (config->disk_us > 0) {
        copies_world_at(&years->world, config->disk_us / config->nodes_count, YEARS_DISK, 0);
    }
    if (config->blow != YEARS_NO_BLOW) {
        copies_world_at(&years->world, config->duration_us / 2, YEARS_BLOW, 0);
    }
}

enum err years_world_init(struct years_world *years, const struct years_config *config) {
    *years = (struct years_world){.config = *config};
    struct copies_world_config world = {
        .seed = config->seed,
        .nodes_count = config->nodes_count,
        .copies = config->copies,
        .captures_count = config->objects_count,
        .delay_us = 50000,
        .timeout_us = UINT64_C(10) * 1000000,
        .capture_us = config->object_us,
        .capture_size = TRANSFER_ANSWER_MIN, /* one at a time */
        .keeps_parts = true,
        .counts_sites = config->counts_sites,
        .machine =
            {
                .grace_us = config->grace_us,
                .compare_interval_us = config->compare_us,
                .challenge_interval_us = 30 * YEARS_DAY_US,
                .bar_us = 7 * YEARS_DAY_US,
                .has_slow_lines = true,
                .pieces_max = 12,
                .claims_max = 64,
                .arcs_max = 1,
                .custody_max = 512,
                .wanted_max = 512,
                .peers_max = 24,
                .comparisons_max = 4,
                .offers_max = 8,
                .found_max = 256,
                .message_size = 4096,
                .came_count = 256,
                .deleted_count = 16,
            },
        .stored = years_on_stored,
        .removed = years_on_removed,
        .keeps = years_keeps,
        .happen = years_happen,
        .context = years,
    };
    years->objects = calloc(config->objects_count, sizeof *years->objects);
    years->lives = calloc(config->nodes_count, sizeof *years->lives);
    enum err err = copies_world_init(&years->world, &world);
    if (years->objects == NULL || years->lives == NULL) {
        err = ERR_MEMORY;
    }
    if (err == ERR_OK) {
        years_begin(years);
        err = years->world.err;
    }
    return err;
}

void years_world_done(struct years_world *years) {
    copies_world_done(&years->world);
    free(years->objects);
    free(years->lives);
}

void years_world_digest(const struct years_world *years, struct digest *digest) {
    copies_world_digest(&years->world, digest);
    digest_u64(digest, years->counts.leaves_count);
    digest_u64(digest, years->counts.outages_count);
    digest_u64(digest, years->counts.compared_count);
    digest_u64(digest, years->counts.received_count);
    digest_u64(digest, years->counts.copies_sum);
    digest_u64(digest, years->lost_count);
    digest_u64(digest, years_world_dark_us(years));
}
