#include "sim/experiments/crowd_searches.h"

#include <stdlib.h>

#include "base/assert.h"

enum {
    HOP_US = 100000,
    SHUFFLE_HOPS = 200000, /* mean wait; a run takes 2,000 hops, and 40,000 if most searches are lost */
    SETTLE_SHUFFLES = 20,  /* of each node, before the first run … */
    RENEW_SHUFFLES = 5,    /* … and between two */
    DRAIN_HOPS = 40,       /* queries are still on their way when the last search has ended */
    UNIT_HOPS =
        2, /* of joined arrivals: a search takes twice the paper's hops, so others come half as often */
    RUN_HOPS_MAX = 1000000,
    STAY_SCALE = 1000000000,
};

struct course {
    const struct crowd_searches *searches;
    struct crowd_world world;
    struct prng prng;
    uint32_t *order;  /* the order of the searches; isolated arrivals */
    uint64_t *tries;  /* [node]: that it had made before this search */
    bool *has_begun;  /* [node] */
    bool *is_counted; /* [node]: its search has ended */
    uint32_t begun_count;
    uint32_t ended_count;
    uint64_t number_last;
    struct crowd_searches_result *result;
};

uint8_t crowd_searches_ttl_last(uint8_t fanout) {
    return fanout <= 2 ? 13 : 6;
}

void crowd_searches_set_rules(struct crowd_config *config, enum crowd_rules rules) {
    bool is_paper = rules == CROWD_RULES_PAPER;
    config->kind = is_paper ? CROWD_PROOFS : CROWD_CYCLON;
    config->takes_repeats = is_paper;
    config->is_unlimited = is_paper;
}

/* ---- the world ---- */

static enum err searches_make_world(struct course *course) {
    const struct crowd_searches *searches = course->searches;
    uint8_t ttl_last =
        searches->ttl_last == 0 ? crowd_searches_ttl_last(searches->fanout) : searches->ttl_last;
    struct sim_config sim = {
        .seed = searches->seed,
        .nodes_max = searches->nodes_count,
        .messages_max = 1 << 20,
        .network = {.latency_us = HOP_US},
    };
    struct crowd_config config = {
        .view_size = searches->view_size,
        .fanout = searches->fanout,
        .ttl_last = ttl_last,
        .ttl_cap = CROWD_TTL_CAP,
        .shuffle_us = (uint64_t)SHUFFLE_HOPS * HOP_US,
        .hop_us = 2 * HOP_US + HOP_US / 100, /* a hop there and one back; no try begins too early */
        .ack_us = 2 * HOP_US + HOP_US / 100,
        .keeps_silent = searches->drop_percent > 0, /* a node that drops by chance is not gone */
        .searches_max = 2,
        .seen_max = 256,
        .waiting_max = 128,
    };
    crowd_searches_set_rules(&config, searches->rules);
    enum err err = crowd_world_init(&course->world, &sim, &config);
    if (err == ERR_OK) {
        course->world.keeps_found = true;
        course->world.is_withheld_by_tunnels = searches->rules == CROWD_RULES_PAPER;
        course->world.drop_ppm = searches->drop_percent * 10000;
        course->world.is_drop_acknowledged = searches->is_drop_acknowledged;
    }
    return err;
}

static void shuffle_order(struct course *course) {
    for (uint32_t i = 0; i < course->world.nodes_count; i++) {
        uint32_t other = (uint32_t)prng_below(&course->prng, i + 1);
        course->order[i] = course->order[other];
        course->order[other] = i;
    }
}

static enum err start_world(struct course *course) {
    struct crowd_world *world = &course->world;
    shuffle_order(course);
    uint32_t limited_count = world->nodes_count * course->searches->part_percent / 100;
    ASSERT(limited_count < world->nodes_count);
    for (uint32_t i = 0; i < limited_count; i++) {
        world->parts[course->order[i]] = (uint8_t)course->searches->part;
    }
    crowd_world_install(world, world->nodes_count);
    return sim_run_until(world->sim, (uint64_t)SETTLE_SHUFFLES * SHUFFLE_HOPS * HOP_US);
}

/* ---- one search ---- */

static const struct crowd_counters *counters_of(const struct course *course, uint32_t node) {
    return crowd_counters(crowd_world_crowd(&course->world, node));
}

static enum err begin_search(struct course *course, uint32_t node) {
    struct crowd_world *world = &course->world;
    course->tries[node] = counters_of(course, node)->tries_count;
    course->has_begun[node] = true;
    course->begun_count++;
    course->result->asked_count++;
    return crowd_world_find(world, node, CROWD_WORLD_OBJECT, ++course->number_last, sim_now_us(world->sim));
}

/* Each try waits longer than its findings need, so it is the last one that was found by. */
static void count_search(struct course *course, uint32_t node) {
    const struct crowd_world_search *search = &course->world.searches[node];
    course->is_counted[node] = true;
    course->ended_count++;
    if (search->found != CROWD_WORLD_FOUND) {
        return;
    }
    uint64_t failed_tries = counters_of(course, node)->tries_count - course->tries[node] - 1;
    course->result->found_count++;
    course->result->hops_sum += failed_tries * (failed_tries + 1) / 2 + search->hops;
    course->result->time_us_sum += search->ended_at_us - search->asked_at_us;
}

static enum err run_hop(struct course *course) {
    return sim_run_until(course->world.sim, sim_now_us(course->world.sim) + HOP_US);
}

/* ---- arrivals ---- */

static enum err run_isolated(struct course *course) {
    enum err err = ERR_OK;
    shuffle_order(course);
    for (uint32_t i = 0; i < course->world.nodes_count && err == ERR_OK; i++) {
        uint32_t node = course->order[i];
        if (course->world.has_object[node]) {
            continue;
        }
        err = begin_search(course, node);
        for (unsigned hop = 0; hop < RUN_HOPS_MAX && err == ERR_OK; hop++) {
            err = run_hop(course);
            if (course->world.searches[node].found != CROWD_WORLD_OPEN) {
                break;
            }
        }
        count_search(course, node);
    }
    return err;
}

static enum err begin_some(struct course *course, uint32_t chance_ppm) {
    enum err err = ERR_OK;
    for (uint32_t node = 0; node < course->world.nodes_count && err == ERR_OK; node++) {
        if (!course->has_begun[node] && prng_chance_ppm(&course->prng, chance_ppm)) {
            err = begin_search(course, node);
        }
    }
    return err;
}

static void count_ended(struct course *course) {
    for (uint32_t node = 0; node < course->world.nodes_count; node++) {
        bool has_ended = course->has_begun[node] && course->world.searches[node].found != CROWD_WORLD_OPEN;
        if (has_ended && !course->is_counted[node]) {
            count_search(course, node);
        }
    }
}

/* In integers, so that all compilers agree. */
static uint32_t chance_to_begin_ppm(const struct course *course) {
    uint32_t n = course->begun_count + 1; /* and the holder */
    if (course->searches->arrivals == CROWD_JOINED_AS_PRINTED) {
        uint32_t q_to_the_n = n == 1 ? 10000 : n == 2 ? 100 : n == 3 ? 1 : 0;
        return 1000 + q_to_the_n;
    }
    uint64_t stay = STAY_SCALE / 1000 * 999;
    for (uint32_t i = 0; i < n; i++) {
        stay = stay * 99 / 100;
    }
    return (uint32_t)(1000000 - stay / (STAY_SCALE / 1000000));
}

static enum err run_joined(struct course *course, uint32_t holder) {
    enum err err = ERR_OK;
    course->has_begun[holder] = true;
    course->is_counted[holder] = true;
    for (unsigned hop = 0; hop < RUN_HOPS_MAX && err == ERR_OK; hop++) {
        err = begin_some(course, chance_to_begin_ppm(course));
        for (unsigned i = 0; i < UNIT_HOPS && err == ERR_OK; i++) {
            err = run_hop(course);
        }
        count_ended(course);
        if (course->ended_count + 1 == course->world.nodes_count) {
            break;
        }
    }
    return err;
}

/* ---- runs ---- */

static uint32_t pick_holder(struct course *course) {
    uint32_t holder;
    do {
        holder = (uint32_t)prng_below(&course->prng, course->world.nodes_count);
    } while (course->world.parts[holder] != CROWD_FULL);
    return holder;
}

static void count_queries(const struct course *course, uint64_t *ret_queries, uint64_t *ret_lost_room) {
    *ret_queries = course->world.dropped_count;
    *ret_lost_room = 0;
    for (uint32_t node = 0; node < course->world.nodes_count; node++) {
        const struct crowd_counters *counters = counters_of(course, node);
        *ret_queries += counters->queries_count;
        *ret_lost_room += counters->crowded_out_count + counters->limited_count;
    }
}

static enum err run_once(struct course *course) {
    struct crowd_world *world = &course->world;
    memset(world->has_object, 0, world->nodes_count * sizeof *world->has_object);
    memset(course->has_begun, 0, world->nodes_count * sizeof *course->has_begun);
    memset(course->is_counted, 0, world->nodes_count * sizeof *course->is_counted);
    course->begun_count = 0;
    course->ended_count = 0;
    uint32_t holder = pick_holder(course);
    world->has_object[holder] = true;
    uint64_t before[2];
    uint64_t after[2];
    count_queries(course, &before[0], &before[1]);
    enum err err =
        course->searches->arrivals == CROWD_ISOLATED ? run_isolated(course) : run_joined(course, holder);
    err = err != ERR_OK ? err : sim_run_until(world->sim, sim_now_us(world->sim) + DRAIN_HOPS * HOP_US);
    count_queries(course, &after[0], &after[1]);
    course->result->queries_count += after[0] - before[0];
    course->result->lost_room_count += after[1] - before[1];
    course->result->nodes_count += world->nodes_count;
    return err;
}

static enum err searches_run_all(struct course *course) {
    enum err err = searches_make_world(course);
    uint32_t nodes_count = course->searches->nodes_count;
    course->order = calloc(nodes_count, sizeof *course->order);
    course->tries = calloc(nodes_count, sizeof *course->tries);
    course->has_begun = calloc(nodes_count, sizeof *course->has_begun);
    course->is_counted = calloc(nodes_count, sizeof *course->is_counted);
    if (err == ERR_OK && (course->order == NULL || course->tries == NULL || course->has_begun == NULL ||
                          course->is_counted == NULL)) {
        err = ERR_MEMORY;
    }
    err = err != ERR_OK ? err : start_world(course);
    for (uint32_t run = 0; run < course->searches->runs_count && err == ERR_OK; run++) {
        err = run_once(course);
        uint64_t renewed_us = (uint64_t)RENEW_SHUFFLES * SHUFFLE_HOPS * HOP_US;
        err = err != ERR_OK ? err
                            : sim_run_until(course->world.sim, sim_now_us(course->world.sim) + renewed_us);
    }
    return err;
}

enum err crowd_searches_run(const struct crowd_searches *searches, struct digest *digest,
                            struct crowd_searches_result *ret_result) {
    *ret_result = (struct crowd_searches_result){0};
    struct course course = {.searches = searches, .result = ret_result};
    prng_init_stream(&course.prng, searches->seed, 21);
    enum err err = searches_run_all(&course);
    sim_digest_into(course.world.sim, digest);
    crowd_world_done(&course.world);
    free(course.order);
    free(course.tries);
    free(course.has_begun);
    free(course.is_counted);
    return err;
}

/* ---- results ---- */

static double ratio(double sum, uint64_t count) {
    return count == 0 ? 0 : sum / (double)count;
}

double crowd_searches_success(const struct crowd_searches_result *result) {
    return ratio(100.0 * (double)result->found_count, result->asked_count);
}

double crowd_searches_messages(const struct crowd_searches_result *result) {
    return ratio((double)result->queries_count, result->nodes_count);
}

double crowd_searches_hops(const struct crowd_searches_result *result) {
    return ratio((double)result->hops_sum, result->found_count);
}

double crowd_searches_hops_with_way_back(const struct crowd_searches_result *result) {
    return ratio((double)result->time_us_sum / HOP_US, result->found_count);
}
