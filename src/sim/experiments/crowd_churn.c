#include "sim/experiments/crowd_churn.h"

#include <stdlib.h>

enum {
    GAP_UNITS = 2, /* between samples, on average; the paper: as many as there are nodes */
    SETTLING_SPANS = 3,
    SETTLING_UNITS_MIN = 10,
    LATENCY_US = 50000,
    PAPER_LATENCY_US = 1000, /* its shuffles take no time */
    PAPER_ANSWER_US = 10000,
};
static const uint64_t MILLION = 1000000;

struct crowd_churn {
    const struct crowd_churn_config *config;
    struct crowd_world world;
    struct crowd_graph graph;
    uint32_t *order; /* nodes; the first up_count are up */
    uint32_t up_count;
    struct prng prng;
};

/* ---- coming and going ---- */

static void exchange(uint32_t *nodes, uint32_t a, uint32_t b) {
    uint32_t node = nodes[a];
    nodes[a] = nodes[b];
    nodes[b] = node;
}

static enum err come(struct crowd_churn *churn) {
    uint32_t down_count = churn->config->nodes_count - churn->up_count;
    uint32_t chosen = churn->up_count + (uint32_t)prng_below(&churn->prng, down_count);
    exchange(churn->order, chosen, churn->up_count);
    return crowd_world_come(&churn->world, churn->order[churn->up_count++]);
}

static void churn_leave(struct crowd_churn *churn) {
    uint32_t chosen = (uint32_t)prng_below(&churn->prng, churn->up_count);
    exchange(churn->order, chosen, --churn->up_count);
    sim_crash(churn->world.sim, churn->order[churn->up_count]);
}

/* Exponential times have no memory: the next change is drawn anew after each event of any kind. */
static uint64_t draw_change_us(struct crowd_churn *churn, uint64_t rate) {
    return rate == 0 ? STEP_NEVER_US : prng_exponential(&churn->prng, CROWD_CHURN_UNIT_US * MILLION / rate);
}

static enum err pass_until(struct crowd_churn *churn, uint64_t until_us) {
    const struct crowd_churn_config *config = churn->config;
    struct sim *sim = churn->world.sim;
    enum err err = ERR_OK;
    while (err == ERR_OK) {
        uint64_t come_rate = (uint64_t)(config->nodes_count - churn->up_count) * config->come_ppm;
        uint64_t rate = come_rate + (uint64_t)churn->up_count * config->leave_ppm;
        uint64_t wait_us = draw_change_us(churn, rate);
        if (wait_us > until_us - sim_now_us(sim)) {
            return sim_run_until(sim, until_us);
        }
        err = sim_run_until(sim, sim_now_us(sim) + wait_us);
        if (err == ERR_OK && prng_below(&churn->prng, rate) < come_rate) {
            err = come(churn);
        } else if (err == ERR_OK) {
            churn_leave(churn);
        }
    }
    return err;
}

/* As many as are up in the long run come one after the other, then the rest of the past fades. */
static enum err churn_settle(struct crowd_churn *churn) {
    const struct crowd_churn_config *config = churn->config;
    uint64_t rates = (uint64_t)config->come_ppm + config->leave_ppm;
    uint32_t up_count = (uint32_t)(config->nodes_count * (uint64_t)config->come_ppm / rates);
    enum err err = ERR_OK;
    while (churn->up_count < up_count && err == ERR_OK) {
        err = come(churn);
        uint64_t now_us = sim_now_us(churn->world.sim);
        err = err != ERR_OK ? err : sim_run_until(churn->world.sim, now_us + 1000);
    }
    uint64_t span_us = config->leave_ppm == 0 ? 0 : SETTLING_SPANS * CROWD_CHURN_UNIT_US * MILLION / rates;
    span_us += SETTLING_UNITS_MIN * CROWD_CHURN_UNIT_US;
    return err != ERR_OK ? err : pass_until(churn, sim_now_us(churn->world.sim) + span_us);
}

/* ---- samples ---- */

static void sample(struct crowd_churn *churn, struct crowd_churn_found *found) {
    crowd_graph_take(&churn->graph, &churn->world);
    struct crowd_reach reach = crowd_graph_reach(&churn->graph);
    found->minimums[found->count] = reach.minimum;
    found->means[found->count++] = reach.mean;
    found->mean += reach.mean;
    found->nodes += churn->graph.nodes_count;
    double all = (double)(churn->graph.edges_count + churn->graph.dangling_count);
    found->dangling += all > 0 ? (double)churn->graph.dangling_count / all : 0;
}

static int compare_numbers(const void *a, const void *b) {
    double first = *(const double *)a;
    double second = *(const double *)b;
    return (first > second) - (first < second);
}

static enum err take_samples(struct crowd_churn *churn, struct crowd_churn_found *found) {
    enum err err = churn_settle(churn);
    for (uint32_t i = 0; i < churn->config->samples_count && err == ERR_OK; i++) {
        uint64_t gap_us = prng_exponential(&churn->prng, GAP_UNITS * CROWD_CHURN_UNIT_US);
        err = pass_until(churn, sim_now_us(churn->world.sim) + gap_us);
        if (err == ERR_OK && i >= churn->config->dropped_count) {
            sample(churn, found);
        }
    }
    if (found->count > 0) {
        found->mean /= found->count;
        found->nodes /= found->count;
        found->dangling /= found->count;
        qsort(found->minimums, found->count, sizeof *found->minimums, compare_numbers);
        qsort(found->means, found->count, sizeof *found->means, compare_numbers);
    }
    return err;
}

double crowd_churn_level(const double *values, uint32_t count, uint32_t percent) {
    uint32_t below = (uint32_t)((uint64_t)count * (100 - percent) / 100);
    return count == 0 ? 0 : values[below < count ? below : count - 1];
}

/* ---- a run ---- */

static struct crowd_config make_config(const struct crowd_churn_config *config) {
    bool is_paper = config->way == CROWD_CHURN_PAPER;
    uint32_t shuffles = config->shuffles_per_unit == 0 ? 1 : config->shuffles_per_unit;
    return (struct crowd_config){
        .kind = config->way == CROWD_CHURN_CYCLON ? CROWD_CYCLON : CROWD_PROOFS,
        .view_size = config->view_size,
        .shuffle_us = CROWD_CHURN_UNIT_US / shuffles,
        .answer_us = is_paper ? PAPER_ANSWER_US : 0,
        .walk_hops = config->walk_hops,
        .searches_max = 1,
        .seen_max = 16,
        .waiting_max = 1,
        .keeps_silent = is_paper,
    };
}

static enum err churn_run(struct crowd_churn *churn, struct crowd_churn_found *found) {
    const struct crowd_churn_config *config = churn->config;
    struct sim_config sim = {.seed = config->seed, .nodes_max = config->nodes_count};
    sim.network.latency_us = config->way == CROWD_CHURN_PAPER ? PAPER_LATENCY_US : LATENCY_US;
    struct crowd_config crowd = make_config(config);
    enum err err = crowd_world_init(&churn->world, &sim, &crowd);
    if (err == ERR_OK) {
        bool is_paper = config->way == CROWD_CHURN_PAPER;
        churn->world.gives_views = is_paper || config->gives_views;
        churn->world.joins_as_well = !is_paper;
        churn->world.joins_again = !is_paper;
        err = crowd_graph_init(&churn->graph, &churn->world);
    }
    return err != ERR_OK ? err : take_samples(churn, found);
}

enum err crowd_churn_run(const struct crowd_churn_config *config, struct crowd_churn_found *found,
                         struct digest *digest) {
    struct crowd_churn churn = {.config = config};
    prng_init_stream(&churn.prng, config->seed, 19);
    *found = (struct crowd_churn_found){0};
    found->minimums = calloc(config->samples_count, sizeof *found->minimums);
    found->means = calloc(config->samples_count, sizeof *found->means);
    churn.order = calloc(config->nodes_count, sizeof *churn.order);
    enum err err =
        found->minimums == NULL || found->means == NULL || churn.order == NULL ? ERR_MEMORY : ERR_OK;
    for (uint32_t i = 0; i < config->nodes_count && err == ERR_OK; i++) {
        churn.order[i] = i;
    }
    err = err != ERR_OK ? err : churn_run(&churn, found);
    sim_digest_into(churn.world.sim, digest);
    crowd_graph_done(&churn.graph);
    crowd_world_done(&churn.world);
    free(churn.order);
    return err;
}

void crowd_churn_done(struct crowd_churn_found *found) {
    free(found->minimums);
    free(found->means);
    *found = (struct crowd_churn_found){0};
}
